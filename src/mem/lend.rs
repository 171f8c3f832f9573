//! A value on the stack of a caller, for a callee further down that nothing else connects to it.

use std::cell::Cell;
use std::ptr;

/// Where the value lies that is on offer, if one is.
pub struct Lent<T>(Cell<*mut T>);

impl<T: Default> Lent<T> {
    pub const fn new() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    /// Offers `value` to [`Lent::take`] while `during` runs; then again what was on offer before.
    #[inline]
    pub fn offer<R>(&self, value: T, during: impl FnOnce() -> R) -> R {
        struct Restore<'a, T>(&'a Cell<*mut T>, *mut T);

        impl<T> Drop for Restore<'_, T> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }

        let mut value = value;
        // Dropped before `value`, by a panic too: the pointer never outlives what it points to.
        let _restore = Restore(&self.0, self.0.replace(&raw mut value));
        during()
    }

    /// Takes the value on offer, and leaves the default.
    #[inline]
    pub fn take(&self) -> T {
        let on_offer = self.0.get();
        if on_offer.is_null() {
            return T::default();
        }
        // SAFETY: the pointer is to the local of a call of `offer` that is still running on this
        // thread, as `Self` is not `Sync` and the call removes the pointer before it ends. Nothing
        // else refers to that local in the meantime: `offer` does not touch it, and this reference
        // is gone before any other code runs, as `mem::take` calls only `T::default`.
        unsafe { std::mem::take(&mut *on_offer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offers_nest_and_end() {
        let lent = Lent::<Vec<u8>>::new();
        assert!(lent.take().is_empty());
        lent.offer(vec![1], || {
            assert_eq!(lent.offer(vec![2], || lent.take()), [2]);
            assert_eq!(lent.take(), [1]);
            assert!(lent.take().is_empty());
        });
        assert!(lent.take().is_empty());
    }

    #[test]
    fn a_panic_ends_an_offer() {
        let lent = Lent::<Vec<u8>>::new();
        let run = std::panic::AssertUnwindSafe(|| lent.offer(vec![1], || panic!("on purpose")));
        assert!(std::panic::catch_unwind(run).is_err());
        assert!(lent.take().is_empty());
    }
}
