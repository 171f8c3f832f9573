//! Arrays of texts, and structured arrays, whose fields are columns.

use std::io::Cursor;

use half::bf16;
use serde_json::{Value as Json, json};
use tenarc::{Archive, DType, DynTensor, Tensor, Value};
use tenarc_convert::npy::{self, NpyFile, Npz, NpzWriter};
use tenarc_convert::{Format, Names, Options, TensorFile};
use tenarc_test_support::effort::stride;

use crate::support::{fixture, fixtures, says};

fn manifest(of: &str) -> Json {
    let manifest: Json = serde_json::from_slice(&fixture("columns/MANIFEST.json")).unwrap();
    manifest[of].clone()
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

fn texts(value: &Value) -> Json {
    match value {
        Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!(format!("hex:{}", hex(bytes))),
        Value::Array(items) => items.iter().map(texts).collect(),
        other => panic!("{other:?}"),
    }
}

fn sum<'a>(bytes: impl IntoIterator<Item = &'a u8>) -> u64 {
    bytes.into_iter().map(|byte| u64::from(*byte)).sum()
}

/// What a part of a value is, in the manifest's terms.
fn check(name: &str, found: &Value, expected: &Json) {
    let Value::Tensor(tensor) = found else {
        let found = texts(found);
        match expected.get("texts") {
            Some(expected) => assert_eq!(found, *expected, "{name}"),
            None => {
                let found = found.as_array().unwrap();
                let all: String = found.iter().map(|text| text.as_str().unwrap()).collect();
                let is = json!({"count": found.len(), "sum": sum(all.as_bytes())});
                assert_eq!(is, *expected, "{name}");
            }
        }
        return;
    };
    // The manifest has the elements in row-major order.
    let rows = tensor.clone().into_row_major().unwrap();
    let mut is = json!({"dtype": tensor.dtype().name(), "shape": tensor.shape()});
    match expected.get("sum") {
        Some(_) => is["sum"] = json!(sum(&*rows.le_bytes())),
        None => is["hex"] = json!(hex(&rows.le_bytes())),
    }
    assert_eq!(is, *expected, "{name}");
}

fn entries(file: &impl TensorFile, names: Names) -> Vec<(String, Value)> {
    let value = file.value(names).unwrap();
    assert!(value.losses().is_empty(), "{}", value.losses());
    let bytes = tenarc::to_vec(&value).unwrap();
    let Value::Map(entries) = tenarc::from_slice(&bytes).unwrap() else { panic!("{bytes:?}") };
    let name = |key| match key {
        Value::Text(name) => name,
        other => panic!("{other:?}"),
    };
    entries.into_iter().map(|(key, value)| (name(key), value)).collect()
}

#[test]
fn texts_and_fields_are_read_as_numpy_has_them() {
    for (file, of) in [("texts", "texts"), ("stored", "texts"), ("records", "records")] {
        let bytes = fixture(&format!("columns/{file}.npz"));
        let npz = Npz::new(&bytes[..]).unwrap();
        let (found, expected) = (entries(&npz, Names::Flat), manifest(of));
        for (name, value) in &found {
            if name == "long" {
                let long = Value::Text("x".repeat(300_000));
                assert_eq!(*value, Value::Array(vec![long, Value::Text("y".into())]));
                continue;
            }
            check(name, value, &expected[name]);
            let deferred = npz.deferred(name);
            let Value::Tensor(tensor) = value else {
                says(deferred, "a string array is not a tensor");
                continue;
            };
            let bytes = tenarc::to_vec(&Tensor(deferred.unwrap())).unwrap();
            assert_eq!(&tenarc::from_slice::<Tensor<DynTensor>>(&bytes).unwrap().0, &**tensor);
        }
        let count = expected.as_object().unwrap().len() + usize::from(file == "texts");
        assert_eq!(found.len(), count, "{file}");
        assert_eq!(npz.verify().unwrap(), None);
    }
    let npz = Npz::open(fixtures().join("columns/records.npz")).unwrap();
    says(npz.dyn_tensor("rec"), "structured");
    says(npz.deferred("rec"), "structured");
    says(npz.deferred("rec.gone"), "no such array");
    says(npz.deferred("plain.x"), "no such array");
    says(npz.info("texts"), "no such array");
    // Taken apart, a field is below its array.
    let nested = entries(&npz, Names::Nested);
    let (_, Value::Map(rec)) = &nested[0] else { panic!("{nested:?}") };
    assert_eq!(rec[0].0, Value::Text("id".into()));
}

