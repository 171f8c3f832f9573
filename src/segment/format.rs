//! The framing of an archive: records, padding, hashes and the tail, without the values.
//!
//! All functions here are pure. `SPEC.md` describes the same bytes in words.

use crate::error::{Advice, Category, Error, Result};
use crate::io::checksum;
use crate::io::chunks::ChunkLen;
use crate::io::input::Input;
use crate::options::Limits;
use crate::wire::head::{self, Head, Parsed};
use crate::wire::reader::Reader;

use super::items::{ItemEncoder, head_len, unsigned};
use super::packed::{Packed, PackedBuffers};

pub use crate::magic::MAGIC;

/// The format version that is written, and the only one that can be read.
pub const VERSION: u64 = 1;

pub const MIN_ALIGNMENT: u64 = 8;
pub const MAX_ALIGNMENT: u64 = 65_536;
/// Enough for GPU libraries and SIMD code.
pub const DEFAULT_ALIGNMENT: u64 = 256;

/// The maximum length of a segment's name in bytes.
pub const MAX_NAME: usize = 1024;

/// How the chunks of buffers are hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// They are not.
    None,
    Xxh3,
    /// With an algorithm that this version does not know, whose hashes have `len` bytes.
    Unknown {
        name: Box<str>,
        len: u64,
    },
}

impl Check {
    /// The name of the algorithm that this version knows.
    pub const NAME: &str = "xxh3-64";
    /// The maximum length of the name of an algorithm, and that of a hash.
    pub const MAX: usize = 64;

    /// The algorithm of this version, or none.
    pub fn on(on: bool) -> &'static Self {
        if on { &Self::Xxh3 } else { &Self::None }
    }

    /// The length of a hash in bytes. `None` if there are no hashes.
    fn hash_len(&self) -> Option<u64> {
        match self {
            Self::None => None,
            Self::Xxh3 => Some(checksum::LEN as u64),
            Self::Unknown { len, .. } => Some(*len),
        }
    }

    /// The tag around the hashes: a typed array of big-endian u64, or of u8 (RFC 8746, section 2.1).
    fn tag(&self) -> [u8; 2] {
        match self {
            Self::None | Self::Xxh3 => [0xd8, 67],
            Self::Unknown { .. } => [0xd8, 64],
        }
    }

    /// # Errors
    /// If this version does not know the algorithm.
    pub fn known(&self) -> Result<()> {
        match self {
            Self::None | Self::Xxh3 => Ok(()),
            Self::Unknown { name, .. } => {
                let name = name.escape_debug();
                let what = format!(
                    "the checksums of the buffers are made with `{name}`, which this version of tenarc does not know"
                );
                Err(Error::new(Category::Version, what).with_advice(Advice::NoChecksums))
            }
        }
    }
}

/// Tag 24, encoded CBOR data item (RFC 8949, section 3.4.5.1), in its two-byte form.
const EMBEDDED: [u8; 2] = [0xd8, 0x18];
/// The maximum length of a record's head: tag 24 and the head of a byte string.
pub const MAX_RECORD_HEAD: usize = 2 + 9;
/// The length of a hash as an item: a byte string's head and eight bytes.
pub const HASH_ITEM: usize = 1 + checksum::LEN;
const HASH_HEAD: u8 = head::BYTES << 5 | 8;

/// The kinds of records. Each has a tag of four ASCII letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordKind {
    Segment,
    Directory,
    End,
    /// Belongs to an end mark. This version knows none.
    Auxiliary,
}

impl RecordKind {
    const ALL: [Self; 4] = [Self::Segment, Self::Directory, Self::End, Self::Auxiliary];

    pub fn tag(self) -> u64 {
        u64::from(u32::from_be_bytes(match self {
            Self::Segment => *b"TSEG",
            Self::Directory => *b"TDIR",
            Self::End => *b"TEND",
            Self::Auxiliary => *b"TAUX",
        }))
    }

    /// The kind of a record by its first bytes, which are not verified. `None` if they are those of no record.
    pub fn of(record: &[u8]) -> Option<Self> {
        let content = record.get(record_len(record)?.head..)?;
        let [head, tag @ ..] = *content.first_chunk::<5>()?;
        let kind = Self::of_tag(u32::from_be_bytes(tag).into());
        kind.filter(|_| head == head::TAG << 5 | 0x1a)
    }

