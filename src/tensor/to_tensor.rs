//! The trait of types that can be written as a tensor.

use super::raw_tensor::CompactTensor;
use super::{Order, TensorMeta};
use crate::error::Result;
use crate::meta::CompactMeta;

/// Arrays that can be written as tensors.
///
/// Implemented for ndarray's arrays of any ownership and dimension (with the default feature `ndarray`), for
/// `Vec`, `Box<[_]>`, slices and arrays of elements, and for [`DynTensor`](super::DynTensor). Implement it
/// for an array type of your own to use that type in [`Tensor`](super::Tensor):
///
/// ```
/// use tenarc::tensor::{FromTensor, Order, RawTensor, Tensor, TensorMeta, ToTensor};
/// use tenarc::{DType, Error};
///
/// #[derive(Debug, PartialEq)]
/// struct Image {
///     width: usize,
///     pixels: Vec<u8>,
/// }
///
/// impl ToTensor for Image {
///     fn meta(&self) -> TensorMeta {
///         let height = self.pixels.len() / self.width;
///         TensorMeta::new(DType::U8, [height, self.width], Order::C)
///     }
///
///     fn as_le_bytes(&self) -> Option<&[u8]> {
///         Some(&self.pixels)
///     }
///
///     fn write_blocks(
///         &self,
///         put: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
///     ) -> Result<(), Error> {
///         put(&self.pixels)
///     }
/// }
///
/// impl FromTensor<'_> for Image {
///     fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self, Error> {
///         let tensor = tensor.into_row_major()?;
///         let [_, width] = *tensor.meta().shape else {
///             return Err(serde::de::Error::custom("an image has two dimensions"));
///         };
///         Ok(Self { width, pixels: tensor.into_vec()? })
///     }
/// }
///
/// let image = Tensor(Image { width: 2, pixels: vec![1, 2, 3, 4, 5, 6] });
/// let bytes = tenarc::to_vec(&image)?;
/// assert_eq!(tenarc::from_slice::<Tensor<Image>>(&bytes)?, image);
/// assert_eq!(tenarc::from_slice::<Tensor<ndarray::Array2<u8>>>(&bytes)?[[2, 1]], 6);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an array that can be written as a tensor",
    label = "not an array of elements",
    note = "a field that holds arrays in something else, such as `Option<Array2<f32>>` or \
            `Vec<Array2<f32>>`, takes no `#[serde(with = \"tenarc::tensor\")]`: make it an \
            `Option<Tensor<_>>`, a `Vec<Tensor<_>>` or a map of `Tensor<_>`",
    note = "elements are `bool`, integers of up to 64 bits, floats and complex numbers: see \
            `tenarc::tensor::Element`; arrays of ndarray and matrices of faer and nalgebra need the \
            features `ndarray`, `faer` and `nalgebra`"
)]
pub trait ToTensor {
    /// Dtype, shape and order.
    fn meta(&self) -> TensorMeta;

    /// All elements as they are stored: little-endian, in the order given by [`meta`](Self::meta). `None` if
    /// the elements are not in memory in this form.
    fn as_le_bytes(&self) -> Option<&[u8]>;

    /// Passes the bytes of all elements to `put`, in blocks of any size. These are the same bytes that
    /// [`as_le_bytes`](Self::as_le_bytes) returns, or would return.
    ///
    /// # Errors
    /// If `put` fails. Its error must be returned immediately.
    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// The number of payload bytes of a tensor with this [`meta`](Self::meta). `None` if it is not a whole
    /// number. Implement this only for dtypes of unknown size.
    fn byte_len(&self, meta: &TensorMeta) -> Option<usize> {
        meta.byte_len()
    }

    /// The array as a small tensor of the most usual form, if it is one. This crate's arrays find that out with less work.
    #[doc(hidden)]
    #[inline]
    fn as_block(&self) -> Option<CompactTensor<'_>> {
        let payload = self.as_le_bytes()?;
        let TensorMeta { dtype, shape, order } = self.meta();
        let usual = CompactMeta::of(&dtype, &shape).filter(|_| order == Order::C)?;
        CompactTensor::new(usual, payload, false)
    }
}

impl<T: ToTensor + ?Sized> ToTensor for &T {
    fn meta(&self) -> TensorMeta {
        (**self).meta()
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        (**self).as_le_bytes()
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        (**self).write_blocks(put)
    }

    fn byte_len(&self, meta: &TensorMeta) -> Option<usize> {
        (**self).byte_len(meta)
    }

    #[inline]
    fn as_block(&self) -> Option<CompactTensor<'_>> {
        (**self).as_block()
    }
}
