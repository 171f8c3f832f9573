//! The rows of all sequences with one name.
//!
//! The path of an error starts with the number of a row, counted through the whole table. The code that reads a
//! sequence adds it, because only this code knows the row. What reads a column as a value puts the path of the column in
//! front of errors of that value.

mod compact;
mod filter;
mod statistics;
mod take;
#[cfg(test)]
mod tests;
mod views;

use std::collections::BTreeSet;
use std::fmt;
use std::iter;
use std::marker::PhantomData;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::OnceLock;
use std::vec;

use serde::de::{DeserializeOwned, DeserializeSeed};

pub use self::compact::{Compacted, CompactedTable, Compaction};
pub use self::filter::Filtered;
pub use self::views::Views;
use super::segment::Segment;
use crate::budget::Budget;
use crate::buffer::file::FileBuffers;
use crate::buffer::unpack::KeptChunks;
use crate::de::{ColumnOfGroups, WantedRows, fields_at};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::at::{ReadAt, announce};
use crate::io::input::Input;
use crate::options::{DecodeOptions, Limits};
use crate::path::schema::{ColumnTarget, Schema, WholeColumn};
use crate::segment::{decode, decode_with};
use crate::steps::Steps;
use crate::type_name::TypeName;
use crate::value::Value;
use crate::wire::columns::{Ask, Place, Start, WantedFields};
use crate::wire::reader::{Left, Reader};

/// The rows of the sequences that were saved under one name, in the order in which they were saved:
/// [`Archive::table`](crate::Archive::table). Rows are counted from zero through all of them.
///
/// Sequences that are stored as columns are read by column, and columns that are not asked for are not read. Other
/// sequences are read row by row.
///
/// ```
/// # #[derive(serde::Serialize)]
/// # struct Event {
/// #     id: u64,
/// #     score: f32,
/// # }
/// let mut out = tenarc::OArchive::new(Vec::new())?;
/// for start in [0, 500] {
///     let events: Vec<_> = (start..start + 500).map(|id| Event { id, score: 0.5 }).collect();
///     out.save_as("events", &events)?;
/// }
/// let archive = tenarc::Archive::new(out.finish()?)?;
/// let events = archive.table("events")?;
/// let ids: Vec<u64> = events.column("id")?; // the scores are not read
/// assert_eq!((events.len(), ids[999]), (1000, 999));
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Table<'a, S: ?Sized> {
    parts: Vec<TableEntry<'a, S>>,
    rows: u64,
    limits: Limits,
    /// The chunks that [`take`](Self::take) decompressed last.
    chunks: KeptChunks,
}

/// One sequence, whose header may not have been read yet.
struct TableEntry<'a, S: ?Sized> {
    /// The number of the first row.
    first: u64,
    rows: u64,
    part: OnceLock<TablePart<'a, S>>,
    /// `None` if the header was read before.
    unread: Option<UnreadHeader<'a, S>>,
}

/// A header that was not read yet.
pub(super) struct UnreadHeader<'a, S: ?Sized> {
    pub source: &'a S,
    /// Its range in the archive.
    pub place: Range<u64>,
    pub open: OpenSegment<'a, S>,
}

/// Reads the header of a segment.
type OpenSegment<'a, S> = Box<dyn Fn() -> Result<Segment<'a, S>> + Send + Sync + 'a>;

/// One sequence.
struct TablePart<'a, S: ?Sized> {
    segment: Segment<'a, S>,
    /// The number of the first row.
    first: u64,
    rows: u64,
    /// The range of the sequence in the metadata.
    range: Range<usize>,
    stored: SequenceStorage,
}

/// How a sequence is stored.
enum SequenceStorage {
    /// As an array. Holds the range of the item of each row.
    Items(OnceLock<Vec<Range<usize>>>),
    /// As columns, in these groups.
    Columns { groups: Vec<GroupSpan> },
}

/// A group of rows that are stored as columns.
struct GroupSpan {
    /// The number of the first row after the group.
    end: u64,
    rows: usize,
    /// Where the group starts in the item of the sequence, with the number of its rows.
    at: usize,
}

/// A column of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    path: String,
    kind: &'static str,
    of: Option<TypeName>,
    is_optional: bool,
    numbers: Option<(DType, Vec<usize>)>,
}

