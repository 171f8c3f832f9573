//! Writes targets that are not archives.

use std::fs::File;
use std::io::Write;
use std::path::Path;

use tenarc_convert::{Losses, written};

use crate::failure::{Failure, Result};
use crate::losses::{NOT_KEPT, tell};
use crate::output::Out;
use crate::target::{Target, TargetWriter};

/// Writes to a target that is not an archive. A new file is read back and compared before it replaces the old one.
pub fn write_stream(
    target: &Target,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    let save = |file: &File, path: &Path| {
        let done = written(file, path, |out| write(out).map_err(Failure::into_library));
        done.map_err(|error| Failure::while_writing(error, &target.name()))
    };
    if target.write_file(save)? {
        return Ok(());
    }
    let mut writer = target.writer()?;
    write(&mut writer)?;
    writer.finish()
}

/// Writes a target that is not an archive: a file with `to_file`, which can read the file back, and anything else with
/// `to_stream`. Prints what was lost.
pub fn write_file_or_stream(
    target: &Target,
    to_file: impl FnOnce(&File, &Path) -> tenarc::Result<Losses>,
    to_stream: impl FnOnce(&mut TargetWriter) -> Result<Losses>,
) -> Result<()> {
    let save = |file: &File, path: &Path| {
        let lost = to_file(file, path);
        let lost = lost.map_err(|error| Failure::while_writing(error, &target.name()))?;
        tell(&lost, None, NOT_KEPT);
        Ok(())
    };
    if target.write_file(save)? {
        return Ok(());
    }
    let mut writer = target.writer()?;
    tell(&to_stream(&mut writer)?, None, NOT_KEPT);
    writer.finish()
}

/// Writes to a file, if the target is one, and prints otherwise.
pub fn print_or_write(
    target: &Target,
    out: &mut Out,
    write: &mut dyn FnMut(&mut dyn Write) -> Result<()>,
) -> Result<()> {
    match target.path() {
        None => write(out),
        Some(_) => write_stream(target, write),
    }
}
