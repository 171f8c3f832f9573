//! Appends small items to a vector: one check of the capacity for a whole item, and few moves.

/// Appends `head` and then `tail` to a vector and returns `true`. If they do not fit into the
/// vector's capacity, it changes nothing and returns `false`.
///
/// It copies short slices, such as field names, without calling `memcpy`. If the compiler knows the
/// length of the slice, the copy takes one or two move instructions.
#[inline(always)]
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

/// Like [`append`], with a word of `M` bytes after the slice, such as the number after a field name.
#[inline(always)]
#[must_use]
pub fn append_word<const N: usize, const M: usize>(
    buf: &mut Vec<u8>,
    head: [u8; N],
    middle: &[u8],
    initial: u8,
    word: [u8; M],
) -> bool {
    let (len, spare) = (buf.len(), buf.capacity() - buf.len());
    if spare < N + middle.len() + 1 + M {
        return false;
    }
    // SAFETY: as in `append`. The room that was checked is what the four writes take together.
    unsafe {
        let end = buf.as_mut_ptr().add(len);
        end.cast::<[u8; N]>().write_unaligned(head);
        copy_short(middle, end.add(N));
        let end = end.add(N + middle.len());
        end.write(initial);
        end.add(1).cast::<[u8; M]>().write_unaligned(word);
        buf.set_len(len + N + middle.len() + 1 + M);
    }
    true
}

/// Appends the first `len` bytes of a word and returns `true`. Returns `false` and changes nothing if the vector's
/// capacity has no room for the whole word, or `len` is not within it.
#[inline(always)]
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

/// The most bytes that the head of an item takes.
pub const MAX_HEAD: usize = 9;

/// Like [`append`], with the head of an item after the slice: see [`write_head`]. Also returns `false`
/// if the capacity has room for the head but not for the longest one.
#[inline(always)]
#[must_use]
pub fn append_head<const N: usize>(
    buf: &mut Vec<u8>,
    head: [u8; N],
    middle: &[u8],
    major: u8,
    arg: u64,
) -> bool {
    let (len, spare) = (buf.len(), buf.capacity() - buf.len());
    if spare < N + middle.len() + MAX_HEAD {
        return false;
    }
    // SAFETY: as in `append`. `write_head` gets room for `MAX_HEAD` bytes, and returns how many of them
    // it has written.
    unsafe {
        let end = buf.as_mut_ptr().add(len);
        end.cast::<[u8; N]>().write_unaligned(head);
        copy_short(middle, end.add(N));
        let written = write_head(end.add(N + middle.len()), major, arg);
        buf.set_len(len + N + middle.len() + written);
    }
    true
}

/// The head of an item with its argument in the fewest bytes (RFC 8949, section 4.1), and its length.
/// `major` is the major type, shifted into the three upper bits. Bytes after the length are zero.
pub fn head_bytes(major: u8, arg: u64) -> ([u8; MAX_HEAD], usize) {
    let mut head = [0; MAX_HEAD];
    if arg < 24 {
        #[allow(clippy::cast_possible_truncation)]
        {
            head[0] = major | arg as u8;
        }
        return (head, 1);
    }
    // The additional information 24 to 27 means 1, 2, 4 or 8 bytes.
    let class = u8::from(arg > 0xff) + u8::from(arg > 0xffff) + u8::from(arg > 0xffff_ffff);
    let width = 1usize << class;
    head[0] = major | (0x18 + class);
    // The argument's bytes move to the front of the word.
    head[1..].copy_from_slice(&(arg << (64 - 8 * width)).to_be_bytes());
    (head, 1 + width)
}

/// Writes [`head_bytes`] to memory, and returns the length of the head. With `head_bytes` itself, a struct
/// of three fields takes a tenth more instructions.
///
/// # Safety
/// `end` must be valid for writes of [`MAX_HEAD`] bytes. Of these, only those up to the returned length
/// are part of the head.
#[inline(always)]
unsafe fn write_head(end: *mut u8, major: u8, arg: u64) -> usize {
    if arg < 24 {
        // SAFETY: this is the first of the bytes that the caller vouches for.
        #[allow(clippy::cast_possible_truncation)]
        unsafe {
            end.write(major | arg as u8);
        }
        return 1;
    }
    // The additional information 24 to 27 means 1, 2, 4 or 8 bytes.
    let class = u8::from(arg > 0xff) + u8::from(arg > 0xffff) + u8::from(arg > 0xffff_ffff);
    let width = 1usize << class;
    let shifted = arg << (64 - 8 * width);
    // SAFETY: one byte and a word of eight are the `MAX_HEAD` bytes that the caller vouches for. The
    // write of the word needs no alignment.
    unsafe {
        end.write(major | (0x18 + class));
        end.add(1).cast::<[u8; 8]>().write_unaligned(shifted.to_be_bytes());
    }
    1 + width
}

