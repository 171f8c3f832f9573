//! Files of webdataset's tenbin, which `../python/ten.py` has webdataset write and read.

use std::error::Error;
use std::fs;
use std::path::Path;

use tenarc_convert::tenbin;

use crate::{Tally, copies};

/// Reads every file and its frames, and writes the files again.
pub fn exchange(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    copies(dir, "ten", copy)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let shown = |error: &dyn std::fmt::Display| error.to_string();
    let arrays = tenbin::load(from).map_err(|error| shown(&error))?;
    tenbin::save(to, &arrays).map_err(|error| shown(&error))?;
    let same = fs::read(from).ok() == fs::read(to).ok();
    let frames =
        (0..2 * arrays.len()).map(|number| fs::read(format!("{}.{number:02}", from.display())));
    let frames: Vec<Vec<u8>> = frames.collect::<Result<_, _>>().map_err(|error| shown(&error))?;
    let found = tenbin::decode_frames(&frames).map_err(|error| shown(&error))?;
    if !same || found != arrays || tenbin::encode_frames(&arrays).ok() != Some(frames) {
        return Err("what is written differs from what was read".to_owned());
    }
    Ok(())
}
