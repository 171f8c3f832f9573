//! Existing arrays into which tensors are loaded.

use super::DynTensor;
use crate::dtype::DType;
use crate::error::Result;

/// An existing array into which a tensor is loaded, with
/// [`load_multi_onto`](crate::named::load_multi_onto).
///
/// Implemented for owned and mutably borrowed ndarray arrays, and for [`DynTensor`]. Implement it for the
/// variables of a framework.
pub trait Variable {
    /// The type of the elements. A loaded tensor must have the same.
    fn tensor_dtype(&self) -> DType;

    /// The dimensions. A loaded tensor must have the same.
    fn tensor_shape(&self) -> &[usize];

    /// Loads the elements of a tensor that has this dtype and shape.
    ///
    /// # Errors
    /// If the elements cannot be loaded.
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
