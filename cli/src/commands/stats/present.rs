//! Reads the numbers of a column in which rows can be null.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use tenarc::{DType, Value};

use crate::elements;

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

    /// Returns whether all rows are null or numbers of `dtype`. Where rows did not fit into a column, a group holds them
    /// one by one, and does not say what they are.
    pub fn is_of(&self, dtype: &DType) -> bool {
        if self.has_others {
            return false;
        }
        match range(dtype) {
            Some(range) => {
                self.floats.is_empty() && self.whole().all(|number| range.contains(&number))
            }
            None => self.integers.is_empty() && self.large.is_empty(),
        }
    }

    fn whole(&self) -> impl Iterator<Item = i128> {
        let integers = self.integers.iter().map(|&number| number.into());
        integers.chain(self.large.iter().map(|&number| number.into()))
    }

    /// Returns the dtype of the elements in [`blocks`](Self::blocks), for a column of `dtype`. Floats of all widths are
    /// `f64` there.
    pub fn dtype(dtype: &DType) -> DType {
        if elements::is_integer(dtype) { dtype.clone() } else { DType::F64 }
    }

    /// Calls `each` with blocks of elements, as little-endian bytes, for a column of `dtype`.
    pub fn blocks(&self, dtype: &DType, each: &mut dyn FnMut(&[u8])) {
        const BLOCK: usize = 1 << 12;
        let mut bytes = Vec::new();
        for block in self.floats.chunks(BLOCK) {
            bytes.clear();
            bytes.extend(block.iter().flat_map(|number| number.to_le_bytes()));
            each(&bytes);
        }
        let size = elements::size(dtype).unwrap_or_default();
        let mut whole = self.whole().peekable();
        while whole.peek().is_some() {
            bytes.clear();
            let block = whole.by_ref().take(BLOCK);
            bytes.extend(block.flat_map(|number| number.to_le_bytes().into_iter().take(size)));
            each(&bytes);
        }
    }
}

/// The integers that an integer dtype can hold.
fn range(dtype: &DType) -> Option<RangeInclusive<i128>> {
    Some(match dtype {
        DType::Bool => 0..=1,
        DType::U8 => 0..=u8::MAX.into(),
        DType::U16 => 0..=u16::MAX.into(),
        DType::U32 => 0..=u32::MAX.into(),
        DType::U64 => 0..=u64::MAX.into(),
        DType::I8 => i8::MIN.into()..=i8::MAX.into(),
        DType::I16 => i16::MIN.into()..=i16::MAX.into(),
        DType::I32 => i32::MIN.into()..=i32::MAX.into(),
        DType::I64 => i64::MIN.into()..=i64::MAX.into(),
        _ => return None,
    })
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
