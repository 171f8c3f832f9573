//! Presents a tensor to visitors of other types, which see a map of dtype, shape, order and data.

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::Deserializer;
use crate::error::{Error, Result};
use crate::io::source::{Bytes, Read};
use crate::serde_model::one_more;
use crate::wire::tensor::TensorItem;

pub struct ShownTensor<'a, R> {
    de: &'a mut Deserializer<R>,
    item: Option<TensorItem>,
    unclosed: bool,
    next: usize,
}

const KEYS: [&str; 4] = ["dtype", "shape", "order", "data"];

impl<'a, R> ShownTensor<'a, R> {
    pub fn new(de: &'a mut Deserializer<R>, item: TensorItem) -> Self {
        let unclosed = item.unclosed();
        Self { de, item: Some(item), unclosed, next: 0 }
    }

    pub fn finish<'de>(self) -> Result<()>
    where
        R: Read<'de>,
    {
        if self.item.is_some() {
            return Err(Error::data("the visitor did not read the data of a tensor"));
        }
        self.de.wire.close(self.unclosed)
    }
}

impl<'de, R: Read<'de>> de::MapAccess<'de> for &mut ShownTensor<'_, R> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        match KEYS.get(self.next) {
            Some(&key) => seed.deserialize(de::value::BorrowedStrDeserializer::new(key)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        self.next += 1;
        let Some(item) = &self.item else {
            return Err(Error::data("the visitor asked for more than the four fields of a tensor"));
        };
        match self.next {
            1 => seed.deserialize(item.meta.dtype.name().into_deserializer()),
            2 => {
                let dims = item.meta.shape.iter().copied();
                seed.deserialize(de::value::SeqDeserializer::new(dims))
            }
            3 => seed.deserialize(item.meta.order.name().into_deserializer()),
            _ => {
                let item = self.item.take();
                seed.deserialize(ShownData { de: self.de, item, somes: 0 })
            }
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(KEYS.len().saturating_sub(self.next))
    }
}

struct ShownData<'a, R> {
    de: &'a mut Deserializer<R>,
    item: Option<TensorItem>,
    /// How many options were entered: see [`one_more`].
    somes: usize,
}

impl<'de, R: Read<'de>> de::Deserializer<'de> for ShownData<'_, R> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Some(item) = self.item else {
            return Err(Error::data("the visitor asked for the data of a tensor twice"));
        };
        match self.de.wire.payload_bytes(item)?.1 {
            Bytes::Borrowed(bytes) => visitor.visit_borrowed_bytes(bytes),
            Bytes::Copied(bytes) => visitor.visit_bytes(bytes),
            Bytes::Owned(bytes) => visitor.visit_byte_buf(bytes),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(Self { somes: one_more(self.somes)?, ..self })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
