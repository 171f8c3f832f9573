//! `cp`, `cat`, `split`, `merge`, `edit`, `convert`: commands that write files.

use std::path::Path;

use crate::support::{Dir, flat, model, ramp, run, run_with};
use serde::Deserialize;
use serde_json::json;
use tenarc::archive::SaveOptions;
use tenarc::tensor::Order;
use tenarc::value::Numbers;
use tenarc::{DType, DynTensor, Tensor, Value};

/// The paths that an archive lists.
fn paths(path: &Path) -> Vec<String> {
    let tensors = tenarc::open(path).unwrap().tensors().unwrap();
    tensors.iter().map(|tensor| tensor.path().to_owned()).collect()
}

fn value(path: &Path) -> Value {
    tenarc::load(path).unwrap()
}

#[test]
fn cat_writes_values_one_after_the_other() {
    let dir = Dir::new();
    let a = dir.save_all("a.tenarc", &[(Some("x"), &ramp(&[600])), (None, &ramp(&[2]))]);
    dir.write("b.cbor", &tenarc::to_vec(&("message", 1)).unwrap());
    assert_eq!(run(&dir, &["cat", "a.tenarc", "b.cbor", "-o", "c.tenarc"]).good(), "");
    let c = tenarc::open(dir.file("c.tenarc")).unwrap();
    c.verify().unwrap();
    assert_eq!((c.len(), c.segment(0).unwrap().name()), (3, Some("x")));
    assert_eq!(c.segment(2).unwrap().load::<(String, u8)>().unwrap(), ("message".into(), 1));
    let before = tenarc::open(&a).unwrap();
    let bytes = |archive: &tenarc::Archive<std::fs::File>| {
        archive.segment(0).unwrap().metadata().unwrap().to_vec()
    };
    assert_eq!(bytes(&c), bytes(&before), "as it was");
    let piped = run_with(&dir, &["cat", "-", "-o", "-"], &std::fs::read(&a).unwrap());
    assert_eq!(piped.bytes, std::fs::read(&a).unwrap());
    run(&dir, &["cat", "a.tenarc", "none", "-o", "a.tenarc"]).failed(2, "none");
    assert_eq!(tenarc::open(&a).unwrap().len(), 2, "what was there stays");
}

#[test]
fn cp_copies_bytes_and_verifies_archives() {
    let dir = Dir::new();
    let a = dir.save_all("a.tenarc", &[(Some("x"), &ramp(&[600])), (None, &ramp(&[2]))]);
    let json = dir.write("b.json", b"{\"a\": 1}");
    std::fs::create_dir(dir.file("copies")).unwrap();
    assert_eq!(run(&dir, &["cp", "a.tenarc", "b.json", "copies"]).good(), "");
    for (from, to) in [(&a, "copies/a.tenarc"), (&json, "copies/b.json")] {
        assert_eq!(std::fs::read(from).unwrap(), std::fs::read(dir.file(to)).unwrap());
    }
    run(&dir, &["cp", "b.json", "a.tenarc", "c"]).failed(2, "c: several files are copied");
    run(&dir, &["cp", "copies", "c"]).failed(2, "copies: is a directory");
    run(&dir, &["cp", "-", "copies/"]).failed(2, "standard input: has no name");
    run(&dir, &["cp", "--no-clobber", "b.json", "a.tenarc"]).failed(2, "--no-clobber");
    run(&dir, &["cp", "none", "c"]).failed(2, "none");

    let mut bytes = std::fs::read(&a).unwrap();
    let piped = run_with(&dir, &["cp", "-", "-"], &bytes);
    assert_eq!(piped.bytes, bytes);
    assert_eq!(run_with(&dir, &["cp", "-", "c.tenarc"], &bytes).good(), "");
    // A damaged archive replaces nothing.
    *bytes.iter_mut().rev().find(|byte| **byte == 0x44).unwrap() ^= 1;
    dir.write("bad.tenarc", &bytes);
    run(&dir, &["cp", "bad.tenarc", "c.tenarc"]).failed(1, "bad.tenarc: ");
    assert_eq!(std::fs::read(dir.file("c.tenarc")).unwrap(), std::fs::read(&a).unwrap());
    bytes.truncate(bytes.len() / 2);
    dir.write("cut.tenarc", &bytes);
    run(&dir, &["cp", "cut.tenarc", "d.tenarc"]).failed(1, "cut.tenarc: ");
    assert!(!dir.file("d.tenarc").exists());
}

#[test]
fn keeps_alignment_and_missing_checksums_of_what_it_copies() {
    let dir = Dir::new();
    let options = SaveOptions::default().with_alignment(4096).with_checksums(false);
    tenarc::archive::save_with(dir.file("a.tenarc"), &ramp(&[600]), options).unwrap();
    run(&dir, &["cat", "a.tenarc", "a.tenarc", "-o", "b.tenarc"]).good();
    let b = tenarc::open(dir.file("b.tenarc")).unwrap();
    b.verify().unwrap();
    assert_eq!((b.len(), b.segment(1).unwrap().alignment()), (2, 4096));
    assert_eq!(b.segment(1).unwrap().buffers()[0].0 % 4096, 0);
}

#[test]
fn splits_values_and_joins_them_again() {
    let dir = Dir::new();
    let a = dir.save_all("a.tenarc", &[(Some("x"), &ramp(&[600])), (None, &ramp(&[2]))]);
    let ran = run(&dir, &["split", "a.tenarc", "-d", "parts"]);
    assert_eq!(ran.good(), "parts/a-00001-of-00002.tenarc\nparts/a-00002-of-00002.tenarc\n");
    let parts: Vec<&str> = ran.good().lines().collect();
    run(&dir, &[&["cat"], &parts[..], &["-o", "b.tenarc"]].concat()).good();
    assert_eq!(std::fs::read(dir.file("b.tenarc")).unwrap(), std::fs::read(a).unwrap());
}

