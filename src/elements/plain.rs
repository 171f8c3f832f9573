//! Serializes elements one by one, for human-readable formats.

use serde::ser::{Serialize, SerializeSeq};

use super::{Element, Elements, each};
use crate::dtype::DType;
use crate::number::Number;

impl Elements {
    /// Writes the elements one by one, for human-readable formats. For a dtype without a Rust type,
    /// writes the bytes.
    pub fn serialize_plain<S: SerializeSeq>(&self, seq: &mut S) -> Result<(), S::Error> {
        each!(self, values => {
            for &value in values {
                seq.serialize_element(&Plain(value))?;
            }
        }, (_dtype, bytes) => {
            for byte in bytes {
                seq.serialize_element(byte)?;
            }
        });
        Ok(())
    }
}

/// One element as a plain number.
struct Plain<A>(A);

impl<A: Element> Serialize for Plain<A> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.to_number() {
            Number::Bool(value) => serializer.serialize_bool(value),
            Number::Unsigned(value) => serializer.serialize_u64(value),
            Number::Signed(value) => serializer.serialize_i64(value),
            Number::Float(value) => PlainFloat(value, A::DTYPE == DType::F64).serialize(serializer),
            Number::Complex(re, im) => {
                let double = A::DTYPE == DType::C128;
                (PlainFloat(re, double), PlainFloat(im, double)).serialize(serializer)
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
