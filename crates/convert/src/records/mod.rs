//! What the formats with tables have in common: they write a table of an archive, and save record batches to one.
//! `tenarc-arrow` converts between both.

mod arrays;
mod compare;

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::Path;

use tenarc::archive::{SaveOptions, Segment};
use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Archive, Error, OArchive, Result};
use tenarc_arrow::{ArrowTable, Import, Rows, TABLE, is_columns};

use crate::honest::Honest;
use crate::support::over_memory;
use crate::{Losses, Options, made};

pub use arrays::ArrayTable;
pub use compare::compare;

/// Returns whether all values are sequences that are stored as columns, and so a table.
///
/// # Errors
/// If the metadata of a value is damaged.
pub fn are_columns<S: ReadAt + ?Sized>(segments: &[Segment<'_, S>]) -> Result<bool> {
    for segment in segments {
        if !is_columns(segment)? {
            return Ok(false);
        }
    }
    Ok(!segments.is_empty())
}

/// Returns the segments of this name. If `name` is `None`, all segments must have the same name, and all are returned.
///
/// # Errors
/// If there is no segment of this name, or the archive is damaged.
pub fn segments<'a, S: ReadAt>(
    archive: &'a Archive<S>,
    name: Option<&str>,
) -> Result<Vec<Segment<'a, S>>> {
    let mut segments: Vec<Segment<'a, S>> = Vec::new();
    for segment in archive.segments() {
        let segment = segment?;
        if name.is_none_or(|name| segment.name() == Some(name)) {
            segments.push(segment);
        }
    }
    match name {
        Some(name) if segments.is_empty() => {
            Err(Error::not_found(format!("expected a table `{}`, found none", name.escape_debug())))
        }
        _ => Ok(segments),
    }
}

/// The table of these segments, and what is left out.
///
/// # Errors
/// If the segments are not one table whose rows are structs, or are damaged.
pub fn table<S: ReadAt + ?Sized>(
    segments: Vec<Segment<'_, S>>,
) -> Result<(ArrowTable<'_, S>, Losses)> {
    let table = ArrowTable::of_segments(segments)?;
    if !table.are_structs() {
        return Err(Error::mismatch("expected rows that are structs, found rows of another type"));
    }
    let losses = losses(&table);
    Ok((table, losses))
}

/// What a table leaves out.
pub fn losses<S: ?Sized>(table: &ArrowTable<'_, S>) -> Losses {
    let mut losses = Losses::default();
    losses.add_report(table.report());
    losses
}

