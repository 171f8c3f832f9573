//! [`DirectFile`], a file that is read without the page cache.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::error::Result;
use crate::io::at::{ReadAt, open_file};

/// A file whose large tensors are read from the drive into memory directly, past the page cache of the operating
/// system.
///
/// Use it for a large file that is read once and is not in the page cache, such as a checkpoint after a restart. It does
/// not push other files out of the cache. Each read waits for the drive. So use
/// [`ReadAhead::open`](crate::io::ReadAhead::open) to load a value, and `DirectFile` alone for single large tensors.
///
/// Each thread that reads at the same time takes memory for 2 MiB, which is kept until the file is closed.
///
/// [`tenarc::open`](crate::open) is better for a file that is in the page cache: `DirectFile` reads it from the drive
/// again.
///
/// ```
/// use tenarc::io::DirectFile;
/// use tenarc::{Archive, Tensor};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-direct-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.tenarc");
/// tenarc::save(&path, &Tensor(vec![0.5f32; 5_000_000]))?;
///
/// let archive = Archive::new(DirectFile::open(&path)?)?;
/// let tensor: Tensor<Vec<f32>> = archive.load()?;
/// # assert_eq!(tensor.len(), 5_000_000);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Reads of less than 1 MiB use the page cache, because each of them would have to wait for the drive. So do all reads on
/// systems other than Linux, and on file systems that do not support direct reads: [`is_direct`](Self::is_direct) tells.
#[derive(Debug)]
pub struct DirectFile {
    file: File,
    #[cfg(target_os = "linux")]
    direct: Option<linux::Direct>,
}

impl DirectFile {
    /// Opens a regular file.
    ///
    /// # Errors
    /// If the file cannot be opened, or is not a regular file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let (file, _) = open_file(path)?;
        Ok(Self {
            #[cfg(target_os = "linux")]
            direct: linux::Direct::open(path, &file),
            file,
        })
    }

    /// Whether large reads do not use the page cache.
    pub fn is_direct(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.direct.as_ref().is_some_and(linux::Direct::works);
        #[cfg(not(target_os = "linux"))]
        false
    }
}

impl ReadAt for DirectFile {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        #[cfg(target_os = "linux")]
        if let Some(direct) = &self.direct
            && let Some(read) = direct.read(out, offset)?
        {
            return Ok(read);
        }
        self.file.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::io::aligned::Aligned;
    use crate::io::at::{PIECE, ReadAt as _};
    use crate::io::parallel::Spare;
    use crate::io::source::read_some;

    /// Offsets, lengths and addresses of direct reads must be multiples of the block length of the drive, which is at most this
    /// on nearly all drives. (`open(2)`, `O_DIRECT`.)
    const BLOCK: usize = 4 << 10;
    /// Shorter reads use the page cache.
    const LEAST: usize = 1 << 20;

    /// The system refuses offsets that do not fit into an `i64`, with the same error as other reads that it refuses.
    const MAX_OFFSET: u64 = 1 << 62;

    /// A file that was opened for direct reads.
    #[derive(Debug)]
    pub struct Direct {
        file: File,
        /// For a piece and the blocks around it.
        buffers: Spare<Option<Aligned>>,
        /// Whether the file system has refused a direct read.
        refused: AtomicBool,
    }

    impl Direct {
        /// `None` if the file system does not support direct reads. `same` is the file that was found at this path before.
        pub fn open(path: &Path, same: &File) -> Option<Self> {
            let flags = libc::O_DIRECT | libc::O_NONBLOCK | libc::O_NOCTTY;
            let file = File::options().read(true).custom_flags(flags).open(path).ok()?;
            let [found, expected] = [file.metadata().ok()?, same.metadata().ok()?];
            // Another file may have been renamed to this path in between.
            let is_same = found.dev() == expected.dev() && found.ino() == expected.ino();
            is_same.then(|| Self {
                file,
                buffers: Spare::default(),
                refused: AtomicBool::new(false),
            })
        }

        pub fn works(&self) -> bool {
            !self.refused.load(Ordering::Relaxed)
        }

        /// Like [`ReadAt::read_at`](super::ReadAt::read_at). `None` if the bytes must be read through the page cache.
        pub fn read(&self, out: &mut [u8], offset: u64) -> io::Result<Option<usize>> {
            if out.len() < LEAST || offset > MAX_OFFSET || !self.works() {
                return Ok(None);
            }
            let start = offset - offset % BLOCK as u64;
            let before = usize::try_from(offset - start).unwrap_or_default();
            let wanted = out.len().min(PIECE);
            let read_blocks = |out: &mut [u8]| read_some(out, |out| self.file.read_at(out, start));
            let is_aligned = (out.as_ptr() as usize | out.len() | before).is_multiple_of(BLOCK);
            let read = if is_aligned {
                read_blocks(out)
            } else {
                self.buffers.lend(|buffer| {
                    let buffer = buffer.get_or_insert_with(|| Aligned::new(PIECE + BLOCK));
                    let len = (before + wanted).next_multiple_of(BLOCK);
                    let blocks = &mut buffer.bytes_mut()[..len];
                    let read = read_blocks(blocks)?;
                    let found = blocks[..read].get(before..).unwrap_or_default();
                    let len = found.len().min(wanted);
                    out[..len].copy_from_slice(&found[..len]);
                    Ok(len)
                })
            };
            match read {
                // The end of the file, or a short read.
                Ok(0) => Ok(None),
                Ok(read) => Ok(Some(read)),
                Err(error) if is_refusal(&error) => {
                    self.refused.store(true, Ordering::Relaxed);
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        }
    }

    /// Whether this says that direct reads, or reads in blocks of this length, are not supported.
    fn is_refusal(error: &io::Error) -> bool {
        matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EOPNOTSUPP))
    }
}
