//! An encoder of frames with sequences, for bytes that repeat earlier ones: integers, texts, sparse tensors.
//!
//! It takes the first match that a table of hashes shows, as zstd's fastest levels do.

use super::entropy;
use super::frame::{Block, Head, MAX_WINDOW};
use super::huffman::{Counts, Lengths};
use super::literals::{self, MAX_BLOCK};
use super::sequences::{self, Sequence, distance_of};

const TABLE_BITS: u32 = 15;
/// The number of bytes that are hashed. It is also the length of the shortest match, except for repeated distances.
const HASHED: usize = 6;
const MIN_REPEATED: usize = 4;

/// An encoder of frames with sequences. It keeps its memory for the next frame: 128 KiB for the table, 128 KiB for
/// literals, and up to 400 KiB for sequences.
#[derive(Debug, Default)]
pub struct Encoder {
    /// For each hash, its last position plus 1. 0 stands for no position.
    table: Vec<u32>,
    literals: Vec<u8>,
    sequences: Vec<Sequence>,
    stream: Vec<u8>,
}

impl Encoder {
    /// Appends a frame for `plane`, which has less than 4 GiB.
    pub fn encode(&mut self, plane: &[u8], out: &mut Vec<u8>) {
        Head::write(plane.len(), plane.len().min(MAX_WINDOW as usize), out);
        self.table.clear();
        self.table.resize(1 << TABLE_BITS, 0);
        let mut recent = [1, 4, 8];
        let mut tree = None;
        let mut start = 0;
        while start < plane.len() {
            let end = plane.len().min(start + MAX_BLOCK);
            let last = end == plane.len();
            let block = &plane[start..end];
            let head = out.len();
            out.extend([0; 3]);
            let mut after = recent;
            self.find(plane, start, end, &mut after);
            let known = tree.clone();
            self.write_literals(&mut tree, out);
            sequences::encode(&self.sequences, out);
            let size = out.len() - head - 3;
            if size < block.len() {
                Block::write_head(last, Block::COMPRESSED, size, &mut out[head..]);
                recent = after;
            } else {
                out.truncate(head + 3);
                out.extend(block);
                Block::write_head(last, Block::RAW, block.len(), &mut out[head..]);
                tree = known;
            }
            start = end;
        }
    }

    /// Finds the sequences of the block from `start` to `end`.
    fn find(&mut self, plane: &[u8], start: usize, end: usize, recent: &mut [usize; 3]) {
        self.literals.clear();
        self.sequences.clear();
        let input = &plane[..end];
        // The bytes before it are in sequences already.
        let mut anchor = start;
        let mut at = start;
        while let Some(word) = word(input, at) {
            let place = &mut self.table[hash(word)];
            let candidate = (*place as usize).checked_sub(1);
            *place = at as u32 + 1;
            let repeated =
                (at + 1).checked_sub(recent[0]).map_or(0, |from| common(input, from, at + 1));
            let (mut from, mut len) = if repeated >= MIN_REPEATED {
                at += 1;
                (at - recent[0], repeated)
            } else {
                let candidate = candidate.filter(|from| at - from <= MAX_WINDOW as usize);
                let len = candidate.map_or(0, |from| common(input, from, at));
                if len < HASHED {
                    // The longer nothing is found, the fewer places are tried.
                    at += 1 + (at - anchor) / 128;
                    continue;
                }
                (candidate.unwrap_or_default(), len)
            };
            while from > 0 && at > anchor && input[from - 1] == input[at - 1] {
                (from, at, len) = (from - 1, at - 1, len + 1);
            }
            self.push(&input[anchor..at], at - from, len, recent);
            // Adds positions within the match to the table, for later matches.
            for inner in [at + 2, at + len / 2, at + len - 2] {
                if let Some(word) = self::word(input, inner) {
                    self.table[hash(word)] = inner as u32 + 1;
                }
            }
            at += len;
            anchor = at;
        }
        self.literals.extend(&input[anchor..]);
    }

