//! Mapped files.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::Arena;
use crate::io::at::ReadAt;

/// A file's contents in memory, shared with other processes that map it.
#[derive(Debug)]
pub struct Mapped {
    map: memmap2::Mmap,
    /// The first bytes and the last, where headers and the end mark of most archives are. Reading
    /// them takes a fraction of the time of a page fault.
    start: Vec<u8>,
    end: Vec<u8>,
    arena: Arena,
}

const START: usize = 8 << 10;
const END: usize = 512;

impl Mapped {
    /// Maps a whole file, which is `len` bytes long.
    ///
    /// # Safety
    /// While the map lives, nobody may change the file's contents or cut it short, in this process or
    /// another.
    pub(crate) unsafe fn new(file: &File, len: u64) -> io::Result<Self> {
        let start = piece(file, 0, START)?;
        let end = piece(file, len.saturating_sub(END as u64), END)?;
        let len = usize::try_from(len)
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "it does not fit memory"))?;
        // SAFETY: the caller vouches for what this asks: that the file does not change.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(file)? };
        Ok(Self { map, start, end, arena: Arena::default() })
    }
}

/// What one read gives of a piece of a file.
fn piece(file: &File, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; len];
    let there = file.read_at(&mut piece, offset)?;
    piece.truncate(there);
    Ok(piece)
}

impl ReadAt for Mapped {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.map[..].read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.map.len() as u64)
    }

    fn contents(&self) -> Option<&[u8]> {
        Some(&self.map)
    }

    fn read_before(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let of = |piece: &[u8], offset: u64| -> Option<Range<usize>> {
            let start = usize::try_from(offset).ok()?;
            let end = start.checked_add(len)?;
            (end <= piece.len()).then_some(start..end)
        };
        if let Some(range) = of(&self.start, offset) {
            return self.start.get(range);
        }
        let behind = self.map.len().checked_sub(self.end.len())? as u64;
        self.end.get(of(&self.end, offset.checked_sub(behind)?)?)
    }

    fn arena(&self) -> Option<&Arena> {
        Some(&self.arena)
    }
}
