//! Writes the names of types (`SPEC.md`, section 7.2).

use super::writer::Writer;
use super::{head, items};
use crate::error::{Error, Result};
use crate::type_name::{Parameter, TypeName};

impl Writer<'_> {
    /// Writes the name of a type and its parameters: the first two items of its array.
    pub fn type_name(&mut self, of: &TypeName) -> Result<()> {
        self.text(of.name())?;
        self.room(1)?;
        self.head(head::ARRAY, of.parameters().len() as u64)?;
        for parameter in of.parameters() {
            match parameter {
                // Not a bignum: see `TypeName::new`.
                Parameter::Integer(number) => {
                    let (negative, arg) = items::wide_signed(*number);
                    self.wide_integer(negative, arg)?;
                }
                Parameter::Text(text) => self.text(text)?,
            }
        }
        Ok(())
    }
}

#[cold]
pub fn null_of_type() -> Error {
    Error::data(
        "a value with the name of a type is null: put the option around the type, not into it",
    )
}
