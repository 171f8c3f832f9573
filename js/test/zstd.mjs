// A decoder for zstd frames whose blocks are all stored as they are or repeat one byte, for versions of Node without a decoder.
import * as zlib from 'node:zlib';

function decodeSimple(bytes) {
  const descriptor = bytes[4];
  const single = (descriptor & 0x20) !== 0;
  let at = 5 + (single ? 0 : 1) + [single ? 1 : 0, 2, 4, 8][descriptor >> 6];
  const out = [];
  for (let last = false; !last;) {
    const head = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16);
    at += 3;
    last = (head & 1) === 1;
    const size = head >> 3;
    const kind = (head >> 1) & 3;
    if (kind > 1) throw new Error('blocks that are compressed are not decoded here');
    for (let i = 0; i < size; i++) out.push(bytes[kind === 0 ? at++ : at]);
    if (kind === 1) at++;
  }
  return Uint8Array.from(out);
}

export const hasZstd = zlib.zstdDecompressSync !== undefined;
export const zstd = hasZstd ? (bytes) => new Uint8Array(zlib.zstdDecompressSync(bytes)) : decodeSimple;
