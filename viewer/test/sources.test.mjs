// Servers that do not do what was asked of them.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { bytesOf, statistics, tensorsOf, worker } from './worker.mjs';

const bytes = bytesOf('model.safetensors');

/** Calls `use` with the address of a server that answers with `answer`, and the requests that it gets. */
async function withServer(answer, use) {
  const seen = [];
  const server = createServer((request, response) => {
    const [from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range).slice(1).map(Number);
    seen.push([from, to]);
    const part = bytes.subarray(from, to + 1);
    const { status = 206, headers = {}, body = part } = answer({ from, to, part, count: seen.length });
    response.writeHead(status, { 'Content-Range': `bytes ${from}-${from + part.length - 1}/${bytes.length}`, ...headers });
    response.end(body);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await use(`http://127.0.0.1:${server.address().port}/model.safetensors`, seen);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

const open = async (url) => worker.openFile(await worker.startOf(url));

test('only the header and the tensor that is looked at are read', () =>
  withServer(
    () => ({}),
    async (url, seen) => {
      const tensors = await tensorsOf(await open(url));
      const before = seen.length;
      assert.ok(before <= 3);
      assert.equal((await statistics(tensors.get('mask'))).max, '1');
      assert.deepEqual(
        seen.slice(before).map(([from, to]) => to - from + 1),
        [144],
      );
    },
  ));

test('a server without ranges sends the whole file', () =>
  withServer(
    () => ({ status: 200, body: bytes }),
    async (url, seen) => {
      assert.equal((await tensorsOf(await open(url))).size, 18);
      assert.equal(seen.length, 1);
    },
  ));

for (const [name, answer, message] of [
  ['an error of the server', () => ({ status: 404, body: 'none' }), /answered 404/],
  [
    'more than was asked for',
    ({ part }) => ({ body: Buffer.concat([part, bytes, bytes]) }),
    /more than the \d+ bytes that were asked for/,
  ],
  [
    'less than was asked for',
    ({ part }) => ({ body: part.subarray(0, part.length - 1) }),
    /a read of \d+ bytes gave|cannot be reached|would end/,
  ],
  ['another file meanwhile', ({ count }) => ({ headers: { ETag: `"${count}"` } }), /the file changed/],
  [
    'another range',
    ({ from, part }) => ({ headers: { 'Content-Range': `bytes ${from + 1}-${from + part.length}/${bytes.length}` } }),
    /from 1 on instead of 0/,
  ],
  ['no range', () => ({ headers: { 'Content-Range': 'all' } }), /without saying which/],
]) {
  test(name, () => withServer(answer, (url) => assert.rejects(open(url), message)));
}

test('a server that is not there', () => assert.rejects(open('http://127.0.0.1:9/'), /cannot be reached/));
