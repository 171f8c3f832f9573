//! serde implementations and checks for [`RawValue`], an item in its encoded form.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::elements::FirstOf;
use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::io::input::Input;
use crate::mem::RawValue;
use crate::options::Limits;
use crate::value;
use crate::wire::reader::Reader;

impl RawValue {
    /// Borrows the bytes of one encoded item as a `RawValue`.
    ///
    /// ```
    /// use tenarc::value::RawValue;
    ///
    /// let encoded = tenarc::to_vec(&("request", [1, 2, 3]))?;
    /// let (kind, body): (&str, &RawValue) = tenarc::from_slice(&encoded)?; // does not decode the body
    /// assert_eq!((kind, body.get::<[u8; 3]>()?), ("request", [1, 2, 3]));
    /// assert_eq!(RawValue::from_bytes(body.as_bytes())?, body);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `encoded` is not exactly one well-formed item, or is nested deeper than 128 levels.
    pub fn from_bytes(encoded: &[u8]) -> Result<&Self> {
        let mut wire = Reader::new(Input::slice(encoded), Limits::default());
        wire.skip()?;
        match wire.peek()? {
            None => Ok(crate::mem::raw_value(encoded)),
            Some(_) => {
                Err(Error::syntax("expected exactly one item, found more bytes").at(wire.offset()))
            }
        }
    }

    /// Decodes the item.
    ///
    /// # Errors
    /// If the item does not fit the type.
    pub fn get<'de, T: Deserialize<'de>>(&'de self) -> Result<T> {
        crate::from_slice(self.as_bytes())
    }
}

/// The maximum length of an item whose content `Debug` shows.
const SHOWN: usize = 1024;

/// Shows an item of up to 1,024 bytes in diagnostic notation. For a longer item, shows the length and the first 8
/// bytes.
impl fmt::Debug for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.as_bytes();
        if bytes.len() <= SHOWN
            && let Ok(notation) = crate::diag::to_string(bytes)
        {
            return write!(f, "RawValue({notation})");
        }
        f.debug_struct("RawValue")
            .field("len", &bytes.len())
            .field("bytes", &FirstOf::<_>(bytes))
            .finish()
    }
}

impl Clone for Box<RawValue> {
    fn clone(&self) -> Self {
        crate::mem::boxed_raw_value(self.as_bytes().into())
    }
}

impl ToOwned for RawValue {
    type Owned = Box<RawValue>;

    fn to_owned(&self) -> Box<RawValue> {
        crate::mem::boxed_raw_value(self.as_bytes().into())
    }
}

impl Serialize for RawValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        handoff::offer(Slot::Raw, || {
            serializer.serialize_newtype_struct(name::RAW, serde_bytes::Bytes::new(self.as_bytes()))
        })
    }
}

struct Borrowed;

impl<'de> Visitor<'de> for Borrowed {
    type Value = &'de RawValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an encoded item in a slice")
    }

    fn visit_borrowed_bytes<E: serde::de::Error>(
        self,
        item: &'de [u8],
    ) -> Result<&'de RawValue, E> {
        RawValue::from_bytes(item).map_err(|error| error.through(E::custom))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<&'de RawValue, D::Error> {
        deserializer.deserialize_bytes(self)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<&'de RawValue, E> {
        Err(E::invalid_type(Unexpected::Other("a value that is not encoded"), &self))
    }
}

struct Owned;

impl<'de> Visitor<'de> for Owned {
    type Value = Box<RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an encoded item")
    }

    fn visit_bytes<E: serde::de::Error>(self, item: &[u8]) -> Result<Box<RawValue>, E> {
        RawValue::from_bytes(item).map(ToOwned::to_owned).map_err(|error| error.through(E::custom))
    }

    fn visit_byte_buf<E: serde::de::Error>(self, item: Vec<u8>) -> Result<Box<RawValue>, E> {
        RawValue::from_bytes(&item).map_err(|error| error.through(E::custom))?;
        Ok(crate::mem::boxed_raw_value(item.into_boxed_slice()))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Box<RawValue>, D::Error> {
        deserializer.deserialize_byte_buf(self)
    }

    /// Called by the deserializer of a [`Value`](crate::Value): see [`value::encode`].
    fn visit_unit<E: serde::de::Error>(self) -> Result<Box<RawValue>, E> {
        match value::encode(crate::to_vec)? {
            Some(item) => self.visit_byte_buf(item),
            None => Err(E::invalid_type(Unexpected::Unit, &self)),
        }
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Box<RawValue>, E> {
        Err(E::invalid_type(Unexpected::Str(text), &self))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for &'a RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(name::RAW, Borrowed)
    }
}

impl<'de> Deserialize<'de> for Box<RawValue> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(name::RAW, Owned)
    }
}
