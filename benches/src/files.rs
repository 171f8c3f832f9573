//! Files to measure with: where they are, how the floor writes and reads them.

use std::fs::{self, File};
use std::io::{BufWriter, Read as _, Seek as _, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

/// A directory of its own, removed with all that is in it.
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
        // What cannot be removed the system removes some day.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// How a file is put in its place.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    Off,
    /// File and directory are synced, the one before the rename, the other behind it.
    Full,
}

/// Writes a file beside `path` and renames it, as tenarc does.
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

/// As [`replace`], for writers of many small pieces.
pub fn replace_buffered(path: &Path, sync: Sync, write: impl FnOnce(&mut dyn Write)) {
    replace(path, sync, |file| {
        let mut buffered = BufWriter::with_capacity(1 << 20, file);
        write(&mut buffered);
        buffered.flush().unwrap();
    });
}

/// Removes a file, and waits until what was written elsewhere is on the disk: both would else be
/// paid for by whoever comes next.
pub fn clear(path: &Path, sync: Sync) {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => panic!("{error}"),
        _ => {}
    }
    if sync == Sync::Full {
        File::open(path.parent().unwrap()).unwrap().sync_all().unwrap();
    }
}

/// Reads parts of a file into memory of their own, which is fresh, as their lengths say that it is
/// large.
pub fn read_parts(path: &Path, parts: &[Range<u64>]) -> Vec<Vec<u8>> {
    let mut file = File::open(path).unwrap();
    let read = parts.iter().map(|part| {
        // Zeros cost nothing before they are touched.
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
    // SAFETY: the file is one of this program's, which writes none that is mapped.
    unsafe { Mmap::map(&file).unwrap() }
}
