// Archives: opening them at random positions (5.6), and reading their segments.
import { concat, equalBytes, hex128, readU64 } from './bytes.js';
import { Cursor, TAG, encodeHead, encodeTextItem, parseItem, type Item } from './cbor.js';
import { chunkDecoder, type Codecs } from './compress.js';
import {
  MAX_RECORD,
  TAIL_LENGTH,
  isTailPadding,
  readBlock,
  readEndMark,
  readTail,
  tailPlace,
  type BlockEntry,
  type EndMark,
  type SegmentEntry,
} from './directory.js';
import { sameShape } from './columns.js';
import { leastType, widen } from './dtype.js';
import { Document, type Entry, type Store, type TensorEntry } from './document.js';
import { MEBIBYTE } from './payload.js';
import { TenarcError, fail } from './errors.js';
import {
  MAGIC,
  countRows,
  notesOf,
  oddKeyError,
  readHashes,
  readHeader,
  readRecord,
  segmentDigest,
  type BufferInfo,
  type Header,
} from './record.js';
import type { Input } from './source.js';
import { Tensor } from './tensor.js';
import type { ValueOptions } from './value.js';
import { xxh3, xxh3128 } from './xxh3.js';

export interface OpenOptions extends ValueOptions {
  /** How many bytes the first read takes from the end: 65,536. */
  suffix?: number;
  /** Decoders for compressed buffers, by the name of the codec. `lz4` is built in. */
  codecs?: Codecs;
  /** Whether buffers are compared with their hashes: true. */
  verify?: boolean;
  /**
   * How many bytes a call may take: for decompressed buffers and for rows of dicts each 64 MiB and 1,024 times the length of the
   * segment, and for other rows of columns 64 MiB and 256 times that length, if this is not given.
   */
  memory?: number;
  /** Opens a torn archive too, with the segments that are all there. */
  torn?: boolean;
}

/** How an archive was found: `whole`, or with bytes of an unfinished append behind its last committed end mark, or `torn`. */
export type ArchiveState = 'whole' | 'unfinished' | 'torn';

/** Something that is read when it is asked for, and then kept. It is read again after an error, which can be one of the source. */
class Once<T> {
  private readonly read: () => Promise<T>;
  private result: Promise<T> | undefined;

  constructor(read: () => Promise<T>) {
    this.read = read;
  }

  get(): Promise<T> {
    return (this.result ??= this.read().catch((error) => {
      this.result = undefined;
      throw error;
    }));
  }
}

export class Archive {
  readonly state: ArchiveState;
  /** The number of segments. */
  readonly length: number;
  /** @internal */
  readonly input: Input;
  /** @internal */
  readonly options: OpenOptions;
  private readonly mark: EndMark | undefined;
  private readonly walked: SegmentEntry[] | undefined;
  private readonly listed = new Once(async () =>
    (await this.readDirectory()).map((entry, i) => new Segment(this, entry, i)),
  );
  private readonly magic = new Once(async () => checkMagic(await this.input.readUpTo(0, MAGIC.length)));

  /** @internal */
  constructor(input: Input, options: OpenOptions, state: ArchiveState, mark: EndMark | undefined, walked?: SegmentEntry[]) {
    this.input = input;
    this.options = options;
    this.state = state;
    this.mark = mark;
    this.walked = walked;
    this.length = mark ? mark.count : walked!.length;
  }

  /** All segments, in order. The directory is read once. */
  segments(): Promise<Segment[]> {
    return this.listed.get();
  }

  /**
   * The segment with this name, of which the last one counts, or with this number. Without an argument, the only segment.
   */
  async segment(which?: string | number): Promise<Segment> {
    const segments = await this.segments();
    let found: Segment | undefined;
    if (which === undefined) found = segments.length === 1 ? segments[0] : undefined;
    else if (typeof which === 'number') found = segments[which];
    else found = segments.filter((segment) => segment.name === which).pop();
    if (found) return found;
    const what = which === undefined ? `one segment, but ${segments.length}` : `segment ${JSON.stringify(which)}`;
    throw new TenarcError('missing', `there is no ${what}`, undefined, which === undefined ? undefined : String(which));
  }

