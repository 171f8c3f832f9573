// Reads tenarc archives. "node minimal_reader.mjs FILE" lists the segments, and with a NAME it shows the value. It does not verify
// hashes or decompress buffers, and gives columns and big integers as they are stored. The archive must end with a tail.
import { readFileSync } from 'node:fs';

const [, , path, wanted] = process.argv;
const file = readFileSync(path);
let at = 0; // where the next item starts
const DTYPES = { 64: 'u8', 69: 'u16', 70: 'u32', 71: 'u64', 72: 'i8', 77: 'i16', 78: 'i32', 79: 'i64', 84: 'f16', 85: 'f32', 86: 'f64', 87: 'f128' };
const SIMPLE = { 20: false, 21: true, 22: null };

function head() {
  const first = file[at++], info = first & 31, width = info < 24 ? 0 : 1 << (info - 24);
  const n = width === 0 ? info : width < 8 ? file.readUIntBE(at, width) : file.readBigUInt64BE(at);
  at += width;
  return [first >> 5, n <= Number.MAX_SAFE_INTEGER ? Number(n) : n, info];
}
function item(buffers) {
  const [major, n, info] = head();
  const times = (one) => Array.from({ length: n }, one);
  if (major === 0) return n;
  if (major === 1) return typeof n === 'bigint' ? -1n - n : -1 - n;
  if (major === 2) return file.subarray(at, (at += n));
  if (major === 3) return file.toString('utf8', at, (at += n));
  if (major === 4) return times(() => item(buffers));
  if (major === 5) return new Map(times(() => [item(buffers), item(buffers)]));
  if (major === 6) return meaning(n, item(buffers), buffers);
  return info === 26 ? file.readFloatBE(at - 4) : info === 27 ? file.readDoubleBE(at - 8) : SIMPLE[n];
}
function meaning(tag, content, buffers) {
  if (tag in DTYPES) return { dtype: DTYPES[tag], payload: content };
  if (tag === 43001) return { ...content, dtype: content.dtype === 'f32' ? 'c64' : 'c128' };
  if (tag === 40 || tag === 1040) return { shape: content[0], order: tag === 40 ? 'C' : 'F', ...content[1] };
  if (tag === 1413828179) return { dtype: content[0], shape: content[1], order: content[2], payload: content[3] }; // TENS
  if (tag !== 1413633350 || !buffers) return content; // all tags but TBUF
  const payload = buffers[content.pop()], [dtype, shape, order] = content;
  return dtype === undefined ? payload : { dtype, shape, order, payload };
}
function record(offset, buffers) {
  at = offset + 2; // behind the head of tag 24
  head();
  return item(buffers);
}
function segments([, , list, levels]) {
  const named = ([names, entries]) => entries.map(([offset, name]) => [name === null ? null : names[name], offset]);
  const below = (level) => ([offset]) => (level === 0 ? named(record(offset)[2]) : record(offset)[2].flatMap(below(level - 1)));
  return [...levels.map((blocks, level) => blocks.flatMap(below(level))).reverse().flat(), ...named(list)];
}
function value(offset) {
  const [, , alignment, , , lengths] = record(offset);
  const recordEnd = at + 9, up = (n) => Math.ceil(n / alignment) * alignment;
  const end = lengths.reduce((sum, length) => up(sum) + length, 0);
  let next = recordEnd + (end < 24 ? 1 : end < 256 ? 2 : end < 65536 ? 3 : end < 2 ** 32 ? 5 : 9);
  return record(offset, lengths.map((length) => file.subarray(up(next), (next = up(next) + length))))[7];
}
const tail = file.subarray(-42);
if (tail.toString('latin1', 2, 10) !== 'TARCTAIL') throw new Error('the archive does not end with a tail');
for (const [name, offset] of segments(record(Number(tail.readBigUInt64BE(10))))) {
  if (wanted === undefined) console.log(offset, name);
  else if (name === wanted) console.dir(value(offset), { depth: null });
}
