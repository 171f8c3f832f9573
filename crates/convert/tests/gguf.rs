//! GGUF files: those of the Python package gguf, our own, and damaged ones.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{fs, io};

use ndarray::{Array2, ArrayD};
use sha2::{Digest as _, Sha256};
use tenarc::io::ReadAt;
use tenarc::tensor::{Order, ToTensor};
use tenarc::{Archive, DType, DynTensor, Value};
use tenarc_convert::TensorFile as _;
use tenarc_convert::gguf::{self, Gguf};
use tenarc_convert::{Format, Options};
use tenarc_test_support::hex;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/gguf")
}

fn model() -> Vec<u8> {
    fs::read(fixtures().join("model.gguf")).unwrap()
}

/// A file of one key and two tensors.
fn small() -> Vec<u8> {
    let mut bytes = Vec::new();
    let tensors = [("a", Array2::<f32>::eye(3)), ("b", Array2::<f32>::zeros((2, 1)))];
    gguf::to_writer(&mut bytes, &[("general.name", Value::from("x"))], &tensors).unwrap();
    bytes
}

fn error_of(bytes: Vec<u8>) -> String {
    Gguf::new(bytes).unwrap_err().to_string()
}

/// Bytes in a file, which counts how often it is read.
struct Counted {
    bytes: Vec<u8>,
    reads: AtomicUsize,
}

impl ReadAt for Counted {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.bytes.read_at(out, offset)
    }

    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }
}

/// A vocabulary has hundreds of thousands of short texts.
#[test]
fn short_texts_are_read_many_at_once() {
    let tokens: Vec<String> = (0..5000).map(|number| format!("token {number}")).collect();
    let metadata = [("tokens", Value::from(tokens.clone())), ("last", Value::from("x"))];
    let mut bytes = Vec::new();
    gguf::to_writer(&mut bytes, &metadata, &[("a", Array2::<f32>::eye(3))]).unwrap();
    let most = bytes.len() / 8192 + 8;
    let file = Gguf::new(Counted { bytes, reads: AtomicUsize::new(0) }).unwrap();
    assert_eq!(file.metadata()[0].1, Value::from(tokens));
    assert_eq!(file.tensor::<Array2<f32>>("a").unwrap(), Array2::<f32>::eye(3));
    let reads = file.source().reads.load(Ordering::Relaxed);
    assert!(reads <= most, "{reads} reads");
}

