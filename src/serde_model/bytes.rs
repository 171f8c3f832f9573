//! Sequences of numbers where bytes are asked for.
//!
//! serde writes a `Vec<u8>` as a sequence, and types such as `&[u8]`, a borrowed `Cow<[u8]>` or those of `serde_bytes`
//! ask for bytes. What can be borrowed is borrowed: a byte string, and a sequence of `u8` that is stored as its bytes.
//! Of any other sequence of small numbers the bytes are collected.

use std::fmt;

use serde::de::{SeqAccess, Visitor};

use crate::error::Result;

/// Collects the elements of a sequence as bytes.
pub struct Collect;

impl<'de> Visitor<'de> for Collect {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<u8>, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes)
    }
}

/// Passes collected bytes to a visitor. An empty slice needs no memory to borrow from.
pub fn visit_collected<'de, V: Visitor<'de>>(bytes: Vec<u8>, visitor: V) -> Result<V::Value> {
    if bytes.is_empty() { visitor.visit_borrowed_bytes(&[]) } else { visitor.visit_byte_buf(bytes) }
}
