//! Huffman trees (RFC 8878, 4.2): the lengths of their codes, and how they are stored.

use super::bits::{Backward, BitWriter};
use super::fse::{Distribution, Table};

/// The longest code that zstd allows.
pub const MAX_BITS: u32 = 11;

/// How often each byte occurs.
pub type Counts = [u32; 256];

/// The number of bits of each byte's code: 0 if it does not occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lengths(pub [u8; 256]);

impl Lengths {
    /// The lengths that give the fewest bits, with at most [`MAX_BITS`] for each code. `None` if there are fewer
    /// than two different bytes.
    ///
    /// This is the algorithm of Larmore and Hirschberg: each symbol has a coin of each value 1/2, 1/4, ... 1/2^11, at
    /// the price of its count. The cheapest coins of value n - 1 in total are found by joining coins to pairs of the
    /// next larger value. The number of coins that a symbol gives is the length of its code.
    pub fn new(counts: &Counts) -> Option<Lengths> {
        let mut symbols: Vec<(u32, u8)> =
            (0..=255).map(|byte| (counts[usize::from(byte)], byte)).collect();
        symbols.retain(|&(count, _)| count > 0);
        if symbols.len() < 2 {
            return None;
        }
        symbols.sort_unstable();
        // For each level, from the smallest coins on: whether each of its items is a pair. `prices` has the prices of
        // the items of the last level.
        let mut levels: Vec<Vec<bool>> = Vec::with_capacity(MAX_BITS as usize);
        let mut prices: Vec<u64> = Vec::new();
        for _ in 0..MAX_BITS {
            let pairs = prices.as_chunks::<2>().0.iter().map(|[a, b]| a + b);
            let mut pairs = pairs.peekable();
            let mut coins = symbols.iter().map(|&(count, _)| u64::from(count)).peekable();
            let mut merged = Vec::with_capacity(2 * symbols.len());
            let mut is_pair = Vec::with_capacity(2 * symbols.len());
            loop {
                let pair = match (coins.peek(), pairs.peek()) {
                    (None, None) => break,
                    (Some(coin), Some(pair)) => pair < coin,
                    (coin, _) => coin.is_none(),
                };
                is_pair.push(pair);
                merged.extend(if pair { pairs.next() } else { coins.next() });
            }
            prices = merged;
            levels.push(is_pair);
        }
        // The first 2n - 2 items of the last level are taken, with what their pairs consist of.
        let mut lengths = [0; 256];
        let mut taken = 2 * symbols.len() - 2;
        for level in levels.iter().rev() {
            let pairs = level[..taken].iter().filter(|&&pair| pair).count();
            for &(_, symbol) in &symbols[..taken - pairs] {
                lengths[usize::from(symbol)] += 1;
            }
            taken = 2 * pairs;
        }
        Some(Lengths(lengths))
    }

    /// The length of the longest code.
    pub fn max(&self) -> u32 {
        self.0.iter().copied().max().unwrap_or_default().into()
    }

    /// The number of bits that bytes with these counts take. `None` if one of them has no code.
    pub fn bits(&self, counts: &Counts) -> Option<u64> {
        let mut bits = 0;
        let mut missing = 0;
        for (&length, &count) in self.0.iter().zip(counts) {
            bits += u64::from(length) * u64::from(count);
            missing |= if length == 0 { count } else { 0 };
        }
        (missing == 0).then_some(bits)
    }

