//! The literals of a block (RFC 8878, 3.1.1.3.1): bytes that are compressed by a Huffman code alone.
//!
//! Four streams are decoded side by side. Each look-up takes the next 11 bits and gives all symbols whose codes lie
//! within them, six at most: those of a float's exponents have 2 to 3 bits. After five look-ups, 55 bits are used at
//! most, and the 64 bits of a stream's window are filled up. If most codes are long, a look-up gives one symbol, with
//! fewer instructions.

use super::bits::Backward;
use super::huffman::{Lengths, MAX_BITS};

/// The largest number of bytes that a block decodes to.
pub const MAX_BLOCK: usize = 128 << 10;

const ENTRIES: usize = 1 << MAX_BITS;
/// The number of look-ups for which the bits of a window suffice.
const LOOKUPS: usize = 5;
/// The largest number of symbols of one look-up.
const SYMBOLS: usize = 6;
/// The number of bytes that a round of look-ups may write: its symbols, and the further bytes of the last write.
const ROUND: usize = LOOKUPS * SYMBOLS + 10;

/// The table of the last Huffman tree, which following blocks can use.
#[derive(Debug)]
pub struct Tree {
    /// For each value of the next 11 bits, the length of the first code in the lowest 8 bits, and its symbol in the
    /// upper 8 bits.
    ///
    /// In both tables the lowest byte is the number of bits, because the next look-up waits for it. A shift takes its
    /// distance from the lowest byte, so no instruction is needed to move it there.
    one: [u16; ENTRIES],
    /// For each value of the next 11 bits, from the lowest byte on: the number of bits of all complete codes, six
    /// symbols, and the number of symbols.
    many: [u64; ENTRIES],
    has_tree: bool,
    has_many: bool,
}

impl Tree {
    /// Nothing can be decoded before a tree has been read.
    pub fn new() -> Tree {
        Tree { one: [0; ENTRIES], many: [0; ENTRIES], has_tree: false, has_many: false }
    }

    /// Forgets the tree of another frame.
    pub fn clear(&mut self) {
        self.has_tree = false;
    }

    fn set(&mut self, lengths: &Lengths) {
        self.one = lengths.table();
        self.has_tree = true;
        self.has_many = false;
    }

    /// Fills the table of several symbols. This takes as long as decoding some 20 KB.
    fn find_many(&mut self) {
        for (start, entry) in self.many.iter_mut().enumerate() {
            let mut bits = 0;
            let mut count = 0;
            let mut symbols = 0;
            while count < SYMBOLS {
                let next = self.one[(start << bits) % ENTRIES];
                let length = u32::from(next & 0xff);
                if bits + length > MAX_BITS {
                    break;
                }
                symbols |= u64::from(next >> 8) << (8 * count);
                bits += length;
                count += 1;
            }
            *entry = u64::from(bits) | symbols << 8 | (count as u64) << 56;
        }
        self.has_many = true;
    }
}

/// How literals are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Raw,
    Rle,
    /// Huffman codes, with a tree in front or that of an earlier block.
    Compressed {
        tree: bool,
        streams: usize,
    },
}

/// The literals of a block as they are stored.
#[derive(Debug, Clone, Copy)]
pub struct Literals<'a> {
    kind: Kind,
    /// The number of bytes that they decode to, at most [`MAX_BLOCK`].
    pub len: usize,
    payload: &'a [u8],
}

