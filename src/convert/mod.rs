//! Conversions between tenarc and other formats, each behind a feature of its own.
//!
//! They share three rules. A conversion keeps everything, or names what it would lose and stops,
//! unless it is told to go on. A file that is made takes its name whole and verified, or not at all. And one
//! tensor at a time is in memory, whatever the size of the file; of JSON texts that are read, one value.

#[cfg(any(feature = "json", feature = "msgpack", feature = "onnx"))]
mod input;
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub mod json;
#[cfg(any(
    feature = "json",
    feature = "msgpack",
    feature = "npy",
    feature = "onnx",
    feature = "safetensors",
    feature = "torch"
))]
mod loss;
#[cfg(any(
    feature = "json",
    feature = "msgpack",
    feature = "npy",
    feature = "onnx",
    feature = "safetensors",
    feature = "torch"
))]
mod made;
#[cfg(feature = "msgpack")]
#[cfg_attr(docsrs, doc(cfg(feature = "msgpack")))]
pub mod msgpack;
#[cfg(any(feature = "safetensors", feature = "torch"))]
mod nested;
#[cfg(feature = "npy")]
#[cfg_attr(docsrs, doc(cfg(feature = "npy")))]
pub mod npy;
#[cfg(any(feature = "msgpack", feature = "npy"))]
mod numpy;
#[cfg(feature = "onnx")]
#[cfg_attr(docsrs, doc(cfg(feature = "onnx")))]
pub mod onnx;
#[cfg(any(feature = "json", feature = "msgpack"))]
mod options;
#[cfg(feature = "safetensors")]
#[cfg_attr(docsrs, doc(cfg(feature = "safetensors")))]
pub mod safetensors;
#[cfg(any(feature = "json", feature = "msgpack"))]
mod saved;
#[cfg(any(feature = "npy", feature = "torch"))]
mod shown;
#[cfg(feature = "tenbin")]
#[cfg_attr(docsrs, doc(cfg(feature = "tenbin")))]
pub mod tenbin;
#[cfg(feature = "torch")]
#[cfg_attr(docsrs, doc(cfg(feature = "torch")))]
pub mod torch;
#[cfg(any(feature = "json", feature = "msgpack"))]
mod values;
#[cfg(any(feature = "npy", feature = "torch"))]
mod zip;

#[cfg(any(
    feature = "json",
    feature = "msgpack",
    feature = "npy",
    feature = "onnx",
    feature = "safetensors",
    feature = "torch"
))]
pub use loss::{Loss, Losses};
#[cfg(any(feature = "npy", feature = "torch"))]
use shown::shown;