    fn push(&mut self, literals: &[u8], distance: usize, len: usize, recent: &mut [usize; 3]) {
        self.literals.extend(literals);
        // RFC 8878, 3.1.1.5: without literals, no number stands for the last distance, and the numbers move by one.
        let shift = usize::from(literals.is_empty());
        let known = (1 + shift..=3).find(|&number| recent[number - 1] == distance);
        let value = match known {
            Some(number) => number - shift,
            None if shift == 1 && recent[0] == distance + 1 => 3,
            None => distance + 3,
        };
        // Never an error: no distance is 0.
        let _ = distance_of(value, literals.len(), recent);
        self.sequences.push(Sequence {
            literals: literals.len() as u32,
            offset: value as u32,
            matched: len as u32,
        });
    }

    /// Appends the literals of the block. `tree` is the Huffman tree that the reader has.
    fn write_literals(&mut self, tree: &mut Option<Lengths>, out: &mut Vec<u8>) {
        let literals = &self.literals;
        let mut counts: Counts = [0; 256];
        entropy::count(literals, &mut counts);
        let raw = literals.len() as u64;
        let known = tree.as_ref().and_then(|tree| tree.bits(&counts)).map(|bits| bits / 8);
        let mut new = None;
        if raw >= 64 {
            new = Lengths::new(&counts).map(|mut lengths| {
                let mut description = Vec::with_capacity(130);
                lengths.write(&mut description);
                let bytes = lengths.bits(&counts).unwrap_or(u64::MAX) / 8;
                (bytes + description.len() as u64, lengths, description)
            });
        }
        let with_new = new.as_ref().map(|new| new.0);
        // The four streams and the head take some bytes.
        let enough = raw.saturating_sub(16 + raw / 64);
        let best = [known, with_new].into_iter().flatten().min().filter(|&bytes| bytes < enough);
        if raw > 0 && counts.contains(&(raw as u32)) {
            literals::encode_plain(&literals[..1], literals.len(), true, out);
        } else if best.is_none() {
            literals::encode_plain(literals, literals.len(), false, out);
        } else if let (Some(lengths), true) = (tree.as_ref(), best == known) {
            literals::encode(literals, &lengths.codes(), &[], &mut self.stream, out);
        } else if let Some((_, lengths, description)) = new {
            literals::encode(literals, &lengths.codes(), &description, &mut self.stream, out);
            *tree = Some(lengths);
        }
    }
}

/// Whether matches can save something in a plane, judged by four small parts of it.
pub fn repeats(plane: &[u8]) -> bool {
    const PART: usize = 2 << 10;
    /// About the number of bits that a sequence takes.
    const SEQUENCE_BITS: u64 = 24;
    let parts = plane.chunks((plane.len() / 4).max(PART)).map(|part| &part[..part.len().min(PART)]);
    let mut counts = [0; 256];
    parts.clone().for_each(|part| entropy::count(part, &mut counts));
    let seen: u64 = parts.clone().map(|part| part.len() as u64).sum();
    // The number of bits that the literals take. A Huffman code has at least one bit for each.
    let bits = entropy::bits(&counts).max(seen);
    let mut table = [0_u16; 1 << 11];
    let mut saved = 0;
    for part in parts {
        table.fill(0);
        let mut at = 0;
        while let Some(word) = word(part, at) {
            let place = &mut table[hash(word) >> (TABLE_BITS - 11)];
            let before = usize::from(*place);
            *place = at as u16;
            let len = if before < at { common(part, before, at) } else { 0 };
            if len >= HASHED {
                saved += (len as u64 * bits / seen).saturating_sub(SEQUENCE_BITS);
                at += len;
            } else {
                at += 1;
            }
        }
    }
    saved > bits / 16
}

#[inline]
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// The hash of the first bytes of a word.
#[inline]
fn hash(word: u64) -> usize {
    let bytes = word << (64 - 8 * HASHED);
    (bytes.wrapping_mul(0x9e37_79b1_85eb_ca87) >> (64 - TABLE_BITS)) as usize
}

/// The number of equal bytes from `from` and from `at` on. `from` is less than `at`.
#[inline]
fn common(bytes: &[u8], from: usize, at: usize) -> usize {
    if from >= at {
        return 0;
    }
    let mut len = 0;
    while let (Some(a), Some(b)) = (word(bytes, from + len), word(bytes, at + len)) {
        if a != b {
            return len + (a ^ b).trailing_zeros() as usize / 8;
        }
        len += 8;
    }
    let rest = bytes.get(at + len..).unwrap_or_default().iter().zip(&bytes[from + len..]);
    len + rest.take_while(|(a, b)| a == b).count()
}
