//! The rows of a table that meet a condition.

use std::ops::{Range, RangeBounds};
use std::sync::OnceLock;

use serde::de::DeserializeOwned;

use super::{GroupSpan, SequenceStorage, Table, TablePart, announce_parts, whole};
use crate::archive::filter::Filter;
use crate::budget::Budget;
use crate::buffer::file::FileBuffers;
use crate::de::ColumnOfGroups;
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::segment::decode_with;
use crate::steps::Steps;
use crate::wire::columns::WantedFields;

/// The most rows that are tested at once, of a value that is not stored as columns.
const BLOCK: usize = 1024;

impl<'a, S: ReadAt + ?Sized> Table<'a, S> {
    /// The rows that meet a condition. Nothing is read before the result is asked for rows.
    ///
    /// ```
    /// # use serde::{Deserialize, Serialize};
    /// # #[derive(Serialize, Deserialize)]
    /// # struct Event { id: u64, day: String, score: f32 }
    /// # let event = |id: u64| Event { id, day: format!("2026-11-{}", 10 + id % 20), score: id as f32 };
    /// # let events: Vec<_> = (0..1000).map(event).collect();
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("events", &events)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    /// use tenarc::archive::col;
    ///
    /// let events = archive.table("events")?;
    /// let found = events.filter(col("score").gt(950.0).and(col("day").eq("2026-11-20")));
    /// let ids: Vec<u64> = found.column("id")?;
    /// assert_eq!(ids, [970, 990]);
    /// let rows: Vec<Event> = found.rows()?;
    /// assert_eq!(rows.len() as u64, found.count()?);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    pub fn filter(&self, filter: Filter) -> Filtered<'_, 'a, S> {
        Filtered { table: self, filter, columns: OnceLock::new() }
    }
}

/// The rows of a table that meet a condition: [`Table::filter`].
///
/// Each method reads the columns that the condition names, group by group, and verifies their checksums. Groups in which
/// no row can meet the condition are passed over, if the statistics in the header say so
/// ([`SaveOptions::with_statistics`](crate::archive::SaveOptions::with_statistics)). Of the other columns, it reads only
/// what it is asked for, and only in groups with rows that meet the condition.
#[derive(Debug)]
pub struct Filtered<'t, 'a, S: ?Sized> {
    table: &'t Table<'a, S>,
    filter: Filter,
    columns: OnceLock<Vec<KnownColumn>>,
}

impl<S: ReadAt + ?Sized> Filtered<'_, '_, S> {
    /// Counts the rows.
    ///
    /// # Errors
    /// If a column of the condition does not exist, has values that cannot be compared as the condition says, cannot be
    /// read or is damaged. This holds for the other methods, too.
    pub fn count(&self) -> Result<u64> {
        let mut count = 0u64;
        self.each_block(self.all(), &Budget::new(self.table.limits), &mut |_, picked, _| {
            count = count.saturating_add(picked.len() as u64);
            Ok(())
        })?;
        Ok(count)
    }

    /// The numbers of the rows, which ascend.
    ///
    /// # Errors
    /// The same errors as [`count`](Self::count).
    pub fn row_numbers(&self) -> Result<Vec<u64>> {
        self.row_numbers_in(..)
    }

    /// The numbers of those rows that are in this range. Of groups without rows in the range, nothing is read. So the rows
    /// of a large table can be found part by part.
    ///
    /// ```
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("numbers", &[(1u8, 5u8), (2, 0), (3, 7)].map(|(id, size)| std::collections::BTreeMap::from([("id", id), ("size", size)])).to_vec())?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    /// use tenarc::archive::col;
    ///
    /// let numbers = archive.table("numbers")?;
    /// let large = numbers.filter(col("size").gt(4));
    /// assert_eq!(large.row_numbers()?, [0, 2]);
    /// assert_eq!(large.row_numbers_in(1..)?, [2]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the range exceeds the table, and the same errors as [`count`](Self::count).
    pub fn row_numbers_in(&self, rows: impl RangeBounds<u64>) -> Result<Vec<u64>> {
        let wanted = self.table.range(rows)?;
        let mut numbers = Vec::new();
        let budget = Budget::new(self.table.limits);
        self.each_block(wanted.clone(), &budget, &mut |block, picked, buffers| {
            let first = block.first();
            let picked = picked.iter().map(|&row| first.saturating_add(row as u64));
            let picked = picked.filter(|row| wanted.contains(row));
            buffers.left().reserve(&mut numbers, picked.clone().count())?;
            numbers.extend(picked);
            Ok(())
        })?;
        Ok(numbers)
    }

    /// Loads the rows, as [`Table::take`] does: only the columns that the type has fields for are read, and checksums are
    /// verified only of compressed ones.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count), and those of [`Table::take`].
    pub fn rows<T: DeserializeOwned>(&self) -> Result<Vec<T>> {
        self.table.take(&self.row_numbers()?)
    }

