//! Columns with few distinct rows: each of them is stored once.

use std::ops::Range;

use super::blocks::{BytesOrNumbers, check_rows};
use super::codes::Codes;
use super::heads::wrong;
use super::range::RowRange;
use super::{Column, ColumnData, ColumnKind, NumberType, RowLengths, WantedFields};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::io::source::SourceBytes;
use crate::wire::head;
use crate::wire::reader::Reader;

/// The most rows that codes of one byte can tell apart.
const NARROW: usize = 1 << 8;
/// The most rows that codes can tell apart.
const WIDE: usize = 1 << 16;

/// The distinct rows, and for each row which of them it is.
pub struct DictColumn<'de> {
    codes: Codes<'de>,
    pub column: Column<'de>,
}

impl<'de> DictColumn<'de> {
    /// These rows of a column, whose numbers ascend.
    pub fn of_rows(column: Column<'de>, rows: &[usize], allowance: &Budget) -> Result<Self> {
        allowance.charge(rows.len().saturating_mul(2) as u64)?;
        let codes = |row_of: &dyn Fn(usize) -> usize| {
            // A group has at most 65,536 rows.
            let code = |&row: &usize| u16::try_from(row_of(row)).unwrap_or_default().to_le_bytes();
            let data = ColumnData::from(SourceBytes::Owned(rows.iter().flat_map(code).collect()));
            Codes { data, is_wide: true }
        };
        Ok(match column.kind {
            // A column in a dict is no dict.
            ColumnKind::Dict(dict) => {
                Self { codes: codes(&|row| dict.inner(row)), column: dict.column }
            }
            _ => Self { codes: codes(&|row| row), column },
        })
    }

    /// The number of rows of the column up to the last one that the first `rows` rows are.
    pub fn distinct(&self, rows: usize) -> usize {
        if rows == 0 { 0 } else { self.codes.greatest(0..rows) + 1 }
    }

    /// The number of rows of the column up to the last one that a row is.
    pub fn count(&self) -> usize {
        self.distinct(self.codes.len())
    }

    /// The row of the column that a row is.
    #[inline]
    pub fn inner(&self, row: usize) -> usize {
        self.codes.get(row)
    }
}

impl<'de> Reader<'de, '_> {
    /// Reads one number for each row, of the type u8 or u16.
    pub(super) fn codes_of(&mut self, rows: usize, what: &str) -> Result<Codes<'de>> {
        let at = self.offset();
        let (data, is_wide) = match self.codes(what)? {
            BytesOrNumbers::Numbers(NumberType::U8, codes) => (codes, false),
            BytesOrNumbers::Numbers(NumberType::U16, codes) => (codes, true),
            _ => {
                let what = format!("expected {what} as a typed array of u8 or u16");
                return Err(Error::data(what).at(at));
            }
        };
        let size = if is_wide { 2 } else { 1 };
        check_rows(data.len() / size, rows).map_err(|error| error.at(at))?;
        Ok(Codes { data, is_wide })
    }

    pub(super) fn dict(
        &mut self,
        rows: RowRange,
        wanted: &WantedFields<'_>,
    ) -> Result<ColumnKind<'de>> {
        let at = self.offset();
        let codes = self.codes_of(rows.all, "the codes of a dict")?;
        let count_at = self.offset();
        let head = self.head()?;
        if head.major() != head::UNSIGNED {
            return Err(wrong("the number of rows in a dict", head).at(count_at));
        }
        let count = usize::try_from(head.arg).ok().filter(|&count| count <= WIDE);
        let Some(count) = count else {
            let what = format!("expected at most {WIDE} rows in a dict, found {}", head.arg);
            return Err(Error::data(what).at(count_at));
        };
        if codes.is_wide != (count > NARROW) {
            let expected = if count > NARROW { "u16" } else { "u8" };
            let what =
                format!("the codes of a dict with {count} rows must have the type {expected}");
            return Err(Error::data(what).at(at));
        }
        check_codes(&codes, rows.all, count).map_err(|error| error.at(at))?;
        let column_at = self.offset();
        let mut column = self.part_of_column(RowRange::whole(count), None, wanted)?;
        if matches!(column.kind, ColumnKind::Dict(_)) {
            let what = "the column in a dict is a dict itself";
            return Err(Error::data(what).at(column_at));
        }
        column.index(count, &mut |bytes| self.charge(bytes))?;
        let sizes: Vec<usize> = (0..count).map(|row| column.size_of_row(row)).collect();
        let size = |row| sizes.get(codes.get(row)).copied().unwrap_or_default() as u64;
        let repeated = rows.range().fold(0u64, |sum, row| sum.saturating_add(size(row)));
        self.charge_kept(repeated).map_err(|error| error.at(at))?;
        Ok(ColumnKind::Dict(Box::new(DictColumn { codes: codes.part(rows.range()), column })))
    }
}

