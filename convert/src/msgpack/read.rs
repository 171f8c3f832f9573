//! From MessagePack to trees.

use std::collections::HashSet;

use tenarc::de::Limits;
use tenarc::tensor::TensorMeta;
use tenarc::{Error, Result, Value};

use super::numpy;
use crate::input::{Input, Source, Stretch};
use crate::values::ReadValues;

/// A value that was read; what is long may have been left where it is.
pub enum Item {
    Plain(Value),
    /// A string that is not UTF-8, as old writers make of bytes, and where it stands.
    Raw(Vec<u8>, u64),
    Bytes(Stretch),
    Array(Vec<Item>),
    Map(Vec<(Value, Item)>),
    Tensor(Box<Found>),
}

/// An array of numpy.
pub struct Found {
    pub meta: TensorMeta,
    pub big_endian: bool,
    pub data: Stretch,
    /// Where the map stands that says it.
    pub at: u64,
}

/// Reads value after value.
pub struct Reader<S> {
    input: Input<S>,
    limits: Limits,
}

impl<S: Source> ReadValues for Reader<S> {
    fn next_value(&mut self) -> Result<Option<Value>> {
        self.next()?.map(Item::into_value).transpose()
    }

    fn at(&self) -> u64 {
        self.input.at()
    }
}

impl<S: Source> Reader<S> {
    pub fn new(source: S, limits: Limits) -> Self {
        Self { input: Input::new(source, limits), limits }
    }

    /// The next value; none at the end.
    pub fn next(&mut self) -> Result<Option<Item>> {
        self.input.renew(self.limits);
        match self.input.peek()? {
            None => Ok(None),
            Some(_) => self.item().map(Some),
        }
    }

    fn uint(&mut self, width: usize) -> Result<u64> {
        let mut bytes = [0; 8];
        let start = bytes.len() - width.min(bytes.len());
        self.input.fill(bytes.get_mut(start..).unwrap_or_default(), "a MessagePack value")?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn item(&mut self) -> Result<Item> {
        self.input.charge(size_of::<Item>() as u64)?;
        let at = self.input.at();
        let marker = self.input.byte("a MessagePack value")?;
        Ok(Item::Plain(match marker {
            0x00..=0x7f => Value::Integer(marker.into()),
            0x80..=0x8f => return self.map((marker & 0x0f).into(), at),
            0x90..=0x9f => return self.array((marker & 0x0f).into()),
            0xa0..=0xbf => return self.text((marker & 0x1f).into()),
            0xc0 => Value::Null,
            0xc1 => {
                let what = "byte 0xc1, which is no MessagePack value";
                return Err(Error::syntax(what).at(at));
            }
            0xc2 => Value::Bool(false),
            0xc3 => Value::Bool(true),
            0xc4..=0xc6 => {
                let len = self.uint(1 << (marker - 0xc4))?;
                return self.input.stretch(len, "a byte string").map(Item::Bytes);
            }
            0xc7..=0xc9 => {
                let len = self.uint(1 << (marker - 0xc7))?;
                self.extension(len)?
            }
            #[allow(clippy::cast_possible_truncation)]
            0xca => Value::F32(f32::from_bits(self.uint(4)? as u32)),
            0xcb => Value::F64(f64::from_bits(self.uint(8)?)),
            0xcc..=0xcf => Value::Integer(self.uint(1 << (marker - 0xcc))?.into()),
            0xd0..=0xd3 => {
                let width = 1 << (marker - 0xd0);
                let unused = 64 - 8 * width;
                let bits = self.uint(width)?.cast_signed();
                Value::Integer((bits << unused >> unused).into())
            }
            0xd4..=0xd8 => self.extension(1 << (marker - 0xd4))?,
            0xd9..=0xdb => {
                let len = self.uint(1 << (marker - 0xd9))?;
                return self.text(len);
            }
            0xdc | 0xdd => {
                let len = self.uint(2 << (marker - 0xdc))?;
                return self.array(len);
            }
            0xde | 0xdf => {
                let len = self.uint(2 << (marker - 0xde))?;
                return self.map(len, at);
            }
            0xe0..=0xff => Value::Integer(marker.cast_signed().into()),
        }))
    }

    // Functions of their own, as what is nested should take little stack.

    fn text(&mut self, len: u64) -> Result<Item> {
        let at = self.input.at();
        let bytes = self.input.bytes(len, "a string")?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Item::Plain(Value::Text(text)),
            Err(error) => Item::Raw(error.into_bytes(), at),
        })
    }

    /// An extension as the map that is written as one.
    fn extension(&mut self, len: u64) -> Result<Value> {
        let kind = self.input.byte("the type of an extension")?.cast_signed();
        self.input.charge(2 * size_of::<(Value, Value)>() as u64)?;
        let data = self.input.bytes(len, "an extension")?;
        Ok(Value::Map(vec![
            (Value::Text(super::EXTENSION.to_owned()), Value::Integer(kind.into())),
            (Value::Text(super::DATA.to_owned()), Value::Bytes(data)),
        ]))
    }

    fn array(&mut self, len: u64) -> Result<Item> {
        self.input.enter()?;
        let mut items = Vec::new();
        for index in 0..len {
            items.push(self.item().map_err(|error| error.in_index(index))?);
        }
        self.input.leave();
        Ok(Item::Array(items))
    }

    fn map(&mut self, len: u64, at: u64) -> Result<Item> {
        self.input.enter()?;
        let mut entries = Vec::new();
        let mut keys = HashSet::new();
        for _ in 0..len {
            let key_at = self.input.at();
            let key = self.item()?;
            let key = match key {
                Item::Bytes(Stretch::At { .. }) => {
                    return Err(Error::limit("a map key of thousands of bytes").at(self.at()));
                }
                key => key.into_value().map_err(|error| error.at(key_at))?,
            };
            let encoded = tenarc::to_vec(&key)?;
            // Once more among the keys.
            self.input.charge((size_of::<Vec<u8>>() + encoded.len()) as u64)?;
            if !keys.insert(encoded) {
                let what = "there are two entries of this key";
                return Err(Error::data(what).at(key_at).in_field(key.to_step()));
            }
            let value = self.item().map_err(|error| error.in_field(key.to_step()))?;
            entries.push((key, value));
        }
        self.input.leave();
        numpy::recognised(entries, at, self.limits).map_err(|error| error.at(at))
    }
}

#[cold]
pub fn not_utf8(at: u64) -> Error {
    Error::syntax("a string that is not UTF-8").at(at)
}

impl Item {
    /// The value, of which nothing was left elsewhere.
    pub fn into_value(self) -> Result<Value> {
        Ok(match self {
            Self::Plain(value) => value,
            Self::Raw(_, at) => return Err(not_utf8(at)),
            Self::Bytes(Stretch::Held(bytes)) => Value::Bytes(bytes),
            Self::Bytes(Stretch::At { .. }) => {
                return Err(Error::data("bytes that were left where they are"));
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
        })
    }
}
