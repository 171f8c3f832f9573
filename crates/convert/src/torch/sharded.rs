//! Models in several files, with an index that says which file holds each tensor.

use std::fs::File;
use std::path::Path;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::tensor::{Deferred, TensorInfo};
use tenarc::{Error, Result};

use super::file::TorchFile;
use crate::shards::Shards;
use crate::{AsValue, Losses, Names, TensorFile};

/// A model in several files: see [`open_sharded`].
#[derive(Debug)]
pub struct Sharded(Shards<TorchFile<File>>);

/// Opens a model by its index, such as `pytorch_model.bin.index.json`. Opens every file that the index names, and reads its
/// pickle.
///
/// These files must be in the directory of the index, or below. They may be symbolic links. Each file must hold exactly the
/// tensors that the index lists for it.
///
/// # Errors
/// If a file cannot be read or is not a valid file of torch, the path of a file leads out of the directory, or the index
/// and the files disagree.
pub fn open_sharded(index: impl AsRef<Path>) -> Result<Sharded> {
    Sharded::open(index.as_ref(), Limits::default())
}

impl Sharded {
    pub(super) fn open(index: &Path, limits: Limits) -> Result<Self> {
        let open = |path: &Path| Ok(TorchFile::open(path)?.with_limits(limits));
        Shards::open(index, open, TorchFile::tensors).map(Self)
    }

    /// Returns the files, each with its name.
    pub fn shards(&self) -> &[(String, TorchFile<File>)] {
        &self.0.files
    }

    /// Returns descriptions of all tensors, file by file.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorInfo> + Clone {
        self.shards().iter().flat_map(|(_, file)| file.tensors())
    }

    /// Calls `check` with each file. An error names the file.
    fn each<'a, T>(&'a self, check: impl Fn(&'a TorchFile<File>) -> Result<T>) -> Result<Vec<T>> {
        let files = self.shards().iter();
        files
            .map(|(name, file)| check(file).map_err(|error| error.in_file(name.as_ref())))
            .collect()
    }
}

/// The value is one map from the names of tensors, and of the plain values beside them.
impl TensorFile for Sharded {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let (mut parts, mut losses) = (Vec::new(), Losses::default());
        for value in self.each(|file| file.value(Names::Flat))? {
            losses.extend(value.losses().clone());
            parts.extend(value.into_parts());
        }
        self.0.not_kept(self.tensors(), &mut losses);
        let mut seen = std::collections::HashSet::new();
        // The names of tensors are unique, because the index lists each once.
        if let Some((name, _)) = parts.iter().find(|(name, _)| !seen.insert(*name)) {
            let what = "two files of the model have a value of this name";
            return Err(Error::data(what).in_field(*name));
        }
        AsValue::flat(parts).with_losses(losses).named(names, false)
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.0.of_tensor(name)?.deferred(name)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        self.0.of_tensor(name)?.place(name)
    }

    fn verify_unread(&self) -> Result<()> {
        self.each(TensorFile::verify_unread).map(drop)
    }

    fn has_tied_tensors(&self) -> bool {
        self.shards().iter().any(|(_, file)| file.has_tied_tensors())
    }

    fn verify(&self) -> Result<Option<String>> {
        Ok(self.each(TensorFile::verify)?.into_iter().flatten().next())
    }
}
