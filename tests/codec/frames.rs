//! Other libraries read the frames, and theirs are read.

use std::io::Read as _;

use proptest::prelude::*;
use ruzstd::decoding::FrameDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tenarc::codec::Codec;

use crate::data::{KINDS, Kind, bytes, cases, chunk_of, decoded, frame_of, kinds, plain, stored};

fn with_ruzstd(frame: &[u8], len: usize) -> Vec<u8> {
    let mut out = vec![0; len];
    assert_eq!(FrameDecoder::new().decode_all(frame, &mut out).unwrap(), len);
    out
}

/// That other libraries decode the frame of a chunk, which is returned.
fn check(chunk: &[u8], what: &dyn std::fmt::Debug) -> Option<Vec<u8>> {
    let stored = stored(Codec::Zstd, plain(), chunk);
    let frame = frame_of(&stored, chunk.len())?;
    assert!(with_ruzstd(frame, chunk.len()) == chunk, "{what:?}");
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        assert!(zstd::bulk::decompress(frame, chunk.len()).unwrap() == chunk, "{what:?}");
        // As a stream, for which the window counts.
        let mut out = Vec::new();
        zstd::stream::read::Decoder::new(frame).unwrap().read_to_end(&mut out).unwrap();
        assert!(out == chunk, "{what:?}");
        let size = zstd::zstd_safe::get_frame_content_size(frame).unwrap();
        assert_eq!(size, Some(chunk.len() as u64));
    }
    Some(frame.to_vec())
}

proptest! {
    #![proptest_config(cases(if cfg!(miri) { 2 } else { 200 }))]

    #[test]
    fn others_read_ours(kind in kinds(), len in 1..if cfg!(miri) { 2000_usize } else { 60_000 }, seed: u64) {
        check(&bytes(kind, len, seed), &(kind, len, seed));
    }

    #[test]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn ours_reads_those_of_the_c_library(kind in kinds(), len in 20..60_000_usize, seed: u64, level in -3..20) {
        let chunk = bytes(kind, len, seed);
        let frame = zstd::bulk::compress(&chunk, level).unwrap();
        if frame.len() < len {
            let got = decoded(Codec::Zstd, plain(), &chunk_of(&frame), len);
            prop_assert!(got == Some(chunk));
        }
    }

    #[test]
    fn ours_reads_those_of_ruzstd(kind in kinds(), len in 20..if cfg!(miri) { 1000_usize } else { 60_000 }, seed: u64) {
        let chunk = bytes(kind, len, seed);
        let frame = without_checksum(compress_to_vec(&chunk[..], CompressionLevel::Fastest));
        if frame.len() + 5 < len {
            let got = decoded(Codec::Zstd, plain(), &chunk_of(&frame), len);
            prop_assert!(got == Some(chunk));
        }
    }
}

/// ruzstd has no option for it.
fn without_checksum(mut frame: Vec<u8>) -> Vec<u8> {
    if frame[4] & 4 != 0 {
        frame[4] &= !4;
        frame.truncate(frame.len() - 4);
    }
    frame
}

#[test]
#[cfg_attr(miri, ignore = "takes long")]
fn frames_of_several_blocks() {
    for kind in KINDS {
        for len in [(128 << 10) - 1, 128 << 10, (128 << 10) + 1, 500_000] {
            let chunk = bytes(kind, len, 77);
            let frame = check(&chunk, &(kind, len));
            let shrinks = !matches!(kind, Kind::Uniform | Kind::Constant);
            assert_eq!(frame.is_some(), shrinks, "{kind:?}");
        }
    }
}

/// Of a length and a distribution for which the head of the frame and of the literals have another form each.
#[test]
fn all_heads() {
    let lens = [40, 100, 255, 256, 257, 1023, 1024, 1025, 16_383, 16_384, 65_791, 65_792];
    for len in lens.into_iter().filter(|&len| !cfg!(miri) || len < 300) {
        assert!(check(&bytes(Kind::Two, len, 4), &len).is_some(), "{len}");
        check(&bytes(Kind::Geometric, len, 4), &len);
    }
}

/// Real text has all kinds of sequences.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn texts_of_the_c_library() {
    let text = include_str!("../../SPEC.md").repeat(3).into_bytes();
    for level in [-5, -1, 1, 3, 5, 9, 13, 16, 19] {
        let frame = zstd::bulk::compress(&text, level).unwrap();
        let got = decoded(Codec::Zstd, plain(), &chunk_of(&frame), text.len());
        assert!(got.as_ref() == Some(&text), "level {level}");
    }
    // A stream does not say how long it is.
    let frame = zstd::stream::encode_all(&text[..], 3).unwrap();
    assert!(decoded(Codec::Zstd, plain(), &chunk_of(&frame), text.len()) == Some(text));
}

/// The encoder finds repetitions.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn repetitions() {
    let text = include_str!("../../SPEC.md").repeat(3).into_bytes();
    let fast = zstd::bulk::compress(&text, 1).unwrap().len();
    let ours = check(&text, &"text").unwrap().len();
    assert!(ours < fast * 5 / 4, "{ours} bytes, the C library {fast}");
    for kind in [Kind::Repeating, Kind::Two] {
        let chunk = bytes(kind, 300_000, 8);
        let fast = zstd::bulk::compress(&chunk, 1).unwrap().len();
        let ours = check(&chunk, &kind).unwrap().len();
        assert!(ours < fast * 5 / 4, "{kind:?}: {ours} bytes, the C library {fast}");
    }
}

/// Two frames behind each other, and frames that must be passed over, are one content to zstd; not here.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn only_one_frame() {
    let chunk = bytes(Kind::Geometric, 4000, 1);
    let half = zstd::bulk::compress(&chunk[..2000], 1).unwrap();
    let rest = zstd::bulk::compress(&chunk[2000..], 1).unwrap();
    let two = [half, rest].concat();
    assert_eq!(zstd::bulk::decompress(&two, 4000).unwrap(), chunk);
    assert_eq!(decoded(Codec::Zstd, plain(), &chunk_of(&two), 4000), None);
    let whole = zstd::bulk::compress(&chunk, 1).unwrap();
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9][..], &whole].concat();
    assert_eq!(zstd::bulk::decompress(&skippable, 4000).unwrap(), chunk);
    assert_eq!(decoded(Codec::Zstd, plain(), &chunk_of(&skippable), 4000), None);
    assert_eq!(decoded(Codec::Zstd, plain(), &chunk_of(&whole), 4000), Some(chunk));
}
