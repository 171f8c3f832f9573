//! Buffers are hashed in chunks, so that a part of a buffer can be verified without reading all of it.

use std::convert::Infallible;
use std::ops::Range;

use super::checksum::{self, Hasher};

/// The length of a chunk in bytes: a power of two from 64 KiB to 1 GiB. The last chunk of a buffer may be shorter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkLen(u64);

impl ChunkLen {
    pub const MIN: u64 = 64 << 10;
    pub const MAX: u64 = 1 << 30;

    /// `None` if the number is not a valid length.
    pub fn new(bytes: u64) -> Option<Self> {
        let valid = bytes.is_power_of_two() && (Self::MIN..=Self::MAX).contains(&bytes);
        valid.then_some(Self(bytes))
    }

    /// The message for a number that is not a valid length.
    pub fn expected(found: u64) -> String {
        let (min, max) = (Self::MIN, Self::MAX);
        format!(
            "expected a length of chunks that is a power of two from {min} to {max}, found {found}"
        )
    }

    pub fn get(self) -> u64 {
        self.0
    }

    /// The number of chunks of a buffer of `len` bytes.
    pub fn count(self, len: u64) -> u64 {
        len.div_ceil(self.0)
    }

    /// Divides some bytes of a buffer of `len` bytes into whole chunks and, before and behind them, parts of chunks.
    pub fn divide(self, bytes: Range<u64>, len: u64) -> impl Iterator<Item = ChunkPiece> {
        let Range { start, end } = bytes;
        let first = start.checked_next_multiple_of(self.0).unwrap_or(u64::MAX);
        let last = if end == len { end } else { end - end % self.0 };
        let before = (start..first.min(end), false);
        let behind = (first.max(last)..end, false);
        let pieces = [before, (first..last, true), behind].into_iter();
        pieces.filter(|(range, _)| !range.is_empty()).map(move |(range, is_whole)| ChunkPiece {
            index: range.start / self.0,
            from: usize::try_from(range.start % self.0).unwrap_or(usize::MAX),
            len: usize::try_from(range.end - range.start).unwrap_or(usize::MAX),
            is_whole,
        })
    }
}

/// Whole chunks of a buffer, or part of one chunk.
#[derive(Debug, PartialEq, Eq)]
pub struct ChunkPiece {
    /// The number of the chunk, or of the first one.
    pub index: u64,
    /// The offset of the piece in this chunk.
    pub from: usize,
    pub len: usize,
    pub is_whole: bool,
}

impl Default for ChunkLen {
    fn default() -> Self {
        Self(1 << 20)
    }
}

/// The hash of a buffer, from those of its chunks. A buffer of one chunk has the hash of that chunk.
pub fn of_chunks(chunks: &[u64]) -> u64 {
    match chunks {
        [] => checksum::of(&[], 0),
        [one] => *one,
        // The seed sets it apart from the hash of a chunk that happens to have these hashes as its content.
        several => {
            let bytes: Vec<u8> = several.iter().flat_map(|hash| hash.to_be_bytes()).collect();
            checksum::of(&bytes, several.len() as u64)
        }
    }
}

/// The hashes of all chunks of several buffers, buffer by buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    all: Vec<u64>,
    /// For each buffer, the end of its hashes.
    ends: Vec<usize>,
}

impl Hashes {
    /// The hashes of buffers with these lengths. There must be as many as the buffers have chunks.
    pub fn new(all: Vec<u64>, lengths: impl Iterator<Item = u64>, chunk: ChunkLen) -> Self {
        let mut end = 0;
        let ends = lengths.map(|len| {
            end += usize::try_from(chunk.count(len)).unwrap_or(usize::MAX);
            end
        });
        Self { ends: ends.collect(), all }
    }

    /// Adds the hash of the next chunk of the current buffer.
    pub fn push(&mut self, hash: u64) {
        self.all.push(hash);
    }

    /// Ends the current buffer.
    pub fn end_buffer(&mut self) {
        self.ends.push(self.all.len());
    }

