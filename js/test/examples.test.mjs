// The minimal readers in the folder of examples read what this package reads.
import test from 'node:test';
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Tensor, open } from '../dist/index.js';
import { hexOf } from './compare.mjs';

const folder = new URL('../../examples/', import.meta.url);
const golden = new URL('../../tests/golden/', import.meta.url);
const conformance = new URL('../../conformance/files/', import.meta.url);
const python = ['python3', 'python'].find((name) => spawnSync(name, ['--version']).status === 0);
const readers = [[process.execPath, 'minimal_reader.mjs'], ...(python ? [[python, 'minimal_reader.py']] : [])];

function run([program, reader], ...args) {
  const { status, stdout, stderr } = spawnSync(program, [fileURLToPath(new URL(reader, folder)), ...args], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  assert.equal(status, 0, stderr);
  return stdout;
}

test('they have at most 60 lines', { skip: !existsSync(folder) }, () => {
  for (const name of ['minimal_reader.mjs', 'minimal_reader.py']) {
    assert.ok(readFileSync(new URL(name, folder), 'utf8').trimEnd().split('\n').length <= 60, name);
  }
});

test('they list the segments of golden archives', { skip: !existsSync(golden) || !existsSync(folder) }, async () => {
  for (const name of readdirSync(golden).filter((one) => one.endsWith('.tenarc'))) {
    const archive = await open(readFileSync(new URL(name, golden)));
    const expected = (await archive.segments()).map(({ offset, name: segment }) => `${offset} ${segment}`);
    for (const reader of readers) {
      const found = run(reader, fileURLToPath(new URL(name, golden)))
        .trimEnd()
        .split('\n');
      assert.deepEqual(
        found.map((line) => line.replace(/None$/, 'null')),
        expected,
        name,
      );
    }
  }
});

test('they read tensors', { skip: !existsSync(conformance) || !existsSync(folder) }, async () => {
  const path = fileURLToPath(new URL('example-archive.tenarc', conformance));
  const [javascript, ...others] = readers;
  const shown = run(javascript, path, 'layer');
  assert.match(shown, /'name' => 'two'/);
  assert.match(shown, /dtype: 'f32',\s+shape: \[ 2 \],\s+order: 'C'/);
  for (const reader of others) {
    assert.match(
      run(reader, path, 'layer'),
      /\('name', 'two'\), \('bias', \{'dtype': 'f32', 'shape': \[2\], 'order': 'C', 'payload': b'\\x00\\x00\\x00\?\\x00\\x00\\x80\\xbf'\}\)/,
    );
  }
});

test(
  'they find buffers where this package finds them',
  { skip: !existsSync(golden) || !python || !existsSync(folder) },
  async () => {
    const path = fileURLToPath(new URL('buffers.tenarc', golden));
    const archive = await open(readFileSync(path));
    for (const name of ['model', 'dtypes', 'layouts', 'complex']) {
      const payloads = [];
      const collect = (value) => {
        if (value instanceof Tensor) payloads.push(hexOf(value.bytes));
        else if (value && typeof value === 'object' && !ArrayBuffer.isView(value))
          [...(value instanceof Map ? value.values() : Object.values(value))].forEach(collect);
      };
      collect(await (await archive.segment(name)).value());
      const program = `import runpy, sys\nsys.argv = ['', ${JSON.stringify(path)}, '-']\nreader = runpy.run_path(${JSON.stringify(fileURLToPath(new URL('minimal_reader.py', folder)))})
def walk(v):
    if isinstance(v, dict): print(v['payload'].hex())
    elif isinstance(v, (list, tuple)): [walk(one) for one in v]
walk(reader['value'](${(await archive.segment(name)).offset}))`;
      const { stdout, stderr } = spawnSync(python, ['-c', program], { encoding: 'utf8' });
      assert.deepEqual(stdout.split('\n').slice(0, -1), payloads, `${name} ${stderr}`);
    }
  },
);
