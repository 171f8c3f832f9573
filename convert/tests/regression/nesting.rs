//! A nested value became a flat file, and came back flat, without a word.

use std::collections::BTreeMap;
use std::path::Path;

use ndarray::{Array1, array};
use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::{Tensor, Value};
use tenarc_convert::{Names, arrow, npy, safetensors};

#[derive(Serialize)]
struct Model {
    layers: Vec<Layer>,
    head: Tensor<Array1<f32>>,
}

#[derive(Serialize)]
struct Layer {
    weight: Tensor<Array1<f32>>,
    parts: (Tensor<Array1<i16>>, Tensor<Array1<i16>>),
}

fn tensor() -> Tensor<Array1<f32>> {
    Tensor(array![1.0, 2.0])
}

fn model() -> Model {
    let layer = || Layer { weight: tensor(), parts: (Tensor(array![3, 4]), Tensor(array![5, 6])) };
    Model { layers: vec![layer(), layer()], head: tensor() }
}

type ThereAndBack = fn(&Path, &Path, &Path) -> tenarc::Result<()>;

/// From an archive to a file and to an archive again, with the default options.
const FORMATS: [ThereAndBack; 3] = [
    |from, file, to| {
        safetensors::from_archive(from, file, &safetensors::Options::default())?;
        safetensors::to_archive(file, to, Names::default(), SaveOptions::default())
    },
    |from, file, to| {
        npy::archive_to_npz(from, file, &npy::ConvertOptions::default())?;
        npy::npz_to_archive(file, to, &npy::ConvertOptions::default()).map(drop)
    },
    |from, file, to| {
        arrow::from_archive(from, file, &arrow::Options::default())?;
        arrow::to_archive(file, to, &arrow::ArchiveOptions::default()).map(drop)
    },
];

#[test]
fn comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let [from, file, to] = ["from", "file", "to"].map(|name| dir.path().join(name));
    let flat = BTreeMap::from([("layers.0.weight", tensor()), ("0", tensor())]);
    let value = |path: &Path| -> Value { tenarc::open(path).unwrap().load().unwrap() };
    for convert in FORMATS {
        tenarc::save(&from, &model()).unwrap();
        convert(&from, &file, &to).unwrap();
        let sorted = |path: &Path| -> BTreeMap<String, tenarc::DynTensor> {
            let archive = tenarc::open(path).unwrap();
            let tensors = archive.tensors().unwrap();
            let read = |path: &str| archive.only().unwrap().dyn_tensor(path).unwrap();
            tensors.iter().map(|info| (info.path().to_owned(), read(info.path()))).collect()
        };
        assert_eq!(sorted(&from), sorted(&to));
        let layers: Vec<Value> = tenarc::open(&to).unwrap().get("layers").unwrap();
        let parts: Vec<Value> = tenarc::open(&to).unwrap().get("layers.1.parts").unwrap();
        assert_eq!((layers.len(), parts.len()), (2, 2));
        // What is flat stays so, whatever the names look like.
        tenarc::save(&from, &flat).unwrap();
        convert(&from, &file, &to).unwrap();
        assert!(matches!(value(&to), Value::Map(entries) if entries.len() == 2));
        assert_eq!(sorted(&from), sorted(&to));
    }
}

#[test]
fn is_a_loss_if_it_cannot_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let [from, file, to] = ["from", "file", "to"].map(|name| dir.path().join(name));
    let inner = |key: &str| BTreeMap::from([(key.to_owned(), tensor())]);
    for convert in FORMATS {
        let refused = |value: &dyn Fn() -> tenarc::Result<()>, why: &str| {
            value().unwrap();
            let error = convert(&from, &file, &to).unwrap_err().to_string();
            assert!(error.contains("the nesting of the tensors is left out"), "{error}");
            assert!(error.contains(why), "{error}");
        };
        refused(&|| tenarc::save(&from, &BTreeMap::from([("a", inner("b.c"))])), "has a dot");
        refused(&|| tenarc::save(&from, &BTreeMap::from([("a", inner("0"))])), "keys of a list");
        refused(&|| tenarc::save(&from, &BTreeMap::from([(7, tensor())])), "no text");
        refused(&|| tenarc::save(&from, &(tensor(), tensor())), "the value is a list");
    }
}
