//! Reads models in several files, with an index that says which file holds each tensor.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use tenarc::io::ReadAt;
use tenarc::tensor::{Deferred, FromTensor, TensorInfo};
use tenarc::{DynTensor, Result};

use super::read::SafeTensors;
use crate::exported::Metadata;
use crate::nested::Names;
use crate::shards::Shards;
use crate::{AsValue, Losses, TensorFile};

/// A model in several files: see [`open_sharded`].
#[derive(Debug)]
pub struct Sharded {
    shards: Shards<SafeTensors<File>>,
    metadata: Option<Metadata>,
    losses: Losses,
}

/// Opens a model by its index, such as `model.safetensors.index.json`. Opens every file that the index names.
///
/// These files must be in the directory of the index, or below. They may be symbolic links, because caches of models
/// consist of links. Each file must hold exactly the tensors that the index lists for it.
///
/// # Errors
/// If a file cannot be read or is not a valid safetensors file, the path of a file leads out of the directory, or the
/// index and the files disagree.
pub fn open_sharded(index: impl AsRef<Path>) -> Result<Sharded> {
    let shards = Shards::open(index.as_ref(), SafeTensors::open, SafeTensors::tensors)?;
    let mut losses = Losses::default();
    let tensors = shards.files.iter().flat_map(|(_, shard)| shard.tensors());
    shards.not_kept(tensors, &mut losses);
    let metadata = merged(&shards.files, &[], &mut losses);
    Ok(Sharded { shards, metadata, losses })
}

/// Merges the metadata of all files, but not these keys.
pub fn merged(
    shards: &[(String, SafeTensors<File>)],
    not: &[&str],
    losses: &mut Losses,
) -> Option<Metadata> {
    let mut merged: Option<Metadata> = None;
    let mut seen: HashMap<&str, &str> = HashMap::new();
    for (name, shard) in shards {
        let Some(texts) = shard.metadata() else { continue };
        let merged = merged.get_or_insert_default();
        for (key, text) in texts.iter().filter(|(key, _)| !not.contains(&&**key)) {
            match seen.insert(key, text) {
                None => merged.push((key.clone(), text.clone())),
                Some(before) if before == text => {}
                Some(before) => {
                    seen.insert(key, before);
                    let what = format!(
                        "its text in `{name}` differs from that of an earlier file and is left out"
                    );
                    losses.add(key, what);
                }
            }
        }
    }
    merged
}

impl Sharded {
    /// Returns the files, each with its name.
    pub fn shards(&self) -> &[(String, SafeTensors<File>)] {
        &self.shards.files
    }

    /// Returns descriptions of all tensors, file by file, in the order of their bytes.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorInfo> {
        self.shards().iter().flat_map(|(_, shard)| shard.tensors())
    }

    /// Returns the merged metadata of all files. If files have different texts for a key, the text of the first file is
    /// returned, and the others are in [`losses`](Self::losses).
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.metadata.as_deref()
    }

    /// Returns what a conversion of the whole model does not keep. This is metadata in which files differ, and
    /// everything in the index except `weight_map`, `total_size` and `total_parameters`. These two numbers are computed
    /// again, and reported if they were wrong.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Returns the description of a tensor, without reading its elements.
    ///
    /// # Errors
    /// If there is no tensor with this name.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.shards.of_tensor(name)?.info(name)
    }

    /// Reads a tensor into any type that implements [`FromTensor`]; see [`SafeTensors::tensor`].
    ///
    /// # Errors
    /// The errors of [`SafeTensors::tensor`].
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.shards.of_tensor(name)?.tensor(name)
    }

    /// Reads a tensor of any dtype; see [`SafeTensors::dyn_tensor`].
    ///
    /// # Errors
    /// The errors of [`SafeTensors::dyn_tensor`].
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        self.shards.of_tensor(name)?.dyn_tensor(name)
    }

    /// Returns whether a file of the model is marked as written from a nested value.
    pub fn is_nested(&self) -> bool {
        self.shards().iter().any(|(_, shard)| shard.is_nested())
    }
}

impl TensorFile for Sharded {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let mut parts = Vec::with_capacity(self.shards.len());
        for (_, shard) in self.shards() {
            parts.extend(shard.parts()?);
        }
        let value = AsValue::flat(parts).with_texts(self.metadata());
        value.with_losses(self.losses.clone()).named(names, self.is_nested())
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.shards.of_tensor(name)?.deferred(name)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        self.shards.of_tensor(name)?.place(name)
    }
}
