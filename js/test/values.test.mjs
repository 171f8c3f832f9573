import test from 'node:test';
import assert from 'node:assert/strict';
import { Entries, Simple, Tensor, TenarcError, decode } from '../dist/index.js';
import { decodeLz4 } from '../dist/compress.js';
import { leastType } from '../dist/dtype.js';
import { bytesOfHex } from './compare.mjs';

const from = (hex) => decode(bytesOfHex(hex));
const tensor = (dtype, shape, bytes) => new Tensor(dtype, shape, 'C', Uint8Array.from(bytes));

test('integers of any size', () => {
  assert.equal(from('1b001fffffffffffff'), 2 ** 53 - 1);
  assert.equal(from('1b0020000000000000'), 2n ** 53n);
  assert.equal(from('1bffffffffffffffff'), 2n ** 64n - 1n);
  assert.equal(from('3b001ffffffffffffe'), -(2 ** 53 - 1));
  assert.equal(from('3b001fffffffffffff'), -(2n ** 53n));
  assert.equal(from('3bffffffffffffffff'), -(2n ** 64n));
  assert.equal(from('c2490100000000000000 00'), 2n ** 64n);
  assert.equal(from('c349010000000000000000'), -1n - 2n ** 64n);
  assert.equal(from('c24105'), 5);
});

test('strings in chunks, and texts that are not UTF-8', () => {
  assert.equal(from('7f 61 61 62 c3bc 60 ff'), 'aü');
  assert.deepEqual(from('5f 4101 420203 ff'), Uint8Array.of(1, 2, 3));
  assert.equal(from('63 efbbbf'), '\ufeff');
  assert.throws(() => from('7f 61c3 61bc ff'), TenarcError);
  assert.throws(() => from('63 eda080'), TenarcError);
  assert.throws(() => from('62 c080'), TenarcError);
});

test('maps and their keys', () => {
  assert.deepEqual(from('a26161016162 02'), { a: 1, b: 2 });
  assert.deepEqual(
    from('a2 6137 01 6161 02'),
    new Map([
      ['7', 1],
      ['a', 2],
    ]),
  );
  assert.deepEqual(from('a1 07 01'), new Map([[7, 1]]));
  assert.deepEqual(decode(bytesOfHex('a1616101'), { maps: 'map' }), new Map([['a', 1]]));
  const twice = from('a2 6161 01 6161 02');
  assert.ok(twice instanceof Entries);
  assert.deepEqual(
    [...twice],
    [
      ['a', 1],
      ['a', 2],
    ],
  );
});

test('tags, simple values and packed sequences', () => {
  assert.deepEqual(from('f828'), new Simple(40));
  assert.equal(from('f7'), null);
  assert.equal(from('c6 05'), 5);
  assert.deepEqual(from('d818 4101'), Uint8Array.of(1));
  assert.throws(() => from('d81d 00'), TenarcError);
  assert.throws(() => from('da54425546 8100'), TenarcError);
  assert.deepEqual(from('d845 44 01000200'), Uint16Array.of(1, 2));
  assert.deepEqual(from('d841 44 00010002'), Uint16Array.of(1, 2));
  assert.deepEqual(from('d844 42 0102'), Uint8Array.of(1, 2));
  assert.deepEqual(from('d854 42 003c'), Float32Array.of(1));
  assert.deepEqual(from('d84c 42 0102'), Uint8Array.of(1, 2));
});

test('tensors of plain arrays and with tags in front of their elements', () => {
  const plain = from('d828 82 8102 82 01 fb3ff8000000000000');
  assert.deepEqual([plain.dtype, [...plain.data]], ['f64', [1, 1.5]]);
  assert.deepEqual(from('d828 82 8102 c6 d840 42 0102').data, Uint8Array.of(1, 2));
  const large = from('d828 82 8101 81 1bffffffffffffffff');
  assert.deepEqual([large.dtype, [...large.data]], ['u64', [2n ** 64n - 1n]]);
  assert.throws(() => from('da54454e53 84 64626f6f6c 8101 6143 4102'), TenarcError);
  assert.deepEqual(from('da54454e53 84 627538 82 00 1b7fffffffffffffff 6143 40').shape, [0, Number(2n ** 63n)]);
  assert.throws(() => from('da54454e53 84 63753136 82 00 1b7fffffffffffffff 6143 40'), TenarcError);
});

