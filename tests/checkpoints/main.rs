//! A program that saves checkpoints into a directory finds the last whole one when it starts again,
//! whatever happened to the files and whichever other processes use the directory.
//!
//! Numbers 90 and 93 of `docs/threats.md`. `tests/crashes/` kills such a program at every system call.

mod background;
#[cfg(feature = "sha256")]
mod manifest;
mod processes;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tenarc::Checkpoints;
use tenarc::checkpoint::Best;
use tenarc::error::Category;
use tenarc_test_support::child;

type State = Vec<u64>;

fn state(step: u64) -> State {
    vec![step; 100]
}

fn fresh() -> (TempDir, Checkpoints) {
    let dir = child::fast_dir();
    let checkpoints = Checkpoints::new(dir.path().join("run")).unwrap();
    (dir, checkpoints)
}

/// Names of checkpoint files, sorted.
fn files(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("step-")).collect();
    names.sort();
    names
}

/// The one file of a step.
fn file_of(checkpoints: &Checkpoints, step: u64) -> PathBuf {
    let is_of_step = |name: &String| name.starts_with(&format!("step-{step:020}"));
    let mut found: Vec<_> = files(checkpoints.dir()).into_iter().filter(is_of_step).collect();
    assert_eq!(found.len(), 1, "{found:?}");
    checkpoints.dir().join(found.remove(0))
}

/// Flips a bit in the middle.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn saves_and_loads_every_step() {
    let (_dir, checkpoints) = fresh();
    assert!(checkpoints.steps().unwrap().is_empty());
    assert!(checkpoints.latest::<State>().unwrap().is_none());

    let steps = [0, 7, 10_000_000_000_000, u64::MAX];
    for step in [7, 0, u64::MAX, 10_000_000_000_000] {
        checkpoints.save(step, &state(step)).unwrap();
    }
    assert_eq!(checkpoints.steps().unwrap(), steps);
    for step in steps {
        assert_eq!(checkpoints.load::<State>(step).unwrap(), state(step));
    }
    let latest = checkpoints.latest::<State>().unwrap().unwrap();
    assert_eq!((latest.step, latest.value), (u64::MAX, state(u64::MAX)));
    assert!(latest.skipped.is_empty());

    let expected = steps.map(|step| format!("step-{step:020}.tenarc"));
    assert_eq!(files(checkpoints.dir()), expected);
    let error = checkpoints.load::<State>(8).unwrap_err();
    assert_eq!(error.category(), Category::NotFound);
    assert!(error.to_string().contains("there is no checkpoint of step 8 in "), "{error}");
}

#[test]
#[cfg(feature = "compression")]
fn steps_are_compressed_by_the_options() {
    use tenarc::archive::{Compression, SaveOptions};
    use tenarc::{Archive, Tensor};

    type Loaded = (Tensor<Vec<f32>>, Tensor<Vec<f32>>);

    let (_dir, checkpoints) = fresh();
    let options = SaveOptions::default()
        .with_compression_by(|tensor| (tensor.path() == "1").then(Compression::zstd));
    let checkpoints = checkpoints.with_save_options(options).with_keep_last(2);
    let state = |step: f32| (Tensor(vec![step; 50_000]), Tensor(vec![step; 50_000]));
    for (step, value) in [(1, 1.5), (2, 2.5), (3, 3.5)] {
        checkpoints.save(step, &state(value)).unwrap();
    }
    assert_eq!(checkpoints.steps().unwrap(), [2, 3]);
    assert!(checkpoints.load::<Loaded>(2).unwrap() == state(2.5));
    let path = file_of(&checkpoints, 3);
    let archive = Archive::open(&path).unwrap();
    let segment = archive.only().unwrap();
    let packed = |number| segment.compressed(number).map(|buffer| buffer.codec().to_owned());
    assert_eq!((packed(0), packed(1).as_deref()), (None, Some("zstd")));
    assert!(fs::metadata(&path).unwrap().len() < 250_000);
    // A damaged one is passed over, as others are. Most of the file is the tensor that is not compressed, so a bit of
    // the compressed one is flipped.
    let (start, _) = segment.buffers()[1];
    let mut bytes = fs::read(&path).unwrap();
    bytes[usize::try_from(start).unwrap() + 1] ^= 1;
    fs::write(&path, bytes).unwrap();
    let latest = checkpoints.latest::<Loaded>().unwrap().unwrap();
    assert!(latest.step == 2 && latest.value == state(2.5));
    assert_eq!(latest.skipped.len(), 1);
}

#[test]
fn creates_the_directory_with_its_parents() {
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(dir.path().join("a/b/c")).unwrap();
    checkpoints.save(1, &state(1)).unwrap();
    Checkpoints::new(dir.path().join("a/b/c")).unwrap().load::<State>(1).unwrap();

    fs::write(dir.path().join("file"), "").unwrap();
    for below in ["file", "file/run"] {
        let error = Checkpoints::new(dir.path().join(below)).unwrap_err().to_string();
        assert!(error.starts_with("cannot create the directory `"), "{error}");
    }
}

