import test from 'node:test';
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { Parts, decode, decodeSequence, open, verify } from '../dist/index.js';
import { countWhole } from '../dist/verify.js';
import { attempt } from '../bin/verdict.mjs';
import { difference } from './compare.mjs';
import { zstd } from './zstd.mjs';

const folder = new URL('../../conformance/files/', import.meta.url);
const codecs = { zstd };

/** What is wrong with a verdict, as a text. */
function wrongVerdict(found, expected, what) {
  if (expected === undefined) return undefined;
  const all = Array.isArray(expected) ? expected : [expected];
  const fits = all.some((one) => {
    if (one.verdict !== found.verdict) return false;
    if (one.at !== undefined && found.offset !== one.at) return false;
    if (one.after !== undefined && found.after !== one.after) return false;
    if (one.segments !== undefined && found.segments !== one.segments) return false;
    return one.what === undefined || found.message.includes(one.what);
  });
  if (fits) return undefined;
  const { verdict, message, offset, after, segments } = found;
  return `${what}: ${JSON.stringify({ verdict, message, offset, after, segments })} instead of ${JSON.stringify(expected)}`;
}

async function checkMessage(bytes, expected) {
  const read = await attempt(() => (expected.kind === 'sequence' ? [...decodeSequence(bytes)] : decode(bytes)), true);
  const wrong = wrongVerdict(read, expected.read, 'read');
  if (wrong || read.verdict !== 'ok') return wrong;
  const key = expected.kind === 'sequence' ? 'values' : 'value';
  return key in expected ? difference(read.value, expected[key]) : undefined;
}

async function checkTensors(value, expected) {
  if (!expected) return undefined;
  if (expected === 'error')
    return (await attempt(() => value.list(), true)).verdict === 'ok' ? 'a list of tensors' : undefined;
  const list = (await value.list()).map(({ path, dtype, shape }) => [path, dtype, shape]);
  list.sort(([a], [b]) => (a < b ? -1 : 1));
  const sorted = [...expected].sort(([a], [b]) => (a < b ? -1 : 1));
  return JSON.stringify(list) === JSON.stringify(sorted)
    ? undefined
    : `tensors: ${JSON.stringify(list)} instead of ${JSON.stringify(sorted)}`;
}

async function checkParts(bytes, expected) {
  const pieces = [];
  let at = 0;
  for (const length of expected.pieces) pieces.push(bytes.subarray(at, (at += length)));
  const read = await attempt(() => new Parts(pieces).value(), true);
  const wrong = wrongVerdict(read, expected.read, 'read');
  if (wrong) return wrong;
  if ('unverified' in expected) return difference(await new Parts(pieces, { verify: false }).value(), expected.unverified);
  if (read.verdict !== 'ok') return undefined;
  return difference(read.value, expected.value) ?? (await checkTensors(new Parts(pieces), expected.tensors));
}

async function checkSegment(segment, expected, bytes) {
  const header = await segment.header();
  const fields = {
    name: segment.name,
    offset: segment.offset,
    length: header.end - header.offset,
    header: segment.headerLength,
    rows: segment.rows,
    digest: await segment.computeDigest(),
  };
  for (const [field, value] of Object.entries(fields)) {
    if (field in expected && expected[field] !== value) return `${field}: ${value} instead of ${expected[field]}`;
  }
  const read = await attempt(() => segment.value());
  const wrong = wrongVerdict(read, expected.read ?? { verdict: 'ok' }, `read of ${segment.name}`);
  if (wrong) return wrong;
  if ('unverified' in expected) {
    const other = await open(bytes, { codecs, verify: false });
    const found = difference(await (await other.segment(segment.index)).value(), expected.unverified, 'unverified');
    if (found) return found;
  }
  const difference1 = 'value' in expected ? difference(read.value, expected.value) : undefined;
  if (difference1) return difference1;
  const tensors = await checkTensors(segment, expected.tensors);
  if (tensors) return tensors;
  for (const [path, ...values] of expected.paths ?? []) {
    const found = await attempt(() => segment.get(path), true);
    if (values.length === 0) {
      if (found.verdict === 'ok') return `path ${path} leads to something`;
    } else if (found.verdict !== 'ok') {
      return `path ${path}: ${found.message}`;
    } else {
      const wrongValue = difference(found.value, values[0], `path ${path}`);
      if (wrongValue) return wrongValue;
    }
  }
  return undefined;
}

async function checkArchive(bytes, expected) {
  const opened = await attempt(() => open(bytes, { codecs, suffix: 4096 }));
  if (opened.verdict === 'ok' && opened.value.state === 'unfinished') {
    opened.verdict = 'unfinished';
    opened.segments = opened.value.length;
  }
  if (opened.verdict === 'torn') opened.after = await countWhole(bytes);
  const wrong = wrongVerdict(opened, expected.open, 'open');
  if (wrong || !['ok', 'unfinished'].includes(opened.verdict)) return wrong;
  const archive = opened.value;
  const reads = archive.input.reads;
  if (expected.reads !== undefined && reads !== expected.reads) return `${reads} reads instead of ${expected.reads}`;
  const read = await attempt(async () => {
    for (const segment of await archive.segments()) await segment.value();
  });
  const wrongRead = wrongVerdict(read, expected.read, 'read');
  if (wrongRead) return wrongRead;
  const wrongVerify = wrongVerdict(await attempt(() => verify(bytes)), expected.verify, 'verify');
  if (wrongVerify) return wrongVerify;
  if (expected.segments) {
    const segments = await archive.segments();
    if (segments.length !== expected.segments.length)
      return `${segments.length} segments instead of ${expected.segments.length}`;
    for (let i = 0; i < segments.length; i++) {
      const found = await checkSegment(segments[i], expected.segments[i], bytes);
      if (found) return `segment ${i}: ${found}`;
    }
  }
  if ('digest' in expected) {
    const digest = await archive.digest();
    if (digest !== expected.digest) return `digest ${digest} instead of ${expected.digest}`;
  }
  for (const [name, value] of expected.tables ?? []) {
    const found = difference(await (await archive.table(name)).rows(), value, `table ${name}`);
    if (found) return found;
  }
  return undefined;
}

async function check(name) {
  const expected = JSON.parse(readFileSync(new URL(name, folder), 'utf8'));
  const ending = { message: 'cbor', sequence: 'seq', archive: 'tenarc', parts: 'parts' }[expected.kind];
  const bytes = readFileSync(new URL(name.replace(/json$/, ending), folder));
  if (expected.kind === 'archive') return checkArchive(bytes, expected);
  return expected.kind === 'parts' ? checkParts(bytes, expected) : checkMessage(bytes, expected);
}

test('the conformance files', { skip: !existsSync(folder) }, async () => {
  const wrong = [];
  for (const name of readdirSync(folder)
    .filter((one) => one.endsWith('.json'))
    .sort()) {
    const found = await check(name).catch((error) => error.stack);
    if (found) wrong.push(`${name}: ${found}`);
  }
  assert.equal(wrong.join('\n'), '');
});
