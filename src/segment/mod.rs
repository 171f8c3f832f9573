//! A saved value in two pieces: a header with the metadata, and the buffers.
//!
//! The metadata is the value as CBOR. Each large tensor in it is a reference to a buffer, which holds
//! the tensor's bytes. An archive stores this as a segment; [`parts`](crate::parts) keep it in memory.

pub mod buffers;
pub mod ext;
pub mod format;
pub mod header;
pub mod items;
pub mod options;
pub mod packed;

use serde::de::DeserializeSeed;

use crate::de::ValueDecoder;
use crate::error::Result;
use crate::io::buffers::Buffers;
use crate::io::input::Input;
use crate::options::DecodeOptions;

/// Decodes the one value in `metadata`, which starts at offset `base` of the archive.
pub fn decode<'de, T: DeserializeSeed<'de>>(
    seed: T,
    metadata: &'de [u8],
    base: u64,
    buffers: &mut dyn Buffers<'de>,
    options: DecodeOptions,
) -> Result<T::Value> {
    decode_with(metadata, base, buffers, options, |deserializer| {
        let value = deserializer.value(seed)?;
        deserializer.end()?;
        Ok(value)
    })
}

/// Calls `read` with a deserializer for the metadata.
pub fn decode_with<'de, 'b, T>(
    metadata: &'de [u8],
    base: u64,
    buffers: &'b mut dyn Buffers<'de>,
    options: DecodeOptions,
    read: impl FnOnce(&mut ValueDecoder<'de, 'b>) -> Result<T>,
) -> Result<T> {
    let before = buffers.budget().cloned();
    let mut deserializer = ValueDecoder::new(Input::segment(metadata, base, buffers), options);
    if let Some(before) = before {
        deserializer.wire.resume(&before);
    }
    let result = read(&mut deserializer);
    let after = deserializer.wire.allowance();
    if let Some(before) = deserializer.wire.src.buffers().and_then(|buffers| buffers.budget()) {
        before.take_over(&after);
    }
    result
}
