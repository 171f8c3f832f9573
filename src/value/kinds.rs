//! Methods that tell what a [`Value`] is, and return its content.

use super::Value;
use crate::tensor::DynTensor;
use crate::wire::number::Numeric;
use crate::wire::tag;

impl Value {
    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Whether this is a boolean.
    pub fn is_bool(&self) -> bool {
        matches!(self, Self::Bool(_))
    }

    /// Whether this is a float, or an integer whose absolute value has at most 128 bits.
    pub fn is_number(&self) -> bool {
        self.number().is_some()
    }

    /// Whether this is an integer whose absolute value has at most 128 bits. [`Display`](std::fmt::Display) writes
    /// such an integer in decimal.
    pub fn is_integer(&self) -> bool {
        matches!(self.number(), Some(Numeric::Int { .. }))
    }

    /// Whether this is a text.
    pub fn is_string(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// Whether this is a byte string.
    pub fn is_bytes(&self) -> bool {
        matches!(self, Self::Bytes(_))
    }

    /// Whether this is an array, packed or not.
    pub fn is_array(&self) -> bool {
        matches!(self, Self::Array(_) | Self::Numbers(_))
    }

    /// Whether this is a map.
    pub fn is_map(&self) -> bool {
        matches!(self, Self::Map(_))
    }

    /// Whether this is a tensor.
    pub fn is_tensor(&self) -> bool {
        matches!(self, Self::Tensor(_))
    }

    /// The boolean, if this is a boolean.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The integer, if this is an integer that fits in an `i64`. Floats are not converted.
    pub fn as_i64(&self) -> Option<i64> {
        self.as_i128()?.try_into().ok()
    }

    /// The integer, if this is an integer that fits in a `u64`. Floats are not converted.
    pub fn as_u64(&self) -> Option<u64> {
        self.as_i128()?.try_into().ok()
    }

    /// The integer, if this is an integer that fits in an `i128`. Floats are not converted.
    pub fn as_i128(&self) -> Option<i128> {
        match self.number()? {
            number @ Numeric::Int { .. } => number.as_int(),
            _ => None,
        }
    }

    /// The integer, if this is an integer that fits in a `u128`. Floats are not converted.
    pub fn as_u128(&self) -> Option<u128> {
        match self.number()? {
            number @ Numeric::Int { .. } => number.as_unsigned(),
            _ => None,
        }
    }

    /// The number, if this is an integer or a float. Integers that `f64` cannot represent are rounded to the
    /// nearest float.
    #[allow(clippy::cast_precision_loss)]
    pub fn as_f64(&self) -> Option<f64> {
        let number = self.number()?;
        match (number, number.as_int()) {
            (Numeric::Int { .. }, Some(value)) => Some(value as f64),
            // The value is -(arg + 1). At more than 127 bits, adding 1 does not change the nearest float.
            (Numeric::Int { negative, arg }, None) => {
                Some(if negative { -(arg as f64) } else { arg as f64 })
            }
            (float, _) => float.as_double(),
        }
    }

    /// The text, if this is a text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The bytes, if this is a byte string.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The elements, if this is an array. For [`Numbers`](Self::Numbers), which have no such elements, the first call
    /// makes and keeps them.
    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Self::Array(items) => Some(items),
            Self::Numbers(numbers) => Some(numbers.values()),
            _ => None,
        }
    }

    /// The elements, mutable, if this is an array. [`Numbers`](Self::Numbers) become an [`Array`](Self::Array).
    pub fn as_array_mut(&mut self) -> Option<&mut Vec<Value>> {
        if let Self::Numbers(numbers) = self {
            let numbers = std::mem::replace(&mut **numbers, Vec::<u8>::new().into());
            *self = Self::Array(numbers.into_values());
        }
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The entries, if this is a map.
    pub fn as_map(&self) -> Option<&[(Value, Value)]> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The entries, mutable, if this is a map.
    pub fn as_map_mut(&mut self) -> Option<&mut Vec<(Value, Value)>> {
        match self {
            Self::Map(entries) => Some(entries),
            _ => None,
        }
    }

    /// The tensor, if this is a tensor.
    pub fn as_tensor(&self) -> Option<&DynTensor> {
        match self {
            Self::Tensor(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// Takes the value and leaves null in its place.
    #[must_use]
    pub fn take(&mut self) -> Value {
        std::mem::take(self)
    }

    /// The number, if this is a float, an integer, or a bignum of up to 128 bits.
    pub(crate) fn number(&self) -> Option<Numeric> {
        match self {
            Self::Integer(value) => {
                let negative = *value < 0;
                let arg = if negative { !*value } else { *value }.cast_unsigned();
                Some(Numeric::Int { negative, arg })
            }
            Self::F32(value) => Some(Numeric::Single(*value)),
            Self::F64(value) => Some(Numeric::Double(*value)),
            Self::Tag(tag @ (tag::BIGNUM | tag::NEGATIVE_BIGNUM), inner) => {
                let arg = bignum(inner.as_bytes()?)?;
                Some(Numeric::Int { negative: *tag == tag::NEGATIVE_BIGNUM, arg })
            }
            _ => None,
        }
    }
}

/// The magnitude of a bignum, if it fits 128 bits.
fn bignum(bytes: &[u8]) -> Option<u128> {
    let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
    let digits = bytes.get(zeros..)?;
    (digits.len() <= 16).then(|| digits.iter().fold(0, |n, &digit| n << 8 | u128::from(digit)))
}
