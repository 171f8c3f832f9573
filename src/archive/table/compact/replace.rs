//! Replaces an archive file by what a compaction makes of it.

use std::fs;
use std::io;
use std::path::Path;

use super::{Compacted, Compaction};
use crate::archive::write::lock;
use crate::archive::{Archive, OArchive, SaveOptions};
use crate::error::{Error, Result};
use crate::io::at::ReadAt as _;
use crate::io::atomic::AtomicFile;

impl Compaction {
    /// Replaces an archive file. The new file is written beside it, read back and verified, and then renamed, so readers that
    /// have the old one open keep it. After any error, the old file is unchanged. Nobody can append to the file meanwhile.
    ///
    /// If no table has several segments, the file stays. If the path is a symbolic link, the file to which it leads is
    /// replaced. Bytes of an append that was interrupted are dropped.
    ///
    /// # Errors
    /// The errors of [`write_to`](Self::write_to), and if another process is appending to the file.
    pub fn replace(&self, path: impl AsRef<Path>, options: SaveOptions) -> Result<Compacted> {
        let path = path.as_ref();
        let sync = options.sync();
        let of_file = |error: Error| error.in_file(path);
        let failed = |error: io::Error| Error::io_at(error, "cannot open", path);
        let target = fs::canonicalize(path).map_err(failed)?;
        let locked = lock(&target)?;
        let archive = Archive::new(&locked.file).map_err(of_file)?;
        let archive = archive.with_options(self.reading);
        let tables = self.tables(&archive).map_err(of_file)?;
        if tables.is_empty() {
            let bytes = archive.byte_len();
            return Ok(Compacted { tables: Vec::new(), bytes_before: bytes, bytes });
        }
        let mut out = OArchive::with_options(AtomicFile::replacing(&target)?, options)?;
        let mut compacted = self.write(&archive, tables, &mut out).map_err(of_file)?;
        let new = out.finish()?;
        Archive::new(new.file())?.with_options(self.reading).verify()?;
        compacted.bytes = new.file().size().map_err(failed)?;
        if !locked.is_at_its_path().map_err(failed)? {
            let error = io::Error::other("the file was replaced by another one meanwhile");
            return Err(Error::io_at(error, "cannot replace", path));
        }
        new.commit(sync)?;
        Ok(compacted)
    }
}
