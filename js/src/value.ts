// Items as JavaScript values.
import { NULL, TAG, UNDEFINED, type Item, type TagItem } from './cbor.js';
import { allRows, numberItems, readGroups } from './columns.js';
import { typedArray, toFloat32, type TypedArray } from './dtype.js';
import { fail } from './errors.js';
import {
  bignum,
  checkBools,
  complex,
  numbersAsElements,
  packed,
  payloadBytes,
  plainNumber,
  reference,
  tensorInfo,
  typedItem,
  type Context,
  type PackedInfo,
  type Payload,
  type TensorInfo,
} from './payload.js';
import { Entries, Simple, Some, Tensor, Typed } from './tensor.js';

export interface ValueOptions {
  /**
   * `auto`: a map is an object if its keys are different texts that an object keeps in their order, and otherwise a `Map`.
   * `map`: each map is a `Map`. With both, a map in which a key occurs twice is `Entries`.
   */
  maps?: 'auto' | 'map';
  /** Gives values with a type (7.2) as `Typed`. Otherwise they are read as if they had none. */
  types?: boolean;
}

export interface ValueContext extends Context {
  readonly options: ValueOptions;
}

export function bytesOf(payload: Payload, context: Context): Uint8Array {
  return payloadBytes(payload, context) ?? fail('data', 'a buffer was not read');
}

export function toTensor(info: TensorInfo, context: Context): Tensor {
  const bytes = bytesOf(info.payload, context);
  if (info.dtype === 'bool') checkBools(bytes);
  return new Tensor(info.dtype, info.shape, info.order, bytes);
}

/** A packed sequence as a typed array. */
function toSequence(info: PackedInfo, context: Context): TypedArray | Tensor {
  const bytes = bytesOf(info.payload, context);
  if (info.dtype === 'f16') return toFloat32('f16', bytes);
  if (info.dtype === 'f128') return new Tensor('f128', [bytes.length / 16], 'C', bytes);
  return typedArray(info.dtype, bytes);
}

export function toValue(item: Item, context: ValueContext): unknown {
  switch (item.type) {
    case 'int':
    case 'float':
    case 'text':
    case 'bytes':
      return item.value;
    case 'simple':
      if (item.value === 20 || item.value === 21) return item.value === 21;
      return item.value === NULL || item.value === UNDEFINED ? null : new Simple(item.value);
    case 'array':
      return item.items.map((inner) => toValue(inner, context));
    case 'map':
      return toMap(item.items, context);
    case 'tensor':
      return new Tensor(item.dtype, item.shape, 'C', item.bytes);
    case 'tag':
      return tagToValue(item, context);
  }
}

function tagToValue(item: TagItem, context: ValueContext): unknown {
  const { tag, content, offset } = item;
  switch (tag) {
    case TAG.BIGNUM:
    case TAG.NEGATIVE_BIGNUM:
      return bignum(item);
    case 25:
    case 29:
      return fail('data', `tag ${tag} refers to values elsewhere in the input`, offset);
    case TAG.TENSOR:
    case TAG.TENSOR_F:
    case TAG.TENS:
      return toTensor(tensorInfo(item, context), context);
    case TAG.COMPLEX: {
      const { dtype, payload } = complex(item);
      const bytes = payload.bytes!;
      return new Tensor(dtype, [bytes.length / (dtype === 'c64' ? 8 : 16)], 'C', bytes);
    }
    case TAG.COLUMNS:
      return allRows(readGroups(item, context), context).map((row) => toValue(row, context));
    case TAG.SOME:
      return isMissing(content) ? new Some(toValue(content, context)) : toValue(content, context);
    case TAG.TYPE: {
      const { name, parameters, item: inner } = typedItem(item);
      const value = toValue(inner, context);
      return context.options.types ? new Typed(name, parameters, value) : value;
    }
    case TAG.BUFFER: {
      const target = reference(item, context);
      if (target.kind === 'tensor') return toTensor(target.tensor, context);
      return target.kind === 'bytes' ? bytesOf(target.payload, context) : toSequence(target.packed, context);
    }
  }
  const sequence = packed(item);
  return sequence ? toSequence(sequence, context) : toValue(content, context);
}

