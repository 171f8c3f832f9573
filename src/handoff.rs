//! What this crate's types and its serializers tell each other beside serde.
//!
//! serde's data model has no tensors. A [`Tensor`](crate::Tensor) therefore goes through
//! `serialize_newtype_struct` and `deserialize_newtype_struct` under a name that no Rust type can
//! have, and whatever does not fit serde's calls is offered beside the call, on the caller's stack,
//! and taken by the callee at once. Other formats ignore the name and see a plain struct. Names
//! that come off the wire are never compared with these.

use crate::elements::Elements;
use crate::io::shared::SharedBytes;
use crate::mem::Lent;
use crate::meta::TensorMeta;
use crate::value::Value;

/// Newtype names; the first byte tells them from all others.
pub mod name {
    pub const TENSOR: &str = "$tenarc::Tensor";
    pub const NUMBERS: &str = "$tenarc::value::Numbers";
    pub const TAGGED: &str = "$tenarc::Tagged";
    pub const SIMPLE: &str = "$tenarc::Simple";
    pub const RAW: &str = "$tenarc::value::RawValue";
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
    Incoming { meta: TensorMeta, stated: bool, held: Held },
    /// To the visitor: a value, decoded.
    Value(Value),
}

/// What comes with a tensor beside the call that shows it.
pub enum Held {
    /// Nothing: the bytes are shown.
    Nothing,
    /// The elements; no bytes are shown.
    Elements(Box<Elements>),
    /// What keeps the bytes alive that are shown.
    Shared(SharedBytes),
}

thread_local! {
    static SLOT: Lent<Slot> = const { Lent::new() };
}

/// Runs `during` with `slot` on offer.
#[inline]
pub fn offer<R>(slot: Slot, during: impl FnOnce() -> R) -> R {
    SLOT.with(|lent| lent.offer(slot, during))
}

/// Takes what is on offer.
#[inline]
pub fn take() -> Slot {
    SLOT.with(Lent::take)
}