/// Writes a [`table`] to an empty file, which must be open for reading too. `check` reads the file back
/// and compares it; it also gets what `write` returned.
///
/// # Errors
/// - If the segments are damaged.
/// - If something cannot be kept, and the options do not accept losses.
/// - If the file cannot be written, or is not what was written when it is read back.
pub fn to_file<S: ReadAt + ?Sized, T>(
    (table, losses): (ArrowTable<'_, S>, Losses),
    (file, path): (&File, &Path),
    options: &Options,
    write: impl FnOnce(&ArrowTable<'_, S>, &mut (dyn Write + Send)) -> Result<T>,
    check: impl FnOnce(&ArrowTable<'_, S>, &File, T) -> Result<()>,
) -> Result<Losses> {
    losses.check(options.accept_losses, usize::MAX)?;
    let written = made::written(file, path, |out| write(&table, out))?;
    check(&table, file, written).map_err(|error| error.in_file(path))?;
    Ok(losses)
}

/// Writes a [`table`] to any writer.
///
/// # Errors
/// - If the segments are damaged.
/// - If something cannot be kept, and the options do not accept losses.
/// - If the writer fails.
pub fn to_writer<S: ReadAt + ?Sized, W: Write, T>(
    (table, losses): (ArrowTable<'_, S>, Losses),
    writer: W,
    options: &Options,
    write: impl FnOnce(&ArrowTable<'_, S>, &mut Honest<W>) -> Result<T>,
) -> Result<Losses> {
    losses.check(options.accept_losses, usize::MAX)?;
    let mut writer = Honest::new(writer);
    write(&table, &mut writer)?;
    writer.flush().map_err(Error::io)?;
    Ok(losses)
}

/// The most rows of a value that is made of rows that were not stored as columns.
const ROWS: usize = 1 << 16;

/// Saves segments that are one table to an archive as columns: see
/// [`arrow::segments_to_archive`](crate::arrow::segments_to_archive).
pub fn to_archive<S: ReadAt + ?Sized, W: Write>(
    segments: Vec<Segment<'_, S>>,
    out: &mut OArchive<W>,
    name: &str,
) -> Result<bool> {
    // If the segments cannot be read, the caller finds that when it reads them as values.
    let Ok((table, losses)) = table(segments) else { return Ok(false) };
    let import = Import::of(table.schema().fields().iter().map(AsRef::as_ref))?;
    let keeps_all = losses.is_empty() && losses.notes().is_empty() && import.report().is_empty();
    if !keeps_all || table.rows() == 0 {
        return Ok(false);
    }
    let mut reader = table.reader();
    let (mut batches, mut rows) = (Vec::new(), 0);
    loop {
        let next = reader.next_batch()?;
        let is_end = next.is_none();
        if !batches.is_empty() && (is_end || rows >= ROWS) {
            out.save_as(name, &import.rows(&batches, Limits::default())?)?;
            batches.clear();
            rows = 0;
        }
        let Some(batch) = next else { return Ok(true) };
        rows += batch.num_rows();
        batches.push(batch);
    }
}

/// The most bytes of the texts that are kept of a file. The header of each value has them.
const MAX_TEXTS: usize = 32 << 10;

/// Returns the texts of a file that are kept: those that belong to the whole table, such as the description of a data frame
/// of pandas. The others are noted.
pub fn texts<'t>(
    all: impl Iterator<Item = (&'t str, &'t str)>,
    losses: &mut Losses,
) -> Vec<(String, String)> {
    let (mut kept, mut left) = (Vec::new(), MAX_TEXTS);
    for (key, text) in all.filter(|(key, _)| *key != TABLE) {
        let len = key.len().saturating_add(text.len());
        if let Some(rest) = left.checked_sub(len) {
            left = rest;
            kept.push((key.to_owned(), text.to_owned()));
        } else {
            let key: String = key.chars().take(64).collect();
            losses.note(format!(
                "the metadata `{}` of the file are left out: with others, they have more than {MAX_TEXTS} bytes",
                key.escape_debug()
            ));
        }
    }
    kept
}

/// What is lost of a table without rows.
const NO_ROWS: &str = "there are no rows, so the names and types of the columns are left out";

/// Rows of a file that are read group by group, and what is not read of them.
pub struct Groups<'f, I> {
    pub groups: I,
    /// The name of the table in the file.
    pub name: Option<&'f str>,
    /// The texts that belong to the whole table. They become notes of an archive that is made for it.
    pub texts: &'f [(String, String)],
    /// The number of columns that are kept.
    pub columns: usize,
    pub losses: &'f Losses,
}

impl<I: Iterator<Item = Result<Rows>>> Groups<'_, I> {
    /// Saves the rows to an archive, with a value for each group and at least one value. The name of the values is that
    /// of the options, or else that of the table in the file, or else `stem`.
    ///
    /// # Errors
    /// - If no column is left.
    /// - If something cannot be kept, and the options do not accept losses. Some values are saved nevertheless.
    /// - If rows cannot be read, or the archive cannot be written.
    pub fn save<W: Write>(
        self,
        out: &mut OArchive<W>,
        stem: &str,
        options: &Options,
    ) -> Result<Saved> {
        let mut losses = self.losses.clone();
        losses.check(options.accept_losses, self.columns)?;
        if self.columns == 0 {
            let why =
                if losses.is_empty() { "the file has none".into() } else { losses.to_string() };
            return Err(Error::unsupported(format!("no column is left: {why}")));
        }
        let name = options.table.as_deref().or(self.name).unwrap_or(stem);
        let mut rows = 0;
        let mut is_empty = true;
        for group in self.groups {
            let group = group?;
            losses.add_new(group.report());
            losses.check(options.accept_losses, self.columns)?;
            rows += group.len() as u64;
            out.save_as(name, &group).map_err(|error| {
                if group.exceeds_limit() { over_memory(error.message()) } else { error }
            })?;
            is_empty = false;
        }
        if is_empty {
            out.save_as::<[(); 0]>(name, &[])?;
        }
        if rows == 0 {
            losses.add("", NO_ROWS);
            losses.check(options.accept_losses, self.columns)?;
        }
        Ok(Saved { losses, name: name.to_owned(), rows })
    }

    /// Writes the rows to an archive: see [`save`](Self::save). The archive is read back and verified before it appears
    /// under its name.
    ///
    /// # Errors
    /// The errors of [`save`](Self::save).
    pub fn into_archive(self, (from, to): (&Path, &Path), options: &Options) -> Result<Losses> {
        let stem = from.file_stem().map_or("table".into(), |stem| stem.to_string_lossy());
        let of_source = |error: Error| error.in_file(from);
        let saved = RefCell::new(None);
        let with_text =
            |save: SaveOptions, (key, text): &(String, String)| save.with_note(key, text);
        made::archive(
            to,
            self.texts.iter().fold(options.save.clone(), with_text),
            |out| {
                let done = self.save(out, &stem, options).map_err(of_source)?;
                saved.replace(Some(done));
                Ok(())
            },
            |archive| {
                let saved = saved.borrow();
                let (name, rows) =
                    saved.as_ref().map_or(("", 0), |saved| (&*saved.name, saved.rows));
                match archive.table(name)?.len() {
                    found if found == rows => Ok(()),
                    found => Err(Error::damaged(format!("wrote {rows} rows, read back {found}"))),
                }
            },
        )?;
        Ok(saved.into_inner().map_or_else(Losses::default, |saved| saved.losses))
    }
}

/// A table that was saved to an archive.
pub struct Saved {
    pub losses: Losses,
    name: String,
    rows: u64,
}