impl Column {
    /// The path of the column in the table: a field name, or several that are joined by dots.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The kind of the rows, as `SPEC.md` names it in section 7: "numbers", "texts", "optional values" and so on.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// The type that is named for the values, if it is the same in all rows: `SPEC.md`, section 7.2. Rows that are null have
    /// none.
    ///
    /// ```
    /// use tenarc::types::{TypeName, Typed};
    ///
    /// #[derive(serde::Serialize)]
    /// struct Visit<'a> {
    ///     day: Typed<'a, i32>,
    /// }
    ///
    /// let date = TypeName::date();
    /// let mut out = tenarc::OArchive::new(Vec::new())?;
    /// let visit = |day| Visit { day: Typed::new(&date, day) };
    /// out.save_as("log", &vec![visit(&20_783), visit(&20_784)])?;
    /// let archive = tenarc::Archive::new(out.finish()?)?;
    /// let columns = archive.table("log")?.columns()?;
    /// assert_eq!(columns.iter().map(|column| column.type_name()).collect::<Vec<_>>(), [Some(&date)]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    pub fn type_name(&self) -> Option<&TypeName> {
        self.of.as_ref()
    }

    /// Whether rows can be null or can be missing: optional values, fields that some rows do not have, and the fields of
    /// optional structs.
    pub fn is_optional(&self) -> bool {
        self.is_optional
    }

    /// Whether the column can be read as one tensor: all its rows are there, and are numbers of one dtype and shape.
    pub fn is_tensor(&self) -> bool {
        self.numbers.is_some() && !self.is_optional
    }

    /// The type of the numbers in the rows. `None` if the rows are something else, or not all of one dtype and shape. If the
    /// column [is optional](Self::is_optional), this is said of the rows that are not null.
    pub fn dtype(&self) -> Option<&DType> {
        self.numbers.as_ref().map(|(dtype, _)| dtype)
    }

    /// The dimensions of a row, if there is a [`dtype`](Self::dtype). A number has none.
    pub fn row_shape(&self) -> Option<&[usize]> {
        self.numbers.as_ref().map(|(_, dims)| &**dims)
    }
}

impl<S: ?Sized> Default for Table<'_, S> {
    fn default() -> Self {
        let (parts, limits) = (Vec::new(), Limits::default());
        Self { parts, rows: 0, limits, chunks: KeptChunks::default() }
    }
}

impl<S: ?Sized> fmt::Debug for Table<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let segments = self.parts.len();
        f.debug_struct("Table").field("rows", &self.rows).field("segments", &segments).finish()
    }
}

impl<'a, S: ReadAt + ?Sized> Table<'a, S> {
    /// The rows of these values, which must be sequences, as one table.
    ///
    /// # Errors
    /// If one of them is no sequence, or its metadata are damaged.
    pub fn of_segments(segments: impl IntoIterator<Item = Segment<'a, S>>) -> Result<Self> {
        let mut table = Self::default();
        for segment in segments {
            let whole = 0..segment.metadata()?.len();
            table.add(segment, whole)?;
        }
        Ok(table)
    }

    /// Adds the rows of the sequence that is at this range of the metadata.
    pub(super) fn add(&mut self, segment: Segment<'a, S>, range: Range<usize>) -> Result<()> {
        self.limits = segment.options.limits;
        let part = TablePart::new(segment, range, self.rows)?;
        let (first, rows) = (self.rows, part.rows);
        self.rows = first.saturating_add(rows);
        self.parts.push(TableEntry { first, rows, part: part.into(), unread: None });
        Ok(())
    }

    /// Adds the rows of a value, of which only the number of rows is known.
    pub(super) fn add_later(&mut self, rows: u64, limits: Limits, header: UnreadHeader<'a, S>) {
        let first = self.rows;
        (self.rows, self.limits) = (first.saturating_add(rows), limits);
        self.parts.push(TableEntry { first, rows, part: OnceLock::new(), unread: Some(header) });
    }

