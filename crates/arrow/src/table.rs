//! A table of an archive as record batches.

use std::cell::Cell;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions, RecordBatchReader, UInt64Array};
use arrow_schema::{ArrowError, FieldRef, Schema, SchemaRef};
use tenarc::archive::{Filter, Filtered, Segment, Table};
use tenarc::io::ReadAt;
use tenarc::{Archive, Error, Result, Value};

use crate::arrays::Arrays;
use crate::columns::{self, Column, Group};
use crate::report::Report;
use crate::schema::{Inner, Type};
use crate::times::Parsed;
use crate::values;

/// The key of a schema's metadata that holds the name of its table.
pub const TABLE: &str = "tenarc.table";

/// The name of the column, if the rows of a table are no structs.
const VALUE: &str = "value";

/// The number of rows of a batch, if rows are not stored as columns.
const ROWS: usize = 256;

/// The values that were saved under one name, as a table of Arrow: `SPEC.md`, section 7.3.
///
/// Only the metadata are read to make one. Its [`reader`](Self::reader) reads columns, a group of rows at a time.
pub struct ArrowTable<'a, S: ?Sized> {
    segments: Vec<Segment<'a, S>>,
    types: Types,
    fields: Vec<(String, Inner)>,
    are_structs: bool,
    schema: SchemaRef,
    name: Option<String>,
    /// The metadata of the schema.
    texts: HashMap<String, String>,
    /// The number of the row after each segment.
    ends: Vec<u64>,
    /// The number of the row after each group.
    groups: Vec<u64>,
    rows: Range<u64>,
    filter: Option<(Table<'a, S>, Filter)>,
    /// The columns of texts that become times or dates.
    parsed: HashMap<String, Parsed>,
    report: Report,
}

