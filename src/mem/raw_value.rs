//! [`RawValue`], a type for encoded items. It is a wrapper around `[u8]`, so that a reference to bytes
//! can become a reference to a `RawValue` without a copy.

/// The encoded bytes of one well-formed CBOR item. Use it to pass an item on without decoding it, or
/// to decode it later.
///
/// It is `&RawValue` when it is borrowed from a slice, and `Box<RawValue>` when it is owned. Other
/// serde formats see a byte string.
///
/// Only that is checked. Who makes one of other bytes than tenarc wrote vouches for the rest: that a big integer holds
/// bytes, or that columns keep their rules. An item that breaks such a rule is written, and its readers refuse it.
///
/// Archives say each thing in one way (`SPEC.md`, section 5.3). An item that has indefinite lengths, or big-endian or
/// clamped numbers, is saved with definite lengths and little-endian typed arrays.
#[derive(PartialEq, Eq)]
#[repr(transparent)]
pub struct RawValue([u8]);

impl RawValue {
    /// The encoded bytes of the item.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Wraps bytes that the caller has checked to be one well-formed item.
pub fn raw_value(bytes: &[u8]) -> &RawValue {
    // SAFETY: `RawValue` is a transparent wrapper around `[u8]`, so both pointer types have the same
    // address, length and validity, and every byte pattern is valid.
    unsafe { &*(std::ptr::from_ref::<[u8]>(bytes) as *const RawValue) }
}

/// Like [`raw_value`], for owned bytes.
pub fn boxed_raw_value(bytes: Box<[u8]>) -> Box<RawValue> {
    // SAFETY: `RawValue` is a transparent wrapper around `[u8]`, so pointers to both have the same
    // address, length and validity, and the allocation is freed with the same layout.
    unsafe { Box::from_raw(Box::into_raw(bytes) as *mut RawValue) }
}