  /** The table of this name: the rows of all segments with it (7.3). */
  async table(name: string): Promise<Table> {
    const segments = (await this.segments()).filter((segment) => segment.name === name);
    if (segments.length === 0)
      throw new TenarcError('missing', `there is no segment ${JSON.stringify(name)}`, undefined, name);
    return new Table(name, segments);
  }

  /** The digest of the archive (5.10) as 32 hexadecimal digits, or null if a segment has none. */
  async digest(): Promise<string | null> {
    const segments = await this.segments();
    const pieces = [encodeHead(4, segments.length)];
    for (const segment of segments) {
      const digest = await segment.computeDigest();
      if (digest === null) return null;
      const name = segment.name === null ? Uint8Array.of(0xf6) : encodeTextItem(segment.name);
      const bytes = digest.match(/../g)!.map((byte) => parseInt(byte, 16));
      pieces.push(Uint8Array.of(0x82), name, Uint8Array.of(0x50, ...bytes));
    }
    return hex128(xxh3128(concat(pieces)));
  }

  /** @internal Checks the first bytes, once. */
  async checkMagic(): Promise<void> {
    return this.magic.get();
  }

  private async readDirectory(): Promise<SegmentEntry[]> {
    if (this.walked) return this.walked;
    const { segments, blocks } = this.mark!;
    const out: SegmentEntry[] = [];
    const lastOffsets: number[] = [];
    for (let level = blocks.length; level >= 1; level--) {
      for (const entry of blocks[level - 1]!) await this.readBlocks(entry, level - 1, out, lastOffsets);
    }
    for (const entry of segments) addEntry(out, entry);
    return out;
  }

  private async readBlocks(entry: BlockEntry, level: number, out: SegmentEntry[], last: number[]): Promise<void> {
    if (last[level] !== undefined && entry.offset <= last[level]!) {
      fail('damaged', 'the blocks of the directory are not in order', entry.offset);
    }
    last[level] = entry.offset;
    if (entry.length > MAX_RECORD) fail('damaged', `a block of ${entry.length} bytes`, entry.offset);
    const bytes = await this.input.readUpTo(entry.offset, entry.length);
    const record = readRecord(bytes, entry.offset);
    if (record.length !== entry.length)
      fail('damaged', `a block has ${record.length} bytes instead of ${entry.length}`, entry.offset);
    const block = readBlock(record, level);
    const odd = oddKeyError(block.extensions, 'block of the directory', entry.offset);
    if (odd) throw odd;
    if (block.segments) for (const segment of block.segments) addEntry(out, segment);
    else for (const inner of block.blocks) await this.readBlocks(inner, level - 1, out, last);
  }
}

function addEntry(out: SegmentEntry[], entry: SegmentEntry): void {
  const last = out[out.length - 1];
  if (last && entry.offset <= last.offset) fail('damaged', 'the segments in the directory are not in order', entry.offset);
  out.push(entry);
}

export function checkMagic(bytes: Uint8Array): void {
  if (!equalBytes(bytes.subarray(0, MAGIC.length), MAGIC))
    fail('damaged', 'this is not a tenarc archive: its first bytes are wrong', 0);
}

/** The end mark that the tail at the end leads to, if both are right. */
async function markByTail(input: Input): Promise<EndMark | undefined> {
  const { size } = input;
  const place = size - TAIL_LENGTH;
  if (place < MAGIC.length) return undefined;
  const tail = readTail(await input.read(place, TAIL_LENGTH), place);
  if (!tail || tail.markOffset + tail.markLength > place || tail.markOffset < MAGIC.length) return undefined;
  if (tailPlace(tail.markOffset + tail.markLength) !== place) return undefined;
  const bytes = await input.read(tail.markOffset, place - tail.markOffset);
  const record = readRecord(bytes, tail.markOffset);
  if (record.length !== tail.markLength) return undefined;
  if (!isTailPadding(bytes.subarray(record.length))) return undefined;
  const mark = readEndMark(record);
  const odd = oddKeyError(mark.extensions, 'end mark', mark.offset);
  if (odd) throw odd;
  return mark;
}

/** The same, but undefined if something is not right: a walk says what it is. */
export async function committedMark(input: Input): Promise<EndMark | undefined> {
  try {
    return await markByTail(input);
  } catch (error) {
    if (error instanceof TenarcError && error.kind === 'damaged') return undefined;
    throw error;
  }
}

const MERGED_GAP = 65536;
const MERGED_LENGTH = 16 * MEBIBYTE;

