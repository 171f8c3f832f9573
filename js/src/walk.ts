// The walk over the headers of an archive (5.7), and what it says about bytes that no end mark has committed.
import { equalBytes, isZero } from './bytes.js';
import { TAG } from './cbor.js';
import {
  FAN_OUT,
  TAIL_LENGTH,
  isTailPadding,
  readBlock,
  readEndMark,
  readTail,
  tailPlace,
  tailStarts,
  type BlockEntry,
  type EndMark,
  type SegmentEntry,
} from './directory.js';
import { TenarcError, fail } from './errors.js';
import {
  MAGIC,
  MAX_START,
  laterVersion,
  oddKeyError,
  openRecord,
  readHeader,
  readRecord,
  recordLength,
  type Header,
  type RecordItem,
} from './record.js';
import type { Input } from './source.js';

const AHEAD = 65536;
const MAX_AUXILIARY = 16777216;

export interface Walk {
  /** The segments that are all there, committed or not. */
  headers: Header[];
  /** The last committed end mark. */
  mark: EndMark | undefined;
  /** Where the tail of that end mark ends. */
  committed: number;
  /** Where the walk ends. */
  end: number;
  /** What follows that point: nothing, bytes that are unfinished, or the reason why the archive cannot be opened. */
  rest: 'nothing' | 'unfinished' | TenarcError;
}

/** Called for what a walk finds right. */
export interface Visitor {
  segment?(header: Header): void;
  block?(entries: SegmentEntry[], first: number): void;
  mark?(mark: EndMark, count: number): void;
}

/** Reads ahead, so that a walk over small segments takes few reads. */
class Window {
  readonly input: Input;
  private bytes: Uint8Array = new Uint8Array(0);
  private from = 0;

  constructor(input: Input) {
    this.input = input;
  }

  async read(offset: number, length: number): Promise<Uint8Array> {
    const have = this.from + this.bytes.length;
    if (offset < this.from || Math.min(offset + length, this.input.size) > have) {
      this.bytes = await this.input.readUpTo(offset, Math.max(length, AHEAD));
      this.from = offset;
    }
    return this.bytes.subarray(offset - this.from, offset - this.from + length);
  }

  /** The bytes of the record at this place, as far as they are there. */
  async record(offset: number): Promise<Uint8Array> {
    const start = await this.read(offset, MAX_START);
    const length = recordLength(start) ?? MAX_START;
    // What cannot be a whole record is not read.
    return offset + length > this.input.size ? start : this.read(offset, length);
  }
}

/** The lists of 5.6, as the writer keeps them. */
class Lists {
  count = 0;
  segments: Header[] = [];
  blocks: BlockEntry[][] = [];

  /** Whether a block of level `level` is due. */
  isFull(level: number): boolean {
    return (level === 0 ? this.segments : this.blocks[level - 1])?.length === FAN_OUT;
  }

  flush(level: number, block: BlockEntry): void {
    if (level === 0) this.segments = [];
    else this.blocks[level - 1] = [];
    (this.blocks[level] ??= []).push(block);
  }
}

function sameSegments(entries: SegmentEntry[], headers: Header[]): boolean {
  return (
    entries.length === headers.length &&
    entries.every(({ offset, name, headerLength }, i) => {
      const header = headers[i]!;
      return offset === header.offset && name === header.name && headerLength === header.length;
    })
  );
}

function sameBlocks(a: BlockEntry[], b: BlockEntry[]): boolean {
  return a.length === b.length && a.every((entry, i) => entry.offset === b[i]!.offset && entry.length === b[i]!.length);
}

/** Why a walk ends before the end of the input. */
type Stop =
  | { why: 'end' | 'wrong' | 'inside' }
  /** After an end mark whose padding or tail is not right. */
  | { why: 'tail'; isDamaged: boolean };

export async function walk(input: Input, visitor: Visitor = {}): Promise<Walk> {
  const start = await input.readUpTo(0, MAGIC.length);
  if (!equalBytes(start, MAGIC.subarray(0, start.length))) {
    fail('damaged', 'this is not a tenarc archive: its first bytes are wrong', 0);
  }
  const out: Walk = { headers: [], mark: undefined, committed: 0, end: MAGIC.length, rest: 'nothing' };
  if (start.length < MAGIC.length) return { ...out, end: 0, rest: 'unfinished' };
  const window = new Window(input);
  const stop = await walkOver(window, out, visitor);
  if (stop.why !== 'end') out.rest = await judge(window, out.end, stop);
  else if (out.committed < input.size) out.rest = 'unfinished';
  return out;
}

