//! Passes a [`Value`] to a visitor of this crate. serde's data model has no call for it.
//!
//! This is like [`handoff`](crate::handoff), which cannot know `Value`: tensors use it, and a `Value` may hold
//! tensors.

use std::cell::Cell;

use super::Value;
use crate::error::{Error, Result};
use crate::mem::{Lent, LentRef};

thread_local! {
    static VALUE: Lent<Option<Value>> = const { Lent::new() };
    static TO_ENCODE: LentRef<Value> = const { LentRef::new() };
    /// Why [`encode`] failed. A visitor can only return the error as text.
    static FAILURE: Cell<Option<Error>> = const { Cell::new(None) };
}

/// Runs `during`, and meanwhile offers `value` to [`take`].
pub fn offer<R>(value: Value, during: impl FnOnce() -> R) -> R {
    VALUE.with(|lent| lent.offer(Some(value), during))
}

/// Takes the value that is on offer.
pub fn take() -> Option<Value> {
    VALUE.with(Lent::take)
}

/// Runs `during`, and meanwhile offers `value` to [`encode`]. The visitor of a [`RawValue`](super::RawValue) encodes
/// the value. The encoder cannot be used here, because it depends on `Value`.
pub fn offer_to_encode<R>(value: &Value, during: impl FnOnce() -> Result<R>) -> Result<R> {
    FAILURE.take();
    let result = TO_ENCODE.with(|lent| lent.offer(value, during));
    result.map_err(|error| FAILURE.take().unwrap_or(error))
}

/// The value that is on offer, encoded by `encode`. `None` if none is on offer.
pub fn encode<E: serde::de::Error>(
    encode: impl FnOnce(&Value) -> Result<Vec<u8>>,
) -> Result<Option<Vec<u8>>, E> {
    let encoded = TO_ENCODE.with(|lent| lent.look(|value| value.map(encode))).transpose();
    encoded.map_err(|error| {
        let text = E::custom(&error);
        FAILURE.set(Some(error));
        text
    })
}
