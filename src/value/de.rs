//! Deserializes any type from a [`Value`].

mod access;
mod node;
mod within;

use serde::de::{self, Deserialize, Visitor};

use self::access::{NodeElements, NodeEntries, NodeVariant, TensorAsMap};
use self::node::Node;
use self::within::Within;
use super::{Value, offer};
use crate::dtype::DType;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::handoff::{self, Held, Slot, name};
use crate::meta::{Order, TensorMeta};
use crate::serde_model::{
    Collect, Narrowing, keeps_any_key, one_more, visit_collected, visit_numbers, wrong_number,
};
use crate::shape::Shape;
use crate::tensor::takes_elements;
use crate::wire::tag;

/// Converts a [`Value`] to another type. Strings and tensors are moved, not copied.
///
/// ```
/// use std::collections::BTreeMap;
/// use tenarc::Value;
///
/// let value: Value = tenarc::from_slice(&tenarc::to_vec(&BTreeMap::from([("a", 1), ("b", 2)]))?)?;
/// let map: BTreeMap<String, u8> = tenarc::from_value(value)?;
/// assert_eq!(map["b"], 2);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// # Errors
/// If the value does not fit the type.
pub fn from_value<'de, T: Deserialize<'de>>(value: Value) -> Result<T> {
    T::deserialize(value)
}

impl<'de> Node<'de> {
    fn option<V: Visitor<'de>>(self, somes: u32, visitor: V) -> Result<V::Value> {
        match self.value() {
            Value::Null | Value::Simple(23) => visitor.visit_none(),
            Value::Tag(tag::SOME, _) => visitor.visit_some(self.inside()),
            _ => visitor.visit_some(Within { node: self, somes: one_more(somes)? }),
        }
    }

    fn newtype<V: Visitor<'de>>(
        self,
        name: &'static str,
        somes: u32,
        visitor: V,
    ) -> Result<V::Value> {
        match name {
            name::JSON => self.untagged()?.map(visitor),
            name::TENSOR => self.untagged()?.tensor(visitor),
            name::VALUE => {
                let value = match self {
                    Self::Owned(value) => value,
                    Self::Borrowed(value) => value.clone(),
                };
                offer::offer(value, || visitor.visit_unit())
            }
            name::RAW => offer::offer_to_encode(self.value(), || visitor.visit_unit()),
            _ => visitor.visit_newtype_struct(Within { node: self, somes }),
        }
    }

    fn seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Self::Owned(Value::Array(items)) => {
                NodeElements::visit(items.into_iter().map(Node::Owned), visitor)
            }
            Self::Borrowed(Value::Array(items)) => {
                NodeElements::visit(items.iter().map(Node::Borrowed), visitor)
            }
            other => match other.value() {
                Value::Numbers(numbers) => {
                    let (dtype, bytes) = (numbers.dtype(), numbers.elements.le_bytes());
                    visit_numbers(&dtype, Narrowing::Nearest, &bytes, visitor)
                }
                Value::Tensor(tensor) if tensor.shape().len() == 1 => {
                    let bytes = tensor.le_bytes();
                    visit_numbers(tensor.dtype(), Narrowing::Exact, &bytes, visitor)
                }
                Value::Bytes(bytes) => {
                    visit_numbers(&DType::U8, Narrowing::Nearest, bytes, visitor)
                }
                _ => Err(other.wrong(&visitor)),
            },
        }
    }

    fn map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Self::Owned(Value::Map(entries)) => {
                let entries = entries.into_iter().map(|(k, v)| (Node::Owned(k), Node::Owned(v)));
                NodeEntries::visit(entries, visitor)
            }
            Self::Borrowed(Value::Map(entries)) => {
                let entries = entries.iter().map(|(k, v)| (Node::Borrowed(k), Node::Borrowed(v)));
                NodeEntries::visit(entries, visitor)
            }
            Self::Owned(Value::Tensor(tensor)) => visitor.visit_map(TensorAsMap::new(&tensor)),
            Self::Borrowed(Value::Tensor(tensor)) => visitor.visit_map(TensorAsMap::new(tensor)),
            other => Err(other.wrong(&visitor)),
        }
    }

    /// Passes a tensor to this crate's own visitor: see [`handoff`].
    fn tensor<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Self::Borrowed(Value::Tensor(tensor)) = &self
            && let Some(bytes) = tensor.elements().as_le_bytes()
        {
            let meta = crate::tensor::ToTensor::meta(&**tensor);
            let incoming = Slot::Incoming { meta, stated: true, held: Held::Nothing };
            return handoff::offer(incoming, || visitor.visit_borrowed_bytes(bytes));
        }
        let (meta, stated, elements) = match self {
            Self::Owned(Value::Tensor(tensor)) => {
                let (meta, elements) = tensor.into_parts();
                (meta, true, elements)
            }
            Self::Borrowed(Value::Tensor(tensor)) => {
                let (meta, elements) = tensor.clone().into_parts();
                (meta, true, elements)
            }
            Self::Owned(Value::Numbers(numbers)) => {
                (row(&numbers.elements), false, numbers.elements)
            }
            Self::Borrowed(Value::Numbers(numbers)) => {
                (row(&numbers.elements), false, numbers.elements.clone())
            }
            Self::Owned(Value::Map(_)) | Self::Borrowed(Value::Map(_)) => {
                return visitor.visit_newtype_struct(self);
            }
            other => {
                let elements = match other.value() {
                    Value::Array(items) => plain_array(items),
                    _ => None,
                };
                match elements {
                    Some(elements) => (row(&elements), false, elements),
                    None => return Err(other.wrong(&visitor)),
                }
            }
        };
        let incoming = Slot::Incoming { meta, stated, held: Held::Elements(Box::new(elements)) };
        handoff::offer(incoming, || visitor.visit_unit())
    }
}