async function walkOver(window: Window, out: Walk, visitor: Visitor): Promise<Stop> {
  const { input } = window;
  const lists = new Lists();
  for (;;) {
    if (out.end === input.size) return { why: 'end' };
    const record = await rightRecord(window, out.end);
    if (!record) return { why: 'wrong' };
    switch (record.tag) {
      case TAG.HEADER: {
        const header = attempt(() => readHeader(record));
        if (!header) return { why: 'wrong' };
        if (header.end > input.size) return { why: 'inside' };
        out.headers.push(header);
        lists.segments.push(header);
        lists.count++;
        out.end = header.end;
        visitor.segment?.(header);
        if (!(await walkBlocks(window, lists, out, visitor))) return { why: 'wrong' };
        break;
      }
      case TAG.AUXILIARY: {
        if (out.end === MAGIC.length || !isAuxiliary(record)) return { why: 'wrong' };
        out.end += record.length;
        break;
      }
      case TAG.END: {
        const mark = attempt(() => readEndMark(record));
        if (!mark || !isRightMark(mark, lists)) return { why: 'wrong' };
        out.end += record.length;
        const stop = await checkTail(window, mark, out.end);
        if (stop) return stop;
        out.end = tailPlace(out.end) + TAIL_LENGTH;
        out.mark = mark;
        out.committed = out.end;
        visitor.mark?.(mark, lists.count);
        break;
      }
      default:
        return { why: 'wrong' };
    }
  }
}

async function rightRecord(window: Window, offset: number): Promise<RecordItem | undefined> {
  const bytes = await window.record(offset);
  return attempt(() => readRecord(bytes, offset));
}

/** What is not right ends the walk; it is judged afterwards. */
function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof TenarcError) return undefined;
    throw error;
  }
}

function isAuxiliary(record: RecordItem): boolean {
  const kind = attempt(() => openRecord(record, 3).uint('the kind of an auxiliary record'));
  return kind !== undefined && record.length <= MAX_AUXILIARY;
}

function isRightMark(mark: EndMark, lists: Lists): boolean {
  return (
    mark.count === lists.count &&
    sameSegments(mark.segments, lists.segments) &&
    mark.blocks.length === lists.blocks.length &&
    mark.blocks.every((list, i) => sameBlocks(list, lists.blocks[i]!))
  );
}

/** Walks over the blocks that a segment fills. */
async function walkBlocks(window: Window, lists: Lists, out: Walk, visitor: Visitor): Promise<boolean> {
  for (let level = 0; lists.isFull(level); level++) {
    const record = await rightRecord(window, out.end);
    const block = record && attempt(() => readBlock(record, level));
    if (!block) return false;
    const isRight = block.segments
      ? sameSegments(block.segments, lists.segments)
      : sameBlocks(block.blocks, lists.blocks[level - 1]!);
    if (!isRight) return false;
    if (block.segments) visitor.block?.(block.segments, lists.count - FAN_OUT);
    lists.flush(level, { offset: record.offset, length: record.length });
    out.end += record.length;
  }
  return true;
}

async function checkTail(window: Window, mark: EndMark, end: number): Promise<Stop | undefined> {
  const place = tailPlace(end);
  const { size } = window.input;
  const bytes = await window.read(end, place + TAIL_LENGTH - end);
  const tailBytes = bytes.subarray(place - end);
  const tail = readTail(tailBytes, place);
  const isRight = tail !== undefined && tail.markOffset === mark.offset && tail.markLength === mark.length;
  const paddingIsRight = isTailPadding(bytes.subarray(0, place - end));
  if (isRight && paddingIsRight) return undefined;
  const isThere = place + TAIL_LENGTH <= size;
  return { why: 'tail', isDamaged: isRight || (isThere && !isZero(tailBytes)) };
}

async function judge(window: Window, end: number, stop: Stop): Promise<'unfinished' | TenarcError> {
  const later = laterVersion(await window.read(end, MAX_START), end);
  if (later) return later;
  if (stop.why === 'inside') return 'unfinished';
  if (stop.why === 'tail' && stop.isDamaged) {
    return new TenarcError('damaged', 'the tail of an end mark, or the padding before it, is wrong', end);
  }
  const tail = await findTail(window.input, end);
  if (tail !== undefined) {
    return new TenarcError('damaged', `bytes that an intact tail at ${tail} has committed are not right`, end);
  }
  return 'unfinished';
}

/** An intact tail behind `from`, whose end mark is there or behind it. */
async function findTail(input: Input, from: number): Promise<number | undefined> {
  const step = 1024 * 1024;
  for (let at = from; at < input.size; at += step) {
    const bytes = await input.readUpTo(at, step + TAIL_LENGTH - 1);
    for (const found of tailStarts(bytes)) {
      const tail = readTail(bytes.subarray(found), at + found);
      if (tail && tail.markOffset >= from) return at + found;
    }
  }
  return undefined;
}

/** The error of an odd key in the last committed end mark. */
export function markError(walked: Walk): TenarcError | undefined {
  return walked.mark && oddKeyError(walked.mark.extensions, 'end mark', walked.mark.offset);
}
