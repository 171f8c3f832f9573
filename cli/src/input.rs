//! Inputs named on the command line: a file, a pipe, or `-` for standard input.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tenarc::io::ReadAt;

use crate::failure::{Failure, Kind, Of, OfInput, Result};
use crate::progress::Progress;
use crate::text::escaped;

/// An input that can be read at any position.
pub struct Input {
    pub file: File,
    /// The name, as printed.
    pub name: String,
    /// The path, if it is a regular file: some formats read other files in the same directory.
    pub path: Option<PathBuf>,
}

impl Input {
    /// Opens an input. Standard input and pipes are first copied to an unnamed temporary file, as they cannot
    /// be read at any position.
    ///
    /// # Errors
    /// If it cannot be read, or is a directory or a device.
    pub fn open(path: &Path) -> Result<Self> {
        let name = shown(path);
        if path == Path::new("-") {
            let file = spooled(&mut io::stdin().lock()).of(&name)?;
            return Ok(Self { file, name, path: None });
        }
        let found = std::fs::metadata(path).of(&name)?;
        if found.is_dir() {
            return Err(Failure::of_kind(Kind::Io, format!("{name}: is a directory")));
        }
        if is_device(&found) {
            let what = format!("{name}: is a device, which may never end");
            return Err(Failure::of_kind(Kind::Io, what));
        }
        let mut file = File::open(path).of(&name)?;
        if !found.is_file() {
            file = spooled(&mut file).of(&name)?;
        }
        let path = found.is_file().then(|| path.to_path_buf());
        Ok(Self { file, name, path })
    }

    /// The first `len` bytes, or all if there are fewer.
    ///
    /// # Errors
    /// If they cannot be read.
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

    /// A reader from the first byte.
    ///
    /// # Errors
    /// If the file cannot be rewound.
    pub fn reader(&self) -> Result<&File> {
        (&self.file).rewind().of(&self.name)?;
        Ok(&self.file)
    }

    /// All bytes, in memory.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn contents(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.reader()?.read_to_end(&mut bytes).of(&self.name)?;
        Ok(bytes)
    }
}

/// A path for printing.
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

/// The file that an archive is read from. It can add what is read to a progress bar.
pub struct Source {
    file: File,
    progress: OnceLock<Progress>,
}

impl Source {
    pub fn new(file: File) -> Self {
        Self { file, progress: OnceLock::new() }
    }

    /// Adds what is read from now on to a progress bar.
    pub fn add_progress_to(&self, progress: Progress) {
        // If there is a progress bar already, that one stays.
        let _ = self.progress.set(progress);
    }
}

impl ReadAt for Source {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self
            .file
            .read_at(out, offset)
            .map_err(|error| io::Error::new(error.kind(), OfInput(error.to_string())))?;
        if let Some(progress) = self.progress.get() {
            progress.add(read as u64);
        }
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}
