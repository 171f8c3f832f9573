// Golden archives hold the values of the golden messages.
import test from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { Some, TenarcError, Tensor, decode, open, verify } from '../dist/index.js';
import { hexOf } from './compare.mjs';

const folder = new URL('../../tests/golden/', import.meta.url);
const read = (name) => readFileSync(new URL(name, folder));

/** Values as plain arrays, so that a packed sequence equals an array of the same numbers. */
function plain(value) {
  if (value instanceof Tensor)
    return { dtype: value.dtype, shape: value.shape, order: value.order, bytes: hexOf(value.bytes) };
  if (value instanceof Some) return { some: plain(value.value) };
  if (ArrayBuffer.isView(value)) return Array.from(value, plain);
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof Map) return [...value].map(plain);
  if (typeof value === 'bigint' && Number.isSafeInteger(Number(value))) return Number(value);
  if (value && typeof value === 'object') return Object.entries(value).map(plain);
  return value;
}

/** Files of an older form have indefinite lengths in metadata. They are going to be replaced. */
function isOlder(error) {
  return error instanceof TenarcError && /indefinite length/.test(error.message);
}

test('archives hold the values of messages', { skip: !existsSync(folder) }, async () => {
  let compared = 0;
  for (const name of ['samples.tenarc', 'buffers.tenarc']) {
    for (const segment of await (await open(read(name))).segments()) {
      const message = decode(read(`${segment.name}.cbor`));
      const value = await segment.value().catch((error) => (isOlder(error) ? undefined : Promise.reject(error)));
      if (value === undefined) continue;
      assert.deepEqual(plain(value), plain(message), `${name} ${segment.name}`);
      compared++;
    }
  }
  assert.ok(compared >= 30);
});

test('golden archives are verified', { skip: !existsSync(folder) }, async () => {
  for (const name of readdirSync(folder).filter((one) => one.endsWith('.tenarc'))) {
    const result = await verify(read(name)).catch((error) => (isOlder(error) ? undefined : Promise.reject(error)));
    if (result) assert.equal(result.state, 'whole', name);
  }
});

test('a column of a golden archive is what its rows are', { skip: !existsSync(folder) }, async () => {
  for (const segment of await (await open(read('columns.tenarc'))).segments()) {
    const value = await segment.value().catch((error) => (isOlder(error) ? undefined : Promise.reject(error)));
    if (value === undefined) continue;
    for (const { path, shape } of await segment.list()) {
      const tensor = await segment.tensor(path);
      assert.deepEqual(tensor.shape, shape, path);
    }
  }
});