    fn of_tag(tag: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.tag() == tag)
    }
}

/// The head of a record with `len` bytes of content.
pub fn record_head(len: u64) -> Result<Vec<u8>> {
    let mut items = ItemEncoder::new();
    items.raw(&EMBEDDED)?.head(head::BYTES, len)?;
    Ok(items.into_bytes())
}

/// Encodes a hash as a byte string.
pub fn hash_item(hash: u64) -> [u8; HASH_ITEM] {
    let mut item = [HASH_HEAD; HASH_ITEM];
    item[1..].copy_from_slice(&hash.to_be_bytes());
    item
}

/// A complete record with its hash, to be written at `offset`. The hash depends on the offset.
pub fn sealed(content: &[u8], offset: u64) -> Result<Vec<u8>> {
    let mut record = record_head(content.len() as u64)?;
    record.reserve(content.len() + HASH_ITEM);
    record.extend_from_slice(content);
    let hash = checksum::of(&record, offset);
    record.extend_from_slice(&hash_item(hash));
    Ok(record)
}

/// The length of a record, read from its first bytes. `None` if `start` is not the start of a record.
pub fn record_len(start: &[u8]) -> Option<RecordLen> {
    let rest = start.strip_prefix(&EMBEDDED)?;
    let Parsed::Head(Head { initial, arg }, len) = head::parse(rest) else { return None };
    if initial >> 5 != head::BYTES || initial & 0x1f == head::INDEFINITE {
        return None;
    }
    let head = EMBEDDED.len() + len;
    // The total includes the hash.
    let total = arg.checked_add(head as u64)?.checked_add(HASH_ITEM as u64)?;
    Some(RecordLen { head, total })
}

#[derive(Clone, Copy, Debug)]
pub struct RecordLen {
    /// Bytes before the content.
    pub head: usize,
    /// Bytes of the whole record, including its hash.
    pub total: u64,
}

/// A record whose hash was verified. `wire` is positioned after the version, at the record's first field.
pub struct Record<'a> {
    pub kind: RecordKind,
    /// The record's own hash. It is the seed of the hash over the buffer checksums, so that these
    /// cannot belong to another header.
    pub hash: u64,
    /// The number of fields after the version.
    pub fields: u64,
    pub wire: Reader<'a, 'a>,
    /// Offset of the content from the start of the record.
    pub content: u64,
}

/// Returns an error if the record has a later format version. There is no version 0: a sector that a crash has lost can
/// leave one.
pub fn known_version(record: &[u8], offset: u64) -> Result<()> {
    let content = record_len(record).and_then(|lengths| record.get(lengths.head..));
    let mut wire = Reader::new(Input::slice(content.unwrap_or_default()), Limits::default());
    if let (Ok(tag), Ok(array), Ok(version)) = (wire.head(), wire.head(), wire.head())
        && tag.major() == head::TAG
        && RecordKind::of_tag(tag.arg).is_some()
        && array.major() == head::ARRAY
        && version.major() == head::UNSIGNED
        && version.arg > VERSION
    {
        let what = format!(
            "the archive has format version {}, this version of tenarc reads version {VERSION}",
            version.arg
        );
        return Err(Error::new(Category::Version, what).at(offset));
    }
    Ok(())
}

/// The length of the shortest heads of a record's tag, array and version: a tag of four letters takes five bytes, the others
/// take one.
const START: u64 = 7;