    /// The sequences that have rows. Reads their headers.
    fn filled(&self) -> impl Iterator<Item = Result<&TablePart<'a, S>>> {
        announce_headers(&self.parts);
        self.parts.iter().filter(|part| part.rows > 0).map(TableEntry::part)
    }

    pub(super) fn has_parts(&self) -> bool {
        !self.parts.is_empty()
    }

    /// The number of rows.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Loads one row. Only the columns that the type has fields for are read, also in a field that is a struct. So
    /// `#[serde(deny_unknown_fields)]` finds no other fields. In lists, maps, tuples and enums, all columns are read.
    ///
    /// Checksums of columns are not verified, because that would read a chunk of 1 MiB of each column.
    /// [`rows`](Self::rows) verifies them, also for one row. Compressed columns are an exception: see
    /// [`take`](Self::take), which loads several rows in one call.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Event { id: u64, score: f32 }
    /// # let events: Vec<_> = (0..300).map(|id| Event { id, score: 0.5 }).collect();
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("events", &events)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    ///
    /// #[derive(serde::Deserialize)]
    /// struct Id {
    ///     id: u64, // only this column is read
    /// }
    /// let row: Id = archive.table("events")?.row(250)?;
    /// assert_eq!(row.id, 250);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such row, it cannot be read, or it does not fit the type.
    pub fn row<T: DeserializeOwned>(&self, row: u64) -> Result<T> {
        self.take(&[row])?.pop().ok_or_else(|| self.no_row(row))
    }

    /// # Errors
    /// If there is no row with this number.
    pub(super) fn check_row(&self, row: u64) -> Result<()> {
        if row < self.rows { Ok(()) } else { Err(self.no_row(row)) }
    }

    #[cold]
    fn no_row(&self, row: u64) -> Error {
        Error::not_found(format!("there is no row {row}: the table has {} rows", self.rows))
    }

    /// Loads the rows in a range. Only the columns that the type has fields for are read, and of them only these rows.
    /// This is so in a field that is a struct, too. In lists, maps, tuples and enums, all columns are read.
    ///
    /// The checksums of all chunks with bytes of these rows are verified. For this, the rest of these chunks is read
    /// too. [`DecodeOptions::with_checksums`]`(false)` reads only the rows.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Event { id: u64, score: f32 }
    /// # let events: Vec<_> = (0..300).map(|id| Event { id, score: 0.5 }).collect();
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("events", &events)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    ///
    /// let rows: Vec<Event> = archive.table("events")?.rows(10..20)?;
    /// assert_eq!((rows.len(), rows[0].id), (10, 10));
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the range exceeds the table, a row cannot be read or is damaged, or it does not fit the type.
    pub fn rows<T: DeserializeOwned>(&self, range: impl RangeBounds<u64>) -> Result<Vec<T>> {
        let Range { start, end } = self.range(range)?;
        let mut rows = Vec::new();
        let budget = Budget::new(self.limits);
        let parts = self.parts_with(&(start..end));
        announce_parts(parts, |part| {
            let rows = start.saturating_sub(part.first)..end.saturating_sub(part.first);
            part.numbers(WantedFields::Of(&fields_at::<T>, Place::ROW), vec![rows])
        });
        for part in parts {
            let from = start.max(part.first);
            let to = end.min(part.end());
            if from < to {
                let wanted = from - part.first..to - part.first;
                budget.start(0);
                let read: Vec<T> = part.part()?.rows(wanted, &budget)?;
                if rows.is_empty() {
                    rows = read;
                } else {
                    budget.reserve(&mut rows, read.len())?;
                    budget.refund_vec(&read);
                    rows.extend(read);
                }
            }
        }
        Ok(rows)
    }

    /// # Errors
    /// If the range exceeds the table.
    fn range(&self, range: impl RangeBounds<u64>) -> Result<Range<u64>> {
        range_within(range, self.rows).map_err(|row| self.no_row(row))
    }

    /// The parts with these rows. There can be parts without rows among them.
    fn parts_with(&self, rows: &Range<u64>) -> &[TableEntry<'a, S>] {
        let parts = self.parts.get(self.part_of(rows.start)..).unwrap_or_default();
        parts.get(..parts.partition_point(|part| part.first < rows.end)).unwrap_or_default()
    }

    /// The number of the part with a row, among all parts.
    fn part_of(&self, row: u64) -> usize {
        self.parts.partition_point(|part| part.end() <= row)
    }

    /// Iterates over all rows. At most the rows of one group are in memory, which has at most 65,536 rows, or those of
    /// one value that is not stored as columns.
    pub fn iter<T: DeserializeOwned>(&self) -> TableRows<'_, 'a, S, T> {
        TableRows { table: self, part: 0, next: 0, ready: Vec::new().into_iter() }
    }

    /// Loads a column: for each row, the value of a field. The path can go on into fields of the field: `request.size`.
    /// No other field is read, and no sibling of such a nested field.
    ///
    /// Where a row has no value, the value in the column is null. It makes no difference whether the field is missing or
    /// null, or a struct around it is: if both `request` and its field `size` are an `Option`, the column
    /// `request.size` is a `Vec<Option<u32>>`.
    ///
    /// The type can be a `Vec` of the values. If the column is a tensor, it can also be [`Tensor`](crate::Tensor) of an
    /// array, whose first dimension is the row. Checksums are verified.
    ///
    /// ```
    /// # use serde::Serialize;
    /// # #[derive(Serialize)]
    /// # struct Item { id: u32, embedding: tenarc::Tensor<Vec<f32>> }
    /// # let items: Vec<_> = (0..100).map(|id| Item { id, embedding: tenarc::Tensor(vec![0.5; 8]) }).collect();
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("items", &items)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    /// use ndarray::Array2;
    /// use tenarc::Tensor;
    ///
    /// let items = archive.table("items")?;
    /// let embeddings: Tensor<Array2<f32>> = items.column("embedding")?;
    /// assert_eq!(embeddings.shape(), [100, 8]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such column, it cannot be read or is damaged, or it does not fit the type.
    pub fn column<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let names = self.whole(path).map_err(|error| error.in_field(path))?.names;
        let column = self.column_of(&names)?;
        T::deserialize(column).map_err(|error| error.in_field(path))
    }

    fn column_of(&self, names: &[String]) -> Result<ColumnOfGroups<'_>> {
        let budget = Budget::new(self.limits);
        let mut column = ColumnOfGroups::new(budget.clone());
        let all = || iter::once(0..u64::MAX).collect();
        announce_parts(&self.parts, |part| {
            part.numbers(WantedFields::At(names, Steps::of("")), all())
        });
        for part in self.filled() {
            budget.start(0);
            part?.column(names, &mut column, &budget)?;
        }
        Ok(column)
    }

    /// The columns, in the order of the fields. The columns of a field that is a struct follow it.
    ///
    /// ```
    /// # #[derive(serde::Serialize, serde::Deserialize)]
    /// # struct Event { id: u64, score: f32 }
    /// # let events: Vec<_> = (0..300).map(|id| Event { id, score: 0.5 }).collect();
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("events", &events)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    ///
    /// let columns = archive.table("events")?.columns()?;
    /// let paths: Vec<&str> = columns.iter().map(|column| column.path()).collect();
    /// assert_eq!(paths, ["id", "score"]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the metadata is damaged.
    pub fn columns(&self) -> Result<Vec<Column>> {
        let outline = self.outline()?;
        let columns = outline.columns.iter().enumerate();
        Ok(columns
            .map(|(number, column)| Column {
                path: outline.path(number),
                kind: column.kind,
                of: column.type_name().cloned(),
                is_optional: outline.is_optional(column),
                numbers: outline.present(column).cloned(),
            })
            .collect())
    }

    fn outline(&self) -> Result<Schema<'_>> {
        let mut outline = Schema::default();
        for part in self.filled() {
            let part = part?;
            let (base, item) = part.segment.item(part.range.clone())?;
            let segment = &part.segment;
            match part.stored {
                SequenceStorage::Items(_) => outline.add_items(part.rows),
                SequenceStorage::Columns { .. } => {
                    outline.add(item, base, segment.header(), segment.options.limits)?;
                }
            }
        }
        Ok(outline)
    }

    /// The columns. `None` if no rows are stored as columns.
    fn columns_outline(&self) -> Result<Option<Schema<'_>>> {
        let mut are_items = true;
        announce_headers(&self.parts);
        for part in &self.parts {
            are_items &= matches!(part.part()?.stored, SequenceStorage::Items(_));
        }
        if are_items { Ok(None) } else { self.outline().map(Some) }
    }

    /// The column at a path.
    fn whole(&self, path: &str) -> Result<WholeColumn> {
        whole(self.columns_outline()?.as_ref(), path)
    }
}

