import test from 'node:test';
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { xxh3, xxh3128 } from '../dist/xxh3.js';

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
