//! What the crate reads of a file.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hdf5_reader::error::Error as Hdf5Error;
use hdf5_reader::{Storage, StorageBuffer};

/// A file of which a limited number of bytes is read. The parts of a hostile file may lie over each other, and would be
/// read again and again.
pub struct Counted {
    storage: Box<dyn Storage>,
    /// The offset of the HDF5 file in the storage, and its length.
    start: u64,
    len: u64,
    left: AtomicU64,
    mended: Mutex<Mended>,
}

/// What replaces bytes of a file: see [`mend`](super::mend).
#[derive(Default)]
struct Mended {
    /// The new bytes at some offsets.
    bytes: BTreeMap<u64, u8>,
    /// The offset and the length of the last read.
    last: (u64, usize),
}

impl Counted {
    /// A file at an offset of the storage, of which so many bytes may be read.
    pub fn new(storage: Box<dyn Storage>, start: u64, len: u64, left: u64) -> Self {
        Self { storage, start, len, left: AtomicU64::new(left), mended: Mutex::default() }
    }

    /// From now on, any number of bytes may be read.
    pub fn count_no_more(&self) {
        self.left.store(u64::MAX, Ordering::Relaxed);
    }

    fn mended(&self) -> MutexGuard<'_, Mended> {
        self.mended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on, the file seems to have these bytes at this offset.
    pub fn mend(&self, offset: u64, bytes: &[u8]) {
        self.mended().bytes.extend((offset..).zip(bytes.iter().copied()));
    }

    /// The offset and the length of the last read.
    pub fn last(&self) -> (u64, usize) {
        self.mended().last
    }
}

impl Storage for Counted {
    fn len(&self) -> u64 {
        self.len
    }

    fn read_range(&self, offset: u64, len: usize) -> hdf5_reader::error::Result<StorageBuffer> {
        let left = self.left.load(Ordering::Relaxed);
        let Some(rest) = left.checked_sub(len as u64) else {
            let what = "opening the file would read more than 64 MiB plus 64 times its length, because groups and datasets share parts of it";
            return Err(Hdf5Error::ResourceLimit(what.to_owned()));
        };
        if left < u64::MAX {
            self.left.store(rest, Ordering::Relaxed);
        }
        let end = offset.checked_add(len as u64).filter(|end| *end <= self.len);
        let mut mended = self.mended();
        mended.last = (offset, len);
        match end.and_then(|end| Some((end, self.start.checked_add(offset)?))) {
            Some((end, at)) if mended.bytes.range(offset..end).next().is_some() => {
                let mut bytes = self.storage.read_range(at, len)?.as_ref().to_vec();
                for (place, byte) in mended.bytes.range(offset..end) {
                    let place = usize::try_from(place - offset).unwrap_or(usize::MAX);
                    bytes.get_mut(place).into_iter().for_each(|old| *old = *byte);
                }
                Ok(StorageBuffer::from_vec(bytes))
            }
            Some((_, at)) => self.storage.read_range(at, len),
            None => Err(Hdf5Error::UnexpectedEof {
                offset,
                needed: len as u64,
                available: self.len.saturating_sub(offset),
            }),
        }
    }
}