/// Announces the headers that were not read yet.
fn announce_headers<S: ReadAt + ?Sized>(parts: &[TableEntry<'_, S>]) {
    let Some(source) = parts.iter().find_map(TableEntry::source) else { return };
    let unread = parts.iter().filter(|part| part.rows > 0 && part.part.get().is_none());
    let unread = unread.filter_map(|part| part.unread.as_ref());
    announce(source, || unread.map(|header| header.place.clone()).collect());
}

/// Announces the headers and the checksums of these sequences, and the buffers with these numbers. Headers that cannot be read are
/// passed over.
fn announce_parts<'p, 'a, S: ReadAt + ?Sized>(
    parts: &'p [TableEntry<'a, S>],
    numbers: impl Fn(&'p TablePart<'a, S>) -> Result<BTreeSet<u64>>,
) {
    announce_headers(parts);
    let Some(source) = parts.iter().find_map(TableEntry::source) else { return };
    let known = || parts.iter().filter(|part| part.rows > 0).filter_map(|part| part.part().ok());
    announce(source, || known().filter_map(|part| part.segment.place_of_checksums()).collect());
    announce(source, || known().flat_map(|part| part.segment.places_of(numbers(part))).collect());
}

/// The numbers in a range, of those from 0 to `count`. If it exceeds these, the last number in it is the error.
pub(super) fn range_within(
    range: impl RangeBounds<u64>,
    count: u64,
) -> std::result::Result<Range<u64>, u64> {
    let start = match range.start_bound() {
        Bound::Included(&start) => start,
        Bound::Excluded(&start) => start.saturating_add(1),
        Bound::Unbounded => 0,
    };
    let end = match range.end_bound() {
        Bound::Included(&end) => end.saturating_add(1),
        Bound::Excluded(&end) => end,
        Bound::Unbounded => count,
    };
    if end > count { Err(end - 1) } else { Ok(start.min(end)..end) }
}