/// Verifies the hash of a whole record at `offset` and reads its tag and version.
pub fn open_record(record: &[u8], offset: u64) -> Result<Record<'_>> {
    let broken = |what: &str| Error::damaged(what.to_owned()).at(offset);
    let lengths = record_len(record)
        .filter(|lengths| lengths.total == record.len() as u64)
        .ok_or_else(|| broken("expected a record, found other bytes"))?;
    let (item, stored) = record
        .split_last_chunk::<HASH_ITEM>()
        .ok_or_else(|| broken("expected a record, found other bytes"))?;
    let content = item.get(lengths.head..).unwrap_or_default();

    // The version is checked before the hash, because another version may compute its hash differently.
    known_version(record, offset)?;
    let [first, hash @ ..] = *stored;
    let hash = u64::from_be_bytes(hash);
    let computed = checksum::of(item, offset);
    if first != HASH_HEAD || hash != computed {
        return Err(Error::damaged(format!(
            "wrong checksum of a header: computed {computed:016x}, stored {hash:016x}"
        ))
        .at(offset));
    }
    if lengths.head as u64 != EMBEDDED.len() as u64 + head_len(content.len() as u64) {
        return Err(broken("a record has a longer head than it needs"));
    }
    let mut wire = Reader::new(Input::slice(content), Limits::default());
    let mut head = || wire.head().map_err(|error| error.moved_by(offset + lengths.head as u64));
    let (tag, array, version) = (head()?, head()?, head()?);
    let is_shortest = wire.offset() == START;
    let kind = RecordKind::of_tag(tag.arg).filter(|_| is_shortest && tag.major() == head::TAG);
    let fields = array.length().filter(|_| array.major() == head::ARRAY);
    match (kind, fields) {
        (Some(kind), Some(fields))
            if version.major() == head::UNSIGNED && version.arg == VERSION && fields > 0 =>
        {
            Ok(Record { kind, hash, fields: fields - 1, wire, content: lengths.head as u64 })
        }
        _ => Err(Error::data("expected a record of an archive, found another item").at(offset)),
    }
}

/// The error for a record that must not be where it is.
#[cold]
pub fn misplaced(kind: RecordKind) -> Error {
    Error::damaged(match kind {
        RecordKind::Segment => "unexpected header of a segment",
        RecordKind::Directory => "unexpected block of the directory",
        RecordKind::End => "unexpected end mark",
        RecordKind::Auxiliary => "unexpected auxiliary record at the start of the archive",
    })
}

/// The maximum length of an auxiliary record in bytes.
pub const MAX_AUXILIARY: u64 = 16 << 20;

/// Verifies an auxiliary record, whose meaning this version does not know (SPEC 5.13).
pub fn check_auxiliary(record: &[u8], offset: u64) -> Result<()> {
    let fault = |what: &str| Error::data(what.to_owned()).at(offset);
    let mut opened = open_record(record, offset)?;
    if opened.kind != RecordKind::Auxiliary || opened.fields != 2 {
        return Err(fault("expected an auxiliary record of 3 items"));
    }
    let kind = unsigned(&mut opened.wire, "the kind of an auxiliary record")
        .map_err(|error| error.moved_by(offset))?;
    if opened.wire.offset() != START + head_len(kind) {
        return Err(fault("auxiliary record: its bytes are not the one encoding of its kind"));
    }
    Ok(())
}

/// Rounds `position` up to a multiple of `alignment`, which is a power of two. `None` on overflow.
pub fn align_up(position: u64, alignment: u64) -> Option<u64> {
    Some(position.checked_add(alignment - 1)? & !(alignment - 1))
}

/// `gap` bytes of padding before a body: a byte string of zeros, for some lengths after an empty one.
pub fn padding(gap: u64) -> Result<Vec<u8>> {
    let mut items = ItemEncoder::new();
    let mut left = gap;
    // One byte string cannot be 25 or 258 bytes long: from there on its head takes another byte.
    if matches!(gap, 25 | 258) {
        items.raw(&[head::BYTES << 5])?;
        left -= 1;
    }
    if left > 0 {
        let head = match left {
            1..=24 => 1,
            25..=257 => 2,
            _ => 3,
        };
        let content = left - head;
        items.head(head::BYTES, content)?;
        items.raw(&vec![0; usize::try_from(content).unwrap_or(0)])?;
    }
    Ok(items.into_bytes())
}

/// Where a buffer is, and how it is stored.
#[derive(Clone, Copy, Debug)]
pub enum BufferPlace<'a> {
    /// Its bytes are in the archive as they are.
    Plain { start: u64, len: u64 },
    /// Its chunks are compressed, and stored one after the other.
    Packed(PackedPlace<'a>),
}

/// Where a compressed buffer is.
#[derive(Clone, Copy, Debug)]
pub struct PackedPlace<'a> {
    /// The offset of the first stored chunk.
    pub start: u64,
    /// The length of the buffer after it was decompressed.
    pub len: u64,
    pub how: &'a Packed,
}

impl<'a> BufferPlace<'a> {
    /// The offset of the first stored byte.
    pub fn start(self) -> u64 {
        match self {
            Self::Plain { start, .. } | Self::Packed(PackedPlace { start, .. }) => start,
        }
    }

    /// The length of the buffer, after it was decompressed.
    pub fn len(self) -> u64 {
        match self {
            Self::Plain { len, .. } | Self::Packed(PackedPlace { len, .. }) => len,
        }
    }