/// Appends the words that `next` returns, until it returns `None` or `max` words were appended.
/// Returns the number of words appended.
///
/// # Panics
/// If the memory for `max` words cannot be reserved, as with `Vec::reserve`, or if `next` panics. In
/// both cases nothing is appended.
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
#[inline(always)]
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

/// Appends the heads whose major type and argument `next` returns, until it returns `None` or `max`
/// heads were appended. Returns the number of heads appended. The major type is shifted into the three
/// upper bits.
///
/// # Panics
/// Under the same conditions as [`append_words`].
#[inline(always)]
pub fn append_heads(
    buf: &mut Vec<u8>,
    max: usize,
    mut next: impl FnMut() -> Option<(u8, u64)>,
) -> usize {
    let len = buf.len();
    buf.reserve(max.saturating_mul(MAX_HEAD));
    let start = buf.as_mut_ptr().wrapping_add(len);
    let (mut count, mut written) = (0, 0);
    while count < max
        && let Some((major, arg)) = next()
    {
        // SAFETY: as in `append_words`: there is room for `max * MAX_HEAD` bytes, of which the `count`
        // heads before this one have taken at most `count * MAX_HEAD`.
        written += unsafe { write_head(start.add(written), major, arg) };
        count += 1;
    }
    // SAFETY: the loop has written the first `written` bytes behind `len`.
    unsafe { buf.set_len(len + written) };
    count
}

/// Copies a slice. For up to 32 bytes it uses two moves, which may overlap: one for the start of the
/// slice and one for its end.
///
/// # Safety
/// `to` must be valid for writes of `from.len()` bytes and not overlap `from`.
#[inline(always)]
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
            let mut buf = with_spare(3 + MAX_HEAD);
            let before = buf.len();
            assert!(append_head(&mut buf, [1], &[2, 3], 0x20, arg));
            assert_eq!((&buf[before..before + 3], &buf[before + 3..]), (&[1, 2, 3][..], expected));
            let (head, len) = head_bytes(0x20, arg);
            assert_eq!(&head[..len], expected);
            let mut full = with_spare(2 + MAX_HEAD);
            let len = full.len();
            assert!(!append_head(&mut full, [1], &[2, 3], 0x20, arg));
            assert_eq!(full.len(), len);
        }
        let mut buf = Vec::new();
        let mut heads = ARGUMENTS.iter().map(|(arg, _)| (0x20, *arg));
        assert_eq!(append_heads(&mut buf, 20, || heads.next()), ARGUMENTS.len());
        assert_eq!(buf, ARGUMENTS.map(|(_, head)| head).concat());
        let mut heads = [(0, 1), (0, 2)].into_iter();
        assert_eq!(append_heads(&mut buf, 1, || heads.next()), 1);
        assert_eq!(heads.next(), Some((0, 2)));
    }

    #[test]
    fn words_follow_what_stands_before_them() {
        for spare in 0..12 {
            let mut buf = with_spare(spare);
            let before = buf.len();
            let fits = append_word(&mut buf, [1, 2], &[3, 4, 5], 6, [7, 8, 9, 10]);
            assert_eq!(fits, spare >= 10);
            let expected: &[u8] = if fits { &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10] } else { &[] };
            assert_eq!(&buf[before..], expected);
        }
        let mut buf = vec![9];
        let mut words = [[1, 2], [3, 4], [5, 6]].into_iter();
        assert_eq!(append_run(&mut buf, 7, 2, || words.next()), 2);
        assert_eq!(append_run(&mut buf, 8, 2, || words.next()), 1);
        assert_eq!(buf, [9, 7, 1, 2, 7, 3, 4, 8, 5, 6]);
    }
}
