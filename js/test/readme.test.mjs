// Runs the examples of the README.
import test from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { examples } from './spec.mjs';
import { rangeServer } from './server.mjs';

const text = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
const blocks = [...text.matchAll(/```js\n([^]*?)```/g)].map((match) => match[1]);

test('the examples of the README run, and print what they say', async () => {
  const { archive: bytes, parts } = examples();
  const folder = mkdtempSync(join(tmpdir(), 'tenarc-'));
  const path = join(folder, 'example.tenarc');
  writeFileSync(path, bytes);
  const server = await rangeServer(createServer, bytes);
  try {
    assert.equal(blocks.length, 7);
    const printed = [];
    for (const block of blocks) {
      const imports = { tenarc: '../dist/index.js', 'tenarc/node': '../dist/node.js' };
      const body = block.replace(
        /import (\* as \w+|\{[^}]*\}) from '([^']*)';/g,
        (_, names, from) =>
          `const ${names.replace(/^\* as /, '').replace(/ as /g, ': ')} = await load('${imports[from] ?? from}');`,
      );
      const run = new Function('load', 'bytes', 'path', 'url', 'stream', 'console', `return (async () => {${body}})();`);
      const log = (...values) => printed.push(values.map(show).join(' '));
      await run((from) => import(from), bytes, path, server.url, parts, { log });
    }
    assert.deepEqual(
      printed.map((line) => line.replace(/; .*/, '')),
      [
        'layer 12 null null',
        'two',
        'f32 2 Float32Array 0.5,-1',
        'Float32Array 1,-2',
        'layer [object Object]',
        'torn 12 the archive was never committed',
      ],
    );
  } finally {
    server.close();
    rmSync(folder, { recursive: true });
  }
});

function show(value) {
  return ArrayBuffer.isView(value) ? `${value.constructor.name} ${value}` : String(value);
}
