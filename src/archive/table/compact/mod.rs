//! Writes an archive anew, with the rows of its tables in few segments.

mod gather;
mod key;
mod replace;
mod sorted;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use self::gather::Gather;
use super::filter::KnownColumn;
use super::{SequenceStorage, Table, TablePart, whole};
use crate::archive::directory::Entry;
use crate::archive::filter::Filter;
use crate::archive::{Archive, OArchive};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::options::DecodeOptions;

/// Writes an archive anew: [`write_to`](Self::write_to) writes another one, and [`replace`](Self::replace) replaces a file.
///
/// The rows of each table are merged into few segments, with groups of up to 65,536 rows. A program that often appends a few
/// rows makes a segment for each append. Such a table takes more bytes, and reading it takes longer. Rows can also be dropped
/// ([`without`](Self::without)) and sorted ([`sorted_by`](Self::sorted_by)). Everything else is copied as it is.
///
/// A table is a name whose values are all sequences. Only values that are stored as columns are merged, unless the table is
/// [named](Self::named). Other sequences may have one name without being a table for their reader, such as a list that is
/// saved at each step of a run. Rows are merged without decoding them, so they stay what they are: the types of numbers,
/// options, enums, tensors, and [types with names](crate::types).
///
/// The new segments have [statistics](crate::archive::SaveOptions::with_statistics), unless the options of the new archive say
/// otherwise.
///
/// Segments with other notes are not merged with each other. A compressed table stays compressed, with the default level of
/// its codec, unless the options of the new archive say otherwise.
///
/// ```
/// use tenarc::archive::{Compaction, col};
/// use tenarc::{Archive, OArchive};
///
/// # #[derive(serde::Serialize, serde::Deserialize)]
/// # struct Event { day: u32, score: f64 }
/// let mut log = OArchive::new(Vec::new())?;
/// for day in 0..100 {
///     log.save_as("events", &vec![Event { day, score: 0.5 }, Event { day, score: 1.5 }])?;
/// }
/// let log = Archive::new(log.finish()?)?;
///
/// let mut new = OArchive::new(Vec::new())?;
/// let done = Compaction::new().without(col("day").lt(50)).write_to(&log, &mut new)?;
/// assert_eq!((done.tables()[0].rows(), done.tables()[0].segments()), (100, 1));
/// let new = Archive::new(new.finish()?)?;
/// assert_eq!(new.table("events")?.row::<Event>(1)?.day, 50);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// **Memory.** A few groups of rows are in memory, and the segment that is written next: about 150 MiB at most, with rows of
/// usual size. Sorting also takes about 50 bytes for each row of the table, and the bytes of texts that it is sorted by.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Compaction {
    names: BTreeSet<String>,
    without: Option<Filter>,
    sort: Option<String>,
    reading: DecodeOptions,
}

/// What a [`Compaction`] has done.
#[derive(Clone, Debug)]
pub struct Compacted {
    tables: Vec<CompactedTable>,
    bytes_before: u64,
    bytes: u64,
}

impl Compacted {
    /// The tables that were written anew, in the order of the archive.
    pub fn tables(&self) -> &[CompactedTable] {
        &self.tables
    }

    /// The length of the archive before, in bytes.
    pub fn bytes_before(&self) -> u64 {
        self.bytes_before
    }

    /// The length of what was written, in bytes. After [`Compaction::write_to`], the end mark is still missing.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// What a [`Compaction`] has done with one table.
#[derive(Clone, Debug)]
pub struct CompactedTable {
    name: Option<String>,
    rows: [u64; 2],
    segments: [u64; 2],
}

impl CompactedTable {
    /// The name of the table. `None` for the only value of an archive, which was saved without a name.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The number of rows before.
    pub fn rows_before(&self) -> u64 {
        self.rows[0]
    }

    /// The number of rows that are left.
    pub fn rows(&self) -> u64 {
        self.rows[1]
    }

    /// The number of segments before.
    pub fn segments_before(&self) -> u64 {
        self.segments[0]
    }

    /// The number of segments that were written.
    pub fn segments(&self) -> u64 {
        self.segments[1]
    }
}

/// The values of each table, by its name.
type Tables = BTreeMap<Option<Arc<str>>, Vec<Entry>>;

impl Compaction {
    /// Merges the rows of all tables of more than one segment.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only this table is written anew, also if it is one segment, and if its values are not stored as columns. May be called
    /// several times.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.names.insert(name.into());
        self
    }

    /// Drops the rows that meet a condition. Rows for which it is null stay. If the archive has several tables, they must be
    /// [named](Self::named).
    pub fn without(mut self, rows: Filter) -> Self {
        self.without = Some(rows);
        self
    }

