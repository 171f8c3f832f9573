// XXH3 with 64 and 128 bits, for inputs of any length. Short inputs use bigints, which are simple. Inputs of more than 240
// bytes go through a loop on pairs of 32-bit halves, which is many times faster.
import { viewOf } from './bytes.js';

const SECRET = Uint8Array.from(
  (
    'b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e' +
    'e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d' +
    '8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc' +
    '8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e'
  ).match(/../g)!,
  (byte) => parseInt(byte, 16),
);

const MASK = 0xffffffffffffffffn;
const P32_1 = 0x9e3779b1n;
const P32_2 = 0x85ebca77n;
const P32_3 = 0xc2b2ae3dn;
const P64_1 = 0x9e3779b185ebca87n;
const P64_2 = 0xc2b2ae3d27d4eb4fn;
const P64_3 = 0x165667b19e3779f9n;
const P64_4 = 0x85ebca77c2b2ae63n;
const P64_5 = 0x27d4eb2f165667c5n;
const MX1 = 0x165667919e3779f9n;
const MX2 = 0x9fb21c651e98df25n;

const secretView = viewOf(SECRET);
/** The 8 bytes of the secret at each position, as numbers. */
const secret64: bigint[] = [];
for (let at = 0; at + 8 <= SECRET.length; at++) secret64.push(secretView.getBigUint64(at, true));
const secret32 = (at: number): bigint => BigInt(secretView.getUint32(at, true));

function avalanche(h: bigint): bigint {
  h ^= h >> 37n;
  h = (h * MX1) & MASK;
  return h ^ (h >> 32n);
}

function avalanche64(h: bigint): bigint {
  h ^= h >> 33n;
  h = (h * P64_2) & MASK;
  h ^= h >> 29n;
  h = (h * P64_3) & MASK;
  return h ^ (h >> 32n);
}

function fold(a: bigint, b: bigint): bigint {
  const product = a * b;
  return (product & MASK) ^ (product >> 64n);
}

function rotl(value: bigint, bits: bigint): bigint {
  return ((value << bits) | (value >> (64n - bits))) & MASK;
}

function swap32(value: number): number {
  return ((value << 24) | ((value << 8) & 0xff0000) | ((value >>> 8) & 0xff00) | (value >>> 24)) >>> 0;
}

function swap64(value: bigint): bigint {
  return (BigInt(swap32(Number(value & 0xffffffffn))) << 32n) | BigInt(swap32(Number(value >> 32n)));
}

function mix16(view: DataView, at: number, secretAt: number, seed: bigint): bigint {
  const low = view.getBigUint64(at, true) ^ ((secret64[secretAt]! + seed) & MASK);
  const high = view.getBigUint64(at + 8, true) ^ ((secret64[secretAt + 8]! - seed) & MASK);
  return fold(low, high);
}

/** XXH3_64bits_withSeed. */
export function xxh3(bytes: Uint8Array, seed = 0n): bigint {
  const length = bytes.length;
  if (length > 240) {
    const secret = secretForSeed(seed);
    return merge(longLoop(bytes, secret), secret, 11, (BigInt(length) * P64_1) & MASK);
  }
  const view = viewOf(bytes);
  const size = BigInt(length);
  if (length > 128) {
    let acc = size * P64_1;
    const rounds = length >> 4;
    for (let i = 0; i < 8; i++) acc += mix16(view, 16 * i, 16 * i, seed);
    acc = avalanche(acc & MASK);
    for (let i = 8; i < rounds; i++) acc += mix16(view, 16 * i, 16 * (i - 8) + 3, seed);
    acc += mix16(view, length - 16, 119, seed);
    return avalanche(acc & MASK);
  }
  if (length > 16) {
    let acc = size * P64_1;
    for (let i = (length - 1) >> 5; i >= 0; i--) {
      acc += mix16(view, 16 * i, 32 * i, seed) + mix16(view, length - 16 * (i + 1), 32 * i + 16, seed);
    }
    return avalanche(acc & MASK);
  }
  if (length > 8) {
    const low = view.getBigUint64(0, true) ^ (((secret64[24]! ^ secret64[32]!) + seed) & MASK);
    const high = view.getBigUint64(length - 8, true) ^ (((secret64[40]! ^ secret64[48]!) - seed) & MASK);
    return avalanche((size + swap64(low) + high + fold(low, high)) & MASK);
  }
  if (length >= 4) {
    seed ^= BigInt(swap32(Number(seed & 0xffffffffn))) << 32n;
    const flip = ((secret64[8]! ^ secret64[16]!) - seed) & MASK;
    const input = BigInt(view.getUint32(length - 4, true)) + (BigInt(view.getUint32(0, true)) << 32n);
    let h = input ^ flip;
    h ^= rotl(h, 49n) ^ rotl(h, 24n);
    h = (h * MX2) & MASK;
    h ^= (h >> 35n) + size;
    h = (h * MX2) & MASK;
    return h ^ (h >> 28n);
  }
  if (length > 0) {
    const flip = ((secret32(0) ^ secret32(4)) + seed) & MASK;
    return avalanche64(BigInt(upTo3(bytes)) ^ flip);
  }
  return avalanche64(seed ^ secret64[56]! ^ secret64[64]!);
}

