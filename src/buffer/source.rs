//! Reads pieces of an archive: borrows them if the source is in memory, and copies them otherwise.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{Advice, Error, Result};
use crate::io::at::{PIECE, ReadAt};
use crate::io::source::read_some;
use crate::segment::format::{self, MAX_RECORD_HEAD};

pub fn in_memory(len: u64, at: u64) -> Result<usize> {
    usize::try_from(len)
        .ok()
        .filter(|&len| isize::try_from(len).is_ok())
        .ok_or_else(|| Error::limit(format!("{len} bytes do not fit in memory")).at(at))
}

/// Fills `out` with the bytes from `offset` on. Repeats short reads.
pub fn read_exact<S: ReadAt + ?Sized>(source: &S, out: &mut [u8], offset: u64) -> Result<()> {
    fill(source, out, offset, " of the archive")
}

/// Like [`read_exact`], for any source. `whole` is the end of the message if the source is too short, such as
/// ` of the archive`.
pub fn fill<S: ReadAt + ?Sized>(
    source: &S,
    out: &mut [u8],
    offset: u64,
    whole: &str,
) -> Result<()> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        let at = offset.saturating_add(done as u64);
        let missing = rest.len();
        match read_some(rest, |rest| source.read_at(rest, at)) {
            Ok(0) => return Err(Error::eof(&format!("{missing} more bytes{whole}")).at(at)),
            Ok(n) => done += n,
            Err(error) => return Err(Error::io(error).at(at)),
        }
    }
    Ok(())
}

/// `len` bytes from `offset` on. The caller has checked that the archive is long enough, since a copy is allocated
/// before it is read.
pub fn bytes<S: ReadAt + ?Sized>(source: &S, offset: u64, len: u64) -> Result<Cow<'_, [u8]>> {
    let len = in_memory(len, offset)?;
    if let Some(bytes) = present(source, offset, len) {
        return bytes.map(Cow::Borrowed);
    }
    let mut bytes = Vec::new();
    read_into(source, &mut bytes, offset, len)?;
    Ok(Cow::Owned(bytes))
}

/// Like [`bytes`], but a copy is made in `memory`, which may have been used before.
pub fn bytes_in<'b, S: ReadAt + ?Sized>(
    source: &'b S,
    offset: u64,
    len: u64,
    memory: &'b mut Vec<u8>,
) -> Result<&'b [u8]> {
    let len = in_memory(len, offset)?;
    if let Some(bytes) = present(source, offset, len) {
        return bytes;
    }
    read_into(source, memory, offset, len)?;
    Ok(memory)
}

/// Calls `each` with these bytes, piece by piece. Copies are made in `memory`, which may have been used before. The caller
/// has checked that the archive is long enough.
pub fn in_pieces<S: ReadAt + ?Sized>(
    source: &S,
    Range { start: mut at, end }: Range<u64>,
    memory: &mut Vec<u8>,
    mut each: impl FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    while at < end {
        let piece = bytes_in(source, at, (PIECE as u64).min(end - at), memory)?;
        each(piece)?;
        at += piece.len() as u64;
    }
    Ok(())
}

/// `len` bytes from `offset` on, if the source is in memory.
fn present<S: ReadAt + ?Sized>(source: &S, offset: u64, len: usize) -> Option<Result<&[u8]>> {
    let before = range(offset, len).and_then(|range| source.read_before(range));
    before
        .filter(|bytes| bytes.len() == len)
        .map(Ok)
        .or_else(|| Some(slice(source.contents()?, offset, len)))
}

/// Replaces the content of `memory` by `len` bytes from `offset` on.
fn read_into<S: ReadAt + ?Sized>(
    source: &S,
    memory: &mut Vec<u8>,
    offset: u64,
    len: usize,
) -> Result<()> {
    crate::io::source::reserve(memory, len.saturating_sub(memory.len()))?;
    memory.resize(len, 0);
    read_exact(source, memory, offset)
}

/// Like [`bytes`], for a source in memory: never copies.
pub fn borrowed<S: ReadAt + ?Sized>(source: &S, offset: u64, len: usize) -> Result<&[u8]> {
    let missing = || {
        Err(Error::unsupported(
            "views need tenarc::Map, or an archive in memory; load the value instead",
        )
        .at(offset))
    };
    present(source, offset, len).unwrap_or_else(missing)
}

/// The range of `len` bytes from `offset` on. `None` if it is too large for a `usize`.
pub fn range(offset: u64, len: usize) -> Option<Range<usize>> {
    let start = usize::try_from(offset).ok()?;
    Some(start..start.checked_add(len)?)
}

/// `len` bytes from `offset` on, in the contents of an archive.
pub fn slice(contents: &[u8], offset: u64, len: usize) -> Result<&[u8]> {
    let found = range(offset, len).and_then(|range| contents.get(range));
    found.ok_or_else(|| Error::eof(&format!("{len} bytes of the archive")).at(offset))
}

/// Reads a whole record with its hash. The record must not extend beyond `end`, and must not be longer than
/// `limit`: a sparse file can claim any length.
pub fn record<S: ReadAt + ?Sized>(
    source: &S,
    offset: u64,
    end: u64,
    limit: u64,
) -> Result<Cow<'_, [u8]>> {
    let room = end.saturating_sub(offset);
    let head = bytes(source, offset, room.min(MAX_RECORD_HEAD as u64))?;
    let Some(lengths) = format::record_len(&head) else {
        let error = if head.len() < MAX_RECORD_HEAD {
            Error::torn("the archive ends inside a record")
        } else {
            Error::damaged("expected a record, found other bytes")
        };
        return Err(error.at(offset));
    };
    check_record_len(lengths.total, offset, end, limit)?;
    bytes(source, offset, lengths.total)
}

/// Checks that a record of `len` bytes at `offset` ends before `end`, and is not longer than `limit`.
pub fn check_record_len(len: u64, offset: u64, end: u64, limit: u64) -> Result<()> {
    let room = end.saturating_sub(offset);
    if len > room {
        let what = format!("a header has {len} bytes, but the archive ends after {room} of them");
        return Err(Error::torn(what).at(offset));
    }
    if len > limit {
        let what = format!("a header has {len} bytes, the limit is {limit}");
        return Err(Error::limit(what).with_advice(Advice::MaxAlloc).at(offset));
    }
    Ok(())
}
