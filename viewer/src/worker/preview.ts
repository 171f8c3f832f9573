// Pictures of tensors and their first values.
import type { Picture, TensorDetail, Values } from '../shared/protocol.js';
import { numberText } from '../shared/text.js';
import { matrixOf, readElements, readMatrix, stridesOf, type Codec } from './elements.js';
import { smallBytes } from './statistics.js';
import { elementsOf, type Tensor } from './model.js';

const SIDE = 256;
const MAX_IMAGE = 4096;
const LINE = 512;

/** Which axes make an image: the last of [H, W, 3], those before it of [3, H, W]. Undefined if the shape looks like no image. */
export function imageOf(shape: number[]): TensorDetail['image'] {
  const isSide = (size: number | undefined) => size !== undefined && size >= 8 && size <= MAX_IMAGE;
  const isColour = (size: number | undefined) => size === 1 || size === 3 || size === 4;
  const n = shape.length;
  const [a, b, c] = [shape[n - 3], shape[n - 2], shape[n - 1]];
  if (n >= 3 && isColour(c) && isSide(a) && isSide(b))
    return { leading: shape.slice(0, n - 3), height: a!, width: b!, channels: c! };
  if (n >= 3 && isColour(a) && isSide(b) && isSide(c))
    return { leading: shape.slice(0, n - 3), height: b!, width: c!, channels: a! };
  if (n >= 2 && isSide(b) && isSide(c)) return { leading: shape.slice(0, n - 2), height: b!, width: c!, channels: 1 };
  return null;
}

/** Places from 0 on, at most `most` of them, evenly spread. */
function spread(count: number, most: number): number[] {
  if (count <= most) return Array.from({ length: count }, (_, i) => i);
  return Array.from({ length: most }, (_, i) => Math.floor(((count - 1) * i) / (most - 1)));
}

function checkLeading(leading: number[], shape: number[]): void {
  if (
    leading.length > shape.length ||
    !leading.every((index, axis) => Number.isInteger(index) && index >= 0 && index < shape[axis]!)
  ) {
    throw new RangeError(`[${leading.join(', ')}] is outside of the shape [${shape.join(', ')}]`);
  }
}

export async function picture(
  tensor: Tensor,
  codec: Codec,
  leading: number[],
  isImage: boolean,
  isRemote: boolean,
): Promise<Picture> {
  checkLeading(leading, tensor.shape);
  if (isImage) return image(tensor, codec, leading);
  if (tensor.shape.length < 2) return line(tensor, codec, isRemote);
  const matrix = matrixOf(tensor, leading);
  // How many lines may be touched depends on how much is read for each.
  const across = matrix.right > matrix.down ? matrix.height : matrix.width;
  const most = smallBytes(isRemote);
  const each = Math.max(tensor.grain, (across * codec.bytes) / codec.elements);
  const isCheap = (matrix.height * matrix.width * codec.bytes) / codec.elements <= most;
  const lines = isCheap ? SIDE : Math.max(1, Math.min(isRemote ? 16 : SIDE, Math.floor((4 * most) / each)));
  const isTurned = matrix.right > matrix.down;
  const rows = spread(matrix.height, isTurned ? SIDE : lines);
  const columns = spread(matrix.width, isTurned ? lines : SIDE);
  const values = new Float32Array(rows.length * columns.length);
  await readMatrix(tensor, codec, matrix, rows, columns, (row, column, value) => {
    values[row * columns.length + column] = Number(value);
  });
  const isWhole = rows.length === matrix.height && columns.length === matrix.width;
  const note = isWhole
    ? ''
    : `${rows.length} of ${matrix.height} rows and ${columns.length} of ${matrix.width} columns, evenly spread`;
  return { kind: 'matrix', height: rows.length, width: columns.length, values, rows, columns, note };
}

/** The least and the greatest value in each of at most 512 parts. */
async function line(tensor: Tensor, codec: Codec, isRemote: boolean): Promise<Picture> {
  const elements = elementsOf(tensor.shape);
  const parts = Math.min(LINE, elements);
  const low = new Float32Array(parts).fill(NaN);
  const high = new Float32Array(parts).fill(NaN);
  const at = Array.from({ length: parts }, (_, i) => Math.floor((elements * i) / parts));
  const add = (part: number, value: number) => {
    if (!(low[part]! <= value)) low[part] = value;
    if (!(high[part]! >= value)) high[part] = value;
  };
  if (tensor.bytes <= smallBytes(isRemote)) {
    const numbers = await readElements(tensor, codec, 0, elements);
    for (let part = 0; part < parts; part++) {
      const end = at[part + 1] ?? elements;
      for (let i = at[part]!; i < end; i++) add(part, Number(numbers[i]));
    }
    return { kind: 'line', low, high, at, note: parts < elements ? `the range of each of ${parts} parts` : '' };
  }
  const few = spread(parts, Math.max(2, Math.min(isRemote ? 16 : parts, Math.floor((64 * 1024 * 1024) / tensor.grain))));
  for (const part of few) {
    for (const value of await readElements(tensor, codec, at[part]!, Math.min(elements, at[part]! + 512)))
      add(part, Number(value));
  }
  const pick = (from: Float32Array) => Float32Array.from(few, (part) => from[part]!);
  return {
    kind: 'line',
    low: pick(low),
    high: pick(high),
    at: few.map((part) => at[part]!),
    note: `samples of 512 elements at ${few.length} places`,
  };
}

