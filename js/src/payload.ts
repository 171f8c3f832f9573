// Tensors, packed sequences and references as they are described in items, with their bytes in place or in a buffer.
import { swapped } from './bytes.js';
import { TAG, isUint, type Item, type TagItem } from './cbor.js';
import { bitsOf, dtypeOfForeignTag, dtypeOfTag, isNumberType, payloadLength } from './dtype.js';
import { fail } from './errors.js';
import type { Order } from './tensor.js';

const MAX_DIMENSIONS = 64;
const MAX_COUNTED_ROWS = 2 ** 24;

export const MEBIBYTE = 1024 * 1024;

/** What one document may take. */
export class Budget {
  private countedRows = 0;
  private dictBytes = 0;
  private rowBytes = 0;
  private readonly dictLimit: number;
  private readonly rowLimit: number;

  /** Takes the length of the document, and a limit that the caller sets instead of the usual ones. */
  constructor(size: number, limit?: number) {
    this.dictLimit = limit ?? 64 * MEBIBYTE + 1024 * size;
    this.rowLimit = limit ?? 64 * MEBIBYTE + 256 * size;
  }

  /** Counts rows that take no bytes, and those that repeat a long name. */
  countRows(rows: number): void {
    this.countedRows += rows;
    if (this.countedRows > MAX_COUNTED_ROWS) fail('limit', `more than ${MAX_COUNTED_ROWS} rows without bytes`);
  }

  /** Counts what rows take in memory: a row of structs can be a few bits in the input. */
  countRowBytes(bytes: number): void {
    this.rowBytes += bytes;
    if (this.rowBytes > this.rowLimit) fail('limit', `the rows of columns take more than ${this.rowLimit} bytes`);
  }

  countDictBytes(bytes: number): void {
    this.dictBytes += bytes;
    if (this.dictBytes > this.dictLimit) fail('limit', `the rows of dicts have more than ${this.dictLimit} bytes`);
  }
}

/** Where the bytes of a value are. */
export type Payload =
  { readonly bytes: Uint8Array; readonly buffer?: undefined } | { readonly buffer: number; readonly bytes?: undefined };

/** What is known about the document while its items are read. */
export interface Context {
  /** The lengths of the buffers of the segment, decompressed. A message has none. */
  readonly buffers?: readonly (number | bigint)[];
  /** The bytes of a buffer, or undefined if buffers are not read here. */
  load?(buffer: number): Uint8Array | undefined;
  readonly budget: Budget;
}

export function payloadSize(payload: Payload, context: Context): bigint {
  return payload.bytes ? BigInt(payload.bytes.length) : BigInt(context.buffers![payload.buffer]!);
}

/** The bytes, if they are in place or were read. */
export function payloadBytes(payload: Payload, context: Context): Uint8Array | undefined {
  return payload.bytes ?? context.load?.(payload.buffer!);
}

export interface TensorInfo {
  dtype: string;
  shape: number[];
  order: Order;
  payload: Payload;
}

export interface PackedInfo {
  dtype: string;
  payload: Payload;
}

export function checkSize(
  payload: Payload,
  dtype: string,
  shape: (number | bigint)[],
  context: Context,
  offset: number,
): void {
  const expected = payloadLength(dtype, shape, offset);
  const found = payloadSize(payload, context);
  if (expected !== undefined && found !== expected) {
    fail('data', `a tensor of ${dtype} with the shape [${shape}] has ${found} bytes instead of ${expected}`, offset);
  }
}

export type Reference =
  { kind: 'tensor'; tensor: TensorInfo } | { kind: 'sequence'; packed: PackedInfo } | { kind: 'bytes'; payload: Payload };

/** Reads the content of TBUF (5.3). */
export function reference(item: TagItem, context: Context): Reference {
  const { content, offset } = item;
  if (!context.buffers) return fail('data', 'a reference to a buffer (TBUF) outside an archive', offset);
  if (content.type !== 'array' || !content.definite) return fail('data', 'TBUF must be around an array', offset);
  const parts = content.items;
  const payload = bufferNumber(parts[parts.length - 1], context, offset);
  if (parts.length === 1) return { kind: 'bytes', payload };
  const dtype = dtypeName(parts[0], offset);
  if (parts.length === 2) {
    if (!isNumberType(dtype)) fail('data', `a sequence in a buffer cannot have the type ${dtype}`, offset);
    if (payloadSize(payload, context) % BigInt(bitsOf(dtype)! / 8) !== 0n) {
      fail('data', `buffer ${payload.buffer} does not hold a whole number of ${dtype}`, offset);
    }
    return { kind: 'sequence', packed: { dtype, payload } };
  }
  if (parts.length !== 4) return fail('data', `TBUF around an array of ${parts.length}`, offset);
  const shape = shapeOf(parts[1]!, offset);
  const order = orderOf(parts[2], shape, offset);
  checkSize(payload, dtype, shape, context, offset);
  return { kind: 'tensor', tensor: { dtype, shape: shape.map(Number), order, payload } };
}