fn row(elements: &Elements) -> TensorMeta {
    TensorMeta { dtype: elements.dtype(), shape: Shape::from([elements.len()]), order: Order::C }
}

fn plain_array(items: &[Value]) -> Option<Elements> {
    let numbers: Vec<_> = items.iter().map(plain_number).collect::<Option<_>>()?;
    let are_single = items.iter().all(|item| matches!(item, Value::F32(_)));
    Elements::of_plain_array(&numbers, are_single).ok()
}

fn plain_number(value: &Value) -> Option<crate::number::Number> {
    use crate::number::Number;

    Some(match value {
        Value::Bool(value) => Number::Bool(*value),
        Value::Integer(value) => match u64::try_from(*value) {
            Ok(value) => Number::Unsigned(value),
            Err(_) => Number::Signed(i64::try_from(*value).ok()?),
        },
        float => Number::Float(float.number()?.as_double()?),
    })
}

macro_rules! numbers {
    ($($method:ident $visit:ident $exact:ident;)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let number = self.untagged()?.number(&visitor)?;
            match number.$exact().and_then(|value| value.try_into().ok()) {
                Some(value) => visitor.$visit(value),
                None => Err(wrong_number(number, &visitor)),
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Node<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if matches!(self.value(), Value::Tag(tag::SOME, _)) {
            return visitor.visit_some(self.inside());
        }
        let node = self.untagged()?;
        match node.value() {
            Value::Null | Value::Simple(23) => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(*value),
            Value::F32(value) => visitor.visit_f32(*value),
            Value::F64(value) => visitor.visit_f64(*value),
            Value::Bytes(_) => node.deserialize_bytes(visitor),
            Value::Text(_) => node.deserialize_str(visitor),
            Value::Array(_) | Value::Numbers(_) => node.seq(visitor),
            Value::Map(_) | Value::Tensor(_) => node.map(visitor),
            Value::Simple(_) => Err(node.wrong(&visitor)),
            Value::Integer(_) | Value::Tag(..) => {
                let number = node.number(&visitor)?;
                match (number.as_int(), number.as_unsigned()) {
                    (Some(value), _) => match (u64::try_from(value), i64::try_from(value)) {
                        (Ok(value), _) => visitor.visit_u64(value),
                        (_, Ok(value)) => visitor.visit_i64(value),
                        _ => visitor.visit_i128(value),
                    },
                    (None, Some(value)) => visitor.visit_u128(value),
                    (None, None) => Err(wrong_number(number, &visitor)),
                }
            }
        }
    }

    numbers! {
        deserialize_i8 visit_i8 as_int;
        deserialize_i16 visit_i16 as_int;
        deserialize_i32 visit_i32 as_int;
        deserialize_i64 visit_i64 as_int;
        deserialize_i128 visit_i128 as_int;
        deserialize_u8 visit_u8 as_int;
        deserialize_u16 visit_u16 as_int;
        deserialize_u32 visit_u32 as_int;
        deserialize_u64 visit_u64 as_int;
        deserialize_u128 visit_u128 as_unsigned;
        deserialize_f32 visit_f32 to_single;
        deserialize_f64 visit_f64 as_double;
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let node = self.untagged()?;
        match node.value() {
            Value::Bool(value) => visitor.visit_bool(*value),
            _ => Err(node.wrong(&visitor)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.untagged()? {
            Self::Owned(Value::Text(text)) => visitor.visit_string(text),
            Self::Borrowed(Value::Text(text)) => visitor.visit_borrowed_str(text),
            other => Err(other.wrong(&visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.untagged()? {
            Self::Owned(Value::Bytes(bytes)) => visitor.visit_byte_buf(bytes),
            Self::Borrowed(Value::Bytes(bytes)) => visitor.visit_borrowed_bytes(bytes),
            other => match (&other, other.value()) {
                (Self::Borrowed(Value::Numbers(numbers)), _) if numbers.dtype() == DType::U8 => {
                    visitor.visit_borrowed_bytes(numbers.as_slice().unwrap_or_default())
                }
                (_, Value::Array(_)) if takes_elements::<V>() => other.seq(visitor),
                (_, Value::Array(_) | Value::Numbers(_)) => {
                    visit_collected(other.seq(Collect)?, visitor)
                }
                _ => Err(other.wrong(&visitor)),
            },
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.option(0, visitor)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let node = self.untagged()?;
        match node.value() {
            Value::Null | Value::Simple(23) => visitor.visit_unit(),
            Value::Array(items) if items.is_empty() => visitor.visit_unit(),
            _ => Err(node.wrong(&visitor)),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.newtype(name, 0, visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.untagged()?.seq(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.untagged()?.map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let node = self.untagged()?;
        match node.value() {
            Value::Array(_) => node.seq(visitor),
            _ => node.map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let entry = match self.untagged()? {
            Self::Owned(Value::Map(mut entries)) if entries.len() == 1 => {
                entries.pop().map(|(name, content)| (Self::Owned(name), Self::Owned(content)))
            }
            Self::Borrowed(Value::Map(entries)) if entries.len() == 1 => entries
                .first()
                .map(|(name, content)| (Self::Borrowed(name), Self::Borrowed(content))),
            other => match other.value().as_str() {
                Some(name) => {
                    return visitor
                        .visit_enum(NodeVariant { name: name.to_owned(), content: None });
                }
                None => return Err(other.wrong(&visitor)),
            },
        };
        match entry {
            Some((name, content)) => {
                let name =
                    name.value().as_str().ok_or_else(|| name.wrong(&"the name of a variant"))?;
                visitor.visit_enum(NodeVariant { name: name.to_owned(), content: Some(content) })
            }
            None => Err(Error::mismatch("expected an enum, found an empty map")),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.value() {
            _ if keeps_any_key::<V>() => self.deserialize_any(visitor),
            Value::Bytes(_) => self.deserialize_bytes(visitor),
            _ => self.deserialize_str(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
