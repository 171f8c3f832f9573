//! Files of other formats: listing them, converting them to archives and back.

use std::fs;
use std::path::PathBuf;

use crate::support::{Dir, model, run, run_with};
use tenarc_convert::{npy, safetensors, tenbin};

fn fixture(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../convert/tests/fixtures").join(path)
}

#[track_caller]
fn there_and_back(file: &str) {
    let dir = Dir::new();
    let from = fixture(file);
    let name = from.file_name().unwrap().to_str().unwrap().to_owned();
    fs::copy(&from, dir.file(&name)).unwrap();
    run(&dir, &["convert", &name, "a.tenarc"]).good();
    tenarc::open(dir.file("a.tenarc")).unwrap().verify().unwrap();
    let again = format!("again-{name}");
    run(&dir, &["convert", "a.tenarc", &again]).good();
    run(&dir, &["diff", &name, &again]).good();
    run(&dir, &["diff", &name, "a.tenarc"]).good();
    if !name.ends_with("npz") {
        assert_eq!(fs::read(dir.file(&again)).unwrap(), fs::read(&from).unwrap(), "{name}");
    }
    // The format is detected from the first bytes.
    let listed = run(&dir, &["ls", &name]).good().to_owned();
    fs::rename(dir.file(&name), dir.file("nameless")).unwrap();
    assert_eq!(run(&dir, &["ls", "nameless"]).good(), listed);
}

#[test]
fn files_become_archives_and_come_back() {
    there_and_back("safetensors/f32_2x3.safetensors");
    there_and_back("safetensors/metadata.safetensors");
    there_and_back("tenbin/many.ten");
    there_and_back("npy/plain.npz");
    there_and_back("npy/f4.npy");
    there_and_back("npy/f4_fortran.npy");
    // Other libraries write these in another layout, so they are first written by tenarc.
    for end in ["arrow", "arrows", "msgpack"] {
        let dir = Dir::new();
        fs::copy(fixture("safetensors/f32_2x3.safetensors"), dir.file("x.safetensors")).unwrap();
        let [first, second] = [format!("first.{end}"), format!("second.{end}")];
        run(&dir, &["convert", "x.safetensors", &first]).good();
        run(&dir, &["convert", &first, "x.tenarc"]).good();
        assert_eq!(run(&dir, &["diff", "x.safetensors", "x.tenarc"]).good(), "");
        run(&dir, &["convert", "x.tenarc", &second]).good();
        assert_eq!(fs::read(dir.file(&first)).unwrap(), fs::read(dir.file(&second)).unwrap());
    }
}

#[test]
fn losses_stop_a_conversion_unless_accepted() {
    let dir = Dir::new();
    tenarc::save(dir.file("a.tenarc"), &model()).unwrap();
    for (to, why) in [
        ("b.safetensors", "unless losses are accepted: use --lossy"),
        ("b.npz", "unless losses are accepted: use --lossy"),
        ("b.arrow", "unless losses are accepted: use --lossy"),
        ("b.ten", "unless losses are accepted: use --lossy"),
        ("b.npy", "an npy file holds exactly one tensor"),
    ] {
        run(&dir, &["convert", "a.tenarc", to]).failed(2, why);
        assert!(!dir.file(to).exists(), "{to}");
    }
    for to in ["b.safetensors", "b.npz", "b.arrow", "b.ten"] {
        let ran = run(&dir, &["convert", "a.tenarc", to, "--lossy"]);
        assert!(ran.err.contains("cannot be kept"), "{}", ran.err);
        assert!(dir.file(to).exists());
    }
    assert!(!safetensors::open(dir.file("b.safetensors")).unwrap().tensors().is_empty());
    assert!(npy::Npz::open(dir.file("b.npz")).unwrap().names().count() > 0);
}

