//! Reads the numbers of a column in which rows can be null.

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use tenarc::{DType, Value};

use crate::elements::{self, Element};

/// The numbers of a column of optional numbers, and how many rows are null.
#[derive(Debug, Default)]
pub struct Present {
    pub nulls: u64,
    floats: Vec<f64>,
    integers: Vec<i64>,
    /// The integers that are too large for an `i64`.
    large: Vec<u64>,
    /// Whether a row is neither a number nor null.
    has_others: bool,
}

impl Present {
    pub fn count(&self) -> usize {
        self.floats.len() + self.integers.len() + self.large.len()
    }

    /// Returns a dtype that holds the numbers, for rows that do not tell their own.
    pub fn dtype(&self) -> DType {
        match (self.floats.is_empty(), self.large.is_empty()) {
            (false, _) => DType::F64,
            (true, false) => DType::U64,
            (true, true) => DType::I64,
        }
    }

    /// Returns the numbers as little-endian elements of `dtype`. `None` if a row is something else. Where rows did not fit
    /// into a column, a group holds them one by one, and does not say what they are.
    pub fn elements(&self, dtype: &DType) -> Option<Vec<u8>> {
        let has_integers = !self.integers.is_empty() || !self.large.is_empty();
        let is_mixed =
            if elements::is_integer(dtype) { !self.floats.is_empty() } else { has_integers };
        if self.has_others || is_mixed {
            return None;
        }
        let integers = self.integers.iter().map(|&number| i128::from(number));
        let integers = integers.chain(self.large.iter().map(|&number| number.into()));
        let floats = self.floats.iter().map(|&number| Element::Float(number, 64));
        let mut bytes = Vec::new();
        for element in integers.map(Element::Int).chain(floats) {
            elements::put(element, dtype, &mut bytes)?;
        }
        Some(bytes)
    }
}

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Rows)
    }
}

struct Rows;

impl<'de> Visitor<'de> for Rows {
    type Value = Present;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a column")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Present, A::Error> {
        let mut found = Present::default();
        while let Some(row) = rows.next_element()? {
            match row {
                Value::Null => found.nulls += 1,
                Value::Bool(value) => found.integers.push(value.into()),
                Value::F32(value) => found.floats.push(value.into()),
                Value::F64(value) => found.floats.push(value),
                Value::Integer(value) => match (i64::try_from(value), u64::try_from(value)) {
                    (Ok(value), _) => found.integers.push(value),
                    (Err(_), Ok(value)) => found.large.push(value),
                    (Err(_), Err(_)) => found.has_others = true,
                },
                _ => found.has_others = true,
            }
        }
        Ok(found)
    }
}
