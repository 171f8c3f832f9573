//! No safe use of the library leads to undefined behaviour. These are small round trips through everything
//! that uses `src/mem`, in every way that a caller can get there.
//!
//! Compiled, they only show that the values come back. `.ci/run` interprets them with Miri, which reports each
//! undefined operation. Interpreted code is about a thousand times slower, so the values are small.

// Sample values are small numbers made from an index, and one field each for as many types as there are.
#![allow(clippy::cast_precision_loss, clippy::type_complexity)]

mod archives;
mod messages;
mod shared;

use half::{bf16, f16};
use ndarray::{Array2, ArrayD, CowArray, Ix1, Ix2, IxDyn, ShapeBuilder};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use tenarc::{DynTensor, Tensor};

/// A value with a tensor of each element type, and with everything else that is copied or borrowed in its own way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Everything {
    flags: Tensor<Vec<bool>>,
    unsigned: (Tensor<Vec<u8>>, Tensor<Vec<u16>>, Tensor<Vec<u32>>, Tensor<Vec<u64>>),
    signed: (Tensor<Vec<i8>>, Tensor<Vec<i16>>, Tensor<Vec<i32>>, Tensor<Vec<i64>>),
    halves: (Tensor<Box<[f16]>>, Tensor<[bf16; 3]>),
    floats: (Tensor<ArrayD<f32>>, Tensor<Array2<f64>>),
    complex: (Tensor<Vec<Complex<f32>>>, Tensor<Vec<Complex<f64>>>),
    any: Vec<Tensor<DynTensor>>,
    plain: (Vec<u8>, Vec<u16>, Vec<i32>, Vec<i64>, Vec<f32>, Vec<f64>, Vec<bool>),
    texts: Vec<String>,
    #[serde(with = "serde_bytes")]
    blob: Vec<u8>,
    nested: Option<Box<Everything>>,
}

impl Everything {
    fn new() -> Self {
        let column_major = Array2::from_shape_fn((2, 3).f(), |(a, b)| (10 * a + b) as f64);
        Self {
            flags: Tensor(vec![true, false, true]),
            unsigned: (
                Tensor(vec![1, 255]),
                Tensor(vec![1, 0x0102]),
                Tensor(vec![1, 0x0102_0304]),
                Tensor(vec![1, u64::MAX]),
            ),
            signed: (
                Tensor(vec![-1, 2]),
                Tensor(vec![-1, 2]),
                Tensor(vec![-1, 2]),
                Tensor(vec![i64::MIN, 2]),
            ),
            halves: (Tensor([f16::ONE; 3].into()), Tensor([bf16::ONE; 3])),
            floats: (
                Tensor(ArrayD::from_shape_fn(vec![2, 1, 2], |at| at[0] as f32)),
                Tensor(column_major.clone()),
            ),
            complex: (Tensor(vec![Complex::new(1.0, -1.0)]), Tensor(vec![Complex::new(0.5, 2.0)])),
            any: vec![
                Tensor(DynTensor::from(column_major)),
                Tensor(DynTensor::from(Array2::from_elem((1, 5), true))),
            ],
            plain: (
                vec![1, 24, 255],
                vec![1, 256, 65_535],
                vec![-1, 65_536, -70_000],
                vec![i64::MIN, i64::MAX],
                (0..9u8).map(f32::from).collect(),
                vec![0.1, -0.0, f64::INFINITY, 1e300],
                vec![true, false],
            ),
            texts: [0, 7, 16, 17, 40].map(|len| "grün ".repeat(len)).into(),
            blob: (0..100).collect(),
            nested: None,
        }
    }
}

/// Tensors that are borrowed where they can be.
#[derive(Debug, Deserialize)]
struct Borrowed<'a> {
    #[serde(borrow)]
    flags: Tensor<CowArray<'a, bool, Ix1>>,
    #[serde(borrow)]
    floats: (Tensor<CowArray<'a, f32, IxDyn>>, Matrix<'a>),
    #[serde(borrow, with = "serde_bytes")]
    blob: &'a [u8],
    texts: Vec<&'a str>,
}

type Matrix<'a> = Tensor<CowArray<'a, f64, Ix2>>;

impl Borrowed<'_> {
    #[track_caller]
    fn check(&self, expected: &Everything) {
        assert_eq!(self.flags.to_vec(), expected.flags.0);
        assert_eq!(self.floats.0.0, expected.floats.0.0);
        assert_eq!(self.floats.1.0, expected.floats.1.0);
        assert_eq!(self.blob, expected.blob);
        assert_eq!(self.texts, expected.texts);
    }
}
