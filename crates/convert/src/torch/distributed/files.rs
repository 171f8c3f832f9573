//! The files of a checkpoint, and the parts of them that hold tensors and objects.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use tenarc::io::{ReadAt, open_file};
use tenarc::{Error, Result};

use crate::beside;
use crate::chunks::Span;

/// The files of a checkpoint.
///
/// A checkpoint may have more files than a process may have open. So a file is opened each time a part of it is read.
pub struct Files(Vec<Named>);

struct Named {
    path: PathBuf,
    len: u64,
    /// The open file, if a caller has borrowed it.
    held: OnceLock<File>,
}

impl Files {
    /// Checks the names of files, and that the files exist in a directory.
    pub fn new(directory: &Path, names: &[String]) -> Result<Self> {
        // All names are checked before any file is opened.
        names.iter().try_for_each(|name| beside::check("file", name))?;
        let open = |name: &String| {
            let path = directory.join(name);
            let (_, len) = open_file(&path)?;
            Ok(Named { path, len, held: OnceLock::new() })
        };
        names.iter().map(open).collect::<Result<_>>().map(Self)
    }

    fn get(&self, span: Span) -> Result<&Named> {
        self.0.get(span.file).ok_or_else(|| Error::data("there is no such file"))
    }

    /// Checks that a file is long enough for a part of it.
    pub fn check(&self, span: Span) -> Result<()> {
        let (Span { start, len, .. }, file) = (span, self.get(span)?);
        if start.checked_add(len).is_some_and(|end| end <= file.len) {
            return Ok(());
        }
        let found = file.len;
        let what = format!("{len} bytes from offset {start} on, found a file of {found} bytes");
        Err(Error::eof(&what).in_file(&file.path))
    }

    /// Opens a part of a file.
    pub fn open(&self, span: Span) -> Result<Slice> {
        let named = self.get(span)?;
        let (file, len) = open_file(&named.path)?;
        if len == named.len {
            return Ok(Slice { file, start: span.start, len: span.len });
        }
        let what = format!("expected {} bytes, found {len}: the file has changed", named.len);
        Err(Error::damaged(what).in_file(&named.path))
    }

    /// Returns the open file of a part. `None` if the process cannot open more files.
    pub fn held(&self, span: Span) -> Result<Option<&File>> {
        let named = self.get(span)?;
        if named.held.get().is_none()
            && let Ok((file, _)) = open_file(&named.path)
        {
            // If another thread was faster, its file stays.
            let _ = named.held.set(file);
        }
        Ok(named.held.get())
    }

    /// Adds to an error the file in which it occurred. The error has the offset in the part.
    pub fn locate(&self, span: Span, error: Error) -> Error {
        match self.0.get(span.file) {
            Some(file) => error.moved_by(span.start).in_file(&file.path),
            None => error,
        }
    }
}

/// A part of a file, as a file of its own.
pub struct Slice {
    file: File,
    start: u64,
    len: u64,
}

impl ReadAt for Slice {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        let left = usize::try_from(self.len.saturating_sub(offset)).unwrap_or(usize::MAX);
        let len = out.len().min(left);
        let Some(out) = out.get_mut(..len).filter(|out| !out.is_empty()) else { return Ok(0) };
        self.file.read_at(out, self.start.saturating_add(offset))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }
}
