//! The files that are measured, and how the floor rows write and read them.

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

/// A temporary directory, which is removed with its content at the end.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(format!("tenarc-benches-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        // If this fails, the files stay in the system's temporary directory.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Whether a new file is synced.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    Off,
    /// The file is synced before the rename, the directory after it.
    Full,
}

/// Writes a temporary file and renames it to `path`, as tenarc does.
pub fn replace(path: &Path, sync: Sync, write: impl FnOnce(&mut File)) {
    let beside = path.with_extension("tmp");
    let mut file = File::create(&beside).unwrap();
    write(&mut file);
    if sync == Sync::Full {
        file.sync_all().unwrap();
    }
    fs::rename(&beside, path).unwrap();
    if sync == Sync::Full {
        File::open(path.parent().unwrap()).unwrap().sync_all().unwrap();
    }
}

/// Like [`replace`], but buffered, for writers of many small pieces.
pub fn replace_buffered(path: &Path, sync: Sync, write: impl FnOnce(&mut dyn Write)) {
    replace(path, sync, |file| {
        let mut buffered = BufWriter::with_capacity(1 << 20, file);
        write(&mut buffered);
        buffered.flush().unwrap();
    });
}

/// Removes a file, and with `Sync::Full` waits until this is on disk. Otherwise the next measurement would
/// include the time for it.
pub fn clear(path: &Path, sync: Sync) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        _ => {}
    }
    if sync == Sync::Full {
        File::open(path.parent().unwrap()).unwrap().sync_all().unwrap();
    }
}

/// Reads each part of a file into a new allocation.
pub fn read_parts(path: &Path, parts: &[Range<u64>]) -> Vec<Vec<u8>> {
    let mut file = File::open(path).unwrap();
    let read = parts.iter().map(|part| {
        // Allocating zeros is free: the kernel provides zeroed pages when they are first used.
        let mut bytes = vec![0; usize::try_from(part.end - part.start).unwrap()];
        file.seek(SeekFrom::Start(part.start)).unwrap();
        file.read_exact(&mut bytes).unwrap();
        bytes
    });
    read.collect()
}

/// A whole file in memory.
pub fn map(path: &Path) -> Mmap {
    let file = File::open(path).unwrap();
    // SAFETY: only this program writes the file, and not while it is mapped.
    unsafe { Mmap::map(&file).unwrap() }
}
