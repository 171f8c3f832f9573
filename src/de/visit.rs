//! Passes bytes to visitors.

use serde::de::Visitor;

use crate::error::Result;
use crate::handoff::{self, Held, Slot};
use crate::io::source::SourceBytes;
use crate::meta::TensorMeta;

/// Passes a byte string to a visitor.
#[inline]
pub fn visit_bytes<'de, V: Visitor<'de>>(
    bytes: SourceBytes<'de, '_>,
    visitor: V,
) -> Result<V::Value> {
    match bytes {
        SourceBytes::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
        SourceBytes::Copied(bytes) => visitor.visit_bytes(bytes),
        SourceBytes::Owned(bytes) => visitor.visit_byte_buf(bytes),
    }
}

/// Passes the bytes of a tensor to this crate's own visitor.
#[inline]
pub fn show<'de, V: Visitor<'de>>(
    meta: TensorMeta,
    stated: bool,
    held: Held,
    bytes: SourceBytes<'de, '_>,
    visitor: V,
) -> Result<V::Value> {
    handoff::offer(Slot::Incoming { meta, stated, held }, || match bytes {
        SourceBytes::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
        SourceBytes::Copied(bytes) => visitor.visit_bytes(bytes),
        SourceBytes::Owned(bytes) => visitor.visit_bytes(&bytes),
    })
}
