// One value with its buffers: paths into it (annex A), and reading what they lead to.
import { concat } from './bytes.js';
import { TAG, isUint, type Item, type TagItem } from './cbor.js';
import { NULL_ITEM, groupItems, isBit, readColumn, rowItems, sameShape, tensorRowBytes, type Column } from './columns.js';
import { bitsOf, isNumberType, leastType, payloadLength, widen } from './dtype.js';
import { TenarcError, fail } from './errors.js';
import { component } from './notation.js';
import {
  Budget,
  bignum,
  checkBools,
  packed,
  reference,
  tensorInfo,
  typedItem,
  type Context,
  type Payload,
  type TensorInfo,
} from './payload.js';
import { Tensor, type Order } from './tensor.js';
import { asTensor, isSkipped, sequenceItems, toValue, type ValueOptions } from './value.js';

/** The buffers of a value. */
export interface Store {
  readonly lengths: readonly (number | bigint)[];
  /** A part of a buffer, verified and decompressed. */
  range(buffer: number, start: number, end: number): Promise<Uint8Array>;
  /** Whole buffers. */
  whole(buffers: Iterable<number>): Promise<Map<number, Uint8Array>>;
  /** How many bytes the segment has. */
  readonly size: number;
}

/** A tensor in a list. */
export interface TensorEntry {
  /** A path that leads to it. */
  path: string;
  dtype: string;
  shape: number[];
  order: Order;
}

/** What a path leads to, as far as it is known without the bytes of buffers. */
export interface Entry {
  /** The last component of its path: a key, the number of an element, or the name of a field of columns. */
  key: string;
  /** A path that leads to it, as a JSON Pointer. */
  path: string;
  /** `columns` is a sequence of rows that is stored as columns, and `column` a field of it that is not a tensor. */
  kind: 'map' | 'array' | 'columns' | 'column' | 'tensor' | 'bytes' | 'text' | 'number' | 'bool' | 'null' | 'other';
  /** How many entries are directly below it. */
  count: number;
  /** The rows of columns. */
  rows?: number;
  /** The name of the type of the value (7.2). */
  type?: string;
  dtype?: string;
  shape?: number[];
  order?: Order;
  /** The length of a tensor or of bytes. */
  bytes?: number;
  /** The number of the buffer that holds all of the bytes. */
  buffer?: number;
  /** A text, number or bool. */
  value?: unknown;
}

/** What a path leads to: an item, or the array of the values of a field in all rows of columns. */
type Target = { kind: 'item'; item: Item } | { kind: 'column'; item: TagItem; names: string[] };

/** What is left of a path. */
abstract class Rest {
  abstract readonly isEnd: boolean;
  /** What is left after a component, if the path goes on with it. */
  abstract after(component: string): Rest | undefined;
  /** The decimal number that comes next, if one does. */
  abstract readonly decimal: string | undefined;
  /** Whether a decimal number can also be the name of a field. */
  abstract readonly isPointer: boolean;
}

class Dotted extends Rest {
  readonly isPointer = false;
  private readonly text: string | undefined;
  constructor(text: string | undefined) {
    super();
    this.text = text;
  }
  get isEnd(): boolean {
    return this.text === undefined;
  }
  after(component: string): Rest | undefined {
    if (this.text === component) return new Dotted(undefined);
    if (!this.text?.startsWith(component) || this.text[component.length] !== '.') return undefined;
    return new Dotted(this.text.slice(component.length + 1));
  }
  get decimal(): string | undefined {
    return /^(0|[1-9][0-9]*)(?=\.|$)/.exec(this.text ?? '')?.[0];
  }
}

class Pointer extends Rest {
  readonly isPointer = true;
  private readonly parts: string[];
  constructor(parts: string[]) {
    super();
    this.parts = parts;
  }
  get isEnd(): boolean {
    return this.parts.length === 0;
  }
  after(component: string): Rest | undefined {
    return this.parts[0] === component ? new Pointer(this.parts.slice(1)) : undefined;
  }
  get decimal(): string | undefined {
    const first = this.parts[0];
    return first !== undefined && isDecimal(first) ? first : undefined;
  }
}

function isDecimal(text: string): boolean {
  return /^(0|[1-9][0-9]*)$/.test(text);
}

function parsePath(path: string): Rest {
  if (path === '') return new Dotted(undefined);
  if (path[0] !== '/') return new Dotted(path);
  return new Pointer(path.slice(1).split('/').map(unescaped));
}

function unescaped(part: string): string {
  return part.replace(/~1/g, '/').replace(/~0/g, '~');
}

