//! Damaged and invented chunks: an error or some bytes, never a panic.

use proptest::prelude::*;
use tenarc::codec::{Codec, CodecError, Decoder, Layout, Problem};

use crate::data::{KINDS, Kind, bytes, cases, chunk_of, layouts, plain, stored};

fn error(layout: Layout, stored: &[u8], len: usize) -> CodecError {
    let mut out = vec![0; len];
    Decoder::new().decode(Codec::Zstd, layout, stored, &mut out).unwrap_err()
}

/// Each truncation and each flipped bit of small chunks.
#[test]
fn small_chunks() {
    let mut decoder = Decoder::new();
    let kinds = if cfg!(miri) { &KINDS[2..4] } else { &KINDS[..] };
    for &kind in kinds {
        for width in if cfg!(miri) { vec![2] } else { vec![1, 2] } {
            let layout = Layout::new(width, true).unwrap();
            let chunk = bytes(kind, if cfg!(miri) { 120 } else { 700 }, 11);
            for codec in Codec::ALL {
                let stored = stored(codec, layout, &chunk);
                if stored.len() == chunk.len() {
                    continue;
                }
                let mut out = vec![0; chunk.len()];
                for len in 0..stored.len() {
                    let result = decoder.decode(codec, layout, &stored[..len], &mut out);
                    assert!(result.is_err(), "{kind:?} {width} {codec:?} {len}");
                }
                let mut longer = stored.clone();
                longer.push(0);
                assert!(
                    decoder.decode(codec, layout, &longer, &mut out).is_err()
                        || longer.len() == out.len()
                );
                for bit in 0..stored.len() * 8 {
                    let mut damaged = stored.clone();
                    damaged[bit / 8] ^= 1 << (bit % 8);
                    let _ = decoder.decode(codec, layout, &damaged, &mut out);
                }
                // The decoder still works.
                decoder.decode(codec, layout, &stored, &mut out).unwrap();
                assert_eq!(out, chunk);
            }
        }
    }
}

/// Frames with sequences, of the C library.
#[test]
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn frames_with_sequences() {
    let mut decoder = Decoder::new();
    let text = &include_bytes!("../../SPEC.md")[..3000];
    for level in [1, 19] {
        let frame = zstd::bulk::compress(text, level).unwrap();
        let mut out = vec![0; text.len()];
        for bit in 0..frame.len() * 8 {
            let mut damaged = frame.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let _ = decoder.decode(Codec::Zstd, plain(), &chunk_of(&damaged), &mut out);
        }
        for len in 0..frame.len() {
            let result = decoder.decode(Codec::Zstd, plain(), &chunk_of(&frame[..len]), &mut out);
            assert!(result.is_err());
        }
        decoder.decode(Codec::Zstd, plain(), &chunk_of(&frame), &mut out).unwrap();
        assert_eq!(out, text);
    }
}

proptest! {
    #![proptest_config(cases(if cfg!(miri) { 20 } else { 2000 }))]

    #[test]
    fn any_bytes(layout in layouts(), stored in prop::collection::vec(any::<u8>(), 0..300), len in 0..2000_usize) {
        let mut out = vec![0; len];
        for codec in Codec::ALL {
            let _ = Decoder::new().decode(codec, layout, &stored, &mut out);
        }
    }

    /// The head of a frame and of a block in front, so that what is invented is what follows.
    #[test]
    fn any_blocks(block in prop::collection::vec(any::<u8>(), 1..300), len in 600..2000_usize, kind in 0..4_u32, first in any::<u8>()) {
        let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
        let head = 1 | kind << 1 | (block.len() as u32) << 3;
        frame.extend(&head.to_le_bytes()[..3]);
        frame.extend(&block);
        frame[9] = first;
        let mut out = vec![0; len];
        let _ = Decoder::new().decode(Codec::Zstd, plain(), &chunk_of(&frame), &mut out);
    }
}

#[test]
fn errors_say_what_was_found() {
    let two = Layout::new(2, false).unwrap();
    let cases: [(&[u8], usize, &str); 7] = [
        (&[0; 9], 100, "the stored chunk has 9 bytes, but its plane table alone needs 10"),
        (&[0; 101], 100, "a chunk of 100 bytes is stored in 101 bytes, expected at most 100"),
        (
            &[0, 50, 0, 0, 0, 3, 1, 0, 0, 0, 0],
            100,
            "plane 1 is stored by method 3, expected 0, 1 or 2 (at byte 5 of the stored chunk)",
        ),
        (
            &[0, 49, 0, 0, 0, 1, 1, 0, 0, 0, 0],
            100,
            "plane 0 is stored by method 0 in 49 bytes, expected 50 (at byte 1 of the stored chunk)",
        ),
        (
            &[1, 1, 0, 0, 0, 1, 2, 0, 0, 0, 0],
            100,
            "plane 1 is stored by method 1 in 2 bytes, expected 1 (at byte 6 of the stored chunk)",
        ),
        (
            &[1, 1, 0, 0, 0, 2, 50, 0, 0, 0, 0],
            100,
            "plane 1 is stored by method 2 in 50 bytes, expected less than the 50 bytes of the plane (at byte 6 of the stored chunk)",
        ),
        (
            &[1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 7, 7, 7],
            100,
            "the stored chunk has 13 bytes, but its plane table gives 12",
        ),
    ];
    for (stored, len, expected) in cases {
        assert_eq!(error(two, stored, len).to_string(), expected);
    }
    let lengths = [[2, 0xff, 0xff, 0xff, 0xff]; 16].concat();
    assert!(matches!(
        error(Layout::new(16, false).unwrap(), &lengths, 1600).problem,
        Problem::PlaneLength { .. }
    ));
    let frame = |frame: &[u8]| error(plain(), &chunk_of(frame), 1000).to_string();
    assert_eq!(
        frame(b"nothing"),
        "plane 0 cannot be decompressed: this is not a zstd frame (at byte 5 of the stored chunk)"
    );
    let wide = frame(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0xff, 0, 0, 0]);
    assert!(wide.contains("a window of more than 8 MiB (at byte 10"), "{wide}");
    let checksum = frame(&[0x28, 0xb5, 0x2f, 0xfd, 4, 0x38, 0, 0, 0]);
    assert!(checksum.contains("has a checksum"), "{checksum}");
    let few = frame(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x38, 1, 0, 0]);
    assert!(few.contains("fewer bytes than its plane has (at byte 14"), "{few}");
    let tree = frame(&[0x28, 0xb5, 0x2f, 0xfd, 0, 0x38, 0x25, 0, 0, 0x43, 0x01, 0, 0]);
    assert!(tree.contains("the Huffman tree of an earlier block, but there is none"), "{tree}");
    // A frame of another length, which says so.
    let chunk = bytes(Kind::Two, 900, 1);
    let stored = stored(Codec::Zstd, plain(), &chunk);
    let other = error(plain(), &stored, 1000).to_string();
    assert!(other.contains("another number of bytes than its plane has"), "{other}");
}
