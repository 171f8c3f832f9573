//! A serde data format for values that hold tensors.
//!
//! Derive `Serialize` and `Deserialize` on a struct, wrap its arrays in [`Tensor`], and save the whole
//! struct. Each tensor is written and read as one block of bytes.
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
//! let file = tenarc::open(&path)?; // reads headers only
//! let bias: Array1<f32> = file.tensor("layers.0.bias")?;
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Many programs need only `save` and `load`. The rest of the crate reads parts of files, and writes
//! streams, messages and tensors for other processes.
//!
//! # Three encodings
//!
//! - An **archive** is a file or a stream of values. Each value is a header in CBOR, followed by its large
//!   tensors, aligned and with checksums.
//! - A **message** is one value in memory or on the wire. It is standard CBOR (RFC 8949) with typed arrays
//!   (RFC 8746), so other CBOR libraries can read it.
//! - **Parts** are one value in several pieces: the metadata, and a buffer for each large tensor. They are
//!   for transports that move pieces, such as message queues and shared memory.
//!
//! All three take the same types. The [guide](guide::start) introduces the crate, a page compares
//! [the encodings](guide::encodings), and `SPEC.md` in the repository specifies them.
//!
//! # To do this, use this
//!
//! | to do this | use this |
//! |---|---|
//! | save a value to a file and load it | [`save`], [`load`] |
//! | read one tensor, a slice or a field of a file | [`open`], then [`Archive::tensor`], [`Archive::slice`], [`Archive::get`] |
//! | use tensors in a mapped file without copying them | [`Map`] |
//! | compress tensors in archives | [`save_with`], [`SaveOptions::with_compression`] |
//! | write value after value, read value after value | [`OArchive`], [`IArchive`] |
//! | append to a file, or create it | [`OArchive::append`] |
//! | repair a truncated file, or read what is left of it | [`archive::recover`], [`archive::open_torn`] |
//! | find the rows of a table that meet a condition | [`archive::Table::filter`], [`archive::col`] |
//! | read one variable of all values that were saved under one name | [`Archive::series`] |
//! | keep the checkpoints of a training run | [`Checkpoints`] |
//! | save and load lists of named tensors | [`named`] |
//! | encode a message | [`to_vec`], [`append_to`], [`to_writer`], [`Serializer`] |
//! | decode a message | [`from_slice`], [`from_reader`], [`Deserializer`] |
//! | send tensors as separate buffers | [`to_parts`], [`from_parts`], [`parts`] |
//! | hold an array in a struct | [`Tensor`], or `#[serde(with = "tenarc::tensor")]` on the field: [`mod@tensor`] |
//! | keep a `Vec` of structs as columns | [`save`]; in messages [`EncodeOptions::with_columns`](ser::EncodeOptions::with_columns), or `#[serde(with = "tenarc::columns")]` on the field: [`mod@columns`] |
//! | hold a `Vec` of plain structs as one tensor | [`tensor::Rows`] |
//! | hold a tensor whose dtype is known only at run time | [`DynTensor`] |
//! | write a tensor that is not in memory yet | [`tensor::Deferred`] |
//! | keep received tensors in the buffers they arrived in | [`tensor::SharedTensor`] |
//! | write timestamps, dates, decimals and UUIDs as what they are | [`types`] |
//! | look into data without its Rust types | [`Archive::tensors`], [`Value`], [`value::RawValue`], [`inspect`], [`diag`] |
//! | react to an error | [`Error::category`], [`error::Category`] |
//! | choose alignment, checksums and the like | [`SaveOptions`], [`DecodeOptions`], [`ser::EncodeOptions`] |
//! | read data from strangers | [`de::Limits`] |
//! | replace any file in one step | [`io::AtomicFile`] |
//!
//! # Features
//!
//! | feature | default | effect |
//! |---|---|---|
//! | `compression` | yes | reads and writes compressed buffers with the codecs `zstd` and `lz4`, in pure Rust |
//! | `ndarray` | yes | uses ndarray's arrays and views as tensors, and `s![..]` to select slices; versions 0.16 and 0.17 |
//! | `faer` | no | uses faer's matrices, columns and rows as tensors; version 0.24 |
//! | `nalgebra` | no | uses nalgebra's matrices and vectors as tensors; versions 0.33 to 0.35 |
//! | `sha256` | no | lets [`Checkpoints`] keep a file `SHA256SUMS` with the hashes of all checkpoints |
//! | `zstd` | no | uses the C library of zstd, which has compression levels and decompresses frames with matches faster; it accepts the same frames |
//!
//! What is written and read does not depend on features, with one exception: compressed tensors of archives need
//! `compression`, and some levels of compression need `zstd`. Conversions from and to other formats are in a
//! crate of their own, `tenarc-convert`.
//!
//! # Limits of serde
//!
//! Some things do not work because serde does not allow them, whatever the format:
//!
//! - A field that borrows, such as `Tensor<ArrayView2<'a, f32>>`, needs `#[serde(borrow)]`. The derive
//!   macro borrows by itself only in `&str` and `&[u8]`.
//! - An array of ndarray that is neither in a [`Tensor`] nor marked with `#[serde(with = "tenarc::tensor")]` is an error. The
//!   compiler suggests ndarray's feature `serde`, which would write the array as numbers, one by one. Use a [`Tensor`].
//! - serde implements its traits for arrays of at most 32 elements. For longer ones, use
//!   `#[serde(with = "tenarc::tensor")]`.
//! - A `Vec<u8>` or `&[u8]` looks like a sequence of numbers, not like bytes. Still, a field `&[u8]` borrows from every
//!   sequence of `u8` in an archive, of any length, and from byte strings, which `serde_bytes` writes. In a message, a
//!   sequence of `u8` is an array of numbers, from which nothing but an empty slice can be borrowed, unless
//!   [`EncodeOptions::with_typed_arrays`](ser::EncodeOptions::with_typed_arrays) is on. A `Cow<[u8]>` is read from all of
//!   these.
//! - A `Vec<f16>` looks like a `Vec<u16>` to serde. Use a [`Tensor`].
//! - In `#[serde(flatten)]` and in untagged and internally tagged enums, serde buffers values in a type that
//!   does not support 128-bit integers. They cannot be read there. It does not borrow a `&[u8]` from a sequence either,
//!   and a flattened map cannot have keys that are arrays, such as tuples or a `Vec<u8>`.
//! - When a value is written, serde also buffers a tuple or struct variant of an enum that is inside an
//!   internally tagged enum. Tensors in it are written correctly, but number by number, which is slow.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod archive;
mod budget;
mod buffer;
pub mod checkpoint;
// Public because `tests/codec` tests the codecs chunk by chunk. It is no part of the interface.
#[doc(hidden)]
pub mod codec;
pub mod columns;
pub mod de;
pub mod diag;
mod dtype;
mod elements;
pub mod error;
#[cfg(any(doc, doctest))]
pub mod guide;
mod handoff;
pub mod inspect;
pub mod io;
mod magic;
mod mem;
mod meta;
pub mod named;
mod near;
mod number;
mod options;
pub mod parts;
mod path;
mod plan;
mod raw;
mod segment;
pub mod ser;
mod serde_model;
mod shape;
mod soft;
mod steps;
mod strided;
pub mod tensor;
mod type_name;
pub mod types;
pub mod value;
mod wire;

pub use archive::{
    Archive, Compression, IArchive, Map, OArchive, SaveOptions, load, load_with, open, save,
    save_with,
};
pub use checkpoint::Checkpoints;
pub use de::{DecodeOptions, Deserializer, from_reader, from_slice};
pub use error::{Error, Result};
pub use parts::{from_parts, to_parts};
pub use ser::{Serializer, append_to, to_vec, to_writer};
pub use tensor::{DType, DynTensor, Tensor};
pub use value::{Value, from_value, to_value};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(doctest)]
#[doc = include_str!("../docs/compression.md")]
struct CompressionGuide;
