//! `verify` tells files that are damaged from files that it cannot check.

use std::fs;
use std::path::PathBuf;

use crate::support::{Dir, Ran, run};

fn copied(dir: &Dir, path: &str, to: &str) {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../convert/tests/fixtures");
    fs::copy(fixtures.join(path), dir.file(to)).unwrap();
}

/// Checks that the file was not checked for this reason.
#[track_caller]
fn is_unchecked(ran: &Ran, why: &str) {
    assert_eq!((ran.status, ran.out()), (2, ""), "{ran:?}");
    assert!(ran.err.contains(": not checked: ") && ran.err.contains(why), "{ran:?}");
}

#[test]
fn what_is_not_supported_is_not_damage() {
    let dir = Dir::new();
    for (file, why) in [
        ("parquet/brotli.parquet", "brotli"),
        ("parquet/nothing_kept.parquet", "no column is left"),
        ("arrow/nothing_kept.arrow", "no column is left"),
    ] {
        let name = file.rsplit('/').next().unwrap();
        copied(&dir, file, name);
        is_unchecked(&run(&dir, &["verify", name]), why);
        let report = &run(&dir, &["verify", "--json", name]).json()[0];
        assert_eq!((&report["good"], &report["checked"]), (&false.into(), &false.into()));
    }
    copied(&dir, "hdf5/keras.h5", "later.h5");
    let mut bytes = fs::read(dir.file("later.h5")).unwrap();
    bytes[8] = 9;
    dir.write("later.h5", &bytes);
    is_unchecked(&run(&dir, &["verify", "later.h5"]), "unsupported superblock version 9");
    let mut bytes = Vec::new();
    tenarc_convert::npy::write(&mut bytes, &vec![0.5f32; 8]).unwrap();
    bytes[6] = 9;
    dir.write("later.npy", &bytes);
    is_unchecked(&run(&dir, &["verify", "later.npy"]), "found 9.0");
}

#[test]
fn what_exceeds_a_limit_is_not_damage() {
    let dir = Dir::new();
    copied(&dir, "hdf5/huge.h5", "huge.h5");
    is_unchecked(&run(&dir, &["verify", "huge.h5"]), "--max-memory sets another limit");
    for (file, name) in [("parquet/structs.parquet", "a.parquet"), ("arrow/table.arrow", "a.arrow")]
    {
        copied(&dir, file, name);
        assert_eq!(run(&dir, &["verify", name]).status, 0, "{name}");
        let ran = run(&dir, &["verify", "--max-memory", "1k", name]);
        is_unchecked(&ran, "--max-memory sets another limit");
    }
}

#[track_caller]
fn is_bad(ran: &Ran) {
    assert!(ran.status == 1 && ran.out().contains(": bad: "), "{ran:?}");
}

#[test]
fn damage_is_bad() {
    let dir = Dir::new();
    copied(&dir, "parquet/snappy.parquet", "a.parquet");
    copied(&dir, "hdf5/keras.h5", "a.h5");
    for name in ["a.parquet", "a.h5"] {
        let bytes = fs::read(dir.file(name)).unwrap();
        dir.write(name, &bytes[..bytes.len() / 2]);
        is_bad(&run(&dir, &["verify", name]));
    }
    copied(&dir, "parquet/snappy.parquet", "a.parquet");
    let mut bytes = fs::read(dir.file("a.parquet")).unwrap();
    // The header of a page.
    bytes[4..44].fill(0xff);
    dir.write("a.parquet", &bytes);
    is_bad(&run(&dir, &["verify", "a.parquet"]));
}

#[test]
fn the_name_bin_says_nothing() {
    let dir = Dir::new();
    // The weights of other programs.
    dir.write("openvino.bin", &[0x3f; 4096]);
    dir.write("empty.bin", b"");
    run(&dir, &["ls", "openvino.bin"]).failed(2, "openvino.bin: unknown file format");
    run(&dir, &["verify", "."]).failed(2, "no file of a known format, among 2 files");
    copied(&dir, "torch/state_dict_protocol_4.bin", "zip.bin");
    copied(&dir, "torch/legacy.pt", "legacy.bin");
    let ran = run(&dir, &["verify", "."]);
    assert_eq!((ran.status, ran.out().lines().count()), (0, 2), "{ran:?}");
    assert!(ran.err.contains("2 files of unknown formats not checked"), "{ran:?}");
    dir.write("pointer.bin", b"version https://git-lfs.github.com/spec/v1\n");
    let ran = run(&dir, &["verify", "."]);
    assert!(ran.status == 2 && ran.err.contains("a pointer of Git LFS"), "{ran:?}");
}
