//! Mapped files.

use std::fs::File;
use std::io;

use super::Arena;
use crate::io::at::{ReadAt, read_up_to};

/// A file's contents in memory, shared with other processes that map it.
#[derive(Debug)]
pub struct Mapped {
    map: memmap2::Mmap,
    /// The first bytes, where most archives have their headers. Reading them takes a fraction of the time of
    /// a page fault.
    start: Vec<u8>,
    arena: Arena,
}

const START: usize = 8 << 10;

impl Mapped {
    /// Maps the first `len` bytes of a file.
    ///
    /// # Safety
    /// While the map lives, nobody may change those bytes or cut the file shorter, in this process or
    /// another.
    pub(crate) unsafe fn new(file: &File, len: u64) -> io::Result<Self> {
        let start = first_bytes(file, START)?;
        let len = usize::try_from(len)
            .map_err(|_| io::Error::new(io::ErrorKind::FileTooLarge, "it does not fit memory"))?;
        // SAFETY: the caller vouches for what this asks: that the file does not change.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(file)? };
        Ok(Self { map, start, arena: Arena::default() })
    }
}

/// The first `len` bytes, or all of a shorter file, however little each read gives.
fn first_bytes<S: ReadAt + ?Sized>(file: &S, len: usize) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; len];
    let there = read_up_to(file, &mut piece, 0)?;
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
        let start = usize::try_from(offset).ok()?;
        self.start.get(start..start.checked_add(len)?)
    }

    fn arena(&self) -> Option<&Arena> {
        Some(&self.arena)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Gives a byte at a time, and is interrupted before each.
    struct Slow(Vec<u8>, Cell<bool>);

    impl ReadAt for Slow {
        fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
            if self.1.replace(!self.1.get()) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let first = out.len().min(1);
            self.0.read_at(&mut out[..first], offset)
        }

        fn size(&self) -> io::Result<u64> {
            self.0.size()
        }
    }

    #[test]
    fn pieces_are_whole_however_little_each_read_gives() {
        let slow = Slow((0..100).collect(), Cell::new(true));
        assert_eq!(first_bytes(&slow, 60).unwrap(), (0..60).collect::<Vec<u8>>());
        assert_eq!(first_bytes(&slow, 200).unwrap(), slow.0);
    }
}
