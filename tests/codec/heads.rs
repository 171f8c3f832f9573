//! The heads in a frame (RFC 8878, 3.1.1), for tests that ask which parts of the format a frame uses. The frames are
//! good ones: bad heads panic.

/// A type of block.
pub const COMPRESSED: u8 = 2;
/// Literals behind a Huffman tree.
pub const TREE: u8 = 2;
/// Literals that use the Huffman tree of an earlier block.
pub const TREELESS: u8 = 3;
/// Sequences that use a table of an earlier block.
pub const REPEAT: u8 = 3;

/// A block of a frame.
#[derive(Debug)]
pub struct Block {
    /// How literals are stored, if the block is compressed.
    pub literals: Option<u8>,
    /// The modes of literal lengths, offsets and match lengths, if there are sequences.
    pub modes: Option<[u8; 3]>,
}

/// The blocks of a frame.
pub fn blocks(frame: &[u8]) -> Vec<Block> {
    let descriptor = frame[4];
    let single = descriptor >> 5 & 1;
    let content = match descriptor >> 6 {
        0 => usize::from(single),
        log => 1 << log,
    };
    let mut rest = &frame[5 + usize::from(1 - single) + content..];
    let mut blocks = Vec::new();
    loop {
        let head = number(&rest[..3]);
        let (kind, size) = ((head >> 1 & 3) as u8, (head >> 3) as usize);
        let (bytes, after) = rest[3..].split_at(if kind == 1 { 1 } else { size });
        let mut block = Block { literals: None, modes: None };
        if kind == COMPRESSED {
            let literals = bytes[0] & 3;
            block.literals = Some(literals);
            block.modes = modes(&bytes[literals_len(bytes)..]);
        }
        blocks.push(block);
        rest = after;
        if head & 1 == 1 {
            assert!(rest.is_empty());
            return blocks;
        }
    }
}

/// The bytes of the literals at the start of a block, with their head.
fn literals_len(block: &[u8]) -> usize {
    let format = block[0] >> 2 & 3;
    if block[0] & 2 == 0 {
        let (head, shift) = match format {
            0 | 2 => (1, 3),
            1 => (2, 4),
            _ => (3, 4),
        };
        let len = (number(&block[..head]) >> shift) as usize;
        head + if block[0] & 1 == 1 { 1 } else { len }
    } else {
        let (head, bits) = match format {
            0 | 1 => (3, 10),
            2 => (4, 14),
            _ => (5, 18),
        };
        head + (number(&block[..head]) >> (4 + bits)) as usize
    }
}

fn modes(section: &[u8]) -> Option<[u8; 3]> {
    let modes = match section[0] {
        0 => return None,
        1..128 => section[1],
        128..255 => section[2],
        255 => section[3],
    };
    Some([modes >> 6, modes >> 4 & 3, modes >> 2 & 3])
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}
