//! A value that is deserialized.

use serde::de::{self, Unexpected};

use crate::error::{Error, Result};
use crate::serde_model::{invalid, wrong_number};
use crate::value::Value;
use crate::wire::number::Numeric;
use crate::wire::tag;

/// The deserializer: an owned value, whose content is moved, or a borrowed one.
pub enum Node<'de> {
    Owned(Value),
    Borrowed(&'de Value),
}

impl Node<'_> {
    pub fn value(&self) -> &Value {
        match self {
            Self::Owned(value) => value,
            Self::Borrowed(value) => value,
        }
    }

    /// Removes the tags around the value, except those of bignums. Other tags do not change what is deserialized.
    pub fn untagged(mut self) -> Result<Self> {
        loop {
            match self.value() {
                Value::Tag(tag @ (tag::STRING_REFERENCE | tag::SHARED_REFERENCE), _) => {
                    let what = format!("tag {tag} refers to another value, which is not supported");
                    return Err(Error::unsupported(what));
                }
                Value::Tag(tag::BIGNUM | tag::NEGATIVE_BIGNUM, _) => return Ok(self),
                Value::Tag(..) => {}
                _ => return Ok(self),
            }
            self = self.inside();
        }
    }

    /// The content of a tag. Any other value is returned unchanged.
    pub fn inside(self) -> Self {
        match self {
            Self::Owned(Value::Tag(_, inner)) => Self::Owned(*inner),
            Self::Borrowed(Value::Tag(_, inner)) => Self::Borrowed(inner),
            other => other,
        }
    }

    pub fn wrong(&self, expected: &dyn de::Expected) -> Error {
        let found = match self.value() {
            Value::Null => "null",
            Value::Bool(value) => return invalid(Unexpected::Bool(*value), expected),
            Value::Bytes(_) => "byte string",
            Value::Text(text) => return invalid(Unexpected::Str(text), expected),
            Value::Array(_) => "array",
            Value::Map(_) => "map",
            Value::Simple(_) => "simple value",
            Value::Numbers(_) => "typed array",
            Value::Tensor(_) => "tensor",
            number => match number.number() {
                Some(number) => return wrong_number(number, expected),
                None => "tagged value",
            },
        };
        invalid(Unexpected::Other(found), expected)
    }

    pub fn number(&self, expected: &dyn de::Expected) -> Result<Numeric> {
        self.value().number().ok_or_else(|| self.wrong(expected))
    }
}