#[test]
fn keeps_the_last_ones() {
    let (_dir, checkpoints) = fresh();
    let checkpoints = checkpoints.with_keep_last(3);
    for step in 1..=10 {
        checkpoints.save(step, &state(step)).unwrap();
        assert_eq!(checkpoints.load::<State>(step).unwrap(), state(step));
    }
    assert_eq!(checkpoints.steps().unwrap(), [8, 9, 10]);

    // The one just saved stays, whatever its number.
    checkpoints.save(2, &state(2)).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [2, 8, 9, 10]);
    let dir = checkpoints.dir().to_owned();
    checkpoints.with_keep_last(0).save(11, &state(11)).unwrap();
    assert_eq!(files(&dir).len(), 1);
}

#[test]
fn keeps_the_best_ones_across_restarts() {
    let dir = tempfile::tempdir().unwrap();
    // Each is a process of its own, as far as the directory can tell.
    let checkpoints = |best| {
        let checkpoints = Checkpoints::new(dir.path()).unwrap();
        checkpoints.with_keep_last(1).with_keep_best(2, best)
    };
    let scores = [0.9, 0.1 + 0.2, f64::NAN, 0.3, 1e-300, f64::INFINITY, 5.0];
    for (step, score) in scores.into_iter().enumerate() {
        let step = step as u64;
        checkpoints(Best::Lowest).save_scored(step, score, &state(step)).unwrap();
    }
    assert_eq!(checkpoints(Best::Lowest).steps().unwrap(), [3, 4, 6]);
    assert_eq!(checkpoints(Best::Lowest).best_step(Best::Lowest).unwrap(), Some(4));
    assert_eq!(checkpoints(Best::Lowest).best_step(Best::Highest).unwrap(), Some(6));

    checkpoints(Best::Highest).save(7, &state(7)).unwrap();
    assert_eq!(checkpoints(Best::Highest).steps().unwrap(), [3, 6, 7]);
    // Neither a step without a score nor one with a NaN is among the best.
    checkpoints(Best::Highest).save_scored(8, f64::NAN, &state(8)).unwrap();
    assert_eq!(checkpoints(Best::Highest).steps().unwrap(), [3, 6, 8]);
    assert_eq!(checkpoints(Best::Highest).load::<State>(3).unwrap(), state(3));
}

#[test]
fn a_step_saved_again_replaces_file_and_score() {
    let (_dir, checkpoints) = fresh();
    let checkpoints = checkpoints.with_keep_last(1).with_keep_best(1, Best::Lowest);
    checkpoints.save_scored(1, 0.1, &state(1)).unwrap();
    checkpoints.save_scored(2, 0.2, &state(2)).unwrap();
    checkpoints.save_scored(3, 0.3, &state(3)).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [1, 3]);

    checkpoints.save_scored(1, 0.9, &state(100)).unwrap();
    assert_eq!(checkpoints.load::<State>(1).unwrap(), state(100));
    assert_eq!(files(checkpoints.dir()).len(), 2);
    checkpoints.save_scored(1, 0.9, &state(101)).unwrap();
    assert_eq!(checkpoints.load::<State>(1).unwrap(), state(101));
    assert_eq!(files(checkpoints.dir()).len(), 2);
    assert_eq!(checkpoints.best_step(Best::Lowest).unwrap(), Some(3));

    checkpoints.save(4, &state(4)).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [3, 4]);
}

#[test]
fn passes_over_broken_ones_and_says_why() {
    let (_dir, checkpoints) = fresh();
    for step in 1..=4 {
        checkpoints.save(step, &state(step)).unwrap();
    }
    damage(&file_of(&checkpoints, 4));
    fs::write(file_of(&checkpoints, 3), "").unwrap();
    let latest = checkpoints.latest::<State>().unwrap().unwrap();
    assert_eq!((latest.step, latest.value), (2, state(2)));
    assert_eq!(latest.skipped.iter().map(|skipped| skipped.step).collect::<Vec<_>>(), [4, 3]);
    for skipped in &latest.skipped {
        let name = format!("step-{:020}.tenarc", skipped.step);
        assert!(skipped.error.to_string().contains(&name), "{}", skipped.error);
    }
    assert!(checkpoints.load::<State>(4).is_err());

    for step in 1..=2 {
        damage(&file_of(&checkpoints, step));
    }
    let error = checkpoints.latest::<State>().unwrap_err().to_string();
    for part in
        ["no checkpoint in `", "can be loaded; step 4: ", "step 3: ", "step 2: ", "and 1 more"]
    {
        assert!(error.contains(part), "{error}");
    }
    checkpoints.save(4, &state(40)).unwrap();
    assert_eq!(checkpoints.latest::<State>().unwrap().unwrap().value, state(40));
}

