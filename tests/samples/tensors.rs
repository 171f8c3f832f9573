//! Samples that are mostly tensors.

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use ndarray::{Array0, Array1, Array2, Array3, ArrayD, IxDyn, ShapeBuilder, array, s};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Model {
    name: String,
    version: u32,
    config: Config,
    layers: Vec<Layer>,
    history: Vec<Epoch>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Config {
    hidden: usize,
    learning_rate: f64,
    activation: Activation,
    dropout: Option<f32>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Activation {
    Relu,
    Leaky { slope: f32 },
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Layer {
    weight: Tensor<Array2<f32>>,
    #[serde(with = "tenarc::tensor")]
    bias: Array1<f32>,
    activation: Activation,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Epoch {
    loss: f64,
    accuracy: f32,
}

/// A small network with its configuration and history.
pub fn model() -> Model {
    Model {
        name: "digits".into(),
        version: 3,
        config: Config {
            hidden: 2,
            learning_rate: 0.001,
            activation: Activation::Relu,
            dropout: None,
        },
        layers: vec![
            Layer {
                weight: array![[1.0, -2.0, 0.5], [0.25, 3.0, -0.0]].into(),
                bias: array![0.1, 0.2],
                activation: Activation::Leaky { slope: 0.01 },
            },
            Layer {
                weight: array![[1.5], [-1.5]].into(),
                bias: array![0.0],
                activation: Activation::Relu,
            },
        ],
        history: vec![Epoch { loss: 2.302, accuracy: 0.1 }, Epoch { loss: 0.125, accuracy: 0.975 }],
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Optimizer {
    step: u64,
    betas: (f64, f64),
    moments: BTreeMap<String, Moments>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Moments {
    first: Tensor<ArrayD<f32>>,
    second: Tensor<ArrayD<f32>>,
    scale: Tensor<Array0<f64>>,
}

/// Moments by parameter name, one of them column-major.
pub fn optimizer() -> Optimizer {
    let moments = |first: Array2<f32>| Moments {
        second: first.mapv(|value| value * value).into_dyn().into(),
        first: first.into_dyn().into(),
        scale: ndarray::arr0(0.5).into(),
    };
    Optimizer {
        step: 1_000_000,
        betas: (0.9, 0.999),
        moments: [
            ("layers.0.weight".into(), moments(array![[0.5, 1.5], [-2.0, 0.0]])),
            ("layers.1.weight".into(), moments(array![[0.5, 1.5], [-2.0, 0.0]].reversed_axes())),
        ]
        .into(),
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Dtypes {
    bool: Tensor<Vec<bool>>,
    u8: Tensor<Vec<u8>>,
    u16: Tensor<Vec<u16>>,
    u32: Tensor<Vec<u32>>,
    u64: Tensor<Vec<u64>>,
    i8: Tensor<Vec<i8>>,
    i16: Tensor<Vec<i16>>,
    i32: Tensor<Vec<i32>>,
    i64: Tensor<Vec<i64>>,
    f16: Tensor<Vec<f16>>,
    bf16: Tensor<Vec<bf16>>,
    f32: Tensor<Vec<f32>>,
    f64: Tensor<Vec<f64>>,
}

/// A tensor of every real element type.
pub fn dtypes() -> Dtypes {
    Dtypes {
        bool: vec![true, false, true].into(),
        u8: vec![1, 255].into(),
        u16: vec![1, 0xfffe].into(),
        u32: vec![1, 0xffff_fffe].into(),
        u64: vec![1, u64::MAX - 1].into(),
        i8: vec![1, -2].into(),
        i16: vec![1, -2].into(),
        i32: vec![1, -2].into(),
        i64: vec![1, -2].into(),
        f16: vec![f16::from_f32(1.5), f16::NEG_INFINITY].into(),
        bf16: vec![bf16::from_f32(1.5), bf16::from_f32(-2.0)].into(),
        f32: vec![1.5, -0.0].into(),
        f64: vec![1.5, f64::MIN_POSITIVE].into(),
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Layouts {
    row_major: Tensor<Array2<u8>>,
    column_major: Tensor<Array2<u8>>,
    transposed: Tensor<Array3<u8>>,
    stepped: Tensor<Array2<u8>>,
    reversed: Tensor<Array1<u8>>,
    column: Tensor<Array2<u8>>,
    scalar: Tensor<Array0<u8>>,
    zero_sized: Tensor<Array3<u8>>,
    #[serde(with = "tenarc::tensor")]
    array: [u8; 40],
    rank_8: Tensor<ArrayD<u8>>,
}

/// The same element type in every layout.
pub fn layouts() -> Layouts {
    let matrix = array![[1, 2, 3], [4, 5, 6]];
    let cube = Array3::from_shape_vec((2, 1, 2), vec![1, 2, 3, 4]).unwrap();
    Layouts {
        column_major: Array2::from_shape_vec((2, 3).f(), vec![1, 2, 3, 4, 5, 6]).unwrap().into(),
        transposed: cube.reversed_axes().into(),
        stepped: matrix.clone().slice_move(s![.., ..;2]).into(),
        reversed: array![1, 2, 3].slice_move(s![..;-1]).into(),
        column: array![[1], [2]].into(),
        scalar: ndarray::arr0(7).into(),
        zero_sized: Array3::zeros((2, 0, 3)).into(),
        array: [9; 40],
        rank_8: ArrayD::from_shape_vec(IxDyn(&[1, 2, 1, 1, 1, 1, 1, 2]), vec![1, 2, 3, 4])
            .unwrap()
            .into(),
        row_major: matrix.into(),
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Exotic {
    fp8: Tensor<DynTensor>,
    scales: Tensor<DynTensor>,
    fp6: Tensor<DynTensor>,
    fp4: Tensor<DynTensor>,
    quadruple: Tensor<DynTensor>,
    unknown: Tensor<DynTensor>,
    unknown_empty: Tensor<DynTensor>,
}

/// Dtypes without a Rust type, and names that this version does not know.
pub fn exotic() -> Exotic {
    let tensor = |dtype, shape: &[usize], order, bytes: &[u8]| {
        Tensor(DynTensor::new(dtype, shape, order, bytes.to_vec()).unwrap())
    };
    Exotic {
        fp8: tensor(DType::F8E4M3, &[2, 2], Order::F, &[1, 2, 3, 4]),
        scales: tensor(DType::F8E8M0, &[2], Order::C, &[127, 128]),
        fp6: tensor(DType::F6E2M3, &[4], Order::C, &[1, 2, 3]),
        fp4: tensor(DType::F4, &[2, 2], Order::C, &[0x21, 0x43]),
        quadruple: tensor(DType::F128, &[1], Order::C, &(0x3fff_u128 << 112).to_le_bytes()),
        unknown: tensor(DType::from_name("posit16"), &[2], Order::C, &[1, 2, 3, 4]),
        unknown_empty: tensor(DType::from_name("posit16"), &[0, 2], Order::C, &[]),
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Complexes {
    singles: Tensor<Array1<Complex<f32>>>,
    doubles: Tensor<Array2<Complex<f64>>>,
    column_major: Tensor<Array2<Complex<f32>>>,
    none: Tensor<Vec<Complex<f64>>>,
}

/// Complex numbers.
pub fn complex() -> Complexes {
    let matrix = array![
        [Complex::new(1.0f32, 2.0), Complex::new(3.0, 4.0)],
        [Complex::new(5.0, 6.0), Complex::new(7.0, 8.0)]
    ];
    Complexes {
        singles: array![Complex::new(1.5, -0.5), Complex::new(0.0, f32::INFINITY)].into(),
        doubles: array![[Complex::new(0.1, -0.1)]].into(),
        column_major: matrix.reversed_axes().into(),
        none: vec![].into(),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Triangle {
    normal: [f32; 3],
    corners: [[f32; 3]; 3],
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Edge {
    from: u32,
    to: u32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Mesh {
    name: String,
    #[serde(with = "tenarc::tensor::Rows::<f32>")]
    triangles: Vec<Triangle>,
    #[serde(with = "tenarc::tensor::Rows::<u32>")]
    edges: Vec<Edge>,
    #[serde(with = "tenarc::tensor::Rows::<u32>")]
    no_edges: Vec<Edge>,
}

/// Vectors of plain structs as rows.
pub fn mesh() -> Mesh {
    let triangle = Triangle {
        normal: [0.0, 0.0, 1.0],
        corners: [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.5, 0.0]],
    };
    Mesh {
        name: "corner".into(),
        triangles: vec![triangle, triangle],
        edges: vec![Edge { from: 0, to: 1 }, Edge { from: 1, to: 2 }],
        no_edges: vec![],
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Packed {
    singles: Vec<f32>,
    few_singles: Vec<f32>,
    doubles: Vec<f64>,
    few_doubles: Vec<f64>,
    bytes: Vec<u8>,
    few_bytes: Vec<u8>,
    wide: Vec<i64>,
    tuple: (f64, f64, f64, f64),
    array: Array2<f64>,
    nested: Vec<Vec<f32>>,
    options: Vec<Option<f64>>,
    empty: Vec<f64>,
}

/// Plain sequences above and below the thresholds of packing.
pub fn packed() -> Packed {
    Packed {
        singles: vec![0.5, 1.5, -2.5, 0.1, -0.0, f32::INFINITY, 7.0, 8.0],
        few_singles: vec![0.5; 7],
        doubles: vec![0.5, 0.1, -0.0, 1e300],
        few_doubles: vec![0.5; 3],
        bytes: (0..=255).cycle().take(1024).collect(),
        few_bytes: vec![1, 2, 3],
        wide: (0..128).map(|index| if index == 7 { i64::MIN } else { index }).collect(),
        tuple: (1.0, 2.0, 3.0, 4.0),
        array: array![[1.0, 2.0], [3.0, 4.0]],
        nested: vec![vec![1.0; 8], vec![], vec![2.0]],
        options: vec![Some(0.5), None, Some(1.5), Some(2.5)],
        empty: vec![],
    }
}
