//! M 88, L 83 to 85: a process killed at each of its system calls, and errors of each system call.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;

use crate::child;
use crate::support::{Dir, append, create, numbers_in, read, record};
use crate::torn::whole_numbers_in;
use crate::trace::{self, Call};

const NAME: &str = "a.tenarc";
const LEN: usize = 600;

/// The calls at which to strike: those that change something, and `others` of those that do not.
pub fn strikes(calls: &[Call], others: usize) -> impl Iterator<Item = &Call> {
    const CHANGING: &[&str] = &[
        "openat",
        "write",
        "fsync",
        "fdatasync",
        "rename",
        "linkat",
        "ftruncate",
        "flock",
        "fchmod",
    ];

    let changing = calls.iter().filter(|call| CHANGING.contains(&&*call.name));
    let rest = calls.iter().filter(|call| !CHANGING.contains(&&*call.name));
    changing.chain(rest.take(others))
}

pub fn numbers_at(path: &Path) -> Vec<u32> {
    let file = tenarc::open(path).unwrap();
    file.verify().unwrap();
    numbers_in(&file).unwrap()
}

fn killed_saves(others: usize) {
    if !trace::is_there() {
        return;
    }
    for first in [true, false] {
        let calls = {
            let dir = Dir::new();
            if !first {
                tenarc::save(dir.at(NAME), &record(1, LEN)).unwrap();
            }
            trace::watch(&format!("save 2 {LEN}"), &dir.at(NAME))
        };
        let (mut old, mut new) = (0, 0);
        for call in strikes(&calls, others) {
            let dir = Dir::new();
            let path = dir.at(NAME);
            if !first {
                tenarc::save(&path, &record(1, LEN)).unwrap();
            }
            let kill = [call.with("signal=KILL")];
            let (status, _) = trace::tamper(&format!("save 2 {LEN}"), &path, &kill);
            assert_eq!(status.signal(), Some(9), "{call:?}");
            let found = if path.exists() { numbers_at(&path) } else { Vec::new() };
            match found[..] {
                [] if first => old += 1,
                [1] if !first => old += 1,
                [2] => new += 1,
                _ => panic!("{call:?}: {found:?}"),
            }
            // What is left behind is recognised by its name, and swept by the next save.
            for left in dir.names() {
                let left = left.to_str().unwrap().to_owned();
                let is_swept = left.ends_with(".tenarc-tmp") || left.ends_with(".tenarc-lock");
                assert!(left == NAME || is_swept, "{left}");
            }
            tenarc::save(&path, &record(3, LEN)).unwrap();
            assert_eq!(tenarc::load::<crate::support::Record>(&path).unwrap(), record(3, LEN));
            dir.holds_only(NAME);
        }
        assert!(old > 0 && new > 0, "struck {old} times before and {new} times behind the rename");
    }
}

#[test]
fn a_save_killed_at_calls_that_change_something_leaves_the_old_or_the_new_archive() {
    killed_saves(2);
}

#[test]
#[ignore = "slow: every system call"]
fn a_save_killed_at_any_call_leaves_the_old_or_the_new_archive() {
    killed_saves(usize::MAX);
}

/// Old segments, so that the four that are appended fill a block of the directory.
const OLD: u32 = 62;

fn base(path: &Path) {
    create(path, 0..OLD - 1, 4);
    append(path, OLD - 1..OLD, 4);
}

/// What stands in the file after a crash: all that was there, and of what was appended either all, or
/// some behind the last end mark.
fn check_crashed_append(path: &Path, old: &[u8], [before, appended]: [u32; 2]) -> bool {
    let bytes = fs::read(path).unwrap();
    assert!(bytes.starts_with(old), "a byte of the old archive changed");
    let old_numbers: Vec<u32> = (0..before).collect();
    let all: Vec<u32> = (0..before + appended).collect();
    let file = tenarc::open(path).unwrap();
    file.verify().unwrap();
    let found = numbers_in(&file).unwrap();
    assert!(found == old_numbers || found == all, "{found:?}");
    let committed = file.byte_len();
    assert_eq!(file.unfinished_bytes(), bytes.len() as u64 - committed);
    if file.unfinished_bytes() > 0 {
        let count = whole_numbers_in(&tenarc::archive::open_torn(path).unwrap()).len();
        let recovered = tenarc::archive::recover(path).unwrap();
        assert_eq!(recovered.segments, count as u64);
        assert_eq!(numbers_at(path), all[..count]);
        fs::write(path, &bytes).unwrap();
    }
    let whole = found == all;
    // The next append goes on from the last end mark, without help.
    append(path, [900], 4);
    assert!(fs::read(path).unwrap().starts_with(&bytes[..usize::try_from(committed).unwrap()]));
    assert_eq!(read(path), [&found[..], &[900]].concat());
    whole
}

