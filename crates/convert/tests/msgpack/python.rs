//! Files that flax and msgpack-numpy wrote.

use std::fs;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};
use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::{DType, Value};
use tenarc_convert::{Format, Losses, Options, msgpack};
use tenarc_test_support::hex;

fn fixture(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests/fixtures/msgpack", name].iter().collect()
}

fn manifest(name: &str) -> serde_json::Map<String, serde_json::Value> {
    let text = fs::read(fixture("MANIFEST.json")).unwrap();
    let mut all: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let serde_json::Value::Object(files) = all[name].take() else { panic!("{name}") };
    files
}

/// The value of a file: read as such, and from the archive that it becomes.
fn values(name: &str) -> [Value; 2] {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("a");
    Format::Msgpack.to_archive(fixture(name), &to, &Options::default()).unwrap();
    let read = msgpack::read(&fs::read(fixture(name)).unwrap()[..]).unwrap();
    [read, tenarc::load(&to).unwrap()]
}

/// The name of numpy and `ml_dtypes`.
fn name_of(dtype: &DType) -> String {
    let name = dtype.name();
    match name {
        "bool" => "bool".into(),
        "bf16" => "bfloat16".into(),
        "f8_e4m3" => "float8_e4m3fn".into(),
        "f8_e5m2" => "float8_e5m2".into(),
        _ => {
            let kind = match &name[..1] {
                "u" => "uint",
                "i" => "int",
                "f" => "float",
                _ => "complex",
            };
            format!("{kind}{}", &name[1..])
        }
    }
}

#[test]
fn arrays_of_flax_are_tensors() {
    for value in values("flax.msgpack") {
        let params = value.get("params").unwrap();
        let expected = manifest("flax.msgpack");
        assert_eq!(params.as_map().unwrap().len(), expected.len());
        for (name, expected) in expected {
            let tensor = params.get(&name).and_then(Value::as_tensor).expect(&name);
            assert_eq!(name_of(tensor.dtype()), expected["dtype"], "{name}");
            assert_eq!(serde_json::json!(tensor.shape()), expected["shape"], "{name}");
            assert_eq!(hex(&Sha256::digest(tensor.le_bytes())), expected["sha256"], "{name}");
        }
        assert_eq!(value.get("step"), Some(&Value::Integer(3)));
        // Texts are none of its dtypes here; the extension stays, and is written again.
        let texts = value.get("texts").unwrap();
        assert_eq!(texts.get("msgpack_ext"), Some(&Value::Integer(1)));
        let mut again = Vec::new();
        msgpack::write(&mut again, texts).unwrap();
        let bytes = fs::read(fixture("flax.msgpack")).unwrap();
        assert!(bytes.windows(again.len()).any(|part| part == again));
    }
}

#[test]
fn structured_arrays_are_maps_of_their_fields() {
    for value in values("structs.msgpack") {
        for (name, shape) in [("large", &[200][..]), ("small", &[2, 2])] {
            let rows = value.get(name).unwrap();
            let tensor = |path: &[&str]| {
                let found = path.iter().try_fold(rows, |value, step| value.get(step));
                found.and_then(Value::as_tensor).unwrap_or_else(|| panic!("{path:?}"))
            };
            let count = shape.iter().product::<usize>();
            let ids: Vec<i64> = tensor(&["id"]).as_slice::<i64>().unwrap().to_vec();
            assert!(ids.iter().copied().eq(0..i64::try_from(count).unwrap()), "{name}");
            let halves = tensor(&["in", "x"]).as_slice::<f32>().unwrap().to_vec();
            assert_eq!((halves.len(), halves[3]), (count, 1.5));
            let grid = tensor(&["grid"]);
            assert_eq!(grid.shape(), [shape, &[2, 3]].concat());
            assert_eq!(grid.as_slice::<i16>().unwrap()[6..9], [6, 7, 8]);
        }
        let texts = value.get("large").and_then(|rows| rows.get("text")).unwrap();
        assert_eq!(texts.as_array().unwrap()[199], Value::from("ü19"));
        let texts = value.get("small").and_then(|rows| rows.get("in")?.get("n")).unwrap();
        let row = || Value::from(["", "ab"]);
        assert_eq!(texts, &Value::Array(vec![row(), row()]));
        let aligned = value.get("aligned").and_then(|rows| rows.get("f")?.as_tensor()).unwrap();
        assert_eq!(*aligned.as_slice::<f64>().unwrap(), [1.0, 2.0]);
    }
}

