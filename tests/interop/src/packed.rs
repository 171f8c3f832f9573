//! MessagePack with arrays of numpy, which `../python/packed.py` has msgpack-numpy write and read.

use std::error::Error;
use std::fs;
use std::path::Path;

use tenarc_convert::{Format, Options, msgpack};

use crate::{Tally, copies};

/// Takes every file into an archive and out again.
pub fn exchange(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    copies(dir, "msgpack", copy)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let archive = &to.with_file_name("archive.tenarc");
    let same = from.file_name().is_some_and(|name| name.to_string_lossy().starts_with("same"));
    let shown = |error: tenarc::Error| error.to_string();
    Format::Msgpack.to_archive(from, archive, &Options::default()).map_err(shown)?;
    let lost = Format::Msgpack.from_archive(archive, to, &Options::default()).map_err(shown)?;
    let read = |path: &Path| fs::read(path).map_err(|error| error.to_string());
    let (before, after) = (read(from)?, read(to)?);
    let mut direct = Vec::new();
    let value = msgpack::read(&before[..]).map_err(shown)?;
    msgpack::write(&mut direct, &value).map_err(shown)?;
    if !lost.is_empty() || direct != after || same && before != after {
        return Err("what is written differs from what was read".to_owned());
    }
    Ok(())
}
