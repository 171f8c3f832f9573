//! The directory of an archive: where its segments are.
//!
//! The directory is a tree of blocks, and the end mark is its root. A full block is written once, between
//! two segments, and never changes. The root holds the entries that are in no block yet, fewer than
//! one block at each level. So an archive of a million segments needs as little memory, and as few
//! bytes for each append, as an archive of a few.

use std::ops::Range;
use std::sync::Arc;

use super::digest::Digest;
use crate::buffer::loaded::Loaded;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::segment::ext::{self, Ext};
use crate::segment::format::{self, Record, RecordKind};
use crate::segment::header::{self, Header};
use crate::segment::items::{ItemEncoder, unsigned};
use crate::wire::head;
use crate::wire::reader::Reader;

/// The number of entries in a block.
pub const FAN: u64 = 64;
/// The maximum number of levels: 64^11 exceeds 2^64, so that no archive needs more.
const MAX_LEVELS: usize = 11;
/// The maximum length in bytes of the record of a block or of an end mark.
pub const MAX_RECORD: u64 = 256 << 10;

/// The length of the shortest segment: its header has null for the name and for the checksum algorithm, no
/// buffers, no extensions, and one byte of metadata.
const MIN_SEGMENT: u8 = 30;

/// Whether this many segments fit before `offset`.
fn have_room(segments: u64, offset: u64) -> bool {
    segments <= offset.saturating_sub(format::MAGIC.len() as u64) / u64::from(MIN_SEGMENT)
}

/// What the directory says of a segment, if it was read or computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fact<T> {
    Unknown,
    /// `None` if the segment has no such property.
    Known(Option<T>),
}

impl<T: Copy + PartialEq> Fact<T> {
    fn get(self) -> Option<T> {
        match self {
            Self::Unknown => None,
            Self::Known(value) => value,
        }
    }

    /// Whether the two do not contradict each other.
    fn agrees(self, other: Self) -> bool {
        self == Self::Unknown || other == Self::Unknown || self == other
    }
}

/// What the directory of an archive says of a saved value: [`Archive::entries`](crate::Archive::entries). The value's header
/// was not read.
///
/// ```
/// let mut out = tenarc::OArchive::new(Vec::new())?;
/// out.save_as("loss", &[0.5, 0.25])?.save_as("epoch", &2)?;
/// let archive = tenarc::Archive::new(out.finish()?)?;
/// for entry in archive.entries() {
///     let entry = entry?;
///     match entry.name() {
///         Some("loss") => assert_eq!(entry.rows(), Some(2)),
///         _ => assert_eq!(entry.rows(), None), // a number has no rows
///     }
/// }
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Entry {
    pub(crate) offset: u64,
    /// The length of the header's record.
    pub(crate) header_len: u64,
    /// Many segments have the same name, which is then in memory once.
    pub(crate) name: Option<Arc<str>>,
    pub(crate) rows: Fact<u64>,
    pub(crate) digest: Fact<Digest>,
}

impl Entry {
    /// What the header says at once.
    pub(super) fn of(header: &Header) -> Self {
        Self {
            offset: header.offset,
            header_len: header.record_len(),
            name: header.name.clone(),
            rows: Fact::Unknown,
            digest: Fact::Unknown,
        }
    }

    /// The offset of the value's segment in the archive.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The name that the value was saved under, if any.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The number of elements, if the value is a sequence that is stored as an array or as columns.
    pub fn rows(&self) -> Option<u64> {
        self.rows.get()
    }

    /// The length of the value's header in bytes, with its checksum.
    pub fn header_len(&self) -> u64 {
        self.header_len
    }

    /// Whether both describe the same segment. Facts that only one of them knows are not compared, and neither is a
    /// missing digest: a writer may have been unable to compute it.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let digests = [self.digest, other.digest];
        self.offset == other.offset
            && self.header_len == other.header_len
            && self.name == other.name
            && self.rows.agrees(other.rows)
            && (digests.contains(&Fact::Known(None)) || digests[0].agrees(digests[1]))
    }
}

/// Where a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockAt {
    pub offset: u64,
    /// The length of its record.
    pub len: u64,
}

impl BlockAt {
    /// The range of its record in the archive.
    pub fn range(self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.len)
    }
}

/// The content of a block.
#[derive(Clone, Debug)]
pub enum DirectoryBlock {
    Segments(Vec<Entry>),
    /// Blocks one level lower.
    Blocks(Vec<BlockAt>),
}