#[test]
fn files_of_the_python_package_are_read() {
    let manifest = fs::read(fixtures().join("MANIFEST.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let manifest = manifest.as_object().unwrap();
    let file = Gguf::new(model()).unwrap();
    assert_eq!(file.version(), 3);
    assert_eq!(file.tensors().len(), manifest.len());
    for (name, expected) in manifest {
        let tensor = file.dyn_tensor(name).unwrap();
        assert_eq!(tensor.dtype().name(), expected["dtype"], "{name}");
        assert_eq!(serde_json::json!(tensor.shape()), expected["shape"], "{name}");
        let digest = Sha256::digest(tensor.le_bytes());
        assert_eq!(hex(&digest), expected["sha256"], "{name}");
    }
    let find = |key: &str| &file.metadata().iter().find(|(found, _)| found == key).unwrap().1;
    for (key, expected) in [
        ("general.architecture", Value::from("llama")),
        ("test.u8", 200.into()),
        ("test.i8", (-100).into()),
        ("test.u16", 60_000.into()),
        ("test.i16", (-30_000).into()),
        ("test.u32", 4_000_000_000u32.into()),
        ("test.i32", (-2_000_000_000).into()),
        ("test.u64", ((1u64 << 63) + 5).into()),
        ("test.i64", (-(1i64 << 62)).into()),
        ("test.f32", 0.1f32.into()),
        ("test.f64", 0.1f64.into()),
        ("test.bool", true.into()),
        ("tokenizer.ggml.tokens", vec!["<s>", "</s>", "é", ""].into()),
    ] {
        assert_eq!(*find(key), expected, "{key}");
    }
    let numbers = |key, dtype: DType, bytes: &[u8]| {
        let count = bytes.len() / dtype.byte_len(1).unwrap();
        let expected = DynTensor::new(dtype, &[count], Order::C, bytes.to_vec()).unwrap();
        assert_eq!(*find(key), Value::from(expected), "{key}");
    };
    let scores: Vec<u8> = [0.0f32, -1.5, 2.25, 0.5].iter().flat_map(|v| v.to_le_bytes()).collect();
    numbers("tokenizer.ggml.scores", DType::F32, &scores);
    numbers("test.bools", DType::Bool, &[1, 0]);
    assert_eq!(find("test.nested").as_array().map(<[_]>::len), Some(2));
}

#[test]
fn an_archive_has_all_of_a_file_and_gives_it_back() {
    let dir = tempfile::tempdir().unwrap();
    let [archive, again] = ["model.tenarc", "again.gguf"].map(|name| dir.path().join(name));
    Format::Gguf.to_archive(fixtures().join("model.gguf"), &archive, &Options::default()).unwrap();
    let archive = tenarc::open(&archive).unwrap();
    let half: ArrayD<half::f16> = archive.tensor("half").unwrap();
    assert_eq!(half.shape(), [3, 7]);
    let segment = archive.segment(0).unwrap();
    let file = Gguf::new(model()).unwrap();

    let tensors: Vec<(String, DynTensor)> = file
        .tensors()
        .iter()
        .map(|info| {
            let pointer = format!("/{}", info.path());
            (info.path().to_owned(), segment.dyn_tensor(&pointer).unwrap())
        })
        .collect();
    let value: Value = segment.load().unwrap();
    let Value::Map(entries) = &value["__metadata__"] else { panic!("no metadata") };
    let metadata: Vec<(&str, Value)> =
        entries.iter().map(|(key, value)| (key.as_str().unwrap(), value.clone())).collect();
    gguf::save(&again, &metadata, &tensors).unwrap();

    let again = gguf::open(&again).unwrap();
    assert_eq!(again.metadata(), file.metadata());
    assert_eq!(again.tensors(), file.tensors());
    for info in file.tensors() {
        let name = info.path();
        assert_eq!(again.dyn_tensor(name).unwrap(), file.dyn_tensor(name).unwrap(), "{name}");
    }
}

#[test]
fn values_are_written_as_far_as_gguf_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let tensor = |dtype, shape: &[usize], order| {
        let len = shape.iter().product::<usize>() * DType::byte_len(&dtype, 1).unwrap();
        let bytes = (0u8..).take(len).collect();
        Value::from(DynTensor::new(dtype, shape, order, bytes).unwrap())
    };
    let map = |entries: Vec<(&str, Value)>| {
        Value::Map(entries.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
    };
    let options = Options::default();
    let kept = map(vec![
        ("__metadata__", map(vec![("general.name", "x".into()), ("n", 5.into())])),
        (
            "layer",
            map(vec![
                ("w", tensor(DType::F16, &[2, 3], Order::C)),
                ("b", tensor(DType::BF16, &[2], Order::C)),
            ]),
        ),
    ]);
    tenarc::save(at("a.tenarc"), &kept).unwrap();
    let losses = Format::Gguf.from_archive(at("a.tenarc"), at("a.gguf"), &options).unwrap();
    assert!(losses.is_empty() && losses.notes().len() == 1, "{losses}");
    assert!(losses.notes()[0].contains("`n` (u32)"), "{:?}", losses.notes());
    let file = gguf::open(at("a.gguf")).unwrap();
    let types = map(vec![("n", "u32".into())]);
    let expected = [("general.name", "x".into()), ("n", 5.into()), (TYPES, types.clone())];
    assert_eq!(file.metadata(), expected.map(|(key, value)| (key.to_owned(), value)));
    assert_eq!(file.info("layer.w").unwrap().shape(), [2, 3]);
    Format::Gguf.to_archive(at("a.gguf"), at("b.tenarc"), &options).unwrap();
    let mut again: Value = tenarc::load(at("b.tenarc")).unwrap();
    let Value::Map(metadata) = &mut again["__metadata__"] else { panic!("no metadata") };
    assert_eq!(metadata.pop(), Some((TYPES.into(), types)));
    assert_eq!(again, kept);

    let lost = map(vec![
        ("__metadata__", map(vec![("null", Value::Null), ("name", "x".into())])),
        ("kept", tensor(DType::I32, &[2], Order::C)),
        ("turned", tensor(DType::I8, &[2, 2], Order::F)),
        ("unsigned", tensor(DType::U8, &[2], Order::C)),
        ("deep", tensor(DType::I8, &[1; 5], Order::C)),
        (&"n".repeat(64), tensor(DType::I8, &[1], Order::C)),
        ("text", "x".into()),
    ]);
    tenarc::save(at("c.tenarc"), &lost).unwrap();
    let error = Format::Gguf.from_archive(at("c.tenarc"), at("c.gguf"), &options).unwrap_err();
    assert!(error.to_string().contains("unsigned") && !at("c.gguf").exists(), "{error}");
    let options = options.with_losses(true);
    let losses = Format::Gguf.from_archive(at("c.tenarc"), at("c.gguf"), &options).unwrap();
    let paths: Vec<_> = losses.listed().iter().map(tenarc_convert::Loss::path).collect();
    assert_eq!(paths, ["unsigned", "deep", "text", "__metadata__.null"]);
    for note in ["llama.cpp", "row-major"] {
        assert!(losses.notes().iter().any(|found| found.contains(note)), "{:?}", losses.notes());
    }
    let file = gguf::open(at("c.gguf")).unwrap();
    let turned: Array2<i8> = file.tensor("turned").unwrap();
    assert_eq!(turned, ndarray::array![[0, 2], [1, 3]]);
    assert_eq!(file.tensors().len(), 3);
}

#[test]
fn other_alignments_are_read_and_written() {
    let metadata = [("general.alignment", Value::from(4096))];
    let mut bytes = Vec::new();
    let tensors = [("a", vec![1i8; 5]), ("b", vec![2; 3])];
    gguf::to_writer(&mut bytes, &metadata, &tensors).unwrap();
    assert_eq!(bytes.len(), 3 * 4096);
    let file = Gguf::new(bytes).unwrap();
    assert_eq!(file.position("b").unwrap(), 2 * 4096);
    assert_eq!(file.tensor::<Vec<i8>>("b").unwrap(), [2; 3]);
    for wrong in [0u64, 12, 1 << 40] {
        let metadata = [("general.alignment", Value::from(wrong))];
        let error = gguf::to_writer(Vec::new(), &metadata, &tensors).unwrap_err().to_string();
        assert!(error.contains("expected a multiple of 8"), "{error}");
    }
}

#[test]
fn integers_have_the_first_type_that_holds_them() {
    let numbers: [i128; 8] = [
        0,
        u32::MAX.into(),
        i128::from(u32::MAX) + 1,
        -1,
        i32::MIN.into(),
        i128::from(i32::MIN) - 1,
        i64::MIN.into(),
        u64::MAX.into(),
    ];
    let metadata: Vec<_> =
        numbers.iter().map(|number| (number.to_string(), Value::Integer(*number))).collect();
    let mut bytes = Vec::new();
    gguf::to_writer(&mut bytes, &metadata, &[] as &[(&str, Vec<f32>)]).unwrap();
    let file = Gguf::new(bytes).unwrap();
    let (types, found) = file.metadata().split_last().unwrap();
    assert_eq!(found, metadata);
    let Value::Map(types) = &types.1 else { panic!("no types") };
    let types: Vec<_> = types.iter().map(|(_, kind)| kind.as_str().unwrap()).collect();
    assert_eq!(types, ["u32", "u32", "u64", "i32", "i32", "i64", "i64", "u64"]);
    let refused = |value: Value| {
        let none: &[(&str, Vec<f32>)] = &[];
        gguf::to_writer(Vec::new(), &[("key", value)], none).unwrap_err().to_string()
    };
    assert!(refused(Value::Integer(1 << 70)).contains("64 bits"));
    assert!(refused(Value::Null).contains("`key`") || refused(Value::Null).contains("key"));
    assert!(refused(vec![Value::from(1), "x".into()].into()).contains("the same type"));
    assert!(refused(vec![Value::from(-1), u64::MAX.into()].into()).contains("64 bits"));
}

/// The key of the types of metadata.
const TYPES: &str = "tenarc.gguf.types";

/// A file without tensors: the keys, each with the number of its type and its bytes.
fn typed(entries: &[(&str, u32, Vec<u8>)]) -> Vec<u8> {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend([0; 8]);
    file.extend((entries.len() as u64).to_le_bytes());
    for (key, kind, bytes) in entries {
        file.extend((key.len() as u64).to_le_bytes());
        file.extend(key.as_bytes());
        file.extend(kind.to_le_bytes());
        file.extend(bytes);
    }
    file.resize(file.len().next_multiple_of(32), 0);
    file
}

/// The bytes of an array: the type of its elements, their number, and their bytes.
fn array(kind: u32, count: u64, bytes: &[u8]) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &count.to_le_bytes(), bytes].concat()
}

