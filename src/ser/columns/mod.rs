//! Writes sequences as columns (`SPEC.md`, section 7).
//!
//! The first element decides the columns, and every element adds a value to each of them. If a value does
//! not fit into its column, the group of rows so far is written, and the column takes encoded items from
//! then on, which can be anything. So nothing that was collected is ever written in another form, and
//! each column changes at most once.

mod builder;
mod bytes;
mod dict;
mod emit;
mod fill;
mod merge;
mod narrow;
mod place;
mod statistics;

use serde::Serialize;

use self::builder::{ColumnBuilder, SMALL_TENSOR};
use self::bytes::MAX_BYTES;
use self::emit::inconsistent;
use self::fill::{At, Put};
use self::place::{Placed, Prediction};
use crate::error::{Error, Result};
use crate::io::sink::Memory;
use crate::mem::Short;
use crate::options::{ColumnChoice, EncodeOptions};
use crate::wire::buffer_sink::BufferSink;
use crate::wire::writer::{Writer, WriterTo};
use crate::wire::{head, tag};

pub use self::bytes::Bytes;
pub use self::merge::MergedRows;

/// Shorter sequences are written as rows, if they are the whole value, or a field that asks for columns.
const MIN_ROWS: usize = 16;
/// Shorter sequences inside a value are written as rows. There may be many of them, and each needs its own columns, which
/// takes as much time as some dozens of rows: see `docs/decisions/messages.md`.
const MIN_INNER_ROWS: usize = 128;
/// The most rows in a group (`SPEC.md`, section 7).
const MAX_ROWS: usize = 1 << 16;
/// If the first row takes more bytes than this, the rows are not written as columns, because columns would
/// save nothing.
const LARGE_ROW: usize = 64 << 10;
/// After this many rows of a group, it is decided whether a column is collected in the output.
const PLACE_AT: usize = 16;
/// The number of bytes to reserve for what is written behind a column in the output.
const ROOM: usize = 1 << 10;
/// If the tensors of columns must be listed, a sequence of fewer rows than this, or of an unknown number, is written as
/// rows if the rows have tensors. The whole value is an exception.
const FEW_ROWS: usize = 256;

/// Whether a sequence of this length, which is written next, may be written as columns.
#[inline]
pub fn are_possible(writer: &mut Writer<'_>, len: Option<usize>) -> bool {
    writer.context.options.columns != ColumnChoice::None
        && (len.is_none_or(|len| len >= MIN_INNER_ROWS || len >= MIN_ROWS && is_wanted(writer))
            || len != Some(0) && is_table(writer))
        && (writer.context.options.columns == ColumnChoice::All || is_chosen(writer))
}

#[inline(never)]
fn is_chosen(writer: &mut Writer<'_>) -> bool {
    let position = writer.position();
    let takes = |apart: &mut dyn BufferSink, written: &[u8]| apart.takes_columns(written, position);
    writer.apart().is_none() || writer.apart_if(takes).is_some()
}

/// Whether a sequence is the whole value, or a field that asks for columns, or in an archive whose options ask for them: then
/// each column has a path.
#[inline]
fn is_wanted(writer: &Writer<'_>) -> bool {
    let options = &writer.context.options;
    writer.context.depth == options.main_depth()
        || options.tables && options.columns == ColumnChoice::All
}

#[inline(never)]
fn is_table(writer: &Writer<'_>) -> bool {
    writer.context.options.tables && writer.position() == 0
}

/// A sequence that is written as columns.
pub struct Columns {
    node: ColumnBuilder,
    options: EncodeOptions,
    /// The number of rows in this group.
    rows: usize,
    /// The number of rows in the groups before.
    written: usize,
    /// The number of rows in this group at which its size is checked again.
    check_at: usize,
    /// The number of elements that was announced.
    total: Option<usize>,
    /// Whether this is the whole value of a segment.
    is_table: bool,
    head: GroupHead,
    /// The length of the output before this group, while a column is collected in it.
    placed: Option<usize>,
}

/// Whether the head of the outer array was written, and for how many groups.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GroupHead {
    Unwritten,
    /// The head is for one group, which was written with it.
    One,
    /// The head is for any number of groups.
    Many,
}

impl Columns {
    pub fn new(options: EncodeOptions, total: Option<usize>) -> Self {
        let node = ColumnBuilder::Empty;
        Self {
            node,
            options,
            rows: 0,
            written: 0,
            check_at: 1,
            total,
            is_table: false,
            head: GroupHead::Unwritten,
            placed: None,
        }
    }

    /// Adds the first element. `None` if it is so large that the sequence should be written as rows.
    pub fn first(mut self, writer: &mut Writer<'_>, value: &dyn Put) -> Result<Option<Self>> {
        let result = self.node.put_any(value, At { level: 0, options: &self.options });
        self.is_table = is_table(writer);
        let may_be_short = self.options.columns == ColumnChoice::Listed
            && self.total.is_none_or(|total| total < FEW_ROWS)
            && !self.is_table;
        if self.node.has_tensor(|len| may_be_short || len > SMALL_TENSOR) {
            return Ok(None);
        }
        match result {
            Ok(()) => self.rows = 1,
            Err(error) => self.add_misfit(writer, value, error)?,
        }
        Ok((self.node.size() <= LARGE_ROW).then_some(self))
    }