impl DirectoryBlock {
    /// The record of a block of this level, to be written at `offset`.
    pub fn record(&self, level: usize, offset: u64) -> Result<Vec<u8>> {
        let mut items = ItemEncoder::with_capacity(match self {
            Self::Segments(entries) => entries.len() * (ENTRY + DIGEST),
            Self::Blocks(blocks) => blocks.len() * ENTRY,
        });
        start(&mut items, RecordKind::Directory, 4)?.head(head::UNSIGNED, level as u64)?;
        match self {
            Self::Segments(entries) => put_entries(&mut items, entries, true)?,
            Self::Blocks(blocks) => put_blocks(&mut items, blocks)?,
        }
        items.raw(Ext::default().bytes())?;
        format::sealed(&items.into_bytes(), offset)
    }

    /// Reads the record of a block of `level` at `offset`. The block must be full, its offsets must be before
    /// its own, and its segments must fit before it. Also returns the extensions.
    pub fn open(record: &[u8], level: usize, offset: u64) -> Result<(Self, Ext)> {
        let fault = |what: &str| Error::data(format!("directory: {what}")).at(offset);
        let mut opened = format::open_record(record, offset)?;
        if opened.kind != RecordKind::Directory || opened.fields != 3 {
            return Err(fault("expected a block of the directory, found another record"));
        }
        let content = opened.wire.rest();
        let wire = &mut opened.wire;
        let found = unsigned(wire, "a level")?;
        if found != level as u64 {
            let what = format!("expected a block of level {level}, found level {found}");
            return Err(fault(&what));
        }
        if !have_room(span(level), offset) {
            let what = format!("{} segments do not fit before byte {offset}", span(level));
            return Err(fault(&what));
        }
        let (block, len, sorted) = if found == 0 {
            let entries = take_entries(wire, offset, true)?;
            let sorted = entries.is_sorted_by(|a, b| a.offset < b.offset);
            let len = entries.len();
            (Self::Segments(entries), len, sorted)
        } else {
            let blocks = take_blocks(wire, offset)?;
            let sorted = blocks.is_sorted_by(|a, b| a.offset < b.offset);
            let len = blocks.len();
            (Self::Blocks(blocks), len, sorted)
        };
        if len as u64 != FAN || !sorted {
            return Err(fault("the block is not full, or its entries are not in order"));
        }
        Ok((block, take_ext(content, wire, offset)?))
    }

    /// Compares the record of the block at `offset` with this content, as far as that is known. Returns where the block is,
    /// and its extensions.
    pub fn compare(&self, record: &[u8], level: usize, offset: u64) -> Result<(BlockAt, Ext)> {
        let (found, ext) = Self::open(record, level, offset)?;
        let agrees = match (self, &found) {
            (Self::Segments(a), Self::Segments(b)) => agree(a, b),
            (Self::Blocks(a), Self::Blocks(b)) => a == b,
            _ => false,
        };
        if !agrees {
            let what = "a block of the directory does not match the segments before it";
            return Err(Error::damaged(what).at(offset));
        }
        Ok((BlockAt { offset, len: record.len() as u64 }, ext))
    }
}

fn agree(a: &[Entry], b: &[Entry]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.agrees(b))
}

/// The root of the directory: at each level, the entries that are in no block yet.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    count: u64,
    /// The latest segments, which are in no block yet.
    entries: Vec<Entry>,
    /// Level 0 are blocks of entries; the blocks of each further level lead to blocks one level lower.
    levels: Vec<Vec<BlockAt>>,
}

/// Where to find the entry of a segment.
pub enum EntryPlace<'a> {
    Here(&'a Entry),
    /// In this block, as entry number `rest` of all the entries under that block.
    Block {
        block: BlockAt,
        level: usize,
        rest: u64,
    },
}