    /// Loads a column of the rows. It is read as by [`Table::column`], which says what the path and the type can be.
    ///
    /// # Errors
    /// The errors of [`count`](Self::count), and those of [`Table::column`].
    pub fn column<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let names = self.table.whole(path).map_err(|error| error.in_field(path))?.names;
        let budget = Budget::new(self.table.limits);
        let mut column = ColumnOfGroups::new(budget.clone());
        self.each_block(self.all(), &budget, &mut |block, picked, buffers| {
            block.column(&names, Some(picked), &mut column, buffers)
        })?;
        T::deserialize(column).map_err(|error| error.in_field(path))
    }

    /// The ranges of rows that can meet the condition, as far as the [statistics](crate::archive::SaveOptions::with_statistics) in
    /// the headers say. Of a table without statistics, these are all rows. Ranges consist of whole groups, ascend, and do not
    /// touch. No rows are read, so this is for programs that plan how to read a table.
    ///
    /// ```
    /// # #[derive(serde::Serialize)]
    /// # struct Event { id: u32 }
    /// use tenarc::archive::{SaveOptions, col};
    ///
    /// let options = SaveOptions::default().with_statistics(true);
    /// let mut out = tenarc::OArchive::with_options(Vec::new(), options)?;
    /// let events = |ids: std::ops::Range<u32>| ids.map(|id| Event { id }).collect::<Vec<_>>();
    /// out.save_as("events", &events(0..2000))?;
    /// out.save_as("events", &events(2000..5000))?;
    /// let archive = tenarc::Archive::new(out.finish()?)?;
    ///
    /// let table = archive.table("events")?;
    /// assert_eq!(table.filter(col("id").gt(4990)).candidates()?, [2000..5000]);
    /// assert_eq!(table.filter(col("id").lt(0)).candidates()?, []);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a column of the condition does not exist, or the metadata are damaged.
    pub fn candidates(&self) -> Result<Vec<Range<u64>>> {
        let columns = self.columns()?;
        let mut found: Vec<Range<u64>> = Vec::new();
        for part in self.table.parts.iter().filter(|part| part.rows > 0) {
            for block in self.blocks(part.part()?, columns) {
                let rows = block.first()..block.part.first.saturating_add(block.rows.end);
                match found.last_mut() {
                    Some(last) if last.end == rows.start => last.end = rows.end,
                    _ => found.push(rows),
                }
            }
        }
        Ok(found)
    }

    /// The columns of the condition are these, and need not be looked up.
    pub(super) fn knowing(self, columns: Vec<KnownColumn>) -> Self {
        Self { columns: columns.into(), ..self }
    }

    /// All rows of the table.
    fn all(&self) -> Range<u64> {
        0..self.table.rows
    }

    /// The columns of the condition, which are looked up once.
    fn columns(&self) -> Result<&[KnownColumn]> {
        if let Some(columns) = self.columns.get() {
            return Ok(columns);
        }
        let outline = self.table.columns_outline()?;
        let mut columns = Vec::new();
        for path in self.filter.paths() {
            let whole = whole(outline.as_ref(), path).map_err(|error| error.in_field(path))?;
            columns.push((path.to_owned(), whole.names));
        }
        Ok(self.columns.get_or_init(|| columns))
    }

    /// Calls `each` with each block that has rows that meet the condition, and the numbers of these rows in the block. Only
    /// blocks with wanted rows are read. They can have other rows, too.
    pub(super) fn each_block<'s>(
        &'s self,
        wanted: Range<u64>,
        budget: &Budget,
        each: &mut UseBlock<'_, 's, S>,
    ) -> Result<()> {
        if wanted.is_empty() {
            return Ok(());
        }
        let columns = self.columns()?;
        let parts = self.table.parts_with(&wanted);
        let blocks =
            |part| self.blocks(part, columns).filter_map(|block| block.with_rows_in(&wanted));
        announce_parts(parts, |part| {
            let rows: Vec<_> = blocks(part).map(|block| block.rows).collect();
            let numbers = columns.iter().map(|(_, names)| {
                part.numbers(WantedFields::At(names, Steps::of("")), rows.clone())
            });
            Ok(numbers.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
        });
        for part in parts.iter().filter(|part| part.rows > 0) {
            let part = part.part()?;
            budget.start(0);
            part.read(budget, |buffers| {
                for block in blocks(part) {
                    let held = buffers.left().held();
                    let mask = self.mask(&block, columns, buffers)?;
                    let mut picked = Vec::new();
                    let met = mask.iter().filter(|is_met| **is_met).count();
                    buffers.left().reserve(&mut picked, met)?;
                    picked
                        .extend((0..).zip(mask).filter_map(|(row, is_met)| is_met.then_some(row)));
                    buffers.left().release(held);
                    if !picked.is_empty() {
                        each(&block, &picked, buffers)?;
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The blocks of a part in which rows can meet the condition.
    fn blocks<'s>(
        &self,
        part: &'s TablePart<'_, S>,
        columns: &[KnownColumn],
    ) -> impl Iterator<Item = Block<'s, S>> {
        // Those of another form are ignored.
        let statistics = part.statistics().ok().flatten();
        let may_have_rows = move |block: &Block<'_, S>| {
            let Some(statistics) = &statistics else { return true };
            self.filter.may_be_met(&|path| {
                let (_, names) = columns.iter().find(|(other, _)| *other == path)?;
                statistics.of_group(block.group, names)
            }) != Some(false)
        };
        Block::of_part(part).into_iter().filter(may_have_rows)
    }

    /// For each row of a block, whether it meets the condition.
    fn mask<'s>(
        &self,
        block: &Block<'s, S>,
        columns: &[KnownColumn],
        buffers: &mut FileBuffers<'s, S>,
    ) -> Result<Vec<bool>> {
        let mut read = Vec::new();
        for (path, names) in columns {
            let mut column = ColumnOfGroups::new(buffers.left().clone());
            block.column(names, None, &mut column, buffers)?;
            read.extend(column.into_groups().pop().map(|(rows, column)| (path, rows, column)));
        }
        self.filter.mask(&mut |path, asked| {
            let column = read.iter_mut().find(|(other, ..)| *other == path);
            let Some((_, rows, column)) = column else { return Ok(Vec::new()) };
            asked.of_rows(column, *rows, buffers.left()).map_err(|error| error.in_field(path))
        })
    }
}

/// The path of a column of the condition, and the names that lead to it.
pub(super) type KnownColumn = (String, Vec<String>);

/// What is done with the rows of a block that meet the condition.
pub(super) type UseBlock<'f, 's, S> =
    dyn FnMut(&Block<'s, S>, &[usize], &mut FileBuffers<'s, S>) -> Result<()> + 'f;

/// Rows of a table that are tested together: those of a group, or some of a value that is not stored as columns.
pub(super) struct Block<'s, S: ?Sized> {
    part: &'s TablePart<'s, S>,
    /// The number of the group, if the rows are stored as columns.
    pub(super) group: usize,
    /// Counted through the part.
    rows: Range<u64>,
    /// Where the group starts in the item of the sequence, if the rows are stored as columns.
    at: usize,
}

impl<'s, S: ReadAt + ?Sized> Block<'s, S> {
    /// The blocks of a part of a table.
    pub(super) fn of_part(part: &'s TablePart<'s, S>) -> Vec<Self> {
        match &part.stored {
            SequenceStorage::Items(_) => {
                let starts = (0..part.rows).step_by(BLOCK);
                let rows = |start: u64| start..start.saturating_add(BLOCK as u64).min(part.rows);
                starts.map(|start| Self { part, group: 0, rows: rows(start), at: 0 }).collect()
            }
            SequenceStorage::Columns { groups } => {
                let filled = (0..).zip(groups).filter(|(_, group)| group.rows > 0);
                let rows = |group: &GroupSpan| group.end - group.rows as u64..group.end;
                let block = |(number, group): (usize, &GroupSpan)| Self {
                    part,
                    group: number,
                    rows: rows(group),
                    at: group.at,
                };
                filled.map(block).collect()
            }
        }
    }

    /// The block, if it has rows in this range of the table. The rows of a group are read together, also those that are
    /// not in the range.
    fn with_rows_in(mut self, wanted: &Range<u64>) -> Option<Self> {
        let start = self.rows.start.max(wanted.start.saturating_sub(self.part.first));
        let end = self.rows.end.min(wanted.end.saturating_sub(self.part.first));
        if matches!(self.part.stored, SequenceStorage::Items(_)) {
            self.rows = start..end;
        }
        (start < end).then_some(self)
    }

    /// The number of the first row in the table.
    pub(super) fn first(&self) -> u64 {
        self.part.first.saturating_add(self.rows.start)
    }

    /// Adds a column of all rows, or of those that are picked, which ascend.
    pub(super) fn column(
        &self,
        names: &[String],
        picked: Option<&[usize]>,
        found: &mut ColumnOfGroups<'s>,
        buffers: &mut FileBuffers<'s, S>,
    ) -> Result<()> {
        let part = self.part;
        match (&part.stored, picked) {
            (SequenceStorage::Items(places), None) => {
                part.column_of_items(places, self.rows.clone(), names, found, buffers)
            }
            (SequenceStorage::Items(places), Some(picked)) => {
                let rows = picked.iter().map(|&row| self.rows.start.saturating_add(row as u64));
                part.column_of_items(places, rows, names, found, buffers)
            }
            (SequenceStorage::Columns { .. }, _) => {
                let range = part.range.start.saturating_add(self.at)..part.range.end;
                let (base, item) = part.segment.item(range)?;
                let read = decode_with(item, base, buffers, part.segment.options, |deserializer| {
                    deserializer.column_of_group(names, picked, found)
                });
                read.map_err(|error| error.in_index(self.first()))
            }
        }
    }
}
