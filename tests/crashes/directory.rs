//! A directory of checkpoints with rotation, and with a manifest where there is one.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use tempfile::TempDir;
use tenarc::Checkpoints;
use tenarc::checkpoint::Best;

use tenarc_test_support::child;

use crate::strace;

type State = Vec<u64>;

fn state(step: u64, version: u64) -> State {
    vec![step, version, 7, 7]
}

fn checkpoints(dir: &Path, manifest: bool) -> Checkpoints {
    let checkpoints = Checkpoints::new(dir.join("run"))
        .unwrap()
        .with_keep_last(2)
        .with_keep_best(1, Best::Lowest);
    #[cfg(feature = "sha256")]
    let checkpoints = checkpoints.with_sha256_manifest(manifest);
    let _ = manifest;
    checkpoints
}

/// With a manifest and without.
fn kinds() -> &'static [&'static str] {
    if cfg!(feature = "sha256") { &["plain", "manifest"] } else { &["plain"] }
}

/// The roles of the child are a kind and the step that it saves, as in `plain 4`, or `latest`.
pub fn go_on(role: &str, dir: &Path) {
    let (kind, task) = role.split_once(' ').unwrap();
    let checkpoints = checkpoints(dir, kind == "manifest");
    strace::mark(dir, strace::BEGIN);
    let result = match task {
        "latest" => checkpoints.latest::<State>().map(|latest| {
            let latest = latest.expect("there are some");
            format!("step {}", latest.step)
        }),
        step => {
            let step = step.parse().unwrap();
            checkpoints.save_scored(step, 0.5, &state(step, 2)).map(|()| "saved".to_owned())
        }
    };
    strace::mark(dir, strace::END);
    println!("outcome: {}", result.unwrap_or_else(|error| error.to_string()));
}

/// Steps 1 to `last`, of which 1, the best, and the last two are left.
fn prepared(kind: &str, last: u64) -> (TempDir, Checkpoints) {
    let dir = child::fast_dir();
    let checkpoints = checkpoints(dir.path(), kind == "manifest");
    for step in 1..=last {
        checkpoints
            .save_scored(step, f64::from(u32::try_from(step).unwrap()) / 10.0, &state(step, 1))
            .unwrap();
    }
    (dir, checkpoints)
}

pub fn tells_of_every_fault_and_goes_on() {
    let kind = kinds().last().unwrap();
    let role = format!("{kind} 4");
    let calls = strace::calls(&role, prepared(kind, 3).0.path());
    for call in calls.iter().filter(|call| !call.is_internal()) {
        let (dir, checkpoints) = prepared(kind, 3);
        let output = strace::inject(call, "error=EIO", &role, dir.path());
        assert!(output.status.success(), "{}: {output:?}", call.line);
        let outcome = child::told(&output.stdout, "outcome: ").concat();
        let latest = checkpoints.latest::<State>().unwrap().unwrap();
        if outcome == "saved" {
            assert_eq!((latest.step, latest.value), (4, state(4, 2)), "{}", call.line);
        } else {
            assert!(outcome.contains(dir.path().to_str().unwrap()), "{}: {outcome}", call.line);
            let expected = if latest.step == 4 { state(4, 2) } else { state(3, 1) };
            assert_eq!(latest.value, expected, "{}: {outcome}", call.line);
        }
        assert_eq!(checkpoints.load::<State>(1).unwrap(), state(1, 1), "the best one");
        goes_on(&checkpoints, *kind == "manifest");
    }
}

/// A file that cannot be read is no reason to go on from an older one.
pub fn tells_of_every_fault_of_reading() {
    for kind in kinds() {
        let (dir, _) = prepared(kind, 3);
        let role = format!("{kind} latest");
        let calls = strace::calls(&role, dir.path());
        let mut told = 0;
        for call in calls.iter().filter(|call| !call.is_internal()) {
            let output = strace::inject(call, "error=EIO", &role, dir.path());
            assert!(output.status.success(), "{}: {output:?}", call.line);
            let outcome = child::told(&output.stdout, "outcome: ").concat();
            if outcome != "step 3" {
                let path = dir.path().to_str().unwrap();
                assert!(outcome.contains(path), "{}: {outcome}", call.line);
                told += 1;
            }
        }
        assert!(told >= 4, "only {told} faults were told of");
    }
}

/// Kills the save of `step` at each of its calls, and looks at what is left.
fn at_every_call(last: u64, step: u64, check: impl Fn(&Checkpoints)) {
    for kind in kinds() {
        let role = format!("{kind} {step}");
        let mut calls = strace::calls(&role, prepared(kind, last).0.path());
        calls.retain(|call| !call.is_internal());
        let mut killed = 0;
        for call in &calls {
            let (dir, checkpoints) = prepared(kind, last);
            let output = strace::inject(call, "signal=KILL", &role, dir.path());
            killed += usize::from(output.status.signal().is_some());
            check(&checkpoints);
            goes_on(&checkpoints, *kind == "manifest");
        }
        strace::assert_most_died(killed, calls.len());
    }
}

/// The next save sweeps, and makes whole what the crash has left.
fn goes_on(checkpoints: &Checkpoints, manifest: bool) {
    checkpoints.save_scored(9, 0.05, &state(9, 3)).unwrap();
    let latest = checkpoints.latest::<State>().unwrap().unwrap();
    assert_eq!((latest.step, latest.value), (9, state(9, 3)));
    assert!(latest.skipped.is_empty());
    for step in checkpoints.steps().unwrap() {
        checkpoints.load::<State>(step).unwrap();
    }
    assert!(checkpoints.steps().unwrap().len() <= 2);
    for entry in std::fs::read_dir(checkpoints.dir()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.to_str().unwrap().ends_with("tenarc-tmp"));
    }
    #[cfg(feature = "sha256")]
    if manifest {
        checkpoints.verify_sha256_manifest().unwrap();
    }
    let _ = manifest;
}

pub fn keeps_the_last_or_the_one_before_wherever_it_is_killed() {
    at_every_call(3, 4, |checkpoints| {
        let latest = checkpoints.latest::<State>().unwrap().unwrap();
        let expected = if latest.step == 4 { state(4, 2) } else { state(3, 1) };
        assert_eq!(latest.value, expected);
        assert_eq!(checkpoints.load::<State>(1).unwrap(), state(1, 1), "the best one");
        assert_eq!(checkpoints.best_step(Best::Lowest).unwrap(), Some(1));
    });
}

pub fn saves_again_or_not_wherever_it_is_killed() {
    at_every_call(1, 1, |checkpoints| {
        let latest = checkpoints.latest::<State>().unwrap().unwrap();
        assert_eq!(latest.step, 1);
        assert!([state(1, 1), state(1, 2)].contains(&latest.value));
        assert_eq!(checkpoints.steps().unwrap(), [1]);
    });
}

pub fn starts_afresh_wherever_the_first_save_is_killed() {
    at_every_call(0, 1, |checkpoints| {
        if let Some(latest) = checkpoints.latest::<State>().unwrap() {
            assert_eq!((latest.step, latest.value), (1, state(1, 2)));
        }
    });
}
