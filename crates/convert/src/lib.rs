//! Conversions between [tenarc] and other formats. Each format has a feature and a module of the same name. No feature
//! is on by default.
//!
//! | feature and module | format |
//! |---|---|
//! | `arrow` | Arrow IPC files and streams, with tensors in columns |
//! | `gguf` | GGUF files of llama.cpp |
//! | `hdf5` | HDF5 files, such as those of Keras, only read |
//! | `json` | JSON and JSON lines, with tensors as objects |
//! | `msgpack` | MessagePack, with arrays as msgpack-numpy writes them |
//! | `npy` | numpy's npy and npz files |
//! | `onnx` | the tensors of ONNX models, only read |
//! | `parquet` | Parquet files, with records in columns; the feature `parquet-zstd` also writes Zstandard |
//! | `safetensors` | safetensors files, also sharded models |
//! | `tenbin` | webdataset's `.ten` files |
//! | `torch` | `PyTorch` files, and distributed checkpoints, which are only read |
//!
//! All conversions follow three rules:
//!
//! - Nothing is lost silently. If something cannot be kept, the conversion stops and lists it, unless the
//!   [options](Options::with_losses) accept losses.
//! - A new file appears under its name only after it is complete and was verified.
//! - Only one tensor at a time is in memory, whatever the size of the file. For JSON input, it is one value at a
//!   time.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Each format uses only some of the shared modules, so the others have dead code unless all features are on.
#![cfg_attr(
    not(all(
        feature = "arrow",
        feature = "gguf",
        feature = "hdf5",
        feature = "json",
        feature = "msgpack",
        feature = "npy",
        feature = "onnx",
        feature = "parquet",
        feature = "safetensors",
        feature = "tenbin",
        feature = "torch"
    )),
    allow(dead_code)
)]

#[cfg(feature = "arrow")]
#[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
pub mod arrow;
#[cfg(feature = "gguf")]
#[cfg_attr(docsrs, doc(cfg(feature = "gguf")))]
pub mod gguf;
#[cfg(feature = "hdf5")]
#[cfg_attr(docsrs, doc(cfg(feature = "hdf5")))]
pub mod hdf5;
#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub mod json;
pub mod meaning;
#[cfg(feature = "msgpack")]
#[cfg_attr(docsrs, doc(cfg(feature = "msgpack")))]
pub mod msgpack;
#[cfg(feature = "npy")]
#[cfg_attr(docsrs, doc(cfg(feature = "npy")))]
pub mod npy;
#[cfg(feature = "onnx")]
#[cfg_attr(docsrs, doc(cfg(feature = "onnx")))]
pub mod onnx;
#[cfg(feature = "parquet")]
#[cfg_attr(docsrs, doc(cfg(feature = "parquet")))]
pub mod parquet;
#[cfg(feature = "safetensors")]
#[cfg_attr(docsrs, doc(cfg(feature = "safetensors")))]
pub mod safetensors;
#[cfg(feature = "tenbin")]
#[cfg_attr(docsrs, doc(cfg(feature = "tenbin")))]
pub mod tenbin;
#[cfg(feature = "torch")]
#[cfg_attr(docsrs, doc(cfg(feature = "torch")))]
pub mod torch;

mod apart;
mod as_value;
#[cfg(any(feature = "safetensors", feature = "torch"))]
mod beside;
#[cfg(any(feature = "safetensors", feature = "torch"))]
mod chunks;
mod codec;
mod columns;
mod elements;
mod exported;
mod file;
mod format;
mod honest;
mod input;
#[cfg(any(feature = "arrow", feature = "safetensors", feature = "torch"))]
mod json_text;
mod loss;
mod made;
mod nested;
mod numpy;
mod options;
mod order;
mod part;
#[cfg(any(feature = "hdf5", feature = "msgpack"))]
mod place;
#[cfg(any(feature = "arrow", feature = "parquet"))]
mod records;
mod saved;
#[cfg(any(feature = "safetensors", feature = "torch"))]
mod shards;
mod shown;
mod source;
mod stored;
mod support;
mod texts;
mod typed;
mod values;
#[cfg(any(feature = "hdf5", feature = "npy", feature = "torch"))]
#[cfg_attr(not(all(feature = "npy", feature = "torch")), allow(dead_code))]
mod zip;
#[cfg(any(feature = "arrow", feature = "hdf5", feature = "parquet"))]
mod zstd;

pub use apart::{Apart, Current};
pub use as_value::AsValue;
pub use columns::{FlatColumn, FlatRows, JoinedTable};
pub use file::{Opened, TensorFile};
pub use format::{Format, into_archive};
pub use loss::{Loss, Losses};
pub use made::written;
pub use nested::Names;
pub use options::Options;
#[cfg(any(feature = "arrow", feature = "parquet"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "arrow", feature = "parquet"))))]
pub use records::ArrayTable;
pub use stored::{Put, Stored};

#[cfg(all(doctest, feature = "safetensors"))]
#[doc = include_str!("../../../docs/coming-from.md")]
struct ComingFrom;

#[cfg(all(doctest, feature = "arrow"))]
#[doc = include_str!("../docs/from-arrow.md")]
struct FromArrow;

#[cfg(all(doctest, feature = "gguf"))]
#[doc = include_str!("../docs/from-gguf.md")]
struct FromGguf;

#[cfg(all(doctest, feature = "hdf5"))]
#[doc = include_str!("../docs/from-hdf5.md")]
struct FromHdf5;

#[cfg(all(doctest, feature = "json"))]
#[doc = include_str!("../docs/from-json.md")]
struct FromJson;

#[cfg(all(doctest, feature = "msgpack"))]
#[doc = include_str!("../docs/from-msgpack.md")]
struct FromMsgpack;

#[cfg(all(doctest, feature = "npy"))]
#[doc = include_str!("../docs/from-npz.md")]
struct FromNpz;

#[cfg(all(doctest, feature = "onnx"))]
#[doc = include_str!("../docs/from-onnx.md")]
struct FromOnnx;

#[cfg(all(doctest, feature = "parquet"))]
#[doc = include_str!("../docs/from-parquet.md")]
struct FromParquet;

#[cfg(all(doctest, feature = "safetensors"))]
#[doc = include_str!("../docs/from-safetensors.md")]
struct FromSafetensors;

#[cfg(all(doctest, feature = "tenbin"))]
#[doc = include_str!("../docs/from-tenbin.md")]
struct FromTenbin;

#[cfg(all(doctest, feature = "torch"))]
#[doc = include_str!("../docs/from-torch.md")]
struct FromTorch;
