//! JSON files to archives, and back.

use std::io::Write;
use std::path::Path;

use tenarc::Result;
use tenarc::archive::SaveOptions;
use tenarc::de::Limits;
use tenarc::io::open_file;

use super::Options;
use super::read::Reader;
use super::write::Format;
use crate::input::Positions;
use crate::values::ReadValues as _;
use crate::{Losses, Stored, made, values};

/// Converts a file of JSON values, one after the other, to an archive of as many; in JSON lines, a segment
/// for each line. One value at a time is in memory.
///
/// The archive has checksums, whatever the options say; it is read back and verified by them before it takes
/// its name.
///
/// # Errors
/// Where the file cannot be read or holds something else than JSON, as in [`read`](super::read), and where the
/// archive cannot be written.
pub fn to_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: SaveOptions,
) -> Result<()> {
    to_archive_with(from, to, options, Limits::default())
}

/// As [`to_archive`], with limits, which each value has for itself.
///
/// # Errors
/// As [`to_archive`], and with [`Category::Limit`](tenarc::error::Category::Limit) where there is more.
pub fn to_archive_with(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: SaveOptions,
    limits: Limits,
) -> Result<()> {
    let from = from.as_ref();
    let (file, _) = open_file(from)?;
    made::archive(
        to.as_ref(),
        options,
        |out| {
            let mut values = Reader::new(Positions::new(&file)?, limits);
            while let Some(value) = values.next_value().map_err(|error| error.in_file(from))? {
                out.save(&value)?;
            }
            Ok(())
        },
        |_| Ok(()),
    )
}

/// Writes a value, one tensor at a time in memory; what was not kept, where that is accepted.
///
/// # Errors
/// Where the value is damaged, the writer fails, and where something cannot be kept and that is not accepted:
/// that is found out while the value is written.
pub fn export<W: Write>(value: &dyn Stored, writer: W, options: &Options) -> Result<Losses> {
    values::export::<Format>(value, writer, options)
}

/// Converts an archive to a file of JSON lines, one for each segment; what was not kept, where that is
/// accepted.
///
/// Checksums are verified as tensors are read, one at a time. The file is read back and compared before it
/// takes its name.
///
/// # Errors
/// Where the archive cannot be read or is damaged, something cannot be kept and that is not accepted (then no
/// file was made), or the file cannot be written.
pub fn from_archive(
    from: impl AsRef<Path>,
    to: impl AsRef<Path>,
    options: &Options,
) -> Result<Losses> {
    values::from_archive::<Format>(from.as_ref(), to.as_ref(), options, b"\n", |_, _| Ok(()))
}
