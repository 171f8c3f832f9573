// Records (5.1), the headers of segments (5.2) and extensions (5.13).
import { concat, encodeText, readU64 } from './bytes.js';
import { Cursor, TAG, encodeHead, headLength, parseItem, type Item } from './cbor.js';
import { checkParameters } from './compress.js';
import { TenarcError, fail } from './errors.js';
import { xxh3, xxh3128 } from './xxh3.js';

export const MAGIC = Uint8Array.of(0xd9, 0xd9, 0xf8, 0xda, 0x54, 0x41, 0x52, 0x43, 0x43, 0x42, 0x4f, 0x52);
export const VERSION = 1;
/** `d8 18`, a head, a tag, the head of an array and the version take at most this many bytes. */
export const MAX_START = 2 + 9 + 5 + 9 + 9;

const RECORD_NAMES = new Map<number, string>([
  [TAG.HEADER, 'header of a segment'],
  [TAG.DIRECTORY, 'block of the directory'],
  [TAG.END, 'end mark'],
  [TAG.AUXILIARY, 'auxiliary record'],
]);

export interface RecordItem {
  tag: number;
  offset: number;
  /** With its hash. */
  length: number;
  content: Uint8Array;
  /** Where the content starts in the archive. */
  contentOffset: number;
  hash: bigint;
}

/** The error for a record of a later version at this place, whatever else is wrong with it; undefined if there is none. */
export function laterVersion(bytes: Uint8Array, offset: number): TenarcError | undefined {
  if (bytes[0] !== 0xd8 || bytes[1] !== TAG.ENCODED) return undefined;
  try {
    const cursor = new Cursor(bytes, 2);
    if (cursor.next() !== 2 || cursor.info === 31) return undefined;
    const end = cursor.at + Number(cursor.argument);
    if (cursor.next() !== 6 || cursor.info !== 26) return undefined;
    const name = RECORD_NAMES.get(Number(cursor.argument));
    if (name === undefined || cursor.next() !== 4) return undefined;
    if (cursor.next() !== 0 || cursor.argument <= VERSION || cursor.at > end) return undefined;
    return new TenarcError('unsupported', `a ${name} has version ${cursor.argument}, but only version 1 is known`, offset);
  } catch {
    return undefined;
  }
}

/** The length of the record that starts with these bytes, if they are the start of one, as its byte string says. */
export function recordLength(bytes: Uint8Array): number | undefined {
  if (bytes[0] !== 0xd8 || bytes[1] !== TAG.ENCODED) return undefined;
  const first = bytes[2]!;
  if (first < 0x40 || first > 0x5b) return undefined;
  try {
    const cursor = new Cursor(bytes, 2);
    cursor.head();
    return cursor.shortest && typeof cursor.argument === 'number' ? cursor.at + cursor.argument + 9 : undefined;
  } catch {
    return undefined;
  }
}

/** Reads and verifies the record that these bytes start with. The seed of its hash is `seed`, the offset in an archive. */
export function readRecord(bytes: Uint8Array, offset: number, seed = offset): RecordItem {
  const later = laterVersion(bytes, offset);
  if (later) throw later;
  const length = recordLength(bytes);
  if (length === undefined) return fail('damaged', 'there is no record', offset);
  if (length > bytes.length) fail('damaged', `a record of ${length} bytes is cut off`, offset);
  const end = length - 9;
  if (bytes[end] !== 0x48) fail('damaged', 'a record has no hash', offset);
  const hash = readU64(bytes, end + 1);
  if (xxh3(bytes.subarray(0, end), BigInt(seed)) !== hash) fail('damaged', 'the hash of a record is wrong', offset);
  const start = 2 + headLength(end - 2 - headLengthOf(bytes));
  const content = bytes.subarray(start, end);
  const cursor = new Cursor(content, 0, offset + start, 'damaged');
  cursor.head();
  const tag = Number(cursor.argument);
  if (cursor.major !== 6 || !cursor.shortest || !RECORD_NAMES.has(tag))
    fail('damaged', 'a record has an unknown tag', offset);
  return { tag, offset, length, content, contentOffset: offset + start, hash };
}

function headLengthOf(bytes: Uint8Array): number {
  const info = bytes[2]! & 31;
  return info < 24 ? 1 : 1 + (1 << (info - 24));
}

/** A cursor behind the version of a record, whose array must have this length. */
export function openRecord(record: RecordItem, length: number): Cursor {
  const cursor = new Cursor(record.content, 5, record.contentOffset, 'damaged');
  cursor.arrayOf(length, RECORD_NAMES.get(record.tag)!);
  if (cursor.uint('a version') !== VERSION) cursor.fail('a record does not have version 1');
  return cursor;
}