    /// Sorts the rows by the column at a path, which has numbers, texts, byte strings, bools or enums. Rows with equal values
    /// keep their order. NaN comes after all numbers, and null comes last. If the archive has several tables, they must be
    /// [named](Self::named).
    ///
    /// The table must be stored as columns. Rows that are far from where they will be are read in batches of about 32 MiB,
    /// and each batch reads the groups that have its rows. So sorting a table of many gigabytes that is in random order takes
    /// long.
    pub fn sorted_by(mut self, column: impl Into<String>) -> Self {
        self.sort = Some(column.into());
        self
    }

    /// How [`replace`](Self::replace) reads the file: its limits, and the number of threads.
    pub fn reading(mut self, options: DecodeOptions) -> Self {
        self.reading = options;
        self
    }

    fn changes_rows(&self) -> bool {
        self.without.is_some() || self.sort.is_some()
    }

    /// Writes all values of an archive to another one, which is not finished. The options of `out` decide how tables are
    /// written.
    ///
    /// The checksums of all that is read are verified, and the archive is not changed.
    ///
    /// # Errors
    /// - A value cannot be read, is damaged, or has an extension that must be known. The archive is torn.
    /// - A table that was named does not exist, or one of its values is not a sequence.
    /// - Rows are to be dropped or sorted, there are several tables, and none was named.
    /// - A column does not exist, or has values that cannot be compared, or not as the condition says.
    /// - The writer fails.
    pub fn write_to<S: ReadAt, W: Write>(
        &self,
        archive: &Archive<S>,
        out: &mut OArchive<W>,
    ) -> Result<Compacted> {
        if let Some(error) = archive.torn() {
            return Err(error.again());
        }
        self.write(archive, self.tables(archive)?, out)
    }

    /// Writes all values, those of these tables with merged rows.
    fn write<S: ReadAt, W: Write>(
        &self,
        archive: &Archive<S>,
        mut found: Tables,
        out: &mut OArchive<W>,
    ) -> Result<Compacted> {
        let mut tables = Vec::new();
        let mut written = BTreeSet::new();
        let start = out.position();
        for entry in archive.entries() {
            let entry = entry?;
            if let Some((name, parts)) = found.remove_entry(&entry.name) {
                let table = self.table(archive, name.as_deref(), &parts, out);
                tables.push(table.map_err(|error| match &name {
                    Some(name) => error.in_field(&**name),
                    None => error,
                })?);
                written.insert(name);
            } else if !written.contains(&entry.name) {
                out.save_segment(&archive.at(&entry)?)?;
            }
        }
        let bytes = out.position() - start;
        Ok(Compacted { tables, bytes_before: archive.byte_len(), bytes })
    }

    /// The tables that are written anew.
    fn tables<S: ReadAt>(&self, archive: &Archive<S>) -> Result<Tables> {
        let mut tables = Tables::new();
        let mut others: BTreeSet<Option<Arc<str>>> = BTreeSet::new();
        for entry in archive.entries() {
            let entry = entry?;
            // Values without a name are no table, but one of them can be one.
            if entry.rows().is_none() || entry.name.is_none() && archive.len() > 1 {
                others.insert(entry.name);
            } else {
                tables.entry(entry.name.clone()).or_default().push(entry);
            }
        }
        if !self.names.is_empty() {
            for name in &self.names {
                let key = Some(Arc::from(&**name));
                if others.contains(&key) {
                    let what = "a value under this name is not a sequence, so the name is no table";
                    return Err(Error::mismatch(what).in_field(name.clone()));
                }
                if !tables.contains_key(&key) {
                    return Err(archive.no_such(name));
                }
            }
            tables.retain(|name, _| name.as_ref().is_some_and(|name| self.names.contains(&**name)));
            return Ok(tables);
        }
        tables.retain(|name, parts| {
            !others.contains(name) && (parts.len() > 1 || self.changes_rows())
        });
        if !self.changes_rows() {
            let mut merged = BTreeMap::new();
            for (name, parts) in tables {
                if are_columns(archive, &parts)? {
                    merged.insert(name, parts);
                }
            }
            return Ok(merged);
        }
        if tables.len() != 1 {
            let names = tables.keys().flatten().map(|name| format!("`{}`", name.escape_debug()));
            let names: Vec<_> = names.take(8).collect();
            let what = match names.len() {
                0 => "the archive has no table".to_owned(),
                _ => format!(
                    "the archive has several tables, {}: name those whose rows are meant",
                    names.join(", ")
                ),
            };
            return Err(Error::not_found(what));
        }
        Ok(tables)
    }