/** How a buffer is stored. */
export interface BufferPlace {
  offset: number;
  stored: number;
  /** Its length when it is decompressed. */
  length: number;
  codec: string | null;
  /** The length of the pieces that are verified and decompressed as a whole. */
  chunk: number;
}

/** One value in an archive. */
export class Segment {
  readonly archive: Archive;
  readonly index: number;
  readonly name: string | null;
  /** Where it starts in the archive. */
  readonly offset: number;
  /** The length of its record with its hash. */
  readonly headerLength: number;
  /** The number of elements if it is a sequence, or null. */
  readonly rows: number | bigint | null;
  /** The digest in the directory as 32 hexadecimal digits; null if only `computeDigest` knows it, or if there is none. */
  readonly digest: string | null;
  private readonly listed: SegmentEntry;
  private readonly headerRead = new Once(() => this.readHeader());
  private readonly documentRead = new Once(() => this.readDocument());
  private readonly hashesRead = new Once(() => this.readHashes());

  /** @internal */
  constructor(archive: Archive, entry: SegmentEntry, index: number) {
    this.archive = archive;
    this.listed = entry;
    this.index = index;
    this.name = entry.name;
    this.offset = entry.offset;
    this.headerLength = entry.headerLength;
    this.rows = entry.rows;
    this.digest = entry.digest && hex128((readU64(entry.digest) << 64n) | readU64(entry.digest, 8));
  }

  /** @internal */
  header(): Promise<Header> {
    return this.headerRead.get();
  }

  private async readHeader(): Promise<Header> {
    const { listed: entry, archive } = this;
    // The magic is read together with the first header.
    const atStart = entry.offset === MAGIC.length;
    const from = atStart ? 0 : entry.offset;
    if (entry.offset + entry.headerLength > archive.input.size) {
      fail('damaged', `a header of ${entry.headerLength} bytes is longer than the input`, entry.offset);
    }
    const bytes = await archive.input.read(from, entry.offset + entry.headerLength - from);
    if (atStart) checkMagic(bytes);
    else await archive.checkMagic();
    const record = readRecord(bytes.subarray(entry.offset - from), entry.offset);
    if (record.tag !== TAG.HEADER) fail('damaged', 'the header of a segment was expected', entry.offset);
    const header = readHeader(record);
    if (record.length !== entry.headerLength || header.name !== entry.name) {
      fail('damaged', 'the directory and the header of a segment differ', entry.offset);
    }
    if (header.end > archive.input.size) fail('damaged', 'a segment is cut off', entry.offset);
    return header;
  }

  private document(): Promise<Document> {
    return this.documentRead.get();
  }

  private async readDocument(): Promise<Document> {
    const header = await this.header();
    const odd = oddKeyError(header.extensions, 'segment', header.offset);
    if (odd) throw odd;
    const item = readMetadata(header);
    const rows = countRows(header);
    if (this.archive.state !== 'torn' && rows != this.rows) {
      fail('damaged', `the directory says ${this.rows} rows, but the value has ${rows}`, header.offset);
    }
    return new Document(item, new SegmentStore(this, header), this.archive.options);
  }

  /** @internal The verified hashes of the chunks. */
  hashes(): Promise<Uint8Array> {
    return this.hashesRead.get();
  }

  private async readHashes(): Promise<Uint8Array> {
    const header = await this.header();
    return readHashes(header, await this.archive.input.read(header.hashesOffset, header.hashesLength + 9));
  }

  /** The whole value. */
  value(): Promise<unknown> {
    return this.get('');
  }

  /** The value at a path (annex A): `layers.3.weight`, or a JSON Pointer, `/layers/3/weight`. */
  get(path: string): Promise<unknown> {
    return this.run(path, (document) => document.get(path));
  }

  /** The tensor at a path: a tensor, a sequence of numbers, or a column. */
  tensor(path: string): Promise<Tensor> {
    return this.run(path, (document) => document.tensor(path));
  }

  /** Rows `start` to `end` (exclusive) of a tensor along its first axis. Only their chunks are read. */
  slice(path: string, start: number, end: number): Promise<Tensor> {
    return this.run(path, (document) => document.slice(path, start, end));
  }