function pathOf(components: string[]): string {
  return components.map((part) => `/${part.replace(/~/g, '~0').replace(/\//g, '~1')}`).join('');
}

/** The numbers of the buffers that an item refers to. */
export function references(item: Item, out = new Set<number>()): Set<number> {
  if (item.type === 'tag') {
    if (item.tag === TAG.BUFFER && item.content.type === 'array') {
      const number = item.content.items[item.content.items.length - 1];
      if (number && isUint(number)) out.add(Number(number.value));
    } else {
      references(item.content, out);
    }
  } else if (item.type === 'array' || item.type === 'map') {
    for (const inner of item.items) references(inner, out);
  }
  return out;
}

/**
 * The column of a field of the rows of a column, or of what is in a variant; undefined if these rows have no such field.
 * Missing values are missing.
 */
function fieldOf(column: Column, name: string): Column | undefined {
  switch (column.kind) {
    case 'structs':
      return column.fields.get(name);
    case 'type':
      return fieldOf(column.column, name);
    case 'option':
    case 'present': {
      const inner = fieldOf(column.column, name);
      return inner && { kind: 'present', rows: column.rows, data: column.data, column: inner };
    }
    case 'enum': {
      const { rows, codes, dtype } = column;
      const code = column.names.findIndex((variant) => variant.value === name);
      const inner = column.columns[code];
      return inner ? { kind: 'variant', rows, codes, dtype, code, column: inner } : undefined;
    }
    case 'variant': {
      const inner = fieldOf(column.column, name);
      return inner && { ...column, column: inner };
    }
    case 'rows': {
      const items = column.items.map((item) => fieldOfItem(item, name));
      return items.some((item) => item)
        ? { kind: 'rows', rows: column.rows, items: items.map((item) => item ?? NULL_ITEM) }
        : undefined;
    }
    default:
      return undefined;
  }
}

/** An item without the tags around it that paths do not see. */
function bare(item: Item): Item {
  if (item.type !== 'tag' || !isSkipped(item.tag) || isTensorTag(item.tag) || item.tag === TAG.BUFFER || packed(item))
    return item;
  if (item.tag === TAG.TYPE) return bare(typedItem(item).item);
  return item.tag === TAG.COMPLEX ? item : bare(item.content);
}

/** The name of the type (7.2) of an item. */
function typeName(item: Item): string | undefined {
  if (item.type !== 'tag' || bare(item) === item) return undefined;
  return item.tag === TAG.TYPE ? typedItem(item).name : typeName(item.content);
}

function isTensorTag(tag: number | bigint): boolean {
  return tag === TAG.TENSOR || tag === TAG.TENSOR_F || tag === TAG.TENS;
}

function fieldOfItem(item: Item, name: string): Item | undefined {
  const map = bare(item);
  if (map.type !== 'map') return undefined;
  for (let i = 0; i < map.items.length; i += 2) {
    const key = map.items[i]!;
    if (key.type === 'text' && key.value === name) return map.items[i + 1];
  }
  return undefined;
}

function fieldNames(column: Column): string[] {
  switch (column.kind) {
    case 'structs':
      return [...column.fields.keys()];
    case 'type':
    case 'option':
    case 'present':
    case 'variant':
      return fieldNames(column.column);
    case 'enum':
      return column.names.map((name) => name.value).filter((_, i) => column.columns[i]);
    case 'rows': {
      const names = new Set<string>();
      for (const item of column.items) {
        const map = bare(item);
        if (map.type === 'map') map.items.forEach((key, i) => i % 2 === 0 && key.type === 'text' && names.add(key.value));
      }
      return [...names];
    }
    default:
      return [];
  }
}

function descend(column: Column, names: string[]): Column | undefined {
  let at: Column | undefined = column;
  for (const name of names) at = at && fieldOf(at, name);
  return at;
}

interface Leaf {
  dtype: string;
  shape: number[];
}

/** The dtype of a column that is a tensor, and the shape of a row (annex A). */
function leafOf(column: Column): Leaf | undefined {
  switch (column.kind) {
    case 'numbers':
      return { dtype: column.dtype, shape: [] };
    case 'bool':
      return { dtype: 'bool', shape: [] };
    case 'tensors':
      return { dtype: column.dtype, shape: column.shape };
    case 'type':
      return leafOf(column.column);
    case 'array': {
      const inner = leafOf(column.column);
      return inner && { dtype: inner.dtype, shape: [column.size, ...inner.shape] };
    }
    case 'tuple':
      return common(column.columns, [column.columns.length]);
    default:
      return undefined;
  }
}

