//! Sequences (RFC 8878, 3.1.1.3.2): copies of earlier bytes, between literals.
//!
//! The encoder of this crate writes none for weights, which do not repeat. Frames of other writers have them, and those
//! of integers and texts.

use super::bits::{Backward, BitWriter};
use super::fse::{Coder, Distribution, MAX_SYMBOLS, Table};

/// The lengths that each code stands for: the smallest one, and the number of bits that are added to it.
type Codes<const N: usize> = [(u32, u8); N];

const LITERAL_LENGTHS: Codes<36> = {
    let bits = [1, 1, 1, 1, 2, 2, 3, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    codes(0, &bits)
};
const MATCH_LENGTHS: Codes<53> = {
    let bits = [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16];
    codes(3, &bits)
};

/// The first codes stand for one length each, the last ones for as many as `bits` say.
const fn codes<const N: usize>(least: u32, bits: &[u8]) -> Codes<N> {
    let mut codes = [(0, 0); N];
    let mut next = least;
    let mut at = 0;
    while at < N {
        let first = N - bits.len();
        let more = if at < first { 0 } else { bits[at - first] };
        codes[at] = (next, more);
        next += 1 << more;
        at += 1;
    }
    codes
}

/// RFC 8878, 3.1.1.3.2.2.1 to 3.1.1.3.2.2.3.
const LITERAL_LENGTH_COUNTS: Distribution = Distribution::predefined(
    6,
    &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ],
);
const MATCH_LENGTH_COUNTS: Distribution = Distribution::predefined(
    6,
    &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
);
const OFFSET_COUNTS: Distribution = Distribution::predefined(
    5,
    &[1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1],
);
/// Greater offsets would need a window of 2 GiB.
const MAX_OFFSET_CODE: u8 = 30;

const CUT: &str = "the sequences of a block are cut off";
const MANY: &str = "the sequences of a block give more bytes than there is room for";

/// The state that the sequences of a block take over from the block before.
#[derive(Debug)]
pub struct Sequences {
    literal_lengths: Option<Table>,
    offsets: Option<Table>,
    match_lengths: Option<Table>,
    /// The last three offsets.
    recent: [usize; 3],
}

impl Sequences {
    /// The state at the start of a frame.
    pub fn new() -> Sequences {
        Sequences { literal_lengths: None, offsets: None, match_lengths: None, recent: [1, 4, 8] }
    }

    /// Decodes the sequences of a block. `section` is the part of the block after the literals. `out` is the whole frame,
    /// of which `done` bytes are decoded already. Returns the number of bytes that are decoded afterwards.
    pub fn decode(
        &mut self,
        section: &[u8],
        mut literals: &[u8],
        out: &mut [u8],
        mut done: usize,
    ) -> Result<usize, &'static str> {
        let (count, rest) = match *section {
            [0, ref rest @ ..] => (0, rest),
            [a @ ..128, ref rest @ ..] => (usize::from(a), rest),
            [a @ ..=254, b, ref rest @ ..] => (usize::from(a & 127) << 8 | usize::from(b), rest),
            [_, a, b, ref rest @ ..] => (usize::from(u16::from_le_bytes([a, b])) + 0x7f00, rest),
            _ => return Err(CUT),
        };
        if count > 0 {
            let (&modes, mut rest) = rest.split_first().ok_or(CUT)?;
            if modes & 3 != 0 {
                return Err("the sequences of a block are coded in an unknown way");
            }
            let limits = |log, max| {
                move |rest: &mut &[u8], mode, default, table: &mut _| {
                    read_table(rest, mode, default, table, log, max)
                }
            };
            limits(9, 35)(
                &mut rest,
                modes >> 6,
                &LITERAL_LENGTH_COUNTS,
                &mut self.literal_lengths,
            )?;
            limits(8, MAX_OFFSET_CODE)(
                &mut rest,
                modes >> 4 & 3,
                &OFFSET_COUNTS,
                &mut self.offsets,
            )?;
            limits(9, 52)(
                &mut rest,
                modes >> 2 & 3,
                &MATCH_LENGTH_COUNTS,
                &mut self.match_lengths,
            )?;
            self.run(count, rest, &mut literals, out, &mut done)?;
        } else if !rest.is_empty() {
            return Err("a block has more bytes than its literals and sequences");
        }
        let to = out.get_mut(done..done + literals.len()).ok_or(MANY)?;
        to.copy_from_slice(literals);
        Ok(done + literals.len())
    }

    fn run(
        &mut self,
        count: usize,
        bytes: &[u8],
        literals: &mut &[u8],
        out: &mut [u8],
        done: &mut usize,
    ) -> Result<(), &'static str> {
        let (Some(lengths), Some(offsets), Some(matches)) =
            (&self.literal_lengths, &self.offsets, &self.match_lengths)
        else {
            return Err("a block uses the codes of an earlier block, but there are none");
        };
        let recent = &mut self.recent;
        let mut bits = Backward::new(bytes).ok_or(CUT)?;
        let mut start = |table: &Table| {
            let state = bits.read(table.log).ok_or(CUT)?;
            Ok::<_, &'static str>(table.states[state as usize % table.states.len()])
        };
        let (mut length, mut offset, mut matched) =
            (start(lengths)?, start(offsets)?, start(matches)?);
        for at in 0..count {
            // No symbol is greater than the largest code: `read_table` has checked them.
            let (match_base, match_bits) = MATCH_LENGTHS[usize::from(matched.symbol) % 53];
            let (length_base, length_bits) = LITERAL_LENGTHS[usize::from(length.symbol) % 36];
            let value = (1 << offset.symbol) + bits.read(offset.symbol.into()).ok_or(CUT)?;
            let match_len = match_base as usize + bits.read(match_bits.into()).ok_or(CUT)? as usize;
            let len = length_base as usize + bits.read(length_bits.into()).ok_or(CUT)? as usize;
            let distance = distance_of(value as usize, len, recent)?;

            let (now, later) = literals
                .split_at_checked(len)
                .ok_or("a sequence has more literals than the block")?;
            out.get_mut(*done..*done + len).ok_or(MANY)?.copy_from_slice(now);
            *literals = later;
            *done += len;
            copy(out, *done, distance, match_len)?;
            *done += match_len;

            if at + 1 < count {
                let mut next = |table: &Table, state: &mut super::fse::State| {
                    let more = bits.read(state.bits.into()).ok_or(CUT)? as usize;
                    *state = table.states[(usize::from(state.base) + more) % table.states.len()];
                    Ok::<_, &'static str>(())
                };
                next(lengths, &mut length)?;
                next(matches, &mut matched)?;
                next(offsets, &mut offset)?;
            }
        }
        if bits.left() > 0 {
            return Err("a block has more bytes than its literals and sequences");
        }
        Ok(())
    }

    /// Whether the first byte after the literals says that there are no sequences.
    pub fn none(section: &[u8]) -> bool {
        section == [0]
    }
}