  /** The tensors in the value, by path. Their bytes are not read. */
  list(): Promise<TensorEntry[]> {
    return this.run(undefined, (document) => document.list());
  }

  /** What a path leads to. The bytes of tensors are not read. */
  entry(path = ''): Promise<Entry> {
    return this.run(path, (document) => document.entry(path));
  }

  /**
   * What is directly below a JSON Pointer: keys of a map, elements of an array, fields of columns. `start` and `end` (exclusive)
   * choose some of them. The bytes of tensors are not read.
   */
  entries(path = '', start = 0, end = Infinity): Promise<Entry[]> {
    return this.run(path, (document) => document.entries(path, start, end));
  }

  /** Elements `start` to `end` (exclusive) of a sequence, such as rows of columns. Only the groups that have them are read. */
  elements(path: string, start: number, end: number): Promise<unknown[]> {
    return this.run(path, (document) => document.elementsBetween(path, start, end));
  }

  /** Where the bytes of a buffer are in the archive, how many there are, how they are compressed, and how long its chunks are. */
  async bufferPlace(index: number): Promise<BufferPlace> {
    const { buffers, chunk } = await this.header();
    const buffer = buffers[index];
    if (!buffer) throw new TenarcError('missing', `there is no buffer ${index}`);
    const { offset, stored, length, codec } = buffer;
    return { offset, stored, length: Number(length), codec: codec?.name ?? null, chunk };
  }

  /** @internal Runs a function whose errors about data are those of a damaged archive. */
  async run<T>(path: string | undefined, work: (document: Document) => Promise<T>): Promise<T> {
    try {
      return await work(await this.document());
    } catch (error) {
      if (!(error instanceof TenarcError)) throw error;
      const named = error.kind === 'data' ? await this.asDamage(error) : error;
      named.path ??= path;
      throw named;
    }
  }

  /** In an archive, data that breaks the format is damage. Its position was counted from the start of the metadata. */
  private async asDamage(error: TenarcError): Promise<TenarcError> {
    const { metadataOffset } = await this.header();
    return new TenarcError(
      'damaged',
      error.reason,
      error.offset === undefined ? undefined : metadataOffset + error.offset,
      error.path,
    );
  }

  /** Who wrote the value, a title, the name of a schema: key 0 of `ext`. */
  async notes(): Promise<Map<string, string>> {
    const header = await this.header();
    return notesOf(header.extensions, header.offset);
  }

  /** The digest (5.10) as 32 hexadecimal digits, or null if the segment has none. */
  async computeDigest(): Promise<string | null> {
    const header = await this.header();
    if (header.buffers.length === 0) return hex128(segmentDigest(header, new Uint8Array(0))!);
    if (header.check === null) return null;
    const bytes = await this.archive.input.read(header.hashesOffset, header.hashesLength + 9);
    readHashes(header, bytes);
    return hex128(segmentDigest(header, bytes.subarray(0, header.hashesLength))!);
  }

  /** The bytes of a buffer, or a part of them. */
  async buffer(index: number, start = 0, end?: number): Promise<Uint8Array> {
    const header = await this.header();
    const buffer = header.buffers[index];
    if (!buffer) throw new TenarcError('missing', `there is no buffer ${index}`);
    return new SegmentStore(this, header).range(index, start, end ?? Number(buffer.length));
  }
}

/** Parses the metadata of a segment (5.3). */
export function readMetadata(header: Header): Item {
  const cursor = new Cursor(header.metadata, 0, header.metadataOffset, 'damaged');
  const item = parseItem(cursor, { depth: 128, metadata: true });
  if (cursor.left > 0) cursor.fail('bytes follow the metadata', cursor.at);
  return item;
}

/** The buffers of a segment, verified and decompressed as they are read. */
class SegmentStore implements Store {
  readonly lengths: readonly (number | bigint)[];
  readonly size: number;
  private readonly segment: Segment;
  private readonly header: Header;
  private readonly memory: number;

  constructor(segment: Segment, header: Header) {
    this.segment = segment;
    this.header = header;
    this.lengths = header.buffers.map((buffer) => buffer.length);
    this.size = header.end - header.offset;
    this.memory = segment.archive.options.memory ?? 64 * MEBIBYTE + 1024 * this.size;
  }

  private get input(): Input {
    return this.segment.archive.input;
  }

