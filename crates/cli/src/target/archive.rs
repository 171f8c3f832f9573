//! Archives that commands write.

use std::fs::File;
use std::io::{self, BufWriter};

use tenarc::archive::{Compacted, Compaction, Segment};
use tenarc::io::AtomicFile;
use tenarc::{Archive, OArchive};

use super::{Target, not_a_terminal};
use crate::failure::{Failure, Result};
use crate::input::Source;
use crate::progress::Progress;
use crate::written::Written;

/// Writes an archive to a [`Target`].
pub struct ArchiveTarget {
    to: ArchiveTo,
    target: Target,
    name: String,
}

enum ArchiveTo {
    File(Box<OArchive<AtomicFile>>),
    Stdout(Box<OArchive<BufWriter<io::Stdout>>>),
}

impl ArchiveTarget {
    /// Opens an archive at the target.
    ///
    /// # Errors
    /// If the target cannot be opened for writing, or is a terminal.
    pub fn new(target: &Target) -> Result<Self> {
        let options = target.options.clone();
        let name = target.name();
        let of_output = |error: tenarc::Error| Failure::from(error).of_output(&name);
        let to = match target.path() {
            Some(path) => {
                let out = AtomicFile::replacing(path)
                    .and_then(|file| OArchive::with_options(file, options));
                ArchiveTo::File(Box::new(out.map_err(of_output)?))
            }
            None => {
                let out = OArchive::with_options(not_a_terminal()?, options).map_err(of_output)?;
                ArchiveTo::Stdout(Box::new(out))
            }
        };
        Ok(Self { to, target: target.clone(), name })
    }

    /// Adds a value to the archive.
    ///
    /// # Errors
    /// If the value cannot be read or written.
    pub fn save(&mut self, name: Option<&str>, value: &Written<'_>) -> Result<()> {
        let saved = match (&mut self.to, name) {
            (ArchiveTo::File(out), None) => out.save(value).map(drop),
            (ArchiveTo::File(out), Some(name)) => out.save_as(name, value).map(drop),
            (ArchiveTo::Stdout(out), None) => out.save(value).map(drop),
            (ArchiveTo::Stdout(out), Some(name)) => out.save_as(name, value).map(drop),
        };
        saved.map_err(|error| value.failure(error, &self.name))
    }

    /// Adds a copy of a segment, without decoding it.
    ///
    /// # Errors
    /// If the segment is damaged, or cannot be written.
    pub fn copy(&mut self, name: Option<&str>, segment: &Segment<'_, Source>) -> Result<()> {
        let saved = match (&mut self.to, name) {
            (ArchiveTo::File(out), Some(name)) => out.save_segment_as(name, segment).map(drop),
            (ArchiveTo::File(out), None) => out.save_segment(segment).map(drop),
            (ArchiveTo::Stdout(out), Some(name)) => out.save_segment_as(name, segment).map(drop),
            (ArchiveTo::Stdout(out), None) => out.save_segment(segment).map(drop),
        };
        saved.map_err(|error| Failure::while_writing(error, &self.name))
    }

    /// Adds all values of an archive, with the rows of its tables in few segments.
    ///
    /// # Errors
    /// If a value is damaged, the compaction does not fit the archive, or it cannot be written.
    pub fn compact(
        &mut self,
        archive: &Archive<Source>,
        compaction: &Compaction,
    ) -> Result<Compacted> {
        let done = match &mut self.to {
            ArchiveTo::File(out) => compaction.write_to(archive, out),
            ArchiveTo::Stdout(out) => compaction.write_to(archive, out),
        };
        done.map_err(|error| Failure::while_writing(error, &self.name))
    }

    /// Writes the end of the archive. If the target is a file, the new file is then read back and verified, and
    /// replaces the old one.
    ///
    /// # Errors
    /// If writing, reading or renaming fails, or if the new file is damaged or has another number of values.
    pub fn finish(self) -> Result<()> {
        let of_output = |error: tenarc::Error| Failure::from(error).of_output(&self.name);
        match self.to {
            ArchiveTo::File(out) => {
                let values = out.segments();
                let file = out.finish().map_err(of_output)?;
                read_back(file.file(), values, !self.target.is_part).map_err(of_output)?;
                self.target.commit(file)
            }
            ArchiveTo::Stdout(out) => out.finish().map(drop).map_err(of_output),
        }
    }
}

/// Opens an archive that was written, and verifies all bytes of it.
///
/// # Errors
/// If it is no archive, or is damaged.
pub fn verified(file: &File, shows_progress: bool) -> tenarc::Result<Archive<&File>> {
    let archive = Archive::new(file)?;
    let progress = shows_progress.then(|| Progress::new(archive.byte_len(), "verifying"));
    archive.verify_with(|done, _| progress.iter().for_each(|bar| bar.set(done)))?;
    Ok(archive)
}

/// Checks that a file is an archive of this number of values, and verifies all bytes of it.
fn read_back(file: &File, values: u64, shows_progress: bool) -> tenarc::Result<()> {
    let archive = verified(file, shows_progress)?;
    if archive.len() == values {
        return Ok(());
    }
    let what = format!("wrote {values} values, read back {}", archive.len());
    Err(tenarc::Error::damaged(what))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, SeekFrom, Write as _};

    use super::*;

    #[test]
    fn an_archive_that_changed_is_not_what_was_written() {
        let mut file = tempfile::tempfile().unwrap();
        let mut out = OArchive::new(&mut file).unwrap();
        out.save(&tenarc::Tensor(vec![0.5f32; 4096])).unwrap();
        out.finish().unwrap();
        read_back(&file, 1, false).unwrap();
        assert!(read_back(&file, 2, false).unwrap_err().to_string().contains("read back 1"));
        file.seek(SeekFrom::Start(8000)).unwrap();
        file.write_all(b"x").unwrap();
        assert!(read_back(&file, 1, false).unwrap_err().to_string().contains("checksum"));
    }
}
