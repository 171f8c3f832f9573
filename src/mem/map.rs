//! Memory-mapped files.

use std::fmt;
use std::fs::File;
use std::io;
use std::ops::Range;

use crate::mem::shared_bytes::SharedBytes;

/// A file's contents in memory, shared with other processes that map it: what a [`Map`](crate::Map) is
/// read from.
pub struct MappedFile {
    map: SharedBytes,
    /// The first bytes, where most archives have their headers. Reading them takes a fraction of the time of
    /// a page fault.
    start: Vec<u8>,
    /// To read bytes into the page cache.
    file: File,
}

impl MappedFile {
    /// Maps the first `len` bytes of a file, of which `start` was read already.
    ///
    /// # Safety
    /// While the map or bytes shared from it live, nobody may change those bytes or cut the file shorter, in
    /// this process or another.
    pub(crate) unsafe fn new(file: File, len: u64, start: Vec<u8>) -> io::Result<Self> {
        let len = usize::try_from(len).map_err(|_| {
            io::Error::new(io::ErrorKind::FileTooLarge, "it does not fit in memory")
        })?;
        // SAFETY: the caller guarantees that the file does not change.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(&file)? };
        Ok(Self { map: SharedBytes::from_owner(map), start, file })
    }

    /// Bytes of the file, if they were read before it was mapped.
    pub(crate) fn read_before(&self, range: Range<usize>) -> Option<&[u8]> {
        self.start.get(range)
    }

    /// The file, which stays open as long as this exists.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Bytes of the file that keep it mapped.
    pub(crate) fn share(&self, range: Range<usize>) -> Option<SharedBytes> {
        self.map.slice(range)
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MappedFile").field("len", &self.map.len()).finish_non_exhaustive()
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        &self.map
    }
}