    /// The first place of each symbol's codes in a table with an entry for each possible value of the next
    /// `self.max()` bits: the longest codes come first, and codes of one length by symbol.
    fn places(&self) -> impl Iterator<Item = (usize, u8, u8)> + '_ {
        let max = self.max();
        let by_length = (1..=max as u8).rev().flat_map(move |length| {
            let symbols = (0..=255_u8).zip(self.0);
            symbols.filter(move |&(_, of)| of == length)
        });
        by_length.scan(0, move |next, (symbol, length)| {
            let place = *next;
            *next += 1 << (max - u32::from(length));
            Some((place, symbol, length))
        })
    }

    /// The codes for an encoder. Each entry has the length of the code in its lowest 8 bits, and the code above them.
    pub fn codes(&self) -> [u32; 256] {
        let mut codes = [0; 256];
        let max = self.max();
        for (place, symbol, length) in self.places() {
            let code = (place >> (max - u32::from(length))) as u32;
            codes[usize::from(symbol)] = code << 8 | u32::from(length);
        }
        codes
    }

    /// A decoder's table for the next [`MAX_BITS`] bits. Each entry has the length of the code, and the symbol in its
    /// upper 8 bits.
    pub fn table(&self) -> [u16; 1 << MAX_BITS] {
        let mut table = [0; 1 << MAX_BITS];
        let max = self.max();
        for (place, symbol, length) in self.places() {
            let entry = u16::from(symbol) << 8 | u16::from(length);
            let start = place << (MAX_BITS - max);
            let end = start + (1 << (MAX_BITS - u32::from(length)));
            if let Some(entries) = table.get_mut(start..end) {
                entries.fill(entry);
            }
        }
        table
    }

    /// Reads the description of a tree (RFC 8878, 4.2.1) from the start of `bytes`. Also returns its length.
    pub fn read(bytes: &[u8]) -> Result<(Lengths, usize), &'static str> {
        const CUT: &str = "the description of a Huffman tree is cut off";
        let (&head, rest) = bytes.split_first().ok_or(CUT)?;
        let mut weights = [0; 256];
        let (count, len) = if head >= 128 {
            let count = usize::from(head) - 127;
            let len = count.div_ceil(2);
            let pairs = rest.get(..len).ok_or(CUT)?;
            for (pair, weights) in pairs.iter().zip(weights.as_chunks_mut::<2>().0) {
                *weights = [pair >> 4, pair & 15];
            }
            // The unused half of the last byte.
            weights[count] = 0;
            (count, len)
        } else {
            let len = usize::from(head);
            (read_weights(rest.get(..len).ok_or(CUT)?, &mut weights)?, len)
        };
        let mut sum = 0_u32;
        for &weight in &weights[..count] {
            if u32::from(weight) > MAX_BITS {
                return Err("a Huffman code is longer than allowed");
            }
            sum += 1 << weight >> 1;
        }
        // The last weight is not stored. It makes the sum a power of two.
        let max = sum.checked_ilog2().ok_or("a Huffman tree has no codes")? + 1;
        let rest = (1 << max) - sum;
        if max > MAX_BITS || !rest.is_power_of_two() {
            return Err("the codes of a Huffman tree do not add up");
        }
        weights[count] = rest.ilog2() as u8 + 1;
        // At least two codes have the full length.
        if weights.iter().filter(|&&weight| weight == 1).nth(1).is_none() {
            return Err("the codes of a Huffman tree do not add up");
        }
        let length = |weight| if weight == 0 { 0 } else { max as u8 + 1 - weight };
        Ok((Lengths(weights.map(length)), len + 1))
    }

    /// Appends the description of this tree.
    ///
    /// The lengths must come from [`Lengths::new`]: only such trees are complete, so that readers can compute the last
    /// weight. zstd has no description for a few of these trees. In this case, a tree of nearly the same lengths is
    /// stored, and `self` changes to it.
    pub fn write(&mut self, out: &mut Vec<u8>) {
        let start = out.len();
        if self.try_write(out) {
            return;
        }
        // There are more than 128 weights, of equal value, before the last. Three of these codes are replaced by a
        // shorter one and two longer ones.
        out.truncate(start);
        let length = self.0[0];
        self.0[0] = length - 1;
        self.0[1] = length + 1;
        self.0[2] = length + 1;
        let written = self.try_write(out);
        debug_assert!(written, "no description of the lengths {:?}", self.0);
    }

    fn try_write(&self, out: &mut Vec<u8>) -> bool {
        let max = self.max() as u8;
        let weights = self.0.map(|length| if length == 0 { 0 } else { max + 1 - length });
        let count = weights.iter().rposition(|&weight| weight > 0).unwrap_or_default();
        let weights = &weights[..count];
        let direct = 1 + count.div_ceil(2);
        let start = out.len();
        out.push(0);
        if write_weights(weights, out) {
            let len = out.len() - start - 1;
            if len < 128 && (count > 128 || len + 1 < direct) {
                out[start] = len as u8;
                return true;
            }
        }
        out.truncate(start);
        if count > 128 {
            return false;
        }
        out.push(count as u8 + 127);
        out.extend(weights.chunks(2).map(|pair| pair[0] << 4 | pair.get(1).unwrap_or(&0)));
        true
    }
}