/** What several columns have in common: one shape, and a dtype that holds those of all. */
function common(columns: (Column | undefined)[], front: number[] = []): Leaf | undefined {
  const leaves = columns.map((column) => column && leafOf(column));
  const first = leaves[0];
  if (!first || !leaves.every((leaf) => leaf && sameShape(leaf.shape, first.shape))) return undefined;
  const dtype = leastType(leaves.map((leaf) => leaf!.dtype));
  return dtype === undefined ? undefined : { dtype, shape: [...front, ...first.shape] };
}

/** A tensor that a path leads to, before its bytes are read. */
export interface Readable {
  dtype: string;
  shape: number[];
  order: Order;
  /** The length of all elements, in bytes. */
  size: number;
  /** The number of the buffer that holds all of them. */
  buffer?: number;
  /** The elements of these rows of the first dimension. */
  rows(start: number, end: number): Promise<Uint8Array>;
  all(): Promise<Uint8Array>;
}

interface Part {
  rows: number;
  column: Column;
}

export class Document {
  readonly root: Item;
  readonly store: Store;
  readonly options: ValueOptions & { memory?: number };

  constructor(root: Item, store: Store, options: ValueOptions & { memory?: number }) {
    this.root = root;
    this.store = store;
    this.options = options;
  }

  private context(loaded?: Map<number, Uint8Array>): Context & { options: ValueOptions } {
    return {
      buffers: this.store.lengths,
      load: (buffer) => loaded?.get(buffer),
      budget: new Budget(this.store.size, this.options.memory),
      options: this.options,
    };
  }

  private async contextFor(item: Item) {
    return this.context(await this.store.whole(references(item)));
  }

  /** Everything that a path leads to. */
  async find(path: string): Promise<Target[]> {
    const found: Target[] = [];
    await this.findIn(this.root, parsePath(path), found);
    return found;
  }

  /** The one thing that a path leads to. */
  async one(path: string): Promise<Target> {
    const found = await this.find(path);
    if (found.length === 1) return found[0]!;
    throw ambiguous(path, found.length);
  }

  private async findIn(item: Item, rest: Rest, found: Target[]): Promise<void> {
    if (rest.isEnd) {
      found.push({ kind: 'item', item });
      return;
    }
    const inner = bare(item);
    const decimal = rest.decimal;
    if (inner.type === 'map') {
      for (let i = 0; i < inner.items.length; i += 2) {
        const after = rest.after(component(inner.items[i]!));
        if (after) await this.findIn(inner.items[i + 1]!, after, found);
      }
    } else if (inner.type === 'array') {
      const element = decimal === undefined ? undefined : inner.items[Number(decimal)];
      if (element) await this.findIn(element, rest.after(decimal!)!, found);
    } else if (inner.type === 'tag' && inner.tag === TAG.COLUMNS) {
      await this.findInColumns(inner, [], rest, found);
    } else if (inner.type === 'tag' && decimal !== undefined) {
      const element = (await this.elements(inner))?.[Number(decimal)];
      if (element) await this.findIn(element, rest.after(decimal)!, found);
    }
  }

  /** The elements of a packed sequence. */
  private async elements(item: TagItem): Promise<Item[] | undefined> {
    if (item.tag !== TAG.BUFFER) {
      const sequence = packed(item);
      return sequence && sequence.dtype !== 'f128' ? sequenceItems(sequence, this.context()) : undefined;
    }
    const target = reference(item, this.context());
    return target.kind === 'sequence' ? sequenceItems(target.packed, await this.contextFor(item)) : undefined;
  }

  private async findInColumns(item: TagItem, names: string[], rest: Rest, found: Target[]): Promise<void> {
    if (rest.isEnd) {
      found.push({ kind: 'column', item, names });
      return;
    }
    const parts = this.parts(item, names);
    const decimal = rest.decimal;
    const fields = new Set(parts.flatMap(({ rows, column }) => (rows && column ? fieldNames(column) : [])));
    if (decimal !== undefined && !(rest.isPointer && fields.has(decimal))) {
      const row = await this.row(item, names, Number(decimal));
      if (row) await this.findIn(row, rest.after(decimal)!, found);
      return;
    }
    for (const name of fields) {
      const after = rest.after(name);
      if (after) await this.findInColumns(item, [...names, name], after, found);
    }
  }

