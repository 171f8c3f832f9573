//! A matrix type of your own as a tensor: one that is column-major.
//!
//! ```sh
//! cargo run --release --example own_matrix
//! ```
//!
//! `ToTensor` says the shape and the order of the elements, and lends their bytes, so that saving copies nothing. `FromTensor`
//! gets the elements in the order in which they were saved. The features `nalgebra` and `faer`
//! have both for the matrices of these crates.

use ndarray::{Array2, array};
use serde::{Deserialize, Serialize};
use tenarc::tensor::{FromTensor, Order, RawTensor, TensorMeta, ToTensor};
use tenarc::{DType, Error, Tensor};

#[derive(Debug, PartialEq)]
struct Matrix {
    rows: usize,
    columns: usize,
    /// The first column, then the second, and so on.
    elements: Vec<f32>,
}

impl ToTensor for Matrix {
    fn meta(&self) -> TensorMeta {
        TensorMeta::new(DType::F32, [self.rows, self.columns], Order::F)
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        self.elements.as_le_bytes()
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>) -> tenarc::Result<()> {
        self.elements.write_blocks(put)
    }
}

impl FromTensor<'_> for Matrix {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> tenarc::Result<Self> {
        let TensorMeta { shape, order, .. } = tensor.meta().clone();
        let [rows, columns] = *shape else {
            return Err(Error::mismatch(format!("expected a matrix, found shape {shape:?}")));
        };
        // An error if they are not `f32`.
        let found: Vec<f32> = tensor.into_vec()?;
        let elements = match order {
            Order::F => found,
            // Others, such as ndarray by default, save row after row.
            Order::C => (0..rows * columns).map(|i| found[i % rows * columns + i / rows]).collect(),
        };
        Ok(Self { rows, columns, elements })
    }
}

#[derive(Serialize, Deserialize)]
struct Camera {
    name: String,
    projection: Tensor<Matrix>,
}

/// The same fields, for a program that uses ndarray.
#[derive(Serialize, Deserialize)]
struct CameraOfNdarray {
    name: String,
    projection: Tensor<Array2<f32>>,
}

fn main() -> tenarc::Result<()> {
    // More columns than rows, so that a wrong order would show.
    let elements = vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let projection = Tensor(Matrix { rows: 2, columns: 3, elements });
    let camera = Camera { name: "left".into(), projection };
    let rows = array![[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]];

    let bytes = tenarc::to_vec(&camera)?;
    let read: Camera = tenarc::from_slice(&bytes)?;
    assert_eq!(read.projection, camera.projection);
    let read: CameraOfNdarray = tenarc::from_slice(&bytes)?;
    assert_eq!(*read.projection, rows);

    // What ndarray saves row after row, too.
    let row_major = CameraOfNdarray { name: "right".into(), projection: Tensor(rows.clone()) };
    let read: Camera = tenarc::from_slice(&tenarc::to_vec(&row_major)?)?;
    assert_eq!(read.projection, camera.projection);
    println!("{} and {}: {rows}", camera.name, read.name);
    Ok(())
}
