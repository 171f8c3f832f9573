//! How processes that share a directory coordinate: a lock for those that save, and a number that
//! changes whenever files are removed, for those that read.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
#[cfg(feature = "sha256")]
use std::io::ErrorKind;
use std::io::{Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::io::lock::{Locked, open_or_create};

/// Locked during a whole save, from listing the directory to removing old files. Saves thus run one
/// after the other.
const SAVING: &str = ".tenarc-saving.lock";

/// Gets a new random content each time before files are removed.
const REMOVALS: &str = ".tenarc-removals";

/// Locks out other saves and checks of the manifest. Waits until those in progress are done.
pub fn lock_for_saving(dir: &Path) -> Result<Locked> {
    let path = dir.join(SAVING);
    Locked::wait(&path).map_err(|error| Error::io_at(error, "cannot lock", &path))
}

/// Locks out saves. Waits until one in progress is done. `None` if nobody has ever saved.
#[cfg(feature = "sha256")]
pub fn lock_for_checking(dir: &Path) -> Result<Option<Locked>> {
    let path = dir.join(SAVING);
    match Locked::wait_shared(&path) {
        Ok(locked) => Ok(Some(locked)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io_at(error, "cannot lock", &path)),
    }
}

/// Tells readers that files will be removed. Files that replace them must exist already.
pub fn announce_removals(dir: &Path) -> Result<()> {
    let path = dir.join(REMOVALS);
    let number = RandomState::new().build_hasher().finish();
    open_or_create(&path)
        .and_then(|mut file| file.write_all(&number.to_ne_bytes()))
        .map_err(|error| Error::io_at(error, "cannot write", &path))
}

/// The number that a reader compares before and after listing the directory. If it changed, the reader must list
/// again: a listing taken while one file is added and another removed can miss both.
///
/// Readers take no lock, because many readers could keep a save waiting for ever.
pub fn removals(dir: &Path) -> Option<[u8; 8]> {
    let mut number = [0; 8];
    File::open(dir.join(REMOVALS)).ok()?.read_exact(&mut number).ok()?;
    Some(number)
}
