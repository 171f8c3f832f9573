//! Deserializes tensors from other formats and from serde's own buffer: as four fields, or as the fields that
//! ndarray writes.
//!
//! The type of the array is not known here. So this code is compiled once for each format, and not for each type
//! of array too.

use std::fmt;

use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Unexpected,
    Visitor,
};

use super::raw_tensor::{Data, different_kinds};
use super::{FromTensor, Order, RawTensor, TensorMeta, visit};
use crate::dtype::DType;
use crate::elements::Elements;
use crate::error::Result;
use crate::number::Number;
use crate::options::Limits;

/// The fields of a tensor in other formats, and with `deserialize_any`.
pub const FIELDS: &[&str] = &["dtype", "shape", "order", "data"];

/// Makes an array from the tensor that was read.
pub type Make<'m, 'de> = dyn FnMut(RawTensor<'de, '_>) -> Result<()> + 'm;

/// Reads a tensor and passes it on once.
pub struct Fields<'a, 'm, 'de>(pub &'a mut Make<'m, 'de>);

impl<'de> Visitor<'de> for Fields<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a tensor")
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(self)
        } else {
            deserializer.deserialize_struct("Tensor", FIELDS, self)
        }
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let (mut dtype, mut shape, mut order, mut data) = (None, None, None, None);
        let (mut dim, mut listed) = (None, None);
        let mut made = false;
        while let Some(field) = map.next_key::<TensorField>()? {
            let new = match field {
                TensorField::Dtype => dtype.replace(map.next_value::<DTypeName>()?.0).is_none(),
                TensorField::Shape => shape.replace(map.next_value::<Vec<usize>>()?).is_none(),
                TensorField::Order => order.replace(map.next_value::<OrderName>()?.0).is_none(),
                // The fields of ndarray's own format, if no field of a tensor came before.
                TensorField::Version if dtype.is_none() && shape.is_none() => {
                    match map.next_value::<u8>()? {
                        1 => true,
                        other => {
                            let what = format!("unknown version {other} of an ndarray array");
                            return Err(M::Error::custom(what));
                        }
                    }
                }
                TensorField::Dim if dtype.is_none() && shape.is_none() => {
                    dim.replace(map.next_value::<Vec<usize>>()?).is_none()
                }
                TensorField::Data if dim.is_some() && dtype.is_none() && shape.is_none() => {
                    listed.replace(map.next_value::<Listed>()?).is_none() && data.is_none()
                }
                TensorField::Data => match (&dtype, &shape, order) {
                    // The order in which this crate writes the fields. A tensor of the wrong type is refused
                    // before its data are copied.
                    (Some(dtype), Some(shape), Some(order)) if !made => {
                        let meta = meta(dtype.clone(), shape, order)?;
                        map.next_value_seed(MakeSeed { make: &mut *self.0, meta })?;
                        made = true;
                        data.is_none()
                    }
                    _ => data.replace(map.next_value_seed(DataSeed)?).is_none() && !made,
                },
                TensorField::Version | TensorField::Dim | TensorField::Other => {
                    map.next_value::<IgnoredAny>()?;
                    true
                }
            };
            if !new {
                return Err(M::Error::custom("a field of a tensor occurs twice"));
            }
        }
        if made {
            return Ok(());
        }
        if let (Some(dim), None, None) = (dim, &dtype, &shape) {
            let listed = match (listed, data) {
                (Some(listed), None) => listed,
                (None, Some(FieldData::Numbers(numbers))) => Listed::Plain(numbers),
                _ => return Err(M::Error::missing_field("data")),
            };
            return make_listed(self.0, &dim, listed);
        }
        let dtype = dtype.ok_or_else(|| M::Error::missing_field("dtype"))?;
        let shape = shape.ok_or_else(|| M::Error::missing_field("shape"))?;
        let data = data.ok_or_else(|| M::Error::missing_field("data"))?;
        assemble(self.0, meta(dtype, &shape, order.unwrap_or_default())?, data)
    }

    /// Reads the four fields in order, as formats that are not self-describing write them. Plain numbers are
    /// refused: otherwise a `Vec` of numbers in an untagged enum would be read as a tensor.
    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<(), S::Error> {
        let missing = |at: usize| S::Error::invalid_length(at, &"a tensor of four fields");
        let dtype = seq.next_element::<DTypeName>()?.ok_or_else(|| missing(0))?.0;
        let shape: Vec<usize> = seq.next_element()?.ok_or_else(|| missing(1))?;
        let order = seq.next_element::<OrderName>()?.ok_or_else(|| missing(2))?.0;
        let meta = meta(dtype, &shape, order)?;
        seq.next_element_seed(MakeSeed { make: self.0, meta })?.ok_or_else(|| missing(3))
    }
}

