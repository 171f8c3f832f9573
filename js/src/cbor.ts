// CBOR items (RFC 8949): a cursor over heads, a parser that checks that an item is well-formed and gives it as a tree, and the
// few encodings that a reader needs.
import { MAX_SAFE, bytesOfU64, concat, decodeText, encodeText, viewOf } from './bytes.js';
import { fail, type ErrorKind } from './errors.js';

export const TAG = {
  BIGNUM: 2,
  NEGATIVE_BIGNUM: 3,
  ENCODED: 24,
  TENSOR: 40,
  TENSOR_F: 1040,
  COMPLEX: 43001,
  SOME: 1414745933,
  TENS: 1413828179,
  COLUMNS: 1413697356,
  TYPE: 1414814032,
  BUFFER: 1413633350,
  HEADER: 1414743367,
  DIRECTORY: 1413761362,
  END: 1413828164,
  AUXILIARY: 1413567832,
} as const;

export const NULL = 22;
export const UNDEFINED = 23;

interface Place {
  /** The position of the first byte of the item, from the start of the bytes that were parsed. */
  readonly offset: number;
}
export interface IntItem extends Place {
  readonly type: 'int';
  readonly value: number | bigint;
}
export interface BytesItem extends Place {
  readonly type: 'bytes';
  readonly value: Uint8Array;
  readonly definite: boolean;
}
export interface TextItem extends Place {
  readonly type: 'text';
  readonly value: string;
  readonly definite: boolean;
  /** The length in bytes of UTF-8. */
  readonly size: number;
}
export interface ArrayItem extends Place {
  readonly type: 'array';
  readonly items: Item[];
  readonly definite: boolean;
}
export interface MapItem extends Place {
  readonly type: 'map';
  /** Keys and values in turn. */
  readonly items: Item[];
  readonly definite: boolean;
}
export interface TagItem extends Place {
  readonly type: 'tag';
  readonly tag: number | bigint;
  readonly content: Item;
}
export interface SimpleItem extends Place {
  readonly type: 'simple';
  readonly value: number;
}
export interface FloatItem extends Place {
  readonly type: 'float';
  readonly value: number;
  readonly bits: 16 | 32 | 64;
  /** The bits of a NaN, which a number does not keep. */
  readonly nan?: bigint;
}
/** A tensor that is a row of a column. It is not parsed, but made from its column. */
export interface TensorItem extends Place {
  readonly type: 'tensor';
  readonly dtype: string;
  readonly shape: number[];
  readonly bytes: Uint8Array;
}
export type Item = IntItem | BytesItem | TextItem | ArrayItem | MapItem | TagItem | SimpleItem | FloatItem | TensorItem;

const BREAK = 0xff;

/** A position in bytes, with the head that was read last. */
export class Cursor {
  readonly bytes: Uint8Array;
  readonly view: DataView;
  at: number;
  /** The major type of the head that was read last. */
  major = 0;
  /** The low five bits of its first byte: 31 for an indefinite length. */
  info = 0;
  /** Its argument. Numbers above 2^53 - 1 are bigints. */
  argument: number | bigint = 0;
  /** Where it starts. */
  start = 0;
  /** Whether it is as short as it can be, with a definite length. */
  shortest = true;
  /** Positions in errors count from here. */
  readonly base: number;
  readonly errors: ErrorKind;

  constructor(bytes: Uint8Array, at = 0, base = 0, errors: ErrorKind = 'data') {
    this.bytes = bytes;
    this.view = viewOf(bytes);
    this.at = at;
    this.base = base;
    this.errors = errors;
  }

