//! A table of an archive as record batches.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use tenarc::archive::{Segment, Table};
use tenarc::io::ReadAt;
use tenarc::{Archive, Error, Result, Value};

use crate::arrays::Arrays;
use crate::columns::{self, Group};
use crate::report::Report;
use crate::schema::{Inner, Type};
use crate::values;

/// The key of a schema's metadata that holds the name of its table.
pub const TABLE: &str = "tenarc.table";

/// The name of the column, if the rows of a table are no structs.
const VALUE: &str = "value";

/// The number of rows of a batch, if rows are not stored as columns.
const ROWS: u64 = 256;

/// The values that were saved under one name, as a table of Arrow: `SPEC.md`, section 7.3.
///
/// Only the metadata are read to make one. Its [`reader`](Self::reader) reads columns, a group of rows at a time.
pub struct ArrowTable<'a, S: ?Sized> {
    segments: Vec<Segment<'a, S>>,
    fields: Vec<(String, Inner)>,
    are_structs: bool,
    schema: SchemaRef,
    name: Option<String>,
    rows: u64,
    report: Report,
}

impl<S: ?Sized> fmt::Debug for ArrowTable<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, rows, report, .. } = self;
        f.debug_struct("ArrowTable")
            .field("schema", schema)
            .field("rows", rows)
            .field("report", report)
            .finish_non_exhaustive()
    }
}

/// Whether a value is a sequence that is stored as columns.
///
/// # Errors
/// If the metadata of the value are damaged.
pub fn is_columns<S: ReadAt + ?Sized>(segment: &Segment<'_, S>) -> Result<bool> {
    columns::are(segment)
}

impl<'a, S: ReadAt> ArrowTable<'a, S> {
    /// The table of this name.
    ///
    /// # Errors
    /// If there is no value of this name, and the errors of [`of_segments`](ArrowTable::of_segments).
    pub fn open(archive: &'a Archive<S>, name: &str) -> Result<Self> {
        let mut segments = Vec::new();
        for segment in archive.segments() {
            let segment = segment?;
            if segment.name() == Some(name) {
                segments.push(segment);
            }
        }
        if segments.is_empty() {
            return Err(Error::data(format!("there is no table `{}`", name.escape_debug())));
        }
        Self::of_segments(segments)
    }
}

impl<'a, S: ReadAt + ?Sized> ArrowTable<'a, S> {
    /// The table of these values, which must have one name.
    ///
    /// # Errors
    /// If there are no values, or they have different names. If one is no sequence, no column can be kept, or the archive
    /// is damaged.
    pub fn of_segments(segments: Vec<Segment<'a, S>>) -> Result<Self> {
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
        let mut report = Report::default();
        let (are_structs, mut fields) = match record {
            None => (true, Vec::new()),
            Some(Inner { of: Type::Struct(fields), nullable: false, .. }) => (true, fields),
            Some(other) => (false, vec![(VALUE.to_owned(), other)]),
        };
        fields.retain_mut(|(name, inner)| inner.keep(name, &mut report));
        if fields.is_empty() {
            let why = if report.is_empty() {
                "no row has a field".to_owned()
            } else {
                report.to_string()
            };
            return Err(Error::data(format!("no column is left: {why}")));
        }
        let schema = schema_of(&fields, name.as_deref())?;
        Ok(Self { segments, fields, are_structs, schema, name, rows, report })
    }

