//! Compressed archives: they are written, listed, checked, compared and edited.

use std::path::Path;

use crate::support::{Dir, command, flip, run};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tenarc::archive::{Compression, SaveOptions};
use tenarc::io::SyncLevel;
use tenarc::{Tensor, Value};

/// Floats whose lowest bits are noise.
fn weights(len: usize, seed: u32) -> Tensor<Vec<f32>> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f32::from_bits(0x3f80_0000 | state >> 9)
    };
    Tensor(std::iter::repeat_with(&mut next).take(len).collect())
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Model {
    name: String,
    weight: Tensor<Vec<f32>>,
    zeros: Tensor<Vec<i64>>,
    small: Tensor<Vec<f32>>,
    rows: Vec<Row>,
    curve: Vec<f64>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Row {
    id: u32,
    text: String,
}

fn model() -> Model {
    Model {
        name: "compressed".into(),
        weight: weights(50_000, 1),
        zeros: Tensor(vec![0; 20_000]),
        small: weights(8, 2),
        rows: (0..2000).map(|id| Row { id, text: format!("row {id}") }).collect(),
        curve: (0..1000).map(|n| f64::from(n) / 4.0).collect(),
    }
}

fn options(compression: Compression) -> SaveOptions {
    SaveOptions::default().with_sync(SyncLevel::Off).with_compression(compression)
}

/// Small chunks, so that tensors have several.
fn save(dir: &Dir, name: &str, compression: Compression) {
    let options = options(compression).with_chunk_len(64 << 10);
    tenarc::archive::save_with(dir.file(name), &model(), options).unwrap();
}

/// The codec and the stored bytes of each tensor and column in the only value, by path.
fn stored(path: &Path) -> Vec<(String, Option<(String, u64)>)> {
    let archive = tenarc::open(path).unwrap();
    archive.verify().unwrap();
    let segment = archive.only().unwrap();
    let of = |info: tenarc::tensor::TensorInfo| {
        let number = info.buffer().and_then(|number| usize::try_from(number).ok());
        let how = number.and_then(|number| segment.compressed(number));
        let how = how.map(|how| (how.codec().to_owned(), how.stored_len()));
        (info.path().to_owned(), how)
    };
    segment.tensors().unwrap().into_iter().map(of).collect()
}

fn codecs(path: &Path) -> Vec<Option<String>> {
    stored(path).into_iter().map(|(_, how)| how.map(|(codec, _)| codec)).collect()
}

#[test]
fn convert_compresses_and_decompresses() {
    let dir = Dir::new();
    dir.save("m.tenarc", &model());
    dir.write("m.cbor", &tenarc::to_vec(&model()).unwrap());
    for input in ["m.cbor", "m.tenarc"] {
        for codec in ["zstd", "lz4", "zstd:0"] {
            let ran = run(&dir, &["convert", input, "c.tenarc", "--compress", codec]);
            assert_eq!(ran.good(), "");
            let name = codec.trim_end_matches(":0");
            assert!(codecs(&dir.file("c.tenarc")).contains(&Some(name.into())), "{codec}");
            assert_eq!(run(&dir, &["diff", input, "c.tenarc"]).good(), "");
            assert_eq!(tenarc::load::<Model>(dir.file("c.tenarc")).unwrap(), model());
        }
    }
    let smaller = std::fs::metadata(dir.file("c.tenarc")).unwrap().len();
    assert!(smaller < std::fs::metadata(dir.file("m.tenarc")).unwrap().len());
    run(&dir, &["convert", "c.tenarc", "plain.tenarc", "--compress", "none"]).good();
    assert!(codecs(&dir.file("plain.tenarc")).iter().all(Option::is_none));
    let [plain, before] =
        ["plain.tenarc", "m.tenarc"].map(|name| std::fs::read(dir.file(name)).unwrap());
    assert!(plain == before);
    // Without the option, an archive stays as it is.
    run(&dir, &["convert", "c.tenarc", "same.tenarc"]).good();
    assert_eq!(stored(&dir.file("same.tenarc")), stored(&dir.file("c.tenarc")));
}

#[test]
fn wrong_codecs_and_formats_are_refused() {
    let dir = Dir::new();
    save(&dir, "m.tenarc", Compression::zstd());
    for (codec, why) in [
        ("gzip", "expected zstd, zstd:LEVEL, lz4 or none"),
        ("zstd:fast", "expected a number as the level"),
        ("", "expected zstd"),
    ] {
        run(&dir, &["convert", "m.tenarc", "x.tenarc", "--compress", codec]).failed(2, why);
    }
    for (output, format) in [("x.cbor", "cbor"), ("x.npz", "npz"), ("x.json", "json")] {
        let why =
            format!("--compress is only for archives, and the output is of the format {format}");
        run(&dir, &["convert", "m.tenarc", output, "--compress", "lz4"]).failed(2, &why);
    }
    if cfg!(not(feature = "zstd")) {
        let ran = run(&dir, &["convert", "m.tenarc", "x.tenarc", "--compress", "zstd:400"]);
        assert_eq!(ran.status, 2, "{ran:?}");
    }
    assert_eq!(dir.names(), ["m.tenarc"]);
}

#[test]
fn lists_stored_bytes_and_codecs() {
    let dir = Dir::new();
    save(&dir, "z.tenarc", Compression::zstd());
    let ran = run(&dir, &["ls", "z.tenarc"]);
    let lines: Vec<&str> = ran.good().lines().collect();
    let words = |line: usize| lines[line].split_whitespace().collect::<Vec<_>>();
    assert_eq!(words(0), ["path", "dtype", "shape", "bytes", "stored", "codec"]);
    let of = |path: &str| {
        let how = stored(&dir.file("z.tenarc")).into_iter().find(|(found, _)| found == path);
        how.unwrap().1.unwrap().1
    };
    let kib = |bytes: u64| format!("{:.1}", bytes as f64 / 1024.0);
    let weight = of("weight");
    assert!(weight < 190_000, "{weight}");
    let expected = ["weight", "f32", "[50000]", "195.3", "KiB", &kib(weight), "KiB", "zstd"];
    assert_eq!(words(1), expected);
    // What is not compressed takes its own length.
    assert_eq!(words(3), ["small", "f32", "[8]", "32", "B", "32", "B"]);
    assert_eq!(words(4), ["rows", "columns", "[2000]", "-", "-"]);

    let rows = run(&dir, &["ls", "z.tenarc", "--json"]).json();
    assert_eq!((&rows[0]["codec"], &rows[0]["stored"]), (&json!("zstd"), &json!(weight)));
    assert_eq!(rows[2].get("codec"), None);
    let total = |field: &str| {
        let of = |row: &Json| row.get(field).or(row.get("bytes")).and_then(Json::as_u64);
        rows.as_array().unwrap().iter().filter_map(of).sum::<u64>()
    };
    let (full, less) = (total("bytes"), total("stored"));
    assert!(less < full);
    let last = format!(", {} KiB, {} KiB stored; 1 table of 2000 rows", kib(full), kib(less));
    assert!(lines.last().unwrap().ends_with(&last), "{lines:?}, {last}");

    let tree = run(&dir, &["ls", "z.tenarc", "--tree"]);
    let lines: Vec<&str> = tree.good().lines().collect();
    assert!(
        lines[0].ends_with(&format!("{} KiB ({} KiB stored)", kib(full), kib(less))),
        "{lines:?}"
    );
    assert_eq!(lines[1], format!("├── weight  f32 [50000]  195.3 KiB (zstd {} KiB)", kib(weight)));
    let shown = run(&dir, &["show", "z.tenarc", "weight", "--json"]).json();
    assert_eq!((&shown["codec"], &shown["stored"]), (&json!("zstd"), &json!(weight)));
    assert_eq!(shown["bytes"], json!(200_000));
}

#[test]
fn edits_keep_the_stored_chunks() {
    let dir = Dir::new();
    for compression in [Compression::zstd(), Compression::lz4()] {
        save(&dir, "a.tenarc", compression);
        let before = stored(&dir.file("a.tenarc"));
        assert!(before.iter().filter(|(_, how)| how.is_some()).count() >= 3, "{before:?}");
        run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--set", "name=\"other\""]).good();
        assert_eq!(stored(&dir.file("b.tenarc")), before);
        let changed: Model = tenarc::load(dir.file("b.tenarc")).unwrap();
        assert_eq!(changed, Model { name: "other".into(), ..model() });
        run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--align", "8"]).good();
        assert_eq!(stored(&dir.file("b.tenarc")), before);
        run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--rename", "zeros=here.zeros"]).good();
        let sorted = |mut all: Vec<(String, Option<(String, u64)>)>| {
            for (path, _) in &mut all {
                *path = path.replace("here.", "");
            }
            all.sort();
            all
        };
        assert_eq!(sorted(stored(&dir.file("b.tenarc"))), sorted(before.clone()));
        run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--drop", "zeros"]).good();
        let left: Vec<_> = before.into_iter().filter(|(path, _)| path != "zeros").collect();
        assert_eq!(stored(&dir.file("b.tenarc")), left);
        // A tensor of another dtype is new.
        run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--cast", "zeros=i32"]).good();
        let zeros = |name: &str| {
            let all = stored(&dir.file(name));
            all.into_iter().find(|(path, _)| path == "zeros").unwrap().1
        };
        assert_eq!(zeros("b.tenarc"), None);
        let cast = ["edit", "a.tenarc", "-o", "b.tenarc", "--cast", "zeros=i32", "--compress"];
        run(&dir, &[&cast[..], &["lz4"]].concat()).good();
        assert_eq!(zeros("b.tenarc").unwrap().0, "lz4");
    }
    run(&dir, &["edit", "a.tenarc", "-i", "--compress", "none"]).good();
    assert!(codecs(&dir.file("a.tenarc")).iter().all(Option::is_none));
    assert_eq!(tenarc::load::<Model>(dir.file("a.tenarc")).unwrap(), model());
}

