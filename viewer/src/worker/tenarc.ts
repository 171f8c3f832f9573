// tenarc archives, by the reader in js/.
import { decompress } from 'fzstd';
import {
  TenarcError,
  Tensor as Whole,
  open,
  verify,
  type Archive,
  type Entry,
  type Segment,
  type Source,
} from '../../../js/src/index.js';
import type { Fact } from '../shared/protocol.js';
import { bytesText, countText, plural } from '../shared/text.js';
import { bytesOfShape, codecOf } from './elements.js';
import { readable } from './format.js';
import { tensorNote, type Item, type OpenFile, type Progress, type Sized, type Start, type Table } from './model.js';

const TARC = Uint8Array.of(0xd9, 0xd9, 0xf8, 0xda, 0x54, 0x41, 0x52, 0x43);

export function isTenarc(first: Uint8Array): boolean {
  return first.length > 0 && TARC.subarray(0, first.length).every((byte, i) => first[i] === byte);
}

/** The headers of at most this many segments are read to count all tensors. */
const COUNTED = 64;

/** Decompresses into memory of exactly the length that is expected. */
function zstd(bytes: Uint8Array, length: number): Uint8Array {
  return decompress(bytes, new Uint8Array(length));
}

export async function openTenarc({ source, size }: Start): Promise<OpenFile> {
  const archive = await open(plain(source), { torn: true, types: true, codecs: { zstd } });
  const segments = await archive.segments();
  const warnings: string[] = [];
  if (archive.state === 'torn') {
    warnings.push('This archive was never committed. What is complete is shown. "tenarc recover" keeps it.');
  } else if (archive.state === 'unfinished') {
    warnings.push('Bytes of an unfinished append follow the last commit. They are not shown.');
  }
  return {
    format: 'tenarc',
    root: {
      name: '',
      path: '',
      kind: 'file',
      note: '',
      ...listed(namesOf(archive, segments)),
      facts: async (): Promise<Fact[]> => [
        ['state', archive.state],
        ['segments', countText(segments.length)],
      ],
      ...(segments.length <= COUNTED ? { tensors: () => tensorsIn(segments) } : {}),
    },
    warnings,
    check: 'Reads the whole file and compares all checksums.',
    verify: (progress) => verifyWith(source, size, progress),
  };
}

/** Without reading its end and its length at once: not all servers do that for pages of other addresses. */
function plain(source: Source): Source {
  return { size: () => source.size(), read: (offset, length) => source.read(offset, length) };
}

async function verifyWith(source: Source, size: number, progress: Progress): Promise<string> {
  let done = 0;
  const counted: Source = {
    size: () => source.size(),
    async read(offset, length) {
      const bytes = await source.read(offset, length);
      done += length;
      // The walk over the headers comes first, and reads little.
      await progress(Math.min(done, size), size);
      return bytes;
    },
  };
  const { state, segments } = await verify(counted);
  const end = state === 'unfinished' ? ' Bytes of an unfinished append behind them were not verified.' : '';
  return `All checksums of ${plural(segments, 'segment')} are right.${end}`;
}

function listed(items: Item[]): Pick<Item, 'count' | 'children'> {
  return { count: items.length, children: async (start, end) => items.slice(start, end) };
}

/** The segments; those with the same name are one table, or one group. */
function namesOf(archive: Archive, segments: Segment[]): Item[] {
  const names = new Map<string, Segment[]>();
  const out: (() => Item)[] = [];
  for (const segment of segments) {
    const { name } = segment;
    const same = name === null ? undefined : names.get(name);
    if (same) {
      same.push(segment);
      continue;
    }
    const own = [segment];
    if (name !== null) names.set(name, own);
    out.push(() => (own.length === 1 ? segmentItem(segment, labelOf(segment)) : severalItem(archive, own)));
  }
  return out.map((make) => make());
}

function labelOf(segment: Segment): string {
  return segment.name ?? `segment ${segment.index}`;
}

