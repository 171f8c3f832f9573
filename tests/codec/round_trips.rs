//! What comes out is what went in.

use proptest::prelude::*;
use tenarc::codec::{Codec, Decoder, Encoder, Layout};

use crate::data::{KINDS, Kind, bytes, cases, decoded, kinds, layouts, plain, stored};

const BLOCK: usize = 128 << 10;

proptest! {
    #![proptest_config(cases(if cfg!(miri) { 4 } else { 300 }))]

    #[test]
    fn any_bytes(kind in kinds(), layout in layouts(), len in 0..if cfg!(miri) { 3000_usize } else { 100_000 }, seed: u64) {
        let chunk = bytes(kind, len, seed);
        for codec in Codec::ALL {
            let stored = stored(codec, layout, &chunk);
            let got = decoded(codec, layout, &stored, len);
            prop_assert!(got.as_ref() == Some(&chunk), "{:?}", codec);
        }
    }
}

#[test]
fn short_chunks() {
    let mut both = Decoder::new();
    for width in [1, 2, 4, 8, 16] {
        for rotated in [false, true] {
            let layout = Layout::new(width, rotated).unwrap();
            for len in
                (0..if cfg!(miri) { 40 } else { 160 }).chain([255, 256, 257, 1023, 1024, 1025])
            {
                for kind in [Kind::Constant, Kind::Two, Kind::Geometric, Kind::Uniform] {
                    let chunk = bytes(kind, len, 9);
                    for codec in Codec::ALL {
                        let stored = stored(codec, layout, &chunk);
                        let mut out = vec![1; len];
                        both.decode(codec, layout, &stored, &mut out).unwrap();
                        assert_eq!(out, chunk, "{width} {rotated} {len} {kind:?} {codec:?}");
                    }
                }
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "takes long")]
fn borders_of_blocks() {
    let mut decoder = Decoder::new();
    for kind in KINDS {
        for len in [BLOCK - 1, BLOCK, BLOCK + 1, BLOCK + 255, BLOCK + 256, 2 * BLOCK, 4 * BLOCK + 7]
        {
            let chunk = bytes(kind, len, 3);
            let mut encoder = Encoder::new(Codec::Zstd, plain(), 0).unwrap();
            let mut stored = Vec::new();
            if encoder.encode(&chunk, &mut stored) {
                let mut out = vec![0; len];
                decoder.decode(Codec::Zstd, plain(), &stored, &mut out).unwrap();
                assert!(out == chunk, "{kind:?} {len}");
            } else {
                assert_eq!(kind, Kind::Uniform);
            }
        }
    }
}

/// The layout of `SPEC.md`, section 5.11, byte by byte.
#[test]
fn layout() {
    // Words of two bytes: one plane is random, one constant, and a byte is left over.
    let mut chunk = Vec::new();
    for byte in bytes(Kind::Uniform, 100, 1) {
        chunk.extend([byte, 7]);
    }
    chunk.push(99);
    let low: Vec<u8> = chunk[..200].iter().copied().step_by(2).collect();
    let layout = Layout::new(2, false).unwrap();
    let expected = [&[0, 100, 0, 0, 0, 1, 1, 0, 0, 0][..], &low, &[7, 99]].concat();
    assert_eq!(stored(Codec::Zstd, layout, &chunk), expected);
    assert_eq!(stored(Codec::Lz4, layout, &chunk), expected);
}

#[test]
fn rotation_moves_the_sign() {
    // -1.5 and 1.5 in turn: exponent 127, of which the lowest bit is in the second byte.
    let chunk: Vec<u8> = (0..200)
        .flat_map(|at| if at % 2 == 0 { [0, 0, 0xc0, 0x3f] } else { [0, 0, 0xc0, 0xbf] })
        .collect();
    let layout = Layout::new(4, true).unwrap();
    let stored = stored(Codec::Zstd, layout, &chunk);
    // Planes 1 to 3 are constant: the mantissa's middle, its upper bits, and the exponent.
    assert_eq!(stored[5], 1);
    assert_eq!((stored[10], stored[15]), (1, 1));
    assert_eq!(stored[stored.len() - 3..], [0, 0x80, 0x7f]);
    assert_eq!(decoded(Codec::Zstd, layout, &stored, 800), Some(chunk));
}

/// Equal chunks give equal bytes, whatever the encoder has seen before.
#[test]
fn encoders_have_no_memory() {
    let layout = Layout::new(2, true).unwrap();
    let mut used = Encoder::new(Codec::Zstd, layout, 0).unwrap();
    for kind in KINDS {
        let chunk = bytes(kind, 3000, 5);
        let mut out = Vec::new();
        used.encode(&chunk, &mut out);
        let fresh = stored(Codec::Zstd, layout, &chunk);
        assert_eq!(if out.is_empty() { &chunk } else { &out }, &fresh, "{kind:?}");
    }
}

#[test]
fn names() {
    for codec in Codec::ALL {
        assert_eq!(Codec::from_name(codec.name()), Some(codec));
    }
    assert_eq!(Codec::from_name("deflate"), None);
    assert!([0, 3, 5, 6, 7, 9, 32, 258].iter().all(|&width| Layout::new(width, false).is_none()));
}

/// Without zstd's library there are no levels. With it, a higher level finds more repetitions, and both ways to decode
/// give the same.
#[test]
#[cfg_attr(miri, ignore = "takes long")]
fn levels() {
    let text = include_bytes!("../../SPEC.md");
    let layout = plain();
    let encoder = |level| Encoder::new(Codec::Zstd, layout, level);
    if cfg!(not(feature = "zstd")) {
        let expected =
            "this build cannot compress with level 3, only with 0: turn on the feature `zstd`";
        assert_eq!(encoder(3).unwrap_err().to_string(), expected);
        return;
    }
    let sizes = [1, 19].map(|level| {
        let mut stored = Vec::new();
        assert!(encoder(level).unwrap().encode(text, &mut stored));
        assert!(decoded(Codec::Zstd, layout, &stored, text.len()).unwrap() == text);
        stored.len()
    });
    assert!(sizes[1] < sizes[0] * 9 / 10, "{sizes:?}");
}
