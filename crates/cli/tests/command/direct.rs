//! `edit`, `merge`, `cat` and `convert -e` write other formats than archives without a file between.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{Dir, Model, command, model, run};
use tenarc::{Tensor, Value};

/// The tensors of a model alone, which every format can hold.
fn tensors() -> Value {
    let Model { layers, curve, .. } = model();
    let whole = (layers, Tensor(curve));
    let Ok(Value::Array(parts)) = tenarc::to_value(&whole) else { panic!("expected an array") };
    let names = ["layers", "curve"].map(|name| Value::Text(name.into()));
    Value::Map(names.into_iter().zip(parts).collect())
}

/// Runs the program without a usable directory for temporary files.
fn directly(dir: &Dir, args: &[&str]) {
    let output = command(dir).args(args).env("TMPDIR", dir.file("none")).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{args:?} {output:?}");
}

/// `tensors()` in several formats, and compressed.
fn inputs(dir: &Dir) -> [&'static str; 6] {
    dir.save("a.tenarc", &tensors());
    for to in ["a.safetensors", "a.npz", "a.json", "a.cbor"] {
        run(dir, &["convert", "a.tenarc", to]).good();
    }
    run(dir, &["convert", "a.tenarc", "z.tenarc", "--compress", "zstd"]).good();
    ["a.tenarc", "z.tenarc", "a.safetensors", "a.npz", "a.json", "a.cbor"]
}

#[test]
fn a_changed_value_is_the_same_as_by_an_archive() {
    let dir = Dir::new();
    for input in inputs(&dir) {
        for change in [
            &["--drop", "*.bias"][..],
            &["--keep", "*.weight", "--cast", "*.0.weight=f64"],
            &["--rename", "curve=bend", "--cast", "*=f16"],
        ] {
            let edit = [&["edit", input], change].concat();
            run(&dir, &[&edit[..], &["-o", "b.tenarc"]].concat()).good();
            for end in ["npz", "safetensors", "arrow", "json", "msgpack", "pt", "cbor"] {
                let [direct, by_archive] = ["x", "y"].map(|stem| format!("{stem}.{end}"));
                directly(&dir, &[&edit[..], &["-o", &direct]].concat());
                run(&dir, &["convert", "b.tenarc", &by_archive]).good();
                let same = fs::read(dir.file(&direct)).unwrap()
                    == fs::read(dir.file(&by_archive)).unwrap();
                assert!(same, "{input} {change:?} {end}");
            }
        }
    }
}

#[test]
fn parts_are_merged_into_any_format() {
    let dir = Dir::new();
    for input in inputs(&dir) {
        let parts = [("p.tenarc", "curve"), ("q.npz", "*.weight"), ("r.json", "*.bias")];
        for (to, pattern) in parts {
            directly(&dir, &["convert", input, to, "-e", pattern]);
        }
        for part in ["p.tenarc", "q.npz", "r.json"] {
            let count = run(&dir, &["ls", "--json", part]).json().as_array().unwrap().len();
            assert_eq!(count, if part == "p.tenarc" { 1 } else { 2 }, "{input} {part}");
        }
        for to in ["m.npz", "m.safetensors", "m.arrow", "m.json", "m.msgpack", "m.cbor", "m.tenarc"]
        {
            directly(&dir, &["merge", "q.npz", "p.tenarc", "r.json", "-o", to]);
            let ran = run(&dir, &["diff", "a.tenarc", to]);
            assert_eq!((ran.status, ran.out()), (0, ""), "{input} {to}");
        }
    }
    // Positions in lists stay, and so do paths.
    directly(&dir, &["convert", "a.tenarc", "x.tenarc", "-e", "*.1.*"]);
    let listed = run(&dir, &["ls", "x.tenarc"]).good().to_owned();
    assert!(listed.contains("layers.1.weight") && listed.contains("layers.1.bias"), "{listed}");
    assert!(listed.ends_with("2 tensors, 2.5 KiB\n"), "{listed}");
    run(&dir, &["convert", "a.tenarc", "x.npz", "-e", "zz"])
        .failed(2, "a.tenarc: nothing matches \"zz\"");
    assert!(!dir.file("x.npz").exists());
}

#[test]
fn several_values_go_into_one_file() {
    let dir = Dir::new();
    let inputs = inputs(&dir);
    for end in ["json", "msgpack", "cbor"] {
        let all = [&["cat"], &inputs[..]].concat();
        run(&dir, &[&all[..], &["-o", "all.tenarc"]].concat()).good();
        let [direct, by_archive] = ["x", "y"].map(|stem| format!("{stem}.{end}"));
        directly(&dir, &[&all[..], &["-o", &direct]].concat());
        run(&dir, &["convert", "all.tenarc", &by_archive]).good();
        let ran = run(&dir, &["diff", &direct, &by_archive]);
        assert_eq!((ran.status, ran.out()), (0, ""), "{end}");
    }
}

/// Tensors inside of columns and tags have no single source. These values go through a temporary archive.
#[test]
fn values_with_columns_are_written_too() {
    #[derive(serde::Serialize)]
    struct Row {
        id: u32,
        note: String,
    }
    let dir = Dir::new();
    let rows: Vec<Row> = (0..500).map(|id| Row { id, note: format!("row {id}") }).collect();
    let entry = |name: &str, value| (Value::Text(name.into()), value);
    let tagged = Value::Tag(99, Box::new(tenarc::to_value(&crate::support::ramp(&[600])).unwrap()));
    dir.save("tag.tenarc", &Value::Map(vec![entry("t", tagged)]));
    let options = tenarc::archive::SaveOptions::default().with_columns(true);
    tenarc::archive::save_with(dir.file("log.tenarc"), &BTreeMap::from([("log", rows)]), options)
        .unwrap();
    for (from, to) in [("log.tenarc", "b.json"), ("log.tenarc", "b.cbor"), ("tag.tenarc", "b.cbor")]
    {
        run(&dir, &["edit", from, "-o", "b.tenarc", "--set", "x=1"]).good();
        run(&dir, &["edit", from, "-o", to, "--set", "x=1"]).good();
        let ran = run(&dir, &["diff", "b.tenarc", to]);
        assert_eq!((ran.status, ran.out()), (0, ""), "{from} {to}");
    }
}

#[test]
fn damage_is_found_while_a_changed_value_is_written() {
    let dir = Dir::new();
    let path = dir.save("a.tenarc", &tensors());
    let (start, _) = tenarc::open(&path).unwrap().segment(0).unwrap().buffers()[0];
    crate::support::flip(&path, start);
    for to in ["x.npz", "x.safetensors", "x.json", "x.cbor"] {
        for args in [
            &["edit", "a.tenarc", "--drop", "curve", "-o", to][..],
            &["convert", "a.tenarc", to, "-e", "*.0.weight"],
        ] {
            let ran = run(&dir, args);
            ran.failed(1, "checksum of buffer 0");
            assert!(ran.err.contains("a.tenarc: "), "{ran:?}");
        }
    }
    assert_eq!(dir.names(), ["a.tenarc"]);
}
