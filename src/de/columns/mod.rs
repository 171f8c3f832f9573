//! Reads sequences that were written as columns (`SPEC.md`, section 7). A row gives the same values as the item
//! that it stands for.
//!
//! An error names its place in the sequence of rows: the number of the row, then the fields. An error that concerns a
//! whole group has the number of the first of its rows that was asked for. So callers put nothing but the path of the
//! sequence in front.

mod access;
mod decode;
mod in_row;
mod item;
mod name;
mod place;
mod row;
mod shown;
mod tensors;
mod vectors;

use std::ops::Range;

use serde::de::Visitor;

pub(crate) use self::access::RowElements;
use self::access::{MoreRows, all_taken};
pub(in crate::de) use self::access::{RowEntries, RowVariant, not_read};
pub(in crate::de) use self::name::RowName;
pub(crate) use self::place::ColumnOfGroups;
pub(in crate::de) use self::shown::ShownText;
pub(in crate::de) use self::tensors::{PlainArray, check_rank};
use super::ValueDecoder;
use super::receive::{Receiver, received};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::wire::columns::{Column, WantedFields};
use crate::wire::reader::{Left, Reader};

impl<'de> ValueDecoder<'de, '_> {
    /// Reads columns as a sequence of rows. Their tag was read.
    pub(super) fn columns<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        received(visitor, |to| self.give_columns(to))
    }

    #[cold]
    #[inline(never)]
    pub(super) fn give_columns(&mut self, to: &mut dyn Receiver<'de>) -> Result<()> {
        // The tag, and the array around the groups.
        self.wire.enter()?;
        self.wire.enter()?;
        let result = self.give_groups(to);
        self.wire.leave();
        self.wire.leave();
        result
    }

    fn give_groups(&mut self, to: &mut dyn Receiver<'de>) -> Result<()> {
        let mut left = self.wire.groups()?;
        let allowance = self.wire.allowance();
        let all = WantedRows { rows: 0..u64::MAX, before: 0, fields: WantedFields::All };
        let mut groups = Groups::new(&mut self.wire, &mut left, &allowance, all);
        let elements = RowElements::of_several(&mut groups, &allowance)?;
        let given = elements.give(to);
        // The reader resumes after the visitor even if the visitor failed, because the caller may continue after an
        // error.
        let given = given.and_then(|()| groups.close());
        groups.wire.resume(&allowance);
        given
    }
}

/// The part of the columns that is read.
pub struct WantedRows<'w> {
    /// The range of the wanted rows. Rows are counted through all groups.
    pub rows: Range<u64>,
    /// The number of rows before these columns in the table that they are part of. Errors count them too.
    pub before: u64,
    /// If the rows are structs, the fields that are read. The structs may have other fields.
    pub fields: WantedFields<'w>,
}

/// The rows of all groups.
struct Groups<'a, 'de, 'b> {
    wire: &'a mut Reader<'de, 'b>,
    left: &'a mut Left,
    wanted: WantedRows<'a>,
    /// The number of rows in the groups that were read or skipped.
    passed: u64,
    /// The number of the first row in the column that was read last.
    first: u64,
    /// The bytes that this column has taken from the budget. They are free again after its last row.
    taken: u64,
    allowance: &'a Budget,
}

/// What comes next in the groups.
enum NextGroup<'de> {
    /// The wanted rows of a group, and their number.
    Rows(Column<'de>, usize),
    /// A group without wanted rows.
    NotWanted,
    End,
}

impl<'a, 'de, 'b> Groups<'a, 'de, 'b> {
    fn new(
        wire: &'a mut Reader<'de, 'b>,
        left: &'a mut Left,
        allowance: &'a Budget,
        wanted: WantedRows<'a>,
    ) -> Self {
        Self { wire, left, wanted, passed: 0, first: 0, taken: 0, allowance }
    }

    /// Reads groups until there is one with rows that are wanted. Returns its column, and these rows of it.
    #[cold]
    fn next_group(&mut self) -> Result<Option<(Column<'de>, usize)>> {
        self.allowance.refund(std::mem::take(&mut self.taken));
        self.wire.resume(self.allowance);
        while self.passed < self.wanted.rows.end {
            let first = self.passed;
            let found = self.read_group().map_err(|error| self.in_group(first, error));
            self.allowance.take_over(&self.wire.allowance());
            match found? {
                NextGroup::Rows(column, rows) => return Ok(Some((column, rows))),
                NextGroup::NotWanted => {}
                NextGroup::End => break,
            }
        }
        Ok(None)
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

    /// Reads the next group.
    fn read_group(&mut self) -> Result<NextGroup<'de>> {
        let Some(rows) = self.wire.group_rows(self.left)? else { return Ok(NextGroup::End) };
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
            return Ok(NextGroup::NotWanted);
        }
        let before = self.wire.taken();
        let part = self.wire.column_part(rows, row..end, &self.wanted.fields)?;
        self.taken = self.wire.taken() - before;
        self.first = first + row as u64;
        Ok(NextGroup::Rows(part, end - row))
    }

    /// Checks that there are no more rows, and reads to the end of the array around the groups.
    fn close(&mut self) -> Result<()> {
        // After the last group there is nothing left, not even a break.
        if self.left.known() == Some(0) {
            return Ok(());
        }
        match self.next_group()? {
            None => Ok(()),
            Some((_, more)) => all_taken(more, "an array").map_err(|e| e.at(self.wire.offset())),
        }
    }
}

impl<'de> MoreRows<'de> for Groups<'_, 'de, '_> {
    fn next_rows(&mut self) -> Result<Option<(Column<'de>, Range<usize>)>> {
        Ok(self.next_group()?.map(|(column, rows)| (column, 0..rows)))
    }

    fn left(&self) -> usize {
        0
    }

    fn in_row(&self, row: usize, error: Error) -> Error {
        self.in_row(self.first.saturating_add(row as u64), error)
    }
}
