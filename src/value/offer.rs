//! Passes a decoded [`Value`] to its visitor. serde's data model has no call for it.
//!
//! This is like [`handoff`](crate::handoff), which cannot know `Value`: tensors use it, and a `Value` may hold
//! tensors.

use super::Value;
use crate::mem::Lent;

thread_local! {
    static VALUE: Lent<Option<Value>> = const { Lent::new() };
}

/// Runs `during`, and meanwhile offers `value` to [`take`].
pub fn offer<R>(value: Value, during: impl FnOnce() -> R) -> R {
    VALUE.with(|lent| lent.offer(Some(value), during))
}

/// Takes the value that is on offer.
pub fn take() -> Option<Value> {
    VALUE.with(Lent::take)
}