#[test]
fn broken_files_are_refused() {
    let dir = Dir::new();
    for (file, command) in [
        ("safetensors/bad/hole.safetensors", "ls"),
        ("npy/bad/crc.npz", "stats"),
        ("tenbin/bad/neg_dim.ten", "ls"),
    ] {
        let from = fixture(file);
        let name = from.file_name().unwrap().to_str().unwrap().to_owned();
        fs::copy(&from, dir.file(&name)).unwrap();
        let ran = run(&dir, &[command, &name]);
        assert!(ran.status > 0 && ran.err.contains(&name), "{file}: {}", ran.err);
        assert_eq!(run(&dir, &["verify", &name]).status, 1, "{file}");
    }
}

#[test]
fn errors_name_the_broken_one_of_several_inputs() {
    let dir = Dir::new();
    for (from, to) in [("npy/plain.npz", "good.npz"), ("npy/bad/crc.npz", "bad.npz")] {
        fs::copy(fixture(from), dir.file(to)).unwrap();
    }
    for args in [
        &["merge", "good.npz", "bad.npz", "-o", "x.tenarc"][..],
        &["cat", "good.npz", "bad.npz", "-o", "x.tenarc"],
        &["diff", "bad.npz", "bad.npz"],
    ] {
        let ran = run(&dir, args);
        assert!(ran.status > 0 && ran.err.contains("bad.npz: "), "{args:?}: {ran:?}");
    }
    assert!(!dir.file("x.tenarc").exists());
    run(&dir, &["convert", "good.npz", "x.npy"]).failed(2, "use `tenarc get` to save one");
}

#[test]
fn raw_elements_of_numpy_get_a_dtype() {
    let dir = Dir::new();
    fs::copy(fixture("npy/void/mixed.npz"), dir.file("m.npz")).unwrap();
    run(&dir, &["convert", "m.npz", "m.safetensors"])
        .failed(2, "give their dtype with the option `void`");
    run(&dir, &["convert", "m.npz", "m.safetensors", "--void", "bf17"]).failed(2, "such as bf16");
    run(&dir, &["convert", "m.npz", "m.safetensors", "--void", "bf16", "--void", "f8_e4m3"]).good();
    let file = safetensors::open(dir.file("m.safetensors")).unwrap();
    let dtypes = file.tensors().iter().map(|tensor| tensor.dtype().to_string());
    assert_eq!(dtypes.collect::<Vec<_>>(), ["f32", "bf16", "f8_e4m3"]);
    let listed = run(&dir, &["ls", "m.npz", "--void", "bf16"]);
    assert!(listed.status == 0 && listed.err.contains("`fp8`"), "{listed:?}");
}

#[test]
fn models_are_written_in_shards() {
    let dir = Dir::new();
    let tensors: Vec<_> =
        (0..5u8).map(|n| (format!("l.{n}.w"), vec![f32::from(n); 1000])).collect();
    safetensors::save(dir.file("m.safetensors"), &tensors).unwrap();
    let convert = |to: &str, rest: &[&str]| {
        run(&dir, &[&["convert", "m.safetensors", to, "--quiet"], rest].concat())
    };
    // It fits in one file.
    convert("one.safetensors", &["--shard-size", "1MB"]).good();
    assert_eq!(
        fs::read(dir.file("m.safetensors")).unwrap(),
        fs::read(dir.file("one.safetensors")).unwrap()
    );
    convert("n.safetensors", &["--shard-size", "8KB"]).good();
    let written = |stem: &str| {
        let names = dir.names().into_iter().filter(|name| name.starts_with(stem));
        names.map(|name| name[stem.len()..].to_owned()).collect::<Vec<_>>()
    };
    let shards = [
        "-00001-of-00003.safetensors",
        "-00002-of-00003.safetensors",
        "-00003-of-00003.safetensors",
    ];
    assert_eq!(written("n"), [&shards[..], &[".safetensors.index.json"]].concat());
    run(&dir, &["diff", "m.safetensors", "n.safetensors.index.json"]).good();
    // A name of an index is enough; it is never replaced.
    convert("k.safetensors.index.json", &[]).good();
    assert_eq!(written("k"), ["-00001-of-00001.safetensors", ".safetensors.index.json"]);
    convert("k.safetensors.index.json", &[]).failed(2, "cannot create a model with the index");
    // Shards are kept, if that is asked for, and a file that would be read in place of them is no neighbour.
    fs::remove_file(dir.file("n.safetensors.index.json")).unwrap();
    convert("n.safetensors", &["--shard-size", "8KB", "--no-clobber"])
        .failed(2, "--no-clobber keeps it");
    convert("one.safetensors", &["--shard-size", "8KB"]).failed(2, "remove it first");
    assert_eq!(written("one"), [".safetensors"]);
    convert("x.npz", &["--shard-size", "8KB"]).failed(2, "--shard-size is only for safetensors");
    convert("-", &["--shard-size", "8KB", "--to", "safetensors"])
        .failed(2, "give a file name instead of -");
}

