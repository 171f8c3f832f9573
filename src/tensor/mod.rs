//! Tensors: arrays that are written and read as one block of bytes.
//!
//! Wrap an array in [`Tensor`], or mark the field and leave its type alone:
//!
//! ```
//! use ndarray::{Array1, Array2, array};
//! use serde::{Deserialize, Serialize};
//! use tenarc::Tensor;
//!
//! #[derive(Serialize, Deserialize, Debug, PartialEq)]
//! struct Linear {
//!     weight: Tensor<Array2<f32>>,
//!     #[serde(with = "tenarc::tensor")]
//!     bias: Array1<f32>,
//!     #[serde(with = "tenarc::tensor")]
//!     scale: [f64; 100],
//! }
//!
//! let linear = Linear {
//!     weight: array![[1.0, 2.0], [3.0, 4.0]].into(),
//!     bias: array![0.5, -0.5],
//!     scale: [1.0; 100],
//! };
//! let bytes = tenarc::to_vec(&linear)?;
//! assert_eq!(tenarc::from_slice::<Linear>(&bytes)?, linear);
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! | read into | from a slice | from a reader |
//! |---|---|---|
//! | `Array`, `ArcArray`, `Vec`, `Box<[_]>`, `[_; N]`, [`DynTensor`] | one copy | read in place |
//! | `ArrayView` | no copy; an error where the payload does not lie aligned | an error |
//! | `CowArray` | no copy where the payload lies aligned, else one | read in place |
//! | [`SharedTensor`] | one copy; none from [shared parts](crate::parts::Parts::load_shared) | read in place |
//!
//! Asking for another element type than the stored one is an error that names both; see [`cast`]
//! for conversions.

mod arrays;
mod deferred;
mod dynamic;
mod rows;
mod shared;
mod visit;
mod write;

use std::fmt;
use std::ops::{Deref, DerefMut};

use ndarray::Dimension;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use deferred::Deferred;
pub use dynamic::DynTensor;
pub use rows::Rows;
pub use shared::SharedTensor;
pub(crate) use visit::FIELDS;

pub use crate::dtype::{DType, Element, OtherDType};
pub use crate::meta::{Order, TensorMeta, element_count};
pub use crate::segment::path::TensorInfo;

use crate::elements::{self, Elements};
use crate::error::{Error, Result};
use crate::io::shared::SharedBytes;

/// An array that is written and read as one block: the newtype that gives a field of a derived
/// struct the fast path.
///
/// Under other serde formats it is a struct of dtype, shape, order and bytes, or under those
/// meant for people, such as JSON, `{dtype, shape, data}` with the elements as numbers in
/// row-major order, non-finite ones as the strings `"NaN"`, `"inf"` and `"-inf"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tensor<T>(pub T);

impl<T> Tensor<T> {
    /// The array.
    pub fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for Tensor<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for Tensor<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> From<T> for Tensor<T> {
    fn from(array: T) -> Self {
        Self(array)
    }
}

impl<T: ToTensor> Serialize for Tensor<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize(&self.0, serializer)
    }
}

impl<'de, T: FromTensor<'de>> Deserialize<'de> for Tensor<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize(deserializer).map(Self)
    }
}

/// Writes an array as a tensor: for `#[serde(with = "tenarc::tensor")]`.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<T: ToTensor + ?Sized, S: Serializer>(
    array: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    write::serialize(array, serializer)
}

/// Reads an array that was written as a tensor: for `#[serde(with = "tenarc::tensor")]`.
///
/// # Errors
/// Where the document holds no tensor, or one of another dtype or number of dimensions.
pub fn deserialize<'de, T: FromTensor<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    visit::deserialize(deserializer, false)
}

/// Tensors whose stored dtype may be another: `#[serde(with = "tenarc::tensor::cast")]`.
///
/// Writing is as without. Reading converts each element, and is an error where one does not hold
/// the same number in the dtype asked for: every `f16` goes into an `f32`, but of the `f64`
/// values only those that are an `f32` to the last bit, and no NaN goes into an integer.
pub mod cast {
    use super::{Deserializer, FromTensor, Result, visit};

    pub use super::serialize;

    /// Reads a tensor of any dtype whose elements the one asked for holds exactly.
    ///
    /// # Errors
    /// As [`tensor::deserialize`](super::deserialize), and where an element does not fit.
    pub fn deserialize<'de, T: FromTensor<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<T, D::Error> {
        visit::deserialize(deserializer, true)
    }
}

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
        let count = element_count(meta.shape.slice())?;
        meta.dtype.byte_len(count)
    }
}

