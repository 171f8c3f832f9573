//! Other libraries read the frames, and theirs are read.

use std::io::Read as _;

use proptest::prelude::*;
use ruzstd::decoding::FrameDecoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tenarc::codec::Codec;
#[cfg(feature = "zstd")]
use tenarc::codec::Encoder;

use crate::data::{
    KINDS, Kind, bytes, cases, chunk_of, counters, decoded, frame_of, kinds, plain, rows,
    similar_rows, stored,
};
use crate::heads::{self, REPEAT, TREE, TREELESS};

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
        // As a stream, for which the window counts: at most 8 MiB.
        let mut out = Vec::new();
        let mut stream = zstd::stream::read::Decoder::new(frame).unwrap();
        stream.window_log_max(23).unwrap();
        stream.read_to_end(&mut out).unwrap();
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
        let stored = chunk_of(&zstd::bulk::compress(&chunk, level).unwrap());
        // One that is not shorter is stored as it is.
        if stored.len() < len {
            prop_assert!(decoded(Codec::Zstd, plain(), &stored, len) == Some(chunk));
        }
    }

    #[test]
    fn ours_reads_those_of_ruzstd(kind in kinds(), len in 20..if cfg!(miri) { 1000_usize } else { 60_000 }, seed: u64) {
        let chunk = bytes(kind, len, seed);
        let frame = without_checksum(compress_to_vec(&chunk[..], CompressionLevel::Fastest));
        let stored = chunk_of(&frame);
        if stored.len() < len {
            prop_assert!(decoded(Codec::Zstd, plain(), &stored, len) == Some(chunk));
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

/// The first code is sent again when it comes back, because the reader has another one then.
#[test]
#[cfg_attr(miri, ignore = "takes long")]
fn codes_that_return() {
    let chunk = bytes(Kind::Returning, 5 << 17, 5);
    let frame = check(&chunk, &Kind::Returning).unwrap();
    let literals: Vec<_> = heads::blocks(&frame).iter().map(|block| block.literals).collect();
    assert_eq!(literals, [Some(TREE), Some(TREE), Some(TREE), None, Some(TREE)]);
    assert_eq!(decoded(Codec::Zstd, plain(), &chunk_of(&frame), chunk.len()), Some(chunk));
}

/// A frame has a code for most blocks, and others for single blocks. A code is sent if the reader does not have it.
#[test]
#[cfg_attr(miri, ignore = "takes long")]
fn codes_that_take_turns() {
    // A: one byte in half of the places. B: 16 values. N: random bytes, which are stored as they are. There are so many A
    // that the code for all blocks suits them.
    let order = format!("AAAANAABBABAAN{}", "A".repeat(30));
    let mut chunk = Vec::new();
    for (at, kind) in order.chars().enumerate() {
        let mut block =
            bytes(if kind == 'A' { Kind::Half } else { Kind::Uniform }, 128 << 10, at as u64);
        if kind == 'B' {
            for byte in &mut block {
                *byte %= 16;
            }
        }
        chunk.extend(block);
    }
    let frame = check(&chunk, &"turns").unwrap();
    let literals = heads::blocks(&frame).into_iter().map(|block| match block.literals {
        Some(TREE) => '+',
        Some(TREELESS) => '=',
        None => '-',
        _ => '?',
    });
    assert_eq!(literals.collect::<String>(), format!("+===-==+=+++=-{}", "=".repeat(30)));
    assert_eq!(decoded(Codec::Zstd, plain(), &chunk_of(&frame), chunk.len()), Some(chunk));
}

/// The code of the second block saves hardly more than its description takes. The block is stored as it is, and the reader
/// never gets the code. The third block could use that code, so it must not be left without a description.
#[test]
#[cfg_attr(miri, ignore = "takes long")]
fn codes_that_were_not_sent() {
    let first = bytes(Kind::Uniform, 128 << 10, 1).into_iter().map(|byte| byte % 16);
    // Four values are less frequent than most, and two are more frequent.
    let others = bytes(Kind::Uniform, 256 << 10, 2).into_iter().enumerate();
    let others = others.map(|(at, byte)| match byte {
        1 | 2 if at % 29 < 9 => 0,
        37 | 201 if at % 29 < 9 => 100,
        _ => byte,
    });
    let chunk: Vec<u8> = first.chain(others).collect();
    let frame = check(&chunk, &"not sent").unwrap();
    let literals: Vec<_> = heads::blocks(&frame).iter().map(|block| block.literals).collect();
    assert_eq!(literals, [Some(TREE), None, Some(TREE)]);
    assert_eq!(decoded(Codec::Zstd, plain(), &chunk_of(&frame), chunk.len()), Some(chunk));
}

/// More than the largest window: matches of 8 MiB are allowed, and no longer ones.
#[test]
#[cfg_attr(miri, ignore = "takes long")]
fn a_plane_of_9_mib() {
    const WINDOW: usize = 8 << 20;
    let random = bytes(Kind::Uniform, 10 << 10, 6);
    let repeated = bytes(Kind::Repeating, 10 << 10, 6).into_iter().cycle();
    for (distance, is_found) in [(WINDOW - 1, true), (WINDOW, true), (WINDOW + 1, false)] {
        let mut plane = random.clone();
        plane.extend(repeated.clone().take(distance - random.len()));
        plane.extend(&random);
        plane.extend(repeated.clone().take((9 << 20) - plane.len()));
        let frame = check(&plane, &distance).unwrap();
        // The size of the content has four bytes, and a window of 8 MiB follows.
        assert_eq!(frame[4..6], [0x80, 13 << 3]);
        // The random bytes are in the frame once, or twice if the match was too far away.
        let times = if is_found { 1 } else { 2 };
        let range = times * random.len()..(times + 1) * random.len();
        assert!(range.contains(&frame.len()), "{distance}: {} bytes", frame.len());
        assert!(decoded(Codec::Zstd, plain(), &chunk_of(&frame), plane.len()) == Some(plane));
    }
}

/// Levels above 19 have larger windows than 8 MiB.
#[test]
#[cfg(feature = "zstd")]
#[cfg_attr(miri, ignore = "runs C")]
fn a_plane_of_9_mib_with_a_level() {
    let plane: Vec<u8> =
        bytes(Kind::Repeating, 10 << 10, 6).into_iter().cycle().take(9 << 20).collect();
    for level in [3, 20] {
        let mut stored = Vec::new();
        assert!(Encoder::new(Codec::Zstd, plain(), level).unwrap().encode(&plane, &mut stored));
        assert_eq!(frame_of(&stored, plane.len()).unwrap()[5], 13 << 3);
        assert!(decoded(Codec::Zstd, plain(), &stored, plane.len()).as_ref() == Some(&plane));
    }
}

/// Several blocks, which take over trees, tables and distances from the blocks before.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn long_frames_of_the_c_library() {
    let mut treeless = [0; 4];
    // Literal lengths, offsets and match lengths.
    let mut repeated = [0; 3];
    for len in [300_000, 600_000] {
        for (what, chunk) in
            [("rows", rows(len)), ("similar rows", similar_rows(len)), ("counters", counters(len))]
        {
            for (level, treeless) in [1, 3, 9, 19].into_iter().zip(&mut treeless) {
                let frame = zstd::bulk::compress(&chunk, level).unwrap();
                for block in heads::blocks(&frame) {
                    *treeless += usize::from(block.literals == Some(TREELESS));
                    for (count, mode) in repeated.iter_mut().zip(block.modes.unwrap_or_default()) {
                        *count += usize::from(mode == REPEAT);
                    }
                }
                let got = decoded(Codec::Zstd, plain(), &chunk_of(&frame), len);
                assert!(got.as_ref() == Some(&chunk), "{what}, {len} bytes, level {level}");
            }
        }
    }
    // Otherwise the frames do not test what they are for.
    assert!(treeless.iter().all(|&count| count > 0), "{treeless:?}");
    assert!(repeated.iter().all(|&count| count > 0), "{repeated:?}");
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
