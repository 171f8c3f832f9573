import test from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TenarcError, httpSource, open } from '../dist/index.js';
import { openArchiveFile } from '../dist/node.js';
import { examples } from './spec.mjs';
import { rangeServer } from './server.mjs';

const { archive: bytes } = examples();

async function bias(archive) {
  return [...(await (await archive.segment('layer')).tensor('bias')).data];
}

test('bytes, buffers and blobs', async () => {
  const moved = Buffer.alloc(bytes.length + 3);
  moved.set(bytes, 3);
  for (const source of [bytes, Buffer.from(bytes), moved.subarray(3), bytes.slice().buffer, new Blob([bytes])]) {
    assert.deepEqual(await bias(await open(source)), [0.5, -1]);
  }
});

test('files', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tenarc-'));
  try {
    const path = join(folder, 'example.tenarc');
    writeFileSync(path, bytes);
    const { archive, close } = await openArchiveFile(path);
    assert.deepEqual(await bias(archive), [0.5, -1]);
    await close();
    writeFileSync(path, bytes.subarray(0, 50));
    await assert.rejects(openArchiveFile(path), (error) => error.kind === 'torn');
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('ranges over HTTP', async () => {
  const server = await rangeServer(createServer, bytes);
  try {
    assert.deepEqual(await bias(await open(new URL(server.url))), [0.5, -1]);
    assert.deepEqual(server.requests, ['bytes=-65536']);
    server.requests.length = 0;
    assert.deepEqual(await bias(await open(server.url, { suffix: 90 })), [0.5, -1]);
    assert.equal(server.requests[0], 'bytes=-90');
    assert.ok(server.requests.length <= 4, server.requests.join());
  } finally {
    server.close();
  }
});

test('a server that ignores ranges, an empty file, and a file that changes', async () => {
  const whole = await rangeServer(createServer, bytes, { ignoreRanges: true });
  const empty = await rangeServer(createServer, new Uint8Array(0));
  const changing = await rangeServer(createServer, bytes, { changes: true });
  try {
    assert.deepEqual(await bias(await open(whole.url)), [0.5, -1]);
    assert.equal(whole.requests.length, 1);
    await assert.rejects(open(empty.url), (error) => error.kind === 'torn');
    await assert.rejects(open(httpSource(changing.url), { suffix: 90 }).then(bias), (error) => error.kind === 'io');
    await assert.rejects(
      open(`${whole.url.replace(/\d+\/$/, '1')}/`),
      (error) => error instanceof TenarcError && error.kind === 'io',
    );
  } finally {
    for (const server of [whole, empty, changing]) server.close();
  }
});

const golden = (name) => new URL(`../../tests/golden/${name}.tenarc`, import.meta.url);

test('golden archives: values, slices and tables', { skip: !existsSync(golden('compressed')) }, async () => {
  const archive = await open(readFileSync(golden('compressed')));
  const segment = await archive.segment('lz4');
  const value = await segment.value();
  for (const { path, dtype, shape } of await segment.list()) {
    const tensor = await segment.tensor(path);
    assert.deepEqual([tensor.dtype, tensor.shape], [dtype, shape]);
    const rowBytes = tensor.bytes.length / shape[0];
    for (const [start, end] of [
      [0, 0],
      [0, 1],
      [3, 17],
      [shape[0] - 1, shape[0]],
      [0, shape[0]],
    ]) {
      const slice = await segment.slice(path, start, end);
      assert.deepEqual(
        Buffer.from(slice.bytes),
        Buffer.from(tensor.bytes.subarray(start * rowBytes, end * rowBytes)),
        `${path} ${start}`,
      );
    }
    await assert.rejects(segment.slice(path, 1, shape[0] + 1), (error) => error.kind === 'usage');
  }
  const ids = (await segment.tensor('columns.id')).data;
  assert.equal(value.columns.length, ids.length);
  assert.deepEqual(
    value.columns.map((row) => row.id),
    [...ids],
  );
  assert.equal(await segment.get('columns.17.id'), ids[17]);
  assert.equal(await segment.get('columns.id.17'), ids[17]);
  assert.equal(await segment.get('/columns/17/id'), ids[17]);
  await assert.rejects(
    segment.get('columns.nothing'),
    (error) => error.kind === 'missing' && error.path === 'columns.nothing',
  );
  await assert.rejects(
    (await archive.segment('zstd')).value(),
    (error) => error.kind === 'unsupported' && /zstd/.test(error.message),
  );
  await assert.rejects(
    open(readFileSync(golden('compressed')), { memory: 1000 }).then(async (small) => (await small.segment('lz4')).value()),
    (error) => error.kind === 'limit',
  );
});

test('golden archives with several segments', { skip: !existsSync(golden('appended')) }, async () => {
  const bytes = readFileSync(golden('appended'));
  const archive = await open(bytes);
  const segments = await archive.segments();
  assert.equal(segments.length, archive.length);
  for (const segment of segments) {
    await segment.value();
    if (segment.digest !== null) assert.equal(await segment.computeDigest(), segment.digest);
  }
});
