//! Tensors: arrays that are written and read as one block of bytes.
//!
//! Wrap the array in [`Tensor`]. Or keep the field's type, and mark the field:
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
//! Without `Tensor` or the attribute, the compiler says that an array of ndarray does not implement `Serialize`, and suggests
//! ndarray's feature `serde`. That feature would write the array as numbers, one by one, which is slow. Wrap the array instead.
//!
//! If an array is inside another type, wrap the array itself: `Option<Tensor<_>>`, `Vec<Tensor<_>>`,
//! `HashMap<String, Tensor<_>>`. The attribute does not work for such a field, and the compiler says so:
//!
//! ```compile_fail,E0277
//! #[derive(serde::Serialize)]
//! struct Layer {
//!     #[serde(with = "tenarc::tensor")]
//!     bias: Option<ndarray::Array1<f32>>, // error: make it an `Option<Tensor<_>>`
//! }
//! ```
//!
//! Elements have the same size on every machine. For `usize`, use `u64`:
//!
//! ```compile_fail,E0277
//! #[derive(serde::Serialize)]
//! struct Graph {
//!     edges: tenarc::Tensor<ndarray::Array2<usize>>, // error: use `u64`
//! }
//! ```
//!
//! Tensors also read what ndarray's own `Serialize` writes, `{v, dim, data}`. So a field can be changed to a tensor,
//! and old files can still be read. Arrays of complex numbers in this form are only read from JSON and other
//! human-readable formats.
//!
//! | read into | from a slice | from a reader |
//! |---|---|---|
//! | `Array`, `ArcArray`, `Vec`, `Box<[_]>`, `[_; N]`, [`DynTensor`] | one copy | read in place |
//! | `ArrayView`, [`DynView`] | no copy; an error if the payload is not aligned | an error |
//! | `CowArray` | no copy if the payload is aligned, otherwise one | read in place |
//! | nalgebra's `OMatrix`, such as `DMatrix` and `Vector3` | one copy; a second one if the tensor is row-major | the same |
//! | faer's `Mat`, `Col`, `Row` | two copies | one copy |
//! | [`SharedTensor`] | one copy; none from a [map](crate::Map::load_shared) or [parts](crate::parts::Parts::load_shared) | read in place |
//!
//! If the element type is not the stored one, reading is an error that names both types. [`cast`] converts elements.

pub mod cast;
mod deferred;
mod dyn_tensor;
mod dyn_view;
#[cfg(feature = "faer")]
mod faer;
mod fields;
mod from_tensor;
#[cfg(feature = "nalgebra")]
mod nalgebra;
#[cfg(feature = "ndarray")]
mod ndarray;
mod raw_tensor;
mod rows;
mod sequences;
mod shared_tensor;
mod show;
mod slices;
mod tensor_info;
mod to_tensor;
pub(crate) mod variable;
mod visit;
mod write;

use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub use deferred::Deferred;
pub use dyn_tensor::DynTensor;
pub use dyn_view::DynView;
pub(crate) use fields::{FIELDS, takes_elements};
pub use from_tensor::FromTensor;
pub use raw_tensor::RawTensor;
pub use rows::Rows;
pub use shared_tensor::SharedTensor;
pub use slices::{AxisSlice, Slices};
pub use tensor_info::TensorInfo;
pub use to_tensor::ToTensor;
pub(crate) use write::{OneByOne, serialize_numbers};

pub use crate::dtype::{DType, OtherDType};
pub use crate::elements::Element;
pub use crate::meta::{Order, TensorMeta};
pub use crate::shape::Shape;

/// A wrapper that writes and reads an array as one block of bytes. Use it for the fields of a struct that derives
/// serde's traits.
///
/// Other binary serde formats write it as a struct of dtype, shape, order and bytes. Human-readable formats such as
/// JSON write `{dtype, shape, data}`, where `data` holds the elements as numbers in row-major order. Elements that are
/// not finite are the strings `"NaN"`, `"inf"` and `"-inf"`.
///
/// ```
/// use ndarray::{Array2, array};
/// use tenarc::Tensor;
///
/// let weight = Tensor(array![[1.0f32, 2.0], [3.0, 4.0]]);
/// assert_eq!(weight.dim(), (2, 2)); // a method of the array
/// let bytes = tenarc::to_vec(&weight)?;
/// let back: Tensor<Array2<f32>> = tenarc::from_slice(&bytes)?;
/// assert_eq!(back.into_inner(), weight.0);
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tensor<T>(pub T);

/// Shows the array's own `Debug` output, up to 2,000 characters of it: that of a `Vec` contains every element.
impl<T: fmt::Debug> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tensor").field(&show::DebugStart(&self.0)).finish()
    }
}

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

/// Writes an array as a tensor. This is the function that `#[serde(with = "tenarc::tensor")]` calls.
///
/// # Errors
/// If the serializer fails.
pub fn serialize<T: ToTensor + ?Sized, S: Serializer>(
    array: &T,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    write::serialize(array, serializer)
}

/// Reads an array that was written as a tensor. This is the function that `#[serde(with = "tenarc::tensor")]` calls.
///
/// # Errors
/// If the document has no tensor at this place, or if the tensor has another dtype or number of dimensions.
pub fn deserialize<'de, T: FromTensor<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    visit::deserialize(deserializer, false)
}
