//! [`ReadAt`], input that can be read at any position.

use std::fs::File;
use std::io;
use std::iter;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::source::read_some;
use crate::mem::MappedFile;
use crate::mem::shared_bytes::SharedBytes;

/// The most bytes that are read at once. With less, a drive is slower if the system reads little ahead.
pub(crate) const PIECE: usize = 2 << 20;

/// How many of the last bytes of a source are read to open an archive.
const LAST: u64 = 4096;

/// The source of an [`Archive`](crate::Archive): a file, bytes in memory, or anything else that can be
/// read at a position, such as an object store.
///
/// Reads take `&self`, and several threads read at the same time.
///
/// ```
/// use std::io;
/// use tenarc::io::ReadAt;
///
/// /// An object of a store, of which a request gets a range.
/// struct Object(Vec<u8>);
///
/// impl ReadAt for Object {
///     fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
///         self.0.read_at(out, offset) // here: the request
///     }
///
///     fn size(&self) -> io::Result<u64> {
///         Ok(self.0.len() as u64)
///     }
/// }
///
/// # let mut out = tenarc::OArchive::new(Vec::new())?;
/// # out.save(&7)?;
/// # let object = Object(out.finish()?);
/// let archive = tenarc::Archive::new(object)?;
/// assert_eq!(archive.load::<i32>()?, 7);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub trait ReadAt: Sync {
    /// Reads up to `out.len()` bytes, starting `offset` bytes from the start of the source. Returns the
    /// number of bytes read. For a non-empty `out`, this is zero only at the end of the source.
    ///
    /// # Errors
    /// If reading fails.
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The length of the source in bytes.
    ///
    /// # Errors
    /// If the length cannot be determined.
    fn size(&self) -> io::Result<u64>;

    /// Replaces the content of `out` by the last bytes of the source, and returns the length of the source. How many
    /// bytes these are is up to the source: enough for the end of most archives, which is read when an archive is opened.
    ///
    /// By default, this calls [`size`](Self::size) and [`read_at`](Self::read_at) for the last 4,096 bytes. An object store
    /// should read more, such as 64 KiB, in one request for a suffix.
    ///
    /// # Errors
    /// If reading fails.
    fn read_last(&self, out: &mut Vec<u8>) -> io::Result<u64> {
        let size = self.size()?;
        let len = size.min(LAST);
        out.resize(usize::try_from(len).unwrap_or_default(), 0);
        let there = read_up_to(self, out, size - len)?;
        out.truncate(there);
        Ok(size)
    }

    /// Says which ranges will be read next, about in this order. An archive calls this before it reads more than one
    /// range: all tensors of a value, a slice, a column, the headers of a table. What is read later may be less.
    ///
    /// By default, this does nothing, and the ranges are not even computed. [`ReadAhead`](crate::io::ReadAhead) fetches them
    /// side by side.
    fn will_read(&self, _ranges: &mut dyn Iterator<Item = Range<u64>>) {}

    /// Says that nearly all of this range will be read next. An archive calls this for a value that is loaded as a whole, before
    /// it reads the value's header. So the tensors are on their way while the header is read. Then it calls
    /// [`will_read`](Self::will_read) with the ranges of the tensors.
    ///
    /// By default, this does nothing.
    fn will_read_most(&self, _range: Range<u64>) {}

    /// All bytes of the source, if they are in memory. Then tensors can be borrowed from them.
    fn contents(&self) -> Option<&[u8]> {
        None
    }

    /// A copy of some bytes, if it was made before and reading it is faster than reading the
    /// [`contents`](Self::contents). For a mapped file, this is a copy of its first bytes: reading them from the
    /// mapping may cause page faults. It is a method of this public trait so that sources around a `Map` can pass it on.
    fn read_before(&self, _range: Range<usize>) -> Option<&[u8]> {
        None
    }

    /// A range of the [`contents`](Self::contents) with shared ownership, so that a
    /// [`SharedTensor`](crate::tensor::SharedTensor) needs no copy. `None` if the source does not support this.
    fn share(&self, _range: Range<usize>) -> Option<SharedBytes> {
        None
    }
}

impl ReadAt for File {
    #[cfg(unix)]
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, out, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, out, offset)
    }

    /// Reads under a lock, because all readers share the position of the file.
    #[cfg(not(any(unix, windows)))]
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        use std::io::{Read, Seek};

        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = TURN.lock();
        let mut file = self;
        file.seek(io::SeekFrom::Start(offset))?;
        file.read(out)
    }

    fn size(&self) -> io::Result<u64> {
        self.metadata().map(|metadata| metadata.len())
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let rest = self.get(start..).unwrap_or_default();
        let len = rest.len().min(out.len());
        if let (Some(out), Some(rest)) = (out.get_mut(..len), rest.get(..len)) {
            out.copy_from_slice(rest);
        }
        Ok(len)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn contents(&self) -> Option<&[u8]> {
        Some(self)
    }
}

