//! Decompresses arbitrary bytes, as a whole chunk, as a frame and as a block of a frame; and compresses them. Frames are
//! also decompressed by ruzstd: what both accept must be the same, and ruzstd must accept what this crate writes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ruzstd::decoding::FrameDecoder;
use tenarc::codec::{Codec, Decoder, Encoder, Layout};

fn chunk_of(frame: &[u8]) -> Vec<u8> {
    let mut chunk = vec![2];
    chunk.extend((frame.len() as u32).to_le_bytes());
    chunk.extend(frame);
    chunk
}

/// Decompresses a frame, which may be damaged, to `len` bytes.
fn decode(frame: &[u8], len: usize) {
    let plain = Layout::new(1, false).unwrap();
    let chunk = chunk_of(frame);
    let mut ours = vec![0; len];
    // A chunk of the full length would be one that is stored as it is.
    if chunk.len() >= len || Decoder::new().decode(Codec::Zstd, plain, &chunk, &mut ours).is_err() {
        return;
    }
    let mut theirs = vec![0; len];
    // What is right by the specification is checked by tests against zstd's library; ruzstd refuses some frames.
    if let Ok(count) = FrameDecoder::new().decode_all(frame, &mut theirs) {
        assert_eq!(count, len);
        assert!(ours == theirs, "ruzstd decodes other bytes");
    }
}

fn round_trip(layout: Layout, codec: Codec, bytes: &[u8]) {
    let mut stored = Vec::new();
    let mut encoder = Encoder::new(codec, layout, 0).unwrap();
    if !encoder.encode(bytes, &mut stored) {
        assert!(stored.is_empty());
        return;
    }
    assert!(stored.len() < bytes.len());
    let mut out = vec![0; bytes.len()];
    Decoder::new().decode(codec, layout, &stored, &mut out).expect("a chunk that was just written");
    assert!(out == bytes, "a round trip gives other bytes");
    out.fill(0);
    if codec == Codec::Zstd && layout.width() == 1 && stored[0] == 2 {
        let count = FrameDecoder::new().decode_all(&stored[5..], &mut out).expect("ruzstd");
        assert!(count == bytes.len() && out == bytes, "ruzstd decodes other bytes");
    }
}

/// Several blocks of 128 KiB, each made of one of four pieces of the input. `seed` says which, and whether the bytes of a
/// block are the piece again and again, or bytes of the piece in random order. For the latter, the encoder chooses among
/// Huffman codes.
fn blocks(pieces: &[u8], seed: u32) -> Vec<u8> {
    const BLOCK: usize = 128 << 10;
    let pieces: Vec<&[u8]> = pieces.chunks(pieces.len().div_ceil(4).max(1)).collect();
    let mut out = Vec::new();
    let mut random = seed | 1;
    for at in 0..2 + seed as usize % 5 {
        // Three bits: the number of the piece, and the order.
        let of_block = seed >> (3 * at + 3);
        let Some(piece) = pieces.get(of_block as usize % 4) else { continue };
        if of_block & 4 == 0 {
            for _ in 0..BLOCK {
                random = random.wrapping_mul(0x915f_77f5).wrapping_add(0x6b2e_4a35);
                out.push(piece[(random >> 16) as usize % piece.len()]);
            }
        } else {
            out.extend(piece.iter().cycle().take(BLOCK));
        }
    }
    // The last block may be shorter.
    out.truncate(out.len().saturating_sub(seed as usize >> 24));
    out
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&[choice, a, b], rest)) = bytes.split_first_chunk() else { return };
    let width = 1 << (choice % 5);
    let layout = Layout::new(width, choice & 0x20 != 0).unwrap();
    let codec = if choice & 0x40 == 0 { Codec::Zstd } else { Codec::Lz4 };
    let len = usize::from(u16::from_le_bytes([a, b]));
    let _ = Decoder::new().decode(codec, layout, rest, &mut vec![0; len]);
    decode(rest, len);
    // As the only block of a frame with a window of 128 KiB.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x38];
    let head = 1 | 2 << 1 | (rest.len().min(0x1_ffff) as u32) << 3;
    frame.extend(&head.to_le_bytes()[..3]);
    frame.extend(rest);
    decode(&frame, len);
    round_trip(layout, codec, rest);
    // Longer input, with repetitions, whose blocks have Huffman codes.
    let len = (rest.len() * (1 + usize::from(a) % 16)).min(20_000);
    let long: Vec<u8> = rest.iter().cycle().take(len).copied().collect();
    round_trip(layout, codec, &long);
    // Seldom, because it takes long.
    if choice & 0x80 != 0 && b % 16 == 0 {
        let Some((seed, pieces)) = rest.split_first_chunk() else { return };
        round_trip(layout, codec, &blocks(pieces, u32::from_le_bytes(*seed)));
    }
});
