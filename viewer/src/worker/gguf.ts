// GGUF: a header with counts, metadata, the descriptions of tensors, and the tensors at multiples of an alignment.
import { decodeText, viewOf } from '../../../js/src/bytes.js';
import { TenarcError } from '../../../js/src/errors.js';
import type { Fact } from '../shared/protocol.js';
import { countText, plural } from '../shared/text.js';
import { MEBIBYTE, bytesOfShape, codecOf } from './elements.js';
import { UNREAD_BLOCKS } from './quants.js';
import {
  elementsOf,
  folder,
  grouped,
  readAt,
  tensorNote,
  tensorsOf,
  wrong,
  type Item,
  type OpenFile,
  type Start,
} from './model.js';

const TYPES = [
  'f32 f16 q4_0 q4_1 . . q5_0 q5_1 q8_0 q8_1 q2_k q3_k q4_k q5_k q6_k q8_k iq2_xxs iq2_xs iq3_xxs iq1_s iq4_nl iq3_s iq2_s iq4_xs',
  'i8 i16 i32 i64 f64 iq1_m bf16 . . . tq1_0 tq2_0 . . . mxfp4',
]
  .join(' ')
  .split(' ');
const MAX_TEXT = 16 * MEBIBYTE;
/** Lists of tokens have a hundred thousand texts; only the first of a list are kept. */
const SHOWN = 24;
const MAX_TENSORS = 1_000_000;
const MAX_METADATA = 100_000;

/** Reads numbers and texts one after the other, with few reads of the file. */
class Reader {
  at = 0;
  private bytes: Uint8Array = new Uint8Array(0);
  private view = viewOf(this.bytes);
  private from = 0;
  constructor(private readonly start: Start) {}

  private async need(length: number, what: string): Promise<number> {
    if (this.at < this.from || this.at + length > this.from + this.bytes.length) {
      const wanted = Math.max(length, Math.min(MEBIBYTE, this.start.size - this.at));
      this.bytes = await readAt(this.start, this.at, wanted, what);
      this.view = viewOf(this.bytes);
      this.from = this.at;
    }
    const place = this.at - this.from;
    this.at += length;
    return place;
  }

  async u32(what: string): Promise<number> {
    const at = await this.need(4, what);
    return this.view.getUint32(at, true);
  }
  async u64(what: string): Promise<number> {
    const at = await this.need(8, what);
    const value = this.view.getBigUint64(at, true);
    if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw wrong(`${what} is ${value}`, this.at - 8);
    return Number(value);
  }
  async text(what: string): Promise<string> {
    const length = await this.u64(`the length of ${what}`);
    if (length > MAX_TEXT) throw wrong(`${what} has ${length} bytes; at most ${MAX_TEXT} were expected`, this.at - 8);
    const at = await this.need(length, what);
    try {
      return decodeText(this.bytes.subarray(at, at + length));
    } catch {
      // Tokens can be parts of characters.
      return new TextDecoder().decode(this.bytes.subarray(at, at + length));
    }
  }
  async number(type: number): Promise<string> {
    const at = await this.need(WIDTHS[type]!, 'a value');
    const { view } = this;
    switch (type) {
      case 0:
        return String(view.getUint8(at));
      case 1:
        return String(view.getInt8(at));
      case 2:
        return String(view.getUint16(at, true));
      case 3:
        return String(view.getInt16(at, true));
      case 4:
        return String(view.getUint32(at, true));
      case 5:
        return String(view.getInt32(at, true));
      case 6:
        return String(Number(view.getFloat32(at, true).toPrecision(8)));
      case 7:
        return view.getUint8(at) === 0 ? 'false' : 'true';
      case 10:
        return String(view.getBigUint64(at, true));
      case 11:
        return String(view.getBigInt64(at, true));
      default:
        return String(view.getFloat64(at, true));
    }
  }
}

const TEXT = 8;
const ARRAY = 9;
const WIDTHS: Record<number, number> = { 0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8 };

