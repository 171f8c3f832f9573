//! What opening finds out: where an archive ends, and where its segments are.

use super::directory::{Directory, Entry};
use super::scan::{self, Committed, Compare};
use crate::buffer::loaded::Loaded;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::segment::format::MAGIC;

/// The last bytes of an archive. Empty if the archive is in memory.
#[derive(Default)]
pub struct Last {
    pub start: u64,
    bytes: Vec<u8>,
}

impl Last {
    /// Reads the last bytes of a source. Also returns its length.
    pub fn of(source: &dyn ReadAt) -> Result<(Self, u64)> {
        if let Some(contents) = source.contents() {
            return Ok((Self::default(), contents.len() as u64));
        }
        let mut bytes = Vec::new();
        let len = source.read_last(&mut bytes).map_err(Error::io)?;
        Ok((Self { start: len.saturating_sub(bytes.len() as u64), bytes }, len))
    }

    /// These bytes of the archive, if they are among the last ones.
    pub fn get(&self, offset: u64, len: u64) -> Option<&[u8]> {
        let start = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        self.bytes.get(start..start.checked_add(usize::try_from(len).ok()?)?)
    }
}

/// Where the segments are.
pub enum SegmentIndex {
    /// The directory, and the offset of the end mark that it was read from.
    Tree(Directory, u64),
    /// The segments that a scan of a torn archive found.
    List(List),
}

/// The segments of a torn archive.
pub struct List {
    pub complete: Vec<Entry>,
    /// The last segment, if the end of the input cut it off.
    pub cut: Option<Entry>,
    /// What is wrong with the archive.
    pub error: Error,
}

impl List {
    pub fn len(&self) -> u64 {
        self.complete.len() as u64 + u64::from(self.cut.is_some())
    }

    pub fn get(&self, index: u64) -> Option<&Entry> {
        let index = usize::try_from(index).ok()?;
        self.complete.iter().chain(&self.cut).nth(index)
    }
}

/// What is known about an archive after opening it.
pub struct Opened {
    /// The length of the archive in bytes; up to its last end mark, or of the whole source if it was opened as torn.
    pub len: u64,
    /// The number of bytes after the last end mark.
    pub unfinished: u64,
    pub index: SegmentIndex,
    pub last: Last,
}

impl Opened {
    /// Finds the last end mark.
    pub fn committed(source: &dyn ReadAt) -> Result<Self> {
        let (last, len) = Last::of(source)?;
        if let Some(opened) = Self::ended(source, last, len)? {
            return Ok(opened);
        }
        let Committed { directory, mark, end } = scan::last_before(source, len)?;
        let (index, last) = (SegmentIndex::Tree(directory, mark), Last::default());
        Ok(Self { len: end, unfinished: len - end, index, last })
    }

    /// What an end mark says.
    pub fn of(directory: Directory, mark: u64, len: u64) -> Self {
        let (index, last) = (SegmentIndex::Tree(directory, mark), Last::default());
        Self { len, unfinished: 0, index, last }
    }

    /// Reads the end mark at the end of a source of `len` bytes. `None` if the source does not end with one.
    ///
    /// The magic bytes are checked only if they are at hand. Otherwise they are read with the first header.
    pub fn ended(source: &dyn ReadAt, last: Last, len: u64) -> Result<Option<Self>> {
        let end = source.contents().unwrap_or(&last.bytes);
        let Some((directory, mark)) = scan::read_end_in(source, end, len)? else {
            return Ok(None);
        };
        match last.get(0, MAGIC.len() as u64) {
            Some(magic) => scan::check_magic_of_stream(magic)?,
            None if source.contents().is_some() => scan::check_magic(source, len)?,
            None => {}
        }
        Ok(Some(Self { last, ..Self::of(directory, mark, len) }))
    }

    /// Like [`committed`](Self::committed) if nothing follows the last end mark. Otherwise scans for all segments.
    pub fn torn(source: &dyn ReadAt) -> Result<Self> {
        let (last, len) = Last::of(source)?;
        if let Some(opened) = Self::ended(source, last, len)? {
            return Ok(opened);
        }
        let mut complete = Vec::new();
        let scan = scan::scan(source, len, Compare::Headers, |segment| {
            complete.push(segment.full_entry(source)?);
            Ok(())
        })?;
        let cut = scan.cut.as_ref().map(Loaded::entry);
        let unfinished = len - scan.vouched.unwrap_or(MAGIC.len() as u64);
        let error = scan::torn(&scan, len);
        let (index, last) = (SegmentIndex::List(List { complete, cut, error }), Last::default());
        Ok(Self { len, unfinished, index, last })
    }
}
