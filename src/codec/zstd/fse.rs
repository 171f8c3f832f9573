//! Finite state entropy coding (RFC 8878, 4.1): how zstd stores sequences and the weights of Huffman trees.

use super::bits::{BitWriter, bits_at};

/// The largest table: that of literal and match lengths.
pub const MAX_LOG: u32 = 9;
/// More symbols than any alphabet has.
pub const MAX_SYMBOLS: usize = 64;

/// How often each symbol occurs in a table, in units of one state. -1 is "less than one": it has one state too.
#[derive(Debug, Clone, Copy)]
pub struct Distribution {
    /// The table has `1 << log` states.
    pub log: u32,
    /// The counts, whose sum is the number of states.
    pub counts: [i16; MAX_SYMBOLS],
}

impl Distribution {
    /// One of the distributions that the RFC defines.
    pub const fn predefined(log: u32, list: &[i16]) -> Distribution {
        let mut counts = [0; MAX_SYMBOLS];
        let mut at = 0;
        while at < list.len() {
            counts[at] = list[at];
            at += 1;
        }
        Distribution { log, counts }
    }

    /// Reads the description of a table (RFC 8878, 4.1.1) from the start of `bytes`. Also returns its length.
    pub fn read(
        bytes: &[u8],
        max_log: u32,
        max_symbol: usize,
    ) -> Result<(Distribution, usize), &'static str> {
        let log = bits_at(bytes, 0, 4) as u32 + 5;
        if log > max_log {
            return Err("a table of FSE codes is larger than allowed");
        }
        let mut at = 4;
        let mut counts = [0; MAX_SYMBOLS];
        let mut symbol = 0;
        let mut remaining = (1 << log) + 1;
        let mut threshold = 1 << log;
        let mut bits = log + 1;
        while remaining > 1 {
            if symbol > max_symbol {
                return Err("a table of FSE codes has more symbols than allowed");
            }
            // Small values take one bit less.
            let max = 2 * threshold - 1 - remaining;
            let value = bits_at(bytes, at, bits) as i32;
            let count = if value & (threshold - 1) < max {
                at += bits as usize - 1;
                value & (threshold - 1)
            } else {
                at += bits as usize;
                if value >= threshold { value - max } else { value }
            } - 1;
            remaining -= count.abs();
            counts[symbol] = count as i16;
            symbol += 1;
            if count == 0 {
                // The next 2 bits are the number of further counts that are zero. After a 3, another 2 bits follow.
                loop {
                    let zeros = bits_at(bytes, at, 2) as usize;
                    at += 2;
                    symbol += zeros;
                    if symbol > max_symbol + 1 || at > bytes.len() * 8 {
                        return Err("a table of FSE codes has more symbols than allowed");
                    }
                    if zeros < 3 {
                        break;
                    }
                }
            }
            while remaining < threshold && threshold > 1 {
                threshold >>= 1;
                bits -= 1;
            }
        }
        if remaining != 1 {
            return Err("a table of FSE codes has too many states");
        }
        let len = at.div_ceil(8);
        if len > bytes.len() {
            return Err("a table of FSE codes is cut off");
        }
        Ok((Distribution { log, counts }, len))
    }

    /// Appends the description of this table.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut bits = BitWriter::default();
        bits.push(self.log - 5, 4);
        let mut remaining = (1 << self.log) + 1;
        let mut threshold = 1 << self.log;
        let mut width = self.log + 1;
        let mut counts = self.counts.iter().copied().peekable();
        while remaining > 1 {
            let Some(count) = counts.next() else { break };
            let max = 2 * threshold - 1 - remaining;
            remaining -= i32::from(count.abs());
            let mut value = i32::from(count) + 1;
            if value >= threshold {
                value += max;
            }
            bits.push(value as u32, width - u32::from(value < max));
            if count == 0 {
                let mut zeros = 0;
                while counts.next_if_eq(&0).is_some() {
                    zeros += 1;
                    if zeros == 3 {
                        bits.push(3, 2);
                        zeros = 0;
                    }
                }
                bits.push(zeros, 2);
            }
            while remaining < threshold && threshold > 1 {
                threshold >>= 1;
                width -= 1;
            }
        }
        out.extend(bits.finish());
    }

    /// Distributes the states to symbols that occur as often as `counts` says. Each symbol that occurs gets at least
    /// one state. `None` if there are fewer than two such symbols, or more than states.
    pub fn of_counts(counts: &[u32], log: u32) -> Option<Distribution> {
        let states = 1 << log;
        let total: u64 = counts.iter().copied().map(u64::from).sum();
        let present = counts.iter().filter(|&&count| count > 0).count();
        if present < 2 || present > states as usize || counts.len() > MAX_SYMBOLS {
            return None;
        }
        let mut parts = [0; MAX_SYMBOLS];
        let mut sum = 0;
        for (part, &count) in parts.iter_mut().zip(counts) {
            if count > 0 {
                *part = (u64::from(count) * states / total).max(1) as i16;
                sum += i64::from(*part);
            }
        }
        // The symbol with most states gets the states that are left. If there are too few states, because small counts
        // were rounded up to one, the symbols with most states give up some, one at a time.
        let mut left = states as i64 - sum;
        while left != 0 {
            let largest = parts.iter_mut().max_by_key(|part| **part)?;
            let step = if left > 0 { left as i16 } else { -1 };
            *largest += step;
            left -= i64::from(step);
        }
        Some(Distribution { log, counts: parts })
    }
}