/// The column at a path, among those that are known.
fn whole(outline: Option<&Schema<'_>>, path: &str) -> Result<WholeColumn> {
    let Some(outline) = outline else {
        // Without columns, it is not known which names have dots.
        let names = path.split('.').map(str::to_owned).collect();
        return Ok(WholeColumn { names, meta: None, buffer: None });
    };
    match outline.target(Steps::of(path))? {
        ColumnTarget::Column(whole) => Ok(whole),
        ColumnTarget::InRow { .. } => {
            Err(Error::mismatch("the path leads to a row of a column, not to a column"))
        }
    }
}

/// Counts the rows of a sequence.
fn count(mut wire: Reader<'_, '_>) -> Result<(u64, SequenceStorage)> {
    let head = match wire.sequence()? {
        Start::Array(head) => head,
        Start::Columns => {
            let mut rows = 0u64;
            let mut groups = Vec::new();
            wire.within(2, |wire| {
                let mut left = wire.groups()?;
                loop {
                    let at = usize::try_from(wire.offset()).unwrap_or(usize::MAX);
                    let Some(group) = wire.group_rows(&mut left)? else { break };
                    rows = rows.saturating_add(group as u64);
                    groups.push(GroupSpan { end: rows, rows: group, at });
                    wire.skip()?;
                }
                Ok(())
            })?;
            return Ok((rows, SequenceStorage::Columns { groups }));
        }
    };
    Ok((head.arg, SequenceStorage::Items(OnceLock::new())))
}

impl<S: ?Sized> TableEntry<'_, S> {
    /// The number of the first row behind the part.
    fn end(&self) -> u64 {
        self.first.saturating_add(self.rows)
    }
}

impl<'a, S: ReadAt + ?Sized> TableEntry<'a, S> {
    fn source(&self) -> Option<&'a S> {
        let read = self.part.get().map(|part| part.segment.source);
        read.or_else(|| self.unread.as_ref().map(|header| header.source))
    }

    /// The sequence. Reads its header if that was not read yet.
    fn part(&self) -> Result<&TablePart<'a, S>> {
        if let Some(part) = self.part.get() {
            return Ok(part);
        }
        let unread = self.unread.as_ref().ok_or_else(|| Error::data("the sequence is missing"))?;
        let segment = (unread.open)()?;
        let (offset, whole) = (segment.offset(), 0..segment.metadata()?.len());
        let part = TablePart::new(segment, whole, self.first)?;
        if part.rows != self.rows {
            let (found, expected) = (part.rows, self.rows);
            let what = format!("expected {expected} rows, as the directory says, found {found}");
            return Err(Error::damaged(what).at(offset));
        }
        Ok(self.part.get_or_init(|| part))
    }
}

impl<'a, S: ReadAt + ?Sized> TablePart<'a, S> {
    /// The sequence at this range of the metadata, whose first row has this number.
    fn new(segment: Segment<'a, S>, range: Range<usize>, first: u64) -> Result<Self> {
        let (base, item) = segment.item(range.clone())?;
        let wire = Reader::new(Input::slice(item), segment.options.limits).with_strict(true);
        let (rows, stored) = count(wire).map_err(|error| error.moved_by(base))?;
        Ok(Self { segment, first, rows, range, stored })
    }
}

