// Compressed chunks (5.11): byte planes, and the LZ4 block format. Other decoders are plugged in.
import { TenarcError, fail } from './errors.js';
import { viewOf } from './bytes.js';

/** Decompresses to exactly `length` bytes, or throws. It must accept any bytes without harm. */
export type Decoder = (bytes: Uint8Array, length: number) => Uint8Array;

/** Decoders by the name of the codec. `lz4` is built in. */
export type Codecs = Record<string, Decoder>;

interface Planes {
  width: number;
  rotated: boolean;
}

const KNOWN = ['zstd', 'lz4'];

/** Checks the parameters of a codec that this package knows, even if it has no decoder for it. */
export function checkParameters(name: string, parameters: (number | bigint)[]): Planes | undefined {
  if (!KNOWN.includes(name)) return undefined;
  const [width, rotated] = parameters;
  if (parameters.length !== 2 || ![1, 2, 4, 8, 16].includes(Number(width)) || (rotated !== 0 && rotated !== 1)) {
    return fail('damaged', `the codec ${name} does not allow the parameters [${parameters}]`);
  }
  return { width: Number(width), rotated: rotated === 1 };
}

/** The function that decompresses chunks of a codec. */
export function chunkDecoder(name: string, parameters: (number | bigint)[], codecs: Codecs): Decoder {
  const planes = checkParameters(name, parameters);
  const decoder = Object.hasOwn(codecs, name) ? codecs[name]! : name === 'lz4' ? decodeLz4 : undefined;
  const missing = () => fail('unsupported', `there is no decoder for the codec ${JSON.stringify(name)}`);
  if (!planes) return missing();
  // Chunks whose planes are all stored in another way can be read without the codec.
  const decode: Decoder = (bytes, length) => {
    // This does not depend on the decoder: it may accept frames that are not allowed.
    if (name === 'zstd') checkZstdFrame(bytes, length);
    return decoder ? decoder(bytes, length) : missing();
  };
  return (bytes, length) => decodeChunk(planes, decode, bytes, length);
}

function decodeChunk({ width, rotated }: Planes, decode: Decoder, bytes: Uint8Array, length: number): Uint8Array {
  const words = Math.floor(length / width);
  const rest = length % width;
  const table = 5 * width;
  if (bytes.length < table + rest) fail('damaged', 'a compressed chunk is cut off');
  const view = viewOf(bytes);
  const stored = Array.from({ length: width }, (_, p) => view.getUint32(5 * p + 1, true));
  const total = stored.reduce((sum, one) => sum + one, table + rest);
  if (total !== bytes.length) fail('damaged', `the planes of a chunk have ${total} bytes instead of ${bytes.length}`);
  let at = table;
  const planes = stored.map((size, p) => decodePlane(bytes[5 * p]!, bytes.subarray(at, (at += size)), words, decode));
  if (width === 1) return planes[0]!;
  const out = new Uint8Array(length);
  planes.forEach((plane, p) => {
    for (let i = 0, to = p; i < words; i++, to += width) out[to] = plane[i]!;
  });
  out.set(bytes.subarray(at), words * width);
  if (rotated) rotateBack(out, width, words);
  return out;
}

function decodePlane(method: number, bytes: Uint8Array, length: number, decode: Decoder): Uint8Array {
  switch (method) {
    case 0:
      return bytes.length === length ? bytes : fail('damaged', `a plane has ${bytes.length} bytes instead of ${length}`);
    case 1:
      if (bytes.length !== 1) fail('damaged', `a plane of one value has ${bytes.length} bytes`);
      return new Uint8Array(length).fill(bytes[0]!);
    case 2: {
      if (bytes.length >= length) fail('damaged', 'a compressed plane is not shorter than the plane');
      let out: Uint8Array;
      try {
        out = decode(bytes, length);
      } catch (error) {
        if (error instanceof TenarcError) throw error;
        return fail('damaged', `a plane cannot be decompressed: ${error instanceof Error ? error.message : String(error)}`);
      }
      return out.length === length ? out : fail('damaged', `a plane has ${out.length} bytes instead of ${length}`);
    }
    default:
      return fail('damaged', `there is no method ${method} for planes`);
  }
}