export interface Extension {
  key: number | bigint;
  value: Item;
  /** The key and the value, encoded. */
  bytes: Uint8Array;
}

const MAX_EXTENSIONS = 65536;

export function readExtensions(cursor: Cursor): Extension[] {
  const start = cursor.at;
  cursor.head();
  const count = cursor.argument;
  if (cursor.major !== 5 || !cursor.shortest || count > cursor.left) cursor.fail('ext must be a map');
  const out: Extension[] = [];
  for (let i = 0; i < Number(count); i++) {
    const from = cursor.at;
    const key = cursor.uint('a key of ext');
    const last = out[i - 1];
    if (last && key <= last.key) cursor.fail('the keys of ext do not ascend');
    const value = parseItem(cursor, { depth: 128, shortest: true }, 2);
    out.push({ key, value, bytes: cursor.bytes.subarray(from, cursor.at) });
  }
  if (cursor.at - start > MAX_EXTENSIONS) cursor.fail(`ext has more than ${MAX_EXTENSIONS} bytes`, start);
  return out;
}

const isOdd = (extension: Extension): boolean => BigInt(extension.key) % 2n === 1n;

/** An odd key of `ext` must not be ignored, and none is known yet. */
export function oddKeyError(extensions: Extension[], where: string, offset: number): TenarcError | undefined {
  const odd = extensions.find(isOdd);
  return odd && new TenarcError('unsupported', `the ${where} has the unknown key ${odd.key} in ext`, offset);
}

/** The notes of a segment: key 0 of `ext`. */
export function notesOf(extensions: Extension[], offset: number): Map<string, string> {
  const notes = new Map<string, string>();
  const found = extensions.find((extension) => extension.key === 0);
  if (!found) return notes;
  const map = found.value;
  if (map.type !== 'map') return fail('damaged', 'the notes of a segment are not a map', offset);
  let last: Uint8Array | undefined;
  for (let i = 0; i < map.items.length; i += 2) {
    const [key, value] = [map.items[i]!, map.items[i + 1]!];
    if (key.type !== 'text' || value.type !== 'text') return fail('damaged', 'the notes of a segment are not texts', offset);
    const bytes = encodeText(key.value);
    if (last && compareBytes(last, bytes) >= 0) fail('damaged', 'the keys of notes do not ascend', offset);
    last = bytes;
    notes.set(key.value, value.value);
  }
  return notes;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < Math.min(a.length, b.length); i++) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/** A buffer as `lengths` describes it, with its place. */
export interface BufferInfo {
  /** The length in bytes, decompressed. Numbers above 2^53 - 1 are bigints. */
  length: number | bigint;
  /** How many chunks it has, and the number of its first chunk in the list of hashes. */
  chunks: number;
  firstChunk: number;
  /** Where its stored bytes start in the archive, and how many they are. 0 bytes if it is elsewhere. */
  offset: number;
  stored: number;
  codec?: { name: string; parameters: (number | bigint)[]; stored: number[] };
  elsewhere?: { hash: string; digest: Uint8Array };
}

/** How the chunks are hashed: not at all, with XXH3, or with an algorithm that is not known. */
export type Check = { name: 'xxh3-64'; length: 8 } | { name: string; length: number } | null;

export interface Header {
  offset: number;
  /** The length of the record with its hash. */
  length: number;
  hash: bigint;
  name: string | null;
  alignment: number;
  check: Check;
  chunk: number;
  buffers: BufferInfo[];
  extensions: Extension[];
  metadata: Uint8Array;
  /** Where the metadata starts in the archive. */
  metadataOffset: number;
  /** Where the padding ends and the head of the body starts, if there are buffers. */
  bodyHead: number;
  bodyOffset: number;
  bodyLength: number;
  /** Item 3 of 5.2: the hashes of the chunks. */
  hashesOffset: number;
  hashesLength: number;
  hashesHead: number;
  /** Where the segment ends. Above 2^53 it is only about right, and beyond every input. */
  end: number;
  /** The bytes from the alignment to the lengths, for the digest. */
  middle: Uint8Array;
}

const MAX_POSITION = 2n ** 63n - 1n;

function powerOfTwo(cursor: Cursor, what: string, least: number, most: number): number {
  const value = cursor.small(what);
  if (value < least || value > most || !Number.isInteger(Math.log2(value))) {
    cursor.fail(`${what} is ${value} instead of a power of two from ${least} to ${most}`);
  }
  return value;
}

function shortText(cursor: Cursor, what: string, least: number, most: number): string {
  const value = cursor.text(what);
  const size = Number(cursor.argument);
  if (size < least || size > most) cursor.fail(`${what} has ${size} bytes instead of ${least} to ${most}`);
  return value;
}

export function readName(cursor: Cursor): string {
  return shortText(cursor, 'a name', 0, 1024);
}

