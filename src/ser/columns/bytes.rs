//! [`Bytes`]: the memory of collected columns.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::ops::Range;

use crate::mem;

/// A group of rows ends when this many bytes are collected.
pub const MAX_BYTES: usize = 16 << 20;
/// The capacity of a piece. It is a multiple of the size of every number. A text that is longer has a piece of its own length.
pub const PIECE: usize = 64 << 10;
/// The most pieces that a thread keeps. Together they are as large as the columns of one group can be.
const MAX_KEPT: usize = MAX_BYTES / PIECE;
/// The capacity that a column gets first.
const FIRST: usize = 256;

thread_local! {
    /// Empty pieces for the next columns. If the allocator returns memory to the operating system after each
    /// call, the page faults of the next call can take most of its time.
    static KEPT: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Bytes in pieces of memory, so that they need not be copied when more bytes are added. What was added by one call of
/// [`Bytes::push`] or [`Bytes::push_slice`] is never split between two pieces.
#[derive(Default)]
pub struct Bytes {
    full: Vec<Vec<u8>>,
    last: Vec<u8>,
    placed: Option<Place>,
}

/// The position of the bytes, if they are collected in the output instead of in pieces. The output is then in `last`.
struct Place {
    start: usize,
    /// See [`Bytes::skip_at`].
    skipped: Cell<Option<u64>>,
}

impl Bytes {
    /// The same byte, `count` times.
    pub fn filled(byte: u8, count: usize) -> Self {
        let mut bytes = Self::default();
        bytes.push_many(byte, count);
        bytes
    }

    /// Appends a word. Its length must be the same in each call, because otherwise the words cannot be found again.
    #[inline]
    pub fn push<const N: usize>(&mut self, word: [u8; N]) {
        if !mem::append(&mut self.last, word, &[]) {
            self.push_slow(&word);
        }
    }

    #[cold]
    #[inline(never)]
    fn push_slow(&mut self, bytes: &[u8]) {
        self.make_room(bytes.len(), bytes.len());
        self.last.extend_from_slice(bytes);
    }

    /// Appends bytes.
    #[inline]
    pub fn push_slice(&mut self, bytes: &[u8]) {
        if !mem::append(&mut self.last, [], bytes) {
            self.push_slow(bytes);
        }
    }

    /// Returns the last piece, and the number of words of `N` bytes that it has room for: at least one, and at most
    /// `wanted`.
    #[inline]
    pub fn room<const N: usize>(&mut self, wanted: usize) -> (&mut Vec<u8>, usize) {
        let bytes = wanted.saturating_mul(N);
        let mut spare = self.last.capacity() - self.last.len();
        if spare < bytes {
            spare = self.make_room(N, bytes);
        }
        (&mut self.last, (spare / N).min(wanted))
    }

    /// Makes room for `wanted` bytes, or at least for `least`. Returns the number of bytes that there is room for.
    #[cold]
    #[inline(never)]
    fn make_room(&mut self, least: usize, wanted: usize) -> usize {
        let len = self.last.len();
        if self.placed.is_some() {
            self.last.reserve(wanted.min(PIECE).max(least));
            return self.last.capacity() - len;
        }
        let capacity = len.saturating_add(wanted).next_power_of_two().clamp(FIRST, PIECE);
        if len.saturating_add(least) > PIECE {
            let piece = if least > PIECE { Vec::with_capacity(least) } else { take_piece() };
            self.full.push(std::mem::replace(&mut self.last, piece));
        } else if capacity < PIECE {
            self.last.reserve_exact(capacity - len);
        } else if self.last.capacity() < PIECE {
            let mut piece = take_piece();
            piece.extend_from_slice(&self.last);
            self.last = piece;
        }
        self.last.capacity() - self.last.len()
    }

    /// Appends `count` words of `size` bytes. `fill` is called with the memory of some of these words, filled with
    /// zeros, and the number of words before them.
    pub fn fill(&mut self, count: usize, size: usize, mut fill: impl FnMut(&mut [u8], usize)) {
        let mut done = 0;
        while done < count {
            let spare = self.make_room(size, (count - done).saturating_mul(size));
            let now = (spare / size).min(count - done);
            let start = self.last.len();
            self.last.resize(start + now * size, 0);
            fill(self.last.get_mut(start..).unwrap_or_default(), done);
            done += now;
        }
    }

    /// Appends the same byte, `count` times.
    pub fn push_many(&mut self, byte: u8, count: usize) {
        self.fill(count, 1, |part, _| part.fill(byte));
    }

    /// Appends a byte for each row, 0 or 1.
    pub fn push_bits(&mut self, rows: Range<usize>, is_set: impl Fn(usize) -> bool) {
        self.fill(rows.len(), 1, |part, before| {
            let rows = rows.start + before..;
            part.iter_mut().zip(rows).for_each(|(byte, row)| *byte = u8::from(is_set(row)));
        });
    }

    pub fn len(&self) -> usize {
        self.full.iter().map(Vec::len).sum::<usize>() + self.last().len()
    }

    fn last(&self) -> &[u8] {
        self.last.get(self.start()..).unwrap_or_default()
    }

    /// The offset of the bytes in `last`.
    fn start(&self) -> usize {
        self.placed.as_ref().map_or(0, |place| place.start)
    }

    pub fn pieces(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.full.iter().map(Vec::as_slice).chain([self.last()])
    }

    /// Moves the bytes to the end of `output`. Bytes that are added later are appended there.
    pub fn place(&mut self, mut output: Vec<u8>) {
        let start = output.len();
        self.pieces().for_each(|piece| output.extend_from_slice(piece));
        let placed = Some(Place { start, skipped: Cell::new(None) });
        *self = Self { full: Vec::new(), last: output, placed };
    }

    pub fn is_placed(&self) -> bool {
        self.placed.is_some()
    }

    /// If the bytes are already in the output, notes that they belong at this position of the bytes that are written
    /// now, and returns `true`.
    pub fn skip_at(&self, position: u64) -> bool {
        self.placed.as_ref().inspect(|place| place.skipped.set(Some(position))).is_some()
    }

    /// Removes the bytes, if they are in the output. Returns the output, the offset of the bytes in it, and the
    /// position that was passed to [`Bytes::skip_at`].
    pub fn take_placed(&mut self) -> Option<(Vec<u8>, usize, Option<u64>)> {
        let place = self.placed.take()?;
        Some((std::mem::take(&mut self.last), place.start, place.skipped.get()))
    }

    /// The words of `N` bytes that were added.
    pub fn words<const N: usize>(&self) -> impl Iterator<Item = [u8; N]> {
        self.pieces().flat_map(|piece| piece.as_chunks().0).copied()
    }

    /// All bytes in one slice.
    pub fn joined(&self) -> Cow<'_, [u8]> {
        if self.full.is_empty() {
            return Cow::Borrowed(self.last());
        }
        let mut bytes = Vec::with_capacity(self.len());
        self.pieces().for_each(|piece| bytes.extend_from_slice(piece));
        Cow::Owned(bytes)
    }

    pub fn truncate(&mut self, len: usize) {
        let mut before = self.full.iter().map(Vec::len).sum::<usize>();
        while before > len
            && let Some(piece) = self.full.pop()
        {
            before -= piece.len();
            keep_piece(std::mem::replace(&mut self.last, piece));
        }
        self.last.truncate(self.start() + (len - before));
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        self.full.drain(..).for_each(keep_piece);
        if !self.is_placed() {
            keep_piece(std::mem::take(&mut self.last));
        }
    }
}

