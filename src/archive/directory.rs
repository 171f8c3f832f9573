//! The directory of an archive: where its segments are.
//!
//! The directory is a tree of blocks, and the end mark is its root. A full block is written once, between
//! two segments, and never changes. The root holds the entries that are in no block yet, fewer than
//! one block at each level. So an archive of a million segments needs as little memory, and as few
//! bytes for each append, as an archive of a few.

use crate::error::{Error, Result};
use crate::io::source::SliceRead;
use crate::segment::format::{self, Items, Record, RecordKind};
use crate::segment::header;
use crate::wire::head;
use crate::wire::reader::Reader;

/// The number of entries in a block.
pub const FAN: u64 = 64;
/// The maximum number of levels: 64^11 exceeds 2^64, so that no archive needs more.
const MAX_LEVELS: usize = 11;

/// The length of the shortest segment: its header has null for the name and for the checksum algorithm, no
/// buffers, and one byte of metadata.
const MIN_SEGMENT: u8 = 29;

/// Whether this many segments fit before `offset`.
fn have_room(segments: u64, offset: u64) -> bool {
    segments <= offset.saturating_sub(format::MAGIC.len() as u64) / u64::from(MIN_SEGMENT)
}

/// The directory's entry for a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub offset: u64,
    pub name: Option<Box<str>>,
}

/// The root of the directory: at each level, the entries that are in no block yet.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    count: u64,
    /// The latest segments, which are in no block yet.
    entries: Vec<Entry>,
    /// Offsets of blocks. Level 0 are blocks of entries; the blocks of each further level hold offsets
    /// of blocks one level lower.
    levels: Vec<Vec<u64>>,
}

/// Where to find the entry of a segment.
pub enum Place<'a> {
    Here(&'a Entry),
    /// In the block at `offset`, as entry number `rest` of all the entries under that block.
    Block {
        offset: u64,
        level: usize,
        rest: u64,
    },
}

impl Directory {
    /// The number of segments.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a segment that ends at `position`. If this fills blocks, they are passed to `write`, to be
    /// written from `position` on.
    pub fn add(
        &mut self,
        entry: Entry,
        mut position: u64,
        mut write: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        self.entries.push(entry);
        self.count += 1;
        if (self.entries.len() as u64) < FAN {
            return Ok(());
        }
        let mut block = Items::new();
        start(&mut block, RecordKind::Directory, 3)?.head(head::UNSIGNED, 0)?;
        put_entries(&mut block, &self.entries)?;
        self.entries.clear();
        let mut level = 0;
        loop {
            let record = format::sealed(&block.into_bytes(), position)?;
            write(&record)?;
            if level == self.levels.len() {
                self.levels.push(Vec::new());
            }
            let Some(offsets) = self.levels.get_mut(level) else { return Ok(()) };
            offsets.push(position);
            position += record.len() as u64;
            level += 1;
            if (offsets.len() as u64) < FAN {
                return Ok(());
            }
            block = Items::new();
            start(&mut block, RecordKind::Directory, 3)?.head(head::UNSIGNED, level as u64)?;
            put_offsets(&mut block, offsets)?;
            offsets.clear();
        }
    }

    /// The end mark with its tail, to be written at `offset`.
    pub fn end_mark(&self, offset: u64) -> Result<Vec<u8>> {
        let mut items = Items::new();
        start(&mut items, RecordKind::End, 4)?.head(head::UNSIGNED, self.count)?;
        put_entries(&mut items, &self.entries)?;
        items.head(head::ARRAY, self.levels.len() as u64)?;
        for offsets in &self.levels {
            put_offsets(&mut items, offsets)?;
        }
        let mut record = format::sealed(&items.into_bytes(), offset)?;
        let tail = format::tail(offset, offset + record.len() as u64);
        record.extend_from_slice(&tail);
        Ok(record)
    }

