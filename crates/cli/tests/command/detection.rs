//! What a file is: first by its first bytes, then by its name; and files that are not read are named.

use std::fs;
use std::path::PathBuf;

use crate::support::{Dir, model, run, run_with};

fn fixture(path: &str) -> Vec<u8> {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../convert/tests/fixtures");
    fs::read(fixtures.join(path)).unwrap()
}

/// A zip file of members without content.
fn zip(names: &[&str]) -> Vec<u8> {
    let (mut file, mut list) = (Vec::new(), Vec::new());
    for name in names {
        let at = u32::try_from(file.len()).unwrap().to_le_bytes();
        let len = u16::try_from(name.len()).unwrap().to_le_bytes();
        let common = [&[20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0][..], &[0; 12], &len, &[0; 2]].concat();
        file.extend([b"PK\x03\x04", &common[..], name.as_bytes()].concat());
        list.extend([b"PK\x01\x02\x14\x00", &common[..], &[0; 10], &at, name.as_bytes()].concat());
    }
    let [size, start] =
        [list.len(), file.len()].map(|len| u32::try_from(len).unwrap().to_le_bytes());
    let count = u16::try_from(names.len()).unwrap().to_le_bytes();
    file.extend(list);
    file.extend([b"PK\x05\x06\0\0\0\0", &count[..], &count, &size, &start, &[0; 2]].concat());
    file
}

#[test]
fn the_first_bytes_count_more_than_the_name() {
    let dir = Dir::new();
    for path in [
        "safetensors/f32_2x3.safetensors",
        "torch/views.pt",
        "torch/plain_checkpoint.pt",
        "torch/legacy.pt",
        "torch/legacy_protocol_4.pt",
        "npy/plain.npz",
        "npy/f4.npy",
        "arrow/dtypes.arrow",
        "tenbin/many.ten",
    ] {
        let name = path.rsplit('/').next().unwrap();
        dir.write(name, &fixture(path));
        let listed = run(&dir, &["ls", name]).good().to_owned();
        for end in ["bin", "npz", "pt", "npy", "safetensors", "arrow", "ten", "tenarc", "json", "x"]
        {
            let other = format!("other.{end}");
            dir.write(&other, &fixture(path));
            assert_eq!(run(&dir, &["ls", &other]).good(), listed, "{path} as {other}");
        }
    }
}

#[test]
fn a_keras_file_is_known_by_its_member() {
    let dir = Dir::new();
    for file in ["hdf5/model.keras", "hdf5/deflated.keras"] {
        for name in ["model.keras", "other.bin", "other.npz"] {
            dir.write(name, &fixture(file));
            let listed = run(&dir, &["ls", name, "-q"]);
            assert!(listed.good().contains("layers.dense.vars.0"), "{listed:?}");
            assert!(run(&dir, &["verify", name]).good().contains("good"), "{file} as {name}");
        }
    }
}

#[test]
fn files_that_are_not_read_are_named_with_what_to_do() {
    let dir = Dir::new();
    for (name, bytes, what) in [
        (
            "model.safetensors",
            &b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n"[..],
            "a pointer of Git LFS, which stands for the file in the repository: `git lfs pull`",
        ),
        (
            "page.safetensors",
            b"<!DOCTYPE html><html><body>404</body></html>",
            "a web page, which servers send in place of a file",
        ),
        ("a.gguf", b"\n<HTML>", "a web page"),
        (
            "a.nc",
            b"CDF\x02\0\0\0\0",
            "a NetCDF file of version 3, which is not read: `nccopy -k nc4`",
        ),
        ("a.mat", b"MATLAB 5.0 MAT-file, Platform", "a MATLAB file of version 5 to 7.2"),
        ("a.tflite", b"\x1c\0\0\0TFL3", "a model of TensorFlow Lite"),
        ("a.bin", b"\xba\x16\x4f\x2f\x0c\0\0\0", "a model of fastText"),
        ("a.orc", b"ORC\x11\0", "an ORC file, which is not read: write it as Parquet"),
        ("a.npy.gz", b"\x1f\x8b\x08\0", "a compressed file, which is not read: decompress it"),
        ("a.json", b"BZh91AY", "a compressed file"),
        ("a.pkl", b"\x80\x04\x95\x05\0\0\0", "a Python pickle, which can run code"),
        ("a.zip", &zip(&["readme.txt"]), "a zip file that is no npz, PyTorch or Keras file"),
        ("zeros.bin.gz", &vec![0; 1 << 16], "unknown file format: name it with --from"),
        ("noise", b"\xa1\x61\x61\x01", "unknown file format: name it with --from"),
    ] {
        dir.write(name, bytes);
        run(&dir, &["ls", name]).failed(2, &format!("{name}: {what}"));
        run(&dir, &["verify", name]).failed(2, what);
        let ran = run_with(&dir, &["show", "-"], bytes);
        ran.failed(2, what);
    }
}

