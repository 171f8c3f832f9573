//! Tensors can be written and read with other serde formats.

use std::fmt::Debug;

use half::bf16;
use ndarray::{Array2, ArrayD, ArrayView2, CowArray, Ix2, ShapeBuilder, array, s};
use num_complex::Complex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

/// Asserts that a value comes back from bincode, postcard and both forms of `MessagePack`.
#[track_caller]
fn carried<T>(value: &T)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    let bytes = bincode::serialize(value).unwrap();
    assert_eq!(&bincode::deserialize::<T>(&bytes).unwrap(), value, "bincode");
    assert_eq!(&bincode::deserialize_from::<_, T>(&*bytes).unwrap(), value, "bincode, reader");
    let bytes = postcard::to_allocvec(value).unwrap();
    assert_eq!(&postcard::from_bytes::<T>(&bytes).unwrap(), value, "postcard");
    for bytes in [rmp_serde::to_vec(value), rmp_serde::to_vec_named(value)] {
        let bytes = bytes.unwrap();
        assert_eq!(&rmp_serde::from_slice::<T>(&bytes).unwrap(), value, "MessagePack");
        assert_eq!(&rmp_serde::from_read::<_, T>(&*bytes).unwrap(), value, "MessagePack, reader");
    }
}

#[test]
fn arrays_in_both_orders() {
    let matrix = array![[1.5f32, f32::INFINITY, -0.0], [0.1, 1e-40, 7.0]];
    carried(&Tensor(matrix.clone()));
    carried(&Tensor(matrix.clone().reversed_axes()));
    let bytes = bincode::serialize(&Tensor(matrix.clone().reversed_axes())).unwrap();
    let back: Tensor<Array2<f32>> = bincode::deserialize(&bytes).unwrap();
    assert_eq!(back.strides(), matrix.t().strides(), "the order is kept");
    carried(&Tensor(ArrayD::<u64>::from_shape_vec(vec![1; 8].f(), vec![u64::MAX]).unwrap()));
    carried(&Tensor(ndarray::arr0(i8::MIN)));
}

#[test]
fn strided_arrays() {
    let matrix = Array2::from_shape_fn((300, 300), |(i, j)| (i * 300 + j) as u64);
    let view = matrix.slice(s![..;-2, 5..;3]);
    let bytes = bincode::serialize(&Tensor(view)).unwrap();
    assert_eq!(bincode::deserialize::<Tensor<Array2<u64>>>(&bytes).unwrap().0, view);
    let bytes = postcard::to_allocvec(&Tensor(view)).unwrap();
    assert_eq!(postcard::from_bytes::<Tensor<Array2<u64>>>(&bytes).unwrap().0, view);
    for bytes in [rmp_serde::to_vec(&Tensor(view)), rmp_serde::to_vec_named(&Tensor(view))] {
        let back: Tensor<Array2<u64>> = rmp_serde::from_slice(&bytes.unwrap()).unwrap();
        assert_eq!(back.0, view);
    }
}

#[test]
fn zero_sized_arrays() {
    for shape in [[0, 3], [3, 0], [0, 0]] {
        carried(&Tensor(Array2::<f32>::zeros(shape)));
        carried(&Tensor(Array2::<bool>::default(shape)));
    }
    carried(&Tensor(Vec::<i64>::new()));
    carried(&Tensor::<[u8; 0]>([]));
}

#[test]
fn every_element_type_and_container() {
    carried(&Tensor(vec![true, false]));
    carried(&Tensor(vec![bf16::from_f32(1.5)].into_boxed_slice()));
    carried(&Tensor([half::f16::from_f32(-2.0); 100]));
    carried(&Tensor(array![Complex::new(1.0f64, f64::NEG_INFINITY)].into_shared()));
    carried(&(Tensor(vec![1u8]), Tensor(vec![-1i8]), Tensor(vec![1u16]), Tensor(vec![-1i16])));
    carried(&(Tensor(vec![1u32]), Tensor(vec![-1i32]), Tensor(vec![1u64]), Tensor(vec![-1i64])));
    carried(&(Tensor(vec![0.1f32]), Tensor(vec![0.1f64]), Tensor(vec![Complex::new(0.1f32, 1.0)])));
}

