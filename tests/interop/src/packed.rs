//! MessagePack with arrays of numpy, which `../python/packed.py` has msgpack-numpy write and read.

use std::error::Error;
use std::fs;
use std::path::Path;

use tenarc::SaveOptions;
use tenarc::convert::msgpack::{self, Options};

use crate::Tally;

/// Takes every file into an archive and out again.
pub fn exchange(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    let again = dir.join("again");
    fs::create_dir_all(&again)?;
    let mut tally = Tally::default();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_none_or(|extension| extension != "msgpack") {
            continue;
        }
        let name = path.file_name().ok_or("a file without a name")?.to_string_lossy();
        let archive = again.join("archive.tenarc");
        tally.note(&name, copy(&path, &archive, &again.join(&*name), name.starts_with("same")));
    }
    Ok(tally)
}

fn copy(from: &Path, archive: &Path, to: &Path, same: bool) -> Result<(), String> {
    let shown = |error: tenarc::Error| error.to_string();
    msgpack::to_archive(from, archive, SaveOptions::default()).map_err(shown)?;
    let lost = msgpack::from_archive(archive, to, &Options::default()).map_err(shown)?;
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