#[test]
fn split_and_merge_keep_the_stored_chunks() {
    let dir = Dir::new();
    save(&dir, "a.tenarc", Compression::zstd());
    let ran = run(&dir, &["split", "a.tenarc", "-d", "shards", "--max-size", "170000"]);
    let shards: Vec<&str> = ran.good().lines().collect();
    assert!(shards.len() > 2, "{shards:?}");
    let merge = [&["merge", "-o", "b.tenarc"][..], &shards].concat();
    run(&dir, &merge).good();
    assert_eq!(stored(&dir.file("b.tenarc")), stored(&dir.file("a.tenarc")));
    assert_eq!(tenarc::load::<Model>(dir.file("b.tenarc")).unwrap(), model());
    run(&dir, &[&merge[..], &["--compress", "lz4"]].concat()).good();
    assert!(codecs(&dir.file("b.tenarc")).contains(&Some("lz4".into())));
    assert!(!codecs(&dir.file("b.tenarc")).contains(&Some("zstd".into())));
    assert_eq!(tenarc::load::<Model>(dir.file("b.tenarc")).unwrap(), model());
    let one = ["split", "a.tenarc", "-d", "plain", "--compress", "none"];
    let ran = run(&dir, &one);
    let plain = dir.file(ran.good().trim_end());
    assert!(codecs(&plain).iter().all(Option::is_none));
    // What has chunks of another length is compressed again.
    let other = Value::Map(vec![(
        "more".into(),
        Value::from(tenarc::value::Numbers::from(vec![0u64; 30_000])),
    )]);
    tenarc::archive::save_with(dir.file("o.tenarc"), &other, options(Compression::lz4())).unwrap();
    run(&dir, &["merge", "a.tenarc", "o.tenarc", "-o", "b.tenarc"]).good();
    let both = [codecs(&dir.file("a.tenarc")), vec![Some("lz4".into())]].concat();
    assert_eq!(codecs(&dir.file("b.tenarc")), both);
}

