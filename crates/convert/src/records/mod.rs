//! Converts sequences of records, which archives store as columns, to record batches of Arrow and back.
//!
//! | module | does |
//! |---|---|
//! | `columns` | finds the columns of a segment in its metadata |
//! | `schema` | chooses a type of Arrow for each column of a table |
//! | `arrays` | reads columns as arrays of Arrow |
//! | `values` | chooses types and makes arrays for rows that are not stored as columns |
//! | `plan` | decides what arrays of Arrow become in an archive |
//! | `cells`, `rows` | serialize arrays row by row, so that an archive can save them |
//! | `compare` | compares a table with what was read back from its file |
//! | `names` | keeps names of fields for the life of the process |

mod arrays;
mod cells;
mod columns;
mod compare;
mod names;
mod plan;
mod rows;
mod schema;
mod values;

use std::cell::RefCell;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use tenarc::archive::Segment;
use tenarc::io::ReadAt;
use tenarc::{Archive, Error, OArchive, Result, Value};

use crate::honest::Honest;
use crate::support::unsupported;
use crate::{Losses, Options, made};
use schema::{Inner, Type};

pub use compare::compare;
pub use plan::Plan;
pub use rows::Rows;

/// The key of a file's metadata that holds the name of its table.
pub const TABLE: &str = "tenarc.table";

/// The number of rows of a batch, if rows are not stored as columns.
const ROWS: u64 = 256;

/// A table: the sequences of records of all segments with the same name.
pub struct Records<'a, S: ?Sized> {
    segments: Vec<Segment<'a, S>>,
    fields: Vec<(String, Inner)>,
    pub schema: SchemaRef,
    pub name: Option<String>,
    pub rows: u64,
    pub losses: Losses,
}

