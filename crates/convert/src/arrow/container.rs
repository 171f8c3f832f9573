//! Reads the two containers of messages: streams, and files, which end with a list of their batches.

use std::ops::Range;
use std::sync::Arc;

use arrow_ipc::{
    Block, CompressionType, Footer, KeyValue, Message, MessageHeader, MetadataVersion,
    Schema as Stored,
};
use flatbuffers::{ForwardsUOffset, Vector};
use tenarc::io::ReadAt;
use tenarc::{Error, Result, Value};

use super::body::Codec;
use super::contents::{Batches, Contents};
use super::message::{self, MAGIC, PREFIX, Place};
use super::schema::Schema;
use crate::{Losses, source};

/// Metadata: pairs of a key and a text.
type Pairs<'m> = Vector<'m, ForwardsUOffset<KeyValue<'m>>>;

/// The number of bytes in front of the messages of a file: the magic bytes and their padding. The prefix of a message
/// has the same size.
pub const HEAD: u64 = PREFIX;

/// The number of bytes after the footer: its length, and the magic bytes.
const TAIL: u64 = 10;

/// Reads the schema of a file or a stream, and finds the columns in all batches.
pub fn read<S: ReadAt + ?Sized>(source: &S) -> Result<Contents> {
    let (mut schema, mut messages, losses) = open(source, Schema::read)?;
    schema.losses.extend(losses);
    let mut batches = Batches::new(Arc::new(schema));
    while messages
        .next(source, |message, place| batch(message, place, &mut batches, source))?
        .is_some()
    {}
    batches.finish()
}

/// Describes the record batches of a file or a stream: see [`TensorFile::about`](crate::TensorFile::about).
pub fn about<S: ReadAt + ?Sized>(source: &S, mut messages: Messages) -> Result<Value> {
    let mut batches = Vec::new();
    let describe = |message: &Message<'_>, place: &Place| {
        let batch = message.header_as_record_batch();
        Ok(batch.map(|batch| {
            let codec = batch.compression().map(|compression| match compression.codec() {
                CompressionType::LZ4_FRAME => "lz4",
                CompressionType::ZSTD => "zstd",
                _ => "unknown",
            });
            [
                ("rows", Value::from(batch.length())),
                ("bytes", (place.body.end - place.body.start).into()),
                ("codec", codec.into()),
            ]
            .into_iter()
            .collect::<Value>()
        }))
    };
    while let Some(batch) = messages.next(source, describe)? {
        batches.extend(batch);
    }
    Ok([("record batches", Value::Array(batches))].into_iter().collect())
}

