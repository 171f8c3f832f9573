// Columns (7): a tree that is checked while it is read from an item, and the rows that it stands for, as items.
import { MAX_SAFE, decodeText, encodeText, viewOf } from './bytes.js';
import {
  NULL,
  TAG,
  UNDEFINED,
  float,
  halfToNumber,
  isTypedArray,
  isUint,
  type Item,
  type TagItem,
  type TextItem,
} from './cbor.js';
import { bitsOf, isIntegerType, isNumberType, leastType, payloadLength, typedArray } from './dtype.js';
import { fail } from './errors.js';
import {
  checkBools,
  checkSize,
  packed,
  payloadBytes,
  payloadSize,
  reference,
  tensorInfo,
  typeParts,
  type Context,
  type Payload,
} from './payload.js';

const MAX_GROUP_ROWS = 65536;
const MAX_DICT_ROWS = 65536;
const NAME_STEP = 256;
/** About what an array, a map or a tensor takes in memory beside its elements. */
const ROW_BYTES = 64;

/**
 * The number of rows is undefined where it depends on lengths or bits in a buffer that was not read: then only the form of the
 * column was checked.
 */
type Rows = number | undefined;

export type Column =
  | { kind: 'numbers'; rows: Rows; dtype: string; data: Payload }
  | { kind: 'tensors'; rows: Rows; dtype: string; shape: number[]; data: Payload }
  | { kind: 'structs'; rows: Rows; names: TextItem[]; fields: Map<string, Column> }
  | { kind: 'unit'; rows: Rows }
  | { kind: 'bool'; rows: Rows; data: Payload }
  | { kind: 'text' | 'bytes'; rows: Rows; lengths: Lengths; data: Payload }
  | { kind: 'option' | 'present'; rows: Rows; data: Payload; column: Column; plain?: boolean }
  | { kind: 'list'; rows: Rows; lengths: Lengths; column: Column }
  | { kind: 'array'; rows: Rows; size: number; column: Column }
  | { kind: 'tuple'; rows: Rows; columns: Column[] }
  | { kind: 'map'; rows: Rows; lengths: Lengths; keys: Column; values: Column }
  | { kind: 'enum'; rows: Rows; codes: Payload; dtype: string; names: TextItem[]; columns: (Column | null)[] }
  // Not in files: what is in one variant, and missing in rows of the others. Paths lead to it.
  | { kind: 'variant'; rows: Rows; codes: Payload; dtype: string; code: number; column: Column }
  | { kind: 'dict'; rows: Rows; codes: Payload; dtype: string; size: number; column: Column }
  | { kind: 'type'; rows: Rows; name: string; parameters: (number | bigint | string)[]; column: Column; item: Item }
  | { kind: 'rows'; rows: Rows; items: Item[] };

/** One length for all rows, or the length of each, if they were read. */
interface Lengths {
  each?: number;
  all?: ArrayLike<number>;
  data?: Payload;
  sum: Rows;
}

export interface Group {
  rows: number;
  column: Column;
}

/** The pairs of rows and column in TCOL. Their columns are not read yet. */
export function groupItems(item: TagItem): { rows: number; item: Item }[] {
  const { content, offset } = item;
  if (content.type !== 'array' || content.items.length % 2 !== 0) {
    return fail('data', 'columns (TCOL) must be around an array of pairs', offset);
  }
  const out = [];
  for (let i = 0; i < content.items.length; i += 2) {
    const rows = content.items[i]!;
    if (!isUint(rows)) return fail('data', 'the rows of a group must be an unsigned integer', rows.offset);
    if (rows.value > MAX_GROUP_ROWS) fail('data', `a group of ${rows.value} rows`, rows.offset);
    out.push({ rows: Number(rows.value), item: content.items[i + 1]! });
  }
  return out;
}

export function readGroups(item: TagItem, context: Context): Group[] {
  return groupItems(item).map(({ rows, item }) => ({ rows, column: readColumn(item, rows, context) }));
}

function multiplied(a: Rows, b: number, offset: number): Rows {
  if (a === undefined) return undefined;
  return a * b > MAX_SAFE ? fail('data', 'the number of rows overflows', offset) : a * b;
}

