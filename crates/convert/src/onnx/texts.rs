//! Reads tensors of texts. They become arrays of texts.

use std::ops::Range;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::tensor::{Entry, Payload};
use super::wire::{Field, Wire};
use crate::texts::Texts;

/// Returns the texts of a tensor.
///
/// # Errors
/// If the elements of the tensor are not texts.
pub fn of<'a, S: ReadAt>(tensor: &'a Entry, source: &'a S) -> Result<Texts<'a>> {
    let Payload::Texts { message, field } = &tensor.payload else {
        return Err(Error::mismatch("the elements of the tensor are not texts"));
    };
    Texts::new(&tensor.shape, move || {
        let mut strings = Strings::new(source, message, *field)?;
        Ok(Box::new(move || strings.next()))
    })
}

/// Reads the strings in a field of a message, one after the other.
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

    fn next(&mut self) -> Result<Vec<u8>> {
        while let Some((number, field)) = self.wire.field(self.end)? {
            match field {
                Field::Bytes(range) if number == self.field => return self.wire.bytes(&range),
                other => self.wire.skip_to(other.range().end)?,
            }
        }
        Err(Error::eof("a text of a tensor"))
    }
}
