//! Which fields a struct asks for.

use std::cell::Cell;

use serde::de::{self, Deserialize, Visitor};
use serde::forward_to_deserialize_any;

use crate::error::{Error, Result};

/// The names of the fields that a type reads from a map, if it is a struct. They include aliases. `None` if it is
/// something else, or may read any field.
pub fn fields_of<'de, T: Deserialize<'de>>() -> Option<&'static [&'static str]> {
    let found = Cell::new(None);
    // This fails always: there is nothing to read.
    let _ = T::deserialize(Asked(&found));
    found.get()
}

/// A deserializer that only takes note of the fields it is asked for.
struct Asked<'f>(&'f Cell<Option<&'static [&'static str]>>);

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
        self.0.set(Some(fields));
        self.deserialize_any(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
