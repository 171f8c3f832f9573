//! Sequences of numbers of one type.

use std::fmt;

use crate::dtype::DType;
use crate::elements::{Element, Elements};

/// The numbers of a typed array without a shape (RFC 8746, section 2). A [`Value`](crate::Value) can contain them.
#[derive(Clone, PartialEq)]
pub struct Numbers(pub(crate) Elements);

/// Shows dtype, length and the first 8 numbers.
impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Numbers");
        self.0.show(shown.field("dtype", &self.dtype()).field("len", &self.len()))
    }
}

impl Numbers {
    /// The type of the numbers.
    pub fn dtype(&self) -> DType {
        self.0.dtype()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers as a slice. `None` if they are not of type `A`.
    pub fn as_slice<A: Element>(&self) -> Option<&[A]> {
        A::slice(&self.0)
    }
}

impl<A: Element> From<Vec<A>> for Numbers {
    /// Wraps a vector. There are no typed arrays of bool and bf16: they are written as plain sequences.
    fn from(values: Vec<A>) -> Self {
        Self(A::into_elements(values))
    }
}
