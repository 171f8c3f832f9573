//! A segment whose header has been read.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use super::source;
use crate::error::{Advice, Error, Result};
use crate::io::at::ReadAt;
use crate::io::chunks::Hashes;
use crate::options::{DecodeOptions, Limits};
use crate::path::list;
use crate::segment::buffers::{Checker, StoredHashes, no_such};
use crate::segment::format::{self, BufferPlace, Check, RecordKind};
use crate::segment::header::Header;

/// The verified header of a segment. Keeps the checksums of the buffers after they were first read.
#[derive(Debug)]
pub struct Loaded {
    pub header: Header,
    /// Bytes that end with the header's record, and the number of those before it. `None` if the source is in memory and
    /// has it.
    record: Option<(Vec<u8>, usize)>,
    /// The end of the archive, or of the part of it that may be read.
    archive_end: u64,
    hashes: OnceLock<Hashes>,
    /// The largest trailer that is read into memory: a sparse file can claim any length.
    limit: u64,
}

impl Loaded {
    /// Reads the header at `offset`, which must not extend beyond `end`. The rest of the segment may:
    /// see [`missing_bytes`](Self::missing_bytes).
    pub fn read<S: ReadAt + ?Sized>(
        source: &S,
        offset: u64,
        end: u64,
        limits: Limits,
    ) -> Result<Self> {
        let limit = limits.longest();
        Self::of(source::record(source, offset, end, limit)?, 0, offset, end, limit)
    }

