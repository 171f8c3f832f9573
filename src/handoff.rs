//! Passes data between this crate's types and its serializers that does not fit into serde's calls.
//!
//! serde's data model has no tensors. So a [`Tensor`](crate::Tensor) calls `serialize_newtype_struct`
//! or `deserialize_newtype_struct` with a name that no Rust type can have. Data that does not fit into
//! the call, such as the shape, is put in a [`Slot`]: the caller offers it for the duration of the call,
//! and the callee takes it immediately. Other formats ignore the name and see a plain struct.
//!
//! Names from a document are never compared with these names.

use crate::elements::Elements;
use crate::error::Error;
use crate::io::compressed::Precompressed;
use crate::mem::Lent;
use crate::mem::shared_bytes::SharedBytes;
use crate::meta::TensorMeta;
use crate::type_name::TypeName;

/// The names of the newtypes. No other type has a name that starts with `$`.
pub mod name {
    pub const TENSOR: &str = "$tenarc::Tensor";
    /// A tensor as a sequence of two elements: the bytes before its payload, packed into an integer, and the payload.
    /// It is only passed to a serializer that is known to be [`Writer`](crate::wire::writer::Writer), and no slot is
    /// offered.
    pub const WHOLE_TENSOR: &str = "$tenarc::WholeTensor";
    pub const NUMBERS: &str = "$tenarc::value::Numbers";
    /// A value of a type that has a name: see [`Slot::Type`](super::Slot::Type).
    pub const TYPED: &str = "$tenarc::types::Typed";
    pub const TAGGED: &str = "$tenarc::Tagged";
    pub const SIMPLE: &str = "$tenarc::Simple";
    pub const RAW: &str = "$tenarc::value::RawValue";
    /// Part of a segment, as it is stored: see [`Slot::Pieces`](super::Slot::Pieces).
    pub const STORED: &str = "$tenarc::archive::Stored";
    /// A byte string or a text that is not in memory, as blocks of bytes.
    pub const BYTES: &str = "$tenarc::Bytes";
    pub const TEXT: &str = "$tenarc::Text";
    /// The error because of which a block could not be fetched. It takes the place of that block.
    pub const FAILED: &str = "$tenarc::Failed";
    /// A value whose sequences are written as columns.
    pub const COLUMNS: &str = "$tenarc::columns";
    pub const VALUE: &str = "$tenarc::Value";
    /// `serde_json::value::RawValue`, which is written as a struct of one field, and expects a map when it is read.
    pub const JSON: &str = "$serde_json::private::RawValue";

    #[inline]
    pub fn is_ours(name: &str) -> bool {
        name.as_bytes().first() == Some(&b'$')
    }
}

/// The data that is offered during a call.
#[derive(Default)]
pub enum Slot {
    #[default]
    Empty,
    /// For the serializer: the metadata of the tensor in the newtype, and the length of its payload in
    /// bytes.
    Outgoing(TensorMeta, usize),
    /// Like `Outgoing`, for a payload that is compressed already. The content of the newtype can write it as
    /// [`Slot::Blocks`] and as [`Slot::StoredBlocks`].
    Compressed(Box<(TensorMeta, usize, Precompressed)>),
    /// For the content of the newtype: it must write its payload as blocks of bytes, and nothing else.
    Blocks,
    /// Like `Blocks`, but the content must write the payload in its stored, compressed form.
    StoredBlocks,
    /// For the serializer: the number of the tag or simple value in the newtype.
    Number(u64),
    /// For the serializer: the type of the value in the newtype.
    Type(TypeName),
    /// For the serializer: the newtype contains the bytes of one encoded item.
    Raw,
    /// For the serializer: the newtype is one encoded item in pieces. The item has up to `levels` levels of nesting. If it
    /// is the whole value of a segment with statistics of columns, it comes with these.
    Stored { levels: usize, statistics: Option<Box<[u8]>> },
    /// For the content of the newtype: it must write one encoded item in pieces, as a sequence. Each piece is a byte
    /// string, or a newtype that stands for a whole item inside. Such a newtype has the name of a tensor, numbers,
    /// bytes or text, and comes with [`Slot::Outgoing`].
    Pieces,
    /// For the serializer that asked for a block of bytes: because of this error, there is none.
    Failed(Error),
    /// For the visitor: the metadata of a tensor, and whether the document states its dtype. `held`
    /// says where the elements are.
    Incoming { meta: TensorMeta, stated: bool, held: Held },
}

/// Where the visitor of a tensor gets the elements from.
pub enum Held {
    /// From the bytes that are passed to the visitor.
    Nothing,
    /// From here. The visitor gets no bytes.
    Elements(Box<Elements>),
    /// From the bytes that are passed to the visitor. This has shared ownership of the same bytes.
    Shared(SharedBytes),
}

thread_local! {
    static SLOT: Lent<Slot> = const { Lent::new() };
}

/// Runs `during`, and meanwhile offers `slot` to [`take`].
#[inline]
pub fn offer<R>(slot: Slot, during: impl FnOnce() -> R) -> R {
    SLOT.with(|lent| lent.offer(slot, during))
}

/// Takes the slot that is on offer, or [`Slot::Empty`] if there is none.
#[inline]
pub fn take() -> Slot {
    SLOT.with(Lent::take)
}