/** Whether "some" of this item needs the tag (1.1). */
function isMissing(item: Item): boolean {
  if (item.type === 'tag') return item.tag === TAG.SOME;
  return item.type === 'simple' && (item.value === NULL || item.value === UNDEFINED);
}

/** Objects would move keys such as "7" to the front, and `__proto__` would set the prototype. */
function isSafeKey(item: Item): boolean {
  if (item.type !== 'text') return false;
  const first = item.value.charCodeAt(0);
  const isDigit = first >= 48 && first <= 57;
  return !(isDigit && /^(0|[1-9][0-9]*)$/.test(item.value)) && item.value !== '__proto__';
}

function toMap(items: Item[], context: ValueContext): unknown {
  let asObject = context.options.maps !== 'map';
  for (let i = 0; asObject && i < items.length; i += 2) asObject = isSafeKey(items[i]!);
  const values = items.map((item) => toValue(item, context));
  const count = values.length / 2;
  if (asObject) {
    const out: Record<string, unknown> = {};
    let isDouble = false;
    for (let i = 0; i < values.length; i += 2) {
      const key = values[i] as string;
      isDouble ||= Object.hasOwn(out, key);
      out[key] = values[i + 1];
    }
    if (!isDouble) return out;
  }
  const entries = new Entries();
  for (let i = 0; i < values.length; i += 2) entries.push([values[i], values[i + 1]]);
  const map = new Map(entries);
  return map.size === count ? map : entries;
}

/**
 * What an item is as a tensor: a tensor, a packed sequence, or an array of numbers (4). Undefined if it is something else.
 * Columns are not seen here.
 */
export function asTensor(item: Item, context: Context): TensorInfo | undefined {
  switch (item.type) {
    case 'tensor':
      return { dtype: item.dtype, shape: item.shape, order: 'C', payload: { bytes: item.bytes } };
    case 'array': {
      if (item.items.some((one) => plainNumber(one) === undefined)) return undefined;
      const { dtype, payload } = numbersAsElements(item.items, item.offset);
      return { dtype, shape: [item.items.length], order: 'C', payload };
    }
    case 'tag':
      break;
    default:
      return undefined;
  }
  const { tag } = item;
  if (tag === TAG.TENSOR || tag === TAG.TENSOR_F || tag === TAG.TENS) return tensorInfo(item, context);
  if (tag === TAG.TYPE) return asTensor(typedItem(item).item, context);
  let sequence: PackedInfo | undefined;
  if (tag === TAG.BUFFER) {
    const target = reference(item, context);
    if (target.kind === 'tensor') return target.tensor;
    if (target.kind === 'bytes') return undefined;
    sequence = target.packed;
  } else {
    sequence = tag === TAG.COMPLEX ? complex(item) : packed(item);
  }
  if (!sequence) return isSkipped(tag) ? asTensor(item.content, context) : undefined;
  const { dtype, payload } = sequence;
  const size = payload.bytes ? payload.bytes.length : Number(context.buffers![payload.buffer!]);
  return { dtype, shape: [size / widthOf(dtype)], order: 'C', payload };
}

function widthOf(dtype: string): number {
  return { c64: 8, c128: 16, f128: 16 }[dtype] ?? Number(dtype.slice(1)) / 8;
}

/** Whether a tag has no meaning, so that it and its content are the same. */
export function isSkipped(tag: number | bigint): boolean {
  return ![2, 3, 24, 25, 29, TAG.COLUMNS].includes(Number(tag));
}

/** The elements of a packed sequence as items, for paths to them. */
export function sequenceItems(info: PackedInfo, context: Context): Item[] {
  return numberItems(info.dtype, bytesOf(info.payload, context));
}
