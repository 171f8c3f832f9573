//! What can be read from a tensor.

use super::RawTensor;
use crate::error::Result;

/// Arrays that can be read from tensors; the counterpart of [`ToTensor`].
pub trait FromTensor<'de>: Sized {
    /// Makes the array.
    ///
    /// # Errors
    /// Where dtype, shape or alignment do not fit.
    fn from_tensor(tensor: RawTensor<'de, '_>) -> Result<Self>;
}
