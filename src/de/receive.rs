//! A visitor whose type is not known to who gives it a value.

use std::fmt;

use serde::de::{Expected, Visitor};

use super::columns::{RowElements, RowEntries};
use super::visit::visit_bytes;
use crate::error::{Error, Result};
use crate::io::source::SourceBytes;
use crate::mem::AnyVec;

/// A visitor, and the value that it has made. So code that does not depend on the type of the value is compiled once.
pub trait Receiver<'de> {
    /// Receives a sequence. Who gives it checks that all elements were taken: see [`RowElements::give`].
    fn elements(&mut self, elements: &mut RowElements<'_, 'de>) -> Result<()>;

    /// Receives a map. Who gives it checks that all entries were taken: see [`RowEntries::give`].
    fn entries(&mut self, entries: &mut RowEntries<'_, 'de>) -> Result<()>;

    fn bytes(&mut self, bytes: SourceBytes<'de, '_>) -> Result<()>;

    /// Receives the value that the visitor would make.
    fn vec(&mut self, vec: AnyVec);

    fn expected(&self) -> &dyn Expected;
}

impl<'de> RowElements<'_, 'de> {
    /// Like `visit`, for a visitor whose type is not known here.
    pub fn give(mut self, to: &mut dyn Receiver<'de>) -> Result<()> {
        let given = to.elements(&mut self);
        if given.is_ok() && self.is_at_end() { Ok(()) } else { Err(self.fault(given.err())) }
    }
}

impl<'de> RowEntries<'_, 'de> {
    /// Like `visit`, for a visitor whose type is not known here.
    pub fn give(mut self, to: &mut dyn Receiver<'de>) -> Result<()> {
        let given = to.entries(&mut self).and_then(|()| self.close());
        given.map_err(|error| self.here(error))
    }
}

struct Receive<V, T> {
    visitor: Option<V>,
    value: Option<T>,
}

impl<'de, V: Visitor<'de>> Receiver<'de> for Receive<V, V::Value> {
    fn elements(&mut self, elements: &mut RowElements<'_, 'de>) -> Result<()> {
        let visitor = self.visitor.take().ok_or_else(no_value)?;
        self.value = Some(visitor.visit_seq(elements)?);
        Ok(())
    }

    fn entries(&mut self, entries: &mut RowEntries<'_, 'de>) -> Result<()> {
        let visitor = self.visitor.take().ok_or_else(no_value)?;
        self.value = Some(visitor.visit_map(entries)?);
        Ok(())
    }

    fn bytes(&mut self, bytes: SourceBytes<'de, '_>) -> Result<()> {
        let visitor = self.visitor.take().ok_or_else(no_value)?;
        self.value = Some(visit_bytes(bytes, visitor)?);
        Ok(())
    }

    fn vec(&mut self, vec: AnyVec) {
        self.value = vec.into();
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