impl<'a> Literals<'a> {
    /// Reads the head of the literals at the start of a block, of which there may be `max`. Also returns the bytes after
    /// the literals.
    pub fn parse(block: &'a [u8], max: usize) -> Result<(Literals<'a>, &'a [u8]), &'static str> {
        const CUT: &str = "the literals of a block are cut off";
        let &first = block.first().ok_or(CUT)?;
        let mut head = [0; 8];
        let known = block.len().min(5);
        head[..known].copy_from_slice(&block[..known]);
        let head = u64::from_le_bytes(head);
        let format = first >> 2 & 3;
        let (kind, head_len, len, stored) = if first & 2 == 0 {
            let (head_len, len) = match format {
                0 | 2 => (1, head >> 3 & 0x1f),
                1 => (2, head >> 4 & 0xfff),
                _ => (3, head >> 4 & 0xf_ffff),
            };
            if first & 1 == 0 {
                (Kind::Raw, head_len, len, len)
            } else {
                (Kind::Rle, head_len, len, 1)
            }
        } else {
            let (head_len, bits) = match format {
                0 | 1 => (3, 10),
                2 => (4, 14),
                _ => (5, 18),
            };
            let streams = if format == 0 { 1 } else { 4 };
            let mask = (1 << bits) - 1;
            let kind = Kind::Compressed { tree: first & 1 == 0, streams };
            (kind, head_len, head >> 4 & mask, head >> (4 + bits) & mask)
        };
        if len > max as u64 {
            return Err("a block has more literals than allowed");
        }
        let rest = block.get(head_len..).ok_or(CUT)?;
        let (payload, rest) = rest.split_at_checked(stored as usize).ok_or(CUT)?;
        Ok((Literals { kind, len: len as usize, payload }, rest))
    }

    /// Decodes the literals. `out` has `self.len` bytes.
    pub fn decode(&self, tree: &mut Tree, out: &mut [u8]) -> Result<(), &'static str> {
        match self.kind {
            Kind::Raw if out.len() == self.payload.len() => out.copy_from_slice(self.payload),
            Kind::Rle => out.fill(*self.payload.first().unwrap_or(&0)),
            Kind::Raw => return Err("the literals of a block have another length"),
            Kind::Compressed { tree: with_tree, streams } => {
                let mut payload = self.payload;
                if with_tree {
                    let (lengths, len) = Lengths::read(payload)?;
                    tree.set(&lengths);
                    payload = &payload[len..];
                }
                if !tree.has_tree {
                    return Err(
                        "a block uses the Huffman tree of an earlier block, but there is none",
                    );
                }
                // Measured: with less than 5 bits for each symbol, the larger table pays.
                let short = payload.len() * 8 < out.len() * 5;
                // The table must pay for this block alone, or hostile frames of tiny blocks would be slow.
                if short && !tree.has_many && out.len() >= 16 << 10 {
                    tree.find_many();
                }
                let many = short && tree.has_many;
                if streams == 1 {
                    Stream::new(payload, out)?.finish(tree, many)?;
                } else {
                    decode_4(tree, many, payload, out)?;
                }
            }
        }
        Ok(())
    }
}

fn decode_4(tree: &Tree, many: bool, payload: &[u8], out: &mut [u8]) -> Result<(), &'static str> {
    const CUT: &str = "the Huffman codes of a block are cut off";
    const FEW: &str = "a block has too few literals for four streams";
    // zstd's library refuses fewer than 6, even if each stream but the last has one.
    if out.len() < 6 {
        return Err(FEW);
    }
    let (jumps, rest) = payload.split_first_chunk::<6>().ok_or(CUT)?;
    let [a, b, c, d, e, f] = *jumps;
    let (first, rest) = rest.split_at_checked(u16::from_le_bytes([a, b]).into()).ok_or(CUT)?;
    let (second, rest) = rest.split_at_checked(u16::from_le_bytes([c, d]).into()).ok_or(CUT)?;
    let (third, fourth) = rest.split_at_checked(u16::from_le_bytes([e, f]).into()).ok_or(CUT)?;
    let part = out.len().div_ceil(4);
    let (out_1, out) = out.split_at_mut_checked(part).ok_or(FEW)?;
    let (out_2, out) = out.split_at_mut_checked(part).ok_or(FEW)?;
    let (out_3, out_4) = out.split_at_mut_checked(part).ok_or(FEW)?;
    let mut streams = [
        Stream::new(first, out_1)?,
        Stream::new(second, out_2)?,
        Stream::new(third, out_3)?,
        Stream::new(fourth, out_4)?,
    ];
    rounds(tree, many, &mut streams);
    streams.iter_mut().try_for_each(|stream| stream.finish(tree, many))
}

/// One stream of Huffman codes. It is read from its end on.
struct Stream<'a, 'o> {
    bytes: &'a [u8],
    /// The number of bits that were not read.
    left: usize,
    out: &'o mut [u8],
    /// The number of bytes of `out` that were decoded.
    done: usize,
}

