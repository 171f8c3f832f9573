//! Tensors are read back where serde buffers values: flattened fields, untagged and tagged enums.

use std::collections::BTreeMap;

use half::{bf16, f16};
use ndarray::{Array1, Array2, ArrayD, ShapeBuilder, array};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

use tenarc_test_support::{decode, open_round_trip as survives};

/// Tensors of every kind that is written in a way of its own.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Tensors {
    row_major: Tensor<Array2<f32>>,
    column_major: Tensor<Array2<u16>>,
    scalar: Tensor<ndarray::Array0<i64>>,
    none: Tensor<Array2<f64>>,
    bools: Tensor<Vec<bool>>,
    brains: Tensor<Box<[bf16]>>,
    halves: Tensor<[f16; 40]>,
    complex: Tensor<Array1<Complex<f32>>>,
    scales: Tensor<DynTensor>,
    unknown: Tensor<DynTensor>,
    maybe: Option<Tensor<Vec<u64>>>,
    not: Option<Tensor<Vec<u64>>>,
    #[serde(with = "tenarc::tensor")]
    marked: ArrayD<i8>,
    #[serde(with = "tenarc::tensor::cast")]
    cast: Vec<f64>,
    large: Tensor<Vec<u32>>,
}

fn tensors() -> Tensors {
    let scales = DynTensor::new(DType::F8E8M0, &[2, 2], Order::F, vec![1, 2, 3, 4]).unwrap();
    let unknown = DynTensor::new(DType::from_name("odd"), &[3], Order::C, vec![9; 5]).unwrap();
    Tensors {
        row_major: array![[1.5, f32::INFINITY], [-0.0, 0.1]].into(),
        column_major: Array2::from_shape_vec((2, 3).f(), (1..=6).collect()).unwrap().into(),
        scalar: ndarray::arr0(i64::MIN).into(),
        none: Array2::zeros((0, 3)).into(),
        bools: vec![true, false].into(),
        brains: vec![bf16::from_f32(1.5); 3].into_boxed_slice().into(),
        halves: [f16::from_f32(-0.25); 40].into(),
        complex: array![Complex::new(1.0, f32::NEG_INFINITY), Complex::new(0.0, -0.0)].into(),
        scales: scales.into(),
        unknown: unknown.into(),
        maybe: Some(vec![u64::MAX].into()),
        not: None,
        marked: array![[[-1], [1]]].into_dyn(),
        cast: vec![0.5, 1.5],
        large: (0..20_000).collect::<Vec<_>>().into(),
    }
}

#[test]
fn in_a_struct() {
    survives(&tensors());
}

#[test]
fn in_a_flattened_struct() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Flat {
        before: u8,
        #[serde(flatten)]
        tensors: Tensors,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }
    let bytes = survives(&Flat { before: 1, tensors: tensors(), rest: [("z".into(), 2)].into() });
    // Written as fields of the map around, each as a tensor.
    let value: Value = tenarc::from_slice(&bytes).unwrap();
    assert!(value.pointer("/row_major").unwrap().as_tensor().is_some());
    assert!(value.pointer("/column_major").unwrap().as_tensor().is_some());
}

#[test]
fn in_a_flattened_map() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Flat {
        name: String,
        #[serde(flatten)]
        tensors: BTreeMap<String, Tensor<DynTensor>>,
    }
    let tensor = |order| DynTensor::new(DType::U8, &[2, 2], order, vec![1, 2, 3, 4]).unwrap();
    let all = [("c".into(), tensor(Order::C).into()), ("f".into(), tensor(Order::F).into())];
    survives(&Flat { name: "a".into(), tensors: all.into() });
}

#[test]
fn in_a_flattened_map_of_values() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Open {
        name: String,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Closed {
        name: String,
        weight: Tensor<Array2<f32>>,
    }
    let closed = Closed { name: "a".into(), weight: array![[1.0, 2.0]].into() };
    let open: Open = decode(&tenarc::to_vec(&closed).unwrap());
    let weight: Tensor<Array2<f32>> = tenarc::from_value(open.rest["weight"].clone()).unwrap();
    assert_eq!(weight, closed.weight);
    // And on, from the value to the type that knows the field.
    let back: Closed = decode(&tenarc::to_vec(&open).unwrap());
    assert_eq!(back, closed);
}

#[test]
fn in_untagged_enums() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(untagged)]
    enum Untagged {
        Number(f64),
        Text(String),
        Singles(Tensor<Array1<f32>>),
        Doubles(Tensor<Array1<f64>>),
        Matrix(Tensor<Array2<f64>>),
        Pair(Tensor<Vec<u8>>, Tensor<Vec<i8>>),
        Struct { tensors: Box<Tensors> },
        Any(Tensor<DynTensor>),
    }
    survives(&Untagged::Singles(array![0.5, 1.5].into()));
    survives(&Untagged::Doubles(array![0.5, 1.5].into()));
    survives(&Untagged::Doubles(Array1::zeros(0).into()));
    survives(&Untagged::Matrix(array![[0.5, 1.5]].reversed_axes().into()));
    survives(&Untagged::Pair(vec![1].into(), vec![-1].into()));
    survives(&Untagged::Struct { tensors: Box::new(tensors()) });
    survives(&Untagged::Any(DynTensor::from(array![[1u8], [2]]).into()));
    survives(&vec![Untagged::Number(1.5), Untagged::Text("x".into()), Untagged::Number(0.0)]);
}

