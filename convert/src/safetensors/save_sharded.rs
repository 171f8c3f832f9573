//! Writing a model as several files.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use tenarc::io::{AtomicFile, ReadAt as _};
use tenarc::tensor::ToTensor;
use tenarc::{Error, Result};

use super::fields;
use super::options::Options;
use super::shard_name;
use super::write::{Item, Plan, items};
use crate::{Losses, source};

/// Saves named tensors as several files and the index of them, which is at `index`:
/// `model.safetensors.index.json` for files named `model-00001-of-00002.safetensors` and so on.
///
/// Each file takes tensors in the order given as long as they are at most `max_bytes` together; a larger
/// one has a file to itself. Headers come on top. The metadata go into every file.
///
/// Files cannot be replaced together: where there is such an index already, it and its model stay, and
/// this is an error. The new index is written last. On any error the new files are removed; where the
/// process dies before, they remain, and without an index they are nothing, and are replaced by the
/// next save.
///
/// # Errors
/// As [`save_with`](super::save_with), where the path names no index, and where there is one.
pub fn save_sharded<N: AsRef<str>, T: ToTensor>(
    index: impl AsRef<Path>,
    tensors: &[(N, T)],
    max_bytes: u64,
    options: &Options,
) -> Result<Losses> {
    let path = index.as_ref();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let stem = shard_name::stem_of_index(name)?;
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::io_at(error, "cannot look at", path)),
        Ok(_) => {
            let there = ErrorKind::AlreadyExists.into();
            return Err(Error::io_at(there, "there is a model already, with the index", path));
        }
    }
    let mut losses = Losses::default();
    let items = items(tensors, &mut losses)?;
    losses.check(options.accept_losses, items.len())?;

    let shards = split(items, max_bytes);
    let count = shards.len();
    let total = shards.iter().flatten().map(|item| item.len).sum();
    // All is laid out before anything is written.
    let mut weights = Vec::with_capacity(tensors.len());
    let mut plans = Vec::with_capacity(count);
    for (number, shard) in shards.into_iter().enumerate() {
        let file = shard_name::of_shard(stem, number + 1, count);
        weights.extend(shard.iter().map(|item| (item.name.to_owned(), file.clone())));
        plans.push((path.with_file_name(file), Plan::new(shard, options.metadata.as_deref())?));
    }
    weights.sort_unstable();

    let mut written = Written(Vec::with_capacity(count));
    for (path, plan) in plans {
        plan.save(&path, options.sync)?;
        written.0.push(path);
    }
    let text = fields::write_index(total, &weights);
    let mut file = AtomicFile::create(path)?;
    file.write_all(&text).map_err(Error::io)?;
    let len = file.file().size().map_err(Error::io)?;
    if *source::bytes(file.file(), 0, len)? != text[..] {
        let error = Error::damaged("what was read back is not what was written");
        return Err(error.in_file(path));
    }
    file.commit(options.sync)?;
    written.0.clear();
    Ok(losses)
}

/// Tensors file by file; one file at least.
fn split(items: Vec<Item<'_>>, max_bytes: u64) -> Vec<Vec<Item<'_>>> {
    let mut shards = vec![Vec::new()];
    let mut filled = 0u64;
    for item in items {
        let together = filled.saturating_add(item.len);
        match shards.last_mut() {
            Some(shard) if filled == 0 || together <= max_bytes => {
                filled = together;
                shard.push(item);
            }
            _ => {
                filled = item.len;
                shards.push(vec![item]);
            }
        }
    }
    shards
}

/// Files that are removed again unless an index comes to name them.
struct Written(Vec<PathBuf>);

impl Drop for Written {
    fn drop(&mut self) {
        for path in &self.0 {
            // Whatever made the save fail is told already.
            let _ = fs::remove_file(path);
        }
    }
}
