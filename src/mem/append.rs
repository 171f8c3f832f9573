//! Appends small items to a vector: one check of the capacity for a whole item, and few moves.

use std::hint::black_box;
use std::mem::ManuallyDrop;

/// Appends `head` and then `tail` to a vector and returns `true`. If they do not fit into the
/// vector's capacity, it changes nothing and returns `false`.
///
/// It copies short slices, such as field names, without calling `memcpy`. If the compiler knows the
/// length of the slice, the copy takes one or two move instructions.
#[inline]
#[must_use]
pub fn append<const N: usize>(buf: &mut Vec<u8>, head: [u8; N], tail: &[u8]) -> bool {
    let (len, spare) = (buf.len(), buf.capacity() - buf.len());
    // No overflow: both are lengths of objects in memory, so each is at most `isize::MAX`.
    if spare < N + tail.len() {
        return false;
    }
    // SAFETY: behind the first `len` bytes, the allocation has room for at least `N + tail.len()`
    // bytes. No slice covers that spare capacity, and `buf` is borrowed mutably, so nobody else uses
    // it. All of these bytes are written before the length is changed to include them.
    unsafe {
        let end = buf.as_mut_ptr().add(len);
        end.cast::<[u8; N]>().write_unaligned(head);
        copy_short(tail, end.add(N));
        buf.set_len(len + N + tail.len());
    }
    true
}

/// An item of one byte and up to eight more, such as a number. All of it is in registers.
#[derive(Clone, Copy)]
pub struct Short {
    initial: u8,
    /// The bytes behind the first one, and how many of them are part of the item: at most 8.
    word: [u8; 8],
    len: usize,
}

impl Short {
    #[inline]
    pub fn new<const N: usize>(initial: u8, bytes: [u8; N]) -> Self {
        let mut word = [0; 8];
        word[..N].copy_from_slice(&bytes);
        Self { initial, word, len: N }
    }

    /// The head of an item with its argument in the fewest bytes (RFC 8949, section 4.1). `major` is the major type, shifted
    /// into the three upper bits.
    #[inline]
    pub fn head(major: u8, arg: u64) -> Self {
        if arg < 24 {
            #[allow(clippy::cast_possible_truncation)]
            return Self { initial: major | arg as u8, word: [0; 8], len: 0 };
        }
        // The additional information 24 to 27 means 1, 2, 4 or 8 bytes.
        let class = u8::from(arg > 0xff) + u8::from(arg > 0xffff) + u8::from(arg > 0xffff_ffff);
        let len = 1 << class;
        // The argument's bytes move to the front of the word.
        let word = (arg << (64 - 8 * len)).to_be_bytes();
        Self { initial: major | (0x18 + class), word, len }
    }

    /// The item, with zeros behind it, and its length.
    pub fn bytes(self) -> ([u8; MAX_SHORT], usize) {
        let mut bytes = [0; MAX_SHORT];
        bytes[0] = self.initial;
        bytes[1..].copy_from_slice(&self.word);
        (bytes, 1 + self.len)
    }

    /// Writes the item, and returns its length.
    ///
    /// # Safety
    /// `end` must be valid for writes of [`MAX_SHORT`] bytes. Of these, only those up to the returned length are part of the
    /// item.
    #[inline]
    unsafe fn write(self, end: *mut u8) -> usize {
        // SAFETY: one byte and a word of eight are the `MAX_SHORT` bytes that the caller vouches for. The write of the word
        // needs no alignment.
        unsafe {
            end.write(self.initial);
            end.add(1).cast::<[u8; 8]>().write_unaligned(self.word);
        }
        1 + self.len
    }
}

/// The most bytes that a [`Short`] takes.
pub const MAX_SHORT: usize = 9;

/// Like [`append`], with a short item after the slice, such as the number after a field name. Also returns `false` if the
/// capacity has room for the item but not for the longest one.
#[inline]
#[must_use]
pub fn append_short<const N: usize>(
    buf: &mut Vec<u8>,
    head: [u8; N],
    middle: &[u8],
    short: Short,
) -> bool {
    let (len, spare) = (buf.len(), buf.capacity() - buf.len());
    if spare < N + middle.len() + MAX_SHORT {
        return false;
    }
    // SAFETY: as in `append`. `write` gets room for `MAX_SHORT` bytes, and returns how many of them are written: all of them.
    unsafe {
        let end = buf.as_mut_ptr().add(len);
        end.cast::<[u8; N]>().write_unaligned(head);
        copy_short(middle, end.add(N));
        let written = short.write(end.add(N + middle.len()));
        buf.set_len(len + N + middle.len() + written);
    }
    true
}

/// Appends the first `len` bytes of a word and returns `true`. Returns `false` and changes nothing if the vector's
/// capacity has no room for the whole word, or `len` is not within it.
#[inline]
#[must_use]
pub fn append_first<const N: usize>(buf: &mut Vec<u8>, word: [u8; N], len: usize) -> bool {
    let (filled, spare) = (buf.len(), buf.capacity() - buf.len());
    if spare < N || len > N {
        return false;
    }
    // SAFETY: as in `append`. There is room for `N` bytes, all of which are written, and `len` is at most `N`.
    unsafe {
        buf.as_mut_ptr().add(filled).cast::<[u8; N]>().write_unaligned(word);
        buf.set_len(filled + len);
    }
    true
}

