//! Serializes any value to a [`Value`].

use serde::Serialize;
use serde::ser::{self, Serializer};

use super::{Numbers, Value, from_value, read};
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::io::input::Input;
use crate::meta::TensorMeta;
use crate::options::{EncodeOptions, Limits};
use crate::serde_model::{Capture, blocks, one_more};
use crate::tensor::{DynTensor, OneByOne, Tensor};
use crate::wire::reader::Reader;
use crate::wire::tag;

/// Converts a value to a [`Value`]. Tensors are copied once.
///
/// ```
/// use serde::Serialize;
///
/// #[derive(Serialize)]
/// struct Config {
///     rate: f64,
///     layers: Vec<u32>,
/// }
///
/// let value = tenarc::to_value(&Config { rate: 0.1, layers: vec![64, 10] })?;
/// assert_eq!(value.pointer("/layers/1"), Some(&10.into()));
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// If the value's `Serialize` fails, or the value is nested too deeply.
pub fn to_value<T: Serialize + ?Sized>(value: &T) -> Result<Value> {
    value.serialize(ValueSerializer { depth: EncodeOptions::default().max_depth(), somes: 0 })
}

impl Numbers {
    /// The numbers as the array that they stand for.
    pub(super) fn values(&self) -> &Vec<Value> {
        self.values.get_or_init(|| match to_value(&OneByOne(&self.elements)) {
            Ok(Value::Array(values)) => values,
            _ => Vec::new(),
        })
    }

    pub(super) fn into_values(self) -> Vec<Value> {
        self.values();
        self.values.into_inner().unwrap_or_default()
    }
}

/// Reads a tensor that serde has buffered. Its content is the struct that other formats see.
pub fn tensor_of<T: Serialize + ?Sized>(content: &T) -> Result<Tensor<DynTensor>> {
    tensor_in(to_value(content)?)
}

fn tensor_in(value: Value) -> Result<Tensor<DynTensor>> {
    from_value(value)
}

#[derive(Clone, Copy)]
struct ValueSerializer {
    depth: usize,
    /// The number of `Some`s around the value. They are counted as levels, because each uses stack even if the
    /// result does not show it.
    somes: u32,
}

impl ValueSerializer {
    fn deeper(self) -> Result<Self> {
        match self.depth.checked_sub(1) {
            Some(depth) => Ok(Self { depth, somes: 0 }),
            None => Err(too_deep()),
        }
    }

    /// A separate function, so that nested values use less stack.
    fn tagged<T: Serialize + ?Sized>(self, value: &T) -> Result<Value> {
        let Slot::Number(number) = handoff::take() else { return value.serialize(self) };
        Ok(Value::Tag(number, Box::new(value.serialize(self.deeper()?)?)))
    }

    fn ours<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<Value> {
        match (name, handoff::take()) {
            (name::TENSOR, Slot::Outgoing(meta, len)) => {
                let elements = elements(&meta, len, value)?;
                Ok(Value::Tensor(Box::new(DynTensor::from_parts(meta, elements)?)))
            }
            (name::TENSOR, _) => Ok(Value::Tensor(Box::new(tensor_of(value)?.into_inner()))),
            (name::NUMBERS, Slot::Outgoing(meta, len)) => {
                Ok(Value::Numbers(Box::new(Numbers::new(elements(&meta, len, value)?))))
            }
            (name::SIMPLE, Slot::Number(number)) => {
                Ok(u8::try_from(number).map_or(Value::Null, Value::Simple))
            }
            (name::RAW, Slot::Raw) => {
                let mut item = Vec::new();
                value.serialize(Capture(&mut |block: &[u8]| {
                    item.extend_from_slice(block);
                    Ok(())
                }))?;
                let mut wire = Reader::new(Input::slice(&item), Limits::default());
                read(&mut wire).map_err(|error| error.at(0))
            }
            _ => value.serialize(self),
        }
    }
}

