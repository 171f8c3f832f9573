//! The unsafe code of the crate, but for one call of it in [`Map::open`](crate::Map::open): copies
//! between bytes and typed memory, and mapped files.
//!
//! Everything here is safe to call with any argument. What the standard library or bytemuck
//! offers safely is used from there; unsafe is only what would otherwise zero memory that is
//! written over at once.
#![allow(unsafe_code)]

mod arena;
mod huge;
mod lend;
mod map;
mod raw_value;

use bytemuck::{AnyBitPattern, CheckedBitPattern, NoUninit, Pod};

pub use arena::Arena;
pub use huge::{LARGE, prefer_large_pages};
pub use lend::Lent;
pub use map::MappedFile;
pub use raw_value::{RawValue, boxed_raw_value, raw_value};

use crate::dtype::for_each_dtype;

/// The bytes of typed values, as they lie in memory.
#[inline]
pub fn bytes_of<A: NoUninit>(values: &[A]) -> &[u8] {
    bytemuck::must_cast_slice(values)
}

/// Reverses the bytes of each `width`-byte word: from one byte order to the other. Trailing bytes
/// that fill no word stay.
pub fn swap_words(bytes: &mut [u8], width: usize) {
    if width > 1 {
        for word in bytes.chunks_exact_mut(width) {
            word.reverse();
        }
    }
}

/// Appends bytes to a vector if they fit its capacity; if not, does nothing and says so.
///
/// Short slices, such as field names, are copied without a call; where their length is known when
/// this is compiled, by one or two moves.
#[inline(always)]
#[must_use]
pub fn append<const N: usize>(buf: &mut Vec<u8>, head: [u8; N], tail: &[u8]) -> bool {
    let (len, spare) = (buf.len(), buf.capacity() - buf.len());
    // `tail` is at most `isize::MAX` long and `N` an array in memory: no overflow.
    if spare < N + tail.len() {
        return false;
    }
    // SAFETY: from `len` on, the allocation has at least `N + tail.len()` bytes, which belong to
    // nobody else, as `buf` is borrowed mutably and its spare capacity is no part of any slice;
    // all of them are written before the length covers them.
    unsafe {
        let end = buf.as_mut_ptr().add(len);
        end.cast::<[u8; N]>().write_unaligned(head);
        copy_short(tail, end.add(N));
        buf.set_len(len + N + tail.len());
    }
    true
}

/// Appends words as long as `next` gives them, at most `max`; how many it were.
///
/// # Panics
/// Where memory runs out, as `Vec` does, and where `next` panics; then nothing is appended.
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
        // SAFETY: `max * N` bytes were reserved behind `len` without overflow, or `reserve` would
        // have panicked, and `count < max`: so this word lies in the allocation, which nothing
        // else refers to, as `buf` is borrowed mutably and `next` cannot reach it.
        unsafe { end.add(count * N).cast::<[u8; N]>().write_unaligned(word) };
        count += 1;
    }
    // SAFETY: the first `count` words behind `len` were written.
    unsafe { buf.set_len(len + count * N) };
    count
}

