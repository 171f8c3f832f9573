//! An arena for aligned copies of byte slices. The copies live as long as the arena.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Stores copies of byte slices at addresses that are multiples of 16, until the arena is dropped.
#[derive(Debug, Default)]
pub struct Arena {
    /// The copies, by the address and length of their source. A slice that is asked for twice is
    /// copied once.
    copies: Mutex<HashMap<(usize, usize), Copied>>,
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
    /// Returns a copy of `bytes` that is aligned to 16. `bytes` must not change while the arena
    /// lives: a later call with the same slice returns the same copy.
    pub fn aligned_copy<'a>(&'a self, bytes: &'a [u8]) -> &'a [u8] {
        let key = (bytes.as_ptr() as usize, bytes.len());
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
        // SAFETY: the box contains at least `bytes.len()` initialised bytes. Until the arena is
        // dropped, nobody writes to the box, takes it out of the map or drops it, and `'a` borrows
        // the arena. When the map grows, it moves the boxes but not their contents, and `start`
        // points to the contents.
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
        let copies: Vec<&[u8]> =
            (0..100).map(|at| arena.aligned_copy(&bytes[at..at + 100 - at % 7])).collect();
        for (at, copy) in copies.iter().enumerate() {
            assert_eq!(*copy, &bytes[at..at + 100 - at % 7]);
            assert!((copy.as_ptr() as usize).is_multiple_of(16));
            assert_eq!(arena.aligned_copy(&bytes[at..at + 100 - at % 7]).as_ptr(), copy.as_ptr());
        }
        assert!(arena.aligned_copy(&[]).is_empty());
    }
}