    /// Reads the root from the end mark at `offset`.
    pub fn parse(mut record: Record<'_>, offset: u64) -> Result<Self> {
        let fault = |what: &str| Error::data(format!("end mark: {what}")).at(offset);
        if record.kind != RecordKind::End || record.fields != 3 {
            return Err(fault("expected an end mark of 4 items, found another record"));
        }
        let wire = &mut record.wire;
        let count = header::unsigned(wire, "a number of segments")?;
        let entries = take_entries(wire, offset)?;
        let levels = array(wire)?;
        if levels > MAX_LEVELS {
            let what = format!("expected at most {MAX_LEVELS} levels, found {levels}");
            return Err(fault(&what));
        }
        let mut directory = Self { count, entries, levels: Vec::with_capacity(levels) };
        for _ in 0..levels {
            directory.levels.push(take_offsets(wire, offset)?);
        }
        if wire.bytes_left() != 0 {
            return Err(fault("more bytes follow the directory"));
        }
        // A writer never leaves a level full, and writes the number of segments that the root leads to.
        let mut covered = Some(directory.entries.len() as u64);
        let mut full = directory.entries.len() as u64 >= FAN;
        for (level, offsets) in directory.levels.iter().enumerate() {
            let len = offsets.len() as u64;
            full |= len >= FAN;
            if len > 0 {
                let inside = checked_span(level).and_then(|span| span.checked_mul(len));
                covered = covered.zip(inside).and_then(|(sum, inside)| sum.checked_add(inside));
            }
        }
        let ordered = directory.levels.iter().rev().flatten().copied();
        let ordered = ordered.chain(directory.entries.iter().map(|entry| entry.offset));
        if !have_room(count, offset) {
            let what = format!("{count} segments do not fit before byte {offset}");
            return Err(fault(&what));
        }
        if full || covered != Some(count) || !ordered.is_sorted_by(|a, b| a < b) {
            return Err(fault("the directory does not match the number of segments"));
        }
        Ok(directory)
    }

    /// Finds the place of the entry of segment `index`.
    pub fn find(&self, index: u64) -> Option<Place<'_>> {
        let mut rest = index;
        for (level, offsets) in self.levels.iter().enumerate().rev() {
            let span = span(level);
            let block = rest / span;
            if let Some(&offset) = offsets.get(usize::try_from(block).ok()?) {
                return Some(Place::Block { offset, level, rest: rest % span });
            }
            rest -= offsets.len() as u64 * span;
        }
        self.entries.get(usize::try_from(rest).ok()?).map(Place::Here)
    }

    /// The latest segments, which are in no block yet.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
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

    /// Level and offset of the blocks that the root refers to, latest first.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, u64)> {
        let levels = self.levels.iter().enumerate();
        levels.flat_map(|(level, offsets)| offsets.iter().rev().map(move |&at| (level, at)))
    }
}

/// The number of segments under a block of this level; `u64::MAX` on overflow.
pub fn span(level: usize) -> u64 {
    checked_span(level).unwrap_or(u64::MAX)
}

fn checked_span(level: usize) -> Option<u64> {
    FAN.checked_pow(u32::try_from(level).ok()?.checked_add(1)?)
}

/// The content of a block.
pub enum Block {
    Entries(Vec<Entry>),
    /// Offsets of blocks one level lower.
    Blocks(Vec<u64>),
}

/// Parses the block of `level` at `offset`. The block must be full, its offsets must be before
/// its own, and its segments must fit before it.
pub fn parse_block(mut record: Record<'_>, level: usize, offset: u64) -> Result<Block> {
    let fault = |what: &str| Error::data(format!("directory: {what}")).at(offset);
    if record.kind != RecordKind::Directory || record.fields != 2 {
        return Err(fault("expected a block of the directory, found another record"));
    }
    let wire = &mut record.wire;
    let found = header::unsigned(wire, "a level")?;
    if found != level as u64 {
        let what = format!("expected a block of level {level}, found level {found}");
        return Err(fault(&what));
    }
    if !have_room(span(level), offset) {
        let what = format!("{} segments do not fit before byte {offset}", span(level));
        return Err(fault(&what));
    }
    let (block, len, sorted) = if found == 0 {
        let entries = take_entries(wire, offset)?;
        let sorted = entries.is_sorted_by(|a, b| a.offset < b.offset);
        let len = entries.len();
        (Block::Entries(entries), len, sorted)
    } else {
        let offsets = take_offsets(wire, offset)?;
        let sorted = offsets.is_sorted_by(|a, b| a < b);
        let len = offsets.len();
        (Block::Blocks(offsets), len, sorted)
    };
    if len as u64 != FAN || !sorted || wire.bytes_left() != 0 {
        return Err(fault("the block is not full, or its entries are not in order"));
    }
    Ok(block)
}

/// Starts a record. `len` is the number of its items, including the version.
fn start(items: &mut Items, kind: RecordKind, len: u64) -> Result<&mut Items> {
    items.head(head::TAG, kind.tag())?;
    items.head(head::ARRAY, len)?.head(head::UNSIGNED, format::VERSION)
}

fn put_entries(items: &mut Items, entries: &[Entry]) -> Result<()> {
    items.head(head::ARRAY, entries.len() as u64)?;
    for entry in entries {
        items.head(head::ARRAY, 2)?.head(head::UNSIGNED, entry.offset)?;
        items.name(entry.name.as_deref())?;
    }
    Ok(())
}

