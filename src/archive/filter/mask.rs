//! Tests all rows of a column at once.

use std::borrow::Cow;

use half::f16;

use super::test::{Ranges, StringTest, Test};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::value::{self, Value};
use crate::wire::columns::{Column, ColumnKind, ColumnNumbers, NumberType, RowLengths};
use crate::wire::{head, tag};

/// The simple value that is undefined.
const UNDEFINED: u8 = head::UNDEFINED & 0x1f;

/// A test, or the opposite of it.
#[derive(Clone, Copy)]
pub struct Asked<'t> {
    pub test: &'t Test,
    pub is_opposite: bool,
}

impl Asked<'_> {
    /// For each row of a column, whether the answer is yes.
    ///
    /// # Errors
    /// If the values are of another kind than what they are compared with.
    pub fn of_rows(
        self,
        column: &mut Column<'_>,
        rows: usize,
        allowance: &Budget,
    ) -> Result<Vec<bool>> {
        allowance.charge(rows as u64)?;
        let at = column.at;
        Ok(match &mut column.kind {
            ColumnKind::Unit => vec![self.of_null(); rows],
            ColumnKind::Optional(optional) => {
                let present = optional.marks.count(rows);
                let inside = self.of_rows(&mut optional.column, present, allowance)?;
                let mut inside = inside.into_iter();
                let of_null = self.of_null();
                let marks = (0..rows).map(|row| optional.marks.get(row));
                marks
                    .map(|is_some| if is_some { inside.next() == Some(true) } else { of_null })
                    .collect()
            }
            ColumnKind::Dict(dict) => {
                // Each distinct row is tested once.
                let count = (0..rows).map(|row| dict.inner(row) + 1).max().unwrap_or_default();
                let answers = self.of_rows(&mut dict.column, count, allowance)?;
                by_code(&answers, (0..rows).map(|row| dict.inner(row)))
            }
            ColumnKind::Items(_) => {
                let mut answers = Vec::with_capacity(rows);
                for row in 0..rows {
                    let before = allowance.held();
                    let answer = value::read_row(column, row, allowance)
                        .and_then(|value| self.of_value(&value));
                    answers.push(answer?);
                    allowance.release(before);
                }
                answers
            }
            _ if matches!(self.test, Test::Null) => vec![self.is_opposite; rows],
            ColumnKind::Numbers(numbers) => {
                self.of_numbers(numbers).ok_or_else(|| self.mismatch("number").at(at))?
            }
            ColumnKind::Bools(bits) => {
                let [no, yes] = self.test.bools().ok_or_else(|| self.mismatch("boolean").at(at))?;
                let answer = |row| if bits.get(row) { yes } else { no };
                (0..rows).map(|row| answer(row) != self.is_opposite).collect()
            }
            ColumnKind::Texts(cuts, texts) => {
                let test = self.strings(true).map_err(|error| error.at(at))?;
                self.of_strings(&test, cuts.lengths(), texts.as_str().as_bytes(), rows)
            }
            ColumnKind::Bytes(cuts, bytes) => {
                let test = self.strings(false).map_err(|error| error.at(at))?;
                self.of_strings(&test, cuts.lengths(), bytes.as_slice(), rows)
            }
            ColumnKind::Enums(enums) => {
                let test = self.strings(true).map_err(|error| error.at(at))?;
                let answer = |name: &Cow<'_, str>| test.is_met(name.as_bytes()) != self.is_opposite;
                let answers: Vec<_> = enums.names.iter().map(answer).collect();
                by_code(&answers, (0..rows).map(|row| enums.code(row)))
            }
            kind => return Err(self.mismatch(kind.name()).at(at)),
        })
    }

    fn of_null(self) -> bool {
        matches!(self.test, Test::Null) && !self.is_opposite
    }

    fn strings(&self, are_texts: bool) -> Result<StringTest<'_>> {
        let found = if are_texts { "text string" } else { "byte string" };
        self.test.strings(are_texts).ok_or_else(|| self.mismatch(found))
    }

    fn of_strings(
        self,
        test: &StringTest<'_>,
        lengths: &RowLengths<'_>,
        all: &[u8],
        rows: usize,
    ) -> Vec<bool> {
        let mut start = 0;
        let mut next = |row| {
            let end = start + lengths.get(row);
            let string = all.get(start..end).unwrap_or_default();
            start = end;
            test.is_met(string) != self.is_opposite
        };
        (0..rows).map(&mut next).collect()
    }

    /// `None` if it is no test of numbers.
    fn of_numbers(self, numbers: &ColumnNumbers<'_>) -> Option<Vec<bool>> {
        macro_rules! by_type {
            ($($kind:ident $type:ty;)*) => {
                match numbers.kind {
                    $(NumberType::$kind => {
                        let range = |(start, end)| {
                            let start = i128::max(start, <$type>::MIN.into()).try_into().ok()?;
                            let end = i128::min(end, <$type>::MAX.into()).try_into().ok()?;
                            (start <= end).then_some((start, end))
                        };
                        let ranges = self.test.integers()?.0.into_iter().filter_map(range);
                        self.of_words(numbers, <$type>::from_le_bytes, &Ranges(ranges.collect()))
                    })*
                    NumberType::F16 => {
                        let wide = |word| f64::from(f16::from_le_bytes(word));
                        self.of_words(numbers, wide, &self.test.floats()?)
                    }
                    NumberType::F32 => {
                        let wide = |word| f64::from(f32::from_le_bytes(word));
                        self.of_words(numbers, wide, &self.test.floats()?)
                    }
                    NumberType::F64 => {
                        self.of_words(numbers, f64::from_le_bytes, &self.test.floats()?)
                    }
                }
            };
        }
        Some(by_type! {
            U8 u8; U16 u16; U32 u32; U64 u64; I8 i8; I16 i16; I32 i32; I64 i64;
        })
    }

    fn of_words<const N: usize, T: Copy + PartialOrd>(
        self,
        numbers: &ColumnNumbers<'_>,
        number: impl Fn([u8; N]) -> T,
        ranges: &Ranges<T>,
    ) -> Vec<bool> {
        let (words, _) = numbers.bytes().as_chunks();
        let numbers = words.iter().map(|word| number(*word));
        match &*ranges.0 {
            // The processor tests many numbers at once.
            [(start, end)] => numbers
                .map(|number| (*start <= number && number <= *end) != self.is_opposite)
                .collect(),
            _ => numbers.map(|number| ranges.contain(number) != self.is_opposite).collect(),
        }
    }

    /// The answer for one value.
    fn of_value(self, value: &Value) -> Result<bool> {
        let is_met = match value {
            Value::Null | Value::Simple(UNDEFINED) => return Ok(self.of_null()),
            Value::Tag(tag, inner) if !matches!(*tag, tag::BIGNUM | tag::NEGATIVE_BIGNUM) => {
                return self.of_value(inner);
            }
            _ if matches!(self.test, Test::Null) => Some(false),
            Value::Integer(value) => self.test.integers().map(|ranges| ranges.contain(*value)),
            Value::F32(value) => self.test.floats().map(|ranges| ranges.contain((*value).into())),
            Value::F64(value) => self.test.floats().map(|ranges| ranges.contain(*value)),
            Value::Bool(value) => self.test.bools().map(|[no, yes]| if *value { yes } else { no }),
            Value::Text(text) => self.test.strings(true).map(|test| test.is_met(text.as_bytes())),
            Value::Bytes(bytes) => self.test.strings(false).map(|test| test.is_met(bytes)),
            // A variant with content.
            Value::Map(entries) => match &**entries {
                [(Value::Text(name), _)] => {
                    self.test.strings(true).map(|test| test.is_met(name.as_bytes()))
                }
                _ => None,
            },
            _ => None,
        };
        let is_met = is_met.ok_or_else(|| {
            self.mismatch(match value {
                Value::Integer(_) | Value::F32(_) | Value::F64(_) => "number",
                Value::Bool(_) => "boolean",
                Value::Text(_) => "text string",
                Value::Bytes(_) => "byte string",
                Value::Map(_) => "map",
                Value::Array(_) | Value::Numbers(_) => "array",
                Value::Tensor(_) => "tensor",
                _ => "another value",
            })
        })?;
        Ok(is_met != self.is_opposite)
    }

    #[cold]
    fn mismatch(&self, found: &str) -> Error {
        let what = self.test.describe();
        Error::mismatch(format!(
            "expected values to compare with {what}, found a value such as {found}"
        ))
    }
}

/// The answers for rows, from those for their codes.
fn by_code(answers: &[bool], codes: impl Iterator<Item = usize>) -> Vec<bool> {
    codes.map(|code| answers.get(code).copied().unwrap_or_default()).collect()
}