  async range(index: number, start: number, end: number): Promise<Uint8Array> {
    const buffer = this.header.buffers[index]!;
    if (start < 0 || start > end || end > buffer.length)
      fail('usage', `there are no bytes ${start} to ${end} in buffer ${index}`);
    if (start === end) return new Uint8Array(0);
    const { chunk } = this.header;
    const first = Math.floor(start / chunk);
    const last = Math.ceil(end / chunk);
    const verify = this.segment.archive.options.verify !== false;
    const from = verify || buffer.codec ? storedOffset(this.header, buffer, first) : buffer.offset + start;
    const to = verify || buffer.codec ? storedOffset(this.header, buffer, last) : buffer.offset + end;
    this.checkReadable(index, buffer);
    if (buffer.codec) this.checkMemory((last - first) * chunk);
    const bytes = await this.readStored(from, to);
    const chunks = await this.decode(buffer, bytes, first, last);
    const skipped = verify || buffer.codec ? first * chunk : start;
    return chunks.subarray(start - skipped, end - skipped);
  }

  private checkMemory(bytes: number): void {
    if (bytes > this.memory)
      fail('limit', `compressed buffers of ${bytes} bytes are more than the limit of ${this.memory}`, this.header.offset);
  }

  /** What must be known before a buffer is read. */
  private checkReadable(index: number, buffer: BufferInfo): void {
    const { check } = this.header;
    if (buffer.elsewhere) {
      fail(
        'unsupported',
        `buffer ${index} is elsewhere, with the ${buffer.elsewhere.hash} ${hexOf(buffer.elsewhere.digest)}`,
      );
    }
    const { options } = this.segment.archive;
    if (options.verify !== false && check && check.name !== 'xxh3-64') {
      fail('unsupported', `the check ${JSON.stringify(check.name)} is not known`, this.header.offset);
    }
    if (buffer.codec) chunkDecoder(buffer.codec.name, buffer.codec.parameters, options.codecs ?? {});
  }

  async whole(indexes: Iterable<number>): Promise<Map<number, Uint8Array>> {
    const { buffers } = this.header;
    const out = new Map<number, Uint8Array>();
    const wanted: number[] = [];
    let decompressed = 0;
    for (const index of indexes) {
      const buffer = buffers[index];
      if (!buffer) continue; // an error of the reference, which says more
      this.checkReadable(index, buffer);
      if (buffer.codec) decompressed += Number(buffer.length);
      wanted.push(index);
    }
    this.checkMemory(decompressed);
    wanted.sort((a, b) => a - b);
    // Buffers that are near each other are read together.
    const runs: { start: number; end: number; indexes: number[] }[] = [];
    for (const index of wanted) {
      const { offset, stored } = buffers[index]!;
      const run = runs[runs.length - 1];
      if (run && offset - run.end <= MERGED_GAP && offset + stored - run.start <= MERGED_LENGTH) {
        run.end = offset + stored;
        run.indexes.push(index);
      } else {
        runs.push({ start: offset, end: offset + stored, indexes: [index] });
      }
    }
    const readRun = async (run: (typeof runs)[number]) => {
      const bytes = await this.readStored(run.start, run.end);
      for (const index of run.indexes) {
        const buffer = buffers[index]!;
        const at = buffer.offset - run.start;
        out.set(index, await this.decode(buffer, bytes.subarray(at, at + buffer.stored), 0, buffer.chunks));
      }
    };
    await Promise.all(runs.map(readRun));
    return out;
  }

  /** Reads stored bytes, and side by side the hashes, if they are needed and were not read yet. */
  private async readStored(start: number, end: number): Promise<Uint8Array> {
    const needsHashes = this.segment.archive.options.verify !== false && this.header.check !== null;
    const [bytes] = await Promise.all([
      this.input.read(start, end - start),
      needsHashes ? this.segment.hashes() : undefined,
    ]);
    return bytes;
  }

