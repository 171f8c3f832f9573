//! Mapped files.

use std::fs::File;
use std::io;

use super::Arena;

/// A file's contents in memory, shared with other processes that map it.
#[derive(Debug)]
pub struct Mapped {
    map: memmap2::Mmap,
    /// The first bytes, where most archives have their headers. Reading them takes a fraction of the time of
    /// a page fault.
    start: Vec<u8>,
    arena: Arena,
}

impl Mapped {
    /// Maps the first `len` bytes of a file, of which `start` was read already.
    ///
    /// # Safety
    /// While the map lives, nobody may change those bytes or cut the file shorter, in this process or
    /// another.
    pub(crate) unsafe fn new(file: &File, len: u64, start: Vec<u8>) -> io::Result<Self> {
        let len = usize::try_from(len)
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "it does not fit memory"))?;
        // SAFETY: the caller vouches for what this asks: that the file does not change.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(file)? };
        Ok(Self { map, start, arena: Arena::default() })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// `len` bytes from `offset` on, if they were read before the file was mapped.
    pub(crate) fn piece_at(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let start = usize::try_from(offset).ok()?;
        self.start.get(start..start.checked_add(len)?)
    }

    pub(crate) fn own_arena(&self) -> &Arena {
        &self.arena
    }
}
