//! The unsafe code of the crate: copies between bytes and typed memory, and memory-mapped files. The
//! only `unsafe` block elsewhere is in [`Map::open`](crate::Map::open), which calls into this module.
//!
//! Every function here that is not marked `unsafe` is safe to call with any argument. Where the
//! standard library or bytemuck has a safe function, this module uses it. Most of the unsafe code
//! avoids zeroing memory that is overwritten immediately.
#![allow(unsafe_code)]

mod any_vec;
mod append;
mod arena;
mod huge;
mod lend;
mod map;
mod prefetch;
mod raw_value;
pub mod shared_bytes;
mod stream;
mod window;

use bytemuck::{AnyBitPattern, CheckedBitPattern, NoUninit, Pod};

pub use any_vec::AnyVec;
pub use append::{
    MAX_SHORT, Short, append, append_first, append_run, append_short, append_shorts, append_words,
    take_vec,
};
pub use arena::Arena;
pub use huge::{LARGE, prefer_large_pages};
pub use lend::{Lent, LentRef};
pub use map::MappedFile;
pub use prefetch::prefetch;
pub use raw_value::{RawValue, boxed_raw_value, raw_value};
pub use stream::append_block;
pub use window::{Buffered, Window};

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

/// Converts UTF-8 bytes to a string slice. For up to 256 bytes of ASCII, such as field names and most
/// short texts, the check is inlined.
#[inline]
pub fn text(bytes: &[u8]) -> Result<&str, std::str::Utf8Error> {
    let is_ascii = match bytes.len() {
        0..=16 => short_is_ascii(bytes),
        17..=256 => words_are_ascii(bytes),
        _ => false,
    };
    if is_ascii {
        // SAFETY: every byte is below 0x80, and any sequence of such bytes is valid UTF-8.
        return Ok(unsafe { std::str::from_utf8_unchecked(bytes) });
    }
    std::str::from_utf8(bytes)
}

/// Whether all of these bytes are below 0x80. For at least 8 bytes: the last 8 bytes are checked as
/// one word, which may overlap the word before it.
#[inline]
fn words_are_ascii(bytes: &[u8]) -> bool {
    let (words, _) = bytes.as_chunks::<8>();
    let Some(last) = bytes.last_chunk::<8>() else { return false };
    let any = |all: u64, word: &[u8; 8]| all | u64::from_ne_bytes(*word);
    words.iter().fold(u64::from_ne_bytes(*last), any) & 0x8080_8080_8080_8080 == 0
}

/// Whether all of these bytes are below 0x80. For at most 16 bytes: of a longer slice it only checks
/// the first 8 and the last 8.
#[inline]
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

/// Conversions to types for which every byte pattern is a valid value.
pub mod plain {
    use super::{AnyBitPattern, LARGE, prefer_large_pages};

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
        if bytes.len() >= LARGE {
            prefer_large_pages(values.spare_capacity_mut());
        }
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
    fn text_is_utf8_at_every_length() {
        for len in (0..40).chain([63, 64, 65, 255, 256, 257]) {
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