test('floats of all sizes', () => {
  const values = (dtype, bytes) => [...tensor(dtype, [bytes.length], bytes).toFloat32()];
  assert.deepEqual(values('f16', [0, 0x3c, 1, 0, 0, 0xfc]), [1, 2 ** -24, -Infinity]);
  assert.deepEqual(values('bf16', [0x80, 0x3f, 0, 0xc0]), [1, -2]);
  assert.deepEqual(values('f8_e4m3', [0x38, 0x7e, 0x7f, 0x01, 0x80]), [1, 448, NaN, 2 ** -9, -0]);
  assert.deepEqual(values('f8_e5m2', [0x3c, 0x7b, 0x7c, 0x7d, 0x01]), [1, 57344, Infinity, NaN, 2 ** -16]);
  assert.deepEqual(values('f8_e8m0', [127, 0, 254, 255]), [1, 2 ** -127, 2 ** 127, NaN]);
  assert.deepEqual(values('f8_e4m3fnuz', [0x40, 0x7f, 0x80, 0x01]), [1, 240, NaN, 2 ** -10]);
  assert.deepEqual(values('f8_e5m2fnuz', [0x40, 0x7f, 0x80, 0x01]), [1, 57344, NaN, 2 ** -17]);
  assert.deepEqual(values('f4', [0x10, 0x32, 0x54, 0x76, 0x98]), [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0, -0.5]);
  // Four elements of 6 bits are three bytes, the lowest bits first.
  const packed = (...bits) => {
    const word = bits.reduce((sum, one, i) => sum | (one << (6 * i)), 0);
    return [word & 255, (word >> 8) & 255, word >> 16];
  };
  assert.deepEqual(values('f6_e2m3', packed(1, 8, 31, 63)), [0.125, 1, 7.5, -7.5]);
  assert.deepEqual(values('f6_e3m2', packed(1, 12, 31, 63)), [0.0625, 1, 28, -28]);
  assert.deepEqual(values('i64', [255, 255, 255, 255, 255, 255, 255, 255]), [-1]);
  assert.deepEqual(values('c64', [0, 0, 128, 63, 0, 0, 0, 64]), [1, 2]);
  assert.throws(() => values('posit16', [1, 2]), TenarcError);
});

test('data that is not aligned', () => {
  const bytes = new Uint8Array(9);
  bytes.set(new Uint8Array(Float64Array.of(1.5).buffer), 1);
  assert.deepEqual(new Tensor('f64', [], 'C', bytes.subarray(1)).data, Float64Array.of(1.5));
});

test('the least type of several', () => {
  for (const [dtypes, least] of [
    [['u8', 'u16'], 'u16'],
    [['u8', 'i8'], 'i16'],
    [['u16', 'i64'], 'i64'],
    [['u32', 'i8'], 'i64'],
    [['u64', 'i8'], undefined],
    [['f32', 'f32'], 'f32'],
    [['f32', 'f64'], undefined],
    [['bool', 'u8'], undefined],
    [['i8', 'u8', 'u16'], 'i32'],
    [['bf16', 'bf16'], 'bf16'],
  ])
    assert.equal(leastType(dtypes), least, dtypes.join());
});

test('LZ4 blocks', () => {
  // 4 literals, a match of 12 with a distance of 4, and 5 literals at the end
  const block = bytesOfHex('48 01020304 0400 50 0506070809');
  assert.deepEqual([...decodeLz4(block, 21)], [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  for (let length = 0; length < block.length; length++)
    assert.throws(() => decodeLz4(block.subarray(0, length), 21), TenarcError);
  assert.throws(() => decodeLz4(block, 20), TenarcError);
  assert.throws(() => decodeLz4(block, 22), TenarcError);
  assert.throws(() => decodeLz4(bytesOfHex('10 01 0200 00'), 10), TenarcError);
});
