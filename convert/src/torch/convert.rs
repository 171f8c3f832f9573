//! Conversions from file to file.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use tenarc::archive::SaveOptions;
use tenarc::inspect::escape_step;
use tenarc::io::ReadAt;
use tenarc::{Archive, Error, Result};

use super::file::TorchFile;
use crate::nested::Names;
use crate::{Losses, TensorFile as _, made};

/// How a file is converted.
///
/// ```
/// use tenarc::archive::SaveOptions;
/// use tenarc_convert::torch::{Names, Options};
///
/// let options = Options::default()
///     .with_names(Names::Nested)
///     .with_losses(true)
///     .with_save(SaveOptions::default().with_dedup(true));
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    names: Names,
    losses: bool,
    save: SaveOptions,
}

impl Options {
    /// How names are taken into the archive.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Whether what is neither a tensor nor a plain value may be left out; off by default. What it was is
    /// returned as [`Losses`].
    #[must_use]
    pub fn with_losses(mut self, accepted: bool) -> Self {
        self.losses = accepted;
        self
    }

    /// How the archive is written. It has checksums, whatever these options say. If tensors of the file are
    /// [tied](TorchFile::has_tied_tensors), equal tensors are stored once.
    #[must_use]
    pub fn with_save(mut self, options: SaveOptions) -> Self {
        self.save = options;
        self
    }
}

/// Converts a file to an archive of one value; what was not kept, where that is accepted.
///
/// Checksums of the file are verified as it is read. The archive is read back, verified and compared before it
/// takes its name.
///
/// # Errors
/// Where the file cannot be read or is refused, it cannot be kept as it is and losses are not accepted, or
/// the archive cannot be written.
pub fn to_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Losses> {
    let (from, to) = (from.as_ref(), to.as_ref());
    let of_source = |error: Error| error.in_file(from);
    let file = TorchFile::open(from)?;
    file.losses().check(options.losses, file.tensors().len()).map_err(of_source)?;
    let value = file.value(options.names).map_err(of_source)?;
    // Before anything is written: those of whole storages are verified on the way.
    file.verify_parts().map_err(of_source)?;
    let mut save = options.save.clone();
    if file.has_tied_tensors() {
        save = save.with_dedup(true);
    }
    made::archive(to, save, |out| out.save(&value).map(drop), |archive| check(&file, archive))?;
    Ok(file.losses().clone())
}

/// Every tensor is there as it was meant.
fn check<S: ReadAt>(file: &TorchFile<S>, archive: &Archive<&File>) -> Result<()> {
    let tensors = archive.tensors()?;
    let found: HashMap<&str, _> =
        tensors.iter().map(|found| (found.path(), found.meta())).collect();
    for info in file.tensors() {
        let name = info.path();
        // As it is, or as a JSON Pointer where it could mean something else.
        let pointer = |dot: &str| format!("/{}", escape_step(name).replace('.', dot));
        let meta = [name.to_owned(), pointer("."), pointer("/")];
        let meta = meta.iter().find_map(|path| found.get(path.as_str()));
        if meta != Some(&info.meta()) {
            return Err(Error::damaged("what was read back is not what was written").in_field(name));
        }
    }
    Ok(())
}
