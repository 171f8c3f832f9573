//! A serializer for encoded items in pieces: see [`Slot::Pieces`](crate::handoff::Slot::Pieces).

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};

use crate::error::{Error, Result};
use crate::serde_model::refuse;
use crate::wire::encoded;
use crate::wire::writer::Writer;

/// Accepts the pieces of one item. The caller has checked that there is room for the levels of nesting.
pub struct Pieces<'a, 'o>(pub &'a mut Writer<'o>);

#[cold]
fn no_piece() -> Error {
    Error::data("only pieces of an encoded item can be written here")
}

impl Serializer for Pieces<'_, '_> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Self;

    fn serialize_bytes(self, piece: &[u8]) -> Result<()> {
        // This has an effect only at the start of the item.
        if encoded::reads_as_none(piece) {
            self.0.mark_some()?;
        }
        self.0.put_slice(piece)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        self.0.ours(name, value)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self> {
        Ok(self)
    }

    refuse!(no_piece(); bool scalars numbers other_wrappers compounds);
}

impl SerializeSeq for Pieces<'_, '_> {
    type Ok = ();
    type Error = Error;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        value.serialize(Pieces(&mut *self.0))
    }

    fn end(self) -> Result<()> {
        Ok(())
    }
}