impl<S: ReadAt + ?Sized> TablePart<'_, S> {
    /// The numbers of the buffers of these fields in groups with these rows.
    fn numbers(&self, fields: WantedFields<'_>, rows: Vec<Range<u64>>) -> Result<BTreeSet<u64>> {
        match self.stored {
            SequenceStorage::Items(_) => self.segment.numbers_of(self.range.clone()),
            SequenceStorage::Columns { .. } => {
                self.segment.numbers_in(self.range.clone(), fields, rows)
            }
        }
    }

    /// Calls `read` with the buffers of this segment. `budget` is what the same call has left after other segments.
    fn read<'s, R>(
        &'s self,
        budget: &Budget,
        read: impl FnOnce(&mut FileBuffers<'s, S>) -> Result<R>,
    ) -> Result<R> {
        let Segment { source, loaded, options, .. } = &self.segment;
        let mut buffers = FileBuffers::after(*source, loaded, *options, budget.clone());
        let result = read(&mut buffers)?;
        budget.take_over(buffers.left());
        Ok(result)
    }

    /// Reads some of the rows, at least one.
    fn rows<T: DeserializeOwned>(&self, rows: Range<u64>, budget: &Budget) -> Result<Vec<T>> {
        let options = self.segment.options;
        self.read(budget, |buffers| match &self.stored {
            SequenceStorage::Items(items) => self.rows_of(items, rows, buffers),
            SequenceStorage::Columns { groups } => {
                self.in_groups(groups, rows, &fields_at::<T>, options, buffers, PhantomData)
            }
        })
    }

    /// Reads some of the rows, at least one, as a sequence. Of structs, only these fields are read. Groups without
    /// wanted rows are not read, not even their metadata.
    fn in_groups<'s, T: DeserializeSeed<'s>>(
        &'s self,
        groups: &[GroupSpan],
        rows: Range<u64>,
        fields: &Ask<'_>,
        options: DecodeOptions,
        buffers: &mut FileBuffers<'s, S>,
        seed: T,
    ) -> Result<T::Value> {
        let first = groups.partition_point(|group| group.end <= rows.start);
        let last = groups.partition_point(|group| group.end < rows.end);
        let count = last.saturating_sub(first).saturating_add(1);
        let (at, passed) =
            groups.get(first).map_or((0, 0), |group| (group.at, group.end - group.rows as u64));
        let (base, item) = self.segment.item(self.range.start + at..self.range.end)?;
        let rows = rows.start - passed..rows.end - passed;
        let before = self.first.saturating_add(passed);
        let wanted = WantedRows { rows, before, fields: WantedFields::Of(fields, Place::ROW) };
        decode_with(item, base, buffers, options, |deserializer| {
            deserializer.rows_of_groups(count, wanted, seed)
        })
    }

    /// Adds the rows of a column.
    fn column<'s>(
        &'s self,
        names: &[String],
        column: &mut ColumnOfGroups<'s>,
        budget: &Budget,
    ) -> Result<()> {
        let options = self.segment.options;
        self.read(budget, |buffers| {
            let SequenceStorage::Items(places) = &self.stored else {
                let (base, item) = self.segment.item(self.range.clone())?;
                return decode_with(item, base, buffers, options, |deserializer| {
                    deserializer.column(names, 0..u64::MAX, column)
                });
            };
            self.column_of_items(places, 0..self.rows, names, column, buffers)
        })
    }

    /// Adds some rows of a column of a value that is not stored as columns.
    fn column_of_items<'s>(
        &'s self,
        places: &OnceLock<Vec<Range<usize>>>,
        rows: impl Iterator<Item = u64>,
        names: &[String],
        column: &mut ColumnOfGroups<'s>,
        buffers: &mut FileBuffers<'s, S>,
    ) -> Result<()> {
        let rows: Vec<Value> = self.rows_of(places, rows, buffers)?;
        let field =
            |row| names.iter().try_fold(row, |value: &Value, name| value.get(name.as_str()));
        let fields: Vec<_> = rows.iter().map(|row| field(row).unwrap_or(&Value::Null)).collect();
        column.add_rows(&fields, buffers.left())
    }

    /// Reads some rows of a value that is not stored as columns.
    fn rows_of<'s, T: DeserializeOwned>(
        &'s self,
        places: &OnceLock<Vec<Range<usize>>>,
        rows: impl Iterator<Item = u64>,
        buffers: &mut FileBuffers<'s, S>,
    ) -> Result<Vec<T>> {
        let mut found = Vec::new();
        for row in rows {
            buffers.left().reserve(&mut found, 1)?;
            found.push(self.row(places, row, self.segment.options, buffers)?);
        }
        Ok(found)
    }

    /// Reads a row of a value that is not stored as columns.
    fn row<'s, T: DeserializeOwned>(
        &'s self,
        places: &OnceLock<Vec<Range<usize>>>,
        row: u64,
        options: DecodeOptions,
        buffers: &mut FileBuffers<'s, S>,
    ) -> Result<T> {
        let mut read = || {
            let (base, item) = self.segment.item(self.item(places, row)?)?;
            decode(PhantomData, item, base, buffers, options)
        };
        read().map_err(|error: Error| error.in_index(self.first.saturating_add(row)))
    }

    /// Returns the range of a row's item in the metadata. Fills `places` if they are not known yet.
    fn item(&self, places: &OnceLock<Vec<Range<usize>>>, row: u64) -> Result<Range<usize>> {
        let places = match places.get() {
            Some(places) => places,
            None => {
                let found = self.places()?;
                places.get_or_init(|| found)
            }
        };
        let place = usize::try_from(row).ok().and_then(|row| places.get(row));
        place.cloned().ok_or_else(|| Error::not_found(format!("there is no row {row}")))
    }

    fn places(&self) -> Result<Vec<Range<usize>>> {
        let (base, item) = self.segment.item(self.range.clone())?;
        let limits = self.segment.options.limits;
        let mut wire = Reader::new(Input::slice(item), limits).with_strict(true);
        let place = |wire: &Reader<'_, '_>| {
            self.range.start + usize::try_from(wire.offset()).unwrap_or(usize::MAX)
        };
        let mut places = Vec::new();
        let mut read = || {
            let Start::Array(head) = wire.sequence()? else { return Ok(()) };
            let mut left = Left::of(head);
            while wire.more(&mut left)? {
                let start = place(&wire);
                wire.within(1, Reader::skip)?;
                places.push(start..place(&wire));
            }
            Ok(())
        };
        read().map_err(|error: Error| error.moved_by(base))?;
        Ok(places)
    }

    /// The rows of the group with this row. A value that is not stored as columns is one group.
    fn group(&self, row: u64) -> Range<u64> {
        match &self.stored {
            SequenceStorage::Items(_) => 0..self.rows,
            SequenceStorage::Columns { groups } => {
                let number = groups.partition_point(|group| group.end <= row);
                let group = groups.get(number);
                group.map_or(row..self.rows, |group| group.end - group.rows as u64..group.end)
            }
        }
    }
}