/// Implements [`ReadAt`] for types that dereference to a type that implements it.
macro_rules! by_deref {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> ReadAt for $type {
            fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
                (**self).read_at(out, offset)
            }

            fn size(&self) -> io::Result<u64> {
                (**self).size()
            }

            fn read_last(&self, out: &mut Vec<u8>) -> io::Result<u64> {
                (**self).read_last(out)
            }

            fn will_read(&self, ranges: &mut dyn Iterator<Item = Range<u64>>) {
                (**self).will_read(ranges);
            }

            fn will_read_most(&self, range: Range<u64>) {
                (**self).will_read_most(range);
            }

            fn contents(&self) -> Option<&[u8]> {
                (**self).contents()
            }

            fn read_before(&self, range: Range<usize>) -> Option<&[u8]> {
                (**self).read_before(range)
            }

            fn share(&self, range: Range<usize>) -> Option<SharedBytes> {
                (**self).share(range)
            }
        }
    )*};
}

by_deref! {
    [] Vec<u8>;
    [T: ReadAt + ?Sized] &T;
    [T: ReadAt + ?Sized] Box<T>;
    [T: ReadAt + Send + ?Sized] Arc<T>;
}

impl ReadAt for SharedBytes {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        (**self).read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn contents(&self) -> Option<&[u8]> {
        Some(self)
    }

    fn share(&self, range: Range<usize>) -> Option<SharedBytes> {
        self.slice(range)
    }
}

impl ReadAt for MappedFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_ref().read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.as_ref().size()
    }

    fn contents(&self) -> Option<&[u8]> {
        Some(self.as_ref())
    }

    fn read_before(&self, range: Range<usize>) -> Option<&[u8]> {
        self.read_before(range)
    }

    fn share(&self, range: Range<usize>) -> Option<SharedBytes> {
        self.share(range)
    }
}

/// Tells a source what will be read. The ranges are computed only if it asks for them.
pub fn announce<S: ReadAt + ?Sized>(source: &S, ranges: impl FnOnce() -> Vec<Range<u64>>) {
    source.will_read(&mut iter::once_with(ranges).flatten());
}

/// Reads from `offset` until `out` is full or the source ends. Returns the number of bytes read.
pub fn read_up_to<S: ReadAt + ?Sized>(
    source: &S,
    out: &mut [u8],
    offset: u64,
) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match read_some(rest, |rest| source.read_at(rest, offset.saturating_add(done as u64)))? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

/// The first `len` bytes of the source, or all of them if there are fewer.
pub fn first_bytes<S: ReadAt + ?Sized>(source: &S, len: usize) -> io::Result<Vec<u8>> {
    let mut piece = vec![0; len];
    let there = read_up_to(source, &mut piece, 0)?;
    piece.truncate(there);
    Ok(piece)
}

/// Opens a regular file for reading, and returns it with its length in bytes.
///
/// Other kinds of files, such as pipes and devices, are rejected because they may never end. On Unix,
/// opening does not block: a pipe without a writer is rejected immediately.
///
/// # Errors
/// If the file cannot be opened, or is not a regular file.
pub fn open_file(path: &Path) -> Result<(File, u64)> {
    let failed = |error| Error::io_at(error, "cannot open", path);
    let refused = |found: &std::fs::Metadata| {
        let what = if found.is_dir() {
            "it is a directory"
        } else {
            "it is not a regular file: read it as a stream"
        };
        failed(io::Error::new(io::ErrorKind::InvalidInput, what))
    };
    let mut options = File::options();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        libc::O_NONBLOCK | libc::O_NOCTTY,
    );
    #[cfg(not(unix))]
    match std::fs::metadata(path).map_err(failed)? {
        found if found.is_file() => {}
        found => return Err(refused(&found)),
    }
    let file = options.open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if found.is_file() { Ok((file, found.len())) } else { Err(refused(&found)) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Returns one byte per call, and is interrupted before each.
    struct Slow(Vec<u8>, AtomicBool);

    impl ReadAt for Slow {
        fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
            if self.1.fetch_not(Ordering::Relaxed) {
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
        let slow = Slow((0..100).collect(), AtomicBool::new(true));
        assert_eq!(first_bytes(&slow, 60).unwrap(), (0..60).collect::<Vec<u8>>());
        assert_eq!(first_bytes(&slow, 200).unwrap(), slow.0);
    }
}
