//! Formats a [`Value`] as text.

use std::borrow::Cow;
use std::fmt;

use super::Value;
use crate::diag;
use crate::dtype::DType;
use crate::elements::FirstOf;
use crate::wire::number::Numeric;

/// Shows the variants like a derived `Debug`, but only the first 64 bytes of a byte string, and the first 8 elements of
/// a tensor.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, content): (_, &dyn fmt::Debug) = match self {
            Self::Null => return f.write_str("Null"),
            Self::Tag(tag, inner) => return f.debug_tuple("Tag").field(tag).field(inner).finish(),
            Self::Bool(value) => ("Bool", value),
            Self::Integer(value) => ("Integer", value),
            Self::F32(value) => ("F32", value),
            Self::F64(value) => ("F64", value),
            Self::Bytes(bytes) => ("Bytes", &FirstOf::<_, 64>(bytes)),
            Self::Text(text) => ("Text", text),
            Self::Array(items) => ("Array", items),
            Self::Map(entries) => ("Map", entries),
            Self::Simple(number) => ("Simple", number),
            Self::Numbers(numbers) => ("Numbers", numbers),
            Self::Tensor(tensor) => ("Tensor", tensor),
        };
        f.debug_tuple(name).field(content).finish()
    }
}

/// Writes diagnostic notation (RFC 8949, section 8), like [`diag`](mod@crate::diag). Integers are decimal. Tensors
/// and typed arrays are shown as dtype and shape, without elements: `f32[2, 3]`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::F32(value) => write!(f, "{}_2", diag::Float(*value)),
            Self::F64(value) => write!(f, "{}_3", diag::Float(*value)),
            Self::Bytes(bytes) => write!(f, "{}", diag::HexBytes(bytes)),
            Self::Text(text) => write!(f, "{}", diag::QuotedText(text)),
            Self::Array(items) => {
                f.write_str("[")?;
                for (at, item) in items.iter().enumerate() {
                    write!(f, "{}{item}", separator(at))?;
                }
                f.write_str("]")
            }
            Self::Map(entries) => {
                f.write_str("{")?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    write!(f, "{}{key}: {value}", separator(at))?;
                }
                f.write_str("}")
            }
            Self::Tag(tag, inner) => match self.number().and_then(Numeric::integer_digits) {
                Some(digits) => f.write_str(&digits),
                None => write!(f, "{tag}({inner})"),
            },
            Self::Simple(number) => write!(f, "{}", diag::Simple(*number)),
            Self::Numbers(numbers) => elements(f, &numbers.dtype(), &[numbers.len()]),
            Self::Tensor(tensor) => elements(f, tensor.dtype(), tensor.shape()),
        }
    }
}

fn separator(at: usize) -> &'static str {
    if at == 0 { "" } else { ", " }
}

fn elements(f: &mut fmt::Formatter<'_>, dtype: &DType, shape: &[usize]) -> fmt::Result {
    write!(f, "{dtype}{shape:?}")
}

impl Value {
    /// The value as a step of a path, if it is a map key: a text unchanged, any other key in diagnostic notation.
    pub fn to_step(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            other => Cow::Owned(other.to_string()),
        }
    }
}
