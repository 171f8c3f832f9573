//! What the processes that share a directory know of each other: a lock among those that save, and a
//! number by which those that read notice removals.

use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
#[cfg(feature = "sha256")]
use std::io::ErrorKind;
use std::io::{Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::io::lock::{Locked, open_or_create};

/// Held from before a save lists the directory until what it replaces is gone: saves come one
/// after the other.
const SAVING: &str = ".tenarc-saving.lock";

/// Another content each time files are about to be removed.
const REMOVALS: &str = ".tenarc-removals";

/// Waits until no other save or check of the manifest is going on, and keeps others waiting.
pub fn lock_for_saving(dir: &Path) -> Result<Locked> {
    let path = dir.join(SAVING);
    Locked::wait(&path).map_err(|error| Error::io_at(error, "cannot lock", &path))
}

/// Waits until no save is going on, and keeps saves waiting. `None` if nobody has ever saved.
#[cfg(feature = "sha256")]
pub fn lock_for_checking(dir: &Path) -> Result<Option<Locked>> {
    let path = dir.join(SAVING);
    match Locked::wait_shared(&path) {
        Ok(locked) => Ok(Some(locked)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io_at(error, "cannot lock", &path)),
    }
}

/// Tells readers that files will be removed. What takes their place must be there already.
pub fn announce_removals(dir: &Path) -> Result<()> {
    let path = dir.join(REMOVALS);
    let number = RandomState::new().build_hasher().finish();
    open_or_create(&path)
        .and_then(|mut file| file.write_all(&number.to_ne_bytes()))
        .map_err(|error| Error::io_at(error, "cannot write", &path))
}

/// What a reader sees before and after it lists, and has to list again if they differ. A listing
/// during which a file is added and another one removed may show neither; while none is removed it
/// shows the newest. Readers do not lock: enough of them would keep a save waiting for ever.
pub fn removals(dir: &Path) -> Option<[u8; 8]> {
    let mut number = [0; 8];
    File::open(dir.join(REMOVALS)).ok()?.read_exact(&mut number).ok()?;
    Some(number)
}
