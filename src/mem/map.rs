//! Mapped files.

use std::fs::File;
use std::io;

use super::Arena;
use crate::io::at::ReadAt;

/// A file's contents in memory, shared with other processes that map it.
#[derive(Debug)]
pub struct Mapped {
    map: memmap2::Mmap,
    /// Headers are read: each page of the map that is touched costs more than a read of it.
    file: File,
    arena: Arena,
}

impl Mapped {
    /// Maps a whole file.
    ///
    /// # Safety
    /// While the map lives, nobody may change the file's contents or cut it short, in this process or
    /// another.
    pub(crate) unsafe fn new(file: File) -> io::Result<Self> {
        let len = usize::try_from(file.metadata()?.len())
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "it does not fit memory"))?;
        // SAFETY: the caller vouches for what this asks: that the file does not change.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(&file)? };
        Ok(Self { map, file, arena: Arena::default() })
    }
}

impl ReadAt for Mapped {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.map.len() as u64)
    }

    fn contents(&self) -> Option<&[u8]> {
        Some(&self.map)
    }

    fn is_mapped(&self) -> bool {
        true
    }

    fn arena(&self) -> Option<&Arena> {
        Some(&self.arena)
    }
}