  /** The columns of a field in all groups, without what is in buffers. */
  private parts(
    item: TagItem,
    names: string[],
    context: Context = this.context(),
  ): { rows: number; column: Column | undefined }[] {
    return groupItems(item).map((group) => ({
      rows: group.rows,
      column: descend(readColumn(group.item, group.rows, context), names),
    }));
  }

  private async row(item: TagItem, names: string[], row: number): Promise<Item | undefined> {
    let before = 0;
    for (const group of groupItems(item)) {
      if (row >= before + group.rows) {
        before += group.rows;
        continue;
      }
      const [part] = await this.loadedParts([group], names);
      return part!.column ? (rowItems(part!.column, part!.context)[row - before] ?? NULL_ITEM) : NULL_ITEM;
    }
    return undefined;
  }

  /** The columns of a field in these groups, with the buffers that they need. */
  private async loadedParts(groups: { rows: number; item: Item }[], names: string[]) {
    const bare = this.context();
    const needed = new Set<number>();
    for (const group of groups) {
      const column = descend(readColumn(group.item, group.rows, bare), names);
      if (column) columnBuffers(column, needed);
    }
    const context = this.context(await this.store.whole(needed));
    return groups.map((group) => ({
      rows: group.rows,
      column: descend(readColumn(group.item, group.rows, context), names),
      context,
    }));
  }

  /** The items of the array at the path of a column, or some of them. Only the groups that have these rows are read. */
  private async columnItems(item: TagItem, names: string[], start = 0, end = Infinity): Promise<Item[]> {
    const groups = [];
    let before = 0;
    let skipped = 0;
    for (const group of groupItems(item)) {
      if (before + group.rows <= start) skipped += group.rows;
      else if (before < end) groups.push(group);
      before += group.rows;
    }
    const out: Item[] = [];
    for (const { rows, column, context } of await this.loadedParts(groups, names)) {
      const items = column ? rowItems(column, context) : new Array<undefined>(rows).fill(undefined);
      for (const one of items) out.push(one ?? NULL_ITEM);
    }
    return out.slice(start - skipped, end - skipped);
  }

  /** What a path leads to. */
  async entry(path: string): Promise<Entry> {
    const target = await this.one(path);
    const last = path.slice(path.lastIndexOf(path[0] === '/' ? '/' : '.') + 1);
    return this.describe(target, path[0] === '/' ? unescaped(last) : last, path);
  }

  /** Entries `start` to `end` (exclusive) of those directly below what a JSON Pointer leads to. */
  async entries(path: string, start: number, end: number): Promise<Entry[]> {
    const target = await this.one(path);
    const below = (key: string) => path + pathOf([key]);
    if (target.kind === 'column') return this.fieldEntries(target, path).slice(start, end);
    const item = bare(target.item);
    if (item.type === 'map') {
      const out: Entry[] = [];
      for (let i = start; i < Math.min(end, item.items.length / 2); i++) {
        const key = component(item.items[2 * i]!);
        out.push(this.describe({ kind: 'item', item: item.items[2 * i + 1]! }, key, below(key)));
      }
      return out;
    }
    if (item.type === 'array') {
      return item.items
        .slice(start, end)
        .map((one, i) => this.describe({ kind: 'item', item: one }, String(start + i), below(String(start + i))));
    }
    if (item.type === 'tag' && item.tag === TAG.COLUMNS) {
      return this.fieldEntries({ kind: 'column', item, names: [] }, path).slice(start, end);
    }
    return [];
  }

  private fieldEntries({ item, names }: Target & { kind: 'column' }, path: string): Entry[] {
    return this.fields(item, names).map((name) =>
      this.describe({ kind: 'column', item, names: [...names, name] }, name, path + pathOf([name])),
    );
  }

  private fields(item: TagItem, names: string[]): string[] {
    const parts = this.parts(item, names);
    return [...new Set(parts.flatMap(({ rows, column }) => (rows && column ? fieldNames(column) : [])))];
  }

