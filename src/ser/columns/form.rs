//! Tells whether a value is a record, whose sequences are written as columns.

use std::fmt;

use serde::Serialize;
use serde::ser::{Impossible, Serializer};

use crate::handoff::name;
use crate::serde_model::refuse;

/// Whether the value is a struct, a tuple or an enum, or contains one as `Some` or as a newtype.
pub fn is_record<T: Serialize + ?Sized>(value: &T) -> bool {
    matches!(value.serialize(Look), Err(Seen::Record))
}

struct Look;

/// The form of a value. The serializer returns it as its error, so that it stops at the first call.
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

type Never = Impossible<(), Seen>;

impl Serializer for Look {
    type Ok = ();
    type Error = Seen;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;
    type SerializeMap = Never;
    type SerializeStruct = Never;
    type SerializeStructVariant = Never;

    refuse!(Seen::Other; bool numbers bytes seq);

    fn serialize_char(self, _: char) -> Result<(), Seen> {
        Err(Seen::Other)
    }

    fn serialize_str(self, _: &str) -> Result<(), Seen> {
        Err(Seen::Other)
    }

    fn serialize_none(self) -> Result<(), Seen> {
        Err(Seen::Other)
    }

    fn serialize_unit(self) -> Result<(), Seen> {
        Err(Seen::Other)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Seen> {
        Err(Seen::Other)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Seen> {
        value.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<(), Seen> {
        if name::is_ours(name) { Err(Seen::Other) } else { value.serialize(self) }
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Never, Seen> {
        Err(Seen::Other)
    }

    fn collect_str<T: fmt::Display + ?Sized>(self, _: &T) -> Result<(), Seen> {
        Err(Seen::Other)
    }

    fn serialize_unit_variant(self, _: &str, _: u32, _: &str) -> Result<(), Seen> {
        Err(Seen::Record)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<(), Seen> {
        Err(Seen::Record)
    }

    fn serialize_tuple(self, _: usize) -> Result<Never, Seen> {
        Err(Seen::Record)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Never, Seen> {
        Err(Seen::Record)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, Seen> {
        Err(Seen::Record)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Never, Seen> {
        Err(Seen::Record)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Never, Seen> {
        Err(Seen::Record)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