#[test]
fn cbor_and_messagepack_are_known_by_name_option_or_tag_only() {
    let dir = Dir::new();
    let message = tenarc::to_vec(&model()).unwrap();
    for name in ["a.cbor", "a.dat"] {
        dir.write(name, &message);
    }
    dir.write("tagged", &[&b"\xd9\xd9\xf7"[..], &message].concat());
    run(&dir, &["ls", "a.dat"]).failed(2, "unknown file format");
    let listed = run(&dir, &["ls", "a.cbor"]).good().to_owned();
    assert_eq!(run(&dir, &["ls", "a.dat", "--from", "cbor"]).good(), listed);
    assert_eq!(run(&dir, &["ls", "tagged"]).good(), listed);
    assert_eq!(run(&dir, &["diff", "tagged", "a.cbor"]).good(), "");
    dir.save("a.tenarc", &model());
    for args in [
        ["a.dat", "a.tenarc", "--from-a", "cbor"],
        ["a.tenarc", "a.dat", "--from-b", "cbor"],
        ["a.tenarc", "a.dat", "--from-b=cbor", "--from=tenarc"],
    ] {
        assert_eq!(run(&dir, &[&["diff"][..], &args].concat()).good(), "");
    }
    // An archive is a sequence of CBOR items, too.
    assert_eq!(run(&dir, &["diff", "a.tenarc", "a.dat", "--from", "cbor"]).status, 1);
    // Zeros are numbers in CBOR, if they are said to be.
    dir.write("zeros", &[0; 9]);
    assert_eq!(
        run(&dir, &["verify", "zeros", "--from", "cbor"]).good(),
        "zeros: good, 9 values, 9 B\n"
    );
    // A message that starts as a pickle would is one if its name says so.
    dir.write("two.cbor", b"\x80\x04");
    assert_eq!(run(&dir, &["verify", "two.cbor"]).good(), "two.cbor: good, 2 values, 2 B\n");
}

/// The index of a model names the files with its tensors. Without them it would be a map of texts.
#[test]
fn an_index_is_not_taken_for_json() {
    let dir = Dir::new();
    let index = fixture("torch/pytorch_model.bin.index.json");
    let names = ["pytorch_model.bin.index.json", "pytorch_model.bin.index.fp16.json"];
    for name in names {
        dir.write(name, &index);
        let ran = run(&dir, &["convert", name, "a.tenarc"]);
        ran.failed(2, "pytorch_model-00001-of-00001.bin");
        assert!(!dir.names().contains(&"a.tenarc".to_owned()));
    }
    for name in ["tf_model.h5.index.json", "flax_model.msgpack.index.json"] {
        dir.write(name, &index);
        run(&dir, &["ls", name]).failed(2, "convert each of the files that it names");
        assert!(run(&dir, &["show", name, "--from", "json"]).good().contains("weight_map"));
    }

    let shard = fixture("torch/state_dict.pt");
    dir.write("one.bin", &shard);
    let index = r#"{"metadata": {}, "weight_map": {"0.weight": "one.bin", "0.bias": "one.bin",
        "2.weight": "one.bin", "2.bias": "one.bin"}}"#;
    dir.write(names[0], index.as_bytes());
    run(&dir, &["convert", names[0], "a.tenarc", "--quiet"]).good();
    run(&dir, &["diff", "one.bin", "a.tenarc", "--quiet"]).good();
    let verified = run(&dir, &["verify", names[0]]);
    assert!(verified.status == 0 && verified.out().contains("good, 1 value"), "{verified:?}");
    // In a directory, the shard is a part of the model.
    let all = run(&dir, &["verify", "."]);
    assert!(!all.out().contains("one.bin"), "{all:?}");
}

/// Of what the processes of torch have saved, no index tells.
#[test]
fn a_directory_of_the_files_of_processes_is_one_model() {
    let dir = Dir::new();
    let from = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../convert/tests/fixtures/safetensors/distributed");
    std::fs::create_dir(dir.file("saved")).unwrap();
    for number in 1..=3 {
        let name = format!("shard-{number:05}-model-00001-of-00001.safetensors");
        std::fs::copy(from.join(&name), dir.file("saved").join(name)).unwrap();
    }
    let ran = run(&dir, &["ls", "saved"]);
    assert!(ran.out().contains("w     f32    [7, 5]"), "{ran:?}");
    assert!(ran.err.contains("from 3 files of torch.distributed.checkpoint"), "{ran:?}");
    run(&dir, &["convert", "-q", "saved", "a.tenarc"]).good();
    run(&dir, &["diff", "-q", "saved/shard-00002-model-00001-of-00001.safetensors", "a.tenarc"])
        .good();
}

