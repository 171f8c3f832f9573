//! Bytes of many kinds.

use std::io::Write as _;

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
    /// A distribution that comes back after another one, and again after random bytes, in steps of 128 KiB.
    Returning,
    /// Copies of earlier bytes.
    Repeating,
}

pub const KINDS: [Kind; 11] = [
    Kind::Constant,
    Kind::Two,
    Kind::Geometric,
    Kind::OneHuge,
    Kind::Uniform,
    Kind::Exponents,
    Kind::Half,
    Kind::Quarter,
    Kind::Changing,
    Kind::Returning,
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
            Kind::Returning => match (at >> 17) % 5 {
                0 | 2 | 4 => low.trailing_zeros() as u8 * 7,
                1 => 90 + uniform % 40,
                _ => uniform,
            },
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

/// Bytes as computers store them: rows of text whose fields change, as in a file of JSON lines.
pub fn rows(len: usize) -> Vec<u8> {
    let mut random = Random(1);
    let mut out = Vec::new();
    while out.len() < len {
        let id = out.len() / 50;
        let next = random.next();
        let name = ["conv", "linear", "norm", "embedding"][(next >> 62) as usize];
        let value = next % 100_000;
        writeln!(out, r#"{{"id":{id},"layer":"{name}.{}","value":0.{value:05}}}"#, next >> 40 & 31)
            .unwrap();
    }
    out.truncate(len);
    out
}

/// Rows of 64 bytes that are nearly the same. Blocks of them have few literals, for which a new tree does not pay.
pub fn similar_rows(len: usize) -> Vec<u8> {
    let mut random = Random(3);
    let mut row = *b"2024-05-17T09:30:00Z host=worker-17 level=info message=ready ok\n";
    let mut out = Vec::new();
    while out.len() < len {
        let next = random.next();
        if next % 4 == 0 {
            row[20 + (next >> 8) as usize % 40] =
                b'a' + ((next >> 16) as u8 & (next >> 24) as u8 & 15);
        }
        out.extend(row);
    }
    out.truncate(len);
    out
}

/// Integers of eight bytes that grow by 1,000 and some noise.
pub fn counters(len: usize) -> Vec<u8> {
    let mut random = Random(2);
    let mut counter = 1_700_000_000_000_i64;
    let mut out = Vec::new();
    while out.len() < len {
        counter += 1000 + (random.next() % 16) as i64;
        out.extend(counter.to_le_bytes());
    }
    out.truncate(len);
    out
}

/// Miri has no files, in which proptest would keep what failed.
pub fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}