function upTo3(bytes: Uint8Array): number {
  const length = bytes.length;
  return ((bytes[0]! << 16) | (bytes[length >> 1]! << 24) | bytes[length - 1]! | (length << 8)) >>> 0;
}

/** XXH3_128bits, seed 0. */
export function xxh3128(bytes: Uint8Array): bigint {
  const length = bytes.length;
  const size = BigInt(length);
  let low: bigint;
  let high: bigint;
  if (length > 240) {
    const acc = longLoop(bytes, SECRET);
    low = merge(acc, SECRET, 11, (size * P64_1) & MASK);
    high = merge(acc, SECRET, 192 - 64 - 11, MASK ^ ((size * P64_2) & MASK));
    return (high << 64n) | low;
  }
  const view = viewOf(bytes);
  if (length > 16) {
    low = (size * P64_1) & MASK;
    high = 0n;
    const mix32 = (at1: number, at2: number, secretAt: number) => {
      low = (low + mix16(view, at1, secretAt, 0n)) & MASK;
      low ^= (view.getBigUint64(at2, true) + view.getBigUint64(at2 + 8, true)) & MASK;
      high = (high + mix16(view, at2, secretAt + 16, 0n)) & MASK;
      high ^= (view.getBigUint64(at1, true) + view.getBigUint64(at1 + 8, true)) & MASK;
    };
    if (length > 128) {
      for (let at = 0; at < 128; at += 32) mix32(at, at + 16, at);
      low = avalanche(low);
      high = avalanche(high);
      for (let at = 128; at + 32 <= length; at += 32) mix32(at, at + 16, 3 + at - 128);
      mix32(length - 16, length - 32, 103);
    } else {
      for (let i = (length - 1) >> 5; i >= 0; i--) mix32(16 * i, length - 16 * (i + 1), 32 * i);
    }
    const sum = avalanche((low + high) & MASK);
    const other = avalanche((low * P64_1 + high * P64_4 + size * P64_2) & MASK);
    return (((MASK + 1n - other) & MASK) << 64n) | sum;
  }
  if (length > 8) {
    const first = view.getBigUint64(0, true);
    let last = view.getBigUint64(length - 8, true);
    let product = (first ^ last ^ secret64[32]! ^ secret64[40]!) * P64_1;
    low = ((product & MASK) + ((size - 1n) << 54n)) & MASK;
    high = product >> 64n;
    last ^= secret64[48]! ^ secret64[56]!;
    high = (high + last + (last & 0xffffffffn) * (P32_2 - 1n)) & MASK;
    low ^= swap64(high);
    product = low * P64_2;
    return (avalanche(((product >> 64n) + high * P64_2) & MASK) << 64n) | avalanche(product & MASK);
  }
  if (length >= 4) {
    const input = BigInt(view.getUint32(0, true)) + (BigInt(view.getUint32(length - 4, true)) << 32n);
    const product = (input ^ secret64[16]! ^ secret64[24]!) * ((P64_1 + (size << 2n)) & MASK);
    low = product & MASK;
    high = ((product >> 64n) + (low << 1n)) & MASK;
    low ^= high >> 3n;
    low ^= low >> 35n;
    low = (low * MX2) & MASK;
    low ^= low >> 28n;
    return (avalanche(high) << 64n) | low;
  }
  if (length > 0) {
    const combined = upTo3(bytes);
    const turned = swap32(combined);
    const other = ((turned << 13) | (turned >>> 19)) >>> 0;
    low = avalanche64(BigInt(combined) ^ secret32(0) ^ secret32(4));
    high = avalanche64(BigInt(other) ^ secret32(8) ^ secret32(12));
    return (high << 64n) | low;
  }
  low = avalanche64(secret64[64]! ^ secret64[72]!);
  high = avalanche64(secret64[80]! ^ secret64[88]!);
  return (high << 64n) | low;
}

function secretForSeed(seed: bigint): Uint8Array {
  if (seed === 0n) return SECRET;
  const out = new Uint8Array(192);
  const view = viewOf(out);
  for (let at = 0; at < 192; at += 16) {
    view.setBigUint64(at, (secret64[at]! + seed) & MASK, true);
    view.setBigUint64(at + 8, (secret64[at + 8]! - seed) & MASK, true);
  }
  return out;
}

const START = [P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1];
const PRIME_LOW = Number(P32_1 & 0xffffn);
const PRIME_HIGH = Number(P32_1 >> 16n);
const PRIME = Number(P32_1) | 0;

/**
 * The accumulators after all stripes: 8 numbers of 64 bits, each as its low and its high half. The halves are kept as signed
 * 32-bit integers, which engines hold without allocation.
 */
