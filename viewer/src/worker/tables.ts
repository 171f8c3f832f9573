// Rows of tables as cells, and their order.
import { TenarcError, Typed } from '../../../js/src/index.js';
import type { Rows } from '../shared/protocol.js';
import { readable } from './format.js';
import type { Table } from './model.js';
import { fieldOf } from './tenarc.js';

/** Sorting keeps the values of one column, and the place of each row, in memory. */
export const SORT_LIMIT = 1_000_000;
const MAX_COLUMNS = 200;
const MAX_NESTED = 3;

/** The orders of rows that were computed, of which the last one is kept. */
export class Sorted {
  private key = '';
  private order: Uint32Array | undefined;

  async get(table: Table, path: string[], isDescending: boolean): Promise<Uint32Array> {
    const key = JSON.stringify([path, isDescending]);
    if (this.order && this.key === key) return this.order;
    if (table.rows > SORT_LIMIT) {
      throw new TenarcError('limit', `a table of ${table.rows} rows is not sorted here; the limit is ${SORT_LIMIT}`);
    }
    const values = await table.column(path);
    this.order = orderOf(values, isDescending);
    this.key = key;
    return this.order;
  }
}

/** The places of values in order. Numbers come before texts; what is missing or NaN comes last in both directions. */
export function orderOf(values: ArrayLike<unknown>, isDescending: boolean): Uint32Array {
  const keys = Array.from(values, keyOf);
  const sign = isDescending ? -1 : 1;
  return Uint32Array.from(keys.keys()).sort((a, b) => compare(keys[a]!, keys[b]!, sign) || a - b);
}

type Key = number | bigint | string | null;

function keyOf(value: unknown): Key {
  if (value instanceof Typed) return keyOf(value.value);
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'number') return Number.isNaN(value) ? null : value;
  if (value === null || value === undefined) return null;
  return typeof value === 'bigint' || typeof value === 'string' ? value : readable(value);
}

function compare(a: Key, b: Key, sign: number): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const [aIsText, bIsText] = [typeof a === 'string', typeof b === 'string'];
  if (aIsText !== bIsText) return sign * (Number(aIsText) - Number(bIsText));
  return a < b ? -sign : a > b ? sign : 0;
}

interface Field {
  name: string;
  path: string[];
  numeric: boolean;
}

/** Rows `start` to `end` (exclusive) in an order, or as they are in the file. */
export async function rowsOf(table: Table, start: number, end: number, order: Uint32Array | undefined): Promise<Rows> {
  const last = Math.min(end, table.rows);
  const places = order
    ? [...order.subarray(start, last)]
    : Array.from({ length: Math.max(0, last - start) }, (_, i) => start + i);
  const values = order ? await scattered(table, places) : await table.read(start, last);
  const fields: Field[] = [];
  for (const value of values) collect(value, [], fields, 0);
  const rows = values.map((value, i) => ({
    name: String(places[i]),
    cells: fields.map(({ path }) => {
      const cell = path.reduce<unknown>((at, part) => fieldOf(at, part), value);
      return cell === null || cell === undefined ? null : readable(cell);
    }),
  }));
  return { columns: fields, rows };
}

/** Rows that are close to each other are read at once: what holds one of them holds its neighbours. */
async function scattered(table: Table, places: number[]): Promise<unknown[]> {
  const sorted = [...places].sort((a, b) => a - b);
  const found = new Map<number, unknown>();
  for (let i = 0; i < sorted.length;) {
    const first = sorted[i]!;
    let next = i;
    while (next < sorted.length && sorted[next]! < first + 4096) next++;
    const part = await table.read(first, sorted[next - 1]! + 1);
    for (; i < next; i++) found.set(sorted[i]!, part[sorted[i]! - first]);
  }
  return places.map((place) => found.get(place));
}

/** The fields of a row, with those of structs in it. */
function collect(value: unknown, path: string[], fields: Field[], depth: number): void {
  const entries =
    value instanceof Map
      ? [...value].filter(([key]) => typeof key === 'string')
      : value && Object.getPrototypeOf(value) === Object.prototype
        ? Object.entries(value)
        : undefined;
  if (entries && entries.length > 0 && depth < MAX_NESTED) {
    for (const [key, inner] of entries) collect(inner, [...path, key], fields, depth + 1);
    return;
  }
  const isDecimal = value instanceof Typed && value.name === 'decimal';
  const isNumber = typeof value === 'number' || typeof value === 'bigint' || isDecimal;
  const isMissing = value === null || value === undefined;
  const known = fields.find((field) => field.path.length === path.length && field.path.every((part, i) => part === path[i]));
  if (known) known.numeric &&= isNumber || isMissing;
  else if (fields.length < MAX_COLUMNS)
    fields.push({ name: path.join('.') || 'value', path, numeric: isNumber || isMissing });
}
