//! Writes files that appear under their names only after they were read back and verified.

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

/// Writes an archive of the values that `save` saves. The archive has checksums of the bytes that `save` passed on.
/// Before it appears under its name, it is read back and verified by them, and `check` must accept it.
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

/// Checks that the bytes of a file have this length and this hash.
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
    Err(Error::damaged("the file that was read back differs from what was written"))
}

/// Writes a file with `write`. It appears under its name only if `write` succeeds.
pub fn file<T>(path: &Path, sync: SyncLevel, write: impl FnOnce(&File) -> Result<T>) -> Result<T> {
    let file = AtomicFile::replacing(path)?;
    let made = write(file.file())?;
    file.commit(sync)?;
    Ok(made)
}

/// Writes to an empty file with `write`, reads the file back and compares it. Errors show `path` as its path.
///
/// # Errors
/// If `write` fails, the file cannot be written, or the bytes read back differ from those written.
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
    // The error of `write` may not name the file, so the error of the file is returned instead.
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

    /// A writer that hashes the bytes it passes on, and keeps the error of the writer inside.
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
            // The file is open for reading only.
            let file =
                std::fs::File::open(concat!(env!("CARGO_MANIFEST_DIR"), "/src/made.rs")).unwrap();
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
