// Files that are cut off, changed or made to do harm: a clear error with its place, in bounded time and memory. Number 126 of
// docs/threats.md; numbers 124 and 125 are in browser.test.mjs.
import test from 'node:test';
import assert from 'node:assert/strict';
import { bytesOf, itemsBelow, noProgress, openBytes, statistics, worker } from './worker.mjs';

const text = new TextEncoder();

function safetensors(header, data = new Uint8Array(0)) {
  const json = text.encode(typeof header === 'string' ? header : JSON.stringify(header));
  const bytes = new Uint8Array(8 + json.length + data.length);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(json.length), true);
  bytes.set(json, 8);
  bytes.set(data, 8 + json.length);
  return bytes;
}

function npy(header, data = new Uint8Array(0)) {
  const body = text.encode(header);
  const bytes = new Uint8Array(10 + body.length + data.length);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, body.length & 255, body.length >> 8]);
  bytes.set(body, 10);
  bytes.set(data, 10 + body.length);
  return bytes;
}

function gguf(...parts) {
  const out = [];
  const add = (value, width) => {
    for (let i = 0; i < width; i++) out.push(Number((BigInt(value) >> BigInt(8 * i)) & 255n));
  };
  for (const part of parts) {
    if (typeof part === 'string') {
      add(part.length, 8);
      out.push(...text.encode(part));
    } else add(...part);
  }
  return Uint8Array.from([0x47, 0x47, 0x55, 0x46, ...out]);
}
const u32 = (value) => [value, 4];
const u64 = (value) => [value, 8];

const entry = (more) => ({ a: { dtype: 'F32', shape: [2], data_offsets: [0, 8], ...more } });
const eight = new Uint8Array(8);

const cases = [
  ['nothing', new Uint8Array(0), /empty/, 0],
  ['another format', text.encode('%PDF-1.4 and so on'), /starts with the bytes 25 50 44 46 .*was expected/, 0],
  ['a header beyond the end', safetensors({}).subarray(0, 9), /would end at byte 10, but the file has 9 bytes/, 8],
  ['a huge header', Uint8Array.from([0, 0, 0, 0xf0, 0, 0, 0, 0, 0x7b]), /longer than/, 0],
  ['no JSON', safetensors('{"a":}'), /not JSON/, 8],
  ['deep JSON', safetensors(`{"a":${'['.repeat(2_000_000)}`), /not JSON|nested/, undefined],
  ['an entry of another kind', safetensors({ a: 3 }), /the entry "a" is not an object/, 8],
  ['no offsets', safetensors({ a: { dtype: 'F32', shape: [2] } }), /no data_offsets/, 8],
  ['offsets beyond the end', safetensors(entry({ data_offsets: [0, 9] }), eight), /from byte 0 to 9 .* 8 bytes/, 8],
  ['offsets that turn back', safetensors(entry({ data_offsets: [8, 0] }), eight), /from byte 8 to 0/, 8],
  ['another length', safetensors(entry({ shape: [3] }), eight), /has 8 bytes instead of 12/, 8],
  ['a shape that overflows', safetensors(entry({ shape: [2 ** 40, 2 ** 40] }), eight), /too many elements/, 8],
  [
    'too many dimensions',
    safetensors(entry({ shape: new Array(100_000).fill(1) }), eight),
    /100000 dimensions; at most 64/,
    8,
  ],
  ['a negative shape', safetensors(entry({ shape: [-2, -1] }), eight), /not a shape/, 8],
  [
    'a name with no prototype',
    safetensors('{"__proto__":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}', eight),
    /"__proto__"/,
    8,
  ],
  ['npy of version 9', npy('{}').with(6, 9), /version 9 .* 1 to 3 were expected/, 6],
  ['npy that is cut off', npy("{'descr': '<f4'}").subarray(0, 20), /cut off/, 20],
  ['npy without a dict', npy('3'), /a dict was expected/, 11],
  ['npy with a call', npy("{'descr': __import__('os')}"), /a value was expected/, 20],
  ['npy with deep lists', npy('['.repeat(5000)), /nested too deeply/, undefined],
  ['npy with a key twice', npy("{'shape': (), 'shape': ()}"), /occurs twice/, undefined],
  [
    'npy of another length',
    npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2,)}", eight),
    /has 8 bytes instead of 16/,
    undefined,
  ],
  ['GGUF of another version', gguf(u32(9)), /version 9 is not known/, 4],
  ['GGUF with too many tensors', gguf(u32(3), u64(2 ** 40), u64(0)), /tensors are more than/, 8],
  ['GGUF that is cut off', gguf(u32(3), u64(1), u64(0)), /would end at byte 32, but the file has 24 bytes/, 24],
  ['GGUF with a huge text', gguf(u32(3), u64(0), u64(1), u64(2 ** 50)), /at most/, 24],
  [
    'GGUF with a huge list',
    gguf(u32(3), u64(0), u64(1), 'k', u32(9), u32(8), u64(2 ** 50)),
    /longer than the file/,
    undefined,
  ],
  ['GGUF with a value of no type', gguf(u32(3), u64(0), u64(1), 'k', u32(77)), /type 77/, undefined],
  [
    'GGUF with half a block',
    gguf(u32(3), u64(1), u64(0), 't', u32(1), u64(31), u32(2), u64(0)),
    /whole number of blocks/,
    undefined,
  ],
  [
    'GGUF with a tensor beyond the end',
    gguf(u32(3), u64(1), u64(0), 't', u32(1), u64(32), u32(2), u64(2 ** 40)),
    /would end at byte/,
    undefined,
  ],
  ['a zip archive that is cut off', bytesOf('arrays.npz').subarray(0, 20000), /no directory at its end/, 20000],
  ['a file of torch', null, /torch/, 0],
  ['tenarc that is cut off', bytesOf('plain.tenarc').subarray(0, 5), /was expected|damaged|tenarc/, undefined],
];

