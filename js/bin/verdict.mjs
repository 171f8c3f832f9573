#!/usr/bin/env node
// Reads paths, one a line, and writes a line of JSON for each with the verdicts of opening, reading and verifying. See
// conformance/README.md. The ending of a path says what the file is.
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { Parts, TenarcError, decode, decodeSequence, open, splitParts, verify } from '../dist/index.js';

/** Where no bytes of a message are left over, its verdict says `refused` and not why. */
function verdictOf(error, refused) {
  if (!(error instanceof TenarcError)) throw error;
  const { kind, reason: message, offset } = error;
  if (kind === 'unsupported') return { verdict: 'unsupported', message, offset };
  if (refused) return { verdict: 'refused', message, offset };
  if (kind === 'torn') return { verdict: 'torn', message, offset };
  return { verdict: 'damaged', message, offset };
}

export async function attempt(work, refused = false) {
  try {
    return { verdict: 'ok', value: await work() };
  } catch (error) {
    return verdictOf(error, refused);
  }
}

/** The whole verdicts, with messages and what was read. */
export async function judge(path, bytes, options = {}) {
  if (path.endsWith('.cbor')) return { read: await attempt(() => decode(bytes), true) };
  if (path.endsWith('.seq')) return { read: await attempt(() => [...decodeSequence(bytes)], true) };
  if (path.endsWith('.parts')) return { read: await attempt(() => readParts(bytes), true) };
  const opened = await attempt(() => open(bytes, options));
  if (opened.verdict !== 'ok') return { open: opened };
  const archive = opened.value;
  if (archive.state === 'unfinished') opened.verdict = 'unfinished';
  return { open: opened, read: await attempt(() => readAll(archive)), verify: await attempt(() => verify(bytes)) };
}

async function readParts(bytes) {
  const all = [...splitParts(bytes)];
  if (all.length !== 1) throw new TenarcError('data', `${all.length} parts instead of one`);
  return new Parts(all[0]).value();
}

async function readAll(archive) {
  const values = [];
  for (const segment of await archive.segments()) values.push(await segment.value());
  return values;
}

async function main() {
  for await (const path of createInterface({ input: process.stdin })) {
    if (path === '') continue;
    const { open: opened, read, verify: verified } = await judge(path, readFileSync(path));
    const line = { file: path, open: opened?.verdict, read: read?.verdict, verify: verified?.verdict };
    process.stdout.write(`${JSON.stringify(line)}\n`);
  }
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) await main();
