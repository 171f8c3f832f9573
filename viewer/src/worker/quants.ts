// The types of tensors in GGUF whose elements share scales in blocks, as ggml defines them: how long blocks are, and the numbers
// in those of the usual types.
import { halfToNumber } from '../../../js/src/cbor.js';
import { viewOf } from '../../../js/src/bytes.js';
import { TenarcError } from '../../../js/src/errors.js';

export interface Block {
  elements: number;
  bytes: number;
  decode(bytes: Uint8Array): Float32Array;
}

type Fill = (block: Uint8Array, half: (at: number) => number, out: Float32Array) => void;

function blocks(elements: number, bytes: number, fill: Fill): Block {
  return {
    elements,
    bytes,
    decode(all) {
      const count = Math.floor(all.length / bytes);
      const out = new Float32Array(count * elements);
      const view = viewOf(all);
      for (let i = 0; i < count; i++) {
        const start = i * bytes;
        const half = (at: number) => halfToNumber(view.getUint16(start + at, true));
        fill(all.subarray(start, start + bytes), half, out.subarray(i * elements, (i + 1) * elements));
      }
      return out;
    },
  };
}

/** The 16 low halves of bytes are the first 16 elements, the high halves the others. */
function nibbles(at: number, scale: (value: number, i: number, block: Uint8Array) => number): Fill {
  return (block, half, out) => {
    const d = half(0);
    for (let i = 0; i < 16; i++) {
      out[i] = d * scale(block[at + i]! & 15, i, block);
      out[i + 16] = d * scale(block[at + i]! >> 4, i + 16, block);
    }
  };
}

/** As above, with a smallest value of the block. */
function nibblesFrom(at: number, scale: (value: number, i: number, block: Uint8Array) => number): Fill {
  const plain = nibbles(at, scale);
  return (block, half, out) => {
    plain(block, half, out);
    const m = half(2);
    for (let i = 0; i < 32; i++) out[i]! += m;
  };
}

const fifthBit = (block: Uint8Array, at: number, i: number) => ((block[at + (i >> 3)]! >> (i & 7)) & 1) << 4;

/** The 6 bits of the scale and the minimum of each of 8 parts of a block, in 12 bytes. */
function scalesOf(packed: Uint8Array, part: number): [number, number] {
  if (part < 4) return [packed[part]! & 63, packed[part + 4]! & 63];
  const low = packed[part + 4]!;
  return [(low & 15) | ((packed[part - 4]! >> 6) << 4), (low >> 4) | ((packed[part]! >> 6) << 4)];
}

/** Q4_K and Q5_K: 8 parts of 32 elements. The fifth bits of Q5_K are in 32 bytes, one bit for each part. */
function parts(isFive: boolean): Fill {
  return (block, half, out) => {
    const [d, dmin] = [half(0), half(2)];
    const scales = block.subarray(4, 16);
    const low = block.subarray(isFive ? 48 : 16);
    for (let part = 0; part < 8; part++) {
      const [scale, least] = scalesOf(scales, part);
      for (let i = 0; i < 32; i++) {
        const byte = low[32 * (part >> 1) + i]!;
        const value = (part & 1 ? byte >> 4 : byte & 15) + (isFive ? ((block[16 + i]! >> part) & 1) << 4 : 0);
        out[32 * part + i] = d * scale * value - dmin * least;
      }
    }
  };
}

const sixBits: Fill = (block, half, out) => {
  const d = half(208);
  for (let i = 0; i < 256; i++) {
    const [side, part, at] = [i >> 7, (i >> 5) & 3, i & 31];
    const low = block[64 * side + 32 * (part & 1) + at]!;
    const high = block[128 + 32 * side + at]!;
    const value = (part < 2 ? low & 15 : low >> 4) | (((high >> (2 * part)) & 3) << 4);
    const scale = (block[192 + (i >> 4)]! << 24) >> 24;
    out[i] = d * scale * (value - 32);
  }
};

/** Types whose numbers are not shown. */
function unread(elements: number, bytes: number): Block {
  return {
    elements,
    bytes,
    decode: () => {
      throw new TenarcError('unsupported', 'the numbers in blocks of this type are not shown');
    },
  };
}

export const BLOCKS: Record<string, Block | undefined> = {
  __proto__: null as never,
  q4_0: blocks(
    32,
    18,
    nibbles(2, (value) => value - 8),
  ),
  q4_1: blocks(
    32,
    20,
    nibblesFrom(4, (value) => value),
  ),
  q5_0: blocks(
    32,
    22,
    nibbles(6, (value, i, block) => (value | fifthBit(block, 2, i)) - 16),
  ),
  q5_1: blocks(
    32,
    24,
    nibblesFrom(8, (value, i, block) => value | fifthBit(block, 4, i)),
  ),
  q8_0: blocks(32, 34, (block, half, out) => {
    const d = half(0);
    for (let i = 0; i < 32; i++) out[i] = d * ((block[2 + i]! << 24) >> 24);
  }),
  q8_1: unread(32, 40),
  q2_k: unread(256, 84),
  q3_k: unread(256, 110),
  q4_k: blocks(256, 144, parts(false)),
  q5_k: blocks(256, 176, parts(true)),
  q6_k: blocks(256, 210, sixBits),
  q8_k: unread(256, 292),
  iq2_xxs: unread(256, 66),
  iq2_xs: unread(256, 74),
  iq3_xxs: unread(256, 98),
  iq1_s: unread(256, 50),
  iq4_nl: unread(32, 18),
  iq3_s: unread(256, 110),
  iq2_s: unread(256, 82),
  iq4_xs: unread(256, 136),
  iq1_m: unread(256, 56),
  tq1_0: unread(256, 54),
  tq2_0: unread(256, 66),
  mxfp4: unread(32, 17),
};

export const UNREAD_BLOCKS = Object.keys(BLOCKS).filter((name) => !/^q(4_[01k]|5_[01k]|8_0|6_k)$/.test(name));
