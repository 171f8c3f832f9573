//! A double did not load into an `f32` field unless that held it exactly, although other programs, such as
//! those in Python, write every float as a double.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::Tensor;
use tenarc::ser::EncodeOptions;

#[derive(Deserialize, PartialEq, Debug)]
struct Config {
    rate: f32,
    decay: Option<f32>,
    steps: Vec<f32>,
    named: BTreeMap<String, f32>,
    pair: (f32, f64),
}

/// As Python writes it: every float is `fb` and eight bytes.
#[derive(Serialize)]
struct Written {
    rate: f64,
    decay: f64,
    steps: Vec<f64>,
    named: BTreeMap<&'static str, f64>,
    pair: (f64, f64),
}

fn written(len: usize) -> Written {
    Written {
        rate: 0.0003,
        decay: 0.1,
        steps: vec![0.7; len],
        named: BTreeMap::from([("a", 1.0 / 3.0)]),
        pair: (0.3, 0.3),
    }
}

fn read(len: usize) -> Config {
    Config {
        rate: 0.0003,
        decay: Some(0.1),
        steps: vec![0.7; len],
        named: BTreeMap::from([("a".to_owned(), 1.0 / 3.0)]),
        pair: (0.3, 0.3),
    }
}

#[derive(Deserialize, PartialEq, Debug)]
struct Flat {
    #[serde(flatten)]
    config: Config,
}

#[derive(Deserialize, PartialEq, Debug)]
#[serde(untagged)]
enum Untagged {
    Config(Config),
}

fn every_way<T: DeserializeOwned>(value: &impl Serialize) -> Vec<tenarc::Result<T>> {
    let mut results = Vec::new();
    for packed in [false, true] {
        let options = EncodeOptions::default().with_typed_arrays(packed);
        let bytes = tenarc::ser::to_vec_with(value, options).unwrap();
        results.push(tenarc::from_slice(&bytes));
        results.push(tenarc::from_reader(&bytes[..]));
        results.push(tenarc::from_value(tenarc::from_slice(&bytes).unwrap()));
    }
    let value = tenarc::to_value(value).unwrap();
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(&value).unwrap();
    let archive = tenarc::Archive::new(out.finish().unwrap()).unwrap();
    results.push(archive.load());
    results.push(tenarc::from_value(value));
    results
}

/// However many there are: archives pack from four doubles on.
#[test]
fn doubles_are_rounded_into_plain_fields() {
    for len in [1, 3, 4, 100, 1000] {
        let (from, to) = (written(len), read(len));
        for found in every_way::<Config>(&from) {
            assert_eq!(found.unwrap(), to);
        }
        for found in every_way::<Flat>(&from) {
            assert_eq!(found.unwrap().config, to);
        }
        for found in every_way::<Untagged>(&from) {
            assert_eq!(found.unwrap(), Untagged::Config(read(len)));
        }
    }
}

#[test]
fn infinities_and_nan_pass_and_numbers_out_of_range_do_not() {
    for found in every_way::<(f32, f32, f32)>(&(f64::INFINITY, f64::NEG_INFINITY, f64::NAN)) {
        let (most, least, none) = found.unwrap();
        assert_eq!((most, least), (f32::INFINITY, f32::NEG_INFINITY));
        assert!(none.is_nan());
    }
    for found in every_way::<f32>(&1e-300) {
        assert_eq!(found.unwrap().to_bits(), 0);
    }
    for value in [1e39, -1e300] {
        for found in every_way::<f32>(&value) {
            let error = found.unwrap_err().to_string();
            assert!(error.contains("expected f32, found double-precision float"), "{error}");
        }
        for found in every_way::<Vec<f32>>(&vec![value; 10]) {
            assert!(found.is_err());
        }
    }
    // Integers as before: only those that are a single.
    for found in every_way::<f32>(&((1u32 << 24) + 1)) {
        assert!(found.is_err());
    }
}

#[test]
fn tensors_are_never_rounded() {
    type Tensor1 = Tensor<ndarray::Array1<f32>>;
    for found in every_way::<Tensor1>(&vec![0.1f64; 10]) {
        assert!(found.is_err());
    }
    for found in every_way::<Tensor1>(&Tensor(vec![0.1f64; 10])) {
        assert!(found.is_err());
    }
    for found in every_way::<Vec<f32>>(&Tensor(vec![0.1f64; 10])) {
        let error = found.unwrap_err().to_string();
        assert!(error.contains("double-precision float 0.1"), "{error}");
    }
    for found in every_way::<Vec<f32>>(&Tensor(vec![0.5f64; 10])) {
        assert_eq!(found.unwrap(), [0.5; 10]);
    }
}