    /// Adds an element.
    #[inline]
    pub fn push<T: Serialize + ?Sized>(
        &mut self,
        writer: &mut Writer<'_>,
        value: &T,
    ) -> Result<()> {
        match self.node.put(value, At { level: 0, options: &self.options }) {
            Ok(()) => self.rows += 1,
            Err(error) => self.add_misfit(writer, &value, error)?,
        }
        if self.rows >= self.check_at {
            self.check(writer)?;
        }
        Ok(())
    }

    /// Adds all remaining elements.
    ///
    /// A column may be collected in the output only during this call. Between two other calls, the value's own code
    /// could end with an error, and the output would not be given back.
    #[inline]
    pub fn push_all<I>(&mut self, writer: &mut Writer<'_>, items: I) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        for item in items {
            let result = self.push(writer, &item);
            self.checked(writer, result)?;
            if self.rows == PLACE_AT {
                self.place_largest(writer);
            }
        }
        Ok(())
    }

    /// Ends the group if it is large enough.
    #[cold]
    #[inline(never)]
    fn check(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        if self.total.is_some_and(|total| self.written + self.rows > total) {
            let index = self.total.unwrap_or(usize::MAX) as u64;
            return Err(
                Error::data("`Serialize` wrote more elements than it announced").in_index(index)
            );
        }
        let size = self.node.size();
        if self.rows >= MAX_ROWS || size >= MAX_BYTES {
            let is_last = self.total == Some(self.written + self.rows);
            return if is_last { Ok(()) } else { self.end_group(writer, false) };
        }
        self.check_at = next_check(size, self.rows);
        // Checks again after one element too many, to report it.
        if let Some(total) = self.total {
            self.check_at =
                self.check_at.min((total - self.written).max(self.rows).saturating_add(1));
        }
        Ok(())
    }

    /// Adds an element that did not fit into the columns.
    #[cold]
    #[inline(never)]
    fn add_misfit(
        &mut self,
        writer: &mut Writer<'_>,
        value: &dyn Put,
        mut error: Error,
    ) -> Result<()> {
        // Each iteration changes at least one column for good.
        while self.node.has_misfit() {
            self.node.truncate(self.rows);
            if self.rows > 0 {
                self.end_group(writer, false)?;
            }
            self.node.settle();
            match self.node.put_any(value, At { level: 0, options: &self.options }) {
                Ok(()) => {
                    self.rows = 1;
                    return Ok(());
                }
                Err(next) => error = next,
            }
        }
        Err(error.in_index((self.written + self.rows) as u64))
    }

    /// Writes the rows of this group, and removes them.
    fn end_group(&mut self, writer: &mut Writer<'_>, is_last: bool) -> Result<()> {
        let before = self.head;
        self.head = if is_last { self.head.of_last() } else { GroupHead::Many };
        if self.node.may_have_tensors()
            && let Some(apart) = writer.apart()
        {
            apart.columns_with_tensors();
        }
        if self.is_table {
            count_group(writer, &self.node, self.rows);
        }
        if self.placed.is_some() && self.node.is_largest_a_dict() {
            self.unplace(writer)?;
        }
        if self.placed.is_some() {
            self.end_placed(writer, before)?;
        } else {
            group(writer, before, self.head, &self.node, self.rows)?;
        }
        self.node.truncate(0);
        self.written += self.rows;
        self.rows = 0;
        self.check_at = 1;
        Ok(())
    }

    /// If most bytes are in the largest column, collects it in the output from now on. See [`place`].
    #[cold]
    #[inline(never)]
    fn place_largest(&mut self, writer: &mut Writer<'_>) {
        let (rows, size) = (self.rows, self.node.size().max(1));
        let Some(total) = self.total.filter(|_| writer.holds_all()) else { return };
        if self.placed.is_some() || writer.context.options.metadata {
            return;
        }
        let left = total.saturating_sub(self.written).clamp(rows, MAX_ROWS);
        let then = left.min((MAX_BYTES * rows).div_ceil(size));
        let Some(len) = self.node.largest().map(|largest| largest.len()) else { return };
        let expected = len * then / rows.max(1);
        if len < size / 2 || expected < place::MIN_BYTES {
            return;
        }
        // Before the first group, the tag and the head of an array are written.
        let heads = if self.head == GroupHead::Unwritten {
            Short::head(head::TAG, tag::COLUMNS).bytes().1 + 1
        } else {
            0
        };
        let gap = Prediction::of_largest(&mut self.node, rows, then, heads);
        let mut output = writer.lend();
        if output.try_reserve(gap + expected + ROOM).is_err() {
            // The group may end up smaller than expected. If not, the error comes at its end.
            let _ = writer.give_back(output);
            return;
        }
        self.placed = Some(output.len());
        output.resize(output.len() + gap, 0);
        if let Some(largest) = self.node.largest() {
            largest.place(output);
        }
    }

    /// Writes the rows of a group if one of its columns is already in the output. The other columns are written
    /// elsewhere, and moved to their places.
    fn end_placed(&mut self, writer: &mut Writer<'_>, before: GroupHead) -> Result<()> {
        let mut rest = WriterTo::to(Vec::new(), Memory::growing(), writer.context.options);
        rest.context.depth = writer.context.depth;
        head_of_group(rest.writer(), before, self.head, self.rows)?;
        emit::column(rest.writer(), &self.node, self.rows)?;
        if before == GroupHead::Unwritten {
            writer.enter(2)?;
        }
        let (written, ..) = rest.into_parts();
        let Some((placed, skipped)) = self.take_placed() else { return Err(inconsistent()) };
        let skipped = skipped.and_then(|at| usize::try_from(at).ok());
        let Some((before, behind)) = skipped.and_then(|at| written.split_at_checked(at)) else {
            writer.give_back(placed.undo())?;
            return Err(inconsistent());
        };
        writer.give_back(placed.join(before, behind))
    }

    /// Collects the column that is in the output elsewhere again, because it is going to be written in another form.
    #[cold]
    fn unplace(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        let Some(before) = self.placed.take() else { return Ok(()) };
        let Some(largest) = self.node.largest() else { return Ok(()) };
        let Some((output, start, _)) = largest.take_placed() else { return Ok(()) };
        largest.push_slice(output.get(start..).unwrap_or_default());
        writer.give_back(Placed { output, before, start }.undo())
    }

    fn take_placed(&mut self) -> Option<(Placed, Option<u64>)> {
        let before = self.placed.take()?;
        let (output, start, skipped) = self.node.largest()?.take_placed()?;
        Some((Placed { output, before, start }, skipped))
    }

    /// If there was an error, and a column is collected in the output, gives the output back.
    fn checked<T>(&mut self, writer: &mut Writer<'_>, result: Result<T>) -> Result<T> {
        if result.is_err()
            && let Some((placed, _)) = self.take_placed()
        {
            writer.give_back(placed.undo())?;
        }
        result
    }

    pub fn finish(mut self, writer: &mut Writer<'_>) -> Result<()> {
        let result = self.end(writer);
        self.checked(writer, result)
    }

    fn end(&mut self, writer: &mut Writer<'_>) -> Result<()> {
        let left = self.total.map_or(0, |total| total.saturating_sub(self.written + self.rows));
        if left != 0 {
            return Err(Error::data(format!(
                "`Serialize` wrote {left} fewer elements than it announced"
            )));
        }
        if self.rows > 0 {
            self.end_group(writer, true)?;
        }
        if self.head == GroupHead::Many {
            writer.put([head::BREAK])?;
        }
        writer.leave(2)
    }
}

