//! From a [`Value`] to any deserializable type.

use serde::de::{self, Deserialize, DeserializeSeed, IntoDeserializer, Unexpected, Visitor};

use super::Value;
use crate::de::{invalid, one_more, visit_numbers, wrong_number};
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::handoff::{self, Held, Slot, name};
use crate::meta::{Order, TensorMeta};
use crate::tensor::DynTensor;
use crate::wire::number::Numeric;
use crate::wire::tag;
use ndarray::IxDyn;

/// Makes a value of another type from a [`Value`]. Strings and tensors are moved, not copied.
///
/// # Errors
/// Where the value does not fit the type.
pub fn from_value<'de, T: Deserialize<'de>>(value: Value) -> Result<T> {
    T::deserialize(value)
}

/// A value that is taken apart, or one that is borrowed from.
enum Node<'de> {
    Owned(Value),
    Borrowed(&'de Value),
}

/// A value within options, of which it shows nothing: a recursive type must not recurse on
/// nothing.
struct Within<'de> {
    node: Node<'de>,
    somes: usize,
}

impl<'de> Within<'de> {
    fn around(value: Value) -> Self {
        Self { node: Node::Owned(value), somes: 0 }
    }

    fn around_borrowed(value: &'de Value) -> Self {
        Self { node: Node::Borrowed(value), somes: 0 }
    }
}

impl<'de> Node<'de> {
    fn value(&self) -> &Value {
        match self {
            Self::Owned(value) => value,
            Self::Borrowed(value) => value,
        }
    }

    fn option<V: Visitor<'de>>(self, somes: usize, visitor: V) -> Result<V::Value> {
        match self.value() {
            Value::Null | Value::Simple(23) => visitor.visit_none(),
            Value::Tag(tag::SOME, _) => visitor.visit_some(self.inside()),
            _ => visitor.visit_some(Within { node: self, somes: one_more(somes)? }),
        }
    }

    fn newtype<V: Visitor<'de>>(
        self,
        name: &'static str,
        somes: usize,
        visitor: V,
    ) -> Result<V::Value> {
        match name {
            name::TENSOR => self.untagged()?.tensor(visitor),
            name::VALUE => {
                let value = match self {
                    Self::Owned(value) => value,
                    Self::Borrowed(value) => value.clone(),
                };
                handoff::offer(Slot::Value(value), || visitor.visit_unit())
            }
            name::RAW => visitor.visit_byte_buf(crate::to_vec(self.value())?),
            _ => visitor.visit_newtype_struct(Within { node: self, somes }),
        }
    }

    /// Without the tags that change nothing.
    fn untagged(mut self) -> Result<Self> {
        loop {
            match self.value() {
                Value::Tag(tag::STRING_REFERENCE | tag::SHARED_REFERENCE, _) => {
                    return Err(Error::data(
                        "the tag refers to another value, which is not followed",
                    ));
                }
                Value::Tag(tag::BIGNUM | tag::NEGATIVE_BIGNUM, _) => return Ok(self),
                Value::Tag(..) => {}
                _ => return Ok(self),
            }
            self = self.inside();
        }
    }

    /// What a tag stands around.
    fn inside(self) -> Self {
        match self {
            Self::Owned(Value::Tag(_, inner)) => Self::Owned(*inner),
            Self::Borrowed(Value::Tag(_, inner)) => Self::Borrowed(inner),
            other => other,
        }
    }

    fn wrong(&self, expected: &dyn de::Expected) -> Error {
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

    fn number(&self, expected: &dyn de::Expected) -> Result<Numeric> {
        self.value().number().ok_or_else(|| self.wrong(expected))
    }

    fn seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Self::Owned(Value::Array(items)) => {
                Items::visit(items.into_iter().map(Node::Owned), visitor)
            }
            Self::Borrowed(Value::Array(items)) => {
                Items::visit(items.iter().map(Node::Borrowed), visitor)
            }
            other => match other.value() {
                Value::Numbers(numbers) => {
                    visit_numbers(&numbers.dtype(), &numbers.0.le_bytes(), visitor)
                }
                Value::Tensor(tensor) if tensor.shape().len() == 1 => {
                    visit_numbers(tensor.dtype(), &tensor.le_bytes(), visitor)
                }
                Value::Bytes(bytes) => visit_numbers(&crate::DType::U8, bytes, visitor),
                _ => Err(other.wrong(&visitor)),
            },
        }
    }

    fn map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Self::Owned(Value::Map(entries)) => {
                let entries = entries.into_iter().map(|(k, v)| (Node::Owned(k), Node::Owned(v)));
                Entries::visit(entries, visitor)
            }
            Self::Borrowed(Value::Map(entries)) => {
                let entries = entries.iter().map(|(k, v)| (Node::Borrowed(k), Node::Borrowed(v)));
                Entries::visit(entries, visitor)
            }
            Self::Owned(Value::Tensor(tensor)) => visitor.visit_map(Shown::new(&tensor)),
            Self::Borrowed(Value::Tensor(tensor)) => visitor.visit_map(Shown::new(tensor)),
            other => Err(other.wrong(&visitor)),
        }
    }

    /// For this crate's own visitor: see [`handoff`].
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
            Self::Owned(Value::Numbers(numbers)) => (row(&numbers.0), true, numbers.0),
            Self::Borrowed(Value::Numbers(numbers)) => (row(&numbers.0), true, numbers.0.clone()),
            Self::Owned(Value::Map(_)) | Self::Borrowed(Value::Map(_)) => {
                return visitor.visit_newtype_struct(self);
            }
            other => {
                let numbers = other.value().as_array().and_then(|items| {
                    let numbers = items.iter().map(plain_number);
                    numbers.collect::<Option<Vec<_>>>()
                });
                match numbers.and_then(|numbers| Elements::holding(&numbers)) {
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
    TensorMeta { dtype: elements.dtype(), shape: IxDyn(&[elements.len()]), order: Order::C }
}

fn plain_number(value: &Value) -> Option<crate::dtype::Number> {
    use crate::dtype::Number;

    Some(match value {
        Value::Bool(value) => Number::Bool(*value),
        Value::Integer(value) => match u64::try_from(*value) {
            Ok(value) => Number::Unsigned(value),
            Err(_) => Number::Signed(i64::try_from(*value).ok()?),
        },
        float => Number::Float(float.number()?.as_double()?),
    })
}

struct Items<I> {
    items: I,
    index: u64,
}

impl<'de, I: ExactSizeIterator<Item = Node<'de>>> Items<I> {
    fn visit<V: Visitor<'de>>(items: I, visitor: V) -> Result<V::Value> {
        let mut items = Self { items, index: 0 };
        let value = visitor.visit_seq(&mut items)?;
        match items.items.len() {
            0 => Ok(value),
            left => Err(Error::data(format!(
                "expected the end of an array, found {left} more elements"
            ))),
        }
    }
}