/// Copies a slice, in moves that may overlap where it is short.
///
/// # Safety
/// `to` must be valid for writes of `from.len()` bytes and not overlap `from`.
#[inline(always)]
unsafe fn copy_short(from: &[u8], to: *mut u8) {
    let (start, len) = (from.as_ptr(), from.len());
    // SAFETY: each arm reads and writes within the first `len` bytes of either side, as the width
    // of its moves is at most `len`; the caller vouches for both sides. Unaligned access is used.
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

/// The text that bytes are; the check is inlined for the short ASCII of field names.
#[inline(always)]
pub fn text(bytes: &[u8]) -> Result<&str, std::str::Utf8Error> {
    if bytes.len() <= 16 && short_is_ascii(bytes) {
        // SAFETY: every byte is below 0x80, and a sequence of such bytes is UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes)
}

/// Whether at most 16 bytes are all below 0x80.
#[inline(always)]
fn short_is_ascii(bytes: &[u8]) -> bool {
    let high = match bytes.len() {
        8.. => match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => u64::from_ne_bytes(*first) | u64::from_ne_bytes(*last),
            _ => u64::MAX,
        },
        4..8 => match (bytes.first_chunk(), bytes.last_chunk()) {
            (Some(first), Some(last)) => {
                (u32::from_ne_bytes(*first) | u32::from_ne_bytes(*last)).into()
            }
            _ => u64::MAX,
        },
        _ => bytes.iter().fold(0, |all, &byte| all | u64::from(byte)),
    };
    high & 0x8080_8080_8080_8080 == 0
}

/// The types of elements: plain values without lifetimes.
///
/// # Safety
/// No lifetime may be part of the type.
pub unsafe trait Scalar: NoUninit + CheckedBitPattern<Bits: Pod> {}

macro_rules! scalars {
    (
        {}
        typed { $($(#[$doc:meta])* $variant:ident: $type:ty { $($row:tt)* })* }
        untyped $others:tt
    ) => {$(
        // SAFETY: the table of dtypes names primitive types and complex numbers of such.
        unsafe impl Scalar for $type {}
    )*};
}

for_each_dtype!(scalars {});

/// The vector as a `T`, if that is what it is; else the vector.
pub fn vec_as<A: Scalar, T>(values: Vec<A>) -> Result<T, Vec<A>> {
    if typeid::of::<T>() != std::any::TypeId::of::<Vec<A>>() {
        return Err(values);
    }
    let values = std::mem::ManuallyDrop::new(values);
    // SAFETY: the types are equal but for lifetimes, and `Vec<A>` has none, as a `Scalar` has
    // none: so `T` is `Vec<A>`. The vector is moved, as the original is
    // not dropped.
    Ok(unsafe { std::mem::transmute_copy::<Vec<A>, T>(&values) })
}

/// Types for which every byte pattern is a value.
pub mod plain {
    use super::AnyBitPattern;

    /// A copy of the values that lie in `bytes`, which need not be aligned; `None` where the
    /// length is no multiple of the size of `A`.
    #[inline]
    pub fn copied<A: AnyBitPattern>(bytes: &[u8]) -> Option<Vec<A>> {
        const { assert!(size_of::<A>() != 0) };
        if !bytes.len().is_multiple_of(size_of::<A>()) {
            return None;
        }
        let count = bytes.len() / size_of::<A>();
        let mut values: Vec<A> = Vec::with_capacity(count);
        // SAFETY: the allocation holds at least `count` values of `A`, which is `bytes.len()`
        // bytes, and is new, so it does not overlap `bytes`; bytes have no alignment. `A:
        // AnyBitPattern` makes every byte pattern a value of `A`, so the first `count` values are
        // initialised when the length is set.
        unsafe {
            std::ptr::copy_nonoverlapping(
                bytes.as_ptr(),
                values.as_mut_ptr().cast::<u8>(),
                bytes.len(),
            );
            values.set_len(count);
        }
        Some(values)
    }
}

/// Types for which some byte patterns may be no value, as for `bool`.
pub mod checked {
    use bytemuck::CheckedBitPattern;

    use super::plain;

    /// As [`plain::copied`], and `None` where a byte pattern is no value.
    #[inline]
    pub fn copied<A: CheckedBitPattern>(bytes: &[u8]) -> Option<Vec<A>> {
        values(plain::copied(bytes)?).ok()
    }

    /// The values that lie in `bytes`; `None` where the length or the address does not fit, or a byte
    /// pattern is no value.
    #[inline]
    pub fn viewed<A: CheckedBitPattern>(bytes: &[u8]) -> Option<&[A]> {
        bytemuck::checked::try_cast_slice(bytes).ok()
    }

    /// The values that bit patterns are, if each is one; else the bit patterns.
    #[inline]
    pub fn values<A: CheckedBitPattern>(bits: Vec<A::Bits>) -> Result<Vec<A>, Vec<A::Bits>> {
        if !bits.iter().all(A::is_valid_bit_pattern) {
            return Err(bits);
        }
        const { assert!(size_of::<A>() == size_of::<A::Bits>()) };
        const { assert!(align_of::<A>() == align_of::<A::Bits>()) };
        let mut bits = std::mem::ManuallyDrop::new(bits);
        let (start, len, capacity) = (bits.as_mut_ptr(), bits.len(), bits.capacity());
        // SAFETY: the allocation is a vector's, which is not dropped, and size and alignment of its
        // elements stay the same. The first `len` of them were checked to be values of `A`.
        Ok(unsafe { Vec::from_raw_parts(start.cast::<A>(), len, capacity) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_from_any_address() {
        let bytes: Vec<u8> = (0..33).collect();
        for start in 0..8 {
            let part = &bytes[start..start + 24];
            let copy: Vec<u64> = plain::copied(part).unwrap();
            assert_eq!(bytes_of(&copy), part);
        }
        assert_eq!(plain::copied::<u64>(&bytes[..7]), None);
        assert_eq!(plain::copied::<f32>(&[]), Some(vec![]));
    }

    #[test]
    fn views_only_what_lies_aligned() {
        let words = [1u64, 2, 3];
        let bytes = bytes_of(&words);
        assert_eq!(checked::viewed::<u64>(bytes), Some(&words[..]));
        assert_eq!(checked::viewed::<u64>(&bytes[1..9]), None);
        assert_eq!(checked::viewed::<u16>(&bytes[1..3]), None);
        assert_eq!(checked::viewed::<u8>(&bytes[1..3]), Some(&bytes[1..3]));
    }

    #[test]
    fn believes_no_other_bools() {
        assert_eq!(checked::copied(&[0, 1, 1]), Some(vec![false, true, true]));
        assert_eq!(checked::copied::<bool>(&[0, 2]), None);
        assert_eq!(checked::viewed::<bool>(&[255]), None);
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
    fn a_vector_is_only_what_it_is() {
        assert_eq!(vec_as::<f32, Vec<f32>>(vec![1.0, 2.0]), Ok(vec![1.0, 2.0]));
        assert_eq!(vec_as::<f32, Vec<u32>>(vec![1.0]), Err(vec![1.0]));
        assert_eq!(vec_as::<f32, &str>(vec![1.0]), Err(vec![1.0]));
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

    #[test]
    fn text_is_utf8_at_every_length() {
        for len in 0..40 {
            let mut bytes = vec![b'a'; len];
            assert_eq!(text(&bytes).unwrap().len(), len);
            for at in 0..len {
                bytes[at] = 0xff;
                assert!(text(&bytes).is_err(), "{len} {at}");
                bytes[at] = b'a';
            }
        }
        assert_eq!(text("grüße".as_bytes()), Ok("grüße"));
    }

    #[test]
    fn raw_values_are_their_bytes() {
        let bytes = [0x82, 1, 2];
        assert_eq!(raw_value(&bytes).as_bytes(), bytes);
        assert_eq!(boxed_raw_value(bytes.into()).as_bytes(), bytes);
    }

    #[test]
    fn swaps_whole_words() {
        let mut bytes = [1, 2, 3, 4, 5];
        swap_words(&mut bytes, 2);
        assert_eq!(bytes, [2, 1, 4, 3, 5]);
        swap_words(&mut bytes, 1);
        assert_eq!(bytes, [2, 1, 4, 3, 5]);
    }
}