    /// The number of stored bytes.
    pub fn stored_len(self) -> u64 {
        match self {
            Self::Plain { len, .. } => len,
            Self::Packed(PackedPlace { how, .. }) => how.stored_len(),
        }
    }

    /// The number of chunks whose bytes are in the archive.
    pub fn chunks(self, chunk_len: ChunkLen) -> u64 {
        match self {
            Self::Plain { len, .. } => chunk_len.count(len),
            Self::Packed(PackedPlace { how, .. }) => how.chunks(),
        }
    }

    /// How the buffer is compressed. `None` if it is not.
    pub fn packed(self) -> Option<&'a Packed> {
        match self {
            Self::Plain { .. } => None,
            Self::Packed(PackedPlace { how, .. }) => Some(how),
        }
    }

    /// Offset and length of the buffer's bytes.
    ///
    /// # Errors
    /// If the buffer is compressed.
    pub fn plain(self) -> Result<(u64, u64)> {
        match self {
            Self::Plain { start, len } => Ok((start, len)),
            Self::Packed(PackedPlace { start, how, .. }) => {
                how.coding.is_here()?;
                let what = format!(
                    "compressed with {} and cannot be viewed: load it instead",
                    how.coding.shown()
                );
                Err(Error::unsupported(what).at(start))
            }
        }
    }
}

/// The positions of a segment's pieces, as offsets in the archive.
#[derive(Clone, Debug)]
pub struct SegmentLayout {
    /// Offset and length of each buffer. For a compressed buffer, the length is not the number of bytes there: use
    /// [`place`](Self::place) to read a buffer.
    pub buffers: Vec<(u64, u64)>,
    /// How the compressed buffers are stored.
    pub packed: PackedBuffers,
    /// The end of the header and its hash.
    pub header_end: u64,
    pub body_start: u64,
    pub body_end: u64,
    /// The bytes of these hashes.
    hashes: u64,
    /// The end of the segment.
    pub end: u64,
}

impl SegmentLayout {
    /// Computes the layout. Returns `None` if the segment would end at or after offset 2^63.
    pub fn new(
        header_end: u64,
        alignment: u64,
        lengths: impl ExactSizeIterator<Item = u64>,
        packed: PackedBuffers,
        check: &Check,
        chunk_len: ChunkLen,
    ) -> Option<Self> {
        let hash_len = check.hash_len();
        let mut buffers = Vec::with_capacity(lengths.len());
        let (mut end, mut chunks) = (0u64, 0u64);
        for (number, len) in lengths.enumerate() {
            let start = match packed.get(&number) {
                Some(packed) => {
                    let start = end;
                    end = start.checked_add(packed.stored_len())?;
                    start
                }
                None => {
                    let start = align_up(end, alignment)?;
                    end = start.checked_add(len)?;
                    start
                }
            };
            chunks += hash_len.map_or(0, |_| chunk_len.count(len));
            buffers.push((start, len));
        }
        if buffers.is_empty() {
            return Some(Self {
                buffers,
                packed,
                header_end,
                body_start: header_end,
                body_end: header_end,
                hashes: 0,
                end: header_end,
            });
        }
        let head_at = header_end.checked_add(head_len(end))?;
        let body_start = align_up(head_at, alignment)?;
        let body_end = body_start.checked_add(end)?;
        for (start, _) in &mut buffers {
            *start += body_start;
        }
        let hashes = chunks.checked_mul(hash_len.unwrap_or(0))?;
        let hashes_len = check.tag().len() as u64 + head_len(hashes);
        let end = body_end.checked_add(hashes_len)?.checked_add(hashes)?;
        let end = end.checked_add(HASH_ITEM as u64)?;
        i64::try_from(end).ok()?;
        Some(Self { buffers, packed, header_end, body_start, body_end, hashes, end })
    }

