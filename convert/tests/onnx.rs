//! ONNX models: the library's own files, models made by hand, and the way into archives.

use std::fs;
use std::path::{Path, PathBuf};

use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor};
use tenarc_convert::onnx::{self, Onnx, Options};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/onnx")
}

fn hex(text: &str) -> Vec<u8> {
    let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digit).collect()
}

/// A field of a number.
fn number(field: u8, value: u64) -> Vec<u8> {
    [vec![field << 3], varint(value)].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    bytes.push(value.to_le_bytes()[0]);
    bytes
}

/// A field of bytes: a string, a message, packed numbers.
fn bytes(field: u8, content: impl AsRef<[u8]>) -> Vec<u8> {
    let content = content.as_ref();
    [vec![field << 3 | 2], varint(content.len() as u64), content.to_vec()].concat()
}

fn tensor(kind: u64, dims: &[u64], rest: impl AsRef<[u8]>) -> Vec<u8> {
    let dims: Vec<u8> = dims.iter().flat_map(|&dim| number(1, dim)).collect();
    [dims, number(2, kind), bytes(8, "w"), rest.as_ref().to_vec()].concat()
}

/// A model of nothing but tensors.
fn model(tensors: &[Vec<u8>]) -> Vec<u8> {
    bytes(7, tensors.iter().flat_map(|tensor| bytes(5, tensor)).collect::<Vec<u8>>())
}

fn read(tensor: Vec<u8>) -> tenarc::Result<DynTensor> {
    Onnx::new(model(&[tensor]))?.dyn_tensor("w")
}

fn made(name: &str, shape: &[usize], bytes: &[u8]) -> DynTensor {
    DynTensor::new(DType::from_name(name), shape, Order::C, bytes.to_vec()).unwrap()
}

