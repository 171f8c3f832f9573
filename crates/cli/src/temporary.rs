//! Temporary files, for what must not all be in memory.

use std::fs::File;
use std::io::BufWriter;

use tenarc::archive::SaveOptions;
use tenarc::{Archive, OArchive};

use crate::failure::{Of as _, Result};
use crate::input::Source;
use crate::limits::decoding;
use crate::written::Written;

/// The name of the temporary file in error messages.
pub const TEMPORARY: &str = "a temporary file (TMPDIR sets the directory)";

/// Creates an unnamed temporary file, which the system removes when it is closed.
pub fn temporary() -> Result<File> {
    tempfile::tempfile().of(format!("cannot create {TEMPORARY}"))
}

/// A temporary archive that is being written.
pub type Temporary<'f> = OArchive<BufWriter<&'f File>>;

/// Creates a temporary archive with what `save` saves to it.
pub fn temporary_archive(
    save: impl FnOnce(&mut Temporary<'_>) -> Result<()>,
) -> Result<Archive<Source>> {
    noted_archive(&[], save)
}

/// Like [`temporary_archive`], with these notes at each value.
pub fn noted_archive(
    notes: &[(String, String)],
    save: impl FnOnce(&mut Temporary<'_>) -> Result<()>,
) -> Result<Archive<Source>> {
    let file = temporary()?;
    // A table that is converted is copied from here with its statistics, and may be filtered often.
    let options = SaveOptions::default().with_statistics(true);
    let options = notes.iter().fold(options, |options, (key, text)| options.with_note(key, text));
    let mut out = OArchive::with_options(BufWriter::with_capacity(1 << 20, &file), options)?;
    save(&mut out)?;
    drop(out.finish()?);
    Ok(Archive::new(Source::new(file))?.with_options(decoding()))
}

/// Saves a value to a temporary archive.
pub fn save_temporary(
    out: &mut Temporary<'_>,
    name: Option<&str>,
    value: &Written<'_>,
) -> Result<()> {
    let saved = match name {
        Some(name) => out.save_as(name, value),
        None => out.save(value),
    };
    saved.map(drop).map_err(|error| value.failure(error, TEMPORARY))
}
