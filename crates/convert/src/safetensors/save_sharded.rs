//! Writes a model as several files with an index.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use tenarc::io::AtomicFile;
use tenarc::tensor::ToTensor;
use tenarc::{Error, Result};

use super::fields;
use super::shard_name;
use super::write::{Item, Plan, items};
use crate::{Losses, Options, made};

/// Saves named tensors as several files, and an index of them at `index`. If the index is
/// `model.safetensors.index.json`, the files are `model-00001-of-00002.safetensors` and so on.
///
/// Tensors are added to a file in the given order, as long as they take at most `max_bytes` together. A tensor that is
/// larger gets a file of its own. Headers are not counted. Every file gets the metadata of the options.
///
/// Several files cannot be replaced in one step. So if the index exists already, this is an error, and the old model is
/// unchanged. All files are written under temporary names. They get their names once all of them are complete, the
/// index last. After an error, no new file remains, and the files that were there before are unchanged. If the process
/// is killed while files take their names, some of the new ones remain. Without an index they are not a model, and the
/// next save replaces them. Old files that they replaced are then left under names such as
/// `.model-00001-of-00002.safetensors.before`. No save removes these.
///
/// # Errors
/// The errors of [`save_with`](super::save_with). Also if `index` exists already, or its name is not of the form
/// `model.safetensors.index.json`.
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
            return Err(Error::io_at(there, "cannot create a model with the index", path));
        }
    }
    let mut losses = Losses::default();
    let items = items(tensors, &mut losses)?;
    losses.check(options.accept_losses, items.len())?;

    let shards = split(items, max_bytes);
    let count = shards.len();
    let total = shards.iter().flatten().map(|item| item.len).sum();
    // The layout of all files is made before anything is written. So errors in it leave no files behind.
    let mut weights = Vec::with_capacity(tensors.len());
    let mut plans = Vec::with_capacity(count);
    for (number, shard) in shards.into_iter().enumerate() {
        let file = shard_name::of_shard(stem, number + 1, count);
        weights.extend(shard.iter().map(|item| (item.name.to_owned(), file.clone())));
        plans.push((path.with_file_name(file), Plan::new(shard, options.metadata.as_deref())?));
    }
    weights.sort_unstable();

    // The new files have temporary names, so the old files are unchanged if writing one of them fails.
    let mut files = Vec::with_capacity(count);
    for (path, plan) in plans {
        let file = AtomicFile::replacing(&path)?;
        plan.written(file.file(), &path)?;
        files.push((file, path));
    }
    let index = written_index(path, &fields::write_index(total, &weights)?)?;
    let mut moved = Moved::default();
    for (file, path) in files {
        moved.set_aside(&path)?;
        file.commit(options.sync())?;
        moved.new.push(path);
    }
    index.commit(options.sync())?;
    moved.keep();
    Ok(losses)
}

/// Writes an index under a temporary name, reads it back and compares it.
fn written_index(path: &Path, text: &[u8]) -> Result<AtomicFile> {
    let file = AtomicFile::replacing(path)?;
    made::written(file.file(), path, |out| out.write_all(text).map_err(Error::io))?;
    Ok(file)
}

/// Splits tensors into those of each file. Returns at least one file, which is empty if there are no tensors.
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

/// The new files that have got their names, and the old files that had these names. If this is dropped without
/// [`keep`](Self::keep), the new files are removed, and the old files get their names back.
#[derive(Default)]
struct Moved {
    new: Vec<PathBuf>,
    /// The temporary and the former name of each old file.
    aside: Vec<(PathBuf, PathBuf)>,
}

impl Moved {
    /// Renames the file at `path`, if there is one, to a temporary name.
    fn set_aside(&mut self, path: &Path) -> Result<()> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = |number| match number {
            1 => path.with_file_name(format!(".{name}.before")),
            more => path.with_file_name(format!(".{name}.before-{more}")),
        };
        // A name that is taken holds an old file, from a save that was killed.
        let taken = |path: &PathBuf| fs::symlink_metadata(path).is_ok();
        let Some(aside) = (1..=u32::MAX).map(name).find(|path| !taken(path)) else {
            return Err(Error::io_at(ErrorKind::AlreadyExists.into(), "cannot rename", path));
        };
        match fs::rename(path, &aside) {
            Ok(()) => self.aside.push((aside, path.to_owned())),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Error::io_at(error, "cannot rename", path)),
        }
        Ok(())
    }

    fn keep(mut self) {
        self.new.clear();
        for (aside, _) in self.aside.drain(..) {
            // If the file cannot be removed, it does no harm.
            let _ = fs::remove_file(aside);
        }
    }
}

impl Drop for Moved {
    fn drop(&mut self) {
        // Errors are ignored here, because the save already returns the error that made it fail.
        for path in &self.new {
            let _ = fs::remove_file(path);
        }
        for (aside, path) in &self.aside {
            let _ = fs::rename(aside, path);
        }
    }
}