/// Copies the payload of a tensor. A contiguous payload is copied only once.
fn elements<T: Serialize + ?Sized>(meta: &TensorMeta, len: usize, payload: &T) -> Result<Elements> {
    let mut whole = None;
    let mut gathered = Vec::new();
    blocks(len, payload, &mut |block| {
        if block.len() == len && whole.is_none() && gathered.is_empty() {
            whole = Some(Elements::copied_from_le(&meta.dtype, block)?);
        } else {
            gathered.extend_from_slice(block);
        }
        Ok(())
    })?;
    match whole {
        Some(elements) if gathered.is_empty() => Ok(elements),
        _ => Elements::from_le_bytes(&meta.dtype, gathered),
    }
}

fn variant(name: &'static str, content: Value) -> Value {
    Value::Map(vec![(Value::Text(name.to_owned()), content)])
}

macro_rules! integers {
    ($($method:ident $type:ty;)*) => {$(
        fn $method(self, v: $type) -> Result<Value> {
            Ok(Value::Integer(v.into()))
        }
    )*};
}

impl Serializer for ValueSerializer {
    type Ok = Value;
    type Error = Error;
    type SerializeSeq = ValueArraySerializer;
    type SerializeTuple = ValueArraySerializer;
    type SerializeTupleStruct = ValueArraySerializer;
    type SerializeTupleVariant = ValueArraySerializer;
    type SerializeMap = ValueMapSerializer;
    type SerializeStruct = ValueMapSerializer;
    type SerializeStructVariant = ValueMapSerializer;

    integers! {
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
        serialize_i128 i128;
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_u64 u64;
    }

    fn serialize_u128(self, v: u128) -> Result<Value> {
        Ok(Value::from(v))
    }

    fn serialize_bool(self, v: bool) -> Result<Value> {
        Ok(Value::Bool(v))
    }

    fn serialize_f32(self, v: f32) -> Result<Value> {
        Ok(Value::F32(v))
    }

    fn serialize_f64(self, v: f64) -> Result<Value> {
        Ok(Value::F64(v))
    }

    fn serialize_char(self, v: char) -> Result<Value> {
        Ok(Value::Text(v.into()))
    }

    fn serialize_str(self, v: &str) -> Result<Value> {
        Ok(Value::Text(v.to_owned()))
    }

    fn serialize_bytes(self, v: &[u8]) -> Result<Value> {
        Ok(Value::Bytes(v.to_vec()))
    }

    fn serialize_none(self) -> Result<Value> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value> {
        let inner = value.serialize(Self { somes: one_more(self.somes)?, ..self })?;
        if !inner.reads_as_none() {
            return Ok(inner);
        }
        // The tags inside the value, and the one that is added.
        let mut tags = 1;
        let mut content = &inner;
        while let Value::Tag(tag::SOME, within) = content {
            tags += 1;
            content = within;
        }
        if tags > self.depth {
            return Err(too_deep());
        }
        Ok(Value::Tag(tag::SOME, Box::new(inner)))
    }

