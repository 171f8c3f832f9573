//! `Checkpoints::latest` passed over files that do not fit the type as if they were damaged: a program
//! that was rolled back went on from an older step.

use std::fs;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use tempfile::TempDir;
use tenarc::archive::SaveOptions;
use tenarc::error::Category;
use tenarc::{Checkpoints, OArchive};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Old {
    weights: Vec<f32>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct New {
    weights: Vec<Vec<f32>>,
}

fn old() -> Old {
    Old { weights: vec![0.5; 5000] }
}

fn new() -> New {
    New { weights: vec![vec![0.5; 5000]; 2] }
}

/// Step 1 by the old program, step 2 by the new one.
fn prepared() -> (TempDir, Checkpoints) {
    let dir = tempfile::tempdir().unwrap();
    let checkpoints = Checkpoints::new(dir.path()).unwrap();
    checkpoints.save(1, &old()).unwrap();
    checkpoints.save(2, &new()).unwrap();
    (dir, checkpoints)
}

fn file_of(checkpoints: &Checkpoints, step: u64) -> PathBuf {
    checkpoints.dir().join(format!("step-{step:020}.tenarc"))
}

#[track_caller]
fn refused<T: serde::de::DeserializeOwned + std::fmt::Debug>(
    checkpoints: &Checkpoints,
    category: Category,
    parts: &[&str],
) {
    let error = checkpoints.latest::<T>().unwrap_err();
    assert_eq!(error.category(), category, "{error}");
    let path = file_of(checkpoints, 2);
    for part in parts.iter().copied().chain([path.to_str().unwrap()]) {
        assert!(error.to_string().contains(part), "{error}");
    }
}

const WHOLE: &str = "the checkpoint is intact, but does not fit the requested type: `";

#[test]
fn a_whole_checkpoint_of_another_type_is_an_error() {
    let (_dir, checkpoints) = prepared();
    refused::<Old>(&checkpoints, Category::Mismatch, &[WHOLE, "at `weights.0`"]);
    assert_eq!(checkpoints.latest::<New>().unwrap().unwrap().step, 2);
    // By its number it can be had.
    assert_eq!(checkpoints.load::<Old>(1).unwrap(), old());
}

#[test]
fn a_whole_archive_of_several_values_is_an_error() {
    let (_dir, checkpoints) = prepared();
    let mut out = OArchive::append(file_of(&checkpoints, 2)).unwrap();
    out.save(&1).unwrap();
    out.finish().unwrap();
    refused::<New>(&checkpoints, Category::NotFound, &[WHOLE, "2 segments"]);
}

#[test]
fn damaged_ones_are_passed_over_whatever_their_type() {
    let (_dir, checkpoints) = prepared();
    let path = file_of(&checkpoints, 2);
    let whole = fs::read(&path).unwrap();
    let flipped = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damaged = [
        // No archive: what a loss of power leaves on some file systems.
        Vec::new(),
        vec![0; whole.len()],
        flipped(0),
        b"{}".to_vec(),
        // Cut.
        whole[..whole.len() / 2].to_vec(),
        whole[..whole.len() - 1].to_vec(),
        // In a tensor, and in the list of checksums.
        flipped(whole.len() / 2),
        flipped(whole.len() - 120),
    ];
    for bytes in damaged {
        fs::write(&path, &bytes).unwrap();
        let latest = checkpoints.latest::<Old>().unwrap().unwrap();
        assert_eq!((latest.step, latest.value), (1, old()));
        let [skipped] = latest.skipped.as_slice() else { panic!("{:?}", latest.skipped) };
        assert_eq!(skipped.step, 2);
        assert!(skipped.error.to_string().contains(path.to_str().unwrap()), "{}", skipped.error);
    }
}

/// A version of the format that is not known is no damage.
#[test]
fn a_later_version_is_an_error() {
    let (_dir, checkpoints) = prepared();
    let path = file_of(&checkpoints, 2);
    let mut bytes = fs::read(&path).unwrap();
    let header = bytes.windows(4).position(|bytes| bytes == b"TSEG").unwrap();
    // An array of eight items, the first of which is the version.
    assert_eq!(bytes[header + 4], 0x88);
    bytes[header + 5] += 1;
    fs::write(&path, bytes).unwrap();
    refused::<New>(&checkpoints, Category::Version, &["version"]);
}

/// Without checksums nothing tells damage inside a tensor from other numbers; the metadata always has
/// a checksum.
#[test]
fn without_checksums_the_metadata_still_tell_damage() {
    let dir = tempfile::tempdir().unwrap();
    let options = SaveOptions::default().with_checksums(false);
    let checkpoints = Checkpoints::new(dir.path()).unwrap().with_save_options(options);
    checkpoints.save(1, &old()).unwrap();
    checkpoints.save(2, &new()).unwrap();
    refused::<Old>(&checkpoints, Category::Mismatch, &[WHOLE]);
    let path = file_of(&checkpoints, 2);
    let mut bytes = fs::read(&path).unwrap();
    let name = bytes.windows(7).position(|bytes| bytes == b"weights").unwrap();
    bytes[name] ^= 1;
    fs::write(&path, bytes).unwrap();
    assert_eq!(checkpoints.latest::<Old>().unwrap().unwrap().step, 1);
}