/// Returns whether all values are sequences that are stored as columns, and so a table.
///
/// # Errors
/// If the metadata of a value is damaged.
pub fn are_columns<S: ReadAt + ?Sized>(segments: &[Segment<'_, S>]) -> Result<bool> {
    for segment in segments {
        if !columns::are(segment)? {
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
            Err(Error::data(format!("expected a table `{}`, found none", name.escape_debug())))
        }
        _ => Ok(segments),
    }
}

/// Writes segments that are one table to an empty file, which must be open for reading too. `check` reads the file back
/// and compares it; it also gets what `write` returned.
///
/// # Errors
/// - If the segments are not a table, or are damaged.
/// - If something cannot be kept, and the options do not accept losses.
/// - If the file cannot be written, or is not what was written when it is read back.
pub fn to_file<S: ReadAt + ?Sized, T>(
    segments: Vec<Segment<'_, S>>,
    (file, path): (&File, &Path),
    options: &Options,
    write: impl FnOnce(&Records<'_, S>, &mut (dyn Write + Send)) -> Result<T>,
    check: impl FnOnce(&Records<'_, S>, &File, T) -> Result<()>,
) -> Result<Losses> {
    let records = Records::of(segments)?;
    records.losses.check(options.accept_losses, usize::MAX)?;
    let written = made::written(file, path, |out| write(&records, out))?;
    check(&records, file, written).map_err(|error| error.in_file(path))?;
    Ok(records.losses)
}

/// Writes segments that are one table to any writer.
///
/// # Errors
/// - If the segments are not a table, or are damaged.
/// - If something cannot be kept, and the options do not accept losses.
/// - If the writer fails.
pub fn to_writer<S: ReadAt + ?Sized, W: Write, T>(
    segments: Vec<Segment<'_, S>>,
    writer: W,
    options: &Options,
    write: impl FnOnce(&Records<'_, S>, &mut Honest<W>) -> Result<T>,
) -> Result<Losses> {
    let records = Records::of(segments)?;
    records.losses.check(options.accept_losses, usize::MAX)?;
    let mut writer = Honest::new(writer);
    write(&records, &mut writer)?;
    writer.flush().map_err(Error::io)?;
    Ok(records.losses)
}

/// Rows of a file that are read group by group, and what is not read of them.
pub struct Groups<'f, I> {
    pub groups: I,
    /// The name of the table in the file.
    pub name: Option<&'f str>,
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
            return Err(unsupported(format!("no column is left: {why}")));
        }
        let name = options.table.as_deref().or(self.name).unwrap_or(stem);
        let mut rows = 0;
        let mut is_empty = true;
        for group in self.groups {
            let group = group?;
            rows += group.len() as u64;
            out.save_as(name, &group).map_err(|error| {
                if group.exceeds_limit() { Error::limit(error.message()) } else { error }
            })?;
            is_empty = false;
        }
        if is_empty {
            out.save_as::<[(); 0]>(name, &[])?;
        }
        if rows == 0 {
            losses.add("", "there are no rows, so the names and types of the columns are left out");
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
        made::archive(
            to,
            options.save.clone(),
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

impl<'a, S: ReadAt + ?Sized> Records<'a, S> {
    /// Reads the metadata of the segments, which must have the same name, and chooses the schema of their table.
    ///
    /// # Errors
    /// If there are no segments, a segment is not a sequence of structs, no column can be kept, or the archive is
    /// damaged.
    pub fn of(segments: Vec<Segment<'a, S>>) -> Result<Self> {
        let Some(first) = segments.first() else {
            return Err(Error::data("expected a table, but there are no values"));
        };
        if let Some(other) = segments.iter().find(|other| other.name() != first.name()) {
            let shown = |name: Option<&str>| match name {
                Some(name) => format!("`{}`", name.escape_debug()),
                None => "a value without a name".to_owned(),
            };
            let (first, other) = (shown(first.name()), shown(other.name()));
            let what =
                format!("expected one table, found several: {first} and {other}; choose one");
            return Err(Error::data(what));
        }
        let name = first.name().map(str::to_owned);
        let mut rows = 0u64;
        let mut record: Option<Inner> = None;
        for segment in &segments {
            let (count, found) = outline(segment)?;
            rows = rows.saturating_add(count);
            record = match (record, found) {
                (Some(record), Some(found)) => Some(record.merged(found)),
                (record, found) => record.or(found),
            };
        }
        let mut losses = Losses::default();
        let mut fields = match record {
            None => Vec::new(),
            Some(Inner { of: Type::Struct(fields), nullable: false, .. }) => fields,
            Some(_) => {
                let what = "expected rows that are structs, found rows of another type";
                return Err(Error::data(what));
            }
        };
        fields.retain_mut(|(name, inner)| inner.keep(name, &mut losses));
        if fields.is_empty() {
            let why = if losses.is_empty() {
                "no row has a field".to_owned()
            } else {
                losses.to_string()
            };
            return Err(Error::data(format!("no column is left: {why}")));
        }
        let columns = fields.iter().map(|(name, inner)| inner.field(name));
        let schema = Schema::new(columns.collect::<Result<Vec<_>>>()?);
        Ok(Self { segments, fields, schema: Arc::new(schema), name, rows, losses })
    }

    /// Returns the number of segments. Each can be written as a row group.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// Passes the rows of a segment to `each` in batches. One batch at a time is in memory.
    pub fn batches(
        &self,
        segment: usize,
        mut each: impl FnMut(RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let Some(segment) = self.segments.get(segment) else { return Ok(()) };
        let batch = |arrays| {
            RecordBatch::try_new(self.schema.clone(), arrays)
                .map_err(|error| Error::damaged(error.to_string()))
        };
        let Some(groups) = columns::groups(segment)? else {
            return in_rows(segment, |rows| each(batch(values::fields(rows, &self.fields)?)?));
        };
        let arrays = arrays::Arrays(segment);
        for group in groups.iter().filter(|group| group.rows > 0) {
            each(batch(arrays.fields(group, &self.fields)?)?)?;
        }
        Ok(())
    }
}

/// Returns the number of rows of a segment and their type, which is `None` if there are no rows.
fn outline<S: ReadAt + ?Sized>(segment: &Segment<'_, S>) -> Result<(u64, Option<Inner>)> {
    let Some(groups) = columns::groups(segment)? else {
        let (mut count, mut found) = (0u64, None::<Inner>);
        in_rows(segment, |rows| {
            count += rows.len() as u64;
            let types = found.take().into_iter().chain(rows.iter().map(values::type_of));
            found = types.reduce(Inner::merged);
            Ok(())
        })?;
        return Ok((count, found));
    };
    let groups = groups.iter().filter(|group| group.rows > 0);
    let rows = groups.clone().map(|group| group.rows as u64).sum();
    let types = groups.map(|group| Inner::of(&group.column));
    Ok((rows, types.reduce(Inner::merged)))
}

/// Passes rows that are not stored as columns to `each`, at most [`ROWS`] at a time.
fn in_rows<S: ReadAt + ?Sized>(
    segment: &Segment<'_, S>,
    mut each: impl FnMut(&[Value]) -> Result<()>,
) -> Result<()> {
    let table = segment.table("")?;
    let mut at = 0;
    while at < table.len() {
        let end = table.len().min(at + ROWS);
        let rows = table.rows::<Value>(at..end)?;
        each(&rows.into_iter().map(values::plain).collect::<Vec<_>>())?;
        at = end;
    }
    Ok(())
}
