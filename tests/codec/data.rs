//! Bytes of many kinds.

use proptest::prelude::*;
use tenarc::codec::{Codec, Decoder, Encoder, Layout};

/// How bytes are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Constant,
    /// The bytes 0 and 255.
    Two,
    /// Each byte value half as often as the one before.
    Geometric,
    /// The same, with as many bytes of one value that others need codes that are longer than 11 bits.
    OneHuge,
    Uniform,
    /// The upper bytes of normally distributed floats.
    Exponents,
    /// All 256 values occur, and one of them in half of the places.
    Half,
    /// 193 values, of which the last takes a quarter: no weights can be written for this tree.
    Quarter,
    /// Another distribution in each 128 KiB.
    Changing,
    /// Copies of earlier bytes.
    Repeating,
}

pub const KINDS: [Kind; 10] = [
    Kind::Constant,
    Kind::Two,
    Kind::Geometric,
    Kind::OneHuge,
    Kind::Uniform,
    Kind::Exponents,
    Kind::Half,
    Kind::Quarter,
    Kind::Changing,
    Kind::Repeating,
];

/// Numbers that look random.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

pub fn bytes(kind: Kind, len: usize, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut out: Vec<u8> = Vec::with_capacity(len);
    for at in 0..len {
        let next = random.next();
        let uniform = (next >> 56) as u8;
        let low = next as u32;
        out.push(match kind {
            Kind::Constant => seed as u8,
            Kind::Two => {
                if low % 7 == 0 {
                    255
                } else {
                    0
                }
            }
            Kind::Geometric => low.trailing_zeros() as u8 * 7,
            Kind::OneHuge if low % 4096 > 0 => 17,
            Kind::OneHuge => uniform,
            Kind::Uniform => uniform,
            Kind::Exponents => {
                121 - (next | 1 << 30).trailing_zeros().min(40) as u8 * 2 + uniform % 2
            }
            Kind::Half => {
                if low % 2 == 0 {
                    200
                } else {
                    uniform
                }
            }
            // In turn, so that the counts are equal.
            Kind::Quarter => {
                if at % 4 == 3 {
                    192
                } else {
                    (at / 4 * 3 + at % 4) as u8 % 192
                }
            }
            Kind::Changing => {
                let shift = at >> 17;
                (low.trailing_zeros() as u8 * 7).rotate_left(shift as u32) ^ shift as u8
            }
            Kind::Repeating if at > 100 && low % 100 > 0 => out[at - 1 - seed as usize % 90],
            Kind::Repeating => uniform,
        });
    }
    out
}

pub fn kinds() -> impl Strategy<Value = Kind> {
    prop::sample::select(&KINDS[..])
}

pub fn layouts() -> impl Strategy<Value = Layout> {
    (0..5_u32, any::<bool>())
        .prop_map(|(width, rotated)| Layout::new(1_usize << width, rotated).unwrap())
}

pub fn plain() -> Layout {
    Layout::new(1, false).unwrap()
}

/// The chunk as it is stored.
pub fn stored(codec: Codec, layout: Layout, chunk: &[u8]) -> Vec<u8> {
    let mut out = b"before".to_vec();
    let mut encoder = Encoder::new(codec, layout, 0).unwrap();
    let shorter = encoder.encode(chunk, &mut out);
    let mut out = out.split_off(6);
    assert_eq!(shorter, !out.is_empty());
    if shorter {
        assert!(out.len() < chunk.len());
    } else {
        out.extend(chunk);
    }
    out
}

pub fn decoded(codec: Codec, layout: Layout, stored: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut out = vec![0xa5; len];
    Decoder::new().decode(codec, layout, stored, &mut out).ok().map(|()| out)
}

/// A chunk of one plane, which is compressed.
pub fn chunk_of(frame: &[u8]) -> Vec<u8> {
    let mut chunk = vec![2];
    chunk.extend((frame.len() as u32).to_le_bytes());
    chunk.extend(frame);
    chunk
}

/// The frame of a chunk of one plane, if it was compressed.
pub fn frame_of(stored: &[u8], len: usize) -> Option<&[u8]> {
    (stored.len() < len && stored[0] == 2).then(|| &stored[5..])
}

/// Miri has no files, in which proptest would keep what failed.
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
