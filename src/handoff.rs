//! What this crate's types and its serializers tell each other beside serde.
//!
//! serde's data model has no tensors. A [`Tensor`](crate::Tensor) therefore goes through
//! `serialize_newtype_struct` and `deserialize_newtype_struct` under a name that no Rust type can
//! have, and whatever does not fit serde's calls passes through a slot of the thread: put right
//! before the call that uses it, taken by the callee at once. Other formats ignore the name and
//! see a plain struct. Names that come off the wire are never compared with these.

use std::cell::Cell;

use crate::tensor::{Elements, TensorMeta};
use crate::value::Value;

/// Newtype names; the first byte tells them from all others.
pub mod name {
    pub const TENSOR: &str = "$tenarc::Tensor";
    pub const NUMBERS: &str = "$tenarc::Numbers";
    pub const TAGGED: &str = "$tenarc::Tagged";
    pub const SIMPLE: &str = "$tenarc::Simple";
    pub const RAW: &str = "$tenarc::RawValue";
    pub const VALUE: &str = "$tenarc::Value";

    #[inline(always)]
    pub fn is_ours(name: &str) -> bool {
        name.as_bytes().first() == Some(&b'$')
    }
}

#[derive(Default)]
pub enum Slot {
    #[default]
    Empty,
    /// To the serializer: the tensor whose newtype follows, of so many payload bytes.
    Outgoing(TensorMeta, usize),
    /// To the newtype's content: write bytes in blocks, nothing else.
    Blocks,
    /// To the serializer: the tag, or the number of a simple value, of the newtype that follows.
    Number(u64),
    /// To the serializer: the newtype that follows holds one encoded item as bytes.
    Raw,
    /// To the visitor: the tensor whose bytes follow, or stand here.
    Incoming { meta: TensorMeta, stated: bool, elements: Option<Elements> },
    /// To the visitor: a value, decoded.
    Value(Value),
}

thread_local! {
    static SLOT: Cell<Slot> = const { Cell::new(Slot::Empty) };
}

/// While a thread ends, the slot may be gone already: then nothing passes, and the types fall back
/// to what they do under other formats.
pub fn put(slot: Slot) {
    let _ = SLOT.try_with(|cell| cell.set(slot));
}

pub fn take() -> Slot {
    SLOT.try_with(Cell::take).unwrap_or_default()
}
