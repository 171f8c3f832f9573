//! The types that columns can name (`SPEC.md`, section 7.2), as types of Arrow.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BinaryArray, Decimal128Array, Decimal256Array, FixedSizeBinaryArray,
    PrimitiveArray, make_array,
};
use arrow_buffer::i256;
use arrow_schema::{ArrowError, DataType, TimeUnit};
use tenarc::{DType, Error, Result, Value};

/// The names of types that the format does not have, and Arrow has.
pub const DATE64: &str = "arrow.date64";
pub const FIXED: &str = "arrow.fixed_size_binary";

/// What the numbers or bytes of a column mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// An empty zone is a clock that is not known.
    Timestamp(TimeUnit, Arc<str>),
    Date,
    Time(TimeUnit),
    Duration(TimeUnit),
    Decimal(u8, i8),
    Uuid,
    /// Milliseconds that are whole days.
    Date64,
    /// Byte strings of this length.
    Fixed(i32),
    /// What Parquet has no type for, in the nearest type that it has: seconds in milliseconds, and [`Date64`](Self::Date64)
    /// in days.
    InParquet(Box<Self>),
}

/// What a column of a named type stores.
pub enum Storage<'a> {
    Number(&'a DType),
    /// Byte strings, of this length if all have it.
    Bytes(Option<usize>),
}

impl Named {
    /// The type of this name. `None` if the name is not known, or the parameters or the column break its rules: then the
    /// rows are those of the column.
    pub fn of(name: &str, parameters: &[Value], storage: &Storage<'_>) -> Option<Self> {
        let named = match (name, parameters) {
            ("timestamp", [unit, Value::Text(zone)]) => {
                Self::Timestamp(time_unit(unit)?, zone.as_str().into())
            }
            ("date", []) => Self::Date,
            ("time", [unit]) => Self::Time(time_unit(unit)?),
            ("duration", [unit]) => Self::Duration(time_unit(unit)?),
            ("decimal", [Value::Integer(precision), Value::Integer(scale)]) => {
                let precision =
                    u8::try_from(*precision).ok().filter(|digits| (1..=76).contains(digits))?;
                let scale = i8::try_from(*scale)
                    .ok()
                    .filter(|scale| i16::from(*scale) <= i16::from(precision))?;
                Self::Decimal(precision, scale)
            }
            ("uuid", []) => Self::Uuid,
            (DATE64, []) => Self::Date64,
            (FIXED, [Value::Integer(len)]) => Self::Fixed(i32::try_from(*len).ok()?),
            _ => return None,
        };
        let fits = match (&named, storage) {
            (Self::Uuid, Storage::Bytes(len)) => *len == Some(16),
            (Self::Fixed(size), Storage::Bytes(len)) => *len == usize::try_from(*size).ok(),
            (Self::Decimal(..), Storage::Bytes(len)) => {
                len.is_some_and(|len| (1..=32).contains(&len))
            }
            (Self::Uuid | Self::Fixed(_) | Self::InParquet(_), Storage::Number(_))
            | (_, Storage::Bytes(_)) => false,
            (Self::Date, Storage::Number(dtype)) => fits_i32(dtype),
            (_, Storage::Number(dtype)) => {
                fits_i32(dtype) || matches!(dtype, DType::U32 | DType::I64)
            }
        };
        fits.then_some(named)
    }

    /// The type of the numbers, before they get this type.
    pub fn number(&self) -> DType {
        match self {
            Self::Date | Self::Time(TimeUnit::Second | TimeUnit::Millisecond) => DType::I32,
            Self::InParquet(stored) => stored.number(),
            _ => DType::I64,
        }
    }

    /// Changes a type that Parquet does not have to the nearest one that it has.
    pub fn change_for_parquet(&mut self) {
        if matches!(
            self,
            Self::Timestamp(TimeUnit::Second, _) | Self::Time(TimeUnit::Second) | Self::Date64
        ) {
            *self = Self::InParquet(Box::new(std::mem::replace(self, Self::Date)));
        }
    }