export function readHeader(record: RecordItem, inParts = false): Header {
  const cursor = openRecord(record, 8);
  const name = cursor.isNull() ? null : readName(cursor);
  const middleStart = cursor.at;
  const alignment = powerOfTwo(cursor, 'the alignment', 8, 65536);
  const check = readCheck(cursor);
  const chunk = powerOfTwo(cursor, 'the length of a chunk', 65536, 2 ** 30);
  const count = cursor.array('lengths');
  const buffers: BufferInfo[] = [];
  for (let i = 0; i < count; i++) buffers.push(readBuffer(cursor, chunk));
  const middle = record.content.subarray(middleStart, cursor.at);
  const extensions = readExtensions(cursor);
  if (cursor.left === 0) cursor.fail('a header has no metadata', cursor.at);
  notesOf(extensions, record.offset);
  const header: Header = {
    offset: record.offset,
    length: record.length,
    hash: record.hash,
    name,
    alignment,
    check,
    chunk,
    buffers,
    extensions,
    metadata: record.content.subarray(cursor.at),
    metadataOffset: record.contentOffset + cursor.at,
    bodyHead: 0,
    bodyOffset: 0,
    bodyLength: 0,
    hashesOffset: 0,
    hashesLength: 0,
    hashesHead: 0,
    end: record.offset + record.length,
    middle,
  };
  placeBuffers(header, inParts);
  return header;
}

function readCheck(cursor: Cursor): Check {
  if (cursor.isNull()) return null;
  if (cursor.bytes[cursor.at]! >> 5 === 3) {
    const name = cursor.text('the check');
    return name === 'xxh3-64' ? { name, length: 8 } : cursor.fail(`the check ${JSON.stringify(name)} has no length`);
  }
  cursor.arrayOf(2, 'the check');
  const name = shortText(cursor, 'the name of the check', 1, 64);
  if (name === 'xxh3-64') cursor.fail('the check xxh3-64 must not have a length');
  const length = cursor.small('the length of a hash');
  if (length < 1 || length > 64) cursor.fail(`hashes of ${length} bytes`);
  return { name, length };
}

function bufferLength(cursor: Cursor, least: number): number | bigint {
  const length = cursor.uint('the length of a buffer');
  if (length < least || length > MAX_POSITION) cursor.fail(`a buffer of ${length} bytes`);
  return length;
}

function chunksOf(length: number | bigint, chunk: number): number {
  return Number((BigInt(length) + BigInt(chunk) - 1n) / BigInt(chunk));
}

function readBuffer(cursor: Cursor, chunk: number): BufferInfo {
  const places = { firstChunk: 0, offset: 0, stored: 0 };
  if (cursor.bytes[cursor.at]! >> 5 !== 4) {
    const length = bufferLength(cursor, 0);
    return { length, chunks: chunksOf(length, chunk), ...places };
  }
  const parts = cursor.array('the description of a buffer');
  if (parts === 3) {
    const length = bufferLength(cursor, 1);
    const hash = shortText(cursor, 'the name of a hash', 1, 64);
    const digest = cursor.byteString('a digest');
    if (digest.length < 8 || digest.length > 64) cursor.fail(`a digest of ${digest.length} bytes`);
    return { length, chunks: chunksOf(length, chunk), ...places, elsewhere: { hash, digest } };
  }
  if (parts !== 4) cursor.fail(`the description of a buffer is an array of ${parts}`);
  const name = shortText(cursor, 'the name of a codec', 1, 64);
  const parameterCount = cursor.array('the parameters of a codec');
  if (parameterCount > 16) cursor.fail(`a codec has ${parameterCount} parameters`);
  const parameters: (number | bigint)[] = [];
  for (let i = 0; i < parameterCount; i++) parameters.push(cursor.uint('a parameter of a codec'));
  checkParameters(name, parameters);
  const length = bufferLength(cursor, 1);
  const chunks = chunksOf(length, chunk);
  const storedCount = cursor.array('the stored lengths');
  if (storedCount !== chunks) cursor.fail(`${storedCount} stored lengths for ${chunks} chunks`);
  const stored: number[] = [];
  for (let i = 0; i < chunks; i++) {
    const most = i + 1 < chunks ? chunk : Number(BigInt(length) - BigInt(chunk) * BigInt(chunks - 1));
    const one = cursor.small('a stored length');
    if (one < 1 || one > most) cursor.fail(`a stored length of ${one} for a chunk of ${most} bytes`);
    stored.push(one);
  }
  return { length, chunks, ...places, codec: { name, parameters, stored } };
}

