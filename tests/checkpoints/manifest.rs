//! `SHA256SUMS`: required, complete, and what `sha256sum -c` accepts.

use std::process::Command;

use tenarc_test_support::needed;

use super::*;

const MANIFEST: &str = "SHA256SUMS";

fn with_manifest() -> (TempDir, Checkpoints) {
    let (dir, checkpoints) = fresh();
    let checkpoints = checkpoints.with_sha256_manifest(true);
    for step in 1..=3 {
        checkpoints.save_scored(step, 0.5, &state(step)).unwrap();
    }
    (dir, checkpoints)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

#[track_caller]
fn refused(checkpoints: &Checkpoints, parts: &[&str]) {
    let error = checkpoints.verify_sha256_manifest().unwrap_err().to_string();
    for part in parts {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn sha256sum_accepts_it() {
    let (_dir, checkpoints) = with_manifest();
    let checkpoints = checkpoints.with_keep_last(2);
    checkpoints.save(2, &state(20)).unwrap();
    checkpoints.save(4, &state(4)).unwrap();
    checkpoints.verify_sha256_manifest().unwrap();
    let mut sha256sum = Command::new("sha256sum");
    sha256sum.args(["--strict", "-c", MANIFEST]).current_dir(checkpoints.dir());
    let Ok(output) = sha256sum.output() else {
        needed::skipped("sha256sum is not installed");
        return;
    };
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 2);
}

#[test]
fn a_missing_manifest_is_an_error() {
    let (_dir, checkpoints) = with_manifest();
    fs::remove_file(checkpoints.dir().join(MANIFEST)).unwrap();
    refused(&checkpoints, &["SHA256SUMS`: the manifest is missing"]);
    for error in
        [checkpoints.latest::<State>().unwrap_err(), checkpoints.load::<State>(1).unwrap_err()]
    {
        assert!(error.to_string().contains("SHA256SUMS`: the manifest is missing"), "{error}");
    }
    // As when it is asked for in a directory that has had none.
    checkpoints.save(4, &state(4)).unwrap();
    checkpoints.verify_sha256_manifest().unwrap();
    assert_eq!(checkpoints.load::<State>(1).unwrap(), state(1));
}

#[test]
fn a_manifest_that_is_none_is_an_error() {
    let (_dir, checkpoints) = with_manifest();
    let path = checkpoints.dir().join(MANIFEST);
    let whole = fs::read_to_string(&path).unwrap();
    let first = whole.lines().next().unwrap();
    for (text, why) in [
        (String::new(), "is empty"),
        (format!("{whole}{first}\n"), "a second sum of the same file in line 4"),
        (format!("{whole}\n"), "expected the sum of a checkpoint in line 4"),
        (whole.replace("  step", "  ../step"), "in line 1"),
        (whole.replacen("  step", " step", 1), "in line 1"),
        (whole[1..].to_owned(), "in line 1"),
        (whole[2..].to_owned(), "in line 1"),
        (format!("{whole}{}  é", "é".repeat(32)), "in line 4"),
        (format!("{whole}{}  README", &first[..64]), "in line 4"),
    ] {
        fs::write(&path, text).unwrap();
        refused(&checkpoints, &[why, "SHA256SUMS`"]);
        assert!(checkpoints.latest::<State>().is_err());
        assert!(checkpoints.save(9, &state(9)).is_err());
    }
    fs::write(&path, b"\xff\xfe").unwrap();
    refused(&checkpoints, &["cannot read `", "SHA256SUMS`"]);
    fs::write(
        &path,
        whole
            .to_uppercase()
            .replace("STEP", "step")
            .replace("SCORE", "score")
            .replace("TENARC", "tenarc"),
    )
    .unwrap();
    checkpoints.verify_sha256_manifest().unwrap();
}

#[test]
fn a_missing_checkpoint_is_an_error_until_it_is_removed_by_name() {
    let (_dir, checkpoints) = with_manifest();
    let gone = file_of(&checkpoints, 3);
    fs::remove_file(&gone).unwrap();
    refused(&checkpoints, &[&name_of(&gone), "` is missing, but listed in SHA256SUMS"]);
    let error = checkpoints.load::<State>(3).unwrap_err().to_string();
    assert!(error.contains(&name_of(&gone)), "{error}");
    let latest = checkpoints.latest::<State>().unwrap().unwrap();
    assert_eq!((latest.step, latest.skipped.len(), latest.skipped[0].step), (2, 1, 3));

    checkpoints.save(4, &state(4)).unwrap();
    refused(&checkpoints, &[&name_of(&gone)]);
    checkpoints.remove(3).unwrap();
    checkpoints.verify_sha256_manifest().unwrap();
}

#[test]
fn an_extra_checkpoint_is_an_error() {
    let (_dir, checkpoints) = with_manifest();
    let extra = checkpoints.dir().join("step-00000000000000000009.tenarc");
    fs::write(&extra, "not whole").unwrap();
    let why = format!("{}` is not listed in SHA256SUMS", name_of(&extra));
    refused(&checkpoints, &[&why]);
    assert!(checkpoints.load::<State>(9).unwrap_err().to_string().contains(&why));
    let latest = checkpoints.latest::<State>().unwrap().unwrap();
    assert_eq!((latest.step, latest.skipped.len()), (3, 1));

    // Nobody knows where it is from: it is neither listed nor counted nor removed.
    checkpoints.clone().with_keep_last(1).save(4, &state(4)).unwrap();
    refused(&checkpoints, &[&why]);
    assert_eq!(checkpoints.steps().unwrap(), [4, 9]);
    // A whole one is what a crash may have left.
    fs::remove_file(&extra).unwrap();
    tenarc::save(&extra, &state(9)).unwrap();
    refused(&checkpoints, &[&why]);
    checkpoints.save(5, &state(5)).unwrap();
    checkpoints.verify_sha256_manifest().unwrap();
    assert_eq!(checkpoints.load::<State>(9).unwrap(), state(9));
}

#[test]
fn a_wrong_sum_is_an_error() {
    let (_dir, checkpoints) = with_manifest();
    let damaged = file_of(&checkpoints, 3);
    // A whole archive, but not the one that was saved.
    tenarc::save(&damaged, &state(33)).unwrap();
    refused(&checkpoints, &[&name_of(&damaged), "does not have the SHA-256 sum in SHA256SUMS"]);
    let error = checkpoints.load::<State>(3).unwrap_err();
    assert_eq!(error.category(), Category::Damaged);
    assert!(error.to_string().contains(&name_of(&damaged)), "{error}");
    assert_eq!(checkpoints.latest::<State>().unwrap().unwrap().step, 2);

    checkpoints.save(3, &state(34)).unwrap();
    checkpoints.verify_sha256_manifest().unwrap();
    assert_eq!(checkpoints.latest::<State>().unwrap().unwrap().value, state(34));
}

#[test]
fn an_empty_directory_has_an_empty_manifest() {
    let (_dir, checkpoints) = fresh();
    let checkpoints = checkpoints.with_sha256_manifest(true);
    assert!(checkpoints.latest::<State>().unwrap().is_none());
    checkpoints.save(1, &state(1)).unwrap();
    checkpoints.remove(1).unwrap();
    assert!(checkpoints.latest::<State>().unwrap().is_none());
    checkpoints.verify_sha256_manifest().unwrap();
}
