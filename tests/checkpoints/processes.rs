//! Other processes: killed while they save, or saving to the same directory.

use std::io::{BufRead, BufReader, Read};
use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

const CHILD: &str = "processes::child";

fn open(dir: &Path) -> Checkpoints {
    let checkpoints =
        Checkpoints::new(dir).unwrap().with_keep_last(2).with_keep_best(1, Best::Highest);
    #[cfg(feature = "sha256")]
    let checkpoints = checkpoints.with_sha256_manifest(true);
    checkpoints
}

/// Saves every second step up to a bound, from 0 or 1 on, and tells of each.
#[test]
fn child() {
    let Some((role, dir)) = child::role() else { return };
    let (first, count) = role.split_once(' ').unwrap();
    let first: u64 = first.parse().unwrap();
    let checkpoints = open(&dir);
    let from = checkpoints.latest::<State>().unwrap().map_or(0, |latest| latest.step + 2);
    let from = from - from % 2 + first;
    for step in (from..).step_by(2).take(count.parse().unwrap()) {
        let score = f64::from(u32::try_from(step % 10).unwrap());
        checkpoints.save_scored(step, score, &state(step)).unwrap();
        println!("saved: {step}");
    }
}

/// The steps that a child told of until its end.
fn told(child: &mut Child) -> Vec<u64> {
    let mut output = Vec::new();
    child.stdout.as_mut().unwrap().read_to_end(&mut output).unwrap();
    child::told(&output, "saved: ").iter().map(|step| step.parse().unwrap()).collect()
}

#[test]
fn nothing_is_lost_when_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    let mut last = None;
    for round in 0..12u64 {
        let mut child = child::command(&[], CHILD, "0 1000000", dir.path()).spawn().unwrap();
        // From when it has begun to save, which takes longer the busier the machine is.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = lines.find_map(|line| Some(line.unwrap().split_once("saved: ")?.1.to_owned()));
        last = last.max(Some(first.unwrap().parse::<u64>().unwrap()));
        thread::sleep(Duration::from_micros(round * 2_100));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            if let Some((_, step)) = line.unwrap().split_once("saved: ") {
                last = last.max(step.parse().ok());
            }
        }

        let latest = open(dir.path()).latest::<State>().unwrap().unwrap();
        assert_eq!(latest.value, state(latest.step));
        let last = last.unwrap();
        assert!(latest.step == last || latest.step == last + 2, "{} of {last}", latest.step);
    }
    open(dir.path()).save(10_000_001, &state(0)).unwrap();
    assert!(files(dir.path()).len() <= 3);
    let temporary = fs::read_dir(dir.path()).unwrap().filter(|entry| {
        entry.as_ref().unwrap().file_name().to_str().unwrap().ends_with("tenarc-tmp")
    });
    assert_eq!(temporary.count(), 0);
}

#[test]
fn two_processes_share_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = open(dir.path());
    checkpoints.save_scored(0, 0.0, &state(0)).unwrap();
    let mut children = [0, 1].map(|first| {
        child::command(&[], CHILD, &format!("{first} 25"), dir.path()).spawn().unwrap()
    });
    let (mut newest, mut reads) = (0, 0);
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        let latest = checkpoints.latest::<State>().unwrap().expect("there is always one");
        assert_eq!(latest.value, state(latest.step));
        assert!(latest.step >= newest, "{} after {newest}", latest.step);
        for skipped in &latest.skipped {
            // What is being saved is there before it is listed.
            assert!(skipped.error.to_string().ends_with("is not listed in SHA256SUMS"));
        }
        newest = latest.step;
        reads += 1;
    }
    assert!(reads > 10, "{reads}");
    let mut saved = Vec::new();
    for child in &mut children {
        assert!(child.wait().unwrap().success());
        let told = told(child);
        assert_eq!(told.len(), 25);
        saved.extend(told);
    }
    saved.sort_unstable();

    let best = checkpoints.best_step(Best::Highest).unwrap().unwrap();
    assert_eq!(best % 10, 9);
    let mut steps = checkpoints.steps().unwrap();
    assert!(steps.ends_with(&saved[saved.len() - 2..]), "{steps:?}");
    steps.retain(|step| checkpoints.load::<State>(*step).is_ok());
    assert_eq!(steps, checkpoints.steps().unwrap());
    assert!(steps.contains(&best) && steps.len() <= 4, "{steps:?}");
    #[cfg(feature = "sha256")]
    checkpoints.verify_sha256_manifest().unwrap();
}

#[test]
fn a_leftover_is_swept_and_a_running_save_is_not() {
    let (_dir, checkpoints) = fresh();
    let leftover = checkpoints.dir().join(".step-00000000000000000001.tenarc.abcdefgh.tenarc-tmp");
    fs::write(&leftover, "half").unwrap();
    checkpoints.save(1, &state(1)).unwrap();
    assert!(!leftover.exists());

    fs::write(&leftover, "half").unwrap();
    let guard = fs::File::create(leftover.with_extension("tenarc-lock")).unwrap();
    guard.lock().unwrap();
    checkpoints.save(2, &state(2)).unwrap();
    assert!(leftover.exists());
    guard.unlock().unwrap();
    checkpoints.save(3, &state(3)).unwrap();
    assert!(!leftover.exists());
}

#[test]
fn readers_find_one_while_the_only_one_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    // So many that a directory is not listed by one call of the system.
    for number in 0..700 {
        fs::write(dir.path().join(format!("other-{number:050}")), "").unwrap();
    }
    for again in [false, true] {
        let checkpoints = Checkpoints::new(dir.path()).unwrap().with_keep_last(1);
        checkpoints.save(0, &state(0)).unwrap();
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let reader = || {
                let (mut newest, mut loads) = (0, 0);
                while !done.load(Ordering::Relaxed) {
                    let latest = checkpoints.latest::<State>().unwrap().expect("there is one");
                    assert!(latest.skipped.is_empty());
                    assert!(latest.value[0] >= newest, "{} after {newest}", latest.value[0]);
                    newest = latest.value[0];
                    assert!(!checkpoints.steps().unwrap().is_empty());
                    loads += 1;
                }
                loads
            };
            let readers = [scope.spawn(reader), scope.spawn(reader)];
            for number in 1..=50 {
                let step = if again { 0 } else { number };
                if checkpoints.save(step, &state(number)).is_err() {
                    break;
                }
            }
            done.store(true, Ordering::Relaxed);
            for reader in readers {
                assert!(reader.join().unwrap() > 10);
            }
        });
        checkpoints.remove(checkpoints.steps().unwrap()[0]).unwrap();
    }
}