/// The distance of a match (RFC 8878, 3.1.1.5). `recent` are the last three distances.
#[inline]
pub fn distance_of(
    value: usize,
    literals: usize,
    recent: &mut [usize; 3],
) -> Result<usize, &'static str> {
    let [a, b, c] = *recent;
    if value > 3 {
        *recent = [value - 3, a, b];
        return Ok(value - 3);
    }
    *recent = match value + usize::from(literals == 0) {
        1 => [a, b, c],
        2 => [b, a, c],
        3 => [c, a, b],
        _ => [a - 1, a, b],
    };
    if recent[0] == 0 { Err("a match has the distance 0") } else { Ok(recent[0]) }
}

fn read_table(
    rest: &mut &[u8],
    mode: u8,
    default: &Distribution,
    table: &mut Option<Table>,
    max_log: u32,
    max_symbol: u8,
) -> Result<(), &'static str> {
    match mode {
        0 => *table = Some(Table::new(default)),
        1 => {
            let (&symbol, after) = rest.split_first().ok_or(CUT)?;
            if symbol > max_symbol {
                return Err("a code of a sequence is greater than allowed");
            }
            *table = Some(Table::constant(symbol));
            *rest = after;
        }
        2 => {
            let (distribution, len) = Distribution::read(rest, max_log, max_symbol.into())?;
            *table = Some(Table::new(&distribution));
            *rest = &rest[len..];
        }
        // The block uses the table of the block before. `run` checks that there is one.
        _ => (),
    }
    Ok(())
}

/// Appends a match: `len` bytes from `distance` bytes before `done`.
#[inline]
fn copy(out: &mut [u8], done: usize, distance: usize, len: usize) -> Result<(), &'static str> {
    const STEP: usize = 16;
    let start = done.checked_sub(distance).ok_or("a match starts before the frame")?;
    let end = done + len;
    if end > out.len() {
        return Err(MANY);
    }
    if distance >= STEP && end + STEP <= out.len() {
        // Copies in whole steps. The bytes that they write after the match are overwritten later.
        let mut at = 0;
        while at < len {
            let mut step = [0; STEP];
            step.copy_from_slice(&out[start + at..][..STEP]);
            out[done + at..][..STEP].copy_from_slice(&step);
            at += STEP;
        }
    } else if distance >= len {
        out.copy_within(start..start + len, done);
    } else if distance == 1 {
        let byte = out[start];
        out[done..end].fill(byte);
    } else {
        // The match overlaps itself. Each step copies the bytes from `start` to `at`, so the steps double in length.
        let mut at = done;
        while at < end {
            let step = (at - start).min(end - at);
            out.copy_within(start..start + step, at);
            at += step;
        }
    }
    Ok(())
}

