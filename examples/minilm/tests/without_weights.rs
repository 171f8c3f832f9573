//! What the example does without the weights.

use std::fs;
use std::process::Command;

#[test]
fn the_example_is_skipped_with_a_sentence() {
    let dir = tempfile::tempdir().unwrap();
    let mut without = Command::new(env!("CARGO_BIN_EXE_tenarc-minilm"));
    without.env_remove("TENARC_MINILM");
    let mut elsewhere = Command::new(env!("CARGO_BIN_EXE_tenarc-minilm"));
    elsewhere.arg(dir.path()).arg(dir.path().join("kept.tenarc"));
    for mut command in [without, elsewhere] {
        let output = command.output().unwrap();
        assert!(output.status.success());
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.starts_with("Skipped: the weights of MiniLM are not here."), "{said}");
    }
    assert_eq!(dir.path().read_dir().unwrap().count(), 0);
}

/// These weights are none, so the run fails, but only after it has decided whether to convert them.
#[test]
fn an_archive_that_was_kept_is_not_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let kept = dir.path().join("kept.tenarc");
    fs::write(dir.path().join("model.safetensors"), "no weights").unwrap();
    fs::write(&kept, "kept").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenarc-minilm"));
    let output = command.arg(dir.path()).arg(&kept).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("kept.tenarc exists, so nothing is converted"), "{said}");
    assert_eq!(fs::read_to_string(&kept).unwrap(), "kept");
}