fn killed_appends(others: usize) {
    if !trace::is_there() {
        return;
    }
    let dir = Dir::new();
    let path = dir.at(NAME);
    base(&path);
    let old = fs::read(&path).unwrap();
    let job = format!("append {OLD} 4 {LEN}");
    let calls = trace::watch(&job, &path);
    let (mut before, mut behind) = (0, 0);
    for call in strikes(&calls, others) {
        fs::write(&path, &old).unwrap();
        let kill = [call.with("signal=KILL")];
        let (status, _) = trace::tamper(&job, &path, &kill);
        assert_eq!(status.signal(), Some(9), "{call:?}");
        *if check_crashed_append(&path, &old, [OLD, 4]) { &mut behind } else { &mut before } += 1;
        dir.holds_only(NAME);
    }
    assert!(before > 0 && behind > 0, "{before} {behind}");
}

#[test]
fn an_append_killed_at_calls_that_change_something_keeps_all_that_was_there() {
    killed_appends(2);
}

#[test]
#[ignore = "slow: every system call"]
fn an_append_killed_at_any_call_keeps_all_that_was_there() {
    killed_appends(usize::MAX);
}

/// Whether all tensors of a record are compressed.
#[cfg(feature = "compression")]
fn is_compressed(archive: &tenarc::Archive<fs::File>, number: u32) -> bool {
    let segment = archive.named(&crate::support::name(number)).unwrap();
    (0..2).all(|buffer| segment.compressed(buffer).is_some())
}

/// Compressed records are appended to one that is compressed and one that is not.
#[cfg(feature = "compression")]
fn killed_compressed_appends(others: usize) {
    const BEFORE: u32 = 2;
    const COUNT: u32 = 2;
    /// So that the tensors have two and four chunks.
    const LONG: usize = 30_000;

    if !trace::is_there() {
        return;
    }
    for codec in ["zstd", "lz4"] {
        let dir = Dir::new();
        let path = dir.at(NAME);
        let add = |number: u32| {
            let options = child::compressed(codec).with_sync(tenarc::io::SyncLevel::Off);
            child::append_with(path.as_os_str(), [number, 1], LONG, options).unwrap();
        };
        create(&path, [0], LEN);
        add(1);
        let old = fs::read(&path).unwrap();
        let job = format!("append_compressed {codec} {BEFORE} {COUNT} {LONG}");
        let calls = trace::watch(&job, &path);
        let whole = tenarc::open(&path).unwrap();
        assert!((1..BEFORE + COUNT).all(|number| is_compressed(&whole, number)), "{codec}");
        let written = fs::metadata(&path).unwrap().len() - old.len() as u64;
        assert!(written < u64::from(COUNT) * LONG as u64 * 12, "{codec}: {written}");
        let (mut before, mut behind, mut torn) = (0, 0, 0);
        for call in strikes(&calls, others) {
            fs::write(&path, &old).unwrap();
            let kill = [call.with("signal=KILL")];
            let (status, _) = trace::tamper(&job, &path, &kill);
            assert_eq!(status.signal(), Some(9), "{call:?}");
            torn += usize::from(tenarc::open(&path).unwrap().unfinished_bytes() > 0);
            let whole = check_crashed_append(&path, &old, [BEFORE, COUNT]);
            *if whole { &mut behind } else { &mut before } += 1;
            // What is appended afterwards is compressed, too, and everything is read in every way.
            add(901);
            let found = read(&path);
            let end: &[u32] = &[900, 901];
            assert!(found.ends_with(end), "{call:?}: {found:?}");
            assert!(is_compressed(&tenarc::open(&path).unwrap(), 901));
            dir.holds_only(NAME);
        }
        assert!(before > 0 && behind > 0 && torn > 0, "{codec}: {before} {behind} {torn}");
    }
}