fn take_piece() -> Vec<u8> {
    // While a thread ends, nothing is kept any more.
    let kept = KEPT.try_with(|kept| kept.borrow_mut().pop()).ok().flatten();
    kept.unwrap_or_else(|| Vec::with_capacity(PIECE))
}

fn keep_piece(mut piece: Vec<u8>) {
    // A piece of a long text is larger, and is not kept.
    if !(PIECE..2 * PIECE).contains(&piece.capacity()) {
        return;
    }
    piece.clear();
    // An error means that the thread ends.
    let _ = KEPT.try_with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.len() < MAX_KEPT {
            kept.push(piece);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_slices_come_back_across_pieces() {
        let count = 3 * PIECE as u64 / 8 + 5;
        let mut words = Bytes::default();
        (0..count).for_each(|number| words.push(number.to_le_bytes()));
        assert!(words.words().map(u64::from_le_bytes).eq(0..count));
        assert_eq!(words.len() as u64, count * 8);

        let long: Vec<u8> = (0..=250).cycle().take(PIECE * 2 + 77).collect();
        let mut slices = Bytes::default();
        let mut expected = Vec::new();
        for len in [0, 1, 300, PIECE - 1, 2, long.len(), 9] {
            slices.push_slice(&long[..len]);
            expected.extend_from_slice(&long[..len]);
        }
        assert_eq!(*slices.joined(), expected);
        for len in [expected.len() - 3, 2 * PIECE, PIECE + 1, 301, 0] {
            slices.truncate(len);
            assert_eq!((&*slices.joined(), slices.len()), (&expected[..len], len));
            slices.push_slice(&[1, 2, 3]);
            slices.truncate(len);
        }
    }

    #[test]
    fn fills_places_with_what_stands_before_them() {
        let numbers: Vec<u32> = (0..).take(PIECE / 4 + 9).collect();
        let mut bytes = Bytes::default();
        bytes.push([7; 4]);
        bytes.fill(numbers.len(), 4, |part, before| {
            for (place, number) in part.as_chunks_mut().0.iter_mut().zip(&numbers[before..]) {
                *place = number.to_le_bytes();
            }
        });
        let expected = [0x0707_0707].into_iter().chain(numbers.iter().copied());
        assert!(bytes.words().map(u32::from_le_bytes).eq(expected));
        assert_eq!(*Bytes::filled(3, 1000).joined(), [3; 1000]);
    }

    #[test]
    fn a_thread_keeps_a_limited_number_of_empty_pieces() {
        let bytes = Bytes::filled(1, (MAX_KEPT + 3) * PIECE);
        drop(bytes);
        KEPT.with_borrow(|kept| {
            assert_eq!(kept.len(), MAX_KEPT);
            assert!(kept.iter().all(|piece| piece.is_empty() && piece.capacity() >= PIECE));
        });
        drop(Bytes::filled(1, PIECE));
        KEPT.with_borrow(|kept| assert_eq!(kept.len(), MAX_KEPT));
    }
}
