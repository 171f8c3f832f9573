//! What is kept of a segment that was looked at.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::directory::Entry;
use super::source;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::options::{DecodeOptions, Limits};
use crate::segment::buffers::no_such;
use crate::segment::format::{self, Kind};
use crate::segment::header::Header;

/// A segment's header, verified, and what is read of the segment later.
#[derive(Debug)]
pub struct Loaded {
    pub header: Header,
    /// The record, where the source does not hold it in memory itself.
    record: Option<Vec<u8>>,
    /// Where the archive ends, or the part of it that is read.
    archive_end: u64,
    hashes: OnceLock<Vec<u64>>,
}

impl Loaded {
    /// Reads the header at `offset`, which must end where `end` is or before. The segment may be cut there:
    /// see [`missing_bytes`](Self::missing_bytes).
    pub fn read<S: ReadAt + ?Sized>(
        source: &S,
        offset: u64,
        end: u64,
        limits: Limits,
    ) -> Result<Self> {
        let record = source::record(source, offset, end, limits.alloc_budget(false))?;
        let opened = format::open_record(&record, offset)?;
        if opened.kind != Kind::Segment {
            return Err(Error::data("expected a segment, found another record").at(offset));
        }
        let header = Header::parse(opened, record.len() as u64, offset)?;
        let record = match record {
            Cow::Borrowed(_) => None,
            Cow::Owned(record) => Some(record),
        };
        Ok(Self { header, record, archive_end: end, hashes: OnceLock::new() })
    }

    /// How many bytes of the segment the archive is too short for.
    pub fn missing_bytes(&self) -> u64 {
        self.header.layout.end.saturating_sub(self.archive_end)
    }

    /// That bytes are missing, as an error.
    pub fn cut_error(&self) -> Error {
        let missing = self.missing_bytes();
        let what = format!("a segment of which the last {missing} bytes are missing");
        Error::torn(what).at(self.header.offset)
    }

    pub fn entry(&self) -> Entry {
        Entry { offset: self.header.offset, name: self.header.name.clone() }
    }

    /// Start and length of a buffer, all of which is there.
    pub fn buffer(&self, number: u64) -> Result<(u64, u64)> {
        let (start, len) = self.header.buffer(number).ok_or_else(|| no_such(number))?;
        if start + len <= self.archive_end {
            return Ok((start, len));
        }
        let there = self.archive_end.saturating_sub(start);
        let what = format!("buffer {number} was cut off: {there} of its {len} bytes are there");
        Err(Error::torn(what).at(start))
    }

    /// That what `options` ask to be verified can be.
    pub fn check_verifiable(&self, options: DecodeOptions) -> Result<()> {
        if options.checksums && self.header.checked && self.missing_bytes() > 0 {
            return Err(self.hashes_cut_off());
        }
        Ok(())
    }

    fn hashes_cut_off(&self) -> Error {
        let missing = self.missing_bytes();
        let what = format!(
            "the checksums of this segment's tensors were cut off with its last {missing} bytes, so that the \
             tensors cannot be verified: DecodeOptions::with_checksums(false) reads those that are there"
        );
        Error::torn(what).at(self.header.layout.body_end)
    }

    /// The metadata, an item of CBOR.
    pub fn metadata<'a, S: ReadAt + ?Sized>(&'a self, source: &'a S) -> Result<&'a [u8]> {
        let range = self.header.metadata.clone();
        match &self.record {
            Some(record) => Ok(record.get(range).unwrap_or_default()),
            None => source::held(source, self.header.metadata_offset(), range.len()),
        }
    }

    /// The checksums of the buffers, verified against the header; none where there are none.
    pub fn hashes<S: ReadAt + ?Sized>(&self, source: &S) -> Result<&[u64]> {
        if let Some(hashes) = self.hashes.get() {
            return Ok(hashes);
        }
        let layout = &self.header.layout;
        if layout.trailer_len() == 0 {
            return Ok(&[]);
        }
        if self.missing_bytes() > 0 {
            return Err(self.hashes_cut_off());
        }
        let trailer = source::bytes(source, layout.body_end, layout.trailer_len())?;
        let hashes = self.header.open_trailer(&trailer)?;
        Ok(self.hashes.get_or_init(|| hashes))
    }
}