async function readValue(reader: Reader, type: number, depth: number, size: number): Promise<string> {
  if (type === TEXT) return reader.text('a text');
  if (type !== ARRAY) {
    if (WIDTHS[type] === undefined) throw wrong(`the type ${type} of a value is not known`, reader.at);
    return reader.number(type);
  }
  if (depth > 8) throw wrong('lists are nested too deeply', reader.at);
  const inner = await reader.u32('the type of a list');
  const count = await reader.u64('the length of a list');
  const width = WIDTHS[inner];
  // Each element has at least one byte, and a text or a list at least the eight of its length.
  if (reader.at + count * (width ?? 8) > size)
    throw wrong(`a list of ${count} elements is longer than the file`, reader.at - 8);
  const out: string[] = [];
  for (let i = 0; i < count; i++) {
    if (i === SHOWN && width !== undefined) {
      reader.at += (count - i) * width;
      break;
    }
    const value = await readValue(reader, inner, depth + 1, size);
    if (i < SHOWN) out.push(inner === TEXT ? JSON.stringify(value.slice(0, 200)) : value);
  }
  return `[${out.join(', ')}${count > SHOWN ? `, … ${plural(count, 'element')}` : ''}]`;
}

export async function openGguf(start: Start): Promise<OpenFile> {
  const reader = new Reader(start);
  reader.at = 4;
  const version = await reader.u32('the version');
  if (version !== 2 && version !== 3) {
    throw new TenarcError('unsupported', `GGUF version ${version} is not known: 2 and 3 (little-endian) were expected`, 4);
  }
  const count = await reader.u64('the number of tensors');
  const keys = await reader.u64('the number of metadata entries');
  if (count > MAX_TENSORS) throw wrong(`${count} tensors are more than ${MAX_TENSORS}`, 8);
  if (keys > MAX_METADATA) throw wrong(`${keys} metadata entries are more than ${MAX_METADATA}`, 16);
  const metadata: Fact[] = [];
  let alignment = 32;
  for (let i = 0; i < keys; i++) {
    const key = await reader.text('a key');
    const at = reader.at;
    const type = await reader.u32('the type of a value');
    const value = await readValue(reader, type, 0, start.size);
    metadata.push([key, value]);
    if (key === 'general.alignment') {
      alignment = Number(value);
      if (!(alignment >= 1 && alignment <= MEBIBYTE && Number.isInteger(alignment)))
        throw wrong(`the alignment is ${value}`, at);
    }
  }
  const described: { name: string; shape: number[]; type: number; offset: number; at: number }[] = [];
  for (let i = 0; i < count; i++) {
    const at = reader.at;
    const name = await reader.text('the name of a tensor');
    const axes = await reader.u32('the number of dimensions');
    // As many as are read before the shape is checked.
    if (axes > 65) throw wrong(`a tensor has ${axes} dimensions`, at);
    const shape: number[] = [];
    for (let axis = 0; axis < axes; axis++) shape.unshift(await reader.u64('a dimension'));
    described.push({
      name,
      shape,
      type: await reader.u32('the type of a tensor'),
      offset: await reader.u64('an offset'),
      at,
    });
  }
  const base = Math.ceil(reader.at / alignment) * alignment;
  const items = described.map((one) => itemOf(start, base, one));
  return {
    format: 'GGUF',
    root: {
      ...folder('', '', grouped(items)),
      kind: 'file',
      facts: () => [
        ['version', String(version)],
        ['alignment', String(alignment)],
      ],
      tensors: () => tensorsOf(items),
      metadata: () => metadata,
    },
    warnings: [],
    check: null,
  };
}

function itemOf(
  start: Start,
  base: number,
  { name, shape, type, offset, at }: { name: string; shape: number[]; type: number; offset: number; at: number },
): Item {
  const found = TYPES[type];
  const dtype = found === undefined || found === '.' ? `type ${type}` : found;
  elementsOf(shape, at);
  const bytes = bytesOfShape(dtype, shape);
  const place = base + offset;
  const quoted = JSON.stringify(name);
  if (bytes !== undefined && !Number.isInteger(bytes)) {
    throw wrong(`${quoted}, ${tensorNote({ dtype, shape })}, is not a whole number of blocks`, at);
  }
  if (place + (bytes ?? 0) > start.size) {
    throw wrong(`${quoted} would end at byte ${place + (bytes ?? 0)}, but the file has ${start.size} bytes`, at);
  }
  const isUnread = bytes === undefined || !codecOf(dtype) || UNREAD_BLOCKS.includes(dtype);
  return {
    name,
    path: name,
    kind: 'tensor',
    note: tensorNote({ dtype, shape }),
    count: 0,
    facts: () => [
      ['at byte', countText(place)],
      ['order', 'as numpy has it: the last dimension is the first one in the file'],
    ],
    tensor: {
      dtype,
      shape,
      order: 'C',
      bytes: bytes ?? 0,
      grain: 1,
      read: (from, to) => readAt(start, place + from, to - from, 'a tensor'),
      ...(isUnread ? { unreadable: `numbers of the type ${dtype} are not shown here` } : {}),
    },
  };
}