  private describe(target: Target, key: string, path: string): Entry {
    const at = { key, path, count: 0 };
    const item = target.kind === 'column' ? target.item : bare(target.item);
    // An array of plain numbers can be read as a tensor, but is an array.
    const readable = item.type === 'array' ? undefined : this.readable(target);
    const type = target.kind === 'item' ? typeName(target.item) : undefined;
    const named = type === undefined ? at : { ...at, type };
    if (readable) {
      const { dtype, shape, order, size, buffer } = readable;
      return { ...named, kind: 'tensor', dtype, shape, order, bytes: size, ...(buffer === undefined ? {} : { buffer }) };
    }
    switch (item.type) {
      case 'map':
        return { ...named, kind: 'map', count: item.items.length / 2 };
      case 'array':
        return { ...named, kind: 'array', count: item.items.length };
      case 'text':
        return { ...named, kind: 'text', value: item.value };
      case 'bytes':
        return { ...named, kind: 'bytes', bytes: item.value.length };
      case 'int':
      case 'float':
        return { ...named, kind: 'number', value: item.value };
      case 'simple':
        if (item.value === 20 || item.value === 21) return { ...named, kind: 'bool', value: item.value === 21 };
        return item.value === 22 || item.value === 23 ? { ...named, kind: 'null' } : { ...named, kind: 'other' };
      case 'tensor':
        return { ...named, kind: 'other' }; // rows of columns, which are readable
      case 'tag':
        break;
    }
    if (item.tag === TAG.COLUMNS) {
      const names = target.kind === 'column' ? target.names : [];
      const rows = groupItems(item).reduce((sum, group) => sum + group.rows, 0);
      const kind = target.kind === 'column' ? 'column' : 'columns';
      return { ...named, kind, rows, count: this.fields(item, names).length };
    }
    if (item.tag === TAG.BUFFER) {
      const found = reference(item, this.context());
      if (found.kind === 'bytes') {
        const buffer = found.payload.buffer!;
        return { ...named, kind: 'bytes', bytes: Number(this.store.lengths[buffer]), buffer };
      }
    }
    const number = bignum(item);
    return number === undefined ? { ...named, kind: 'other' } : { ...named, kind: 'number', value: number };
  }

  /** Elements `start` to `end` (exclusive) of a sequence or of a column. */
  async elementsBetween(path: string, start: number, end: number): Promise<unknown[]> {
    if (!(start >= 0 && start <= end)) return fail('usage', `there are no elements ${start} to ${end}`);
    const target = await this.one(path);
    const item = target.kind === 'column' ? target.item : bare(target.item);
    let items: Item[] | undefined;
    if (item.type === 'array') items = item.items.slice(start, end);
    else if (item.type === 'tag' && item.tag === TAG.COLUMNS) {
      items = await this.columnItems(item, target.kind === 'column' ? target.names : [], start, end);
    } else if (item.type === 'tag') items = (await this.elements(item))?.slice(start, end);
    if (!items) throw new TenarcError('usage', `the value at ${JSON.stringify(path)} is not a sequence`, undefined, path);
    const used = new Set<number>();
    for (const one of items) references(one, used);
    const context = this.context(await this.store.whole(used));
    return items.map((one) => toValue(one, context));
  }

  async value(target: Target): Promise<unknown> {
    const item = target.kind === 'item' ? target.item : undefined;
    if (item) return toValue(item, await this.contextFor(item));
    const column = target as Target & { kind: 'column' };
    const readable = this.readable(column);
    if (readable) return new Tensor(readable.dtype, readable.shape, 'C', await readable.all());
    const context = this.context();
    return (await this.columnItems(column.item, column.names)).map((one) => toValue(one, context));
  }

  /** The rows of the value, for tables (7.3); undefined if it is not a sequence. */
  async rows(): Promise<unknown[] | undefined> {
    const items = await this.rowItems();
    if (!items) return undefined;
    const context = await this.contextFor(this.root);
    return items.map((item) => toValue(item, context));
  }

  private async rowItems(): Promise<Item[] | undefined> {
    const item = bare(this.root);
    if (item.type === 'array') return item.items;
    if (item.type !== 'tag') return undefined;
    return item.tag === TAG.COLUMNS ? this.columnItems(item, []) : this.elements(item);
  }

  /**
   * The column of a table in this value: a tensor if it is one, and otherwise a value for each row, which is null where there is
   * none. `found` says whether any row has a value.
   */
  async column(path: string): Promise<{ rows: number; found: boolean; readable?: Readable; values(): Promise<unknown[]> }> {
    const item = bare(this.root);
    if (item.type === 'tag' && item.tag === TAG.COLUMNS) {
      const targets = (await this.find(path)).filter((target) => target.kind === 'column');
      const target = targets[0] as (Target & { kind: 'column' }) | undefined;
      if (targets.length > 1) throw ambiguous(path, targets.length);
      const rows = groupItems(item).reduce((sum, group) => sum + group.rows, 0);
      const values = async () => {
        if (!target) return new Array<null>(rows).fill(null);
        const context = this.context();
        const items = await this.columnItems(target.item, target.names);
        return items.map((one) => toValue(one, context));
      };
      const readable = target && this.readableColumn(target.item, target.names);
      return readable ? { rows, found: true, readable, values } : { rows, found: target !== undefined, values };
    }
    const values: unknown[] = [];
    let any = false;
    for (const row of (await this.rowItems()) ?? []) {
      const found: Target[] = [];
      await this.findIn(row, parsePath(path), found);
      if (found.length > 1) throw ambiguous(path, found.length);
      any ||= found.length > 0;
      values.push(found[0] ? await this.value(found[0]) : null);
    }
    return { rows: values.length, found: any, values: async () => values };
  }

