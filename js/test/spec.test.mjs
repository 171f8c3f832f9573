import test from 'node:test';
import assert from 'node:assert/strict';
import { Parts, Some, Tensor, Typed, decode, open, splitParts, verify } from '../dist/index.js';
import { bytesOfHex } from './compare.mjs';
import { chunkDecoder } from '../dist/compress.js';
import { blocks, examples } from './spec.mjs';

const all = examples();

test('every block of bytes in SPEC.md is one of these examples', () => {
  const known = Object.values(all).map((bytes) => Buffer.from(bytes).toString('hex'));
  const others = blocks.map((bytes) => Buffer.from(bytes).toString('hex')).filter((hex) => !known.includes(hex));
  assert.deepEqual(others, []);
});

test('optional values (1.1)', () => {
  assert.equal(decode(bytesOfHex('f6')), null);
  assert.equal(decode(bytesOfHex('05')), 5);
  assert.deepEqual(decode(bytesOfHex('da54534f4d f6')), new Some(null));
  assert.deepEqual(decode(bytesOfHex('da54534f4d da54534f4d f6')), new Some(new Some(null)));
  assert.equal(decode(bytesOfHex('da54534f4d 05')), 5);
});

test('a tensor (2.1)', () => {
  const tensor = decode(all.tensor);
  assert.ok(tensor instanceof Tensor);
  assert.equal(all.tensor.length, 21);
  assert.deepEqual([tensor.dtype, tensor.shape, tensor.order], ['u16', [2, 3], 'C']);
  assert.deepEqual(tensor.data, Uint16Array.of(1, 2, 3, 4, 5, 6));
});

test('columns (3.1)', () => {
  assert.deepEqual(decode(all.rows), [
    { id: 7, tag: 'ab' },
    { id: 9, tag: 'c' },
  ]);
  assert.deepEqual(decode(all.options), [
    { score: 1.5, tags: [1], kind: 'A' },
    { score: null, note: 5, tags: [2, 3], kind: { B: 7 } },
  ]);
  assert.deepEqual(decode(all.groups), [
    [[1, 2], [], 'yes'],
    [[3, 4], [7, 8], 'no'],
    [[5, 6], [9], 'yes'],
    [[1, 2], [3, 4, 5], 'yes'],
  ]);
});

test('types (3.2)', () => {
  assert.equal(decode(all.typedValue), 20783);
  assert.deepEqual(decode(all.typedValue, { types: true }), new Typed('date', [], 20783));
  assert.deepEqual(decode(all.typedColumn), [20783]);
  assert.deepEqual(decode(all.typedColumn, { types: true }), [new Typed('date', [], 20783)]);
});

test('an archive (5.9) and its digests (5.12)', async () => {
  assert.equal(all.archive.length, 204);
  const archive = await open(all.archive);
  assert.deepEqual([archive.state, archive.length], ['whole', 1]);
  const segment = await archive.segment('layer');
  const value = await segment.value();
  assert.equal(value.name, 'two');
  assert.deepEqual(value.bias.data, Float32Array.of(0.5, -1));
  assert.deepEqual(await segment.list(), [{ path: 'bias', dtype: 'f32', shape: [2], order: 'C' }]);
  assert.deepEqual((await segment.slice('bias', 1, 2)).data, Float32Array.of(-1));
  assert.equal(await segment.computeDigest(), '24c25ee5f40f63bd00b7204d5b6aa235');
  assert.equal(await archive.digest(), '0b2e15956d301f5dab4deb6408adceef');
  assert.deepEqual(await verify(all.archive), { state: 'whole', segments: 1 });
});

test('statistics of columns (5.13)', () => {
  assert.deepEqual(decode(all.statistics), [
    1,
    [
      [['kind'], [[0, 0, 'A', 'B']]],
      [['kind', 'B'], [[1, 0, 7, 7]]],
      [['note'], [[1, 0, 5, 5]]],
      [['score'], [[1, 0, 1.5, 1.5]]],
    ],
  ]);
});

test('a compressed chunk (5.13)', () => {
  const decoder = chunkDecoder('zstd', [2, 0], {});
  assert.deepEqual(new Uint16Array(decoder(all.compressedChunk, 32).buffer), new Uint16Array(16).fill(7));
});

test('parts (6)', async () => {
  const [pieces, ...more] = splitParts(all.parts);
  assert.equal(more.length, 0);
  assert.deepEqual(
    pieces.map((piece) => piece.length),
    [94, 8],
  );
  const parts = new Parts(pieces);
  assert.equal(parts.name, 'layer');
  const value = await parts.value();
  assert.equal(value.name, 'two');
  assert.deepEqual(value.bias.data, Float32Array.of(0.5, -1));
});
