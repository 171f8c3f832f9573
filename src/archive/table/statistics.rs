//! The statistics of the groups of a table (`SPEC.md`, section 5.13).

use super::filter::Block;
use super::{SequenceStorage, TablePart};
use crate::archive::filter::{Asked, Comparison, Test};
use crate::archive::segment::Segment;
use crate::budget::Budget;
use crate::de::ColumnOfGroups;
use crate::error::{Category, Error, Result};
use crate::io::at::ReadAt;
use crate::value::{self, Value};
use crate::wire::columns::{Column, ColumnKind};
use crate::wire::statistics::{Bound, Statistic, Statistics};

impl<S: ReadAt + ?Sized> Segment<'_, S> {
    /// Compares the statistics of columns with the rows, if the value has any.
    pub(in crate::archive) fn check_statistics(&self) -> Result<()> {
        if self.header().ext.statistics().is_none() {
            return Ok(());
        }
        // Statistics of a value that is no sequence mean nothing.
        let whole = 0..self.metadata()?.len();
        let Ok(part) = TablePart::new(self.clone(), whole, 0) else { return Ok(()) };
        part.check_statistics().map_err(|error| match error.category() {
            Category::Damaged => error.at(self.offset()),
            _ => error,
        })
    }
}

impl<S: ReadAt + ?Sized> TablePart<'_, S> {
    /// The statistics, if this part is the whole value of a segment that has any.
    ///
    /// # Errors
    /// If they have another form.
    pub(super) fn statistics(&self) -> Result<Option<Statistics>> {
        let SequenceStorage::Columns { groups } = &self.stored else { return Ok(None) };
        let is_whole = self.range == (0..self.segment.metadata()?.len());
        let Some(encoded) = self.segment.header().ext.statistics().filter(|_| is_whole) else {
            return Ok(None);
        };
        let rows: Vec<u64> = groups.iter().map(|group| group.rows as u64).collect();
        Statistics::parse(encoded, &rows).map(Some)
    }

    fn check_statistics(&self) -> Result<()> {
        let found = self.statistics().map_err(|error| wrong(&error.message()))?;
        let Some(statistics) = found else { return Ok(()) };
        let blocks = Block::of_part(self);
        let span = |block: &Block<'_, S>| statistics.span(block.group);
        for (path, spans) in &statistics.columns {
            for blocks in blocks.chunk_by(|one, next| span(one) == span(next)) {
                let said = blocks.first().and_then(|block| spans.get(span(block))?.as_ref());
                if let Some(said) = said {
                    self.check_span(blocks, path, said)?;
                }
            }
        }
        Ok(())
    }

    /// Compares what is said about a column with the rows in these blocks.
    fn check_span(&self, blocks: &[Block<'_, S>], path: &[String], said: &Statistic) -> Result<()> {
        let in_column = |error: Error| path.iter().rev().fold(error, Error::in_field);
        let (mut nulls, mut nans) = (0, 0);
        for block in blocks {
            // Nothing of the block before is kept.
            let budget = Budget::new(self.segment.options.limits);
            let (more_nulls, more_nans) = self.read(&budget, |buffers| {
                let mut column = ColumnOfGroups::new(buffers.left().clone());
                block.column(path, None, &mut column, buffers)?;
                let Some((rows, mut column)) = column.into_groups().pop() else {
                    return Ok((0, 0));
                };
                let compared = compare(&mut column, rows, said, buffers.left());
                compared
                    .map_err(|(row, error)| in_column(error).in_index(block.first() + row as u64))
            })?;
            nulls += more_nulls;
            nans += more_nans;
        }
        if (nulls, nans) == (said.nulls, said.nans) {
            return Ok(());
        }
        let first = blocks.first().map_or(0, Block::first);
        let (count, said) = (said.rows, (said.nulls, said.nans));
        Err(in_column(wrong(&format!(
            "of the {count} rows from row {first} on, {} are null and {} NaN, not {} and {}",
            nulls, nans, said.0, said.1
        ))))
    }
}

/// Counts the rows that are null and NaN. The error is with a row whose value is outside of the bounds.
fn compare(
    column: &mut Column<'_>,
    rows: usize,
    said: &Statistic,
    allowance: &Budget,
) -> Result<(u64, u64), (usize, Error)> {
    let meeting = |column: &mut Column<'_>, test: &Test, is_opposite| {
        let held = allowance.held();
        let mask = Asked { test, is_opposite }.of_rows(column, rows, allowance);
        allowance.release(held);
        mask
    };
    for (comparison, bound, side) in
        [(Comparison::Less, &said.least, "below"), (Comparison::Greater, &said.greatest, "above")]
    {
        let Some(bound) = bound else { continue };
        let test = Test::Compare(comparison, value_of(bound));
        let shown = test.describe();
        let has_kind = has_kind_of(column, rows, bound, allowance);
        if !has_kind.map_err(|error| (0, error))? {
            return Err((0, wrong(&format!("the values are not of the kind of {shown}"))));
        }
        let outside = meeting(column, &test, false);
        let outside = outside.map_err(|error| (0, wrong(&error.message())))?;
        if let Some(row) = outside.iter().position(|is_outside| *is_outside) {
            let found = value::read_row(column, row, allowance).map_err(|error| (row, error))?;
            let found = Test::OneOf(vec![found]).describe();
            return Err((row, wrong(&format!("no value is {side} {shown}, but there is {found}"))));
        }
    }
    let count = |mask: Vec<bool>| mask.into_iter().filter(|is_met| *is_met).count() as u64;
    let nulls = meeting(column, &Test::Null, false).map_err(|error| (0, error))?;
    // Every other number is at most infinity. Other values cannot be compared with it.
    let test = Test::Compare(Comparison::LessOrEqual, Value::F64(f64::INFINITY));
    let nans = match meeting(column, &test, true) {
        Err(error) if error.category() == Category::Mismatch => 0,
        found => count(found.map_err(|error| (0, error))?),
    };
    Ok((count(nulls), nans))
}

/// Whether integers are compared with integers, and floats with floats: readers rely on it. For other kinds, the comparison
/// shows it.
fn has_kind_of(
    column: &mut Column<'_>,
    rows: usize,
    bound: &Bound,
    allowance: &Budget,
) -> Result<bool> {
    let is_float = match bound {
        Bound::Integer(_) => false,
        Bound::Float(_) => true,
        _ => return Ok(true),
    };
    let mut innermost = &*column;
    loop {
        innermost = match &innermost.kind {
            ColumnKind::Optional(optional) => &optional.column,
            ColumnKind::Dict(dict) => &dict.column,
            ColumnKind::Numbers(numbers) => return Ok(numbers.kind.is_float() == is_float),
            // Each item has its own kind.
            ColumnKind::Items(_) => break,
            _ => return Ok(true),
        }
    }
    for row in 0..rows {
        let held = allowance.held();
        let is_other = match value::read_row(column, row, allowance)? {
            Value::Integer(_) => is_float,
            Value::F32(_) | Value::F64(_) => !is_float,
            _ => false,
        };
        allowance.release(held);
        if is_other {
            return Ok(false);
        }
    }
    Ok(true)
}

fn value_of(bound: &Bound) -> Value {
    match bound {
        Bound::Bool(value) => Value::Bool(*value),
        Bound::Integer(value) => Value::Integer(*value),
        Bound::Float(value) => Value::F64(*value),
        Bound::Text(text) => Value::Text((&**text).into()),
        Bound::Bytes(bytes) => Value::Bytes((&**bytes).into()),
    }
}

#[cold]
fn wrong(what: &str) -> Error {
    Error::damaged(format!("the statistics are wrong: {what}"))
}