    /// Where a buffer is. `None` if there is no buffer with this number.
    pub fn place(&self, number: usize) -> Option<BufferPlace<'_>> {
        let &(start, len) = self.buffers.get(number)?;
        Some(match self.packed.get(&number) {
            Some(how) => BufferPlace::Packed(PackedPlace { start, len, how }),
            None => BufferPlace::Plain { start, len },
        })
    }

    /// Where the buffers are, in their order.
    pub fn places(&self) -> impl Iterator<Item = BufferPlace<'_>> {
        (0..self.buffers.len()).filter_map(|number| self.place(number))
    }

    /// Length of the trailer after the body: the hashes of the chunks and the hash over them. 0 without buffers.
    pub fn trailer_len(&self) -> u64 {
        self.end - self.body_end
    }

    /// The bytes between the header and the first buffer.
    pub fn before_body(&self) -> Result<Vec<u8>> {
        let len = self.body_end - self.body_start;
        let gap = self.body_start - head_len(len) - self.header_end;
        let mut items = ItemEncoder::new();
        items.raw(&padding(gap)?)?.head(head::BYTES, len)?;
        Ok(items.into_bytes())
    }
}

/// The array of the hashes of the chunks. `hashes` are their bytes.
pub fn hashes_item(check: &Check, hashes: &[u8]) -> Result<Vec<u8>> {
    let mut items = ItemEncoder::new();
    items.raw(&check.tag())?.head(head::BYTES, hashes.len() as u64)?.raw(hashes)?;
    Ok(items.into_bytes())
}

/// The bytes after the body: the hashes of the buffers' chunks, and a hash over them. That last hash uses the
/// header's hash as its seed, so that the trailer cannot belong to another header.
pub fn trailer(mut item: Vec<u8>, header_hash: u64) -> Vec<u8> {
    let hash = checksum::of(&item, header_hash);
    item.extend_from_slice(&hash_item(hash));
    item
}

/// Verifies the trailer of a segment with this layout, and returns the bytes of its hashes.
pub fn open_trailer<'a>(
    trailer: &'a [u8],
    check: &Check,
    layout: &SegmentLayout,
    header_hash: u64,
    at: u64,
) -> Result<&'a [u8]> {
    let broken =
        || Error::damaged("the checksums of the buffers do not belong to the header").at(at);
    let (item, stored) = trailer.split_last_chunk::<HASH_ITEM>().ok_or_else(broken)?;
    if *stored != hash_item(checksum::of(item, header_hash)) {
        return Err(broken());
    }
    let hashes = unverified_hashes(item, layout).ok_or_else(broken)?;
    if item != hashes_item(check, hashes)? {
        return Err(broken());
    }
    Ok(hashes)
}

/// The bytes of the hashes at the end of the array `item`. `None` if it is too short.
fn unverified_hashes<'a>(item: &'a [u8], layout: &SegmentLayout) -> Option<&'a [u8]> {
    let start = item.len().checked_sub(usize::try_from(layout.hashes).ok()?)?;
    item.get(start..)
}

/// Hashes of 64 bits from their bytes.
pub fn hashes_of(content: &[u8]) -> Vec<u64> {
    let (words, _) = content.as_chunks();
    words.iter().map(|word| u64::from_be_bytes(*word)).collect()
}

/// The length of the tail.
pub const TAIL: usize = 2 + 40;
const TAIL_HEAD: [u8; 10] = *b"\x58\x28TARCTAIL";

/// The least number of bytes that a drive writes as a whole, or not at all. A tail is never in two of them.
const SECTOR: u64 = 512;

/// The offset of the tail whose end mark ends at `end`. `None` on overflow.
pub fn tail_at(end: u64) -> Option<u64> {
    if end % SECTOR <= SECTOR - TAIL as u64 { Some(end) } else { align_up(end, SECTOR) }
}

/// The last bytes of an archive. They say where the end mark is and how long, and their own offset.
pub fn tail(end_mark: u64, mark_len: u64, offset: u64) -> [u8; TAIL] {
    let mut tail = [0; TAIL];
    tail[..10].copy_from_slice(&TAIL_HEAD);
    tail[10..18].copy_from_slice(&end_mark.to_be_bytes());
    tail[18..26].copy_from_slice(&mark_len.to_be_bytes());
    tail[26..34].copy_from_slice(&offset.to_be_bytes());
    let hash = checksum::of(&tail[..34], offset);
    tail[34..].copy_from_slice(&hash.to_be_bytes());
    tail
}

/// The offset and length of the end mark that belongs to a tail at `offset`. `None` if the bytes are not a valid tail.
pub fn open_tail(bytes: &[u8; TAIL], offset: u64) -> Option<(u64, u64)> {
    let (end_mark, mark_len) = intact_tail(bytes, offset)?;
    let is_there = mark_len > 0 && tail_at(end_mark.checked_add(mark_len)?)? == offset;
    is_there.then_some((end_mark, mark_len))
}