  /** Verifies and decompresses chunks `first` to `last` of a buffer, whose stored bytes are given. */
  private async decode(buffer: BufferInfo, bytes: Uint8Array, first: number, last: number): Promise<Uint8Array> {
    const { header } = this;
    const { codecs, verify } = this.segment.archive.options;
    if (verify !== false && header.check) {
      verifyChunks(header, buffer, bytes, first, last, await this.segment.hashes());
    }
    if (!buffer.codec) return bytes;
    const { name, parameters, stored } = buffer.codec;
    const decoder = chunkDecoder(name, parameters, codecs ?? {});
    const pieces: Uint8Array[] = [];
    let at = 0;
    for (let i = first; i < last; i++) {
      const piece = bytes.subarray(at, (at += stored[i]!));
      const length = chunkLength(header, buffer, i);
      pieces.push(piece.length === length ? piece : decoder(piece, length));
    }
    return pieces.length === 1 ? pieces[0]! : concat(pieces);
  }
}

function hexOf(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function chunkLength(header: Header, buffer: BufferInfo, i: number): number {
  return Math.min(header.chunk, Number(buffer.length) - i * header.chunk);
}

function storedOffset(header: Header, buffer: BufferInfo, chunk: number): number {
  if (!buffer.codec) return buffer.offset + Math.min(chunk * header.chunk, buffer.stored);
  let at = buffer.offset;
  for (let i = 0; i < chunk; i++) at += buffer.codec.stored[i]!;
  return at;
}

/** Compares chunks `first` to `last` of a buffer, whose stored bytes are given, with their hashes. */
export function verifyChunks(
  header: Header,
  buffer: BufferInfo,
  bytes: Uint8Array,
  first: number,
  last: number,
  hashes: Uint8Array,
): void {
  let at = 0;
  for (let i = first; i < last; i++) {
    const length = buffer.codec ? buffer.codec.stored[i]! : chunkLength(header, buffer, i);
    const hash = xxh3(bytes.subarray(at, at + length));
    if (hash !== readU64(hashes, 8 * (buffer.firstChunk + i))) {
      fail('damaged', `the hash of chunk ${i} of a buffer is wrong`, storedOffset(header, buffer, first) + at);
    }
    at += length;
  }
}

/** The values that were saved under one name, as one sequence of rows (7.3). */
export class Table {
  readonly name: string;
  readonly segments: readonly Segment[];

  /** @internal */
  constructor(name: string, segments: Segment[]) {
    this.name = name;
    this.segments = segments;
  }

  /** All rows. */
  async rows(): Promise<unknown[]> {
    const out: unknown[] = [];
    for (const segment of this.segments) {
      const rows = await segment.run(undefined, (document) => document.rows());
      if (!rows)
        return fail('usage', `segment ${segment.index} of the table ${JSON.stringify(this.name)} is not a sequence`);
      for (const row of rows) out.push(row);
    }
    return out;
  }

  /** One row, by its number in the table. */
  async row(index: number): Promise<unknown> {
    let before = 0;
    for (const segment of this.segments) {
      const rows = Number(segment.rows ?? (await segment.run(undefined, (document) => document.rows()))?.length ?? 0);
      if (index >= before && index < before + rows) return segment.get(String(index - before));
      before += rows;
    }
    throw new TenarcError('missing', `there is no row ${index} in the table ${JSON.stringify(this.name)}`);
  }

  /**
   * The values of a field in all rows: a tensor if the field is stored as columns of numbers, bools or tensors of one shape, and
   * otherwise an array with null for rows without a value.
   */
  async column(path: string): Promise<Tensor | unknown[]> {
    const parts = [];
    for (const segment of this.segments) parts.push(await segment.run(path, (document) => document.column(path)));
    if (!parts.some((part) => part.found)) {
      throw new TenarcError('missing', `the path ${JSON.stringify(path)} leads to nothing`, undefined, path);
    }
    // Segments without rows say nothing about the type.
    const withRows = parts.filter((part) => part.rows > 0);
    const filled = withRows.flatMap((part) => (part.readable ? [part.readable] : []));
    const dtype = leastType(filled.map((part) => part.dtype));
    const shape = filled[0]?.shape.slice(1);
    if (
      filled.length === withRows.length &&
      dtype !== undefined &&
      filled.every((part) => sameShape(part.shape.slice(1), shape!))
    ) {
      const pieces = [];
      for (const part of filled) pieces.push(widen(await part.all(), part.dtype, dtype));
      const rows = filled.reduce((sum, part) => sum + part.shape[0]!, 0);
      return new Tensor(dtype, [rows, ...shape!], 'C', concat(pieces));
    }
    const out: unknown[] = [];
    for (const part of parts) for (const value of await part.values()) out.push(value);
    return out;
  }
}
