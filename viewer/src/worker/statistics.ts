// Statistics of numbers that come in pieces, in one pass.
import type { Statistics } from '../shared/protocol.js';
import { numberText } from '../shared/text.js';
import { MEBIBYTE, readElements, type Codec, type Numbers } from './elements.js';
import { elementsOf, type Progress, type Tensor } from './model.js';

/** Bins that are counted, and the most that are shown. */
const FINE = 4096;
const SHOWN = 64;

export class Accumulator {
  private read = 0;
  private nan = 0;
  private infinite = 0;
  private zeros = 0;
  private min = Infinity;
  private max = -Infinity;
  private exact: { min: bigint; max: bigint } | undefined;
  private count = 0;
  private mean = 0;
  private squares = 0;
  /** Whether the numbers are further apart than the greatest float: then there is no histogram. */
  private isTooWide = false;
  private bins: { from: number; width: number; counts: Float64Array } | undefined;

  constructor(private readonly codec: Pick<Codec, 'isInteger' | 'digits'>) {}

  add(numbers: Numbers): void {
    const values = numbers instanceof BigInt64Array || numbers instanceof BigUint64Array ? this.rounded(numbers) : numbers;
    this.read += values.length;
    let [count, sum, min, max, zeros] = [0, 0, Infinity, -Infinity, 0];
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (value - value !== 0) {
        if (value !== value) this.nan++;
        else this.infinite++;
        continue;
      }
      count++;
      sum += value;
      if (value === 0) zeros++;
      if (value < min) min = value;
      if (value > max) max = value;
    }
    this.zeros += zeros;
    if (count === 0) return;
    const mean = Number.isFinite(sum) ? sum / count : min / 2 + max / 2;
    let squares = 0;
    for (let i = 0; i < values.length; i++) {
      const difference = values[i]! - mean;
      if (difference - difference === 0) squares += difference * difference;
    }
    this.merge(count, mean, squares);
    this.min = Math.min(this.min, min);
    this.max = Math.max(this.max, max);
    this.fill(values, min, max);
  }

  /** Integers of 64 bits: their extremes are kept exactly. */
  private rounded(numbers: BigInt64Array | BigUint64Array): Float64Array {
    const out = new Float64Array(numbers.length);
    let { min, max } = this.exact ?? { min: numbers[0] ?? 0n, max: numbers[0] ?? 0n };
    for (let i = 0; i < numbers.length; i++) {
      const value = numbers[i]!;
      if (value < min) min = value;
      if (value > max) max = value;
      out[i] = Number(value);
    }
    if (numbers.length > 0) this.exact = { min, max };
    return out;
  }

  /** Mean and squared differences of two sets together (Chan, Golub and LeVeque, 1979). */
  private merge(count: number, mean: number, squares: number): void {
    const total = this.count + count;
    const difference = mean - this.mean;
    this.squares += squares + ((difference * this.count) / total) * difference * count;
    this.mean += difference * (count / total);
    this.count = total;
  }

  private fill(values: ArrayLike<number>, min: number, max: number): void {
    if (this.isTooWide) return;
    const bins = (this.bins ??= this.begin(min, max));
    // A number outside doubles the range: two bins become one, so that each count stays exact.
    while (min < bins.from || max >= bins.from + FINE * bins.width) {
      const isBelow = min < bins.from;
      const merged = new Float64Array(FINE);
      const shift = isBelow ? FINE / 2 : 0;
      for (let i = 0; i < FINE; i++) merged[shift + (i >> 1)]! += bins.counts[i]!;
      if (isBelow) bins.from -= FINE * bins.width;
      bins.width *= 2;
      bins.counts = merged;
      if (!Number.isFinite(bins.width * FINE + Math.abs(bins.from))) {
        this.isTooWide = true;
        return;
      }
    }
    const { from, width, counts } = bins;
    for (let i = 0; i < values.length; i++) {
      const value = values[i]!;
      if (value - value !== 0) continue;
      counts[Math.min(FINE - 1, Math.floor((value - from) / width))]!++;
    }
  }

  private begin(min: number, max: number) {
    const counts = new Float64Array(FINE);
    if (this.codec.isInteger && max - min < FINE / 2) {
      return { from: min - Math.floor((FINE - (max - min)) / 2), width: 1, counts };
    }
    // A power of two, so that the edges are exact. The range has twice the room that the first piece needs.
    const range = max - min || Math.abs(max) * 2 ** -20 || 1;
    const width = Math.max(
      2 ** (Math.ceil(Math.log2(range)) - 11),
      2 ** -1060,
      Math.abs(max) * 2 ** -50,
      Math.abs(min) * 2 ** -50,
    );
    const unit = 2 ** Math.ceil(Math.log2(width));
    return { from: (Math.floor(min / unit) - FINE / 4) * unit, width: unit, counts };
  }

  private histogram(): Statistics['histogram'] {
    const { bins } = this;
    if (!bins || this.isTooWide) return null;
    let [first, last] = [0, FINE - 1];
    while (first < last && bins.counts[first] === 0) first++;
    while (last > first && bins.counts[last] === 0) last--;
    let group = 1;
    while (Math.floor(last / group) - Math.floor(first / group) + 1 > SHOWN) group *= 2;
    const start = Math.floor(first / group) * group;
    const counts = new Array<number>(Math.floor((last - start) / group) + 1).fill(0);
    for (let i = first; i <= last; i++) counts[Math.floor((i - start) / group)]! += bins.counts[i]!;
    return { from: bins.from + start * bins.width, width: bins.width * group, counts };
  }

  result(elements: number, of: string | null): Statistics {
    const text = (value: number, exact: bigint | undefined) =>
      this.count === 0 ? null : exact === undefined ? numberText(value, this.codec.digits) : String(exact);
    return {
      elements,
      read: this.read,
      nan: this.nan,
      infinite: this.infinite,
      zeros: this.zeros,
      min: text(this.min, this.exact?.min),
      max: text(this.max, this.exact?.max),
      mean: this.count === 0 ? NaN : this.mean,
      deviation: this.count === 0 ? NaN : Math.sqrt(this.squares / this.count),
      histogram: this.histogram(),
      of,
    };
  }
}