export function readColumn(item: Item, rows: Rows, context: Context, inStruct = false): Column {
  if (item.type === 'map') return readStructs(item.items, item.definite, rows, context, item.offset);
  if (item.type === 'tag') return readTagged(item, rows, context);
  const { offset } = item;
  if (item.type !== 'array' || !item.definite)
    return fail('data', 'a column must be a tag, a map or an array of definite length', offset);
  const parts = item.items;
  const kind = parts[0];
  if (kind?.type !== 'text' || !kind.definite) return fail('data', 'a column must begin with its kind', offset);
  const length = (expected: number) => {
    if (parts.length !== expected) fail('data', `a column of kind ${kind.value} must be an array of ${expected}`, offset);
  };
  switch (kind.value) {
    case 'unit':
      length(1);
      if (rows) context.budget.countRows(rows);
      return { kind: 'unit', rows };
    case 'bool':
      length(2);
      return { kind: 'bool', rows, data: readBits(parts[1]!, rows, context).data };
    case 'text':
    case 'bytes': {
      length(3);
      const lengths = readLengths(parts[1]!, rows, context, true);
      if (lengths.each !== undefined && rows) context.budget.countRows(rows);
      return { kind: kind.value, rows, lengths, data: readString(kind.value, parts[2]!, lengths, context) };
    }
    case 'option':
    case 'present': {
      length(3);
      if (kind.value === 'present' && !inStruct) fail('data', 'optional fields (present) outside a struct', offset);
      const { data, ones } = readBits(parts[1]!, rows, context);
      return { kind: kind.value, rows, data, column: readColumn(parts[2]!, ones, context) };
    }
    case 'list': {
      length(3);
      const lengths = readLengths(parts[1]!, rows, context, false);
      const all = lengths.all;
      if (all && all.length > 0 && sameLengths(all)) fail('data', 'a list whose lengths are all equal', offset);
      return { kind: 'list', rows, lengths, column: readColumn(parts[2]!, lengths.sum, context) };
    }
    case 'array': {
      length(3);
      const size = smallNumber(parts[1]!, 'the length of an array');
      if (size === 0 && rows) context.budget.countRows(rows);
      return { kind: 'array', rows, size, column: readColumn(parts[2]!, multiplied(rows, size, offset), context) };
    }
    case 'tuple': {
      length(2);
      const columns = arrayParts(parts[1]!).map((column) => readColumn(column, rows, context));
      if (columns.length === 0) fail('data', 'a tuple without columns', offset);
      if (isUniformTuple(columns)) fail('data', 'a tuple whose columns are an array', offset);
      return { kind: 'tuple', rows, columns };
    }
    case 'map': {
      length(4);
      const lengths = readLengths(parts[1]!, rows, context, true);
      if (lengths.each === 0 && rows) context.budget.countRows(rows);
      const keys = readColumn(parts[2]!, lengths.sum, context);
      return { kind: 'map', rows, lengths, keys, values: readColumn(parts[3]!, lengths.sum, context) };
    }
    case 'enum':
      return readEnum(parts, rows, context, offset);
    case 'dict':
      length(4);
      return readDict(parts, rows, context, offset);
    case 'type': {
      length(4);
      const { name, parameters } = typeParts(parts[1], parts[2], offset);
      return { kind: 'type', rows, name, parameters, column: readColumn(parts[3]!, rows, context), item };
    }
    case 'rows': {
      length(2);
      const items = parts[1]!;
      if (items.type !== 'array' || !items.definite)
        return fail('data', 'the rows of a column must be an array of definite length', offset);
      if (rows !== undefined && items.items.length !== rows)
        fail('data', `${items.items.length} items for ${rows} rows`, offset);
      items.items.forEach(refuseReferences);
      return { kind: 'rows', rows, items: items.items };
    }
    default:
      return fail('data', `there is no kind of columns ${JSON.stringify(kind.value)}`, offset);
  }
}

function arrayParts(item: Item): Item[] {
  return item.type === 'array' && item.definite
    ? item.items
    : fail('data', 'an array of definite length was expected in a column', item.offset);
}