/** Computes where everything is that follows the record (5.2, 5.4). */
function placeBuffers(header: Header, inParts: boolean): void {
  const { buffers, alignment, check } = header;
  if (buffers.length === 0) return;
  const align = BigInt(alignment);
  let place = 0n;
  let chunks = 0;
  const places: bigint[] = [];
  for (const buffer of buffers) {
    buffer.firstChunk = chunks;
    chunks += buffer.chunks;
    if (buffer.elsewhere) {
      places.push(place);
      continue;
    }
    if (!buffer.codec) place = ((place + align - 1n) / align) * align;
    places.push(place);
    const stored = buffer.codec ? buffer.codec.stored.reduce((sum, one) => sum + BigInt(one), 0n) : BigInt(buffer.length);
    buffer.stored = Number(stored);
    place += stored;
  }
  const start = BigInt(header.offset + header.length);
  const bodyHeadLength = BigInt(encodeHead(2, place).length);
  const padding = (align - ((start + bodyHeadLength) % align)) % align;
  const body = inParts ? start : start + padding + bodyHeadLength;
  buffers.forEach((buffer, i) => (buffer.offset = Number(body + places[i]!)));
  const hashes = BigInt(chunks) * BigInt(check?.length ?? 0);
  const hashesHead = BigInt(2 + encodeHead(2, hashes).length);
  const end = body + (inParts ? 0n : place) + hashesHead + hashes + 9n;
  if (end + (inParts ? place : 0n) > MAX_POSITION) fail('damaged', 'a segment ends after position 2^63 - 1', header.offset);
  header.bodyHead = Number(start + padding);
  header.bodyOffset = Number(body);
  header.bodyLength = Number(place);
  header.hashesOffset = Number(inParts ? body : body + place);
  header.hashesHead = Number(hashesHead);
  header.hashesLength = Number(hashesHead + hashes);
  header.end = Number(end);
}

/** The head of item 3 of 5.2, which is fixed by the header. */
export function hashesHead(header: Header): Uint8Array {
  const isXxh3 = header.check === null || header.check.name === 'xxh3-64';
  const tag = isXxh3 ? 67 : 64;
  return concat([Uint8Array.of(0xd8, tag), encodeHead(2, header.hashesLength - header.hashesHead)]);
}

/** Verifies items 3 and 4 of 5.2, which are `bytes`, and gives the hashes. */
export function readHashes(header: Header, bytes: Uint8Array): Uint8Array {
  const { hashesOffset: offset, hashesLength: length } = header;
  if (bytes[length] !== 0x48 || xxh3(bytes.subarray(0, length), header.hash) !== readU64(bytes, length + 1)) {
    fail('damaged', 'the hash of the list of hashes is wrong', offset);
  }
  const head = hashesHead(header);
  if (!head.every((byte, i) => bytes[i] === byte)) fail('damaged', 'the list of hashes has the wrong head', offset);
  return bytes.subarray(header.hashesHead, length);
}

/** The padding of this length in front of a body or a tail (5.4). */
export function padding(length: number): Uint8Array {
  const out = new Uint8Array(length);
  if (length === 0) return out;
  let at = 0;
  if (length === 25 || length === 258) {
    out[0] = 0x40;
    at = 1;
  }
  const total = length - at;
  const head = [1, 2, 3, 5].find((size) => headLength(total - size) === size)!;
  out.set(encodeHead(2, total - head), at);
  return out;
}

/** The digest of a segment (5.10), from its header and item 3 of 5.2. */
export function segmentDigest(header: Header, hashItem: Uint8Array): bigint | null {
  if (header.buffers.length > 0 && header.check === null) return null;
  const odd = header.extensions.filter(isOdd);
  return xxh3128(
    concat([
      encodeHead(6, TAG.HEADER),
      Uint8Array.of(0x88, VERSION, 0xf6),
      header.middle,
      encodeHead(5, odd.length),
      ...odd.map((extension) => extension.bytes),
      header.metadata,
      ...(header.buffers.length > 0 ? [hashItem] : []),
    ]),
  );
}

/** The number of elements of the value, as the directory counts them (5.6). */
export function countRows(header: Header): number | bigint | null {
  const { metadata } = header;
  try {
    const cursor = new Cursor(metadata);
    if (metadata[0]! >> 5 === 4) {
      cursor.head();
      return cursor.info === 31 ? null : cursor.argument;
    }
    if (!encodeHead(6, TAG.COLUMNS).every((byte, i) => metadata[i] === byte)) return null;
    const item = parseItem(cursor, { depth: 128, metadata: true });
    const groups = item.type === 'tag' && item.content.type === 'array' ? item.content.items : [];
    let rows = 0;
    for (let i = 0; i < groups.length; i += 2) {
      const count = groups[i]!;
      if (count.type !== 'int') return null;
      rows += Number(count.value);
    }
    return rows;
  } catch {
    return null;
  }
}
