//! The header of a segment.

use std::borrow::Cow;
use std::sync::Arc;

use super::ext::{self, Ext};
use super::format::{self, BufferPlace, Check, Record, RecordKind, SegmentLayout};
use super::items::{ItemEncoder, head_len, unsigned};
use super::packed::{self, PackedBuffers};
use crate::error::{Error, Result};
use crate::io::checksum;
use crate::io::chunks::{ChunkLen, Hashes};
use crate::io::input::Input;
use crate::options::Limits;
use crate::wire::columns::Start;
use crate::wire::head;
use crate::wire::reader::Reader;

/// The decoded header of a segment.
#[derive(Clone, Debug)]
pub struct Header {
    /// Offset of the segment in the archive.
    pub offset: u64,
    pub name: Option<Arc<str>>,
    /// How the buffers are hashed.
    pub check: Check,
    /// The length of the chunks that have checksums.
    pub chunk_len: ChunkLen,
    pub alignment: u64,
    pub layout: SegmentLayout,
    pub ext: Ext,
    /// The range of the metadata, relative to the start of the segment.
    pub metadata: std::ops::Range<usize>,
    /// The hash stored with the header.
    pub hash: u64,
}

/// The content of a header that is about to be written.
pub struct HeaderContent<'a> {
    pub name: Option<&'a str>,
    pub alignment: u64,
    pub check: &'a Check,
    pub chunk_len: ChunkLen,
    /// The length of each buffer in bytes.
    pub lengths: &'a [u64],
    /// How the compressed buffers are stored.
    pub packed: &'a PackedBuffers,
    pub ext: &'a Ext,
    pub metadata: &'a [u8],
}

impl<'a> HeaderContent<'a> {
    /// The header record as pieces to be written at `offset`, and its hash. The metadata is not copied.
    pub fn record(&self, offset: u64) -> Result<([Cow<'a, [u8]>; 4], u64)> {
        let before = self.before_metadata()?;
        let start = format::record_head((before.len() + self.metadata.len()) as u64)?;
        let hash = checksum::of_pieces(&[&start, &before, self.metadata], offset);
        let hash_item = format::hash_item(hash).to_vec();
        Ok(([start.into(), before.into(), self.metadata.into(), hash_item.into()], hash))
    }

    /// The places of everything in a segment whose header ends at `header_end`.
    ///
    /// # Errors
    /// If the archive would be too long.
    pub fn layout(&self, header_end: u64) -> Result<SegmentLayout> {
        let Self { alignment, check, chunk_len, .. } = *self;
        let lengths = self.lengths.iter().copied();
        let packed = self.packed.clone();
        let layout = SegmentLayout::new(header_end, alignment, lengths, packed, check, chunk_len);
        layout.ok_or_else(|| Error::limit("the archive would be longer than 2^63 bytes"))
    }

    /// The content of the record up to the metadata.
    pub fn before_metadata(&self) -> Result<Vec<u8>> {
        let Self { name, alignment, check, chunk_len, lengths, packed, ext, .. } = *self;
        let mut items = ItemEncoder::new();
        items.head(head::TAG, RecordKind::Segment.tag())?;
        items.head(head::ARRAY, 8)?.head(head::UNSIGNED, format::VERSION)?.name(name)?;
        items.head(head::UNSIGNED, alignment)?;
        match check {
            Check::None => items.name(None)?,
            Check::Xxh3 => items.name(Some(Check::NAME))?,
            Check::Unknown { name, len } => {
                items.head(head::ARRAY, 2)?.name(Some(name))?.head(head::UNSIGNED, *len)?
            }
        };
        items.head(head::UNSIGNED, chunk_len.get())?;
        items.head(head::ARRAY, lengths.len() as u64)?;
        for (number, &len) in lengths.iter().enumerate() {
            match packed.get(&number) {
                Some(packed) => packed::write(packed, len, &mut items)?,
                None => {
                    items.head(head::UNSIGNED, len)?;
                }
            }
        }
        items.raw(ext.bytes())?;
        Ok(items.into_bytes())
    }
}

impl Header {
    /// Parses a verified record. `record_len` is its length including the hash, `offset` its position.
    pub fn parse(mut record: Record<'_>, record_len: u64, offset: u64) -> Result<Self> {
        let base = offset + record.content;
        Self::fields(&mut record, record_len, offset).map_err(|error| error.moved_by(base))
    }

