//! An arena for aligned copies of byte slices. The copies live as long as the arena.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Stores copies of byte slices at addresses that are multiples of 16, until the arena is dropped.
#[derive(Debug, Default)]
pub struct Arena {
    /// The copies, so that each is made once. The key is the offset at which the bytes end in the input, and their
    /// number.
    copies: Mutex<HashMap<(u64, usize), Copied>>,
}

type Copied = Box<[Block]>;

/// 16 bytes, aligned to 16. `u128` would not do: on some targets its alignment is 8.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Block([u8; 16]);

// SAFETY: the only field is an array of bytes, so all zeros are a valid value.
unsafe impl bytemuck::Zeroable for Block {}
// SAFETY: size and alignment are both 16, so there is no padding, and every byte pattern is a valid
// value of a byte array.
unsafe impl bytemuck::Pod for Block {}

impl Arena {
    /// The aligned copy of `bytes`, which end at `end` in the input that this arena is for.
    pub fn aligned_copy<'a>(&'a self, end: u64, bytes: &[u8]) -> &'a [u8] {
        let key = (end, bytes.len());
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let copy = copies.entry(key).or_insert_with(|| {
            let zeros = vec![Block([0; 16]); bytes.len().div_ceil(size_of::<Block>())];
            let mut copy = zeros.into_boxed_slice();
            for (to, from) in bytemuck::cast_slice_mut::<Block, u8>(&mut copy).iter_mut().zip(bytes)
            {
                *to = *from;
            }
            copy
        });
        let start = copy.as_ptr().cast::<u8>();
        // SAFETY: the box holds at least `bytes.len()` bytes, all initialised. It is neither written to, moved out of
        // the map nor dropped before the arena is, which the result keeps borrowed. If the map grows, it moves the box,
        // but not the content of the box. `start` was taken from the content's pointer.
        unsafe { std::slice::from_raw_parts(start, bytes.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_once_and_aligned() {
        let arena = Arena::default();
        let bytes: Vec<u8> = (0..200).collect();
        let copy_of = |at: usize| {
            let end = at + 100 - at % 7;
            arena.aligned_copy(end as u64, &bytes[at..end])
        };
        let copies: Vec<&[u8]> = (0..100).map(copy_of).collect();
        for (at, copy) in copies.iter().enumerate() {
            assert_eq!(*copy, &bytes[at..at + 100 - at % 7]);
            assert!((copy.as_ptr() as usize).is_multiple_of(16));
            assert_eq!(copy_of(at).as_ptr(), copy.as_ptr());
        }
        assert!(arena.aligned_copy(0, &[]).is_empty());
    }
}
