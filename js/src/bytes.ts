import { fail } from './errors.js';

export const MAX_SAFE = Number.MAX_SAFE_INTEGER;

export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

export function concat(pieces: Uint8Array[]): Uint8Array {
  const out = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}

export function isZero(bytes: Uint8Array): boolean {
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== 0) return false;
  return true;
}

export function hex(bytes: Uint8Array): string {
  let out = '';
  for (const byte of bytes) out += byte.toString(16).padStart(2, '0');
  return out;
}

export function hex128(value: bigint): string {
  return value.toString(16).padStart(32, '0');
}

/** A big-endian u64 as 8 bytes. */
export function bytesOfU64(value: bigint | number): Uint8Array {
  const out = new Uint8Array(8);
  viewOf(out).setBigUint64(0, BigInt(value));
  return out;
}

export function readU64(bytes: Uint8Array, at = 0): bigint {
  return viewOf(bytes).getBigUint64(at);
}

/** The same bytes as a plain array: the methods of a `Buffer` of Node differ in whether they copy. */
export function plainBytes(bytes: Uint8Array): Uint8Array {
  return bytes.constructor === Uint8Array ? bytes : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

/** A copy, or the bytes themselves if they already start at a multiple of `alignment` in their memory. */
export function aligned(bytes: Uint8Array, alignment: number): Uint8Array {
  return bytes.byteOffset % alignment === 0 ? bytes : bytes.slice();
}

/** Swaps the bytes of each element of a copy. */
export function swapped(bytes: Uint8Array, width: number): Uint8Array {
  const out = bytes.slice();
  for (let at = 0; at + width <= out.length; at += width) out.subarray(at, at + width).reverse();
  return out;
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

export function encodeText(text: string): Uint8Array {
  return encoder.encode(text);
}

/** Texts are mostly short and ASCII, for which this is faster than a TextDecoder. */
export function decodeText(bytes: Uint8Array, offset?: number): string {
  if (bytes.length < 32) {
    let out = '';
    let i = 0;
    for (; i < bytes.length && bytes[i]! < 0x80; i++) out += String.fromCharCode(bytes[i]!);
    if (i === bytes.length) return out;
  }
  try {
    return decoder.decode(bytes);
  } catch {
    return fail('data', 'text is not UTF-8', offset);
  }
}
