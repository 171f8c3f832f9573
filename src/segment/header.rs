//! The header of a segment.

use std::borrow::Cow;

use super::format::{self, Items, Layout, Place, Record, RecordKind};
use super::packed::{self, PackedBuffers};
use crate::error::{Error, Result};
use crate::io::checksum;
use crate::io::chunks::{ChunkLen, Hashes};
use crate::io::source::SliceRead;
use crate::wire::head;
use crate::wire::reader::Reader;

/// The decoded header of a segment.
#[derive(Clone, Debug)]
pub struct Header {
    /// Offset of the segment in the archive.
    pub offset: u64,
    pub name: Option<Box<str>>,
    /// Whether the buffers have checksums.
    pub checked: bool,
    /// The length of the chunks that have checksums.
    pub chunk_len: ChunkLen,
    pub alignment: u64,
    pub layout: Layout,
    /// The range of the metadata, relative to the start of the segment.
    pub metadata: std::ops::Range<usize>,
    /// The hash stored with the header.
    pub hash: u64,
}

/// The content of a header that is about to be written.
pub struct Content<'a> {
    pub name: Option<&'a str>,
    pub alignment: u64,
    pub checked: bool,
    pub chunk_len: ChunkLen,
    /// The length of each buffer in bytes.
    pub lengths: &'a [u64],
    /// How the compressed buffers are stored.
    pub packed: &'a PackedBuffers,
    pub metadata: &'a [u8],
}

impl<'a> Content<'a> {
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
    pub fn layout(&self, header_end: u64) -> Result<Layout> {
        let check = self.checked.then_some(self.chunk_len);
        let lengths = self.lengths.iter().copied();
        let layout = Layout::new(header_end, self.alignment, lengths, self.packed.clone(), check);
        layout.ok_or_else(|| Error::limit("the archive would be longer than 2^63 bytes"))
    }

    /// The content of the record up to the metadata.
    pub fn before_metadata(&self) -> Result<Vec<u8>> {
        let Self { name, alignment, checked, chunk_len, lengths, packed, .. } = *self;
        let mut items = Items::new();
        items.head(head::TAG, RecordKind::Segment.tag())?;
        items.head(head::ARRAY, 7)?.head(head::UNSIGNED, format::VERSION)?.name(name)?;
        items.head(head::UNSIGNED, alignment)?.name(checked.then_some(format::CHECK))?;
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
        if record.fields != 6 {
            let found = record.fields + 1;
            return Err(Error::data(format!("expected a header of 7 items, found {found}")).at(0));
        }
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
        let checked = match optional_text(wire, 64)?.as_deref() {
            None => false,
            Some(format::CHECK) => true,
            Some(other) => {
                let (found, known) = (other.escape_debug(), format::CHECK);
                let what = format!("expected the checksum algorithm {known}, found {found}");
                return Err(Error::new(crate::error::Category::Version, what).at(at));
            }
        };
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
        let mut lengths = Vec::with_capacity(count);
        let mut packed = PackedBuffers::new();
        let rest = wire.rest();
        let mut end = 0;
        for number in 0..count {
            let there = rest.get(end..).unwrap_or_default();
            let at = wire.offset() + end as u64;
            match head::definite(there) {
                Some((head::UNSIGNED, len, head_len)) => {
                    lengths.push(len);
                    end += head_len;
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
                         compressed buffer",
                    )
                    .at(at));
                }
            }
        }
        wire.pass(end);
        let header_end = offset.saturating_add(record_len);
        let check = checked.then_some(chunk_len);
        let layout = Layout::new(header_end, alignment, lengths.into_iter(), packed, check)
            .ok_or_else(|| {
                Error::data("the lengths of the buffers add up to more than 2^63 bytes").at(at)
            })?;
        let content = usize::try_from(record.content).unwrap_or(usize::MAX);
        let start = usize::try_from(wire.offset()).unwrap_or(usize::MAX);
        let end = start + wire.bytes_left();
        Ok(Self {
            offset,
            name,
            checked,
            chunk_len,
            alignment,
            layout,
            metadata: content + start..content + end,
            hash: record.hash,
        })
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
    pub fn buffer(&self, number: u64) -> Option<Place<'_>> {
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
    ) -> Content<'a> {
        let Self { alignment, checked, chunk_len, .. } = *self;
        Content { name, alignment, checked, chunk_len, lengths, packed, metadata }
    }

    /// Verifies the trailer, which is at offset `at`, and returns the checksums of the buffers, if they have any.
    pub fn open_trailer(&self, trailer: &[u8], at: u64) -> Result<Hashes> {
        let all = format::open_trailer(trailer, self.layout.chunks, self.hash, at)?;
        if !self.checked {
            return Ok(Hashes::default());
        }
        let lengths = self.layout.buffers.iter().map(|&(_, len)| len);
        Ok(Hashes::new(all, lengths, self.chunk_len))
    }

    /// The hashes of the buffers after they were decompressed. `hashes` are those of the stored chunks, and `content`
    /// returns the bytes of a buffer.
    pub fn unpacked_hashes<'h, 'b>(
        &self,
        hashes: &'h Hashes,
        content: impl Fn(usize) -> Option<&'b [u8]>,
    ) -> Cow<'h, Hashes> {
        if self.layout.packed.is_empty() || !self.checked {
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

fn optional_text(wire: &mut Reader<SliceRead<'_>>, max: usize) -> Result<Option<Box<str>>> {
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

/// Reads the name of a segment: a text, or null for none.
pub fn name(wire: &mut Reader<SliceRead<'_>>) -> Result<Option<Box<str>>> {
    optional_text(wire, format::MAX_NAME)
}

pub fn unsigned(wire: &mut Reader<SliceRead<'_>>, what: &str) -> Result<u64> {
    let at = wire.offset();
    let found = wire.head()?;
    if found.major() == head::UNSIGNED {
        return Ok(found.arg);
    }
    let found = head::name(found.initial);
    Err(Error::data(format!("expected {what}, found {found}")).at(at))
}