    pub fn data_type(&self) -> DataType {
        match self {
            Self::Timestamp(unit, zone) => {
                DataType::Timestamp(*unit, (!zone.is_empty()).then(|| zone.clone()))
            }
            Self::Date => DataType::Date32,
            Self::Time(unit @ (TimeUnit::Second | TimeUnit::Millisecond)) => {
                DataType::Time32(*unit)
            }
            Self::Time(unit) => DataType::Time64(*unit),
            Self::Duration(unit) => DataType::Duration(*unit),
            Self::Decimal(precision @ ..=38, scale) => DataType::Decimal128(*precision, *scale),
            Self::Decimal(precision, scale) => DataType::Decimal256(*precision, *scale),
            Self::Uuid => DataType::FixedSizeBinary(16),
            Self::Date64 => DataType::Date64,
            Self::Fixed(len) => DataType::FixedSizeBinary(*len),
            Self::InParquet(stored) => match stored.data_type() {
                DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Millisecond, zone),
                DataType::Time32(_) => DataType::Time32(TimeUnit::Millisecond),
                _ => DataType::Date32,
            },
        }
    }

    /// Gives numbers or byte strings this type.
    pub fn array(&self, values: &ArrayRef) -> Result<ArrayRef> {
        match self {
            Self::Uuid => fixed(16, values),
            Self::Fixed(len) => fixed(*len, values),
            Self::Decimal(precision, scale) => {
                let numbers = integers(values)?;
                Ok(if *precision <= 38 {
                    let numbers = numbers.into_iter().map(|number| {
                        number.to_i128().ok_or_else(|| {
                            Error::data("a decimal has more digits than its precision")
                        })
                    });
                    let array =
                        Decimal128Array::from_iter_values(numbers.collect::<Result<Vec<_>>>()?);
                    Arc::new(array.with_precision_and_scale(*precision, *scale).map_err(damaged)?)
                } else {
                    let array = Decimal256Array::from_iter_values(numbers);
                    Arc::new(array.with_precision_and_scale(*precision, *scale).map_err(damaged)?)
                })
            }
            Self::InParquet(_) => {
                let numbers: Option<ArrayRef> = match self.data_type() {
                    DataType::Date32 => {
                        let days = |count: i64| i32::try_from(count.div_euclid(DAY)).ok();
                        converted::<Int64Type, Int32Type>(values, days)
                    }
                    DataType::Time32(_) => {
                        converted::<Int32Type, Int32Type>(values, |count| count.checked_mul(1000))
                    }
                    _ => converted::<Int64Type, Int64Type>(values, |count| count.checked_mul(1000)),
                };
                let numbers = numbers.ok_or_else(|| {
                    Error::limit(format!("a time does not fit in {}", self.data_type()))
                })?;
                of_numbers(&numbers, self.data_type())
            }
            // The numbers are stored in the same way.
            _ => of_numbers(values, self.data_type()),
        }
    }
}

/// The milliseconds of a day.
const DAY: i64 = 86_400_000;

/// Gives numbers another type of the same width.
fn of_numbers(values: &ArrayRef, of: DataType) -> Result<ArrayRef> {
    Ok(make_array(values.to_data().into_builder().data_type(of).build().map_err(damaged)?))
}

/// Converts numbers, of which none is null. `None` if one of them cannot be converted.
fn converted<P: ArrowPrimitiveType, Q: ArrowPrimitiveType>(
    values: &ArrayRef,
    convert: impl Fn(P::Native) -> Option<Q::Native>,
) -> Option<ArrayRef> {
    let numbers = values.as_primitive_opt::<P>()?.values().iter();
    let numbers = numbers.map(|number| convert(*number)).collect::<Option<Vec<_>>>()?;
    Some(Arc::new(PrimitiveArray::<Q>::from_iter_values(numbers)))
}

/// Byte strings of this length, of which none is null.
fn fixed(len: i32, values: &ArrayRef) -> Result<ArrayRef> {
    let bytes = binary(values)?.values().clone();
    let array = FixedSizeBinaryArray::try_new_with_len(len, bytes, None, values.len());
    Ok(Arc::new(array.map_err(damaged)?))
}

fn fits_i32(dtype: &DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8 | DType::U16 | DType::I16 | DType::I32)
}

fn time_unit(unit: &Value) -> Option<TimeUnit> {
    Some(match unit.as_str()? {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

fn binary(values: &ArrayRef) -> Result<&BinaryArray> {
    values.as_binary_opt().ok_or_else(|| Error::damaged("expected byte strings, found numbers"))
}

/// The integers of decimals: numbers, or big-endian byte strings in two's complement.
fn integers(values: &ArrayRef) -> Result<Vec<i256>> {
    if let Some(numbers) = values.as_primitive_opt::<Int64Type>() {
        return Ok(numbers
            .values()
            .iter()
            .map(|number| i256::from_i128((*number).into()))
            .collect());
    }
    let integer = |row: Option<&[u8]>| {
        let row = row.unwrap_or_default();
        let sign = if row.first().is_some_and(|byte| *byte >= 0x80) { 0xff } else { 0 };
        let mut word = [sign; 32];
        let start = word.len().saturating_sub(row.len());
        if let Some(end) = word.get_mut(start..)
            && end.len() == row.len()
        {
            end.copy_from_slice(row);
        }
        i256::from_be_bytes(word)
    };
    Ok(binary(values)?.iter().map(integer).collect())
}

#[allow(clippy::needless_pass_by_value)]
fn damaged(error: ArrowError) -> Error {
    Error::damaged(error.to_string())
}
