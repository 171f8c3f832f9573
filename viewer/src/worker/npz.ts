// npz: a zip archive of npy files. Its directory is at the end; members are stored as they are or compressed by deflate.
import { concat, viewOf } from '../../../js/src/bytes.js';
import { TenarcError } from '../../../js/src/errors.js';
import type { Fact } from '../shared/protocol.js';
import { bytesText, countText, plural } from '../shared/text.js';
import { MEBIBYTE } from './elements.js';
import { NPY_HEADER, npyTensor, readNpyHeader } from './npy.js';
import { readAt, tensorNote, tensorsOf, wrong, type Item, type OpenFile, type Progress, type Start } from './model.js';

const END_LENGTH = 22;
const MAX_COMMENT = 65535;
const MAX_DIRECTORY = 256 * MEBIBYTE;
/** The headers of at most this many members are read to count all arrays. */
const COUNTED = 200;
/** Compressed members have to be decompressed from their start on, and are kept while they are looked at. */
const MAX_INFLATED = 512 * MEBIBYTE;
const STORED = 0;
const DEFLATED = 8;

interface Member {
  name: string;
  method: number;
  isEncrypted: boolean;
  crc: number;
  compressed: number;
  length: number;
  /** Where its local header is. */
  offset: number;
}

export async function openNpz(start: Start): Promise<OpenFile> {
  const members = await readDirectory(start);
  if (members.some((member) => /(^|\/)data\.pkl$/.test(member.name))) {
    throw new TenarcError('unsupported', 'this is a file of torch.save; "tenarc convert" can turn it into an archive', 0);
  }
  const kept: Kept = {};
  const root: Item = {
    name: '',
    path: '',
    kind: 'file',
    note: '',
    count: members.length,
    children: (from, to) => Promise.all(members.slice(from, to).map((member) => itemOf(start, member, kept))),
    ...(members.length <= COUNTED && !start.remote
      ? { tensors: async () => tensorsOf(await Promise.all(members.map((member) => itemOf(start, member, kept)))) }
      : {}),
    facts: (): Fact[] => {
      const deflated = members.filter((member) => member.method === DEFLATED).length;
      return [
        ['members', countText(members.length)],
        ['compressed', deflated === 0 ? 'no' : `${plural(deflated, 'member')}, by deflate`],
      ];
    },
  };
  return {
    format: 'npz',
    root,
    warnings: [],
    check: 'Reads all members and compares their CRC-32 checksums.',
    verify: (progress) => verify(start, members, progress),
  };
}

async function readDirectory(start: Start): Promise<Member[]> {
  const { size } = start;
  const length = Math.min(size, END_LENGTH + MAX_COMMENT);
  const end = await readAt(start, size - length, length, 'the end of the zip archive');
  const view = viewOf(end);
  let at = length - END_LENGTH;
  // The record is right if its comment reaches to the end of the file.
  while (at >= 0 && !(view.getUint32(at, true) === 0x06054b50 && at + END_LENGTH + view.getUint16(at + 20, true) === length))
    at--;
  if (at < 0) throw wrong('the zip archive has no directory at its end; it may be cut off', size);
  const place = size - length + at;
  let count = view.getUint16(at + 10, true);
  let bytes = view.getUint32(at + 12, true);
  let offset = view.getUint32(at + 16, true);
  if (count === 0xffff || bytes === 0xffffffff || offset === 0xffffffff) {
    const locator = viewOf(await readAt(start, place - 20, 20, 'the locator of the zip64 directory'));
    if (locator.getUint32(0, true) !== 0x07064b50) throw wrong('there is no locator of a zip64 directory', place - 20);
    const where = long(locator, 8, place - 12);
    const record = viewOf(await readAt(start, where, 56, 'the end of the zip64 directory'));
    if (record.getUint32(0, true) !== 0x06064b50) throw wrong('there is no end of a zip64 directory', where);
    count = long(record, 32, where);
    bytes = long(record, 40, where);
    offset = long(record, 48, where);
  }
  if (bytes > MAX_DIRECTORY) throw wrong(`a zip directory of ${bytes} bytes is longer than ${MAX_DIRECTORY}`, place);
  return membersIn(await readAt(start, offset, bytes, 'the zip directory'), count, offset);
}