#[test]
fn spreads_tensors_over_shards_and_merges_them() {
    let dir = Dir::new();
    let a = dir.save_all("a.tenarc", &[(Some("net"), &model())]);
    let ran = run(&dir, &["split", "a.tenarc", "--max-size", "4 KiB", "--json"]);
    let shards: Vec<String> = serde_json::from_value(ran.json()).unwrap();
    assert_eq!(shards.len(), 3);
    // The first tensor is larger than the limit, and gets a shard of its own.
    assert_eq!(paths(&dir.path().join(&shards[0])), ["layers.0.weight"]);
    assert_eq!(
        paths(&dir.path().join(&shards[1])),
        ["layers.0.bias", "layers.1.weight", "layers.1.bias"]
    );
    assert_eq!(paths(&dir.path().join(&shards[2])), ["curve"]);
    // Each shard holds all metadata and can be read alone.
    assert_eq!(run(&dir, &["show", &shards[2], "version"]).good(), "3\n");
    assert_eq!(run(&dir, &["get", &shards[1], "layers.1.bias[3]"]).good(), "3.0\n");
    let mut args = vec!["merge", "-o", "b.tenarc"];
    args.extend(shards.iter().rev().map(String::as_str));
    run(&dir, &args).good();
    assert_eq!(run(&dir, &["diff", "a.tenarc", "b.tenarc"]).good(), "");
    assert_eq!(std::fs::read(dir.file("b.tenarc")).unwrap(), std::fs::read(a).unwrap());
}

#[test]
fn keeps_tied_tensors_in_one_shard_and_stored_once() {
    let dir = Dir::new();
    let options = SaveOptions::default().with_dedup(true);
    let tied = [ramp(&[600]), ramp(&[700]), ramp(&[600])];
    tenarc::archive::save_with(dir.file("a.tenarc"), &tied, options).unwrap();
    run(&dir, &["split", "a.tenarc", "--max-size", "2500"]).good();
    let shards = ["a-00001-of-00002.tenarc", "a-00002-of-00002.tenarc"];
    assert_eq!(paths(&dir.file(shards[0])), ["0", "2"]);
    run(&dir, &["merge", shards[0], shards[1], "-o", "b.tenarc"]).good();
    assert_eq!(
        std::fs::read(dir.file("b.tenarc")).unwrap(),
        std::fs::read(dir.file("a.tenarc")).unwrap()
    );
    run(&dir, &["edit", "a.tenarc", "-o", "c.tenarc", "--drop", "1"]).good();
    let c = tenarc::open(dir.file("c.tenarc")).unwrap();
    assert_eq!(c.segment(0).unwrap().buffers().len(), 1);
}

#[test]
fn merges_maps_and_refuses_contradictions() {
    let dir = Dir::new();
    let tensor = |byte| DynTensor::new(DType::U8, &[1], Order::C, vec![byte]).unwrap();
    dir.save("a.tenarc", &flat(&[("x.w", tensor(1)), ("y", tensor(2))]));
    dir.save("b.tenarc", &flat(&[("z", tensor(3)), ("y", tensor(2))]));
    dir.save("c.tenarc", &flat(&[("y", tensor(4))]));
    dir.save("d.tenarc", &[1, 2]);
    dir.save("e.tenarc", &[1, 2, 3]);
    run(&dir, &["merge", "a.tenarc", "b.tenarc", "-o", "m.tenarc"]).good();
    let expected = flat(&[("x.w", tensor(1)), ("y", tensor(2)), ("z", tensor(3))]);
    assert_eq!(value(&dir.file("m.tenarc")), expected);
    run(&dir, &["merge", "a.tenarc", "c.tenarc", "-o", "m.tenarc"])
        .failed(2, "a.tenarc and c.tenarc hold different values at \"y\"");
    run(&dir, &["merge", "d.tenarc", "e.tenarc", "-o", "m.tenarc"]).failed(2, "different values");
    run(&dir, &["merge", "d.tenarc", "a.tenarc", "-o", "m.tenarc"]).failed(2, "different values\n");
    assert_eq!(value(&dir.file("m.tenarc")), expected, "what was there stays");
}

#[test]
fn a_path_that_two_values_have_drops_neither() {
    let dir = Dir::new();
    dir.save("a.tenarc", &serde_json::json!({ "a": { "b": 1, "c": 2 }, "a.b": 3 }));
    run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--drop", "a.b"])
        .failed(2, "nothing matches \"a.b\"");
    run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--drop", "/a/b"]).good();
    let expected = "{\n  \"a\": {\n    \"c\": 2,\n  },\n  \"a.b\": 3,\n}\n";
    assert_eq!(run(&dir, &["show", "b.tenarc"]).good(), expected);
}

#[test]
fn a_new_key_needs_a_map_to_go_into() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    for (option, change) in [
        ("--set", "layers.5=1"),
        ("--set", "curve.x=1"),
        ("--set", "name.first=1"),
        ("--rename", "curve=layers.7"),
        ("--rename", "curve=rate.x"),
    ] {
        run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", option, change])
            .failed(2, "its parent is not a map");
    }
    let args =
        ["edit", "a.tenarc", "-o", "b.tenarc", "--set", "new={\"a\": 1}", "--set", "new.b=[2, 3]"];
    run(&dir, &args).good();
    assert_eq!(run(&dir, &["show", "b.tenarc", "new.b"]).good(), "[2, 3]\n");
    run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--set", "/curve.x=1"]).good();
    assert_eq!(run(&dir, &["show", "b.tenarc", "/curve.x"]).good(), "1\n");
}

