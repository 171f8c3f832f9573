// The element types of tensors (2.1, 2.2), their JavaScript arrays and their conversion to floats.
import { aligned, viewOf } from './bytes.js';
import { halfToNumber } from './cbor.js';
import { fail } from './errors.js';

/** The bits of one element of each dtype with a known size. */
const BITS = new Map<string, number>([
  ['bool', 8],
  ['u8', 8],
  ['u16', 16],
  ['u32', 32],
  ['u64', 64],
  ['i8', 8],
  ['i16', 16],
  ['i32', 32],
  ['i64', 64],
  ['f16', 16],
  ['f32', 32],
  ['f64', 64],
  ['f128', 128],
  ['bf16', 16],
  ['c64', 64],
  ['c128', 128],
  ['f8_e5m2', 8],
  ['f8_e4m3', 8],
  ['f8_e8m0', 8],
  ['f8_e5m2fnuz', 8],
  ['f8_e4m3fnuz', 8],
  ['f6_e2m3', 6],
  ['f6_e3m2', 6],
  ['f4', 4],
]);

/** The bits of an element, or undefined for a dtype that is not known. */
export function bitsOf(dtype: string): number | undefined {
  return BITS.get(dtype);
}

const TAGS: Record<number, string> = {
  64: 'u8',
  69: 'u16',
  70: 'u32',
  71: 'u64',
  72: 'i8',
  77: 'i16',
  78: 'i32',
  79: 'i64',
  84: 'f16',
  85: 'f32',
  86: 'f64',
  87: 'f128',
};
const BIG_ENDIAN_TAGS: Record<number, string> = {
  65: 'u16',
  66: 'u32',
  67: 'u64',
  73: 'i16',
  74: 'i32',
  75: 'i64',
  80: 'f16',
  81: 'f32',
  82: 'f64',
  83: 'f128',
};

/** The dtype of a little-endian typed-array tag. */
export function dtypeOfTag(tag: number | bigint): string | undefined {
  return TAGS[Number(tag)];
}

/** The dtype of a typed-array tag that only messages have: big-endian or clamped. */
export function dtypeOfForeignTag(tag: number | bigint): { dtype: string; bigEndian: boolean } | undefined {
  if (tag === 68) return { dtype: 'u8', bigEndian: false };
  const dtype = BIG_ENDIAN_TAGS[Number(tag)];
  return dtype === undefined ? undefined : { dtype, bigEndian: true };
}

/** The types that a packed sequence can have (3). */
export function isNumberType(dtype: string): boolean {
  return /^([iu](8|16|32|64)|f(16|32|64))$/.test(dtype);
}

export function isIntegerType(dtype: string): boolean {
  return /^[iu](8|16|32|64)$/.test(dtype);
}

export type TypedArray =
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Float32Array
  | Float64Array;

type ArrayConstructor = new (buffer: ArrayBuffer, offset: number, length: number) => TypedArray;

const ARRAYS: Record<string, ArrayConstructor> = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  u64: BigUint64Array,
  i8: Int8Array,
  i16: Int16Array,
  i32: Int32Array,
  i64: BigInt64Array,
  f16: Uint16Array,
  bf16: Uint16Array,
  f32: Float32Array,
  f64: Float64Array,
  c64: Float32Array,
  c128: Float64Array,
};

/**
 * The elements as a typed array. Elements without a JavaScript type are their bits, as u16 for `f16` and `bf16` and as bytes
 * for all others. Complex elements are pairs of floats.
 */
export function typedArray(dtype: string, bytes: Uint8Array): TypedArray {
  const Type = ARRAYS[dtype];
  if (Type === undefined) return bytes;
  const width = dtype === 'c64' || dtype === 'c128' ? bitsOf(dtype)! / 16 : bitsOf(dtype)! / 8;
  const own = aligned(bytes, width);
  return new Type(own.buffer as ArrayBuffer, own.byteOffset, own.length / width);
}

/** A table of the values of a small float with a sign, `exponent` and `mantissa` bits. */
function smallFloats(
  exponentBits: number,
  mantissaBits: number,
  bias: number,
  special: (bits: number) => number | undefined,
) {
  const count = 1 << (1 + exponentBits + mantissaBits);
  return Float32Array.from({ length: count }, (_, bits) => {
    const known = special(bits);
    if (known !== undefined) return known;
    const sign = bits >= count / 2 ? -1 : 1;
    const exponent = (bits >> mantissaBits) & ((1 << exponentBits) - 1);
    const fraction = (bits & ((1 << mantissaBits) - 1)) / (1 << mantissaBits);
    return sign * (exponent ? (1 + fraction) * 2 ** (exponent - bias) : fraction * 2 ** (1 - bias));
  });
}

