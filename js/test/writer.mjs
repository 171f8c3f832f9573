// Writes small archives for tests: at most 63 segments, buffers that are not compressed.
import { concat, bytesOfU64 } from '../dist/bytes.js';
import { encodeHead, encodeTextItem } from '../dist/cbor.js';
import { padding } from '../dist/record.js';
import { xxh3 } from '../dist/xxh3.js';

export const text = encodeTextItem;
export const uint = (value) => encodeHead(0, value);
export const bytes = (value) => concat([encodeHead(2, value.length), value]);
export const array = (...items) => concat([encodeHead(4, items.length), ...items]);
export const map = (...items) => concat([encodeHead(5, items.length / 2), ...items]);
export const tag = (number, item) => concat([encodeHead(6, number), item]);
export const nothing = Uint8Array.of(0xf6);
const [TSEG, TEND, TBUF, TCOL] = [1414743367, 1413828164, 1413633350, 1413697356];

export const columns = (...parts) => tag(TCOL, array(...parts));
export const packed = (tagNumber, data) => tag(tagNumber, bytes(new Uint8Array(data.buffer)));
export const tensorIn = (buffer, dtype, shape, order = 'C') =>
  tag(TBUF, array(text(dtype), array(...shape.map(uint)), text(order), uint(buffer)));

const hash = (item, seed) => concat([Uint8Array.of(0x48), bytesOfU64(xxh3(item, BigInt(seed)))]);

function record(content, offset) {
  const item = tag(24, bytes(content));
  return concat([item, hash(item, offset)]);
}

const up = (value, unit) => Math.ceil(value / unit) * unit;

function headerOf({ name, metadata, lengths, chunk, alignment, ext = map() }, offset) {
  const content = array(
    uint(1),
    name === null ? nothing : text(name),
    uint(alignment),
    text('xxh3-64'),
    uint(chunk),
    array(...lengths.map(uint)),
    ext,
    metadata,
  );
  return record(tag(TSEG, content), offset);
}

/** What stands in front of a body, and behind one with these hashes. */
function aroundBody(header, offset, alignment, length, hashes) {
  const head = encodeHead(2, length);
  const start = offset + header.length + head.length;
  const item = tag(67, bytes(hashes));
  const seed = new DataView(header.buffer, header.byteOffset + header.length - 8).getBigUint64(0);
  const before = concat([header, padding(up(start, alignment) - start), head]);
  return { before, after: concat([item, hash(item, seed)]) };
}

function segment({ buffers = [], chunk = 65536, alignment = 64, ...more }, offset) {
  const header = headerOf({ ...more, chunk, alignment, lengths: buffers.map((one) => one.length) }, offset);
  if (buffers.length === 0) return { header, whole: header };
  const body = new Uint8Array(buffers.reduce((sum, one) => up(sum, alignment) + one.length, 0));
  const hashes = [];
  let at = 0;
  for (const buffer of buffers) {
    at = up(at, alignment);
    body.set(buffer, at);
    at += buffer.length;
    for (let start = 0; start < buffer.length; start += chunk)
      hashes.push(bytesOfU64(xxh3(buffer.subarray(start, start + chunk))));
  }
  const { before, after } = aroundBody(header, offset, alignment, body.length, concat(hashes));
  return { header, whole: concat([before, body, after]) };
}

const MAGIC = Uint8Array.of(0xd9, 0xd9, 0xf8, 0xda, 0x54, 0x41, 0x52, 0x43, 0x43, 0x42, 0x4f, 0x52);

/** The end mark and its tail. */
function endOf(segments, headers, offset) {
  const names = [...new Set(segments.map((one) => one.name).filter((name) => name !== null))];
  const entries = segments.map((one, i) =>
    array(
      uint(headers[i].offset),
      one.name === null ? nothing : uint(names.indexOf(one.name)),
      uint(headers[i].length),
      one.rows === undefined ? nothing : uint(one.rows),
    ),
  );
  const mark = record(
    tag(TEND, array(uint(1), uint(segments.length), array(array(...names.map(text)), array(...entries)), array(), map())),
    offset,
  );
  const end = offset + mark.length;
  const place = end % 512 <= 470 ? end : up(end, 512);
  const tail = concat([
    Uint8Array.of(0x58, 0x28),
    new TextEncoder().encode('TARCTAIL'),
    bytesOfU64(offset),
    bytesOfU64(mark.length),
    bytesOfU64(place),
  ]);
  return concat([mark, padding(place - end), tail, bytesOfU64(xxh3(tail, BigInt(place)))]);
}

export function archive(segments) {
  let out = MAGIC;
  const headers = [];
  for (const one of segments) {
    const { header, whole } = segment(one, out.length);
    headers.push({ offset: out.length, length: header.length });
    out = concat([out, whole]);
  }
  return concat([out, endOf(segments, headers, out.length)]);
}

/** An archive with one buffer of zeros, whose bytes are a hole of `length` bytes between `before` and `after`. */
export function hollow({ name, metadata, length, chunk }) {
  const offset = MAGIC.length;
  const header = headerOf({ name, metadata, lengths: [length], chunk, alignment: 64 }, offset);
  const count = Math.ceil(length / chunk);
  const zeros = new Uint8Array(chunk);
  const hashes = new Array(count - 1).fill(bytesOfU64(xxh3(zeros)));
  hashes.push(bytesOfU64(xxh3(zeros.subarray(0, length - (count - 1) * chunk))));
  const { before, after } = aroundBody(header, offset, 64, length, concat(hashes));
  const end = offset + before.length + length + after.length;
  const mark = endOf([{ name }], [{ offset, length: header.length }], end);
  return { before: concat([MAGIC, before]), length, after: concat([after, mark]) };
}
