//! A row of a column.

use serde::de::Deserialize;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::wire::columns::{Column, ColumnKind};

/// The offset of what is not in the input.
pub(crate) const NOWHERE: u64 = u64::MAX;

/// Adds an offset to an error, unless it is [`NOWHERE`].
#[cold]
pub(super) fn located(error: Error, at: u64) -> Error {
    if at == NOWHERE { error } else { error.at(at) }
}

/// A row of a column.
pub struct Row<'c, 'de> {
    pub(super) column: &'c mut Column<'de>,
    pub(super) row: usize,
    pub(super) allowance: &'c Budget,
    /// The number of options that were entered but are not in the data: see [`one_more`].
    pub(super) somes: u32,
    /// Whether nobody asks for the row again.
    pub(super) is_last: bool,
    /// Whether the row is read by [`read`](Self::read), which reads it again if a visitor takes no sequence of fields.
    pub(super) can_repeat: bool,
}

impl<'c, 'de> Row<'c, 'de> {
    #[inline]
    pub fn new(column: &'c mut Column<'de>, row: usize, allowance: &'c Budget) -> Self {
        Self { column, row, allowance, somes: 0, is_last: false, can_repeat: false }
    }

    /// Reads a value. A struct may be given to its visitor as a sequence of fields, which is faster than a map. If the
    /// visitor turns out to take no sequence, it is used up, so the whole value is read again with maps.
    #[inline]
    pub(super) fn read<T: Deserialize<'de>>(self) -> Result<T> {
        let Row { column, row, allowance, is_last, .. } = self;
        let first =
            Row { column: &mut *column, row, allowance, somes: 0, is_last, can_repeat: true };
        match T::deserialize(first) {
            Ok(value) if !allowance.is_refused() => Ok(value),
            value => Row::or_again(column, row, allowance, is_last, value),
        }
    }

    /// Reads the value again if a visitor took no sequence of fields. The parts of the row are passed in registers: a row would be
    /// written to memory for each value, also for those that are not read again.
    #[cold]
    #[inline(never)]
    fn or_again<T: Deserialize<'de>>(
        column: &mut Column<'de>,
        row: usize,
        allowance: &Budget,
        is_last: bool,
        value: Result<T>,
    ) -> Result<T> {
        if !allowance.take_refusal() {
            return value;
        }
        T::deserialize(Row { is_last, ..Row::new(column, row, allowance) })
    }

    /// The only row of a column. Nobody asks for it again.
    pub fn last(column: &'c mut Column<'de>, allowance: &'c Budget) -> Self {
        Self { is_last: true, ..Self::new(column, 0, allowance) }
    }

    /// If the column holds optional values or is a dict, returns the row of the inner column. If there is none because the value is
    /// `None`, returns this row.
    // Always: 1 % of decoding updates as columns.
    #[inline(always)]
    pub(super) fn inner(mut self) -> Self {
        if let ColumnKind::Optional(_) | ColumnKind::Dict(_) = self.column.kind {
            (self.column, self.row) = self.column.innermost(self.row);
        }
        self
    }
}