impl Directory {
    /// The number of segments.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a segment. If this fills blocks, they must be taken by [`take_full`](Self::take_full) before another one is
    /// added.
    pub fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
        self.count += 1;
    }

    /// Takes the content of the next block that is full, and its level. It must be passed to [`filed`](Self::filed).
    pub fn take_full(&mut self) -> Option<(usize, DirectoryBlock)> {
        let is_full = |len: usize| len as u64 >= FAN;
        if is_full(self.entries.len()) {
            return Some((0, DirectoryBlock::Segments(std::mem::take(&mut self.entries))));
        }
        let full = self.levels.iter().position(|blocks| is_full(blocks.len()))?;
        let blocks = self.levels.get_mut(full).map(std::mem::take)?;
        Some((full + 1, DirectoryBlock::Blocks(blocks)))
    }

    /// Says where a block of this level is.
    pub fn filed(&mut self, level: usize, block: BlockAt) {
        if level == self.levels.len() {
            self.levels.push(Vec::new());
        }
        if let Some(blocks) = self.levels.get_mut(level) {
            blocks.push(block);
        }
    }

    /// Writes the blocks that are full, from `position` on.
    pub fn write_full(
        &mut self,
        mut position: u64,
        mut write: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        while let Some((level, block)) = self.take_full() {
            let record = block.record(level, position)?;
            write(&record)?;
            let len = record.len() as u64;
            self.filed(level, BlockAt { offset: position, len });
            position += len;
        }
        Ok(())
    }

    /// The record of the end mark, to be written at `offset`.
    fn record(&self, offset: u64) -> Result<Vec<u8>> {
        let blocks: usize = self.levels.iter().map(Vec::len).sum();
        let mut items = ItemEncoder::with_capacity((self.entries.len() + blocks) * ENTRY);
        start(&mut items, RecordKind::End, 5)?.head(head::UNSIGNED, self.count)?;
        put_entries(&mut items, &self.entries, false)?;
        items.head(head::ARRAY, self.levels.len() as u64)?;
        for blocks in &self.levels {
            put_blocks(&mut items, blocks)?;
        }
        items.raw(Ext::default().bytes())?;
        format::sealed(&items.into_bytes(), offset)
    }

    /// The record of the end mark with the padding behind it, to be written at `offset`, and the tail, to be written after
    /// these are durable.
    pub fn end_mark(&self, offset: u64) -> Result<(Vec<u8>, [u8; format::TAIL])> {
        let mut mark = self.record(offset)?;
        let Behind { padding, tail } = Behind::of(offset, mark.len() as u64)?;
        mark.extend(padding);
        Ok((mark, tail))
    }

    /// Compares the record of the end mark at `offset` with this directory, as far as that is known. Returns what must follow
    /// the record, and its extensions.
    pub fn compare(&self, record: &[u8], offset: u64) -> Result<(Behind, Ext)> {
        let (found, ext) = Self::open(record, offset)?;
        let agrees = self.count == found.count
            && agree(&self.entries, &found.entries)
            && self.levels == found.levels;
        if !agrees {
            let what = "the end mark does not match the segments before it";
            return Err(Error::damaged(what).at(offset));
        }
        Ok((Behind::of(offset, record.len() as u64)?, ext))
    }

    /// Reads the record of the end mark at `offset`. Also returns its extensions.
    pub fn open(record: &[u8], offset: u64) -> Result<(Self, Ext)> {
        let mut opened = format::open_record(record, offset)?;
        Self::parse(&mut opened, offset).map_err(|error| error.at(offset))
    }

    fn parse(record: &mut Record<'_>, offset: u64) -> Result<(Self, Ext)> {
        let fault = |what: &str| Error::data(format!("end mark: {what}")).at(offset);
        if record.kind != RecordKind::End || record.fields != 4 {
            return Err(fault("expected an end mark of 5 items, found another record"));
        }
        let content = record.wire.rest();
        let wire = &mut record.wire;
        let count = unsigned(wire, "a number of segments")?;
        let entries = take_entries(wire, offset, false)?;
        let levels = array(wire)?;
        if levels > MAX_LEVELS {
            let what = format!("expected at most {MAX_LEVELS} levels, found {levels}");
            return Err(fault(&what));
        }
        let mut directory = Self { count, entries, levels: Vec::with_capacity(levels) };
        for _ in 0..levels {
            directory.levels.push(take_blocks(wire, offset)?);
        }
        let ext = take_ext(content, wire, offset)?;
        // A writer never leaves a level full, and writes the number of segments that the root leads to.
        let mut covered = Some(directory.entries.len() as u64);
        let mut full = directory.entries.len() as u64 >= FAN;
        for (level, blocks) in directory.levels.iter().enumerate() {
            let len = blocks.len() as u64;
            full |= len >= FAN;
            if len > 0 {
                let inside = checked_span(level).and_then(|span| span.checked_mul(len));
                covered = covered.zip(inside).and_then(|(sum, inside)| sum.checked_add(inside));
            }
        }
        let ordered = directory.levels.iter().rev().flatten().map(|block| block.offset);
        let ordered = ordered.chain(directory.entries.iter().map(|entry| entry.offset));
        if !have_room(count, offset) {
            let what = format!("{count} segments do not fit before byte {offset}");
            return Err(fault(&what));
        }
        // A list that became empty has filled one above it.
        let ends_empty = directory.levels.last().is_some_and(Vec::is_empty);
        if full || ends_empty || covered != Some(count) || !ordered.is_sorted_by(|a, b| a < b) {
            return Err(fault("the directory does not match the number of segments"));
        }
        Ok((directory, ext))
    }

    /// Finds the place of the entry of segment `index`.
    pub fn find(&self, index: u64) -> Option<EntryPlace<'_>> {
        let mut rest = index;
        for (level, blocks) in self.levels.iter().enumerate().rev() {
            let span = span(level);
            let number = rest / span;
            if let Some(&block) = blocks.get(usize::try_from(number).ok()?) {
                return Some(EntryPlace::Block { block, level, rest: rest % span });
            }
            rest -= blocks.len() as u64 * span;
        }
        self.entries.get(usize::try_from(rest).ok()?).map(EntryPlace::Here)
    }

    /// The latest segments, which are in no block yet.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Like [`entries`](Self::entries), to add what is unknown.
    pub fn entries_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }

    /// Removes the segment that was added last, unless it is in a block already.
    pub fn pop(&mut self) {
        if self.entries.pop().is_some() {
            self.count -= 1;
        }
    }

    /// Whether the next segment will fill a block.
    pub fn is_nearly_full(&self) -> bool {
        self.entries.len() as u64 + 1 == FAN
    }

    /// The blocks that the root refers to, and their levels, latest first.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, BlockAt)> {
        let levels = self.levels.iter().enumerate();
        levels.flat_map(|(level, blocks)| blocks.iter().rev().map(move |&block| (level, block)))
    }
}

