//! Finds files, and reads what their metadata say.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use tenarc::archive::Segment;
use tenarc::io::{ReadAt, open_file};
use tenarc::{Archive, Error, Result};
use tenarc_arrow::ArrowTable;

/// The extension of the files of a directory that are read.
const EXTENSION: &str = "tenarc";

/// The files that a path stands for: a file, the files `*.tenarc` in a directory, or those that match a pattern, in the
/// order of their names.
pub fn find(path: &Path) -> Result<Vec<PathBuf>> {
    let failed = |error: io::Error, path: &Path| Error::io_at(error, "cannot read", path);
    if path.is_dir() {
        let mut files = Vec::new();
        for entry in path.read_dir().map_err(|error| failed(error, path))? {
            let file = entry.map_err(|error| failed(error, path))?.path();
            if file.extension().is_some_and(|extension| extension == EXTENSION) && file.is_file() {
                files.push(file);
            }
        }
        files.sort_unstable();
        return some(files, path, "there are no files `*.tenarc` in the directory");
    }
    // A name can have brackets.
    let is_pattern = path.to_str().is_some_and(|path| path.contains(['*', '?', '[']));
    if !is_pattern || path.exists() {
        return Ok(vec![path.to_owned()]);
    }
    let pattern = glob::glob(path.to_str().unwrap_or_default());
    let matching = pattern.map_err(|error| Error::data(error.to_string()).in_file(path))?;
    let mut files = Vec::new();
    for file in matching {
        let file = file.map_err(|error| {
            let path = error.path().to_owned();
            failed(error.into(), &path)
        })?;
        if file.is_file() {
            files.push(file);
        }
    }
    some(files, path, "no file matches the pattern")
}

fn some(files: Vec<PathBuf>, path: &Path, why: &str) -> Result<Vec<PathBuf>> {
    if files.is_empty() { Err(Error::not_found(why).in_file(path)) } else { Ok(files) }
}

/// A file whose reads can be watched, and stopped.
pub struct Watched<F> {
    file: File,
    /// Called with the number of bytes after each read. If it says no, reading fails.
    watch: F,
}

impl<F: Fn(usize) -> bool + Sync> Watched<F> {
    pub fn open(path: &Path, watch: F) -> Result<Archive<Self>> {
        let (file, _) = open_file(path)?;
        Archive::new(Self { file, watch }).map_err(|error| error.in_file(path))
    }
}

impl<F: Fn(usize) -> bool + Sync> ReadAt for Watched<F> {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let read = self.file.read_at(out, offset)?;
        if (self.watch)(read) { Ok(read) } else { Err(io::Error::other("nobody wants the rows")) }
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }
}

/// The table of this name. Without a name, it is that of all values, which must have one name, or none.
pub fn table<'a, S: ReadAt>(archive: &'a Archive<S>, name: &Name) -> Result<ArrowTable<'a, S>> {
    match name {
        Name::Any => ArrowTable::of_segments(archive.segments().collect::<Result<_>>()?),
        Name::Is(Some(name)) => ArrowTable::open(archive, name),
        Name::Is(None) => {
            let is_unnamed = |segment: &Result<Segment<'a, S>>| {
                segment.as_ref().map_or(true, |segment| segment.name().is_none())
            };
            let segments = archive.segments().filter(is_unnamed);
            ArrowTable::of_segments(segments.collect::<Result<_>>()?)
        }
    }
}

/// Which values of a file are the table.
#[derive(Clone, Debug, PartialEq)]
pub enum Name {
    /// All of them.
    Any,
    /// Those with this name, or those without one.
    Is(Option<String>),
}
