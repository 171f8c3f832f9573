//! What ndarray's own `Serialize` wrote, `{v, dim, data}`, is read into tensors.

use ndarray::{Array, Array0, Array1, Array2, ArrayD, Dimension, IxDyn, ShapeBuilder, array};
use num_complex::Complex;
use serde::Serialize;
use tenarc::ser::EncodeOptions;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

/// Messages, packed ones, and values.
fn check<A: tenarc::tensor::Element + Serialize, D: Dimension + Serialize>(array: &Array<A, D>) {
    let packed = EncodeOptions::default().with_typed_arrays(true);
    for options in [EncodeOptions::default(), packed] {
        let bytes = tenarc::ser::to_vec_with(array, options).unwrap();
        let back: Tensor<Array<A, D>> = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(back.0, array);
        let back: Tensor<Array<A, D>> = tenarc::from_reader(&bytes[..]).unwrap();
        assert_eq!(back.0, array);
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        let back: Tensor<Array<A, D>> = tenarc::from_value(value).unwrap();
        assert_eq!(back.0, array);
    }
    json(array);
}

fn json<A: tenarc::tensor::Element + Serialize, D: Dimension + Serialize>(array: &Array<A, D>) {
    let text = serde_json::to_string(array).unwrap();
    assert_eq!(serde_json::from_str::<Tensor<Array<A, D>>>(&text).unwrap().0, array);
    // Sorted: the data first.
    let sorted = serde_json::to_value(array).unwrap();
    assert_eq!(serde_json::from_value::<Tensor<Array<A, D>>>(sorted).unwrap().0, array);
}

#[test]
fn arrays_of_every_rank() {
    check(&Array0::from_elem((), 1.5f32));
    check(&array![1.5f32, -2.0, 1e30]);
    check(&array![[1u8, 2], [3, 255], [0, 7]]);
    check(&Array::from_shape_fn((2, 3, 4).f(), |(a, b, c)| (a * 100 + b * 10 + c) as i64));
    check(&ArrayD::from_shape_fn(IxDyn(&[1, 2, 1, 2, 1, 2]), |at| at[1] as f64 + 0.1));
    check(&Array::from_shape_fn((20, 30), |(a, b)| (a * 30 + b) as f32 / 7.0));
    check(&Array1::from_iter((0..1000u16).map(|value| value * 60)).into_dyn());
    check(&array![true, false]);
    check(&Array2::<f64>::zeros((3, 0)));
    let complex = array![Complex::new(1.0, -2.0), Complex::new(0.5, 0.0)];
    let text = r#"{"v":1,"dim":[2],"data":[[1.0,-2.0],[0.5,0.0]]}"#;
    assert_eq!(serde_json::from_str::<Tensor<Array1<Complex<f64>>>>(text).unwrap().0, complex);
}

#[test]
fn a_packed_array_keeps_its_dtype() {
    let options = EncodeOptions::default().with_typed_arrays(true);
    let bytes = tenarc::ser::to_vec_with(&Array2::from_elem((1, 100), 1.5f32), options).unwrap();
    let tensor: Tensor<DynTensor> = tenarc::from_slice(&bytes).unwrap();
    assert_eq!((tensor.dtype(), tensor.shape()), (&DType::F32, &[1, 100][..]));
    assert_eq!(tensor.order(), Order::C);
    let doubles: Tensor<Array2<f64>> = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(doubles.0, Array2::from_elem((1, 100), 1.5));
    let bytes = tenarc::to_vec(&array![[1.5f32, 2.5]]).unwrap();
    assert_eq!(*tenarc::from_slice::<Tensor<DynTensor>>(&bytes).unwrap().dtype(), DType::F32);
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |text: &str, says: &str| {
        let error = serde_json::from_str::<Tensor<Array1<f64>>>(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    };
    refused(r#"{"v":1,"dim":[3],"data":[1,2]}"#, "16 bytes do not make a i64 tensor of shape [3]");
    refused(r#"{"v":2,"dim":[2],"data":[1,2]}"#, "unknown version 2");
    refused(r#"{"v":1,"dim":[2]}"#, "missing field `data`");
    refused(r#"{"v":1,"data":[2]}"#, "missing field `dtype`");
    refused(r#"{"v":1,"dim":[1,1],"data":[2]}"#, "expected a tensor of 1 dimensions");
    refused(r#"{"v":1,"dim":[1],"data":[2],"data":[2]}"#, "twice");
    refused(r#"{"v":1,"dim":[1],"data":["x"]}"#, "");
    refused(r#"{"v":1,"dim":[4294967296,4294967296],"data":[]}"#, "does not fit in memory");
}
