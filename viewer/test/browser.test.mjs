// The one HTML file in Chromium, opened from the disk. With `--screenshots FOLDER`, it also writes the pictures of the documentation.
import test, { after, before } from 'node:test';
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import {
  closeSync,
  copyFileSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { startChromium } from './chromium.mjs';

const html = fileURLToPath(new URL('../dist/viewer.html', import.meta.url));
const pathOf = (name) => fileURLToPath(new URL(`files/${name}`, import.meta.url));
const expected = JSON.parse(readFileSync(pathOf('expected.json'), 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'viewer-files-'));
const screenshots = process.env.SCREENSHOTS;

let browser;
let page;
before(async () => {
  browser = await startChromium();
  page = await browser.newPage(pathToFileURL(html).href);
  await page.size(1000, 700);
  await page.scheme('light');
  // What a page of its own cannot know: the errors that its policy causes.
  await page.evaluate(
    `window.violations = []; addEventListener('securitypolicyviolation', (event) => violations.push(event.blockedURI)); 0`,
  );
});
after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

const tree = `[...document.querySelectorAll('#tree [role=treeitem]')].filter((one) => !one.parentElement.closest('[hidden]'))`;
const lines = () => page.evaluate(`${tree}.map((one) => one.querySelector('.name').textContent)`);

async function open(path, name = path.split('/').pop()) {
  await page.pick(path);
  await page.until(
    `document.getElementById('file-name').textContent === ${JSON.stringify(name)} && document.querySelector('#detail h1')`,
    `${name} to open`,
  );
  await page.until(`(${tree}.length > 1 && !document.querySelector('#tree [aria-busy]')) || document.querySelector('.fault')`);
}

/** Clicks on the line of the tree with this name, the last one if there are several. */
async function choose(name) {
  await page.until(
    `${tree}.some((one) => one.querySelector('.name').textContent === ${JSON.stringify(name)})`,
    `a line ${name}`,
  );
  await page.evaluate(
    `${tree}.filter((one) => one.querySelector('.name').textContent === ${JSON.stringify(name)}).pop().querySelector('.line').click()`,
  );
  await page.until(
    `document.querySelector('#detail h1')?.textContent.endsWith(${JSON.stringify(name)})`,
    `the details of ${name}`,
  );
}

async function statistics() {
  await page.until(`document.querySelector('[aria-label=Statistics] dd')`, 'statistics');
  return page.evaluate(
    `Object.fromEntries([...document.querySelectorAll('[aria-label=Statistics] > div')].map((one) => [one.querySelector('dt').textContent, one.querySelector('dd').textContent]))`,
  );
}

function near(found, wanted, what) {
  const number = Number(found);
  assert.ok(Math.abs(number - wanted) <= 1e-4 * Math.max(1e-9, Math.abs(wanted)), `${what}: ${found} instead of ${wanted}`);
}

async function checkStatistics(file, name) {
  const found = await statistics();
  const wanted = expected[file][name];
  for (const key of ['min', 'max']) {
    if (typeof wanted[key] === 'string') assert.equal(found[key], wanted[key]);
    else near(found[key], wanted[key], `${name} ${key}`);
  }
  near(found.std, wanted.std, `${name} std`);
  assert.equal(Number.parseInt(found.zeros.replaceAll(',', ''), 10), wanted.zeros);
  assert.equal(Number.parseInt(found.NaN, 10), wanted.nan);
}

async function shoot(name) {
  if (!screenshots) return;
  await new Promise((resolve) => setTimeout(resolve, 300));
  mkdirSync(screenshots, { recursive: true });
  writeFileSync(join(screenshots, `${name}.png`), await page.screenshot());
}

test('a tenarc archive: tree, statistics, pictures, values', async () => {
  await open(pathOf('zstd.tenarc'));
  assert.deepEqual(await lines(), [
    'zstd.tenarc',
    'segment 0',
    'name',
    'step',
    'config',
    'layers',
    'images',
    'fortran',
    'smooth',
    'raw',
    'events',
  ]);
  await choose('layers');
  await choose('2');
  await choose('weight');
  await checkStatistics('zstd.tenarc', 'layers.2.weight');
  await page.until(`document.querySelector('.picture canvas')`);
  assert.match(
    await page.evaluate(`document.querySelector('.picture canvas').getAttribute('aria-label')`),
    /Heat map of weight, 24 rows and 64 columns/,
  );
  await page.until(`document.querySelector('.values tbody td')`);
  const first = await page.evaluate(`document.querySelector('.values tbody td').textContent`);
  near(first, expected['zstd.tenarc']['layers.2.weight'].first[0], 'the first value');
  await shoot('tensor');
  await page.scheme('dark');
  await shoot('tensor-dark');
  await page.scheme('light');
  await choose('fortran');
  await checkStatistics('zstd.tenarc', 'fortran');
});

test('rows of a table are sorted by their columns', async () => {
  await choose('events');
  await page.until(`document.querySelectorAll('.grid tbody tr').length === 50`);
  const column = (i) =>
    page.evaluate(
      `[...document.querySelectorAll('.grid tbody tr')].map((row) => row.querySelectorAll('td')[${i}].textContent)`,
    );
  const press = async (name, state) => {
    await page.evaluate(
      `[...document.querySelectorAll('.sort')].find((one) => one.textContent === ${JSON.stringify(name)}).click()`,
    );
    await page.until(
      `[...document.querySelectorAll('[aria-sort=${state}] .sort')].some((one) => one.textContent === ${JSON.stringify(name)})`,
    );
  };
  assert.equal((await column(0))[49], '49');
  await press('score', 'ascending');
  const ascending = (await column(3)).map(Number);
  assert.deepEqual(
    ascending,
    [...ascending].sort((a, b) => a - b),
  );
  await press('score', 'descending');
  const descending = (await column(3)).map(Number);
  assert.deepEqual(
    descending,
    [...descending].sort((a, b) => b - a),
  );
  assert.ok(descending[0] > ascending[0]);
  await shoot('table');
  await page.evaluate(`document.querySelector('[data-focus=last]').click()`);
  await page.until(`document.querySelector('.pager span').textContent === '450 – 499 of 500'`);
  assert.ok((await column(3)).every((score) => score === 'null' || Number(score) < descending[49]));
});

test('search finds names, dtypes and shapes', async () => {
  await open(pathOf('model.safetensors'));
  const search = async (text) => {
    await page.evaluate(`document.getElementById('search-note').textContent = ''`);
    await page.evaluate(
      `(() => { const input = document.getElementById('search'); input.value = ${JSON.stringify(text)}; input.dispatchEvent(new Event('input')); })()`,
    );
    await page.until(
      `document.getElementById('search-note').textContent !== '' && document.querySelector('[role=tree][aria-label="Search results"]')`,
    );
    return lines();
  };
  assert.deepEqual(await search('norm 10'), ['model.layers.10.norm.weight']);
  assert.deepEqual((await search('bf16')).length, 4);
  assert.deepEqual(await search('[12, 12]'), ['mask']);
  await choose('mask');
  await checkStatistics('model.safetensors', 'mask');
  await page.evaluate(
    `(() => { const input = document.getElementById('search'); input.value = ''; input.dispatchEvent(new Event('input')); })()`,
  );
  await page.until(`${tree}.length > 5`);
  await choose('odd');
  await checkStatistics('model.safetensors', 'odd');
  await choose('counter');
  assert.equal((await statistics()).max, '9223372036854775807');
});

test('npz, npy and GGUF', async () => {
  await open(pathOf('compressed.npz'));
  for (const name of ['wave', 'big', 'complex', 'photo']) {
    await choose(name);
    await checkStatistics('compressed.npz', name);
  }
  await page.until(
    `document.querySelector('.picture canvas')?.getAttribute('aria-label') === 'Image of photo, 64 by 48 pixels'`,
  );
  await open(pathOf('image.npy'));
  await choose('array');
  await checkStatistics('image.npy', 'array');
  await open(pathOf('blocks.gguf'));
  assert.match(await page.evaluate(`document.getElementById('detail').innerText`), /Blocks of every type/);
  await choose('1');
  await choose('q6_k.weight');
  await checkStatistics('blocks.gguf', 'blk.1.q6_k.weight');
});

test('verifying a good file and a damaged one', async () => {
  const verify = async () => {
    await page.evaluate(`document.getElementById('verify').click()`);
    return page.until(`document.querySelector('.check [role=status], .check [role=alert]')?.textContent`);
  };
  await open(pathOf('lz4.tenarc'));
  assert.match(await verify(), /^Verified\. All checksums of 1 segment are right/);
  const bytes = readFileSync(pathOf('lz4.tenarc'));
  bytes[30000] ^= 1;
  writeFileSync(join(folder, 'damaged.tenarc'), bytes);
  await open(join(folder, 'damaged.tenarc'));
  assert.match(await verify(), /This file is damaged\.the hash of chunk 0 of a buffer is wrong \(at byte [\d,]+\)/);
  await open(pathOf('compressed.npz'));
  assert.match(await verify(), /All 7 members have the right CRC-32/);
});

test('errors say what was found and what was expected', async () => {
  const name = '<img src=x onerror=alert(1)>.npz';
  copyFileSync(pathOf('expected.json'), join(folder, name));
  await page.pick(join(folder, name));
  await page.until(`document.querySelector('.fault')`);
  assert.match(
    await page.evaluate(`document.querySelector('.fault').textContent`),
    /starts with the bytes 7b 0a .* was expected \(at byte 0\)/,
  );
  assert.equal(await page.evaluate(`document.querySelector('img')`), null);
  assert.equal(await page.evaluate(`document.activeElement.textContent`), name);
});

test('names are shown as text', async () => {
  const names = [
    '<img src=x onerror=alert(1)>',
    '\u202egnp.exe',
    '"><script>alert(2)</script>',
    'a'.repeat(3000),
    '__proto__',
    '',
  ];
  writeFileSync(join(folder, 'names.safetensors'), safetensors(names));
  await open(join(folder, 'names.safetensors'));
  assert.equal(
    await page.evaluate(`document.querySelectorAll('#tree img, #tree script, #detail img, #detail script').length`),
    0,
  );
  const found = await lines();
  assert.ok(
    found.some((one) => one.startsWith('\\u{202e}')),
    String(found),
  );
  assert.ok(found.includes('__proto__') && found.includes('""'));
  await choose('__proto__');
  assert.equal((await statistics()).min, '0');
});

function safetensors(names) {
  const entries = names.map(
    (name, i) => `${JSON.stringify(name)}:{"dtype":"U8","shape":[1],"data_offsets":[${i},${i + 1}]}`,
  );
  const json = Buffer.from(`{${entries.join(',')}}`);
  const length = Buffer.alloc(8);
  length.writeUInt32LE(json.length);
  return Buffer.concat([length, json, Buffer.alloc(names.length)]);
}

test('long lists come page by page', async () => {
  writeFileSync(join(folder, 'many.safetensors'), safetensors(Array.from({ length: 450 }, (_, i) => `t${i}`)));
  await open(join(folder, 'many.safetensors'));
  assert.equal((await lines()).length, 202);
  assert.equal((await lines()).pop(), 'Show 200 more of 250');
  for (const [count, last] of [
    [402, 'Show 50 more'],
    [451, 't449'],
  ]) {
    await page.evaluate(`${tree}.pop().querySelector('.line').click()`);
    await page.until(`${tree}.length === ${count}`);
    assert.equal((await lines()).pop(), last);
  }
  assert.equal(await page.evaluate(`document.activeElement.querySelector('.name').textContent`), 't400');
});

test('the keyboard reaches everything in the tree', async () => {
  await open(pathOf('plain.tenarc'));
  const current = () =>
    page.evaluate(`document.activeElement.querySelector('.name')?.textContent ?? document.activeElement.id`);
  assert.equal(await current(), 'plain.tenarc');
  const press = async (...keys) => {
    for (const key of keys) await page.key(key);
  };
  await press('ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown');
  assert.equal(await current(), 'config');
  await press('ArrowRight');
  await page.until(`document.activeElement.querySelectorAll('[role=treeitem]').length === 4`);
  await press('ArrowRight');
  assert.equal(await current(), 'learning rate');
  await press('ArrowLeft');
  assert.equal(await current(), 'config');
  await press('ArrowLeft');
  assert.equal(await page.evaluate(`document.activeElement.getAttribute('aria-expanded')`), 'false');
  await press('End');
  assert.equal(await current(), 'events');
  await press('f');
  assert.equal(await current(), 'fortran');
  await press('Enter');
  await page.until(`document.querySelector('#detail h1')?.textContent === 'segment 0 › fortran'`);
  assert.equal(await page.evaluate(`document.querySelectorAll('#tree [aria-selected=true]').length`), 1);
  await press('Home');
  assert.equal(await current(), 'plain.tenarc');
  assert.equal(await page.evaluate(`document.querySelectorAll('#tree [tabindex="0"]').length`), 1);
  await press('/');
  assert.equal(await current(), 'search');
  await page.type('smooth');
  await page.until(`document.getElementById('search-note').textContent === '1 match'`);
  await press('ArrowDown');
  assert.equal(await current(), 'segment 0 › smooth');
  await page.until(`document.getElementById('announcements').textContent === '1 match'`);
  await press('/', 'Escape');
  await page.until(`${tree}.length > 3`);
});

test('each control has a name, and each part a role', async () => {
  const { nodes } = await page.send('Accessibility.getFullAXTree');
  const shown = nodes.filter((node) => !node.ignored);
  const roles = new Set(shown.map((node) => node.role.value));
  for (const role of [
    'main',
    'navigation',
    'tree',
    'treeitem',
    'searchbox',
    'button',
    'heading',
    'status',
    'table',
    'columnheader',
    'rowheader',
  ])
    assert.ok(roles.has(role), `there is no ${role}`);
  const named = shown.filter((node) => node.role.value === 'treeitem').map((node) => node.name.value);
  assert.ok(named.includes('plain.tenarc') && named.includes('fortran, i32 [20, 30]'), String(named));
  const nameless = shown.filter(
    (node) =>
      ['button', 'searchbox', 'spinbutton', 'tree', 'treeitem', 'img', 'image', 'progressbar', 'textbox'].includes(
        node.role.value,
      ) && !node.name?.value,
  );
  assert.deepEqual(
    nameless.map((node) => node.role.value),
    [],
  );
});

test('a window of 400 pixels shows all without scrolling sideways', async () => {
  await page.size(400, 760);
  await page.until(`document.documentElement.scrollWidth <= 400`);
  await choose('smooth');
  await statistics();
  assert.ok((await page.evaluate(`document.documentElement.scrollWidth`)) <= 400);
  await shoot('narrow');
  await page.size(1000, 700);
});

/** The memory of all processes of the browser. */
function memory() {
  const parents = new Map();
  for (const one of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      const stat = readFileSync(`/proc/${one}/stat`, 'utf8');
      parents.set(Number(one), {
        parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]),
        pages: Number(readFileSync(`/proc/${one}/statm`, 'utf8').split(' ')[1]),
      });
    } catch {
      // It ended meanwhile.
    }
  }
  const isBelow = (pid) => pid === browser.pid || (parents.has(pid) && pid > 1 && isBelow(parents.get(pid).parent));
  return [...parents].filter(([pid]) => isBelow(pid)).reduce((sum, [, { pages }]) => sum + pages * 4096, 0);
}

