//! Reads and writes files of the [safetensors](https://huggingface.co/docs/safetensors) format, and converts them to
//! archives and back.
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
//! | convert a file to an archive, and back | [`Format`](super::Format) |
//! | save a file as a part of a value | [`TensorFile::value`] |
//! | write a value of an archive | [`Export`] |
//!
//! A file can become a flat or a nested value in an archive. The flat value is a map from names to tensors. If the file
//! has metadata, the map has them under `__metadata__`. For the nested value, names are split at their dots. In both
//! cases, [`Archive`](tenarc::Archive) finds a tensor by its name in the file, because the steps of a path are joined
//! by dots too. A conversion back restores the names.
//!
//! Files that are written here are byte for byte equal to those of the reference implementation. A file is read back
//! and compared before it gets its name.

mod distributed;
mod dtype;
mod export;
mod fields;
mod header;
mod read;
mod save_sharded;
mod shard_name;
mod sharded;
mod write;

use std::fs::File;
use std::io::Write;
use std::path::Path;

pub use super::options::Options;
pub use distributed::is_of_process;
pub use export::Export;
pub use read::SafeTensors;
pub use save_sharded::save_sharded;
pub use sharded::{Sharded, open_sharded};

use super::codec::Codec;
use super::{Losses, Stored, TensorFile};
use crate::{shards, source};
use tenarc::Result;
use tenarc::tensor::ToTensor;

/// Opens a file and reads its header. Tensors are read when they are requested: see [`SafeTensors::new`].
///
/// # Errors
/// If the file cannot be read, or is not a valid safetensors file.
pub fn open(path: impl AsRef<Path>) -> Result<SafeTensors<File>> {
    SafeTensors::open(path.as_ref())
}

/// Saves named tensors as a file. It replaces a file that exists at `path`.
///
/// The file appears complete or not at all, as with [`tenarc::save`]. To save tensors of several types together, pass
/// them as `&dyn ToTensor`. Tensors that are [`Deferred`](tenarc::tensor::Deferred) are read one at a time.
///
/// # Errors
/// If a tensor cannot be kept unchanged, two tensors have the same name, a tensor has the name `__metadata__`, or the
/// file cannot be written.
pub fn save<N: AsRef<str>, T: ToTensor>(path: impl AsRef<Path>, tensors: &[(N, T)]) -> Result<()> {
    save_with(path, tensors, &Options::default()).map(drop)
}

/// Like [`save`], but with options. Returns what was lost, if the options accept losses.
///
/// # Errors
/// The errors of [`save`]. Accepted losses are not errors, as long as a tensor is left.
pub fn save_with<N: AsRef<str>, T: ToTensor>(
    path: impl AsRef<Path>,
    tensors: &[(N, T)],
    options: &Options,
) -> Result<Losses> {
    let (plan, losses) = write::plan(tensors, options)?;
    plan.save(path.as_ref(), options.sync())?;
    Ok(losses)
}

/// Writes named tensors as a file to any writer, without seeking.
///
/// # Errors
/// The errors of [`save`]. Also if the writer fails.
pub fn to_writer<W: Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
) -> Result<()> {
    to_writer_with(writer, tensors, &Options::default()).map(drop)
}

/// Like [`to_writer`], but with options. Returns what was lost, if the options accept losses.
///
/// # Errors
/// The errors of [`save_with`]. Also if the writer fails.
pub fn to_writer_with<W: Write, N: AsRef<str>, T: ToTensor>(
    writer: W,
    tensors: &[(N, T)],
    options: &Options,
) -> Result<Losses> {
    let (plan, losses) = write::plan(tensors, options)?;
    plan.write(writer)?;
    Ok(losses)
}

/// The conversions of safetensors files to archives and back.
pub(crate) struct Safetensors;

impl Codec for Safetensors {
    fn open(&self, file: File, path: Option<&Path>, _: &Options) -> Result<Box<dyn TensorFile>> {
        // A safetensors file starts with the length of its header, whose last byte is 0.
        let mut start = [0; 8];
        let is_whole = source::read_exact(&file, &mut start, 0).is_ok();
        let is_json = |path: &Path| path.extension().is_some_and(|end| end == "json");
        let is_index = match start {
            [.., 0] if is_whole => false,
            _ => shards::is_index(&start) || path.is_some_and(is_json),
        };
        if is_index {
            return Ok(Box::new(open_sharded(shards::path_of(path)?)?));
        }
        let one = SafeTensors::new(file)?;
        if let Some(path) = path.filter(|_| one.starts().is_some())
            && let Some(all) = distributed::Distributed::open(path)?
        {
            return Ok(Box::new(all));
        }
        Ok(Box::new(one))
    }

    fn write(&self, value: &dyn Stored, out: &mut dyn Write, options: &Options) -> Result<Losses> {
        Export::new(value)?.to_writer(out, options)
    }
}