#[test]
fn models_of_the_library_are_read() {
    let manifest = fs::read(fixtures().join("MANIFEST.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let files = manifest["files"].as_object().unwrap();
    assert_eq!(files.len(), 5);
    for (file, expected) in files {
        let model = onnx::open_with_external(fixtures().join(file)).unwrap();
        let closed = onnx::open(fixtures().join(file)).unwrap();
        let expected = expected.as_array().unwrap();
        assert_eq!(model.tensors().len(), expected.len(), "{file}");
        for (entry, expected) in model.tensors().iter().zip(expected) {
            let name = expected["name"].as_str().unwrap();
            assert_eq!(entry.name(), name);
            if let Some(why) = expected["refused"].as_str() {
                assert!(entry.refused().unwrap().contains(why), "{name}");
                assert!(entry.dtype().is_none() && model.dyn_tensor(name).is_err());
                continue;
            }
            let found = model.dyn_tensor(name).unwrap();
            assert_eq!(found.dtype().name(), expected["dtype"].as_str().unwrap(), "{name}");
            assert_eq!(serde_json::json!(found.shape()), expected["shape"], "{name}");
            assert_eq!(*found.le_bytes(), hex(expected["hex"].as_str().unwrap()), "{name}");
            assert_eq!(entry.is_external(), expected["external"] == true, "{name}");
            assert_eq!(closed.dyn_tensor(name).is_ok(), !entry.is_external(), "{name}");
        }
    }
}

#[test]
fn every_type_is_read_from_bytes() {
    let types = [
        (1, "f32", 4),
        (2, "u8", 1),
        (3, "i8", 1),
        (4, "u16", 2),
        (5, "i16", 2),
        (6, "i32", 4),
        (7, "i64", 8),
        (9, "bool", 1),
        (10, "f16", 2),
        (11, "f64", 8),
        (12, "u32", 4),
        (13, "u64", 8),
        (14, "c64", 8),
        (15, "c128", 16),
        (16, "bf16", 2),
        (17, "f8_e4m3", 1),
        (18, "f8_e4m3fnuz", 1),
        (19, "f8_e5m2", 1),
        (20, "f8_e5m2fnuz", 1),
        (24, "f8_e8m0", 1),
    ];
    for (kind, name, width) in types {
        let data = vec![1; 2 * width];
        let found = read(tensor(kind, &[2, 1], bytes(9, &data))).unwrap();
        assert_eq!(found, made(name, &[2, 1], &data));
        let error = read(tensor(kind, &[2, 1], bytes(9, &data[1..]))).unwrap_err();
        assert!(error.to_string().contains("do not make"), "{error}");
    }
    // Two in a byte.
    assert_eq!(read(tensor(23, &[4], bytes(9, [1, 2]))).unwrap(), made("f4", &[4], &[1, 2]));
    for (kind, why) in [
        (8, "strings"),
        (21, "uint4"),
        (22, "int4"),
        (25, "uint2"),
        (26, "int2"),
        (0, "no type"),
        (27, "not known"),
    ] {
        let error = read(tensor(kind, &[2], bytes(9, [0]))).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    assert!(read(tensor(23, &[3], bytes(9, [1, 2]))).is_err());
    assert!(read(tensor(9, &[1], bytes(9, [2]))).unwrap_err().to_string().contains("no bool"));
}

#[test]
fn numbers_are_read_packed_or_one_by_one() {
    let minus = varint(u64::MAX);
    let packed = [&minus[..], &varint(300)].concat();
    let expected = made("i16", &[2], &[0xff, 0xff, 0x2c, 1]);
    assert_eq!(read(tensor(5, &[2], bytes(5, &packed))).unwrap(), expected);
    let single = [number(5, u64::MAX), number(5, 300)].concat();
    assert_eq!(read(tensor(5, &[2], &single)).unwrap(), expected);
    let mixed = [bytes(5, &minus), number(5, 300)].concat();
    assert_eq!(read(tensor(5, &[2], &mixed)).unwrap(), expected);
    // A number in more bytes than it needs.
    let long = [vec![5 << 3, 0x81, 0x80, 0x80, 0], number(5, 300)].concat();
    assert_eq!(read(tensor(5, &[2], &long)).unwrap(), made("i16", &[2], &[1, 0, 0x2c, 1]));

    let floats = [vec![4 << 3 | 5], 1.5f32.to_le_bytes().to_vec()].concat().repeat(2);
    let expected = made("f32", &[2], &1.5f32.to_le_bytes().repeat(2));
    assert_eq!(read(tensor(1, &[2], &floats)).unwrap(), expected);
    let doubles = bytes(10, [1.0f64.to_le_bytes(), 2.0f64.to_le_bytes()].concat());
    assert_eq!(read(tensor(15, &[], &doubles)).unwrap().shape(), [0usize; 0]);
    let wide = bytes(11, varint(u64::MAX));
    assert_eq!(read(tensor(13, &[1], &wide)).unwrap(), made("u64", &[1], &[0xff; 8]));
    // Dimensions, packed.
    let packed = [bytes(1, [2, 1]), number(2, 2), bytes(8, "w"), bytes(9, [7, 8])].concat();
    assert_eq!(read(packed).unwrap(), made("u8", &[2, 1], &[7, 8]));
}

#[test]
fn numbers_that_are_none_of_the_type_are_refused() {
    for (kind, rest, why) in [
        (5, bytes(5, varint(40_000)), "40000 is no i16"),
        (4, bytes(5, varint(u64::MAX)), "-1 is no u16"),
        (12, bytes(11, varint(1 << 32)), "is no u32"),
        (6, bytes(5, [1, 2]), "more than the 4 bytes"),
        (6, bytes(5, []), "4 bytes of 4 of a tensor are missing"),
        (6, bytes(5, [0x80]), "the rest of a number"),
        (6, bytes(5, [0xff; 11]), "more than 64 bits"),
        (6, bytes(7, [1]), "another type's"),
        (1, bytes(4, [0; 8]), "8 bytes do not make"),
        (1, vec![], "0 bytes do not make"),
        (6, [bytes(5, [1]), bytes(9, [0; 4])].concat(), "elements twice"),
        (6, [bytes(9, [0; 4]), bytes(9, [])].concat(), "elements twice"),
        (6, [bytes(3, []), bytes(9, [0; 4])].concat(), "segments"),
        (6, [number(14, 2), bytes(9, [0; 4])].concat(), "data location 2"),
        (6, [number(14, 1), bytes(9, [0; 4])].concat(), "here and in another"),
        (6, bytes(2, [1]), "of another type"),
    ] {
        let error = read(tensor(kind, &[1], &rest)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, expected {why}");
    }
    for dims in [&[u64::MAX][..], &[1 << 40, 1 << 40]] {
        let error = read(tensor(2, dims, bytes(9, [1]))).unwrap_err();
        assert!(error.to_string().contains("does not fit memory"), "{error}");
    }
    let error = read(tensor(2, &[1; 65], bytes(9, [1]))).unwrap_err();
    assert_eq!(error.category(), Category::Limit);
}

#[test]
fn what_is_no_model_is_refused() {
    let one = tensor(2, &[1], bytes(9, [1]));
    for (file, why) in [
        (vec![], "none with a graph"),
        (number(1, 8), "none with a graph"),
        (number(7, 8), "no message"),
        (bytes(7, number(5, 1)), "no message"),
        (vec![0x3b], "wire type 3"),
        (vec![2, 0], "number 0"),
        (model(&[one.clone(), one.clone()]), "two tensors of this name"),
        (vec![0x3a, 0x7f], "a field of 127 bytes"),
    ] {
        let error = Onnx::new(file).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, expected {why}");
    }
    let model = Onnx::new(model(&[one])).unwrap();
    assert!(model.losses().is_empty());
    assert!(model.dyn_tensor("other").is_err());
}

#[test]
fn truncations_and_changed_bytes_are_errors_or_other_tensors() {
    let tensors = [
        tensor(1, &[2], bytes(9, [0; 8])),
        [number(1, 2), number(2, 6), bytes(8, "x"), bytes(5, [1, 2]), bytes(12, "doc")].concat(),
    ];
    let file = [number(1, 8), bytes(2, "me"), model(&tensors)].concat();
    assert!(Onnx::new(file.clone()).is_ok());
    for len in 0..file.len() {
        assert!(Onnx::new(file[..len].to_vec()).is_err(), "{len}");
    }
    let mut refused = 0;
    for at in 0..file.len() {
        for byte in 0..=255 {
            let mut changed = file.clone();
            changed[at] = byte;
            match Onnx::with_limits(changed, Limits::strict()) {
                Ok(model) => {
                    for tensor in model.tensors() {
                        let _ = model.dyn_tensor(tensor.name());
                    }
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn claimed_sizes_are_not_believed() {
    // Refused when numbers are missing, not when memory for them is.
    let error = read(tensor(6, &[1 << 40], bytes(5, [1, 2]))).unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    let limits = Limits::default().with_max_alloc(1000);
    let many = model(&[tensor(2, &[1001], bytes(9, [0; 1001]))]);
    let error = Onnx::with_limits(many, limits).unwrap().dyn_tensor("w").unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    let many: Vec<_> = (0..1000u32).map(|n| bytes(8, n.to_string())).collect();
    let error = Onnx::with_limits(model(&many), limits).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
}

/// A tensor of two bytes in another file.
fn outside(location: &str, offset: &str, length: Option<&str>) -> Vec<u8> {
    let entry = |key: &str, value: &str| bytes(13, [bytes(1, key), bytes(2, value)].concat());
    let mut rest = [entry("location", location), entry("offset", offset), number(14, 1)].concat();
    rest.extend(length.map(|length| entry("length", length)).unwrap_or_default());
    tensor(2, &[2], rest)
}

#[test]
fn other_files_are_read_only_below_the_directory_and_if_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let inner = dir.path().join("model");
    fs::create_dir_all(inner.join("sub")).unwrap();
    fs::write(dir.path().join("secret"), [1, 2, 3, 4]).unwrap();
    fs::write(inner.join("sub/data"), [5, 6, 7, 8]).unwrap();
    let path = inner.join("m.onnx");
    let check = |tensor: Vec<u8>| {
        fs::write(&path, model(&[tensor])).unwrap();
        let error = onnx::open(&path).unwrap().dyn_tensor("w").unwrap_err();
        assert!(error.to_string().contains("not read unless"), "{error}");
        onnx::open_with_external(&path)?.dyn_tensor("w")
    };
    assert_eq!(check(outside("sub/data", "1", Some("2"))).unwrap(), made("u8", &[2], &[6, 7]));
    assert_eq!(check(outside("sub/data", "2", None)).unwrap(), made("u8", &[2], &[7, 8]));
    let absolute = dir.path().join("secret");
    let bad = ["../secret", "sub/../../secret", absolute.to_str().unwrap(), "", "."];
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret", inner.join("link")).unwrap();
    let link = cfg!(unix).then_some("link");
    for location in bad.into_iter().chain(link) {
        let error = check(outside(location, "0", Some("2"))).unwrap_err();
        let why = if location == "link" { "leads out of" } else { "not in" };
        assert!(error.to_string().contains(why), "{location}: {error}");
    }
    assert!(check(outside("sub", "0", None)).is_err());
    assert!(check(outside("none", "0", None)).is_err());
    assert_eq!(check(outside("sub/data", "3", None)).unwrap_err().category(), Category::Eof);
    let huge = u64::MAX.to_string();
    assert_eq!(check(outside("sub/data", &huge, None)).unwrap_err().category(), Category::Eof);
    assert!(check(outside("sub/data", "0", Some("3"))).is_err());
    fs::write(&path, model(&[outside("sub/data", "-1", None)])).unwrap();
    assert!(onnx::open(&path).is_err());
}

#[test]
fn archives_hold_the_tensors_and_the_graph_is_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("out.tenarc");
    let from = fixtures().join("refused.onnx");
    let error = onnx::to_archive(&from, &to, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("stops unless losses are accepted"), "{error}");
    assert!(!to.exists());
    let lossy = Options::default().with_losses(true);
    let losses = onnx::to_archive(&from, &to, &lossy).unwrap();
    let lost: Vec<_> = losses.listed().iter().map(tenarc_convert::Loss::path).collect();
    assert!(lost.contains(&"w.int4") && lost.contains(&"s.string"), "{lost:?}");
    assert!(losses.listed().iter().all(tenarc_convert::Loss::is_tensor), "{losses:?}");
    let [note] = losses.notes() else { panic!("{losses:?}") };
    for part in ["graph.node", "graph.input", "opset_import", "ir_version"] {
        assert!(note.contains(part) && !lost.contains(&part), "{note}: {lost:?}");
    }
    let archive = tenarc::open(&to).unwrap();
    assert_eq!(archive.only().unwrap().keys("").unwrap(), ["o.f32"]);

    for file in ["typed.onnx", "raw.onnx", "shapes.onnx", "external.onnx"] {
        let from = fixtures().join(file);
        // The graph is out of scope: nothing is lost.
        onnx::to_archive(&from, &to, &Options::default().with_external(true)).unwrap();
        let (model, archive) =
            (onnx::open_with_external(&from).unwrap(), tenarc::open(&to).unwrap());
        assert_eq!(archive.only().unwrap().keys("").unwrap().len(), model.tensors().len());
        for tensor in model.tensors() {
            let path = format!("/{}", tensor.name());
            assert_eq!(
                archive.only().unwrap().dyn_tensor(&path).unwrap(),
                model.dyn_tensor(tensor.name()).unwrap()
            );
        }
    }
    // Of tensors alone, nothing is lost.
    let plain = dir.path().join("plain.onnx");
    fs::write(&plain, model(&[tensor(6, &[1000], bytes(5, [7; 1000]))])).unwrap();
    assert!(onnx::to_archive(&plain, &to, &Options::default()).unwrap().is_empty());
    let found: ndarray::Array1<i32> = tenarc::open(&to).unwrap().tensor("w").unwrap();
    assert_eq!(found, ndarray::Array1::from_elem(1000, 7));
    // Elements that turn out wrong leave the archive that was there.
    fs::write(&plain, model(&[tensor(6, &[1000], bytes(5, [7; 999]))])).unwrap();
    assert!(onnx::to_archive(&plain, &to, &Options::default()).is_err());
    assert_eq!(tenarc::open(&to).unwrap().tensors().unwrap().len(), 1);
    assert!(onnx::to_archive(fixtures().join("external.onnx"), &to, &lossy).is_err());
}

/// An attribute of a node that holds this field.
fn node(field: Vec<u8>) -> Vec<u8> {
    bytes(1, bytes(5, [bytes(1, "value"), field].concat()))
}

#[test]
fn tensors_in_nodes_are_lost_and_said_to_be() {
    let weight = || tensor(6, &[2], bytes(5, [7; 2]));
    let constant = node(bytes(5, weight()));
    let branch = node(bytes(6, [bytes(5, weight()), constant.clone()].concat()));
    let graph = |parts: &[Vec<u8>]| bytes(7, parts.concat());
    for (parts, count) in [
        (vec![constant.clone()], 1),
        (vec![branch.clone()], 2),
        (vec![constant.clone(), branch, node(number(3, 7))], 3),
        (vec![node(number(3, 7))], 0),
    ] {
        let alone = Onnx::new(graph(&parts)).unwrap();
        assert_eq!(alone.losses().tensors(), count, "{}", alone.losses());
        // With an initializer, they can be left out; without one, nothing would be left.
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("a.onnx"), dir.path().join("a.tenarc"));
        let convert = |parts: &[Vec<u8>], lossy: bool| {
            fs::write(&from, graph(parts)).unwrap();
            onnx::to_archive(&from, &to, &Options::default().with_losses(lossy))
        };
        assert_eq!(convert(&parts, false).is_ok(), count == 0);
        match convert(&parts, true) {
            Ok(_) => assert_eq!(count, 0),
            Err(error) => assert!(error.to_string().contains("no tensor is left"), "{error}"),
        }
        let more = [parts, vec![bytes(5, weight())]].concat();
        assert_eq!(convert(&more, true).unwrap().count(), count);
    }
    let deep = (0..300).fold(constant, |inner, _| node(bytes(6, inner)));
    assert_eq!(Onnx::new(graph(&[deep])).unwrap_err().category(), Category::Limit);
}

#[test]
fn deferred_tensors_are_those_that_are_read() {
    for name in ["raw.onnx", "typed.onnx", "external.onnx"] {
        let model = onnx::open_with_external(fixtures().join(name)).unwrap();
        for entry in model.tensors().iter().filter(|entry| entry.refused().is_none()) {
            let deferred = model.deferred(entry.name()).unwrap();
            let found = tenarc::to_vec(&tenarc::Tensor(deferred)).unwrap();
            let expected = model.dyn_tensor(entry.name()).unwrap();
            assert_eq!(found, tenarc::to_vec(&tenarc::Tensor(expected)).unwrap(), "{name}");
        }
        assert!(model.deferred("no such").is_err());
    }
    let model = onnx::open(fixtures().join("refused.onnx")).unwrap();
    let refused = model.tensors().iter().find(|entry| entry.refused().is_some()).unwrap();
    let error = model.deferred(refused.name()).unwrap_err();
    assert!(error.to_string().contains(refused.refused().unwrap()), "{error}");
}
