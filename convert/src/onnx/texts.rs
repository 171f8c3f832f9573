//! Tensors of texts, which become arrays of texts.

use std::cell::RefCell;
use std::ops::Range;

use serde::ser::{Error as _, Serialize, SerializeSeq as _, Serializer};
use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::tensor::{Payload, TensorEntry};
use super::wire::{Field, Wire};

/// A tensor of texts: nested arrays, one level for each dimension.
pub struct Texts<'a, S>(pub &'a TensorEntry, pub &'a S);

impl<S: ReadAt> Serialize for Texts<'_, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let Payload::Texts { message, field } = &self.0.payload else {
            return Err(Z::Error::custom("its elements are no texts"));
        };
        let texts = Strings::new(self.1, message, *field).map_err(Z::Error::custom)?;
        Level { shape: &self.0.shape, texts: &RefCell::new(texts) }.serialize(serializer)
    }
}

/// The strings of a message, one after the other.
struct Strings<'a, S> {
    wire: Wire<'a, S>,
    end: u64,
    field: u64,
}

impl<'a, S: ReadAt> Strings<'a, S> {
    fn new(source: &'a S, message: &Range<u64>, field: u64) -> Result<Self> {
        let mut wire = Wire::new(source, Limits::default())?;
        wire.skip_to(message.start)?;
        Ok(Self { wire, end: message.end, field })
    }

    fn next(&mut self) -> Result<String> {
        while let Some((number, field)) = self.wire.field(self.end)? {
            match field {
                Field::Bytes(range) if number == self.field => return self.wire.long_text(&range),
                other => self.wire.skip_to(other.range().end)?,
            }
        }
        Err(Error::eof("a text of a tensor"))
    }
}

/// What is left of the shape, and of the texts.
struct Level<'t, 'a, S> {
    shape: &'t [usize],
    texts: &'t RefCell<Strings<'a, S>>,
}

impl<S: ReadAt> Serialize for Level<'_, '_, S> {
    fn serialize<Z: Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
        let Some((&len, shape)) = self.shape.split_first() else {
            let text = self.texts.borrow_mut().next().map_err(Z::Error::custom)?;
            return serializer.serialize_str(&text);
        };
        let mut array = serializer.serialize_seq(Some(len))?;
        for _ in 0..len {
            array.serialize_element(&Level { shape, texts: self.texts })?;
        }
        array.end()
    }
}