    /// The table with these columns alone, in this order. A column is a field of the rows. The others are not read.
    ///
    /// # Errors
    /// If there is no such column, or it cannot be kept.
    pub fn with_columns(mut self, names: &[&str]) -> Result<Self> {
        let mut fields = Vec::new();
        for &wanted in names {
            let Some(found) = self.fields.iter().find(|(name, _)| name == wanted) else {
                let lost = self.report.lost().iter().find(|(path, _)| path == wanted);
                let what = match lost {
                    Some((_, why)) => format!("the column cannot be kept: {why}"),
                    None => "there is no such column".to_owned(),
                };
                return Err(Error::data(what).in_field(wanted));
            };
            fields.push(found.clone());
        }
        self.report.retain(|path| {
            names.iter().any(|name| {
                path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        });
        self.schema = schema_of(&fields, self.name.as_deref())?;
        self.fields = fields;
        Ok(self)
    }

    /// Reads all rows. A group of rows, which has at most 65,536, is one batch.
    pub fn reader(&self) -> TableReader<'_, 'a, S> {
        TableReader::new(self, self.segments.iter().collect())
    }

    /// Reads the rows of one value of the table.
    pub fn segment_reader(&self, segment: usize) -> TableReader<'_, 'a, S> {
        TableReader::new(self, self.segments.get(segment).into_iter().collect())
    }
}

impl<S: ?Sized> ArrowTable<'_, S> {
    /// The columns, which are the fields of the rows. If the rows are no structs, there is one column, `value`. The
    /// metadata have the name of the table under [`TABLE`].
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Whether the rows are structs.
    pub fn are_structs(&self) -> bool {
        self.are_structs
    }

    /// The name of the values.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of values that make the table.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// What is left out.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

fn schema_of(fields: &[(String, Inner)], name: Option<&str>) -> Result<SchemaRef> {
    let columns = fields.iter().map(|(name, inner)| inner.field(name));
    let schema = Schema::new(columns.collect::<Result<Vec<_>>>()?);
    let texts = name.map(|name| (TABLE.to_owned(), name.to_owned()));
    Ok(Arc::new(schema.with_metadata(texts.into_iter().collect::<HashMap<_, _>>())))
}

/// Returns the number of rows of a segment and their type, which is `None` if there are no rows.
fn outline<S: ReadAt + ?Sized>(segment: &Segment<'_, S>) -> Result<(u64, Option<Inner>)> {
    let Some(groups) = columns::groups(segment)? else {
        let (table, mut at) = (segment.table("")?, 0);
        let mut found = None::<Inner>;
        while let Some(values) = plain_rows(&table, &mut at)? {
            let types = found.take().into_iter().chain(values.iter().map(values::type_of));
            found = types.reduce(Inner::merged);
        }
        return Ok((table.len(), found));
    };
    let groups = groups.iter().filter(|group| group.rows > 0);
    let rows = groups.clone().map(|group| group.rows as u64).sum();
    let types = groups.map(|group| Inner::of(&group.column));
    Ok((rows, types.reduce(Inner::merged)))
}

/// The next rows of a segment that are not stored as columns, at most [`ROWS`]. `None` at the end.
fn plain_rows<S: ReadAt + ?Sized>(
    table: &Table<'_, S>,
    at: &mut u64,
) -> Result<Option<Vec<Value>>> {
    let end = table.len().min(at.saturating_add(ROWS));
    if *at >= end {
        return Ok(None);
    }
    let rows = table.rows::<Value>(*at..end)?;
    *at = end;
    Ok(Some(rows.into_iter().map(values::plain).collect()))
}

/// Reads a table as record batches. One batch at a time is in memory.
pub struct TableReader<'t, 'a, S: ?Sized> {
    table: &'t ArrowTable<'a, S>,
    segments: VecDeque<&'t Segment<'a, S>>,
    /// The segment that is being read.
    open: Option<(&'t Segment<'a, S>, Open<'a, S>)>,
}

/// What is left of a segment.
enum Open<'a, S: ?Sized> {
    Groups(VecDeque<Group>),
    /// Rows that are not stored as columns, and the number of the next one.
    Rows(Table<'a, S>, u64),
}

impl<S: ?Sized> fmt::Debug for TableReader<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.segments.len();
        f.debug_struct("TableReader").field("segments_left", &left).finish_non_exhaustive()
    }
}

impl<'t, 'a, S: ReadAt + ?Sized> TableReader<'t, 'a, S> {
    fn new(table: &'t ArrowTable<'a, S>, segments: VecDeque<&'t Segment<'a, S>>) -> Self {
        Self { table, segments, open: None }
    }

    /// The next batch, with an error of tenarc. After an error, there are no more batches.
    ///
    /// # Errors
    /// If the columns cannot be read or are damaged.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.read();
        if next.is_err() {
            self.segments.clear();
            self.open = None;
        }
        next
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        let ArrowTable { fields, are_structs, schema, .. } = self.table;
        loop {
            let Some((segment, open)) = &mut self.open else {
                let Some(segment) = self.segments.pop_front() else { return Ok(None) };
                let open = match columns::groups(segment)? {
                    Some(groups) => Open::Groups(groups.into()),
                    None => Open::Rows(segment.table("")?, 0),
                };
                self.open = Some((segment, open));
                continue;
            };
            let arrays = match open {
                Open::Groups(groups) => match groups.pop_front() {
                    Some(group) if group.rows == 0 => continue,
                    Some(group) if *are_structs => Arrays(segment).fields(&group, fields)?,
                    Some(group) => Arrays(segment).rows(&group, fields)?,
                    None => {
                        self.open = None;
                        continue;
                    }
                },
                Open::Rows(rows, at) => match plain_rows(rows, at)? {
                    Some(rows) if *are_structs => values::fields(&rows, fields)?,
                    Some(rows) => values::rows(&rows, fields)?,
                    None => {
                        self.open = None;
                        continue;
                    }
                },
            };
            let batch = RecordBatch::try_new(schema.clone(), arrays);
            return batch.map(Some).map_err(|error| Error::damaged(error.to_string()));
        }
    }
}

impl<S: ReadAt + ?Sized> Iterator for TableReader<'_, '_, S> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(|error| ArrowError::ExternalError(Box::new(error))).transpose()
    }
}

impl<S: ReadAt + ?Sized> RecordBatchReader for TableReader<'_, '_, S> {
    fn schema(&self) -> SchemaRef {
        self.table.schema.clone()
    }
}
