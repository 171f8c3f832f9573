//! What each reader made of a message, in the words of [`Data`].

use std::fmt;

use ciborium::Value as Theirs;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use tenarc::tensor::Element;
use tenarc::value::Numbers;
use tenarc::{DynTensor, Value};

use crate::data::{Data, Tensor};

/// Tag `TENS`: `[dtype name, shape, order, bytes]`.
const NAMED: u64 = 0x5445_4e53;

/// Calls `$each` with a Rust type and the name of its dtype, for all that have one.
#[macro_export]
macro_rules! for_each_dtype {
    ($each:ident) => {
        $each!(bool, "bool");
        $each!(u8, "u8");
        $each!(u16, "u16");
        $each!(u32, "u32");
        $each!(u64, "u64");
        $each!(i8, "i8");
        $each!(i16, "i16");
        $each!(i32, "i32");
        $each!(i64, "i64");
        $each!(half::f16, "f16");
        $each!(half::bf16, "bf16");
        $each!(f32, "f32");
        $each!(f64, "f64");
        $each!(num_complex::Complex<f32>, "c64");
        $each!(num_complex::Complex<f64>, "c128");
    };
}

/// Bytes of one element as they go into a document, written down a second time here so that the
/// crate's own conversion does not vouch for itself.
pub trait LeBytes: Element {
    fn push(self, bytes: &mut Vec<u8>);
}

macro_rules! le_bytes {
    ($($type:ty),*) => {$(
        impl LeBytes for $type {
            fn push(self, bytes: &mut Vec<u8>) {
                bytes.extend(self.to_le_bytes());
            }
        }
    )*};
}

le_bytes!(u8, u16, u32, u64, i8, i16, i32, i64, half::f16, half::bf16, f32, f64);

impl LeBytes for bool {
    fn push(self, bytes: &mut Vec<u8>) {
        bytes.push(self.into());
    }
}

impl LeBytes for num_complex::Complex<f32> {
    fn push(self, bytes: &mut Vec<u8>) {
        self.re.push(bytes);
        self.im.push(bytes);
    }
}

impl LeBytes for num_complex::Complex<f64> {
    fn push(self, bytes: &mut Vec<u8>) {
        self.re.push(bytes);
        self.im.push(bytes);
    }
}

pub fn le_bytes<A: LeBytes>(values: impl IntoIterator<Item = A>) -> Vec<u8> {
    let mut bytes = Vec::new();
    values.into_iter().for_each(|value| value.push(&mut bytes));
    bytes
}

impl From<&DynTensor> for Tensor {
    fn from(tensor: &DynTensor) -> Self {
        Self {
            dtype: tensor.dtype().name().into(),
            shape: tensor.shape().into(),
            order: format!("{:?}", tensor.order()),
            bytes: tensor.le_bytes().into_owned(),
        }
    }
}

impl From<&Numbers> for Data {
    fn from(numbers: &Numbers) -> Self {
        macro_rules! typed {
            ($type:ty, $name:literal) => {
                if let Some(values) = numbers.as_slice::<$type>() {
                    let bytes = le_bytes(values.iter().copied());
                    return Self::Numbers { dtype: $name.into(), bytes };
                }
            };
        }
        for_each_dtype!(typed);
        // A dtype without a Rust type: only its name can be seen.
        Self::Numbers { dtype: numbers.dtype().name().into(), bytes: Vec::new() }
    }
}

impl From<&Value> for Data {
    fn from(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Integer(value) => Self::Integer(*value),
            Value::F32(value) => Self::single(*value),
            Value::F64(value) => Self::double(*value),
            Value::Bytes(bytes) => Self::Bytes(bytes.clone()),
            Value::Text(text) => Self::text(text),
            Value::Array(items) => Self::array(items.iter().map(Self::from)),
            Value::Map(entries) => {
                Self::Map(entries.iter().map(|(key, item)| (key.into(), item.into())).collect())
            }
            Value::Tag(tag, content) => Self::Tag(*tag, Box::new(content.as_ref().into())),
            Value::Simple(23) => Self::Undefined,
            Value::Simple(value) => Self::Simple(*value),
            Value::Tensor(tensor) => Self::Tensor(tensor.as_ref().into()),
            Value::Numbers(numbers) => numbers.as_ref().into(),
        }
    }
}

/// ciborium's value with typed arrays read as RFC 8746 says, in the little-endian forms that
/// tenarc writes.
pub fn from_ciborium(value: &Theirs) -> Data {
    match value {
        Theirs::Null => Data::Null,
        Theirs::Bool(value) => Data::Bool(*value),
        Theirs::Integer(value) => Data::Integer((*value).into()),
        Theirs::Float(value) => Data::Float(value.to_bits()),
        Theirs::Bytes(bytes) => Data::Bytes(bytes.clone()),
        Theirs::Text(text) => Data::text(text),
        Theirs::Array(items) => Data::array(items.iter().map(from_ciborium)),
        Theirs::Map(entries) => Data::Map(
            entries.iter().map(|(key, item)| (from_ciborium(key), from_ciborium(item))).collect(),
        ),
        Theirs::Tag(tag, content) => tagged(*tag, content),
        other => Data::Text(format!("not described: {other:?}")),
    }
}

