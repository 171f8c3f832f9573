//! Serializes elements one by one, for human-readable formats.

use serde::ser::{Serialize, SerializeSeq};

use super::{Element, Elements, each};
use crate::dtype::DType;
use crate::number::Number;

impl Elements {
    /// Writes the elements one by one, for human-readable formats. For a dtype without a Rust type,
    /// writes the bytes.
    pub fn serialize_plain<S: SerializeSeq>(&self, seq: &mut S) -> Result<(), S::Error> {
        let double = matches!(self.dtype(), DType::F64 | DType::C128);
        (0..self.plain_len()).try_for_each(|index| {
            seq.serialize_element(&PlainElement { number: self.plain_number(index), double })
        })
    }

    /// The number of elements, or of bytes for a dtype without a Rust type.
    pub fn plain_len(&self) -> usize {
        match self {
            Self::Raw(_, bytes) => bytes.len(),
            elements => elements.len(),
        }
    }

    /// An element as a number. Not generic: the type of the serializer has nothing to do with it.
    fn plain_number(&self, index: usize) -> Number {
        fn of<A: Element>(values: &[A], index: usize) -> Number {
            values.get(index).map_or(Number::Unsigned(0), |value| value.to_number())
        }
        each!(self, values => of(values, index), (_dtype, bytes) => of::<u8>(bytes, index))
    }
}

/// One element, and whether its floats have the type `f64`.
struct PlainElement {
    number: Number,
    double: bool,
}

impl Serialize for PlainElement {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.number {
            Number::Bool(value) => serializer.serialize_bool(value),
            Number::Unsigned(value) => serializer.serialize_u64(value),
            Number::Signed(value) => serializer.serialize_i64(value),
            Number::Float(value) => PlainFloat(value, self.double).serialize(serializer),
            Number::Complex(re, im) => {
                (PlainFloat(re, self.double), PlainFloat(im, self.double)).serialize(serializer)
            }
        }
    }
}

/// A float, and whether its type is `f64`.
struct PlainFloat(f64, bool);

impl Serialize for PlainFloat {
    #[allow(clippy::cast_possible_truncation)]
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(value, double) = *self;
        // JSON has no infinities and NaNs. They are written as strings that `str::parse` accepts.
        if !value.is_finite() && serializer.is_human_readable() {
            return serializer.collect_str(&value);
        }
        if double {
            serializer.serialize_f64(value)
        } else {
            serializer.serialize_f32(value as f32)
        }
    }
}
