// The code of the worker, for tests in Node: bundled as it is for the page, with what tests call.
import { openAsBlob, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const names = ['open', 'sources', 'statistics', 'preview', 'tables', 'elements', 'npz', 'npy', 'format'];
const { outputFiles } = await build({
  stdin: {
    contents: [...names.map((name) => `export * from './${name}.ts';`), "export * from '../shared/text.ts';"].join('\n'),
    resolveDir: fileURLToPath(new URL('../src/worker/', import.meta.url)),
  },
  bundle: true,
  write: false,
  format: 'esm',
  target: 'es2022',
});
export const worker = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString('base64')}`);

const folder = new URL('./files/', import.meta.url);
export const pathOf = (name) => fileURLToPath(new URL(name, folder));
export const bytesOf = (name) => new Uint8Array(readFileSync(pathOf(name)));
export const expected = JSON.parse(readFileSync(pathOf('expected.json'), 'utf8'));

export const openBytes = async (bytes) => worker.openFile(await worker.startOf(new Blob([bytes])));
export const openName = async (name) => worker.openFile(await worker.startOf(await openAsBlob(pathOf(name))));

/** All items below one. */
export async function* itemsBelow(item) {
  const own = item.resolve ? await item.resolve() : item;
  for (const child of (await own.children?.(0, own.count)) ?? []) {
    const inner = child.resolve ? await child.resolve() : child;
    yield inner;
    yield* itemsBelow(inner);
  }
}

export async function tensorsOf(file) {
  const out = new Map();
  for await (const item of itemsBelow(file.root)) {
    if (item.tensor) out.set(item.path.replace(/^segment 0 › /, '').replaceAll(' › ', '.'), item.tensor);
  }
  return out;
}

export const noProgress = async () => undefined;

export const statistics = (tensor, all = true, isRemote = false) =>
  worker.statisticsOf(tensor, worker.codecOf(tensor.dtype), all, isRemote, noProgress);
