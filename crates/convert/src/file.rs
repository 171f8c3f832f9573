//! Files of named tensors, in any format.

use std::fmt;
use std::sync::OnceLock;

use tenarc::io::ReadAt;
use tenarc::tensor::{Deferred, TensorInfo, ToTensor as _};
use tenarc::{Error, Result, Value};

use crate::apart::{Apart, Current};
use crate::as_value::{AsValue, Telling};
use crate::stored::{Put, Stored};
use crate::{Losses, Names, source};

/// A file of named tensors, each of which is read when it is asked for.
///
/// Every format that is read tensor by tensor has a type that implements this trait.
pub trait TensorFile {
    /// Returns the file as a value that can be saved. `names` says whether the value is nested by the dots in its
    /// names. Each tensor is read when it is written.
    ///
    /// # Errors
    /// If the file is damaged, or a tensor has more dimensions than readers of archives accept. A nested value also
    /// fails if one name is the beginning of another (`a` and `a.b`), a name has more than 64 steps, or the first step
    /// of a name is `__metadata__`.
    fn value(&self, names: Names) -> Result<AsValue<'_>>;

    /// Returns a tensor by its name. Its bytes are read when it is written. If the file is a single tensor, its name is
    /// empty.
    ///
    /// # Errors
    /// If there is no such tensor, or it cannot be read.
    fn deferred(&self, name: &str) -> Result<Deferred<'_>>;

    /// Returns the source and the offset of a tensor's bytes, if the file stores them exactly as tenarc does. `None` if
    /// they are stored in another form, for example compressed.
    ///
    /// # Errors
    /// If there is no such tensor, or it cannot be read.
    fn place(&self, _name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        Ok(None)
    }

    /// Checks data that belongs to tensors, but is not checked when all tensors are read. An example is the checksum of
    /// a storage of which the tensors use only a part.
    ///
    /// # Errors
    /// If something is damaged.
    fn verify_unread(&self) -> Result<()> {
        Ok(())
    }

    /// Checks everything that reading all tensors does not check. Returns a description of what cannot be checked. The
    /// default is for formats without checksums.
    ///
    /// # Errors
    /// If something is damaged.
    fn verify(&self) -> Result<Option<String>> {
        Ok(Some("the format has no checksums: changed elements are not detected".into()))
    }

    /// Returns what the file says of itself beside its tensors, for people: a map from topics to texts, numbers, maps
    /// of them, or arrays of maps that all have the same keys. It is null if there is nothing to say.
    ///
    /// An ONNX model has its inputs and outputs, its operators and its producer. An HDF5 file has the layout and the
    /// filters of each dataset. An Arrow file has its record batches. Later versions may say more.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn about(&self) -> Result<Value> {
        Ok(Value::Null)
    }

    /// Returns whether two tensors are the same bytes of the file, as the tied weights of a model are. An archive with
    /// [deduplication](tenarc::archive::SaveOptions::with_dedup) stores them once.
    fn has_tied_tensors(&self) -> bool {
        false
    }

    /// Returns descriptions of all tensors, in the order of the file. The path of each is its name.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    fn tensors(&self) -> Result<Vec<TensorInfo>> {
        Ok(self.value(Names::Flat)?.infos())
    }

    /// Returns the file as a value with the structure that it was saved with, as far as the file records it.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    fn stored(&self) -> Result<AsValue<'_>> {
        self.value(Names::Stored)
    }

    /// Returns the file as a flat value: a map from names to tensors. If the file has metadata, the map has them under
    /// `__metadata__`.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    fn flat(&self) -> Result<AsValue<'_>> {
        self.value(Names::Flat)
    }

    /// Returns the file as a nested value: names are split at their dots, and their steps become the keys of nested
    /// maps. A map with the keys 0, 1, … becomes an array. So `layers.0.weight` and `layers.1.weight` can be loaded
    /// into a struct whose field `layers` is a vector of structs.
    ///
    /// # Errors
    /// The errors of [`value`](Self::value).
    fn nested(&self) -> Result<AsValue<'_>> {
        self.value(Names::Nested)
    }
}