    /// Like [`read`](Self::read), for a header whose length is known, in one read. `bytes` returns that many bytes of
    /// the archive from the segment's offset on, behind `before` others.
    pub fn read_known<'a>(
        offset: u64,
        len: u64,
        end: u64,
        limits: Limits,
        before: usize,
        bytes: impl FnOnce(u64) -> Result<Cow<'a, [u8]>>,
    ) -> Result<Self> {
        let limit = limits.longest();
        source::check_record_len(len, offset, end, limit)?;
        let bytes = bytes(len)?;
        let record = bytes.get(before..).unwrap_or_default();
        if format::record_len(record).is_none_or(|found| found.total != len) {
            format::known_version(record, offset)?;
            let what = format!("expected a header of {len} bytes, as the directory says");
            return Err(Error::damaged(what).at(offset));
        }
        Self::of(bytes, before, offset, end, limit)
    }

    fn of(bytes: Cow<'_, [u8]>, before: usize, offset: u64, end: u64, limit: u64) -> Result<Self> {
        let record = bytes.get(before..).unwrap_or_default();
        let opened = format::open_record(record, offset)?;
        if opened.kind != RecordKind::Segment {
            return Err(Error::data("expected a segment, found another record").at(offset));
        }
        let header = Header::parse(opened, record.len() as u64, offset)?;
        let record = match bytes {
            Cow::Borrowed(_) => None,
            Cow::Owned(bytes) => Some((bytes, before)),
        };
        Ok(Self { header, record, archive_end: end, hashes: OnceLock::new(), limit })
    }

    /// The number of bytes of the segment after the end of the archive.
    pub fn missing_bytes(&self) -> u64 {
        self.header.layout.end.saturating_sub(self.archive_end)
    }

    /// The number of bytes of the segment that are present.
    pub fn present_bytes(&self) -> u64 {
        self.header.byte_len().saturating_sub(self.missing_bytes())
    }

    /// The number of bytes of the segment that are present, without and with those of compressed buffers: see
    /// [`Limits::memory`](crate::options::Limits::memory).
    pub fn input(&self) -> (u64, u64) {
        let stored =
            self.header.layout.packed.values().map(crate::segment::packed::Packed::stored_len);
        let present = self.present_bytes();
        let packed = stored.fold(0, u64::saturating_add).min(present);
        (present - packed, packed)
    }

    /// The error for a segment that is not complete.
    pub fn cut_error(&self) -> Error {
        let missing = self.missing_bytes();
        let what = format!("the archive ends {missing} bytes before the end of a segment");
        Error::torn(what).at(self.header.offset)
    }

    /// The bytes of the hashes of all chunks, verified against the header, also if this version does not know the hash.
    pub fn hash_bytes<S: ReadAt + ?Sized>(&self, source: &S) -> Result<Vec<u8>> {
        let header = &self.header;
        if header.count() == 0 {
            return Ok(Vec::new());
        }
        if !matches!(header.check, Check::Unknown { .. }) {
            return Ok(self.hashes(source)?.bytes());
        }
        let trailer = self.trailer(source)?;
        header.hashes_in(&trailer, header.layout.body_end).map(<[u8]>::to_vec)
    }

    /// The place of a buffer whose bytes may be read. All reads of tensors call this first. Parts and copies of
    /// a segment call [`hashes`](Self::hashes) first, which is an error for every incomplete segment.
    ///
    /// # Errors
    /// - There is no buffer with this number, or it is not complete.
    /// - `options` ask for verified tensors, but the checksums were cut off (SPEC 5.8). This is an error for views
    ///   and slices too, although these verify nothing: the user must ask for tensors that nobody can verify.
    pub fn buffer(&self, number: u64, options: DecodeOptions) -> Result<BufferPlace<'_>> {
        let place = self.stored_buffer(number)?;
        self.header.ext.check("the header", self.header.offset)?;
        if options.checksums {
            self.header.check.known().map_err(|error| error.at(self.header.offset))?;
        }
        if self.missing_bytes() > 0 && self.verifies(options) {
            return Err(self.hashes_cut_off());
        }
        Ok(place)
    }

    /// The place of a buffer whose stored bytes may be read, but not used.
    ///
    /// # Errors
    /// There is no buffer with this number, or it is not complete.
    pub fn stored_buffer(&self, number: u64) -> Result<BufferPlace<'_>> {
        let place = self.header.buffer(number).ok_or_else(|| no_such(number))?;
        if place.start() + place.stored_len() > self.archive_end {
            return Err(self.buffer_cut_off(number, place.start(), place.stored_len()));
        }
        Ok(place)
    }

    #[cold]
    fn buffer_cut_off(&self, number: u64, start: u64, len: u64) -> Error {
        let there = self.archive_end.saturating_sub(start);
        let what = format!(
            "the archive ends inside buffer {number}: it has {there} of the buffer's {len} bytes"
        );
        Error::torn(what).at(start)
    }

    #[cold]
    fn hashes_cut_off(&self) -> Error {
        let missing = self.missing_bytes();
        let what = format!(
            "the tensors of this segment cannot be verified: their checksums are in its last {missing} bytes, which \
             are missing"
        );
        Error::torn(what).at(self.header.layout.body_end).with_advice(Advice::NoChecksums)
    }

    /// The metadata, one CBOR item.
    ///
    /// # Errors
    /// If the header has an extension that this version does not know and must not ignore.
    pub fn metadata<'a, S: ReadAt + ?Sized>(&'a self, source: &'a S) -> Result<&'a [u8]> {
        self.header.ext.check("the header", self.header.offset)?;
        self.stored_metadata(source)
    }

    /// The metadata, whatever it means.
    pub fn stored_metadata<'a, S: ReadAt + ?Sized>(&'a self, source: &'a S) -> Result<&'a [u8]> {
        let range = self.header.metadata.clone();
        match &self.record {
            Some((bytes, before)) => {
                Ok(bytes.get(range.start + before..range.end + before).unwrap_or_default())
            }
            None => source::borrowed(source, self.header.metadata_offset(), range.len()),
        }
    }

    /// The checksums of the buffers, verified against the header. There are none if the segment has no checksums.
    pub fn hashes<S: ReadAt + ?Sized>(&self, source: &S) -> Result<&Hashes> {
        if let Some(hashes) = self.hashes.get() {
            return Ok(hashes);
        }
        if self.header.layout.trailer_len() == 0 {
            return Ok(self.hashes.get_or_init(Hashes::default));
        }
        let trailer = self.trailer(source)?;
        let hashes = self.header.open_trailer(&trailer, self.header.layout.body_end)?;
        Ok(self.hashes.get_or_init(|| hashes))
    }

    /// The range of the archive with the checksums of the buffers. `None` if they were read, or there are none.
    pub fn unread_hashes(&self) -> Option<Range<u64>> {
        let layout = &self.header.layout;
        let is_unread = self.hashes.get().is_none() && layout.trailer_len() > 0;
        is_unread.then(|| layout.body_end..layout.body_end.saturating_add(layout.trailer_len()))
    }

    /// Keeps the checksums of the buffers if these bytes are the trailer.
    pub fn offer_trailer(&self, trailer: &[u8]) {
        // If they are damaged, this is said when they are needed.
        if let Ok(hashes) = self.header.open_trailer(trailer, self.header.layout.body_end) {
            self.hashes.get_or_init(|| hashes);
        }
    }

    /// The list of checksums after the body, which is not verified.
    pub fn trailer<'a, S: ReadAt + ?Sized>(&self, source: &'a S) -> Result<Cow<'a, [u8]>> {
        let layout = &self.header.layout;
        if self.missing_bytes() > 0 {
            return Err(self.cut_error());
        }
        let (at, len) = (layout.body_end, layout.trailer_len());
        if len > self.limit {
            let limit = self.limit;
            let what = format!("the checksums of a segment have {len} bytes, the limit is {limit}");
            return Err(Error::limit(what).with_advice(Advice::MaxAlloc).at(at));
        }
        source::bytes(source, at, len)
    }

    /// Whether `options` ask to verify the buffers, and these have checksums.
    pub fn verifies(&self, options: DecodeOptions) -> bool {
        options.checksums && self.header.is_checked()
    }

    /// The checksums of a buffer. `None` if they are not verified.
    pub fn stored<S: ReadAt + ?Sized>(
        &self,
        source: &S,
        number: u64,
        options: DecodeOptions,
    ) -> Result<Option<StoredHashes<'_>>> {
        if !self.verifies(options) {
            return Ok(None);
        }
        StoredHashes::new(&self.header, number, self.hashes(source)?).map(Some)
    }

    /// Returns the comparison of the bytes of a buffer with its checksums. `None` if they are not verified.
    pub fn checker<S: ReadAt + ?Sized>(
        &self,
        source: &S,
        number: u64,
        options: DecodeOptions,
    ) -> Result<Option<Checker<'_>>> {
        Ok(self.stored(source, number, options)?.map(Checker::new))
    }

    /// Adds the path of the first tensor in a buffer to an error; see [`list::in_content`].
    #[cold]
    pub fn in_tensor<S: ReadAt + ?Sized>(&self, source: &S, number: u64, error: Error) -> Error {
        match self.metadata(source) {
            Ok(metadata) => list::in_content(metadata, &self.header, number, error),
            Err(_) => error,
        }
    }
}