#[test]
fn drops_keeps_casts_renames_and_sets() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    let args = [
        "edit",
        "a.tenarc",
        "-o",
        "b.tenarc",
        "--drop",
        "layers.0",
        "--cast",
        "*.weight=bf16",
        "--rename",
        "name=title",
        "--rename",
        "curve=history.curve",
        "--set",
        "version=4",
        "--set",
        "author={\"first\": \"A\", \"pages\": [1, 2.5]}",
        "--set",
        "note=plain text",
    ];
    assert_eq!(run(&dir, &args).good(), "");
    let expected = "\
{
  \"title\": \"small \\\"one\\\"\",
  \"version\": 4,
  \"rate\": 0.1,
  \"layers\": [
    {
      \"weight\": bf16 [10, 64]
        [[  0.   1.   2. …  61.  62.  63.]
         [ 64.  65.  66. … 125. 126. 127.]
         [128. 129. 130. … 189. 190. 191.]
         …
         [448. 448. 450. … 508. 510. 512.]
         [512. 512. 512. … 572. 576. 576.]
         [576. 576. 576. … 636. 640. 640.]],
      \"bias\": f32 [10] [0. 1. 2. 3. 4. 5. 6. 7. 8. 9.],
    },
  ],
  \"history\": {
    \"curve\": f64 [300] [  0.   1.   2. … 297. 298. 299.],
  },
  \"note\": \"plain text\",
  \"author\": {
    \"first\": \"A\",
    \"pages\": [1, 2.5],
  },
}
";
    assert_eq!(run(&dir, &["show", "b.tenarc"]).good(), expected);
    tenarc::open(dir.file("b.tenarc")).unwrap().verify().unwrap();
    run(&dir, &["edit", "-i", "b.tenarc", "--keep", "*.bias"]).good();
    assert_eq!(paths(&dir.file("b.tenarc")), ["layers.0.bias"]);
    run(&dir, &["edit", "-i", "b.tenarc", "--rename", "layers.0.bias=author.bias"]).good();
    assert_eq!(paths(&dir.file("b.tenarc")), ["author.bias"]);
    run(&dir, &["edit", "-i", "b.tenarc", "--rename", "/author/bias=/a.b~1c"]).good();
    assert_eq!(paths(&dir.file("b.tenarc")), ["a.b/c"]);
    assert_eq!(dir.names(), ["a.tenarc", "b.tenarc"]);
}

/// Names with dots stay names where the others have dots too, as in files of other formats.
#[test]
fn new_paths_make_steps() {
    let dir = Dir::new();
    dir.save("a.tenarc", &serde_json::json!({ "a": 1, "b": { "c": 2 } }));
    let show = |changes: &[&str]| {
        let args = [&["edit", "a.tenarc", "-o", "b.tenarc"], changes].concat();
        run(&dir, &args).good();
        run(&dir, &["show", "b.tenarc", "--json"]).json()
    };
    let expected = serde_json::json!({ "x": { "y": 1 }, "b": { "c": 2 } });
    assert_eq!(show(&["--rename", "a=x.y"]), expected);
    assert_eq!(show(&["--rename", "a=/x/y"]), expected);
    assert_eq!(show(&["--rename", "a=/x.y"]), serde_json::json!({ "x.y": 1, "b": { "c": 2 } }));
    let expected = serde_json::json!({ "a": 1, "b": { "c": 2, "d": { "e": 3 } } });
    assert_eq!(show(&["--set", "b.d.e=3"]), expected);
    assert_eq!(show(&["--set", "/b/d/e=3"]), expected);
    run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--set", "/a/x=3"])
        .failed(2, "its parent is not a map");
    dir.save("a.tenarc", &serde_json::json!({ "a.w": 1, "a.b": 2 }));
    let expected = serde_json::json!({ "b.w": 1, "a.b": 2, "c.d": 3 });
    assert_eq!(show(&["--rename", "a.w=b.w", "--set", "c.d=3"]), expected);
}

#[test]
fn converts_and_casts() {
    let dir = Dir::new();
    let tensor = |dtype: DType, len| DynTensor::new(dtype, &[2], Order::C, vec![0; len]).unwrap();
    let tensors = [
        ("layers.0.weight", tensor(DType::F32, 8)),
        ("layers.0.bias", tensor(DType::F64, 16)),
        ("curve", tensor(DType::I32, 8)),
    ];
    dir.save("a.tenarc", &flat(&tensors));
    let dtypes = |args: &[&str]| {
        run(&dir, &[&["convert", "a.tenarc", "b.safetensors"], args].concat()).good();
        let rows = run(&dir, &["ls", "--json", "--sort", "path", "b.safetensors"]).json();
        let row = |row: &serde_json::Value| {
            format!("{}: {}", row["path"].as_str().unwrap(), row["dtype"].as_str().unwrap())
        };
        rows.as_array().unwrap().iter().map(row).collect::<Vec<_>>().join(", ")
    };
    let plain = dtypes(&[]);
    assert_eq!(plain, "curve: i32, layers.0.bias: f64, layers.0.weight: f32");
    // All floats, and nothing else.
    assert_eq!(dtypes(&["--cast", "f16"]), plain.replace("f32", "f16").replace("f64", "f16"));
    let expected = plain.replace("weight: f32", "weight: bf16");
    assert_eq!(dtypes(&["--cast", "*.weight=bf16"]), expected);
    let refused = |args: &[&str], why| {
        let args = [&["convert", "a.tenarc", "c.safetensors"], args].concat();
        run(&dir, &args).failed(2, why);
    };
    refused(&["--cast", "no=f16"], "nothing matches \"no=f16\"");
    refused(&["--cast", "f61"], "unknown dtype \"f61\"");
    refused(&["--cast", "=f16"], "expected LEFT=RIGHT");
    refused(&["--cast", "f16", "-e", "*"], "cannot be used with");
}

#[test]
fn renames_by_patterns() {
    use serde_json::{Value, json};
    let dir = Dir::new();
    let renamed = |value: Value, change: &str| {
        dir.save("a.tenarc", &value);
        let args = ["edit", "a.tenarc", "-o", "b.tenarc", "--rename", change];
        run(&dir, &args).good();
        run(&dir, &["show", "b.tenarc", "--json"]).json()
    };
    // Names of tensors in one map, as in files of other formats.
    let flat = json!({ "model.h.0.w": 1, "model.h.1.w": 2, "model.ln": 3, "x": 4 });
    let found = renamed(flat.clone(), "model.*=*");
    assert_eq!(found, json!({ "h.0.w": 1, "h.1.w": 2, "ln": 3, "x": 4 }));
    let found = renamed(flat.clone(), "*h.*.w=*layers.*.weight");
    let expected =
        json!({ "model.layers.0.weight": 1, "model.layers.1.weight": 2, "model.ln": 3, "x": 4 });
    assert_eq!(found, expected);
    // Structs in structs: what is empty then is gone, and what was empty stays.
    let nested = json!({ "model": { "a": { "w": 1, "b": [2, 3] }, "none": {} }, "c": {} });
    let found = renamed(nested.clone(), "model.a.*=*");
    assert_eq!(found, json!({ "model": { "none": {} }, "c": {}, "w": 1, "b": [2, 3] }));
    let found = renamed(nested, "*.w=c.*/weight");
    let expected = json!({
        "model": { "a": { "b": [2, 3] }, "none": {} },
        "c": { "model": { "a/weight": 1 } },
    });
    assert_eq!(found, expected);
    // A name that has a `*` means itself.
    assert_eq!(renamed(json!({ "a*": 1, "ab": 2 }), "a*=c"), json!({ "c": 1, "ab": 2 }));
    dir.save("a.tenarc", &flat);
    for (change, why) in [
        ("model.*=a.*.*", "expected as many * in \"a.*.*\" as in \"model.*\""),
        ("model.h.*.w=same", "\"same\" exists already"),
        ("models.*=*", "nothing matches \"models.*\""),
    ] {
        run(&dir, &["edit", "a.tenarc", "-o", "c.tenarc", "--rename", change]).failed(2, why);
    }
}