/// Iterates over the rows of a [`Table`]: [`Table::iter`].
pub struct TableRows<'t, 'a, S: ?Sized, T> {
    table: &'t Table<'a, S>,
    part: usize,
    /// The next row of the part.
    next: u64,
    /// Rows that were read.
    ready: vec::IntoIter<T>,
}

impl<S: ?Sized, T> fmt::Debug for TableRows<'_, '_, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableRows").field("part", &self.part).field("next", &self.next).finish()
    }
}

impl<S: ReadAt + ?Sized, T: DeserializeOwned> Iterator for TableRows<'_, '_, S, T> {
    type Item = Result<T>;

    fn next(&mut self) -> Option<Result<T>> {
        loop {
            if let Some(row) = self.ready.next() {
                return Some(Ok(row));
            }
            let part = self.table.parts.get(self.part)?;
            if self.next >= part.rows {
                (self.part, self.next) = (self.part + 1, 0);
                continue;
            }
            // The memory of the rows that were given out is freed before the next ones are read.
            self.ready = Vec::new().into_iter();
            let read = part.part().and_then(|part| {
                let group = part.group(self.next);
                self.next = group.end;
                part.rows(group, &Budget::new(self.table.limits))
            });
            match read {
                Ok(rows) => self.ready = rows.into_iter(),
                Err(error) => {
                    // Nothing is known about the rows that follow, so the iterator ends.
                    self.part = usize::MAX;
                    return Some(Err(error));
                }
            }
        }
    }
}
