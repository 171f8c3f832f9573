//! Appends to a file that does not exist: it is created whole, or not at all, and never in the place of another file.

use std::os::unix::fs::symlink;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use tenarc::OArchive;
use tenarc::error::Category;

use crate::child;
use crate::killed::{numbers_at, strikes};
use crate::processes::append_at_once;
use crate::support::{Dir, append, create, read, record, unsynced};
use crate::trace;

const NAME: &str = "a.tenarc";

#[test]
fn an_append_creates_an_archive_without_values() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let mut out = OArchive::append(&path).unwrap();
    assert_eq!(out.segments(), 0);
    dir.holds_only(NAME);
    assert_eq!(read(&path), []);
    assert!(OArchive::append(&path).is_err(), "it is open for writing");
    out.save_as("n1", &record(1, 600)).unwrap();
    drop(out);
    assert_eq!(read(&path), []);
    append(&path, [2, 3], 600);
    append(&path, [4], 600);
    assert_eq!(read(&path), [2, 3, 4]);
    dir.holds_only(NAME);
}

#[test]
fn an_append_to_an_existing_archive_creates_none() {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let error = OArchive::append_existing(&path, unsynced()).unwrap_err();
    assert_eq!(error.category(), Category::Io);
    assert!(error.to_string().contains(NAME), "{error}");
    assert!(dir.names().is_empty());
    create(&path, [1], 600);
    let mut out = OArchive::append_existing(&path, unsynced()).unwrap();
    out.save_as("n2", &record(2, 600)).unwrap();
    out.finish().unwrap();
    assert_eq!(read(&path), [1, 2]);
}

#[test]
fn nothing_is_created_where_no_file_can_be() {
    let dir = Dir::new();
    symlink("nowhere", dir.at("dangling")).unwrap();
    symlink("gone", dir.at("directory")).unwrap();
    for place in ["dangling", "directory/a", "missing/a", "a/"] {
        let error = OArchive::append(dir.at(place)).unwrap_err();
        assert_eq!(error.category(), Category::Io, "{place}");
        assert!(error.to_string().contains(place), "{error}");
    }
    let options = unsynced().with_alignment(7);
    assert!(OArchive::append_with(dir.at(NAME), options).is_err());
    assert_eq!(dir.names().len(), 2);
}

#[test]
fn nothing_is_lost_of_processes_that_create_the_archive_at_once() {
    for _ in 0..15 {
        append_at_once(&Dir::new(), [0, 1000, 2000], 5, &[]);
    }
}

/// The calls of a child that appends to a file that does not exist.
fn calls(job: &str) -> Vec<trace::Call> {
    let dir = Dir::new();
    trace::watch(job, &dir.at(NAME))
}

#[test]
fn an_archive_that_is_saved_meanwhile_is_appended_to() {
    if !trace::is_there() {
        return;
    }
    let job = "append 2 1 600";
    let link = calls(job).into_iter().find(|call| call.name == "linkat").unwrap();
    // In microseconds.
    let late = [link.with("delay_enter=1000000")];
    let dir = Dir::new();
    let path = dir.at(NAME);
    std::thread::scope(|scope| {
        let appender = scope.spawn(|| trace::tamper(job, &path, &late));
        let is_waiting = || {
            let names = dir.names();
            names.iter().any(|name| name.to_str().unwrap().ends_with(".tenarc-tmp"))
        };
        while !is_waiting() {
            assert!(!appender.is_finished());
            std::thread::sleep(Duration::from_millis(1));
        }
        create(&path, [1], 600);
        assert!(!appender.is_finished(), "the link was not held up");
        let (status, said) = appender.join().unwrap();
        assert_eq!(status.code(), Some(child::DONE), "{said}");
    });
    assert_eq!(read(&path), [1, 2]);
    dir.holds_only(NAME);
}

/// As FAT reports it.
#[test]
fn the_archive_is_created_on_a_file_system_without_hard_links() {
    if !trace::is_there() {
        return;
    }
    let job = "append 2 1 600";
    let link = calls(job).into_iter().find(|call| call.name == "linkat").unwrap();
    let dir = Dir::new();
    let path = dir.at(NAME);
    let (status, said) = trace::tamper(job, &path, &[link.with("error=EPERM")]);
    assert_eq!(status.code(), Some(child::DONE), "{said}");
    assert_eq!(read(&path), [2]);
    dir.holds_only(NAME);
}

fn killed_while_creating(others: usize) {
    if !trace::is_there() {
        return;
    }
    let job = "append 2 1 600";
    let (mut missing, mut there) = (0, 0);
    for call in strikes(&calls(job), others) {
        let dir = Dir::new();
        let path = dir.at(NAME);
        let (status, _) = trace::tamper(job, &path, &[call.with("signal=KILL")]);
        assert_eq!(status.signal(), Some(9), "{call:?}");
        let before = if path.exists() {
            there += 1;
            numbers_at(&path)
        } else {
            missing += 1;
            Vec::new()
        };
        assert!(before.is_empty() || before == [2], "{before:?}");
        // The next append goes on without help.
        append(&path, [3], 600);
        assert_eq!(read(&path), [&before[..], &[3]].concat());
        // What is left behind is recognised by its name, and swept by the next save.
        create(&path, [4], 600);
        dir.holds_only(NAME);
    }
    assert!(missing > 0 && there > 0, "struck {missing} times before and {there} times behind");
}

#[test]
fn an_append_killed_at_calls_that_change_something_creates_the_archive_or_not() {
    killed_while_creating(2);
}

#[test]
#[ignore = "slow: every system call"]
fn an_append_killed_at_any_call_creates_the_archive_or_not() {
    killed_while_creating(usize::MAX);
}

#[test]
fn errors_while_an_archive_is_created_are_told_and_leave_nothing() {
    if !trace::is_there() {
        return;
    }
    let job = "append 2 1 600";
    let calls = calls(job);
    let end = calls.iter().position(|call| call.name == "linkat").unwrap();
    let may_fail = |call: &&trace::Call| ["write", "fsync"].contains(&&*call.name);
    for call in calls[..end].iter().filter(may_fail) {
        let dir = Dir::new();
        let (status, said) = trace::tamper(job, &dir.at(NAME), &[call.with("error=EIO")]);
        assert_eq!(status.code(), Some(child::FAILED), "{call:?}");
        assert!(said.contains(NAME), "{said}");
        assert!(dir.names().is_empty(), "{call:?}: {:?}", dir.names());
    }
}