function smallNumber(item: Item, what: string): number {
  if (!isUint(item) || item.value > MAX_SAFE) return fail('data', `${what} must be an unsigned integer`, item.offset);
  return Number(item.value);
}

function refuseReferences(item: Item): void {
  if (item.type === 'tag') {
    if (item.tag === TAG.BUFFER) fail('data', 'a reference to a buffer in rows that are stored as items', item.offset);
    refuseReferences(item.content);
  } else if (item.type === 'array' || item.type === 'map') {
    item.items.forEach(refuseReferences);
  }
}

function readStructs(items: Item[], definite: boolean, rows: Rows, context: Context, offset: number): Column {
  if (!definite) fail('data', 'a map of indefinite length in a column', offset);
  const names: TextItem[] = [];
  const fields = new Map<string, Column>();
  if (items.length === 0 && rows) context.budget.countRows(rows);
  for (let i = 0; i < items.length; i += 2) {
    const name = checkName(items[i]!, rows, context);
    if (fields.has(name.value)) fail('data', `the name ${JSON.stringify(name.value)} occurs twice`, name.offset);
    names.push(name);
    fields.set(name.value, readColumn(items[i + 1]!, rows, context, true));
  }
  return { kind: 'structs', rows, names, fields };
}

/** A name of a field or variant, which is repeated in each row. */
function checkName(item: Item, rows: Rows, context: Context): TextItem {
  if (item.type !== 'text' || !item.definite) return fail('data', 'a name must be a text of definite length', item.offset);
  const steps = Math.floor(item.size / NAME_STEP);
  if (steps && rows) context.budget.countRows(rows * steps);
  return item;
}

function readTagged(item: TagItem, rows: Rows, context: Context): Column {
  const { tag, offset } = item;
  if (tag === TAG.TENSOR || tag === TAG.TENSOR_F || tag === TAG.TENS) {
    if (!hasDefiniteParts(item.content)) fail('data', 'an indefinite length in a column', offset);
    if (tag !== TAG.TENS && !hasTypedElements(item.content))
      fail('data', 'a tensor in a column must be around a typed array', offset);
    return tensors(tensorInfo(item, context), rows, context, offset);
  }
  if (tag === TAG.BUFFER) {
    const found = reference(item, context);
    if (found.kind === 'tensor') return tensors(found.tensor, rows, context, offset);
    if (found.kind === 'bytes') fail('data', 'a reference to bytes in place of a column', offset);
  }
  const { dtype, data } = readNumbers(item, rows, context);
  return { kind: 'numbers', rows, dtype, data };
}

function hasDefiniteParts(item: Item): boolean {
  if (item.type === 'array') return item.definite && item.items.every(hasDefiniteParts);
  if (item.type === 'bytes' || item.type === 'text') return item.definite;
  return item.type === 'tag' ? hasDefiniteParts(item.content) : true;
}

function hasTypedElements(content: Item): boolean {
  return content.type === 'array' && content.items.length === 2 && isTypedArray(content.items[1]!);
}

function tensors(
  tensor: { dtype: string; shape: number[]; order: string; payload: Payload },
  rows: Rows,
  context: Context,
  offset: number,
): Column {
  const { dtype, shape, payload } = tensor;
  if (tensor.order !== 'C') fail('data', 'a column of tensors must have order C', offset);
  if (shape.length === 0 || (rows !== undefined && shape[0] !== rows)) {
    fail('data', `a column of tensors with the shape [${shape}] for ${rows} rows`, offset);
  }
  const row = shape.slice(1);
  const bits = bitsOf(dtype);
  if (bits !== undefined) {
    const elements = row.reduce((product, dimension) => product * dimension, 1);
    if ((elements * bits) % 8 !== 0) fail('data', `a row of ${dtype} is not a whole number of bytes`, offset);
    if (elements === 0 && rows) context.budget.countRows(rows);
  } else if (rows) {
    const size = payloadSize(payload, context);
    if (size % BigInt(rows) !== 0n) fail('data', `${size} bytes cannot be cut into ${rows} equal rows`, offset);
    if (size === 0n) context.budget.countRows(rows);
  }
  const bytes = dtype === 'bool' ? payloadBytes(payload, context) : undefined;
  if (bytes) checkBools(bytes, offset);
  return { kind: 'tensors', rows, dtype, shape: row, data: payload };
}

