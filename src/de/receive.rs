//! A visitor whose type is not known to who gives it a value.

use std::fmt;

use serde::de::{Expected, Visitor};

use super::columns::{RowElements, RowEntries};
use super::items::visit_bytes;
use crate::error::{Error, Result};
use crate::io::source::SourceBytes;
use crate::mem::AnyVec;

/// What a visitor is given.
pub enum Given<'c, 'de> {
    Elements(RowElements<'c, 'de>),
    Entries(RowEntries<'c, 'de>),
    Bytes(SourceBytes<'de, 'c>),
    /// The value that the visitor would make.
    Vec(AnyVec),
}

/// A visitor, and the value that it has made. So code that does not depend on the type of the value is compiled once.
pub trait Receiver<'de> {
    fn receive(&mut self, given: Given<'_, 'de>) -> Result<()>;

    fn expected(&self) -> &dyn Expected;
}

struct Receive<V, T> {
    visitor: Option<V>,
    value: Option<T>,
}

impl<'de, V: Visitor<'de>> Receiver<'de> for Receive<V, V::Value> {
    fn receive(&mut self, given: Given<'_, 'de>) -> Result<()> {
        let Some(visitor) = self.visitor.take() else { return Ok(()) };
        self.value = match given {
            Given::Elements(elements) => Some(elements.visit(visitor)?),
            Given::Entries(entries) => Some(entries.visit(visitor)?),
            Given::Bytes(bytes) => Some(visit_bytes(bytes, visitor)?),
            Given::Vec(vec) => vec.into(),
        };
        Ok(())
    }

    fn expected(&self) -> &dyn Expected {
        self
    }
}

impl<'de, V: Visitor<'de>> Expected for Receive<V, V::Value> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.visitor {
            Some(visitor) => visitor.expecting(f),
            None => f.write_str("a value"),
        }
    }
}

/// Returns the value that a visitor has made of what `give` gives it.
#[inline]
pub fn received<'de, V: Visitor<'de>>(
    visitor: V,
    give: impl FnOnce(&mut dyn Receiver<'de>) -> Result<()>,
) -> Result<V::Value> {
    let mut receive = Receive { visitor: Some(visitor), value: None };
    give(&mut receive)?;
    match receive.value {
        Some(value) => Ok(value),
        None => Err(no_value()),
    }
}

#[cold]
fn no_value() -> Error {
    Error::data("the visitor was given no value")
}
