//! A nested value became a flat file, and came back flat, without a word.

use std::collections::BTreeMap;
use std::path::Path;

use ndarray::{Array1, array};
use serde::Serialize;
use tenarc::{Tensor, Value};
use tenarc_convert::{Format, Options};

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

/// From an archive to a file and to an archive again, with the default options.
fn convert(format: Format, from: &Path, file: &Path, to: &Path) -> tenarc::Result<()> {
    format.from_archive(from, file, &Options::default())?;
    format.to_archive(file, to, &Options::default()).map(drop)
}

const FORMATS: [Format; 3] = [Format::Safetensors, Format::Npz, Format::Arrow];

#[test]
fn comes_back() {
    let dir = tempfile::tempdir().unwrap();
    let [from, file, to] = ["from", "file", "to"].map(|name| dir.path().join(name));
    let flat = BTreeMap::from([("layers.0.weight", tensor()), ("0", tensor())]);
    let value = |path: &Path| -> Value { tenarc::open(path).unwrap().load().unwrap() };
    for format in FORMATS {
        tenarc::save(&from, &model()).unwrap();
        convert(format, &from, &file, &to).unwrap();
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
        convert(format, &from, &file, &to).unwrap();
        assert!(matches!(value(&to), Value::Map(entries) if entries.len() == 2));
        assert_eq!(sorted(&from), sorted(&to));
    }
}

#[test]
fn is_a_loss_if_it_cannot_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let [from, file, to] = ["from", "file", "to"].map(|name| dir.path().join(name));
    let inner = |key: &str| BTreeMap::from([(key.to_owned(), tensor())]);
    for format in FORMATS {
        let refused = |value: &dyn Fn() -> tenarc::Result<()>, why: &str| {
            value().unwrap();
            let error = convert(format, &from, &file, &to).unwrap_err().to_string();
            assert!(error.contains("the nesting of the tensors is left out"), "{error}");
            assert!(error.contains(why), "{error}");
        };
        refused(&|| tenarc::save(&from, &BTreeMap::from([("a", inner("b.c"))])), "has a dot");
        refused(&|| tenarc::save(&from, &BTreeMap::from([("a", inner("0"))])), "keys of a list");
        refused(&|| tenarc::save(&from, &BTreeMap::from([(7, tensor())])), "an integer key");
        refused(&|| tenarc::save(&from, &(tensor(), tensor())), "the value is a list");
    }
}
