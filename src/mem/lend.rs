//! Passes a value from a caller to a callee further down the stack when no function argument can
//! carry it, for example because serde's calls are in between.

use std::cell::Cell;
use std::ptr::{self, NonNull};

/// A pointer to the value that is currently on offer, or null.
pub struct Lent<T>(Cell<*mut T>);

impl<T: Default> Lent<T> {
    pub const fn new() -> Self {
        Self(Cell::new(ptr::null_mut()))
    }

    /// Runs `during`. Meanwhile [`Lent::take`] returns `value`. Afterwards the value that was on offer
    /// before is on offer again.
    #[inline]
    pub fn offer<R>(&self, value: T, during: impl FnOnce() -> R) -> R {
        struct Restore<'a, T>(&'a Cell<*mut T>, *mut T);

        impl<T> Drop for Restore<'_, T> {
            fn drop(&mut self) {
                self.0.set(self.1);
            }
        }

        let mut value = value;
        // Dropped before `value`, also if `during` panics. So the pointer never outlives `value`.
        let _restore = Restore(&self.0, self.0.replace(&raw mut value));
        during()
    }

    /// Takes the value on offer and leaves the default in its place. Returns the default if nothing is
    /// on offer.
    #[inline]
    pub fn take(&self) -> T {
        let on_offer = self.0.get();
        if on_offer.is_null() {
            return T::default();
        }
        // SAFETY: the pointer points to a local variable of a call of `offer`. That call is still
        // running, on this thread: `Self` is not `Sync`, and `offer` removes the pointer before it
        // returns. Nothing else refers to the variable in the meantime: `offer` does not touch it,
        // and the reference made here ends before other code runs, as `mem::take` only calls
        // `T::default`.
        unsafe { std::mem::take(&mut *on_offer) }
    }
}

/// Like [`Lent`], for a value that the callee only looks at.
pub struct LentRef<T>(Lent<Option<NonNull<T>>>);

impl<T> LentRef<T> {
    pub const fn new() -> Self {
        Self(Lent::new())
    }

    /// Runs `during`. Meanwhile [`LentRef::look`] finds `value`.
    pub fn offer<R>(&self, value: &T, during: impl FnOnce() -> R) -> R {
        self.0.offer(Some(NonNull::from(value)), during)
    }

    /// Takes the value off offer and calls `look` with it, or with `None` if nothing is on offer.
    pub fn look<R>(&self, look: impl FnOnce(Option<&T>) -> R) -> R {
        let on_offer = self.0.take();
        // SAFETY: the pointer was made from a reference that a call of `offer` has as its argument.
        // That call is still running, on this thread: `Lent` only returns a value during its `offer`.
        // So the referent is alive and shared until `look` returns, and `look` cannot keep the
        // reference, because it must accept one of any lifetime.
        look(on_offer.map(|value| unsafe { value.as_ref() }))
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
    fn references_are_seen_once_and_only_during_the_offer() {
        let lent = LentRef::<String>::new();
        let seen = || lent.look(|text| text.map(ToOwned::to_owned));
        let (outer, inner) = ("outer".to_owned(), "inner".to_owned());
        lent.offer(&outer, || {
            lent.offer(&inner, || assert_eq!((seen(), seen()), (Some(inner.clone()), None)));
            assert_eq!((seen(), seen()), (Some(outer.clone()), None));
        });
        assert_eq!(seen(), None);
    }

    #[test]
    fn a_panic_ends_an_offer() {
        let lent = Lent::<Vec<u8>>::new();
        let run = std::panic::AssertUnwindSafe(|| lent.offer(vec![1], || panic!("on purpose")));
        assert!(std::panic::catch_unwind(run).is_err());
        assert!(lent.take().is_empty());
    }
}
