//! Reads tensors whose stored dtype may differ from that of the array: `#[serde(with = "tenarc::tensor::cast")]`.
//!
//! Reading converts each element to the array's type. It is an error if that type cannot represent the number exactly.
//! For example, every `f16` can be converted to `f32`, but an `f64` only if it has the value of an `f32`. NaN cannot be
//! converted to an integer. Writing is the same as with `tenarc::tensor`.
//!
//! ```
//! use tenarc::Tensor;
//!
//! #[derive(serde::Serialize)]
//! struct Old {
//!     loss: Tensor<Vec<f32>>,
//! }
//!
//! #[derive(serde::Deserialize)]
//! struct New {
//!     #[serde(with = "tenarc::tensor::cast")]
//!     loss: Vec<f64>,
//! }
//!
//! let bytes = tenarc::to_vec(&Old { loss: vec![0.5, 0.25].into() })?;
//! assert_eq!(tenarc::from_slice::<New>(&bytes)?.loss, [0.5, 0.25]);
//! # Ok::<(), tenarc::Error>(())
//! ```

use serde::Deserializer;

use super::{FromTensor, visit};

pub use super::serialize;

/// Reads a tensor of any dtype, and converts its elements to the array's type.
///
/// # Errors
/// If the document has no tensor at this place, if the tensor has another number of dimensions, or if the
/// conversion of an element is not exact.
pub fn deserialize<'de, T: FromTensor<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    visit::deserialize(deserializer, true)
}
