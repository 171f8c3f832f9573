//! Files that take their names once they were read back.

use std::fs::File;
use std::hash::Hasher as _;
use std::path::Path;

use tenarc::archive::SaveOptions;
use tenarc::io::{AtomicFile, ReadAt as _, open_file};
use tenarc::{Archive, Error, OArchive, Result};
use twox_hash::XxHash3_64;

use crate::source;
use crate::support::STEP;

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

/// Opens an archive of one value.
pub fn open_single(path: &Path) -> Result<Archive<File>> {
    let archive = Archive::new(open_file(path)?.0).map_err(|error| error.in_file(path))?;
    match archive.len() {
        1 => Ok(archive),
        found => {
            let what =
                format!("expected an archive of one value, found {found}; convert each segment");
            Err(Error::data(what).in_file(path))
        }
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

/// Makes a file of what `write` writes, which is read back and compared, and then given to `check`.
pub fn file<T>(
    path: &Path,
    sync: tenarc::io::SyncLevel,
    write: impl FnOnce(&mut dyn std::io::Write) -> Result<T>,
    check: impl FnOnce(&File, &T) -> Result<()>,
) -> Result<T> {
    let mut file = AtomicFile::replacing(path)?;
    let mut out = std::io::BufWriter::with_capacity(64 << 10, hashed::Hashed::new(&mut file));
    let made = write(&mut out)?;
    let failed = |error: std::io::Error| Error::io_at(error, "cannot write", path);
    let (len, hash) = out.into_inner().map_err(|error| failed(error.into_error()))?.finish();
    verify_bytes(file.file(), len, hash).map_err(|error| error.in_file(path))?;
    check(file.file(), &made).map_err(|error| error.in_file(path))?;
    file.commit(sync)?;
    Ok(made)
}

mod hashed {
    use std::hash::Hasher as _;
    use std::io::{self, Write};

    use twox_hash::XxHash3_64;

    /// Knows what it passed on.
    pub struct Hashed<W> {
        writer: W,
        hasher: XxHash3_64,
        len: u64,
    }

    impl<W: Write> Hashed<W> {
        pub fn new(writer: W) -> Self {
            Self { writer, hasher: XxHash3_64::new(), len: 0 }
        }

        pub fn finish(self) -> (u64, u64) {
            (self.len, self.hasher.finish())
        }
    }

    impl<W: Write> Write for Hashed<W> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let written = self.writer.write(bytes)?;
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
            let mut out = Hashed::new(&mut file);
            out.write_all(&[7; 1000]).unwrap();
            let (len, hash) = out.finish();
            verify(&file, len, hash).unwrap();
            assert!(verify(&file, len, hash ^ 1).is_err());
            file.write_all(b"x").unwrap();
            assert!(verify(&file, len, hash).is_err());
            file.set_len(len - 1).unwrap();
            assert!(verify(&file, len, hash).is_err());
        }
    }
}