/// What follows the record of an end mark.
pub struct Behind {
    pub padding: Vec<u8>,
    /// What makes the end mark count.
    pub tail: [u8; format::TAIL],
}

impl Behind {
    /// Behind the record at `offset` with this length.
    pub fn of(offset: u64, len: u64) -> Result<Self> {
        let end = offset.saturating_add(len);
        let at = format::tail_at(end);
        let at = at.ok_or_else(|| Error::limit("the archive would be longer than 2^63 bytes"))?;
        Ok(Self { padding: format::padding(at - end)?, tail: format::tail(offset, len, at) })
    }
}

/// The number of segments under a block of this level; `u64::MAX` on overflow.
pub fn span(level: usize) -> u64 {
    checked_span(level).unwrap_or(u64::MAX)
}

fn checked_span(level: usize) -> Option<u64> {
    FAN.checked_pow(u32::try_from(level).ok()?.checked_add(1)?)
}

/// Starts a record. `len` is the number of its items, including the version.
fn start(items: &mut ItemEncoder, kind: RecordKind, len: u64) -> Result<&mut ItemEncoder> {
    items.head(head::TAG, kind.tag())?;
    items.head(head::ARRAY, len)?.head(head::UNSIGNED, format::VERSION)
}

/// About how many bytes an entry takes: without a digest, and with one how many more.
const ENTRY: usize = 24;
const DIGEST: usize = 17;

/// Writes a list of segments: their names, each once, and an entry for each of them.
fn put_entries(items: &mut ItemEncoder, entries: &[Entry], digests: bool) -> Result<()> {
    let mut names: Vec<&str> = Vec::new();
    let mut numbers = Vec::with_capacity(entries.len());
    for entry in entries {
        numbers.push(entry.name.as_deref().map(|name| {
            names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        }));
    }
    items.head(head::ARRAY, 2)?.head(head::ARRAY, names.len() as u64)?;
    for name in names {
        items.name(Some(name))?;
    }
    items.head(head::ARRAY, entries.len() as u64)?;
    for (entry, number) in entries.iter().zip(numbers) {
        items.head(head::ARRAY, 4 + u64::from(digests))?.head(head::UNSIGNED, entry.offset)?;
        put_optional(items, number.map(|number| number as u64))?;
        items.head(head::UNSIGNED, entry.header_len)?;
        put_optional(items, entry.rows.get())?;
        match entry.digest.get() {
            _ if !digests => {}
            Some(digest) => drop(items.head(head::BYTES, 16)?.raw(&digest.to_bytes())?),
            None => drop(items.raw(&[head::NULL])?),
        }
    }
    Ok(())
}