/// A file with values of every type, whose bytes are all small numbers.
fn every_type() -> Vec<u8> {
    let text = [&1u64.to_le_bytes()[..], b"x"].concat();
    let f32_bytes = 0.1f32.to_le_bytes();
    typed(&[
        ("u8", 0, vec![5]),
        ("i8", 1, vec![5]),
        ("u16", 2, vec![5, 0]),
        ("i16", 3, vec![5, 0]),
        ("u32", 4, vec![5, 0, 0, 0]),
        ("i32", 5, vec![5, 0, 0, 0]),
        ("f32", 6, f32_bytes.to_vec()),
        ("bool", 7, vec![1]),
        ("text", 8, text.clone()),
        ("u64", 10, vec![5, 0, 0, 0, 0, 0, 0, 0]),
        ("i64", 11, vec![5, 0, 0, 0, 0, 0, 0, 0]),
        ("f64", 12, 0.1f64.to_le_bytes().to_vec()),
        ("no texts", 9, array(8, 0, &[])),
        ("no arrays", 9, array(9, 0, &[])),
        ("no bytes", 9, array(0, 0, &[])),
        ("texts", 9, array(8, 1, &text)),
        ("bools", 9, array(7, 2, &[1, 0])),
        ("u16s", 9, array(2, 2, &[1, 0, 2, 0])),
        ("f32s", 9, array(6, 1, &f32_bytes)),
        ("nested", 9, array(9, 2, &[array(2, 1, &[1, 0]), array(2, 0, &[])].concat())),
        ("deep", 9, array(9, 1, &array(9, 1, &array(8, 0, &[])))),
        ("mixed", 9, array(9, 2, &[array(0, 1, &[1]), array(8, 1, &text)].concat())),
    ])
}

