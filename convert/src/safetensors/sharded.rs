//! Models in several files, with an index that says which tensor is in which.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, TensorInfo};
use tenarc::{DynTensor, Error, Result};

use super::fields::{self, Index};
use super::read::SafeTensors;
use super::shard_name;
use crate::exported::{Metadata, check_keys};
use crate::nested::Names;
use crate::support::parent;
use crate::{AsValue, Losses, TensorFile, source};

/// What an index may take, as a header.
const MAX_INDEX: u64 = 100_000_000;

/// A model in several files: see [`open_sharded`].
#[derive(Debug)]
pub struct Sharded {
    shards: Vec<(String, SafeTensors<File>)>,
    /// The number of the file that each tensor is in.
    by_name: HashMap<String, usize>,
    metadata: Option<Metadata>,
    losses: Losses,
}

/// Opens a model by its index, `model.safetensors.index.json`, and every file that it names.
///
/// These must be in the directory of the index (links there are followed, as caches of models consist
/// of them), and hold the tensors that the index says, no fewer and no more.
///
/// # Errors
/// Where a file cannot be read or is none, the index names one by more than a file name, and where index
/// and files disagree.
pub fn open_sharded(index: impl AsRef<Path>) -> Result<Sharded> {
    let path = index.as_ref();
    let (file, len) = open_file(path)?;
    if len > MAX_INDEX {
        let what = format!("an index of {len} bytes, {MAX_INDEX} are allowed");
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
        // Every name is looked at before any file is.
        let mut numbers = HashMap::new();
        let mut names = Vec::new();
        let mut by_name = HashMap::with_capacity(weights.len());
        for (tensor, shard) in weights {
            let number = match numbers.get(&shard) {
                Some(&number) => number,
                None => {
                    shard_name::check(&shard)?;
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
                    let what = format!("the index does not say that this tensor is in `{name}`");
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

    /// Which tensor of the index is in no file.
    #[cold]
    fn missing(&self) -> Error {
        let absent = self.by_name.iter().find_map(|(tensor, &number)| {
            let (name, shard) = self.shards.get(number)?;
            shard.info(tensor).is_err().then_some((tensor, name))
        });
        let (tensor, name) = absent.unzip();
        let name = name.map_or("", String::as_str);
        let what = format!("the index says that this tensor is in `{name}`, which has none");
        Error::data(what).in_field(tensor.map_or("", String::as_str))
    }

    /// Collects the metadata of all files, and what cannot be told of them together.
    fn described(mut self, numbers: &[(String, Option<u64>)], unknown: &[String]) -> Self {
        // Files can be sparse, so that all of them together claim any number.
        let bytes = self.tensors().map(TensorInfo::byte_len).fold(0, u64::saturating_add);
        // That of each fits 64 bits, as its file was opened.
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
                    self.losses.note(format!("`{key}` of the index, which is {known} here"));
                }
                None => self.losses.add(key, "in the metadata of the index"),
            }
        }
        for key in unknown {
            self.losses.add(key, "a field of the index");
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
                        let what = format!("in the metadata of `{name}`, other than before");
                        self.losses.add(key, what);
                    }
                }
            }
        }
        self.metadata = merged;
        self
    }

    /// The files, each with its name.
    pub fn shards(&self) -> &[(String, SafeTensors<File>)] {
        &self.shards
    }

    /// All tensors, file by file, in the order of their bytes.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorInfo> {
        self.shards.iter().flat_map(|(_, shard)| shard.tensors())
    }

    /// The metadata of all files together. Of texts that differ between files the first is given;
    /// [`losses`](Self::losses) tells of the others.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.metadata.as_deref()
    }

    /// What a conversion of the whole does not keep: what the index says beside the sizes, which are
    /// counted anew, and metadata in which files contradict each other.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The tensor of that name, without its elements.
    ///
    /// # Errors
    /// Where there is none.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        self.shard_of(name)?.info(name)
    }

    /// The tensor of that name as any type that can be read from one; see [`SafeTensors::tensor`].
    ///
    /// # Errors
    /// As [`SafeTensors::tensor`].
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.shard_of(name)?.tensor(name)
    }

    /// The tensor of that name, whatever its dtype; see [`SafeTensors::dyn_tensor`].
    ///
    /// # Errors
    /// As [`SafeTensors::dyn_tensor`].
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        self.shard_of(name)?.dyn_tensor(name)
    }

    /// Whether a file of the model says that it was written from a nested value.
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