const SMALL: Record<string, () => Float32Array> = {
  f8_e5m2: () => Float32Array.from({ length: 256 }, (_, bits) => halfToNumber(bits << 8)),
  f8_e4m3: () => smallFloats(4, 3, 7, (bits) => ((bits & 0x7f) === 0x7f ? NaN : undefined)),
  f8_e8m0: () => Float32Array.from({ length: 256 }, (_, bits) => (bits === 255 ? NaN : 2 ** (bits - 127))),
  f8_e5m2fnuz: () => smallFloats(5, 2, 16, (bits) => (bits === 0x80 ? NaN : undefined)),
  f8_e4m3fnuz: () => smallFloats(4, 3, 8, (bits) => (bits === 0x80 ? NaN : undefined)),
  f6_e2m3: () => smallFloats(2, 3, 1, () => undefined),
  f6_e3m2: () => smallFloats(3, 2, 3, () => undefined),
  f4: () => smallFloats(2, 1, 1, () => undefined),
};
const tables = new Map<string, Float32Array>();

/** Each element as the nearest float of 32 bits. Complex elements are pairs. */
export function toFloat32(dtype: string, bytes: Uint8Array): Float32Array {
  const makeTable = SMALL[dtype];
  if (makeTable) {
    let table = tables.get(dtype);
    if (!table) tables.set(dtype, (table = makeTable()));
    return smallToFloat32(table, bytes, bitsOf(dtype)!);
  }
  const data = typedArray(dtype, bytes);
  if (data instanceof Float32Array) return data.slice();
  if (dtype === 'f16') return Float32Array.from(data as Uint16Array, halfToNumber);
  if (dtype === 'bf16') {
    const out = new Uint32Array(data.length);
    for (let i = 0; i < out.length; i++) out[i] = Number(data[i]) << 16;
    return new Float32Array(out.buffer);
  }
  if (dtype !== 'bool' && ARRAYS[dtype] === undefined) fail('data', `elements of ${dtype} cannot be converted to floats`);
  return Float32Array.from(data as ArrayLike<number>, Number);
}

function smallToFloat32(table: Float32Array, bytes: Uint8Array, bits: number): Float32Array {
  const out = new Float32Array(Math.floor((bytes.length * 8) / bits));
  const mask = (1 << bits) - 1;
  for (let i = 0; i < out.length; i++) {
    const at = i * bits;
    const word = bytes[at >> 3]! | ((bytes[(at >> 3) + 1] ?? 0) << 8);
    out[i] = table[(word >> (at & 7)) & mask]!;
  }
  return out;
}

/** The least type that holds all these types (7, annex A), or undefined. */
export function leastType(dtypes: Iterable<string>): string | undefined {
  let least: string | undefined;
  for (const dtype of dtypes) {
    if (least === undefined || least === dtype) {
      least = dtype;
      continue;
    }
    if (!isIntegerType(least) || !isIntegerType(dtype)) return undefined;
    const [a, b] = [least, dtype];
    const [bitsA, bitsB] = [bitsOf(a)!, bitsOf(b)!];
    if (a[0] === b[0]) {
      if (bitsB > bitsA) least = b;
      continue;
    }
    const signed = a[0] === 'i' ? bitsA : bitsB;
    const unsigned = a[0] === 'u' ? bitsA : bitsB;
    const bits = Math.max(signed, 2 * unsigned);
    if (bits > 64) return undefined;
    least = `i${bits}`;
  }
  return least;
}

/** Integers of one type as bytes of a wider one. */
export function widen(bytes: Uint8Array, from: string, to: string): Uint8Array {
  if (from === to) return bytes;
  const data = typedArray(from, bytes) as ArrayLike<number>;
  const width = bitsOf(to)! / 8;
  const out = new Uint8Array(data.length * width);
  const view = viewOf(out);
  for (let i = 0; i < data.length; i++) {
    const at = i * width;
    if (width === 8) view.setBigInt64(at, BigInt(data[i]!), true);
    else if (width === 4) view.setInt32(at, data[i]!, true);
    else view.setInt16(at, data[i]!, true);
  }
  return out;
}

/**
 * The bytes of a payload with this shape. A product of the dimensions other than 0 must be below 2^63, and so must that
 * product in bytes. Undefined for a dtype whose payload may have any length.
 */
export function payloadLength(dtype: string, shape: (number | bigint)[], offset?: number): bigint | undefined {
  let product = 1n;
  let empty = false;
  for (const dimension of shape) {
    if (dimension == 0) empty = true;
    else product *= BigInt(dimension);
    if (product >= 1n << 63n) fail('data', 'the product of the dimensions overflows', offset);
  }
  const bits = bitsOf(dtype);
  if (bits === undefined) return undefined;
  if (product * BigInt(bits) >= 1n << 66n) fail('data', 'the length of the tensor overflows', offset);
  if (empty) return 0n;
  if ((product * BigInt(bits)) % 8n !== 0n) fail('data', `a tensor of ${dtype} is not a whole number of bytes`, offset);
  return (product * BigInt(bits)) / 8n;
}
