//! Opens files of any format.

use std::path::Path;

use super::detect::detect;
use super::{Format, archive, converted, name, tables};
use crate::document::{AsTable, Document, Reading};
use crate::failure::{Failure, Of as _, Result};
use crate::input::Input;

impl Document {
    /// Opens an input, and detects its format if none is given.
    ///
    /// # Errors
    /// If the input cannot be read, or its content does not fit the format.
    pub fn open(path: &Path, reading: &Reading) -> Result<Self> {
        let input = Input::open(path)?;
        let name = input.name.clone();
        let format = match reading.from {
            Some(format) => format,
            None => detect(input.path.as_deref().unwrap_or(path), &input)?,
        };
        let len = input.len()?;
        let document = read(format, input, reading).of(&name)?;
        Ok(document.with_file_len(len))
    }
}

/// Opens the input as an archive, as messages, or as a value whose tensors are read in place.
///
/// # Errors
/// If it cannot be read, or is not of this format.
fn read(format: Format, input: Input, reading: &Reading) -> Result<Document> {
    let mut arrays = match &reading.table {
        AsTable::Asked(path) => Some(&**path),
        AsTable::No | AsTable::Needed => None,
    };
    if matches!(format, Format::Arrow | Format::Parquet)
        && let Some(path) = arrays.take()
        && !path.is_empty()
    {
        let what =
            format!("the whole file is a table, of {}: give --table without a path", name(format));
        return Err(Failure::new(what));
    }
    let document = match (format, format.converted()) {
        (Format::Arrow, _) => tables::read_arrow(input, reading),
        (_, Some(of)) => converted::read(format, of, input, reading),
        (Format::Archive, _) => archive::read(input, reading),
        (Format::Parquet, _) => tables::read_parquet(input, reading),
        _ => Document::of_messages(input.name.clone(), format, input.contents()?),
    };
    match arrays {
        Some(path) => tables::of_arrays(document?, path),
        None => document,
    }
}