/** Rotates each word right by one bit: its lowest bit becomes its highest. */
function rotateBack(bytes: Uint8Array, width: number, words: number): void {
  for (let word = 0; word < words; word++) {
    const first = word * width;
    const last = first + width - 1;
    const lowest = bytes[first]! & 1;
    for (let at = first; at < last; at++) bytes[at] = (bytes[at]! >> 1) | ((bytes[at + 1]! & 1) << 7);
    bytes[last] = (bytes[last]! >> 1) | (lowest << 7);
  }
}

/** The LZ4 block format, without a length in front. */
export function decodeLz4(bytes: Uint8Array, length: number): Uint8Array {
  const out = new Uint8Array(length);
  let at = 0;
  let to = 0;
  const more = (start: number): number => {
    let sum = start;
    if (start !== 15) return sum;
    for (;;) {
      if (at >= bytes.length) return fail('damaged', 'an LZ4 block is cut off');
      const byte = bytes[at++]!;
      sum += byte;
      if (byte !== 255) return sum;
    }
  };
  for (;;) {
    if (at >= bytes.length) return fail('damaged', 'an LZ4 block is cut off');
    const token = bytes[at++]!;
    const literals = more(token >> 4);
    if (literals > bytes.length - at || literals > length - to) return fail('damaged', 'LZ4 literals are too long');
    out.set(bytes.subarray(at, at + literals), to);
    at += literals;
    to += literals;
    if (at === bytes.length) break;
    if (bytes.length - at < 2) return fail('damaged', 'an LZ4 block is cut off');
    const distance = bytes[at]! | (bytes[at + 1]! << 8);
    at += 2;
    const match = more(token & 15) + 4;
    if (distance === 0 || distance > to || match > length - to) return fail('damaged', 'an LZ4 match is outside the block');
    if (distance >= match) {
      out.copyWithin(to, to - distance, to - distance + match);
      to += match;
    } else {
      for (const end = to + match; to < end; to++) out[to] = out[to - distance]!;
    }
  }
  return to === length ? out : fail('damaged', `an LZ4 block gives ${to} bytes instead of ${length}`);
}

const ZSTD_MAGIC = 0xfd2fb528;
const MAX_WINDOW = 8 * 1024 * 1024;

/** Checks that the bytes are one frame of the allowed kind. */
function checkZstdFrame(bytes: Uint8Array, length: number): void {
  const cut = () => fail('damaged', 'a zstd frame is cut off');
  if (bytes.length < 6) cut();
  const view = viewOf(bytes);
  if (view.getUint32(0, true) !== ZSTD_MAGIC) fail('damaged', 'there is no zstd frame');
  const descriptor = bytes[4]!;
  const isSingle = (descriptor & 0x20) !== 0;
  if (descriptor & 0x08) fail('damaged', 'a reserved bit of a zstd frame is set');
  if (descriptor & 0x04) fail('damaged', 'a zstd frame has a checksum');
  if (descriptor & 0x03) fail('damaged', 'a zstd frame has a dictionary');
  let at = 5;
  let window = length;
  if (!isSingle) {
    const byte = bytes[at++]!;
    const base = 2 ** (10 + (byte >> 3));
    window = base + (base / 8) * (byte & 7);
  }
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6]!;
  if (at + sizeBytes > bytes.length) cut();
  if (sizeBytes > 0) {
    let size = 0;
    for (let i = sizeBytes - 1; i >= 0; i--) size = size * 256 + bytes[at + i]!;
    if (sizeBytes === 2) size += 256;
    if (size !== length) fail('damaged', `a zstd frame has ${size} bytes instead of ${length}`);
    if (isSingle) window = size;
  }
  if (window > MAX_WINDOW) fail('damaged', `a zstd frame has a window of ${window} bytes`);
  at += sizeBytes;
  for (let isLast = false; !isLast;) {
    if (at + 3 > bytes.length) cut();
    const head = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16);
    isLast = (head & 1) === 1;
    const kind = (head >> 1) & 3;
    if (kind === 3) fail('damaged', 'a zstd frame has a reserved kind of block');
    at += 3 + (kind === 1 ? 1 : head >> 3);
  }
  if (at > bytes.length) cut();
  if (at < bytes.length) fail('damaged', `${bytes.length - at} bytes follow a zstd frame`);
}
