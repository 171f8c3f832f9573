//! Fields that are candle tensors: `#[serde(with = "tenarc_candle::tensor")]`.
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Example {
//!     label: String,
//!     #[serde(with = "tenarc_candle::tensor")]
//!     pixels: Tensor,
//! }
//!
//! let pixels = Tensor::new(&[[0u8, 1], [2, 3]], &Device::Cpu)?;
//! let bytes = tenarc::to_vec(&Example { label: "a".into(), pixels })?;
//! let back: Example = tenarc::from_slice(&bytes)?;
//! assert_eq!(back.pixels.to_vec2::<u8>()?, [[0, 1], [2, 3]]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The attribute does not work for an `Option` or a `Vec` of tensors. Put a [`CandleTensor`] into these.

use candle_core::Tensor;
use serde::{Deserialize, Deserializer, Serializer};

use crate::candle_tensor::{self, CandleTensor};

/// Writes a tensor as one block of bytes. If it is on another device or is not contiguous, a copy of it is made first.
///
/// # Errors
/// If the serializer fails, or the dtype is one that tenarc does not have: see [`from_candle`](crate::from_candle).
pub fn serialize<S: Serializer>(tensor: &Tensor, serializer: S) -> Result<S::Ok, S::Error> {
    candle_tensor::serialize(tensor, serializer)
}

/// Reads a tensor. It is on the CPU.
///
/// # Errors
/// If there is no tensor at this place, or its dtype is one that candle does not have: see
/// [`to_candle`](crate::to_candle).
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tensor, D::Error> {
    CandleTensor::deserialize(deserializer).map(CandleTensor::into_inner)
}
