//! Fills a `Vec` of numbers with one copy.
//!
//! In serde, a format cannot know that a sequence goes into a `Vec<f32>`: it gets a visitor and passes it one element
//! after the other. But serde's own visitor for `Vec<f32>` has a type of its own, and it is known that this visitor
//! only collects the elements.
//!
//! So for each number type, this module finds out once which visitor serde uses: it deserializes a
//! `Vec` from a deserializer that only looks at the type of the visitor. When that visitor appears
//! again, the format fills the `Vec` with one copy instead. All other visitors get their elements one
//! by one.

use std::any::TypeId;
use std::fmt;
use std::sync::OnceLock;

use serde::de::{Deserialize, Deserializer, Visitor};
use serde::forward_to_deserialize_any;

use crate::dtype::DType;
use crate::wire::columns::NumberType;

/// The elements of a `Vec` that is filled at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    Number(NumberType),
    Bool,
}

impl Fill {
    /// Whether the elements have this dtype. Bools are stored in another way than as numbers.
    pub fn is(self, dtype: &DType) -> bool {
        matches!(self, Self::Number(kind) if kind.dtype() == *dtype)
    }
}

/// The types of serde's visitors for `Vec<u8>` and so on. `None` if none was found.
struct Visitors {
    numbers: [Option<TypeId>; 10],
    bools: Option<TypeId>,
}

macro_rules! visitors {
    ($($dtype:ident $type:ty, $at:literal;)*) => {
        impl Visitors {
            fn learn() -> Self {
                Self { numbers: [$(visitor_of::<Vec<$type>>(),)*], bools: visitor_of::<Vec<bool>>() }
            }

            #[inline]
            fn of(&self, fill: Fill) -> Option<TypeId> {
                match fill {
                    $(Fill::Number(NumberType::$dtype) => self.numbers.get($at).copied().flatten(),)*
                    Fill::Number(_) => None,
                    Fill::Bool => self.bools,
                }
            }
        }

        /// The elements, if `T` is the `Vec` of such elements. The compiler knows the answer.
        #[inline]
        fn elements_of<T>() -> Option<Fill> {
            let id = typeid::of::<T>();
            $(if id == TypeId::of::<Vec<$type>>() {
                return Some(Fill::Number(NumberType::$dtype));
            })*
            (id == TypeId::of::<Vec<bool>>()).then_some(Fill::Bool)
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

/// The elements, if `V` is serde's visitor for a `Vec` of numbers or bools. That visitor collects all elements and does
/// nothing else.
#[inline]
pub fn fills<'de, V: Visitor<'de>>() -> Option<Fill> {
    let fill = elements_of::<V::Value>()?;
    is_visitor(typeid::of::<V>(), fill).then_some(fill)
}

/// Whether `V` is serde's visitor for a `Vec` of elements of this dtype.
#[inline]
pub fn is_vec_of<'de, V: Visitor<'de>>(dtype: &DType) -> bool {
    fills::<V>().is_some_and(|fill| fill.is(dtype))
}

#[inline]
fn is_visitor(id: TypeId, fill: Fill) -> bool {
    static VISITORS: OnceLock<Visitors> = OnceLock::new();

    VISITORS.get_or_init(Visitors::learn).of(fill) == Some(id)
}

fn visitor_of<'de, T: Deserialize<'de>>() -> Option<TypeId> {
    T::deserialize(VisitorProbe).err()?.0
}

/// A deserializer that always fails. For a sequence, the error contains the type of the visitor.
struct VisitorProbe;

#[derive(Debug)]
struct RevealedVisitor(Option<TypeId>);

impl fmt::Display for RevealedVisitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nothing is deserialized here")
    }
}

impl std::error::Error for RevealedVisitor {}

impl serde::de::Error for RevealedVisitor {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

impl<'de> Deserializer<'de> for VisitorProbe {
    type Error = RevealedVisitor;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RevealedVisitor> {
        Err(RevealedVisitor(None))
    }

    fn deserialize_seq<V: Visitor<'de>>(self, _: V) -> Result<V::Value, RevealedVisitor> {
        Err(RevealedVisitor(Some(typeid::of::<V>())))
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
        for (at, id) in visitors.numbers.iter().enumerate() {
            assert!(id.is_some(), "{at}");
            assert!(!visitors.numbers[..at].contains(id), "{at}");
        }
        assert!(visitors.bools.is_some() && !visitors.numbers.contains(&visitors.bools));
    }
}
