//! Aligned copies that live as long as their owner.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Copies of bytes in memory aligned to 16, kept until the arena is dropped.
#[derive(Debug, Default)]
pub struct Arena {
    /// By where in the input the bytes end, and their number, so that they are copied once.
    copies: Mutex<HashMap<(u64, usize), Copied>>,
}

type Copied = Box<[Block]>;

/// A `u128` is not aligned to its size on every target.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Block([u8; 16]);

// SAFETY: an array of bytes as wide as its alignment: zeros are a value of it.
unsafe impl bytemuck::Zeroable for Block {}
// SAFETY: as above, so that it has no padding, and every byte pattern is a value.
unsafe impl bytemuck::Pod for Block {}

impl Arena {
    /// The aligned copy of `bytes`, which end at `end` in the input that this arena is for.
    pub fn settle<'a>(&'a self, end: u64, bytes: &[u8]) -> &'a [u8] {
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
        // SAFETY: the box holds at least `bytes.len()` bytes, all initialised. It is neither written
        // to, moved out of the map nor dropped before the arena is, which the result keeps borrowed; that
        // the map moves the box when it grows leaves its content where it is, and `start` was taken
        // from the content's pointer.
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
        let settle = |at: usize| {
            let end = at + 100 - at % 7;
            arena.settle(end as u64, &bytes[at..end])
        };
        let copies: Vec<&[u8]> = (0..100).map(settle).collect();
        for (at, copy) in copies.iter().enumerate() {
            assert_eq!(*copy, &bytes[at..at + 100 - at % 7]);
            assert!((copy.as_ptr() as usize).is_multiple_of(16));
            assert_eq!(settle(at).as_ptr(), copy.as_ptr());
        }
        assert!(arena.settle(0, &[]).is_empty());
    }
}