/// The header of version 1 is Latin-1, and says `höhe` in it.
#[test]
fn names_of_fields_are_decoded_as_their_version_says() {
    let bytes = fixture("columns/latin1_field.npy");
    let file = NpyFile::new(&bytes[..]).unwrap();
    let names: Vec<_> = entries(&file, Names::Flat).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["höhe", "x"]);
    file.deferred("höhe").unwrap();
    // In version 2, too. In version 3, such a header is no UTF-8.
    let of_version = |version: u8| {
        let len = u32::from(u16::from_le_bytes([bytes[8], bytes[9]])).to_le_bytes();
        [&bytes[..6], &[version, 0], &len[..], &bytes[10..]].concat()
    };
    let file = NpyFile::new(of_version(2)).unwrap();
    assert_eq!(entries(&file, Names::Flat)[0].0, "höhe");
    says(NpyFile::new(of_version(3)), "expected UTF-8 in an npy header of version 3");
}

/// The fields of `s` and those of `s.t`.
#[test]
fn one_name_may_be_the_start_of_another() {
    let bytes = fixture("columns/prefix.npz");
    let npz = Npz::new(&bytes[..]).unwrap();
    let found = entries(&npz, Names::Flat);
    assert!(found.len() > 1, "{found:?}");
    for (name, value) in &found {
        let bytes = tenarc::to_vec(&Tensor(npz.deferred(name).unwrap())).unwrap();
        assert_eq!(tenarc::from_slice::<Value>(&bytes).unwrap(), *value, "{name}");
        npz.position(name).unwrap();
    }
    let dir = tempfile::tempdir().unwrap();
    let (from, to) = (fixtures().join("columns/prefix.npz"), dir.path().join("a.tenarc"));
    Format::Npz.to_archive(from, &to, &Options::default()).unwrap();
    assert_eq!(tenarc::open(&to).unwrap().tensors().unwrap().len(), found.len());
}

#[test]
fn records_without_fields_are_a_loss() {
    let header = b"{'descr': [], 'fortran_order': False, 'shape': (3,), }\n";
    let start = [&b"\x93NUMPY\x01\0"[..], &[header.len() as u8, 0]].concat();
    let bytes = [&start[..], header].concat();
    let file = NpyFile::new(bytes).unwrap();
    let losses = file.value(Names::Flat).unwrap().losses().to_string();
    assert!(losses.contains("records without fields: their number is left out"), "{losses}");
}

#[test]
fn npy_files_hold_them_too() {
    let bytes = fixture("columns/record.npy");
    let file = NpyFile::new(&bytes[..]).unwrap();
    let expected = manifest("record");
    let found = entries(&file, Names::Stored);
    assert_eq!(found.len(), expected.as_object().unwrap().len());
    for (name, value) in &found {
        check(name, value, &expected[name]);
    }
    assert!(file.place("id").unwrap().is_none());
    says(file.deferred("gone"), "no field");
    let bytes = fixture("columns/texts.npy");
    let file = NpyFile::new(&bytes[..]).unwrap();
    let value: Value = tenarc::from_slice(&tenarc::to_vec(&file.flat().unwrap()).unwrap()).unwrap();
    assert_eq!(texts(&value), manifest("texts")["plain"]["texts"]);
    assert!(file.tensors().unwrap().is_empty());

    let dir = tempfile::tempdir().unwrap();
    for name in ["record", "texts"] {
        let to = dir.path().join(name);
        let from = fixtures().join(format!("columns/{name}.npy"));
        Format::Npy.to_archive(from, &to, &Options::default()).unwrap();
        tenarc::open(&to).unwrap().verify().unwrap();
    }
}

