//! CBOR items (RFC 8949) without serde: heads, strings, numbers, tensors.

pub mod apart;
pub mod head;
pub mod number;
pub mod payload;
pub mod reader;
pub mod tag;
pub mod tensor;
pub mod writer;
