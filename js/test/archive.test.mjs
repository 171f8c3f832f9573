import test from 'node:test';
import assert from 'node:assert/strict';
import { Tensor, decode, open, verify } from '../dist/index.js';
import { archive, array, bytes, columns, map, nothing, packed, tag, tensorIn, text, uint } from './writer.mjs';

const pairs = (entries) => map(...Object.entries(entries).flatMap(([key, value]) => [text(key), value]));
const bits = (...values) => bytes(Uint8Array.from(values));

async function only(segment) {
  const file = archive([segment]);
  await verify(file);
  return (await open(file)).segment();
}

test('slices read only their chunks', async () => {
  const data = new Float32Array(100000).map((_, i) => i);
  const buffer = new Uint8Array(data.buffer);
  const file = archive([{ name: 'a', metadata: tensorIn(0, 'f32', [1000, 100]), buffers: [buffer] }]);
  const reads = [];
  const source = {
    size: async () => file.length,
    read: async (offset, length) => (reads.push([offset, length]), file.subarray(offset, offset + length)),
  };
  const opened = await open(source, { suffix: 4096 });
  assert.equal(reads.length, 1);
  const slice = await (await opened.segment('a')).slice('', 500, 502);
  assert.deepEqual(slice.shape, [2, 100]);
  assert.deepEqual([...slice.data], [...data.subarray(50000, 50200)]);
  // The end, the header and two chunks; the hashes are in the bytes of the end.
  assert.equal(reads.length, 3);
  assert.ok(reads[2][1] <= 2 * 65536);
});

test('a changed chunk is found when it is read, unless nobody wants to know', async () => {
  const file = archive([{ name: 'a', metadata: tensorIn(0, 'u8', [200000]), buffers: [new Uint8Array(200000)] }]);
  file[100000] ^= 1;
  const segment = await (await open(file)).segment();
  assert.equal((await segment.slice('', 150000, 200000)).bytes.length, 50000);
  await assert.rejects(segment.slice('', 99000, 101000), (error) => error.kind === 'damaged' && error.offset > 65000);
  await assert.rejects(verify(file), (error) => error.kind === 'damaged');
  const careless = await (await open(file, { verify: false })).segment();
  assert.equal(
    (await careless.tensor('')).bytes.reduce((sum, byte) => sum + byte),
    1,
  );
});

test('what is not a tensor is an error of the call', async () => {
  const segment = await only({
    name: 'a',
    metadata: pairs({ texts: array(text('x')), numbers: array(uint(1), uint(2)), one: uint(1) }),
  });
  assert.deepEqual([...(await segment.tensor('numbers')).data], [1, 2]);
  assert.deepEqual([...(await segment.slice('numbers', 1, 2)).data], [2]);
  for (const path of ['texts', 'one', ''])
    await assert.rejects(segment.tensor(path), (error) => error.kind === 'usage', path);
});

test('slices of order F', async () => {
  // Element [i, j] is 10 i + j.
  const data = Uint8Array.from({ length: 12 }, (_, i) => 10 * (i % 4) + Math.floor(i / 4));
  const segment = await only({ name: 'a', metadata: tensorIn(0, 'u8', [4, 3], 'F'), buffers: [data] });
  const slice = await segment.slice('', 1, 3);
  assert.deepEqual([slice.order, slice.shape, [...slice.bytes]], ['F', [2, 3], [10, 20, 11, 21, 12, 22]]);
});

test('paths with dots, and lists with pointers', async () => {
  const tensor = tag(40, array(array(uint(1)), tag(64, bytes(Uint8Array.of(1)))));
  const value = pairs({ 'a.b': tensor, a: pairs({ b: tensor, c: tensor }), 'x.y': tensor, '': tensor, '/z': tensor });
  const segment = await only({ name: null, metadata: value });
  assert.deepEqual(
    (await segment.list()).map((one) => one.path),
    ['/a.b', '/a/b', 'a.c', 'x.y', '/', '/~1z'],
  );
  for (const { path } of await segment.list()) assert.ok((await segment.get(path)) instanceof Tensor, path);
  await assert.rejects(segment.get('a.b'), (error) => error.kind === 'missing');
});

test('a list of many names with dots is fast', async () => {
  const tensor = tag(40, array(array(uint(1)), tag(64, bytes(Uint8Array.of(1)))));
  const entries = {};
  for (let i = 0; i < 20000; i++) entries[`layers.${i}.weight`] = tensor;
  const segment = await only({ name: null, metadata: pairs(entries) });
  const start = performance.now();
  assert.equal((await segment.list()).length, 20000);
  assert.ok(performance.now() - start < 5000);
});