    /// The bytes of the hashes of all chunks, big-endian.
    pub fn bytes(&self) -> Vec<u8> {
        self.all.iter().flat_map(|hash| hash.to_be_bytes()).collect()
    }

    /// The hashes of the chunks of a buffer. `None` if there is no such buffer, or it has no hashes.
    pub fn of(&self, number: usize) -> Option<&[u64]> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied());
        self.all.get(start?..end)
    }

    /// The hash of a whole buffer.
    pub fn of_buffer(&self, number: usize) -> Option<u64> {
        self.of(number).map(of_chunks)
    }
}

/// Computes the hashes of the chunks of one buffer, whose bytes arrive in pieces.
pub struct ChunkHasher {
    chunk: ChunkLen,
    /// The number of bytes of the buffer that are still to come.
    left: u64,
    /// The number of the current chunk.
    index: u64,
    /// The hasher of the current chunk, and the number of bytes that were given to it. `None` before the first byte.
    current: Option<(Hasher, u64)>,
}

impl ChunkHasher {
    /// For a buffer of `len` bytes.
    pub fn new(chunk: ChunkLen, len: u64) -> Self {
        Self { chunk, left: len, index: 0, current: None }
    }

    /// Takes the next bytes of the buffer. Calls `each` with the number and the hash of each chunk that they complete.
    pub fn update(&mut self, bytes: &[u8], mut each: impl FnMut(u64, u64)) {
        let Ok(()) = self.try_update(bytes, |index, hash| {
            each(index, hash);
            Ok::<_, Infallible>(())
        });
    }

