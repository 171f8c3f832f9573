// A server on this machine that answers requests for ranges of some bytes.
export async function rangeServer(createServer, bytes, options = {}) {
  const requests = [];
  const server = createServer((request, response) => {
    const range = request.headers.range;
    requests.push(range);
    const found = options.ignoreRanges ? undefined : /^bytes=(\d*)-(\d*)$/.exec(range ?? '');
    if (!found) {
      response.writeHead(200, {});
      response.end(bytes);
      return;
    }
    const start = found[1] === '' ? Math.max(0, bytes.length - Number(found[2])) : Number(found[1]);
    const end = found[1] === '' || found[2] === '' ? bytes.length : Math.min(bytes.length, Number(found[2]) + 1);
    if (start >= end) {
      response.writeHead(416, {});
      response.end();
      return;
    }
    const etag = options.changes ? `"${requests.length}"` : '"1"';
    response.writeHead(206, { 'Content-Range': `bytes ${start}-${end - 1}/${bytes.length}`, ETag: etag });
    response.end(bytes.subarray(start, end));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, requests, close: () => server.close() };
}