test('components of keys', async () => {
  const keys = [
    '07',
    '20',
    'f5',
    'f6',
    '4200ff',
    'fb3ff8000000000000',
    'fa3f800000',
    'fb3e7ad7f29abcaf48',
    'fb4341c37937e08000',
    'f97e00',
    '8201 6161',
    'a1 6161 f6',
    'd820 6178',
    'f828',
    'c24105',
    'fb8000000000000000',
    '61 22',
    '81 63 220a01',
    'fb444b1ae4d6e2ef50',
  ];
  const names = [
    '7',
    '-1',
    'true',
    'null',
    "h'00ff'",
    '1.5',
    '1.0',
    '1e-7',
    '1e16',
    'NaN',
    '[1, "a"]',
    '{"a": null}',
    '32("x")',
    'simple(40)',
    '5',
    '-0.0',
    '"',
    '["\\"\\n\\u0001"]',
    '1e21',
  ];
  const metadata = map(...keys.flatMap((key, i) => [Uint8Array.from(Buffer.from(key.replace(/ /g, ''), 'hex')), uint(i)]));
  const segment = await only({ name: null, metadata });
  for (const [i, name] of names.entries())
    assert.equal(await segment.get(`/${name.replace(/~/g, '~0').replace(/\//g, '~1')}`), i, name);
});

const rows = (ids, idTag, sizes) =>
  columns(
    uint(sizes.length),
    pairs({
      id: packed(idTag, ids),
      pair: array(text('tuple'), array(packed(85, Float32Array.from(sizes)), packed(86, Float64Array.from(sizes)))),
      grid: array(text('array'), uint(2), packed(64, Uint8Array.from(sizes.flatMap((one) => [one, one + 1])))),
      on: array(text('bool'), bits(sizes.reduce((sum, one, i) => sum | ((one & 1) << i), 0))),
      maybe: array(text('option'), bits(1), packed(64, Uint8Array.of(9))),
    }),
  );

test('columns, their paths and tables', async () => {
  const file = archive([
    { name: 'log', rows: 2, metadata: rows(Uint8Array.of(1, 2), 64, [3, 4]) },
    { name: 'other', metadata: nothing },
    { name: 'log', rows: 3, metadata: rows(Int16Array.of(-3, 4, 5), 77, [5, 6, 7]) },
  ]);
  assert.deepEqual(await verify(file), { state: 'whole', segments: 3 });
  const opened = await open(file);
  const first = await opened.segment(0);
  assert.deepEqual(
    (await first.list()).map(({ path, dtype, shape }) => `${path} ${dtype} ${shape}`),
    ['id u8 2', 'grid u8 2,2', 'on bool 2'],
  );
  assert.deepEqual(await first.value(), [
    { id: 1, pair: [3, 3], grid: [3, 4], on: true, maybe: 9 },
    { id: 2, pair: [4, 4], grid: [4, 5], on: false, maybe: null },
  ]);
  assert.deepEqual([...(await first.get('on')).data], [1, 0]);
  assert.deepEqual([...(await first.slice('grid', 1, 2)).data], [4, 5]);
  assert.deepEqual(await first.get('maybe'), [9, null]);
  assert.deepEqual(await first.get('pair'), [
    [3, 3],
    [4, 4],
  ]);
  assert.deepEqual(await first.get('1.pair.0'), 4);
  assert.deepEqual(await first.get('pair.1.0'), 4);
  await assert.rejects(first.get('nothing'), (error) => error.kind === 'missing');
  const table = await opened.table('log');
  assert.deepEqual(
    (await table.rows()).map((row) => row.id),
    [1, 2, -3, 4, 5],
  );
  const ids = await table.column('id');
  assert.deepEqual([ids.dtype, [...ids.data]], ['i16', [1, 2, -3, 4, 5]]);
  assert.deepEqual(await table.column('maybe'), [9, null, 9, null, null]);
  assert.equal((await table.row(3)).id, 4);
  await assert.rejects(table.row(5), (error) => error.kind === 'missing');
  assert.deepEqual(
    (await opened.segments()).map((segment) => segment.rows),
    [2, null, 3],
  );
});

const u8 = (...values) => packed(64, Uint8Array.from(values));
const option = (mask, column) => array(text('option'), bits(mask), column);
const enums = (codes, variants) =>
  array(text('enum'), codes, array(...Object.keys(variants).map(text)), array(...Object.values(variants)));

