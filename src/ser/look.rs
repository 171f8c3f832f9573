//! [`Look`]: tells what a value is, without writing it.

use std::any::TypeId;
use std::fmt;

use serde::Serialize;
use serde::ser::Serializer;

use super::kind::{Primitive, is_number};
use crate::handoff::name;
use crate::serde_model::{for_each_number, refuse};
use crate::wire::items::Plain;

/// A value that is one number or bool.
#[derive(Clone, Copy, Debug)]
pub enum Leaf {
    Number(Primitive),
    Bool(bool),
}

impl Leaf {
    /// How it is written outside of a typed array.
    #[inline]
    pub fn plain(self) -> Plain {
        match self {
            Self::Number(number) => number.plain(),
            Self::Bool(value) => Plain::Bool(value),
        }
    }
}

/// Whether the value is a struct, a tuple or an enum, or contains one as `Some` or as a newtype. Sequences of records are
/// written as columns.
pub fn is_record<T: Serialize + ?Sized>(value: &T) -> bool {
    matches!(value.serialize(Look), Err(Seen::Record))
}

/// The number that `value` is, if it is one.
#[inline]
pub fn number<T: Serialize + ?Sized>(value: &T) -> Option<Primitive> {
    match value.serialize(Look) {
        Ok(Leaf::Number(number)) => Some(number),
        _ => None,
    }
}

/// The number or bool that `value` is, if its type is a primitive one or a reference to one.
#[inline]
pub fn leaf<T: Serialize + ?Sized>(value: &T) -> Option<Leaf> {
    if is_leaf::<T>() { value.serialize(Look).ok() } else { None }
}

/// Whether `T` is a primitive number, a bool, or a reference to one. The compiler knows the answer.
#[inline]
pub fn is_leaf<T: ?Sized>() -> bool {
    is_number::<T>() || is_bool::<T>()
}

/// Whether `T` is a bool or a reference to one. The compiler knows the answer.
#[inline]
pub fn is_bool<T: ?Sized>() -> bool {
    let id = typeid::of::<T>();
    id == TypeId::of::<bool>() || id == TypeId::of::<&'static bool>()
}

/// Whether `T` is a text or a reference to one. Then serializing it only calls the serializer's method for
/// texts. The compiler knows the answer.
#[inline]
pub fn is_text<T: ?Sized>() -> bool {
    let id = typeid::of::<T>();
    id == TypeId::of::<String>() || id == TypeId::of::<str>() || id == TypeId::of::<&'static str>()
}

/// Whether `T` is a type that is never written as null or anything else that an option reads as `None`.
/// The compiler knows the answer.
#[inline]
pub fn is_never_none<T: ?Sized>() -> bool {
    is_leaf::<T>() || is_text::<T>()
}

/// A serializer that returns a number or bool, and only says of everything else what it is. All of it is inlined, so that a loop
/// over numbers stays a simple loop. There is one such serializer, because the type of a user is compiled for each.
struct Look;

/// What a value is that is no number or bool. It is an error, so that the value's own code stops at the first call.
#[derive(Debug)]
enum Seen {
    Record,
    Other,
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("seen")
    }
}

impl std::error::Error for Seen {}

impl serde::ser::Error for Seen {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self::Other
    }
}

macro_rules! leaves {
    ($($kind:ident $type:ty, $method:ident;)*) => {$(
        #[inline]
        fn $method(self, value: $type) -> Result<Leaf, Seen> {
            Ok(Leaf::Number(Primitive::$kind(value)))
        }
    )*};
}

impl Serializer for Look {
    type Ok = Leaf;
    type Error = Seen;

    for_each_number!(leaves);

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<Leaf, Seen> {
        Ok(Leaf::Bool(value))
    }

    refuse!(Seen::Other; plain_scalars bytes seq map text);
    refuse!(Seen::Record; unit_variant newtype_variant tuples_and_structs);

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Leaf, Seen> {
        inside(value)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<Leaf, Seen> {
        if name::is_ours(name) { Err(Seen::Other) } else { inside(value) }
    }
}

/// What is in a `Some` or a newtype. A number in one is no number.
fn inside<T: Serialize + ?Sized>(value: &T) -> Result<Leaf, Seen> {
    match value.serialize(Look) {
        Ok(_) => Err(Seen::Other),
        seen => seen,
    }
}
