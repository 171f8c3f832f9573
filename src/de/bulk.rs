//! Plain `Vec`s of numbers filled by one copy.
//!
//! serde gives a format no way to know that a sequence goes into a `Vec<f32>`: it sees a visitor,
//! and hands it element after element. But serde's own visitor for `Vec<f32>` can be told apart from
//! all others by its type, and what it makes of a typed array of `f32` is known. So this asks serde
//! once for each number type which visitor it uses, by deserializing a `Vec` from a deserializer
//! that only looks, and does that visitor's work in one copy wherever it shows up again. Every
//! other visitor gets its elements one by one.

use std::any::TypeId;
use std::fmt;
use std::sync::OnceLock;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::dtype::DType;

/// The visitors of `Vec<u8>` and so on, as far as serde uses one.
struct Visitors([Option<TypeId>; 10]);

macro_rules! visitors {
    ($($dtype:ident $type:ty, $at:literal;)*) => {
        impl Visitors {
            fn learn() -> Self {
                Self([$(visitor_of::<Vec<$type>>(),)*])
            }

            fn of(&self, dtype: &DType) -> Option<TypeId> {
                match dtype {
                    $(DType::$dtype => self.0.get($at).copied().flatten(),)*
                    _ => None,
                }
            }
        }
    };
}

visitors! {
    U8 u8, 0;
    U16 u16, 1;
    U32 u32, 2;
    U64 u64, 3;
    I8 i8, 4;
    I16 i16, 5;
    I32 i32, 6;
    I64 i64, 7;
    F32 f32, 8;
    F64 f64, 9;
}

/// Whether `V` is serde's visitor for a `Vec` of the elements of this dtype, which takes them all
/// and does nothing else.
#[inline]
pub fn is_vec_of<'de, V: Visitor<'de>>(dtype: &DType) -> bool {
    static VISITORS: OnceLock<Visitors> = OnceLock::new();

    VISITORS.get_or_init(Visitors::learn).of(dtype) == Some(typeid::of::<V>())
}

fn visitor_of<'de, T: Deserialize<'de>>() -> Option<TypeId> {
    T::deserialize(Look).err()?.0
}

/// Fails with the visitor it is given for a sequence.
struct Look;

#[derive(Debug)]
struct Seen(Option<TypeId>);

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing is deserialized here")
    }
}

impl std::error::Error for Seen {}

impl serde::de::Error for Seen {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

impl<'de> Deserializer<'de> for Look {
    type Error = Seen;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Seen> {
        Err(Seen(None))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Seen> {
        Err(Seen(Some(typeid::of::<V>())))
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_a_visitor_for_each_number_type() {
        let visitors = Visitors::learn();
        for (at, id) in visitors.0.iter().enumerate() {
            assert!(id.is_some(), "{at}");
            assert!(!visitors.0[..at].contains(id), "{at}");
        }
    }
}