/// Makes a tensor from elements in row-major order.
fn make_listed<E: serde::de::Error>(
    make: &mut Make<'_, '_>,
    shape: &[usize],
    listed: Listed,
) -> Result<(), E> {
    let (dtype, len, stated, data) = match listed {
        Listed::Exact(elements, stated) => {
            (elements.dtype(), elements.byte_len(), stated, Data::Owned(elements))
        }
        Listed::Plain(numbers) => {
            let held = Elements::holding(&numbers);
            let held = held.ok_or_else(|| different_kinds().through(E::custom))?;
            (held.dtype(), held.byte_len(), false, Data::Numbers(numbers))
        }
    };
    let meta = meta(dtype, shape, Order::C)?;
    meta.check_len(len).map_err(|error| error.through(E::custom))?;
    make(RawTensor { meta, stated, cast: false, data, shared: None })
        .map_err(|error| error.through(E::custom))
}

fn assemble<'de, E: serde::de::Error>(
    make: &mut Make<'_, 'de>,
    meta: TensorMeta,
    data: FieldData<'de, '_>,
) -> Result<(), E> {
    let owned = |elements: Result<Elements>| {
        let elements = elements.map_err(|error| error.through(E::custom))?;
        Ok((elements.byte_len(), Data::Owned(elements)))
    };
    let (len, data) = match data {
        FieldData::Borrowed(bytes) => (bytes.len(), Data::Borrowed(bytes)),
        FieldData::Copied(bytes) => (bytes.len(), Data::Copied(bytes)),
        FieldData::Bytes(bytes) => owned(Elements::from_le_bytes(&meta.dtype, bytes))?,
        FieldData::Numbers(numbers) => owned(Elements::from_plain(&meta.dtype, &numbers))?,
    };
    meta.check_len(len).map_err(|error| error.through(E::custom))?;
    make(RawTensor { meta, stated: true, cast: false, data, shared: None })
        .map_err(|error| error.through(E::custom))
}

fn meta<E: serde::de::Error>(dtype: DType, shape: &[usize], order: Order) -> Result<TensorMeta, E> {
    if shape.len() > Limits::DEFAULT_RANK {
        let rank = shape.len();
        let most = Limits::DEFAULT_RANK;
        return Err(E::custom(format!(
            "expected a tensor of at most {most} dimensions, found {rank}"
        )));
    }
    Ok(TensorMeta::new(dtype, shape, order))
}

/// Elements without a shape, from a sequence of numbers.
enum Listed {
    /// From a human-readable format.
    Plain(Vec<Number>),
    /// From another format, with whether the document states the dtype.
    Exact(Elements, bool),
}

impl FromTensor<'_> for Listed {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let stated = tensor.stated;
        Ok(Self::Exact(tensor.into_elements()?, stated))
    }
}

impl<'de> serde::Deserialize<'de> for Listed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return visit::deserialize(deserializer, false);
        }
        match deserializer.deserialize_any(DataSeed)? {
            FieldData::Numbers(numbers) => Ok(Self::Plain(numbers)),
            _ => Err(D::Error::custom("expected a sequence of numbers, found bytes")),
        }
    }
}

/// Reads the data of a tensor whose dtype, shape and order are known.
struct MakeSeed<'a, 'm, 'de> {
    make: &'a mut Make<'m, 'de>,
    meta: TensorMeta,
}

impl<'de> DeserializeSeed<'de> for MakeSeed<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(self)
        } else {
            deserializer.deserialize_bytes(self)
        }
    }
}

impl<'de> Visitor<'de> for MakeSeed<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        DataSeed.expecting(f)
    }

    fn visit_borrowed_bytes<E: serde::de::Error>(self, bytes: &'de [u8]) -> Result<(), E> {
        assemble(self.make, self.meta, FieldData::Borrowed(bytes))
    }

    fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<(), E> {
        assemble(self.make, self.meta, FieldData::Copied(bytes))
    }

    fn visit_byte_buf<E: serde::de::Error>(self, bytes: Vec<u8>) -> Result<(), E> {
        // Bytes can be reused as elements of one byte. Wider elements need a copy for their alignment.
        match self.meta.dtype.word() {
            1 => assemble(self.make, self.meta, FieldData::Bytes(bytes)),
            _ => assemble(self.make, self.meta, FieldData::Copied(&bytes)),
        }
    }

    fn visit_seq<S: SeqAccess<'de>>(self, seq: S) -> Result<(), S::Error> {
        let numbers = DataSeed.visit_seq(seq)?;
        assemble(self.make, self.meta, numbers)
    }
}

enum TensorField {
    Dtype,
    Shape,
    Order,
    Data,
    /// `v` and `dim` come before `data` in what ndarray's own `Serialize` writes.
    Version,
    Dim,
    Other,
}