#[test]
fn a_float_stays_one_of_its_width() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    for (text, diag) in [("0.2", "0.2_2"), ("2", "2.0_2"), ("1e300", "1e300_3"), ("\"a\"", "\"a\"")]
    {
        run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--set", &format!("rate={text}")]).good();
        let found = run(&dir, &["diag", "b.tenarc"]).good().to_owned();
        assert!(found.contains(&format!("\"rate\": {diag},")), "{text}: {found}");
    }
    dir.save("d.tenarc", &serde_json::json!({ "x": 0.5, "n": 1 }));
    for (set, diag) in [
        ("x=2", "\"x\": 2.0_3"),
        ("x=0.1", "\"x\": 0.1_3"),
        // A float of 64 bits would be another number.
        ("x=9007199254740993", "\"x\": 9007199254740993"),
        ("n=0.5", "\"n\": 0.5_3"),
        ("n=7", "\"n\": 7}"),
    ] {
        run(&dir, &["edit", "d.tenarc", "-o", "b.tenarc", "--set", set]).good();
        let found = run(&dir, &["diag", "b.tenarc"]).good().to_owned();
        assert!(found.contains(diag), "{set}: {found}");
    }
    run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--set", "new=0.2"]).good();
    assert!(run(&dir, &["diag", "b.tenarc"]).good().contains("\"new\": 0.2_3"));
}

#[test]
fn edits_the_numbers_of_plain_sequences() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    run(&dir, &["edit", "-i", "a.tenarc", "--cast", "curve=i16"]).good();
    let curve: Vec<i16> = tenarc::open(dir.file("a.tenarc")).unwrap().get("curve").unwrap();
    assert_eq!(curve, (0..300).collect::<Vec<_>>());
}

#[test]
fn refuses_edits_that_make_no_sense() {
    let dir = Dir::new();
    let path = dir.save("a.tenarc", &model());
    dir.write("a.cbor", &tenarc::to_vec(&1).unwrap());
    let before = std::fs::read(&path).unwrap();
    for (change, why) in [
        (["--drop", "nothing*"], "nothing matches \"nothing*\""),
        (["--keep", "nothing"], "nothing matches"),
        (["--rename", "no=yes"], "nothing matches \"no\""),
        (["--rename", "name=version"], "\"version\" exists already"),
        (["--rename", "layers=layers.0.x"], "cannot move \"layers\" into itself"),
        (["--rename", "name"], "expected LEFT=RIGHT"),
        (["--cast", "*.weight=f7"], "unknown dtype \"f7\""),
        (["--cast", "*.weight=f23"], "unknown dtype \"f23\"; did you mean `f32`?"),
        (["--cast", "*.weight=bf61"], "unknown dtype \"bf61\"; did you mean `bf16`?"),
        (["--cast", "*.weight=u8"], "u8 cannot hold the f32 256."),
        (["--drop", "["], "pattern"),
        (["--align", "3"], "alignment"),
        (["--set", "x={\"dtype\":\"u8\",\"shape\":[2],\"data\":[1]}"], "1 elements do not make"),
    ] {
        run(&dir, &["edit", "a.tenarc", "-i", change[0], change[1]]).failed(2, why);
    }
    run(&dir, &["edit", "a.cbor", "-i", "--set", "x=1"])
        .failed(2, "only archives can be edited in place");
    run(&dir, &["edit", "a.cbor", "-o", "b.tenarc", "--set", "x=1"])
        .failed(2, "its parent is not a map");
    run(&dir, &["edit", "a.tenarc", "--drop", "name"]).failed(2, "--output");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(dir.names(), ["a.cbor", "a.tenarc"]);
}

#[test]
fn copies_what_an_edit_does_not_affect() {
    let dir = Dir::new();
    let path = dir.save_all("a.tenarc", &[(Some("x"), &model()), (Some("y"), &model())]);
    run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "-s", "x", "--drop", "curve"]).good();
    let (a, b) = (tenarc::open(&path).unwrap(), tenarc::open(dir.file("b.tenarc")).unwrap());
    b.verify().unwrap();
    let metadata = |archive: &tenarc::Archive<std::fs::File>, number| {
        archive.segment(number).unwrap().metadata().unwrap().to_vec()
    };
    assert_ne!(metadata(&a, 0), metadata(&b, 0));
    assert_eq!(metadata(&a, 1), metadata(&b, 1));
    run(&dir, &["edit", "a.tenarc", "-o", "c.tenarc", "--set", "z=1"])
        .failed(2, "choose one with --segment");
    // A half float keeps its encoding. In an archive, a text in chunks gets a definite length.
    let odd = [0xa2, 0x61, b'a', 0xf9, 0x3c, 0x00, 0x61, b'b', 0x7f, 0x61, b'x', 0xff];
    dir.write("odd.cbor", &odd);
    run(&dir, &["edit", "odd.cbor", "-o", "odd.tenarc", "--set", "c=1"]).good();
    let ran = run(&dir, &["diag", "odd.tenarc"]);
    assert_eq!(ran.good(), "{\"a\": 1.0_1, \"b\": \"x\", \"c\": 1}\n");
    run(&dir, &["edit", "a.tenarc", "-o", "d.tenarc", "--align", "64"]).good();
    let d = tenarc::open(dir.file("d.tenarc")).unwrap();
    assert_eq!(d.segment(1).unwrap().alignment(), 64);
    assert_eq!(run(&dir, &["diff", "a.tenarc", "d.tenarc"]).good(), "");
}

