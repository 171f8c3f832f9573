//! Directories, values, and reading in every way.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use ndarray::Array1;
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::io::{ReadAt, SyncLevel};
use tenarc::{Archive, IArchive, Map, OArchive, Tensor};

/// A directory of one test, removed with it.
pub struct Dir(PathBuf);

impl Dir {
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tenarc-archive-files-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).unwrap();
        // System calls show the path without links.
        Self(path.canonicalize().unwrap())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn names(&self) -> BTreeSet<OsString> {
        fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    /// Nothing but the one file: no temporary files.
    #[track_caller]
    pub fn holds_only(&self, name: &str) {
        assert_eq!(self.names(), BTreeSet::from([name.into()]));
    }
}

impl Drop for Dir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Every part of it tells its number, so that a mixture of two is seen.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Record {
    pub number: u32,
    pub text: String,
    pub data: Tensor<Array1<u32>>,
    pub more: Tensor<Array1<f64>>,
}

/// A record whose two tensors have `len` elements; from 512 on both stand in buffers.
pub fn record(number: u32, len: usize) -> Record {
    let data = (0..len as u32).map(|at| at.wrapping_mul(77).wrapping_add(number)).collect();
    let more = (0..len).map(|at| f64::from(number) + at as f64 / 1024.0).collect();
    Record { number, text: format!("record {number}"), data: Tensor(data), more: Tensor(more) }
}

/// What is written to no disk in particular, for speed.
pub fn unsynced() -> SaveOptions {
    SaveOptions::default().with_sync(SyncLevel::Off)
}

/// Writes an archive of records with `len` elements, each under its name.
pub fn create(path: &Path, numbers: impl IntoIterator<Item = u32>, len: usize) {
    let mut out = OArchive::create(path, unsynced()).unwrap();
    for number in numbers {
        out.save_as(&name(number), &record(number, len)).unwrap();
    }
    out.finish().unwrap();
}

pub fn append(path: &Path, numbers: impl IntoIterator<Item = u32>, len: usize) {
    let mut out = OArchive::append_with(path, unsynced()).unwrap();
    for number in numbers {
        out.save_as(&name(number), &record(number, len)).unwrap();
    }
    out.finish().unwrap();
}

pub fn name(number: u32) -> String {
    format!("n{number}")
}

/// The numbers of all records, each checked against what was saved.
pub fn numbers_in<S: ReadAt>(archive: &Archive<S>) -> tenarc::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for segment in archive.segments() {
        let found: Record = segment?.load()?;
        assert_eq!(found, record(found.number, found.data.len()), "mixed");
        numbers.push(found.number);
    }
    Ok(numbers)
}

/// The numbers of the records in a whole archive, verified.
pub fn numbers(bytes: &[u8]) -> tenarc::Result<Vec<u32>> {
    let archive = Archive::new(bytes)?;
    archive.verify()?;
    numbers_in(&archive)
}

/// The numbers of the records in an archive file; all ways of reading it must agree.
#[track_caller]
pub fn read(path: &Path) -> Vec<u32> {
    let file = tenarc::open(path).unwrap();
    file.verify().unwrap();
    let found = numbers_in(&file).unwrap();
    // Names are looked for from the end, which takes its time in long archives.
    for (index, number) in found.iter().enumerate().step_by(found.len() / 50 + 1) {
        assert_eq!(file.named(&name(*number)).unwrap().name(), Some(&*name(*number)));
        assert_eq!(file.segment(index as u64).unwrap().get::<u32>("number").unwrap(), *number);
    }
    // SAFETY: nobody changes the file meanwhile.
    let map = unsafe { Map::open(path) }.unwrap();
    map.verify().unwrap();
    assert_eq!(numbers_in(&map).unwrap(), found, "map");
    assert_eq!(numbers(&fs::read(path).unwrap()).unwrap(), found, "memory");
    assert_eq!(tenarc::archive::open_torn(path).unwrap().len(), found.len() as u64, "open_torn");
    let mut stream = IArchive::new(File::open(path).unwrap()).unwrap();
    let streamed: Result<Vec<Record>, _> = stream.records().collect();
    let streamed: Vec<u32> = streamed.unwrap().iter().map(|record| record.number).collect();
    assert_eq!(streamed, found, "stream");
    assert!(stream.is_at_end().unwrap());
    found
}

/// Cheap numbers by chance, the same in every run.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}
