//! Bits of zstd's streams. All are stored with the lowest bit of a byte first.

/// Writes bits one after the other.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    count: u32,
}

impl BitWriter {
    /// Appends the lowest `bits` bits of `value`, 32 at most. The others must be zero.
    #[inline]
    pub fn push(&mut self, value: u32, bits: u32) {
        debug_assert!(bits == 32 || value >> bits == 0, "{value} has more than {bits} bits");
        self.pending |= u64::from(value) << self.count;
        self.count += bits;
        if self.count >= 32 {
            self.bytes.extend((self.pending as u32).to_le_bytes());
            self.pending >>= 32;
            self.count -= 32;
        }
    }

    /// Fills the last byte with zeros.
    pub fn finish(mut self) -> Vec<u8> {
        let bytes = self.count.div_ceil(8) as usize;
        self.bytes.extend(&self.pending.to_le_bytes()[..bytes]);
        self.bytes
    }

    /// Appends the 1 bit that marks the end of a stream that is read backwards.
    pub fn finish_backward(mut self) -> Vec<u8> {
        self.push(1, 1);
        self.finish()
    }
}

/// Returns `bits` bits, 56 at most, from bit `at` on. Bits behind the end are zero.
#[inline]
pub fn bits_at(bytes: &[u8], at: usize, bits: u32) -> u64 {
    debug_assert!(bits <= 56);
    let word = match bytes.get(at / 8..).and_then(|rest| rest.first_chunk::<8>()) {
        Some(word) => u64::from_le_bytes(*word),
        None => {
            let rest = bytes.get(at / 8..).unwrap_or_default();
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            u64::from_le_bytes(word)
        }
    };
    word >> (at % 8) & ((1 << bits) - 1)
}

/// Reads a stream from its end to its start.
#[derive(Debug, Clone, Copy)]
pub struct Backward<'a> {
    bytes: &'a [u8],
    /// The number of bits before those that were read.
    left: usize,
}

impl<'a> Backward<'a> {
    /// Starts at the end of the stream, which the highest 1 bit of the last byte marks. `None` if there is no such bit.
    pub fn new(bytes: &'a [u8]) -> Option<Backward<'a>> {
        let last = *bytes.last()?;
        let left = (bytes.len() * 8).checked_sub(1 + last.leading_zeros() as usize)?;
        (last != 0).then_some(Backward { bytes, left })
    }

    /// Starts at a position in the stream, before which `left` bits are left to read.
    pub fn with_left(bytes: &'a [u8], left: usize) -> Backward<'a> {
        Backward { bytes, left: left.min(bytes.len() * 8) }
    }

    /// The number of bits that were not read.
    pub fn left(&self) -> usize {
        self.left
    }

    /// The next bits, 56 at most. `None` if fewer are left.
    #[inline]
    pub fn read(&mut self, bits: u32) -> Option<u64> {
        let start = self.left.checked_sub(bits as usize)?;
        self.left = start;
        Some(bits_at(self.bytes, start, bits))
    }

    /// Returns the next bits, 56 at most, without reading them. If fewer are left, zeros follow them.
    #[inline]
    pub fn peek(&self, bits: u32) -> u64 {
        match self.left.checked_sub(bits as usize) {
            Some(start) => bits_at(self.bytes, start, bits),
            None => bits_at(self.bytes, 0, self.left as u32) << (bits as usize - self.left),
        }
    }

    /// Skips bits. `None` if fewer are left.
    #[inline]
    pub fn skip(&mut self, bits: u32) -> Option<()> {
        self.left = self.left.checked_sub(bits as usize)?;
        Some(())
    }
}
