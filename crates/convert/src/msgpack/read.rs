//! Reads values from MessagePack.

use std::collections::HashSet;

use rmp::Marker;
use tenarc::de::Limits;
use tenarc::{Error, Result, Value};

use super::item::{DATA, EXTENSION, Found, Item};
use super::{flax, numpy};
use crate::Losses;
use crate::input::{Input, Source, Stretch};
use crate::saved::Path;
use crate::values::{self, ReadValues};

/// Reads one MessagePack value after the other.
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

    /// Reads the next value. `None` at the end of the input.
    pub fn next(&mut self) -> Result<Option<Item>> {
        self.input.renew(self.limits);
        match self.input.peek()? {
            None => Ok(None),
            Some(_) => self.item().map(Some),
        }
    }

    /// Appends the next value to `out` as a message. Returns `false` at the end. Only one value at a time is in memory that has no
    /// arrays or maps in it, or is an array of numpy. Arrays that no value can hold become null, and are added to `losses`.
    pub fn append_next(&mut self, out: &mut Vec<u8>, losses: &mut Losses) -> Result<bool> {
        self.input.renew(self.limits);
        let Some(_) = self.input.peek()? else { return Ok(false) };
        self.append(out, &mut Path::default(), losses)?;
        Ok(true)
    }

    fn append(&mut self, out: &mut Vec<u8>, path: &mut Path, losses: &mut Losses) -> Result<()> {
        let at = self.input.at();
        let (marker, len) = self.head()?;
        match marker {
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => {
                self.append_map(len, at, out, path, losses)
            }
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 if self.is_container()? => {
                self.input.enter()?;
                out.extend(values::head(false, len));
                for index in 0..len {
                    let before = path.enter(|| index.to_string());
                    self.append(out, path, losses).map_err(|error| error.in_index(index))?;
                    path.leave(before);
                }
                self.input.leave();
                Ok(())
            }
            _ => put(self.content(marker, len, at)?, out, path, losses),
        }
    }

    /// Whether an array or a map is next.
    fn is_container(&mut self) -> Result<bool> {
        let marker = self.input.peek()?.map(Marker::from_u8);
        Ok(matches!(
            marker,
            Some(
                Marker::FixMap(_)
                    | Marker::Map16
                    | Marker::Map32
                    | Marker::FixArray(_)
                    | Marker::Array16
                    | Marker::Array32
            )
        ))
    }

    fn append_map(
        &mut self,
        len: u64,
        at: u64,
        out: &mut Vec<u8>,
        path: &mut Path,
        losses: &mut Losses,
    ) -> Result<()> {
        self.input.enter()?;
        let mut keys = HashSet::new();
        for number in 0..len {
            let key = self.key(&mut keys)?;
            if number == 0 {
                if numpy::is_part(&key) {
                    let item = self.entries(len, at, keys, Some(key))?;
                    return put(item, out, path, losses);
                }
                out.extend(values::head(true, len));
            }
            tenarc::append_to(out, &key)?;
            let before = path.enter(|| key.to_step().into_owned());
            self.append(out, path, losses).map_err(|error| error.in_field(key.to_step()))?;
            path.leave(before);
        }
        if len == 0 {
            out.extend(values::head(true, 0));
        }
        self.input.leave();
        Ok(())
    }

    fn array_of<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.input.fill(&mut bytes, "a MessagePack value")?;
        Ok(bytes)
    }

    fn item(&mut self) -> Result<Item> {
        let at = self.input.at();
        let (marker, len) = self.head()?;
        self.content(marker, len, at)
    }

    /// Reads the start of a value: its marker, and its length if it has one.
    fn head(&mut self) -> Result<(Marker, u64)> {
        macro_rules! read {
            ($type:ty) => {
                <$type>::from_be_bytes(self.array_of()?)
            };
        }
        self.input.charge(size_of::<Item>() as u64)?;
        let marker = Marker::from_u8(self.input.byte("a MessagePack value")?);
        let len = match marker {
            Marker::FixStr(len) | Marker::FixArray(len) | Marker::FixMap(len) => len.into(),
            Marker::Str8 | Marker::Bin8 | Marker::Ext8 => read!(u8).into(),
            Marker::Str16 | Marker::Bin16 | Marker::Ext16 | Marker::Array16 | Marker::Map16 => {
                read!(u16).into()
            }
            Marker::Str32 | Marker::Bin32 | Marker::Ext32 | Marker::Array32 | Marker::Map32 => {
                read!(u32).into()
            }
            Marker::FixExt1 => 1,
            Marker::FixExt2 => 2,
            Marker::FixExt4 => 4,
            Marker::FixExt8 => 8,
            Marker::FixExt16 => 16,
            _ => 0,
        };
        Ok((marker, len))
    }

    /// Reads the rest of a value that starts at this offset.
    fn content(&mut self, marker: Marker, len: u64, at: u64) -> Result<Item> {
        macro_rules! read {
            ($type:ty) => {
                <$type>::from_be_bytes(self.array_of()?)
            };
        }
        Ok(Item::Plain(match marker {
            Marker::FixMap(_) | Marker::Map16 | Marker::Map32 => return self.map(len, at),
            Marker::FixArray(_) | Marker::Array16 | Marker::Array32 => return self.array(len),
            Marker::FixStr(_) | Marker::Str8 | Marker::Str16 | Marker::Str32 => {
                return self.text(len);
            }
            Marker::Bin8 | Marker::Bin16 | Marker::Bin32 => {
                return self.input.stretch(len, "a byte string").map(Item::Bytes);
            }
            Marker::FixExt1 | Marker::FixExt2 | Marker::FixExt4 | Marker::FixExt8 => {
                return self.extension(len, at);
            }
            Marker::FixExt16 | Marker::Ext8 | Marker::Ext16 | Marker::Ext32 => {
                return self.extension(len, at);
            }
            Marker::Reserved => {
                let what = "found the byte 0xc1, which MessagePack does not use";
                return Err(Error::syntax(what).at(at));
            }
            Marker::Null => Value::Null,
            Marker::False => Value::Bool(false),
            Marker::True => Value::Bool(true),
            Marker::FixPos(number) => Value::Integer(number.into()),
            Marker::FixNeg(number) => Value::Integer(number.into()),
            Marker::U8 => Value::Integer(read!(u8).into()),
            Marker::U16 => Value::Integer(read!(u16).into()),
            Marker::U32 => Value::Integer(read!(u32).into()),
            Marker::U64 => Value::Integer(read!(u64).into()),
            Marker::I8 => Value::Integer(read!(i8).into()),
            Marker::I16 => Value::Integer(read!(i16).into()),
            Marker::I32 => Value::Integer(read!(i32).into()),
            Marker::I64 => Value::Integer(read!(i64).into()),
            Marker::F32 => Value::F32(read!(f32)),
            Marker::F64 => Value::F64(read!(f64)),
        }))
    }

    // These are separate functions to keep the stack frame of `item` small. `item` calls itself for nested values.

    fn text(&mut self, len: u64) -> Result<Item> {
        let at = self.input.at();
        let bytes = self.input.bytes(len, "a string")?;
        Ok(match String::from_utf8(bytes) {
            Ok(text) => Item::Plain(Value::Text(text)),
            Err(error) => Item::Raw(error.into_bytes(), at),
        })
    }

    /// Reads an extension. Returns an array or a complex number of flax, or else the map that represents the extension.
    fn extension(&mut self, len: u64, at: u64) -> Result<Item> {
        let kind = self.input.byte("the type of an extension")?.cast_signed();
        let start =
            self.input.look(flax::MAX_HEAD.min(usize::try_from(len).unwrap_or(usize::MAX)))?;
        if let Some((meta, head)) = flax::head(kind, len, start, self.limits) {
            self.input.bytes(head, "an array of flax")?;
            let data = self.input.stretch(len - head, "an array of flax")?;
            let found = Found { meta, big_endian: false, data, field: None, at };
            return Ok(Item::Tensor(Box::new(found)));
        }
        self.input.charge(2 * size_of::<(Value, Value)>() as u64)?;
        let data = self.input.bytes(len, "an extension")?;
        if let Some((re, im)) = flax::complex(kind, &data) {
            return Ok(numpy::complex_number(re, im, at));
        }
        Ok(Item::Plain(Value::Map(vec![
            (Value::Text(EXTENSION.to_owned()), Value::Integer(kind.into())),
            (Value::Text(DATA.to_owned()), Value::Bytes(data)),
        ])))
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
        self.entries(len, at, HashSet::new(), None)
    }

    /// Reads the entries of a map. `first` is the first key, if it was read.
    fn entries(
        &mut self,
        len: u64,
        at: u64,
        mut keys: HashSet<Vec<u8>>,
        mut first: Option<Value>,
    ) -> Result<Item> {
        let mut entries = Vec::new();
        for _ in 0..len {
            let key = match first.take() {
                Some(key) => key,
                None => self.key(&mut keys)?,
            };
            let value = self.item().map_err(|error| error.in_field(key.to_step()))?;
            entries.push((key, value));
        }
        self.input.leave();
        let charge = &mut |bytes| self.input.charge(bytes);
        numpy::recognised(entries, at, self.limits, charge).map_err(|error| error.at(at))
    }

    /// Reads a key, which must not be in `keys`, and is added to them.
    fn key(&mut self, keys: &mut HashSet<Vec<u8>>) -> Result<Value> {
        let key_at = self.input.at();
        let key = self.item()?;
        let key = match key {
            Item::Bytes(Stretch::At { len, .. }) => {
                let what = format!("a map key of {len} bytes is too long");
                return Err(Error::limit(what).at(key_at));
            }
            key => key.into_value().map_err(|error| error.at(key_at))?,
        };
        let encoded = tenarc::to_vec(&key)?;
        // The memory of the encoded key in `keys`.
        self.input.charge((size_of::<Vec<u8>>() + encoded.len()) as u64)?;
        if !keys.insert(encoded) {
            let what = "there are two entries of this key";
            return Err(Error::data(what).at(key_at).in_field(key.to_step()));
        }
        Ok(key)
    }
}

/// Appends an item to messages.
fn put(mut item: Item, out: &mut Vec<u8>, path: &mut Path, losses: &mut Losses) -> Result<()> {
    item.take_losses_at(path, losses);
    tenarc::append_to(out, &item.into_value()?)
}
