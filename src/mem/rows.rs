//! Appends rows of one length to a vector, without zeroing their memory first.

use std::mem::MaybeUninit;

/// The most bytes of a word.
const MAX_WORD: usize = 8;
/// The memory for one row. A word can begin at each position that a byte can hold.
const ROOM: usize = u8::MAX as usize + MAX_WORD;

/// The memory for one row. It knows how many of its bytes were written, so that nobody can read the rest.
pub struct NewRow<'a> {
    place: &'a mut [MaybeUninit<u8>; ROOM],
    /// The first `len` bytes of `place` were written.
    len: u8,
}

impl NewRow<'_> {
    /// Appends a word. After 255 bytes, the length starts again at 0, as if the row were empty.
    ///
    /// So there is no check. With one, a row is so much code that the compiler does not inline it into the loop
    /// over the rows: 12 floats take 167 instructions then, and 18 without it.
    #[inline(always)]
    pub fn put<const N: usize>(&mut self, word: [u8; N]) {
        const { assert!(N <= MAX_WORD) };
        let rest = self.place.get_mut(usize::from(self.len)..).unwrap_or_default();
        if let Some(place) = rest.first_chunk_mut() {
            *place = word.map(MaybeUninit::new);
            // If the sum overflows, it becomes smaller than `len`, so it still counts only bytes that were
            // written.
            #[allow(clippy::cast_possible_truncation)]
            {
                self.len = self.len.wrapping_add(N as u8);
            }
        }
    }
}

/// Appends rows of `width` bytes, until `next` returns `false`, has not written exactly `width` bytes, or has
/// written `max` rows. Returns the number of rows appended.
///
/// # Panics
/// If the memory for `max` rows and [`ROOM`] bytes cannot be reserved, as with `Vec::reserve`, or if `next`
/// panics. In both cases nothing is appended.
#[inline(always)]
pub fn append_rows(
    buf: &mut Vec<u8>,
    width: usize,
    max: usize,
    mut next: impl FnMut(&mut NewRow<'_>) -> bool,
) -> usize {
    let len = buf.len();
    buf.reserve(max.saturating_mul(width).saturating_add(ROOM));
    let start = buf.as_mut_ptr().wrapping_add(len);
    let mut count = 0;
    while count < max {
        // SAFETY: `reserve` has made room for `max * width + ROOM` bytes behind the first `len`; it would
        // have panicked on overflow. As `count < max`, the `ROOM` bytes from here on are inside that room.
        // They may be uninitialized. Nothing else refers to them: `buf` is borrowed mutably, `next` cannot
        // reach it, and the `NewRow` before this one is gone, as `next` must accept one of any lifetime.
        let place = unsafe { &mut *start.add(count * width).cast::<[MaybeUninit<u8>; ROOM]>() };
        let mut row = NewRow { place, len: 0 };
        if !next(&mut row) || usize::from(row.len) != width {
            break;
        }
        count += 1;
    }
    // SAFETY: in each of the first `count` rows, which follow each other from `len` on, the first
    // `width` bytes were written. `NewRow` has counted them: `next` cannot change its fields, and cannot put
    // another `NewRow` in its place, because the lifetimes of the two are different types behind `&mut`.
    unsafe { buf.set_len(len + count * width) };
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn appends_rows_until_one_is_refused() {
        for (max, given) in [(0, 5), (3, 5), (5, 3), (4, 4)] {
            let mut buf = vec![9];
            let mut rows = 0..given;
            let count = append_rows(&mut buf, 6, max, |row| {
                row.put([7; 4]);
                let next = rows.next();
                row.put([1, next.unwrap_or(0)]);
                next.is_some()
            });
            let expected = (0..given).take(max).flat_map(|n| [7, 7, 7, 7, 1, n]);
            assert_eq!(count, max.min(usize::from(given)));
            assert_eq!(&buf[1..], expected.collect::<Vec<u8>>());
        }
    }

    #[test]
    fn appends_no_row_of_another_length() {
        for words in [0, 1, 3, 31, 32, 33, 64, 100] {
            let mut buf = vec![9];
            let count = append_rows(&mut buf, 16, 2, |row| {
                (0..words).for_each(|_| row.put([1; 8]));
                true
            });
            assert_eq!((count, &*buf), (0, &[9][..]), "{words}");
        }
    }

    /// Also with Miri: bytes that were not written are never read.
    #[test]
    fn a_length_that_starts_again_counts_only_bytes_that_were_written() {
        let mut buf = Vec::new();
        let count = append_rows(&mut buf, 8, 2, |row| {
            row.put([1; 5]);
            (0..32).for_each(|_| row.put([2; 8]));
            row.put([4; 3]);
            true
        });
        assert_eq!((count, buf), (2, [1, 1, 1, 1, 1, 4, 4, 4].repeat(2)));
    }
}
