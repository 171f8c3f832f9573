//! Distributed checkpoints of torch are directories, and each is one input.

use std::fs;
use std::path::Path;

use crate::support::{Dir, flip, run};

/// Copies a checkpoint.
fn copied(dir: &Dir, name: &str) {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR"));
    let from = fixtures.join("../convert/tests/fixtures/torch_distributed").join(name);
    fs::create_dir(dir.file(name)).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), dir.file(name).join(entry.file_name())).unwrap();
    }
}

#[test]
fn a_checkpoint_is_listed_shown_and_converted() {
    let dir = Dir::new();
    copied(&dir, "sharded");
    let listed = run(&dir, &["ls", "sharded"]);
    let columns = listed.good().lines().find(|line| line.contains("model.columns")).unwrap();
    assert!(columns.contains("bf16") && columns.contains("[4, 7]"), "{columns}");
    // The file in the directory stands for it.
    assert_eq!(run(&dir, &["ls", "sharded/.metadata"]).good(), listed.good());
    let info = run(&dir, &["info", "sharded"]);
    assert!(info.good().starts_with("sharded  torch\n"), "{info:?}");
    assert!(info.good().contains("9 tensors"), "{info:?}");
    assert!(run(&dir, &["get", "sharded", "model.rows[1]"]).good().contains('4'));
    run(&dir, &["convert", "sharded", "a.tenarc"]).good();
    assert_eq!(run(&dir, &["diff", "sharded", "a.tenarc"]).good(), "");
    assert_eq!(run(&dir, &["show", "a.tenarc", "optimizer.param_groups.0.lr"]).good(), "0.5\n");
    run(&dir, &["convert", "a.tenarc", "sharded", "--to", "torch"]).failed(2, "a directory");
}

#[test]
fn verify_checks_a_checkpoint_as_one_input() {
    let dir = Dir::new();
    copied(&dir, "sharded");
    dir.write("sharded/readme.txt", b"?");
    for args in [["verify", "sharded"], ["verify", "."]] {
        let ran = run(&dir, &args);
        assert_eq!((ran.status, ran.out().lines().count()), (0, 1), "{ran:?}");
        assert!(ran.out().contains("sharded: good, 1 value, "), "{ran:?}");
        assert!(ran.err.contains("1 file of unknown formats"), "{ran:?}");
    }
    // The last element of a tensor in the file of the second process.
    let file = dir.file("sharded/__1_0.distcp");
    let bytes = fs::read(&file).unwrap();
    let at = bytes.windows(4).position(|four| four == 14.0f32.to_le_bytes()).unwrap();
    flip(&file, at as u64);
    let ran = run(&dir, &["verify", "sharded"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert!(ran.out().contains("bad") && ran.out().contains("CRC-32"), "{ran:?}");
    assert!(ran.out().contains("__1_0.distcp"), "{ran:?}");
    run(&dir, &["convert", "sharded", "a.tenarc"]).failed(1, "CRC-32");
    assert!(!dir.file("a.tenarc").exists());
}

#[test]
fn other_directories_are_refused() {
    let dir = Dir::new();
    fs::create_dir(dir.file("app")).unwrap();
    run(&dir, &["ls", "app"]).failed(2, "app: is a directory");
    // Another program writes a text file of this name.
    dir.write("app/.metadata", b"revision: 1\n");
    run(&dir, &["ls", "app"]).failed(2, "app: is a directory");
    dir.write("app/.metadata", b"\x80\x04}.");
    run(&dir, &["ls", "app"]).failed(2, "expected an object of torch's class `Metadata`");
    // A pickle of another name is not read.
    dir.write("app/x", b"\x80\x04}.");
    run(&dir, &["ls", "app/x"]).failed(2, "a Python pickle");
}
