//! Sequences of numbers of one type.

use std::fmt;
use std::sync::OnceLock;

use serde::ser::{Serialize, Serializer};

use super::Value;
use crate::dtype::DType;
use crate::elements::{Element, Elements};
use crate::tensor::{DynTensor, serialize_numbers};

/// The numbers of a typed array without a shape (RFC 8746, section 2). A [`Value`](crate::Value) can contain them.
pub struct Numbers {
    pub(super) elements: Elements,
    /// Each number as a value of its own, once somebody has asked for one.
    pub(super) values: OnceLock<Vec<Value>>,
}

impl Clone for Numbers {
    fn clone(&self) -> Self {
        Self::new(self.elements.clone())
    }
}

impl PartialEq for Numbers {
    fn eq(&self, other: &Self) -> bool {
        self.elements == other.elements
    }
}

/// Shows dtype, length and the first 8 numbers.
// The values are the same numbers again.
#[allow(clippy::missing_fields_in_debug)]
impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Numbers");
        self.elements.show(shown.field("dtype", &self.dtype()).field("len", &self.len()))
    }
}

impl Numbers {
    pub(super) fn new(elements: Elements) -> Self {
        Self { elements, values: OnceLock::new() }
    }

    /// The type of the numbers.
    pub fn dtype(&self) -> DType {
        self.elements.dtype()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.elements.len()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers as a slice. `None` if they are not of type `A`.
    pub fn as_slice<A: Element>(&self) -> Option<&[A]> {
        A::slice(&self.elements)
    }
}

impl<A: Element> From<Vec<A>> for Numbers {
    /// Wraps a vector. There are no typed arrays of bool and bf16: they are written as plain sequences.
    fn from(values: Vec<A>) -> Self {
        Self::new(A::into_elements(values))
    }
}

impl Serialize for Numbers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_numbers(&self.elements, serializer)
    }
}

impl From<Numbers> for DynTensor {
    /// A tensor of one dimension.
    fn from(numbers: Numbers) -> Self {
        Self::of_elements(numbers.elements)
    }
}
