//! Real files of other programs: each gives what its manifest says, which the library of its format has read.
//! `fixtures/real/collect.py` copies them from packages for Python.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};
use tenarc::Value;
use tenarc_convert::{Format, Options, parquet};
use tenarc_test_support::hex;

/// A file, where it is from, and what it must give.
#[derive(Deserialize)]
struct Expected {
    file: String,
    package: String,
    version: String,
    path: String,
    licence: String,
    sha256: String,
    #[serde(default)]
    tensors: BTreeMap<String, Tensor>,
    #[serde(default)]
    texts: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    columns: BTreeMap<String, Vec<Json>>,
    /// A part of the error, if the file is refused.
    refused: Option<String>,
}

#[derive(Deserialize, PartialEq, Debug)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    sha256: String,
}

#[derive(Default)]
struct Found {
    tensors: BTreeMap<String, Tensor>,
    texts: BTreeMap<String, Vec<String>>,
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/real")
}

fn digest(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// The tensors and the arrays of texts in a value, by their paths.
fn walk(value: &Value, path: &str, found: &mut Found) {
    match value {
        Value::Tensor(tensor) => {
            let tensor = Tensor {
                dtype: tensor.dtype().name().to_owned(),
                shape: tensor.shape().to_vec(),
                sha256: digest(&tensor.le_bytes()),
            };
            found.tensors.insert(path.to_owned(), tensor);
        }
        Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().unwrap().to_owned()).collect();
            found.texts.insert(path.to_owned(), texts);
        }
        Value::Map(entries) => {
            for (key, inner) in entries {
                let key = key.as_str().unwrap();
                if key != "__metadata__" {
                    let path =
                        if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
                    walk(inner, &path, found);
                }
            }
        }
        other => panic!("{path}: {other:?}"),
    }
}

fn json(value: &Value) -> Json {
    match value {
        Value::F64(number) => (*number).into(),
        Value::Text(text) => text.as_str().into(),
        number => number.as_i64().unwrap().into(),
    }
}

#[test]
fn real_files_give_what_their_libraries_read() {
    let manifest = fs::read(fixtures().join("MANIFEST.json")).unwrap();
    let manifest: Vec<Expected> = serde_json::from_slice(&manifest).unwrap();
    assert!(manifest.len() >= 9);
    let dir = tempfile::tempdir().unwrap();
    for expected in manifest {
        let name = &expected.file;
        let origin = [&expected.package, &expected.version, &expected.path, &expected.licence];
        assert!(origin.iter().all(|text| !text.is_empty()), "{name}");
        let from = fixtures().join(name);
        assert_eq!(digest(&fs::read(&from).unwrap()), expected.sha256, "{name}");
        let to = dir.path().join(name).with_extension("tenarc");
        let options = Options::default().with_table("table");
        let done = match name.rsplit('.').next().unwrap() {
            "npy" => Format::Npy.to_archive(&from, &to, &Options::default()),
            "npz" => Format::Npz.to_archive(&from, &to, &Options::default()),
            "h5" => Format::Hdf5.to_archive(&from, &to, &Options::default()),
            "onnx" => Format::Onnx.to_archive(&from, &to, &Options::default()),
            "parquet" => parquet::to_archive(&from, &to, &options),
            other => panic!("{other}"),
        };
        if let Some(why) = &expected.refused {
            let error = done.unwrap_err().to_string();
            assert!(error.contains(why) && !to.exists(), "{name}: {error}");
            continue;
        }
        done.unwrap_or_else(|error| panic!("{name}: {error}"));
        let archive = tenarc::open(&to).unwrap();
        if !expected.columns.is_empty() {
            let rows = archive.table("table").unwrap().rows::<Value>(..).unwrap();
            for (column, values) in &expected.columns {
                let found: Vec<Json> = rows.iter().map(|row| json(&row[column.as_str()])).collect();
                assert_eq!(&found, values, "{name}: {column}");
            }
            continue;
        }
        let mut found = Found::default();
        walk(&archive.only().unwrap().load::<Value>().unwrap(), "", &mut found);
        assert_eq!(found.tensors, expected.tensors, "{name}");
        assert_eq!(found.texts, expected.texts, "{name}");
    }
}