#[test]
fn other_commands_read_compressed_archives() {
    let dir = Dir::new();
    dir.save("plain.tenarc", &model());
    for compression in [Compression::zstd(), Compression::lz4()] {
        save(&dir, "c.tenarc", compression);
        let both = |args: &[&str]| {
            let [plain, compressed] = ["plain.tenarc", "c.tenarc"].map(|input| {
                let args: Vec<&str> =
                    args.iter().map(|&arg| if arg == "IN" { input } else { arg }).collect();
                run(&dir, &args).good().to_owned()
            });
            assert_eq!(plain, compressed, "{args:?}");
            assert!(!plain.is_empty());
        };
        both(&["stats", "IN"]);
        both(&["get", "IN", "weight[30000:30010]"]);
        both(&["get", "IN", "zeros", "--as", "raw"]);
        both(&["get", "IN", "rows.id"]);
        both(&["show", "IN", "--full"]);
        both(&["show", "IN", "rows[1000:1003]"]);
        both(&["diag", "IN"]);
        assert_eq!(run(&dir, &["diff", "plain.tenarc", "c.tenarc"]).good(), "");
        for (output, back) in [("o.cbor", true), ("o.npz", false), ("o.json", true)] {
            run(&dir, &["convert", "c.tenarc", output, "--lossy"]);
            if back {
                assert_eq!(run(&dir, &["diff", "plain.tenarc", output]).out(), "");
            }
        }
        assert!(run(&dir, &["verify", "c.tenarc"]).good().contains("c.tenarc"));
        let digest = |name: &str| {
            let ran = run(&dir, &["digest", name]);
            ran.good().split_whitespace().next().unwrap().to_owned()
        };
        run(&dir, &["cat", "c.tenarc", "-o", "copy.tenarc"]).good();
        assert_eq!(digest("c.tenarc"), digest("copy.tenarc"));
        assert_ne!(digest("c.tenarc"), digest("plain.tenarc"));
    }
}

