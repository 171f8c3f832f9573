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
//! Arrays inside of something else are wrapped where they are, one by one: `Option<Tensor<_>>`,
//! `Vec<Tensor<_>>`, `HashMap<String, Tensor<_>>`. Such a field takes no `with`, as the compiler says:
//!
//! ```compile_fail,E0277
//! #[derive(serde::Serialize)]
//! struct Layer {
//!     #[serde(with = "tenarc::tensor")]
//!     bias: Option<ndarray::Array1<f32>>, // error: make it an `Option<Tensor<_>>`
//! }
//! ```
//!
//! What ndarray's own `Serialize` wrote, `{v, dim, data}`, is read into tensors, too, so that a field
//! can become one without its old files being lost. Complex numbers are from JSON and its like only.
//!
//! | read into | from a slice | from a reader |
//! |---|---|---|
//! | `Array`, `ArcArray`, `Vec`, `Box<[_]>`, `[_; N]`, [`DynTensor`] | one copy | read in place |
//! | `ArrayView`, [`DynView`] | no copy; an error where the payload does not lie aligned | an error |
//! | `CowArray` | no copy where the payload lies aligned, else one | read in place |
//! | [`SharedTensor`] | one copy; none from a [map](crate::Map::load_shared) or [parts](crate::parts::Parts::load_shared) | read in place |
//!
//! Asking for another element type than the stored one is an error that names both; see [`cast`]
//! for conversions.

mod deferred;
mod dyn_tensor;
mod dyn_view;
mod from_tensor;
#[cfg(feature = "ndarray")]
mod ndarray;
pub(crate) mod numbers;
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
pub use from_tensor::FromTensor;
pub use raw_tensor::RawTensor;
pub use rows::Rows;
pub use shared_tensor::SharedTensor;
pub use slices::{AxisSlice, Slices};
pub use tensor_info::TensorInfo;
pub use to_tensor::ToTensor;
pub(crate) use visit::FIELDS;

pub use crate::dtype::{DType, OtherDType};
pub use crate::elements::Element;
pub use crate::meta::{Order, TensorMeta};
pub use crate::shape::Shape;

use crate::error::Result;

/// An array that is written and read as one block: the newtype that gives a field of a derived
/// struct the fast path.
///
/// Under other serde formats it is a struct of dtype, shape, order and bytes, or under those
/// meant for people, such as JSON, `{dtype, shape, data}` with the elements as numbers in
/// row-major order, non-finite ones as the strings `"NaN"`, `"inf"` and `"-inf"`.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tensor<T>(pub T);

/// Shows the array's own `Debug` output, up to 2,000 characters of it: that of a `Vec` contains every element.
impl<T: fmt::Debug> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tensor").field(&show::Start(&self.0)).finish()
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
