//! Tells which tuples are written as arrays (`SPEC.md`, section 7).

use std::fmt;

use super::{Column, ColumnKind, NumberType, RowLengths};

/// What rows are that consist of numbers of one type, or of bools.
pub struct Uniform {
    /// The type of the numbers. `None` if they are bools.
    pub of: Option<NumberType>,
    /// The lengths of the arrays that each row is, outermost first.
    pub dims: Vec<usize>,
}

impl Uniform {
    pub fn single(of: Option<NumberType>) -> Self {
        Self { of, dims: Vec::new() }
    }

    /// Arrays of `len` such rows.
    pub fn in_array(mut self, len: usize) -> Self {
        self.dims.insert(0, len);
        self
    }

    /// What the rows of a column are.
    pub fn of(column: &Column<'_>) -> Option<Self> {
        match &column.kind {
            _ if column.of.is_some() => None,
            ColumnKind::Numbers(numbers) => Some(Self::single(Some(numbers.kind))),
            ColumnKind::Bools(_) => Some(Self::single(None)),
            ColumnKind::Lists(lists) => match lists.0.lengths() {
                RowLengths::Same(len) => Some(Self::of(&lists.1)?.in_array(*len)),
                RowLengths::Each(..) => None,
            },
            _ => None,
        }
    }

    /// What tuples with these elements are: arrays, if all elements have one shape, and are bools or have types that
    /// one type holds.
    pub fn of_tuple(elements: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        let mut len = 0;
        let mut all: Option<Self> = None;
        for element in elements {
            let element = element?;
            len += 1;
            let of = match all.as_ref().map(|all| all.of) {
                None => element.of,
                Some(of) => match (of, element.of) {
                    (Some(one), Some(other)) => Some(one.holding(other)?),
                    (None, None) => None,
                    _ => return None,
                },
            };
            if all.is_some_and(|all| all.dims != element.dims) {
                return None;
            }
            all = Some(Self { of, ..element });
        }
        Some(all?.in_array(len))
    }
}

impl fmt::Display for Uniform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.dims.len() > 1 {
            f.write_str("arrays of one shape of ")?;
        }
        match self.of {
            Some(of) => write!(f, "numbers that one type holds, {}", of.dtype()),
            None => f.write_str("bools"),
        }
    }
}