#[test]
fn metadata_keep_their_exact_types() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let cases = [every_type(), fs::read(fixtures().join("widths.gguf")).unwrap(), model()];
    for original in cases {
        fs::write(at("a.gguf"), &original).unwrap();
        let file = gguf::open(at("a.gguf")).unwrap();
        let mut copy = Vec::new();
        let tensors: Vec<_> = file.tensors().iter().map(|info| info.path().to_owned()).collect();
        let tensors: Vec<_> =
            tensors.into_iter().map(|name| (name.clone(), file.deferred(&name).unwrap())).collect();
        gguf::to_writer(&mut copy, file.metadata(), &tensors).unwrap();
        assert!(copy == original, "to_writer changed the file");

        let options = Options::default();
        let opened = Format::Gguf.open(at("a.gguf"), &options).unwrap();
        let losses = Format::Gguf.save(&opened, at("b.gguf"), &options).unwrap();
        assert!(losses.is_empty() && losses.notes().is_empty(), "{losses}: {:?}", losses.notes());
        assert!(fs::read(at("b.gguf")).unwrap() == original, "a conversion changed the file");

        Format::Gguf.to_archive(at("a.gguf"), at("a.tenarc"), &options).unwrap();
        let losses = Format::Gguf.from_archive(at("a.tenarc"), at("c.gguf"), &options).unwrap();
        assert!(losses.is_empty() && losses.notes().is_empty(), "{losses}: {:?}", losses.notes());
        assert!(fs::read(at("c.gguf")).unwrap() == original, "an archive changed the file");
    }
}

/// What Python makes of a value: floats are doubles, and arrays are lists.
fn as_python(value: &Value) -> Value {
    match value {
        Value::F32(value) => value.to_string().parse::<f64>().unwrap().into(),
        Value::Tensor(tensor) => {
            let list: Vec<Value> = tenarc::value::from_value(value.clone()).unwrap_or_else(|_| {
                let bytes = tensor.le_bytes();
                match tensor.dtype() {
                    DType::Bool => bytes.iter().map(|byte| Value::from(*byte == 1)).collect(),
                    DType::U16 => bytes.chunks(2).map(|two| i128::from(two[0]).into()).collect(),
                    DType::F32 => vec![0.1f64.into()],
                    _ => bytes.iter().map(|byte| i128::from(*byte).into()).collect(),
                }
            });
            Value::Array(list)
        }
        Value::Array(values) => Value::Array(values.iter().map(as_python).collect()),
        Value::Map(entries) => {
            entries.iter().map(|(key, value)| (key.as_str().unwrap(), as_python(value))).collect()
        }
        other => other.clone(),
    }
}