#[test]
fn edits_the_target_of_a_symbolic_link() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("a.tenarc", dir.file("link.tenarc")).unwrap();
        run(&dir, &["edit", "-i", "link.tenarc", "--drop", "curve"]).good();
        assert!(dir.file("link.tenarc").symlink_metadata().unwrap().is_symlink());
        assert!(!paths(&dir.file("a.tenarc")).contains(&"curve".to_owned()));
    }
}

#[test]
fn converts_between_archives_messages_and_json() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    run(&dir, &["convert", "a.tenarc", "b.cbor"]).good();
    run(&dir, &["convert", "b.cbor", "c.tenarc"]).good();
    for name in ["b.cbor", "c.tenarc"] {
        assert_eq!(run(&dir, &["diff", "a.tenarc", name]).good(), "", "{name}");
        assert_eq!(run(&dir, &["ls", "a.tenarc"]).good(), run(&dir, &["ls", name]).good());
    }
    assert_eq!(
        std::fs::read(dir.file("a.tenarc")).unwrap(),
        std::fs::read(dir.file("c.tenarc")).unwrap()
    );
    run(&dir, &["convert", "a.tenarc", "d.json"]).good();
    run(&dir, &["convert", "d.json", "e.tenarc"]).good();
    assert_eq!(run(&dir, &["diff", "a.tenarc", "e.tenarc"]).good(), "");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(dir.file("d.json")).unwrap()).unwrap();
    assert_eq!(json["layers"][1]["bias"]["dtype"], "f32");
    assert_eq!(json["curve"][299], 299.0);
    let piped = run_with(&dir, &["convert", "-", "-", "--to", "cbor"], b"{\"a\": [1, null]}");
    assert_eq!(tenarc::diag::to_string(&piped.bytes).unwrap(), "{\"a\": [1, null]}");
    run(&dir, &["convert", "a.tenarc", "x.unknown"]).failed(2, "use --to");
}

#[test]
fn keeps_sequences_of_messages_in_order() {
    let dir = Dir::new();
    dir.write("a.json", b"{\"n\": 1}\n{\"n\": 2}\n");
    run(&dir, &["convert", "a.json", "a.tenarc"]).good();
    let archive = tenarc::open(dir.file("a.tenarc")).unwrap();
    assert_eq!(archive.segment(1).unwrap().get::<u8>("n").unwrap(), 2);
    run(&dir, &["convert", "a.tenarc", "b.json"]).good();
    assert_eq!(std::fs::read(dir.file("b.json")).unwrap(), b"{\"n\":1}\n{\"n\":2}\n");
    run(&dir, &["convert", "a.tenarc", "c.cbor", "-s", "1"]).good();
    assert_eq!(run(&dir, &["diag", "c.cbor"]).good(), "{\"n\": 2}\n");
}

#[test]
fn what_is_no_table_is_not_written_as_parquet() {
    let dir = Dir::new();
    let columns = |rows: usize| {
        Value::Map(vec![
            ("a".into(), Value::Tensor(Box::new(DynTensor::from(ndarray::Array1::<f32>::ones(3))))),
            (
                "b".into(),
                Value::Tensor(Box::new(DynTensor::from(ndarray::Array1::<i8>::zeros(rows)))),
            ),
        ])
    };
    dir.save("a.tenarc", &columns(3));
    let ran = run(&dir, &["convert", "a.tenarc", "a.parquet"]);
    ran.failed(
        2,
        "a Parquet file is one table of rows: expected a sequence, found map; --table=PATH takes",
    );
    run(&dir, &["convert", "--table", "a.tenarc", "b.parquet"]).good();
    assert!(run(&dir, &["show", "b.parquet"]).good().contains("\"b\": 0"));
    dir.save("rows.tenarc", &columns(5));
    run(&dir, &["convert", "--table", "rows.tenarc", "c.parquet"])
        .failed(2, "`a`: it has 3 rows, and the table has 5: it is left out");
    // A file of Arrow has columns. They are read as a table, because Parquet has nothing else.
    run(&dir, &["convert", "a.tenarc", "a.arrow"]).good();
    run(&dir, &["convert", "a.arrow", "a.parquet"]).good();
    assert!(run(&dir, &["show", "a.parquet"]).good().contains("\"b\": 0"));
}

