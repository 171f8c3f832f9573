//! The types of values in the metadata, and how values are encoded as these types.
//!
//! A value of an archive says that it is an integer, but not of which width, and llama.cpp reads each key as one type
//! only. So the types stand beside the values, in a map under [`KEY`]. A value can be changed in between, for example in
//! Python, so the writer uses a type only if it holds the value.

use std::collections::HashMap;
use std::fmt;

use tenarc::{Error, Result, Value};

use crate::elements::{Number, Numeric as _, each_number, is_typed};
use crate::saved::unpacked;

/// The key of a map in the metadata: from keys to the types of their values. GGUF has no maps, so no file has it.
pub const KEY: &str = "tenarc.gguf.types";

/// The names of the types, by their numbers in GGUF. Those of numbers are the names of dtypes.
pub const NAMES: [&str; 13] =
    ["u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "text", "array", "u64", "i64", "f64"];
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const BOOL: u32 = 7;
pub const TEXT: u32 = 8;
pub const ARRAY: u32 = 9;
const U64: u32 = 10;
const I64: u32 = 11;
const F64: u32 = 12;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// The number of a type that is not an array.
    One(u32),
    /// An array: the type of its elements. If the elements are arrays of different types, there is a type for each. For
    /// an inner array it is empty if the type is not known, because the outer array has no elements.
    Array(Vec<Type>),
}

impl Type {
    /// The type of an array whose elements have these types.
    pub fn array(mut elements: Vec<Self>) -> Self {
        match elements.first() {
            None => elements.push(Self::Array(Vec::new())),
            Some(first) if elements.iter().all(|element| element == first) => elements.truncate(1),
            _ => {}
        }
        Self::Array(elements)
    }

    pub fn number(&self) -> u32 {
        match self {
            Self::One(number) => *number,
            Self::Array(_) => ARRAY,
        }
    }

    /// Returns whether a value shows by itself that it has this type.
    fn is_plain(&self) -> bool {
        matches!(self, Self::One(BOOL | TEXT))
    }

    fn to_value(&self) -> Value {
        match self {
            Self::One(_) => Value::from(self.to_string()),
            Self::Array(elements) => Value::Array(elements.iter().map(Self::to_value).collect()),
        }
    }

    fn of_value(value: &Value) -> Option<Self> {
        match value {
            Value::Text(name) => {
                let number = NAMES.iter().position(|found| found == name)?;
                Some(Self::One(u32::try_from(number).ok().filter(|number| *number != ARRAY)?))
            }
            Value::Array(elements) => {
                let elements: Vec<_> =
                    elements.iter().map(Self::of_value).collect::<Option<_>>()?;
                let are_arrays = elements.iter().all(|element| matches!(element, Self::Array(_)));
                (elements.len() == 1 || are_arrays).then_some(Self::Array(elements))
            }
            _ => None,
        }
    }

    /// Chooses a type for a value: for integers the first of `u32`, `i32`, `u64` and `i64` that holds them.
    fn of(value: &Value) -> Result<Self> {
        Ok(Self::One(match value {
            Value::Bool(_) => BOOL,
            Value::Integer(value) => integer(*value, *value)?,
            Value::F32(_) => F32,
            Value::F64(_) => F64,
            Value::Text(_) => TEXT,
            Value::Array(values) => return Self::of_all(values),
            Value::Numbers(numbers) => {
                let values = unpacked(numbers).ok_or_else(|| {
                    Error::unsupported(format!("GGUF has no arrays of {}", numbers.dtype()))
                })?;
                return Self::of_all(&values);
            }
            Value::Tensor(tensor) => {
                let rank = tensor.shape().len();
                if rank != 1 {
                    let what =
                        format!("expected an array of one dimension, found {rank} dimensions");
                    return Err(Error::unsupported(what));
                }
                let number = NAMES.iter().position(|name| *name == tensor.dtype().name());
                let number = number.filter(|_| is_typed(tensor.dtype())).ok_or_else(|| {
                    Error::unsupported(format!("GGUF has no arrays of {}", tensor.dtype()))
                })?;
                return Ok(Self::Array(vec![Self::One(u32::try_from(number).unwrap_or(ARRAY))]));
            }
            _ => {
                return Err(Error::unsupported(
                    "expected a number, bool, text or array, because GGUF has no other values",
                ));
            }
        }))
    }

