//! Writes the tensors of a value in an archive to a safetensors file, and reports what else the value has.

use std::fmt;
use std::io::Write;
use std::path::Path;

use tenarc::Result;
use tenarc::tensor::Deferred;

use crate::exported::{Exported, Keep, Metadata};
use crate::{Losses, Options, Stored, nested};

/// The tensors of a value in an archive, to be saved in a safetensors file. The name of a tensor is its path in the
/// value, joined by dots.
///
/// Each tensor is read when it is written, one at a time, and its checksum is verified. A sequence of numbers that is
/// stored as one block is saved as a tensor of one dimension. A map of texts under `__metadata__` becomes the metadata
/// of the file.
///
/// ```
/// use tenarc_convert::safetensors::{self, Export};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-export-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.safetensors");
/// let mut archive = Vec::new();
/// tenarc::named::save_multi(&mut archive, &[("fc.weight", vec![0.5f32; 9])])?;
///
/// let archive = tenarc::Archive::new(archive)?;
/// let segment = archive.segment(0)?;
/// let export = Export::new(&segment)?;
/// assert!(export.losses().is_empty());
/// export.save(&path, &safetensors::Options::default())?;
/// assert_eq!(safetensors::open(&path)?.dyn_tensor("fc.weight")?, archive.only()?.dyn_tensor("fc.weight")?);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Export<'a> {
    tensors: Vec<(String, Deferred<'a>)>,
    metadata: Option<Metadata>,
    /// Whether the file is marked as written from a nested value.
    nested: bool,
    losses: Losses,
}

impl fmt::Debug for Export<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("tensors", &self.tensors.len())
            .field("losses", &self.losses)
            .finish_non_exhaustive()
    }
}

impl<'a> Export<'a> {
    /// Finds the tensors in the metadata of a value, without reading their elements.
    ///
    /// # Errors
    /// If the archive is damaged, the value is not a struct, a map or an array, or two tensors have the same name. A
    /// value that is itself a tensor has no name, so it is an error too.
    pub fn new(value: &'a dyn Stored) -> Result<Self> {
        let Exported { tensors, metadata, nested, losses, .. } =
            Exported::of(value, Keep::Tensors)?;
        Ok(Self { tensors, metadata, nested, losses })
    }

    /// Returns the tensors and their names, in the order of the value's fields.
    pub fn tensors(&self) -> &[(String, Deferred<'a>)] {
        &self.tensors
    }

    /// Returns the keys and texts under `__metadata__`, in their order.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.metadata.as_deref()
    }

    /// Returns what is lost of the value, for example values that are not tensors. Saving can add further losses.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Saves the tensors as a file. Returns what was lost, if the options accept losses. If the options have metadata,
    /// they replace the metadata of the value.
    ///
    /// # Errors
    /// The errors of [`save_with`](super::save_with). Also if there are [`losses`](Self::losses) and the options do not
    /// accept them.
    pub fn save(&self, path: impl AsRef<Path>, options: &Options) -> Result<Losses> {
        self.saved(options, |options| super::save_with(path, &self.tensors, options))
    }

    /// Like [`save`](Self::save), but writes to any writer.
    ///
    /// # Errors
    /// The errors of [`to_writer_with`](super::to_writer_with). Also if there are [`losses`](Self::losses) and the
    /// options do not accept them.
    pub fn to_writer<W: Write>(&self, writer: W, options: &Options) -> Result<Losses> {
        self.saved(options, |options| super::to_writer_with(writer, &self.tensors, options))
    }

    /// Like [`save`](Self::save), but saves several files: see [`save_sharded`](super::save_sharded).
    ///
    /// # Errors
    /// The errors of [`save_sharded`](super::save_sharded). Also if there are [`losses`](Self::losses) and the options
    /// do not accept them.
    pub fn save_sharded(
        &self,
        index: impl AsRef<Path>,
        max_bytes: u64,
        options: &Options,
    ) -> Result<Losses> {
        self.saved(options, |options| super::save_sharded(index, &self.tensors, max_bytes, options))
    }

    fn saved(
        &self,
        options: &Options,
        save: impl FnOnce(&Options) -> Result<Losses>,
    ) -> Result<Losses> {
        self.losses.check(options.accept_losses, self.tensors.len())?;
        let mut options = options.clone();
        options.metadata = options.metadata.or_else(|| self.metadata.clone());
        if self.nested {
            nested::mark(&mut options.metadata);
        }
        let mut losses = self.losses.clone();
        losses.extend(save(&options)?);
        Ok(losses)
    }
}
