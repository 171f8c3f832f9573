//! Several inputs, directories, and patterns.

use crate::support::{Dir, flat, flip, model, ramp, run};
use serde_json::json;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor};

/// `a.tenarc` and `b.npz`, with tensors `w` and `b` each.
fn two_files() -> Dir {
    let dir = Dir::new();
    let tensor = |dims: &[usize]| {
        let len = dims.iter().product();
        DynTensor::new(DType::U8, dims, Order::C, vec![7; len]).unwrap()
    };
    dir.save("a.tenarc", &flat(&[("a.w", tensor(&[2, 3])), ("a.b", tensor(&[3]))]));
    dir.save("b.tenarc", &flat(&[("b.w", tensor(&[4])), ("b.b", tensor(&[1]))]));
    run(&dir, &["convert", "b.tenarc", "b.npz"]).good();
    dir
}

#[test]
fn lists_several_files_under_headings() {
    let dir = two_files();
    let expected = "\
a.tenarc:
path  dtype  shape   bytes
a.w   u8     [2, 3]    6 B
a.b   u8     [3]       3 B
2 tensors, 9 B

b.npz:
path  dtype  shape  bytes
b.w   u8     [4]      4 B
b.b   u8     [1]      1 B
2 tensors, 5 B
";
    assert_eq!(run(&dir, &["ls", "a.tenarc", "b.npz"]).good(), expected);
    let tree = run(&dir, &["ls", "--tree", "a.tenarc", "b.npz"]);
    assert!(tree.good().starts_with("a.tenarc  2 tensors, 9 B\n"), "{tree:?}");
    assert!(tree.out().contains("\n\nb.npz  2 tensors, 5 B\n"), "{tree:?}");
    let rows = run(&dir, &["ls", "--json", "--sort", "bytes", "a.tenarc", "b.npz"]).json();
    let row = |at: usize| (rows[at]["file"].clone(), rows[at]["path"].clone());
    assert_eq!(row(0), (json!("a.tenarc"), json!("a.w")), "each file is sorted by itself");
    assert_eq!(row(3), (json!("b.npz"), json!("b.b")));
    let one = run(&dir, &["ls", "--json", "a.tenarc"]).json();
    assert_eq!(one[0].get("file"), None);
}

#[test]
fn several_values_of_several_files_have_one_heading_for_each_file() {
    let dir = two_files();
    let (a, b) = (ramp(&[2]), ramp(&[3]));
    dir.save_all("s.tenarc", &[(None, &a), (Some("two"), &b)]);
    let tree = run(&dir, &["ls", "--tree", "s.tenarc", "a.tenarc"]);
    let expected =
        "s.tenarc:\n#0  f32 [2]  8 B\n\"two\"  f32 [3]  12 B\n\na.tenarc  2 tensors, 9 B\n";
    assert!(tree.good().starts_with(expected), "{tree:?}");
}

#[test]
fn a_file_that_fails_does_not_hide_the_others() {
    let dir = two_files();
    dir.write("bad.safetensors", b"\xff\xff\xff\0\0\0\0\0{");
    for command in ["ls", "info", "stats"] {
        for files in [["none.tenarc", "a.tenarc"], ["a.tenarc", "bad.safetensors"]] {
            let ran = run(&dir, &[command, files[0], files[1]]);
            assert!(ran.status > 0 && ran.out().contains("a.tenarc"), "{ran:?}");
            assert_eq!(ran.err.lines().count(), 1, "{ran:?}");
            let ran = run(&dir, &[command, "--json", files[0], files[1]]);
            assert!(ran.json().as_array().is_some_and(|rows| !rows.is_empty()), "{ran:?}");
        }
    }
    let ran = run(&dir, &["ls", "none.tenarc", "bad.safetensors"]);
    assert_eq!((ran.status, ran.err.lines().count(), ran.out()), (2, 2, ""), "{ran:?}");
}

#[test]
fn patterns_choose_tensors_of_all_files() {
    let dir = two_files();
    let listed = run(&dir, &["ls", "a.tenarc", "b.npz", "-e", "*.w", "-e", "zz"]);
    assert_eq!(listed.good().lines().filter(|line| line.contains(".w ")).count(), 2);
    assert!(!listed.out().contains("a.b"));
    let listed = run(&dir, &["ls", "a.tenarc", "b.npz", "-e", "b.*"]);
    assert!(listed.good().starts_with("b.npz:\n"), "files without a match are not listed");
    for command in [&["ls"][..], &["ls", "--tree"], &["stats"], &["ls", "--json"]] {
        let args = [command, &["a.tenarc", "b.npz", "-e", "zz"]].concat();
        run(&dir, &args).failed(2, "nothing matches \"zz\"");
    }
    let stats = run(&dir, &["stats", "--json", "a.tenarc", "b.npz", "-e", "*.w"]).json();
    assert_eq!((&stats[1]["file"], &stats[1]["max"]), (&json!("b.npz"), &json!(7)));
}