/// Checks that the codes are numbered in the order of their first occurrence, and that each of `count` occurs.
fn check_codes(codes: &Codes<'_>, rows: usize, count: usize) -> Result<()> {
    let mut next = 0;
    for row in 0..rows {
        let code = codes.get(row);
        if code >= count {
            let what = format!("a dict with {count} rows has no row {code}");
            return Err(Error::data(what).in_index(row as u64));
        }
        if code > next {
            let what = format!("code {code} of a dict occurs before code {next}");
            return Err(Error::data(what).in_index(row as u64));
        }
        if code == next {
            next += 1;
            // The rest must only exist, which is checked many at once. Most often, all codes occur in the first rows.
            if next == count && codes.greatest(row + 1..rows) < count {
                return Ok(());
            }
        }
    }
    if next < count {
        return Err(Error::data(format!("row {next} of a dict with {count} rows does not occur")));
    }
    Ok(())
}

impl Column<'_> {
    /// Makes rows in any order as cheap to find as rows in rising order. `charge` is called with the bytes of memory that
    /// this takes.
    pub fn index(&mut self, rows: usize, charge: &mut dyn FnMut(u64) -> Result<()>) -> Result<()> {
        match &mut self.kind {
            ColumnKind::Numbers(_)
            | ColumnKind::Tensors(_)
            | ColumnKind::Unit
            | ColumnKind::Bools(_)
            | ColumnKind::Dict(_) => {}
            ColumnKind::Texts(cuts, _) | ColumnKind::Bytes(cuts, _) => {
                cuts.index(rows, charge)?;
            }
            ColumnKind::Lists(lists) => {
                let inner = lists.0.index(rows, charge)?;
                lists.1.index(inner, charge)?;
            }
            ColumnKind::Maps(maps) => {
                let inner = maps.cuts.index(rows, charge)?;
                maps.keys.index(inner, charge)?;
                maps.values.index(inner, charge)?;
            }
            ColumnKind::Optional(optional) => {
                let inner = optional.marks.index(rows, charge)?;
                optional.column.index(inner, charge)?;
            }
            ColumnKind::Tuples(columns) => {
                columns.iter_mut().try_for_each(|column| column.index(rows, charge))?;
            }
            ColumnKind::Structs(structs) => {
                for field in &mut structs.fields {
                    let inner = match &mut field.present {
                        Some(present) => present.index(rows, charge)?,
                        None => rows,
                    };
                    field.column.index(inner, charge)?;
                }
            }
            ColumnKind::Enums(enums) => {
                let counts = enums.index(rows, charge)?;
                for (column, count) in enums.columns.iter_mut().zip(counts) {
                    if let Some(column) = column {
                        column.index(count, charge)?;
                    }
                }
            }
            ColumnKind::Items(items) => items.index(rows, charge)?,
        }
        Ok(())
    }

    /// About how many bytes a row takes in memory, apart from numbers of fixed length. The column was
    /// [indexed](Self::index).
    fn size_of_row(&mut self, row: usize) -> usize {
        match &mut self.kind {
            ColumnKind::Numbers(_) | ColumnKind::Unit | ColumnKind::Bools(_) => 0,
            ColumnKind::Tensors(tensors) => tensors.len,
            ColumnKind::Texts(cuts, _) | ColumnKind::Bytes(cuts, _) => cuts.range(row).len(),
            ColumnKind::Lists(lists) => {
                let (cuts, column) = &mut **lists;
                let range = cuts.range(row);
                range.len().saturating_mul(8).saturating_add(column.size_of_rows(range))
            }
            ColumnKind::Maps(maps) => {
                let range = maps.cuts.range(row);
                let sizes = maps.keys.size_of_rows(range.clone());
                sizes.saturating_add(maps.values.size_of_rows(range))
            }
            ColumnKind::Optional(optional) => {
                let inner = optional.marks.inner(row);
                inner.map_or(0, |row| optional.column.size_of_row(row))
            }
            ColumnKind::Tuples(columns) => {
                let sizes = columns.iter_mut().map(|column| column.size_of_row(row));
                sizes.fold(0, usize::saturating_add)
            }
            ColumnKind::Structs(structs) => {
                let fields = structs.fields.iter_mut();
                let sizes = fields.map(|field| {
                    let row = field.inner(row);
                    field.column.size_of_row(row).saturating_add(8)
                });
                sizes.fold(0, usize::saturating_add)
            }
            ColumnKind::Enums(enums) => {
                let (code, row) = enums.entry(row);
                match enums.columns.get_mut(code) {
                    Some(Some(column)) => column.size_of_row(row),
                    _ => 0,
                }
            }
            ColumnKind::Items(items) => items.item(row).len(),
            ColumnKind::Dict(dict) => {
                let row = dict.inner(row);
                dict.column.size_of_row(row)
            }
        }
    }

    fn size_of_rows(&mut self, rows: Range<usize>) -> usize {
        match &self.kind {
            // There can be many.
            ColumnKind::Numbers(_) | ColumnKind::Unit | ColumnKind::Bools(_) => 0,
            ColumnKind::Texts(_, _) | ColumnKind::Bytes(_, _) if rows.is_empty() => 0,
            _ => rows.map(|row| self.size_of_row(row)).fold(0, usize::saturating_add),
        }
    }
}

impl RowLengths<'_> {
    /// The position of each of these rows.
    pub fn starts(&self, rows: usize) -> Vec<usize> {
        let mut start = 0;
        let next = |row| {
            let this = start;
            start += self.get(row);
            this
        };
        (0..rows).map(next).collect()
    }
}
