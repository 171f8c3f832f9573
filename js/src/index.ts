export { TenarcError, type ErrorKind } from './errors.js';
export { decode, decodeSequence, type DecodeOptions } from './message.js';
export { Some, Simple, Tensor, Typed, type Order } from './tensor.js';
export type { TypedArray } from './dtype.js';
export type { ValueOptions } from './value.js';