  /** A target as a tensor; undefined if it is none. */
  readable(target: Target): Readable | undefined {
    if (target.kind === 'column') return this.readableColumn(target.item, target.names);
    const item = bare(target.item);
    if (item.type === 'tag' && item.tag === TAG.COLUMNS) return this.readableColumn(item, []);
    const info = asTensor(item, this.context());
    if (!info) return undefined;
    const { dtype, shape, order, payload } = info;
    const size = payload.bytes ? payload.bytes.length : Number(this.store.lengths[payload.buffer!]);
    const all = async () => {
      const bytes = payload.bytes ?? (await this.store.whole([payload.buffer!])).get(payload.buffer!)!;
      if (dtype === 'bool') checkBools(bytes);
      return bytes;
    };
    const rows = async (start: number, end: number) => {
      const count = shape[0]!;
      if (order === 'F') return sliceOfColumns(await all(), shape, start, end);
      const unit = count === 0 ? 0 : size / count;
      if (!Number.isInteger(unit * start) || !Number.isInteger(unit * end)) {
        fail('usage', `a slice of ${dtype} must begin and end at whole bytes`);
      }
      const bytes = await this.fetch(payload, unit * start, unit * end);
      if (dtype === 'bool') checkBools(bytes);
      return bytes;
    };
    return { dtype, shape, order, size, ...(payload.bytes ? {} : { buffer: payload.buffer! }), rows, all };
  }

  private readableColumn(item: TagItem, names: string[]): Readable | undefined {
    const parts = this.parts(item, names).filter((part) => part.rows > 0) as Part[];
    const leaf = common(parts.map((part) => part.column));
    if (!leaf) return undefined;
    const total = parts.reduce((sum, part) => sum + part.rows, 0);
    const rows = async (start: number, end: number) => {
      const pieces: Promise<Uint8Array>[] = [];
      let before = 0;
      for (const part of parts) {
        const from = Math.max(start - before, 0);
        const to = Math.min(end - before, part.rows);
        if (from < to) {
          const own = leafOf(part.column)!.dtype;
          pieces.push(this.leafRows(part.column, from, to).then((bytes) => widen(bytes, own, leaf.dtype)));
        }
        before += part.rows;
      }
      return concat(await Promise.all(pieces));
    };
    const shape = [total, ...leaf.shape];
    const size = Number(payloadLength(leaf.dtype, shape) ?? 0n);
    return { dtype: leaf.dtype, shape, order: 'C', size, rows, all: () => rows(0, total) };
  }

  private async fetch(payload: Payload, start: number, end: number): Promise<Uint8Array> {
    return payload.bytes ? payload.bytes.subarray(start, end) : this.store.range(payload.buffer!, start, end);
  }

  /** The elements of some rows of a column that is a tensor. */
  private async leafRows(column: Column, start: number, end: number): Promise<Uint8Array> {
    switch (column.kind) {
      case 'numbers': {
        const width = bitsOf(column.dtype)! / 8;
        return this.fetch(column.data, start * width, end * width);
      }
      case 'bool': {
        const first = start >> 3;
        const bits = await this.fetch(column.data, first, (end + 7) >> 3);
        return Uint8Array.from({ length: end - start }, (_, i) => (isBit(bits, start + i - 8 * first) ? 1 : 0));
      }
      case 'tensors': {
        const size = tensorRowBytes(column, this.context());
        const bytes = await this.fetch(column.data, start * size, end * size);
        if (column.dtype === 'bool') checkBools(bytes);
        return bytes;
      }
      case 'type':
        return this.leafRows(column.column, start, end);
      case 'array':
        return this.leafRows(column.column, start * column.size, end * column.size);
      case 'tuple': {
        const dtype = leafOf(column)!.dtype;
        const pieces = await Promise.all(
          column.columns.map(async (one) => widen(await this.leafRows(one, start, end), leafOf(one)!.dtype, dtype)),
        );
        const count = end - start;
        const out: Uint8Array[] = [];
        for (let row = 0; row < count; row++) {
          for (const piece of pieces)
            out.push(piece.subarray((row * piece.length) / count, ((row + 1) * piece.length) / count));
        }
        return concat(out);
      }
      default:
        return fail('data', 'a column is not a tensor');
    }
  }