function long(view: DataView, at: number, offset: number): number {
  const value = Number(view.getBigUint64(at, true));
  if (!Number.isSafeInteger(value)) throw wrong(`the number ${value} is too large`, offset + at);
  return value;
}

function membersIn(bytes: Uint8Array, count: number, offset: number): Member[] {
  const view = viewOf(bytes);
  const out: Member[] = [];
  let at = 0;
  for (let i = 0; i < count; i++) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== 0x02014b50) {
      throw wrong(`entry ${i} of ${count} in the zip directory is not there`, offset + at);
    }
    const flags = view.getUint16(at + 8, true);
    const nameEnd = at + 46 + view.getUint16(at + 28, true);
    const extraEnd = nameEnd + view.getUint16(at + 30, true);
    const next = extraEnd + view.getUint16(at + 32, true);
    if (next > bytes.length) throw wrong(`entry ${i} of the zip directory is cut off`, offset + at);
    const member = {
      name: new TextDecoder().decode(bytes.subarray(at + 46, nameEnd)),
      method: view.getUint16(at + 10, true),
      isEncrypted: (flags & 1) !== 0,
      crc: view.getUint32(at + 16, true),
      compressed: view.getUint32(at + 20, true),
      length: view.getUint32(at + 24, true),
      offset: view.getUint32(at + 42, true),
    };
    readZip64(member, view, nameEnd, extraEnd, offset);
    if (!member.name.endsWith('/')) out.push(member);
    at = next;
  }
  return out;
}

/** Numbers that do not fit in 32 bits are in an extra field, in this order. */
function readZip64(member: Member, view: DataView, from: number, to: number, offset: number): void {
  for (let at = from; at + 4 <= to;) {
    const end = at + 4 + view.getUint16(at + 2, true);
    if (view.getUint16(at, true) === 1 && end <= to) {
      let field = at + 4;
      for (const key of ['length', 'compressed', 'offset'] as const) {
        if (member[key] !== 0xffffffff) continue;
        if (field + 8 > end) throw wrong('a zip64 field is cut off', offset + at);
        member[key] = long(view, field, offset);
        field += 8;
      }
    }
    at = end;
  }
}

/** Where the bytes of a member start: behind its local header, whose fields can be longer than in the directory. */
async function dataStart(start: Start, member: Member): Promise<number> {
  const view = viewOf(await readAt(start, member.offset, 30, 'the header of a member'));
  if (view.getUint32(0, true) !== 0x04034b50)
    throw wrong(`the member ${JSON.stringify(member.name)} is not there`, member.offset);
  return member.offset + 30 + view.getUint16(26, true) + view.getUint16(28, true);
}

function checkReadable(member: Member): void {
  const name = JSON.stringify(member.name);
  if (member.isEncrypted) throw new TenarcError('unsupported', `the member ${name} is encrypted`, member.offset);
  if (member.method !== STORED && member.method !== DEFLATED) {
    throw new TenarcError(
      'unsupported',
      `the member ${name} is compressed by method ${member.method}; 0 and 8 are known`,
      member.offset,
    );
  }
  if (member.method === STORED && member.compressed !== member.length) {
    throw wrong(`the member ${name} is stored in ${member.compressed} bytes, but has ${member.length}`, member.offset);
  }
}

/** The bytes of a member, piece by piece, at most `limit` of them. A member gives no more bytes than the directory says. */
async function* pieces(start: Start, member: Member, limit = member.length): AsyncGenerator<Uint8Array> {
  checkReadable(member);
  const from = await dataStart(start, member);
  const step = Math.min(MEBIBYTE, Math.max(limit, 4096));
  async function* stored() {
    for (let at = 0; at < member.compressed; at += step) {
      yield await readAt(
        start,
        from + at,
        Math.min(step, member.compressed - at),
        `the member ${JSON.stringify(member.name)}`,
      );
    }
  }
  const source = member.method === STORED ? stored() : inflated(stored(), member);
  let done = 0;
  for await (const piece of source) {
    done += piece.length;
    if (done > member.length) {
      throw wrong(`the member ${JSON.stringify(member.name)} has more than ${member.length} bytes`, member.offset);
    }
    yield piece;
    if (done >= limit) return;
  }
  if (done < member.length) {
    throw wrong(`the member ${JSON.stringify(member.name)} has ${done} bytes instead of ${member.length}`, member.offset);
  }
}

