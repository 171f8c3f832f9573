//! Deserializes the elements of arrays, the entries of maps, and the content of enum variants.

use serde::de::{self, Deserialize, DeserializeSeed, IntoDeserializer, Unexpected, Visitor};

use super::node::Node;
use crate::error::{Error, Result};
use crate::serde_model::invalid;
use crate::tensor::DynTensor;

pub struct NodeElements<I> {
    items: I,
    index: u64,
}

impl<'de, I: ExactSizeIterator<Item = Node<'de>>> NodeElements<I> {
    pub fn visit<V: Visitor<'de>>(items: I, visitor: V) -> Result<V::Value> {
        let mut items = Self { items, index: 0 };
        let value = visitor.visit_seq(&mut items)?;
        match items.items.len() {
            0 => Ok(value),
            left => Err(Error::mismatch(format!(
                "expected the end of an array, found {left} more elements"
            ))),
        }
    }
}

impl<'de, I: ExactSizeIterator<Item = Node<'de>>> de::SeqAccess<'de> for &mut NodeElements<I> {
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

pub struct NodeEntries<'de, I> {
    entries: I,
    value: Option<Node<'de>>,
    key: String,
}

impl<'de, I: ExactSizeIterator<Item = (Node<'de>, Node<'de>)>> NodeEntries<'de, I> {
    pub fn visit<V: Visitor<'de>>(entries: I, visitor: V) -> Result<V::Value> {
        let mut entries = Self { entries, value: None, key: String::new() };
        let value = visitor.visit_map(&mut entries)?;
        match entries.entries.len() {
            0 => Ok(value),
            left => Err(Error::mismatch(format!(
                "expected the end of a map, found {left} more entries"
            ))),
        }
    }
}

impl<'de, I> de::MapAccess<'de> for &mut NodeEntries<'de, I>
where
    I: ExactSizeIterator<Item = (Node<'de>, Node<'de>)>,
{
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some((key, value)) = self.entries.next() else { return Ok(None) };
        self.value = Some(value);
        self.key = key.value().to_step().into_owned();
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let value = self
            .value
            .take()
            .ok_or_else(|| Error::data("the visitor asked for a map value without its key"))?;
        seed.deserialize(value).map_err(|error| error.in_field(self.key.clone()))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.entries.len())
    }
}

/// Shows a tensor as a map of dtype, shape, order and data, like the struct that other formats see.
pub struct TensorAsMap<'a> {
    tensor: &'a DynTensor,
    next: usize,
}

impl<'a> TensorAsMap<'a> {
    pub fn new(tensor: &'a DynTensor) -> Self {
        Self { tensor, next: 0 }
    }
}

impl<'de> de::MapAccess<'de> for TensorAsMap<'_> {
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

pub struct NodeVariant<'de> {
    pub name: String,
    pub content: Option<Node<'de>>,
}

impl<'de> de::EnumAccess<'de> for NodeVariant<'de> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let name: de::value::StrDeserializer<'_, Error> = self.name.as_str().into_deserializer();
        Ok((seed.deserialize(name)?, self))
    }
}

impl<'de> NodeVariant<'de> {
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

impl<'de> de::VariantAccess<'de> for NodeVariant<'de> {
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
