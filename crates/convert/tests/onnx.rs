//! ONNX models: the library's own files, models made by hand, and the way into archives.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::tensor::{Order, TensorInfo};
use tenarc::{DType, DynTensor, Value};
use tenarc_convert::onnx::{self, Onnx};
use tenarc_convert::{Format, Options, TensorFile as _};

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

/// A tensor of texts as it stands in the value.
fn texts_of<S: ReadAt>(model: &Onnx<S>, name: &str) -> serde_json::Value {
    fn json(value: &Value) -> serde_json::Value {
        match value {
            Value::Text(text) => text.as_str().into(),
            Value::Array(items) => items.iter().map(json).collect(),
            other => panic!("{other:?}"),
        }
    }
    let value: BTreeMap<String, Value> =
        tenarc::from_slice(&tenarc::to_vec(&model.flat().unwrap()).unwrap()).unwrap();
    json(&value[name])
}

#[test]
fn models_of_the_library_are_read() {
    let manifest = fs::read(fixtures().join("MANIFEST.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let files = manifest["files"].as_object().unwrap();
    assert_eq!(files.len(), 7);
    for (file, expected) in files {
        let model = onnx::open_with_external(fixtures().join(file)).unwrap();
        let closed = onnx::open(fixtures().join(file)).unwrap();
        let expected = expected.as_array().unwrap();
        let mut infos = model.tensors().into_iter();
        for expected in expected {
            let name = expected["name"].as_str().unwrap();
            if let Some(texts) = expected.get("texts") {
                assert_eq!(texts_of(&model, name), *texts, "{name}");
                continue;
            }
            if let Some(why) = expected["refused"].as_str() {
                let loss = model.losses().listed().iter().find(|loss| loss.path() == name);
                assert!(loss.unwrap().what().contains(why), "{name}: {loss:?}");
                let error = model.dyn_tensor(name).unwrap_err();
                assert!(error.to_string().contains(why), "{error}");
                continue;
            }
            let info = infos.next().unwrap();
            assert_eq!(info.path(), name);
            let found = model.dyn_tensor(name).unwrap();
            assert_eq!((info.dtype(), info.shape()), (found.dtype(), found.shape()), "{name}");
            assert_eq!(info.byte_len(), found.le_bytes().len() as u64, "{name}");
            assert_eq!(found.dtype().name(), expected["dtype"].as_str().unwrap(), "{name}");
            assert_eq!(serde_json::json!(found.shape()), expected["shape"], "{name}");
            assert_eq!(*found.le_bytes(), hex(expected["hex"].as_str().unwrap()), "{name}");
            assert_eq!(closed.dyn_tensor(name).is_err(), expected["external"] == true, "{name}");
        }
        assert!(infos.next().is_none(), "{file}");
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
    for (kind, why) in [(8, "texts"), (0, "no type"), (27, "unknown type")] {
        let error = read(tensor(kind, &[2], bytes(9, [0]))).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
    assert!(read(tensor(23, &[3], bytes(9, [1, 2]))).is_err());
    // Integers of 4 and of 2 bits may leave some bits of the last byte unused.
    for (kind, name, count, len) in
        [(21, "u4", 3, 2), (22, "i4", 4, 2), (25, "u2", 5, 2), (26, "i2", 4, 1)]
    {
        let data = vec![0x1b; len];
        let found = read(tensor(kind, &[count as u64], bytes(9, &data))).unwrap();
        assert_eq!(found, made(name, &[count], &data));
        for wrong in [len - 1, len + 1] {
            let error = read(tensor(kind, &[count as u64], bytes(9, vec![0; wrong]))).unwrap_err();
            assert!(error.to_string().contains("do not make"), "{error}");
        }
    }
    assert!(
        read(tensor(9, &[1], bytes(9, [2])))
            .unwrap_err()
            .to_string()
            .contains("the byte 2; it must be 0 or 1")
    );
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
        (5, bytes(5, varint(40_000)), "40000 does not fit in i16"),
        (4, bytes(5, varint(u64::MAX)), "-1 does not fit in u16"),
        (12, bytes(11, varint(1 << 32)), "does not fit in u32"),
        (6, bytes(5, [1, 2]), "expected 4 bytes of elements, found more"),
        (6, bytes(5, []), "4 of the 4 bytes of the elements are missing"),
        (6, bytes(5, [0x80]), "the rest of a number"),
        (6, bytes(5, [0xff; 11]), "more than 64 bits"),
        (6, bytes(7, [1]), "expected i32 elements in field 5, found field 7"),
        (1, bytes(4, [0; 8]), "8 bytes do not make"),
        (1, vec![], "0 bytes do not make"),
        (6, [bytes(5, [1]), bytes(9, [0; 4])].concat(), "elements twice"),
        (6, [bytes(9, [0; 4]), bytes(9, [])].concat(), "elements twice"),
        (6, [bytes(3, []), bytes(9, [0; 4])].concat(), "segments"),
        (6, [number(14, 2), bytes(9, [0; 4])].concat(), "data location 0 or 1, found 2"),
        (6, [number(14, 1), bytes(9, [0; 4])].concat(), "in the model and in an external file"),
        (6, bytes(2, [1]), "a wrong wire type"),
    ] {
        let error = read(tensor(kind, &[1], &rest)).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, expected {why}");
    }
    for dims in [&[u64::MAX][..], &[1 << 40, 1 << 40]] {
        let error = read(tensor(2, dims, bytes(9, [1]))).unwrap_err();
        assert!(error.to_string().contains("does not fit in memory"), "{error}");
    }
    let error = read(tensor(2, &[1; 65], bytes(9, [1]))).unwrap_err();
    assert_eq!(error.category(), Category::Limit);
}

#[test]
fn what_is_no_model_is_refused() {
    let one = tensor(2, &[1], bytes(9, [1]));
    for (file, why) in [
        (vec![], "found no graph"),
        (number(1, 8), "found no graph"),
        (number(7, 8), "not a message"),
        (bytes(7, number(5, 1)), "not a message"),
        (vec![0x3b], "wire type 3"),
        (vec![2, 0], "field number of at least 1, found 0"),
        (model(&[one.clone(), one.clone()]), "two tensors of this name"),
        (vec![0x3a, 0x7f], "a field has 127 bytes"),
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
                        let _ = model.dyn_tensor(tensor.path());
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

/// A cache of models: a directory of links to files that lie elsewhere, side by side.
#[cfg(unix)]
#[test]
fn links_of_a_model_cache_are_followed() {
    use std::os::unix::fs::symlink;
    let dir = tempfile::tempdir().unwrap();
    let (blobs, snapshot) = (dir.path().join("blobs"), dir.path().join("snapshots/main"));
    fs::create_dir_all(blobs.join("below")).unwrap();
    fs::create_dir_all(&snapshot).unwrap();
    fs::write(blobs.join("aa"), model(&[outside("m.onnx_data", "1", None)])).unwrap();
    fs::write(blobs.join("bb"), [5, 6, 7]).unwrap();
    fs::write(blobs.join("below/cc"), [5, 6, 7]).unwrap();
    fs::write(dir.path().join("secret"), [5, 6, 7]).unwrap();
    symlink("../../blobs/aa", snapshot.join("m.onnx")).unwrap();
    let read = |target: &str| {
        let data = snapshot.join("m.onnx_data");
        let _ = fs::remove_file(&data);
        symlink(target, &data).unwrap();
        onnx::open_with_external(snapshot.join("m.onnx")).unwrap().dyn_tensor("w")
    };
    assert_eq!(read("../../blobs/bb").unwrap(), made("u8", &[2], &[6, 7]));
    for target in ["../../secret", "../../blobs/below/cc"] {
        let error = read(target).unwrap_err();
        assert!(error.to_string().contains("leads out of"), "{error}");
    }
}

#[test]
fn archives_hold_the_tensors_and_the_graph_is_a_note() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("out.tenarc");
    let from = fixtures().join("refused.onnx");
    let error = Format::Onnx.to_archive(&from, &to, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("stops unless losses are accepted"), "{error}");
    assert!(!to.exists());
    let lossy = Options::default().with_losses(true);
    let losses = Format::Onnx.to_archive(&from, &to, &lossy).unwrap();
    let lost: Vec<_> = losses.listed().iter().map(tenarc_convert::Loss::path).collect();
    assert!(lost.contains(&"w.none") && lost.contains(&"s.string"), "{lost:?}");
    assert!(losses.listed().iter().all(tenarc_convert::Loss::is_tensor), "{losses:?}");
    let [note] = losses.notes() else { panic!("{losses:?}") };
    for part in ["graph.node", "graph.input", "opset_import", "ir_version"] {
        assert!(note.contains(part) && !lost.contains(&part), "{note}: {lost:?}");
    }
    let archive = tenarc::open(&to).unwrap();
    assert_eq!(archive.only().unwrap().keys("").unwrap(), ["o.f32"]);

    for file in
        ["typed.onnx", "raw.onnx", "shapes.onnx", "external.onnx", "narrow.onnx", "nodes.onnx"]
    {
        let from = fixtures().join(file);
        // The graph is out of scope: nothing is lost.
        Format::Onnx.to_archive(&from, &to, &Options::default().with_external(true)).unwrap();
        let (model, archive) =
            (onnx::open_with_external(&from).unwrap(), tenarc::open(&to).unwrap());
        let value: BTreeMap<String, Value> =
            tenarc::from_slice(&tenarc::to_vec(&model.flat().unwrap()).unwrap()).unwrap();
        assert_eq!(archive.only().unwrap().keys("").unwrap().len(), value.len());
        for tensor in model.tensors() {
            let path = format!("/{}", tensor.path().replace('/', "~1"));
            assert_eq!(
                archive.only().unwrap().dyn_tensor(&path).unwrap(),
                model.dyn_tensor(tensor.path()).unwrap()
            );
        }
    }
    // Of tensors alone, nothing is lost.
    let plain = dir.path().join("plain.onnx");
    fs::write(&plain, model(&[tensor(6, &[1000], bytes(5, [7; 1000]))])).unwrap();
    assert!(Format::Onnx.to_archive(&plain, &to, &Options::default()).unwrap().is_empty());
    let found: ndarray::Array1<i32> = tenarc::open(&to).unwrap().tensor("w").unwrap();
    assert_eq!(found, ndarray::Array1::from_elem(1000, 7));
    // Elements that turn out wrong leave the archive that was there.
    fs::write(&plain, model(&[tensor(6, &[1000], bytes(5, [7; 999]))])).unwrap();
    assert!(Format::Onnx.to_archive(&plain, &to, &Options::default()).is_err());
    assert_eq!(tenarc::open(&to).unwrap().tensors().unwrap().len(), 1);
    assert!(Format::Onnx.to_archive(fixtures().join("external.onnx"), &to, &lossy).is_err());
}

/// A node with this output and these attributes.
fn constant(output: &str, attributes: &[Vec<u8>]) -> Vec<u8> {
    let attributes: Vec<u8> = attributes.iter().flat_map(|attribute| bytes(5, attribute)).collect();
    // Attributes first: no order of fields is certain.
    bytes(1, [attributes, bytes(2, output), bytes(4, "Constant")].concat())
}

fn attribute(name: &str, fields: &[Vec<u8>]) -> Vec<u8> {
    // The name last.
    [fields.concat(), bytes(1, name)].concat()
}

#[test]
fn fields_of_nodes_are_read_in_any_order() {
    let weight = tensor(6, &[2], bytes(5, [7; 2]));
    let single = [vec![7 << 3 | 5], 1.5f32.to_le_bytes().to_vec()].concat();
    let graph = [
        constant("a", &[attribute("value", &[bytes(5, &weight)])]),
        constant("b", &[attribute("value_ints", &[number(8, 3), bytes(8, [4, 5])])]),
        constant("c", &[attribute("value_floats", &[single.clone(), single])]),
        constant("d", &[attribute("value_int", &[number(3, u64::MAX)])]),
        bytes(5, &weight),
    ];
    let model = Onnx::new(bytes(7, graph.concat())).unwrap();
    let tensors = model.tensors();
    let names: Vec<_> = tensors.iter().map(TensorInfo::path).collect();
    assert_eq!(names, ["w", "a", "b", "c", "d"]);
    let expected = made("i32", &[2], &[7, 0, 0, 0, 7, 0, 0, 0]);
    assert_eq!(model.dyn_tensor("a").unwrap(), expected);
    let integers: Vec<u8> = [3i64, 4, 5].iter().flat_map(|n| n.to_le_bytes()).collect();
    assert_eq!(model.dyn_tensor("b").unwrap(), made("i64", &[3], &integers));
    let floats = 1.5f32.to_le_bytes().repeat(2);
    assert_eq!(model.dyn_tensor("c").unwrap(), made("f32", &[2], &floats));
    assert_eq!(model.dyn_tensor("d").unwrap(), made("i64", &[], &[0xff; 8]));
    assert!(model.losses().is_empty(), "{}", model.losses());
}

#[test]
fn what_nodes_hold_that_is_no_tensor_is_a_loss() {
    let weight = tensor(6, &[2], bytes(5, [7; 2]));
    // Two outputs of one name are no graph.
    let twice = constant("w", &[attribute("value", &[bytes(5, &weight)])]);
    let error = Onnx::new(bytes(7, [twice.clone(), twice.clone()].concat())).unwrap_err();
    assert!(error.to_string().contains("two tensors of this name"), "{error}");
    let error = Onnx::new(bytes(7, [twice, bytes(5, &weight)].concat())).unwrap_err();
    assert!(error.to_string().contains("two tensors of this name"), "{error}");

    // Field 22 is a sparse tensor.
    let sparse = constant("s", &[attribute("sparse_value", &[vec![0xb2, 1, 0]])]);
    let model = Onnx::new(bytes(7, [bytes(15, []), sparse, bytes(5, &weight)].concat())).unwrap();
    assert_eq!(model.losses().tensors(), 2, "{}", model.losses());
    // A value of no known kind.
    let empty = constant("e", &[attribute("value_float", &[])]);
    let model = Onnx::new(bytes(7, [empty, bytes(5, &weight)].concat())).unwrap();
    assert_eq!(model.losses().tensors(), 1, "{}", model.losses());
    assert!(model.dyn_tensor("e").is_err() && model.dyn_tensor("w").is_ok());
    // Numbers of other operators are no tensors.
    let node = bytes(5, attribute("value_ints", &[bytes(8, [4, 5])]));
    let model = Onnx::new(bytes(7, bytes(1, [node, bytes(4, "Pad")].concat()))).unwrap();
    assert!(model.tensors().is_empty() && model.losses().is_empty());
}

#[test]
fn graphs_are_nested_to_a_depth_and_their_names_cost_what_they_take() {
    let weight = tensor(6, &[2], bytes(5, [7; 2]));
    let nested = |depth: usize, output: &str| {
        (0..depth).fold(bytes(5, &weight), |inner, _| {
            let attribute = bytes(
                5,
                [bytes(1, "body"), bytes(6, [inner, bytes(5, &weight)].concat())].concat(),
            );
            bytes(1, [bytes(2, output), attribute].concat())
        })
    };
    let error = Onnx::new(bytes(7, nested(300, "n"))).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    let graph = [bytes(5, &weight), nested(1, "n")].concat();
    let error = Onnx::new(bytes(7, graph)).unwrap_err();
    // The inner graph holds two tensors of one name.
    assert!(error.to_string().contains("two tensors of this name"), "{error}");

    // A long name would be repeated for each of many tensors.
    let tensors: Vec<u8> = (0..1000).flat_map(|_| bytes(10, &weight)).collect();
    let attribute = bytes(5, [bytes(1, "parts"), tensors].concat());
    let node = bytes(1, [bytes(2, "n".repeat(60_000)), attribute].concat());
    let limits = Limits::default().with_max_alloc(20 << 20);
    let error = Onnx::with_limits(bytes(7, node), limits).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
}

#[test]
fn texts_are_checked() {
    let texts =
        |dims: &[u64], rest: &[Vec<u8>]| Onnx::new(model(&[tensor(8, dims, rest.concat())]));
    for (dims, rest, why) in [
        (&[2u64][..], vec![bytes(6, "a")], "1 texts do not make"),
        (&[1], vec![bytes(6, "a"), bytes(9, "b")], "expected texts in field 6, found field 9"),
        (&[1], vec![number(6, 1)], "a wrong wire type"),
    ] {
        let error = texts(dims, &rest).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, expected {why}");
    }
    assert!(Onnx::new(model(&[tensor(6, &[1], [bytes(6, "a"), bytes(5, [1])].concat())])).is_err());
    // Strings of ONNX are bytes.
    let model = texts(&[1], &[bytes(6, [0xff])]).unwrap();
    let value: Value =
        tenarc::from_slice(&tenarc::to_vec(&model.flat().unwrap()).unwrap()).unwrap();
    let bytes_of_it = Value::Array(vec![Value::Bytes(vec![0xff])]);
    assert_eq!(value, Value::Map(vec![(Value::Text("w".into()), bytes_of_it)]));
    // Longer than names may be.
    let long = "x".repeat(100_000);
    let model = texts(&[1], &[bytes(6, &long)]).unwrap();
    assert_eq!(texts_of(&model, "w"), serde_json::json!([long]));
    assert!(model.deferred("w").is_err() && model.dyn_tensor("w").is_err());
}

#[test]
fn deferred_tensors_are_those_that_are_read() {
    for name in ["raw.onnx", "typed.onnx", "external.onnx"] {
        let model = onnx::open_with_external(fixtures().join(name)).unwrap();
        for info in model.tensors() {
            let deferred = model.deferred(info.path()).unwrap();
            let found = tenarc::to_vec(&tenarc::Tensor(deferred)).unwrap();
            let expected = model.dyn_tensor(info.path()).unwrap();
            assert_eq!(found, tenarc::to_vec(&tenarc::Tensor(expected)).unwrap(), "{name}");
        }
        assert!(model.deferred("no such").is_err());
    }
    let model = onnx::open(fixtures().join("refused.onnx")).unwrap();
    let lost = &model.losses().listed()[0];
    let error = model.deferred(lost.path()).unwrap_err();
    let why = lost.what().strip_suffix("; it is left out").unwrap();
    assert!(error.to_string().contains(why), "{error}");
}