fn tagged(tag: u64, content: &Theirs) -> Data {
    let read = match tag {
        2 | 3 => bignum(tag, content),
        40 | 1040 => multi_dimensional(tag, content).map(Data::Tensor),
        43001 | 64..=87 => {
            numbers(tag, content).map(|(dtype, bytes)| Data::Numbers { dtype, bytes })
        }
        NAMED => named(content).map(Data::Tensor),
        _ => None,
    };
    read.unwrap_or_else(|| Data::Tag(tag, Box::new(from_ciborium(content))))
}

fn bignum(tag: u64, content: &Theirs) -> Option<Data> {
    let bytes = content.as_bytes().filter(|bytes| bytes.len() <= 16)?;
    let number = bytes.iter().fold(0_u128, |sum, byte| sum << 8 | u128::from(*byte));
    let number = i128::try_from(number).ok()?;
    Some(Data::Integer(if tag == 2 { number } else { -1 - number }))
}

fn multi_dimensional(tag: u64, content: &Theirs) -> Option<Tensor> {
    let [dims, Theirs::Tag(typed, payload)] = content.as_array()?.as_slice() else {
        return None;
    };
    let (dtype, bytes) = numbers(*typed, payload)?;
    let order = if tag == 40 { "C" } else { "F" }.into();
    Some(Tensor { dtype, shape: shape(dims)?, order, bytes })
}

fn named(content: &Theirs) -> Option<Tensor> {
    let [dtype, dims, order, bytes] = content.as_array()?.as_slice() else {
        return None;
    };
    Some(Tensor {
        dtype: dtype.as_text()?.into(),
        shape: shape(dims)?,
        order: order.as_text()?.into(),
        bytes: bytes.as_bytes()?.clone(),
    })
}

fn shape(dims: &Theirs) -> Option<Vec<usize>> {
    dims.as_array()?.iter().map(|dim| dim.as_integer()?.try_into().ok()).collect()
}

fn numbers(tag: u64, content: &Theirs) -> Option<(String, Vec<u8>)> {
    if let (43001, Theirs::Tag(parts, payload)) = (tag, content) {
        let (parts, bytes) = numbers(*parts, payload)?;
        let dtype = match parts.as_str() {
            "f32" => "c64",
            "f64" => "c128",
            _ => return None,
        };
        return Some((dtype.into(), bytes));
    }
    let dtype = match tag {
        64 => "u8",
        69 => "u16",
        70 => "u32",
        71 => "u64",
        72 => "i8",
        77 => "i16",
        78 => "i32",
        79 => "i64",
        84 => "f16",
        85 => "f32",
        86 => "f64",
        87 => "f128",
        _ => return None,
    };
    Some((dtype.into(), content.as_bytes()?.clone()))
}

/// Whatever a deserializer shows of itself, for the readers without a value type of their own.
pub struct Shown(pub Data);

impl<'de> Deserialize<'de> for Shown {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShownVisitor).map(Self)
    }
}

struct ShownVisitor;

impl<'de> Visitor<'de> for ShownVisitor {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a plain value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Data, E> {
        Ok(Data::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Data, E> {
        Ok(Data::Integer(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Data, E> {
        Ok(Data::Integer(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Data, E> {
        Ok(Data::Integer(value))
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Data, E> {
        i128::try_from(value).map(Data::Integer).map_err(E::custom)
    }

    fn visit_f32<E>(self, value: f32) -> Result<Data, E> {
        Ok(Data::single(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Data, E> {
        // ciborium shows floats of every width as doubles.
        Ok(Data::Float(value.to_bits()))
    }

    fn visit_str<E>(self, text: &str) -> Result<Data, E> {
        Ok(Data::text(text))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Data, E> {
        Ok(Data::Bytes(bytes.into()))
    }

    fn visit_unit<E>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }

    fn visit_none<E>(self) -> Result<Data, E> {
        Ok(Data::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Data, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Data, D::Error> {
        inner.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Data, A::Error> {
        let mut items = Vec::new();
        while let Some(Shown(item)) = seq.next_element()? {
            items.push(item);
        }
        Ok(Data::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Data, A::Error> {
        let mut entries = Vec::new();
        while let Some((Shown(key), Shown(item))) = map.next_entry()? {
            if entries.iter().any(|(other, _)| *other == key) {
                return Err(A::Error::custom("a key twice"));
            }
            entries.push((key, item));
        }
        Ok(Data::Map(entries))
    }
}