test('paths into variants', async () => {
  const inBuffer = (buffer) => tag(1413633350, array(text('u8'), uint(buffer)));
  const click = pairs({ x: packed(85, Float32Array.of(1.5, 2.5)), at: option(2, u8(3)) });
  const event = enums(u8(0, 1, 2, 1), { Open: nothing, Click: click, Key: u8(7) });
  // In the other groups, the variants have other codes, some are not there, and one is in no row.
  const key = array(text('type'), text('key'), array(), enums(packed(69, Uint16Array.of(0)), { Key: u8(8), Late: u8() }));
  const other = enums(u8(0, 1), { Key: u8(8), Nested: enums(u8(0), { Click: array(text('unit')) }) });
  const groups = [uint(4), pairs({ event }), uint(2), pairs({ event: option(1, key) }), uint(2), pairs({ event: other })];
  const none = (count) => new Array(count).fill(null);
  const first = { x: 1.5, at: null };
  const second = { x: 2.5, at: 3 };
  const want = {
    'event.Key': [null, null, 7, null, 8, null, 8, null],
    'event.Click': [null, first, null, second, ...none(4)],
    'event.Click.x': [null, 1.5, null, 2.5, ...none(4)],
    'event.Click.at': [null, null, null, 3, ...none(4)],
    'event.Late': none(8),
    'event.Nested': [...none(7), { Click: null }],
    'event.Nested.Click': none(8),
  };
  // Codes and numbers in buffers, and a segment whose rows are an array.
  const referred = enums(inBuffer(1), { Key: nothing, Click: pairs({ x: inBuffer(0) }) });
  const plain = array(pairs({ event: pairs({ Click: pairs({ x: uint(5) }) }) }), pairs({ event: text('Open') }));
  const opened = await open(
    archive([
      { name: 'log', rows: 8, metadata: columns(...groups) },
      {
        name: 'log',
        rows: 3,
        metadata: columns(uint(3), pairs({ event: referred })),
        buffers: [Uint8Array.of(3, 4), Uint8Array.of(1, 0, 1)],
      },
      { name: 'log', rows: 2, metadata: plain },
    ]),
  );
  const [log, more] = [await opened.segment(0), await opened.segment(1)];
  for (const [path, values] of Object.entries(want)) {
    assert.deepEqual(await log.get(path), values, path);
    assert.deepEqual(await log.get(`/${path.replace(/\./g, '/')}`), values, path);
    // A path with a row means the same after the column as before it.
    for (const [row, value] of values.entries()) {
      assert.deepEqual(await log.get(`${path}.${row}`), value, path);
      if (value !== null) assert.deepEqual(await log.get(`${row}.${path}`), value, path);
    }
    await assert.rejects(log.tensor(path), (error) => error.kind === 'usage', path);
  }
  assert.equal(await log.get('event.Click.3.at'), 3);
  assert.deepEqual(await more.get('event.Click.x'), [3, null, 4]);
  const table = await opened.table('log');
  assert.deepEqual(await table.column('event.Click.x'), [...want['event.Click.x'], 3, null, 4, 5, null]);
  assert.deepEqual(await table.column('event.Key'), [...want['event.Key'], ...none(5)]);
  for (const path of ['event.Open', 'event.Other', 'event.Click.y', 'event.Key.x', 'event.Late.x']) {
    await assert.rejects(log.get(path), (error) => error.kind === 'missing', path);
    await assert.rejects(table.column(path), (error) => error.kind === 'missing', path);
  }
  assert.deepEqual([...(await log.list()), ...(await more.list())], []);
});

test('what is in a variant is not a tensor, even if all rows are of it', async () => {
  const event = enums(u8(0, 0), { A: u8(1, 2) });
  const segment = await only({ name: 'a', rows: 2, metadata: columns(uint(2), pairs({ event, id: u8(3, 4) })) });
  assert.deepEqual(await segment.get('event.A'), [1, 2]);
  await assert.rejects(segment.tensor('event.A'), (error) => error.kind === 'usage');
  assert.deepEqual(
    (await segment.list()).map((one) => one.path),
    ['id'],
  );
});

test('rows of columns have a limit of memory', () => {
  // Each row is a map, and takes one bit.
  const column = pairs({ a: array(text('present'), bytes(new Uint8Array(8192)), array(text('unit'))) });
  const message = columns(...new Array(64).fill([uint(65536), column]).flat());
  assert.throws(
    () => decode(message),
    (error) => error.kind === 'limit',
  );
  assert.equal(decode(columns(uint(65536), column)).length, 65536);
});
