//! One file that is saved over another.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use tempfile::TempDir;

use tenarc_test_support::child;

use crate::strace;

pub const ROLE: &str = "file";
const TARGET: &str = "model.tenarc";

type Content = (Vec<String>, Vec<f32>);

fn old() -> Content {
    (vec!["old".to_owned(); 10], vec![0.5; 10])
}

/// More than a buffer holds, of what goes through one and of what goes around it.
fn new() -> Content {
    (vec!["new".to_owned(); 20_000], vec![1.5; 100_000])
}

pub fn go_on(dir: &Path) {
    strace::mark(dir, strace::BEGIN);
    let result = tenarc::save(dir.join(TARGET), &new());
    strace::mark(dir, strace::END);
    match result {
        Ok(()) => println!("outcome: saved"),
        Err(error) => println!("outcome: {error}"),
    }
}

/// A directory with the old content.
fn prepared() -> TempDir {
    let dir = child::fast_dir();
    tenarc::save(dir.path().join(TARGET), &old()).unwrap();
    dir
}

#[track_caller]
fn load(dir: &TempDir, after: &str) -> Content {
    let loaded = tenarc::load(dir.path().join(TARGET));
    loaded.unwrap_or_else(|error| panic!("after {after}: {error}"))
}

/// The names beside the target.
fn others(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name != TARGET).collect()
}

fn is_at(call: &strace::Call, names: &[&str]) -> bool {
    names.contains(&call.name.as_str())
}

pub fn syncs_the_file_before_and_the_directory_after_the_rename() {
    let dir = prepared();
    let calls = strace::calls(ROLE, dir.path());
    assert!(load(&dir, "the save") == new());

    let opened = |name: &str| {
        let call =
            calls.iter().rfind(|call| is_at(call, &["open", "openat"]) && call.line.contains(name));
        let line = &call.unwrap_or_else(|| panic!("{name} is not opened: {calls:#?}")).line;
        line.rsplit_once("= ").unwrap().1.trim().to_owned()
    };
    let (temp, parent) =
        (opened(".tenarc-tmp"), opened(&format!("\"{}\"", dir.path().to_str().unwrap())));
    let last = |names: &[&str], descriptor: &str| {
        let on = |call: &strace::Call| {
            let rest = call.line.split_once('(').unwrap().1;
            is_at(call, names) && rest.split([',', ')']).next() == Some(descriptor)
        };
        calls.iter().rposition(on).unwrap_or_else(|| panic!("no {names:?}: {calls:#?}"))
    };
    let written = last(&["write", "writev", "pwrite64", "pwritev"], &temp);
    let synced = last(&["fsync"], &temp);
    let rename = ["rename", "renameat", "renameat2"];
    let renamed = calls.iter().position(|call| is_at(call, &rename)).unwrap();
    let settled = last(&["fsync"], &parent);
    assert!(written < synced && synced < renamed && renamed < settled, "{calls:#?}");
    let created = calls.iter().find(|call| call.line.contains(".tenarc-tmp")).unwrap();
    assert!(created.line.contains("O_EXCL"), "{}", created.line);
}

pub fn leaves_one_content_or_the_other_wherever_it_is_killed() {
    let dir = prepared();
    let mut calls = strace::calls(ROLE, dir.path());
    let (mut killed, mut kept) = (0, 0);
    calls.retain(|call| !call.is_internal());
    for call in &calls {
        let dir = prepared();
        let output = strace::inject(call, "signal=KILL", ROLE, dir.path());
        killed += usize::from(output.status.signal().is_some());
        let found = load(&dir, &call.line);
        assert!(found == old() || found == new(), "killed at {}", call.line);
        kept += usize::from(found == old());
        let others = others(dir.path());
        // At most a temporary file and its guard.
        for suffix in [".tenarc-tmp", ".tenarc-lock"] {
            let count = others.iter().filter(|name| name.ends_with(suffix)).count();
            assert!(count <= 1, "{others:?}");
        }
        tenarc::save(dir.path().join(TARGET), &new()).unwrap();
        assert!(self::others(dir.path()).is_empty(), "all that was left is swept: {others:?}");
    }
    strace::assert_most_died(killed, calls.len());
    assert!(0 < kept && kept < calls.len(), "{kept} of {} kept the old file", calls.len());
}

pub fn tells_of_every_fault_and_leaves_nothing_behind() {
    let dir = prepared();
    let calls = strace::calls(ROLE, dir.path());
    let mut told = 0;
    for call in calls.iter().filter(|call| !call.is_internal()) {
        let own = if call.name.contains("write") { "error=ENOSPC" } else { "error=EIO" };
        for fault in [own, "error=EINTR"] {
            // Which does not wait for anything.
            if fault == "error=EINTR" && call.name == "fcntl" {
                continue;
            }
            let dir = prepared();
            let output = strace::inject(call, fault, ROLE, dir.path());
            assert!(output.status.success(), "{fault} at {}: {output:?}", call.line);
            let outcome = child::told(&output.stdout, "outcome: ");
            let [outcome] = outcome.as_slice() else { panic!("{output:?}") };
            let found = load(&dir, &format!("{fault} at {}", call.line));
            if outcome == "saved" {
                assert!(found == new(), "{fault} at {}", call.line);
            } else {
                told += 1;
                assert!(fault != "error=EINTR", "not tried again: {}: {outcome}", call.line);
                let path = dir.path().to_str().unwrap();
                assert!(outcome.contains(path), "{fault} at {}: {outcome}", call.line);
                // All but the very last step can be taken back.
                let new_is_there = outcome.contains("cannot sync the directory");
                assert_eq!(found == new(), new_is_there, "{fault} at {}: {outcome}", call.line);
                assert!(found == old() || new_is_there);
            }
            // A guard that cannot be removed is a leftover, which the next save sweeps.
            if call.name == "unlink" && fault == own {
                tenarc::save(dir.path().join(TARGET), &new()).unwrap();
            }
            assert!(others(dir.path()).is_empty(), "{fault} at {}", call.line);
        }
    }
    assert!(told >= 8, "only {told} faults were told of");
}