#[test]
fn in_internally_tagged_enums() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(tag = "kind")]
    enum Internal {
        Unit,
        Struct { tensors: Box<Tensors>, after: u8 },
        Newtype(Box<Tensors>),
        Nested(Nested),
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(tag = "inner")]
    enum Nested {
        Struct { weight: Tensor<Array2<f32>> },
    }
    survives(&Internal::Unit);
    survives(&Internal::Struct { tensors: Box::new(tensors()), after: 1 });
    survives(&Internal::Newtype(Box::new(tensors())));
    survives(&Internal::Nested(Nested::Struct { weight: array![[0.5]].into() }));
}

/// The content in front of the tag is buffered.
#[derive(Serialize)]
struct Reversed<T> {
    content: T,
    kind: &'static str,
}

#[test]
fn in_adjacently_tagged_enums() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(tag = "kind", content = "content")]
    enum Adjacent {
        Newtype(Tensor<Array2<f32>>),
        Tuple(Tensor<Vec<u8>>, Box<Tensors>),
        Struct { tensors: Box<Tensors> },
    }
    survives(&Adjacent::Newtype(array![[0.5], [1.5]].into()));
    survives(&Adjacent::Tuple(vec![1].into(), Box::new(tensors())));
    survives(&Adjacent::Struct { tensors: Box::new(tensors()) });
    let reversed = Reversed { content: (Tensor([1u8]), tensors()), kind: "Tuple" };
    let back: Adjacent = decode(&tenarc::to_vec(&reversed).unwrap());
    assert_eq!(back, Adjacent::Tuple(vec![1].into(), Box::new(tensors())));
    let reversed = Reversed { content: Tensor(array![[0.5f32]]), kind: "Newtype" };
    let back: Adjacent = decode(&tenarc::to_vec(&reversed).unwrap());
    assert_eq!(back, Adjacent::Newtype(array![[0.5]].into()));
}

#[test]
fn in_enums_that_serde_buffers_when_written() {
    // A tuple or struct variant inside an internally tagged enum goes through serde's own value.
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(tag = "kind")]
    enum Outer {
        Inner(Inner),
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    enum Inner {
        Tuple(Tensor<Array2<f32>>, Tensor<Vec<bool>>),
        Struct { tensors: Box<Tensors> },
    }
    let pair = Inner::Tuple(array![[f32::NEG_INFINITY, 0.1]].into(), vec![true].into());
    let bytes = survives(&Outer::Inner(pair));
    let value: Value = tenarc::from_slice(&bytes).unwrap();
    assert!(value.pointer("/Tuple/0").unwrap().as_tensor().is_some());
    let mut whole = tensors();
    // Written as numbers, this one is row-major; all the rest is kept.
    whole.column_major = array![[1, 2, 3], [4, 5, 6]].into();
    survives(&Outer::Inner(Inner::Struct { tensors: Box::new(whole) }));
}

#[test]
fn packed_sequences_in_serdes_buffers() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Flat {
        #[serde(flatten)]
        inner: Inner,
    }
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Inner {
        singles: Vec<f32>,
        bytes: Vec<u8>,
        wide: Vec<i64>,
        array: Array2<f64>,
    }
    let inner = Inner {
        singles: vec![0.1; 100],
        bytes: vec![200; 2000],
        wide: vec![i64::MIN; 300],
        array: Array2::eye(10),
    };
    let options = tenarc::ser::EncodeOptions::default().with_typed_arrays(true);
    let bytes = tenarc::ser::to_vec_with(&Flat { inner }, options).unwrap();
    let back: Flat = decode(&bytes);
    assert_eq!(back.inner.singles, [0.1; 100]);
    assert_eq!(back.inner.wide, [i64::MIN; 300]);
    assert_eq!(back.inner.array, Array2::<f64>::eye(10));
}

#[test]
fn tensors_that_are_not_asked_for_are_passed_over() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Few {
        scalar: Tensor<ndarray::Array0<i64>>,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    #[serde(tag = "kind")]
    enum Tagged {
        Few(Few),
    }
    #[derive(Serialize)]
    struct Whole {
        tensors: Tensors,
        kind: &'static str,
        scalar: Tensor<ndarray::Array0<i64>>,
    }
    let whole = Whole { tensors: tensors(), kind: "Few", scalar: ndarray::arr0(7).into() };
    let bytes = tenarc::to_vec(&whole).unwrap();
    let few = Few { scalar: ndarray::arr0(7).into() };
    assert_eq!(decode::<Few>(&bytes), few);
    assert_eq!(decode::<Tagged>(&bytes), Tagged::Few(few));
}
