// Messages: one value as one item (sections 1 to 4).
import { plainBytes } from './bytes.js';
import { Cursor, parseItem, type Item } from './cbor.js';
import { fail } from './errors.js';
import { Budget } from './payload.js';
import { toValue, type ValueOptions } from './value.js';

export interface DecodeOptions extends ValueOptions {
  /** How many levels of nesting there may be: 128. */
  depth?: number;
  /**
   * How many bytes the rows of columns may take: 64 MiB and 256 times the message, and for those of dicts 64 MiB and 1,024
   * times the message, if this is not given.
   */
  memory?: number;
}

/** Decodes one message. Bytes and tensors may share memory with the input. */
export function decode(bytes: Uint8Array, options: DecodeOptions = {}): unknown {
  const cursor = new Cursor(plainBytes(bytes));
  const value = decodeNext(cursor, options);
  if (cursor.left > 0) fail('data', `${cursor.left} bytes after the value`, cursor.at);
  return value;
}

/** Decodes messages that follow each other. */
export function* decodeSequence(bytes: Uint8Array, options: DecodeOptions = {}): Generator<unknown, void, void> {
  const cursor = new Cursor(plainBytes(bytes));
  while (cursor.left > 0) yield decodeNext(cursor, options);
}

function decodeNext(cursor: Cursor, options: DecodeOptions): unknown {
  const start = cursor.at;
  const item: Item = parseItem(cursor, { depth: options.depth ?? 128 });
  const budget = new Budget(cursor.at - start, options.memory);
  return toValue(item, { budget, options });
}
