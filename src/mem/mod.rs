//! The unsafe code of the crate: copies between bytes and typed memory, and memory-mapped files. The
//! only `unsafe` block elsewhere is in [`Map::open`](crate::Map::open), which calls into this module.
//!
//! Every function here that is not marked `unsafe` is safe to call with any argument. Where the
//! standard library or bytemuck has a safe function, this module uses it. Most of the unsafe code
//! avoids zeroing memory that is overwritten immediately.
#![allow(unsafe_code)]

mod arena;
mod huge;
mod lend;
mod map;
mod raw_value;
pub mod shared_bytes;

use bytemuck::{AnyBitPattern, CheckedBitPattern, NoUninit, Pod};

pub use arena::Arena;
pub use huge::{LARGE, prefer_large_pages};
pub use lend::Lent;
pub use map::MappedFile;
pub use raw_value::{RawValue, boxed_raw_value, raw_value};

use crate::dtype::for_each_dtype;

/// The bytes of typed values, in the byte order of this machine.
#[inline]
pub fn bytes_of<A: NoUninit>(values: &[A]) -> &[u8] {
    bytemuck::must_cast_slice(values)
}

/// Changes the byte order of each word of `width` bytes by reversing its bytes. Bytes at the end that
/// do not fill a word stay as they are.
pub fn swap_words(bytes: &mut [u8], width: usize) {
    if width > 1 {
        for word in bytes.chunks_exact_mut(width) {
            word.reverse();
        }
    }
}

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

/// Converts UTF-8 bytes to a string slice. For up to 16 bytes of ASCII, such as most field names, the
/// check is inlined.
#[inline(always)]
pub fn text(bytes: &[u8]) -> Result<&str, std::str::Utf8Error> {
    if bytes.len() <= 16 && short_is_ascii(bytes) {
        // SAFETY: every byte is below 0x80, and any sequence of such bytes is valid UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes)
}

/// Whether all of these bytes are below 0x80. For at most 16 bytes: of a longer slice it only checks
/// the first 8 and the last 8.
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

/// The Rust types that tensor elements can have: plain values without lifetimes.
///
/// # Safety
/// The type must not contain a lifetime parameter.
pub unsafe trait Scalar: NoUninit + CheckedBitPattern<Bits: Pod> {}

macro_rules! scalars {
    (
        {}
        typed { $($(#[$doc:meta])* $variant:ident: $type:ty { $($row:tt)* })* }
        untyped $others:tt
    ) => {$(
        // SAFETY: the table of dtypes lists only number types, `bool`, and complex numbers of floats.
        // None of them has a lifetime.
        unsafe impl Scalar for $type {}
    )*};
}

for_each_dtype!(scalars {});

/// Returns the vector as a `T` if `T` is `Vec<A>`. Otherwise returns the vector in `Err`.
pub fn vec_as<A: Scalar, T>(values: Vec<A>) -> Result<T, Vec<A>> {
    if typeid::of::<T>() != std::any::TypeId::of::<Vec<A>>() {
        return Err(values);
    }
    let values = std::mem::ManuallyDrop::new(values);
    // SAFETY: `typeid::of` ignores lifetimes, so `T` and `Vec<A>` are the same type except for
    // lifetimes. A `Scalar` has no lifetimes, so `Vec<A>` has none, and `T` is `Vec<A>`. This moves
    // the vector: the original is not dropped.
    Ok(unsafe { std::mem::transmute_copy::<Vec<A>, T>(&values) })
}

/// Conversions to types for which every byte pattern is a valid value.
pub mod plain {
    use super::AnyBitPattern;

    /// Copies `bytes` into a vector of values. `bytes` may have any alignment. Returns `None` if
    /// the length is not a multiple of the size of `A`.
    #[inline]
    pub fn copied<A: AnyBitPattern>(bytes: &[u8]) -> Option<Vec<A>> {
        const { assert!(size_of::<A>() != 0) };
        if !bytes.len().is_multiple_of(size_of::<A>()) {
            return None;
        }
        let count = bytes.len() / size_of::<A>();
        let mut values: Vec<A> = Vec::with_capacity(count);
        // SAFETY: the allocation has room for at least `count` values of `A`, which take
        // `bytes.len()` bytes. It is new, so it does not overlap `bytes`. The copy goes byte by
        // byte, so alignment does not matter. `A: AnyBitPattern` says that every byte pattern is a
        // valid value of `A`, so the first `count` values are initialised when the length is set.
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

/// Conversions to types for which some byte patterns are invalid, such as `bool`.
pub mod checked {
    use bytemuck::CheckedBitPattern;

    use super::plain;

    /// Like [`plain::copied`], but also returns `None` if a byte pattern is not a valid value.
    #[inline]
    pub fn copied<A: CheckedBitPattern>(bytes: &[u8]) -> Option<Vec<A>> {
        values(plain::copied(bytes)?).ok()
    }

    /// Borrows `bytes` as a slice of values, without a copy. Returns `None` if the length is not a
    /// multiple of the size of `A`, if the address is not aligned for `A`, or if a byte pattern is
    /// not a valid value.
    #[inline]
    pub fn viewed<A: CheckedBitPattern>(bytes: &[u8]) -> Option<&[A]> {
        bytemuck::checked::try_cast_slice(bytes).ok()
    }

    /// Converts bit patterns to values in place. Returns the bit patterns in `Err` if one of them is
    /// not a valid value.
    #[inline]
    pub fn values<A: CheckedBitPattern>(bits: Vec<A::Bits>) -> Result<Vec<A>, Vec<A::Bits>> {
        if !bits.iter().all(A::is_valid_bit_pattern) {
            return Err(bits);
        }
        const { assert!(size_of::<A>() == size_of::<A::Bits>()) };
        const { assert!(align_of::<A>() == align_of::<A::Bits>()) };
        let mut bits = std::mem::ManuallyDrop::new(bits);
        let (start, len, capacity) = (bits.as_mut_ptr(), bits.len(), bits.capacity());
        // SAFETY: pointer, length and capacity come from a vector that is not dropped. Its elements
        // keep their size and alignment. The first `len` of them were checked to be valid values of
        // `A`.
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