/// Appends the words that `next` returns, until it returns `None` or `max` words were appended.
/// Returns the number of words appended.
///
/// # Panics
/// If the memory for `max` words cannot be reserved, as with `Vec::reserve`, or if `next` panics. In
/// both cases nothing is appended.
// Always: 57 % of saving a vector of ids.
#[inline(always)]
pub fn append_words<const N: usize>(
    buf: &mut Vec<u8>,
    max: usize,
    mut next: impl FnMut() -> Option<[u8; N]>,
) -> usize {
    let len = buf.len();
    buf.reserve(max.saturating_mul(N));
    let end = buf.as_mut_ptr().wrapping_add(len);
    let mut count = 0;
    while count < max
        && let Some(word) = next()
    {
        // SAFETY: `reserve` has made room for `max * N` bytes behind the first `len`; it would have
        // panicked on overflow. As `count < max`, this word is inside that room. Nothing else
        // refers to it: `buf` is borrowed mutably, and `next` cannot reach it.
        unsafe { end.add(count * N).cast::<[u8; N]>().write_unaligned(word) };
        count += 1;
    }
    // SAFETY: the loop has written the first `count` words behind `len`.
    unsafe { buf.set_len(len + count * N) };
    count
}

/// Like [`append_words`], with the byte `initial` before each word. Words that include the byte take a
/// third more instructions.
///
/// # Panics
/// Under the same conditions as [`append_words`].
#[inline]
pub fn append_run<const N: usize>(
    buf: &mut Vec<u8>,
    initial: u8,
    max: usize,
    mut next: impl FnMut() -> Option<[u8; N]>,
) -> usize {
    let len = buf.len();
    buf.reserve(max.saturating_mul(1 + N));
    let end = buf.as_mut_ptr().wrapping_add(len);
    let mut count = 0;
    while count < max
        && let Some(word) = next()
    {
        // SAFETY: as in `append_words`, with `1 + N` bytes for each word.
        unsafe {
            let end = end.add(count * (1 + N));
            end.write(initial);
            end.add(1).cast::<[u8; N]>().write_unaligned(word);
        }
        count += 1;
    }
    // SAFETY: the loop has written the first `count` pieces of `1 + N` bytes behind `len`.
    unsafe { buf.set_len(len + count * (1 + N)) };
    count
}

/// Appends the items that `next` returns, until it returns `None` or `max` items were appended. Returns the number of items
/// appended.
///
/// # Panics
/// If the memory for `max` items cannot be reserved, as with `Vec::reserve`, or if `next` panics. In both cases nothing is
/// appended.
#[inline]
pub fn append_shorts(
    buf: &mut Vec<u8>,
    max: usize,
    mut next: impl FnMut() -> Option<Short>,
) -> usize {
    let len = buf.len();
    buf.reserve(max.saturating_mul(MAX_SHORT));
    let start = buf.as_mut_ptr().wrapping_add(len);
    let (mut count, mut written) = (0, 0);
    while count < max
        && let Some(short) = next()
    {
        // SAFETY: as in `append_words`: there is room for `max * MAX_SHORT` bytes, of which the `count` items before this one
        // have taken at most `count * MAX_SHORT`.
        written += unsafe { short.write(start.add(written)) };
        count += 1;
    }
    // SAFETY: the loop has written the first `written` bytes behind `len`.
    unsafe { buf.set_len(len + written) };
    count
}

/// Takes the content of a vector to which short items were appended, or will be.
///
/// Each part goes through [`black_box`]. Otherwise two of them are loaded as one word of 16 bytes, and a processor waits until
/// both are in the cache. For a message of three fields, that took as long as writing it.
#[inline]
pub fn take_vec(buf: &mut Vec<u8>) -> Vec<u8> {
    let mut taken = ManuallyDrop::new(std::mem::take(buf));
    let (len, capacity) = (black_box(taken.len()), black_box(taken.capacity()));
    // SAFETY: these are the parts of a vector that nobody else has, and that is not dropped.
    unsafe { Vec::from_raw_parts(taken.as_mut_ptr(), len, capacity) }
}

