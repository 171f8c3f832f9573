// The directory (5.6): lists of segments and of blocks, end marks and tails.
import { equalBytes, readU64 } from './bytes.js';
import { TAG, type Cursor } from './cbor.js';
import { fail } from './errors.js';
import { MAGIC, openRecord, padding, readExtensions, readName, type Extension, type RecordItem } from './record.js';
import { xxh3 } from './xxh3.js';

export const FAN_OUT = 64;
export const TAIL_LENGTH = 42;
const TAIL_START = Uint8Array.of(0x58, 0x28, 0x54, 0x41, 0x52, 0x43, 0x54, 0x41, 0x49, 0x4c);
export const MAX_RECORD = 262144;
const LEAST_SEGMENT = 30;

export interface SegmentEntry {
  offset: number;
  name: string | null;
  headerLength: number;
  rows: number | bigint | null;
  /** Only blocks have it; it is computed for others. */
  digest: Uint8Array | null;
}

export interface BlockEntry {
  offset: number;
  length: number;
}

export interface EndMark {
  offset: number;
  length: number;
  count: number;
  segments: SegmentEntry[];
  /** The blocks of level 1 and up. */
  blocks: BlockEntry[][];
  extensions: Extension[];
}

function readSegmentList(cursor: Cursor, limit: number, withDigest: boolean): SegmentEntry[] {
  cursor.arrayOf(2, 'a list of segments');
  const names: string[] = [];
  const nameCount = cursor.array('the names');
  for (let i = 0; i < nameCount; i++) names.push(readName(cursor));
  if (new Set(names).size !== names.length) cursor.fail('a name is in the list twice');
  const count = cursor.array('the entries');
  const entries: SegmentEntry[] = [];
  let used = 0;
  let last = MAGIC.length - 1;
  for (let i = 0; i < count; i++) {
    cursor.arrayOf(withDigest ? 5 : 4, 'an entry of a segment');
    const offset = cursor.small('the offset of a segment');
    if (offset <= last || offset >= limit) cursor.fail(`segments are not in order: offset ${offset}`);
    last = offset;
    let name: string | null = null;
    if (!cursor.isNull()) {
      const index = cursor.small('the position of a name');
      if (index > used || index >= names.length) cursor.fail('names are not in the order of their first entries');
      if (index === used) used++;
      name = names[index]!;
    }
    const headerLength = cursor.small('the length of a header');
    const rows = cursor.isNull() ? null : cursor.uint('the number of rows');
    let digest: Uint8Array | null = null;
    if (withDigest && !cursor.isNull()) {
      digest = cursor.byteString('a digest');
      if (digest.length !== 16) cursor.fail(`a digest of ${digest.length} bytes`);
    }
    entries.push({ offset, name, headerLength, rows, digest });
  }
  if (used !== names.length) cursor.fail('a name has no entry');
  return entries;
}

function readBlockList(cursor: Cursor, limit: number): BlockEntry[] {
  const count = cursor.array('a list of blocks');
  const entries: BlockEntry[] = [];
  let last = 0;
  for (let i = 0; i < count; i++) {
    cursor.arrayOf(2, 'an entry of a block');
    const offset = cursor.small('the offset of a block');
    const length = cursor.small('the length of a block');
    if (offset <= last || offset >= limit) cursor.fail(`blocks are not in order: offset ${offset}`);
    last = offset;
    entries.push({ offset, length });
  }
  return entries;
}

function checkRoom(record: RecordItem, segments: number): void {
  if (record.offset < MAGIC.length + LEAST_SEGMENT * segments) {
    fail('damaged', `there is no room for ${segments} segments`, record.offset);
  }
  if (record.length > MAX_RECORD) fail('damaged', `a record of the directory has ${record.length} bytes`, record.offset);
}

function checkEnd(cursor: Cursor): void {
  if (cursor.left > 0) cursor.fail('bytes follow the content of a record', cursor.at);
}

export function readEndMark(record: RecordItem): EndMark {
  if (record.tag !== TAG.END) fail('damaged', 'an end mark was expected', record.offset);
  const cursor = openRecord(record, 5);
  const count = cursor.small('the number of segments');
  checkRoom(record, count);
  const segments = readSegmentList(cursor, record.offset, false);
  const levels = cursor.array('the levels');
  const blocks: BlockEntry[][] = [];
  let sum = segments.length;
  for (let level = 1; level <= levels; level++) {
    const list = readBlockList(cursor, record.offset);
    if (list.length >= FAN_OUT) cursor.fail(`a list of ${list.length} blocks`);
    blocks.push(list);
    sum += list.length * FAN_OUT ** level;
  }
  if (segments.length >= FAN_OUT) cursor.fail(`a list of ${segments.length} segments`);
  if (levels > 0 && blocks[levels - 1]!.length === 0) cursor.fail('the highest level is empty');
  if (sum !== count) cursor.fail(`${count} segments, but the lists lead to ${sum}`);
  const extensions = readExtensions(cursor);
  checkEnd(cursor);
  return { offset: record.offset, length: record.length, count, segments, blocks, extensions };
}

export type Block = { extensions: Extension[] } & (
  { level: 0; segments: SegmentEntry[] } | { level: number; blocks: BlockEntry[]; segments?: undefined }
);

export function readBlock(record: RecordItem, level: number): Block {
  if (record.tag !== TAG.DIRECTORY) fail('damaged', 'a block of the directory was expected', record.offset);
  checkRoom(record, FAN_OUT ** (level + 1));
  const cursor = openRecord(record, 4);
  if (cursor.uint('the level of a block') !== level) cursor.fail(`a block of level ${level} was expected`);
  if (level === 0) {
    const segments = readSegmentList(cursor, record.offset, true);
    if (segments.length !== FAN_OUT) cursor.fail(`a block of ${segments.length} segments`);
    const extensions = readExtensions(cursor);
    checkEnd(cursor);
    return { level: 0, segments, extensions };
  }
  const blocks = readBlockList(cursor, record.offset);
  if (blocks.length !== FAN_OUT) cursor.fail(`a block of ${blocks.length} blocks`);
  const extensions = readExtensions(cursor);
  checkEnd(cursor);
  return { level, blocks, extensions };
}

export interface Tail {
  markOffset: number;
  markLength: number;
}

/** The tail at this place, if it is intact: 42 bytes with the right hash for it. */
export function readTail(bytes: Uint8Array, offset: number): Tail | undefined {
  if (bytes.length < TAIL_LENGTH || !TAIL_START.every((byte, i) => bytes[i] === byte)) return undefined;
  if (readU64(bytes, 26) !== BigInt(offset)) return undefined;
  if (xxh3(bytes.subarray(0, 34), BigInt(offset)) !== readU64(bytes, 34)) return undefined;
  return { markOffset: Number(readU64(bytes, 10)), markLength: Number(readU64(bytes, 18)) };
}

/** Where the tail is after an end mark that ends at `end`. */
export function tailPlace(end: number): number {
  return end % 512 <= 512 - TAIL_LENGTH ? end : Math.ceil(end / 512) * 512;
}

export function isTailPadding(bytes: Uint8Array): boolean {
  return equalBytes(bytes, padding(bytes.length));
}

/** The positions in `bytes` at which a tail may start. */
export function* tailStarts(bytes: Uint8Array): Generator<number> {
  for (let at = bytes.indexOf(0x58); at >= 0 && at + TAIL_LENGTH <= bytes.length; at = bytes.indexOf(0x58, at + 1)) {
    let i = 1;
    while (i < TAIL_START.length && bytes[at + i] === TAIL_START[i]) i++;
    if (i === TAIL_START.length) yield at;
  }
}
