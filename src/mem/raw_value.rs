//! Encoded items as a type of their own: references to bytes become references to it.

/// One well-formed CBOR item, as it is encoded: to pass on what need not be understood, or to
/// decode it later.
///
/// Borrowed as `&RawValue` when read from a slice, or owned as `Box<RawValue>`. Under other serde
/// formats it is a byte string.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tenarc::value::RawValue;
///
/// #[derive(Serialize, Deserialize)]
/// struct Envelope<'a> {
///     kind: &'a str,
///     #[serde(borrow)]
///     content: &'a RawValue,
/// }
///
/// let bytes = tenarc::to_vec(&serde_json::json!({"kind": "point", "content": [1, 2]}))?;
/// let envelope: Envelope = tenarc::from_slice(&bytes)?;
/// assert_eq!(envelope.content.get::<(u8, u8)>()?, (1, 2));
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(PartialEq, Eq)]
#[repr(transparent)]
pub struct RawValue([u8]);

impl RawValue {
    /// The item as it is encoded.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes as the encoded item that they are; the caller has checked that.
pub fn raw_value(bytes: &[u8]) -> &RawValue {
    // SAFETY: `RawValue` is a transparent wrapper around `[u8]`, so both pointers have the same
    // address, length and validity; no byte pattern is invalid for it.
    unsafe { &*(std::ptr::from_ref::<[u8]>(bytes) as *const RawValue) }
}

/// As [`raw_value`], owned.
pub fn boxed_raw_value(bytes: Box<[u8]>) -> Box<RawValue> {
    // SAFETY: as above, and the layout that the allocation is freed with is the same too.
    unsafe { Box::from_raw(Box::into_raw(bytes) as *mut RawValue) }
}
