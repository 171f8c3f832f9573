//! Conversions from file to file.

use std::fs::File;
use std::path::Path;

use tenarc::archive::SaveOptions;
use tenarc::tensor::ToTensor as _;
use tenarc::{Archive, Error, Result};

use super::export::Export;
use super::open_sharded;
use super::options::Options;
use super::read::SafeTensors;
use crate::nested::Names;
use crate::{AsValue, Losses, TensorFile as _, made};

/// Converts a file, or a model in several files given by its index (a name that ends in `.json`), to an
/// archive of one value.
///
/// Nothing is lost of a file. Of an index, what it says beside the sizes of its model is, and where
/// files contradict each other's metadata; then this stops, and [`TensorFile::flat`]
/// is the way to go on.
///
/// The archive has checksums, whatever the options say, of the bytes as they are read from the file; it is
/// read back and verified by them before it takes its name.
///
/// # Errors
/// Where the file cannot be read or is none, it cannot be kept as it is, or the archive cannot be written.
pub fn to_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    names: Names,
    options: SaveOptions,
) -> Result<()> {
    let from = from.as_ref();
    if from.extension().is_some_and(|extension| extension == "json") {
        let model = open_sharded(from)?;
        model
            .losses()
            .check(false, model.tensors().count())
            .map_err(|error| error.in_file(from))?;
        let value = model.value(names);
        return save(&value.map_err(|error| error.in_file(from))?, to.as_ref(), options);
    }
    let file = SafeTensors::open(from)?;
    let value = file.value(names);
    save(&value.map_err(|error| error.in_file(from))?, to.as_ref(), options)
}

fn save(value: &AsValue<'_>, path: &Path, options: SaveOptions) -> Result<()> {
    made::archive(path, options, |out| out.save(value).map(drop), |archive| check(value, archive))
}

/// Every tensor is there as it was meant.
fn check(value: &AsValue<'_>, archive: &Archive<&File>) -> Result<()> {
    let segment = archive.segment(0)?;
    let export = Export::new(&segment)?;
    let mut found: Vec<_> =
        export.tensors().iter().map(|(name, t)| (&name[..], t.meta())).collect();
    let mut expected: Vec<_> = value.tensors().map(|(name, t)| (name, t.meta())).collect();
    found.sort_by_key(|(name, _)| *name);
    expected.sort_by_key(|(name, _)| *name);
    if found == expected && export.losses().is_empty() {
        return Ok(());
    }
    Err(Error::damaged("what was read back is not what was written"))
}

/// Converts an archive of one value to a file; what was not kept, where that is accepted. See
/// [`Export`] for archives of several values, and [`Export::save_sharded`] for several files.
///
/// Checksums are verified as tensors are read. The file is read back and compared before it takes its
/// name.
///
/// # Errors
/// Where the archive cannot be read, is damaged or holds several values, where it holds what is no tensor
/// and losses are not accepted, and where the file cannot be written.
pub fn from_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Losses> {
    let from = from.as_ref();
    let archive = made::open_single(from)?;
    let segment = archive.segment(0).map_err(|error| error.in_file(from))?;
    let export = Export::new(&segment).map_err(|error| error.in_file(from))?;
    export.save(to, options)
}
