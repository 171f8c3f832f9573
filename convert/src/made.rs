//! Files that take their names once they were read back.

use std::fs::File;
use std::hash::Hasher as _;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;

use tenarc::archive::SaveOptions;
use tenarc::io::{AtomicFile, ReadAt as _, SyncLevel};
use tenarc::{Archive, Error, OArchive, Result};
use twox_hash::XxHash3_64;

use crate::source;
use crate::support::STEP;
use hashed::Hashed;

/// Makes an archive of what `save` saves: with checksums, by which it is verified, of the bytes as they
/// were handed over. Then it is given to `check`.
pub fn archive<T>(
    path: &Path,
    options: SaveOptions,
    save: impl FnOnce(&mut OArchive<&mut AtomicFile>) -> Result<T>,
    check: impl FnOnce(&Archive<&File>) -> Result<()>,
) -> Result<T> {
    let options = options.with_checksums(true);
    let sync = options.sync();
    let mut file = AtomicFile::replacing(path)?;
    let mut out = OArchive::with_options(&mut file, options)?;
    let made = save(&mut out)?;
    let segments = out.segments();
    out.finish()?;
    let verified = verified(file.file(), segments).and_then(|archive| check(&archive));
    verified.map_err(|error| error.in_file(path))?;
    file.commit(sync)?;
    Ok(made)
}

fn verified(file: &File, segments: u64) -> Result<Archive<&File>> {
    let archive = Archive::new(file)?;
    archive.verify()?;
    match archive.len() {
        found if found == segments => Ok(archive),
        found => Err(Error::damaged(format!("wrote {segments} values, read back {found}"))),
    }
}

/// That a file holds just the bytes of this length and hash.
pub fn verify_bytes(file: &File, len: u64, hash: u64) -> Result<()> {
    let mut hasher = XxHash3_64::new();
    let mut block = vec![0; STEP];
    let size = file.size().map_err(Error::io)?;
    let end = size.min(len);
    let mut at = 0;
    while at < end {
        let step = usize::try_from((end - at).min(STEP as u64)).unwrap_or(STEP);
        let step = block.get_mut(..step).unwrap_or_default();
        source::read_exact(file, step, at)?;
        hasher.write(step);
        at += step.len() as u64;
    }
    if size == len && hasher.finish() == hash {
        return Ok(());
    }
    Err(Error::damaged("what was read back is not what was written"))
}

/// Makes a file, which takes its name once `write` has written it.
pub fn file<T>(path: &Path, sync: SyncLevel, write: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    let file = AtomicFile::replacing(path)?;
    let made = write(file.file())?;
    file.commit(sync)?;
    Ok(made)
}

/// Writes what `write` writes to an empty file, which is read back and compared. `path` is its name in errors.
///
/// # Errors
/// If the file cannot be written, holds something else than was written, or `write` fails.
pub fn written<T, E: From<Error>>(
    file: &File,
    path: &Path,
    write: impl FnOnce(&mut (dyn Write + Send)) -> Result<T, E>,
) -> Result<T, E> {
    let failed = Mutex::new(None);
    let mut out = BufWriter::with_capacity(64 << 10, Hashed::new(file, &failed));
    let made = write(&mut out).and_then(|made| {
        out.flush().map_err(Error::io)?;
        Ok(made)
    });
    // The error of `write` may not tell what was being written.
    if let Ok(Some(error)) = failed.lock().map(|mut failed| failed.take()) {
        return Err(Error::io_at(error, "cannot write", path).into());
    }
    let (len, hash) = out.get_ref().hashed();
    let made = made?;
    verify_bytes(file, len, hash).map_err(|error| error.in_file(path))?;
    Ok(made)
}

mod hashed {
    use std::hash::Hasher as _;
    use std::io::{self, Write};
    use std::sync::Mutex;

    use twox_hash::XxHash3_64;

    /// Knows what it passed on, and how that failed.
    pub struct Hashed<'f, W> {
        writer: W,
        hasher: XxHash3_64,
        len: u64,
        failed: &'f Mutex<Option<io::Error>>,
    }

    impl<'f, W: Write> Hashed<'f, W> {
        pub fn new(writer: W, failed: &'f Mutex<Option<io::Error>>) -> Self {
            Self { writer, hasher: XxHash3_64::new(), len: 0, failed }
        }

        pub fn hashed(&self) -> (u64, u64) {
            (self.len, self.hasher.finish())
        }
    }

    impl<W: Write> Write for Hashed<'_, W> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let written = self.writer.write(bytes).map_err(|error| {
                let copy = io::Error::from(error.kind());
                if error.kind() != io::ErrorKind::Interrupted
                    && let Ok(mut failed) = self.failed.lock()
                {
                    *failed = Some(error);
                }
                copy
            })?;
            self.hasher.write(bytes.get(..written).unwrap_or_default());
            self.len += written as u64;
            Ok(written)
        }

        fn flush(&mut self) -> io::Result<()> {
            self.writer.flush()
        }
    }

    #[cfg(all(test, not(miri)))]
    mod tests {
        use super::super::verify_bytes as verify;
        use super::*;

        #[test]
        fn a_file_that_changed_is_not_what_was_written() {
            let mut file = tempfile::tempfile().unwrap();
            let failed = Mutex::new(None);
            let mut out = Hashed::new(&mut file, &failed);
            out.write_all(&[7; 1000]).unwrap();
            let (len, hash) = out.hashed();
            verify(&file, len, hash).unwrap();
            assert!(verify(&file, len, hash ^ 1).is_err());
            file.write_all(b"x").unwrap();
            assert!(verify(&file, len, hash).is_err());
            file.set_len(len - 1).unwrap();
            assert!(verify(&file, len, hash).is_err());
        }

        #[test]
        fn an_error_of_the_file_names_it() {
            // It cannot be written.
            let file = std::fs::File::open(file!().replace("convert/", "")).unwrap();
            let write = |out: &mut (dyn Write + Send)| {
                out.write_all(&vec![0; 1 << 20])
                    .map_err(|_| tenarc::Error::data("the writer failed"))
            };
            let error =
                super::super::written(&file, std::path::Path::new("to"), write).unwrap_err();
            assert!(error.to_string().contains("cannot write `to`"), "{error}");
        }
    }
}