/// Arrays that can be read from tensors; the counterpart of [`ToTensor`].
pub trait FromTensor<'de>: Sized {
    /// Makes the array.
    ///
    /// # Errors
    /// Where dtype, shape or alignment do not fit.
    fn from_tensor(tensor: RawTensor<'de, '_>) -> Result<Self>;
}

/// A tensor as it comes out of a document, for [`FromTensor`].
pub struct RawTensor<'de, 'a> {
    meta: TensorMeta,
    /// Whether the document names the dtype. If not, the elements were plain numbers, and any
    /// dtype that holds them will do.
    stated: bool,
    cast: bool,
    data: Data<'de, 'a>,
    /// What keeps the bytes alive, where they are all of a buffer that can be shared.
    shared: Option<SharedBytes>,
}

enum Data<'de, 'a> {
    /// Little-endian bytes in the input.
    Borrowed(&'de [u8]),
    /// Little-endian bytes in a buffer.
    Copied(&'a [u8]),
    /// Elements in memory of their own.
    Owned(Elements),
}

impl fmt::Debug for RawTensor<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawTensor").field("meta", &self.meta).finish_non_exhaustive()
    }
}

impl<'de> RawTensor<'de, '_> {
    /// Dtype, shape and order.
    pub fn meta(&self) -> &TensorMeta {
        &self.meta
    }

    /// The elements, in the order that [`meta`](Self::meta) tells.
    ///
    /// # Errors
    /// Where the stored dtype is not that of `A` (or, under [`cast`], an element does not fit).
    pub fn into_vec<A: Element>(self) -> Result<Vec<A>> {
        if self.meta.dtype != A::DTYPE {
            if !self.cast && self.stated {
                return Err(self.wrong_dtype(&A::DTYPE));
            }
            return self.into_elements()?.cast();
        }
        match self.data {
            Data::Borrowed(bytes) | Data::Copied(bytes) => elements::copied(bytes),
            Data::Owned(elements) => A::from_elements(elements)
                .map_err(|other| Error::data(format!("found elements of {}", other.dtype()))),
        }
    }

    /// A view of the elements in the input, in the order that [`meta`](Self::meta) tells.
    ///
    /// # Errors
    /// Where the stored dtype is not that of `A`, or the elements do not lie in the input as they
    /// must in memory: not aligned, in chunks, of the other byte order, or read from a reader.
    pub fn borrow<A: Element>(&self) -> Result<&'de [A]> {
        if self.meta.dtype != A::DTYPE {
            return Err(self.wrong_dtype(&A::DTYPE));
        }
        let Data::Borrowed(bytes) = self.data else {
            return Err(Error::data(
                "the tensor cannot be borrowed: it comes from a reader, in chunks, or in another \
                 byte order; read it into an owned array or a CowArray",
            ));
        };
        elements::viewed(bytes)
    }

    /// As [`borrow`](Self::borrow), where the reason does not matter.
    fn try_borrow<A: Element>(&self) -> Option<&'de [A]> {
        match self.data {
            Data::Borrowed(bytes) if self.meta.dtype == A::DTYPE => {
                let plain = A::DTYPE.word() == 1 || cfg!(target_endian = "little");
                plain.then(|| A::viewed(bytes)).flatten()
            }
            _ => None,
        }
    }

    /// The whole tensor, whatever its dtype.
    ///
    /// # Errors
    /// Where a byte pattern is no element, such as 2 for a bool.
    pub fn into_dyn(self) -> Result<DynTensor> {
        let meta = self.meta.clone();
        DynTensor::from_parts(meta, self.into_elements()?)
    }

    fn into_elements(self) -> Result<Elements> {
        match self.data {
            Data::Borrowed(bytes) | Data::Copied(bytes) => {
                Elements::copied_from_le(&self.meta.dtype, bytes)
            }
            Data::Owned(elements) => Ok(elements),
        }
    }

    #[cold]
    fn wrong_dtype(&self, expected: &DType) -> Error {
        let (found, shape) = (&self.meta.dtype, self.meta.shape.slice());
        Error::data(format!(
            "expected a tensor of {expected}, found one of {found} and shape {shape:?}"
        ))
    }
}
