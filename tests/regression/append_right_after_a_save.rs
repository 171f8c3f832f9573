//! For a moment after a save had renamed its file, `append` heard that another writer had the file
//! open: the lock of the temporary file was still held, and the file was the archive by then.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::PathBuf;

use tempfile::TempDir;
use tenarc::OArchive;
use tenarc::archive::SaveOptions;

fn target() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    (dir, path)
}

/// What is renamed keeps its locks, so it must have none before.
#[test]
fn a_file_that_is_being_saved_is_not_locked_itself() {
    let (dir, path) = target();
    let mut out = OArchive::create(&path, SaveOptions::default()).unwrap();
    out.save(&1).unwrap();
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let temporary: Vec<PathBuf> =
        names.filter(|path| path.extension().is_some_and(|found| found == "tenarc-tmp")).collect();
    let [temporary] = temporary.as_slice() else { panic!("{temporary:?}") };
    File::open(temporary).unwrap().try_lock().unwrap();
    // Nevertheless it is no leftover for a save to the same path.
    tenarc::save(&path, &2).unwrap();
    out.finish().unwrap();
    assert_eq!(tenarc::load::<i32>(&path).unwrap(), 1);
}

#[test]
fn a_finished_archive_is_not_locked() {
    let (_dir, path) = target();
    let mut out = OArchive::create(&path, SaveOptions::default()).unwrap();
    out.save(&1).unwrap();
    let mut finished = out.finish().unwrap();
    let mut out = OArchive::append(&path).unwrap();
    // The first writer can no longer disturb the second.
    assert!(finished.write_all(b"more").is_err());
    drop(finished);
    out.save(&2).unwrap();
    out.finish().unwrap();
    assert_eq!(tenarc::open(&path).unwrap().len(), 2);
}

/// There is no such moment for an archive that goes on after its first commit either: it is locked
/// before it takes its place.
#[test]
fn an_archive_that_goes_on_is_locked() {
    let (_dir, path) = target();
    let mut out = OArchive::create(&path, SaveOptions::default()).unwrap();
    out.save(&1).unwrap().commit().unwrap();
    let error = OArchive::append(&path).unwrap_err().to_string();
    assert!(error.ends_with("another writer has it open"), "{error}");
    out.save(&2).unwrap();
    out.finish().unwrap();
    OArchive::append(&path).unwrap();
}
