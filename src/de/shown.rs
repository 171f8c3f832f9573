//! Presents a tensor to visitors of other types, which see a map of dtype, shape, order and data.

use serde::de::{self, DeserializeSeed, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::Deserializer;
use super::items::visit_bytes;
use crate::budget::MapRoom;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::source::Read;
use crate::meta::Order;
use crate::serde_model::one_more;
use crate::shape::Shape;
use crate::wire::tensor::TensorItem;

/// A tensor whose payload is read last.
pub trait Shown<'de> {
    fn dtype(&self) -> &DType;
    fn shape(&self) -> &Shape;
    fn order(&self) -> Order;

    /// Takes bytes that the visitor is about to allocate from the budget.
    fn charge(&mut self, bytes: u64) -> Result<()>;

    /// Passes the payload as bytes.
    fn visit_payload<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value>;
}

/// A tensor that is an item.
pub struct ShownItem<'a, R> {
    pub de: &'a mut Deserializer<R>,
    pub item: TensorItem,
}

impl<'de, R: Read<'de>> Shown<'de> for ShownItem<'_, R> {
    fn dtype(&self) -> &DType {
        &self.item.meta.dtype
    }

    fn shape(&self) -> &Shape {
        &self.item.meta.shape
    }

    fn order(&self) -> Order {
        self.item.meta.order
    }

    fn charge(&mut self, bytes: u64) -> Result<()> {
        self.de.wire.charge(bytes)
    }

    fn visit_payload<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visit_bytes(self.de.wire.payload_bytes(self.item)?.1, visitor)
    }
}

/// Passes a tensor to a visitor as a map.
pub fn visit_shown<'de, T: Shown<'de>, V: Visitor<'de>>(tensor: T, visitor: V) -> Result<V::Value> {
    let mut map = ShownMap { tensor: Some(tensor), next: 0, room: MapRoom::NONE };
    let value = visitor.visit_map(&mut map)?;
    if map.tensor.is_some() {
        return Err(Error::data("the visitor did not read the data of a tensor"));
    }
    Ok(value)
}

/// The memory for each dimension of a shape, while a `Vec` of them grows.
const DIM: usize = 3 * 32;

const KEYS: [&str; 4] = ["dtype", "shape", "order", "data"];

struct ShownMap<T> {
    /// `None` after the payload was read.
    tensor: Option<T>,
    next: usize,
    room: MapRoom,
}

impl<'de, T: Shown<'de>> ShownMap<T> {
    /// Charges for a map of all entries, whose values have `value` bytes, and for their content without the data.
    fn charge(&mut self, value: usize) -> Result<()> {
        let Some(tensor) = &mut self.tensor else { return Ok(()) };
        let (keys, name) =
            (KEYS.iter().map(|key| key.len()).sum::<usize>(), tensor.dtype().name().len());
        // The visitor can read numbers as values of any size. Most are not larger than a `Value`.
        let dims = tensor.shape().len().saturating_mul(DIM);
        let entries = self.room.grow(value, KEYS.len());
        tensor.charge(entries.saturating_add((keys + name + dims) as u64))
    }
}

impl<'de, T: Shown<'de>> de::MapAccess<'de> for &mut ShownMap<T> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.room.key::<K::Value>();
        match KEYS.get(self.next) {
            Some(&key) => seed.deserialize(de::value::BorrowedStrDeserializer::new(key)).map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        if self.next == 0 {
            self.charge(size_of::<V::Value>())?;
        }
        self.next += 1;
        let Some(tensor) = &self.tensor else {
            return Err(Error::data("the visitor asked for more than the four fields of a tensor"));
        };
        match self.next {
            1 => seed.deserialize(tensor.dtype().name().into_deserializer()),
            2 => {
                let dims = tensor.shape().iter().copied();
                seed.deserialize(de::value::SeqDeserializer::new(dims))
            }
            3 => seed.deserialize(tensor.order().name().into_deserializer()),
            _ => seed.deserialize(ShownData { tensor: &mut self.tensor, somes: 0 }),
        }
    }

    fn size_hint(&self) -> Option<usize> {
        Some(KEYS.len().saturating_sub(self.next))
    }
}

struct ShownData<'a, T> {
    tensor: &'a mut Option<T>,
    /// The number of options that were entered: see [`one_more`].
    somes: usize,
}

impl<'de, T: Shown<'de>> de::Deserializer<'de> for ShownData<'_, T> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Some(tensor) = self.tensor.take() else {
            return Err(Error::data("the visitor asked for the data of a tensor twice"));
        };
        tensor.visit_payload(visitor)
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
