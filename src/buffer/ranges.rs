//! Reads parts of a buffer, and verifies the chunks that they touch.

use std::borrow::Cow;
use std::ops::Range;

use super::chunked;
use super::loaded::Loaded;
use super::slice::PayloadPart;
use super::source;
use super::unpack::Unpack;
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::io::checksum;
use crate::options::DecodeOptions;
use crate::segment::buffers::{StoredHashes, stored_range};
use crate::segment::format::BufferPlace;

/// Reads parts of one buffer of a segment.
pub enum Ranges<'a, S: ?Sized> {
    Plain(PlainBuffer<'a, S>),
    Packed(Unpack<'a, S>),
}

impl<'a, S: ReadAt + ?Sized> Ranges<'a, S> {
    pub fn new(
        source: &'a S,
        loaded: &'a Loaded,
        number: u64,
        options: DecodeOptions,
    ) -> Result<Self> {
        Ok(match loaded.buffer(number, options)? {
            BufferPlace::Plain { start, len } => {
                let stored = loaded.stored(source, number, options)?;
                Self::Plain(PlainBuffer { source, start, len, stored, options, held: None })
            }
            BufferPlace::Packed(place) => {
                Self::Packed(Unpack::new(source, loaded, number, place, options)?)
            }
        })
    }

    /// The bytes of a part of the buffer, run by run. They are borrowed if they are one run in memory.
    pub fn runs(&mut self, part: &PayloadPart) -> Result<Cow<'a, [u8]>> {
        match self {
            Self::Plain(plain) => {
                if let Some(bytes) = plain.borrowed(part)? {
                    return Ok(Cow::Borrowed(bytes));
                }
            }
            Self::Packed(unpack) => unpack.check_part(part.len() as u64)?,
        }
        let mut bytes = Vec::new();
        crate::io::source::reserve(&mut bytes, part.len())?;
        bytes.resize(part.len(), 0);
        self.read_runs(part, 0, &mut bytes)?;
        Ok(Cow::Owned(bytes))
    }

    /// Fills `out` with the bytes of the runs, one run after the other, without the first `skipped` bytes.
    pub fn read_runs(
        &mut self,
        part: &PayloadPart,
        skipped: usize,
        mut out: &mut [u8],
    ) -> Result<()> {
        let mut before = skipped;
        for (at, len) in part.runs() {
            let from = before.min(len);
            before -= from;
            let (now, rest) = out.split_at_mut((len - from).min(out.len()));
            if !now.is_empty() {
                self.read((at + from) as u64, now)?;
            }
            out = rest;
        }
        Ok(())
    }

    /// Fills `out` with the bytes of the buffer from `at` on.
    pub fn read(&mut self, at: u64, out: &mut [u8]) -> Result<()> {
        match self {
            Self::Plain(plain) => plain.read(at, out),
            Self::Packed(unpack) => unpack.read(at, out),
        }
    }
}

/// The ranges of the archive with a part of a buffer: chunks, or only the part itself if it is not verified. There are none if the
/// buffer cannot be read.
pub fn stored_ranges(
    loaded: &Loaded,
    part: &PayloadPart,
    number: u64,
    options: DecodeOptions,
) -> Vec<Range<u64>> {
    let Ok(place) = loaded.buffer(number, options) else { return Vec::new() };
    let chunk_len = loaded.header.chunk_len;
    let stored = |(at, len): (usize, usize)| {
        let (start, end) = (at as u64, (at as u64).saturating_add(len as u64));
        if place.packed().is_none() && !loaded.verifies(options) {
            return place.start() + start..place.start() + end;
        }
        let chunk = |byte: u64| stored_range(place, chunk_len, byte / chunk_len.get());
        chunk(start).start..chunk(end.saturating_sub(1)).end
    };
    part.runs().filter(|&(_, len)| len > 0).map(stored).collect()
}

/// A buffer that is stored as it is.
pub struct PlainBuffer<'a, S: ?Sized> {
    source: &'a S,
    /// Offset and length of the buffer.
    start: u64,
    len: u64,
    /// `None` if nothing is verified.
    stored: Option<StoredHashes<'a>>,
    options: DecodeOptions,
    /// The number and the bytes of the last chunk that was read for a part of it.
    held: Option<(u64, Cow<'a, [u8]>)>,
}

impl<'a, S: ReadAt + ?Sized> PlainBuffer<'a, S> {
    /// The bytes of a part of the buffer, if they are one run in memory.
    fn borrowed(&mut self, part: &PayloadPart) -> Result<Option<&'a [u8]>> {
        let mut runs = part.runs();
        let (Some((at, len)), None) = (runs.next(), runs.next()) else { return Ok(None) };
        if self.source.contents().is_none() {
            return Ok(None);
        }
        self.verify(at as u64..(at + len) as u64)?;
        source::borrowed(self.source, self.start + at as u64, len).map(Some)
    }

    /// Fills `out` with the bytes of the buffer from `at` on.
    fn read(&mut self, at: u64, mut out: &mut [u8]) -> Result<()> {
        let Some(stored) = self.stored else {
            return chunked::read(self.source, self.start + at, None, out, self.options);
        };
        let wanted = at..at.saturating_add(out.len() as u64);
        for piece in stored.chunk_len().divide(wanted, self.len) {
            let (now, rest) = out.split_at_mut(piece.len);
            out = rest;
            if piece.is_whole {
                let start = self.start + stored.chunk(piece.index).start;
                let hashes = Some((stored, piece.index));
                chunked::read(self.source, start, hashes, now, self.options)?;
            } else {
                now.copy_from_slice(&self.hold(&stored, piece.index)?[piece.from..][..piece.len]);
            }
        }
        Ok(())
    }

    /// Verifies the chunks with these bytes of the buffer. The source must be in memory.
    fn verify(&mut self, bytes: Range<u64>) -> Result<()> {
        let Some(stored) = self.stored.filter(|_| !bytes.is_empty()) else { return Ok(()) };
        let chunk_len = stored.chunk_len().get();
        for index in bytes.start / chunk_len..=(bytes.end - 1) / chunk_len {
            self.hold(&stored, index)?;
        }
        Ok(())
    }

    /// The verified bytes of a chunk.
    fn hold(&mut self, stored: &StoredHashes<'_>, index: u64) -> Result<&[u8]> {
        if self.held.as_ref().is_none_or(|(held, _)| *held != index) {
            let Range { start, end } = stored.chunk(index);
            let bytes = source::bytes(self.source, self.start + start, end - start)?;
            stored.check(index, checksum::of(&bytes, 0))?;
            self.held = Some((index, bytes));
        }
        Ok(self.held.as_ref().map_or(&[], |(_, bytes)| bytes))
    }
}
