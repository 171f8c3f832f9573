//! The trait of types that can be read from a tensor.

use super::RawTensor;
use super::raw_tensor::CompactTensor;
use crate::error::Result;

/// Arrays that can be read from tensors. The documentation of [`ToTensor`](super::ToTensor), the trait for writing,
/// shows how to implement both.
///
/// [`RawTensor::meta`] returns dtype, shape and order. [`RawTensor::into_vec`],
/// [`RawTensor::borrow`] or [`RawTensor::into_dyn`] then returns the elements in that order. A type that is
/// always row-major calls [`RawTensor::into_row_major`] first.
///
/// ```
/// use tenarc::tensor::{FromTensor, RawTensor, Tensor};
///
/// #[derive(Debug, PartialEq)]
/// struct Largest(f32);
///
/// impl FromTensor<'_> for Largest {
///     fn from_tensor(tensor: RawTensor<'_, '_>) -> tenarc::Result<Self> {
///         Ok(Self(tensor.into_vec::<f32>()?.into_iter().fold(f32::MIN, f32::max)))
///     }
/// }
///
/// let bytes = tenarc::to_vec(&Tensor(vec![1.5f32, 7.0, 3.0]))?;
/// assert_eq!(tenarc::from_slice::<Tensor<Largest>>(&bytes)?.0, Largest(7.0));
/// # Ok::<(), tenarc::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array that can be read from a tensor",
    label = "not an array of elements",
    note = "a field that holds arrays in something else, such as `Option<Array2<f32>>` or \
            `Vec<Array2<f32>>`, takes no `#[serde(with = \"tenarc::tensor\")]`: make it an \
            `Option<Tensor<_>>`, a `Vec<Tensor<_>>` or a map of `Tensor<_>`",
    note = "elements are `bool`, integers of up to 64 bits, floats and complex numbers: see \
            `tenarc::tensor::Element`; arrays of ndarray and matrices of faer and nalgebra need the \
            features `ndarray`, `faer` and `nalgebra`"
)]
pub trait FromTensor<'de>: Sized {
    /// Makes the array.
    ///
    /// # Errors
    /// If the array cannot have the tensor's dtype or shape, or if it borrows elements that are not aligned.
    fn from_tensor(tensor: RawTensor<'de, '_>) -> Result<Self>;

    /// Makes the array from a small tensor. This crate's arrays do it with less work.
    #[doc(hidden)]
    fn from_block(block: CompactTensor<'de>) -> Result<Self> {
        Self::from_tensor(block.general()?)
    }
}
