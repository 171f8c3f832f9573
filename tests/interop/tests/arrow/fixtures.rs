//! Files that pyarrow wrote, judged by the manifest beside them.

use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tenarc::io::ReadAt;
use tenarc::{DType, DynTensor, Value};
use tenarc_convert::arrow::{self, ArrowFile, Batches};

use super::support::{Slow, fixture, fixtures, says, value};

fn dtype_of(name: &str) -> DType {
    DType::from_name(&name.replace("uint", "u").replace("int", "i").replace("float", "f"))
}

fn hex(bytes: &[u8]) -> String {
    let digit = |four: u8| char::from_digit(four.into(), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Compares what is under a name with what the manifest says of it.
fn compare(found: &Value, expected: &Json, path: &str) {
    match found {
        Value::Map(entries) => {
            let expected = expected.as_object().unwrap();
            assert_eq!(entries.len(), expected.len(), "{path}");
            for (key, found) in entries {
                let key = key.as_str().unwrap();
                compare(found, &expected[key], &format!("{path}.{key}"));
            }
        }
        Value::Tensor(tensor) => {
            assert_eq!(tensor.dtype(), &dtype_of(expected["dtype"].as_str().unwrap()), "{path}");
            let shape: Vec<usize> = serde_json::from_value(expected["shape"].clone()).unwrap();
            assert_eq!(tensor.shape(), shape, "{path}");
            let bytes = DynTensor::clone(tensor).into_row_major().unwrap().le_bytes().into_owned();
            assert_eq!(hex(&Sha256::digest(bytes)), expected["sha256"], "{path}");
        }
        Value::Array(strings) => {
            assert_eq!(expected["strings"], strings.len(), "{path}");
            let strings = strings.iter().map(|item| match item {
                Value::Text(text) => text.as_bytes(),
                Value::Bytes(bytes) => bytes,
                other => panic!("{path}: {other:?}"),
            });
            let joined = strings.collect::<Vec<_>>().join(&0);
            assert_eq!(hex(&Sha256::digest(joined)), expected["sha256"], "{path}");
        }
        other => panic!("{path}: {other:?}"),
    }
}

fn check<S: ReadAt>(file: &ArrowFile<S>, expected: &Json, name: &str) {
    assert_eq!(expected["rows"], file.rows(), "{name}");
    let mut found = value(file).unwrap();
    let metadata = match &mut found {
        Value::Map(entries)
            if entries.first().is_some_and(|(key, _)| key.as_str() == Some("__metadata__")) =>
        {
            Some(entries.remove(0).1)
        }
        _ => None,
    };
    compare(&found, &expected["columns"], name);
    let metadata = metadata.map(|value| serde_json::to_value(value).unwrap());
    assert_eq!(metadata.unwrap_or_default(), expected["metadata"], "{name}");
    let losses: Vec<String> = file.losses().listed().iter().map(ToString::to_string).collect();
    assert_eq!(Json::from(losses), expected["losses"], "{name}");
}

#[test]
fn every_file_holds_what_its_manifest_says() {
    let manifest: Json = serde_json::from_slice(&fixture("MANIFEST.json")).unwrap();
    assert_eq!(manifest["made_with"]["pyarrow"], "26.0.1");
    let files = manifest["files"].as_object().unwrap();
    assert!(files.len() > 20);
    for (name, expected) in files {
        let bytes = fixture(name);
        check(&arrow::open(fixtures().join(name)).unwrap(), expected, name);
        check(&ArrowFile::new(&bytes[..]).unwrap(), expected, name);
        check(&ArrowFile::new(Slow(&bytes)).unwrap(), expected, name);
    }
}

/// A file is read like a stream, too: its footer is not needed.
#[test]
fn batches_are_the_rows_one_after_the_other() {
    for name in [
        "batches.arrows",
        "dtypes.arrows",
        "lists.arrow",
        "tensors.arrow",
        "zstd.arrow",
        "lost.arrows",
    ] {
        let bytes = fixture(name);
        let whole = ArrowFile::new(&bytes[..]).unwrap();
        for info in whole.tensors() {
            let (mut rows, mut found) = (0, Vec::new());
            for batch in Batches::new(&bytes[..]).unwrap() {
                let batch = batch.unwrap();
                rows += batch.rows();
                found.extend_from_slice(&batch.dyn_tensor(info.path()).unwrap().le_bytes());
                assert_eq!(batch.losses(), whole.losses());
            }
            assert_eq!(rows, whole.rows(), "{name}");
            assert_eq!(whole.dyn_tensor(info.path()).unwrap().le_bytes(), found, "{name}");
        }
    }
}

#[test]
fn columns_are_had_by_their_names() {
    let file = arrow::open(fixtures().join("structs.arrow")).unwrap();
    let paths: Vec<&str> = file.tensors().iter().map(tenarc::tensor::TensorInfo::path).collect();
    assert_eq!(paths, ["point.x", "point.deep.y", "id"]);
    let x: ndarray::Array1<f32> = file.tensor("point.x").unwrap();
    assert_eq!(x, ndarray::array![0.0, 1.0, 2.0]);
    assert_eq!(file.texts("point.deep.names").unwrap(), ["a", "b", "c"]);
    says(file.tensor::<ndarray::Array1<f64>>("point.x"), "expected a tensor of f64");
    says(file.tensor::<ndarray::Array2<f32>>("point.x"), "point.x");
    says(file.dyn_tensor("point"), "no column of this name");
    says(file.dyn_tensor("point.deep.names"), "found a column of strings");
    says(file.texts("id"), "expected a column of texts");
    says(file.byte_strings("point.deep.names"), "expected a column of byte strings");
    let strings = arrow::open(fixtures().join("strings.arrow")).unwrap();
    assert_eq!(strings.byte_strings("binary_view").unwrap()[1], b"a\xff");
}

#[test]
fn broken_files_are_refused() {
    let manifest: Json = serde_json::from_slice(&fixture("MANIFEST.json")).unwrap();
    for (name, expected) in manifest["bad"].as_object().unwrap() {
        let bytes = fixture(&format!("bad/{name}"));
        let read = ArrowFile::new(&bytes[..]).and_then(|file| value(&file).map(drop));
        says(read, expected.as_str().unwrap());
        let error = says(
            arrow::open(fixtures().join("bad").join(name)).and_then(|file| value(&file).map(drop)),
            expected.as_str().unwrap(),
        );
        assert!(!error.to_string().contains('\u{1b}'));
    }
}