function severalItem(archive: Archive, segments: Segment[]): Item {
  const name = segments[0]!.name!;
  const rows = segments.reduce((sum, segment) => sum + Number(segment.rows ?? NaN), 0);
  const isTable = Number.isSafeInteger(rows);
  const inner = segments.map((segment, i) => segmentItem(segment, `${name} (${i + 1} of ${segments.length})`));
  return {
    name,
    path: name,
    kind: isTable ? 'table' : 'list',
    note: `${plural(segments.length, 'segment')}${isTable ? `, ${plural(rows, 'row')}` : ''}`,
    ...listed(inner),
    ...(isTable ? { table: tableOf(archive, name, segments, rows) } : {}),
  };
}

function tableOf(archive: Archive, name: string, segments: Segment[], rows: number): Table {
  return {
    rows,
    async read(start, end) {
      const out: unknown[] = [];
      let before = 0;
      for (const segment of segments) {
        const own = Number(segment.rows);
        if (before + own > start && before < end) {
          const part = await segment.elements('', Math.max(0, start - before), Math.min(own, end - before));
          for (const row of part) out.push(row);
        }
        before += own;
        if (before >= end) break;
      }
      return out;
    },
    column: async (path) => scalars(await (await archive.table(name)).column(pointer('', path))),
  };
}

function pointer(path: string, parts: string[]): string {
  return path + parts.map((part) => `/${part.replace(/~/g, '~0').replace(/\//g, '~1')}`).join('');
}

/** A column of numbers as numbers. */
function scalars(column: Whole | ArrayLike<unknown>): ArrayLike<unknown> {
  if (!(column instanceof Whole)) return column;
  const codec = codecOf(column.dtype);
  if (!codec || column.shape.length !== 1) throw new TenarcError('usage', 'the values of this column have no order');
  return codec.decode(column.bytes);
}

async function segmentFacts(segment: Segment): Promise<Fact[]> {
  const digest = await segment.computeDigest();
  return [
    ['segment', String(segment.index)],
    ['at byte', countText(segment.offset)],
    ...(segment.rows === null ? [] : [['rows', countText(segment.rows)] as Fact]),
    ...(digest === null ? [] : [['digest', digest] as Fact]),
  ];
}

async function tensorsIn(segments: Segment[]): Promise<Sized[]> {
  const lists = await Promise.all(segments.map((segment) => segment.list()));
  return lists.flat().map(({ dtype, shape }) => ({ dtype, shape, bytes: bytesOfShape(dtype, shape) ?? 0 }));
}

/** A segment. What is in it is read when it is first looked at. */
function segmentItem(segment: Segment, name: string): Item {
  const item: Item = {
    name,
    path: name,
    kind: segment.rows === null ? 'group' : 'list',
    note: segment.rows === null ? '' : plural(Number(segment.rows), 'row'),
    count: -1,
    async resolve() {
      const inner = await itemOf(segment, await segment.entry(''), name);
      return {
        ...inner,
        name,
        path: name,
        facts: async () => [...(await segmentFacts(segment)), ...((await inner.facts?.()) ?? [])],
        ...(inner.kind === 'group' ? { tensors: () => tensorsIn([segment]) } : {}),
        metadata: async () => [...(await segment.notes())].map(([key, value]): Fact => [`note: ${key}`, value]),
      };
    },
  };
  return item;
}