function sparse(name, before, length, after = new Uint8Array(0)) {
  const path = join(folder, name);
  const file = openSync(path, 'w');
  ftruncateSync(file, before.length + length + after.length);
  writeSync(file, before, 0, before.length, 0);
  if (after.length > 0) writeSync(file, after, 0, after.length, before.length + length);
  closeSync(file);
  return path;
}

test('files of 50 GB open at once', { skip: process.platform !== 'linux' }, async () => {
  const length = 50_000_000_000;
  const json = Buffer.from(
    JSON.stringify({ 'model.weight': { dtype: 'F32', shape: [length / 4 / 1000, 1000], data_offsets: [0, length] } }),
  );
  const size = Buffer.alloc(8);
  size.writeUInt32LE(json.length);
  const writer = await build({
    stdin: {
      contents: "export * from './writer.mjs'",
      resolveDir: fileURLToPath(new URL('../../js/test/', import.meta.url)),
    },
    bundle: true,
    write: false,
    format: 'esm',
    plugins: [
      {
        name: 'sources',
        setup: (setup) =>
          setup.onResolve({ filter: /\.\.\/dist\// }, ({ path, resolveDir }) => ({
            path: join(resolveDir, path.replace('/dist/', '/src/').replace(/\.js$/, '.ts')),
          })),
      },
    ],
  });
  const { hollow, map, tensorIn, text } = await import(
    `data:text/javascript;base64,${Buffer.from(writer.outputFiles[0].contents).toString('base64')}`
  );
  const metadata = map(text('weight'), tensorIn(0, 'f32', [length / 4 / 1000, 1000]));
  const archive = hollow({ name: 'model', metadata, length, chunk: 1 << 20 });
  const before = memory();
  const start = Date.now();
  for (const path of [
    sparse('huge.safetensors', Buffer.concat([size, json]), length),
    sparse('huge.tenarc', archive.before, length, archive.after),
  ]) {
    await open(path);
    assert.match(await page.evaluate(`document.getElementById('file-facts').textContent`), /50 GB/);
    await choose((await lines()).pop());
    const found = await statistics();
    assert.equal(found.max, '0');
    assert.match(
      await page.evaluate(`document.querySelector('.sample').textContent`),
      /Estimated from a sample: [\d,]+ of 12,500,000,000 elements/,
    );
    await page.until(`document.querySelector('.picture canvas')`);
  }
  const seconds = (Date.now() - start) / 1000;
  const grown = (memory() - before) / 1e6;
  assert.ok(seconds < 10, `${seconds} s`);
  assert.ok(grown < 600, `${grown} MB`);
  // Reading all of it says how far it is, and stops when it is told to.
  await page.evaluate(`document.querySelector('.sample button').click()`);
  await page.until(`document.querySelector('.progress progress')?.value > 0`);
  await page.evaluate(`document.querySelector('.progress button').click()`);
  await page.until(`document.querySelector('.sample')`);
  await page.evaluate(`${tree}[0].querySelector('.line').click()`);
  await page.until(`document.getElementById('verify')`);
  await page.evaluate(`document.getElementById('verify').click()`);
  await page.until(`document.querySelector('.check progress')?.value > 0`);
  await page.evaluate(`document.querySelector('.check button').click()`);
  await page.until(`document.getElementById('verify')`);
});

