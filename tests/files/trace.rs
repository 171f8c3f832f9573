//! System calls of a child, recorded and changed by `strace`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use crate::support::Dir;
use tenarc_test_support::needed;

use crate::child;

/// Whether `strace` works here; says so if not, and fails in CI.
pub fn is_there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    *THERE.get_or_init(|| {
        let mut command = Command::new("strace");
        command.args(["-f", "-o", "/dev/null", "-e", "inject=write:error=EIO:when=1000", "true"]);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
        let there = status.is_ok_and(|status| status.success());
        if !there {
            needed::skipped("strace is not installed, or may not trace");
        }
        there
    })
}

/// A system call.
#[derive(Clone, Debug)]
pub struct Call {
    pub name: String,
    /// Arguments as strace shows them, with the paths of descriptors.
    pub args: String,
    /// 0 for errors.
    pub result: u64,
    /// Its number among the calls of this name in this thread, from 1.
    pub of_name: usize,
}

impl Call {
    /// What to inject into this call.
    pub fn with(&self, what: &str) -> String {
        format!("{}:{what}:when={}", self.name, self.of_name)
    }
}

/// The calls between begin and end of the child's work, but for those that cannot be told from the
/// calls of other threads by their number.
pub fn watch(job: &str, path: &Path) -> Vec<Call> {
    let dir = Dir::new();
    let log = dir.at("log");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "0", "-o"]).arg(&log);
    command.arg(child::executable()).args(child::ARGS);
    let output = child::assign(&mut command, job, path).output().unwrap();
    assert_eq!(output.status.code(), Some(child::DONE), "{output:?}");
    let calls = parse(&fs::read_to_string(&log).unwrap());
    let begin = calls.iter().position(|call| call.args.contains(child::BEGIN)).unwrap();
    let end = calls.iter().position(|call| call.args.contains(child::END)).unwrap();
    calls[begin + 1..end].to_vec()
}

/// Lines are `thread name(args) = result`; only those of the thread that does the work are wanted.
/// Others start the process; they count their calls by themselves.
fn parse(log: &str) -> Vec<Call> {
    let begin = log.lines().find(|line| line.contains(child::BEGIN)).unwrap();
    let thread = begin.split(' ').next().unwrap();
    let mut counts = BTreeMap::new();
    let mut others = BTreeMap::new();
    let mut calls = Vec::new();
    for line in log.lines() {
        let Some((found, rest)) = line.split_once(' ') else { continue };
        let Some((name, rest)) = rest.trim_start().split_once('(') else { continue };
        if name.starts_with(['<', '.']) {
            continue;
        }
        if found != thread {
            *others.entry((found.to_owned(), name.to_owned())).or_insert(0) += 1;
            continue;
        }
        let (args, result) = rest.rsplit_once(" = ").unwrap_or((rest, "0"));
        let digits = result.split([' ', '<']).next().unwrap_or_default();
        let count: &mut usize = counts.entry(name.to_owned()).or_default();
        *count += 1;
        calls.push(Call {
            name: name.to_owned(),
            args: args.trim_end().to_owned(),
            result: digits.parse().unwrap_or(0),
            of_name: *count,
        });
    }
    let busy = |call: &Call| {
        others.iter().any(|((_, name), count)| *name == call.name && *count >= call.of_name)
    };
    calls.retain(|call| !busy(call));
    calls
}

/// Runs a child whose calls are tampered with, as by `write:error=EIO:when=3`. Gives the status and
/// what it wrote.
pub fn tamper(job: &str, path: &Path, injections: &[String]) -> (ExitStatus, String) {
    let mut command = Command::new("strace");
    command.args(["-f", "-o", "/dev/null"]);
    for injection in injections {
        command.arg("-e").arg(format!("inject={injection}"));
    }
    command.arg(child::executable()).args(child::ARGS);
    let output = child::assign(&mut command, job, path).output().unwrap();
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}