/** A typed array, or a reference in its place. */
function readNumbers(item: Item, rows: Rows, context: Context): { dtype: string; data: Payload } {
  let found: { dtype: string; payload: Payload } | undefined;
  if (item.type === 'tag' && item.tag === TAG.BUFFER) {
    const target = reference(item, context);
    if (target.kind === 'sequence') found = target.packed;
  } else if (item.type === 'tag' && isTypedArray(item)) {
    if (!hasDefiniteParts(item)) fail('data', 'an indefinite length in a column', item.offset);
    found = item.tag === TAG.COMPLEX ? undefined : packed(item);
  }
  if (!found || !isNumberType(found.dtype))
    return fail('data', 'a typed array of numbers was expected in a column', item.offset);
  if (rows !== undefined) checkSize(found.payload, found.dtype, [rows], context, item.offset);
  return { dtype: found.dtype, data: found.payload };
}

function readBits(item: Item, rows: Rows, context: Context): { data: Payload; ones: Rows } {
  const data = readBytes(item, context);
  if (rows === undefined) return { data, ones: undefined };
  const size = Math.ceil(rows / 8);
  if (payloadSize(data, context) !== BigInt(size)) {
    fail('data', `${payloadSize(data, context)} bytes of bits for ${rows} rows`, item.offset);
  }
  const bytes = payloadBytes(data, context);
  if (!bytes) return { data, ones: undefined };
  if (rows % 8 && bytes[size - 1]! >> (rows % 8)) fail('data', 'unused bits are not 0', item.offset);
  let ones = 0;
  for (let byte of bytes) for (; byte; byte &= byte - 1) ones++;
  return { data, ones };
}

function readBytes(item: Item, context: Context): Payload {
  if (item.type === 'bytes' && item.definite) return { bytes: item.value };
  if (item.type === 'tag' && item.tag === TAG.BUFFER) {
    const target = reference(item, context);
    if (target.kind === 'bytes') return target.payload;
  }
  return fail('data', 'a byte string was expected in a column', item.offset);
}

function readString(kind: 'text' | 'bytes', item: Item, lengths: Lengths, context: Context): Payload {
  let data: Payload;
  if (kind === 'text' && item.type !== 'tag') {
    if (item.type !== 'text' || !item.definite) return fail('data', 'a text was expected in a column', item.offset);
    data = { bytes: encodeText(item.value) };
  } else {
    data = readBytes(item, context);
  }
  if (lengths.sum === undefined) return data;
  if (payloadSize(data, context) !== BigInt(lengths.sum)) {
    fail('data', `${payloadSize(data, context)} bytes for rows of ${lengths.sum} bytes`, item.offset);
  }
  const bytes = payloadBytes(data, context);
  if (kind === 'text' && bytes) {
    decodeText(bytes, item.offset);
    checkCuts(bytes, lengths, item.offset);
  }
  return data;
}

/** Each row is UTF-8 by itself if all rows together are, and no cut is in front of a continuation byte. */
function checkCuts(bytes: Uint8Array, lengths: Lengths, offset: number): void {
  if (lengths.each === 0) return;
  let at = 0;
  for (let i = 0; at < bytes.length; i++) {
    if ((bytes[at]! & 0xc0) === 0x80) fail('data', 'a row of texts is not UTF-8', offset);
    at += lengths.each ?? lengths.all![i]!;
  }
}

function readLengths(item: Item, rows: Rows, context: Context, canBeOne: boolean): Lengths {
  if (canBeOne && isUint(item)) {
    const each = smallNumber(item, 'a length');
    return { each, sum: multiplied(rows, each, item.offset) };
  }
  const { dtype, data } = readNumbers(item, rows, context);
  if (dtype[0] !== 'u') fail('data', `lengths of type ${dtype}`, item.offset);
  const bytes = payloadBytes(data, context);
  if (!bytes) return { data, sum: undefined };
  const values = typedArray(dtype, bytes);
  const all = values instanceof BigUint64Array ? Array.from(values, Number) : (values as ArrayLike<number>);
  let sum = 0;
  for (let i = 0; i < all.length; i++) {
    sum += all[i]!;
    if (sum > MAX_SAFE) fail('data', 'the sum of lengths overflows', item.offset);
  }
  return { all, data, sum };
}

