//! System calls of a child: which there are, and what follows when one of them fails or is the
//! last. The child must have one thread only, as strace counts calls by thread.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tenarc_test_support::{child, needed};

/// A call between the child's marks.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// Its number among the calls of that name, as strace counts them.
    pub number: usize,
    pub line: String,
}

impl Call {
    /// Whether it changes nothing on the disk.
    pub fn is_internal(&self) -> bool {
        let names = ["brk", "mmap", "mremap", "munmap", "madvise", "getrandom", "close"];
        names.contains(&self.name.as_str())
    }
}

/// Whether it cannot be used here, which is a failure in CI.
pub fn is_missing() -> bool {
    let mut strace = Command::new("strace");
    strace.args(["-o", "/dev/null", "-e", "inject=getuid:error=EIO", "true"]);
    let works = strace.stdout(Stdio::null()).stderr(Stdio::null()).status();
    if works.is_ok_and(|status| status.success()) {
        return false;
    }
    needed::skipped("strace is not installed, or may not trace");
    true
}

/// A call that stands out in a trace and does nothing.
pub fn mark(dir: &Path, name: &str) {
    assert!(fs::metadata(dir.join(name)).is_err());
}

pub const BEGIN: &str = "the-traced-part-begins";
pub const END: &str = "the-traced-part-ends";

/// The calls that a child makes between the marks.
pub fn calls(role: &str, dir: &Path) -> Vec<Call> {
    let log = tempfile::NamedTempFile::new().unwrap();
    let strace = ["strace", "-s", "400", "-o", log.path().to_str().unwrap()];
    let output = child::run(&strace, "", role, dir);
    assert!(output.status.success(), "{output:?}");
    let mut counts = HashMap::new();
    let mut calls = None;
    for line in fs::read_to_string(log).unwrap().lines() {
        let Some((name, _)) = line.split_once('(') else { continue };
        let number = counts.entry(name.to_owned()).or_insert(0);
        *number += 1;
        if line.contains(END) {
            break;
        }
        if line.contains(BEGIN) {
            calls = Some(Vec::new());
        } else if let Some(calls) = &mut calls {
            calls.push(Call { name: name.to_owned(), number: *number, line: line.to_owned() });
        }
    }
    calls.expect("the child has set its marks")
}

/// Runs a child in which a call does not end as it should: `fault` is `signal=KILL`, `error=EIO` or
/// the like.
pub fn inject(call: &Call, fault: &str, role: &str, dir: &Path) -> Output {
    let inject = format!("inject={}:{fault}:when={}", call.name, call.number);
    child::run(&["strace", "-o", "/dev/null", "-e", &inject], "", role, dir)
}

pub fn assert_most_died(died: usize, calls: usize) {
    // Calls for memory differ now and then from run to run, and their numbers with them.
    assert!(died * 10 >= calls * 9, "{died} of {calls} died");
}
