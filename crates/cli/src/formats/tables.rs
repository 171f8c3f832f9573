//! Reads and writes tables of records in Parquet and Arrow files. A table is read into a temporary archive, with one
//! value for each row group or record batch.

use std::path::Path;

use tenarc::archive::Segment;
use tenarc::error::Category;
use tenarc::{Archive, Value};
use tenarc_convert::arrow::{self, ArrowFile, TableFile};
use tenarc_convert::parquet::{self, ParquetFile};
use tenarc_convert::{ArrayTable, Format as Converted, Losses, Opened, Options};

use super::stream::write_file_or_stream;
use super::values::{Valued, Values};
use super::{Format, Lossy, converted};
use crate::document::{AsTable, Document, Reading, Wanted};
use crate::failure::{Failure, Result};
use crate::input::{Input, Source};
use crate::limits::limits;
use crate::losses::NOT_READ;
use crate::output::say;
use crate::panics::quietly;
use crate::rows::Meant;
use crate::target::Target;
use crate::temporary::{TEMPORARY, Temporary, noted_archive, save_temporary, temporary_archive};
use crate::text::quoted;
use crate::written::Written;

/// Reads the tables of a Parquet file.
///
/// # Errors
/// If the input cannot be read, or is not a Parquet file.
pub fn read_parquet(input: Input, reading: &Reading) -> Result<Document> {
    let file = quietly(|| ParquetFile::new(input.file))?.with_limits(limits());
    let save = |out: &mut Temporary<'_>, stem: &str, options: &Options| {
        quietly(|| file.save_to(out, stem, options))
    };
    document(input.name, Format::Parquet, reading, file.texts(), save, || file.about())
}

/// Reads an Arrow file: as a table if that is requested or if tensors would not keep all columns, and otherwise as
/// tensors, in place.
///
/// # Errors
/// If the input cannot be read, or is not an Arrow file.
pub fn read_arrow(input: Input, reading: &Reading) -> Result<Document> {
    let file = if reading.table == AsTable::No {
        let file = ArrowFile::new(input.file)?.with_limits(limits());
        if !file.is_table() {
            let opened = Opened::new(Box::new(file), reading.names)?;
            return Ok(Document::of_opened(input.name, Format::Arrow, opened));
        }
        file.into_table()?
    } else {
        TableFile::new(input.file)?.with_limits(limits())
    };
    let save =
        |out: &mut Temporary<'_>, stem: &str, options: &Options| file.save_to(out, stem, options);
    // What is damaged was found when the rows were read.
    document(input.name, Format::Arrow, reading, file.texts(), save, || {
        file.about().unwrap_or_default()
    })
}