fn put_offsets(items: &mut Items, offsets: &[u64]) -> Result<()> {
    items.head(head::ARRAY, offsets.len() as u64)?;
    for &offset in offsets {
        items.head(head::UNSIGNED, offset)?;
    }
    Ok(())
}

fn take_entries(wire: &mut Reader<SliceRead<'_>>, before: u64) -> Result<Vec<Entry>> {
    let len = array(wire)?;
    let mut entries = Vec::with_capacity(len);
    for _ in 0..len {
        if array(wire)? != 2 {
            return Err(Error::data("expected the offset and name of a segment").at(before));
        }
        let offset = earlier(wire, before)?;
        entries.push(Entry { offset, name: header::name(wire)? });
    }
    Ok(entries)
}

fn take_offsets(wire: &mut Reader<SliceRead<'_>>, before: u64) -> Result<Vec<u64>> {
    let len = array(wire)?;
    (0..len).map(|_| earlier(wire, before)).collect()
}

/// Reads an offset, which must be before the record that contains it: so no cycle is possible.
fn earlier(wire: &mut Reader<SliceRead<'_>>, before: u64) -> Result<u64> {
    let offset = header::unsigned(wire, "an offset")?;
    if offset < before && offset >= format::MAGIC.len() as u64 {
        return Ok(offset);
    }
    Err(Error::data(format!("directory: offset {offset} is not before its record at {before}"))
        .at(before))
}

/// Reads the head of an array, which must not have more items than a level of the directory.
fn array(wire: &mut Reader<SliceRead<'_>>) -> Result<usize> {
    let at = wire.offset();
    let found = wire.head()?;
    match usize::try_from(found.arg) {
        Ok(len) if found.major() == head::ARRAY && !found.is_indefinite() && len as u64 <= FAN => {
            Ok(len)
        }
        _ => Err(Error::data(format!("expected an array of at most {FAN} items")).at(at)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes `count` segments of the least length into memory. Returns the bytes and the directory.
    fn written(count: u64) -> (Vec<u8>, Directory) {
        let mut file = vec![0; 12];
        let mut directory = Directory::default();
        for index in 0..count {
            let offset = file.len() as u64;
            file.extend((0..MIN_SEGMENT).map(|_| 0xff));
            let name = (index % 3 == 0).then(|| format!("s{index}").into());
            let position = file.len() as u64;
            directory
                .add(Entry { offset, name }, position, |block| {
                    file.extend_from_slice(block);
                    Ok(())
                })
                .unwrap();
        }
        (file, directory)
    }

    fn record(file: &[u8], offset: u64) -> Record<'_> {
        let rest = &file[usize::try_from(offset).unwrap()..];
        let len = usize::try_from(format::record_len(rest).unwrap().total).unwrap();
        format::open_record(&rest[..len], offset).unwrap()
    }

    fn look_up(file: &[u8], directory: &Directory, index: u64) -> Option<Entry> {
        let (mut offset, mut level, mut rest) = match directory.find(index)? {
            Place::Here(entry) => return Some(entry.clone()),
            Place::Block { offset, level, rest } => (offset, level, rest),
        };
        loop {
            match parse_block(record(file, offset), level, offset).unwrap() {
                Block::Entries(entries) => {
                    return entries.get(usize::try_from(rest).unwrap()).cloned();
                }
                Block::Blocks(blocks) => {
                    level -= 1;
                    offset = blocks[usize::try_from(rest / span(level)).unwrap()];
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
            file.extend(directory.end_mark(at).unwrap());
            assert!(file.len() as u64 - at < 2000, "the root stays small");
            let directory = Directory::parse(record(&file, at), at).unwrap();
            assert_eq!(directory.count(), count);
            for index in 0..count {
                let entry = look_up(&file, &directory, index).unwrap();
                assert_eq!(file[usize::try_from(entry.offset).unwrap()], 0xff);
                let expected = (index % 3 == 0).then(|| format!("s{index}"));
                assert_eq!(entry.name.as_deref(), expected.as_deref());
            }
            assert_eq!(look_up(&file, &directory, count), None);
        }
    }

    #[test]
    fn offsets_that_lead_forward_are_refused() {
        let directory = Directory {
            count: 1,
            entries: vec![Entry { offset: 500, name: None }],
            levels: vec![],
        };
        for (at, fits) in [(400, false), (500, false), (501, true)] {
            let mut file = vec![0; at];
            file.extend(directory.end_mark(at as u64).unwrap());
            let parsed = Directory::parse(record(&file, at as u64), at as u64);
            assert_eq!(parsed.is_ok(), fits, "{at}");
        }
    }
}