#[test]
fn refuses_to_lose_anything_to_json() {
    let dir = Dir::new();
    let text = |text: &str| Value::Text(text.into());
    let inside = |value: Value| Value::Map(vec![(text("k"), Value::Array(vec![value]))]);
    let floats = Numbers::from(vec![1.0f64, f64::NAN, 1.0, 1.0]);
    for (value, what) in [
        (inside(Value::Bytes(vec![1])), "`k.0`: a byte string"),
        (inside(Value::F64(f64::NAN)), "`k.0`: NaN"),
        (inside(Value::Tag(99, Box::new(Value::Null))), "`k.0`: tag 99"),
        (inside(Value::Simple(23)), "`k.0`: simple value 23"),
        (inside(Value::Numbers(Box::new(floats))), "`k.0.1`: NaN"),
        (Value::Map(vec![(Value::Integer(1), Value::Null)]), "`1`: a key that is not text"),
    ] {
        dir.save("a.tenarc", &value);
        let ran = run(&dir, &["convert", "a.tenarc", "a.json"]);
        ran.failed(2, &format!("cannot be kept: {what}"));
        assert!(ran.err.ends_with("unless losses are accepted: use --lossy\n"), "{ran:?}");
        let ran = run(&dir, &["convert", "--lossy", "a.tenarc", "-", "--to", "json"]);
        assert!(ran.status == 0 && ran.err.contains(what), "{ran:?}");
        serde_json::from_str::<serde_json::Value>(ran.out()).unwrap();
    }
    assert_eq!(dir.names(), ["a.tenarc"]);
    // The order of elements in memory is a note.
    let columns = DynTensor::new(DType::U8, &[2, 2], Order::F, vec![0, 1, 2, 3]).unwrap();
    dir.save("a.tenarc", &Value::Tensor(Box::new(columns)));
    let ran = run(&dir, &["convert", "a.tenarc", "-", "--to", "json"]);
    assert!(ran.status == 0 && ran.err.contains("row-major order"), "{ran:?}");
    assert!(ran.out().contains("[0,2,1,3]"), "{ran:?}");
    // In a tensor's data, NaN and infinities are written as strings.
    dir.save("a.tenarc", &Tensor(vec![f32::NAN, f32::NEG_INFINITY, 0.1]));
    run(&dir, &["convert", "a.tenarc", "a.json"]).good();
    run(&dir, &["convert", "a.json", "b.tenarc"]).good();
    let back: Tensor<Vec<f32>> = tenarc::load(dir.file("b.tenarc")).unwrap();
    assert!(back[0].is_nan() && back[1..] == [f32::NEG_INFINITY, 0.1]);
    // An f32 is the same again after the way through JSON, whose numbers are doubles.
    dir.save("a.tenarc", &(0.1f32, vec![0.1f32; 100], u128::MAX >> 1));
    run(&dir, &["convert", "a.tenarc", "a.json"]).good();
    run(&dir, &["convert", "a.json", "b.tenarc"]).good();
    let back: (f32, Vec<f32>, u128) = tenarc::load(dir.file("b.tenarc")).unwrap();
    assert_eq!(back, (0.1, vec![0.1; 100], u128::MAX >> 1));
}

#[test]
fn reads_json_as_it_is() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Config {
        rate: f32,
        seed: u64,
        dtype: String,
    }
    let dir = Dir::new();
    dir.write("a.json", b" { \"rate\": 0.5, \"seed\": 18446744073709551615, \"dtype\": \"f32\" } ");
    run(&dir, &["convert", "a.json", "a.tenarc"]).good();
    let config: Config = tenarc::load(dir.file("a.tenarc")).unwrap();
    assert_eq!(config, Config { rate: 0.5, seed: u64::MAX, dtype: "f32".into() });
    for (json, why) in [
        (&b"{\"a\": "[..], "input ended, expected a JSON value at `a` (byte 6)"),
        (
            b"{\"dtype\": \"u8\", \"shape\": [2], \"data\": [1]}",
            "1 elements do not make a u8 tensor of shape [2]",
        ),
        (b"{\"dtype\": \"u8\", \"shape\": [1], \"data\": [256]}", "256"),
    ] {
        dir.write("b.json", json);
        run(&dir, &["convert", "b.json", "b.tenarc"]).failed(2, why);
    }
}

/// A tensor of numbers that f32, f16 and bf16 hold exactly.
fn floats(dtype: &DType, shape: &[usize], numbers: &[f32]) -> DynTensor {
    let bytes = numbers.iter().flat_map(|&number| match dtype {
        DType::F16 => half::f16::from_f32(number).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f32(number).to_le_bytes().to_vec(),
        _ => number.to_le_bytes().to_vec(),
    });
    DynTensor::new(dtype.clone(), shape, Order::C, bytes.collect::<Vec<u8>>()).unwrap()
}

/// Numbers that are different in each place, and whose products and sums are exact in f32.
fn exact(count: usize, step: usize) -> Vec<f32> {
    (0..count).map(|at| f32::from(u8::try_from(at * step % 23).unwrap()) - 11.0).collect()
}

/// B · A, by the definition.
fn product(b: &[f32], a: &[f32], rank: usize) -> Vec<Vec<f32>> {
    let columns = a.len() / rank;
    let at = |row: &[f32], column: usize| {
        row.iter().enumerate().map(|(k, b)| b * a[k * columns + column]).sum()
    };
    b.chunks(rank).map(|row| (0..columns).map(|column| at(row, column)).collect()).collect()
}

fn adapter(dir: &Dir, name: &str, config: &serde_json::Value, tensors: &[(&str, DynTensor)]) {
    std::fs::create_dir_all(dir.file(name)).unwrap();
    dir.write(&format!("{name}/adapter_config.json"), config.to_string().as_bytes());
    let tensors: Vec<_> = tensors
        .iter()
        .map(|(tensor, numbers)| (format!("base_model.model.{tensor}"), numbers.clone()))
        .collect();
    let file = dir.file(&format!("{name}/adapter_model.safetensors"));
    tenarc_convert::safetensors::save(file, &tensors).unwrap();
}