/// Implements `Deserialize` for a type that is read from a string.
macro_rules! from_str {
    ($type:ty, $expecting:literal, |$text:ident| $make:expr) => {
        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct TextVisitor;

                impl Visitor<'_> for TextVisitor {
                    type Value = $type;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }

                    fn visit_str<E: serde::de::Error>(self, $text: &str) -> Result<$type, E> {
                        $make
                    }
                }

                deserializer.deserialize_str(TextVisitor)
            }
        }
    };
}

from_str!(TensorField, "a field of a tensor", |text| Ok(match text {
    "dtype" => TensorField::Dtype,
    "shape" => TensorField::Shape,
    "order" => TensorField::Order,
    "data" => TensorField::Data,
    "v" => TensorField::Version,
    "dim" => TensorField::Dim,
    _ => TensorField::Other,
}));

struct DTypeName(DType);

from_str!(DTypeName, "a tensor: the name of its dtype", |text| Ok(DTypeName(DType::from_name(
    text
))));

struct OrderName(Order);

from_str!(OrderName, "memory order C or F", |text| match Order::from_name(text) {
    Some(order) => Ok(OrderName(order)),
    None => Err(E::invalid_value(Unexpected::Str(text), &"C or F")),
});

enum FieldData<'de, 'a> {
    Borrowed(&'de [u8]),
    Copied(&'a [u8]),
    Bytes(Vec<u8>),
    Numbers(Vec<Number>),
}

/// Whether this visitor asks for bytes, because formats that do not describe themselves have nothing else for it, but takes the
/// elements of a sequence, too.
pub fn takes_elements<V>() -> bool {
    let visitor = typeid::of::<V>();
    visitor == typeid::of::<DataSeed>() || visitor == typeid::of::<MakeSeed<'_, '_, '_>>()
}

/// Reads the data of a tensor whose dtype and shape are not known yet.
struct DataSeed;

impl<'de> DeserializeSeed<'de> for DataSeed {
    type Value = FieldData<'de, 'static>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        if deserializer.is_human_readable() {
            deserializer.deserialize_any(self)
        } else {
            deserializer.deserialize_bytes(self)
        }
    }
}

impl<'de> Visitor<'de> for DataSeed {
    type Value = FieldData<'de, 'static>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the elements of a tensor")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(FieldData::Borrowed(bytes))
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(FieldData::Bytes(bytes.to_vec()))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Self::Value, E> {
        Ok(FieldData::Bytes(bytes))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Self::Value, S::Error> {
        let mut numbers = Vec::new();
        while let Some(ReadableNumber(number)) = seq.next_element()? {
            numbers.push(number);
        }
        Ok(FieldData::Numbers(numbers))
    }
}

/// A number in a human-readable format.
struct ReadableNumber(Number);

struct NumberVisitor;

impl<'de> Visitor<'de> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Number, E> {
        Ok(Number::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Number, E> {
        Ok(Number::Unsigned(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Number, E> {
        Ok(Number::Signed(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Number, E> {
        Ok(Number::Float(value))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Number, E> {
        match text {
            "NaN" => Ok(Number::Float(f64::NAN)),
            "inf" => Ok(Number::Float(f64::INFINITY)),
            "-inf" => Ok(Number::Float(f64::NEG_INFINITY)),
            _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<Number, S::Error> {
        match (seq.next_element()?, seq.next_element()?, seq.next_element::<IgnoredAny>()?) {
            (Some(Real(re)), Some(Real(im)), None) => Ok(Number::Complex(re, im)),
            _ => Err(S::Error::custom("expected real and imaginary part")),
        }
    }
}

/// A part of a complex number. It cannot be a sequence itself, so that there is no recursion.
struct Real(f64);

impl<'de> serde::Deserialize<'de> for Real {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct RealVisitor;

        impl Visitor<'_> for RealVisitor {
            type Value = Real;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a part of a complex number")
            }

            #[allow(clippy::cast_precision_loss)]
            fn visit_u64<E>(self, value: u64) -> Result<Real, E> {
                Ok(Real(value as f64))
            }

            #[allow(clippy::cast_precision_loss)]
            fn visit_i64<E>(self, value: i64) -> Result<Real, E> {
                Ok(Real(value as f64))
            }

            fn visit_f64<E>(self, value: f64) -> Result<Real, E> {
                Ok(Real(value))
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Real, E> {
                match NumberVisitor.visit_str(text)? {
                    Number::Float(value) => Ok(Real(value)),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
        }

        deserializer.deserialize_any(RealVisitor)
    }
}

impl<'de> serde::Deserialize<'de> for ReadableNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor).map(Self)
    }
}