fn put_optional(items: &mut ItemEncoder, number: Option<u64>) -> Result<()> {
    match number {
        Some(number) => items.head(head::UNSIGNED, number)?,
        None => items.raw(&[head::NULL])?,
    };
    Ok(())
}

fn put_blocks(items: &mut ItemEncoder, blocks: &[BlockAt]) -> Result<()> {
    items.head(head::ARRAY, blocks.len() as u64)?;
    for block in blocks {
        items.head(head::ARRAY, 2)?.head(head::UNSIGNED, block.offset)?;
        items.head(head::UNSIGNED, block.len)?;
    }
    Ok(())
}

type Wire<'a> = Reader<'a, 'a>;

fn take_entries(wire: &mut Wire<'_>, before: u64, digests: bool) -> Result<Vec<Entry>> {
    let fault = |what: &str| Error::data(format!("directory: {what}")).at(before);
    if array(wire)? != 2 {
        return Err(fault("expected an array of the names and the entries of segments"));
    }
    let count = array(wire)?;
    let mut names = Vec::with_capacity(count);
    for _ in 0..count {
        let name = header::name(wire)?;
        names.push(name.ok_or_else(|| fault("expected a text among the names, found null"))?);
    }
    let len = array(wire)?;
    let mut entries = Vec::with_capacity(len);
    // The names that the entries so far have used.
    let mut used = 0;
    for _ in 0..len {
        if array(wire)? != 4 + usize::from(digests) {
            return Err(fault(if digests {
                "expected the offset, name, header length, rows and digest of a segment"
            } else {
                "expected the offset, name, header length and rows of a segment"
            }));
        }
        let offset = earlier(wire, before)?;
        let name = match take_optional(wire, "the number of a name")? {
            None => None,
            Some(number) => {
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                used += usize::from(number == used);
                let name = names.get(number).filter(|_| number < used);
                let what = || {
                    format!(
                        "name {number} of {count} is used before those in front of it, or does not exist"
                    )
                };
                Some(name.cloned().ok_or_else(|| fault(&what()))?)
            }
        };
        let header_len = unsigned(wire, "the length of a header")?;
        let rows = Fact::Known(take_optional(wire, "a number of rows")?);
        let digest = if digests { Fact::Known(take_digest(wire)?) } else { Fact::Unknown };
        entries.push(Entry { offset, header_len, name, rows, digest });
    }
    let is_repeated = |(at, name)| names.iter().take(at).any(|earlier| earlier == name);
    if used != count || names.iter().enumerate().any(is_repeated) {
        return Err(fault("expected each name once, in the order in which the entries use them"));
    }
    Ok(entries)
}

