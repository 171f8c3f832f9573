//! Reads sequences that were written as columns (`SPEC.md`, section 7). A row gives the same values as the item
//! that it stands for.
//!
//! An error names its place in the sequence of rows: the number of the row, then the fields. An error that concerns a
//! whole group has the number of the first of its rows that was asked for. So callers put nothing but the path of the
//! sequence in front.

mod access;
mod deserializer;
mod in_row;
mod place;
mod row;
mod tensors;
mod vectors;

use std::ops::Range;

use serde::de::{self, DeserializeSeed, Visitor};

pub(crate) use self::place::ColumnOfGroups;
use self::row::Row;
pub(in crate::de) use self::tensors::PlainArray;
use super::Deserializer;
use crate::budget::{Budget, Kind, Room};
use crate::error::{Error, Result};
use crate::io::item_read::ItemRead;
use crate::io::source::Read;
use crate::wire::columns::{Column, Items, WantedFields};
use crate::wire::reader::{Left, Reader};

impl<'de, R: Read<'de>> Deserializer<R> {
    /// Reads columns as a sequence of rows. Their tag was read.
    #[cold]
    #[inline(never)]
    pub(super) fn columns<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        // The tag, and the array around the groups.
        self.wire.enter()?;
        self.wire.enter()?;
        let result = self.groups(visitor);
        self.wire.leave();
        self.wire.leave();
        result
    }

    fn groups<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let mut left = self.wire.groups()?;
        let allowance = self.wire.allowance();
        let all = Wanted { rows: 0..u64::MAX, before: 0, fields: WantedFields::All };
        let mut groups = Groups::new(&mut self.wire, &mut left, &allowance, all);
        // The first group is read before the visitor asks for the number of rows.
        groups.next_group()?;
        let value = visitor.visit_seq(&mut groups);
        // The reader resumes after the visitor even if the visitor failed, because the caller may continue after an
        // error.
        let value = value.and_then(|value| groups.close().map(|()| value));
        groups.wire.resume(&allowance);
        value
    }
}

/// The part of the columns that is read.
pub struct Wanted<'w> {
    /// The range of the wanted rows. Rows are counted through all groups.
    pub rows: Range<u64>,
    /// The number of rows before these columns in the table that they are part of. Errors count them too.
    pub before: u64,
    /// If the rows are structs, the fields that are read. The structs may have other fields.
    pub fields: WantedFields<'w>,
}

/// The rows of all groups.
struct Groups<'a, 'de, R> {
    wire: &'a mut Reader<R>,
    left: &'a mut Left,
    wanted: Wanted<'a>,
    /// The number of rows in the groups that were read or skipped.
    passed: u64,
    /// The number of the next row.
    at: u64,
    allowance: &'a Budget,
    current: Option<Current<'de>>,
    /// The room of the collection that the rows are put into, and the number of rows in it.
    room: Room,
    taken: usize,
}

/// The group that is being read.
struct Current<'de> {
    column: Column<'de>,
    row: usize,
    rows: usize,
    /// The bytes that the group has taken from the budget. They are free again after its last row.
    taken: u64,
}