#[test]
fn models_become_gguf_and_come_back() {
    let dir = Dir::new();
    fs::copy(fixture("gguf/model.gguf"), dir.file("model.gguf")).unwrap();
    run(&dir, &["convert", "model.gguf", "model.tenarc"]).good();
    run(&dir, &["convert", "model.tenarc", "again.gguf"]).good();
    run(&dir, &["diff", "model.gguf", "again.gguf"]).good();
    // What GGUF does not have is named.
    dir.save("m.tenarc", &model());
    run(&dir, &["convert", "m.tenarc", "m.gguf"])
        .failed(2, "unless losses are accepted: use --lossy");
    assert!(!dir.file("m.gguf").exists());
    let lossy = run(&dir, &["convert", "m.tenarc", "m.gguf", "--lossy"]);
    assert_eq!(lossy.status, 0, "{lossy:?}");
}

#[test]
fn every_format_can_be_written_to_a_pipe() {
    let dir = Dir::new();
    let ten = tenbin::encode_buffer(&[("x", vec![1.5f32, 2.0])]).unwrap();
    let ran = run_with(&dir, &["convert", "-", "-", "--to", "safetensors"], &ten);
    let file = safetensors::SafeTensors::new(&ran.bytes[..]).unwrap();
    let x: ndarray::Array1<f32> = file.tensor("x").unwrap();
    assert_eq!(x.to_vec(), [1.5, 2.0]);
    let back = run_with(&dir, &["convert", "-", "-", "--to", "ten"], &ran.bytes);
    assert_eq!(back.bytes, ten);
}

/// A nested value stays what it is on the way through a flat format, or that is a loss.
#[test]
fn nested_values_come_back_from_flat_formats() {
    #[derive(serde::Serialize)]
    struct Layer<T> {
        w: T,
    }
    #[derive(serde::Serialize)]
    struct Nested<T> {
        layers: Vec<Layer<T>>,
        head: T,
    }
    let dir = Dir::new();
    let layer = || Layer { w: crate::support::ramp(&[3, 2]) };
    dir.save(
        "a.tenarc",
        &Nested { layers: vec![layer(), layer()], head: crate::support::ramp(&[3, 2]) },
    );
    for end in ["safetensors", "npz", "arrow", "arrows", "pt"] {
        let file = format!("a.{end}");
        run(&dir, &["convert", "a.tenarc", &file]).good();
        assert_eq!(run(&dir, &["diff", "a.tenarc", &file]).good(), "");
        run(&dir, &["convert", &file, "b.tenarc"]).good();
        assert_eq!(run(&dir, &["diff", "a.tenarc", "b.tenarc"]).good(), "");
        assert_eq!(run(&dir, &["get", &file, "layers.1.w[2]"]).good(), "4.0 5.0\n");
        // From one flat format to another, too.
        run(&dir, &["convert", &file, "c.npz"]).good();
        assert_eq!(run(&dir, &["diff", "a.tenarc", "c.npz"]).good(), "");
    }
    // A map with dots in its keys and maps inside does not come back.
    let inner = std::collections::BTreeMap::from([("b.c", crate::support::ramp(&[2]))]);
    dir.save("d.tenarc", &std::collections::BTreeMap::from([("a", inner)]));
    for end in ["safetensors", "npz", "arrow"] {
        run(&dir, &["convert", "d.tenarc", &format!("d.{end}")])
            .failed(2, "the nesting of the tensors is left out: a key has a dot");
    }
}