/// An opened file of named tensors. Its metadata are in memory; the bytes of a tensor are read from the file when they
/// are needed.
pub struct Opened {
    file: Box<dyn TensorFile>,
    apart: Apart,
    /// The names of all parts.
    names: Vec<String>,
    losses: Losses,
    kept: usize,
    watch: OnceLock<Box<dyn Fn(u64)>>,
}

impl fmt::Debug for Opened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Opened")
            .field("tensors", &self.apart.buffers().len())
            .field("losses", &self.losses)
            .finish_non_exhaustive()
    }
}

impl Opened {
    /// Reads everything in a file except its tensors, and keeps it as metadata.
    ///
    /// # Errors
    /// The errors of [`TensorFile::value`].
    pub fn new(file: Box<dyn TensorFile>, names: Names) -> Result<Self> {
        let value = file.value(names)?;
        let current = Current::default();
        let apart = Apart::new(&Telling(&value, &current), &current)?;
        let name = |number: usize| value.name(number).unwrap_or_default().to_owned();
        let names = (0..value.kept()).map(name).collect();
        let (losses, kept) = (value.told(), value.kept());
        drop(value);
        Ok(Self { file, apart, names, losses, kept, watch: OnceLock::new() })
    }

    /// Returns the file.
    pub fn file(&self) -> &dyn TensorFile {
        &*self.file
    }

    /// Returns what the file holds that the value does not.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns the number of tensors and of other parts of the file, such as texts, that the value holds.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Returns the number of bytes of all tensors.
    pub fn byte_len(&self) -> u64 {
        self.apart.buffers().iter().fold(0, |sum, (_, len)| sum.saturating_add(*len))
    }

    /// Sets a function that is called from now on with the length of each block of a tensor that is read. Only the
    /// first call of this method has an effect.
    pub fn watch(&self, watch: impl Fn(u64) + 'static) {
        // If there is a function already, it stays.
        let _ = self.watch.set(Box::new(watch));
    }

    /// Fills `out` with the bytes of a buffer from `start` on, without reading the bytes before. Returns `false` if the
    /// file does not allow that, for example because it is compressed.
    ///
    /// # Errors
    /// If the bytes cannot be read.
    pub fn part(&self, buffer: usize, start: u64, out: &mut [u8]) -> Result<bool> {
        let Some((source, at)) = self.file.place(self.name(buffer)?)? else { return Ok(false) };
        source::read_exact(source, out, at.saturating_add(start))?;
        Ok(true)
    }

    fn name(&self, buffer: usize) -> Result<&str> {
        let number = self.apart.number(buffer)?;
        Ok(self.names.get(number).map_or("", String::as_str))
    }
}

impl Stored for Opened {
    fn metadata(&self) -> Result<&[u8]> {
        Ok(self.apart.metadata())
    }

    fn buffers(&self) -> &[(u64, u64)] {
        self.apart.buffers()
    }

    fn lost(&self) -> Losses {
        self.losses.clone()
    }

    fn verify_unread(&self) -> Result<()> {
        self.file.verify_unread()
    }

    fn blocks(&self, buffer: usize, put: &mut Put<'_>) -> Result<()> {
        let mut given = 0u64;
        self.file.deferred(self.name(buffer)?)?.write_blocks(&mut |block| {
            given = given.saturating_add(block.len() as u64);
            if let Some(watch) = self.watch.get() {
                watch(block.len() as u64);
            }
            put(block)
        })?;
        match self.buffers().get(buffer) {
            Some((_, len)) if *len == given => Ok(()),
            // The file was changed after it was opened.
            expected => Err(Error::damaged(format!(
                "expected {} bytes of a tensor, found {given}: the file has changed",
                expected.map_or(0, |(_, len)| *len)
            ))),
        }
    }
}