function sameLengths(all: ArrayLike<number>): boolean {
  for (let i = 1; i < all.length; i++) if (all[i] !== all[0]) return false;
  return true;
}

function readEnum(parts: Item[], rows: Rows, context: Context, offset: number): Column {
  if (parts.length !== 3 && parts.length !== 4) fail('data', 'a column of kind enum must be an array of 3 or 4', offset);
  const { dtype, data } = readNumbers(parts[1]!, rows, context);
  if (dtype !== 'u8' && dtype !== 'u16') fail('data', `codes of type ${dtype}`, offset);
  const names = arrayParts(parts[2]!).map((name) => checkName(name, undefined, context));
  const distinct = new Set(names.map((name) => name.value));
  if (distinct.size !== names.length) fail('data', 'two variants have one name', offset);
  const bytes = payloadBytes(data, context);
  let counts: number[] | undefined;
  if (bytes) {
    counts = names.map(() => 0);
    for (const code of typedArray(dtype, bytes) as Uint8Array) {
      if (code >= names.length) fail('data', `code ${code} of ${names.length} variants`, offset);
      counts[code]!++;
    }
    names.forEach((name, i) => checkName(name, counts![i], context));
  }
  if (parts.length === 3) return { kind: 'enum', rows, codes: data, dtype, names, columns: names.map(() => null) };
  const columnItems = arrayParts(parts[3]!);
  if (columnItems.length !== names.length)
    fail('data', `${columnItems.length} columns for ${names.length} variants`, offset);
  const columns = columnItems.map((item, i) =>
    item.type === 'simple' && item.value === NULL ? null : readColumn(item, counts?.[i], context),
  );
  return { kind: 'enum', rows, codes: data, dtype, names, columns };
}

function readDict(parts: Item[], rows: Rows, context: Context, offset: number): Column {
  const { dtype, data } = readNumbers(parts[1]!, rows, context);
  const size = smallNumber(parts[2]!, 'the number of rows of a dict');
  if (size > MAX_DICT_ROWS) fail('data', `a dict of ${size} rows`, offset);
  if (dtype !== (size <= 256 ? 'u8' : 'u16')) fail('data', `codes of type ${dtype} for a dict of ${size} rows`, offset);
  const column = readColumn(parts[3]!, size, context);
  let inner = column;
  while (inner.kind === 'type') inner = inner.column;
  if (inner.kind === 'dict') fail('data', 'a dict in a dict', offset);
  const bytes = payloadBytes(data, context);
  if (bytes) {
    let next = 0;
    for (const code of typedArray(dtype, bytes) as Uint8Array) {
      if (code > next) fail('data', `code ${code} before code ${next}`, offset);
      if (code === next) next++;
    }
    if (next !== size) fail('data', `${next} of ${size} rows of a dict occur`, offset);
  }
  return { kind: 'dict', rows, codes: data, dtype, size, column };
}

/** The shape of a uniform column, and the type of its elements; undefined if it is not uniform. */
function uniform(column: Column): { shape: number[]; dtype: string } | undefined {
  if (column.kind === 'numbers') return { shape: [], dtype: column.dtype };
  if (column.kind === 'bool') return { shape: [], dtype: 'bool' };
  if (column.kind !== 'array') return undefined;
  const inner = uniform(column.column);
  return inner && { shape: [column.size, ...inner.shape], dtype: inner.dtype };
}

function isUniformTuple(columns: Column[]): boolean {
  const all = columns.map(uniform);
  const first = all[0];
  if (!first || !all.every((one) => one && sameShape(one.shape, first.shape))) return false;
  return leastType(all.map((one) => one!.dtype)) !== undefined;
}

export function sameShape(a: number[], b: number[]): boolean {
  return a.length === b.length && a.every((dimension, i) => dimension === b[i]);
}

export function isBit(bits: Uint8Array, i: number): boolean {
  return ((bits[i >> 3]! >> (i & 7)) & 1) === 1;
}

