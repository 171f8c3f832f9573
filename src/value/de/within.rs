//! `Deserializer` for `Value`, `&Value`, and for values inside `Some`.

use serde::de::{self, Visitor};

use super::node::Node;
use crate::error::{Error, Result};
use crate::value::Value;

/// A value inside `somes` levels of `Some`, none of which is visible in the data. They are counted, because a recursive
/// type such as `struct A(Option<Box<A>>)` would otherwise recurse forever.
pub struct Within<'de> {
    pub node: Node<'de>,
    pub somes: u32,
}

impl<'de> Within<'de> {
    fn around(value: Value) -> Self {
        Self { node: Node::Owned(value), somes: 0 }
    }

    fn around_borrowed(value: &'de Value) -> Self {
        Self { node: Node::Borrowed(value), somes: 0 }
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
