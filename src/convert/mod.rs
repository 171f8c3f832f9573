//! Conversions between tenarc and other formats, each behind a feature of its own.
//!
//! They share three rules. A conversion keeps everything, or names what it would lose and stops,
//! unless it is told to go on. A file that is made takes its name whole and verified, or not at all. And one
//! tensor at a time is in memory, whatever the size of the file; of JSON texts that are read, one value.

// What several formats share. Each uses a part of it.
#![cfg_attr(
    not(all(
        feature = "arrow",
        feature = "json",
        feature = "msgpack",
        feature = "npy",
        feature = "onnx",
        feature = "safetensors",
        feature = "tenbin",
        feature = "torch"
    )),
    allow(dead_code)
)]

#[cfg(feature = "arrow")]
#[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
pub mod arrow;
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub mod json;
#[cfg(feature = "msgpack")]
#[cfg_attr(docsrs, doc(cfg(feature = "msgpack")))]
pub mod msgpack;
#[cfg(feature = "npy")]
#[cfg_attr(docsrs, doc(cfg(feature = "npy")))]
pub mod npy;
#[cfg(feature = "onnx")]
#[cfg_attr(docsrs, doc(cfg(feature = "onnx")))]
pub mod onnx;
#[cfg(feature = "safetensors")]
#[cfg_attr(docsrs, doc(cfg(feature = "safetensors")))]
pub mod safetensors;
#[cfg(feature = "tenbin")]
#[cfg_attr(docsrs, doc(cfg(feature = "tenbin")))]
pub mod tenbin;
#[cfg(feature = "torch")]
#[cfg_attr(docsrs, doc(cfg(feature = "torch")))]
pub mod torch;

mod exported;
mod honest;
mod input;
mod loss;
mod made;
mod nested;
mod numpy;
mod options;
mod order;
mod part;
mod saved;
mod shown;
mod strict_json;
mod values;
#[cfg(any(feature = "npy", feature = "torch"))]
mod zip;

pub use loss::{Loss, Losses};