const NOWHERE = 0;
export const NULL_ITEM: Item = { type: 'simple', value: NULL, offset: NOWHERE };
const TRUE_ITEM: Item = { type: 'simple', value: 21, offset: NOWHERE };
const FALSE_ITEM: Item = { type: 'simple', value: 20, offset: NOWHERE };

function arrayItem(items: Item[]): Item {
  return { type: 'array', items, definite: true, offset: NOWHERE };
}

function mapItem(items: Item[]): Item {
  return { type: 'map', items, definite: true, offset: NOWHERE };
}

/** "Some" of an item (1.1). */
function someItem(item: Item): Item {
  const needsMark =
    (item.type === 'simple' && (item.value === NULL || item.value === UNDEFINED)) ||
    (item.type === 'tag' && item.tag === TAG.SOME);
  return needsMark ? { type: 'tag', tag: TAG.SOME, content: item, offset: NOWHERE } : item;
}

/** The rows of a column whose buffers were read. A field that a row does not have is undefined. */
export function rowItems(column: Column, context: Context): (Item | undefined)[] {
  const rows = column.rows!;
  const bytes = (payload: Payload) => payloadBytes(payload, context)!;
  const items = (inner: Column) => rowItems(inner, context) as Item[];
  switch (column.kind) {
    case 'numbers':
      return numberItems(column.dtype, bytes(column.data));
    case 'tensors': {
      context.budget.countRowBytes(rows * ROW_BYTES);
      const all = bytes(column.data);
      const { dtype, shape } = column;
      const size = rows === 0 ? 0 : all.length / rows;
      return Array.from({ length: rows }, (_, i) => ({
        type: 'tensor',
        dtype,
        shape,
        bytes: all.subarray(i * size, (i + 1) * size),
        offset: NOWHERE,
      }));
    }
    case 'structs': {
      context.budget.countRowBytes(rows * (ROW_BYTES + 16 * column.names.length));
      const fields = column.names.map((name) => ({ name, rows: rowItems(column.fields.get(name.value)!, context) }));
      return Array.from({ length: rows }, (_, i) => {
        const entries: Item[] = [];
        for (const field of fields) {
          const value = field.rows[i];
          if (value) entries.push(field.name, value);
        }
        return mapItem(entries);
      });
    }
    case 'unit':
      return new Array<Item>(rows).fill(NULL_ITEM);
    case 'bool': {
      const bits = bytes(column.data);
      return Array.from({ length: rows }, (_, i) => (isBit(bits, i) ? TRUE_ITEM : FALSE_ITEM));
    }
    case 'text':
    case 'bytes': {
      const all = bytes(column.data);
      let at = 0;
      return Array.from({ length: rows }, (_, i): Item => {
        const value = all.subarray(at, (at += lengthOf(column.lengths, i)));
        return column.kind === 'bytes'
          ? { type: 'bytes', value, definite: true, offset: NOWHERE }
          : { type: 'text', value: decodeText(value), definite: true, size: value.length, offset: NOWHERE };
      });
    }
    case 'option':
    case 'present': {
      const bits = bytes(column.data);
      const inner = rowItems(column.column, context);
      let next = 0;
      const missing = column.kind === 'option' ? NULL_ITEM : undefined;
      return Array.from({ length: rows }, (_, i) => {
        if (!isBit(bits, i)) return missing;
        const item = inner[next++];
        return column.kind === 'option' && !column.plain && item ? someItem(item) : item;
      });
    }
    case 'list':
    case 'array': {
      if (column.kind === 'list' || column.size > 0) context.budget.countRowBytes(rows * ROW_BYTES);
      const inner = items(column.column);
      let at = 0;
      return Array.from({ length: rows }, (_, i) => {
        const length = column.kind === 'array' ? column.size : lengthOf(column.lengths, i);
        return arrayItem(inner.slice(at, (at += length)));
      });
    }
    case 'tuple': {
      context.budget.countRowBytes(rows * (ROW_BYTES + 8 * column.columns.length));
      const columns = column.columns.map(items);
      return Array.from({ length: rows }, (_, i) => arrayItem(columns.map((one) => one[i]!)));
    }
    case 'map': {
      if (column.lengths.each !== 0) context.budget.countRowBytes(rows * ROW_BYTES);
      const keys = items(column.keys);
      const values = items(column.values);
      let at = 0;
      return Array.from({ length: rows }, (_, i) => {
        const entries: Item[] = [];
        for (const end = at + lengthOf(column.lengths, i); at < end; at++) entries.push(keys[at]!, values[at]!);
        return mapItem(entries);
      });
    }
    case 'enum': {
      const codes = typedArray(column.dtype, bytes(column.codes)) as Uint8Array;
      const columns = column.columns.map((one) => (one ? items(one) : null));
      const next = columns.map(() => 0);
      return Array.from(codes, (code) => {
        const name = column.names[code]!;
        const values = columns[code];
        return values ? mapItem([name, values[next[code]!++]!]) : name;
      });
    }
    case 'variant': {
      const codes = typedArray(column.dtype, bytes(column.codes)) as Uint8Array;
      const inner = rowItems(column.column, context);
      let next = 0;
      return Array.from(codes, (code) => (code === column.code ? inner[next++] : undefined));
    }
    case 'dict': {
      const codes = typedArray(column.dtype, bytes(column.codes)) as Uint8Array;
      const distinct = items(column.column);
      const sizes = distinct.map(itemSize);
      let sum = 0;
      for (const code of codes) sum += sizes[code]!;
      context.budget.countDictBytes(sum);
      return Array.from(codes, (code) => distinct[code]!);
    }
    case 'type': {
      const [, name, parameters] = (column.item as { items: Item[] }).items;
      return rowItems(column.column, context).map((item) => {
        const isMissing = !item || (item.type === 'simple' && (item.value === NULL || item.value === UNDEFINED));
        if (isMissing) return item;
        return { type: 'tag', tag: TAG.TYPE, content: arrayItem([name!, parameters!, item!]), offset: NOWHERE };
      });
    }
    case 'rows':
      return column.items;
  }
}