impl GroupHead {
    /// The head to write if no more groups follow.
    fn of_last(self) -> Self {
        if self == Self::Unwritten { Self::One } else { self }
    }
}

/// The number of rows at which the size of a group is looked at again, which has this size now.
fn next_check(size: usize, rows: usize) -> usize {
    let room = MAX_BYTES.saturating_sub(size) / (2 * size / rows.max(1)).max(1);
    // The rows so far may be much shorter than the next ones.
    (rows + room.clamp(1, rows.max(1))).min(MAX_ROWS)
}

/// Adds the statistics of a group of the whole value, if they are wanted.
fn count_group(writer: &mut Writer<'_>, node: &ColumnBuilder, rows: usize) {
    if let Some(statistics) = writer.apart().and_then(BufferSink::statistics)
        && statistics.are_computed
    {
        statistics.add_group(rows, statistics::of_group(node, rows));
    }
}

/// Writes a group. The heads are those of [`head_of_group`].
fn group(
    writer: &mut Writer<'_>,
    before: GroupHead,
    after: GroupHead,
    node: &ColumnBuilder,
    rows: usize,
) -> Result<()> {
    writer.reserve(node.size())?;
    head_of_group(writer, before, after, rows)?;
    emit::column(writer, node, rows)
}

/// Writes everything before the column of a group. `before` says which head was written so far, and `after` which one
/// is needed.
fn head_of_group(
    writer: &mut Writer<'_>,
    before: GroupHead,
    after: GroupHead,
    rows: usize,
) -> Result<()> {
    if before == GroupHead::Unwritten {
        // The levels of the tag and the array.
        writer.enter(2)?;
        writer.head(head::TAG, tag::COLUMNS)?;
        writer.container(head::ARRAY, (after == GroupHead::One).then_some(2))?;
    }
    writer.head(head::UNSIGNED, rows as u64)
}
