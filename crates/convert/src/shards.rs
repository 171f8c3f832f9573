//! The index of a model in several files, which says which file holds each tensor.

use std::collections::HashMap;
use std::path::Path;

use serde::de::{Error as _, IgnoredAny, MapAccess};
use serde_json::value::RawValue;
use tenarc::io::open_file;
use tenarc::tensor::TensorInfo;
use tenarc::{Error, Result};

use crate::exported::{Metadata, check_keys};
use crate::json_text::{self, FromObject, Object};
use crate::support::{no_tensor_named, parent};
use crate::{Losses, beside, source};

/// The greatest length of an index, in bytes. It equals the limit of a header of safetensors.
const MAX_INDEX: u64 = 100_000_000;

/// A model in several files.
#[derive(Debug)]
pub struct Shards<F> {
    /// The files, each with its name.
    pub files: Vec<(String, F)>,
    /// The name of each tensor, with the index in `files` of the file that holds it.
    by_name: HashMap<String, usize>,
    index: Index,
}

impl<F> Shards<F> {
    /// Reads an index, and opens every file that it names with `open`. `tensors` returns the tensors of a file, which must
    /// be those that the index lists for it.
    pub fn open(
        path: &Path,
        open: impl Fn(&Path) -> Result<F>,
        tensors: impl Fn(&F) -> &[TensorInfo],
    ) -> Result<Self> {
        let (file, len) = open_file(path)?;
        if len > MAX_INDEX {
            let what = format!("the index has {len} bytes, expected at most {MAX_INDEX}");
            return Err(Error::limit(what).in_file(path));
        }
        let index = source::bytes(&file, 0, len)
            .and_then(|text| json_text::parse(text.strip_prefix(BOM).unwrap_or(&text)));
        index
            .and_then(|index| Self::of(parent(path), index, open, tensors))
            .map_err(|error| error.in_file(path))
    }

    fn of(
        dir: &Path,
        mut index: Index,
        open: impl Fn(&Path) -> Result<F>,
        tensors: impl Fn(&F) -> &[TensorInfo],
    ) -> Result<Self> {
        let weights = index.weight_map.take();
        let weights = weights.ok_or_else(|| Error::data("the index has no `weight_map`"))?;
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
        let mut files = Vec::new();
        let mut found = 0;
        for (number, name) in names.into_iter().enumerate() {
            let file = open(&dir.join(&name))?;
            for tensor in tensors(&file) {
                if by_name.get(tensor.path()) != Some(&number) {
                    let what = format!("`{name}` has a tensor that the index does not list for it");
                    return Err(Error::data(what).in_field(tensor.path()));
                }
            }
            found += tensors(&file).len();
            files.push((name, file));
        }
        let shards = Self { files, by_name, index };
        if found != shards.by_name.len() {
            return Err(shards.missing(tensors));
        }
        Ok(shards)
    }

    /// Returns the error for a tensor that is in the index, but not in its file.
    #[cold]
    fn missing(&self, tensors: impl Fn(&F) -> &[TensorInfo]) -> Error {
        let absent = self.by_name.iter().find_map(|(tensor, &number)| {
            let (name, file) = self.files.get(number)?;
            let is_there = tensors(file).iter().any(|info| info.path() == tensor);
            (!is_there).then_some((tensor, name))
        });
        let (tensor, name) = absent.unzip();
        let name = name.map_or("", String::as_str);
        let what = format!("the index lists a tensor for `{name}`, which does not have it");
        Error::data(what).in_field(tensor.map_or("", String::as_str))
    }

    /// Adds to the losses what a conversion does not keep of the index. `tensors` are all tensors of the model.
    pub fn not_kept<'t>(
        &self,
        tensors: impl Iterator<Item = &'t TensorInfo> + Clone,
        losses: &mut Losses,
    ) {
        // Sparse files can be of any size, so the sum may overflow.
        let bytes = tensors.clone().map(TensorInfo::byte_len).fold(0, u64::saturating_add);
        // The product cannot overflow: it was checked when the file was opened.
        let count = |info: &TensorInfo| info.shape().iter().map(|&dim| dim as u64).product();
        let elements = tensors.map(count).fold(0, u64::saturating_add);
        for (key, number) in &self.index.numbers {
            let known = match key.as_str() {
                "total_size" => Some(bytes),
                "total_parameters" => Some(elements),
                _ => None,
            };
            match known {
                Some(known) if *number == Some(known) => {}
                Some(known) => losses.note(format!("`{key}` of the index should be {known}")),
                None => losses.add(key, "this key of the index's metadata is left out"),
            }
        }
        for key in &self.index.unknown {
            losses.add(key, "this field of the index is left out");
        }
    }

    /// Returns the file that holds a tensor.
    pub fn of_tensor(&self, name: &str) -> Result<&F> {
        let number = self.by_name.get(name).copied();
        let shard = number.and_then(|number| self.files.get(number));
        shard.map(|(_, shard)| shard).ok_or_else(|| no_tensor_named(name))
    }

    /// The number of tensors.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }
}

/// The byte order mark of UTF-8.
const BOM: &[u8] = b"\xef\xbb\xbf";

/// Returns whether a file that starts with these bytes is an index: a JSON text. No file of torch starts so.
pub fn is_index(start: &[u8]) -> bool {
    matches!(start, [b'{' | b' ' | b'\n' | 0xef, ..])
}

/// Returns the path of an index.
///
/// # Errors
/// If there is none, because the index was read from a pipe.
pub fn path_of(path: Option<&Path>) -> Result<&Path> {
    path.ok_or_else(|| {
        Error::data(
            "found an index, which names other files in its directory: give its path, not a pipe",
        )
    })
}

/// A parsed index that is not yet checked against its files.
#[derive(Debug, Default)]
struct Index {
    /// The keys of `metadata`, each with its value if that is an unsigned integer of up to 64 bits.
    numbers: Vec<(String, Option<u64>)>,
    /// The name of each tensor, with the name of the file that holds it.
    weight_map: Option<Metadata>,
    /// The other keys of the index.
    unknown: Vec<String>,
}

impl<'de> FromObject<'de> for Index {
    const WHAT: &'static str = "an object with weight_map";

    fn from_entries<A: MapAccess<'de>>(mut entries: A) -> Result<Self, A::Error> {
        let (mut weight_map, mut metadata, mut unknown) = (None, None, Vec::new());
        while let Some(field) = entries.next_key::<String>()? {
            let twice = match field.as_str() {
                "weight_map" => {
                    weight_map.replace(entries.next_value()?).is_some().then_some("weight_map")
                }
                "metadata" => {
                    metadata.replace(entries.next_value()?).is_some().then_some("metadata")
                }
                _ => {
                    entries.next_value::<IgnoredAny>()?;
                    unknown.push(field);
                    None
                }
            };
            if let Some(field) = twice {
                return Err(A::Error::duplicate_field(field));
            }
        }
        let metadata: Option<Object<Vec<_>>> = metadata.flatten();
        let number = |(key, value): (String, &RawValue)| (key, value.get().parse().ok());
        let numbers = metadata.into_iter().flat_map(|Object(pairs)| pairs).map(number).collect();
        Ok(Self { numbers, weight_map: weight_map.map(|Object(pairs)| pairs), unknown })
    }
}
