// safetensors: 8 bytes with the length of a JSON object, that object, and the tensors.
import { decodeText, viewOf } from '../../../js/src/bytes.js';
import type { Fact } from '../shared/protocol.js';
import { bytesText, countText } from '../shared/text.js';
import { bytesOfShape, codecOf } from './elements.js';
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

/** The limit of the format's own library. */
const MAX_HEADER = 100_000_000;

const DTYPES: Record<string, string | undefined> = {
  __proto__: null as never,
  BOOL: 'bool',
  U8: 'u8',
  U16: 'u16',
  U32: 'u32',
  U64: 'u64',
  I8: 'i8',
  I16: 'i16',
  I32: 'i32',
  I64: 'i64',
  F16: 'f16',
  BF16: 'bf16',
  F32: 'f32',
  F64: 'f64',
  C64: 'c64',
  F8_E5M2: 'f8_e5m2',
  F8_E4M3: 'f8_e4m3',
  F8_E8M0: 'f8_e8m0',
  F8_E5M2FNUZ: 'f8_e5m2fnuz',
  F8_E4M3FNUZ: 'f8_e4m3fnuz',
  F6_E2M3: 'f6_e2m3',
  F6_E3M2: 'f6_e3m2',
  F4: 'f4',
};

export function isSafetensors(first: Uint8Array): boolean {
  return first.length >= 9 && first[8] === 0x7b && viewOf(first).getUint32(4, true) === 0;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export async function openSafetensors(start: Start): Promise<OpenFile> {
  const length = Number(viewOf(await readAt(start, 0, 8, 'the length of the header')).getBigUint64(0, true));
  if (length > MAX_HEADER) throw wrong(`a header of ${length} bytes is longer than ${MAX_HEADER}`, 0);
  const bytes = await readAt(start, 8, length, `the header of ${length} bytes`);
  const header = parse(bytes);
  const base = 8 + length;
  const room = start.size - base;
  const metadata: Fact[] = [];
  const items: Item[] = [];
  const ranges: { from: number; to: number; name: string }[] = [];
  for (const [name, entry] of Object.entries(header)) {
    if (name === '__metadata__') {
      if (!isObject(entry)) throw wrong('"__metadata__" is not an object', 8);
      for (const [key, value] of Object.entries(entry))
        metadata.push([key, typeof value === 'string' ? value : JSON.stringify(value)]);
      continue;
    }
    const { dtype, shape, from, to } = described(name, entry, room);
    ranges.push({ from, to, name });
    items.push({
      name,
      path: name,
      kind: 'tensor',
      note: tensorNote({ dtype, shape }),
      count: 0,
      facts: () => [['at byte', countText(base + from)]],
      tensor: {
        dtype,
        shape,
        order: 'C',
        bytes: to - from,
        grain: 1,
        read: (first, last) => readAt(start, base + from + first, last - first, 'a tensor'),
        ...(codecOf(dtype) ? {} : { unreadable: `the dtype ${dtype} is not known` }),
      },
    });
  }
  const warnings = gaps(ranges, room, base);
  const file = folder('', '', grouped(items));
  return {
    format: 'safetensors',
    root: {
      ...file,
      kind: 'file',
      facts: () => [['header', bytesText(length)]],
      tensors: () => tensorsOf(items),
      metadata: () => metadata,
    },
    warnings,
    check: null,
  };
}

function parse(bytes: Uint8Array): Record<string, unknown> {
  let header: unknown;
  try {
    header = JSON.parse(decodeText(bytes));
  } catch (error) {
    throw wrong(`the header is not JSON: ${error instanceof Error ? error.message : String(error)}`, 8);
  }
  if (!isObject(header)) throw wrong('the header is not a JSON object', 8);
  return header;
}

function described(name: string, entry: unknown, room: number) {
  const quoted = JSON.stringify(name);
  if (!isObject(entry)) throw wrong(`the entry ${quoted} is not an object`, 8);
  const { dtype: written, shape, data_offsets: offsets } = entry;
  if (typeof written !== 'string') throw wrong(`the entry ${quoted} has no dtype`, 8);
  if (!Array.isArray(shape) || !shape.every(Number.isSafeInteger)) throw wrong(`the entry ${quoted} has no shape`, 8);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(Number.isSafeInteger)) {
    throw wrong(`the entry ${quoted} has no data_offsets`, 8);
  }
  const [from, to] = offsets as [number, number];
  if (from < 0 || to < from || to > room) {
    throw wrong(`${quoted} is from byte ${from} to ${to} of the data, which has ${room} bytes`, 8);
  }
  const dtype = DTYPES[written] ?? written;
  elementsOf(shape as number[], 8);
  const expected = bytesOfShape(dtype, shape as number[]);
  if (expected !== undefined && expected !== to - from) {
    throw wrong(
      `${quoted}, ${tensorNote({ dtype, shape: shape as number[] })}, has ${to - from} bytes instead of ${expected}`,
      8,
    );
  }
  return { dtype, shape: shape as number[], from, to };
}

/** The format wants the tensors to fill the data without gaps. A name that occurs twice leaves one too. */
function gaps(ranges: { from: number; to: number; name: string }[], room: number, base: number): string[] {
  let at = 0;
  for (const { from, to, name } of ranges.sort((a, b) => a.from - b.from || a.to - b.to)) {
    if (from < at) return [`The tensor ${JSON.stringify(name)} overlaps the one before it (at byte ${base + from}).`];
    if (from > at) return [`No tensor has the ${from - at} bytes from byte ${base + at} on.`];
    at = to;
  }
  return at < room ? [`No tensor has the last ${room - at} bytes, from byte ${base + at} on.`] : [];
}
