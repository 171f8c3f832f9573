//! A serde data format for values that hold tensors.
//!
//! Derive `Serialize` and `Deserialize`, wrap arrays in [`Tensor`], and save the whole struct: every
//! tensor moves as one block of bytes.
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
//! # let dir = std::env::temp_dir().join(format!("tenarc-doc-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let path = dir.join("model.tenarc");
//! let layer = Linear { weight: Array2::eye(64).into(), bias: Array1::zeros(64) };
//! let model = Model { name: "identity".into(), layers: vec![layer] };
//!
//! tenarc::save(&path, &model)?;
//! let model: Model = tenarc::load(&path)?;
//! assert_eq!(model.layers[0].weight[[5, 5]], 1.0);
//!
//! let file = tenarc::open(&path)?;
//! let bias: Array1<f32> = file.tensor("layers.0.bias")?;
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! There are three ways out. An **archive** is a file or stream of saved values: metadata first, then
//! the tensors, aligned and with checksums. A **message** is one value in memory or on the wire:
//! standard CBOR (RFC 8949) with typed arrays (RFC 8746), which other CBOR libraries read. **Parts** are
//! a value in pieces, metadata here and a buffer for each large tensor there, for transports that move
//! pieces. `docs/encodings.md` sets them side by side.
//!
//! | to | use |
//! |---|---|
//! | keep a value in a file | [`save`], [`load`] |
//! | read parts of a file | [`open`], [`Map`], [`Archive`] |
//! | write and read value after value | [`OArchive`], [`IArchive`] |
//! | append to a file, mend a torn one | [`OArchive::append`], [`recover`] |
//! | encode a message | [`to_vec`], [`append_to`], [`to_writer`], [`Serializer`] |
//! | decode a message | [`from_slice`], [`from_reader`], [`Deserializer`] |
//! | send tensors out of band | [`to_parts`], [`from_parts`], [`Split`], [`Parts`] |
//! | hold tensors | [`Tensor`], [`tensor`](mod@tensor) for bare fields, [`Rows`] for vectors of plain structs |
//! | hold tensors that lie elsewhere | [`Deferred`] until they are written, [`SharedTensor`] in received buffers |
//! | save and load lists of named tensors | [`save_multi`], [`load_multi`], [`load_multi_onto`] |
//! | look into what you have no type for | [`Archive::tensors`], [`Value`], [`DynTensor`], [`RawValue`], [`diag`], [`inspect`] |
//! | keep checkpoints of a training run | [`Checkpoints`] |
//! | read from strangers | [`Limits`] |
//!
//! The formats are specified in `SPEC.md`; what is read and written does not depend on the crate's
//! features.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | gives |
//! |---|---|
//! | `sha256` | a `SHA256SUMS` beside [`Checkpoints`] |
//!
//! Conversions from and to other formats are a crate of their own, `tenarc-convert`.
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

pub mod archive;
pub mod checkpoint;
pub mod de;
pub mod diag;
mod dtype;
mod elements;
pub mod error;
mod handoff;
pub mod inspect;
pub mod io;
mod magic;
mod mem;
mod meta;
pub mod named;
mod near;
mod options;
pub mod parts;
mod raw;
mod segment;
pub mod ser;
mod soft;
pub mod tensor;
pub mod value;
mod wire;

pub use archive::{Archive, IArchive, Map, OArchive, load, open, save};
pub use checkpoint::Checkpoints;
pub use de::{Deserializer, from_reader, from_slice};
pub use error::{Error, Result};
pub use parts::{from_parts, to_parts};
pub use ser::{Serializer, append_to, to_vec, to_writer};
pub use tensor::{DType, DynTensor, Tensor};
pub use value::{Value, from_value, to_value};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/encodings.md")]
struct Encodings;

#[cfg(doctest)]
#[doc = include_str!("../docs/from-bincode.md")]
struct FromBincode;
