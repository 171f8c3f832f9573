//! Reads messages. A message consists of metadata, which are a flatbuffer, and a body.
//!
//! ("Encapsulated message format" in Arrow's columnar format, version 1.5.)

use std::ops::Range;

use arrow_ipc::{Footer, Message, MetadataVersion};
use flatbuffers::{InvalidFlatbuffer, VerifierOptions};
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use crate::source;

/// The bytes with which a file begins and ends.
pub const MAGIC: [u8; 6] = *b"ARROW1";

/// The continuation marker, with which a message begins.
pub const CONTINUATION: [u8; 4] = [0xff; 4];

/// The number of bytes in front of the metadata: the continuation marker, and the length of the metadata.
pub const PREFIX: u64 = 8;
pub type Prefix = [u8; 8];

/// The most bytes that the metadata of a message may have.
const MAX_METADATA: u64 = 100_000_000;

/// Returns the length of the metadata that a prefix states. Returns `None` if the prefix marks the end of a stream.
pub fn metadata_len(prefix: Prefix) -> Result<Option<u64>> {
    let [a, b, c, d, len @ ..] = prefix;
    if [a, b, c, d] != CONTINUATION {
        return Err(Error::syntax(
            "expected the marker 0xffffffff before a message, found other bytes; files from before Arrow 0.15 \
             have no markers and are not read",
        ));
    }
    let len = u64::try_from(i32::from_le_bytes(len))
        .map_err(|_| Error::syntax("the metadata of a message have a negative length"))?;
    check_len(len)?;
    Ok((len > 0).then_some(len))
}

pub fn check_len(len: u64) -> Result<()> {
    if len > MAX_METADATA {
        let what = format!("the metadata have {len} bytes, expected at most {MAX_METADATA}");
        return Err(Error::limit(what));
    }
    Ok(())
}

/// Returns the limits for a flatbuffer of `len` bytes. It can refer to the same bytes many times, so a small one could
/// describe a huge structure.
fn verifier(len: usize) -> VerifierOptions {
    VerifierOptions {
        max_depth: 64,
        max_tables: len / 4,
        max_apparent_size: len.saturating_mul(16).saturating_add(1 << 16),
        ignore_missing_null_terminator: false,
    }
}

/// Verifies the metadata of a message. Returns the message and the length of its body.
pub fn message(metadata: &[u8]) -> Result<(Message<'_>, u64)> {
    let message = arrow_ipc::root_as_message_with_opts(&verifier(metadata.len()), metadata)
        .map_err(|error| refused("a message", &error))?;
    check_version(message.version())?;
    let body = message.bodyLength();
    let body = u64::try_from(body)
        .map_err(|_| Error::syntax(format!("a message states a body of {body} bytes")))?;
    Ok((message, body))
}

pub fn footer(bytes: &[u8]) -> Result<Footer<'_>> {
    let footer = arrow_ipc::root_as_footer_with_opts(&verifier(bytes.len()), bytes)
        .map_err(|error| refused("a footer", &error))?;
    check_version(footer.version())?;
    Ok(footer)
}

fn check_version(version: MetadataVersion) -> Result<()> {
    match version {
        MetadataVersion::V4 | MetadataVersion::V5 => Ok(()),
        MetadataVersion(found) => {
            let found = i32::from(found) + 1;
            let what = format!("the metadata have version {found}, expected 4 or 5");
            Err(Error::unsupported(what))
        }
    }
}

#[cold]
fn refused(what: &str, error: &InvalidFlatbuffer) -> Error {
    match error {
        InvalidFlatbuffer::DepthLimitReached
        | InvalidFlatbuffer::TooManyTables
        | InvalidFlatbuffer::ApparentSizeTooLarge => Error::limit(format!(
            "the flatbuffer of {what} is nested too deeply or describes too much data for its size"
        )),
        // The further lines only say in which table of the flatbuffer the error is.
        error => {
            let why = error.to_string();
            let why = why.lines().next().unwrap_or_default().trim_end_matches('.');
            Error::syntax(format!("the metadata are not a flatbuffer of {what}: {why}"))
        }
    }
}

/// The position of a message: the ranges of its metadata and its body.
#[derive(Clone, Debug)]
pub struct Place {
    pub metadata: Range<u64>,
    pub body: Range<u64>,
}

/// Reads the message at the offset `at`, which must end at `end` or before, and passes it to `read`. Returns where the
/// message is, and the result of `read`. Returns `None` if there is an end-of-stream marker.
pub fn at<S: ReadAt + ?Sized, T>(
    source: &S,
    at: u64,
    end: u64,
    read: impl FnOnce(&Message<'_>, &Place) -> Result<T>,
) -> Result<Option<(Place, T)>> {
    let room = end.saturating_sub(at);
    if room < PREFIX {
        return Err(Error::eof(&format!("the {PREFIX} bytes that start a message")).at(at));
    }
    let mut prefix = Prefix::default();
    source::fill(source, &mut prefix, at, " of a message")?;
    let Some(len) = metadata_len(prefix).map_err(|error| error.at(at))? else { return Ok(None) };
    let room = room - PREFIX;
    if len > room {
        let what = format!("{len} bytes of metadata, found {room}");
        return Err(Error::eof(&what).at(at));
    }
    let start = at + PREFIX;
    let bytes = source::bytes(source, start, len)?;
    let (message, body) = message(&bytes).map_err(|error| error.at(start))?;
    let room = room - len;
    if body > room {
        let what = format!("a body of {body} bytes, found {room}");
        return Err(Error::eof(&what).at(start + len));
    }
    let body = start + len..start + len + body;
    let place = Place { metadata: start..start + len, body };
    let told = read(&message, &place).map_err(|error| error.at(start))?;
    Ok(Some((place, told)))
}
