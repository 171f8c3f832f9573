import { toFloat32, typedArray, type TypedArray } from './dtype.js';

export type Order = 'C' | 'F';

/** A tensor with its elements. */
export class Tensor {
  /** The name of the element type, such as `f32`; other names than those of the format are possible. */
  readonly dtype: string;
  readonly shape: number[];
  /** `C`: the last index changes fastest. `F`: the first one does. */
  readonly order: Order;
  /** The elements, little-endian and without gaps. It may share memory with the input. */
  readonly bytes: Uint8Array;

  constructor(dtype: string, shape: number[], order: Order, bytes: Uint8Array) {
    this.dtype = dtype;
    this.shape = shape;
    this.order = order;
    this.bytes = bytes;
  }

  /**
   * The elements as a typed array. `f16` and `bf16` are their bits as u16, complex elements are pairs of floats, and all
   * elements that JavaScript has no array for are bytes: see `toFloat32`.
   */
  get data(): TypedArray {
    return typedArray(this.dtype, this.bytes);
  }

  /** The elements as floats of 32 bits, rounded to the nearest. Complex elements are pairs of floats. */
  toFloat32(): Float32Array {
    return toFloat32(this.dtype, this.bytes);
  }
}

/** "Some" of a value that is null, or of another `Some`: `some none` is not the same as `none`. */
export class Some {
  readonly value: unknown;
  constructor(value: unknown) {
    this.value = value;
  }
}

/** A simple value (RFC 8949, 3.3) that has no meaning in this format. */
export class Simple {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

/** A map in which a key occurs twice, as its pairs of keys and values in order. */
export class Entries extends Array<[unknown, unknown]> {}

/** A value with a type (7.2), which is only given if it is asked for with the option `types`. */
export class Typed {
  readonly name: string;
  readonly parameters: (number | bigint | string)[];
  readonly value: unknown;
  constructor(name: string, parameters: (number | bigint | string)[], value: unknown) {
    this.name = name;
    this.parameters = parameters;
    this.value = value;
  }
}