    /// Like [`update`](Self::update). Ends if `each` returns an error.
    pub fn try_update<E>(
        &mut self,
        mut bytes: &[u8],
        mut each: impl FnMut(u64, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        while !bytes.is_empty() {
            let taken = self.current.as_ref().map_or(0, |(_, taken)| *taken);
            let room = (self.chunk.0 - taken).min(self.left);
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            if now.is_empty() {
                // More bytes than the buffer has.
                break;
            }
            self.left -= now.len() as u64;
            bytes = rest;
            let completes = now.len() == room;
            let hash = match &mut self.current {
                None if completes => checksum::of(now, 0),
                current => {
                    let (hasher, taken) = current.get_or_insert_with(|| (Hasher::new(), 0));
                    hasher.update(now);
                    *taken += now.len() as u64;
                    if !completes {
                        break;
                    }
                    hasher.finish()
                }
            };
            self.current = None;
            self.index += 1;
            each(self.index - 1, hash)?;
        }
        Ok(())
    }

    /// How many of the next `len` bytes belong to a chunk of which some bytes were taken.
    pub fn of_current(&self, len: u64) -> u64 {
        self.current.as_ref().map_or(0, |(_, taken)| len.min(self.chunk.0 - taken).min(self.left))
    }

    /// How many of `len` bytes are whole chunks, counted from the end of the current chunk, or from here if no byte of
    /// the current chunk was taken.
    pub fn whole_chunks(&self, len: u64) -> u64 {
        let left = self.left - self.of_current(u64::MAX);
        if len >= left { left } else { len - len % self.chunk.0 }
    }

    /// The number of the current chunk.
    pub fn index(&self) -> u64 {
        self.index
    }

    /// Passes over the whole chunks in the next `len` bytes, without their hashes. The current chunk must not have been
    /// begun. Returns the number of bytes passed over.
    pub fn pass_chunks(&mut self, len: u64) -> u64 {
        let passed = self.whole_chunks(len);
        self.left -= passed;
        self.index += self.chunk.count(passed);
        passed
    }

    /// The number of bytes of the buffer that are still to come.
    pub fn left(&self) -> u64 {
        self.left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHUNK: ChunkLen = ChunkLen(ChunkLen::MIN);

    fn hashes(bytes: &[u8], pieces: usize) -> Vec<(u64, u64)> {
        let mut hasher = ChunkHasher::new(CHUNK, bytes.len() as u64);
        let mut found = Vec::new();
        for piece in bytes.chunks(pieces) {
            hasher.update(piece, |index, hash| found.push((index, hash)));
        }
        assert_eq!(hasher.left(), 0);
        found
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes when interpreted")]
    fn the_hashes_do_not_depend_on_the_pieces() {
        let chunk = usize::try_from(CHUNK.get()).unwrap();
        for len in [0, 1, chunk - 1, chunk, chunk + 1, 3 * chunk, 3 * chunk + 7] {
            let bytes: Vec<u8> = (0..=250).cycle().take(len).collect();
            let expected: Vec<_> =
                (0..).zip(bytes.chunks(chunk).map(|chunk| checksum::of(chunk, 0))).collect();
            assert_eq!(expected.len() as u64, CHUNK.count(len as u64));
            for pieces in [999, chunk / 2, chunk, chunk + 1, 10 * chunk] {
                assert_eq!(hashes(&bytes, pieces), expected, "{len} {pieces}");
            }
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "takes minutes when interpreted")]
    fn whole_chunks_can_be_passed_over() {
        let chunk = usize::try_from(CHUNK.get()).unwrap();
        let bytes: Vec<u8> = (0..=250).cycle().take(4 * chunk + 9).collect();
        let mut hasher = ChunkHasher::new(CHUNK, bytes.len() as u64);
        assert_eq!(hasher.pass_chunks(CHUNK.get() * 2 + 5), CHUNK.get() * 2);
        let mut found = Vec::new();
        let mut each = |index, hash| found.push((index, hash));
        hasher.update(&bytes[2 * chunk..2 * chunk + 100], &mut each);
        assert_eq!(hasher.of_current(1 << 40), CHUNK.get() - 100);
        hasher.update(&bytes[2 * chunk + 100..3 * chunk], &mut each);
        assert_eq!(found, [(2, checksum::of(&bytes[2 * chunk..3 * chunk], 0))]);
        assert_eq!(hasher.of_current(1 << 40), 0);
        assert_eq!(hasher.pass_chunks(1 << 40), CHUNK.get() + 9);
        assert_eq!(hasher.left(), 0);
    }

    #[test]
    fn bytes_are_divided_into_whole_chunks_and_parts() {
        const C: usize = 64 << 10;
        let whole = |index, len| ChunkPiece { index, from: 0, len, is_whole: true };
        let part = |index, from, len| ChunkPiece { index, from, len, is_whole: false };
        let len = 3 * C + 7;
        for (bytes, expected) in [
            (5..5, vec![]),
            (0..len, vec![whole(0, len)]),
            (C..3 * C, vec![whole(1, 2 * C)]),
            (3..9, vec![part(0, 3, 6)]),
            (0..9, vec![part(0, 0, 9)]),
            (3..C, vec![part(0, 3, C - 3)]),
            (C - 1..C + 1, vec![part(0, C - 1, 1), part(1, 0, 1)]),
            (9..2 * C + 4, vec![part(0, 9, C - 9), whole(1, C), part(2, 0, 4)]),
            (C + 1..len, vec![part(1, 1, C - 1), whole(2, C + 7)]),
            // The last chunk is whole only from its start.
            (3 * C..len, vec![whole(3, 7)]),
            (3 * C + 2..len, vec![part(3, 2, 5)]),
            (3 * C..len - 1, vec![part(3, 0, 6)]),
        ] {
            let bytes = bytes.start as u64..bytes.end as u64;
            assert_eq!(CHUNK.divide(bytes, len as u64).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn a_buffer_of_several_chunks_has_a_hash_of_its_own() {
        assert_eq!(of_chunks(&[]), checksum::of(b"", 0));
        assert_eq!(of_chunks(&[7]), 7);
        let two = of_chunks(&[1, 2]);
        assert_ne!(two, of_chunks(&[2, 1]));
        assert_ne!(
            two,
            checksum::of(&[[0, 0, 0, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0, 0, 2]].concat(), 0)
        );
    }
}