    /// Chooses a type for an array.
    fn of_all(values: &[Value]) -> Result<Self> {
        let integers = values.iter().map(|value| match value {
            Value::Integer(value) => Some(*value),
            _ => None,
        });
        if let Some(integers) = integers.collect::<Option<Vec<_>>>() {
            let least = integers.iter().min().copied().unwrap_or(0);
            let number = integer(least, integers.iter().max().copied().unwrap_or(0))?;
            return Ok(Self::Array(vec![Self::One(number)]));
        }
        let types: Vec<_> = values.iter().map(Self::of).collect::<Result<_>>()?;
        let first = types.first().map_or(ARRAY, Self::number);
        if types.iter().any(|other| other.number() != first) {
            return Err(Error::unsupported(
                "expected an array whose values all have the same type",
            ));
        }
        Ok(Self::array(types))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(number) => {
                let name = usize::try_from(*number).ok().and_then(|number| NAMES.get(number));
                f.write_str(name.unwrap_or(&"?"))
            }
            Self::Array(elements) => {
                f.write_str("[")?;
                for (at, element) in elements.iter().enumerate() {
                    write!(f, "{}{element}", if at > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
        }
    }
}

/// Returns the first of `u32`, `i32`, `u64` and `i64` that holds all integers from `least` to `most`.
fn integer(least: i128, most: i128) -> Result<u32> {
    let within = |low: i128, high: i128| low <= least && most <= high;
    Ok(if within(0, u32::MAX.into()) {
        U32
    } else if within(i32::MIN.into(), i32::MAX.into()) {
        I32
    } else if within(0, u64::MAX.into()) {
        U64
    } else if within(i64::MIN.into(), i64::MAX.into()) {
        I64
    } else {
        return Err(Error::unsupported("GGUF has no integers of more than 64 bits"));
    })
}

/// Returns the map of the types of values, for [`KEY`]. `None` if all values show their types by themselves.
pub fn listed(types: Vec<(&str, Type)>) -> Option<Value> {
    let types = types.into_iter().filter(|(_, kind)| !kind.is_plain());
    let types: Vec<_> = types.map(|(key, kind)| (Value::from(key), kind.to_value())).collect();
    (!types.is_empty()).then_some(Value::Map(types))
}

/// A value with the type that it is written as.
pub struct Typed {
    pub kind: Type,
    pub bytes: Vec<u8>,
    /// The type that the value had. `None` if it is not known.
    pub had: Option<Type>,
}

impl Typed {
    /// Encodes a value as the type that it had, if that holds the value exactly. Otherwise chooses a type.
    fn new(value: &Value, had: Option<Type>) -> Result<Self> {
        let mut bytes = Vec::new();
        if let Some(kind) = &had
            && put(&mut bytes, value, kind).is_some()
        {
            return Ok(Self { kind: kind.clone(), bytes, had });
        }
        bytes.clear();
        let kind = Type::of(value)?;
        let done = put(&mut bytes, value, &kind);
        done.ok_or_else(|| Error::data(format!("the value cannot be stored as {kind}")))?;
        Ok(Self { kind, bytes, had })
    }

    /// Describes the change, if the type that the value had does not hold it.
    pub fn change(&self) -> Option<String> {
        let Self { kind, had, .. } = self;
        let had = had.as_ref().filter(|had| *had != kind)?;
        Some(format!("its type was {had}, which does not hold the value: it becomes {kind}"))
    }

    /// Whether the type was chosen although the value does not show it.
    pub fn is_chosen(&self, value: &Value) -> bool {
        fn is_vague(value: &Value) -> bool {
            match value {
                // JSON and Python have only doubles.
                Value::Integer(_) | Value::F64(_) | Value::Numbers(_) => true,
                Value::Array(values) => values.is_empty() || values.iter().any(is_vague),
                _ => false,
            }
        }
        self.had.is_none() && is_vague(value)
    }
}

/// The types that are listed in metadata.
pub struct Types<'m>(HashMap<&'m str, &'m Value>);

impl<'m> Types<'m> {
    /// Reads the list, if there is one.
    pub fn of<K: AsRef<str>>(metadata: &'m [(K, Value)]) -> Result<Self> {
        let mut types = HashMap::new();
        match metadata.iter().find(|(key, _)| key.as_ref() == KEY) {
            None => {}
            Some((_, Value::Map(entries))) => {
                let texts = entries.iter().filter_map(|(key, value)| Some((key.as_str()?, value)));
                types.extend(texts);
            }
            Some(_) => return Err(Error::data("expected a map from keys to types").in_field(KEY)),
        }
        Ok(Self(types))
    }

    /// Encodes the value of a key.
    pub fn typed(&self, key: &str, value: &Value) -> Result<Typed> {
        let had = self.0.get(key).map(|value| {
            Type::of_value(value).ok_or_else(|| {
                let what = format!("expected a type such as \"u16\" or [\"u16\"], found {value}");
                Error::data(what).in_field(KEY)
            })
        });
        Typed::new(value, had.transpose()?)
    }
}

pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

/// Appends a value as this type. `None` if the type does not hold it exactly.
fn put(out: &mut Vec<u8>, value: &Value, kind: &Type) -> Option<()> {
    let elements = match kind {
        Type::One(TEXT) => {
            put_text(out, value.as_str()?);
            return Some(());
        }
        Type::One(number) => return put_scalar(out, value, *number),
        Type::Array(elements) => elements,
    };
    let first = elements.first()?;
    let mut start = |count: usize| {
        out.extend(first.number().to_le_bytes());
        out.extend((count as u64).to_le_bytes());
    };
    match value {
        Value::Numbers(numbers) => put(out, &Value::Array(unpacked(numbers)?), kind),
        Value::Array(values) => {
            start(values.len());
            if elements.len() > 1 && elements.len() != values.len() {
                return None;
            }
            let kinds = elements.iter().chain(std::iter::repeat(first));
            values.iter().zip(kinds).try_for_each(|(value, kind)| put(out, value, kind))
        }
        Value::Tensor(tensor) => {
            let [count] = *tensor.shape() else { return None };
            start(count);
            let number = first.number();
            if first.to_string() == tensor.dtype().name() {
                out.extend_from_slice(&tensor.le_bytes());
            } else if is_typed(tensor.dtype()) {
                let does_not_fit = || Error::data("a number does not fit");
                let put = &mut |value| put_number(out, value, number).ok_or_else(does_not_fit);
                each_number(tensor, put).ok()?;
            } else {
                return None;
            }
            Some(())
        }
        _ => None,
    }
}

fn put_scalar(out: &mut Vec<u8>, value: &Value, number: u32) -> Option<()> {
    let value = match value {
        // No conversion, which might change the bits of NaNs.
        Value::F32(value) if number == F32 => {
            out.extend(value.to_le_bytes());
            return Some(());
        }
        Value::F32(value) => Number::Float((*value).into()),
        Value::F64(value) => Number::Float(*value),
        Value::Bool(value) => Number::Bool(*value),
        Value::Integer(value) => match u64::try_from(*value) {
            Ok(value) => Number::Unsigned(value),
            Err(_) => Number::Signed(i64::try_from(*value).ok()?),
        },
        _ => return None,
    };
    put_number(out, value, number)
}

fn put_number(out: &mut Vec<u8>, value: Number, number: u32) -> Option<()> {
    match number {
        0 => out.extend(u8::nearest(value)?.to_le_bytes()),
        1 => out.extend(i8::nearest(value)?.to_le_bytes()),
        2 => out.extend(u16::nearest(value)?.to_le_bytes()),
        3 => out.extend(i16::nearest(value)?.to_le_bytes()),
        U32 => out.extend(u32::nearest(value)?.to_le_bytes()),
        I32 => out.extend(i32::nearest(value)?.to_le_bytes()),
        F32 => {
            let single = f32::nearest(value).filter(|single| is_same(value, *single))?;
            out.extend(single.to_le_bytes());
        }
        BOOL => out.push(bool::nearest(value)?.into()),
        U64 => out.extend(u64::nearest(value)?.to_le_bytes()),
        I64 => out.extend(i64::nearest(value)?.to_le_bytes()),
        F64 => out.extend(f64::nearest(value)?.to_le_bytes()),
        _ => return None,
    }
    Some(())
}

/// Returns whether a single is the same number. JSON and Python have only doubles, so a double is the same if it has the
/// shortest digits of the single: 0.1 is.
#[allow(clippy::float_cmp)]
fn is_same(value: Number, single: f32) -> bool {
    match value {
        Number::Float(value) if value.is_nan() => true,
        Number::Float(value) => {
            f64::from(single) == value || single.to_string().parse() == Ok(value)
        }
        _ => true,
    }
}