/// A state of the decoder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct State {
    /// The symbol.
    pub symbol: u8,
    /// The next state is `base` plus the value of this many bits.
    pub bits: u8,
    /// See `bits`.
    pub base: u16,
}

/// The table of a decoder.
#[derive(Debug, Clone)]
pub struct Table {
    /// There are `1 << log` states.
    pub log: u32,
    /// The states. The entries behind them are unused.
    pub states: [State; 1 << MAX_LOG],
}

impl Table {
    /// A table without states: nothing can be decoded with it.
    pub const fn constant(symbol: u8) -> Table {
        Table { log: 0, states: [State { symbol, bits: 0, base: 0 }; 1 << MAX_LOG] }
    }

    /// Builds the table (RFC 8878, 4.1.1, "From Normalized Distribution to Decoding Tables").
    pub fn new(distribution: &Distribution) -> Table {
        let mut table = Table::constant(0);
        table.log = distribution.log;
        let size = 1_usize << distribution.log;
        let states = &mut table.states[..size];
        let mut next = [0_u16; MAX_SYMBOLS];
        let mut high = size;
        for (symbol, &count) in distribution.counts.iter().enumerate() {
            next[symbol] = count.unsigned_abs();
            if count < 0 && high > 0 {
                high -= 1;
                states[high].symbol = symbol as u8;
            }
        }
        let step = (size >> 1) + (size >> 3) + 3;
        let mut at = 0;
        for (symbol, &count) in distribution.counts.iter().enumerate() {
            for _ in 0..count {
                states[at].symbol = symbol as u8;
                at = (at + step) & (size - 1);
                while at >= high {
                    at = (at + step) & (size - 1);
                }
            }
        }
        for state in states {
            let number = &mut next[usize::from(state.symbol)];
            let bits = distribution.log - number.ilog2();
            state.bits = bits as u8;
            state.base = (*number << bits) - size as u16;
            *number += 1;
        }
        table
    }
}

/// The table of an encoder. Symbols are encoded from the last to the first.
#[derive(Debug)]
pub struct Coder {
    log: u32,
    /// For each symbol its number of states, and where they start in `places`.
    symbols: [(u16, u16); MAX_SYMBOLS],
    /// The states in a decoder's table, by symbol and in their order.
    places: [u16; 1 << MAX_LOG],
}

impl Coder {
    /// Makes an encoder whose output a decoder reads with this table.
    pub fn new(table: &Table) -> Coder {
        let mut symbols = [(0, 0); MAX_SYMBOLS];
        let states = &table.states[..1 << table.log];
        for state in states {
            symbols[usize::from(state.symbol)].0 += 1;
        }
        let mut start = 0;
        for symbol in &mut symbols {
            symbol.1 = start;
            start += symbol.0;
        }
        let mut next = symbols;
        let mut places = [0; 1 << MAX_LOG];
        for (place, state) in states.iter().enumerate() {
            let next = &mut next[usize::from(state.symbol)].1;
            places[usize::from(*next)] = place as u16;
            *next += 1;
        }
        Coder { log: table.log, symbols, places }
    }

    /// Returns a state for the last symbol.
    pub fn last(&self, symbol: u8) -> u16 {
        self.places[usize::from(self.symbols[usize::from(symbol)].1)]
    }

    /// Returns the state of `symbol` from which a decoder gets to the state `next`. Appends the bits that lead there.
    #[inline]
    pub fn before(&self, symbol: u8, next: u16, bits: &mut BitWriter) -> u16 {
        let (count, start) = self.symbols[usize::from(symbol)];
        if self.log == 0 || count == 0 {
            return 0;
        }
        // The number of a state of this symbol is `count` at least, and less than twice that: see `Table::new`.
        let next = u32::from(next) + (1 << self.log);
        let mut more = self.log - u32::from(count).ilog2();
        if next >> more < u32::from(count) {
            more -= 1;
        }
        bits.push(next & ((1 << more) - 1), more);
        let number = (next >> more) as u16 - count;
        self.places[usize::from(start + number)]
    }

    /// Appends the state that a reader starts with.
    pub fn first(&self, state: u16, bits: &mut BitWriter) {
        bits.push(state.into(), self.log);
    }
}
