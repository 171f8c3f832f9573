//! What a format implements. The list of all formats is in `format.rs`, which no format knows.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use tenarc::io::AtomicFile;
use tenarc::{Archive, Error, OArchive, Result};

use crate::{Losses, Options, Stored, TensorFile, made};

/// An archive that is being written.
pub type Archived<'a> = OArchive<&'a mut AtomicFile>;

/// Why a file cannot be written to any writer.
#[cold]
pub fn must_seek() -> Error {
    Error::unsupported(
        "this format is only written to a path, because its writer goes back to earlier bytes",
    )
}

/// How files of a format are read and written.
pub trait Codec: Sync {
    /// Returns whether a file holds values one after the other, rather than named tensors.
    fn holds_values(&self) -> bool {
        false
    }

    /// Returns the path of the file to open. It is another one than `path` if that is a directory of this format.
    fn first_file<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        path.into()
    }

    /// Opens a file of tensors.
    fn open(&self, _: File, _: Option<&Path>, _: &Options) -> Result<Box<dyn TensorFile>> {
        Err(Error::unsupported("files of this format are read value by value"))
    }

    /// Reads the values of a file one after the other, and saves each to the archive. Returns what was lost, if the options
    /// accept losses.
    fn load(&self, _: &File, _: &Options, _: &mut Archived<'_>) -> Result<Losses> {
        Err(Error::unsupported("files of this format are read tensor by tensor"))
    }

    /// Opens a file of tensors. If the file holds a table of records, converts it to an archive instead, and returns the
    /// losses as `Break`. The paths are those of the file and of the archive.
    fn open_or_convert(
        &self,
        file: File,
        (from, _): (&Path, &Path),
        options: &Options,
    ) -> Result<ControlFlow<Losses, Box<dyn TensorFile>>> {
        let file = self.open(file, Some(from), options);
        file.map(ControlFlow::Continue).map_err(|error| error.in_file(from))
    }

    /// Converts an archive that is a table of records. Returns `None` if it is not, or if files of this format hold no
    /// tables.
    fn table_from_archive(
        &self,
        _: &Archive<File>,
        _: &Path,
        _: &Options,
    ) -> Result<Option<Losses>> {
        Ok(None)
    }

    /// Writes a value. Returns what was lost, if the options accept losses.
    fn write(&self, _: &dyn Stored, _: &mut dyn Write, _: &Options) -> Result<Losses> {
        Err(Error::unsupported("files of this format are only read"))
    }

    /// Writes a value to an empty file, and reads the file back to verify it.
    fn write_file(
        &self,
        value: &dyn Stored,
        file: &File,
        path: &Path,
        options: &Options,
    ) -> Result<Losses> {
        made::written(file, path, |out| self.write(value, out, options))
    }

    /// Returns the options for a file of this name. For example, its extension says whether Arrow is written as a file
    /// or as a stream.
    fn of_name(&self, _: &Path, options: &Options) -> Options {
        options.clone()
    }
}
