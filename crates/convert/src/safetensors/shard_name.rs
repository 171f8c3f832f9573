//! The names of an index, and of the files that it names.

use tenarc::{Error, Result};

/// The end of the name of every index.
const INDEX: &str = ".safetensors.index.json";

/// Returns the first part of the name of an index: `model` for `model.safetensors.index.json`.
pub fn stem_of_index(name: &str) -> Result<&str> {
    name.strip_suffix(INDEX).filter(|stem| !stem.is_empty()).ok_or_else(|| {
        let name = name.escape_debug();
        Error::data(format!(
            "expected the name of an index, such as `model.safetensors.index.json`, found `{name}`"
        ))
    })
}

/// Returns the name of a file of a model, such as `model-00001-of-00002.safetensors`. Numbers start at 1.
pub fn of_shard(stem: &str, number: usize, count: usize) -> String {
    format!("{stem}-{number:05}-of-{count:05}.safetensors")
}
