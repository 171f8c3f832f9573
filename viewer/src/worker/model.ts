// What each format presents to the worker: a tree of items, of which some are tensors or tables.
import { TenarcError, type Source } from '../../../js/src/index.js';
import type { Fact, Kind, Share } from '../shared/protocol.js';
import { bytesText, countText, plural, shapeText } from '../shared/text.js';

export interface Item {
  name: string;
  path: string;
  kind: Kind;
  note: string;
  /** The number of items below it; -1 if it has some but has not been read. */
  count: number;
  children?(start: number, end: number): Promise<Item[]>;
  facts?(): Promise<Fact[]> | Fact[];
  metadata?(): Promise<Fact[]> | Fact[];
  /** The tensors in it, to say how much there is of which dtype. */
  tensors?(): Promise<Sized[]> | Sized[];
  text?: string;
  tensor?: Tensor;
  table?: Table;
  /** Gives the item with what is only known once it has been read. */
  resolve?(): Promise<Item>;
}

/** What counts of a tensor. */
export type Sized = Pick<Tensor, 'dtype' | 'shape' | 'bytes'>;

export interface Tensor {
  dtype: string;
  shape: number[];
  order: 'C' | 'F';
  bytes: number;
  /** Some of its bytes. */
  read(start: number, end: number): Promise<Uint8Array>;
  /** How many bytes are read at least, whatever is asked for. */
  grain: number;
  /** Why its elements cannot be read, if they cannot. */
  unreadable?: string;
}

export interface Table {
  rows: number;
  read(start: number, end: number): Promise<unknown[]>;
  /** The values of a field in all rows. */
  column(path: string[]): Promise<ArrayLike<unknown>>;
}

/** Reports progress, and throws if the page has given up. */
export interface Progress {
  (done: number, total: number): Promise<void>;
}

export interface OpenFile {
  format: string;
  root: Item;
  warnings: string[];
  check: string | null;
  verify?(progress: Progress): Promise<string>;
}

/** A file that is being opened: its source, its length, and its first bytes. */
export interface Start {
  source: Source;
  size: number;
  first: Uint8Array;
  /** Whether each read is a request to a server. */
  remote: boolean;
}

/** Bytes of a file. Those that are not there are an error of the file, not of the call. */
export async function readAt({ source, size }: Start, offset: number, length: number, what: string): Promise<Uint8Array> {
  if (!(offset >= 0 && length >= 0 && offset + length <= size)) {
    throw wrong(`${what} would end at byte ${offset + length}, but the file has ${size} bytes`, offset);
  }
  if (length === 0) return new Uint8Array(0);
  const bytes = await source.read(offset, length);
  if (bytes.length !== length) throw new TenarcError('io', `a read of ${length} bytes gave ${bytes.length}`, offset);
  return bytes;
}

/** The error of a file that breaks its format. */
export function wrong(message: string, offset?: number): TenarcError {
  return new TenarcError('damaged', message, offset);
}

/** As many as tenarc allows, and numpy. */
const MAX_DIMENSIONS = 64;

/** The product of the dimensions, which must be a number that JavaScript can count to. */
export function elementsOf(shape: number[], offset?: number): number {
  let product = 1;
  if (shape.length > MAX_DIMENSIONS)
    throw wrong(`a tensor has ${shape.length} dimensions; at most ${MAX_DIMENSIONS} were expected`, offset);
  if (shape.some((dimension) => !Number.isSafeInteger(dimension) || dimension < 0)) {
    throw wrong(`[${shape.join(', ')}] is not a shape`, offset);
  }
  if (shape.includes(0)) return 0;
  for (const dimension of shape) product *= dimension;
  if (!Number.isSafeInteger(product)) throw wrong(`the shape [${shape.join(', ')}] has too many elements`, offset);
  return product;
}

const natural = new Intl.Collator('en', { numeric: true });
const MAX_DEPTH = 64;

interface Branch {
  branches: Map<string, Branch>;
  leaves: Item[];
}

/**
 * Items in groups: the names of a flat list are divided at their dots or slashes. A group with nothing but one item or one other
 * group is one with it.
 */
export function grouped(items: Item[]): Item[] {
  const separator = items.some((item) => item.path.includes('.')) ? '.' : '/';
  const root: Branch = { branches: new Map(), leaves: [] };
  for (const item of items) {
    const parts = item.path.split(separator);
    if (parts.length > MAX_DEPTH) parts.splice(MAX_DEPTH - 1, Infinity, parts.slice(MAX_DEPTH - 1).join(separator));
    let at = root;
    for (const part of parts.slice(0, -1)) {
      let next = at.branches.get(part);
      if (!next) at.branches.set(part, (next = { branches: new Map(), leaves: [] }));
      at = next;
    }
    at.leaves.push({ ...item, name: parts[parts.length - 1]! });
  }
  return itemsOf(root, '', separator).items;
}

/** The items of a branch, and all that are in groups below it. */
function itemsOf(branch: Branch, path: string, separator: string): { items: Item[]; leaves: Item[] } {
  const items = [...branch.leaves];
  const leaves = [...branch.leaves];
  for (let [name, inner] of branch.branches) {
    while (inner.leaves.length === 0 && inner.branches.size === 1) {
      const [[next, only]] = [...inner.branches] as [[string, Branch]];
      name += separator + next;
      inner = only;
    }
    const below = path === '' ? name : path + separator + name;
    const found = itemsOf(inner, below, separator);
    for (const leaf of found.leaves) leaves.push(leaf);
    const [only] = inner.leaves;
    if (only && inner.leaves.length === 1 && inner.branches.size === 0) {
      items.push({ ...only, name: name + separator + only.name });
      continue;
    }
    items.push({
      ...folder(name, below, found.items),
      note: plural(found.leaves.length, 'tensor'),
      tensors: () => tensorsOf(found.leaves),
    });
  }
  return { items: items.sort((a, b) => natural.compare(a.name, b.name)), leaves };
}

export function folder(name: string, path: string, children: Item[]): Item {
  return {
    name,
    path,
    kind: 'group',
    note: '',
    count: children.length,
    children: async (start, end) => children.slice(start, end),
  };
}

export function tensorsOf(items: Item[]): Sized[] {
  return items.flatMap((item) => (item.tensor ? [item.tensor] : []));
}

/** How much there is of which dtype, the most first. */
export function shares(tensors: Sized[]): Share[] {
  const dtypes = new Map<string, Share>();
  for (const { dtype, bytes } of tensors) {
    const known = dtypes.get(dtype) ?? { dtype, tensors: 0, bytes: 0 };
    dtypes.set(dtype, { dtype, tensors: known.tensors + 1, bytes: known.bytes + bytes });
  }
  return [...dtypes.values()].sort((a, b) => b.bytes - a.bytes);
}

export function overview(tensors: Sized[]): Fact[] {
  const elements = tensors.reduce((sum, tensor) => sum + elementsOf(tensor.shape), 0);
  return [
    ['tensors', countText(tensors.length)],
    ['elements', countText(elements)],
    ['bytes', bytesText(tensors.reduce((sum, tensor) => sum + tensor.bytes, 0))],
  ];
}

export function tensorNote({ dtype, shape }: { dtype: string; shape: number[] }): string {
  return `${dtype} ${shapeText(shape)}`;
}