impl<'de, I: ExactSizeIterator<Item = Node<'de>>> de::SeqAccess<'de> for &mut Items<I> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(item) = self.items.next() else { return Ok(None) };
        let value = seed.deserialize(item).map_err(|error| error.in_index(self.index))?;
        self.index += 1;
        Ok(Some(value))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.items.len())
    }
}

struct Entries<'de, I> {
    entries: I,
    value: Option<Node<'de>>,
    key: String,
}

impl<'de, I: ExactSizeIterator<Item = (Node<'de>, Node<'de>)>> Entries<'de, I> {
    fn visit<V: Visitor<'de>>(entries: I, visitor: V) -> Result<V::Value> {
        let mut entries = Self { entries, value: None, key: String::new() };
        let value = visitor.visit_map(&mut entries)?;
        match entries.entries.len() {
            0 => Ok(value),
            left => {
                Err(Error::data(format!("expected the end of a map, found {left} more entries")))
            }
        }
    }
}

impl<'de, I> de::MapAccess<'de> for &mut Entries<'de, I>
where
    I: ExactSizeIterator<Item = (Node<'de>, Node<'de>)>,
{
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some(value);
        self.key = key.value().to_string();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let value = self.value.take().ok_or_else(|| Error::data("a map value without a key"))?;
        seed.deserialize(value).map_err(|error| error.in_field(self.key.clone()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// A tensor as a map of dtype, shape, order and data.
struct Shown<'a> {
    tensor: &'a DynTensor,
    next: usize,
}

impl<'a> Shown<'a> {
    fn new(tensor: &'a DynTensor) -> Self {
        Self { tensor, next: 0 }
    }
}

impl<'de> de::MapAccess<'de> for Shown<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        match crate::tensor::FIELDS.get(self.next) {
            Some(&key) => seed.deserialize(de::value::BorrowedStrDeserializer::new(key)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        self.next += 1;
        match self.next {
            1 => seed.deserialize(self.tensor.dtype().name().into_deserializer()),
            2 => {
                let dims = self.tensor.shape().iter().copied();
                seed.deserialize(de::value::SeqDeserializer::new(dims))
            }
            3 => seed.deserialize(self.tensor.order().name().into_deserializer()),
            _ => seed.deserialize(de::value::BytesDeserializer::new(&self.tensor.le_bytes())),
        }
    }
}

struct Variant<'de> {
    name: String,
    content: Option<Node<'de>>,
}

impl<'de> de::EnumAccess<'de> for Variant<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let name: de::value::StrDeserializer<'_, Error> = self.name.as_str().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> Variant<'de> {
    fn content<T>(
        self,
        expected: &dyn de::Expected,
        read: impl FnOnce(Node<'de>) -> Result<T>,
    ) -> Result<T> {
        let Some(content) = self.content else {
            return Err(invalid(Unexpected::UnitVariant, expected));
        };
        read(content).map_err(|error| error.in_field(self.name))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<()> {
        match self.content {
            Some(content) => <()>::deserialize(content).map_err(|error| error.in_field(self.name)),
            None => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        self.content(&"newtype variant", |content| seed.deserialize(content))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.content(&"tuple variant", |content| content.untagged()?.seq(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.content(&"struct variant", |content| {
            de::Deserializer::deserialize_struct(content, "", fields, visitor)
        })
    }
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
        deserialize_f32 visit_f32 as_single;
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
            other => match other.value() {
                Value::Array(_) => other.seq(visitor),
                Value::Numbers(numbers) => match numbers.as_slice::<u8>() {
                    Some(bytes) => visitor.visit_bytes(bytes),
                    None => Err(other.wrong(&visitor)),
                },
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
                    return visitor.visit_enum(Variant { name: name.to_owned(), content: None });
                }
                None => return Err(other.wrong(&visitor)),
            },
        };
        match entry {
            Some((name, content)) => {
                let name =
                    name.value().as_str().ok_or_else(|| name.wrong(&"the name of a variant"))?;
                visitor.visit_enum(Variant { name: name.to_owned(), content: Some(content) })
            }
            None => Err(Error::data("expected an enum, found an empty map")),
        }
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.value() {
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

macro_rules! deserializer {
    ($type:ty, $within:path) => {
        impl<'de> de::Deserializer<'de> for $type {
            type Error = Error;

            deserializer! {
                $within; deserialize_any deserialize_bool deserialize_i8 deserialize_i16
                deserialize_i32 deserialize_i64 deserialize_i128 deserialize_u8 deserialize_u16
                deserialize_u32 deserialize_u64 deserialize_u128 deserialize_f32 deserialize_f64
                deserialize_char deserialize_str deserialize_string deserialize_bytes
                deserialize_byte_buf deserialize_unit deserialize_seq
                deserialize_map deserialize_identifier deserialize_ignored_any
            }

            fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
                let within = $within(self);
                within.node.option(within.somes, visitor)
            }

            fn deserialize_unit_struct<V: Visitor<'de>>(
                self,
                name: &'static str,
                visitor: V,
            ) -> Result<V::Value> {
                $within(self).node.deserialize_unit_struct(name, visitor)
            }

            fn deserialize_newtype_struct<V: Visitor<'de>>(
                self,
                name: &'static str,
                visitor: V,
            ) -> Result<V::Value> {
                let within = $within(self);
                within.node.newtype(name, within.somes, visitor)
            }

            fn deserialize_tuple<V: Visitor<'de>>(
                self,
                len: usize,
                visitor: V,
            ) -> Result<V::Value> {
                $within(self).node.deserialize_tuple(len, visitor)
            }

            fn deserialize_tuple_struct<V: Visitor<'de>>(
                self,
                name: &'static str,
                len: usize,
                visitor: V,
            ) -> Result<V::Value> {
                $within(self).node.deserialize_tuple_struct(name, len, visitor)
            }

            fn deserialize_struct<V: Visitor<'de>>(
                self,
                name: &'static str,
                fields: &'static [&'static str],
                visitor: V,
            ) -> Result<V::Value> {
                $within(self).node.deserialize_struct(name, fields, visitor)
            }

            fn deserialize_enum<V: Visitor<'de>>(
                self,
                name: &'static str,
                variants: &'static [&'static str],
                visitor: V,
            ) -> Result<V::Value> {
                $within(self).node.deserialize_enum(name, variants, visitor)
            }

            fn is_human_readable(&self) -> bool {
                false
            }
        }
    };
    ($within:path; $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            $within(self).node.$method(visitor)
        }
    )*};
}

deserializer!(Value, Within::around);
deserializer!(&'de Value, Within::around_borrowed);
deserializer!(Within<'de>, std::convert::identity);
