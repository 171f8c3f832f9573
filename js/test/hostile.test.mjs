// Changed and truncated files: no errors but those of this package, and no wrong "ok".
import test from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { Parts, TenarcError, decode, open, splitParts, verify } from '../dist/index.js';
import { bytesOfHex } from './compare.mjs';
import { examples } from './spec.mjs';

const example = examples().archive;
const appended = new URL('../../conformance/files/append-1.tenarc', import.meta.url);
const files = existsSync(appended) ? [example, new Uint8Array(readFileSync(appended))] : [example];

/** The kind of the error, or the result. */
async function outcome(work) {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof TenarcError)) throw error;
    return error.kind;
  }
}

async function readAll(archive) {
  const values = [];
  for (const segment of await archive.segments()) values.push(JSON.stringify(await segment.value()));
  return values;
}

/** Where tails end: a file that ends there is whole. */
function tailEnds(bytes) {
  const text = Buffer.from(bytes).toString('latin1');
  return [...text.matchAll(/X\(TARCTAIL/g)].map((match) => match.index + 42);
}

test('every truncation is found', async () => {
  for (const bytes of files) {
    const ends = tailEnds(bytes);
    for (let length = 0; length < bytes.length; length++) {
      const cut = bytes.subarray(0, length);
      const archive = await outcome(() => open(cut));
      const verified = await outcome(() => verify(cut));
      if (length < ends[0]) {
        assert.equal(archive, 'torn', `${length}`);
        assert.equal(verified, 'torn', `${length}`);
      } else {
        const state = ends.includes(length) ? 'whole' : 'unfinished';
        assert.equal(archive.state, state, `${length}`);
        assert.equal(archive.length, ends.filter((end) => end <= length).length);
        assert.deepEqual(verified, { state, segments: archive.length });
        await readAll(archive);
      }
    }
  }
});

test('every bit flip is found', async () => {
  for (const bytes of files) {
    const expected = await readAll(await open(bytes));
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = bytes.slice();
      flipped[bit >> 3] ^= 1 << (bit & 7);
      const verified = await outcome(() => verify(flipped));
      // A flip behind the first tail can leave an earlier state, but never the last one.
      if (typeof verified === 'object')
        assert.deepEqual([verified.state, verified.segments < expected.length], ['unfinished', true], `bit ${bit}`);
      const archive = await outcome(() => open(flipped));
      if (typeof archive !== 'object') continue;
      const values = await outcome(() => readAll(archive));
      if (Array.isArray(values)) assert.deepEqual(values, expected.slice(0, values.length), `bit ${bit}`);
      await outcome(() => archive.digest());
      for (const segment of (await outcome(() => archive.segments())) ?? []) {
        if (typeof segment === 'object') await outcome(() => segment.list());
      }
    }
  }
});

test('every truncation and bit flip of parts is found', async () => {
  const { parts } = examples();
  const read = (bytes) =>
    outcome(async () => {
      const values = [];
      for (const pieces of splitParts(bytes)) values.push(await new Parts(pieces).value());
      return values;
    });
  for (let length = 1; length < parts.length; length++) assert.equal(await read(parts.subarray(0, length)), 'damaged');
  for (let bit = 0; bit < parts.length * 8; bit++) {
    const flipped = parts.slice();
    flipped[bit >> 3] ^= 1 << (bit & 7);
    assert.ok(['damaged', 'unsupported'].includes(await read(flipped)), `bit ${bit}`);
  }
});

test('every truncation and byte of messages gives a value or an error of this package', async () => {
  const { tensor, rows, options, groups, typedColumn } = examples();
  for (const bytes of [tensor, rows, options, groups, typedColumn]) {
    for (let length = 0; length < bytes.length; length++) {
      assert.equal(await outcome(() => decode(bytes.subarray(0, length))), 'data');
    }
    for (let at = 0; at < bytes.length; at++) {
      for (let byte = 0; byte < 256; byte++) {
        const changed = bytes.slice();
        changed[at] = byte;
        await outcome(() => decode(changed));
      }
    }
  }
});

test('lengths beyond the input allocate nothing', async () => {
  for (const hex of [
    '5b7fffffffffffffff', // bytes
    '7bffffffffffffffff', // a text
    '9b00ffffffffffffff', // an array
    'bb00ffffffffffffff', // a map
    'd828828 21b00ffffffffffffff02d84040', // a tensor
    'da54434f4c8219ffff8365617272617 91b001fffffffffffff8164756e6974', // rows without bytes
  ]) {
    assert.ok(['data', 'limit'].includes(await outcome(() => decode(bytesOfHex(hex)))), hex);
  }
});

test('nesting has a limit', async () => {
  const nested = (depth) => Uint8Array.from([...new Array(depth - 1).fill(0x81), 0x80]);
  assert.ok(Array.isArray(decode(nested(128))));
  assert.equal(await outcome(() => decode(nested(129))), 'limit');
  assert.equal(await outcome(() => decode(nested(1000000))), 'limit');
  assert.equal(await outcome(() => decode(new Uint8Array(1000000).fill(0xc6))), 'limit');
});

test('keys cannot reach prototypes', () => {
  const value = decode(bytesOfHex('a2 695f5f70726f746f5f5f a1 68706f6c6c75746564 01 6161 02'));
  assert.ok(value instanceof Map);
  assert.deepEqual([...value.keys()], ['__proto__', 'a']);
  assert.equal({}.polluted, undefined);
  const other = decode(bytesOfHex('a2 6b636f6e7374727563746f72 01 68746f537472696e67 02'));
  assert.deepEqual(Object.entries(other), [
    ['constructor', 1],
    ['toString', 2],
  ]);
  assert.equal(Object.getPrototypeOf(other), Object.prototype);
});

test('a later version is named, whether or not its record is complete', async () => {
  for (const length of [example.length, 30]) {
    const later = example.slice(0, length);
    later[22] = 2;
    for (const work of [() => open(later.subarray(0, 160)), () => verify(later)]) {
      await assert.rejects(
        work,
        (error) => error instanceof TenarcError && error.kind === 'unsupported' && error.offset === 12,
      );
    }
  }
});