#[test]
fn damage_of_compressed_archives_is_found_and_repaired() {
    let dir = Dir::new();
    save(&dir, "a.tenarc", Compression::zstd());
    let archive = tenarc::open(dir.file("a.tenarc")).unwrap();
    let segment = archive.only().unwrap();
    let weight = usize::try_from(segment.info("weight").unwrap().buffer().unwrap()).unwrap();
    let (start, full) = segment.buffers()[weight];
    let last = start + segment.compressed(weight).unwrap().stored_len() - 1;
    std::fs::copy(dir.file("a.tenarc"), dir.file("b.tenarc")).unwrap();
    flip(&dir.file("b.tenarc"), last);
    let ran = run(&dir, &["verify", "b.tenarc", "--json"]);
    assert_eq!(ran.status, 1, "{ran:?}");
    assert_eq!(ran.json()[0]["path"], json!("weight"), "{ran:?}");
    let ran = run(&dir, &["edit", "b.tenarc", "-o", "c.tenarc", "--set", "name=1"]);
    ran.failed(1, "chunk 3 of buffer 0");
    assert!(!dir.file("c.tenarc").exists());

    // A file that ends behind the first tensor still has that one.
    let bytes = std::fs::read(dir.file("a.tenarc")).unwrap();
    let end = usize::try_from(last + 2).unwrap();
    assert!(last < start + full);
    dir.write("cut.tenarc", &bytes[..end]);
    assert_eq!(run(&dir, &["verify", "cut.tenarc"]).status, 1);
    let ran = run(&dir, &["recover", "cut.tenarc", "-o", "whole.tenarc"]);
    assert_eq!(ran.status, 0, "{ran:?}");
    let found = stored(&dir.file("whole.tenarc"));
    let before = stored(&dir.file("a.tenarc"));
    assert_eq!(found[0], before[0]);
    let [cut, whole] = ["whole.tenarc", "a.tenarc"].map(|name| run(&dir, &["get", name, "weight"]));
    assert_eq!(cut.good(), whole.good());
}

/// Copies of stored chunks are never in memory as a whole.
#[test]
#[cfg(target_os = "linux")]
fn edits_of_large_archives_take_little_memory() {
    const TOTAL: usize = 160 << 20;

    let dir = Dir::new();
    let value = std::collections::BTreeMap::from([("weight", weights(TOTAL / 4, 1))]);
    let options = options(Compression::zstd());
    tenarc::archive::save_with(dir.file("a.tenarc"), &value, options).unwrap();
    drop(value);
    let limited = |args: &str| {
        // In KiB. A debug build with all formats takes half of that for itself.
        let script = format!("ulimit -v {}; exec \"$0\" {args}", 112 << 10);
        let program = command(&dir);
        let mut shell = std::process::Command::new("sh");
        shell.current_dir(dir.path()).args(["-c", &script]).arg(program.get_program());
        shell.output().unwrap()
    };
    let edited = limited("edit a.tenarc -o b.tenarc --set note=1 --no-sync");
    assert!(edited.status.success(), "{edited:?}");
    assert_eq!(stored(&dir.file("b.tenarc")), stored(&dir.file("a.tenarc")));
    // What compresses needs memory for all that it compresses: the limit is a limit.
    let compressed = limited("convert a.tenarc b.tenarc --compress zstd --no-sync");
    assert!(!compressed.status.success(), "{compressed:?}");
}
