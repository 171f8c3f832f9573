//! Memory-mapped files.

use std::fs::File;
use std::io;

use super::Arena;

/// A memory-mapped file. All processes that map the file share its pages.
#[derive(Debug)]
pub struct Mapped {
    map: memmap2::Mmap,
    /// A copy of the first bytes, where most archives have their headers. Reading these bytes from
    /// the file takes a fraction of the time of the page fault that the map would cause.
    start: Vec<u8>,
    arena: Arena,
}

impl Mapped {
    /// Maps the first `len` bytes of a file. `start` is a copy of the first bytes of the file, which
    /// the caller has read already.
    ///
    /// # Safety
    /// While the map lives, no process may change those bytes or truncate the file.
    pub(crate) unsafe fn new(file: &File, len: u64, start: Vec<u8>) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| {
            io::Error::new(io::ErrorKind::FileTooLarge, "it does not fit in memory")
        })?;
        // SAFETY: the caller guarantees that the file does not change.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(file)? };
        Ok(Self { map, start, arena: Arena::default() })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The `len` bytes at `offset`, if they are in the copy of the first bytes.
    pub(crate) fn piece_at(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.start.get(start..start.checked_add(len)?)
    }

    pub(crate) fn own_arena(&self) -> &Arena {
        &self.arena
    }
}
