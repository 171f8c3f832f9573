//! What rows are sorted by.

use std::cmp::Ordering;

use half::f16;

use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::number;
use crate::value::{self, Value};
use crate::wire::columns::{Column, ColumnKind, ColumnNumbers, NumberType};
use crate::wire::head;

/// What a row is sorted by.
#[derive(Debug)]
pub enum Key {
    Bool(bool),
    Integer(i64),
    /// An integer that is greater than the others.
    Large(u64),
    /// A float that is a number.
    Float(f64),
    NotANumber,
    Text(Box<[u8]>),
    Bytes(Box<[u8]>),
    Null,
}

impl Key {
    fn of_float(value: f64) -> Self {
        if value.is_nan() { Self::NotANumber } else { Self::Float(value) }
    }

    fn of_number(numbers: &ColumnNumbers<'_>, row: usize) -> Self {
        match numbers.kind {
            NumberType::F16 => Self::of_float(f16::from_le_bytes(numbers.word(row)).into()),
            NumberType::F32 => Self::of_float(f32::from_le_bytes(numbers.word(row)).into()),
            NumberType::F64 => Self::of_float(f64::from_le_bytes(numbers.word(row))),
            _ => match numbers.integer(row) {
                Some(number) => Self::Integer(number),
                None => Self::Large(u64::from_le_bytes(numbers.word(row))),
            },
        }
    }

    fn of_value(value: Value) -> Option<Self> {
        Some(match value {
            Value::Null => Self::Null,
            Value::Simple(simple) if simple == head::UNDEFINED & 0x1f => Self::Null,
            Value::Bool(value) => Self::Bool(value),
            Value::Integer(value) => match (value.try_into(), value.try_into()) {
                (Ok(value), _) => Self::Integer(value),
                (_, Ok(value)) => Self::Large(value),
                _ => return None,
            },
            Value::F32(value) => Self::of_float(value.into()),
            Value::F64(value) => Self::of_float(value),
            Value::Text(text) => Self::Text(text.into_bytes().into()),
            Value::Bytes(bytes) => Self::Bytes(bytes.into()),
            Value::Tag(_, inner) => return Self::of_value(*inner),
            _ => return None,
        })
    }

    /// What can be compared with each other, in the order of sorted rows.
    fn class(&self) -> (u8, &'static str) {
        match self {
            Self::Bool(_) => (0, "a boolean"),
            Self::Integer(_) | Self::Large(_) | Self::Float(_) | Self::NotANumber => {
                (1, "a number")
            }
            Self::Text(_) => (2, "a text"),
            Self::Bytes(_) => (3, "a byte string"),
            Self::Null => (4, "null"),
        }
    }

    fn integer(&self) -> Option<i128> {
        match *self {
            Self::Integer(integer) => Some(integer.into()),
            Self::Large(integer) => Some(integer.into()),
            _ => None,
        }
    }

    /// Compares keys of one class. NaN comes after all numbers, and null comes last.
    pub fn compare(&self, other: &Self) -> Ordering {
        match (self.integer(), other.integer(), self, other) {
            (Some(one), Some(other), ..) => one.cmp(&other),
            (Some(integer), _, _, Self::Float(float)) => number::order(integer, *float),
            (_, Some(integer), Self::Float(float), _) => number::order(integer, *float).reverse(),
            (_, _, Self::Float(one), Self::Float(other)) => {
                one.partial_cmp(other).unwrap_or(Ordering::Equal)
            }
            (_, _, Self::Bool(one), Self::Bool(other)) => one.cmp(other),
            (_, _, Self::Text(one), Self::Text(other))
            | (_, _, Self::Bytes(one), Self::Bytes(other)) => one.cmp(other),
            _ => {
                let is_nan = |key: &Self| matches!(key, Self::NotANumber);
                self.class().cmp(&other.class()).then(is_nan(self).cmp(&is_nan(other)))
            }
        }
    }
}

/// The keys of a column, which must be of one class.
#[derive(Default)]
pub struct Keys {
    class: Option<(u8, &'static str)>,
}

impl Keys {
    /// Calls `each` with the key of each row.
    ///
    /// # Errors
    /// If a value cannot be compared with the others.
    pub fn of_column(
        &mut self,
        column: &mut Column<'_>,
        rows: usize,
        budget: &Budget,
        each: &mut dyn FnMut(Key),
    ) -> Result<()> {
        for row in 0..rows {
            let before = budget.held();
            let key = key_of(column, row, budget).map_err(|error| error.at(column.at))?;
            budget.release(before);
            if !matches!(key, Key::Null) {
                let class = key.class();
                let all = *self.class.get_or_insert(class);
                if class != all {
                    let (found, others) = (class.1, all.1);
                    let what =
                        format!("cannot sort by a column in which {found} is beside {others}");
                    return Err(Error::unsupported(what).at(column.at));
                }
            }
            each(key);
        }
        Ok(())
    }
}

fn key_of(column: &mut Column<'_>, row: usize, budget: &Budget) -> Result<Key> {
    let (column, row) = column.innermost(row);
    Ok(match &mut column.kind {
        ColumnKind::Unit | ColumnKind::Optional(_) => Key::Null,
        ColumnKind::Numbers(numbers) => Key::of_number(numbers, row),
        ColumnKind::Bools(bits) => Key::Bool(bits.get(row)),
        ColumnKind::Texts(cuts, texts) => {
            Key::Text(texts.as_str().as_bytes().get(cuts.range(row)).unwrap_or_default().into())
        }
        ColumnKind::Bytes(cuts, data) => {
            Key::Bytes(data.as_slice().get(cuts.range(row)).unwrap_or_default().into())
        }
        ColumnKind::Enums(enums) => {
            let name = enums.names.get(enums.code(row));
            Key::Text(name.map_or("", |name| &**name).as_bytes().into())
        }
        ColumnKind::Items(_) => {
            let value = value::read_row(column, row, budget)?;
            Key::of_value(value).ok_or_else(|| not_sorted("another value"))?
        }
        kind => return Err(not_sorted(kind.name())),
    })
}

#[cold]
fn not_sorted(found: &str) -> Error {
    let what = format!(
        "expected a column of numbers, texts, byte strings, bools or enums to sort by, found rows such as {found}"
    );
    Error::unsupported(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_compared_exactly() {
        let sorted = [
            Key::Float(f64::NEG_INFINITY),
            Key::Integer(i64::MIN),
            Key::Float(-1.5),
            Key::Integer(-1),
            Key::Float(-0.5),
            Key::Integer(0),
            Key::Float(0.5),
            Key::Integer((1 << 53) + 1),
            Key::Float(9_007_199_254_740_994.0),
            Key::Integer(i64::MAX),
            Key::Float(9_223_372_036_854_775_808.0),
            Key::Large((1 << 63) + 1),
            Key::Float(1e300),
            Key::NotANumber,
            Key::Null,
        ];
        for (at, one) in sorted.iter().enumerate() {
            for (other_at, other) in sorted.iter().enumerate() {
                assert_eq!(one.compare(other), at.cmp(&other_at), "{one:?} {other:?}");
            }
        }
    }
}