/// The offset and length of an end mark, wherever that is, which a tail at `offset` says. `None` if the tail is not intact.
pub fn intact_tail(bytes: &[u8; TAIL], offset: u64) -> Option<(u64, u64)> {
    let end_mark = u64::from_be_bytes(*bytes.get(10..)?.first_chunk()?);
    let mark_len = u64::from_be_bytes(*bytes.get(18..)?.first_chunk()?);
    (*bytes == tail(end_mark, mark_len, offset)).then_some((end_mark, mark_len))
}

/// Whether the bytes start like a tail.
pub fn starts_tail(bytes: &[u8]) -> bool {
    bytes.starts_with(&TAIL_HEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paddings_of_all_lengths_are_byte_strings_of_zeros() {
        let most = if cfg!(miri) { 40 } else { 65_536 };
        for gap in (0..3000).chain(65_000..65_536).take_while(|&gap| gap < most) {
            let bytes = padding(gap).unwrap();
            assert_eq!(bytes.len() as u64, gap);
            let mut wire = Reader::new(Input::slice(&bytes), Limits::default());
            let mut items = 0;
            while wire.peek().unwrap().is_some() {
                let head = wire.head().unwrap();
                assert_eq!(head.major(), head::BYTES);
                let content = wire.string(head).unwrap();
                assert!(content.as_slice().iter().all(|&byte| byte == 0));
                items += 1;
            }
            assert_eq!(items, usize::from(gap > 0) + usize::from(matches!(gap, 25 | 258)));
        }
    }

    #[test]
    fn bodies_start_aligned_wherever_the_header_ends() {
        let chunk = ChunkLen::default();
        for alignment in [8, 256, 65_536] {
            let step = if cfg!(miri) { 97 } else { 1 };
            for header_end in (12..300).chain(65_500..65_600).step_by(step) {
                for len in [1, 23, 24, 255, 256, 65_535, 65_536, 1 << 32] {
                    let lengths = [len, 3];
                    let layout = SegmentLayout::new(
                        header_end,
                        alignment,
                        lengths.into_iter(),
                        PackedBuffers::new(),
                        &Check::Xxh3,
                        chunk,
                    )
                    .unwrap();
                    assert!(layout.buffers.iter().all(|(start, _)| start % alignment == 0));
                    let before = layout.before_body().unwrap().len() as u64;
                    assert_eq!(header_end + before, layout.body_start);
                    let hashes = vec![0; 8 * usize::try_from(chunk.count(len) + 1).unwrap()];
                    let item = hashes_item(&Check::Xxh3, &hashes).unwrap();
                    let trailer = trailer(item, 0).len() as u64;
                    assert_eq!(layout.body_end + trailer, layout.end);
                }
            }
        }
    }

    #[test]
    fn lengths_that_overflow_have_no_layout() {
        for lengths in [[u64::MAX, 1], [1, u64::MAX], [u64::MAX / 2, u64::MAX / 2]] {
            let layout = SegmentLayout::new(
                12,
                256,
                lengths.into_iter(),
                PackedBuffers::new(),
                &Check::Xxh3,
                ChunkLen::default(),
            );
            assert!(layout.is_none());
        }
    }

    #[test]
    fn a_tail_is_one_only_at_its_place() {
        let bytes = tail(100, 150, 250);
        assert_eq!(open_tail(&bytes, 250), Some((100, 150)));
        assert_eq!(open_tail(&bytes, 251), None);
        for at in 0..bytes.len() {
            let mut other = bytes;
            other[at] ^= 1;
            assert_eq!(open_tail(&other, 250), None, "{at}");
        }
        for (mark, len, at) in [(250, 0, 250), (100, 149, 250), (u64::MAX, 2, 1), (100, 150, 251)] {
            assert_eq!(open_tail(&tail(mark, len, at), at), None, "{mark} {len} {at}");
        }
    }

    #[test]
    fn a_tail_is_in_one_sector() {
        for end in 0..2000 {
            let at = tail_at(end).unwrap();
            assert_eq!(at / 512, (at + TAIL as u64 - 1) / 512, "{end}");
            let expected = if end % 512 <= 470 { end } else { end.next_multiple_of(512) };
            assert_eq!(at, expected);
        }
        assert_eq!(tail_at(u64::MAX), None);
    }
}