/** A tensor of at most this many bytes is read as a whole; of a longer one only a sample, unless all of it is asked for. */
export function smallBytes(isRemote: boolean): number {
  return (isRemote ? 2 : 16) * MEBIBYTE;
}

const SAMPLES = 32;
/** What a sample may make the reader read. */
const MOST = 64 * MEBIBYTE;

export async function statisticsOf(
  tensor: Tensor,
  codec: Codec,
  all: boolean,
  isRemote: boolean,
  progress: Progress,
): Promise<Statistics> {
  const elements = elementsOf(tensor.shape);
  const accumulator = new Accumulator(codec);
  for (const [start, end] of all || tensor.bytes <= smallBytes(isRemote) ? pieces() : samples()) {
    accumulator.add(await readElements(tensor, codec, start, end));
    await progress(end, elements);
  }
  return accumulator.result(elements, codec.of);

  function* pieces(): Generator<[number, number]> {
    // Chunks that are verified as a whole are not read twice.
    const bytes = Math.max(1, Math.round((4 * MEBIBYTE) / tensor.grain)) * tensor.grain;
    const step = Math.max(codec.elements, Math.floor(bytes / codec.bytes) * codec.elements);
    for (let at = 0; at < elements; at += step) yield [at, Math.min(elements, at + step)];
  }

  function* samples(): Generator<[number, number]> {
    const count = Math.max(1, Math.min(isRemote ? 8 : SAMPLES, Math.floor(MOST / tensor.grain)));
    const length = Math.floor(((isRemote ? 64 : 128) * 1024) / codec.bytes) * codec.elements;
    for (let i = 0; i < count; i++) {
      const place = count === 1 ? 0 : Math.floor(((elements - length) * i) / (count - 1));
      const start = Math.floor(place / codec.elements) * codec.elements;
      yield [start, Math.min(elements, start + length)];
    }
  }
}
