//! Reads the numbers of a column in which rows can be null.

use std::fmt;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use tenarc::DType;

use crate::elements;

/// The numbers of a column of optional numbers, and how many rows are null.
#[derive(Debug, Default)]
pub struct Present {
    pub nulls: u64,
    /// The numbers of floats.
    floats: Vec<f64>,
    /// The numbers of integers and booleans.
    integers: Vec<i128>,
}

impl Present {
    pub fn count(&self) -> usize {
        self.floats.len() + self.integers.len()
    }

    /// Returns the dtype of the elements in [`blocks`](Self::blocks), for a column of `dtype`. Floats of all widths are
    /// `f64` there.
    pub fn dtype(dtype: &DType) -> DType {
        if elements::is_integer(dtype) { dtype.clone() } else { DType::F64 }
    }

    /// Calls `each` with blocks of elements, as little-endian bytes, for a column of `dtype`.
    pub fn blocks(&self, dtype: &DType, each: &mut dyn FnMut(&[u8])) {
        let size = elements::size(dtype).unwrap_or_default();
        for block in self.floats.chunks(BLOCK) {
            each(&block.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>());
        }
        for block in self.integers.chunks(BLOCK) {
            let low = |number: &i128| number.to_le_bytes().into_iter().take(size);
            each(&block.iter().flat_map(low).collect::<Vec<_>>());
        }
    }
}

/// The number of elements in a block.
const BLOCK: usize = 1 << 12;

impl<'de> Deserialize<'de> for Present {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Rows)
    }
}

struct Rows;

impl<'de> Visitor<'de> for Rows {
    type Value = Present;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a column of optional numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Present, A::Error> {
        let mut found = Present::default();
        while let Some(row) = rows.next_element()? {
            match row {
                Row::Null => found.nulls += 1,
                Row::Float(number) => found.floats.push(number),
                Row::Integer(number) => found.integers.push(number),
            }
        }
        Ok(found)
    }
}

enum Row {
    Null,
    Float(f64),
    Integer(i128),
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Numbers)
    }
}

struct Numbers;

impl<'de> Visitor<'de> for Numbers {
    type Value = Row;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number or null")
    }

    fn visit_unit<E>(self) -> Result<Row, E> {
        Ok(Row::Null)
    }

    fn visit_none<E>(self) -> Result<Row, E> {
        Ok(Row::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Row, D::Error> {
        Row::deserialize(deserializer)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Row, E> {
        Ok(Row::Integer(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Row, E> {
        Ok(Row::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Row, E> {
        Ok(Row::Integer(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Row, E> {
        Ok(Row::Float(value))
    }
}