#[test]
fn merge_adds_lora_matrices_to_weights() {
    let dir = Dir::new();
    // Blocks of a file end inside of rows of this length.
    let (rows, columns) = (5, 40_001);
    let weight = exact(rows * columns, 7);
    let names = ["layers.0.q.weight", "layers.0.k.weight", "layers.1.q.weight", "emb.weight"];
    let base = [
        (names[0], floats(&DType::F32, &[rows, columns], &weight)),
        (names[1], floats(&DType::BF16, &[2, 3], &exact(6, 3))),
        (names[2], floats(&DType::F16, &[3, 2], &exact(6, 5))),
        (names[3], floats(&DType::F32, &[4, 3], &exact(12, 5))),
        ("head.weight", floats(&DType::BF16, &[2], &[1.0, 2.0])),
        ("other", floats(&DType::F32, &[2], &[1.5, 2.5])),
    ];
    let config = json!({
        "peft_type": "LORA", "r": 2, "lora_alpha": 4, "use_dora": false, "target_modules": ["q"],
        "rank_pattern": {"layers.0.k": 1}, "alpha_pattern": {"^layers.1.(q|k)": 1.0, "k": 0.5},
    });
    let (a, b) = (exact(2 * columns, 3), exact(rows * 2, 5));
    let (ka, kb) = (exact(3, 2), exact(2, 9));
    let (qa, qb) = (exact(4, 2), exact(6, 9));
    let (ea, eb) = (exact(8, 2), exact(6, 9));
    adapter(
        &dir,
        "lora",
        &config,
        &[
            ("layers.0.q.lora_A.weight", floats(&DType::F32, &[2, columns], &a)),
            ("layers.0.q.lora_B.weight", floats(&DType::F32, &[rows, 2], &b)),
            ("layers.0.k.lora_A.weight", floats(&DType::BF16, &[1, 3], &ka)),
            ("layers.0.k.lora_B.weight", floats(&DType::BF16, &[2, 1], &kb)),
            ("layers.1.q.lora_A.weight", floats(&DType::F16, &[2, 2], &qa)),
            ("layers.1.q.lora_B.weight", floats(&DType::F16, &[3, 2], &qb)),
            ("emb.lora_embedding_A", floats(&DType::F32, &[2, 4], &ea)),
            ("emb.lora_embedding_B", floats(&DType::F32, &[3, 2], &eb)),
            ("head.weight", floats(&DType::F32, &[2], &[3.0, 4.0])),
        ],
    );
    let sum = |weight: &[f32], product: &[Vec<f32>], scale: f32| -> Vec<f32> {
        weight.iter().zip(product.iter().flatten()).map(|(w, delta)| w + scale * delta).collect()
    };
    let embedded = product(&eb, &ea, 2);
    let embedded: Vec<Vec<f32>> =
        (0..4).map(|row| embedded.iter().map(|column| column[row]).collect()).collect();
    let expected = [
        sum(&weight, &product(&b, &a, 2), 2.0),
        sum(&exact(6, 3), &product(&kb, &ka, 1), 0.5),
        sum(&exact(6, 5), &product(&qb, &qa, 2), 0.5),
        sum(&exact(12, 5), &embedded, 2.0),
    ];
    tenarc_convert::safetensors::save(dir.file("base.safetensors"), &base).unwrap();
    // A nested base, with a tensor in another order.
    let by_columns = |tensor: &DynTensor| {
        let bytes = tensor.le_bytes();
        let at = |column: usize| (0..rows).flat_map(move |row| [(row * columns + column) * 4]);
        let bytes = (0..columns).flat_map(at).flat_map(|at| bytes[at..at + 4].to_vec());
        let bytes: Vec<u8> = bytes.collect();
        DynTensor::new(DType::F32, &[rows, columns], Order::F, bytes).unwrap()
    };
    let mut reordered = base.clone();
    reordered[0].1 = by_columns(&base[0].1);
    dir.save("flat.tenarc", &flat(&reordered));
    run(&dir, &["convert", "base.safetensors", "base.tenarc", "--names", "nested"]).good();
    for (from, to) in [
        ("base.safetensors", "m.safetensors"),
        ("base.safetensors", "m.tenarc"),
        ("base.tenarc", "m.tenarc"),
        ("base.tenarc", "m.npz"),
        ("flat.tenarc", "m.tenarc"),
    ] {
        let ran = run(&dir, &["merge", from, "--lora", "lora", "-o", to]);
        if to == "m.npz" {
            // It has no bf16.
            ran.failed(2, "bf16");
            continue;
        }
        assert_eq!(ran.good(), "", "{from}");
        for (name, expected) in names.iter().zip(&expected) {
            let found = run(&dir, &["get", to, name, "--json"]).json();
            let is_of = |(base, tensor): &(&str, DynTensor)| {
                base == name && found["dtype"] == tensor.dtype().name()
            };
            assert!(base.iter().any(is_of), "{from} {to} {name}");
            let found = found["data"].to_string();
            let found: Vec<f32> =
                found.split(['[', ']', ',']).filter_map(|number| number.parse().ok()).collect();
            assert!(found == *expected, "{from} {to} {name}: {:?}", found.get(..6));
        }
        assert_eq!(run(&dir, &["get", to, "head.weight"]).good(), "3.0 4.0\n");
        assert_eq!(run(&dir, &["get", to, "other"]).good(), "1.5 2.5\n");
    }
    let file = "lora/adapter_model.safetensors";
    run(&dir, &["merge", "flat.tenarc", "--lora", file, "-o", "n.tenarc"]).good();
    run(&dir, &["diff", "m.tenarc", "n.tenarc"]).good();
}

/// PEFT writes files without the name of the adapter. The `state_dict` of a model has it.
#[test]
fn merge_takes_the_names_of_a_state_dict() {
    let dir = Dir::new();
    let config = json!({"peft_type": "LORA", "r": 1, "lora_alpha": 1});
    let base = [
        ("q.weight", floats(&DType::F32, &[1, 2], &[1.0, 2.0])),
        ("e.weight", floats(&DType::F32, &[2, 1], &[1.0, 2.0])),
        ("head.weight", floats(&DType::F32, &[1], &[0.0])),
    ];
    tenarc_convert::safetensors::save(dir.file("base.safetensors"), &base).unwrap();
    let [a, b, one] = [(&[1, 2], [4.0, 8.0]), (&[1, 2], [16.0, 32.0]), (&[1, 1], [1.0, 0.0])]
        .map(|(shape, numbers)| floats(&DType::F32, shape, &numbers[..shape[1]]));
    let saved = floats(&DType::F32, &[1], &[7.0]);
    let named = |name: &str, other: &str| {
        let names = [
            format!("q.lora_A{name}.weight"),
            format!("q.lora_B{other}.weight"),
            format!("e.lora_embedding_A{name}"),
            format!("e.lora_embedding_B{name}"),
            if name.is_empty() {
                "head.weight".into()
            } else {
                format!("head.modules_to_save{name}.weight")
            },
        ];
        let tensors = [&a, &one, &b, &one, &saved];
        let tensors: Vec<_> =
            names.iter().map(String::as_str).zip(tensors.map(Clone::clone)).collect();
        adapter(&dir, "lora", &config, &tensors);
        run(&dir, &["merge", "base.safetensors", "--lora", "lora", "-o", "m.safetensors"])
    };
    for name in ["", ".default", ".my_lora"] {
        assert_eq!(named(name, name).good(), "", "{name}");
        assert_eq!(run(&dir, &["get", "m.safetensors", "q.weight"]).good(), "5.0 10.0\n");
        assert_eq!(run(&dir, &["get", "m.safetensors", "e.weight"]).good(), "17.0\n34.0\n");
        assert_eq!(run(&dir, &["get", "m.safetensors", "head.weight"]).good(), "7.0\n");
    }
    named(".one", ".two").failed(2, "several adapters, \"one\" and \"two\"");
    named(".a.b", ".a.b").failed(2, "not supported");
}