/** A file on a server, which counts the requests for it. */
async function serve(path) {
  const bytes = readFileSync(path);
  const seen = [];
  const server = createServer((request, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.range ?? ''}`);
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    const end = Math.min(bytes.length, Number(to) + 1);
    response.writeHead(206, {
      'Access-Control-Allow-Origin': '*',
      'Access-Control-Expose-Headers': 'Content-Range',
      'Content-Range': `bytes ${from}-${end - 1}/${bytes.length}`,
    });
    response.end(bytes.subarray(Number(from), end));
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/some/model.safetensors`, seen, close: () => server.close() };
}

test('nothing leaves the page for a file', async () => {
  assert.deepEqual(page.complaints, []);
  assert.deepEqual(await page.evaluate('violations'), []);
  const others = page.requests.filter((url) => url !== pathToFileURL(html).href && !url.startsWith('blob:'));
  assert.deepEqual(others, []);
  const server = await serve(pathOf('model.safetensors'));
  try {
    const tried = await page.evaluate(`fetch(${JSON.stringify(server.url)}).then(() => 'sent', () => 'refused')`);
    assert.equal(tried, 'refused');
    assert.equal(
      await page.evaluate(
        `new Promise((resolve) => { const image = new Image(); image.onload = image.onerror = (event) => resolve(event.type); image.src = ${JSON.stringify(server.url)}; })`,
      ),
      'error',
    );
    assert.deepEqual(server.seen, []);
    assert.ok((await page.evaluate('violations')).length >= 2);
  } finally {
    server.close();
  }
});

