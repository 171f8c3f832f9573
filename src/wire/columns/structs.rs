//! Structs, whose fields are columns.

use std::borrow::Cow;

use super::{Column, Marks};

/// Structs.
pub struct Structs<'de> {
    pub fields: Vec<Field<'de>>,
}

impl<'de> Structs<'de> {
    pub fn new(fields: Vec<Field<'de>>) -> Self {
        Self { fields }
    }
}

/// A field of a struct.
pub struct Field<'de> {
    pub name: Cow<'de, str>,
    /// The rows that have this field. `None` if all have it.
    pub present: Option<Marks<'de>>,
    /// The values of the rows that have this field.
    pub column: Column<'de>,
}

impl Field<'_> {
    #[inline(always)]
    pub fn is_present(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| is_present(present, row))
    }

    /// The row of the column for a row of the struct that has this field.
    #[inline(always)]
    pub fn inner(&mut self, row: usize) -> usize {
        match &mut self.present {
            None => row,
            Some(present) => present.inner(row).unwrap_or_default(),
        }
    }
}

/// Not inlined, because most fields are in all rows.
#[inline(never)]
fn is_present(present: &Marks<'_>, row: usize) -> bool {
    present.get(row)
}