#[test]
fn merge_rounds_the_sum_once() {
    let dir = Dir::new();
    let config = |more: serde_json::Value| {
        let mut config = json!({"peft_type": "LORA", "r": 4, "lora_alpha": 4, "bias": "none"});
        config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        config
    };
    let (half, tiny) = (f32::powi(2.0, -8), f32::powi(2.0, -20));
    let base = [("w.weight", floats(&DType::BF16, &[1, 2], &[1.0, 1.0]))];
    tenarc_convert::safetensors::save(dir.file("base.safetensors"), &base).unwrap();
    let factors = [
        // The first product is in the middle of two bf16; with the second one, the sum is above it.
        ("w.lora_A.weight", floats(&DType::F32, &[4, 2], &[half, half, tiny, 0., 0., 0., 0., 0.])),
        ("w.lora_B.weight", floats(&DType::F32, &[1, 4], &[1.0; 4])),
    ];
    adapter(&dir, "once", &config(json!({})), &factors);
    run(&dir, &["merge", "base.safetensors", "--lora", "once", "-o", "once.safetensors"]).good();
    assert_eq!(run(&dir, &["get", "once.safetensors", "w.weight"]).good(), "1.0078125 1.0\n");
    // alpha / sqrt(r), and weights with exchanged axes.
    let transposed = [
        ("w.lora_A.weight", floats(&DType::F32, &[4, 1], &[8.0, 0., 0., 0.])),
        ("w.lora_B.weight", floats(&DType::F32, &[2, 4], &[1., 0., 0., 0., 2., 0., 0., 0.])),
    ];
    let more = json!({"use_rslora": true, "fan_in_fan_out": true, "rank_pattern": null});
    adapter(&dir, "rs", &config(more), &transposed);
    run(&dir, &["merge", "base.safetensors", "--lora", "rs", "-o", "rs.safetensors"]).good();
    assert_eq!(run(&dir, &["get", "rs.safetensors", "w.weight"]).good(), "17.0 33.0\n");
}

#[test]
fn merge_refuses_what_it_does_not_add() {
    let dir = Dir::new();
    let base = [
        ("model.q_proj.weight", floats(&DType::F32, &[2, 3], &exact(6, 3))),
        ("conv.weight", floats(&DType::F32, &[2, 3, 1, 1], &exact(6, 3))),
        ("packed.weight", DynTensor::new(DType::U8, &[2, 3], Order::C, vec![0; 6]).unwrap()),
    ];
    tenarc_convert::safetensors::save(dir.file("base.safetensors"), &base).unwrap();
    let lora = json!({"peft_type": "LORA", "r": 1, "lora_alpha": 1});
    let with = |name: &str, value: serde_json::Value| {
        let mut config = lora.clone();
        config[name] = value;
        config
    };
    let pair = |module: &str| {
        let name = |matrix: &str| format!("{module}.lora_{matrix}.weight");
        vec![
            (name("A"), floats(&DType::F32, &[1, 3], &exact(3, 3))),
            (name("B"), floats(&DType::F32, &[2, 1], &exact(2, 3))),
        ]
    };
    let refused = |config: &serde_json::Value, tensors: &[(String, DynTensor)], why: &[&str]| {
        let tensors: Vec<_> = tensors.iter().map(|(name, of)| (&**name, of.clone())).collect();
        adapter(&dir, "lora", config, &tensors);
        let ran =
            run(&dir, &["merge", "base.safetensors", "--lora", "lora", "-o", "m.safetensors"]);
        for why in why {
            ran.failed(2, why);
        }
        assert!(!dir.file("m.safetensors").exists());
    };
    let name = "base_model.model.model.k_proj.lora_A.weight";
    let near = ["`model.k_proj.weight`", name, "model.q_proj.weight"];
    refused(&lora, &pair("model.k_proj"), &near);
    let wide = floats(&DType::F32, &[1, 4], &exact(4, 3));
    let mut wrong = pair("model.q_proj");
    wrong[0].1 = wide;
    refused(&lora, &wrong, &["1 × 4", "[2, 3]"]);
    refused(&lora, &pair("conv"), &["conv", "[2, 3, 1, 1]"]);
    refused(&lora, &pair("packed"), &["packed", "u8 [2, 3]"]);
    refused(&lora, &pair("model.q_proj")[..1], &["no matrix B"]);
    refused(&with("r", json!(2)), &pair("model.q_proj"), &["rank 2, found matrices of rank 1"]);
    refused(&with("use_dora", json!(true)), &pair("model.q_proj"), &["use_dora"]);
    refused(&with("peft_type", json!("LOHA")), &pair("model.q_proj"), &["\"LOHA\""]);
    refused(&with("alpha_pattern", json!({"(": 1})), &pair("model.q_proj"), &["\"(\""]);
    let mut dora = pair("model.q_proj");
    let magnitude = "model.q_proj.lora_magnitude_vector";
    dora.push((magnitude.into(), floats(&DType::F32, &[2], &[1., 2.])));
    refused(&lora, &dora, &[magnitude, "not supported"]);
    let mut bias = pair("model.q_proj");
    bias.push(("model.q_proj.lora_B.bias".into(), floats(&DType::F32, &[2], &[1., 2.])));
    refused(&lora, &bias, &["lora_B.bias"]);
    let mut whole = pair("model.q_proj");
    whole.push(("model.q_proj.weight".into(), floats(&DType::F32, &[2, 3], &exact(6, 3))));
    refused(&lora, &whole, &["the same weight"]);
    whole[2].1 = floats(&DType::F32, &[3, 2], &exact(6, 3));
    refused(&lora, &whole, &["f32 [3, 2]"]);
    refused(&lora, &[], &["no matrices"]);
    let two = ["merge", "base.safetensors", "base.safetensors", "--lora", "lora", "-o", "m.tenarc"];
    run(&dir, &two).failed(2, "--lora is for one input");
}