function bufferNumber(item: Item | undefined, context: Context, offset: number): Payload {
  if (!item || !isUint(item)) return fail('data', 'the number of a buffer must be an unsigned integer', offset);
  if (item.value >= context.buffers!.length) {
    return fail('data', `there is no buffer ${item.value}, but ${context.buffers!.length} buffers`, offset);
  }
  return { buffer: Number(item.value) };
}

function dtypeName(item: Item | undefined, offset: number): string {
  if (item?.type !== 'text' || item.size > 256)
    return fail('data', 'the name of a dtype must be a text of at most 256 bytes', offset);
  return item.value;
}

function shapeOf(item: Item, offset: number): (number | bigint)[] {
  if (item.type !== 'array') return fail('data', 'a shape must be an array', offset);
  if (item.items.length > MAX_DIMENSIONS) fail('limit', `a tensor has more than ${MAX_DIMENSIONS} dimensions`, offset);
  return item.items.map((dimension) =>
    isUint(dimension) ? dimension.value : fail('data', 'a dimension must be an unsigned integer', offset),
  );
}

function orderOf(item: Item | undefined, shape: unknown[], offset: number): Order {
  if (item?.type !== 'text' || (item.value !== 'C' && item.value !== 'F')) {
    return fail('data', 'the order of a tensor must be "C" or "F"', offset);
  }
  return shape.length < 2 ? 'C' : item.value;
}

/** A typed array: a tag of section 2.1 or of RFC 8746 around a byte string. Undefined if it is none. */
export function packed(item: Item): PackedInfo | undefined {
  if (item.type !== 'tag') return undefined;
  const { tag, content, offset } = item;
  const own = dtypeOfTag(tag);
  const foreign = own === undefined ? dtypeOfForeignTag(tag) : undefined;
  const dtype = own ?? foreign?.dtype;
  if (dtype === undefined) return undefined;
  if (content.type !== 'bytes') return fail('data', `tag ${tag} must be around a byte string`, offset);
  const width = bitsOf(dtype)! / 8;
  if (content.value.length % width !== 0) fail('data', `tag ${tag} around ${content.value.length} bytes`, offset);
  return { dtype, payload: { bytes: foreign?.bigEndian ? swapped(content.value, width) : content.value } };
}

/** Tag 43001 around a typed array of floats. */
export function complex(item: TagItem): PackedInfo {
  const parts = packed(item.content);
  const dtype = parts?.dtype === 'f32' ? 'c64' : parts?.dtype === 'f64' ? 'c128' : undefined;
  if (!parts || dtype === undefined || parts.payload.bytes!.length % (bitsOf(dtype)! / 8) !== 0) {
    return fail('data', `tag ${TAG.COMPLEX} must be around pairs of f32 or f64`, item.offset);
  }
  return { dtype, payload: parts.payload };
}

/** Reads tags 40, 1040 and TENS. */
export function tensorInfo(item: TagItem, context: Context): TensorInfo {
  const { tag, content, offset } = item;
  const parts = content.type === 'array' ? content.items : fail('data', 'a tensor must be an array', offset);
  if (tag === TAG.TENS) {
    if (parts.length !== 4) fail('data', `a tensor (TENS) of ${parts.length} parts`, offset);
    const dtype = dtypeName(parts[0], offset);
    const shape = shapeOf(parts[1]!, offset);
    const order = orderOf(parts[2], shape, offset);
    const bytes = parts[3]!;
    if (bytes.type !== 'bytes') return fail('data', 'the payload of a tensor must be a byte string', offset);
    const payload = { bytes: bytes.value };
    checkSize(payload, dtype, shape, context, offset);
    return { dtype, shape: shape.map(Number), order, payload };
  }
  if (parts.length !== 2) fail('data', `a tensor (tag ${tag}) of ${parts.length} parts`, offset);
  const shape = shapeOf(parts[0]!, offset);
  const order: Order = tag === TAG.TENSOR_F && shape.length >= 2 ? 'F' : 'C';
  const { dtype, payload } = elements(parts[1]!, offset);
  checkSize(payload, dtype, shape, context, offset);
  return { dtype, shape: shape.map(Number), order, payload };
}

/** The elements in tags 40 and 1040. Tags without a meaning are skipped in front of them. */
function elements(item: Item, offset: number): PackedInfo {
  for (let inner = item; ;) {
    const found = inner.type === 'tag' && inner.tag === TAG.COMPLEX ? complex(inner) : packed(inner);
    if (found) return found;
    if (inner.type === 'array') return numbersAsElements(inner.items, offset);
    if (inner.type !== 'tag' || hasMeaning(inner.tag))
      return fail('data', 'the elements of a tensor must be numbers', offset);
    inner = inner.content;
  }
}