#[test]
fn texts_come_back_as_arrays_of_numpy() {
    let bytes = fixture("columns/texts.npz");
    let npz = Npz::new(&bytes[..]).unwrap();
    let mut archive = tenarc::OArchive::new(Vec::new()).unwrap();
    tenarc_convert::into_archive(&npz, &mut archive, &Options::default()).unwrap();
    let archive = Archive::new(archive.finish().unwrap()).unwrap();
    let segment = archive.segment(0).unwrap();
    let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
    let options = Options::default().with_losses(true);
    let lost = npy::export(&segment, &mut out, &options).unwrap();
    let lost: Vec<_> = lost.listed().iter().map(ToString::to_string).collect();
    assert_eq!(lost.len(), 2, "{lost:?}");
    assert!(lost[0].contains("`not_utf8.0`: a byte string"), "{lost:?}");
    assert!(lost[1].contains("a list loses some of its items"), "{lost:?}");
    let bytes = out.finish().unwrap().into_inner();
    let back = Npz::new(&bytes[..]).unwrap();
    let before = entries(&npz, Names::Flat);
    let after = entries(&back, Names::Flat);
    for (name, value) in &before {
        let found = after.iter().find(|(found, _)| found == name);
        let is_kept = name != "not_utf8";
        assert_eq!(found.map(|(_, found)| found), is_kept.then_some(value), "{name}");
    }
    let uneven = ["x".repeat(1 << 20), String::new(), String::new(), String::new(), String::new()];
    let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
    says(out.add_texts("a", &[5], &uneven), "all texts have the same length");
    says(out.add_texts("a", &[1], &["a\0".to_owned()]), "ends with a zero character");
    says(out.add_texts("a", &[2], &["a".to_owned()]), "do not make");
}

/// Only arrays of equal lengths are arrays of numpy. The items of others are arrays of their own.
#[test]
fn nested_texts_are_an_array_if_they_have_a_shape() {
    let names = |value: serde_json::Value| {
        let mut archive = tenarc::OArchive::new(Vec::new()).unwrap();
        archive.save(&json!({ "a": value })).unwrap();
        let archive = Archive::new(archive.finish().unwrap()).unwrap();
        let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
        let options = Options::default().with_losses(true);
        npy::export(&archive.segment(0).unwrap(), &mut out, &options).unwrap();
        let bytes = out.finish().unwrap().into_inner();
        let names = |(name, value): &(String, Value)| (name.clone(), texts(value));
        entries(&Npz::new(&bytes[..]).unwrap(), Names::Flat).iter().map(names).collect::<Vec<_>>()
    };
    let kept = |name: &str, value: serde_json::Value| (name.to_owned(), value);
    for whole in [
        json!([["a", "bc"], ["d", ""]]),
        json!([[["a"], ["b"], ["c"]], [["d"], ["e"], ["f"]]]),
        json!(["a"]),
        json!("a"),
    ] {
        assert_eq!(names(whole.clone()), [kept("a", whole)]);
    }
    assert_eq!(
        names(json!([["a"], ["b", "c"]])),
        [kept("a.0", json!(["a"])), kept("a.1", json!(["b", "c"]))]
    );
    assert_eq!(names(json!(["a", ["b"]])), [kept("a.0", json!("a")), kept("a.1", json!(["b"]))]);
    assert_eq!(names(json!([["a"], "b"])), [kept("a.0", json!(["a"])), kept("a.1", json!("b"))]);
    assert_eq!(
        names(json!([["a"], [["b"]]])),
        [kept("a.0", json!(["a"])), kept("a.1", json!([["b"]]))]
    );
}

#[test]
fn what_of_records_is_not_read_is_lost_by_name() {
    let bytes = fixture("columns/refused.npz");
    let npz = Npz::new(&bytes[..]).unwrap();
    let value = npz.flat().unwrap();
    let lost: Vec<_> = value.losses().listed().iter().map(ToString::to_string).collect();
    assert_eq!(lost.len(), 2, "{lost:?}");
    for (lost, (name, why)) in lost
        .iter()
        .zip([("`fields.points.x`", "array of records"), ("`fields.points.y`", "array of records")])
    {
        assert!(lost.starts_with(name) && lost.contains(why), "{lost}");
    }
    let names: Vec<&str> = value.tensors().map(|(name, _)| name).collect();
    assert_eq!(names, ["date", "fields.when", "fields.value", "good"]);
}