impl<S: ?Sized> fmt::Debug for ArrowTable<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schema, rows, filter, report, .. } = self;
        f.debug_struct("ArrowTable")
            .field("schema", schema)
            .field("rows", rows)
            .field("filter", &filter.as_ref().map(|(_, filter)| filter))
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
            return Err(Error::not_found(format!("there is no table `{}`", name.escape_debug())));
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
            return Err(Error::not_found("expected a table, but there are no values"));
        };
        if let Some(other) = segments.iter().find(|other| other.name() != first.name()) {
            let shown = |name: Option<&str>| match name {
                Some(name) => format!("`{}`", name.escape_debug()),
                None => "a value without a name".to_owned(),
            };
            let (first, other) = (shown(first.name()), shown(other.name()));
            let what =
                format!("expected one table, found several: {first} and {other}; choose one");
            return Err(Error::not_found(what));
        }
        let name = first.name().map(str::to_owned);
        let texts = texts_of(&segments);
        let mut rows = 0u64;
        let (mut ends, mut groups) = (Vec::new(), Vec::new());
        let mut types = Types(None);
        for segment in &segments {
            let (counts, found) = outline(segment)?;
            for count in counts {
                rows = rows.saturating_add(count);
                groups.push(rows);
            }
            ends.push(rows);
            types = types.merged(&Types(found));
        }
        let Columns { are_structs, fields, report } = types.columns()?;
        let parsed = HashMap::new();
        let schema = schema_of(&fields, &parsed, &texts)?;
        let (rows, filter) = (0..rows, None);
        Ok(Self {
            segments,
            types,
            fields,
            are_structs,
            schema,
            name,
            texts,
            ends,
            groups,
            rows,
            filter,
            parsed,
            report,
        })
    }

    /// The table with the columns of these types, which must be those of this table [merged](Types::merged) with those of
    /// others. Chosen columns are forgotten, and which of them have [times](ArrowTable::with_times) or dates.
    ///
    /// # Errors
    /// If no column can be kept.
    pub fn with_types(mut self, types: &Types) -> Result<Self> {
        let Columns { are_structs, fields, report } = types.columns()?;
        self.parsed.clear();
        self.schema = schema_of(&fields, &self.parsed, &self.texts)?;
        self.types = types.clone();
        (self.are_structs, self.fields, self.report) = (are_structs, fields, report);
        Ok(self)
    }

    /// The table with these columns alone, in this order. A column is a field of the rows. The others are not read. Without
    /// columns, batches have only a number of rows.
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
                return Err(Error::not_found(what).in_field(wanted));
            };
            fields.push(found.clone());
        }
        self.report.retain(|path| {
            names.iter().any(|name| {
                path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        });
        self.schema = schema_of(&fields, &self.parsed, &self.texts)?;
        self.fields = fields;
        Ok(self)
    }

    /// The table with timestamps in place of the texts in these columns: nanoseconds in UTC. `DateTime` of chrono and
    /// `Timestamp` of jiff serialize such texts, in the form of RFC 3339.
    ///
    /// A text that is no date and time with an offset is an error of the reader, which names the row. So is a time
    /// before 1677 or after 2262, one with more than nine digits of a second, and a leap second. A
    /// [condition](Self::with_filter) is still about the texts.
    ///
    /// ```
    /// # #[derive(serde::Serialize)]
    /// # struct Row { at: &'static str, day: &'static str }
    /// # let rows = [Row { at: "2026-11-28T12:00:00.5+01:00", day: "2026-11-28" }];
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("visits", &rows)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    /// use arrow_array::cast::AsArray;
    /// use arrow_array::types::{Date32Type, TimestampNanosecondType};
    /// use tenarc_arrow::ArrowTable;
    ///
    /// let visits = ArrowTable::open(&archive, "visits")?.with_times(&["at"])?.with_dates(&["day"])?;
    /// let batch = visits.reader().next_batch()?.unwrap();
    /// let at = batch.column(0).as_primitive::<TimestampNanosecondType>();
    /// assert_eq!(at.value(0), 1_795_863_600_500_000_000);
    /// assert_eq!(batch.column(1).as_primitive::<Date32Type>().value(0), 20_785);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such column, or it has no texts.
    pub fn with_times(self, columns: &[&str]) -> Result<Self> {
        self.parsed(columns, Parsed::Times)
    }

    /// The table with dates in place of the texts in these columns, such as `2026-11-28`. A text that is no date is an
    /// error of the reader, which names the row.
    ///
    /// # Errors
    /// If there is no such column, or it has no texts.
    pub fn with_dates(self, columns: &[&str]) -> Result<Self> {
        self.parsed(columns, Parsed::Dates)
    }

    fn parsed(mut self, columns: &[&str], parsed: Parsed) -> Result<Self> {
        for &wanted in columns {
            let field = self.fields.iter_mut().find(|(name, _)| name == wanted);
            let Some((_, inner)) = field else {
                return Err(Error::not_found("there is no such column").in_field(wanted));
            };
            match inner.of {
                Type::Text | Type::Category(_) => inner.of = Type::Text,
                _ => {
                    let found = inner.data_type()?;
                    let what = format!("expected a column of texts, found one of {found}");
                    return Err(Error::mismatch(what).in_field(wanted));
                }
            }
            self.parsed.insert(wanted.to_owned(), parsed);
        }
        self.schema = schema_of(&self.fields, &self.parsed, &self.texts)?;
        Ok(self)
    }

    /// The table with these rows alone, which are counted through the whole table. Groups without these rows are not read.
    ///
    /// A group is read as a whole, so ranges that are read beside each other should start where a [group](Self::groups) starts.
    ///
    /// # Errors
    /// If the range exceeds the rows.
    pub fn with_rows(mut self, rows: Range<u64>) -> Result<Self> {
        if rows.start < self.rows.start || rows.end > self.rows.end {
            let (all, wanted) = (&self.rows, rows);
            let what = format!("there are no rows {wanted:?}: the table has the rows {all:?}");
            return Err(Error::not_found(what));
        }
        self.rows = rows;
        Ok(self)
    }

    /// The table with those rows alone that meet a condition. The condition can be about columns that are not
    /// [wanted](Self::with_columns).
    ///
    /// The columns of the condition are read first, a group at a time. The wanted columns are read of groups with rows that
    /// meet it. If there was a condition before, both must be met.
    ///
    /// ```
    /// # #[derive(serde::Serialize)]
    /// # struct Row { id: u32, size: u32 }
    /// # let rows: Vec<_> = (0..100).map(|id| Row { id, size: id * 2 }).collect();
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("files", &rows)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    /// use tenarc::archive::col;
    /// use tenarc_arrow::ArrowTable;
    ///
    /// let files = ArrowTable::open(&archive, "files")?;
    /// let large = files.with_columns(&["id"])?.with_filter(col("size").gt(190))?;
    /// let batch = large.reader().next_batch()?.unwrap();
    /// assert_eq!((batch.num_columns(), batch.num_rows()), (1, 4));
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the metadata are damaged. A condition about a column that does not exist, or has values of another kind, is an
    /// error of the reader.
    pub fn with_filter(mut self, filter: Filter) -> Result<Self> {
        self.filter = Some(match self.filter.take() {
            Some((table, other)) => (table, other.and(filter)),
            None => (Table::of_segments(self.segments.iter().cloned())?, filter),
        });
        Ok(self)
    }

    /// The ranges of rows that can meet the [condition](Self::with_filter), as far as the statistics of the values say:
    /// [`Filtered::candidates`](tenarc::archive::Filtered::candidates). Without a condition, these are all rows. No rows are read.
    ///
    /// # Errors
    /// If a column of the condition does not exist, or the metadata are damaged.
    pub fn candidates(&self) -> Result<Vec<Range<u64>>> {
        match &self.filter {
            Some((table, filter)) => table.filter(filter.clone()).candidates(),
            None => {
                let rows = self.groups.last().copied().unwrap_or_default();
                Ok(Vec::from_iter((rows > 0).then_some(0..rows)))
            }
        }
    }

    /// Whether a value of the table has statistics, so that not all rows may be [candidates](Self::candidates).
    pub fn has_statistics(&self) -> bool {
        self.segments.iter().any(Segment::has_statistics)
    }

    /// Reads the rows. A group of rows, which has at most 65,536, is one batch.
    ///
    /// Arrays of a [`Map`](tenarc::Map), of [`SharedBytes`](tenarc::io::SharedBytes) and of any other source that implements
    /// [`ReadAt::share`] use the memory of the archive, if their values are stored as Arrow has them:
    ///
    /// - numbers, tensors, and numbers of a named type, such as timestamps,
    /// - the bits of bools,
    /// - the bytes of texts, of byte strings and of UUIDs. The offsets are made of their lengths.
    ///
    /// The same is true of such columns in structs, tuples and lists. Other columns are copied, as all are from files: those that are
    /// compressed, have nulls, are converted to a wider type, or have few distinct rows (`dict`). So are blocks of less than 2,048
    /// bytes, which are in the metadata, and numbers that are not aligned in memory. A batch keeps the memory of the archive, also
    /// after the archive is dropped.
    ///
    /// Checksums are verified when a batch is read, before its arrays are made. With
    /// [`DecodeOptions::with_checksums`](tenarc::de::DecodeOptions::with_checksums)`(false)`, numbers in shared memory
    /// are not looked at: of a mapped file, the pages are read when the values are used.
    pub fn reader(&self) -> TableReader<'_, 'a, S> {
        TableReader::new(self, 0..self.segments.len())
    }

    /// Reads the rows of one value of the table.
    pub fn segment_reader(&self, segment: usize) -> TableReader<'_, 'a, S> {
        TableReader::new(self, segment..segment.saturating_add(1).min(self.segments.len()))
    }
}

