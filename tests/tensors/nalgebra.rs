//! Matrices and vectors of nalgebra.

use ::nalgebra::{DMatrix, DVector, Matrix2x3, RowDVector, RowVector3, SMatrix, Vector3};
use ndarray::{Array1, Array2, array};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::tensor::Order;
use tenarc::{DynTensor, Tensor};

fn round_trip<T: Serialize, U: for<'de> Deserialize<'de>>(value: &T) -> tenarc::Result<U> {
    tenarc::from_slice(&tenarc::to_vec(value).unwrap())
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Pose {
    rotation: Tensor<SMatrix<f64, 3, 3>>,
    position: Tensor<Vector3<f32>>,
    #[serde(with = "tenarc::tensor")]
    covariance: DMatrix<f64>,
    counts: Tensor<DVector<u16>>,
    row: Tensor<RowDVector<num_complex::Complex<f32>>>,
}

#[test]
fn structs_come_back() {
    let pose = Pose {
        rotation: Tensor(SMatrix::from_row_slice(&[0., -1., 0., 1., 0., 0., 0., 0., 1.])),
        position: Tensor(Vector3::new(1.0, 2.0, 3.0)),
        covariance: DMatrix::from_fn(5, 7, |row, column| (row * 10 + column) as f64),
        counts: Tensor(DVector::from_vec(vec![1, 2, 65535])),
        row: Tensor(RowDVector::from_element(4, num_complex::Complex::new(1.0, -1.0))),
    };
    assert_eq!(round_trip::<_, Pose>(&pose).unwrap(), pose);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("pose.tenarc");
    tenarc::save(&path, &pose).unwrap();
    assert_eq!(tenarc::load::<Pose>(&path).unwrap(), pose);
    let archive = tenarc::open(&path).unwrap();
    assert_eq!(archive.tensor::<DMatrix<f64>>("covariance").unwrap(), pose.covariance);
}

#[test]
fn ndarray_reads_them_and_they_read_ndarray() {
    // More columns than rows, so that a wrong order would show.
    let of_nalgebra = DMatrix::from_row_slice(2, 3, &[1i32, 2, 3, 4, 5, 6]);
    let of_ndarray = array![[1i32, 2, 3], [4, 5, 6]];
    let tensor = |value: &DMatrix<i32>| {
        DynTensor::clone(&round_trip::<_, Tensor<DynTensor>>(&Tensor(value)).unwrap())
    };
    assert_eq!(
        (tensor(&of_nalgebra).shape(), tensor(&of_nalgebra).order()),
        (&[2, 3][..], Order::F)
    );
    assert_eq!(*round_trip::<_, Tensor<Array2<i32>>>(&Tensor(&of_nalgebra)).unwrap(), of_ndarray);
    for order in
        [of_ndarray.clone(), of_ndarray.t().as_standard_layout().into_owned().reversed_axes()]
    {
        assert_eq!(*round_trip::<_, Tensor<DMatrix<i32>>>(&Tensor(&order)).unwrap(), of_nalgebra);
        assert_eq!(*round_trip::<_, Tensor<Matrix2x3<i32>>>(&Tensor(&order)).unwrap(), of_nalgebra);
    }
    let vector: Tensor<Array1<i32>> =
        round_trip(&Tensor(DVector::from_vec(vec![1, 2, 3]))).unwrap();
    assert_eq!(*vector, array![1, 2, 3]);
    // A row is a matrix, and is read from a tensor of one dimension, too.
    assert_eq!(
        *round_trip::<_, Tensor<Array2<i32>>>(&Tensor(RowVector3::new(1, 2, 3))).unwrap(),
        array![[1, 2, 3]]
    );
    assert_eq!(
        *round_trip::<_, Tensor<RowVector3<i32>>>(&vector).unwrap(),
        RowVector3::new(1, 2, 3)
    );
    // A view of whole columns is contiguous.
    let columns = of_nalgebra.columns(1, 2).into_owned();
    assert_eq!(
        *round_trip::<_, Tensor<Array2<i32>>>(&Tensor(columns)).unwrap(),
        array![[2, 3], [5, 6]]
    );
}

#[test]
fn shapes_and_types_that_do_not_fit_are_errors() {
    fn error<U: for<'de> Deserialize<'de> + std::fmt::Debug>(value: &impl Serialize) -> String {
        let error = round_trip::<_, U>(value).unwrap_err();
        assert_eq!(error.category(), Category::Mismatch, "{error}");
        error.to_string()
    }
    let matrix = Tensor(array![[1i32, 2, 3], [4, 5, 6]]);
    let text = error::<Tensor<SMatrix<i32, 3, 2>>>(&matrix);
    assert!(
        text.contains("expected a matrix of 3 rows and 2 columns, found shape [2, 3]"),
        "{text}"
    );
    let text = error::<Tensor<DVector<i32>>>(&matrix);
    assert!(text.contains("any rows and 1 columns"), "{text}");
    error::<Tensor<DMatrix<i32>>>(&Tensor(array![1i32, 2]));
    error::<Tensor<DMatrix<i32>>>(&Tensor(ndarray::Array3::<i32>::zeros((1, 2, 3))));
    assert!(error::<Tensor<DMatrix<f32>>>(&matrix).contains("f32"));
}

proptest! {
    #[test]
    fn all_sizes_come_back(rows in 0usize..40, columns in 0usize..40, seed in any::<u32>()) {
        let matrix = DMatrix::from_fn(rows, columns, |row, column| {
            seed.wrapping_add((row * 1000 + column) as u32)
        });
        prop_assert_eq!(&*round_trip::<_, Tensor<DMatrix<u32>>>(&Tensor(&matrix)).unwrap(), &matrix);
        let array: Tensor<Array2<u32>> = round_trip(&Tensor(&matrix)).unwrap();
        prop_assert_eq!(array.dim(), (rows, columns));
        prop_assert!(array.indexed_iter().all(|((row, column), found)| *found == matrix[(row, column)]));
        let row_major = array.as_standard_layout().into_owned();
        prop_assert_eq!(&*round_trip::<_, Tensor<DMatrix<u32>>>(&Tensor(row_major)).unwrap(), &matrix);
    }
}