/// Reads weights that are compressed with FSE, by two states in turn.
fn read_weights(bytes: &[u8], weights: &mut [u8; 256]) -> Result<usize, &'static str> {
    const CUT: &str = "the weights of a Huffman tree are cut off";
    let (distribution, len) = Distribution::read(bytes, 6, 12)?;
    let table = Table::new(&distribution);
    let mut bits = Backward::new(&bytes[len..]).ok_or(CUT)?;
    let mut read = || bits.read(table.log).map(|state| table.states[state as usize]).ok_or(CUT);
    let mut states = [read()?, read()?];
    let mut count = 0;
    // The last weight is not stored, so there are at most 255.
    let mut push = |weight| {
        *weights
            .get_mut(count)
            .filter(|_| count < 255)
            .ok_or("a Huffman tree has too many weights")? = weight;
        count += 1;
        Ok(count)
    };
    loop {
        push(states[0].symbol)?;
        let Some(more) = bits.read(states[0].bits.into()) else {
            return push(states[1].symbol);
        };
        let next = table.states[usize::from(states[0].base) + more as usize];
        states = [states[1], next];
    }
}

/// Appends weights, compressed with FSE. Returns false if FSE cannot represent them.
fn write_weights(weights: &[u8], out: &mut Vec<u8>) -> bool {
    let mut counts = [0; MAX_BITS as usize + 1];
    for &weight in weights {
        counts[usize::from(weight)] += 1;
    }
    let Some(distribution) = Distribution::of_counts(&counts, 6) else { return false };
    // A reader notices the end of the weights because too few bits are left for the next state. So there must be two
    // symbols, and the last states must need bits. `of_counts` gives no symbol all states.
    let [first @ .., a, b] = weights else { return false };
    let table = Table::new(&distribution);
    let states = &table.states[..1 << table.log];
    // `last` finds the state of a symbol that needs the most bits, and `before` the one from which bits lead to the
    // state `next`.
    let last = |symbol| {
        let of = states.iter().enumerate().filter(|(_, state)| state.symbol == symbol);
        of.max_by_key(|(_, state)| state.bits)
    };
    let before = |symbol, next: usize| {
        states.iter().enumerate().find(|(_, state)| {
            let base = usize::from(state.base);
            state.symbol == symbol && (base..base + (1 << state.bits)).contains(&next)
        })
    };
    let (Some((a, _)), Some((b, _))) = (last(*a), last(*b)) else { return false };
    let mut bits = BitWriter::default();
    // The states of the next two symbols.
    let mut next = [a, b];
    for &symbol in first.iter().rev() {
        let Some((at, state)) = before(symbol, next[1]) else { return false };
        bits.push((next[1] - usize::from(state.base)) as u32, state.bits.into());
        next = [at, next[0]];
    }
    bits.push(next[1] as u32, table.log);
    bits.push(next[0] as u32, table.log);
    distribution.write(out);
    out.extend(bits.finish_backward());
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(list: &[(usize, u32)]) -> Counts {
        let mut counts = [0; 256];
        for &(symbol, count) in list {
            counts[symbol] = count;
        }
        counts
    }

    /// Writes the description, and returns what a reader makes of it.
    fn described(lengths: &mut Lengths) -> (Lengths, usize) {
        let mut out = b"x".to_vec();
        lengths.write(&mut out);
        out.extend(b"more");
        let (read, len) = Lengths::read(&out[1..]).unwrap();
        assert_eq!(len, out.len() - 5);
        (read, len)
    }

    /// Checks that the codes fill the tree.
    fn assert_complete(lengths: &Lengths) {
        let sum: u32 = lengths.0.iter().map(|&of| if of == 0 { 0 } else { 1 << (11 - of) }).sum();
        assert_eq!(sum, 1 << 11, "{lengths:?}");
    }

    #[test]
    fn known_lengths() {
        assert_eq!(Lengths::new(&counts(&[])), None);
        assert_eq!(Lengths::new(&counts(&[(7, 1000)])), None);
        let lengths = Lengths::new(&counts(&[(0, 1), (9, 1), (4, 2), (255, 4)])).unwrap();
        assert_eq!([0, 9, 4, 255].map(|symbol| lengths.0[symbol]), [3, 3, 2, 1]);
        assert_eq!(lengths.bits(&counts(&[(0, 10), (255, 1)])), Some(31));
        assert_eq!(lengths.bits(&counts(&[(1, 1)])), None);
    }

    /// Without the limit, these counts give codes of up to 29 bits.
    #[test]
    fn lengths_are_limited() {
        let mut fibonacci = [0; 256];
        let (mut a, mut b) = (1, 1);
        for count in &mut fibonacci[..30] {
            *count = a;
            (a, b) = (b, a + b);
        }
        let mut lengths = Lengths::new(&fibonacci).unwrap();
        assert_eq!(lengths.max(), 11);
        assert_complete(&lengths);
        assert_eq!(described(&mut lengths).0, lengths);
        if cfg!(miri) {
            return;
        }
        // With 2^11 symbols, the limit leaves only one choice. With 256, it leaves several.
        let mut lengths = Lengths::new(&[1; 256]).unwrap();
        assert_eq!(lengths.0, [8; 256]);
        assert_complete(&lengths);
        described(&mut lengths);
        assert_complete(&lengths);
    }

    /// More than 128 equal weights before the last one.
    #[test]
    fn trees_without_a_description_are_replaced() {
        for last in [129, 192, 224, 240, 248, 252, 254, 255] {
            if cfg!(miri) && last % 64 > 0 {
                continue;
            }
            let mut counts = [0; 256];
            counts[..last].fill(10);
            counts[last] = 10 * (256 - last as u32);
            let best = Lengths::new(&counts).unwrap();
            let mut written = best.clone();
            let (read, _) = described(&mut written);
            assert_eq!(read, written);
            assert_complete(&written);
            if last > 129 {
                assert_ne!(written, best, "{last}");
            }
            let more = written.bits(&counts).unwrap() - best.bits(&counts).unwrap();
            assert!(more <= 10, "{last}: {more} bits more");
        }
    }

    #[test]
    fn descriptions_are_short() {
        // Direct: one byte for two symbols. With FSE, rows of equal weights take few bits.
        let mut few = Lengths::new(&counts(&[(0, 1), (1, 2), (2, 3)])).unwrap();
        assert_eq!(described(&mut few), (few.clone(), 2));
        let mut wide = Lengths::new(&counts(&[(0, 1), (128, 2), (255, 3)])).unwrap();
        let (read, len) = described(&mut wide);
        assert_eq!(read, wide);
        assert!(len < 20, "{len}");
    }

    #[test]
    fn every_set_of_symbols_comes_back() {
        let mut state = 1_u64;
        for round in 0..if cfg!(miri) { 1 } else { 3000 } {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as u32
            };
            let symbols = 2 + next() as usize % 255;
            let spread = next() % 24;
            let mut counts = [0; 256];
            for _ in 0..symbols {
                counts[next() as usize % 256] =
                    1 + (next() >> (next() % (spread + 1))) % (1 << spread);
            }
            let Some(mut lengths) = Lengths::new(&counts) else { continue };
            assert_complete(&lengths);
            assert!(lengths.bits(&counts).is_some());
            assert_eq!(described(&mut lengths).0, lengths, "round {round}");
        }
    }

    #[test]
    fn bad_descriptions() {
        for (bytes, what) in [
            (&[][..], "cut off"),
            (&[0x83, 0x11], "cut off"),
            (&[0x81, 0x00], "no codes"),
            (&[0x80, 0xc0], "longer than allowed"),
            (&[0x80, 0xb0], "do not add up"),
            (&[0x82, 0x33, 0x10], "do not add up"),
            (&[0x05, 0x10], "cut off"),
        ] {
            let error = Lengths::read(bytes).unwrap_err();
            assert!(error.contains(what), "{bytes:?}: {error}");
        }
    }
}