async function itemOf(segment: Segment, entry: Entry, root: string): Promise<Item> {
  const { key, path, kind } = entry;
  const item: Item = {
    name: key,
    path: `${root}${path.replace(/\//g, ' › ').replace(/~1/g, '/').replace(/~0/g, '~')}`,
    kind: 'other',
    note: kind === 'null' ? 'null' : '',
    count: entry.count,
    facts: () => (entry.type === undefined ? [] : [['type', entry.type]]),
  };
  if (entry.count > 0) {
    item.children = async (start, end) => {
      const entries = await segment.entries(path, start, end);
      return Promise.all(entries.map((one) => itemOf(segment, one, root)));
    };
  }
  switch (kind) {
    case 'map':
      return { ...item, kind: 'group', note: plural(entry.count, 'entry', 'entries') };
    case 'array':
      return {
        ...item,
        kind: 'list',
        note: plural(entry.count, 'element'),
        ...((await isListOfMaps(segment, entry)) ? { table: listTable(segment, path, entry.count) } : {}),
      };
    case 'columns':
    case 'column': {
      const rows = entry.rows!;
      const table: Table = {
        rows,
        read: (start, end) => segment.elements(path, start, end),
        column: async (parts) => scalars((await segment.get(pointer(path, parts))) as ArrayLike<unknown>),
      };
      return {
        ...item,
        kind: kind === 'columns' ? 'table' : 'column',
        note: kind === 'columns' ? plural(rows, 'row') : '',
        table,
      };
    }
    case 'tensor':
      return tensorItem(segment, entry, item);
    case 'bytes': {
      const { buffer } = entry;
      return {
        ...item,
        kind: 'bytes',
        note: bytesText(entry.bytes!),
        facts: async () => (buffer === undefined ? [] : placeFacts(await segment.bufferPlace(buffer))),
      };
    }
    case 'text':
      return {
        ...item,
        kind: 'text',
        note: JSON.stringify((entry.value as string).slice(0, 80)),
        text: entry.value as string,
      };
    case 'number':
    case 'bool':
      return { ...item, kind: 'number', note: readable(entry.value), text: readable(entry.value) };
    default:
      return item;
  }
}

async function isListOfMaps(segment: Segment, { path, count }: Entry): Promise<boolean> {
  const [first] = count > 0 ? await segment.entries(path, 0, 1) : [];
  return first?.kind === 'map';
}

function listTable(segment: Segment, path: string, rows: number): Table {
  return {
    rows,
    read: (start, end) => segment.elements(path, start, end),
    async column(parts) {
      const all = await segment.elements(path, 0, rows);
      return all.map((row) => parts.reduce<unknown>((value, part) => fieldOf(value, part), row));
    },
  };
}

export function fieldOf(value: unknown, key: string): unknown {
  if (value instanceof Map) return value.get(key);
  if (value && Object.getPrototypeOf(value) === Object.prototype && Object.hasOwn(value, key))
    return (value as Record<string, unknown>)[key];
  return null;
}

type Place = Awaited<ReturnType<Segment['bufferPlace']>>;

function placeFacts(place: Place): Fact[] {
  const { offset, stored, length, codec } = place;
  return [
    ['at byte', countText(offset)],
    ...(codec
      ? [['stored', `${bytesText(stored)} by ${codec}, ${Math.round((100 * stored) / Math.max(1, length))} %`] as Fact]
      : []),
  ];
}

async function tensorItem(segment: Segment, entry: Entry, item: Item): Promise<Item> {
  const { path, buffer } = entry;
  const dtype = entry.dtype!;
  const shape = entry.shape!;
  const bytes = entry.bytes!;
  const place = buffer === undefined ? undefined : await segment.bufferPlace(buffer);
  // The bytes of columns are given by rows. Those in the metadata are in memory already.
  const width = shape.length > 0 && shape[0]! > 0 ? bytes / shape[0]! : 0;
  const byRows = async (start: number, end: number) => {
    if (start >= end) return new Uint8Array(0);
    if (!Number.isInteger(width) || width === 0) return (await segment.tensor(path)).bytes.subarray(start, end);
    const first = Math.floor(start / width);
    const part = await segment.slice(path, first, Math.ceil(end / width));
    return part.bytes.subarray(start - first * width, end - first * width);
  };
  const isInOrder = entry.order === 'C';
  const whole = async (start: number, end: number) => (await segment.tensor(path)).bytes.subarray(start, end);
  return {
    ...item,
    kind: 'tensor',
    note: tensorNote({ dtype, shape }),
    facts: () => [
      ...(entry.type === undefined ? [] : [['type', entry.type] as Fact]),
      ...(place ? placeFacts(place) : []),
      ...(isInOrder ? [] : [['order', 'F: the first index changes fastest'] as Fact]),
    ],
    tensor: {
      dtype,
      shape,
      order: entry.order!,
      bytes,
      grain: place?.chunk ?? 1,
      read: buffer !== undefined ? (start, end) => segment.buffer(buffer, start, end) : isInOrder ? byRows : whole,
      ...(codecOf(dtype) ? {} : { unreadable: `elements of ${dtype} are not shown here` }),
    },
  };
}
