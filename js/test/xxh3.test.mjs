import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { decodeLz4 } from '../dist/compress.js';
import { xxh3, xxh3128 } from '../dist/xxh3.js';
import { bytesOfHex } from './compare.mjs';

const known = JSON.parse(readFileSync(new URL('xxh3.json', import.meta.url), 'utf8'));

function sequence(length) {
  const out = new Uint8Array(length);
  let x = 0x9e3779b1;
  for (let i = 0; i < length; i++) {
    x = (Math.imul(x, 1103515245) + 12345) >>> 0;
    out[i] = (x >>> 16) & 0xff;
  }
  return out;
}

test('XXH3 gives the known answers, aligned or not', () => {
  const all = sequence(200001);
  const moved = new Uint8Array(200002).subarray(1);
  moved.set(all);
  for (const bytes of [all, moved]) {
    for (const [length, hashes, hash128] of known.vectors) {
      const input = bytes.subarray(0, length);
      hashes.forEach((hash, i) => {
        assert.equal(xxh3(input, BigInt(known.seeds[i])).toString(16).padStart(16, '0'), hash, `${length}, seed ${i}`);
      });
      assert.equal(xxh3128(input).toString(16).padStart(32, '0'), hash128, `${length}, 128 bits`);
    }
  }
});

test('XXH3 and LZ4 give what annex D of SPEC.md says', () => {
  const spec = readFileSync(new URL('../../SPEC.md', import.meta.url), 'utf8');
  const rows = [...spec.matchAll(/^\| (\d+) \| `([0-9a-f]{16})` \| `([0-9a-f]{16})` \| `([0-9a-f]{32})` \|$/gm)];
  assert.ok(rows.length >= 15);
  for (const [, length, seed0, seed12, hash128] of rows) {
    const input = Uint8Array.from({ length: Number(length) }, (_, i) => (7 * i + (i >> 8)) & 255);
    assert.equal(xxh3(input).toString(16).padStart(16, '0'), seed0, length);
    assert.equal(xxh3(input, 12n).toString(16).padStart(16, '0'), seed12, length);
    assert.equal(xxh3128(input).toString(16).padStart(32, '0'), hash128, length);
  }
  const [, hex, text] = /The block `([0-9a-f ]+)` is the 30 bytes `(\w+)`/.exec(spec);
  assert.equal(Buffer.from(decodeLz4(bytesOfHex(hex), 30)).toString(), text);
});
