//! Which fields a struct asks for.

use std::cell::Cell;

use serde::de::value::StrDeserializer;
use serde::de::{self, Deserialize, DeserializeSeed, IntoDeserializer as _, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::{Error, Result};
use crate::wire::columns::Place;

type Fields = Option<&'static [&'static str]>;

/// The names of the fields that a type reads from the map at this place in a value, if it reads a struct there. They
/// include aliases. `None` if it is something else, or may read any field.
pub fn fields_at<'de, T: Deserialize<'de>>(place: Place<'_>) -> Fields {
    let found = Cell::new(None);
    // This fails always: there is nothing to read.
    let _ = T::deserialize(Asked { names: &place.names(), is_some: false, found: &found });
    found.get()
}

/// A deserializer that only takes note of the fields it is asked for. It leads to the struct that has these names.
struct Asked<'f> {
    names: &'f [&'f str],
    /// Whether it is in an option. A type that is an option of itself would never end.
    is_some: bool,
    found: &'f Cell<Fields>,
}

impl<'de> de::Deserializer<'de> for Asked<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value> {
        Err(Error::data("nothing to read"))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        match self.names.split_first() {
            Some((name, names)) => {
                visitor.visit_map(Inside { name: Some(name), of: Self { names, ..self } })
            }
            None => {
                self.found.set(Some(fields));
                self.deserialize_any(visitor)
            }
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
        if self.is_some {
            return self.deserialize_any(visitor);
        }
        visitor.visit_some(Self { is_some: true, ..self })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// A struct with one field.
struct Inside<'f> {
    name: Option<&'f str>,
    of: Asked<'f>,
}

impl<'de> de::MapAccess<'de> for Inside<'_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some(name) = self.name.take() else { return Ok(None) };
        let name: StrDeserializer<'_, Error> = name.into_deserializer();
        seed.deserialize(name).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        seed.deserialize(Asked { names: self.of.names, is_some: false, found: self.of.found })
    }
}