#[test]
#[cfg(feature = "compression")]
fn a_compressed_append_killed_at_calls_that_change_something_keeps_all_that_was_there() {
    killed_compressed_appends(2);
}

#[test]
#[cfg(feature = "compression")]
#[ignore = "slow: every system call"]
fn a_compressed_append_killed_at_any_call_keeps_all_that_was_there() {
    killed_compressed_appends(usize::MAX);
}

/// Torn in its second segment, in a block of the directory, in an end mark, with a tail of zeros.
fn torn_archives() -> Vec<Vec<u8>> {
    let dir = Dir::new();
    let path = dir.at(NAME);
    let mut torn = Vec::new();
    create(&path, 0..2, LEN);
    let bytes = fs::read(&path).unwrap();
    torn.push(bytes[..bytes.len() / 2 + 2000].to_vec());
    torn.push(bytes[..bytes.len() - 10].to_vec());
    torn.push([&bytes[..bytes.len() - 40], &[0; 5000]].concat());
    create(&path, 0..64, 4);
    let bytes = fs::read(&path).unwrap();
    torn.push(bytes[..bytes.len() - 200].to_vec());
    torn
}

fn killed_recovers(others: usize) {
    if !trace::is_there() {
        return;
    }
    let dir = Dir::new();
    let path = dir.at(NAME);
    for torn in torn_archives() {
        fs::write(&path, &torn).unwrap();
        let whole = whole_numbers_in(&tenarc::archive::open_torn(&path).unwrap());
        let calls = trace::watch("recover", &path);
        assert_eq!(numbers_at(&path), whole);
        for call in strikes(&calls, others) {
            fs::write(&path, &torn).unwrap();
            let kill = [call.with("signal=KILL")];
            trace::tamper("recover", &path, &kill);
            assert_eq!(whole_numbers_in(&tenarc::archive::open_torn(&path).unwrap()), whole);
            let recovered = tenarc::archive::recover(&path).unwrap();
            assert_eq!(recovered.segments, whole.len() as u64);
            assert_eq!(numbers_at(&path), whole);
        }
    }
}

#[test]
fn recover_killed_at_calls_that_change_something_can_be_repeated() {
    killed_recovers(2);
}

#[test]
#[ignore = "slow: every system call"]
fn recover_killed_at_any_call_can_be_repeated() {
    killed_recovers(usize::MAX);
}

/// Calls that may fail, by the names they have on different machines.
const FAILING: &[&str] = &[
    "openat",
    "write",
    "writev",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "ftruncate",
    "lseek",
    "flock",
    "statx",
    "newfstatat",
    "fstat",
    "pread64",
    "readlink",
    "unlink",
    "fcntl",
    "fchmod",
];
/// Those among them without which nothing can have been saved.
const NEEDED: &[&str] =
    &["write", "writev", "fsync", "fdatasync", "rename", "renameat", "renameat2", "pread64"];

fn failing_saves(errors: &[&str]) {
    if !trace::is_there() {
        return;
    }
    let dir = Dir::new();
    let path = dir.at(NAME);
    let job = format!("save 2 {LEN}");
    tenarc::save(&path, &record(1, LEN)).unwrap();
    let calls = trace::watch(&job, &path);
    let in_dir = format!("<{}>", dir.path().display());
    let mut struck = 0;
    for call in calls.iter().filter(|call| FAILING.contains(&&*call.name)) {
        for error in errors {
            tenarc::save(&path, &record(1, LEN)).unwrap();
            let fail = [call.with(&format!("error={error}"))];
            let (status, said) = trace::tamper(&job, &path, &fail);
            let found = numbers_at(&path);
            // The one error behind the rename: the directory cannot be synced.
            let of_dir = call.name == "fsync" && call.args.contains(&in_dir);
            match status.code() {
                Some(child::DONE) => {
                    assert_eq!(found, [2], "{call:?}");
                    // Some file systems cannot sync directories, and say so by this error.
                    let allowed = of_dir && *error == "EINVAL";
                    assert!(allowed || !NEEDED.contains(&&*call.name), "{call:?}");
                }
                Some(child::FAILED) => {
                    let expected = if of_dir { 2 } else { 1 };
                    assert_eq!(found, [expected], "{call:?}: {said}");
                    assert!(said.contains(dir.path().to_str().unwrap()), "{call:?}: {said}");
                    struck += 1;
                }
                other => panic!("{call:?}: {other:?} {said}"),
            }
            // A guard that cannot be removed is a leftover, which the next save sweeps.
            if call.name == "unlink" {
                tenarc::save(&path, &record(1, LEN)).unwrap();
            }
            dir.holds_only(NAME);
        }
    }
    assert!(struck >= 6, "{struck}");
}

