//! Reads and writes CBOR items (RFC 8949): heads, strings, numbers and tensors. Nothing here uses
//! serde.

pub mod buffer_sink;
pub mod columns;
pub mod encoded;
pub mod head;
pub mod items;
pub mod number;
pub mod payload;
pub mod reader;
pub mod statistics;
pub mod strict;
pub mod strings;
pub mod tag;
pub mod tensor;
pub mod type_item;
mod typed;
pub mod walk;
pub mod writer;