    fn table<S: ReadAt, W: Write>(
        &self,
        archive: &Archive<S>,
        name: Option<&str>,
        parts: &[Entry],
        out: &mut OArchive<W>,
    ) -> Result<CompactedTable> {
        let before = out.segments();
        let columns = self.columns(archive, parts)?;
        let mut gather = Gather::new(name, out);
        let mut rows_before = 0u64;
        if self.sort.is_some() {
            rows_before = self.sorted(archive, parts, &columns, &mut gather)?;
        } else {
            for entry in parts {
                let table = one(archive, entry);
                let rows = self.kept(&table, &columns)?;
                rows_before = rows_before.saturating_add(table.len());
                for part in table.filled() {
                    let part = part?;
                    let are_items = matches!(part.stored, SequenceStorage::Items(_));
                    if are_items && self.names.is_empty() && !self.changes_rows() {
                        gather.copy(part)?;
                    } else {
                        gather.add(part, &rows)?;
                    }
                }
            }
        }
        let rows = gather.finish()?;
        Ok(CompactedTable {
            name: name.map(str::to_owned),
            rows: [rows_before, rows],
            segments: [parts.len() as u64, out.segments() - before],
        })
    }

    /// The columns of the condition and the one by which rows are sorted, which comes last. Each must be in one of the values.
    fn columns<S: ReadAt>(
        &self,
        archive: &Archive<S>,
        parts: &[Entry],
    ) -> Result<Vec<KnownColumn>> {
        let paths = self.without.iter().flat_map(Filter::paths).chain(self.sort.as_deref());
        let mut columns: Vec<(&str, Option<Result<Vec<String>>>)> =
            paths.map(|path| (path, None)).collect();
        for entry in parts {
            if columns.iter().all(|(_, names)| matches!(names, Some(Ok(_)))) {
                break;
            }
            let table = one(archive, entry);
            if table.is_empty() {
                continue;
            }
            let outline = table.columns_outline()?;
            for (path, names) in &mut columns {
                if !matches!(names, Some(Ok(_))) && (outline.is_some() || names.is_none()) {
                    *names = Some(whole(outline.as_ref(), path).map(|whole| whole.names));
                }
            }
        }
        let columns = columns.into_iter().map(|(path, names)| {
            // Without rows, no column is asked for.
            let names = names.unwrap_or_else(|| Ok(Vec::new()));
            Ok((path.to_owned(), names.map_err(|error| error.in_field(path))?))
        });
        columns.collect()
    }

    /// The rows of the only value of a table that stay.
    fn kept<S: ReadAt>(
        &self,
        table: &Table<'_, S>,
        columns: &[KnownColumn],
    ) -> Result<Vec<Range<u64>>> {
        let mut kept = Vec::new();
        let mut end = 0;
        if let Some(without) = &self.without {
            let filtered = table.filter(without.clone()).knowing(columns.to_vec());
            let budget = Budget::new(table.limits);
            filtered.each_block(0..table.len(), &budget, &mut |block, picked, _| {
                for row in picked {
                    let row = block.first().saturating_add(*row as u64);
                    if row > end {
                        kept.push(end..row);
                    }
                    end = row + 1;
                }
                Ok(())
            })?;
        }
        if end < table.len() {
            kept.push(end..table.len());
        }
        Ok(kept)
    }
}

/// Whether the first value with rows is stored as columns.
fn are_columns<S: ReadAt>(archive: &Archive<S>, parts: &[Entry]) -> Result<bool> {
    let filled = parts.iter().find(|entry| entry.rows().is_some_and(|rows| rows > 0));
    let Some(table) = filled.map(|entry| one(archive, entry)) else { return Ok(false) };
    table
        .filled()
        .try_fold(false, |_, part| Ok(matches!(part?.stored, SequenceStorage::Columns { .. })))
}

/// One value of a table as a table.
fn one<'a, S: ReadAt>(archive: &'a Archive<S>, entry: &Entry) -> Table<'a, S> {
    let mut table = Table::default();
    let rows = entry.rows().unwrap_or(0);
    table.add_later(rows, archive.options().limits, archive.later(entry.clone()));
    table
}

impl<S: ReadAt + ?Sized> TablePart<'_, S> {
    /// The number of bytes that a row takes in memory, about.
    fn row_bytes(&self) -> u64 {
        let buffers = self.segment.buffers().iter().map(|(_, len)| len);
        let bytes = buffers.fold(self.range.len() as u64, |sum, len| sum.saturating_add(*len));
        bytes.div_ceil(self.rows.max(1))
    }
}
