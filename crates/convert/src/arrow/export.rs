//! Writes a value of an archive as columns.

use std::fmt;
use std::io::Write;
use std::path::Path;

use tenarc::Result;
use tenarc::tensor::Deferred;

use super::plan::Texts;
use super::write;
use crate::exported::{Exported, Keep};
use crate::{Losses, Options, Stored, nested};

/// A value of an archive, to be written as columns. The name of a column is the path of its tensor, joined by dots.
///
/// Each tensor is read when it is written, one at a time. Its checksums are verified. Sequences of numbers that are
/// stored as one block are tensors of one dimension. Arrays of texts that have one text for each row become columns,
/// too. The texts in a map under `__metadata__` become the metadata of the file.
///
/// ```
/// use tenarc_convert::arrow::{ArrowFile, Export, Options};
///
/// let mut archive = Vec::new();
/// tenarc::named::save_multi(&mut archive, &[("fc.weight", vec![0.5f32; 9])])?;
///
/// let archive = tenarc::Archive::new(archive)?;
/// let segment = archive.segment(0)?;
/// let mut bytes = Vec::new();
/// Export::new(&segment)?.to_writer(&mut bytes, &Options::default())?;
/// let file = ArrowFile::new(bytes)?;
/// assert_eq!(file.dyn_tensor("fc.weight")?, archive.only()?.dyn_tensor("fc.weight")?);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Export<'a>(Exported<'a>);

impl fmt::Debug for Export<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("tensors", &self.0.tensors.len())
            .field("texts", &self.0.texts.len())
            .field("losses", &self.0.losses)
            .finish_non_exhaustive()
    }
}

impl<'a> Export<'a> {
    /// Finds the tensors and texts of a value, without reading the tensors.
    ///
    /// # Errors
    /// If the archive is damaged, if the value is not a struct, a map or an array, or if two columns would have the
    /// same name.
    pub fn new(value: &'a dyn Stored) -> Result<Self> {
        Exported::of(value, Keep::TextArrays).map(Self)
    }

    /// Returns the tensors and their names, in the order of the value's fields.
    pub fn tensors(&self) -> &[(String, Deferred<'a>)] {
        &self.0.tensors
    }

    /// Returns the arrays of texts and their names, in the order of the value's fields.
    pub fn texts(&self) -> &[(String, Vec<String>)] {
        &self.0.texts
    }

    /// Returns the keys and texts under `__metadata__`, in their order.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.0.metadata.as_deref()
    }

    /// Returns the parts of the value that are neither tensors nor arrays of texts.
    pub fn losses(&self) -> &Losses {
        &self.0.losses
    }

    /// Saves the columns as a file. If the options accept losses, returns what was lost. Metadata of the options
    /// replace those of the value.
    ///
    /// # Errors
    /// The errors of [`save_with`](super::save_with). Also if there are [`losses`](Self::losses) and the options do not
    /// accept them.
    pub fn save(&self, path: impl AsRef<Path>, options: &Options) -> Result<Losses> {
        let path = path.as_ref();
        self.saved(options, |options| write::save(path, &self.0.tensors, self.columns(), options))
    }

    /// Like [`save`](Self::save), but writes to any writer.
    ///
    /// # Errors
    /// The errors of [`to_writer_with`](super::to_writer_with). Also if there are [`losses`](Self::losses) and the
    /// options do not accept them.
    pub fn to_writer<W: Write>(&self, writer: W, options: &Options) -> Result<Losses> {
        self.saved(options, |options| {
            write::to_writer(writer, &self.0.tensors, self.columns(), options)
        })
    }

    fn columns(&self) -> Texts<'_> {
        Texts { texts: &self.0.texts, starts: Some(&self.0.starts) }
    }

    fn saved(
        &self,
        options: &Options,
        save: impl FnOnce(&Options) -> Result<Losses>,
    ) -> Result<Losses> {
        let kept = self.0.tensors.len() + self.0.texts.len();
        self.0.losses.check(options.accept_losses, kept)?;
        let mut options = options.clone();
        options.metadata = options.metadata.or_else(|| self.0.metadata.clone());
        if self.0.nested {
            nested::mark(&mut options.metadata);
        }
        let mut losses = self.0.losses.clone();
        losses.extend(save(&options)?);
        Ok(losses)
    }
}