async function image(tensor: Tensor, codec: Codec, leading: number[]): Promise<Picture> {
  const found = imageOf(tensor.shape);
  if (!found) throw new RangeError('this shape is no image');
  const { height, width, channels } = found;
  const strides = stridesOf(tensor);
  const first = found.leading.length;
  const isLast =
    tensor.shape.length - first === 3 &&
    tensor.shape[tensor.shape.length - 1] === channels &&
    tensor.shape[first] === height;
  const hasChannels = tensor.shape.length - first === 3;
  const [down, right, deep] = !hasChannels
    ? [strides[first]!, strides[first + 1]!, 0]
    : isLast
      ? [strides[first]!, strides[first + 1]!, strides[first + 2]!]
      : [strides[first + 1]!, strides[first + 2]!, strides[first]!];
  const base = leading.reduce((sum, index, axis) => sum + index * strides[axis]!, 0);
  const span = (height - 1) * down + (width - 1) * right + (channels - 1) * deep + 1;
  if ((span * codec.bytes) / codec.elements > 256 * 1024 * 1024) throw new RangeError('the image is too large');
  const numbers = await readElements(tensor, codec, base, base + span);
  const isBytes = tensor.dtype === 'u8';
  let [low, high] = isBytes ? [0, 255] : [Infinity, -Infinity];
  const at = (y: number, x: number, c: number) => Number(numbers[y * down + x * right + c * deep]);
  if (!isBytes) {
    for (let y = 0; y < height; y++)
      for (let x = 0; x < width; x++)
        for (let c = 0; c < channels; c++) {
          const value = at(y, x, c);
          if (value - value !== 0) continue;
          if (value < low) low = value;
          if (value > high) high = value;
        }
  }
  const rgba = new Uint8ClampedArray(height * width * 4);
  const scale = high > low ? 255 / (high - low) : 0;
  for (let y = 0, to = 0; y < height; y++) {
    for (let x = 0; x < width; x++, to += 4) {
      for (let c = 0; c < 3; c++) rgba[to + c] = (at(y, x, channels < 3 ? 0 : c) - low) * scale;
      rgba[to + 3] = channels === 4 ? (at(y, x, 3) - low) * scale : 255;
    }
  }
  const note = isBytes ? '' : high >= low ? `from ${numberText(low, 4)} (dark) to ${numberText(high, 4)} (light)` : '';
  return { kind: 'image', height, width, rgba, note };
}

/** The first lines and columns, or the first elements if there is one axis. */
export async function firstValues(tensor: Tensor, codec: Codec, leading: number[]): Promise<Values> {
  checkLeading(leading, tensor.shape);
  const text = (value: number | bigint) =>
    typeof value === 'bigint' ? String(value) : numberText(value, Math.min(9, codec.digits));
  const elements = elementsOf(tensor.shape);
  if (tensor.shape.length < 2) {
    const count = Math.min(elements, 64);
    const cells: string[] = [];
    for (const value of await readElements(tensor, codec, 0, count)) cells.push(text(value));
    const rows = [];
    for (let i = 0; i < count; i += 8) rows.push({ name: String(i), cells: cells.slice(i, i + 8) });
    return { columns: Array.from({ length: Math.min(8, count) }, (_, i) => `+${i}`), rows, note: rest(count, elements) };
  }
  const matrix = matrixOf(tensor, leading);
  const rows = spread(Math.min(matrix.height, 10), 10);
  const columns = spread(Math.min(matrix.width, 8), 8);
  const cells = rows.map(() => new Array<string>(columns.length).fill(''));
  if (elements > 0)
    await readMatrix(tensor, codec, matrix, rows, columns, (row, column, value) => (cells[row]![column] = text(value)));
  return {
    columns: columns.map(String),
    rows: rows.map((row, i) => ({ name: String(row), cells: cells[i]! })),
    note: rest(rows.length * columns.length, elements),
  };
}

function rest(count: number, elements: number): string {
  return count < elements ? `The first ${count} of ${elements.toLocaleString('en-US')} elements.` : '';
}