/// Reads null, or the item that `read` reads.
fn unless_null<T>(
    wire: &mut Wire<'_>,
    read: impl FnOnce(&mut Wire<'_>) -> Result<T>,
) -> Result<Option<T>> {
    if wire.rest().first() == Some(&head::NULL) {
        wire.pass(1);
        return Ok(None);
    }
    read(wire).map(Some)
}

fn take_optional(wire: &mut Wire<'_>, what: &str) -> Result<Option<u64>> {
    unless_null(wire, |wire| unsigned(wire, what))
}

fn take_digest(wire: &mut Wire<'_>) -> Result<Option<Digest>> {
    unless_null(wire, |wire| {
        let at = wire.offset();
        let fault = || Error::data("expected null or a digest of 16 bytes").at(at);
        let found = wire.head()?;
        if found.major() != head::BYTES || found.is_indefinite() {
            return Err(fault());
        }
        let bytes = wire.string(found)?;
        Digest::from_bytes(bytes.as_slice()).ok_or_else(fault)
    })
}

fn take_blocks(wire: &mut Wire<'_>, before: u64) -> Result<Vec<BlockAt>> {
    let len = array(wire)?;
    let block = |_| {
        if array(wire)? != 2 {
            return Err(Error::data("expected the offset and length of a block").at(before));
        }
        let offset = earlier(wire, before)?;
        Ok(BlockAt { offset, len: unsigned(wire, "the length of a block")? })
    };
    (0..len).map(block).collect()
}

/// Reads the extensions, which are the last item of a record. Also checks the heads of all items in front of them, which are
/// at the start of `content`: there is one encoding of a directory (`SPEC.md`, section 5).
fn take_ext(content: &[u8], wire: &mut Wire<'_>, offset: u64) -> Result<Ext> {
    let before = content.get(..content.len() - wire.rest().len()).unwrap_or_default();
    if ext::longer_head(before).is_some() {
        return Err(Error::data("directory: an item has a longer head than it needs").at(offset));
    }
    let ext = Ext::parse(wire.rest());
    let ext = ext.map_err(|refused| Error::data(refused.what).at(offset))?;
    wire.pass(ext.bytes().len());
    if wire.bytes_left() != 0 {
        return Err(Error::data("directory: more bytes follow the extensions").at(offset));
    }
    Ok(ext)
}

/// Reads an offset, which must be before the record that contains it: so no cycle is possible.
fn earlier(wire: &mut Wire<'_>, before: u64) -> Result<u64> {
    let offset = unsigned(wire, "an offset")?;
    if offset < before && offset >= format::MAGIC.len() as u64 {
        return Ok(offset);
    }
    Err(Error::data(format!("directory: offset {offset} is not before its record at {before}"))
        .at(before))
}

/// Reads the head of an array, which must not have more items than a level of the directory.
fn array(wire: &mut Wire<'_>) -> Result<usize> {
    let at = wire.offset();
    let found = wire.head()?;
    match usize::try_from(found.arg) {
        Ok(len) if found.major() == head::ARRAY && !found.is_indefinite() && len as u64 <= FAN => {
            Ok(len)
        }
        _ => Err(Error::data(format!("expected an array of at most {FAN} items")).at(at)),
    }
}

impl Loaded {
    /// The directory's entry for the segment, as far as the header says it at once.
    pub fn entry(&self) -> Entry {
        Entry::of(&self.header)
    }

    /// The directory's entry for the segment. Reads the checksums.
    pub fn full_entry<S: ReadAt + ?Sized>(&self, source: &S) -> Result<Entry> {
        let rows = Fact::Known(self.rows(source)?);
        let digest = Fact::Known(self.digest(source)?);
        Ok(Entry { rows, digest, ..self.entry() })
    }

    /// The number of elements, if the value is a sequence.
    pub fn rows<S: ReadAt + ?Sized>(&self, source: &S) -> Result<Option<u64>> {
        Ok(header::rows(self.stored_metadata(source)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(index: u64, offset: u64) -> Entry {
        let name = index.is_multiple_of(3).then(|| format!("s{index}").into());
        let rows = Fact::Known(index.is_multiple_of(2).then_some(index));
        let digest = Fact::Known(Digest::from_bytes(&[7; 16]));
        Entry { offset, header_len: MIN_SEGMENT.into(), name, rows, digest }
    }

    /// Writes `count` segments of the least length into memory. Returns the bytes and the directory.
    fn written(count: u64) -> (Vec<u8>, Directory) {
        let mut file = vec![0; 12];
        let mut directory = Directory::default();
        for index in 0..count {
            let offset = file.len() as u64;
            file.extend((0..MIN_SEGMENT).map(|_| 0xff));
            directory.push(entry(index, offset));
            let position = file.len() as u64;
            let write = |block: &[u8]| {
                file.extend_from_slice(block);
                Ok(())
            };
            directory.write_full(position, write).unwrap();
        }
        (file, directory)
    }

    fn record(file: &[u8], offset: u64) -> &[u8] {
        let rest = &file[usize::try_from(offset).unwrap()..];
        &rest[..usize::try_from(format::record_len(rest).unwrap().total).unwrap()]
    }

    fn look_up(file: &[u8], directory: &Directory, index: u64) -> Option<Entry> {
        let (mut at, mut level, mut rest) = match directory.find(index)? {
            EntryPlace::Here(entry) => return Some(entry.clone()),
            EntryPlace::Block { block, level, rest } => (block, level, rest),
        };
        loop {
            let bytes = record(file, at.offset);
            assert_eq!(bytes.len() as u64, at.len);
            match DirectoryBlock::open(bytes, level, at.offset).unwrap().0 {
                DirectoryBlock::Segments(entries) => {
                    return entries.get(usize::try_from(rest).unwrap()).cloned();
                }
                DirectoryBlock::Blocks(blocks) => {
                    level -= 1;
                    at = blocks[usize::try_from(rest / span(level)).unwrap()];
                    rest %= span(level);
                }
            }
        }
    }

    #[test]
    fn finds_every_segment_through_few_blocks() {
        let counts: &[u64] = if cfg!(miri) {
            &[0, 2]
        } else {
            &[0, 1, 63, 64, 65, 127, 128, 4095, 4096, 4097, 10_000]
        };
        for &count in counts {
            let (mut file, directory) = written(count);
            let at = file.len() as u64;
            let (mark, _) = directory.end_mark(at).unwrap();
            file.extend(&mark);
            assert!(mark.len() < 3000, "the root stays small");
            let (found, ext) = Directory::open(record(&file, at), at).unwrap();
            directory.compare(record(&file, at), at).unwrap();
            found.compare(record(&file, at), at).unwrap();
            assert_eq!((found.count(), ext), (count, Ext::default()));
            for index in 0..count {
                let found = look_up(&file, &found, index).unwrap();
                assert_eq!(file[usize::try_from(found.offset).unwrap()], 0xff);
                assert!(found.agrees(&entry(index, found.offset)));
                assert_eq!(found.rows(), index.is_multiple_of(2).then_some(index));
            }
            assert!(look_up(&file, &found, count).is_none());
        }
    }

    #[test]
    fn names_are_written_once() {
        let mut directory = Directory::default();
        for offset in 12..22u64 {
            let name = Some(if offset % 2 == 0 { "first".into() } else { "second".into() });
            directory.push(Entry { name, ..entry(0, offset) });
        }
        let (mark, _) = directory.end_mark(1000).unwrap();
        let count = |name: &[u8]| mark.windows(name.len()).filter(|part| *part == name).count();
        assert_eq!((count(b"first"), count(b"second")), (1, 1));
        directory.compare(record(&mark, 0), 1000).unwrap();
    }

    #[test]
    fn there_is_one_way_to_state_names_and_numbers() {
        // `zero` is how the number 0 is encoded.
        let open = |names: &[&str], numbers: &[u64], zero: &[u8]| {
            let mut items = ItemEncoder::new();
            start(&mut items, RecordKind::End, 5).unwrap();
            items.head(head::UNSIGNED, numbers.len() as u64).unwrap();
            items.head(head::ARRAY, 2).unwrap().head(head::ARRAY, names.len() as u64).unwrap();
            for name in names {
                items.name(Some(name)).unwrap();
            }
            items.head(head::ARRAY, numbers.len() as u64).unwrap();
            for (index, &number) in numbers.iter().enumerate() {
                items.head(head::ARRAY, 4).unwrap();
                items.head(head::UNSIGNED, 12 + 30 * index as u64).unwrap();
                match number {
                    0 => items.raw(zero).unwrap(),
                    number => items.head(head::UNSIGNED, number).unwrap(),
                };
                items.head(head::UNSIGNED, 30).unwrap().raw(&[head::NULL]).unwrap();
            }
            items.head(head::ARRAY, 0).unwrap().raw(Ext::default().bytes()).unwrap();
            let record = format::sealed(&items.into_bytes(), 1000).unwrap();
            Directory::open(&record, 1000).map(drop).map_err(|error| error.to_string())
        };
        let refused = |names: &[&str], numbers: &[u64], zero: &[u8], what: &str| {
            let error = open(names, numbers, zero).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        open(&["a", "b"], &[0, 1, 0], &[0]).unwrap();
        open(&[], &[], &[0]).unwrap();
        refused(&["b", "a"], &[1, 0], &[0], "name 1 of 2 is used before");
        refused(&["a"], &[0, 1], &[0], "name 1 of 1 is used before");
        refused(&["a", "b"], &[0, 0], &[0], "each name once");
        refused(&["a", "a"], &[0, 1], &[0], "each name once");
        refused(&["a"], &[0], &[0x18, 0], "a longer head than it needs");
    }

    #[test]
    fn offsets_that_lead_forward_are_refused() {
        let mut directory = Directory::default();
        directory.push(entry(1, 500));
        for (at, fits) in [(400, false), (500, false), (501, true)] {
            let (mark, _) = directory.end_mark(at).unwrap();
            let found = Directory::open(record(&mark, 0), at);
            assert_eq!(found.is_ok(), fits, "{at}");
        }
    }
}
