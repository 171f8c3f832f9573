//! A vector whose type is only asked for when it is passed on.

use std::any::TypeId;
use std::mem::{ManuallyDrop, MaybeUninit};

use super::Scalar;

/// A `Vec` of plain values of some type. What fills it is compiled for each of these types, but not for each type of a user
/// that may be given it.
pub struct AnyVec {
    id: TypeId,
    vec: Words,
    free: unsafe fn(Words),
}

/// Room for a `Vec` of any type.
type Words = MaybeUninit<[usize; 3]>;

impl AnyVec {
    /// Returns the vector as a `T`, if `T` is its type.
    #[inline]
    pub fn into<T>(self) -> Option<T> {
        if typeid::of::<T>() != self.id {
            return None;
        }
        let this = ManuallyDrop::new(self);
        // SAFETY: `typeid::of` ignores lifetimes, so `T` is the type of the vector except for lifetimes. A `Scalar` has none,
        // so the vector has none, and `T` is its type. `from` has written one to these bytes. This moves it: `this` is not
        // dropped.
        Some(unsafe { this.vec.as_ptr().cast::<T>().read() })
    }
}

impl<A: Scalar> From<Vec<A>> for AnyVec {
    #[inline]
    fn from(vec: Vec<A>) -> Self {
        /// Drops the vector of type `A` in `words`, which must contain one.
        unsafe fn free<A>(words: Words) {
            // SAFETY: the caller promises that there is one, and gives it away.
            drop(unsafe { words.as_ptr().cast::<Vec<A>>().read() });
        }

        const {
            assert!(
                size_of::<Vec<A>>() == size_of::<Words>()
                    && align_of::<Vec<A>>() <= align_of::<Words>()
            );
        }
        let mut words = Words::uninit();
        // SAFETY: the room has the size of a `Vec<A>` and at least its alignment.
        unsafe { words.as_mut_ptr().cast::<Vec<A>>().write(vec) };
        Self { id: TypeId::of::<Vec<A>>(), vec: words, free: free::<A> }
    }
}

impl Drop for AnyVec {
    fn drop(&mut self) {
        // SAFETY: `from` has written a vector of the type that `free` was made for. It was not moved out, because `into` does
        // not drop what it has moved out of. It is not used again.
        unsafe { (self.free)(self.vec) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_type_comes_back() {
        let numbers = || AnyVec::from(vec![1u32, 2, 3]);
        assert_eq!(numbers().into::<Vec<u32>>(), Some(vec![1, 2, 3]));
        assert_eq!(numbers().into::<Vec<i32>>(), None);
        assert_eq!(numbers().into::<[u64; 3]>(), None);
        assert_eq!(AnyVec::from(Vec::<bool>::new()).into::<Vec<bool>>(), Some(vec![]));
    }
}
