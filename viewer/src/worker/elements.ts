// Elements of tensors as numbers: those of tenarc, and the blocks of GGUF.
import { bitsOf, toFloat32, typedArray } from '../../../js/src/dtype.js';
import { BLOCKS } from './quants.js';
import { elementsOf, type Tensor } from './model.js';

export type Numbers =
  | Uint8Array
  | Int8Array
  | Uint16Array
  | Int16Array
  | Uint32Array
  | Int32Array
  | Float32Array
  | Float64Array
  | BigInt64Array
  | BigUint64Array;

export interface Codec {
  /** How many elements a block has, and how many bytes. */
  elements: number;
  bytes: number;
  decode(bytes: Uint8Array): Numbers;
  /** What the numbers are, if not the elements themselves. */
  of: string | null;
  isInteger: boolean;
  /** How many digits of an element are worth showing. */
  digits: number;
}

const BYTES_AS_THEY_ARE = ['f128'];

let halves: Float32Array | undefined;

/** The numbers of all f16. A table is much faster than computing each number. */
function fromHalves(bits: ArrayLike<number>): Float32Array {
  halves ??= toFloat32('f16', new Uint8Array(Uint16Array.from({ length: 65536 }, (_, i) => i).buffer));
  const out = new Float32Array(bits.length);
  for (let i = 0; i < out.length; i++) out[i] = halves[bits[i]!]!;
  return out;
}

/** How elements of a dtype are read; undefined for a dtype whose elements are not numbers that are known here. */
export function codecOf(dtype: string): Codec | undefined {
  const block = BLOCKS[dtype];
  if (block) return { ...block, of: 'dequantized', isInteger: false, digits: 6 };
  const bits = bitsOf(dtype);
  if (bits === undefined || BYTES_AS_THEY_ARE.includes(dtype)) return undefined;
  // Elements of 4 and 6 bits are read in the fewest that fill whole bytes.
  const elements = bits % 8 === 0 ? 1 : bits === 4 ? 2 : 4;
  const plain = { elements, bytes: (bits * elements) / 8, of: null };
  if (dtype[0] === 'c') {
    return {
      ...plain,
      of: 'absolute values',
      isInteger: false,
      digits: 7,
      decode: (bytes) => absolute(typedArray(dtype, bytes)),
    };
  }
  if (/^([ui]\d+|bool)$/.test(dtype)) {
    return { ...plain, isInteger: true, digits: 20, decode: (bytes) => typedArray(dtype, bytes) };
  }
  if (dtype === 'f32' || dtype === 'f64') {
    return { ...plain, isInteger: false, digits: dtype === 'f32' ? 7 : 15, decode: (bytes) => typedArray(dtype, bytes) };
  }
  if (dtype === 'f16') {
    const decode = (bytes: Uint8Array) => fromHalves(typedArray(dtype, bytes) as Uint16Array);
    return { ...plain, isInteger: false, digits: 5, decode };
  }
  return { ...plain, isInteger: false, digits: 4, decode: (bytes) => toFloat32(dtype, bytes) };
}

function absolute(pairs: ArrayLike<number | bigint>): Float64Array {
  const out = new Float64Array(pairs.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = Math.hypot(pairs[2 * i] as number, pairs[2 * i + 1] as number);
  return out;
}

/** Elements `start` to `end` (exclusive), as they follow each other in the file. */
export async function readElements(tensor: Tensor, codec: Codec, start: number, end: number): Promise<Numbers> {
  const first = Math.floor(start / codec.elements);
  const last = Math.ceil(end / codec.elements);
  const bytes = await tensor.read(first * codec.bytes, Math.min(last * codec.bytes, tensor.bytes));
  const numbers = codec.decode(bytes);
  const skipped = first * codec.elements;
  return numbers.subarray(start - skipped, end - skipped) as Numbers;
}

/** Whether the bytes of a tensor are as many as its shape says. */
export function bytesOfShape(dtype: string, shape: number[]): number | undefined {
  const block = BLOCKS[dtype];
  if (block) return (elementsOf(shape) / block.elements) * block.bytes;
  const bits = bitsOf(dtype);
  return bits === undefined ? undefined : (elementsOf(shape) * bits) / 8;
}

/** The lines and columns of a tensor that are shown as a matrix: its last two axes, at one place of the others. */
export interface Matrix {
  height: number;
  width: number;
  base: number;
  down: number;
  right: number;
}

/** How far apart in the file elements are that are next to each other along each axis. */
export function stridesOf({ shape, order }: Pick<Tensor, 'shape' | 'order'>): number[] {
  const strides = new Array<number>(shape.length);
  let step = 1;
  for (let i = 0; i < shape.length; i++) {
    const axis = order === 'F' ? i : shape.length - 1 - i;
    strides[axis] = step;
    step *= shape[axis]!;
  }
  return strides;
}

export function matrixOf(tensor: Tensor, leading: number[]): Matrix {
  const { shape } = tensor;
  const strides = stridesOf(tensor);
  const axes = shape.length;
  const base = leading.reduce((sum, index, axis) => sum + index * strides[axis]!, 0);
  return {
    base,
    height: axes < 2 ? 1 : shape[axes - 2]!,
    width: axes < 1 ? 1 : shape[axes - 1]!,
    down: axes < 2 ? 1 : strides[axes - 2]!,
    right: axes < 1 ? 1 : strides[axes - 1]!,
  };
}

/** Calls `take` with the elements of chosen lines and columns of a matrix. What lies close together is read at once. */
export async function readMatrix(
  tensor: Tensor,
  codec: Codec,
  matrix: Matrix,
  rows: number[],
  columns: number[],
  take: (row: number, column: number, value: number | bigint) => void,
): Promise<void> {
  const isTurned = matrix.right > matrix.down;
  const [outer, inner] = isTurned ? [columns, rows] : [rows, columns];
  const [far, near] = isTurned ? [matrix.right, matrix.down] : [matrix.down, matrix.right];
  const span = (inner[inner.length - 1] ?? 0) * near + 1 - (inner[0] ?? 0) * near;
  // As many lines at once as take at most a few megabytes with what lies between them.
  const most = Math.max(1, (4 * MEBIBYTE * codec.elements) / codec.bytes);
  for (let i = 0; i < outer.length;) {
    let next = i + 1;
    while (
      next < outer.length &&
      (outer[next]! - outer[i]!) * far + span <= most &&
      (outer[next]! - outer[next - 1]!) * far <= 4 * span
    ) {
      next++;
    }
    const start = matrix.base + outer[i]! * far + (inner[0] ?? 0) * near;
    const numbers = await readElements(tensor, codec, start, start + (outer[next - 1]! - outer[i]!) * far + span);
    for (let o = i; o < next; o++) {
      for (let n = 0; n < inner.length; n++) {
        const value = numbers[(outer[o]! - outer[i]!) * far + (inner[n]! - inner[0]!) * near]!;
        if (isTurned) take(n, o, value);
        else take(o, n, value);
      }
    }
    i = next;
  }
}

export const MEBIBYTE = 1024 * 1024;
