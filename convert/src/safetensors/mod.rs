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
//! | convert a file to an archive, and back | [`Format`](super::Format) |
//! | save a file as a part of a value | [`TensorFile::value`] |
//! | write a value of an archive | [`Export`] |
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
pub use export::Export;
pub use read::SafeTensors;
pub use save_sharded::save_sharded;
pub use sharded::{Sharded, open_sharded};

use super::format::Codec;
use super::{Losses, Stored, TensorFile};
use crate::source;
use tenarc::tensor::ToTensor;
use tenarc::{Error, Result};

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
    plan.save(path.as_ref(), options.sync())?;
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

/// safetensors among the formats.
pub(crate) struct Safetensors;

impl Codec for Safetensors {
    fn open(&self, file: File, path: Option<&Path>, _: &Options) -> Result<Box<dyn TensorFile>> {
        // An index is JSON text. A safetensors file starts with the length of its header, whose last byte is 0.
        let mut start = [0; 8];
        let is_whole = source::read_exact(&file, &mut start, 0).is_ok();
        let is_json = path.and_then(Path::extension).is_some_and(|extension| extension == "json");
        let is_text = match start {
            [.., 0] if is_whole => false,
            [b'{' | b' ' | b'\n', ..] => true,
            _ => is_json,
        };
        match path {
            Some(path) if is_text => Ok(Box::new(open_sharded(path)?)),
            None if is_text => Err(Error::data(
                "an index names other files in its directory: give its file name, not a pipe",
            )),
            _ => Ok(Box::new(SafeTensors::new(file)?)),
        }
    }

    fn write(&self, value: &dyn Stored, out: &mut dyn Write, options: &Options) -> Result<Losses> {
        Export::new(value)?.to_writer(out, options)
    }
}