function hasMeaning(tag: number | bigint): boolean {
  const meanings: (number | bigint)[] = [
    2,
    3,
    24,
    25,
    29,
    TAG.TENSOR,
    TAG.TENSOR_F,
    TAG.TENS,
    TAG.COLUMNS,
    TAG.SOME,
    TAG.TYPE,
  ];
  return meanings.includes(tag);
}

/** Numbers of a plain array as elements: f64 if it holds them all exactly, and otherwise an integer type that does. */
export function numbersAsElements(items: Item[], offset: number): PackedInfo {
  const values = items.map((item) => plainNumber(item) ?? fail('data', 'the elements of a tensor must be numbers', offset));
  const asFloat = values.every((value) => typeof value === 'number' || BigInt(Number(value)) === value);
  if (asFloat) {
    const bytes = new Uint8Array(Float64Array.from(values, Number).buffer);
    return { dtype: 'f64', payload: { bytes } };
  }
  const [least, most] = [-(2n ** 63n), 2n ** 63n];
  if (!values.every((value) => typeof value === 'bigint' || Number.isInteger(value))) {
    fail('data', 'no type holds all elements of a tensor exactly', offset);
  }
  const integers = values.map(BigInt);
  const signed = integers.every((value) => value >= least && value < most);
  if (!signed && !integers.every((value) => value >= 0n && value < 2n * most)) {
    fail('data', 'no type holds all elements of a tensor exactly', offset);
  }
  const array = signed ? BigInt64Array.from(integers) : BigUint64Array.from(integers);
  return { dtype: signed ? 'i64' : 'u64', payload: { bytes: new Uint8Array(array.buffer) } };
}

/** The number that an item is, with tags without a meaning in front of it; undefined if it is none. */
export function plainNumber(item: Item): number | bigint | undefined {
  if (item.type === 'int' || item.type === 'float') return item.value;
  if (item.type === 'tag' && !hasMeaning(item.tag)) return plainNumber(item.content);
  return bignum(item);
}

/** The number of a bignum (RFC 8949, 3.4.3). */
export function bignum(item: Item): number | bigint | undefined {
  if (item.type !== 'tag' || (item.tag !== TAG.BIGNUM && item.tag !== TAG.NEGATIVE_BIGNUM)) return undefined;
  if (item.content.type !== 'bytes') return fail('data', 'a bignum must be a byte string', item.offset);
  let value = 0n;
  for (const byte of trimmed(item.content.value, item.offset)) value = (value << 8n) | BigInt(byte);
  if (item.tag === TAG.NEGATIVE_BIGNUM) value = -1n - value;
  const small = Number(value);
  return Number.isSafeInteger(small) ? small : value;
}

/** Numbers have at most 128 bits, which also bounds the time that they take. */
function trimmed(bytes: Uint8Array, offset: number): Uint8Array {
  let start = 0;
  while (start < bytes.length && bytes[start] === 0) start++;
  if (bytes.length - start > 16) fail('data', 'an integer of more than 128 bits', offset);
  return bytes.subarray(start);
}

export function checkBools(bytes: Uint8Array, offset?: number): void {
  for (const byte of bytes) if (byte > 1) fail('data', `a bool is ${byte}`, offset);
}

/** The name and the parameters of TTYP, or of a column of a type (7.2). */
export function typeParts(
  name: Item | undefined,
  parameters: Item | undefined,
  offset: number,
): { name: string; parameters: (number | bigint | string)[] } {
  if (name?.type !== 'text' || !name.definite || name.size < 1 || name.size > 64) {
    return fail('data', 'the name of a type must be a text of 1 to 64 bytes', offset);
  }
  if (parameters?.type !== 'array' || !parameters.definite || parameters.items.length > 16) {
    return fail('data', 'the parameters of a type must be an array of at most 16', offset);
  }
  const values = parameters.items.map((item) => {
    if (item.type === 'int') return item.value;
    if (item.type === 'text' && item.definite && item.size <= 64) return item.value;
    return fail('data', 'a parameter of a type must be an integer or a text of at most 64 bytes', offset);
  });
  return { name: name.value, parameters: values };
}

/** The item in TTYP. */
export function typedItem(item: TagItem): { name: string; parameters: (number | bigint | string)[]; item: Item } {
  const { content, offset } = item;
  if (content.type !== 'array' || !content.definite || content.items.length !== 3) {
    return fail('data', 'a type (TTYP) must be around an array of 3', offset);
  }
  const inner = content.items[2]!;
  if (inner.type === 'simple' && (inner.value === 22 || inner.value === 23)) {
    fail('data', 'a missing value cannot have a type', offset);
  }
  return { ...typeParts(content.items[0], content.items[1], offset), item: inner };
}