impl<'a, 'de, R: Read<'de>> Groups<'a, 'de, R> {
    fn new(
        wire: &'a mut Reader<R>,
        left: &'a mut Left,
        allowance: &'a Budget,
        wanted: Wanted<'a>,
    ) -> Self {
        let (current, room, taken) = (None, Room::NONE, 0);
        Self { wire, left, wanted, passed: 0, at: 0, allowance, current, room, taken }
    }

    /// Reads groups until there is one with rows that are wanted. Returns false after the last one.
    #[cold]
    fn next_group(&mut self) -> Result<bool> {
        if let Some(Current { taken, .. }) = self.current.take() {
            self.allowance.refund(taken);
        }
        self.wire.resume(self.allowance);
        while self.passed < self.wanted.rows.end {
            let first = self.passed;
            let found = self.read_group().map_err(|error| self.in_group(first, error));
            self.allowance.take_over(&self.wire.allowance());
            match found? {
                Some(true) => return Ok(true),
                Some(false) => {}
                None => break,
            }
        }
        Ok(false)
    }

    /// Adds the number of a row to an error of the group that starts with the row `first`.
    #[cold]
    fn in_group(&self, first: u64, error: Error) -> Error {
        let wanted = self.wanted.rows.start;
        // A group that ends before the wanted rows, or whose length is not known, has none of them.
        let row = if (first..self.passed).contains(&wanted) { wanted } else { first };
        self.in_row(row, error)
    }

    /// Adds the number of a row to an error in it.
    #[cold]
    fn in_row(&self, row: u64, error: Error) -> Error {
        error.in_index(self.wanted.before.saturating_add(row))
    }

    /// Reads the next group. Returns whether it has wanted rows, or `None` after the last group.
    fn read_group(&mut self) -> Result<Option<bool>> {
        let Some(rows) = self.wire.group_rows(self.left)? else { return Ok(None) };
        let first = self.passed;
        self.passed = first.saturating_add(rows as u64);
        let Range { start, end } = self.wanted.rows;
        // The range of the wanted rows in the group.
        let row = usize::try_from(start.saturating_sub(first)).unwrap_or(usize::MAX).min(rows);
        let end = usize::try_from(end.saturating_sub(first)).unwrap_or(usize::MAX).min(rows);
        if row >= end {
            if rows == 0 {
                let before = self.wire.taken();
                self.wire.column_part(0, 0..0, &self.wanted.fields)?;
                self.wire.refund(self.wire.taken() - before);
            } else {
                self.wire.skip()?;
            }
            return Ok(Some(false));
        }
        let before = self.wire.taken();
        let part = self.wire.column_part(rows, row..end, &self.wanted.fields)?;
        let taken = self.wire.taken() - before;
        self.at = first + row as u64;
        self.current = Some(Current { column: part, row: 0, rows: end - row, taken });
        Ok(Some(true))
    }

    /// Checks that the visitor has taken all rows, and reads to the end of the array around the groups.
    fn close(&mut self) -> Result<()> {
        loop {
            if let Some(Current { row, rows, .. }) = self.current
                && row < rows
            {
                let more = rows - row;
                let what = format!("expected the end of an array, found {more} more elements");
                return Err(Error::data(what).at(self.wire.offset()));
            }
            // After the last group there is nothing left, not even a break.
            if self.left.known() == Some(0) || !self.next_group()? {
                return Ok(());
            }
        }
    }
}

impl<'de, R: Read<'de>> de::SeqAccess<'de> for &mut Groups<'_, 'de, R> {
    type Error = Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        loop {
            if let Some(Current { column, row, rows, .. }) = &mut self.current
                && row < rows
            {
                let number = *row;
                *row += 1;
                self.at += 1;
                if !self.room.holds::<T::Value>(self.taken) {
                    let (kind, left) = (const { Kind::of::<T::Value>() }, *rows - number);
                    let room = self.allowance.element(&mut self.room, kind, left);
                    room.map_err(|error| error.at(column.at))?;
                }
                self.taken += usize::from(const { size_of::<T::Value>() > 0 });
                self.allowance.place::<T::Value>();
                let at = column.at;
                return match seed.deserialize(Row::new(column, number, self.allowance)) {
                    Ok(value) => Ok(Some(value)),
                    Err(error) => Err(self.in_row(self.at - 1, error.at(at))),
                };
            }
            if !self.next_group()? {
                return Ok(None);
            }
        }
    }

    /// The number of rows that are certain to follow: those of the current group.
    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.current.as_ref().map(|current| current.rows - current.row)
    }
}

/// Reads the item of a row with the deserializer for items.
fn with_item<'de, T>(
    items: &mut Items<'de>,
    row: usize,
    allowance: &Budget,
    read: impl FnOnce(&mut Deserializer<ItemRead<'de, '_>>) -> Result<T>,
) -> Result<T> {
    let levels = items.levels;
    let (item, base) = items.at(row);
    let wire = Reader::inside(ItemRead::new(&item, base), levels, allowance);
    let mut de = Deserializer { wire, some_at: u64::MAX, some_count: 0 };
    let result = read(&mut de);
    allowance.take_over(&de.wire.allowance());
    let taken = usize::try_from(de.wire.offset() - base).unwrap_or(usize::MAX);
    if result.is_ok() {
        items.took(row, taken);
    }
    result.map_err(|error| error.at(base))
}
