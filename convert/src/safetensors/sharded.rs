//! Reads models in several files, with an index that says which file holds each tensor.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, TensorInfo};
use tenarc::{DynTensor, Error, Result};

use super::fields::{self, Index};
use super::read::SafeTensors;
use crate::exported::{Metadata, check_keys};
use crate::nested::Names;
use crate::support::parent;
use crate::{AsValue, Losses, TensorFile, beside, source};

/// The greatest length of an index, in bytes. It equals the limit of a header.
const MAX_INDEX: u64 = 100_000_000;

/// A model in several files: see [`open_sharded`].
#[derive(Debug)]
pub struct Sharded {
    shards: Vec<(String, SafeTensors<File>)>,
    /// The name of each tensor, with the index in `shards` of the file that holds it.
    by_name: HashMap<String, usize>,
    metadata: Option<Metadata>,
    losses: Losses,
}

/// Opens a model by its index, such as `model.safetensors.index.json`. Opens every file that the index names.
///
/// These files must be in the directory of the index. They may be symbolic links, because caches of models consist of
/// links. Each file must hold exactly the tensors that the index lists for it.
///
/// # Errors
/// If a file cannot be read or is not a valid safetensors file, the index has a path instead of a file name, or the
/// index and the files disagree.
pub fn open_sharded(index: impl AsRef<Path>) -> Result<Sharded> {
    let path = index.as_ref();
    let (file, len) = open_file(path)?;
    if len > MAX_INDEX {
        let what = format!("the index has {len} bytes, expected at most {MAX_INDEX}");
        return Err(Error::limit(what).in_file(path));
    }
    let index = source::bytes(&file, 0, len)
        .and_then(|text| fields::index(&text))
        .map_err(|error| error.in_file(path))?;
    Sharded::open(parent(path), index).map_err(|error| error.in_file(path))
}

impl Sharded {
    fn open(dir: &Path, index: Index) -> Result<Self> {
        let weights =
            index.weight_map.ok_or_else(|| Error::data("the index has no `weight_map`"))?;
        check_keys(&weights)?;
        // All names are checked before any file is opened.
        let mut numbers = HashMap::new();
        let mut names = Vec::new();
        let mut by_name = HashMap::with_capacity(weights.len());
        for (tensor, shard) in weights {
            let number = match numbers.get(&shard) {
                Some(&number) => number,
                None => {
                    beside::check("shard", &shard)?;
                    names.push(shard.clone());
                    numbers.insert(shard, names.len() - 1);
                    names.len() - 1
                }
            };
            by_name.insert(tensor, number);
        }
        let mut shards = Vec::new();
        let mut found = 0;
        for (number, name) in names.into_iter().enumerate() {
            let shard = SafeTensors::open(&dir.join(&name))?;
            for tensor in shard.tensors() {
                if by_name.get(tensor.path()) != Some(&number) {
                    let what = format!("`{name}` has a tensor that the index does not list for it");
                    return Err(Error::data(what).in_field(tensor.path()));
                }
            }
            found += shard.tensors().len();
            shards.push((name, shard));
        }
        let sharded = Self { shards, by_name, metadata: None, losses: Losses::default() };
        if found != sharded.by_name.len() {
            return Err(sharded.missing());
        }
        Ok(sharded.described(&index.numbers, &index.unknown))
    }

    /// Returns the error for a tensor that is in the index, but not in its file.
    #[cold]
    fn missing(&self) -> Error {
        let absent = self.by_name.iter().find_map(|(tensor, &number)| {
            let (name, shard) = self.shards.get(number)?;
            shard.info(tensor).is_err().then_some((tensor, name))
        });
        let (tensor, name) = absent.unzip();
        let name = name.map_or("", String::as_str);
        let what = format!("the index lists a tensor for `{name}`, which does not have it");
        Error::data(what).in_field(tensor.map_or("", String::as_str))
    }

    /// Merges the metadata of all files, and records what a conversion of the whole model loses.
    fn described(mut self, numbers: &[(String, Option<u64>)], unknown: &[String]) -> Self {
        // Sparse files can be of any size, so the sum may overflow.
        let bytes = self.tensors().map(TensorInfo::byte_len).fold(0, u64::saturating_add);
        // The product cannot overflow: it was checked when the file was opened.
        let count = |info: &TensorInfo| info.shape().iter().map(|&dim| dim as u64).product();
        let elements = self.tensors().map(count).fold(0, u64::saturating_add);
        for (key, number) in numbers {
            let known = match key.as_str() {
                "total_size" => Some(bytes),
                "total_parameters" => Some(elements),
                _ => None,
            };
            match known {
                Some(known) if *number == Some(known) => {}
                Some(known) => {
                    self.losses.note(format!("`{key}` of the index should be {known}"));
                }
                None => self.losses.add(key, "this key of the index's metadata is left out"),
            }
        }
        for key in unknown {
            self.losses.add(key, "this field of the index is left out");
        }
        let mut merged: Option<Metadata> = None;
        let mut seen: HashMap<&str, &str> = HashMap::new();
        for (name, shard) in &self.shards {
            let Some(texts) = shard.metadata() else { continue };
            let merged = merged.get_or_insert_default();
            for (key, text) in texts {
                match seen.insert(key, text) {
                    None => merged.push((key.clone(), text.clone())),
                    Some(before) if before == text => {}
                    Some(before) => {
                        seen.insert(key, before);
                        let what = format!(
                            "its text in `{name}` differs from that of an earlier file and is left out"
                        );
                        self.losses.add(key, what);
                    }
                }
            }
        }
        self.metadata = merged;
        self
    }

    /// Returns the files, each with its name.
    pub fn shards(&self) -> &[(String, SafeTensors<File>)] {
        &self.shards
    }

    /// Returns descriptions of all tensors, file by file, in the order of their bytes.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorInfo> {
        self.shards.iter().flat_map(|(_, shard)| shard.tensors())
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
        self.shard_of(name)?.info(name)
    }

    /// Reads a tensor into any type that implements [`FromTensor`]; see [`SafeTensors::tensor`].
    ///
    /// # Errors
    /// The errors of [`SafeTensors::tensor`].
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.shard_of(name)?.tensor(name)
    }

    /// Reads a tensor of any dtype; see [`SafeTensors::dyn_tensor`].
    ///
    /// # Errors
    /// The errors of [`SafeTensors::dyn_tensor`].
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        self.shard_of(name)?.dyn_tensor(name)
    }

    /// Returns whether a file of the model is marked as written from a nested value.
    pub fn is_nested(&self) -> bool {
        self.shards.iter().any(|(_, shard)| shard.is_nested())
    }

    fn shard_of(&self, name: &str) -> Result<&SafeTensors<File>> {
        let number = self.by_name.get(name).copied();
        let shard = number.and_then(|number| self.shards.get(number));
        shard.map(|(_, shard)| shard).ok_or_else(|| {
            Error::data(format!("there is no tensor named `{}`", name.escape_debug()))
        })
    }
}

impl TensorFile for Sharded {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let mut parts = Vec::with_capacity(self.by_name.len());
        for (_, shard) in &self.shards {
            parts.extend(shard.parts()?);
        }
        let value = AsValue::flat(parts).with_texts(self.metadata());
        value.with_losses(self.losses.clone()).named(names, self.is_nested())
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        self.shard_of(name)?.deferred(name)
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        self.shard_of(name)?.place(name)
    }
}
