//! A saved value as it is split: a header with the metadata, in which tensors are references, and
//! buffers that hold their bytes. At rest it is a segment of an archive, in memory it is parts.

pub mod buffers;
pub mod find;
pub mod format;
pub mod header;
pub mod options;
pub mod path;
pub mod read;
pub mod spelling;
mod trail;
pub mod walk;

use serde::de::DeserializeSeed;

use read::SegmentRead;

use crate::de::Deserializer;
use crate::error::Result;
use crate::io::buffers::Buffers;
use crate::options::DecodeOptions;

/// Decodes the one value that an item of metadata is, which stands at `base`.
pub fn decode<'de, T: DeserializeSeed<'de>>(
    seed: T,
    metadata: &'de [u8],
    base: u64,
    buffers: &mut dyn Buffers<'de>,
    options: DecodeOptions,
) -> Result<T::Value> {
    let read = SegmentRead::new(metadata, base, buffers);
    let mut deserializer = Deserializer::over(read, options);
    let value = deserializer.value(seed)?;
    deserializer.end()?;
    Ok(value)
}