/// Passes the schema to `read` and returns the result. Also returns the messages after the schema, which are not read
/// yet, and the losses: metadata of the footer, or of the message of the schema.
pub fn open<S: ReadAt + ?Sized, T>(
    source: &S,
    read: impl FnOnce(&Stored<'_>, MetadataVersion, usize) -> Result<T>,
) -> Result<(T, Messages, Losses)> {
    let size = source.size().map_err(Error::io)?;
    let mut head = [0; MAGIC.len()];
    let len = usize::try_from(size).unwrap_or(head.len()).min(head.len());
    source::fill(source, head.get_mut(..len).unwrap_or_default(), 0, " of a file")?;
    check_head(head)?;
    let mut losses = Losses::default();
    if head != MAGIC {
        let found = message::at(source, 0, size, |message, place| {
            schema(message, place, &mut losses, read)
        })?;
        let (place, schema) = found.ok_or_else(no_schema)?;
        return Ok((schema, Messages::Stream { at: place.body.end, size }, losses));
    }
    let bytes = footer_bytes(source, size)?;
    let start = size - TAIL - bytes.len() as u64;
    let at = |error: Error| error.at(start);
    let footer = message::footer(&bytes).map_err(at)?;
    let stored =
        footer.schema().ok_or_else(|| Error::syntax("the footer has no schema")).map_err(at)?;
    early_codec(stored.custom_metadata()).and_then(refused_in_schema).map_err(at)?;
    let schema = read(&stored, footer.version(), bytes.len()).map_err(at)?;
    let blocks = blocks(&footer, start).map_err(at)?;
    if footer.custom_metadata().is_some_and(|pairs| !pairs.is_empty()) {
        losses.add("", "the metadata of the footer are left out");
    }
    Ok((schema, Messages::File(blocks.into_iter()), losses))
}

/// The messages after the schema that were not read yet. In a file, dictionaries come first.
#[derive(Clone, Debug)]
pub enum Messages {
    File(std::vec::IntoIter<Range<u64>>),
    Stream { at: u64, size: u64 },
}

impl Messages {
    /// Passes the next message to `read` and returns the result, or `None` at the end.
    pub fn next<S: ReadAt + ?Sized, T>(
        &mut self,
        source: &S,
        read: impl FnOnce(&Message<'_>, &Place) -> Result<T>,
    ) -> Result<Option<T>> {
        match self {
            Self::File(blocks) => {
                let Some(block) = blocks.next() else { return Ok(None) };
                let read = |message: &Message<'_>, place: &Place| {
                    if place.body.end != block.end {
                        let what = "a record batch does not have the length that the footer states";
                        return Err(Error::syntax(what));
                    }
                    read(message, place)
                };
                let found = message::at(source, block.start, block.end, read)?;
                let (_, told) = found.ok_or_else(|| {
                    let what = "the footer lists a message here, found an end-of-stream marker";
                    Error::syntax(what).at(block.start)
                })?;
                Ok(Some(told))
            }
            // A stream may end without an end-of-stream marker.
            Self::Stream { at, size } if *at >= *size => Ok(None),
            Self::Stream { at, size } => {
                if let Some((place, told)) = message::at(source, *at, *size, read)? {
                    *at = place.body.end;
                    return Ok(Some(told));
                }
                *at += PREFIX;
                if at != size {
                    let what = format!("{} bytes follow the end of the stream", *size - *at);
                    return Err(Error::data(what).at(*at));
                }
                Ok(None)
            }
        }
    }
}

/// Refuses files of version 1 of Feather by their first bytes.
pub fn check_head(head: [u8; 6]) -> Result<()> {
    if head.starts_with(b"FEA1") {
        return Err(Error::unsupported(
            "found a Feather file of version 1, which is not in Arrow's IPC format; convert it to version 2 first",
        ));
    }
    Ok(())
}

/// Reads the bytes of the footer. Fails if the file does not end with the magic bytes.
fn footer_bytes<S: ReadAt + ?Sized>(source: &S, size: u64) -> Result<Vec<u8>> {
    let Some(room) = size.checked_sub(HEAD + TAIL) else {
        return Err(Error::eof("a footer").at(size));
    };
    let mut tail = [0; 10];
    source::fill(source, &mut tail, size - TAIL, " of a file")?;
    let [a, b, c, d, magic @ ..] = tail;
    if magic != MAGIC {
        let what = "the file does not end with ARROW1: it was cut off or not finished";
        return Err(Error::torn(what).at(size));
    }
    let len = i32::from_le_bytes([a, b, c, d]);
    let len = u64::try_from(len).ok().filter(|&len| len > 0 && len <= room);
    let Some(len) = len else {
        let found = i32::from_le_bytes([a, b, c, d]);
        let what = format!("the footer states {found} bytes, expected 1 to {room}");
        return Err(Error::syntax(what).at(size - TAIL));
    };
    message::check_len(len).map_err(|error| error.at(size - TAIL))?;
    Ok(source::bytes(source, size - TAIL - len, len)?.into_owned())
}

/// Returns the ranges of the dictionaries, then those of the record batches, each in the order of the footer. All
/// ranges must end before the footer, and no two may overlap: otherwise, a small file could describe huge tensors.
fn blocks(footer: &Footer<'_>, end: u64) -> Result<Vec<Range<u64>>> {
    let range = |block: &Block| {
        let start = u64::try_from(block.offset()).ok()?;
        let metadata = u64::try_from(block.metaDataLength()).ok()?;
        let body = u64::try_from(block.bodyLength()).ok()?;
        let behind = start.checked_add(metadata)?.checked_add(body)?;
        (start >= HEAD && metadata >= PREFIX && behind <= end).then_some(start..behind)
    };
    let ranges = |blocks: Option<flatbuffers::Vector<'_, Block>>| {
        let ranges: Option<Vec<_>> = blocks.unwrap_or_default().iter().map(range).collect();
        ranges.ok_or_else(|| Error::syntax("the footer lists a message outside of the file"))
    };
    let mut found = ranges(footer.dictionaries())?;
    found.extend(ranges(footer.recordBatches())?);
    let mut all = found.clone();
    all.sort_by_key(|range| range.start);
    if all.iter().zip(all.iter().skip(1)).any(|(a, b)| b.start < a.end) {
        return Err(Error::syntax("the footer lists messages that overlap"));
    }
    Ok(found)
}

