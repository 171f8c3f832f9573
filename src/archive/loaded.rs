//! What is kept of a segment that was looked at.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::source;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::options::Limits;
use crate::segment::format::{self, Kind};
use crate::segment::header::Header;

/// A segment's header, verified, and what is read of the segment later.
#[derive(Debug)]
pub struct Loaded {
    pub header: Header,
    /// The record, where the source does not hold it in memory itself.
    record: Option<Vec<u8>>,
    hashes: OnceLock<Vec<u64>>,
}

impl Loaded {
    /// Reads the header at `offset`; the segment must end where `end` is or before.
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
        if header.layout.end > end {
            let missing = header.layout.end - end;
            let what = format!("a segment of which the last {missing} bytes are missing");
            return Err(Error::torn(what).at(offset));
        }
        let record = match record {
            Cow::Borrowed(_) => None,
            Cow::Owned(record) => Some(record),
        };
        Ok(Self { header, record, hashes: OnceLock::new() })
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
        let trailer = source::bytes(source, layout.body_end, layout.trailer_len())?;
        let hashes = self.header.open_trailer(&trailer)?;
        Ok(self.hashes.get_or_init(|| hashes))
    }
}
