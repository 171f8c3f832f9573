import test from 'node:test';
import assert from 'node:assert/strict';
import { open } from '../dist/index.js';
import { archive, array, bytes, columns, map, packed, tag, tensorIn, text, uint } from './writer.mjs';

const pairs = (entries) => map(...Object.entries(entries).flatMap(([key, value]) => [text(key), value]));
const numbers = (...values) => packed(70, Uint32Array.from(values));

async function only(metadata, more) {
  const file = archive([{ name: 'a', metadata, ...more }]);
  const reads = [];
  const source = {
    size: async () => file.length,
    read: async (offset, length) => (reads.push([offset, length]), file.subarray(offset, offset + length)),
  };
  return { segment: await (await open(source, { suffix: 256 })).segment(), reads };
}

test('entries say what is below a path and read no tensors', async () => {
  const value = pairs({
    weight: tensorIn(0, 'f32', [500, 100], 'F'),
    'a.b/c': array(text('x'), uint(7), array()),
    small: numbers(1, 2, 3),
    typed: tag(1414814032, array(text('date'), array(), uint(3))),
    raw: bytes(Uint8Array.of(1, 2)),
  });
  const { segment, reads } = await only(value, { buffers: [new Uint8Array(200000)] });
  const entries = await segment.entries();
  assert.deepEqual(entries.slice(0, 3), [
    {
      key: 'weight',
      path: '/weight',
      count: 0,
      kind: 'tensor',
      dtype: 'f32',
      shape: [500, 100],
      order: 'F',
      bytes: 200000,
      buffer: 0,
    },
    { key: 'a.b/c', path: '/a.b~1c', count: 3, kind: 'array' },
    { key: 'small', path: '/small', count: 0, kind: 'tensor', dtype: 'u32', shape: [3], order: 'C', bytes: 12 },
  ]);
  assert.deepEqual(entries[4], { key: 'raw', path: '/raw', count: 0, kind: 'bytes', bytes: 2 });
  assert.ok(Math.max(...reads.map(([, length]) => length)) < 2000);
  assert.deepEqual(await segment.entries('/a.b~1c', 1, 2), [
    { key: '1', path: '/a.b~1c/1', count: 0, kind: 'number', value: 7 },
  ]);
  assert.deepEqual(await segment.entry('/a.b~1c'), entries[1]);
  assert.deepEqual(await segment.entries('/weight'), []);
  await assert.rejects(segment.entries('/none'), (error) => error.kind === 'missing');
  const place = await segment.bufferPlace(0);
  assert.deepEqual([place.stored, place.length, place.codec, place.offset % 64], [200000, 200000, null, 0]);
});

test('fields of columns are entries, and their rows can be read from any row on', async () => {
  const group = (from, count) => {
    const values = Array.from({ length: count }, (_, i) => from + i);
    const names = values.map((value) => `n${value}`).join('');
    const lengths = packed(
      70,
      Uint32Array.from(values, (value) => `n${value}`.length),
    );
    return [uint(count), pairs({ id: numbers(...values), name: array(text('text'), lengths, text(names)) })];
  };
  const { segment } = await only(columns(...group(0, 3), ...group(3, 4)), { rows: 7 });
  assert.deepEqual(await segment.entry(), { key: '', path: '', count: 2, kind: 'columns', rows: 7 });
  assert.deepEqual(await segment.entries(), [
    { key: 'id', path: '/id', count: 0, kind: 'tensor', dtype: 'u32', shape: [7], order: 'C', bytes: 28 },
    { key: 'name', path: '/name', count: 0, kind: 'column', rows: 7 },
  ]);
  for (const [start, end] of [
    [0, 7],
    [2, 4],
    [4, 99],
    [7, 9],
    [3, 3],
  ]) {
    const expected = Array.from({ length: 7 }, (_, id) => ({ id, name: `n${id}` })).slice(start, end);
    assert.deepEqual(await segment.elements('', start, end), expected);
    assert.deepEqual(
      await segment.elements('/name', start, end),
      expected.map((row) => row.name),
    );
  }
  await assert.rejects(segment.elements('', 3, 2), (error) => error.kind === 'usage');
});
