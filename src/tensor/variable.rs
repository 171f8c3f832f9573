//! Arrays that tensors are loaded onto.

use super::DynTensor;
use crate::dtype::DType;
use crate::error::Result;

/// An array in a program that a tensor is loaded onto: see
/// [`load_multi_onto`](crate::named::load_multi_onto).
///
/// Implemented for owned and mutably viewed ndarray arrays, and [`DynTensor`]. Implement it for the
/// variables of a framework.
pub trait Variable {
    /// The type of its elements, which the tensor must have.
    fn tensor_dtype(&self) -> DType;

    /// Its dimensions, which the tensor must have.
    fn tensor_shape(&self) -> &[usize];

    /// Takes the elements of a tensor of that dtype and shape.
    ///
    /// # Errors
    /// Where they cannot be taken.
    fn load_tensor(&mut self, tensor: DynTensor) -> Result<()>;
}

impl Variable for DynTensor {
    fn tensor_dtype(&self) -> DType {
        self.dtype().clone()
    }

    fn tensor_shape(&self) -> &[usize] {
        self.shape()
    }

    fn load_tensor(&mut self, tensor: DynTensor) -> Result<()> {
        *self = tensor;
        Ok(())
    }
}