async function* inflated(stored: AsyncGenerator<Uint8Array>, member: Member): AsyncGenerator<Uint8Array> {
  let failure: unknown;
  const source = new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await stored.next();
        if (done) controller.close();
        else controller.enqueue(value as Uint8Array<ArrayBuffer>);
      } catch (error) {
        failure = error;
        controller.error(error);
      }
    },
  });
  const reader = source.pipeThrough(new DecompressionStream('deflate-raw')).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value as Uint8Array;
    }
  } catch (error) {
    if (failure) throw failure;
    const why = error instanceof Error ? error.message : String(error);
    throw wrong(`the member ${JSON.stringify(member.name)} cannot be decompressed: ${why}`, member.offset);
  } finally {
    reader.cancel().catch(() => undefined);
  }
}

async function collect(source: AsyncGenerator<Uint8Array>): Promise<Uint8Array> {
  const out: Uint8Array[] = [];
  for await (const piece of source) out.push(piece);
  return concat(out);
}

/** The one compressed member that is kept. */
interface Kept {
  member?: Member;
  bytes?: Promise<Uint8Array>;
}

async function inflate(start: Start, member: Member, kept: Kept): Promise<Uint8Array> {
  if (kept.member !== member) {
    if (member.length > MAX_INFLATED) {
      throw new TenarcError(
        'limit',
        `the compressed member ${JSON.stringify(member.name)} has ${member.length} bytes; at most ${MAX_INFLATED} are decompressed`,
        member.offset,
      );
    }
    kept.member = member;
    kept.bytes = collect(pieces(start, member)).catch((error) => {
      delete kept.member;
      throw error;
    });
  }
  return kept.bytes!;
}

async function itemOf(start: Start, member: Member, kept: Kept): Promise<Item> {
  const name = member.name.replace(/\.npy$/, '');
  const facts = (): Fact[] => [
    ['member', member.name],
    ['stored', member.method === STORED ? 'as it is' : `${bytesText(member.compressed)} by deflate`],
    ['at byte', countText(member.offset)],
  ];
  const plain: Item = { name, path: name, kind: 'bytes', note: bytesText(member.length), count: 0, facts };
  if (!member.name.endsWith('.npy')) return plain;
  try {
    const header = readNpyHeader(await collect(pieces(start, member, Math.min(member.length, NPY_HEADER))), member.offset);
    const skipped = header.start;
    const from = member.method === STORED ? await dataStart(start, member) : 0;
    const read = async (first: number, last: number) => {
      if (member.method === STORED) return readAt(start, from + skipped + first, last - first, 'an array');
      return (await inflate(start, member, kept)).subarray(skipped + first, skipped + last);
    };
    const tensor = npyTensor(header, member.length - skipped, member.offset, read);
    return { ...plain, kind: 'tensor', note: tensorNote(header), tensor };
  } catch (error) {
    // One member that is wrong does not hide the others.
    if (!(error instanceof TenarcError)) throw error;
    return { ...plain, kind: 'other', note: 'cannot be read', text: error.message };
  }
}

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let value = byte;
  for (let i = 0; i < 8; i++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

export function crc32(bytes: Uint8Array, before = 0): number {
  let crc = ~before;
  for (let i = 0; i < bytes.length; i++) crc = TABLE[(crc ^ bytes[i]!) & 255]! ^ (crc >>> 8);
  return ~crc >>> 0;
}

async function verify(start: Start, members: Member[], progress: Progress): Promise<string> {
  const total = members.reduce((sum, member) => sum + member.length, 0);
  let done = 0;
  for (const member of members) {
    let crc = 0;
    for await (const piece of pieces(start, member)) {
      crc = crc32(piece, crc);
      done += piece.length;
      await progress(done, total);
    }
    if (crc !== member.crc) {
      throw wrong(`the CRC-32 of the member ${JSON.stringify(member.name)} is wrong`, member.offset);
    }
  }
  return `All ${plural(members.length, 'member')} have the right CRC-32.`;
}