#[test]
fn edited_metadata_keep_their_types_if_these_hold_the_values() {
    let original = every_type();
    let file = Gguf::new(&original[..]).unwrap();
    let none: &[(&str, Vec<f32>)] = &[];
    let python: Vec<_> =
        file.metadata().iter().map(|(key, value)| (key.clone(), as_python(value))).collect();
    let mut out = Vec::new();
    gguf::to_writer(&mut out, &python, none).unwrap();
    assert!(out == original);

    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let write = |key: &str, value: Value| {
        let mut metadata = file.metadata().to_vec();
        metadata.iter_mut().find(|(found, _)| found == key).unwrap().1 = value.clone();
        let strict =
            gguf::to_writer(Vec::new(), &metadata, none).map_err(|error| error.to_string());
        let metadata: Value = metadata.into_iter().collect();
        tenarc::save(at("a.tenarc"), &Value::from_iter([("__metadata__", metadata)])).unwrap();
        let options = Options::default().with_losses(true);
        let losses = Format::Gguf.from_archive(at("a.tenarc"), at("a.gguf"), &options).unwrap();
        let again = gguf::open(at("a.gguf")).unwrap();
        let find = |key: &str| {
            let found = again.metadata().iter().find(|(found, _)| found == key);
            found.map_or(Value::Null, |(_, value)| value.clone())
        };
        let kind = find(TYPES).get(key).cloned().unwrap_or_default().to_string();
        (strict, losses.notes().join("; "), find(key), kind)
    };
    // The value fits: 1e-6 is a double that has the digits of a single.
    for (key, value, kind) in [
        ("u16", Value::from(65_535), "\"u16\""),
        ("i64", Value::from(-1), "\"i64\""),
        ("f32", Value::from(3), "\"f32\""),
        ("i32", Value::from(7.0), "\"i32\""),
        ("f32", Value::from(1e-6f64), "\"f32\""),
        ("u16s", Value::from(vec![1, 2, 3]), "[\"u16\"]"),
        ("no texts", Value::from(vec!["a"]), "[\"text\"]"),
    ] {
        let (strict, notes, _, found) = write(key, value);
        assert_eq!((strict, &*notes, &*found), (Ok(()), "", kind), "{key}");
    }
    // It does not, so the value is kept and the type changes.
    for (key, value, kind) in [
        ("u8", Value::from(256), "\"u32\""),
        ("u8", Value::from(-1), "\"i32\""),
        ("u8", Value::from(0.5), "\"f64\""),
        ("f32", Value::from(0.123_456_789_012), "\"f64\""),
        ("f32", Value::from(1e300), "\"f64\""),
        ("f32", Value::from(16_777_217), "\"u32\""),
        ("u16s", Value::from(vec![1, 70_000]), "[\"u32\"]"),
        ("texts", Value::from(vec![1, 2]), "[\"u32\"]"),
        ("u8", Value::from(true), "null"),
    ] {
        let (strict, notes, found, found_kind) = write(key, value.clone());
        assert!(strict.unwrap_err().contains("does not hold"), "{key}");
        assert!(notes.contains(&format!("{key}`: its type was")), "{notes}");
        assert_eq!(found_kind, kind, "{key}");
        if !matches!(value, Value::Array(_)) {
            assert_eq!(found, value, "{key}");
        }
    }
    // What GGUF cannot hold is a loss, whatever the type was.
    assert_eq!(write("u8", Value::Null).2, Value::Null);
    let wrong = [("a", Value::from(1)), (TYPES, Value::from_iter([("a", Value::from("u128"))]))];
    let error = gguf::to_writer(Vec::new(), &wrong, none).unwrap_err().to_string();
    assert!(error.contains("expected a type such as"), "{error}");
    let taken = typed(&[(TYPES, 7, vec![1])]);
    assert!(error_of(taken).contains("reserved"));
    assert!(error_of(typed(&[("a", 9, array(13, 0, &[]))])).contains("found 13"));
}

#[test]
fn tensors_that_gguf_cannot_hold_are_refused() {
    let refused = |tensor: &dyn ToTensor| {
        let none: &[(&str, Value)] = &[];
        let mut out = Vec::new();
        let error = gguf::to_writer(&mut out, none, &[("t", tensor)]).unwrap_err().to_string();
        assert!(out.is_empty());
        error
    };
    assert!(refused(&vec![1u8]).contains("no dtype u8"));
    let columns = DynTensor::new(DType::I8, &[2, 2], Order::F, vec![0; 4]).unwrap();
    assert!(refused(&columns).contains("column-major"));
    let deep = DynTensor::new(DType::I8, &[1; 5], Order::C, vec![0]).unwrap();
    assert!(refused(&deep).contains("at most 4 dimensions"));
    let part = DynTensor::new(DType::from_name("q4_k"), &[100], Order::C, vec![0; 56]).unwrap();
    assert!(refused(&part).contains("whole blocks"));
    let short = DynTensor::new(DType::from_name("q4_k"), &[256], Order::C, vec![0; 100]).unwrap();
    let none: &[(&str, Value)] = &[];
    let error = gguf::to_writer(Vec::new(), none, &[("t", short)]).unwrap_err().to_string();
    assert!(error.contains("expected 144 bytes of a tensor, found 100"), "{error}");
}

