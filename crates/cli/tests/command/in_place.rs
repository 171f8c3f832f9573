//! Files of other formats are read in place, and only as far as needed.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::support::{Dir, Ran, command, flip, run, run_with};
use serde_json::json;
use tenarc::tensor::{Deferred, Order};
use tenarc::{DType, DynTensor, Value};
use tenarc_convert::{npy, safetensors};

fn fixture(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../convert/tests/fixtures").join(path)
}

fn copied(dir: &Dir, path: &str) -> String {
    let from = fixture(path);
    let name = from.file_name().unwrap().to_str().unwrap().to_owned();
    fs::copy(&from, dir.file(&name)).unwrap();
    name
}

/// Writes a header, then more than 4 GiB of zeros, to a sparse file.
const ROWS: usize = (1 << 14) + 1;
const LAST: u64 = (ROWS * (1 << 18)) as u64 - 4;

fn sparse(path: &Path, header: &[u8]) {
    let mut file = File::create(path).unwrap();
    file.write_all(header).unwrap();
    file.set_len(header.len() as u64 + LAST + 4).unwrap();
    let last = header.len() as u64 + LAST;
    std::os::unix::fs::FileExt::write_all_at(&file, &7f32.to_le_bytes(), last).unwrap();
}

/// Runs the program without a usable directory for temporary files.
fn without_temporary_files(dir: &Dir, args: &[&str]) -> Ran {
    let output = command(dir).args(args).env("TMPDIR", "/nowhere").output().unwrap();
    Ran {
        status: output.status.code().unwrap(),
        bytes: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn large_files_are_not_copied_and_not_read_as_a_whole() {
    let dir = Dir::new();
    let end = LAST + 4;
    let header = format!(
        "{{\"x\":{{\"dtype\":\"F32\",\"shape\":[{ROWS},65536],\"data_offsets\":[0,{end}]}}}}"
    );
    let header = format!("{header:width$}", width = header.len().next_multiple_of(8));
    let len = (header.len() as u64).to_le_bytes();
    sparse(&dir.file("x.safetensors"), &[&len, header.as_bytes()].concat());
    let mut header = Vec::new();
    let small = Deferred::from_blocks(DType::F32, &[ROWS, 65536], Order::C, |_| {
        Err(serde::ser::Error::custom("only the header is wanted"))
    });
    npy::write(&mut header, &small).unwrap_err();
    sparse(&dir.file("x.npy"), &header);
    let started = Instant::now();
    for (name, path) in [("x.safetensors", "x"), ("x.npy", "")] {
        let seen = |args: &[&str]| without_temporary_files(&dir, args).good().to_owned();
        assert!(seen(&["ls", name]).contains("f32    [16385, 65536]  4.0 GiB"));
        assert!(seen(&["show", name]).contains("[0. 0. 0. … 0. 0. 7.]"));
        assert!(seen(&["show", name, path]).contains("[0. 0. 0. … 0. 0. 7.]"));
        let slice = |slice: &str| seen(&["get", name, &format!("{path}[{slice}]")]);
        assert_eq!(slice("0:2, 1"), "0.0\n0.0\n".replace('\n', " ").trim_end().to_owned() + "\n");
        assert_eq!(slice("-1, -2:"), "0.0 7.0\n");
    }
    let took = started.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[test]
fn sharded_models_are_read_by_their_index() {
    let dir = Dir::new();
    let tensor = |value: u8| DynTensor::new(DType::U8, &[3000], Order::C, vec![value; 3000]);
    let tensors =
        ["a.w", "b.w", "c"].iter().zip(1..).map(|(name, at)| (*name, tensor(at).unwrap()));
    let tensors: Vec<(&str, DynTensor)> = tensors.collect();
    let index = dir.file("model.safetensors.index.json");
    safetensors::save_sharded(&index, &tensors, 4000, &safetensors::Options::default()).unwrap();
    let name = "model.safetensors.index.json";
    let rows = run(&dir, &["ls", "--json", name]).json();
    let paths: Vec<&str> =
        rows.as_array().unwrap().iter().map(|row| row["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["a.w", "b.w", "c"]);
    assert_eq!(run(&dir, &["get", name, "b.w[2999:]"]).good(), "2\n");
    run(&dir, &["convert", name, "model.tenarc"]).good();
    assert_eq!(run(&dir, &["diff", name, "model.tenarc"]).good(), "");
    let verified = run(&dir, &["verify", name]);
    assert!(verified.good().contains("good, 1 value, 8.8 KiB; the format has no checksums"));
    // From standard input, the directory of the shards is not known.
    let text = fs::read(&index).unwrap();
    run_with(&dir, &["ls", "-", "--from", "safetensors"], &text)
        .failed(2, "give its path, not a pipe");
    fs::rename(&index, dir.file("renamed.json")).unwrap();
    assert_eq!(run(&dir, &["get", "renamed.json", "--from", "safetensors", "c[0]"]).good(), "3\n");
    let shard = dir.names().into_iter().find(|name| name.ends_with(".safetensors")).unwrap();
    fs::remove_file(dir.file(&shard)).unwrap();
    run(&dir, &["ls", "renamed.json", "--from", "safetensors"]).failed(2, &shard);
}

#[test]
fn every_format_gives_the_same_in_place_as_by_an_archive() {
    let dir = Dir::new();
    for file in [
        "safetensors/all_numpy_dtypes.safetensors",
        "safetensors/names.safetensors",
        "safetensors/scalar_and_empty.safetensors",
        "npy/plain.npz",
        "npy/compressed.npz",
        "npy/nested.npz",
        "npy/be_f4_fortran.npy",
        "npy/f8_fortran_3d.npy",
        "npy/empty_0x3.npy",
        "tenbin/many.ten",
        "tenbin/no_infos.ten",
        "tenbin/info_same.ten",
        "torch/plain_checkpoint.pt",
        "torch/views.pt",
        "torch/tensor.pt",
        "torch/legacy.pt",
        "torch/list.pt",
        "torch/dtypes.pt",
        "torch/parameters.pth",
        "arrow/tensors.arrow",
        "arrow/lz4.arrow",
        "arrow/zstd.arrows",
        "arrow/structs.arrow",
        "arrow/strings.arrow",
        "gguf/model.gguf",
    ] {
        let name = copied(&dir, file);
        let ran = run(&dir, &["convert", &name, "a.tenarc"]);
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{file}");
        assert_eq!(run(&dir, &["diff", &name, "a.tenarc"]).good(), "", "{file}");
        assert_eq!(run(&dir, &["diff", "a.tenarc", &name]).good(), "", "{file}");
        for args in [&["ls"][..], &["show"], &["show", "--full"], &["stats"], &["ls", "--json"]] {
            let [here, there] = [&name, "a.tenarc"]
                .map(|name| run(&dir, &[args, &[name]].concat()).good().to_owned());
            assert_eq!(here, there, "{file} {args:?}");
        }
        // The second half of each tensor that can be sliced.
        let rows = run(&dir, &["ls", "--json", "a.tenarc"]).json();
        for row in rows.as_array().unwrap() {
            if row["dtype"].as_str().unwrap().starts_with('q') {
                continue; // The blocks of quantised tensors cannot be sliced.
            }
            let count = row["shape"].as_array().unwrap().iter().map(|dim| dim.as_u64().unwrap());
            if row["shape"] == json!([]) || count.product::<u64>() == 0 {
                continue;
            }
            let path = format!("{}[-1:]", row["path"].as_str().unwrap());
            let [here, there] = [&name, "a.tenarc"]
                .map(|name| run(&dir, &["get", name, &path, "--as", "raw"]).bytes);
            assert!(here == there && !here.is_empty(), "{file} {path}");
        }
    }
}

#[test]
fn content_that_is_not_read_is_reported_and_stops_a_conversion() {
    let dir = Dir::new();
    for (file, told) in [
        ("torch/cycle.pt", "contains itself"),
        ("onnx/refused.onnx", "no type"),
        ("npy/columns/long_double.npz", "long doubles"),
        ("arrow/lost.arrow", "no type for runs"),
    ] {
        let name = copied(&dir, file);
        for args in [&["ls"][..], &["show"], &["stats"], &["diff", &name]] {
            let ran = run(&dir, &[args, &[&name]].concat());
            assert_eq!(ran.status, 0, "{ran:?}");
            assert!(ran.err.starts_with(&format!("tenarc: {name}: not read: ")), "{ran:?}");
            assert!(ran.err.contains(told), "{ran:?}");
        }
        for args in [&["convert", &name, "a.tenarc"][..], &["cat", &name, "-o", "a.tenarc"]] {
            let ran = run(&dir, args);
            ran.failed(2, &format!("{name}: cannot be kept: "));
            assert!(ran.err.contains("--lossy"), "{ran:?}");
            assert!(!dir.file("a.tenarc").exists());
        }
        let ran = run(&dir, &["verify", &name]);
        assert!(ran.status == 0 && ran.out().contains("not read: "), "{ran:?}");
        let ran = run(&dir, &["convert", "--lossy", &name, "a.tenarc"]);
        assert!(ran.status == 0 && ran.err.contains("not read: "), "{ran:?}");
        assert_eq!(run(&dir, &["diff", "a.tenarc", &name]).status, 0, "{file}");
        fs::remove_file(dir.file("a.tenarc")).unwrap();
    }
    run(&dir, &["convert", "--lossy", "refused.onnx", "b.onnx"])
        .failed(2, "cannot write ONNX models");
}

#[test]
fn lost_tensors_stand_first_and_the_rest_is_one_line() {
    let dir = Dir::new();
    let odd = || DynTensor::new(DType::F4, &[2], Order::C, vec![1]).unwrap();
    let number = |name: &str| (Value::Text(name.into()), Value::Integer(1));
    let tensor = |name: &str, tensor| (Value::Text(name.into()), Value::Tensor(Box::new(tensor)));
    let good = || DynTensor::from(ndarray::arr1(&[1.0f32]));
    let value = Value::Map(vec![
        number("a"),
        number("b"),
        number("c"),
        number("d"),
        tensor("odd", odd()),
        tensor("good", good()),
        tensor("odder", odd()),
    ]);
    dir.save("a.tenarc", &value);
    let ran = run(&dir, &["convert", "--lossy", "a.tenarc", "a.npz"]);
    let lines: Vec<&str> = ran.err.lines().collect();
    assert_eq!((ran.status, lines.len()), (0, 3), "{ran:?}");
    assert!(lines[0].contains("`odd`") && lines[1].contains("`odder`"), "{ran:?}");
    assert!(lines[2].contains("`a`") && lines[2].ends_with("; and 1 more"), "{ran:?}");
    // An archive without any of the tensors is no success.
    dir.save("b.tenarc", &Value::Map(vec![tensor("odd", odd()), number("a")]));
    let ran = run(&dir, &["convert", "--lossy", "b.tenarc", "b.npz"]);
    ran.failed(2, "no tensor is left, so nothing is written");
    assert!(!dir.file("b.npz").exists());
    // In a value without tensors, nothing of that kind is lost.
    dir.save("c.tenarc", &Value::Map(vec![number("a")]));
    assert_eq!(run(&dir, &["convert", "--lossy", "c.tenarc", "c.npz"]).status, 0);
}

#[test]
fn notes_are_told_once_and_stop_nothing() {
    let dir = Dir::new();
    let name = copied(&dir, "onnx/raw.onnx");
    for args in [
        &["ls", &name][..],
        &["convert", &name, "a.tenarc"],
        &["convert", "--lossy", &name, "a.tenarc"],
        &["cat", &name, "-o", "b.tenarc"],
    ] {
        let ran = run(&dir, args);
        assert_eq!((ran.status, ran.err.lines().count()), (0, 1), "{ran:?}");
        assert!(ran.err.starts_with("tenarc: raw.onnx: note: only the tensors"), "{ran:?}");
        run(&dir, &[&["-q"], args].concat()).good();
    }
    assert_eq!(run(&dir, &["diff", "a.tenarc", "b.tenarc"]).good(), "");
}

#[test]
fn external_data_of_onnx_models_is_read() {
    let dir = Dir::new();
    let name = copied(&dir, "onnx/external.onnx");
    copied(&dir, "onnx/external.data");
    let ran = run(&dir, &["stats", &name]);
    assert!(ran.status == 0 && ran.out().lines().count() > 1, "{ran:?}");
    fs::remove_file(dir.file("external.data")).unwrap();
    run(&dir, &["stats", &name]).failed(2, "external.data");
}

#[test]
fn verify_checks_what_each_format_lets_it_check() {
    let dir = Dir::new();
    for (file, said) in [
        ("safetensors/f32_2x3.safetensors", "; the format has no checksums"),
        ("npy/f4.npy", "; the format has no checksums"),
        ("tenbin/many.ten", "; the format has no checksums"),
        ("onnx/raw.onnx", "; the format has no checksums"),
        ("torch/no_checksums.pt", "; the file has no checksums"),
        ("npy/columns/long_double.npz", "; 1 member is not a supported array and was not checked"),
    ] {
        let ran = run(&dir, &["verify", &copied(&dir, file)]);
        assert!(ran.good().contains("good, 1 value, ") && ran.good().contains(said), "{ran:?}");
    }
    for file in ["npy/plain.npz", "torch/plain_checkpoint.pt"] {
        assert!(!run(&dir, &["verify", &copied(&dir, file)]).good().contains(';'));
    }
    let npz = npy::Npz::open(dir.file("plain.npz")).unwrap();
    let name = npz.names().next().unwrap();
    flip(&dir.file("plain.npz"), npz.position(name).unwrap().unwrap());
    let ran = run(&dir, &["verify", "plain.npz", "--json"]);
    assert_eq!((ran.status, &ran.json()[0]["good"]), (1, &json!(false)), "{ran:?}");
    let report = &ran.json()[0];
    assert!(report["path"] == name && report["offset"].is_u64(), "{report}");
    assert!(report["error"].as_str().unwrap().contains("CRC-32"), "{report}");
    run(&dir, &["ls", "plain.npz"]).good();
    run(&dir, &["get", "plain.npz", name]).failed(1, "CRC-32");
}

#[test]
fn messagepack_is_read_and_written() {
    let dir = Dir::new();
    // {"lr": 0.5, "w": array([1, 2], dtype=int16)} by msgpack_numpy
    let bytes = b"\x82\xa2lr\xcb\x3f\xe0\0\0\0\0\0\0\xa1w\x85\xc4\x02nd\xc3\xc4\x04type\xa3<i2\
        \xc4\x04kind\xc4\0\xc4\x05shape\x91\x02\xc4\x04data\xc4\x04\x01\0\x02\0";
    dir.write("a.msgpack", bytes);
    assert_eq!(run(&dir, &["show", "a.msgpack", "w"]).good(), "i16 [2] [1 2]\n");
    run(&dir, &["convert", "a.msgpack", "a.tenarc"]).good();
    run(&dir, &["convert", "a.tenarc", "b.mpk"]).good();
    assert_eq!(fs::read(dir.file("b.mpk")).unwrap(), bytes);
    dir.save("c.tenarc", &(u128::MAX >> 1));
    run(&dir, &["convert", "c.tenarc", "c.mpk"])
        .failed(2, "unless losses are accepted: use --lossy");
    let ran = run(&dir, &["convert", "--lossy", "c.tenarc", "c.mpk"]);
    assert!(ran.status == 0 && ran.err.contains("cannot be kept"), "{ran:?}");
    dir.write("cut.mpk", &bytes[..bytes.len() - 1]);
    run(&dir, &["ls", "cut.mpk"]).failed(2, "cut.mpk: MessagePack: input ended");
    assert_eq!(run(&dir, &["verify", "cut.mpk"]).status, 1);
}

/// A field of a message of protocol buffers: a number, or bytes.
fn number(field: u8, value: u8) -> Vec<u8> {
    vec![field << 3, value]
}

fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    let [low, high, ..] = (content.len() * 2).to_le_bytes();
    // Seven bits in each byte of the length.
    [&[(field << 3) | 2, (low / 2) | 128, high], content].concat()
}

#[test]
fn info_describes_models() {
    let dir = Dir::new();
    let dims = [bytes(1, &bytes(2, b"batch")), bytes(1, &number(1, 3)), bytes(1, &[])].concat();
    let tensor = |kind| bytes(1, &[number(1, kind), bytes(2, &dims)].concat());
    let value = |name: &[u8], kind: &[u8]| [bytes(1, name), bytes(2, kind)].concat();
    let node = |operator: &[u8]| bytes(1, &bytes(4, operator));
    let weight = [number(1, 1), number(2, 1), bytes(8, b"w"), bytes(9, &[0; 4])].concat();
    let graph = [
        node(b"Relu"),
        node(b"Add"),
        node(b"Relu"),
        bytes(1, &[bytes(4, b"Own"), bytes(7, b"us")].concat()),
        bytes(5, &weight),
        bytes(11, &value(b"x", &tensor(1))),
        // Old models list their initializers, too.
        bytes(11, &value(b"w", &tensor(1))),
        bytes(11, &value(b"new\xff", &tensor(99))),
        bytes(12, &value(b"y", &bytes(4, &[]))),
    ]
    .concat();
    let opset = bytes(8, &number(2, 17));
    let producer = [bytes(2, b"us"), bytes(3, b"1.2")].concat();
    dir.write("m.onnx", &[number(1, 8), producer, opset, bytes(7, &graph)].concat());
    let out = run(&dir, &["--quiet", "info", "m.onnx"]).good().to_owned();
    let expected = "producer: us 1.2\nir_version: 8\nopsets: ai.onnx 17\n\
        inputs: 2\nname  dtype    shape\n\
        x     f32      [batch, 3, ?]\n\
        new\u{fffd}  type 99  [batch, 3, ?]\n\
        outputs: 1\nname  dtype\ny     sequence\n\
        nodes: Add 1, Relu 2, us.Own 1\n";
    assert!(out.ends_with(expected), "{out}");
    let about = &run(&dir, &["--quiet", "info", "m.onnx", "--json"]).json()[0]["about"];
    let x = json!({"name": "x", "dtype": "f32", "shape": ["batch", 3, null]});
    assert_eq!((&about["inputs"][0], &about["nodes"]["Relu"]), (&x, &json!(2)));
}

#[test]
fn info_describes_how_other_files_store() {
    let dir = Dir::new();
    let about = |file: &str| {
        let name = copied(&dir, file);
        run(&dir, &["--quiet", "info", &name, "--json"]).json()[0]["about"].take()
    };
    let datasets = about("hdf5/plugins.h5")["datasets"].take();
    let of = |datasets: &serde_json::Value, path| {
        let mut all = datasets.as_array().unwrap().iter();
        all.find(|found| found["path"] == path).unwrap().clone()
    };
    let expected = json!({
        "path": "zstd/long", "shape": [3001], "layout": "chunked", "chunk": [1601],
        "filters": ["shuffle", "zstd 3"],
    });
    assert_eq!(of(&datasets, "zstd/long"), expected);
    // Its elements cannot be read.
    assert_eq!(of(&datasets, "lost_bzip2/long")["filters"], json!(["bzip2 (307) [9]"]));
    let datasets = about("hdf5/layouts.h5")["datasets"].take();
    assert_eq!(of(&datasets, "chunks")["chunk"], json!([2]));
    assert_eq!(of(&datasets, "contiguous")["layout"], "contiguous");

    let batches = about("arrow/batches.arrows")["record batches"].take();
    let rows: Vec<_> = batches.as_array().unwrap().iter().map(|batch| &batch["rows"]).collect();
    assert_eq!(rows, [4, 4, 3]);
    let parquet = about("parquet/decimals.parquet");
    assert_eq!(parquet["row groups"][0]["rows"], 4);
    let expected = json!({
        "column": "price", "type": "decimal(30, 2)", "bytes": 135, "codec": "snappy",
        "statistics": "all row groups",
    });
    assert_eq!(parquet["columns"][1], expected);

    // Rows that cannot be read are no reason to say nothing.
    let name = copied(&dir, "parquet/brotli.parquet");
    let ran = run(&dir, &["info", &name]);
    assert_eq!(ran.status, 0, "{ran:?}");
    assert!(ran.err.contains("not read") && ran.err.contains("brotli"), "{ran:?}");
    assert!(ran.out().contains("\nid      int32   290 B  brotli  all row groups\n"), "{ran:?}");
    run(&dir, &["ls", &name]).failed(2, "brotli");
}