  fail(message: string, at = this.start): never {
    return fail(this.errors, message, this.base + at);
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  head(): void {
    const { bytes, view } = this;
    const at = this.at;
    this.start = at;
    if (at >= bytes.length) this.fail('the input ends where an item was expected');
    const first = bytes[at]!;
    this.major = first >> 5;
    const info = (this.info = first & 31);
    this.shortest = true;
    if (info < 24) {
      this.argument = info;
      this.at = at + 1;
      return;
    }
    if (info > 27) {
      if (info !== 31 || this.major < 2 || this.major === 6) this.fail('a head that is not well-formed');
      this.argument = 0;
      this.shortest = false;
      this.at = at + 1;
      return;
    }
    const width = 1 << (info - 24);
    if (at + 1 + width > bytes.length) this.fail('the input ends inside a head');
    this.at = at + 1 + width;
    if (info === 24) {
      this.argument = bytes[at + 1]!;
      this.shortest = this.argument >= 24;
    } else if (info === 25) {
      this.argument = view.getUint16(at + 1);
      this.shortest = this.argument > 0xff;
    } else if (info === 26) {
      this.argument = view.getUint32(at + 1);
      this.shortest = this.argument > 0xffff;
    } else {
      const value = view.getBigUint64(at + 1);
      this.argument = value > BigInt(MAX_SAFE) ? value : Number(value);
      this.shortest = value > 0xffffffffn;
    }
  }

  /** Reads a head and gives its major type. */
  next(): number {
    this.head();
    return this.major;
  }

  /** Takes the content of a string of definite length whose head was read. Nothing is copied. */
  content(): Uint8Array {
    const length = this.argument;
    if (typeof length === 'bigint' || length > this.left) {
      return this.fail(`a string of ${length} bytes is longer than the input`);
    }
    const out = this.bytes.subarray(this.at, this.at + length);
    this.at += length;
    return out;
  }

  // The following read items whose heads must be the shortest, for records (5.1).

  private strict(major: number, what: string): number | bigint {
    this.head();
    if (this.major !== major || !this.shortest) this.fail(`${what} with the shortest head was expected`);
    return this.argument;
  }

  uint(what = 'an unsigned integer'): number | bigint {
    return this.strict(0, what);
  }

  /** An unsigned integer that is a position or length. Numbers above 2^53 - 1 cannot be any in an input that we can read. */
  small(what: string): number {
    const value = this.uint(what);
    return typeof value === 'bigint' ? this.fail(`${what} is too large: ${value}`) : value;
  }

  text(what = 'a text'): string {
    this.strict(3, what);
    const start = this.start;
    return decodeText(this.content(), this.base + start);
  }

  byteString(what = 'a byte string'): Uint8Array {
    this.strict(2, what);
    return this.content();
  }

  /** The length of an array, which is not more than the bytes that are left. */
  array(what = 'an array'): number {
    const length = this.strict(4, what);
    return typeof length === 'bigint' || length > this.left ? this.fail(`${what} is longer than the input`) : length;
  }

  arrayOf(length: number, what: string): void {
    if (this.array(what) !== length) this.fail(`${what} must be an array of ${length}`);
  }

  tag(tag: number, what: string): void {
    if (this.strict(6, what) !== tag) this.fail(`${what} was expected`);
  }

  isNull(): boolean {
    if (this.bytes[this.at] !== 0xf6) return false;
    this.at++;
    return true;
  }
}

export interface Rules {
  /** How many levels of arrays, maps and tags there may be. */
  depth: number;
  /** The rules of metadata (5.3): definite lengths, and little-endian tensors. */
  metadata?: boolean;
  /** All heads are the shortest, and lengths definite. */
  shortest?: boolean;
}

/** Parses one item. Its memory is bounded: every node stands for at least one byte of the input. */
export function parseItem(cursor: Cursor, rules: Rules, level = 1): Item {
  cursor.head();
  const { major, info, argument, start: offset } = cursor;
  const definite = info !== 31;
  if (rules.shortest && major < 7 && !cursor.shortest) cursor.fail('a head that is not the shortest');
  if (rules.metadata && !definite) cursor.fail('an indefinite length in metadata');
  switch (major) {
    case 0:
      return { type: 'int', value: argument, offset };
    case 1:
      return { type: 'int', value: negative(argument), offset };
    case 2:
      return { type: 'bytes', value: definite ? cursor.content() : chunks(cursor, 2), definite, offset };
    case 3: {
      if (!definite) {
        const bytes = chunks(cursor, 3);
        return { type: 'text', value: decodeText(bytes), definite, size: bytes.length, offset };
      }
      const bytes = cursor.content();
      return { type: 'text', value: utf8(cursor, bytes, offset), definite, size: bytes.length, offset };
    }
    case 4:
    case 5: {
      if (level > rules.depth) fail('limit', `more than ${rules.depth} levels of nesting`, cursor.base + offset);
      const items = contents(cursor, rules, level, major === 5 ? 2 : 1, definite, argument);
      return { type: major === 4 ? 'array' : 'map', items, definite, offset };
    }
    case 6: {
      if (level > rules.depth) fail('limit', `more than ${rules.depth} levels of nesting`, cursor.base + offset);
      const content = parseItem(cursor, rules, level + 1);
      if (rules.metadata) checkMetadataTag(cursor, argument, content, offset);
      else if (argument === TAG.BUFFER && !rules.shortest)
        cursor.fail('a reference to a buffer (TBUF) in a message', offset);
      return { type: 'tag', tag: argument, content, offset };
    }
    default:
      return simpleOrFloat(cursor, offset, info, argument);
  }
}

function negative(argument: number | bigint): number | bigint {
  if (typeof argument === 'number' && argument < MAX_SAFE) return -1 - argument;
  return -1n - BigInt(argument);
}

function utf8(cursor: Cursor, bytes: Uint8Array, offset: number): string {
  try {
    return decodeText(bytes);
  } catch {
    return cursor.fail('text is not UTF-8', offset);
  }
}

function chunks(cursor: Cursor, major: 2 | 3): Uint8Array {
  const pieces: Uint8Array[] = [];
  while (cursor.bytes[cursor.at] !== BREAK) {
    cursor.head();
    if (cursor.major !== major || cursor.info === 31) cursor.fail('a chunk of a string was expected');
    const start = cursor.start;
    const piece = cursor.content();
    if (major === 3) utf8(cursor, piece, start);
    pieces.push(piece);
  }
  cursor.at++;
  return concat(pieces);
}

function contents(
  cursor: Cursor,
  rules: Rules,
  level: number,
  perEntry: number,
  definite: boolean,
  argument: number | bigint,
): Item[] {
  const items: Item[] = [];
  if (definite) {
    if (typeof argument === 'bigint' || argument * perEntry > cursor.left) {
      cursor.fail(`${argument} elements are more than the input has bytes`);
    }
    const count = Number(argument) * perEntry;
    for (let i = 0; i < count; i++) items.push(parseItem(cursor, rules, level + 1));
  } else {
    while (cursor.bytes[cursor.at] !== BREAK) items.push(parseItem(cursor, rules, level + 1));
    cursor.at++;
    if (items.length % perEntry !== 0) cursor.fail('a map ends after a key', cursor.at - 1);
  }
  return items;
}

function simpleOrFloat(cursor: Cursor, offset: number, info: number, argument: number | bigint): Item {
  const { view } = cursor;
  if (info === 25) {
    const bits = view.getUint16(offset + 1);
    return float(halfToNumber(bits), 16, BigInt(bits), offset);
  }
  if (info === 26) return float(view.getFloat32(offset + 1), 32, BigInt(view.getUint32(offset + 1)), offset);
  if (info === 27) return float(view.getFloat64(offset + 1), 64, view.getBigUint64(offset + 1), offset);
  if (info === 31) cursor.fail('a break without a beginning', offset);
  if (info === 24 && Number(argument) < 32) cursor.fail('a simple value that is not well-formed', offset);
  return { type: 'simple', value: Number(argument), offset };
}

export function float(value: number, bits: 16 | 32 | 64, raw: bigint, offset: number): FloatItem {
  return value === value ? { type: 'float', value, bits, offset } : { type: 'float', value, bits, nan: raw, offset };
}

export function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const mantissa = bits & 0x3ff;
  if (exponent === 31) return mantissa ? NaN : sign * Infinity;
  return sign * (exponent ? (1 + mantissa / 1024) * 2 ** (exponent - 15) : mantissa * 2 ** -24);
}

