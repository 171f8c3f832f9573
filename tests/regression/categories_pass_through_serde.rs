//! A tensor of a wrong dtype inside a struct, and one that cannot be viewed, had errors of the category of bad input, because
//! serde passes errors on as text.

use ndarray::{Array1, Array2};
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::{Tensor, Value};

#[derive(Serialize, Deserialize)]
struct Layer<T> {
    weight: T,
    rate: f32,
}

type Dtype = Layer<Tensor<Array1<f64>>>;
type Rank = Layer<Tensor<Array2<f32>>>;

fn category<T>(result: tenarc::Result<T>, path: &str) -> Category {
    let error = result.map(drop).unwrap_err();
    assert_eq!(error.path(), path, "{error}");
    error.category()
}

#[test]
fn of_every_way_to_read_a_value() {
    let layer = Layer { weight: Tensor(Array1::from_elem(1000, 0.5f32)), rate: 0.1 };
    let bytes = tenarc::to_vec(&layer).unwrap();
    let value: Value = tenarc::from_slice(&bytes).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("layer.tenarc");
    tenarc::save(&path, &layer).unwrap();
    for found in [
        category(tenarc::from_slice::<Dtype>(&bytes), "weight"),
        category(tenarc::from_reader::<_, Rank>(&bytes[..]), "weight"),
        category(tenarc::from_value::<Dtype>(value), "weight"),
        category(tenarc::load::<Rank>(&path), "weight"),
        category(tenarc::open(&path).unwrap().tensor::<Array1<f64>>("weight"), "weight"),
        category(tenarc::open(&path).unwrap().get::<String>("rate"), "rate"),
        category(tenarc::open(&path).unwrap().get::<Dtype>("rate"), "rate"),
    ] {
        assert_eq!(found, Category::Mismatch);
    }
}

#[test]
#[cfg(feature = "compression")]
fn of_what_is_not_there_or_cannot_be_had() {
    use ndarray::ArrayView1;
    use tenarc::{Archive, Compression, SaveOptions};

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("layer.tenarc");
    let missing = tenarc::open(&path).map(drop).unwrap_err();
    assert_eq!(missing.category(), Category::Io);
    assert_eq!(missing.io_error_kind(), Some(std::io::ErrorKind::NotFound));

    let layer = Layer { weight: Tensor(Array1::from_elem(100_000, 0.5f32)), rate: 0.1 };
    tenarc::save_with(&path, &layer, SaveOptions::default().with_compression(Compression::zstd()))
        .unwrap();
    let archive = tenarc::open(&path).unwrap();
    let error = archive.tensor::<Array1<f32>>("wight").unwrap_err();
    assert_eq!(error.category(), Category::NotFound);
    assert_eq!(std::io::Error::from(error).kind(), std::io::ErrorKind::NotFound);
    assert_eq!(archive.named("x").map(drop).unwrap_err().category(), Category::NotFound);
    assert_eq!(archive.segment(1).map(drop).unwrap_err().category(), Category::NotFound);

    let bytes = std::fs::read(&path).unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let view = archive.view::<Layer<Tensor<ArrayView1<'_, f32>>>>();
    assert_eq!(category(view, "weight"), Category::Unsupported);
}