#[test]
fn hostile_files_are_refused_by_name() {
    let edit = |at: usize, bytes: &[u8]| {
        let mut file = small();
        file[at..at + bytes.len()].copy_from_slice(bytes);
        error_of(file)
    };
    assert!(edit(0, b"GGML").contains("expected `GGUF`"));
    assert!(edit(4, &1u32.to_le_bytes()).contains("version 2 or 3 of GGUF, found 1"));
    assert!(edit(4, &3u32.to_be_bytes()).contains("big-endian"));
    // The numbers of tensors and of keys, and the length of a key.
    assert!(edit(8, &u64::MAX.to_le_bytes()).contains("the name of a tensor"));
    let found = edit(16, &u64::MAX.to_le_bytes());
    assert!(found.contains("a key of"), "{found}");
    assert!(edit(24, &u64::MAX.to_le_bytes()).contains("bytes, found "));
    let mut file = small();
    file.extend([0; 32]);
    assert!(error_of(file).contains("after the last tensor"));
    let mut file = model();
    file.push(0);
    // It ends with a tensor of 2,048 bytes, which are a multiple of the alignment.
    assert!(error_of(file).contains("found 1 bytes after the last tensor"));
}

#[test]
fn every_truncation_and_every_flipped_bit_is_an_error_or_another_value() {
    let whole = model();
    for len in 0..whole.len() {
        assert!(Gguf::new(&whole[..len]).is_err(), "{len}");
    }
    let original = Gguf::new(&whole[..]).unwrap();
    let data = usize::try_from(original.position("token_embd.weight").unwrap()).unwrap();
    for bit in 0..data * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let Ok(file) = Gguf::new(&flipped[..]) else { continue };
        for info in file.tensors() {
            let tensor = file.dyn_tensor(info.path()).unwrap();
            assert_eq!(tensor.meta(), *info.meta());
        }
        // The bytes between the list of tensors and the first tensor are not read.
        let is_padding = bit / 8 >= data - 32;
        // As texts: zero equals negative zero.
        let said = |file: &Gguf<&[u8]>| {
            let metadata: Vec<_> =
                file.metadata().iter().map(|(key, value)| format!("{key}: {value:?}")).collect();
            (metadata, format!("{:?}", file.tensors()), file.version())
        };
        let is_other = said(&file) != said(&original);
        assert!(is_other || is_padding, "{bit}");
    }
}

#[test]
fn values_that_claim_much_take_no_memory() {
    // A text, an array of texts, and an array of numbers that say they have 2^40 elements.
    for (kind, rest) in [
        (8u32, vec![]),
        (9, 8u32.to_le_bytes().to_vec()),
        (9, 6u32.to_le_bytes().to_vec()),
        (9, 9u32.to_le_bytes().to_vec()),
    ] {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend(0u64.to_le_bytes());
        file.extend(1u64.to_le_bytes());
        file.extend(1u64.to_le_bytes());
        file.push(b'k');
        file.extend(kind.to_le_bytes());
        file.extend(rest);
        file.extend((1u64 << 40).to_le_bytes());
        assert!(Gguf::new(file).is_err());
    }
    // Arrays in arrays, each of one element.
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(0u64.to_le_bytes());
    file.extend(1u64.to_le_bytes());
    file.extend(1u64.to_le_bytes());
    file.push(b'k');
    file.extend(9u32.to_le_bytes());
    for _ in 0..100_000 {
        file.extend(9u32.to_le_bytes());
        file.extend(1u64.to_le_bytes());
    }
    assert!(error_of(file).contains("nested deeper than the limit"));
}

#[test]
fn an_archive_of_it_can_be_compressed_and_verified() {
    let file = Gguf::new(model()).unwrap();
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(&file.flat().unwrap()).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    archive.verify().unwrap();
    let names: Vec<_> = archive.tensors().unwrap().iter().map(|t| t.path().to_owned()).collect();
    assert!(names.iter().any(|name| name == "q4"), "{names:?}");
}