function checkMetadataTag(cursor: Cursor, tag: number | bigint, content: Item, offset: number): void {
  if (tag === TAG.TENSOR || tag === TAG.TENSOR_F) {
    const parts = content.type === 'array' ? content.items : [];
    const shapeFits = parts.length === 2 && parts[0]!.type === 'array' && parts[0]!.items.every(isUint);
    if (!shapeFits || !isTypedArray(parts[1]!)) {
      cursor.fail(`tag ${tag} in metadata must be around a shape and a typed array`, offset);
    }
  } else if (typeof tag === 'number' && (between(tag, 65, 68) || between(tag, 73, 76) || between(tag, 80, 83))) {
    cursor.fail(`tag ${tag} is not allowed in metadata`, offset);
  }
}

function between(value: number, low: number, high: number): boolean {
  return value >= low && value <= high;
}

export function isUint(item: Item): item is IntItem {
  return item.type === 'int' && item.value >= 0;
}

/** Whether it is a typed array of section 2.1. */
export function isTypedArray(item: Item): boolean {
  if (item.type !== 'tag') return false;
  const { tag, content } = item;
  if (tag === TAG.COMPLEX) {
    return content.type === 'tag' && (content.tag === 85 || content.tag === 86) && content.content.type === 'bytes';
  }
  const known =
    typeof tag === 'number' && (tag === 64 || between(tag, 69, 72) || between(tag, 77, 79) || between(tag, 84, 87));
  return known && content.type === 'bytes';
}

/** The head of an item, in its shortest form. */
export function encodeHead(major: number, argument: number | bigint): Uint8Array {
  const first = major << 5;
  if (argument < 24) return Uint8Array.of(first | Number(argument));
  if (argument < 0x100) return Uint8Array.of(first | 24, Number(argument));
  if (argument < 0x10000) return Uint8Array.of(first | 25, Number(argument) >> 8, Number(argument) & 255);
  const eight = bytesOfU64(argument);
  if (argument < 0x100000000) return concat([Uint8Array.of(first | 26), eight.subarray(4)]);
  return concat([Uint8Array.of(first | 27), eight]);
}

export function encodeTextItem(text: string): Uint8Array {
  const bytes = encodeText(text);
  return concat([encodeHead(3, bytes.length), bytes]);
}

export function headLength(argument: number): number {
  return argument < 24 ? 1 : argument < 0x100 ? 2 : argument < 0x10000 ? 3 : argument < 0x100000000 ? 5 : 9;
}