/// Creates a document of a temporary archive with these notes, to which `save` saves a table. `save` gets the name of the file without
/// extension, as a name of the table, and options that accept losses. What it returns is content that is not read. If
/// a description is wanted, `about` returns it, and rows that cannot be read are told.
fn document(
    input: String,
    format: Format,
    reading: &Reading,
    texts: &[(String, String)],
    save: impl FnOnce(&mut Temporary<'_>, &str, &Options) -> tenarc::Result<Losses>,
    about: impl FnOnce() -> Value,
) -> Result<Document> {
    let stem = Path::new(&input).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let mut losses = Losses::default();
    let read = noted_archive(texts, |out| {
        let options = Options::default().with_losses(true);
        losses = save(out, stem.as_deref().unwrap_or("table"), &options)?;
        Ok(())
    });
    let is_described = reading.wanted == Wanted::Description;
    let archive = match read {
        Err(failure) if is_described => {
            say(&format!("{input}: {NOT_READ}: {failure}"));
            temporary_archive(|_| Ok(()))?
        }
        read => read?,
    };
    let document = Document::of_archive(input, format, archive).with_losses(losses);
    Ok(if is_described { document.with_about(about()) } else { document })
}

/// Writes values to an Arrow file: as record batches if they are a table or its rows, and otherwise as tensors.
///
/// # Errors
/// If a value cannot be read, if the format cannot hold them and `lossy` is off, or if the target cannot be written.
pub fn write_arrow(
    of: Converted,
    values: &mut Values<'_>,
    target: &Target,
    lossy: Lossy,
) -> Result<()> {
    if let Some(rows) = values.as_rows()? {
        return write_arrow(of, &mut Values::of(&rows, None)?, target, lossy);
    }
    match values.segments() {
        Some(segments) if arrow::are_table(&segments)? => write_batches(&segments, target, lossy),
        None if values.are_rows() => {
            // Whether messages are a table is only known from segments, so they are first saved to a temporary archive.
            let held = Document::of_archive(TEMPORARY.into(), Format::Archive, archive_of(values)?);
            write_arrow(of, &mut Values::of(&held, None)?, target, lossy)
        }
        _ => converted::write(of, values, target, lossy),
    }
}

fn write_batches(segments: &[Segment<'_, Source>], target: &Target, lossy: Lossy) -> Result<()> {
    let options = Options::default().with_losses(lossy.0);
    write_file_or_stream(
        target,
        |file, path| arrow::segments_to_file(segments.to_vec(), file, path, &options),
        |writer| Ok(arrow::segments_to_writer(segments.to_vec(), writer, &options)?),
    )
}

/// Writes values as row groups of a Parquet file.
///
/// # Errors
/// If the values are not a table, if the format cannot hold them and `lossy` is off, or if the target cannot be
/// written.
pub fn write_parquet(values: &mut Values<'_>, target: &Target, lossy: Lossy) -> Result<()> {
    if let Some(rows) = values.as_rows()? {
        return write_parquet(&mut Values::of(&rows, None)?, target, lossy);
    }
    let options = Options::default().with_losses(lossy.0);
    let held;
    let segments: Vec<Segment<'_, Source>> = if let Some(segments) = values.segments() {
        segments
    } else {
        held = archive_of(values)?;
        held.segments().collect::<tenarc::Result<_>>()?
    };
    let mut is_table = true;
    let written = write_file_or_stream(
        target,
        |file, path| {
            let written = parquet::segments_to_file(segments.clone(), file, path, &options);
            written.inspect_err(|error| is_table = error.category() != Category::Mismatch)
        },
        |writer| Ok(parquet::segments_to_writer(segments.clone(), writer, &options)?),
    );
    let hint = if is_table { "" } else { "; --table=PATH takes the arrays at a path as columns" };
    written.map_err(|failure| failure.with_hint(hint))
}

/// Returns the values of a file of JSON lines as a table in a temporary archive, which has the name of the file without
/// extension. Returns `None` if they are no such values, or if a table would not keep all of them as they are.
///
/// # Errors
/// If a value cannot be read, or the temporary archive cannot be written.
pub fn of_lines(values: &mut Values<'_>) -> Result<Option<Document>> {
    let Some(stem) = values.lines().map(str::to_owned) else { return Ok(None) };
    let Some(rows) = values.as_rows()? else { return Ok(None) };
    let table = as_columns(&archive_of(&mut Values::of(&rows, None)?)?, &stem)?;
    Ok(table.map(|table| Document::of_archive(TEMPORARY.into(), Format::Archive, table)))
}

/// Returns the values of an archive as a table of columns. Returns `None` if it would not keep all of them as they are.
fn as_columns(held: &Archive<Source>, name: &str) -> Result<Option<Archive<Source>>> {
    let segments = held.segments().collect::<tenarc::Result<_>>()?;
    let mut is_table = false;
    let table = temporary_archive(|out| {
        is_table = arrow::segments_to_archive(segments, out, name)?;
        Ok(())
    })?;
    Ok(is_table.then_some(table))
}

/// Returns a document of the table at a path. It is a sequence, or its columns are the arrays of a map.
///
/// # Errors
/// If there is no such path, or it leads to no table, or if the temporary archive cannot be written.
pub fn of_arrays(document: Document, path: &str) -> Result<Document> {
    if path.is_empty() && document.whole_table()?.is_some() {
        return Ok(document);
    }
    let section = match document.meant(path, None)? {
        Meant::Value(section) => section,
        Meant::Table(_) => {
            let name = quoted(path);
            let what = format!("{name} is a table already: choose it by its name, without --table");
            return Err(Failure::new(what));
        }
    };
    let stem = Path::new(&document.name).file_stem().map(|stem| stem.to_string_lossy());
    let name = path.rsplit('.').next().filter(|name| !name.is_empty());
    let name = name.map_or_else(|| stem.unwrap_or("table".into()), Into::into);
    let held =
        temporary_archive(|out| save_temporary(out, Some(&name), &Written::whole(&section)))?;
    // What else the file holds was not asked for.
    let mut losses =
        if path.is_empty() { document.losses().clone() } else { document.losses().below(path) };
    let table = match ArrayTable::of(&held.segment(0)?) {
        Ok(table) => {
            losses.extend(table.losses().clone());
            temporary_archive(|out| {
                out.save_as(&name, &table)?;
                Ok(())
            })?
        }
        Err(error) if error.category() == Category::Mismatch && held.table(&name).is_ok() => {
            as_columns(&held, &name)?.unwrap_or(held)
        }
        Err(error) if path.is_empty() => return Err(error.into()),
        Err(error) => return Err(Failure::from(error).of(&quoted(path))),
    };
    let document = Document::of_archive(document.name.clone(), document.format, table);
    Ok(document.with_losses(losses))
}

/// Saves values to a temporary archive.
fn archive_of(values: &mut Values<'_>) -> Result<Archive<Source>> {
    temporary_archive(|out| {
        values.each(&mut |value| match value {
            Valued::Whole(section) => save_temporary(out, section.name(), &Written::whole(section)),
            Valued::Changed(name, value) => save_temporary(out, name, &value),
        })
    })
}
