//! The remaining part of the limits of a document, which is used up while rows are read.

use std::cell::Cell;

use crate::error::{Error, Result};
use crate::options::Limits;

/// The number of rows without bytes that a document may announce (`SPEC.md`, section 7).
pub const MAX_FREE_ROWS: u64 = 1 << 24;

/// The number of bytes that each byte of a column may expand to in a [`Value`](crate::Value). In the worst case that is
/// not made on purpose, a bool of one bit becomes an entry of a map with the name of the field.
const EXPANSION: u64 = 4096;

/// The number of bytes that all columns of a document may expand to, whatever their length is.
const FREE_EXPANSION: u64 = 64 << 20;

/// The number of bytes that each byte of a column may expand to in elements of collections. A row can take a single bit.
/// So this allows elements of up to 4 KiB.
const ROW_EXPANSION: u64 = 8 * 4096;

/// The number of bytes that each byte of a column may expand to where a row of a dict occurs more than once. It is that of
/// compressed buffers.
const REPETITION: u64 = 1024;

/// The remaining part of the limits of a document. While rows are read, the [`Reader`](super::super::reader::Reader) of
/// the document does not move, and the memory for rows is counted here instead.
#[derive(Clone, Debug)]
pub struct Allowance {
    pub limits: Limits,
    /// Whether the document is the metadata of a segment.
    pub strict: bool,
    /// The number of bytes that may still be allocated.
    pub budget: Cell<u64>,
    pub scope: Cell<Scope>,
}

/// The part of an [`Allowance`] that only columns use up.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// The number of rows without bytes that may still be announced.
    free_rows: u64,
    /// The number of bytes that the nodes of a [`Value`](crate::Value) from columns may still take. By default, there
    /// is no limit on the memory for a document in a slice, because the length of the slice limits it. But the rows of
    /// columns can take more memory than their bytes.
    expansion: u64,
    /// The number of bytes that elements of collections may still take, if no limit on memory was set. Rows that take no
    /// bytes would otherwise become elements of any size.
    elements: u64,
    /// The number of bytes that rows of dicts may still take.
    repeated: u64,
}

impl Default for Scope {
    fn default() -> Self {
        let (free_rows, expansion) = (MAX_FREE_ROWS, FREE_EXPANSION);
        Self { free_rows, expansion, elements: FREE_EXPANSION, repeated: FREE_EXPANSION }
    }
}

impl Scope {
    /// Counts rows that take no bytes.
    pub fn take_free_rows(&mut self, rows: usize) -> Result<()> {
        match self.free_rows.checked_sub(rows as u64) {
            Some(left) => {
                self.free_rows = left;
                Ok(())
            }
            None => Err(Error::limit(format!(
                "columns announce {rows} more rows that take no bytes; a document may have at most {MAX_FREE_ROWS}"
            ))),
        }
    }

    /// Counts bytes of columns. They allow more memory for values.
    pub fn add_bytes(&mut self, bytes: usize) {
        let more = (bytes as u64).saturating_mul(EXPANSION);
        self.expansion = self.expansion.saturating_add(more);
        let more = (bytes as u64).saturating_mul(ROW_EXPANSION);
        self.elements = self.elements.saturating_add(more);
        let more = (bytes as u64).saturating_mul(REPETITION);
        self.repeated = self.repeated.saturating_add(more);
    }

    /// Counts the bytes of rows that are stored once and occur more than once.
    pub fn take_repeated(&mut self, bytes: u64) -> Result<()> {
        self.repeated = self.repeated.checked_sub(bytes).ok_or_else(|| {
            Error::limit(format!(
                "the rows of dicts take {bytes} more bytes; all of them together may take 64 MiB plus {REPETITION} times as many bytes as the columns"
            ))
        })?;
        Ok(())
    }

    fn expand(&mut self, bytes: u64) -> Result<()> {
        match self.expansion.checked_sub(bytes) {
            Some(left) => {
                self.expansion = left;
                Ok(())
            }
            None => Err(Error::limit(format!(
                "the rows of columns take more than {EXPANSION} times as many bytes as the columns"
            ))),
        }
    }
}

impl Allowance {
    /// Copies the state of `other`.
    pub fn take_over(&self, other: &Self) {
        self.budget.set(other.budget.get());
        self.scope.set(other.scope.get());
    }

    /// Subtracts bytes that are about to be allocated for a row.
    pub fn charge(&self, bytes: u64) -> Result<()> {
        let left = self.budget.get();
        match left.checked_sub(bytes) {
            Some(left) => {
                self.budget.set(left);
                Ok(())
            }
            None => Err(Error::limit(format!(
                "cannot allocate {bytes} more bytes, {left} are left of the limit"
            ))),
        }
    }

    /// Counts elements of `size` bytes that rows are about to become. They are part of a limit on memory that was set.
    pub fn take_elements(&self, rows: usize, size: usize) -> Result<()> {
        let bytes = (rows as u64).saturating_mul(size as u64);
        if self.limits.max_alloc().is_some() {
            return self.charge(bytes);
        }
        let mut scope = self.scope.get();
        scope.elements = scope.elements.checked_sub(bytes).ok_or_else(|| {
            Error::limit(format!(
                "{rows} more elements of {size} bytes: all elements together would take more than 64 MiB plus {ROW_EXPANSION} times as many bytes as the columns"
            ))
        })?;
        self.scope.set(scope);
        Ok(())
    }

    /// Subtracts bytes that are about to be allocated for a node of a [`Value`](crate::Value).
    pub fn charge_node(&self, bytes: u64) -> Result<()> {
        self.charge(bytes)?;
        let mut scope = self.scope.get();
        scope.expand(bytes)?;
        self.scope.set(scope);
        Ok(())
    }
}