#[test]
fn tensors_of_any_dtype() {
    for name in ["f32", "bool", "f8_e4m3", "f8_e8m0", "f6_e2m3", "f4", "f128", "posit16"] {
        let dtype = DType::from_name(name);
        let len = dtype.bits().unwrap_or(10);
        for order in [Order::C, Order::F] {
            let bytes = vec![u8::from(name == "bool"); len];
            carried(&Tensor(DynTensor::new(dtype.clone(), &[2, 4], order, bytes).unwrap()));
        }
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Model {
    name: String,
    #[serde(with = "tenarc::tensor")]
    weight: Array2<f32>,
    bias: Option<Tensor<Vec<f32>>>,
    layers: Vec<Layer>,
    last: u8,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Layer {
    Dense(Tensor<Array2<f64>>),
    Norm { scale: Tensor<DynTensor> },
    Nothing,
}

#[test]
fn inside_structs_and_enums() {
    carried(&Model {
        name: "model".into(),
        weight: array![[1.0, 2.0], [3.0, 4.0]],
        bias: Some(vec![0.5].into()),
        layers: vec![
            Layer::Dense(array![[1.5]].into()),
            Layer::Nothing,
            Layer::Norm { scale: DynTensor::from(array![1u8, 2]).into() },
        ],
        last: 255,
    });
}

#[test]
fn views_are_lent_by_formats_that_lend_bytes() {
    let matrix = array![[1u8, 2], [3, 4]];
    let bytes = bincode::serialize(&Tensor(matrix.view())).unwrap();
    let view: Tensor<ArrayView2<'_, u8>> = bincode::deserialize(&bytes).unwrap();
    assert_eq!(view.0, matrix);
    assert!(bytes.as_ptr_range().contains(&view.as_ptr()));
    let cow: Tensor<CowArray<'_, u8, Ix2>> = bincode::deserialize(&bytes).unwrap();
    assert!(cow.is_view());
}

#[test]
fn another_dtype_is_an_error_that_names_both() {
    let bytes = bincode::serialize(&Tensor(vec![1.0f64])).unwrap();
    let error = bincode::deserialize::<Tensor<Vec<f32>>>(&bytes).unwrap_err().to_string();
    assert!(error.contains("expected a tensor of f32, found one of f64"), "{error}");
    let bytes = rmp_serde::to_vec(&Tensor(vec![1.0f64])).unwrap();
    let error = rmp_serde::from_slice::<Tensor<Vec<f32>>>(&bytes).unwrap_err().to_string();
    assert!(error.contains("expected a tensor of f32, found one of f64"), "{error}");
}

#[test]
fn broken_tensors_are_errors() {
    for (dtype, shape, data) in [
        ("u16", vec![2u64], vec![0u8; 3]),
        ("u16", vec![2], vec![0; 2]),
        ("u16", vec![u64::MAX, 2], vec![0; 2]),
        ("bool", vec![2], vec![0, 2]),
        ("f4", vec![3], vec![0, 0]),
    ] {
        let parts = (dtype, shape, "C", serde_bytes::ByteBuf::from(data));
        let bytes = bincode::serialize(&parts).unwrap();
        assert!(bincode::deserialize::<Tensor<DynTensor>>(&bytes).is_err(), "{parts:?}");
        let bytes = rmp_serde::to_vec(&parts).unwrap();
        assert!(rmp_serde::from_slice::<Tensor<DynTensor>>(&bytes).is_err(), "{parts:?}");
    }
    let good = ("u16", vec![2u64], "C", serde_bytes::ByteBuf::from(vec![1u8, 0, 2, 0]));
    let bytes = bincode::serialize(&good).unwrap();
    assert_eq!(bincode::deserialize::<Tensor<[u16; 2]>>(&bytes).unwrap().0, [1, 2]);
}
