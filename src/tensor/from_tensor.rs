//! What can be read from a tensor.

use super::RawTensor;
use crate::error::Result;

/// Arrays that can be read from tensors; the counterpart of [`ToTensor`](super::ToTensor), which shows
/// how to implement both.
///
/// [`RawTensor::meta`] tells dtype, shape and order; then one of [`RawTensor::into_vec`],
/// [`RawTensor::borrow`] and [`RawTensor::into_dyn`] gives the elements, in that order.
/// [`RawTensor::into_row_major`] comes first for a type that is always row-major.
pub trait FromTensor<'de>: Sized {
    /// Makes the array.
    ///
    /// # Errors
    /// Where dtype, shape or alignment do not fit.
    fn from_tensor(tensor: RawTensor<'de, '_>) -> Result<Self>;
}