function lengthOf(lengths: Lengths, i: number): number {
  return lengths.each ?? lengths.all![i]!;
}

/** About as many bytes as the encoded item has. */
function itemSize(item: Item): number {
  switch (item.type) {
    case 'bytes':
      return 1 + item.value.length;
    case 'text':
      return 1 + item.size;
    case 'tensor':
      return 1 + item.bytes.length;
    case 'array':
    case 'map':
      return item.items.reduce((sum, inner) => sum + itemSize(inner), 1);
    case 'tag':
      return 1 + itemSize(item.content);
    default:
      return 1;
  }
}

export function numberItems(dtype: string, bytes: Uint8Array): Item[] {
  const data = typedArray(dtype, bytes);
  const count = data.length;
  const out = new Array<Item>(count);
  if (isIntegerType(dtype)) {
    for (let i = 0; i < count; i++) {
      const value = data[i]!;
      const small = Number(value);
      out[i] = { type: 'int', value: Number.isSafeInteger(small) ? small : value, offset: NOWHERE };
    }
    return out;
  }
  const bits = bitsOf(dtype) as 16 | 32 | 64;
  const view = viewOf(bytes);
  for (let i = 0; i < count; i++) {
    const value = bits === 16 ? halfToNumber(data[i] as number) : (data[i] as number);
    const raw = value === value ? 0n : nanBits(view, i, bits);
    out[i] = float(value, bits, raw, NOWHERE);
  }
  return out;
}

function nanBits(view: DataView, i: number, bits: 16 | 32 | 64): bigint {
  if (bits === 64) return view.getBigUint64(8 * i, true);
  return BigInt(bits === 32 ? view.getUint32(4 * i, true) : view.getUint16(2 * i, true));
}

/** The rows of all groups as items. */
export function allRows(groups: Group[], context: Context): Item[] {
  const out: Item[] = [];
  for (const group of groups) for (const item of rowItems(group.column, context)) out.push(item!);
  return out;
}

/** The number of bytes of one row of a column of tensors. */
export function tensorRowBytes(column: Column & { kind: 'tensors' }, context: Context): number {
  const size = payloadLength(column.dtype, column.shape);
  if (size !== undefined) return Number(size);
  return column.rows ? Number(payloadSize(column.data, context)) / column.rows : 0;
}
