//! Writes sequences as columns (`SPEC.md`, section 3.1).
//!
//! The first element decides the columns, and every element adds a value to each of them. If a value does
//! not fit into its column, the group of rows so far is written, and the column takes encoded items from
//! then on, which can be anything. So nothing that was collected is ever written in another form, and
//! each column changes at most once.

mod emit;
mod fill;
mod form;
mod node;

use serde::Serialize;

use self::fill::At;
use self::node::Node;
use crate::error::{Error, Result};
use crate::options::EncodeOptions;
use crate::wire::apart::Target;
use crate::wire::writer::Writer;
use crate::wire::{head, tag};

pub use self::form::is_record;

/// Shorter sequences are written as rows.
const MIN_ROWS: usize = 16;
/// The most rows in a group (`SPEC.md`, section 3.1).
const MAX_ROWS: usize = 1 << 16;
/// A group ends when this many bytes are collected.
const MAX_BYTES: usize = 16 << 20;
/// If the first row takes more bytes than this, the rows are not written as columns, because columns would
/// save nothing.
const LARGE_ROW: usize = 64 << 10;
/// Longer tensors are not copied into columns.
const SMALL_TENSOR: usize = 16 << 10;

/// Whether a sequence of this length may be written as columns.
#[inline(always)]
pub fn is_long_enough(len: Option<usize>) -> bool {
    len.is_none_or(|len| len >= MIN_ROWS)
}

/// A sequence that is written as columns.
pub struct Columns {
    node: Node,
    options: EncodeOptions,
    /// The rows in this group.
    rows: usize,
    /// The rows in the groups before.
    written: usize,
    /// The number of rows in this group at which its size is checked again.
    check_at: usize,
    /// The number of elements that was announced.
    total: Option<usize>,
    /// Whether the head of the outer array was written.
    has_head: bool,
}

impl Columns {
    pub fn new(options: EncodeOptions, total: Option<usize>) -> Self {
        let node = Node::Empty;
        Self { node, options, rows: 0, written: 0, check_at: 1, total, has_head: false }
    }

    /// Adds the first element. `None` if it is so large that the sequence should be written as rows.
    pub fn first<O: Target, T: Serialize + ?Sized>(
        mut self,
        writer: &mut Writer<O>,
        value: &T,
    ) -> Result<Option<Self>> {
        let result = self.node.put(value, At { level: 0, options: &self.options });
        if self.node.has_large_tensor() {
            return Ok(None);
        }
        match result {
            Ok(()) => self.rows = 1,
            Err(error) => self.add_misfit(writer, value, error)?,
        }
        Ok((self.node.size() <= LARGE_ROW).then_some(self))
    }

    /// Adds an element.
    #[inline(always)]
    pub fn push<O: Target, T: Serialize + ?Sized>(
        &mut self,
        writer: &mut Writer<O>,
        value: &T,
    ) -> Result<()> {
        match self.node.put(value, At { level: 0, options: &self.options }) {
            Ok(()) => self.rows += 1,
            Err(error) => self.add_misfit(writer, value, error)?,
        }
        if self.rows >= self.check_at {
            self.check(writer)?;
        }
        Ok(())
    }

    /// Ends the group if it is large enough.
    #[cold]
    #[inline(never)]
    fn check<O: Target>(&mut self, writer: &mut Writer<O>) -> Result<()> {
        if self.total.is_some_and(|total| self.written + self.rows > total) {
            let index = self.total.unwrap_or(usize::MAX) as u64;
            return Err(Error::data("more elements than were announced").in_index(index));
        }
        let size = self.node.size();
        if self.rows >= MAX_ROWS || size >= MAX_BYTES {
            let is_last = self.total == Some(self.written + self.rows);
            return if is_last { Ok(()) } else { self.end_group(writer, false) };
        }
        let room = (MAX_BYTES - size) / (2 * size / self.rows.max(1)).max(1);
        self.check_at = (self.rows + room.max(1)).min(MAX_ROWS);
        // So that too many elements are noticed.
        if let Some(total) = self.total {
            self.check_at = self.check_at.min((total - self.written).max(self.rows) + 1);
        }
        Ok(())
    }

    /// Adds an element that did not fit into the columns.
    #[cold]
    #[inline(never)]
    fn add_misfit<O: Target, T: Serialize + ?Sized>(
        &mut self,
        writer: &mut Writer<O>,
        value: &T,
        mut error: Error,
    ) -> Result<()> {
        // Each turn changes at least one column for good.
        while self.node.has_misfit() {
            self.node.truncate(self.rows);
            if self.rows > 0 {
                self.end_group(writer, false)?;
            }
            self.node.settle();
            match self.node.put(value, At { level: 0, options: &self.options }) {
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
    fn end_group<O: Target>(&mut self, writer: &mut Writer<O>, is_last: bool) -> Result<()> {
        if !self.has_head {
            self.has_head = true;
            // The tag and the array.
            writer.enter(2)?;
            writer.sink.head(head::TAG, tag::COLUMNS)?;
            writer.sink.container(head::ARRAY, is_last.then_some(2))?;
        }
        if self.node.rows() != self.rows {
            return Err(inconsistent());
        }
        writer.sink.reserve(self.node.size())?;
        writer.sink.head(head::UNSIGNED, self.rows as u64)?;
        emit::column(writer, &self.node, self.rows)?;
        self.node.truncate(0);
        self.written += self.rows;
        self.rows = 0;
        self.check_at = 1;
        Ok(())
    }

    pub fn finish<O: Target>(mut self, writer: &mut Writer<O>) -> Result<()> {
        let left = self.total.map_or(0, |total| total.saturating_sub(self.written + self.rows));
        if left != 0 {
            return Err(Error::data(format!("{left} fewer elements than were announced")));
        }
        let is_only = !self.has_head;
        if self.rows > 0 {
            self.end_group(writer, is_only)?;
        }
        if !is_only {
            writer.sink.put([head::BREAK])?;
        }
        writer.leave(2)
    }
}

/// The columns do not have the same number of rows.
#[cold]
fn inconsistent() -> Error {
    Error::data("a value's `Serialize` went on after an error, or left a value out")
}
