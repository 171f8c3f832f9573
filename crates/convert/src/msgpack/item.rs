//! Values as they are read from MessagePack, some of whose bytes may still be in the source.

use tenarc::tensor::TensorMeta;
use tenarc::{DynTensor, Error, Result, Value};

use crate::Losses;
use crate::input::Stretch;
use crate::numpy::Texts;
use crate::place::Place;
use crate::saved::Path;
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
    /// An array that no value can hold, and why.
    Lost(String),
}

/// An array, a scalar or a complex number that becomes a tensor.
pub struct Found {
    pub meta: TensorMeta,
    pub big_endian: bool,
    pub data: Stretch,
    /// Which part of the bytes it is. All of them if there is none.
    pub field: Option<Field>,
    /// The offset of the map or extension that describes it.
    pub at: u64,
}

/// A field of the records of a structured array.
#[derive(Clone, Copy)]
pub struct Field {
    pub place: Place,
    /// The number of bytes of a record.
    pub record: usize,
}

/// Returns the bytes of a field of records, or all bytes if there is no field.
pub fn of_records(field: Option<Field>, bytes: Vec<u8>) -> Vec<u8> {
    match field {
        Some(Field { place, record }) => place.of_each(&bytes, record),
        None => bytes,
    }
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
            Self::Texts(mut found) => match &mut found.data {
                Stretch::Held(bytes) => {
                    let bytes = of_records(found.field, std::mem::take(bytes));
                    found.value(&bytes)?
                }
                Stretch::At { .. } => {
                    return Err(Error::data("the bytes of a string array were not read"));
                }
            },
            Self::Lost(why) => return Err(Error::unsupported(why)),
        })
    }

    /// Replaces arrays that no value can hold by null, and adds them to the losses. Returns how many other leaves there are.
    pub fn take_losses(&mut self, losses: &mut Losses) -> usize {
        self.take_losses_at(&mut Path::default(), losses)
    }

    /// Like [`take_losses`](Self::take_losses), for an item at this path.
    pub fn take_losses_at(&mut self, path: &mut Path, losses: &mut Losses) -> usize {
        match self {
            Self::Lost(why) => {
                losses.add_tensor(path.as_str(), format!("{why}, so it becomes null"));
                *self = Self::Plain(Value::Null);
                0
            }
            Self::Array(items) => {
                let mut kept = 0;
                for (index, item) in items.iter_mut().enumerate() {
                    let before = path.enter(|| index.to_string());
                    kept += item.take_losses_at(path, losses);
                    path.leave(before);
                }
                kept
            }
            Self::Map(entries) => {
                let mut kept = 0;
                for (key, item) in entries {
                    let before = path.enter(|| key.to_step().into_owned());
                    kept += item.take_losses_at(path, losses);
                    path.leave(before);
                }
                kept
            }
            Self::Plain(_) | Self::Raw(..) | Self::Bytes(_) | Self::Tensor(_) | Self::Texts(_) => 1,
        }
    }
}

/// A string array of numpy. Its texts all have the same width.
pub struct FoundTexts {
    pub texts: Texts,
    pub shape: Vec<usize>,
    pub data: Stretch,
    /// Which part of the bytes they are. All of them if there is none.
    pub field: Option<Field>,
}

impl FoundTexts {
    /// The number of bytes of all texts.
    pub fn byte_len(&self) -> u64 {
        match self.field {
            Some(Field { place, record }) => {
                self.data.len() / record.max(1) as u64 * place.len as u64
            }
            None => self.data.len(),
        }
    }

    pub fn count(&self) -> u64 {
        self.byte_len() / self.texts.byte_len().max(1) as u64
    }

    /// Returns the texts as nested arrays. `bytes` are theirs. A text that is not UTF-8 becomes a byte string.
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
        let Stretch::Held(bytes) = self.data else {
            return Err(Error::data("the bytes of a tensor were not read"));
        };
        let mut bytes = of_records(self.field, bytes);
        if self.big_endian {
            swap_words(&mut bytes, self.meta.dtype.word());
        }
        let TensorMeta { dtype, shape, order } = self.meta;
        let tensor = DynTensor::new(dtype, &shape, order, bytes);
        tensor.map_err(|error| error.at(self.at))
    }
}
