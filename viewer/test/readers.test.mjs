// The readers find what the libraries that wrote the files say is in them.
import test from 'node:test';
import assert from 'node:assert/strict';
import { bytesOf, expected, itemsBelow, noProgress, openBytes, openName, statistics, tensorsOf, worker } from './worker.mjs';

const near = (found, wanted, what, part = 1e-6) => {
  assert.ok(Math.abs(found - wanted) <= part * Math.max(1e-12, Math.abs(wanted)), `${what}: ${found} instead of ${wanted}`);
};

for (const [name, arrays] of Object.entries(expected)) {
  test(`statistics of ${name}`, async () => {
    const tensors = await tensorsOf(await openName(name));
    for (const [path, wanted] of Object.entries(arrays)) {
      const tensor = tensors.get(path);
      assert.ok(tensor, `there is no ${path}, only ${[...tensors.keys()]}`);
      assert.deepEqual(tensor.shape, wanted.shape, path);
      const found = await statistics(tensor);
      const count = wanted.shape.reduce((product, size) => product * size, 1);
      assert.equal(found.elements, count);
      assert.equal(found.read, count);
      assert.deepEqual([found.zeros, found.nan, found.infinite], [wanted.zeros, wanted.nan, wanted.infinite], path);
      if (typeof wanted.min === 'string') assert.deepEqual([found.min, found.max], [wanted.min, wanted.max], path);
      else for (const key of ['min', 'max']) near(Number(found[key]), wanted[key], `${path} ${key}`, 1e-3);
      near(found.mean, wanted.mean, `${path} mean`, 1e-5 + 1e-6 * Math.abs(wanted.std / (wanted.mean || 1)));
      near(found.deviation, wanted.std, `${path} std`, 1e-5);
      const counted = found.histogram.counts.reduce((sum, one) => sum + one, 0);
      assert.equal(counted, count - wanted.nan - wanted.infinite, path);
      const codec = worker.codecOf(tensor.dtype);
      const first = await worker.readElements(tensor, codec, 0, Math.min(4, count));
      wanted.first.forEach((value, i) => {
        if (typeof value === 'string') assert.equal(String(first[i]), value, path);
        else if (value !== null) near(Number(first[i]), value, `${path}[${i}]`, 1e-5);
      });
    }
  });
}

test('a flat list of names becomes a tree in natural order', async () => {
  const { root, format } = await openName('model.safetensors');
  assert.equal(format, 'safetensors');
  const top = await root.children(0, 99);
  assert.deepEqual(
    top.map(({ name, kind }) => [name, kind]),
    [
      ['counter', 'tensor'],
      ['empty', 'tensor'],
      ['mask', 'tensor'],
      ['model', 'group'],
      ['odd', 'tensor'],
      ['position_ids', 'tensor'],
    ],
  );
  const model = await top[3].children(0, 9);
  assert.deepEqual(
    model.map((one) => one.name),
    ['embed.weight', 'layers'],
  );
  const layers = await model[1].children(0, 9);
  assert.deepEqual(
    layers.map((one) => one.name),
    ['0', '1', '2', '10'],
  );
  assert.equal(layers[0].note, '3 tensors');
  assert.deepEqual(
    (await layers[0].children(0, 9)).map((one) => one.name),
    ['attention.query.weight', 'mlp.up.weight', 'norm.weight'],
  );
  assert.deepEqual((await root.metadata()).sort(), [
    ['format', 'np'],
    ['title', 'a small model'],
  ]);
});

test('metadata of GGUF', async () => {
  const { root } = await openName('blocks.gguf');
  const metadata = new Map(await root.metadata());
  assert.equal(metadata.get('general.name'), 'Blocks of every type');
  assert.equal(metadata.get('llama.context_length'), '4096');
  assert.equal(metadata.get('tenarc.nested'), '[1.5, 2.5]');
  assert.match(metadata.get('tokenizer.ggml.tokens'), /^\["token 0", .*"token 23", … 1,000 elements\]$/);
});

