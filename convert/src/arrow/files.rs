//! Conversions from file to file.

use std::fs::File;
use std::path::Path;

use tenarc::tensor::ToTensor;
use tenarc::{Archive, Error, Result};

use super::export::Export;
use super::options::{ArchiveOptions, Options};
use super::read::ArrowFile;
use crate::{AsValue, Losses, TensorFile as _, made};

/// Converts a file or a stream to an archive of one value; what was not kept, where that is accepted.
///
/// The archive has checksums, whatever the options say, of the bytes as they are read; it is read back and
/// verified by them before it takes its name.
///
/// # Errors
/// Where the file cannot be read or is none, it cannot be kept as it is and losses are not accepted, or the
/// archive cannot be written.
pub fn to_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &ArchiveOptions,
) -> Result<Losses> {
    let from = from.as_ref();
    let of_source = |error: Error| error.in_file(from);
    let file = ArrowFile::open(from)?;
    let value = file.value(options.names).map_err(of_source)?;
    value.losses().check(options.accept_losses, value.kept()).map_err(of_source)?;
    made::archive(
        to.as_ref(),
        options.save.clone(),
        |out| out.save(&value).map(drop),
        |archive| check(&value, archive),
    )?;
    Ok(file.losses().clone())
}

/// As many tensors are there as were meant, each of its dtype and shape.
fn check(value: &AsValue<'_>, archive: &Archive<&File>) -> Result<()> {
    let found = archive.tensors()?;
    let expected = value.in_order();
    let metas = found.iter().map(|info| info.meta().clone());
    if metas.eq(expected.map(ToTensor::meta)) {
        return Ok(());
    }
    Err(Error::damaged("what was read back is not what was written"))
}

/// Converts an archive of one value to a file, or a stream if its name ends in `.arrows`; what was not kept, where
/// that is accepted. See [`Export`] for archives of several values.
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
    let of_source = |error: Error| error.in_file(from);
    let archive = made::open_single(from)?;
    let segment = archive.segment(0).map_err(of_source)?;
    let export = Export::new(&segment).map_err(of_source)?;
    export.save(to, options)
}