impl<'a, 'o> Stream<'a, 'o> {
    fn new(bytes: &'a [u8], out: &'o mut [u8]) -> Result<Stream<'a, 'o>, &'static str> {
        let bits = Backward::new(bytes).ok_or("a stream of Huffman codes has no end mark")?;
        Ok(Stream { bytes, left: bits.left(), out, done: 0 })
    }

    /// Decodes the rest, and checks that it ends where the stream ends.
    fn finish(&mut self, tree: &Tree, many: bool) -> Result<(), &'static str> {
        const SHORT: &str = "a stream of Huffman codes is too short";
        rounds(tree, many, std::array::from_mut(self));
        let mut bits = Backward::with_left(self.bytes, self.left);
        for byte in &mut self.out[self.done..] {
            let entry = tree.one[bits.peek(MAX_BITS) as usize % ENTRIES];
            bits.skip((entry & 0xff).into()).ok_or(SHORT)?;
            *byte = (entry >> 8) as u8;
        }
        if bits.left() > 0 {
            return Err("a stream of Huffman codes is too long");
        }
        Ok(())
    }
}

/// The position in a stream while it is decoded in rounds.
#[derive(Clone, Copy, Default)]
struct Window {
    /// The offset of the window in the stream.
    start: usize,
    /// The next bits, from the highest on. The lowest 1 bit was bit 0 when the window was filled, and the zeros below
    /// it are the bits that have been used since.
    bits: u64,
}

impl Window {
    #[inline]
    fn fill(bytes: &[u8], start: usize, used: u32) -> Option<Window> {
        let word = bytes.get(start..)?.first_chunk()?;
        Some(Window { start, bits: (u64::from_le_bytes(*word) | 1) << used })
    }
}

/// Decodes what can be decoded without looking for the ends of the streams.
fn rounds<const N: usize>(tree: &Tree, many: bool, streams: &mut [Stream; N]) {
    if many {
        let table = &tree.many;
        in_rounds::<N, ROUND>(streams, |bits, out| {
            let mut at = 0;
            for _ in 0..LOOKUPS {
                let entry = table[(*bits >> (64 - MAX_BITS)) as usize];
                // At most 4 * 6 here: the mask only shows the compiler that this is within the array.
                out[at & 31..][..8].copy_from_slice(&(entry >> 8).to_le_bytes());
                *bits <<= entry & 63;
                at += (entry >> 56) as usize;
            }
            at
        });
    } else {
        let table = &tree.one;
        in_rounds::<N, LOOKUPS>(streams, |bits, out| {
            for out in out {
                let entry = table[(*bits >> (64 - MAX_BITS)) as usize];
                *out = (entry >> 8) as u8;
                *bits <<= entry & 63;
            }
            LOOKUPS
        });
    }
}

/// Calls `round` as long as the streams and their outputs have room for it. A round may write `ROUND` bytes, takes at
/// most 55 bits, and returns the number of bytes that it has decoded.
// Always: 4 % of loading compressed weights.
#[inline(always)]
fn in_rounds<const N: usize, const ROUND: usize>(
    streams: &mut [Stream; N],
    round: impl Fn(&mut u64, &mut [u8; ROUND]) -> usize,
) {
    let mut windows = [Window::default(); N];
    for (window, stream) in windows.iter_mut().zip(&*streams) {
        let end = stream.left.div_ceil(8);
        let Some(start) = end.checked_sub(8) else { return };
        let used = (end * 8 - stream.left) as u32;
        let Some(filled) = Window::fill(stream.bytes, start, used) else { return };
        *window = filled;
    }
    'all: loop {
        // A round takes at most 7 bytes of a stream.
        let each = windows.iter().zip(&*streams).map(|(window, stream)| {
            let out = stream.out.len() - stream.done;
            (window.start / 7).min(out / ROUND)
        });
        let count = each.min().unwrap_or_default();
        if count == 0 {
            break;
        }
        for _ in 0..count {
            for (window, stream) in windows.iter_mut().zip(&mut *streams) {
                let out = stream.out.get_mut(stream.done..);
                let Some(out) = out.and_then(|out| out.first_chunk_mut::<ROUND>()) else {
                    break 'all;
                };
                let mut bits = window.bits;
                stream.done += round(&mut bits, out);
                let used = bits.trailing_zeros();
                let start = window.start.wrapping_sub(used as usize / 8);
                let Some(filled) = Window::fill(stream.bytes, start, used % 8) else {
                    // This cannot happen, because the number of rounds was chosen accordingly.
                    break 'all;
                };
                *window = filled;
            }
        }
    }
    for (window, stream) in windows.iter().zip(streams) {
        stream.left = (window.start + 8) * 8 - window.bits.trailing_zeros() as usize;
    }
}