#[test]
fn tied_tensors_of_torch_are_stored_once() {
    let dir = Dir::new();
    fs::copy(fixture("torch/tied.pt"), dir.file("a.pt")).unwrap();
    run(&dir, &["convert", "a.pt", "a.tenarc"]).good();
    assert_eq!(run(&dir, &["diff", "a.pt", "a.tenarc"]).good(), "");
    // Of two tensors with 4 KiB each.
    let len = fs::metadata(dir.file("a.tenarc")).unwrap().len();
    assert!((4096..8192).contains(&len), "{len}");
}

/// The checksum of a storage of torch is not compared when a part of the storage is read.
#[test]
fn damage_beside_a_tensor_is_found_before_it_is_copied() {
    let dir = Dir::new();
    // The last byte of each storage of which a tensor is a part.
    for at in [1583, 1711] {
        let mut bytes = fs::read(fixture("torch/views.pt")).unwrap();
        bytes[at] ^= 1;
        fs::write(dir.file("a.pt"), bytes).unwrap();
        for to in ["b.tenarc", "b.cbor", "b.npz", "b.safetensors", "b.json", "b.msgpack"] {
            fs::write(dir.file(to), "before").unwrap();
            run(&dir, &["convert", "a.pt", to, "--lossy"]).failed(1, "the CRC-32 is");
            assert_eq!(fs::read(dir.file(to)).unwrap(), b"before");
        }
        for args in [
            &["merge", "a.pt", "-o", "b.tenarc"][..],
            &["cat", "a.pt", "-o", "b.tenarc"],
            &["edit", "a.pt", "-o", "b.tenarc"],
            &["split", "a.pt", "-d", "parts"],
        ] {
            run(&dir, args).failed(1, "the CRC-32 is");
        }
        assert_eq!(fs::read(dir.file("b.tenarc")).unwrap(), b"before");
        assert!(!dir.file("parts").exists());
    }
}

/// Tensors go from file to file: no temporary file is needed where the output can seek.
#[test]
fn tensors_are_written_once() {
    let dir = Dir::new();
    fs::copy(fixture("safetensors/f32_2x3.safetensors"), dir.file("a.safetensors")).unwrap();
    fs::copy(fixture("torch/state_dict.pt"), dir.file("a.pt")).unwrap();
    run(&dir, &["convert", "a.safetensors", "a.tenarc"]).good();
    run(&dir, &["convert", "a.safetensors", "a.npz"]).good();
    run(&dir, &["convert", "a.safetensors", "a.arrow"]).good();
    run(&dir, &["convert", "a.safetensors", "a.json"]).good();
    run(&dir, &["convert", "a.safetensors", "a.cbor"]).good();
    for from in ["a.safetensors", "a.tenarc", "a.npz", "a.arrow", "a.pt", "a.json", "a.cbor"] {
        let outputs =
            ["b.npz", "b.safetensors", "b.arrow", "b.tenarc", "b.json", "b.msgpack", "b.ten"];
        for to in outputs {
            // Its names are too long for tenbin.
            if from == "a.pt" && to == "b.ten" {
                continue;
            }
            let output = crate::support::command(&dir)
                .args(["convert", from, to])
                .env("TMPDIR", dir.file("none"))
                .output()
                .unwrap();
            assert!(output.status.success(), "{from} {to}: {output:?}");
            let ran = run(&dir, &["diff", from, to]);
            assert_eq!((ran.status, ran.out()), (0, ""), "{from} {to}");
        }
    }
    // A pipe cannot seek.
    for (to, file) in [("npz", "b.npz"), ("torch", "b.pt")] {
        let ran = run(&dir, &["convert", "a.safetensors", "-", "--to", to]);
        run(&dir, &["convert", "a.safetensors", file]).good();
        assert_eq!(ran.bytes, fs::read(dir.file(file)).unwrap());
    }
}

