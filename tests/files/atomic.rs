//! A save that fails leaves the old file unchanged, and the error says why it failed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;

use tempfile::TempDir;
use tenarc_test_support::child;

/// Where the child of each test goes on.
const CHILD: &str = "atomic::child";
const TARGET: &str = "model.tenarc";

fn old() -> Vec<String> {
    vec!["old".to_owned(); 10]
}

#[test]
fn child() {
    let Some((_, dir)) = child::role() else { return };
    match tenarc::save(dir.join(TARGET), &vec!["new"; 20_000]) {
        Ok(()) => println!("outcome: saved"),
        Err(error) => println!("outcome: {error}"),
    }
}

/// A directory with the old content.
fn prepared() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    tenarc::save(dir.path().join(TARGET), &old()).unwrap();
    dir
}

fn load(dir: &TempDir) -> Vec<String> {
    tenarc::load(dir.path().join(TARGET)).unwrap()
}

/// The names beside the target.
fn others(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(|name| name.into_string().unwrap()).filter(|name| name != TARGET).collect()
}

#[test]
fn runs_into_a_limit_of_file_size() {
    let dir = prepared();
    let limited = |script| child::run(&["sh", "-c", script], CHILD, "limited", dir.path());
    let output = limited("trap '' XFSZ; ulimit -f 16; exec \"$0\" \"$@\"");
    let outcome = child::told(&output.stdout, "outcome: ").concat();
    assert!(outcome.contains("cannot write `") && outcome.contains("too large"), "{output:?}");
    assert_eq!(load(&dir), old());
    assert!(others(dir.path()).is_empty());

    // The signal for it kills.
    let output = limited("ulimit -c 0; ulimit -f 16; exec \"$0\" \"$@\"");
    assert!(output.status.signal().is_some(), "{output:?}");
    assert_eq!(load(&dir), old());
}

#[test]
fn cannot_save_to_a_directory_that_is_read_only() {
    let dir = prepared();
    let set = |bits| fs::set_permissions(dir.path(), fs::Permissions::from_mode(bits)).unwrap();
    set(0o555);
    let mut child = child::command(&[], CHILD, "refused", dir.path());
    if fs::write(dir.path().join("probe"), "").is_ok() {
        fs::remove_file(dir.path().join("probe")).unwrap();
        // For root nothing is read-only: as nobody, then, if this program may be run by nobody.
        child.uid(65534);
    }
    let output = child.output();
    set(0o755);
    let Ok(output) = output else {
        eprintln!("skipped: the test cannot be run without privileges");
        return;
    };
    let outcome = child::told(&output.stdout, "outcome: ").concat();
    assert!(outcome.contains("cannot create a temporary file beside `"), "{output:?}");
    assert_eq!(load(&dir), old());
}