test('matrices in both orders', async () => {
  const tensors = await tensorsOf(await openName('arrays.npz'));
  const corner = async (name, leading) => {
    const tensor = tensors.get(name);
    return (await worker.firstValues(tensor, worker.codecOf(tensor.dtype), leading)).rows.map((row) =>
      row.cells.map(Number),
    );
  };
  assert.deepEqual(
    await corner('fortran', []),
    [0, 1, 2, 3, 4].map((y) => [0, 1, 2, 3, 4, 5].map((x) => 6 * y + x)),
  );
  assert.deepEqual(
    await corner('cube', [1]),
    [0, 1, 2].map((y) => [0, 1, 2, 3].map((x) => 12 + 4 * y + x)),
  );
  assert.deepEqual(
    await corner('big', []),
    [0, 1, 2].map((y) => [0, 1, 2].map((x) => (3 * y + x) / 4)),
  );
});

test('pictures', async () => {
  const tensors = await tensorsOf(await openName('arrays.npz'));
  const photo = tensors.get('photo');
  const image = await worker.picture(photo, worker.codecOf('u8'), [], true, false);
  assert.deepEqual([image.kind, image.height, image.width], ['image', 48, 64]);
  assert.deepEqual([...image.rgba.subarray(4 * (64 * 3 + 5), 4 * (64 * 3 + 5) + 4)], [20, 15, 242, 255]);
  const wave = await worker.picture(tensors.get('wave'), worker.codecOf('f64'), [], false, false);
  assert.equal(wave.low.length, 512);
  assert.ok(wave.low[0] === 0 && wave.high[0] > wave.low[0]);
  const channels = (await tensorsOf(await openName('plain.tenarc'))).get('images');
  const second = await worker.picture(channels, worker.codecOf('u8'), [2], true, false);
  const bytes = await channels.read(0, channels.bytes);
  const at = (c, y, x) => bytes[((2 * 3 + c) * 16 + y) * 16 + x];
  assert.deepEqual([...second.rgba.subarray(4 * 35, 4 * 35 + 3)], [at(0, 2, 3), at(1, 2, 3), at(2, 2, 3)]);
  assert.deepEqual(worker.imageOf([10, 1, 28, 28]), { leading: [10], height: 28, width: 28, channels: 1 });
  assert.equal(worker.imageOf([5000, 64]), null);
  const heat = await worker.picture(tensors.get('fortran'), worker.codecOf('i32'), [], false, false);
  assert.deepEqual(
    [...heat.values],
    Array.from({ length: 30 }, (_, i) => i),
  );
});

async function table(name, path) {
  for await (const item of itemsBelow((await openName(name)).root)) if (item.path === path) return item;
  throw new Error(`there is no ${path}`);
}

test('rows of tables, sorted', async () => {
  const item = await table('zstd.tenarc', 'segment 0 › events');
  assert.equal(item.table.rows, 500);
  const plain = await worker.rowsOf(item.table, 10, 13, undefined);
  assert.deepEqual(
    plain.columns.map((column) => [column.name, column.numeric]),
    [
      ['id', true],
      ['when', false],
      ['city', false],
      ['score', true],
      ['place.x', true],
      ['place.y', true],
      ['user', false],
    ],
  );
  assert.deepEqual(plain.rows[0].cells.slice(0, 3), ['10', '2026-03-01 06:10:00Z', 'Bern']);
  assert.equal(plain.rows[0].cells[6], '00000000-0000-0000-b60b-60b5a6b60b56');
  const sorted = new worker.Sorted();
  const order = await sorted.get(item.table, ['score'], true);
  const scores = (await worker.rowsOf(item.table, 0, 500, order)).rows.map((row) => row.cells[3]);
  const filled = scores.filter((score) => score !== null).map(Number);
  assert.ok(filled.length > 400 && filled.every((score, i) => i === 0 || filled[i - 1] >= score));
  assert.ok(scores.slice(filled.length).every((score) => score === null));
  const nested = await sorted.get(item.table, ['place', 'x'], false);
  const xs = (await worker.rowsOf(item.table, 0, 50, nested)).rows.map((row) => Number(row.cells[4]));
  assert.deepEqual(
    xs,
    [...xs].sort((a, b) => a - b),
  );
  const cities = (await worker.rowsOf(item.table, 0, 500, await sorted.get(item.table, ['city'], false))).rows.map(
    (row) => row.cells[2],
  );
  assert.equal(cities[0], 'Bern');
  assert.equal(cities[499], 'Łódź');
});

