//! What the processes that share a directory know of each other: an advisory lock among those that
//! save, and a number by which those that read notice removals.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::io::atomic::{is_at, open_regular, retried};

/// Held from before a save lists the directory until what it replaces is gone: saves come one
/// after the other.
const SAVING: &str = ".tenarc-saving.lock";

/// Another content each time files are about to be removed.
const REMOVALS: &str = ".tenarc-removals";

/// A lock that is held until it is dropped. `None` where the file system has no locks: one process
/// at a time is then all that is safe.
pub struct Lock(Option<File>);

impl Lock {
    /// Waits until nobody else holds the lock.
    pub fn exclusive(dir: &Path) -> Result<Self> {
        let path = dir.join(SAVING);
        let lock = || {
            loop {
                let file = open(&path)?;
                match retried(|| file.lock()) {
                    Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(Self(None)),
                    result => result?,
                }
                // Whoever removed the file may not know that it is in use.
                if is_at(&file, &path).is_ok_and(|same| same) {
                    return Ok(Self(Some(file)));
                }
            }
        };
        lock().map_err(|error| Error::io_at(error, "cannot lock", &path))
    }

    /// Waits until nobody holds the lock exclusively; does without where nobody has ever saved, or
    /// where the lock cannot be had, as on a medium that is read-only.
    #[cfg(feature = "sha256")]
    pub fn shared(dir: &Path) -> Self {
        let Ok(file) = File::open(dir.join(SAVING)) else { return Self(None) };
        Self(retried(|| file.lock_shared()).is_ok().then_some(file))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // Not left to closing: a child that was forked meanwhile has the same open file.
            let _ = file.unlock();
        }
    }
}

/// Tells readers that files will be removed. What takes their place must be there already.
pub fn announce_removals(dir: &Path) -> Result<()> {
    let path = dir.join(REMOVALS);
    let number = RandomState::new().build_hasher().finish();
    open(&path)
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

/// Opens a file, or creates it; follows no links.
fn open(path: &Path) -> io::Result<File> {
    loop {
        match open_regular(path) {
            Ok(Some(file)) => return Ok(file),
            Ok(None) => return Err(io::Error::other("it is not a regular file")),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match OpenOptions::new().read(true).write(true).create_new(true).open(path) {
            Err(error)
                if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::Interrupted) => {}
            result => return result,
        }
    }
}
