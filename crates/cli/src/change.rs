//! How the elements of a tensor change while they are copied.

use std::rc::Rc;

use tenarc::DType;

use crate::elements::Cast;
use crate::failure::Result;
use crate::lora::{Adding, Delta};

/// What happens to the elements of a tensor.
#[derive(Clone)]
pub enum Change<'a> {
    /// They get another dtype.
    Cast(DType),
    /// A product of two matrices is added.
    Add(Rc<Delta<'a>>),
}

/// A change of a tensor that is being read.
pub enum Changing {
    Cast(Cast),
    Add(Adding),
}

impl Change<'_> {
    /// Returns the dtype of the elements after the change.
    pub fn dtype<'d>(&'d self, from: &'d DType) -> &'d DType {
        match self {
            Self::Cast(dtype) => dtype,
            Self::Add(_) => from,
        }
    }

    /// Checks that elements of a dtype can change so.
    ///
    /// # Errors
    /// If there is no such cast.
    pub fn check(&self, from: &DType) -> Result<()> {
        match self {
            Self::Cast(dtype) => Cast::new(from, dtype).map(drop),
            Self::Add(_) => Ok(()),
        }
    }

    /// Starts to change a tensor at its first element.
    ///
    /// # Errors
    /// If there is no such cast, or if the matrices cannot be read.
    pub fn start(&self, from: &DType) -> Result<Changing> {
        Ok(match self {
            Self::Cast(dtype) => Changing::Cast(Cast::new(from, dtype)?),
            Self::Add(delta) => Changing::Add(delta.start(from)?),
        })
    }
}

impl Changing {
    /// Changes the next block, which may have any length.
    ///
    /// # Errors
    /// If an element does not fit in its new dtype.
    pub fn block(&mut self, block: &[u8]) -> Result<Vec<u8>> {
        match self {
            Self::Cast(cast) => cast.block(block),
            Self::Add(adding) => Ok(adding.block(block)),
        }
    }
}