test('values that were saved under one name are one table', async () => {
  const item = await table('log.tenarc', 'events');
  assert.equal(item.note, '4 segments, 120 rows');
  const { rows } = await worker.rowsOf(item.table, 28, 33, undefined);
  assert.deepEqual(
    rows.map((row) => [row.name, row.cells[0]]),
    [28, 29, 30, 31, 32].map((i) => [String(i), String(i)]),
  );
  const order = await new worker.Sorted().get(item.table, ['id'], true);
  assert.deepEqual([...order.subarray(0, 3)], [119, 118, 117]);
});

test('numbers come before texts, and missing values last', () => {
  const order = worker.orderOf(['b', 2, null, 10n, 'a', NaN, 1.5], false);
  assert.deepEqual([...order], [6, 1, 3, 4, 0, 2, 5]);
  assert.deepEqual([...worker.orderOf(['b', 2, null, 'a'], true)], [0, 3, 1, 2]);
});

test('what cannot be shown says why', async () => {
  for (const [name, why] of [
    ['objects.npy', /Python objects/],
    ['structured.npy', /structured/],
    ['texts.npy', /U2/],
  ]) {
    const [tensor] = (await tensorsOf(await openName(name))).values();
    assert.match(tensor.unreadable, why);
  }
});

test('verifying finds a changed byte', async () => {
  for (const name of ['arrays.npz', 'compressed.npz', 'plain.tenarc', 'zstd.tenarc']) {
    const bytes = bytesOf(name);
    const good = await openBytes(bytes);
    assert.match(await good.verify(noProgress), /right/);
    bytes[9000] ^= 4;
    const bad = await openBytes(bytes);
    await assert.rejects(bad.verify(noProgress), (error) => error.kind === 'damaged' && error.offset >= 0, name);
  }
});

test('a large tensor is sampled, and read as a whole if that is asked for', async () => {
  let read = 0;
  const elements = 50_000_000;
  const tensor = {
    dtype: 'u8',
    shape: [elements],
    order: 'C',
    bytes: elements,
    grain: 1,
    read: async (start, end) => ((read += end - start), new Uint8Array(end - start).fill(7)),
  };
  const sample = await statistics(tensor, false);
  assert.equal(sample.read, 32 * 131072);
  assert.equal(read, sample.read);
  assert.equal(sample.min, '7');
  // Each place is a request to a server.
  assert.equal((await statistics(tensor, false, true)).read, 8 * 65536);
  assert.equal((await statistics(tensor, true)).read, elements);
});

test('a histogram has exact counts when later numbers leave the range of the first ones', async () => {
  for (const pieces of [
    [[0.5, 0.25, NaN], [-1e6, 3], [1e9, Infinity, 2.5], [0.26]],
    [
      [0.5, 0.25],
      [-40, 3],
    ],
    [[0.5, 0.25], [17], [-1]],
  ]) {
    const accumulator = new worker.Accumulator({ isInteger: false, digits: 7 });
    for (const piece of pieces) accumulator.add(Float64Array.from(piece));
    const all = pieces.flat();
    const finite = all.filter(Number.isFinite);
    const { histogram, min, max, nan, infinite } = accumulator.result(all.length, null);
    assert.deepEqual([Number(min), Number(max)], [Math.min(...finite), Math.max(...finite)]);
    assert.equal(nan + infinite, all.length - finite.length);
    histogram.counts.forEach((count, i) => {
      const [from, to] = [histogram.from + i * histogram.width, histogram.from + (i + 1) * histogram.width];
      assert.equal(count, finite.filter((value) => value >= from && value < to).length, `${from} to ${to}`);
    });
  }
  for (const odd of [
    [5e-324, 1e308, -1e308],
    [1e308, 1.1e308],
    [0, 5e-324],
    [1e300, 1e300 * (1 + 2 ** -52)],
  ]) {
    const extreme = new worker.Accumulator({ isInteger: false, digits: 7 });
    for (const value of odd) extreme.add(Float64Array.of(value));
    const { counts } = extreme.result(odd.length, null).histogram ?? { counts: [odd.length] };
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      odd.length,
      String(odd),
    );
  }
});

test('names cannot hide or turn around what stands beside them', () => {
  assert.equal(worker.shown('a\u202eb\n\ud800'), 'a\\u{202e}b\\u{a}\\u{d800}');
  assert.equal(worker.shown('größe 张量 🙂'), 'größe 张量 🙂');
  assert.equal(worker.shown('x'.repeat(500)).length, 401);
});