test('a page beside which a file is served shows it', async () => {
  const server = createServer((request, response) => {
    const path = request.url.split('?')[0];
    const bytes = readFileSync(path === '/t/' ? html : pathOf('lz4.tenarc'));
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? '') ?? [];
    const part = from === undefined ? bytes : bytes.subarray(Number(from), Number(to) + 1);
    const range =
      from === undefined ? {} : { 'Content-Range': `bytes ${from}-${Number(from) + part.length - 1}/${bytes.length}` };
    response.writeHead(from === undefined ? 200 : 206, {
      'Content-Type': path === '/t/' ? 'text/html' : 'application/octet-stream',
      ...range,
    });
    response.end(part);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await page.goto(`http://127.0.0.1:${server.address().port}/t/?file=a%20model.tenarc`);
    await page.until(`document.getElementById('file-facts').textContent === 'tenarc, 48 kB'`);
    assert.equal(await page.evaluate(`document.getElementById('file-name').textContent`), 'a model.tenarc');
    await choose('smooth');
    await checkStatistics('lz4.tenarc', 'smooth');
  } finally {
    server.close();
    server.closeAllConnections();
    await page.goto(pathToFileURL(html).href);
  }
});

test('a URL that is typed is read by ranges, and no other', async () => {
  const server = await serve(pathOf('model.safetensors'));
  const other = await serve(pathOf('model.safetensors'));
  try {
    await page.evaluate(`document.getElementById('close').click()`);
    await page.evaluate(`document.getElementById('url').focus()`);
    await page.type('model.safetensors');
    await page.key('Enter');
    await page.until(`/should start with https/.test(document.getElementById('url-error').textContent)`);
    const loaded = page.event('Page.loadEventFired');
    await page.evaluate(`document.getElementById('url').value = ''; document.getElementById('url').focus()`);
    await page.type(server.url);
    await page.key('Enter');
    await loaded;
    await page.until(`document.getElementById('file-facts')?.textContent === 'safetensors, 49 kB'`);
    await choose('mask');
    await checkStatistics('model.safetensors', 'mask');
    await page.until(`document.querySelector('.wait') && !document.querySelector('.wait:empty')`);
    assert.ok(
      server.seen.length >= 2 && server.seen.every((one) => /^GET \/some\/model.safetensors bytes=\d+-\d+$/.test(one)),
      String(server.seen),
    );
    for (const url of [other.url, new URL('/else', server.url).href]) {
      assert.equal(await page.evaluate(`fetch(${JSON.stringify(url)}).then(() => 'sent', () => 'refused')`), 'refused');
    }
    assert.deepEqual(other.seen, []);
    assert.ok(server.seen.every((one) => !one.includes('/else')));
    // Without typing, the next load connects to nothing.
    const count = server.seen.length;
    await page.goto(pathToFileURL(html).href);
    assert.equal(await page.evaluate(`document.getElementById('start').hidden`), false);
    assert.equal(server.seen.length, count);
  } finally {
    server.close();
    other.close();
  }
});
