//! Without the weights, the example says how to get them, and succeeds.

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