impl<S: ?Sized> ArrowTable<'_, S> {
    /// The columns, which are the fields of the rows. If the rows are no structs, there is one column, `value`. The
    /// metadata have the name of the table under [`TABLE`], and the [notes](Segment::notes) of its values.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The types of all columns.
    pub fn types(&self) -> &Types {
        &self.types
    }

    /// Whether the rows are structs.
    pub fn are_structs(&self) -> bool {
        self.are_structs
    }

    /// The name of the values.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The number of rows, also of those that do not meet a [condition](Self::with_filter).
    pub fn rows(&self) -> u64 {
        self.rows.end.saturating_sub(self.rows.start)
    }

    /// For each group of the whole table, the number of the row after it. Rows of a value that is not stored as columns are
    /// one group.
    pub fn groups(&self) -> &[u64] {
        &self.groups
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

/// The types of the columns of a table: [`ArrowTable::types`].
///
/// Tables of several files can be read as one. Integers and floats can have several widths in them, enums several
/// variants, and a column can be nullable in some only:
///
/// ```
/// # #[derive(serde::Serialize)]
/// # struct Row<T> { size: T }
/// # fn saved<T: serde::Serialize>(size: T) -> tenarc::Result<tenarc::Archive<Vec<u8>>> {
/// #     let mut out = tenarc::OArchive::new(Vec::new())?;
/// #     out.save_as("files", &vec![Row { size }])?;
/// #     tenarc::Archive::new(out.finish()?)
/// # }
/// # let (first, second) = (saved(1u8)?, saved(1000u16)?);
/// use arrow_schema::DataType;
/// use tenarc_arrow::ArrowTable;
///
/// let first = ArrowTable::open(&first, "files")?;
/// let second = ArrowTable::open(&second, "files")?;
/// let both = first.types().clone().merged(second.types());
/// let (first, second) = (first.with_types(&both)?, second.with_types(&both)?);
/// assert_eq!(first.schema(), second.schema());
/// assert_eq!(first.schema().field(0).data_type(), &DataType::UInt16);
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Types(Option<Inner>);

/// The columns that record batches have.
struct Columns {
    are_structs: bool,
    fields: Vec<(String, Inner)>,
    report: Report,
}

impl Types {
    /// The types that can hold the rows of both tables.
    #[must_use]
    pub fn merged(self, other: &Self) -> Self {
        Self(match (self.0, other.0.clone()) {
            (Some(one), Some(other)) => Some(one.merged(other)),
            (one, other) => one.or(other),
        })
    }

    /// The same types, as a Parquet file can keep them: categories have no order, seconds become milliseconds, and `Date64`
    /// becomes `Date32`. A table [with them](ArrowTable::with_types) reports each order that is left out as a loss, and
    /// notes each change.
    #[must_use]
    pub fn for_parquet(mut self) -> Self {
        if let Some(inner) = &mut self.0 {
            inner.change_for_parquet();
        }
        self
    }

    fn columns(&self) -> Result<Columns> {
        let mut report = Report::default();
        let (are_structs, mut fields) = match self.0.clone() {
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
        Ok(Columns { are_structs, fields, report })
    }
}

fn schema_of(
    fields: &[(String, Inner)],
    parsed: &HashMap<String, Parsed>,
    texts: &HashMap<String, String>,
) -> Result<SchemaRef> {
    let column = |(name, inner): &(String, Inner)| {
        let field = inner.field(name)?;
        Ok(match parsed.get(name) {
            Some(parsed) => field.as_ref().clone().with_data_type(parsed.data_type()).into(),
            None => field,
        })
    };
    let columns = fields.iter().map(column);
    let schema = Schema::new(columns.collect::<Result<Vec<FieldRef>>>()?);
    Ok(Arc::new(schema.with_metadata(texts.clone())))
}

/// Returns the name of the table under [`TABLE`], and the notes of its values. A note of which values have different texts
/// says nothing about the table.
fn texts_of<S: ReadAt + ?Sized>(segments: &[Segment<'_, S>]) -> HashMap<String, String> {
    let mut texts = HashMap::new();
    let mut differ = HashSet::new();
    for (key, text) in segments.iter().flat_map(Segment::notes) {
        match texts.entry(key) {
            Entry::Vacant(entry) => drop(entry.insert(text)),
            Entry::Occupied(entry) if *entry.get() == text => {}
            Entry::Occupied(entry) => drop(differ.insert(entry.key().clone())),
        }
    }
    texts.retain(|key, _| !differ.contains(key));
    let name = segments.first().and_then(Segment::name);
    texts.extend(name.map(|name| (TABLE.to_owned(), name.to_owned())));
    texts
}

/// Returns the number of rows of each group of a segment and their type, which is `None` if there are no rows.
fn outline<S: ReadAt + ?Sized>(segment: &Segment<'_, S>) -> Result<(Vec<u64>, Option<Inner>)> {
    let Some(groups) = columns::groups(segment)? else {
        let table = segment.table("")?;
        let mut found = None::<Inner>;
        for rows in blocks(0..table.len()) {
            let values = plain_rows(&table, rows)?;
            let types = found.take().into_iter().chain(values.iter().map(values::type_of));
            found = types.reduce(Inner::merged);
        }
        return Ok((Vec::from_iter((!table.is_empty()).then_some(table.len())), found));
    };
    let groups = groups.iter().filter(|group| group.rows > 0);
    let rows = groups.clone().map(|group| group.rows as u64).collect();
    // Many groups can refer to the same names.
    let left = Cell::new(segment.byte_len().saturating_mul(64).saturating_add(64 << 20));
    let names = |column: &Column, rows: usize| {
        // If they cannot be read, reading the rows says why.
        let names = Arrays(segment).names(column, rows).ok()?;
        let bytes = names.iter().map(|name| name.len() as u64 + 8).sum();
        left.set(left.get().checked_sub(bytes)?);
        Some(names)
    };
    let types = groups.map(|group| Inner::of(&group.column, &names));
    Ok((rows, types.reduce(Inner::merged)))
}

/// The ranges of rows that become a batch each, if rows are not stored as columns.
fn blocks(rows: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let Range { start, end } = rows;
    (start..end).step_by(ROWS).map(move |at| at..end.min(at.saturating_add(ROWS as u64)))
}

/// Rows of a segment that are not stored as columns.
fn plain_rows<S: ReadAt + ?Sized>(table: &Table<'_, S>, rows: Range<u64>) -> Result<Vec<Value>> {
    Ok(table.rows::<Value>(rows)?.into_iter().map(values::plain).collect())
}

/// Reads a table as record batches. One batch at a time is in memory.
pub struct TableReader<'t, 'a, S: ?Sized> {
    table: &'t ArrowTable<'a, S>,
    filtered: Option<Filtered<'t, 'a, S>>,
    /// The segments that are not open yet.
    segments: Range<usize>,
    /// What is left of the segment that is being read, each with the number of its first row in the table.
    open: VecDeque<(u64, Part<'t, 'a, S>)>,
}

/// Rows that become a batch.
enum Part<'t, 'a, S: ?Sized> {
    Group(&'t Segment<'a, S>, Group),
    /// Rows of a segment, which are not stored as columns.
    Rows(Arc<Table<'a, S>>, Range<u64>),
}

impl<S: ?Sized> fmt::Debug for TableReader<'_, '_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left = self.segments.len();
        f.debug_struct("TableReader").field("segments_left", &left).finish_non_exhaustive()
    }
}

impl<'t, 'a, S: ReadAt + ?Sized> TableReader<'t, 'a, S> {
    fn new(table: &'t ArrowTable<'a, S>, segments: Range<usize>) -> Self {
        let filtered = table.filter.as_ref().map(|(all, filter)| all.filter(filter.clone()));
        Self { table, filtered, segments, open: VecDeque::new() }
    }

    /// The next batch, with an error of tenarc. After an error, there are no more batches.
    ///
    /// # Errors
    /// If the columns cannot be read or are damaged.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let next = self.read();
        if next.is_err() {
            self.segments = 0..0;
            self.open.clear();
        }
        next
    }

    fn read(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some((first, part)) = self.open.pop_front() {
                if let Some(batch) = self.batch(first, &part)? {
                    return Ok(Some(batch));
                }
            } else if let Some(segment) = self.segments.next() {
                self.open(segment)?;
            } else {
                return Ok(None);
            }
        }
    }

    /// Opens a segment, if it has wanted rows.
    fn open(&mut self, number: usize) -> Result<()> {
        let ArrowTable { segments, ends, rows: wanted, .. } = self.table;
        let first = number.checked_sub(1).and_then(|before| ends.get(before)).copied();
        let mut first = first.unwrap_or_default();
        let (Some(segment), Some(&end)) = (segments.get(number), ends.get(number)) else {
            return Ok(());
        };
        if first.max(wanted.start) >= end.min(wanted.end) {
            return Ok(());
        }
        let Some(groups) = columns::groups(segment)? else {
            let rows = Arc::new(segment.table("")?);
            let blocks = blocks(first.max(wanted.start)..end.min(wanted.end));
            let local = |block: &Range<u64>| block.start - first..block.end - first;
            let parts = blocks.map(|block| (block.start, Part::Rows(rows.clone(), local(&block))));
            self.open.extend(parts);
            return Ok(());
        };
        for group in groups {
            let rows = group.rows as u64;
            self.open.push_back((first, Part::Group(segment, group)));
            first = first.saturating_add(rows);
        }
        Ok(())
    }

    /// Reads the wanted rows of a part. `None` if there are none.
    fn batch(&self, first: u64, part: &Part<'_, 'a, S>) -> Result<Option<RecordBatch>> {
        let ArrowTable { fields, are_structs, schema, rows: wanted, .. } = self.table;
        let count = match part {
            Part::Group(_, group) => group.rows,
            Part::Rows(_, rows) => usize::try_from(rows.end - rows.start).unwrap_or(usize::MAX),
        };
        let end = first.saturating_add(count as u64);
        let inside = first.max(wanted.start)..end.min(wanted.end);
        if inside.is_empty() {
            return Ok(None);
        }
        let picked: Option<Vec<u64>> = match &self.filtered {
            Some(filtered) => Some(filtered.row_numbers_in(inside)?),
            None if inside == (first..end) => None,
            None => Some(inside.collect()),
        };
        let picked = match picked {
            Some(rows) if rows.is_empty() => return Ok(None),
            Some(rows) if rows.len() == count => None,
            rows => rows,
        };
        let mut arrays = match part {
            Part::Group(segment, group) if *are_structs => Arrays(segment).fields(group, fields)?,
            Part::Group(segment, group) => Arrays(segment).rows(group, fields)?,
            Part::Rows(table, rows) => {
                let rows = plain_rows(table, rows.clone())?;
                if *are_structs {
                    values::fields(&rows, fields)?
                } else {
                    values::rows(&rows, fields)?
                }
            }
        };
        let damaged = |error: ArrowError| Error::damaged(error.to_string());
        let mut rows = count;
        if let Some(picked) = &picked {
            rows = picked.len();
            let indices: UInt64Array = picked.iter().map(|row| row - first).collect();
            for array in &mut arrays {
                *array = arrow_select::take::take(array, &indices, None).map_err(damaged)?;
            }
        }
        for (array, (name, _)) in arrays.iter_mut().zip(fields) {
            if let Some(parsed) = self.table.parsed.get(name) {
                let row = |at: usize| match &picked {
                    Some(picked) => picked.get(at).copied().unwrap_or_default(),
                    None => first.saturating_add(at as u64),
                };
                *array = parsed.array(array, row).map_err(|error| error.in_field(name.as_str()))?;
            }
        }
        // Without columns, only the options say how many rows there are.
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options);
        batch.map(Some).map_err(damaged)
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
