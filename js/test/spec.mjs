// The worked examples in SPEC.md, as bytes. A line of an example is its position, if it has one, then the bytes, then a remark.
import { readFileSync } from 'node:fs';
import { bytesOfHex } from './compare.mjs';

const text = readFileSync(new URL('../../SPEC.md', import.meta.url), 'utf8');

function bytesOfLine(line) {
  const words = line
    .replace(/^ *\d+: /, '')
    .trim()
    .split(/ +/);
  const end = words.findIndex((word) => !/^([0-9a-f]{2})+$/.test(word));
  return words.slice(0, end < 0 ? words.length : end).join('');
}

/** The indented blocks that begin with bytes. */
export const blocks = text
  .split(/\n(?! {4})/)
  .map((block) => block.split('\n').filter((line) => line.startsWith('    ')))
  .filter((lines) => lines.length > 0 && bytesOfLine(lines[0]) !== '')
  .map((lines) => bytesOfHex(lines.map(bytesOfLine).join('')));

function find(hex, which = 0) {
  const start = bytesOfHex(hex);
  const found = blocks.filter((block) => start.every((byte, i) => block[i] === byte))[which];
  if (!found) throw new Error(`no example begins with ${hex}`);
  return found;
}

export function examples() {
  const archive = find('d9d9f8');
  const metadata = find('d818583dda5453454788016');
  return {
    tensor: find('d82882'),
    rows: find('da54434f4c8202a2'),
    options: find('da54434f4c8202a4'),
    groups: find('da54434f4c8403'),
    typedValue: find('da54545950'),
    typedColumn: find('da54434f4c8201'),
    compressedLength: find('84647a737464'),
    compressedChunk: find('0101000000'),
    statistics: find('820184'),
    archive,
    /** The metadata of the parts, and the buffer. */
    parts: Uint8Array.from([...metadata, ...archive.subarray(96, 104)]),
    metadata,
  };
}
