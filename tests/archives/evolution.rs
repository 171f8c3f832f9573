//! Types that changed between writing and reading.

use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::{Archive, Tensor};

use super::support::{Counted, quick, read_everywhere, to_bytes, weights};

#[derive(Serialize)]
struct Old {
    name: String,
    weight: Tensor<Vec<f32>>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct New {
    #[serde(default)]
    momentum: Option<Tensor<Vec<f32>>>,
    weight: Tensor<Vec<f32>>,
    name: String,
    #[serde(default = "rate")]
    rate: f64,
    #[serde(default)]
    plain: Vec<f32>,
    #[serde(default)]
    nested: Nested,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Default)]
struct Nested {
    layers: Vec<Tensor<Vec<f32>>>,
    #[serde(with = "serde_bytes", default)]
    bytes: Vec<u8>,
}

fn rate() -> f64 {
    0.5
}

#[derive(Deserialize, PartialEq, Debug)]
struct Older {
    weight: Tensor<Vec<f32>>,
    name: String,
}

fn old() -> Old {
    Old { name: "old".into(), weight: weights(2000, 1) }
}

fn new() -> New {
    New {
        momentum: Some(weights(50_000, 2)),
        weight: weights(2000, 1),
        name: "new".into(),
        rate: 0.1,
        plain: weights(40_000, 3).0,
        nested: Nested { layers: vec![weights(30_000, 4); 3], bytes: vec![1; 100_000] },
    }
}

#[test]
fn a_newer_type_reads_older_files_with_defaults() {
    let expected = New {
        momentum: None,
        weight: weights(2000, 1),
        name: "old".into(),
        rate: 0.5,
        plain: vec![],
        nested: Nested::default(),
    };
    for below in [0, 2048, usize::MAX] {
        let bytes = to_bytes(&old(), quick().with_inline_below(below));
        for (way, read) in read_everywhere::<New>(&bytes) {
            assert_eq!(read.unwrap(), expected, "{way}");
        }
    }
}

#[test]
fn an_older_type_reads_newer_files_without_reading_what_it_does_not_know() {
    let expected = Older { weight: weights(2000, 1), name: "new".into() };
    for below in [0, 2048, usize::MAX] {
        let bytes = to_bytes(&new(), quick().with_inline_below(below));
        for (way, read) in read_everywhere::<Older>(&bytes) {
            assert_eq!(read.unwrap(), expected, "{way}");
        }
    }
    let archive = Archive::new(Counted::new(to_bytes(&new(), quick()))).unwrap();
    archive.source().log.take();
    assert_eq!(archive.load::<Older>().unwrap(), expected);
    let (reads, read) = archive.source().log.totals();
    assert!(read < 2000 * 4 + 2000, "{read} bytes in {reads} reads");
}

#[test]
fn renamed_fields_are_errors_that_name_them() {
    #[derive(Deserialize, Debug)]
    struct Outer {
        #[allow(dead_code)]
        inner: Renamed,
    }
    #[derive(Deserialize, Debug)]
    struct Renamed {
        #[allow(dead_code)]
        weights: Tensor<Vec<f32>>,
    }
    #[derive(Serialize)]
    struct Written {
        inner: Old,
    }
    let bytes = to_bytes(&Written { inner: old() }, quick());
    for (way, read) in read_everywhere::<Outer>(&bytes) {
        let error = read.unwrap_err();
        assert_eq!(error.category(), Category::Mismatch, "{way}: {error}");
        assert_eq!(error.path(), "inner", "{way}: {error}");
        assert!(error.to_string().contains("weights"), "{way}: {error}");
    }
}

#[test]
fn retyped_fields_are_errors_that_name_the_path() {
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Retyped<T> {
        nested: RetypedNested<T>,
    }
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct RetypedNested<T> {
        layers: Vec<T>,
    }
    let bytes = to_bytes(&new(), quick());
    for (way, read) in read_everywhere::<Retyped<Tensor<Vec<i32>>>>(&bytes) {
        let error = read.unwrap_err();
        assert_eq!(error.category(), Category::Mismatch, "{way}: {error}");
        assert_eq!(error.path(), "nested.layers.0", "{way}: {error}");
        assert!(error.to_string().contains("i32") && error.to_string().contains("f32"), "{error}");
    }
    for (way, read) in read_everywhere::<Retyped<Tensor<ndarray::Array2<f32>>>>(&bytes) {
        let error = read.unwrap_err();
        assert_eq!(error.path(), "nested.layers.0", "{way}: {error}");
    }
    for (way, read) in read_everywhere::<Retyped<String>>(&bytes) {
        let error = read.unwrap_err();
        assert_eq!(error.path(), "nested.layers.0", "{way}: {error}");
    }
    // The path is the same where part of the value is asked for.
    let archive = Archive::new(&bytes[..]).unwrap();
    let error = archive.get::<RetypedNested<Tensor<Vec<i32>>>>("nested").unwrap_err();
    assert_eq!(error.path(), "nested.layers.0", "{error}");
    let error = archive.tensor::<ndarray::Array1<i32>>("nested.layers.2").unwrap_err();
    assert_eq!(error.path(), "nested.layers.2", "{error}");
    let error = archive.view_at::<Vec<Tensor<Vec<i32>>>>("nested.layers").unwrap_err();
    assert_eq!(error.path(), "nested.layers.0", "{error}");
}

#[test]
fn fields_that_became_tensors_or_ceased_to_be() {
    // A plain vector becomes a tensor without the file being written anew.
    #[derive(Serialize)]
    struct Plain {
        weight: Vec<f32>,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    struct Held {
        weight: Tensor<Vec<f32>>,
    }
    for len in [0, 5, 100, 600, 20_000] {
        let bytes = to_bytes(&Plain { weight: weights(len, 1).0 }, quick());
        for (way, read) in read_everywhere::<Held>(&bytes) {
            assert_eq!(read.unwrap(), Held { weight: weights(len, 1) }, "{way}, {len}");
        }
    }
}
