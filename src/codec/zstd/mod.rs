//! zstd frames (RFC 8878) whose length is known: an encoder for bytes that only gain from entropy coding, and a decoder
//! for all frames without dictionary and checksum.
//!
//! zstd's own encoder looks for repetitions. In the bytes of weights it finds a few short ones by chance, which cost
//! more than they save, and slow the decoder down. The encoder here writes literals only, in the same format. The
//! decoder is fastest for these.

// Bit fields are cast to the types that hold them, after a mask or a check.
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_possible_wrap)]
#![allow(clippy::similar_names, clippy::many_single_char_names)]

mod bits;
mod entropy;
mod frame;
mod fse;
mod huffman;
#[cfg(feature = "zstd")]
pub mod library;
mod literals;
mod matches;
mod sequences;

pub use frame::Problem;
use frame::{Block, Head};
use huffman::{Counts, Lengths};
use literals::{Literals, MAX_BLOCK, Tree};
use sequences::Sequences;

const BYTES_FOLLOW: &str = "bytes follow the last block";

/// Decodes frames. It keeps its memory for the next frame: some 26 KiB, and 128 KiB more after a frame with sequences.
#[derive(Debug)]
pub struct Decoder {
    tree: Box<Tree>,
    literals: Vec<u8>,
}

impl Decoder {
    /// The memory is allocated here.
    pub fn new() -> Decoder {
        Decoder { tree: Box::new(Tree::new()), literals: Vec::new() }
    }

    /// Decodes one frame, which fills `out` exactly.
    pub fn decode(&mut self, frame: &[u8], out: &mut [u8]) -> Result<(), Problem> {
        let head = Head::read(frame)?;
        if head.content.is_some_and(|content| content != out.len() as u64) {
            return Err((5, "the frame states another number of bytes than its plane has"));
        }
        self.tree.clear();
        let mut sequences = None;
        let mut rest = &frame[head.len..];
        let mut done = 0;
        loop {
            let here = |what| move |problem: &'static str| (what, problem);
            let at = frame.len() - rest.len();
            let (block, after) = Block::read(rest, head.max_block).map_err(here(at))?;
            let decoded = self.block(&block, head.max_block, out, done, &mut sequences);
            done = decoded.map_err(here(at + 3))?;
            rest = after;
            if block.last {
                break;
            }
        }
        if !rest.is_empty() {
            return Err((frame.len() - rest.len(), BYTES_FOLLOW));
        }
        if done < out.len() {
            return Err((frame.len(), "the frame gives fewer bytes than its plane has"));
        }
        Ok(())
    }

    /// Decodes a block to `out`, of which `done` bytes are decoded already. Returns the number of bytes that are
    /// decoded afterwards.
    fn block(
        &mut self,
        block: &Block,
        max: usize,
        out: &mut [u8],
        done: usize,
        sequences: &mut Option<Box<Sequences>>,
    ) -> Result<usize, &'static str> {
        const MANY: &str = "the frame gives more bytes than its plane has";
        match block.kind {
            Block::RAW | Block::RLE => {
                let to = out.get_mut(done..done + block.size).ok_or(MANY)?;
                match *block.bytes {
                    [byte] => to.fill(byte),
                    _ => to.copy_from_slice(block.bytes),
                }
                Ok(done + block.size)
            }
            _ => {
                let (literals, section) = Literals::parse(block.bytes, max)?;
                if Sequences::none(section) {
                    let to = out.get_mut(done..done + literals.len).ok_or(MANY)?;
                    literals.decode(&mut self.tree, to)?;
                    return Ok(done + literals.len);
                }
                self.literals.resize(MAX_BLOCK, 0);
                let buffer = &mut self.literals[..literals.len];
                literals.decode(&mut self.tree, buffer)?;
                let sequences = sequences.get_or_insert_with(|| Box::new(Sequences::new()));
                sequences.decode(section, buffer, out, done)
            }
        }
    }
}