#[test]
fn an_error_at_any_call_of_a_save_leaves_the_old_archive() {
    failing_saves(&["EIO"]);
}

/// What else a call can fail with.
const MANY: [&str; 7] = ["ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EMFILE", "EACCES", "EINVAL"];

#[test]
#[ignore = "slow: many errors"]
fn many_errors_at_any_call_of_a_save_leave_the_old_archive() {
    failing_saves(&MANY);
}

#[test]
fn interrupted_calls_of_a_save_are_repeated() {
    if !trace::is_there() {
        return;
    }
    let dir = Dir::new();
    let path = dir.at(NAME);
    tenarc::save(&path, &record(1, LEN)).unwrap();
    let job = format!("save 2 {LEN}");
    for call in trace::watch(&job, &path) {
        if !["openat", "write", "fsync", "rename", "flock"].contains(&&*call.name) {
            continue;
        }
        tenarc::save(&path, &record(1, LEN)).unwrap();
        let fail = [call.with("error=EINTR")];
        let (status, said) = trace::tamper(&job, &path, &fail);
        assert_eq!(status.code(), Some(child::DONE), "{call:?}: {said}");
        assert_eq!(numbers_at(&path), [2]);
    }
}

fn failing_appends(errors: &[&str]) {
    if !trace::is_there() {
        return;
    }
    let dir = Dir::new();
    let path = dir.at(NAME);
    base(&path);
    let old = fs::read(&path).unwrap();
    let job = format!("append {OLD} 4 {LEN}");
    let calls = trace::watch(&job, &path);
    let mut struck = 0;
    for call in calls.iter().filter(|call| FAILING.contains(&&*call.name)) {
        for error in errors {
            fs::write(&path, &old).unwrap();
            let fail = [call.with(&format!("error={error}"))];
            let (status, said) = trace::tamper(&job, &path, &fail);
            match status.code() {
                Some(child::DONE) => {
                    assert!(!NEEDED.contains(&&*call.name), "{call:?}");
                    assert_eq!(numbers_at(&path).len() as u32, OLD + 4, "{call:?}");
                }
                Some(child::FAILED) => {
                    assert!(fs::read(&path).unwrap() == old, "{call:?}: {said}");
                    assert!(said.contains(path.to_str().unwrap()), "{call:?}: {said}");
                    struck += 1;
                }
                other => panic!("{call:?}: {other:?} {said}"),
            }
            dir.holds_only(NAME);
        }
    }
    assert!(struck >= 6, "{struck}");
}

#[test]
fn an_error_at_any_call_of_an_append_leaves_the_old_archive() {
    failing_appends(&["EIO"]);
}

#[test]
#[ignore = "slow: many errors"]
fn many_errors_at_any_call_of_an_append_leave_the_old_archive() {
    failing_appends(&MANY);
}

#[test]
fn an_append_that_fails_and_cannot_be_undone_keeps_all_that_was_there() {
    if !trace::is_there() {
        return;
    }
    let dir = Dir::new();
    let path = dir.at(NAME);
    base(&path);
    let old = fs::read(&path).unwrap();
    let job = format!("append {OLD} 4 {LEN}");
    let calls = trace::watch(&job, &path);
    for call in calls.iter().filter(|call| ["write", "fdatasync"].contains(&&*call.name)) {
        // The file system is gone, or the process is killed when it would cut off what it wrote.
        for then in ["ftruncate:error=EIO", "ftruncate:signal=KILL"] {
            fs::write(&path, &old).unwrap();
            let (status, said) =
                trace::tamper(&job, &path, &[call.with("error=EIO"), then.to_owned()]);
            // Where nothing was written yet, there is nothing to cut off.
            let killed = status.signal() == Some(9);
            assert!(killed || status.code() == Some(child::FAILED), "{status} {said}");
            check_crashed_append(&path, &old, [OLD, 4]);
        }
    }
}