  async get(path: string): Promise<unknown> {
    return this.value(await this.one(path));
  }

  async tensor(path: string): Promise<Tensor> {
    const readable = await this.readableAt(path);
    return new Tensor(readable.dtype, readable.shape, readable.order, await readable.all());
  }

  async slice(path: string, start: number, end: number): Promise<Tensor> {
    const readable = await this.readableAt(path);
    const count = readable.shape[0];
    if (count === undefined) return fail('usage', 'a tensor without dimensions has no slices');
    if (!Number.isInteger(start) || !Number.isInteger(end) || start < 0 || start > end || end > count) {
      fail('usage', `there is no slice from ${start} to ${end} of ${count}`);
    }
    return new Tensor(
      readable.dtype,
      [end - start, ...readable.shape.slice(1)],
      readable.order,
      await readable.rows(start, end),
    );
  }

  private async readableAt(path: string): Promise<Readable> {
    const readable = this.readable(await this.one(path));
    if (readable) return readable;
    throw new TenarcError('usage', `the value at ${JSON.stringify(path)} is not a tensor`, undefined, path);
  }

  /** The tensors of the value by their paths (annex A). */
  async list(): Promise<TensorEntry[]> {
    const found: { components: string[]; entry: Omit<TensorEntry, 'path'>; isDecimalField: boolean; isDouble: boolean }[] =
      [];
    let hasDots = false;
    const visit = (item: Item, components: string[], isDouble: boolean) => {
      const inner = bare(item);
      const add = (entry: Omit<TensorEntry, 'path'>) => found.push({ components, entry, isDecimalField: false, isDouble });
      if (inner.type === 'map') {
        const seen = new Map<string, number>();
        const keys: string[] = [];
        for (let i = 0; i < inner.items.length; i += 2) {
          const key = component(inner.items[i]!);
          keys.push(key);
          seen.set(key, (seen.get(key) ?? 0) + 1);
          hasDots ||= key.includes('.');
        }
        keys.forEach((key, i) => visit(inner.items[2 * i + 1]!, [...components, key], isDouble || seen.get(key)! > 1));
      } else if (inner.type === 'array') {
        inner.items.forEach((one, i) => visit(one, [...components, String(i)], isDouble));
      } else if (inner.type === 'tag' && inner.tag === TAG.COLUMNS) {
        this.visitColumns(this.parts(inner, []), components, false, (more) => {
          hasDots ||= more.components.slice(components.length).some((name) => name.includes('.'));
          found.push({ ...more, isDouble });
        });
      } else if (inner.type === 'tag') {
        const info = this.listed(inner);
        if (info) add({ dtype: info.dtype, shape: info.shape, order: info.order });
      }
    };
    visit(this.root, [], false);
    const known = hasDots ? new DottedPaths(this) : undefined;
    const out: TensorEntry[] = [];
    for (const { components, entry, isDecimalField, isDouble } of found) {
      const dotted = components.join('.');
      const pointer = pathOf(components);
      if (isDouble)
        throw new TenarcError('usage', `several values have the path ${JSON.stringify(pointer)}`, undefined, pointer);
      const needsPointer =
        (dotted === '' && components.length > 0) ||
        dotted[0] === '/' ||
        isDecimalField ||
        (known && (await known.isAmbiguous(dotted)));
      out.push({ path: needsPointer ? pointer : dotted, ...entry });
    }
    return out;
  }

  /** A tensor, or a packed sequence as a tensor of one dimension, in place or in a buffer; undefined for other items. */
  private listed(item: TagItem): TensorInfo | undefined {
    if (isTensorTag(item.tag)) return tensorInfo(item, this.context());
    const isSequence = item.tag === TAG.BUFFER || isNumberType(packed(item)?.dtype ?? '');
    return isSequence ? asTensor(item, this.context()) : undefined;
  }