#[cfg(feature = "zstd")]
impl Decoder {
    /// Decodes a frame with zstd's library if it has matches, for which the library is faster.
    ///
    /// The library accepts some frames that [`decode`](Self::decode) refuses: several frames in one, larger windows,
    /// streams of Huffman codes that end too early or too late. So heads and literals are checked before, and both
    /// accept the same frames. Neither compares matches with the window, nor the length of decoded blocks with that of
    /// blocks.
    pub fn decode_with(
        &mut self,
        library: &mut library::Decoder,
        frame: &[u8],
        out: &mut [u8],
    ) -> Result<(), Problem> {
        let mut only_literals = true;
        each_block(frame, |_, section| {
            only_literals &= Sequences::none(section);
            Ok(())
        })?;
        if only_literals {
            return self.decode(frame, out);
        }
        self.tree.clear();
        self.literals.resize(MAX_BLOCK, 0);
        let Decoder { tree, literals: buffer } = self;
        each_block(frame, |literals, _| literals.decode(tree, &mut buffer[..literals.len]))?;
        library.decode(frame, out)
    }
}

/// Reads the heads of a frame: there must be only one frame, and it must keep to the limits. Calls `each` with the
/// literals of each compressed block, and with the bytes after them.
#[cfg(feature = "zstd")]
fn each_block(
    frame: &[u8],
    mut each: impl FnMut(Literals<'_>, &[u8]) -> Result<(), &'static str>,
) -> Result<(), Problem> {
    let head = Head::read(frame)?;
    let mut rest = &frame[head.len..];
    loop {
        let at = frame.len() - rest.len();
        let (block, after) = Block::read(rest, head.max_block).map_err(|problem| (at, problem))?;
        if block.kind == Block::COMPRESSED {
            let parsed = Literals::parse(block.bytes, head.max_block);
            parsed
                .and_then(|(literals, section)| each(literals, section))
                .map_err(|problem| (at + 3, problem))?;
        }
        rest = after;
        if block.last {
            break;
        }
    }
    if rest.is_empty() { Ok(()) } else { Err((frame.len() - rest.len(), BYTES_FOLLOW)) }
}

/// Encodes frames. It keeps its memory for the next frame: 1 KiB for each 128 KiB of input, 45 KiB, and 700 KiB more
/// after planes that repeat themselves.
#[derive(Debug)]
pub struct Encoder {
    counts: Vec<Counts>,
    stream: Vec<u8>,
    matches: matches::Encoder,
    #[cfg(feature = "zstd")]
    library: Option<library::Encoder>,
}

/// A Huffman code that can be sent.
struct Code {
    lengths: Lengths,
    codes: [u32; 256],
    description: Vec<u8>,
}

impl Code {
    fn new(counts: &Counts) -> Option<Code> {
        let mut lengths = Lengths::new(counts)?;
        let mut description = Vec::with_capacity(130);
        lengths.write(&mut description);
        Some(Code { codes: lengths.codes(), lengths, description })
    }
}

impl Encoder {
    /// Makes an encoder. For level 0, it is written in Rust alone. For other levels, it leaves matches to zstd's
    /// library. `None` if this build does not have the library.
    pub fn new(level: i32) -> Option<Encoder> {
        if level != 0 && cfg!(not(feature = "zstd")) {
            return None;
        }
        Some(Encoder {
            counts: Vec::new(),
            stream: Vec::new(),
            matches: matches::Encoder::default(),
            #[cfg(feature = "zstd")]
            library: (level != 0).then(|| library::Encoder::new(level)),
        })
    }

    /// Appends a frame for `plane` to `out`, and returns true, if the frame is shorter than the plane by at least 1/32.
    /// Otherwise leaves `out` as it is, and returns false.
    pub fn encode(&mut self, plane: &[u8], out: &mut Vec<u8>) -> bool {
        let most = most(plane.len()) as u64;
        let repeats = matches::repeats(plane);
        if !repeats && looks_random(plane) {
            return false;
        }
        let blocks = plane.chunks(MAX_BLOCK);
        self.counts.clear();
        self.counts.resize(blocks.len(), [0; 256]);
        let mut bits = 0;
        let mut all = [0_u32; 256];
        for (block, counts) in blocks.zip(&mut self.counts) {
            entropy::count(block, counts);
            // A Huffman code has at least one bit for each byte, if there are different bytes.
            let least = entropy::bits(counts);
            bits += if least == 0 { 0 } else { least.max(block.len() as u64) };
            for (all, count) in all.iter_mut().zip(&*counts) {
                *all += count;
            }
        }
        let start = out.len();
        if repeats {
            self.with_matches(plane, out);
            let len = (out.len() - start) as u64;
            // Literals are decoded faster. Matches must save 1/16.
            if len > 0 && len <= most && len + len / 16 < bits / 8 {
                return true;
            }
            out.truncate(start);
        }
        if bits / 8 > most {
            return false;
        }
        Head::write(plane.len(), 0, out);
        self.write_blocks(plane, &all, out);
        let shrinks = (out.len() - start) as u64 <= most;
        if !shrinks {
            out.truncate(start);
        }
        shrinks
    }

    /// Appends a frame with matches, or nothing if there is not enough memory.
    fn with_matches(&mut self, plane: &[u8], out: &mut Vec<u8>) {
        #[cfg(feature = "zstd")]
        if let Some(library) = &mut self.library {
            return library.encode(plane, out);
        }
        self.matches.encode(plane, out);
    }

    fn write_blocks(&mut self, plane: &[u8], all: &Counts, out: &mut Vec<u8>) {
        // The code for the whole plane. Most blocks need no other.
        let common = Code::new(all);
        let mut own: Option<Code> = None;
        // The code that the reader has.
        let mut sent = Sent::Nothing;
        let count = self.counts.len();
        for (at, (block, counts)) in plane.chunks(MAX_BLOCK).zip(&self.counts).enumerate() {
            let last = at + 1 == count;
            let head = out.len();
            out.extend([0; 3]);
            if counts[usize::from(block[0])] as usize == block.len() {
                out.push(block[0]);
                Block::write_head(last, Block::RLE, block.len(), &mut out[head..]);
                continue;
            }
            let cost = |code: &Option<Code>, known: bool| {
                let code = code.as_ref()?;
                let description = if known { 0 } else { code.description.len() as u64 };
                Some(code.lengths.bits(counts)?.div_ceil(8) + description)
            };
            let with_common = cost(&common, sent == Sent::Common).unwrap_or(u64::MAX);
            let with_own = cost(&own, sent == Sent::Own).unwrap_or(u64::MAX);
            let mut best = with_common.min(with_own);
            let mut code = if with_common <= with_own { Sent::Common } else { Sent::Own };
            // A code for this block alone is tried if the best code is longer than the ideal one by more than 1/64 and
            // the length of a description.
            let ideal = entropy::bits(counts) / 8;
            if best > ideal + ideal / 64 + 64 {
                let new = Code::new(counts);
                let with_new = cost(&new, false).unwrap_or(u64::MAX);
                if with_new < best {
                    (own, best, code) = (new, with_new, Sent::New);
                }
            }
            let chosen = match code {
                Sent::Common => &common,
                _ => &own,
            };
            // The heads of a compressed block take at most 18 bytes.
            match chosen {
                Some(chosen) if best + 18 < block.len() as u64 => {
                    let known = code == sent;
                    let description = if known { &[][..] } else { &chosen.description };
                    literals::encode(block, &chosen.codes, description, &mut self.stream, out);
                    // No sequences.
                    out.push(0);
                    let size = out.len() - head - 3;
                    Block::write_head(last, Block::COMPRESSED, size, &mut out[head..]);
                    sent = if code == Sent::Common { code } else { Sent::Own };
                }
                _ => {
                    out.extend(block);
                    Block::write_head(last, Block::RAW, block.len(), &mut out[head..]);
                    if code == Sent::New {
                        // The reader does not have the code that was made for this block.
                        own = None;
                    }
                    if sent == Sent::Own && own.is_none() {
                        sent = Sent::Nothing;
                    }
                }
            }
        }
    }
}

/// The code that the reader has, or that is chosen for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Nothing,
    Common,
    Own,
    New,
}

/// Whether a plane will hardly shrink, judged by a sixteenth of it. This saves the time to look at all of it.
fn looks_random(plane: &[u8]) -> bool {
    const PART: usize = 1 << 10;
    if plane.len() < 32 * PART {
        return false;
    }
    // The sample has at least 16 KiB. In a smaller one, random bytes would look less than random.
    let step = (plane.len() / 16).min(16 * PART);
    let mut counts = [0; 256];
    let mut seen = 0;
    for part in plane.chunks(step) {
        let part = &part[..part.len().min(PART)];
        entropy::count(part, &mut counts);
        seen += part.len() as u64;
    }
    // A plane must shrink by 1/32, that is 1/4 bit for each byte.
    entropy::bits(&counts) > seen * 8 - seen * 3 / 16
}

/// The most bytes that a plane may take in compressed form.
pub fn most(plane: usize) -> usize {
    plane - plane.div_ceil(32)
}