#[cold]
fn no_schema() -> Error {
    Error::syntax("expected a schema as the first message of a stream, found none")
}

/// Passes the schema of the first message of a stream to `read` and returns the result. Adds the metadata of the
/// message to `losses`.
pub fn schema<T>(
    message: &Message<'_>,
    place: &Place,
    losses: &mut Losses,
    read: impl FnOnce(&Stored<'_>, MetadataVersion, usize) -> Result<T>,
) -> Result<T> {
    let schema = message.header_as_schema().ok_or_else(no_schema)?;
    early_codec(schema.custom_metadata()).and_then(refused_in_schema)?;
    let len = usize::try_from(place.metadata.end - place.metadata.start).unwrap_or(0);
    let schema = read(&schema, message.version(), len)?;
    if message.custom_metadata().is_some_and(|pairs| !pairs.is_empty()) {
        losses.add("", "the metadata of the schema's message are left out");
    }
    Ok(schema)
}

/// Adds the record batch of a message after the schema to `batches`. Skips a dictionary.
pub fn batch<S: ReadAt + ?Sized>(
    message: &Message<'_>,
    place: &Place,
    batches: &mut Batches,
    source: &S,
) -> Result<()> {
    match message.header_type() {
        MessageHeader::RecordBatch => {}
        // Columns that refer to a dictionary are not read as tensors.
        MessageHeader::DictionaryBatch => return Ok(()),
        other => {
            let found = other.variant_name().unwrap_or("unknown type");
            let what = format!("expected a message of type RecordBatch, found {found}");
            return Err(Error::syntax(what));
        }
    }
    let batch = message
        .header_as_record_batch()
        .ok_or_else(|| Error::syntax("expected a record batch, found none"))?;
    let codec = early_codec(message.custom_metadata())?;
    let pairs = message.custom_metadata().map_or(0, |pairs| pairs.len());
    if pairs > usize::from(codec.is_some()) {
        batches.lose("the metadata of a record batch are left out");
    }
    batches.add(&batch, codec, &place.body, source)
}

/// The key of the metadata in which Arrow 0.17 named the codec of a batch. Later versions have a field for it.
const EARLY_CODEC: &str = "ARROW:experimental_compression";

/// Returns the codec that Arrow 0.17 named in the metadata, if there is one. The compressed buffers have the same form
/// as in later versions.
pub fn early_codec(pairs: Option<Pairs<'_>>) -> Result<Option<Codec>> {
    let Some(pairs) = pairs else { return Ok(None) };
    let Some(pair) = pairs.iter().find(|pair| pair.key() == Some(EARLY_CODEC)) else {
        return Ok(None);
    };
    let name = pair.value().unwrap_or_default().to_ascii_lowercase();
    match name.as_str() {
        "uncompressed" => Ok(None),
        "lz4" | "lz4_frame" => Ok(Some(Codec::Lz4)),
        "zstd" => Ok(Some(Codec::Zstd)),
        _ => {
            let name: String = name.chars().take(64).collect();
            let name = name.escape_debug();
            Err(Error::unsupported(format!(
                "the buffers are compressed by `{name}`, expected LZ4 or zstd"
            )))
        }
    }
}

/// Refuses a codec that the metadata of the schema name. No version of Arrow wrote it there, so it is unknown which
/// batches are compressed.
fn refused_in_schema(codec: Option<Codec>) -> Result<()> {
    match codec {
        None => Ok(()),
        Some(_) => Err(Error::unsupported(format!(
            "`{EARLY_CODEC}` is in the metadata of the schema, expected it in the metadata of a record batch"
        ))),
    }
}
