//! From an archive to a file: what of a value are tensors, and what is not.

use std::fmt;
use std::io::Write;
use std::path::Path;

use tenarc::Result;
use tenarc::tensor::Deferred;

use crate::exported::{Exported, Keep, Metadata};
use crate::{Losses, Options, Stored, nested};

/// A value of an archive as tensors to be saved under names: its paths, joined by dots.
///
/// Tensors are read as they are written, with checksums verified, one at a time. Sequences of numbers
/// that are stored as one block are tensors of one dimension. Texts in a map under `__metadata__` are
/// the metadata.
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
    /// Whether the file says that names are paths of a nested value.
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
    /// Looks through the metadata of a value, without reading its tensors.
    ///
    /// # Errors
    /// Where the archive is damaged, the value is itself a tensor or anything else than a struct, a map
    /// or an array, and where two tensors have one name.
    pub fn new(value: &'a dyn Stored) -> Result<Self> {
        let Exported { tensors, metadata, nested, losses, .. } =
            Exported::of(value, Keep::Tensors)?;
        Ok(Self { tensors, metadata, nested, losses })
    }

    /// The tensors and their names, in the order of the value's fields.
    pub fn tensors(&self) -> &[(String, Deferred<'a>)] {
        &self.tensors
    }

    /// The texts under `__metadata__`, in their order.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.metadata.as_deref()
    }

    /// What of the value is no tensor.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Saves the tensors as a file; what was not kept, where that is accepted. Metadata of the options
    /// take the place of the value's.
    ///
    /// # Errors
    /// As [`save_with`](super::save_with), and where there are [`losses`](Self::losses) that are not
    /// accepted.
    pub fn save(&self, path: impl AsRef<Path>, options: &Options) -> Result<Losses> {
        self.saved(options, |options| super::save_with(path, &self.tensors, options))
    }

    /// As [`save`](Self::save), to any writer.
    ///
    /// # Errors
    /// As [`to_writer_with`](super::to_writer_with), and where there are [`losses`](Self::losses) that
    /// are not accepted.
    pub fn to_writer<W: Write>(&self, writer: W, options: &Options) -> Result<Losses> {
        self.saved(options, |options| super::to_writer_with(writer, &self.tensors, options))
    }

    /// As [`save`](Self::save), as several files: see [`save_sharded`](super::save_sharded).
    ///
    /// # Errors
    /// As [`save_sharded`](super::save_sharded), and where there are [`losses`](Self::losses) that are
    /// not accepted.
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