    fn fields(record: &mut Record<'_>, record_len: u64, offset: u64) -> Result<Self> {
        let wire = &mut record.wire;
        if record.fields != 7 {
            let found = record.fields + 1;
            let what = format!(
                "expected a header of 8 items, found {found}: its writer was faulty, or is newer than this version"
            );
            return Err(Error::data(what).at(0));
        }
        let start = (wire.offset(), wire.rest());
        let name = name(wire)?;
        let at = wire.offset();
        let alignment = unsigned(wire, "an alignment")?;
        if !alignment.is_power_of_two()
            || !(format::MIN_ALIGNMENT..=format::MAX_ALIGNMENT).contains(&alignment)
        {
            return Err(Error::data(format!(
                "expected an alignment that is a power of two from {} to {}, found {alignment}",
                format::MIN_ALIGNMENT,
                format::MAX_ALIGNMENT
            ))
            .at(at));
        }
        let at = wire.offset();
        let check = check(wire, at)?;
        let at = wire.offset();
        let chunk_len = unsigned(wire, "the length of a chunk")?;
        let chunk_len = ChunkLen::new(chunk_len)
            .ok_or_else(|| Error::data(ChunkLen::expected(chunk_len)).at(at))?;
        let at = wire.offset();
        let head = wire.head()?;
        let left = wire.bytes_left();
        let count = usize::try_from(head.arg).ok().filter(|&count| count <= left);
        let Some(count) = count.filter(|_| head.major() == head::ARRAY && !head.is_indefinite())
        else {
            return Err(Error::data("expected an array of buffer lengths").at(at));
        };
        let rest = wire.rest();
        let (start, before) = (start.0, start.1.get(..start.1.len() - rest.len()));
        if let Some(longer) = before.and_then(ext::longer_head) {
            return Err(longer_head().at(start + longer as u64));
        }
        let mut lengths = Vec::with_capacity(count);
        let mut packed = PackedBuffers::new();
        let mut end = 0;
        for number in 0..count {
            let there = rest.get(end..).unwrap_or_default();
            let at = wire.offset() + end as u64;
            match head::definite(there) {
                Some((head::UNSIGNED, len, found)) => {
                    if found as u64 != head_len(len) {
                        return Err(longer_head().at(at));
                    }
                    lengths.push(len);
                    end += found;
                }
                Some((head::ARRAY, ..)) => {
                    let found = packed::parse(there, chunk_len).map_err(|refused| {
                        Error::data(refused.what).at(at.saturating_add(refused.at as u64))
                    });
                    let (len, how, description_len) = found?;
                    lengths.push(len);
                    packed.insert(number, how);
                    end += description_len;
                }
                _ => {
                    return Err(Error::data(
                        "expected the length of a buffer as an unsigned integer, or an array that describes a \
                         compressed buffer or one elsewhere",
                    )
                    .at(at));
                }
            }
        }
        wire.pass(end);
        let header_end = offset.saturating_add(record_len);
        let lengths = lengths.into_iter();
        let layout = SegmentLayout::new(header_end, alignment, lengths, packed, &check, chunk_len);
        let layout = layout.ok_or_else(|| {
            Error::data("the lengths of the buffers add up to more than 2^63 bytes").at(at)
        })?;
        let at = wire.offset();
        let ext = Ext::parse(wire.rest())
            .map_err(|refused| Error::data(refused.what).at(at + refused.at as u64))?;
        wire.pass(ext.bytes().len());
        let content = usize::try_from(record.content).unwrap_or(usize::MAX);
        let start = usize::try_from(wire.offset()).unwrap_or(usize::MAX);
        let end = start + wire.bytes_left();
        Ok(Self {
            offset,
            name,
            check,
            chunk_len,
            alignment,
            layout,
            ext,
            metadata: content + start..content + end,
            hash: record.hash,
        })
    }

    /// The length of the header's record.
    pub fn record_len(&self) -> u64 {
        self.layout.header_end.saturating_sub(self.offset)
    }

    /// The number of buffers.
    pub fn count(&self) -> usize {
        self.layout.buffers.len()
    }

    /// The length of the segment in bytes.
    pub fn byte_len(&self) -> u64 {
        self.layout.end.saturating_sub(self.offset)
    }

    /// Where a buffer is.
    pub fn buffer(&self, number: u64) -> Option<BufferPlace<'_>> {
        self.layout.place(usize::try_from(number).ok()?)
    }

    /// The length of each buffer.
    pub fn lengths(&self) -> Vec<u64> {
        self.layout.buffers.iter().map(|&(_, len)| len).collect()
    }