#[test]
fn tables_become_parquet_files_and_come_back() {
    let dir = Dir::new();
    fs::copy(fixture("parquet/structs.parquet"), dir.file("points.parquet")).unwrap();
    run(&dir, &["convert", "points.parquet", "points.tenarc"]).good();
    let archive = tenarc::open(dir.file("points.tenarc")).unwrap();
    assert_eq!((archive.len(), archive.table("points").unwrap().len()), (2, 4));
    run(&dir, &["diff", "points.parquet", "points.tenarc"]).good();
    run(&dir, &["convert", "points.tenarc", "again.parquet"]).good();
    run(&dir, &["diff", "again.parquet", "points.tenarc"]).good();
    let shown = run(&dir, &["show", "points.tenarc"]).good().to_owned();
    assert_eq!(run(&dir, &["show", "again.parquet"]).good(), shown);
    // The format is detected from the first bytes.
    fs::rename(dir.file("again.parquet"), dir.file("nameless")).unwrap();
    assert_eq!(run(&dir, &["show", "nameless"]).good(), shown);
    // From rows of another format.
    fs::write(dir.file("rows.json"), r#"[{"a": 1, "b": "x"}, {"a": 2, "b": null}]"#).unwrap();
    run(&dir, &["convert", "rows.json", "rows.parquet"]).good();
    let rows = run(&dir, &["convert", "rows.parquet", "--to", "json", "-"]).good().to_owned();
    assert_eq!(rows.trim(), r#"[{"a":1,"b":"x"},{"a":2,"b":null}]"#);
    // Decimals keep their type.
    fs::copy(fixture("parquet/decimals.parquet"), dir.file("d.parquet")).unwrap();
    run(&dir, &["convert", "d.parquet", "d.tenarc"]).good();
    run(&dir, &["convert", "d.tenarc", "e.parquet"]).good();
    run(&dir, &["diff", "d.parquet", "e.parquet"]).good();
    fs::copy(fixture("parquet/lost.parquet"), dir.file("l.parquet")).unwrap();
    let refused = run(&dir, &["convert", "l.parquet", "l.tenarc"]);
    refused.failed(2, "`view`");
    let lossy = run(&dir, &["convert", "--lossy", "l.parquet", "l.tenarc"]);
    assert_eq!((lossy.status, lossy.err.contains("`view`")), (0, true), "{lossy:?}");
    let ids = tenarc::open(dir.file("l.tenarc")).unwrap();
    assert_eq!(ids.table("l").unwrap().column::<Vec<u32>>("id").unwrap(), [1, 2]);
}

#[test]
fn tables_become_arrow_files_and_come_back() {
    let dir = Dir::new();
    fs::copy(fixture("arrow/table_zstd.arrow"), dir.file("rows.arrow")).unwrap();
    run(&dir, &["convert", "rows.arrow", "rows.tenarc"]).good();
    let archive = tenarc::open(dir.file("rows.tenarc")).unwrap();
    assert_eq!((archive.len(), archive.table("rows").unwrap().len()), (2, 4));
    let shown = run(&dir, &["show", "rows.tenarc"]).good().to_owned();
    for again in ["again.arrow", "again.arrows", "again.feather"] {
        run(&dir, &["convert", "rows.tenarc", again]).good();
        run(&dir, &["diff", again, "rows.tenarc"]).good();
        assert_eq!(run(&dir, &["show", again]).good(), shown);
        let start = fs::read(dir.file(again)).unwrap();
        assert_eq!(start.starts_with(b"ARROW1"), !again.ends_with("arrows"));
    }
    // Through Parquet.
    run(&dir, &["convert", "again.arrow", "rows.parquet"]).good();
    run(&dir, &["convert", "rows.parquet", "back.arrow"]).good();
    run(&dir, &["diff", "back.arrow", "rows.tenarc"]).good();
    // To a pipe, a stream is written.
    let ran = run(&dir, &["convert", "--to", "arrow", "rows.tenarc", "-"]);
    assert_eq!(ran.bytes, fs::read(dir.file("again.arrows")).unwrap());
    // From rows of another format. Tensors are not rows.
    fs::write(dir.file("rows.json"), r#"[{"a": 1, "b": "x"}, {"a": 2, "b": null}]"#).unwrap();
    run(&dir, &["convert", "rows.json", "json.arrow"]).good();
    let rows = run(&dir, &["convert", "json.arrow", "--to", "json", "-"]).good().to_owned();
    assert_eq!(rows.trim(), r#"[{"a":1,"b":"x"},{"a":2,"b":null}]"#);
    fs::copy(fixture("arrow/dtypes.arrow"), dir.file("dtypes.arrow")).unwrap();
    assert!(run(&dir, &["ls", "dtypes.arrow"]).good().contains("f16"));
    fs::copy(fixture("arrow/odd.arrow"), dir.file("odd.arrow")).unwrap();
    run(&dir, &["convert", "odd.arrow", "odd.tenarc"])
        .failed(2, "`runs`: an archive has no type for runs");
    let lossy = run(&dir, &["convert", "--lossy", "odd.arrow", "odd.tenarc"]);
    assert_eq!((lossy.status, lossy.err.contains("`runs`")), (0, true), "{lossy:?}");
}

/// Without the option, a file that has no mark of a table is one only on days with nulls.
#[test]
fn an_arrow_file_is_a_table_if_asked_for() {
    let dir = Dir::new();
    for day in ["plain", "nulls"] {
        let numbers: Vec<Option<i64>> =
            (0..40).map(|n| (day == "plain" || n != 7).then_some(n)).collect();
        let rows: Vec<_> = numbers.iter().map(|n| serde_json::json!({"n": n})).collect();
        fs::write(dir.file("rows.json"), serde_json::to_vec(&rows).unwrap()).unwrap();
        let name = format!("{day}.arrow");
        run(&dir, &["convert", "rows.json", &name]).good();
        let lists_table = |args: &[&str]| run(&dir, args).good().contains("columns");
        assert_eq!(lists_table(&["ls", &name]), day == "nulls", "{day}");
        assert!(lists_table(&["ls", "--table", &name]), "{day}");
        run(&dir, &["convert", "--table", &name, "t.tenarc"]).good();
        let archive = tenarc::open(dir.file("t.tenarc")).unwrap();
        let found: Vec<Option<i64>> = archive.table(day).unwrap().column("n").unwrap();
        assert_eq!(found, numbers);
    }
    run(&dir, &["convert", "rows.json", "rows.parquet"]).good();
    run(&dir, &["ls", "--table", "rows.parquet"]).good();
    run(&dir, &["ls", "--table=n", "rows.parquet"]).failed(
        2,
        "rows.parquet: the whole file is a table, of parquet: give --table without a path",
    );
    // What is a sequence of objects already becomes columns.
    assert!(run(&dir, &["ls", "--table", "rows.json"]).good().contains("columns"));
}

#[test]
fn names_are_taken_as_asked_for() {
    let dir = Dir::new();
    let tensors = [("layers.0.weight", vec![1.0f32]), ("layers.1.weight", vec![2.0])];
    safetensors::save(dir.file("x.safetensors"), &tensors).unwrap();
    for (names, keys) in [
        ("flat", &["layers.0.weight", "layers.1.weight"][..]),
        ("stored", &["layers.0.weight", "layers.1.weight"]),
        ("nested", &["layers"]),
    ] {
        run(&dir, &["convert", "x.safetensors", "a.tenarc", "--names", names]).good();
        let archive = tenarc::open(dir.file("a.tenarc")).unwrap();
        assert_eq!(archive.only().unwrap().keys("").unwrap(), keys, "{names}");
    }
    // From format to format, too; and a file that was nested stays so, unless it is to be flat.
    run(&dir, &["convert", "x.safetensors", "a.npz", "--names", "nested"]).good();
    for (names, keys) in [("stored", 1), ("flat", 2)] {
        run(&dir, &["convert", "a.npz", "a.tenarc", "--names", names]).good();
        let archive = tenarc::open(dir.file("a.tenarc")).unwrap();
        assert_eq!(archive.only().unwrap().keys("").unwrap().len(), keys, "{names}");
    }
    run(&dir, &["convert", "a.tenarc", "b.tenarc", "--names", "flat"])
        .failed(2, "--names is for files of named tensors");
    assert!(!dir.file("b.tenarc").exists());
}

#[test]
fn equal_tensors_are_stored_once_if_asked_for() {
    let dir = Dir::new();
    let tensors = [("a", vec![1.0f32; 5000]), ("b", vec![1.0; 5000]), ("c", vec![2.0; 5000])];
    safetensors::save(dir.file("x.safetensors"), &tensors).unwrap();
    let buffers = |name: &str| {
        let archive = tenarc::open(dir.file(name)).unwrap();
        archive.verify().unwrap();
        archive.only().unwrap().buffers().len()
    };
    run(&dir, &["convert", "x.safetensors", "a.tenarc"]).good();
    run(&dir, &["convert", "x.safetensors", "b.tenarc", "--dedup"]).good();
    // Of an archive, too.
    run(&dir, &["convert", "a.tenarc", "c.tenarc", "--dedup"]).good();
    assert_eq!(["a.tenarc", "b.tenarc", "c.tenarc"].map(buffers), [3, 2, 2]);
    run(&dir, &["diff", "a.tenarc", "c.tenarc"]).good();
    run(&dir, &["convert", "a.tenarc", "x.npz", "--dedup"]).failed(2, "only for archives");
}

/// In JSON, 1 is an integer, and 2.5 is not.
#[test]
fn integers_among_floats_become_floats() {
    let dir = Dir::new();
    let convert = |text: &str| {
        dir.write("a.json", text.as_bytes());
        run(&dir, &["convert", "a.json", "a.parquet"])
    };
    convert(r#"[{"a": 1, "l": [1, 2.5]}, {"a": 2.5, "l": []}, {"a": 3, "l": [4]}]"#).good();
    let rows = run(&dir, &["show", "a.parquet", "--json"]).json();
    let expected = r#"[{"a": 1.0, "l": [1.0, 2.5]}, {"a": 2.5, "l": []}, {"a": 3.0, "l": [4.0]}]"#;
    assert_eq!(rows, serde_json::from_str::<serde_json::Value>(expected).unwrap());
    // Without floats, they stay integers. An integer that no float holds is no float.
    convert(r#"[{"a": 1}, {"a": 3}]"#).good();
    let rows = run(&dir, &["show", "a.parquet", "--json"]).json();
    assert_eq!(rows, serde_json::json!([{"a": 1}, {"a": 3}]));
    let exact = 1u64 << 53;
    let refused = convert(&format!(r#"[{{"a": {}}}, {{"a": 2.5}}]"#, exact + 1));
    refused.failed(2, "rows of i64 and of f64 have no common type");
    convert(&format!(r#"[{{"a": {exact}}}, {{"a": 2.5}}]"#)).good();
}