/// Copies a slice. For up to 32 bytes it uses two moves, which may overlap: one for the start of the
/// slice and one for its end.
///
/// # Safety
/// `to` must be valid for writes of `from.len()` bytes and not overlap `from`.
#[inline]
unsafe fn copy_short(from: &[u8], to: *mut u8) {
    let (start, len) = (from.as_ptr(), from.len());
    // SAFETY: each arm only reads and writes the first `len` bytes of `from` and `to`, because the
    // width of its moves is at most `len`. The caller guarantees that these bytes are valid. The
    // moves allow any alignment.
    unsafe {
        macro_rules! two {
            ($word:ty) => {{
                let behind = len - size_of::<$word>();
                let first = start.cast::<$word>().read_unaligned();
                let last = start.add(behind).cast::<$word>().read_unaligned();
                to.cast::<$word>().write_unaligned(first);
                to.add(behind).cast::<$word>().write_unaligned(last);
            }};
        }
        match len {
            0 => {}
            1 => *to = *start,
            2..4 => two!(u16),
            4..8 => two!(u32),
            8..=16 => two!(u64),
            17..=32 => two!(u128),
            _ => std::ptr::copy_nonoverlapping(start, to, len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bytes_of_a_word_are_appended() {
        let mut buf = Vec::with_capacity(10);
        assert!(append_first(&mut buf, [1, 2, 3, 4], 3));
        assert!(append_first(&mut buf, [5, 6, 7, 8], 0));
        assert!(append_first(&mut buf, [5, 6, 7, 8], 4));
        assert!(!append_first(&mut buf, [9, 9, 9, 9], 1));
        assert!(!append_first(&mut buf, [9], 2));
        assert!(append_first(&mut buf, [9, 0], 1));
        assert_eq!(buf, [1, 2, 3, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn appends_words_until_they_end() {
        for (max, given) in [(0, 5), (3, 5), (5, 3), (4, 4)] {
            let mut buf = vec![9];
            let mut words = (0..given).map(u32::to_le_bytes);
            let count = append_words(&mut buf, max, || words.next());
            let expected: Vec<u8> = (0..given).take(max).flat_map(u32::to_le_bytes).collect();
            assert_eq!((count, &buf[1..]), (max.min(given as usize), &expected[..]));
        }
    }

    #[test]
    fn appends_what_fits() {
        let bytes: Vec<u8> = (0..80).collect();
        for len in 0..bytes.len() {
            let mut buf = Vec::with_capacity(len + 3);
            buf.push(9);
            assert!(append(&mut buf, [7, 8], &bytes[..len]));
            assert_eq!((&buf[..3], &buf[3..]), (&[9, 7, 8][..], &bytes[..len]));
            let (before, spare) = (buf.clone(), buf.capacity() - buf.len());
            assert!(!append(&mut buf, [], &vec![0; spare + 1]));
            assert_eq!(buf, before);
        }
    }

    const ARGUMENTS: [(u64, &[u8]); 10] = [
        (0, &[0x20]),
        (23, &[0x37]),
        (24, &[0x38, 24]),
        (255, &[0x38, 255]),
        (256, &[0x39, 1, 0]),
        (0xffff, &[0x39, 255, 255]),
        (0x1_0000, &[0x3a, 0, 1, 0, 0]),
        (0xffff_ffff, &[0x3a, 255, 255, 255, 255]),
        (0x1_0000_0000, &[0x3b, 0, 0, 0, 1, 0, 0, 0, 0]),
        (u64::MAX, &[0x3b, 255, 255, 255, 255, 255, 255, 255, 255]),
    ];

    /// A vector that is full except for `spare` bytes.
    fn with_spare(spare: usize) -> Vec<u8> {
        let mut buf = Vec::with_capacity(spare + 1);
        let capacity = buf.capacity();
        buf.resize(capacity - spare, 9);
        buf
    }

    #[test]
    fn heads_are_as_short_as_possible() {
        for (arg, expected) in ARGUMENTS {
            let head = Short::head(0x20, arg);
            let mut buf = with_spare(3 + MAX_SHORT);
            let before = buf.len();
            assert!(append_short(&mut buf, [1], &[2, 3], head));
            assert_eq!((&buf[before..before + 3], &buf[before + 3..]), (&[1, 2, 3][..], expected));
            let (bytes, len) = head.bytes();
            assert_eq!(&bytes[..len], expected);
            let mut full = with_spare(2 + MAX_SHORT);
            let len = full.len();
            assert!(!append_short(&mut full, [1], &[2, 3], head));
            assert_eq!(full.len(), len);
        }
        let mut buf = Vec::new();
        let mut heads = ARGUMENTS.iter().map(|(arg, _)| Short::head(0x20, *arg));
        assert_eq!(append_shorts(&mut buf, 20, || heads.next()), ARGUMENTS.len());
        assert_eq!(buf, ARGUMENTS.map(|(_, head)| head).concat());
        let mut shorts = [[1, 2], [3, 4], [5, 6]].map(|bytes| Short::new(7, bytes)).into_iter();
        buf.clear();
        assert_eq!(append_shorts(&mut buf, 2, || shorts.next()), 2);
        assert_eq!(append_shorts(&mut buf, 2, || shorts.next()), 1);
        assert_eq!(buf, [7, 1, 2, 7, 3, 4, 7, 5, 6]);
    }

    #[test]
    fn runs_have_a_byte_before_each_word() {
        let mut buf = vec![9];
        let mut words = [[1, 2], [3, 4], [5, 6]].into_iter();
        assert_eq!(append_run(&mut buf, 7, 2, || words.next()), 2);
        assert_eq!(append_run(&mut buf, 8, 2, || words.next()), 1);
        assert_eq!(buf, [9, 7, 1, 2, 7, 3, 4, 8, 5, 6]);
    }
}
