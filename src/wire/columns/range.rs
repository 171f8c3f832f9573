//! Which rows of a column are read.

use std::ops::Range;

/// The rows of a column, and which of them are wanted.
#[derive(Clone, Copy)]
pub struct RowRange {
    pub all: usize,
    pub start: usize,
    pub end: usize,
}

impl RowRange {
    pub fn whole(all: usize) -> Self {
        Self { all, start: 0, end: all }
    }

    /// The number of rows that are wanted.
    pub fn len(self) -> usize {
        self.end - self.start
    }

    pub fn is_whole(self) -> bool {
        self.len() == self.all
    }

    /// The bytes of the wanted rows, if each row takes `width` bytes. `None` if these are all. The caller has checked
    /// that all rows fit in memory.
    pub fn of_width(self, width: usize) -> Option<Range<usize>> {
        (!self.is_whole()).then(|| self.start * width..self.end * width)
    }

    pub fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

impl From<RowRange> for usize {
    fn from(rows: RowRange) -> Self {
        rows.len()
    }
}