#[test]
fn a_value_that_cannot_be_written_changes_nothing() {
    struct Failing;

    impl serde::Serialize for Failing {
        fn serialize<S: serde::Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
            Err(serde::ser::Error::custom("not today"))
        }
    }

    let (_dir, checkpoints) = fresh();
    let checkpoints = checkpoints.with_keep_last(1);
    checkpoints.save(1, &state(1)).unwrap();
    for step in [1, 2] {
        let error = checkpoints.save(step, &Failing).unwrap_err().to_string();
        assert!(error.contains("not today"), "{error}");
    }
    let listed = fs::read_dir(checkpoints.dir()).unwrap();
    let names: Vec<_> = listed.map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_str().unwrap().contains("tmp")), "{names:?}");
    assert_eq!(checkpoints.load::<State>(1).unwrap(), state(1));
    assert_eq!(checkpoints.steps().unwrap(), [1]);
}

#[test]
fn leaves_other_files_alone() {
    let (_dir, checkpoints) = fresh();
    let checkpoints = checkpoints.with_keep_last(1);
    let others = [
        "step-5.tenarc",
        "step-00000000000000000005.tenarc.bak",
        "step-00000000000000000005.score-0.50.tenarc",
        "step-99999999999999999999.tenarc",
        "notes.txt",
    ];
    for name in others {
        fs::write(checkpoints.dir().join(name), "mine").unwrap();
    }
    fs::create_dir(checkpoints.dir().join("step-00000000000000000006.tenarc")).unwrap();
    for step in [1, 2, 3] {
        checkpoints.save(step, &state(step)).unwrap();
    }
    assert_eq!(checkpoints.steps().unwrap(), [3]);
    for name in others {
        assert_eq!(fs::read_to_string(checkpoints.dir().join(name)).unwrap(), "mine");
    }
    let error = checkpoints.save(6, &state(6)).unwrap_err().to_string();
    assert!(error.contains("000006.tenarc`: it is a directory"), "{error}");
}

#[cfg(unix)]
#[test]
fn follows_no_links() {
    use std::os::unix::fs::symlink;

    let (dir, checkpoints) = fresh();
    let checkpoints = checkpoints.with_keep_last(1);
    let outside = dir.path().join("outside.tenarc");
    tenarc::save(&outside, &state(99)).unwrap();
    let before = fs::read(&outside).unwrap();
    let link = |name: &str| symlink(&outside, checkpoints.dir().join(name)).unwrap();
    link("step-00000000000000000001.tenarc");
    link("step-00000000000000000002.tenarc");
    link(".step-1.tenarc.abcdefgh.tenarc-tmp");

    assert!(checkpoints.latest::<State>().unwrap().is_none());
    checkpoints.save(2, &state(2)).unwrap();
    checkpoints.save(3, &state(3)).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [3]);
    assert_eq!(fs::read(&outside).unwrap(), before);
    let is_link = |name| fs::symlink_metadata(checkpoints.dir().join(name)).unwrap().is_symlink();
    assert!(is_link("step-00000000000000000001.tenarc"));

    fs::remove_file(checkpoints.dir().join(".tenarc-saving.lock")).unwrap();
    link(".tenarc-saving.lock");
    let error = checkpoints.save(4, &state(4)).unwrap_err().to_string();
    assert!(error.contains(".tenarc-saving.lock`: it is not a regular file"), "{error}");
}

#[test]
fn removes_a_step_when_told_to() {
    let (_dir, checkpoints) = fresh();
    for step in [1, 2, 3] {
        checkpoints.save(step, &state(step)).unwrap();
    }
    checkpoints.remove(2).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [1, 3]);
    let error = checkpoints.remove(2).unwrap_err().to_string();
    assert!(error.contains("there is no checkpoint of step 2 in "), "{error}");
}

#[test]
fn ten_thousand_steps_are_listed_and_rotated_fast() {
    let (_dir, checkpoints) = fresh();
    for step in 0..10_000u64 {
        fs::write(checkpoints.dir().join(format!("step-{step:020}.score-{step}.tenarc")), "")
            .unwrap();
    }
    let begun = Instant::now();
    let steps = checkpoints.steps().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    assert!(steps.into_iter().eq(0..10_000));

    let begun = Instant::now();
    checkpoints.save(10_000, &state(1)).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    let checkpoints = checkpoints.with_keep_last(2).with_keep_best(2, Best::Lowest);
    checkpoints.save(10_001, &state(1)).unwrap();
    assert_eq!(checkpoints.steps().unwrap(), [0, 1, 10_000, 10_001]);
}
