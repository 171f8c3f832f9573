//! Frames must keep to the limits that their heads set (RFC 8878, 3.1.1.1.2 and 3.1.1.2.4). The frames here are built
//! by hand, once within a limit and once beyond it.

use tenarc::codec::{Codec, Decoder};

use crate::data::{Kind, bytes, chunk_of, decoded, plain};
use crate::heads::COMPRESSED;

const RAW: u8 = 0;
const RLE: u8 = 1;
/// The smallest window.
const WINDOW: usize = 1 << 10;

/// A type, the size in the head, and the stored bytes.
type Block<'a> = (u8, usize, &'a [u8]);

/// Without a length, and with a window of 1 KiB.
fn frame(blocks: &[Block]) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0];
    for (at, &(kind, size, bytes)) in blocks.iter().enumerate() {
        let last = u32::from(at + 1 == blocks.len());
        let head = last | u32::from(kind) << 1 | (size as u32) << 3;
        frame.extend(&head.to_le_bytes()[..3]);
        frame.extend(bytes);
    }
    frame
}

/// A block without literals that is one match. `len` is from 515 to 1026, the lengths of code 45.
fn matched(distance: usize, len: usize) -> Vec<u8> {
    let value = distance as u32 + 3;
    let code = value.ilog2();
    // From what is read first to what is read last: the mark, the bits of the distance, nine of the length.
    let bits = u64::from(value) << 9 | (len - 515) as u64;
    // No literals; one sequence, and a constant code for each of its three fields.
    let mut block = vec![0, 1, 0x54, 0, code as u8, 45];
    block.extend(&bits.to_le_bytes()[..=(code as usize + 9) / 8]);
    block
}

/// That a frame is accepted, and what it gives.
fn accept(frame: &[u8], content: &[u8]) {
    assert!(decoded(Codec::Zstd, plain(), &chunk_of(frame), content.len()).unwrap() == content);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    assert!(zstd::stream::decode_all(frame).unwrap() == content);
}

/// Why a frame is refused.
fn why(frame: &[u8], len: usize) -> String {
    let mut out = vec![0; len];
    let error = Decoder::new().decode(Codec::Zstd, plain(), &chunk_of(frame), &mut out);
    error.unwrap_err().to_string()
}

/// That a frame is refused, also by the C library.
fn refuse(frame: &[u8], len: usize, expected: &str) {
    let why = why(frame, len);
    assert!(why.contains(expected), "{why}");
    // As a stream: of a whole frame in memory, the library checks less.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    assert!(zstd::stream::decode_all(frame).is_err());
}

/// The last blocks of each frame: they make its content longer than the frame, as that of a stored plane is.
const FILL: [Block<'static>; 2] = [(RLE, WINDOW, &[7]); 2];

#[test]
fn blocks_as_large_as_the_window() {
    const LARGE: &str = "a block is larger than 128 KiB or than the window";
    let noise = bytes(Kind::Uniform, 4 * WINDOW, 1);
    for len in [WINDOW, WINDOW + 1, 4 * WINDOW] {
        let [a, b] = FILL;
        let raw = frame(&[(RAW, len, &noise[..len]), a, b]);
        let content = [&noise[..len], &[7; 2 * WINDOW]].concat();
        let same = frame(&[(RLE, len, &[9])]);
        if len == WINDOW {
            accept(&raw, &content);
            accept(&same, &[9; WINDOW]);
        } else {
            refuse(&raw, content.len(), LARGE);
            refuse(&same, len, LARGE);
        }
    }
}

/// What the bytes of matches have to do with the window is not looked at: a decoder of a whole frame needs no window, and the C
/// library does not look either. Every build must accept the same frames.
#[test]
fn decoded_bytes_beyond_the_window() {
    let comes = |frame: &[u8], content: &[u8]| {
        assert!(decoded(Codec::Zstd, plain(), &chunk_of(frame), content.len()).unwrap() == content);
    };
    let noise = bytes(Kind::Uniform, WINDOW, 2);
    let [a, b] = FILL;
    for more in [0, 1] {
        let len = WINDOW + more;
        // One literal that is repeated, with a length of 12 bits, and no sequences.
        let literals = [5 | (len as u8) << 4, (len >> 4) as u8, 9, 0];
        let repeated = frame(&[(COMPRESSED, literals.len(), &literals)]);
        match more {
            0 => accept(&repeated, &vec![9; len]),
            _ => refuse(&repeated, len, "a block has more literals than allowed"),
        }
        let long = matched(1, len);
        comes(&frame(&[a, (COMPRESSED, long.len(), &long), b]), &vec![7; 2 * WINDOW + len]);

        let far = matched(len, 515);
        let frame = frame(&[(RAW, WINDOW, &noise), a, (COMPRESSED, far.len(), &far), b, b, b]);
        // The first bytes of the block of sevens, or the last one of the noise and these.
        let mut content = [&noise[..], &[7; 2 * WINDOW]].concat();
        if more > 0 {
            content[2 * WINDOW] = noise[WINDOW - 1];
        }
        content.truncate(2 * WINDOW + 515);
        content.extend([7; 3 * WINDOW]);
        comes(&frame, &content);
    }
}

/// Six literals at least, though fewer can be divided by four.
#[test]
fn four_streams() {
    for literals in [3, 4, 5, 6, 7, 8] {
        // The bytes 0 and 1 have one bit each. A stream of zeros has only the mark of its end.
        let part = usize::div_ceil(literals, 4);
        let parts = [part, part, part, literals.saturating_sub(3 * part)];
        let streams = parts.map(|part| 1_u8 << part);
        let stored = [&[0x80, 0x10, 1, 0, 1, 0, 1, 0][..], &streams].concat();
        let head = 2 | 1 << 2 | (literals as u32) << 4 | (stored.len() as u32) << 14;
        let block = [&head.to_le_bytes()[..3], &stored, &[0]].concat();
        let [a, b] = FILL;
        let frame = frame(&[(COMPRESSED, block.len(), &block), a, b]);
        let content = [&vec![0; literals][..], &[7; 2 * WINDOW]].concat();
        if literals < 6 {
            refuse(&frame, content.len(), "too few literals for four streams");
        } else {
            accept(&frame, &content);
        }
    }
}
