//! Reads torch's files (`.pt`, `.pth`, `.bin`) and distributed checkpoints, and converts them to archives and back. Code in
//! a file is never run.
//!
//! ```no_run
//! use ndarray::Array2;
//! use tenarc_convert::{Format, Options, torch};
//!
//! let file = torch::open("model.pt")?;                            // reads the pickle, but no elements
//! for tensor in file.tensors() {
//!     println!("{}: {} {:?}", tensor.path(), tensor.dtype(), tensor.shape());
//! }
//! let weight: Array2<f32> = file.tensor("layers.0.weight")?;
//!
//! Format::Torch.to_archive("model.pt", "model.tenarc", &Options::default())?;
//! # Ok::<(), tenarc::Error>(())
//! ```
//!
//! Since version 1.6, `torch.save` writes a zip file with two kinds of entries: a pickle, and the storages of the
//! tensors. Older versions write the pickle and the storages one after the other. A pickle is a program; here it is
//! read as data. The functions that make tensors and dicts are recognised by their names. Any other call is kept as
//! data: the name of the function and its arguments. An object of a class is kept as a map of its attributes.
//! [`Losses::notes`](crate::Losses::notes) names these functions and classes.
//!
//! An archive gets the structure of the pickle: dicts become maps with the same keys, lists and tuples become
//! sequences. The name of a tensor is its path in this structure: keys of dicts and indices of lists, joined by dots. A
//! view of a storage is read as a tensor of its own. A transposed view gets column-major
//! [order](tenarc::tensor::Order). The elements of any other view are gathered in row-major order. Plain values beside
//! tensors, such as the number of an epoch, are kept.
//!
//! [`open_sharded`] reads a model in several files by its index, `pytorch_model.bin.index.json`. The archive holds one map
//! of all tensors.
//!
//! [`open_distributed`] reads the directory of a checkpoint that `torch.distributed.checkpoint` wrote (`.metadata` and
//! `.distcp`). Tensors are put together from the chunks in its files. The archive gets the structure of the dict that was
//! saved.
//!
//! A value is written as `torch.save` writes it, so that `torch.load` with `weights_only=True` reads it: maps as dicts,
//! sequences as lists, byte strings as bytes, and tensors of all dtypes that torch has. Tensors that share a buffer share a
//! storage, and column-major tensors keep their order. A sequence of more than 65,536 numbers is a tensor.
//!
//! Some properties of tensors are neither kept nor counted as lost: devices, strides, `requires_grad`, and overlaps of
//! tensors in a storage. If two tensors are the same part of a storage, the archive stores their elements once.

mod container;
mod content;
mod distributed;
mod file;
mod gather;
mod layout;
mod legacy;
mod pickle;
mod plain;
mod sharded;
mod stores;
mod tree;
pub(crate) mod value;
mod write;

use std::borrow::Cow;
use std::fs::File;
use std::io::Write;
use std::path::Path;

pub use distributed::{Distributed, distributed_metadata, open_distributed};
pub use file::TorchFile;
pub use legacy::is_legacy;
pub use sharded::{Sharded, open_sharded};

use super::codec::{Codec, must_seek};
use super::{Losses, Options, Stored, TensorFile};
use crate::{shards, source};
use tenarc::Result;

/// Opens a file and reads its pickle. The elements of a tensor are read when the tensor is requested.
///
/// # Errors
/// If the file cannot be opened. Also the errors of [`TorchFile::new`].
pub fn open(path: impl AsRef<Path>) -> Result<TorchFile<File>> {
    TorchFile::open(path.as_ref())
}

/// The [`Codec`] for torch's files and for distributed checkpoints.
pub(crate) struct Torch;

impl Codec for Torch {
    fn first_file<'a>(&self, path: &'a Path) -> Cow<'a, Path> {
        distributed_metadata(path).map_or(path.into(), Cow::Owned)
    }

    fn open(
        &self,
        file: File,
        path: Option<&Path>,
        options: &Options,
    ) -> Result<Box<dyn TensorFile>> {
        let limits = options.limits;
        if let Some(path) = path.filter(|path| distributed_metadata(path).is_some()) {
            return Ok(Box::new(Distributed::open(&file, path)?.with_limits(limits)));
        }
        let mut start = [0];
        if source::read_exact(&file, &mut start, 0).is_ok() && shards::is_index(&start) {
            return Ok(Box::new(Sharded::open(shards::path_of(path)?, limits)?));
        }
        Ok(Box::new(TorchFile::new(file)?.with_limits(limits)))
    }

    fn write(&self, _: &dyn Stored, _: &mut dyn Write, _: &Options) -> Result<Losses> {
        Err(must_seek())
    }

    // As in npz files, the size of a member is in front of its data.
    fn write_file(
        &self,
        value: &dyn Stored,
        file: &File,
        path: &Path,
        options: &Options,
    ) -> Result<Losses> {
        write::write(value, file, path, options)
    }
}