function longLoop(bytes: Uint8Array, secretBytes: Uint8Array): Int32Array {
  const acc = new Int32Array(16);
  START.forEach((value, i) => {
    acc[2 * i] = Number(value & 0xffffffffn) | 0;
    acc[2 * i + 1] = Number(value >> 32n) | 0;
  });
  // Secrets are read at every multiple of 8, and at one other place for the last stripe.
  const secret = new Int32Array(48);
  const secretView = viewOf(secretBytes);
  for (let i = 0; i < 48; i++) secret[i] = secretView.getInt32(4 * i, true);
  const lastSecret = new Int32Array(16);
  for (let i = 0; i < 16; i++) lastSecret[i] = secretView.getInt32(192 - 64 - 7 + 4 * i, true);

  const length = bytes.length;
  const stripes = Math.floor((length - 1) / 64);
  // A typed array is faster than a DataView, but it must be aligned: odd places are copied, a piece at a time.
  const pieceStripes = 1024;
  const copy = bytes.byteOffset % 4 === 0 ? undefined : new Uint8Array(Math.min(pieceStripes, stripes) * 64);
  for (let first = 0; first < stripes; first += pieceStripes) {
    const count = Math.min(pieceStripes, stripes - first);
    let words: Int32Array;
    if (copy) {
      copy.set(bytes.subarray(first * 64, (first + count) * 64));
      words = new Int32Array(copy.buffer, 0, count * 16);
    } else {
      words = new Int32Array(bytes.buffer, bytes.byteOffset + first * 64, count * 16);
    }
    for (let i = 0; i < count; i++) {
      const inBlock = i & 15;
      accumulate(acc, words, 16 * i, secret, 2 * inBlock);
      if (inBlock === 15) scramble(acc, secret);
    }
  }
  const last = new Uint8Array(64);
  last.set(bytes.subarray(length - 64));
  accumulate(acc, new Int32Array(last.buffer), 0, lastSecret, 0);
  return acc;
}

function accumulate(acc: Int32Array, words: Int32Array, at: number, secret: Int32Array, secretAt: number): void {
  for (let i = 0; i < 16; i += 2) {
    const low = words[at + i]!;
    const high = words[at + i + 1]!;
    const a = low ^ secret[secretAt + i]!;
    const b = high ^ secret[secretAt + i + 1]!;
    // a * b with 64 bits, from products of 16 bits
    const a0 = a & 0xffff;
    const a1 = a >>> 16;
    const b0 = b & 0xffff;
    const b1 = b >>> 16;
    const p00 = Math.imul(a0, b0);
    const middle = (Math.imul(a1, b0) + (p00 >>> 16)) | 0; // below 2^32, like the next sum
    const middle2 = (Math.imul(a0, b1) + (middle & 0xffff)) | 0;
    const productLow = (middle2 << 16) | (p00 & 0xffff);
    const productHigh = (Math.imul(a1, b1) + (middle >>> 16) + (middle2 >>> 16)) | 0;
    add(acc, i, productLow, productHigh);
    add(acc, i ^ 2, low, high);
  }
}

/** Adds a number of 64 bits to an accumulator. The carry is found with bits, because comparisons are slower here. */
function add(acc: Int32Array, i: number, low: number, high: number): void {
  const old = acc[i]!;
  const sum = (old + low) | 0;
  const carry = ((old & low) | ((old | low) & ~sum)) >>> 31;
  acc[i] = sum;
  acc[i + 1] = (acc[i + 1]! + high + carry) | 0;
}

function scramble(acc: Int32Array, secret: Int32Array): void {
  for (let i = 0; i < 16; i += 2) {
    let low = acc[i]!;
    let high = acc[i + 1]!;
    low ^= high >>> 15; // the number shifted right by 47 bits
    low ^= secret[32 + i]!;
    high ^= secret[33 + i]!;
    // times P32_1, with 64 bits
    const a0 = low & 0xffff;
    const a1 = low >>> 16;
    const p00 = Math.imul(a0, PRIME_LOW);
    const middle = (Math.imul(a1, PRIME_LOW) + (p00 >>> 16)) | 0;
    const middle2 = (Math.imul(a0, PRIME_HIGH) + (middle & 0xffff)) | 0;
    acc[i] = (middle2 << 16) | (p00 & 0xffff);
    acc[i + 1] = (Math.imul(a1, PRIME_HIGH) + (middle >>> 16) + (middle2 >>> 16) + Math.imul(high, PRIME)) | 0;
  }
}

function merge(acc: Int32Array, secret: Uint8Array, secretAt: number, start: bigint): bigint {
  const view = viewOf(secret);
  const lane = (i: number): bigint => (BigInt(acc[2 * i + 1]! >>> 0) << 32n) | BigInt(acc[2 * i]! >>> 0);
  let result = start;
  for (let i = 0; i < 4; i++) {
    const a = lane(2 * i) ^ view.getBigUint64(secretAt + 16 * i, true);
    const b = lane(2 * i + 1) ^ view.getBigUint64(secretAt + 16 * i + 8, true);
    result += fold(a, b);
  }
  return avalanche(result & MASK);
}
