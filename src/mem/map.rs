//! Mapped files.

use std::fs::File;
use std::io;
use std::ops::Range;

use super::Arena;

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
    /// Maps a whole file, which is `len` bytes long, and which `read_at` reads at a position.
    ///
    /// # Safety
    /// While the map lives, nobody may change the file's contents or cut it short, in this process or
    /// another.
    pub(crate) unsafe fn new(
        file: &File,
        len: u64,
        read_at: impl Fn(&mut [u8], u64) -> io::Result<usize>,
    ) -> io::Result<Self> {
        // What one read gives.
        let piece = |offset, len| {
            let mut piece = vec![0; len];
            let there = read_at(&mut piece, offset)?;
            piece.truncate(there);
            io::Result::Ok(piece)
        };
        let start = piece(0, START)?;
        let end = piece(len.saturating_sub(END as u64), END)?;
        let len = usize::try_from(len)
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "it does not fit memory"))?;
        // SAFETY: the caller vouches for what this asks: that the file does not change.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(file)? };
        Ok(Self { map, start, end, arena: Arena::default() })
    }
}

impl Mapped {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// `len` bytes from `offset` on, if they were read when the file was mapped.
    pub(crate) fn piece_at(&self, offset: u64, len: usize) -> Option<&[u8]> {
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

    pub(crate) fn own_arena(&self) -> &Arena {
        &self.arena
    }
}
