//! Another crate's matrix type can be a tensor: it implements the public traits, and ndarray is not needed.
//! `.ci/run` runs this program without the feature `ndarray`.

// Sample values are small numbers made from an index.
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]

use serde::{Deserialize, Serialize};
use tenarc::tensor::Element;
use tenarc::tensor::{FromTensor, Order, RawTensor, Shape, TensorMeta, ToTensor};
use tenarc::{DynTensor, Error, Result, Tensor};

/// Column-major, as those of nalgebra and faer.
#[derive(Clone, Debug, PartialEq)]
struct Matrix<A> {
    rows: usize,
    columns: usize,
    values: Vec<A>,
}

impl<A: Element + Copy> Matrix<A> {
    fn from_fn(rows: usize, columns: usize, f: impl Fn(usize, usize) -> A) -> Self {
        let values = (0..rows * columns).map(|at| f(at % rows, at / rows)).collect();
        Self { rows, columns, values }
    }
}

fn wrong(shape: &Shape) -> Error {
    serde::de::Error::custom(format!("expected a matrix, found shape {shape:?}"))
}

impl<A: Element + bytemuck::NoUninit> ToTensor for Matrix<A> {
    fn meta(&self) -> TensorMeta {
        TensorMeta::new(A::DTYPE, [self.rows, self.columns], Order::F)
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        cfg!(target_endian = "little").then(|| bytemuck::cast_slice(&self.values))
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        // A `Vec` knows how to be written on any host.
        self.values.write_blocks(put)
    }
}

impl<A: Element + Copy> FromTensor<'_> for Matrix<A> {
    fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
        let TensorMeta { shape, order, .. } = tensor.meta().clone();
        let [rows, columns] = *shape else { return Err(wrong(&shape)) };
        let values: Vec<A> = tensor.into_vec()?;
        Ok(match order {
            Order::F => Self { rows, columns, values },
            Order::C => Self::from_fn(rows, columns, |row, column| values[row * columns + column]),
        })
    }
}

/// Borrowed, and row-major only.
#[derive(Debug, PartialEq)]
struct View<'a> {
    columns: usize,
    values: &'a [f32],
}

impl<'de: 'a, 'a> FromTensor<'de> for View<'a> {
    fn from_tensor(tensor: RawTensor<'de, '_>) -> Result<Self> {
        match (&*tensor.meta().shape, tensor.meta().order) {
            (&[_, columns], Order::C) => Ok(Self { columns, values: tensor.borrow()? }),
            _ => Err(wrong(&tensor.meta().shape)),
        }
    }
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Layer {
    weight: Tensor<Matrix<f32>>,
    #[serde(with = "tenarc::tensor")]
    mask: Matrix<u16>,
}

fn layer() -> Layer {
    Layer {
        weight: Matrix::from_fn(3, 4, |row, column| (10 * row + column) as f32).into(),
        mask: Matrix::from_fn(2, 2, |row, column| (row + 256 * column) as u16),
    }
}

#[test]
fn it_is_written_and_read_like_any_array() {
    let layer = layer();
    let bytes = tenarc::to_vec(&layer).unwrap();
    assert_eq!(tenarc::from_slice::<Layer>(&bytes).unwrap(), layer);
    let read: Layer = tenarc::from_reader(&bytes[..]).unwrap();
    assert_eq!(read, layer);
    let json = serde_json::to_string(&layer).unwrap();
    assert!(json.contains(r#""shape":[2,2],"data":[0,256,1,257]"#), "{json}");
    assert_eq!(serde_json::from_str::<Layer>(&json).unwrap(), layer);
}

#[test]
fn archives_read_it_whole_and_in_part() {
    let layer = layer();
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(&layer).unwrap();
    let bytes = out.finish().unwrap();
    let archive = tenarc::Archive::new(&bytes[..]).unwrap();
    assert_eq!(archive.tensor::<Matrix<f32>>("weight").unwrap(), *layer.weight);
    let part: Matrix<f32> = archive.slice("weight", (1.., 1..3)).unwrap();
    assert_eq!(part, Matrix::from_fn(2, 2, |row, column| (10 * (row + 1) + column + 1) as f32));
    let row: Vec<f32> = archive.slice("weight", (-1, ..)).unwrap();
    assert_eq!(row, [20.0, 21.0, 22.0, 23.0]);
    let dynamic: DynTensor = archive.slice("weight", (0..1, ..)).unwrap();
    assert_eq!(dynamic.shape(), [1, 4]);
    let error = archive.tensor::<Matrix<f64>>("weight").unwrap_err().to_string();
    assert!(error.contains("expected a tensor of f64, found one of f32"), "{error}");
}

#[test]
fn views_borrow() {
    let values: Vec<f32> = (0..6).map(|value| value as f32).collect();
    let tensor = Matrix { rows: 3, columns: 2, values: values.clone() };
    let turned =
        DynTensor::new(f32::DTYPE, &[2, 3], Order::C, bytemuck::cast_slice(&values).into());
    // Put where its last 24 bytes, the elements, lie aligned.
    let bytes = tenarc::to_vec(&Tensor(turned.unwrap())).unwrap();
    let mut memory = vec![0u64; bytes.len()];
    let memory: &mut [u8] = bytemuck::cast_slice_mut(&mut memory);
    let start = (0..8).find(|start| (start + bytes.len() - 24).is_multiple_of(4)).unwrap();
    memory[start..start + bytes.len()].copy_from_slice(&bytes);
    let message = &memory[start..start + bytes.len()];
    let view: Tensor<View<'_>> = tenarc::from_slice(message).unwrap();
    assert_eq!(*view, View { columns: 3, values: &values });
    // Column-major elements are not for it.
    let bytes = tenarc::to_vec(&Tensor(tensor)).unwrap();
    assert!(tenarc::from_slice::<Tensor<View<'_>>>(&bytes).is_err());
}

#[test]
fn row_major_is_had_of_either_order() {
    struct Rows(Vec<u16>);

    impl FromTensor<'_> for Rows {
        fn from_tensor(tensor: RawTensor<'_, '_>) -> Result<Self> {
            tensor.into_row_major()?.into_vec().map(Self)
        }
    }

    for mask in [layer().mask, Matrix::from_fn(2, 3, |row, column| (row * 3 + column) as u16)] {
        let expected: Vec<u16> = (0..mask.rows)
            .flat_map(|row| (0..mask.columns).map(move |column| (row, column)))
            .map(|(row, column)| mask.values[column * mask.rows + row])
            .collect();
        let bytes = tenarc::to_vec(&Tensor(mask)).unwrap();
        assert_eq!(tenarc::from_slice::<Tensor<Rows>>(&bytes).unwrap().0.0, expected);
    }
}