#[test]
fn arrays_of_objects_are_losses() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("a");
    let error = Format::Msgpack.to_archive(fixture("lost.msgpack"), &to, &Options::default());
    let error = error.unwrap_err();
    let lost = Losses::of(&error).unwrap();
    assert_eq!((lost.count(), lost.listed()[0].path()), (1, "list.0"));
    assert!(lost.listed()[0].what().contains("(kind O)"), "{lost}");
    let options = Options::default().with_losses(true);
    Format::Msgpack.to_archive(fixture("lost.msgpack"), &to, &options).unwrap();
    let value: Value = tenarc::load(&to).unwrap();
    assert_eq!(value.get("list"), Some(&Value::Array(vec![Value::Null])));
    assert!(value.get("kept").and_then(Value::as_tensor).is_some());

    // As values, they are an error, or added to a list.
    let bytes = fs::read(fixture("lost.msgpack")).unwrap();
    assert!(msgpack::read(&bytes[..]).unwrap_err().to_string().contains("(kind O)"));
    let mut losses = Losses::default();
    let twice = [&bytes[..], &bytes].concat();
    let mut messages = Vec::new();
    let limits = Limits::default();
    msgpack::append_messages(&twice[..], limits, &mut losses, &mut messages).unwrap();
    let message = tenarc::to_vec(&value).unwrap();
    assert_eq!((messages == [&message[..], &message].concat(), losses.count()), (true, 2));
}

fn extension(kind: u8, data: &[u8]) -> Vec<u8> {
    [&[0xc7, u8::try_from(data.len()).unwrap(), kind], data].concat()
}

#[test]
fn extensions_that_are_no_arrays_stay_as_they_are() {
    let array = b"\x93\x91\x02\xa6uint16\xc4\x04\x01\x00\x02\x00";
    let read = |kind, data: &[u8]| msgpack::read(&extension(kind, data)[..]).unwrap();
    assert!(read(1, array).as_tensor().is_some());
    let with = |at: usize, byte: u8| {
        let mut array = array.to_vec();
        array[at] = byte;
        array
    };
    let complex = [&b"\x92\xcb"[..], &[0; 8], b"\xcb", &[0; 8]].concat();
    assert!(read(2, &complex).as_tensor().is_some());
    let others: [(u8, &[u8]); 11] = [
        (0, array),
        (4, array),
        // A scalar has no dimensions.
        (3, array),
        (1, &array[..15]),
        (1, &[&array[..], b"x"].concat()),
        (1, &with(0, 0x92)),
        (1, &with(2, 3)),
        (1, &with(2, 0xff)),
        (1, &with(4, b'w')),
        (1, b""),
        (2, &complex[..18]),
    ];
    for (kind, data) in others {
        let expected = Value::Map(vec![
            ("msgpack_ext".into(), Value::Integer(kind.into())),
            ("data".into(), Value::Bytes(data.to_vec())),
        ]);
        assert_eq!(read(kind, data), expected, "{data:?}");
        let mut again = Vec::new();
        msgpack::write(&mut again, &expected).unwrap();
        assert_eq!(msgpack::read(&again[..]).unwrap(), expected);
    }
    // As a map it would come back as something else.
    for (kind, data) in [(1, &array[..]), (2, &complex)] {
        let map = Value::Map(vec![
            ("msgpack_ext".into(), Value::Integer(kind)),
            ("data".into(), Value::Bytes(data.to_vec())),
        ]);
        let error = msgpack::write(Vec::new(), &map).unwrap_err().to_string();
        assert!(error.contains("would be read as an array of flax"), "{error}");
    }
}

#[test]
fn string_arrays_are_arrays_of_texts() {
    for value in values("strings.msgpack") {
        for (name, expected) in manifest("strings.msgpack") {
            let found = serde_json::to_value(value.get(&name).unwrap()).unwrap();
            assert_eq!(found, expected, "{name}");
        }
        assert_eq!(value.get("weight").and_then(Value::as_tensor).unwrap().shape(), [4]);
        let bytes = [Value::from("ab"), Value::Bytes(vec![0xff]), Value::from("")];
        assert_eq!(value.get("bytes"), Some(&Value::Array(bytes.into())));
    }
}

#[test]
fn broken_string_arrays_are_refused_by_name() {
    let array = |dtype: &str, shape: &[u8], data: &[u8]| {
        let text =
            |text: &str| [&[0xa0 | u8::try_from(text.len()).unwrap()], text.as_bytes()].concat();
        let dims = [&[0x90 | u8::try_from(shape.len()).unwrap()], shape].concat();
        let data = [&[0xc4, u8::try_from(data.len()).unwrap()], data].concat();
        let fields = [text("nd"), vec![0xc3], text("type"), text(dtype), text("shape"), dims];
        [vec![0x84], fields.concat(), text("data"), data].concat()
    };
    for (bytes, why) in [
        (array("<U0", &[127], &[]), "texts without characters"),
        (array("<U-1", &[1], &[]), "a string array is not a tensor"),
        (array("<U1", &[2], &[0; 4]), "4 bytes do not make a string array of shape [2]"),
        (array("<U4294967295", &[127, 127], &[]), "0 bytes do not make"),
        (array("|S1", &[2, 0], &[]), "has no shape"),
        (array("<U1", &[1], &[0, 0xd8, 0, 0]), "0xd800 is not a Unicode character"),
    ] {
        let error = msgpack::read(&bytes[..]).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, expected {why}");
    }
    // Each text takes more memory than its byte.
    let bytes = array("|S1", &[100], &[b'a'; 100]);
    let limits = Limits::default().with_max_alloc(3000);
    assert_eq!(msgpack::read_with(&bytes[..], limits).unwrap_err().category(), Category::Limit);
    assert!(msgpack::read_with(&bytes[..], limits.with_max_alloc(10_000)).is_ok());
}