/// Literals, and a match that follows them.
#[derive(Debug, Clone, Copy)]
pub struct Sequence {
    /// The number of literals.
    pub literals: u32,
    /// 1 to 3 for a recent distance, or the distance plus 3.
    pub offset: u32,
    /// The length of the match: at least 3.
    pub matched: u32,
}

/// Returns the code of a length, the difference to the smallest length of this code, and the number of its bits.
#[inline]
fn code_of<const N: usize>(codes: &Codes<N>, direct: usize, length: u32) -> (u8, u32, u32) {
    // Each of the first codes stands for one length.
    let least = codes[0].0;
    let code = if (length - least) < direct as u32 {
        (length - least) as usize
    } else {
        codes.partition_point(|&(base, _)| base <= length) - 1
    };
    (code as u8, length - codes[code].0, codes[code].1.into())
}

/// A sequence as codes, with the bits that are added.
#[derive(Clone, Copy)]
struct Coded {
    literals: (u8, u32, u32),
    offset: (u8, u32, u32),
    matched: (u8, u32, u32),
}

impl Coded {
    fn new(sequence: &Sequence) -> Coded {
        let offset = sequence.offset.ilog2();
        Coded {
            literals: code_of(&LITERAL_LENGTHS, 16, sequence.literals),
            offset: (offset as u8, sequence.offset - (1 << offset), offset),
            matched: code_of(&MATCH_LENGTHS, 32, sequence.matched),
        }
    }
}

/// Appends the section of a block after the literals, with these sequences.
pub fn encode(sequences: &[Sequence], out: &mut Vec<u8>) {
    match sequences.len() {
        count @ 0..128 => out.push(count as u8),
        count @ 128..0x7f00 => out.extend([(count >> 8) as u8 | 128, count as u8]),
        // There is at most one sequence for three bytes of a block.
        count => {
            out.push(255);
            out.extend(((count - 0x7f00) as u16).to_le_bytes());
        }
    }
    let coded: Vec<Coded> = sequences.iter().map(Coded::new).collect();
    let Some((last, earlier)) = coded.split_last() else { return };
    let modes = out.len();
    out.push(0);
    let mut table = |shift, max_log, default, symbol: fn(&Coded) -> u8| {
        let (mode, coder) = write_table(coded.iter().map(symbol), max_log, default, out);
        out[modes] |= mode << shift;
        coder
    };
    let literals = table(6, 9, &LITERAL_LENGTH_COUNTS, |coded| coded.literals.0);
    let offsets = table(4, 8, &OFFSET_COUNTS, |coded| coded.offset.0);
    let matches = table(2, 9, &MATCH_LENGTH_COUNTS, |coded| coded.matched.0);

    // Sequences are written from the last to the first. In each of them, the part that is read last is written first.
    let mut bits = BitWriter::default();
    let push = |bits: &mut BitWriter, coded: &Coded| {
        bits.push(coded.literals.1, coded.literals.2);
        bits.push(coded.matched.1, coded.matched.2);
        bits.push(coded.offset.1, coded.offset.2);
    };
    let mut literal = literals.last(last.literals.0);
    let mut offset = offsets.last(last.offset.0);
    let mut matched = matches.last(last.matched.0);
    push(&mut bits, last);
    for coded in earlier.iter().rev() {
        offset = offsets.before(coded.offset.0, offset, &mut bits);
        matched = matches.before(coded.matched.0, matched, &mut bits);
        literal = literals.before(coded.literals.0, literal, &mut bits);
        push(&mut bits, coded);
    }
    matches.first(matched, &mut bits);
    offsets.first(offset, &mut bits);
    literals.first(literal, &mut bits);
    out.extend(bits.finish_backward());
}

/// Chooses the table for symbols, and appends its description. Also returns the mode.
fn write_table(
    symbols: impl Iterator<Item = u8>,
    max_log: u32,
    default: &Distribution,
    out: &mut Vec<u8>,
) -> (u8, Coder) {
    let mut counts = [0_u32; MAX_SYMBOLS];
    let mut total = 0_u32;
    for symbol in symbols {
        counts[usize::from(symbol)] += 1;
        total += 1;
    }
    let present = counts.iter().filter(|&&count| count > 0).count() as u32;
    if present == 1 {
        let symbol = counts.iter().position(|&count| count > 0).unwrap_or_default() as u8;
        out.push(symbol);
        return (1, Coder::new(&Table::constant(symbol)));
    }
    let has_default =
        counts.iter().zip(default.counts).all(|(&count, part)| count == 0 || part != 0);
    // The description takes some 20 bytes.
    if total < 40 && has_default {
        return (0, Coder::new(&Table::new(default)));
    }
    let log = total.ilog2().saturating_sub(1).max(present.ilog2() + 2).clamp(5, max_log);
    match Distribution::of_counts(&counts, log) {
        Some(distribution) => {
            distribution.write(out);
            (2, Coder::new(&Table::new(&distribution)))
        }
        // This cannot happen: there are at least two symbols, and fewer than states.
        None => (0, Coder::new(&Table::new(default))),
    }
}
