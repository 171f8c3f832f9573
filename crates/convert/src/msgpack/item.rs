//! Values as they are read from MessagePack, some of whose bytes may still be in the source.

use tenarc::tensor::TensorMeta;
use tenarc::{DynTensor, Error, Result, Value};

use crate::input::Stretch;
use crate::numpy::Texts;
use crate::support::swap_words;

/// The key of the type, in a map that represents an extension.
pub const EXTENSION: &str = "msgpack_ext";

/// The key of the bytes, in a map that represents an array or an extension.
pub const DATA: &str = "data";

/// A value that was read. The bytes of long byte strings and arrays may remain in the source, to be read later.
pub enum Item {
    Plain(Value),
    /// A string that is not UTF-8, and its offset. Old packers write bytes in this form.
    Raw(Vec<u8>, u64),
    Bytes(Stretch),
    Array(Vec<Item>),
    Map(Vec<(Value, Item)>),
    Tensor(Box<Found>),
    Texts(Box<FoundTexts>),
}

/// An array, a scalar or a complex number that becomes a tensor.
pub struct Found {
    pub meta: TensorMeta,
    pub big_endian: bool,
    pub data: Stretch,
    /// The offset of the map or extension that describes it.
    pub at: u64,
}

#[cold]
pub fn not_utf8(at: u64) -> Error {
    Error::syntax("a string is not UTF-8").at(at)
}

impl Item {
    /// Returns the value. Fails if a part of it remains in the source.
    pub fn into_value(self) -> Result<Value> {
        Ok(match self {
            Self::Plain(value) => value,
            Self::Raw(_, at) => return Err(not_utf8(at)),
            Self::Bytes(Stretch::Held(bytes)) => Value::Bytes(bytes),
            Self::Bytes(Stretch::At { .. }) => {
                return Err(Error::data("the bytes of a byte string were not read"));
            }
            Self::Array(items) => {
                let values = items.into_iter().enumerate().map(|(index, item)| {
                    item.into_value().map_err(|error| error.in_index(index as u64))
                });
                Value::Array(values.collect::<Result<_>>()?)
            }
            Self::Map(entries) => {
                let entries = entries.into_iter().map(|(key, item)| match item.into_value() {
                    Ok(value) => Ok((key, value)),
                    Err(error) => Err(error.in_field(key.to_step())),
                });
                Value::Map(entries.collect::<Result<_>>()?)
            }
            Self::Tensor(found) => Value::Tensor(Box::new(found.into_tensor()?)),
            Self::Texts(found) => match &found.data {
                Stretch::Held(bytes) => found.value(bytes)?,
                Stretch::At { .. } => {
                    return Err(Error::data("the bytes of a string array were not read"));
                }
            },
        })
    }
}

/// A string array of numpy. Its texts all have the same width.
pub struct FoundTexts {
    pub texts: Texts,
    pub shape: Vec<usize>,
    pub data: Stretch,
}

impl FoundTexts {
    pub fn count(&self) -> u64 {
        self.data.len() / self.texts.byte_len().max(1) as u64
    }

    /// Returns the texts as nested arrays. `bytes` are those of `data`. A text that is not UTF-8 becomes a byte string.
    pub fn value(&self, bytes: &[u8]) -> Result<Value> {
        let mut texts = bytes.chunks_exact(self.texts.byte_len().max(1)).map(|text| {
            let text = String::from_utf8(self.texts.decode(text)?);
            Ok(text.map_or_else(|error| Value::Bytes(error.into_bytes()), Value::Text))
        });
        nested(&self.shape, &mut texts)
    }
}

fn nested(shape: &[usize], texts: &mut dyn Iterator<Item = Result<Value>>) -> Result<Value> {
    match shape {
        [] => texts.next().unwrap_or_else(|| Err(Error::eof("a text of an array"))),
        [len, rest @ ..] => {
            (0..*len).map(|_| nested(rest, texts)).collect::<Result<_>>().map(Value::Array)
        }
    }
}

impl Found {
    /// Returns the tensor. Fails if its bytes remain in the source.
    pub fn into_tensor(self) -> Result<DynTensor> {
        let Stretch::Held(mut bytes) = self.data else {
            return Err(Error::data("the bytes of a tensor were not read"));
        };
        if self.big_endian {
            swap_words(&mut bytes, self.meta.dtype.word());
        }
        let TensorMeta { dtype, shape, order } = self.meta;
        let tensor = DynTensor::new(dtype, &shape, order, bytes);
        tensor.map_err(|error| error.at(self.at))
    }
}
