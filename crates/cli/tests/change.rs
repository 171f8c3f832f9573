//! `cat`, `split`, `merge`, `edit`, `convert`: commands that write files.
#![allow(missing_docs)]

mod support;

use std::path::Path;

use serde::Deserialize;
use support::{Dir, flat, model, ramp, run, run_with};
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
fn refuses_to_lose_anything_to_json() {
    let dir = Dir::new();
    let text = |text: &str| Value::Text(text.into());
    let inside = |value: Value| Value::Map(vec![(text("k"), Value::Array(vec![value]))]);
    let floats = Numbers::from(vec![1.0f64, f64::NAN, 1.0, 1.0]);
    let columns = DynTensor::new(DType::U8, &[2, 2], Order::F, vec![0; 4]).unwrap();
    for (value, what) in [
        (inside(Value::Bytes(vec![1])), "`k.0`: a byte string"),
        (inside(Value::F64(f64::NAN)), "`k.0`: NaN"),
        (inside(Value::Tag(99, Box::new(Value::Null))), "`k.0`: tag 99"),
        (inside(Value::Simple(23)), "`k.0`: simple value 23"),
        (inside(Value::Numbers(Box::new(floats))), "`k.0.1`: NaN"),
        (inside(Value::Tensor(Box::new(columns))), "`k.0`: the order"),
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