#[test]
fn gets_all_tensors_that_match() {
    let dir = Dir::new();
    dir.save("m.tenarc", &model());
    let expected = "layers.1.bias: f32 [10]\n0.0 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0 9.0\n";
    let bias = ["get", "m.tenarc", "-e", "*.1.bias"];
    assert_eq!(run(&dir, &bias).good(), expected);
    let both = run(&dir, &["get", "m.tenarc", "-e", "*.bias", "--json", "--cast", "u8"]).json();
    assert_eq!((&both[0]["path"], &both[1]["dtype"]), (&json!("layers.0.bias"), &json!("u8")));
    assert_eq!(both[1]["data"], json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    run(&dir, &[&bias[..], &["-o", "b.txt"]].concat()).good();
    assert_eq!(std::fs::read_to_string(dir.file("b.txt")).unwrap(), expected);
    run(&dir, &[&bias[..], &["-o", "b.npy"]].concat()).failed(2, "`tenarc convert -e`");
    run(&dir, &["get", "m.tenarc", "-e", "zz"]).failed(2, "m.tenarc: nothing matches \"zz\"");
    run(&dir, &["get", "m.tenarc"]).failed(2, "PATH");
    run(&dir, &["get", "m.tenarc", "curve", "-e", "*"]).failed(2, "cannot be used with");
    assert_eq!(dir.names(), ["b.txt", "m.tenarc"]);
}

#[test]
fn verifies_all_files_of_a_directory() {
    let dir = two_files();
    std::fs::create_dir_all(dir.file("models/deep")).unwrap();
    for (from, to) in
        [("a.tenarc", "models/a.tenarc"), ("b.npz", "models/deep/no-extension"), ("a.tenarc", "z")]
    {
        std::fs::copy(dir.file(from), dir.file(to)).unwrap();
    }
    dir.write("models/README.md", b"[a](b)");
    let ran = run(&dir, &["verify", "models"]);
    let lines: Vec<&str> = ran.out().lines().collect();
    assert!(ran.status == 0 && lines.len() == 2, "{ran:?}");
    assert!(lines[0].starts_with("models/a.tenarc: good"), "{ran:?}");
    assert!(lines[1].starts_with("models/deep/no-extension: good"), "{ran:?}");
    assert_eq!(ran.err, "tenarc: note: 1 file of unknown formats not checked\n");
    assert_eq!(run(&dir, &["verify", "-q", "models", "z"]).good().lines().count(), 3);

    let bad = dir.save("models/bad.tenarc", &model());
    let (start, _) = tenarc::open(&bad).unwrap().segment(0).unwrap().buffers()[1];
    flip(&bad, start);
    let ran = run(&dir, &["verify", "models", "none"]);
    assert_eq!((ran.status, ran.out().lines().count()), (2, 3), "{ran:?}");
    assert!(ran.err.contains("none: No such file"), "{ran:?}");
    let ran = run(&dir, &["verify", "models", "--json", "-q"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    let good = |row: &serde_json::Value| row["good"].as_bool().unwrap();
    let found: Vec<bool> = ran.json().as_array().unwrap().iter().map(good).collect();
    assert_eq!(found, [true, false, true]);

    std::fs::create_dir(dir.file("empty")).unwrap();
    let ran = run(&dir, &["verify", "empty"]);
    ran.failed(2, "no file of a known format, among 0 files");
}

#[test]
fn hidden_files_of_a_directory_are_skipped_unless_named() {
    let dir = two_files();
    std::fs::create_dir_all(dir.file(".models/.cache")).unwrap();
    for to in [".models/a.tenarc", ".models/.b.tenarc", ".models/.cache/c.tenarc"] {
        std::fs::copy(dir.file("a.tenarc"), dir.file(to)).unwrap();
    }
    let lines = |args: &[&str]| run(&dir, args).good().lines().count();
    assert_eq!(lines(&["verify", ".models"]), 1);
    assert_eq!(lines(&["verify", ".models/.cache", ".models/.b.tenarc"]), 2);
}

/// An index that cannot be read hides no file.
#[test]
fn shards_are_verified_by_their_index() {
    let dir = two_files();
    std::fs::create_dir(dir.file("models")).unwrap();
    let convert = |to: &str, more: &[&str]| {
        run(&dir, &[&["convert", "a.tenarc", to], more].concat()).good();
    };
    convert("models/m.safetensors", &["--shard-size", "6"]);
    convert("models/whole.safetensors", &[]);
    let ran = run(&dir, &["verify", "models"]);
    let lines: Vec<&str> = ran.good().lines().collect();
    assert_eq!(lines.len(), 2, "{ran:?}");
    assert!(lines[0].starts_with("models/m.safetensors.index.json: good, 1 value, 9 B"), "{ran:?}");
    assert!(lines[1].starts_with("models/whole.safetensors: good"), "{ran:?}");
    std::fs::remove_file(dir.file("models/m-00002-of-00002.safetensors")).unwrap();
    let ran = run(&dir, &["verify", "models"]);
    assert!(ran.status > 0 && ran.err.contains("m-00002-of-00002.safetensors"), "{ran:?}");
    assert!(ran.out().contains("models/m-00001-of-00002.safetensors: good"), "{ran:?}");
}

/// A link to a directory that contains it would never end.
#[cfg(unix)]
#[test]
fn links_to_files_are_followed_but_not_those_to_directories() {
    let dir = two_files();
    std::fs::create_dir(dir.file("models")).unwrap();
    std::os::unix::fs::symlink("../a.tenarc", dir.file("models/a.tenarc")).unwrap();
    std::os::unix::fs::symlink("..", dir.file("models/up")).unwrap();
    let ran = run(&dir, &["verify", "models"]);
    assert!(ran.good().starts_with("models/a.tenarc: good") && ran.out().lines().count() == 1);
}
