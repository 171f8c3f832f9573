//! What is named on the command line, opened: a file, a pipe, or `-` for standard input.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tenarc::ReadAt;

use crate::failure::{Failure, Of, Result};
use crate::progress::Progress;
use crate::text::escaped;

/// An input that can be read at any position.
pub struct Input {
    pub file: File,
    /// As it was named.
    pub name: String,
    /// Where it is, if it is a file, beside which there may be others.
    pub path: Option<PathBuf>,
}

impl Input {
    /// Opens a file. What cannot be read at positions, as pipes and standard input, is copied to a
    /// temporary file first, which has no name and is gone with the process.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn open(path: &Path) -> Result<Self> {
        let name = shown(path);
        if path == Path::new("-") {
            let file = spooled(&mut io::stdin().lock()).of(&name)?;
            return Ok(Self { file, name, path: None });
        }
        let found = std::fs::metadata(path).of(&name)?;
        if found.is_dir() {
            return Err(Failure::new(format!("{name}: it is a directory")));
        }
        if is_device(&found) {
            return Err(Failure::new(format!("{name}: it is a device, which may never end")));
        }
        let mut file = File::open(path).of(&name)?;
        if !found.is_file() {
            file = spooled(&mut file).of(&name)?;
        }
        let path = found.is_file().then(|| path.to_path_buf());
        Ok(Self { file, name, path })
    }

    /// The first bytes.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn start(&self, len: usize) -> Result<Vec<u8>> {
        let mut start = vec![0; len];
        let mut done = 0;
        while let Some(rest) = start.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.file.read_at(rest, done as u64).of(&self.name)? {
                0 => break,
                read => done += read,
            }
        }
        start.truncate(done);
        Ok(start)
    }

    /// All bytes, one after the other.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn reader(&self) -> Result<&File> {
        (&self.file).rewind().of(&self.name)?;
        Ok(&self.file)
    }

    /// All bytes.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn contents(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader()?.read_to_end(&mut bytes).of(&self.name)?;
        Ok(bytes)
    }
}

/// A path as it is printed.
pub fn shown(path: &Path) -> String {
    if path == Path::new("-") {
        return "standard input".into();
    }
    escaped(&path.to_string_lossy()).into_owned()
}

#[cfg(unix)]
fn is_device(found: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let kind = found.file_type();
    kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_: &std::fs::Metadata) -> bool {
    false
}

fn spooled(reader: &mut dyn Read) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(reader, &mut file)?;
    file.rewind()?;
    Ok(file)
}

/// The file that an archive is read from; what is read can be watched.
pub struct Source {
    file: File,
    watched: OnceLock<Progress>,
}

impl Source {
    pub fn new(file: File) -> Self {
        Self { file, watched: OnceLock::new() }
    }

    /// Shows how much is read from now on.
    pub fn watch(&self, progress: Progress) {
        // Who watches already goes on.
        let _ = self.watched.set(progress);
    }
}

impl ReadAt for Source {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(out, offset)?;
        if let Some(progress) = self.watched.get() {
            progress.add(read as u64);
        }
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}
