//! Structs, whose fields are columns.

use std::borrow::Cow;
use std::cell::Cell;

use super::{Column, Validity};

/// Structs.
pub struct Structs<'de> {
    pub fields: Vec<Field<'de>>,
    order: Cell<FieldOrder>,
}

/// What is known of the order in which fields are asked for.
#[derive(Clone, Copy)]
enum FieldOrder {
    /// Nobody has asked.
    Unknown,
    /// The names that were asked for last, and whether they are those of the fields, in this order.
    Known(Names, bool),
    /// A visitor did not take the fields in order.
    Refused,
}

/// The names of the fields of a type, which serde's derived code has in one place for all its values.
pub type Names = &'static [&'static str];

impl<'de> Structs<'de> {
    pub fn new(fields: Vec<Field<'de>>) -> Self {
        Self { fields, order: Cell::new(FieldOrder::Unknown) }
    }

    /// Whether the fields have these names, in this order, and all rows have all fields.
    #[inline]
    pub fn is_in_order(&self, names: Names) -> bool {
        match self.order.get() {
            FieldOrder::Known(last, is_in_order) if std::ptr::eq(last, names) => is_in_order,
            FieldOrder::Refused => false,
            _ => self.compare(names),
        }
    }

    #[cold]
    #[inline(never)]
    fn compare(&self, names: Names) -> bool {
        let fields = self.fields.iter();
        let is_in_order = self.fields.len() == names.len()
            && fields
                .zip(names)
                .all(|(field, name)| field.present.is_none() && field.name == *name);
        self.order.set(FieldOrder::Known(names, is_in_order));
        is_in_order
    }

    /// Notes that who asked last did not take the fields in order.
    pub fn refuse_order(&self) {
        self.order.set(FieldOrder::Refused);
    }
}

/// A field of a struct.
pub struct Field<'de> {
    pub name: Cow<'de, str>,
    /// The rows that have this field. `None` if all have it.
    pub present: Option<Validity<'de>>,
    /// The values of the rows that have this field.
    pub column: Column<'de>,
}

impl Field<'_> {
    #[inline]
    pub fn is_present(&self, row: usize) -> bool {
        self.present.as_ref().is_none_or(|present| is_present(present, row))
    }

    /// The row of the column for a row of the struct that has this field.
    #[inline]
    pub fn inner(&mut self, row: usize) -> usize {
        match &mut self.present {
            None => row,
            Some(present) => present.inner(row).unwrap_or_default(),
        }
    }
}

/// Not inlined, because most fields are in all rows.
#[inline(never)]
fn is_present(present: &Validity<'_>, row: usize) -> bool {
    present.get(row)
}