/// numpy saves arrays of `ml_dtypes` as raw bytes. Only the caller knows what they are.
#[test]
fn raw_elements_are_what_the_caller_says() {
    let expected = ndarray::arr2(&[[-2.5f32, -1.5, -0.5], [0.5, 1.5, 2.5]]).mapv(bf16::from_f32);
    for name in ["bf16", "fortran"] {
        let bytes = fixture(&format!("void/{name}.npy"));
        let file = || NpyFile::new(&bytes[..]).unwrap();
        says(file().flat(), "give their dtype with the option `void`");
        // These have other widths.
        says(file().with_void(DType::F8E4M3).with_void(DType::F32).flat(), "`V2`");
        let file = file().with_void(DType::F8E4M3).with_void(DType::BF16);
        let bytes = tenarc::to_vec(&file.flat().unwrap()).unwrap();
        let Tensor(found): Tensor<ndarray::Array2<bf16>> = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(found, expected, "{name}");
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default();
    for name in ["mixed", "compressed"] {
        let to = dir.path().join(name);
        let from = fixtures().join(format!("void/{name}.npz"));
        let error = Format::Npz.to_archive(&from, &to, &options).unwrap_err().to_string();
        assert!(error.contains("`bf16`") && error.contains("`fp8`"), "{error}");
        assert!(!error.contains("`f32`") && !to.exists(), "{error}");
        let options = options.clone().with_void(DType::BF16).with_void(DType::F8E4M3);
        assert!(Format::Npz.to_archive(&from, &to, &options).unwrap().is_empty());
        let archive = tenarc::open(&to).unwrap();
        assert_eq!(archive.tensor::<ndarray::Array2<bf16>>("bf16").unwrap(), expected);
        let fp8 = archive.only().unwrap().dyn_tensor("fp8").unwrap();
        assert_eq!((fp8.dtype(), &*fp8.le_bytes()), (&DType::F8E4M3, &[0x30, 0xc0, 0x7e][..]));
    }
}

#[test]
fn damaged_columns_are_errors() {
    for name in ["columns/texts.npz", "columns/stored.npz", "columns/records.npz"] {
        let bytes = fixture(name);
        let step = stride(5) * if bytes.len() > 4000 { 7 } else { 1 };
        let (mut good, mut bad) = (0, 0);
        for at in (0..bytes.len()).step_by(step) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            let read =
                Npz::new(&changed[..]).and_then(|npz| tenarc::to_vec(&npz.flat()?).map(drop));
            *(if read.is_ok() { &mut good } else { &mut bad }) += 1;
        }
        // Dates, and other things that nobody reads, may change.
        assert!(bad > 5 * good, "{name}: {good} good, {bad} bad");
    }
    // A character that is none.
    let header = "{'descr': '<U1', 'fortran_order': False, 'shape': (1,)}";
    let bytes = crate::support::npy(header, &[0, 0xd8, 0, 0]);
    let file = NpyFile::new(&bytes[..]).unwrap();
    says(tenarc::to_vec(&file.flat().unwrap()), "not a Unicode character");
    // No characters, and so as many texts as one likes in no bytes.
    let header = "{'descr': '<U0', 'fortran_order': False, 'shape': (1099511627776,)}";
    let bytes = crate::support::npy(header, &[]);
    says(NpyFile::new(&bytes[..]).unwrap().flat(), "without characters");
    let header = "{'descr': '<U1', 'fortran_order': False, 'shape': (1099511627776, 0)}";
    let bytes = crate::support::npy(header, &[]);
    says(NpyFile::new(&bytes[..]).unwrap().flat(), "no shape");
    let shape = "1,".repeat(60);
    let inner = "1,".repeat(1000);
    let header = format!(
        "{{'descr': [('a', '<U1', ({inner}))], 'fortran_order': False, 'shape': ({shape})}}"
    );
    let bytes = crate::support::npy(&header, &[65, 0, 0, 0]);
    let error = says(NpyFile::new(&bytes[..]).unwrap().flat(), "dimensions");
    assert_eq!(error.category(), tenarc::error::Category::Limit);
}
