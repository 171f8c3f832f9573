//! A row that is added to a column.

use crate::error::Error;
use crate::options::EncodeOptions;
use crate::ser::columns::builder::ColumnBuilder;

/// Adds one value to a column that is not [`ColumnBuilder::Items`] or [`ColumnBuilder::Present`].
pub struct RowSerializer<'a, 'o> {
    pub node: &'a mut ColumnBuilder,
    pub at: At<'o>,
}

impl ColumnBuilder {
    /// Notes that the column got a value that does not fit into it. The value is added again after [`ColumnBuilder::settle`].
    #[cold]
    #[inline(never)]
    pub fn misfit(&mut self) -> Error {
        let node = std::mem::take(self);
        *self = Self::Misfit(Box::new(node));
        does_not_fit()
    }
}

#[cold]
pub fn does_not_fit() -> Error {
    Error::data(
        "the values of a field have different types, and one does not fit into the column of those before",
    )
}

/// The level of a column, and the options for items.
#[derive(Clone, Copy)]
pub struct At<'o> {
    pub level: u32,
    pub options: &'o EncodeOptions,
}

impl At<'_> {
    #[inline]
    pub fn below(mut self) -> Self {
        self.level += 1;
        self
    }
}

/// Whether two names are equal. Mostly they are the same constant.
#[inline]
pub fn is_same(one: &'static str, other: &'static str) -> bool {
    std::ptr::eq(one, other) || is_equal(one, other)
}

#[cold]
#[inline(never)]
fn is_equal(one: &str, other: &str) -> bool {
    one == other
}