/** A zip archive of one stored member. */
function zip(name, data, change = () => undefined) {
  const encoded = text.encode(name);
  const local = new Uint8Array(30 + encoded.length + data.length);
  const central = new Uint8Array(46 + encoded.length);
  const end = new Uint8Array(22);
  const [a, b, c] = [local, central, end].map((bytes) => new DataView(bytes.buffer));
  a.setUint32(0, 0x04034b50, true);
  a.setUint16(26, encoded.length, true);
  local.set(encoded, 30);
  local.set(data, 30 + encoded.length);
  b.setUint32(0, 0x02014b50, true);
  b.setUint32(16, worker.crc32(data), true);
  b.setUint32(20, data.length, true);
  b.setUint32(24, data.length, true);
  b.setUint16(28, encoded.length, true);
  central.set(encoded, 46);
  c.setUint32(0, 0x06054b50, true);
  c.setUint16(8, 1, true);
  c.setUint16(10, 1, true);
  c.setUint32(12, central.length, true);
  c.setUint32(16, local.length, true);
  change(b, c);
  return Buffer.concat([local, central, end]);
}
cases.find(([name]) => name === 'a file of torch')[1] = zip('archive/data.pkl', eight);

for (const [name, bytes, message, offset] of cases) {
  test(name, { timeout: 20_000 }, async () => {
    const open = async () => {
      const file = await openBytes(bytes);
      for await (const item of itemsBelow(file.root)) void item;
      if (file.warnings.length > 0) throw new Error(file.warnings[0]);
    };
    await assert.rejects(open(), (error) => {
      assert.match(error.message, message);
      if (offset !== undefined) assert.equal(error.offset, offset);
      return true;
    });
  });
}

test('gaps and overlaps of safetensors are warnings', async () => {
  const two = (a, b) => ({
    a: { dtype: 'U8', shape: [a[1] - a[0]], data_offsets: a },
    b: { dtype: 'U8', shape: [b[1] - b[0]], data_offsets: b },
  });
  for (const [header, message] of [
    [two([0, 4], [3, 8]), /"b" overlaps .*at byte/],
    [two([0, 3], [4, 8]), /the 1 bytes from byte/],
    [two([0, 3], [3, 7]), /the last 1 bytes/],
    // A parser of JSON keeps the second one only.
    [
      '{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"a":{"dtype":"U8","shape":[4],"data_offsets":[4,8]}}',
      /the 4 bytes from/,
    ],
  ]) {
    const { warnings } = await openBytes(safetensors(header, eight));
    assert.equal(warnings.length, 1);
    assert.match(warnings[0], message);
  }
});

test('members of a zip archive that claim what they are not', async () => {
  const array = bytesOf('image.npy');
  const first = async (bytes) => {
    const file = await openBytes(bytes);
    const [item] = await file.root.children(0, 1);
    return { file, item };
  };
  assert.ok((await first(zip('a.npy', array))).item.tensor);
  const encrypted = await first(zip('a.npy', array, (central) => central.setUint16(8, 1, true)));
  assert.match(encrypted.item.text, /encrypted/);
  const odd = await first(zip('a.npy', array, (central) => central.setUint16(10, 12, true)));
  assert.match(odd.item.text, /method 12/);
  const long = await first(zip('a.npy', array, (central) => central.setUint32(24, 4_000_000_000, true)));
  assert.match(long.item.text, /stored in .* bytes, but has 4000000000/);
  const bomb = bytesOf('compressed.npz');
  const view = new DataView(bomb.buffer);
  const central = view.getUint32(bomb.length - 6, true);
  view.setUint32(central + 24, 150, true);
  await assert.rejects((await openBytes(bomb)).verify(noProgress), /has more than 150 bytes/);
});

test('changed bytes give errors of this program or none', async () => {
  let seed = 1;
  const random = (below) => (seed = (seed * 48271) % 2147483647) % below;
  let errors = 0;
  for (const name of ['model.safetensors', 'arrays.npz', 'compressed.npz', 'image.npy', 'blocks.gguf', 'log.tenarc']) {
    const good = bytesOf(name);
    const interesting =
      name === 'arrays.npz' || name === 'compressed.npz'
        ? [good.length - 900, good.length]
        : [0, Math.min(1700, good.length)];
    for (let turn = 0; turn < 60; turn++) {
      const bytes = good.slice();
      for (let i = 0; i <= random(3); i++) bytes[interesting[0] + random(interesting[1] - interesting[0])] = random(256);
      try {
        const file = await openBytes(bytes);
        for await (const item of itemsBelow(file.root)) {
          if (item.tensor && !item.tensor.unreadable) await statistics(item.tensor);
        }
      } catch (error) {
        assert.equal(error.name, 'TenarcError', `${name}: ${error.stack}`);
        errors++;
      }
    }
  }
  assert.ok(errors > 30);
});