    fn serialize_unit(self) -> Result<Value> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Value> {
        Ok(Value::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Result<Value> {
        Ok(Value::Text(name.to_owned()))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Value> {
        match name {
            name if !name::is_ours(name) => value.serialize(self),
            name::TAGGED => self.tagged(value),
            name => self.ours(name, value),
        }
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Result<Value> {
        let content = value.serialize(self.deeper()?).map_err(|error| error.in_field(name))?;
        Ok(variant(name, content))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<ValueArraySerializer> {
        ValueArraySerializer::new(self, len, None)
    }

    fn serialize_tuple(self, len: usize) -> Result<ValueArraySerializer> {
        ValueArraySerializer::new(self, Some(len), None)
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<ValueArraySerializer> {
        ValueArraySerializer::new(self, Some(len), None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        len: usize,
    ) -> Result<ValueArraySerializer> {
        ValueArraySerializer::new(self.deeper()?, Some(len), Some(name))
    }

    fn serialize_map(self, len: Option<usize>) -> Result<ValueMapSerializer> {
        ValueMapSerializer::new(self, len, None)
    }

    fn serialize_struct(self, _: &'static str, len: usize) -> Result<ValueMapSerializer> {
        ValueMapSerializer::new(self, Some(len), None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        len: usize,
    ) -> Result<ValueMapSerializer> {
        ValueMapSerializer::new(self.deeper()?, Some(len), Some(name))
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

#[cold]
fn too_deep() -> Error {
    Error::limit("the value is nested too deeply")
}

#[cold]
fn unpaired() -> Error {
    Error::data("a map needs a value for each key, and a key for each value")
}

#[cold]
fn locate(error: Error, variant: Option<&'static str>) -> Error {
    match variant {
        Some(variant) => error.in_field(variant),
        None => error,
    }
}

/// Memory is reserved for at most this many elements of an announced length, which may be wrong.
const MAX_RESERVE: usize = 4096;

struct ValueArraySerializer {
    serializer: ValueSerializer,
    items: Vec<Value>,
    variant: Option<&'static str>,
}

impl ValueArraySerializer {
    fn new(
        outer: ValueSerializer,
        len: Option<usize>,
        variant: Option<&'static str>,
    ) -> Result<Self> {
        let items = Vec::with_capacity(len.unwrap_or(0).min(MAX_RESERVE));
        Ok(Self { serializer: outer.deeper()?, items, variant })
    }

    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let index = self.items.len() as u64;
        match value.serialize(self.serializer) {
            Ok(item) => {
                self.items.push(item);
                Ok(())
            }
            Err(error) => Err(locate(error.in_index(index), self.variant)),
        }
    }

    fn finish(self) -> Value {
        let array = Value::Array(self.items);
        match self.variant {
            Some(name) => variant(name, array),
            None => array,
        }
    }
}

macro_rules! items {
    ($($trait:ident $method:ident),*) => {$(
        impl ser::$trait for ValueArraySerializer {
            type Ok = Value;
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.push(value)
            }

            fn end(self) -> Result<Value> {
                Ok(self.finish())
            }
        }
    )*};
}

items!(
    SerializeSeq serialize_element,
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
);

struct ValueMapSerializer {
    serializer: ValueSerializer,
    entries: Vec<(Value, Value)>,
    key: Option<Value>,
    variant: Option<&'static str>,
}

impl ValueMapSerializer {
    fn new(
        outer: ValueSerializer,
        len: Option<usize>,
        variant: Option<&'static str>,
    ) -> Result<Self> {
        let entries = Vec::with_capacity(len.unwrap_or(0).min(MAX_RESERVE));
        Ok(Self { serializer: outer.deeper()?, entries, key: None, variant })
    }

    fn push<T: Serialize + ?Sized>(&mut self, key: Value, value: &T) -> Result<()> {
        match value.serialize(self.serializer) {
            Ok(value) => {
                self.entries.push((key, value));
                Ok(())
            }
            Err(error) => Err(locate(error.in_field(key.to_step()), self.variant)),
        }
    }

    fn finish(self) -> Result<Value> {
        if self.key.is_some() {
            return Err(unpaired());
        }
        let map = Value::Map(self.entries);
        Ok(match self.variant {
            Some(name) => variant(name, map),
            None => map,
        })
    }
}

impl ser::SerializeMap for ValueMapSerializer {
    type Ok = Value;
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        match self.key.replace(key.serialize(self.serializer)?) {
            Some(_) => Err(unpaired()),
            None => Ok(()),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let key = self.key.take().ok_or_else(unpaired)?;
        self.push(key, value)
    }

    fn end(self) -> Result<Value> {
        self.finish()
    }
}

macro_rules! fields {
    ($($trait:ident),*) => {$(
        impl ser::$trait for ValueMapSerializer {
            type Ok = Value;
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                key: &'static str,
                value: &T,
            ) -> Result<()> {
                self.push(Value::Text(key.to_owned()), value)
            }

            fn end(self) -> Result<Value> {
                self.finish()
            }
        }
    )*};
}

fields!(SerializeStruct, SerializeStructVariant);

/// A map key as a step in the path of an error.
pub fn key_text<T: Serialize + ?Sized>(key: &T) -> String {
    to_value(key).map_or_else(|_| "?".to_owned(), |key| key.to_step().into_owned())
}