#[test]
fn a_directory_is_read_by_the_only_index_in_it() {
    let dir = Dir::new();
    std::fs::create_dir_all(dir.file("model/sub")).unwrap();
    dir.write("model/sub/one.safetensors", &fixture("safetensors/f32_2x3.safetensors"));
    run(&dir, &["convert", "model", "a.tenarc"])
        .failed(2, "model: is a directory without the index");
    let index = br#"{"weight_map": {"weight": "sub/one.safetensors"}}"#;
    dir.write("model/model.safetensors.index.json", index);
    run(&dir, &["convert", "model", "a.tenarc", "--quiet"]).good();
    run(&dir, &["diff", "model", "model/sub/one.safetensors"]).good();
    run(&dir, &["diff", "a.tenarc", "model/sub/one.safetensors", "--quiet"]).good();
    dir.write("model/pytorch_model.bin.index.json", index);
    let several = "model: is a directory with several indices of models: name one of them: model/model.safetensors.index.json, model/pytorch";
    run(&dir, &["ls", "model"]).failed(2, several);
    let out = br#"{"weight_map": {"x": "../one.safetensors"}}"#;
    dir.write("model/model.safetensors.index.json", out);
    let ran = run(&dir, &["ls", "model/model.safetensors.index.json"]);
    ran.failed(2, "can lead out of the directory");
}

/// MATLAB 7.3 writes 512 bytes of text in front of HDF5.
#[test]
fn hdf5_is_found_behind_a_block_of_the_user() {
    let dir = Dir::new();
    for len in [512, 2048] {
        let mut bytes = vec![0; len];
        bytes[..19].copy_from_slice(b"MATLAB 7.3 MAT-file");
        bytes.extend(fixture("hdf5/texts.h5"));
        dir.write("a.mat", &bytes);
        dir.write("a.h5", &fixture("hdf5/texts.h5"));
        run(&dir, &["diff", "a.mat", "a.h5"]).good();
    }
}

#[test]
fn a_byte_order_mark_hides_no_json() {
    let dir = Dir::new();
    for name in ["a.json", "a.txt"] {
        dir.write(name, b"\xef\xbb\xbf{\"a\": 1}");
        assert_eq!(run(&dir, &["show", name, "--json"]).good(), "{\"a\":1}\n");
    }
}

/// polars compresses so, if it is not told otherwise.
#[test]
fn parquet_files_with_zstd_are_read() {
    let dir = Dir::new();
    dir.write("a.parquet", &fixture("parquet/zstd.parquet"));
    dir.write("b.parquet", &fixture("parquet/none.parquet"));
    let listed = run(&dir, &["ls", "a.parquet"]);
    assert!(listed.status == 0 && listed.out().contains("table"), "{listed:?}");
    let [a, b] =
        ["a.parquet", "b.parquet"].map(|name| run(&dir, &["show", name, "--json", "--full"]));
    assert_eq!(a.json(), b.json());
}

/// This program has no clients of stores, and says which one has.
#[test]
fn addresses_of_objects_name_the_package_that_opens_them() {
    let dir = Dir::new();
    dir.save("a.tenarc", &model());
    let package = "tenarc-store-cli";
    run(&dir, &["ls", "s3://bucket/a.tenarc"]).failed(2, package);
    run(&dir, &["convert", "a.tenarc", "https://host/a.npz"]).failed(2, package);
}

/// What holds nothing is converted, but not without a word.
#[test]
fn files_without_content_are_told() {
    let dir = Dir::new();
    dir.write("nothing.safetensors", &fixture("safetensors/nothing.safetensors"));
    dir.write("empty.json", b" \n");
    dir.save_all::<u8>("empty.tenarc", &[]);
    for (name, note) in [
        ("nothing.safetensors", "note: the file holds no tensors"),
        ("empty.json", "note: the file holds no values"),
        ("empty.tenarc", "note: the file holds no values"),
    ] {
        let ran = run(&dir, &["convert", name, "a.tenarc"]);
        assert_eq!(ran.status, 0, "{ran:?}");
        assert!(ran.err.contains(&format!("{name}: {note}")), "{ran:?}");
        run(&dir, &["convert", name, "a.tenarc", "--quiet"]).good();
    }
    dir.write("rows.arrow", &fixture("arrow/rows_without_columns.arrow"));
    let why = "3 rows without columns: their number is left out";
    run(&dir, &["convert", "rows.arrow", "a.tenarc"]).failed(2, why);
    let lossy = run(&dir, &["convert", "rows.arrow", "a.tenarc", "--lossy"]);
    assert!(lossy.status == 0 && lossy.err.contains(why), "{lossy:?}");
}
