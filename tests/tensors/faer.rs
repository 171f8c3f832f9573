//! Matrices, columns and rows of faer.

use ::faer::{Col, Mat, Row};
use ndarray::{Array1, Array2, array};
use num_complex::Complex;
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::tensor::{Element, Order};
use tenarc::{DynTensor, Tensor};

fn round_trip<T: Serialize, U: for<'de> Deserialize<'de>>(value: &T) -> tenarc::Result<U> {
    tenarc::from_slice(&tenarc::to_vec(value).unwrap())
}

#[derive(Debug, Serialize, Deserialize)]
struct Fit {
    covariance: Tensor<Mat<f64>>,
    #[serde(with = "tenarc::tensor")]
    rotated: Mat<Complex<f32>>,
    mean: Tensor<Col<f32>>,
    counts: Option<Tensor<Row<u16>>>,
}

#[test]
fn structs_come_back() {
    let fit = Fit {
        // Columns of more than a block, and one that does not fill its last line of memory.
        covariance: Tensor(Mat::from_fn(9001, 3, |row, column| (row * 10 + column) as f64)),
        rotated: Mat::from_fn(5, 7, |row, column| Complex::new(row as f32, column as f32)),
        mean: Tensor(Col::from_fn(13, |row| row as f32 / 2.0)),
        counts: Some(Tensor(Row::from_fn(3, |column| column as u16))),
    };
    let same = |back: &Fit| {
        *back.covariance == *fit.covariance
            && back.rotated == fit.rotated
            && *back.mean == *fit.mean
            && back.counts.as_deref() == fit.counts.as_deref()
    };
    assert!(same(&round_trip::<_, Fit>(&fit).unwrap()));
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("fit.tenarc");
    tenarc::save(&path, &fit).unwrap();
    assert!(same(&tenarc::load(&path).unwrap()));
    let archive = tenarc::open(&path).unwrap();
    assert_eq!(archive.tensor::<Mat<f64>>("covariance").unwrap(), *fit.covariance);
    assert_eq!(archive.tensor::<Col<f32>>("mean").unwrap(), *fit.mean);
}

#[test]
fn ndarray_reads_them_and_they_read_ndarray() {
    let vector = array![1i32, 2, 3];
    let (column, row): (Col<i32>, Row<i32>) =
        (vector.iter().copied().collect(), vector.iter().copied().collect());
    assert_eq!(*round_trip::<_, Tensor<Array1<i32>>>(&Tensor(&column)).unwrap(), vector);
    assert_eq!(*round_trip::<_, Tensor<Array1<i32>>>(&Tensor(&row)).unwrap(), vector);
    assert_eq!(
        *round_trip::<_, Tensor<Col<i32>>>(&Tensor(array![[1i32], [2], [3]])).unwrap(),
        column
    );
    assert_eq!(*round_trip::<_, Tensor<Row<i32>>>(&Tensor(array![[1i32, 2, 3]])).unwrap(), row);
}

#[test]
fn shapes_and_types_that_do_not_fit_are_errors() {
    fn error<U: for<'de> Deserialize<'de>>(value: &impl Serialize) -> String {
        let error = round_trip::<_, U>(value).err().unwrap();
        assert_eq!(error.category(), Category::Mismatch, "{error}");
        error.to_string()
    }
    let matrix = Tensor(array![[1i32, 2, 3], [4, 5, 6]]);
    let text = error::<Tensor<Mat<i32>>>(&Tensor(array![1i32, 2]));
    assert!(text.contains("expected a matrix, found shape [2]"), "{text}");
    assert!(error::<Tensor<Col<i32>>>(&matrix).contains("expected a column, found shape [2, 3]"));
    assert!(error::<Tensor<Row<i32>>>(&matrix).contains("expected a row, found shape [2, 3]"));
    assert!(error::<Tensor<Mat<f32>>>(&matrix).contains("f32"));
    assert!(error::<Tensor<Col<f32>>>(&Tensor(vec![1i32])).contains("f32"));
}

#[test]
fn a_short_input_that_claims_a_huge_empty_matrix_is_an_error() {
    for shape in [[0, 1 << 60], [1 << 62, 0]] {
        let empty =
            DynTensor::from(Array2::<f64>::zeros((0, 0)).into_shape_with_order(shape).unwrap());
        let error = round_trip::<_, Tensor<Mat<f64>>>(&Tensor(empty)).unwrap_err();
        assert!(error.to_string().contains("fits into memory"), "{error}");
    }
}

fn comes_back<A: Element + PartialEq + std::fmt::Debug>(
    (rows, columns): (usize, usize),
    number: impl Fn(usize) -> A,
) -> Result<(), TestCaseError> {
    let matrix = Mat::from_fn(rows, columns, |row, column| number(row * 1000 + column));
    let found: Tensor<DynTensor> = round_trip(&Tensor(&matrix)).unwrap();
    prop_assert_eq!((found.shape(), found.order()), (&[rows, columns][..], Order::F));
    prop_assert!(*round_trip::<_, Tensor<Mat<A>>>(&Tensor(&matrix)).unwrap() == matrix);
    let array: Tensor<Array2<A>> = round_trip(&Tensor(&matrix)).unwrap();
    prop_assert_eq!(array.dim(), (rows, columns));
    prop_assert!(
        array.indexed_iter().all(|((row, column), found)| *found == matrix[(row, column)])
    );
    let row_major = array.as_standard_layout().into_owned();
    prop_assert!(*round_trip::<_, Tensor<Mat<A>>>(&Tensor(row_major)).unwrap() == matrix);
    Ok(())
}

proptest! {
    #[test]
    fn all_sizes_come_back(size in (0usize..40, 0usize..40), seed in any::<u32>()) {
        comes_back(size, |index| f64::from(seed) + index as f64)?;
        comes_back(size, |index| index as f32 / 3.0)?;
        comes_back(size, |index| seed.wrapping_add(index as u32))?;
    }
}
