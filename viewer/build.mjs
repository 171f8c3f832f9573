// Builds the page: one HTML file with its styles, its script and the script of its worker.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build, transform } from 'esbuild';

const MOST = 100_000;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const output = process.argv[2] ?? here('dist/viewer.html');

async function bundled(path) {
  const { outputFiles } = await build({
    entryPoints: [here(path)],
    bundle: true,
    minify: true,
    write: false,
    format: 'iife',
    target: 'es2022',
    charset: 'utf8',
    legalComments: 'none',
  });
  return outputFiles[0].text.trim();
}

/** What stands in an element of script must not end it. All of these are in strings or regular expressions. */
function inScript(text) {
  const safe = text.replace(/<(?=\/script|script|!--)/gi, '\\x3c');
  if (/<\/?script|<!--/i.test(safe)) throw new Error('a script holds an end of scripts');
  return safe;
}

const hashOf = (text) => `'sha256-${createHash('sha256').update(text).digest('base64')}'`;

const style = (await transform(readFileSync(here('src/style.css'), 'utf8'), { loader: 'css', minify: true })).code.trim();
const worker = inScript(await bundled('src/worker/main.ts'));
const script = inScript(await bundled('src/page/main.ts'));
const policy = [
  "default-src 'none'",
  `script-src ${hashOf(script)}`,
  `style-src ${hashOf(style)}`,
  'img-src data:',
  'worker-src blob:',
  // The page narrows this to one address or to none before it does anything else.
  'connect-src http: https:',
  "base-uri 'none'",
  "form-action 'none'",
].join('; ');
const licences = `fzstd, which is in this page: ${readFileSync(here('node_modules/fzstd/LICENSE'), 'utf8').trim()}`;
const parts = { policy, style, worker, script };
const page = readFileSync(here('src/page.html'), 'utf8')
  .replace(/\{\{(\w+)\}\}/g, (_, name) => parts[name])
  .replace('</body>', () => `<!--\n${licences}\n-->\n</body>`);
const length = gzipSync(page, { level: 9 }).length;
mkdirSync(dirname(output), { recursive: true });
writeFileSync(output, page);
console.log(`${page.length} bytes, ${length} compressed by gzip`);
if (length > MOST) throw new Error(`the page has more than ${MOST} bytes`);