/// Appends the literals of a block, compressed with a Huffman code. `tree` is the description of the code. It is empty
/// if the block before had the same code.
///
/// `scratch` is memory for one stream. There is at least one literal, and at most [`MAX_BLOCK`].
pub fn encode(
    literals: &[u8],
    codes: &[u32; 256],
    tree: &[u8],
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let (format, head_len, bits) = match literals.len() {
        0..256 => (0, 3, 10),
        256..1024 => (1, 3, 10),
        1024..0x4000 => (2, 4, 14),
        _ => (3, 5, 18),
    };
    let start = out.len();
    out.extend([0; 5][..head_len].iter());
    out.extend(tree);
    if format == 0 {
        let len = encode_stream(literals, codes, scratch);
        out.extend(&scratch[..len]);
    } else {
        let jumps = out.len();
        out.extend([0; 6]);
        for (at, part) in literals.chunks(literals.len().div_ceil(4)).enumerate() {
            let len = encode_stream(part, codes, scratch);
            out.extend(&scratch[..len]);
            if at < 3 {
                // At most 11 bits for each of 32 Ki literals, and the mark.
                out[jumps + 2 * at..][..2].copy_from_slice(&(len as u16).to_le_bytes());
            }
        }
    }
    let stored = (out.len() - start - head_len) as u64;
    let kind = if tree.is_empty() { 3 } else { 2 };
    let head = kind | format << 2 | (literals.len() as u64) << 4 | stored << (4 + bits);
    out[start..start + head_len].copy_from_slice(&head.to_le_bytes()[..head_len]);
}

/// Appends literals as they are, or one literal that is repeated `len` times.
pub fn encode_plain(literals: &[u8], len: usize, repeated: bool, out: &mut Vec<u8>) {
    let kind = u32::from(repeated);
    let (head, head_len) = match len as u32 {
        len @ 0..32 => (kind | len << 3, 1),
        len @ 32..4096 => (kind | 1 << 2 | len << 4, 2),
        len => (kind | 3 << 2 | len << 4, 3),
    };
    out.extend(&head.to_le_bytes()[..head_len]);
    out.extend(literals);
}

/// Writes one stream to the start of `out`, from the last literal to the first. Returns its length.
fn encode_stream(literals: &[u8], codes: &[u32; 256], out: &mut Vec<u8>) -> usize {
    /// Literals whose codes fit behind the 7 bits that can be pending.
    const STEP: usize = 5;
    let most = literals.len() * MAX_BITS as usize / 8 + 16;
    if out.len() < most {
        out.resize(most, 0);
    }
    let out = &mut out[..most];
    let mut pending = 0_u64;
    let mut count = 0;
    let mut at = 0;
    let (rest, steps) = literals.as_rchunks::<STEP>();
    let mut push = |literals: &[u8]| {
        for &literal in literals.iter().rev() {
            let code = codes[usize::from(literal)];
            pending |= u64::from(code >> 8) << (count & 63);
            count += code & 0xff;
        }
        if let Some(to) = out.get_mut(at..).and_then(|out| out.first_chunk_mut()) {
            *to = pending.to_le_bytes();
        }
        at += count as usize / 8;
        pending >>= count & 0x38;
        count &= 7;
    };
    for step in steps.iter().rev() {
        push(step);
    }
    push(rest);
    // The mark of the end.
    pending |= 1 << count;
    if let Some(to) = out.get_mut(at) {
        *to = pending as u8;
    }
    at + 1
}
