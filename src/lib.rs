//! A serde data format for values that hold tensors.
//!
//! Derive `Serialize` and `Deserialize`, wrap arrays in [`Tensor`], and write the whole struct:
//! standard CBOR (RFC 8949) with typed arrays (RFC 8746), every tensor moved as one block.
//!
//! ```
//! use ndarray::{Array1, Array2};
//! use serde::{Deserialize, Serialize};
//! use tenarc::Tensor;
//!
//! #[derive(Serialize, Deserialize)]
//! struct Model {
//!     name: String,
//!     layers: Vec<Linear>,
//! }
//!
//! #[derive(Serialize, Deserialize)]
//! struct Linear {
//!     weight: Tensor<Array2<f32>>,
//!     #[serde(with = "tenarc::tensor")]
//!     bias: Array1<f32>,
//! }
//!
//! let layer = Linear { weight: Array2::eye(64).into(), bias: Array1::zeros(64) };
//! let model = Model { name: "identity".into(), layers: vec![layer] };
//!
//! let bytes = tenarc::to_vec(&model)?;
//! let model: Model = tenarc::from_slice(&bytes)?;
//! assert_eq!(model.layers[0].weight[[5, 5]], 1.0);
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | encode | [`to_vec`], [`append_to`], [`to_writer`], [`Serializer`] |
//! | decode | [`from_slice`], [`from_reader`], [`Deserializer`] |
//! | write and read many values on one stream | [`Serializer`], [`Deserializer::into_iter`] |
//! | hold tensors | [`Tensor`], [`tensor`](mod@tensor) for bare fields, [`Rows`] for vectors of plain structs |
//! | look into what you have no type for | [`Value`], [`DynTensor`], [`RawValue`], [`diag`] |
//! | read from strangers | [`Limits`] |
//!
//! The format is specified in `SPEC.md`; what is read and written does not depend on the crate's
//! features.
//!
//! # What serde itself leaves out
//!
//! - A field that borrows, such as `Tensor<ArrayView2<'a, f32>>`, needs `#[serde(borrow)]`: derive
//!   borrows only `&str` and `&[u8]` by itself.
//! - Arrays beyond 32 elements do not derive; `#[serde(with = "tenarc::tensor")]` takes them.
//! - `Vec<f16>` looks like `Vec<u16>` to serde: use a [`Tensor`].
//! - Inside `#[serde(flatten)]`, untagged and internally tagged enums, serde holds 128-bit
//!   integers for no format, and gives them back for none.
//! - A tuple or struct variant of an enum inside an internally tagged enum is buffered when
//!   written, too, as numbers one by one: tensors survive that, but not at speed.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod archive;
mod de;
pub mod diag;
mod dtype;
mod elements;
mod error;
mod handoff;
mod io;
mod mem;
mod meta;
mod options;
mod raw;
mod ser;
pub mod tensor;
mod value;
mod wire;

pub use archive::{
    Archive, ArchiveFile, IArchive, Map, OArchive, Records, Recovered, SaveOptions, Segment,
    TensorInfo, load, load_with, open, open_torn, recover, recover_to, save, save_with,
};
pub use de::{
    Deserializer, StreamDeserializer, from_reader, from_reader_with, from_slice, from_slice_with,
};
pub use dtype::{DType, Element, OtherDType};
pub use error::{Category, Error, Result};
pub use io::at::ReadAt;
pub use io::atomic::SyncLevel;
pub use io::source::{IoRead, Read, SliceRead};
pub use options::{DecodeOptions, EncodeOptions, Limits};
pub use raw::RawValue;
pub use ser::{
    Serializer, append_to, append_to_with, to_vec, to_vec_with, to_writer, to_writer_with,
};
pub use tensor::{
    DynTensor, FromTensor, Numbers, Order, RawTensor, Rows, Tensor, TensorMeta, ToTensor,
};
pub use value::{Value, from_value, to_value};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
