//! Files of the [safetensors](https://huggingface.co/docs/safetensors) format: read, written, and
//! converted to archives and back.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use ndarray::{Array1, Array2};
//! use tenarc_convert::TensorFile as _;
//! use tenarc_convert::safetensors;
//!
//! # let dir = std::env::temp_dir().join(format!("tenarc-doc-safetensors-{}", std::process::id()));
//! # std::fs::create_dir_all(&dir)?;
//! # let (path, archive) = (dir.join("model.safetensors"), dir.join("model.tenarc"));
//! safetensors::save(&path, &[("fc.weight", Array2::<f32>::eye(4))])?;
//!
//! let file = safetensors::open(&path)?;
//! let weight: Array2<f32> = file.tensor("fc.weight")?;
//! tenarc::save(&archive, &file.nested()?)?;
//! let archive = tenarc::open(&archive)?;
//! assert_eq!(archive.tensor::<ndarray::Array2<f32>>("fc.weight")?, weight);
//! # std::fs::remove_dir_all(&dir)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! | to | use |
//! |---|---|
//! | read a file | [`open`], [`SafeTensors`] |
//! | read a model of several files | [`open_sharded`], [`Sharded`] |
//! | write a file | [`save`], [`save_with`], [`to_writer`] |
//! | write a model as several files | [`save_sharded`] |
//! | convert a file to an archive | [`to_archive`], or save what [`TensorFile::value`](super::TensorFile::value) gives |
//! | convert an archive to a file | [`from_archive`], [`Export`] |
//!
//! In an archive, a flat file is a map of tensors by name, with its metadata under `__metadata__`: its
//! header, so to speak, with the tensors themselves in place of where they are. Tensors are found by
//! the same names. Nested, names are taken apart at their dots; as paths into an archive have dots as
//! well, names stay what they were, and a conversion back restores them.
//!
//! Written files have the layout and header of the reference implementation, byte for byte. They are
//! read back and compared before they take their names.

mod dtype;
mod export;
mod fields;
mod files;
mod header;

mod options;

mod read;
mod save_sharded;
mod shard_name;
mod sharded;
mod write;

use std::fs::File;
use std::io::Write;
use std::path::Path;

pub use super::nested::Names;
pub use export::Export;
pub use files::{from_archive, to_archive};
pub use options::Options;
pub use read::SafeTensors;
pub use save_sharded::save_sharded;
pub use sharded::{Sharded, open_sharded};

use super::Losses;
use tenarc::Result;
use tenarc::tensor::ToTensor;

/// Opens a file, to read what is asked for of it: see [`SafeTensors::new`].
///
/// # Errors
/// Where the file cannot be read, or is no safetensors file.
pub fn open(path: impl AsRef<Path>) -> Result<SafeTensors<File>> {
    SafeTensors::open(path.as_ref())
}

/// Saves named tensors as a file, in place of what is at `path`.
///
/// The file appears whole or not at all, as with [`tenarc::save`]. Tensors of several types
/// go together as `&dyn ToTensor`. Of [`Deferred`](tenarc::tensor::Deferred) ones, one at a time is in memory.
///
/// # Errors
/// Where a tensor cannot be kept as it is, two have one name, one is named `__metadata__`, or the file
/// cannot be written.
pub fn save<N: AsRef<str>, T: ToTensor>(path: impl AsRef<Path>, tensors: &[(N, T)]) -> Result<()> {
    save_with(path, tensors, &Options::default()).map(drop)
}

/// As [`save`], with options; what was not kept, where that is accepted.
///
/// # Errors
/// As [`save`].
pub fn save_with<N: AsRef<str>, T: ToTensor>(
    path: impl AsRef<Path>,
    tensors: &[(N, T)],
    options: &Options,
) -> Result<Losses> {
    let (plan, losses) = write::plan(tensors, options)?;
    plan.save(path.as_ref(), options.sync)?;
    Ok(losses)
}

/// Writes named tensors as a file, to any writer; nothing seeks.
///
/// # Errors
/// As [`save`], where the writer fails.
pub fn to_writer<W: Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
) -> Result<()> {
    to_writer_with(writer, tensors, &Options::default()).map(drop)
}

/// As [`to_writer`], with options; what was not kept, where that is accepted.
///
/// # Errors
/// As [`to_writer`].
pub fn to_writer_with<W: Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
    options: &Options,
) -> Result<Losses> {
    let (plan, losses) = write::plan(tensors, options)?;
    plan.write(writer)?;
    Ok(losses)
}
