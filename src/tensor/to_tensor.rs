//! What can be written as a tensor.

use super::TensorMeta;
use crate::error::Result;

/// Arrays that can be written as tensors.
///
/// Implemented for ndarray's arrays of any ownership and dimension, `Vec`, `Box<[_]>`, slices and
/// arrays of elements, and [`DynTensor`]. Implement it for an array type of your own to use it in
/// [`Tensor`].
pub trait ToTensor {
    /// Dtype, shape and order.
    fn meta(&self) -> TensorMeta;

    /// All elements as they go into a document: little-endian, in the order that
    /// [`meta`](Self::meta) tells. `None` where they do not lie in memory like that.
    fn as_le_bytes(&self) -> Option<&[u8]>;

    /// Hands over the bytes that [`as_le_bytes`](Self::as_le_bytes) would give in blocks of any
    /// size.
    ///
    /// # Errors
    /// Those of `put`, which end the call.
    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>;

    /// The number of payload bytes of a tensor of this [`meta`](Self::meta), if it is a whole
    /// number; to be given only for dtypes of unknown size.
    fn byte_len(&self, meta: &TensorMeta) -> Option<usize> {
        meta.byte_len()
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
}