    /// Returns the content of a header that differs from this one only in name, buffers and metadata.
    pub fn content<'a>(
        &'a self,
        name: Option<&'a str>,
        lengths: &'a [u64],
        packed: &'a PackedBuffers,
        metadata: &'a [u8],
    ) -> HeaderContent<'a> {
        let Self { alignment, chunk_len, ref check, ref ext, .. } = *self;
        HeaderContent { name, alignment, check, chunk_len, lengths, packed, ext, metadata }
    }

    /// Verifies the trailer, which is at offset `at`, and returns the checksums of the buffers, if they have any.
    pub fn open_trailer(&self, trailer: &[u8], at: u64) -> Result<Hashes> {
        let bytes = self.hashes_in(trailer, at)?;
        if !self.is_checked() {
            return Ok(Hashes::default());
        }
        let lengths = self.layout.buffers.iter().map(|&(_, len)| len);
        Ok(Hashes::new(format::hashes_of(bytes), lengths, self.chunk_len))
    }

    /// Verifies the trailer, which is at offset `at`, and returns the bytes of the hashes.
    pub fn hashes_in<'a>(&self, trailer: &'a [u8], at: u64) -> Result<&'a [u8]> {
        format::open_trailer(trailer, &self.check, &self.layout, self.hash, at)
    }

    /// Whether the buffers have checksums that this version knows.
    pub fn is_checked(&self) -> bool {
        self.check == Check::Xxh3
    }

    /// The hashes of the buffers after they were decompressed. `hashes` are those of the stored chunks, and `content`
    /// returns the bytes of a buffer.
    pub fn unpacked_hashes<'h, 'b>(
        &self,
        hashes: &'h Hashes,
        content: impl Fn(usize) -> Option<&'b [u8]>,
    ) -> Cow<'h, Hashes> {
        if self.layout.packed.is_empty() || !self.is_checked() {
            return Cow::Borrowed(hashes);
        }
        let chunk = usize::try_from(self.chunk_len.get()).unwrap_or(usize::MAX);
        let mut all = Hashes::default();
        for number in 0..self.count() {
            if self.layout.packed.contains_key(&number) {
                let chunks = content(number).unwrap_or_default().chunks(chunk);
                chunks.for_each(|chunk| all.push(checksum::of(chunk, 0)));
            } else {
                hashes.of(number).unwrap_or_default().iter().for_each(|&hash| all.push(hash));
            }
            all.end_buffer();
        }
        Cow::Owned(all)
    }

    /// Offset of the metadata in the archive.
    pub fn metadata_offset(&self) -> u64 {
        self.offset + self.metadata.start as u64
    }
}

fn optional_text(wire: &mut Reader<'_, '_>, max: usize) -> Result<Option<Box<str>>> {
    let at = wire.offset();
    let found = wire.head()?;
    if found.initial == head::NULL {
        return Ok(None);
    }
    if found.major() != head::TEXT || found.is_indefinite() || found.arg > max as u64 {
        let what = format!("expected null or a text of at most {max} bytes");
        return Err(Error::data(what).at(at));
    }
    Ok(Some(wire.text(found)?.as_str().into()))
}

/// The number of elements of a value that is stored as an array or as columns, without tags around it.
pub fn rows(metadata: &[u8]) -> Option<u64> {
    let columns = metadata.starts_with(&COLUMNS);
    if !columns && metadata.first().is_none_or(|&first| first >> 5 != head::ARRAY) {
        return None;
    }
    let mut wire = Reader::new(Input::slice(metadata), Limits::default());
    let mut count = || {
        let Start::Columns = wire.sequence()? else { return Ok(metadata_len(metadata)) };
        wire.within(2, |wire| {
            let (mut left, mut rows) = (wire.groups()?, 0u64);
            while let Some(group) = wire.group_rows(&mut left)? {
                rows = rows.saturating_add(group as u64);
                wire.skip()?;
            }
            Ok(Some(rows))
        })
    };
    let found: Result<Option<u64>> = count();
    found.unwrap_or(None)
}

/// The length of the array at the start of the metadata.
fn metadata_len(metadata: &[u8]) -> Option<u64> {
    head::definite(metadata).map(|(_, len, _)| len)
}

/// The tag of columns, with its head.
const COLUMNS: [u8; 5] = *b"\xdaTCOL";

#[cold]
fn longer_head() -> Error {
    Error::data("expected the shortest head in a header")
}

/// Reads how buffers are hashed. `at` is the current offset.
fn check(wire: &mut Reader<'_, '_>, at: u64) -> Result<Check> {
    let fault = |what: String| Err(Error::data(what).at(at));
    if wire.rest().first() != Some(&(head::ARRAY << 5 | 2)) {
        return match optional_text(wire, Check::MAX)?.as_deref() {
            None => Ok(Check::None),
            Some(Check::NAME) => Ok(Check::Xxh3),
            Some(other) => {
                let (found, known) = (other.escape_debug(), Check::NAME);
                fault(format!(
                    "expected null, {known}, or an array of an algorithm's name and length, found {found}"
                ))
            }
        };
    }
    wire.head()?;
    let name = optional_text(wire, Check::MAX)?.unwrap_or_default();
    let len = unsigned(wire, "the length of a hash")?;
    if name.is_empty() || *name == *Check::NAME || !(1..=Check::MAX as u64).contains(&len) {
        let name = name.escape_debug();
        return fault(format!(
            "expected the name of another checksum algorithm and a length from 1 to 64, found `{name}` and {len}"
        ));
    }
    Ok(Check::Unknown { name, len })
}

/// Reads the name of a segment: a text, or null for none.
pub fn name(wire: &mut Reader<'_, '_>) -> Result<Option<Arc<str>>> {
    optional_text(wire, format::MAX_NAME).map(|name| name.map(Arc::from))
}
