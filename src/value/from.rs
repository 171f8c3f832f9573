//! Conversions from Rust types to [`Value`].

use std::borrow::Cow;

use super::{Numbers, Value};
use crate::tensor::DynTensor;
use crate::wire::tag;

macro_rules! from_integers {
    ($($type:ty)*) => {$(
        impl From<$type> for Value {
            fn from(value: $type) -> Self {
                Self::Integer(value.into())
            }
        }
    )*};
}

from_integers!(u8 u16 u32 u64 i8 i16 i32 i64 i128);

impl From<usize> for Value {
    fn from(value: usize) -> Self {
        Self::from(value as u64)
    }
}

impl From<isize> for Value {
    fn from(value: isize) -> Self {
        Self::from(value as i64)
    }
}

impl From<u128> for Value {
    /// An integer above `i128::MAX` becomes a tagged byte string (RFC 8949, section 3.4.3).
    fn from(value: u128) -> Self {
        i128::try_from(value).map_or_else(
            |_| Self::Tag(tag::BIGNUM, Box::new(Self::Bytes(value.to_be_bytes().to_vec()))),
            Self::Integer,
        )
    }
}

impl From<f32> for Value {
    fn from(value: f32) -> Self {
        Self::F32(value)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::F64(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<()> for Value {
    fn from((): ()) -> Self {
        Self::Null
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Cow<'_, str>> for Value {
    fn from(text: Cow<'_, str>) -> Self {
        Self::Text(text.into_owned())
    }
}

impl From<DynTensor> for Value {
    fn from(tensor: DynTensor) -> Self {
        Self::Tensor(Box::new(tensor))
    }
}

impl From<Numbers> for Value {
    fn from(numbers: Numbers) -> Self {
        Self::Numbers(Box::new(numbers))
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    /// Makes an array, even of a `Vec<u8>`. For a byte string, use [`Value::Bytes`].
    fn from(items: Vec<T>) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<Value> + Clone> From<&[T]> for Value {
    /// Makes an array, even of a `&[u8]`. For a byte string, use [`Value::Bytes`].
    fn from(items: &[T]) -> Self {
        items.iter().cloned().collect()
    }
}

impl<T: Into<Value>, const N: usize> From<[T; N]> for Value {
    /// Makes an array, even of bytes. For a byte string, use [`Value::Bytes`].
    fn from(items: [T; N]) -> Self {
        items.into_iter().collect()
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    /// `None` becomes null. `Some` becomes its content, with a tag if that content is null itself: otherwise it would
    /// be read back as `None`.
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, |value| Self::some(value.into()))
    }
}

impl<T: Into<Value>> FromIterator<T> for Value {
    /// Makes an array.
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        Self::Array(items.into_iter().map(Into::into).collect())
    }
}

impl<K: Into<Value>, V: Into<Value>> FromIterator<(K, V)> for Value {
    /// Makes a map with the entries in this order. Equal keys are all kept.
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let entries = entries.into_iter();
        Self::Map(entries.map(|(key, value)| (key.into(), value.into())).collect())
    }
}

impl Value {
    /// `Some` of this value. It has a tag if it would otherwise be read as `None`.
    pub(super) fn some(self) -> Self {
        if self.reads_as_none() { Self::Tag(tag::SOME, Box::new(self)) } else { self }
    }

    /// Whether an `Option` would read this as `None`, so that `Some` needs a tag.
    pub(super) fn reads_as_none(&self) -> bool {
        matches!(self, Self::Null | Self::Simple(23) | Self::Tag(tag::SOME, _))
    }
}