  private visitColumns(
    parts: { rows: number; column: Column | undefined }[],
    components: string[],
    isDecimalField: boolean,
    add: (found: { components: string[]; entry: Omit<TensorEntry, 'path'>; isDecimalField: boolean }) => void,
  ): void {
    const filled = parts.filter((part) => part.rows > 0);
    const leaf = common(filled.map((part) => part.column));
    if (leaf) {
      const total = filled.reduce((sum, part) => sum + part.rows, 0);
      add({ components, entry: { dtype: leaf.dtype, shape: [total, ...leaf.shape], order: 'C' }, isDecimalField });
      return;
    }
    const structs = filled.map((part) => structsIn(part.column));
    const first = structs[0];
    if (!first || !structs.every((one) => one)) return;
    for (const name of first.fields.keys()) {
      const inner = filled.map((part, i) => ({ rows: part.rows, column: structs[i]!.fields.get(name) }));
      this.visitColumns(inner, [...components, name], isDecimalField || /^(0|[1-9][0-9]*)(\.|$)/.test(name), add);
    }
  }
}

/** How many values each dotted path leads to, so that a list need not look up each of its paths in the whole value. */
class DottedPaths {
  private readonly document: Document;
  private readonly counts = new Map<string, number>();
  /** The paths of sequences whose elements are not counted. */
  private readonly sequences = new Set<string>();

  constructor(document: Document) {
    this.document = document;
    this.count(document.root, '');
  }

  private count(item: Item, path: string): void {
    this.counts.set(path, (this.counts.get(path) ?? 0) + 1);
    const inner = bare(item);
    const below = (name: string) => (item === this.document.root ? name : `${path}.${name}`);
    if (inner.type === 'map') {
      for (let i = 0; i < inner.items.length; i += 2) this.count(inner.items[i + 1]!, below(component(inner.items[i]!)));
    } else if (inner.type === 'array') {
      inner.items.forEach((one, i) => this.count(one, below(String(i))));
    } else if (inner.type === 'tag') {
      this.sequences.add(path);
    }
  }

  async isAmbiguous(path: string): Promise<boolean> {
    for (let at = path.indexOf('.'); at >= 0; at = path.indexOf('.', at + 1)) {
      if (this.sequences.has(path.slice(0, at))) return (await this.document.find(path)).length > 1;
    }
    return (this.counts.get(path) ?? 0) > 1 || (this.sequences.has('') && (await this.document.find(path)).length > 1);
  }
}

function ambiguous(path: string, count: number): TenarcError {
  const what = count === 0 ? 'nothing' : 'several values';
  return new TenarcError('missing', `the path ${JSON.stringify(path)} leads to ${what}`, undefined, path);
}

function structsIn(column: Column | undefined): (Column & { kind: 'structs' }) | undefined {
  if (column?.kind === 'type') return structsIn(column.column);
  return column?.kind === 'structs' ? column : undefined;
}

/** The buffers that a column needs. */
function columnBuffers(column: Column, out: Set<number>): void {
  const add = (payload: Payload) => payload.buffer !== undefined && out.add(payload.buffer);
  switch (column.kind) {
    case 'numbers':
    case 'tensors':
    case 'bool':
      add(column.data);
      break;
    case 'text':
    case 'bytes':
      add(column.data);
      if (column.lengths.data) add(column.lengths.data);
      break;
    case 'structs':
      for (const field of column.fields.values()) columnBuffers(field, out);
      break;
    case 'option':
    case 'present':
      add(column.data);
      columnBuffers(column.column, out);
      break;
    case 'list':
      if (column.lengths.data) add(column.lengths.data);
      columnBuffers(column.column, out);
      break;
    case 'array':
    case 'type':
      columnBuffers(column.column, out);
      break;
    case 'tuple':
      for (const one of column.columns) columnBuffers(one, out);
      break;
    case 'map':
      if (column.lengths.data) add(column.lengths.data);
      columnBuffers(column.keys, out);
      columnBuffers(column.values, out);
      break;
    case 'enum':
      add(column.codes);
      for (const one of column.columns) if (one) columnBuffers(one, out);
      break;
    case 'dict':
    case 'variant':
      add(column.codes);
      columnBuffers(column.column, out);
      break;
    case 'unit':
    case 'rows':
      break;
  }
}

/** Rows of the first dimension of a tensor of order F, whose first index changes fastest. */
function sliceOfColumns(bytes: Uint8Array, shape: number[], start: number, end: number): Uint8Array {
  const columns = shape.slice(1).reduce((product, dimension) => product * dimension, 1);
  if (bytes.length === 0) return bytes;
  const column = bytes.length / columns;
  const unit = column / shape[0]!;
  if (!Number.isInteger(unit)) fail('usage', 'a slice must begin and end at whole bytes');
  const pieces: Uint8Array[] = [];
  for (let i = 0; i < columns; i++) pieces.push(bytes.subarray(i * column + start * unit, i * column + end * unit));
  return concat(pieces);
}
