//! A file that is compacted is replaced as a whole, and a program that follows a table sees what was appended.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tenarc::OArchive;
use tenarc::archive::{Compaction, Follow, SaveOptions, col};
use tenarc::error::Category;

use crate::support::{Dir, unsynced};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Event {
    id: u32,
    score: f64,
}

fn events(ids: std::ops::Range<u32>) -> Vec<Event> {
    ids.map(|id| Event { id, score: f64::from(id % 7) }).collect()
}

fn append(path: &Path, ids: std::ops::Range<u32>) {
    let mut out = OArchive::append_with(path, unsynced()).unwrap();
    out.save_as("events", &events(ids)).unwrap();
    out.finish().unwrap();
}

/// A file of 30 appends.
fn log(dir: &Dir) -> std::path::PathBuf {
    let path = dir.at("log.tenarc");
    for part in 0..30 {
        append(&path, part * 10..part * 10 + 10);
    }
    path
}

#[test]
fn a_file_is_replaced_and_its_readers_keep_the_old_one() {
    let dir = Dir::new();
    let path = log(&dir);
    let reader = tenarc::open(&path).unwrap();
    let compaction = Compaction::new().without(col("id").lt(100));
    let done = compaction.replace(&path, unsynced()).unwrap();
    assert_eq!(done.bytes(), fs::metadata(&path).unwrap().len());
    assert_eq!(done.bytes_before(), reader.byte_len());
    assert_eq!((done.tables()[0].rows_before(), done.tables()[0].rows()), (300, 200));
    assert_eq!(reader.table("events").unwrap().rows::<Event>(..).unwrap(), events(0..300));
    // Appends go on, and no temporary file is left.
    append(&path, 300..310);
    let table = tenarc::open(&path).unwrap();
    assert_eq!(table.len(), 2);
    let table = table.table("events").unwrap();
    assert_eq!(table.rows::<Event>(..).unwrap(), events(100..310));
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_compaction_that_fails_leaves_the_file_as_it_was() {
    let dir = Dir::new();
    let path = log(&dir);
    let before = fs::read(&path).unwrap();
    let failed = |compaction: &Compaction| {
        let error = compaction.replace(&path, unsynced()).unwrap_err();
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        error
    };
    // Somebody appends.
    let appending = OArchive::append_with(&path, unsynced()).unwrap();
    let error = failed(&Compaction::new()).to_string();
    assert!(error.contains("log.tenarc"), "{error}");
    drop(appending);
    failed(&Compaction::new().sorted_by("day"));
    assert_eq!(fs::read(&path).unwrap(), before);
    let mut damaged = before;
    let at = damaged.len() / 2;
    damaged[at] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let category = failed(&Compaction::new()).category();
    assert_eq!(category, Category::Damaged);
    assert_eq!(fs::read(&path).unwrap(), damaged);
}

#[test]
fn new_rows_are_those_that_were_appended_since_the_last_look() {
    let dir = Dir::new();
    let path = dir.at("log.tenarc");
    assert_eq!(Follow::open(&path, "events").unwrap_err().category(), Category::Io);
    OArchive::create(&path, unsynced()).unwrap().finish().unwrap();
    let mut log = Follow::open(&path, "events").unwrap();
    assert_eq!(log.rows::<Event>().unwrap(), []);
    append(&path, 0..10);
    append(&path, 10..15);
    assert_eq!(log.rows::<Event>().unwrap(), events(0..15));
    assert_eq!(log.rows::<Event>().unwrap(), []);
    // Other values, and rows that are not committed yet, make no difference.
    let mut out = OArchive::append_with(&path, unsynced()).unwrap();
    out.save_as("other", &7).unwrap().save_as("events", &events(15..16)).unwrap();
    assert_eq!(log.rows::<Event>().unwrap(), []);
    out.commit().unwrap().save_as("events", &events(16..17)).unwrap();
    assert_eq!(log.rows::<Event>().unwrap(), events(15..16));
    out.finish().unwrap();
    // Rows that do not fit stay new.
    assert!(log.rows::<String>().is_err());
    assert_eq!((log.rows::<Event>().unwrap(), log.seen()), (events(16..17), 17));
    let mut late = Follow::open(&path, "events").unwrap().from_row(12);
    assert_eq!(late.rows::<Event>().unwrap(), events(12..17));
}

#[test]
fn a_file_that_was_replaced_is_an_error_until_it_is_opened_anew() {
    let dir = Dir::new();
    let path = log(&dir);
    let mut follow = Follow::open(&path, "events").unwrap();
    assert_eq!(follow.rows::<Event>().unwrap().len(), 300);
    Compaction::new().replace(&path, unsynced()).unwrap();
    append(&path, 300..305);
    for _ in 0..2 {
        let error = follow.rows::<Event>().unwrap_err();
        assert!(error.to_string().contains("replaced, or compacted"), "{error}");
    }
    let mut follow = Follow::open(&path, "events").unwrap().from_row(follow.seen());
    assert_eq!(follow.rows::<Event>().unwrap(), events(300..305));
    // A copy of the file, at which somebody goes on, is the same for its reader.
    fs::copy(&path, dir.at("copy")).unwrap();
    fs::rename(dir.at("copy"), &path).unwrap();
    append(&path, 305..307);
    assert_eq!(follow.rows::<Event>().unwrap(), events(305..307));
    // One with as many segments, whose last one is another.
    let mut out = OArchive::create(&path, SaveOptions::default()).unwrap();
    for _ in 0..3 {
        out.save_as("events", &events(0..5)).unwrap();
    }
    out.finish().unwrap();
    assert!(follow.rows::<Event>().is_err());
}
