// Values of rows as short texts.
import { Entries, Simple, Some, Tensor, Typed } from '../../../js/src/index.js';
import { bytesText, numberText, shapeText } from '../shared/text.js';

const MAX_TEXT = 200;
const MAX_ELEMENTS = 8;
const MAX_DEPTH = 4;

/** A value as a text of one line. Long ones are cut. */
export function readable(value: unknown): string {
  return short(typeof value === 'string' ? value : write(value, 0));
}

function short(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}

function write(value: unknown, depth: number): string {
  if (value === null || value === undefined) return 'null';
  switch (typeof value) {
    case 'string':
      return JSON.stringify(short(value));
    case 'number':
      return numberText(value, 9);
    case 'bigint':
    case 'boolean':
      return String(value);
  }
  if (value instanceof Tensor) return `${value.dtype} ${shapeText(value.shape)}`;
  if (value instanceof Uint8Array) return bytesText(value.length);
  if (value instanceof Some) return `some(${write(value.value, depth + 1)})`;
  if (value instanceof Simple) return `simple(${value.value})`;
  if (value instanceof Typed) return typed(value) ?? write(value.value, depth);
  if (depth >= MAX_DEPTH) return '…';
  if (ArrayBuffer.isView(value)) return list(value as unknown as ArrayLike<unknown>, depth);
  if (value instanceof Map || value instanceof Entries) return map([...value], depth);
  if (Array.isArray(value)) return list(value, depth);
  return map(Object.entries(value as object), depth);
}

function list(values: ArrayLike<unknown>, depth: number): string {
  const out: string[] = [];
  for (let i = 0; i < Math.min(values.length, MAX_ELEMENTS); i++) out.push(write(values[i], depth + 1));
  return `[${out.join(', ')}${values.length > MAX_ELEMENTS ? `, … ${values.length}` : ''}]`;
}

function map(entries: [unknown, unknown][], depth: number): string {
  const out = entries
    .slice(0, MAX_ELEMENTS)
    .map(([key, value]) => `${typeof key === 'string' ? key : write(key, depth + 1)}: ${write(value, depth + 1)}`);
  return `{${out.join(', ')}${entries.length > MAX_ELEMENTS ? ', …' : ''}}`;
}

/** The usual types of section 7.2 of the format, as people write them; undefined for others. */
function typed({ name, parameters, value }: Typed): string | undefined {
  const isInteger = typeof value === 'number' || typeof value === 'bigint';
  switch (name) {
    case 'timestamp': {
      const digits = { s: 0, ms: 3, us: 6, ns: 9 }[String(parameters[0])];
      return isInteger && digits !== undefined ? timestamp(BigInt(value), digits, String(parameters[1] ?? '')) : undefined;
    }
    case 'date':
      return isInteger ? dayOf(BigInt(value)) : undefined;
    case 'decimal':
      return isInteger ? decimal(BigInt(value), Number(parameters[1])) : undefined;
    case 'uuid': {
      if (!(value instanceof Uint8Array) || value.length !== 16) return undefined;
      const hex = Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join('');
      return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
    }
    default:
      return undefined;
  }
}

function dayOf(days: bigint): string | undefined {
  const date = new Date(Number(days) * 86_400_000);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString().replace(/T.*/, '');
}

/** With all digits of its unit, in UTC. */
function timestamp(value: bigint, digits: number, zone: string): string | undefined {
  const unit = 10n ** BigInt(digits);
  const rest = ((value % unit) + unit) % unit;
  const date = new Date(Number((value - rest) / unit) * 1000);
  if (Number.isNaN(date.getTime())) return undefined;
  const fraction = rest === 0n ? '' : `.${String(rest).padStart(digits, '0')}`;
  return `${date
    .toISOString()
    .replace('T', ' ')
    .replace(/\.000Z$/, '')}${fraction}${zone === '' ? '' : 'Z'}`;
}

function decimal(value: bigint, scale: number): string | undefined {
  if (!(Number.isInteger(scale) && Math.abs(scale) <= 100)) return undefined;
  if (scale <= 0) return String(value * 10n ** BigInt(-scale));
  const sign = value < 0n ? '-' : '';
  const digits = String(value < 0n ? -value : value).padStart(scale + 1, '0');
  return `${sign}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}
