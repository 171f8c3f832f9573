//! Tensors whose dtype is known at run time.

use ndarray::{Array2, ArrayD, IxDyn, array, s};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

use super::support::{Sample, assert_reads, encode, for_every_element, hex};
use tenarc_test_support::DTYPES;

/// Every dtype that has a name, and names this version does not know.
fn dtypes() -> Vec<DType> {
    for name in DTYPES {
        assert!(!matches!(DType::from_name(name), DType::Other(_)), "{name}");
    }
    let unknown = ["posit16", "", "F32", "int4", "ünïcode", "a b\n"];
    for name in unknown {
        assert!(matches!(DType::from_name(name), DType::Other(_)), "{name}");
    }
    DTYPES.into_iter().chain(unknown).map(DType::from_name).collect()
}

/// Bytes for `count` elements, every one another as far as that goes.
fn bytes_of(dtype: &DType, count: usize) -> Vec<u8> {
    let len = count * dtype.bits().unwrap_or(24) / 8;
    let byte = |index: usize| if *dtype == DType::Bool { index % 2 } else { index * 37 + 11 };
    (0..len).map(|index| byte(index) as u8).collect()
}

#[test]
fn every_dtype_round_trips() {
    for dtype in dtypes() {
        for shape in [&[8][..], &[2, 4], &[4, 2, 1], &[1, 1, 2, 4]] {
            for order in [Order::C, Order::F] {
                let bytes = bytes_of(&dtype, 8);
                let tensor = DynTensor::new(dtype.clone(), shape, order, bytes.clone()).unwrap();
                assert_eq!(*tensor.le_bytes(), bytes);
                let message = tenarc::to_vec(&Tensor(&tensor)).unwrap();
                assert!(hex(&message).ends_with(&hex(&bytes)));
                // Compared by bytes: NaN is not equal to itself.
                for found in super::support::decode::<Tensor<DynTensor>>(&message) {
                    let found = found.unwrap();
                    assert_eq!((found.dtype(), found.shape()), (&dtype, shape));
                    assert_eq!(
                        (found.order(), found.le_bytes()),
                        (tensor.order(), bytes[..].into())
                    );
                }
            }
        }
    }
}

#[test]
fn every_dtype_round_trips_without_elements() {
    for dtype in dtypes() {
        for shape in [&[0][..], &[0, 3], &[3, 0], &[0, 0]] {
            let tensor = DynTensor::new(dtype.clone(), shape, Order::C, vec![]).unwrap();
            assert_reads(&tenarc::to_vec(&Tensor(&tensor)).unwrap(), &Tensor(tensor));
        }
    }
}

#[test]
fn every_dtype_round_trips_large_from_a_reader() {
    for dtype in dtypes() {
        let bytes = bytes_of(&dtype, 200_000);
        let tensor = DynTensor::new(dtype.clone(), &[400, 500], Order::F, bytes.clone()).unwrap();
        let message = tenarc::to_vec(&Tensor(tensor)).unwrap();
        let back: Tensor<DynTensor> = tenarc::from_reader(&*message).unwrap();
        assert_eq!((back.dtype(), back.order()), (&dtype, Order::F));
        assert!(*back.le_bytes() == bytes, "{dtype}");
    }
}

#[test]
fn every_dtype_passes_through_a_value() {
    for dtype in dtypes() {
        let bytes = bytes_of(&dtype, 8);
        let tensor = DynTensor::new(dtype.clone(), &[2, 4], Order::F, bytes.clone()).unwrap();
        let message = tenarc::to_vec(&Tensor(&tensor)).unwrap();
        for value in [tenarc::to_value(&Tensor(&tensor)), tenarc::from_slice(&message)] {
            let value = value.unwrap();
            let held = value.as_tensor().unwrap();
            assert_eq!((held.dtype(), held.shape(), held.order()), (&dtype, &[2, 4][..], Order::F));
            assert_eq!(hex(&tenarc::to_vec(&value).unwrap()), hex(&message));
            let back: Tensor<DynTensor> = tenarc::from_value(value).unwrap();
            assert_eq!(*back.le_bytes(), bytes);
        }
    }
}

#[test]
fn bytes_must_fit_dtype_and_shape() {
    for dtype in dtypes() {
        let bytes = bytes_of(&dtype, 8);
        let wrong = DynTensor::new(dtype.clone(), &[2, 8], Order::C, bytes);
        // Of unknown dtypes any number of bytes is taken.
        assert_eq!(wrong.is_ok(), dtype.bits().is_none(), "{dtype}");
    }
    let wrong = DynTensor::new(DType::F32, &[3], Order::C, vec![0; 13]).unwrap_err().to_string();
    assert!(wrong.contains("13 bytes") && wrong.contains("f32"), "{wrong}");
    // Three FP4 elements fill no whole bytes.
    assert!(DynTensor::new(DType::F4, &[3], Order::C, vec![0, 0]).is_err());
    assert!(DynTensor::new(DType::U8, &[usize::MAX, 2], Order::C, vec![]).is_err());
    assert!(DynTensor::new(DType::Bool, &[2], Order::C, vec![0, 2]).is_err());
    assert!(DynTensor::new(DType::U8, &[], Order::C, vec![7]).is_ok());
    assert!(DynTensor::new(DType::U8, &[], Order::C, vec![]).is_err());
}

#[test]
fn typed_views_and_arrays() {
    fn check<A: Sample>() {
        let row_major = Array2::from_shape_fn((2, 3), |(i, j)| A::sample(3 * i + j));
        for array in [row_major.clone(), row_major.reversed_axes()] {
            for found in super::support::decode::<Tensor<DynTensor>>(&encode(&array)) {
                let found = found.unwrap().0;
                assert_eq!(found.dtype(), &A::DTYPE);
                let view = found.view::<A>().unwrap();
                assert_eq!(view, array.view().into_dyn());
                assert_eq!(view.strides(), array.strides());
                let at = view.as_ptr();
                let owned: ArrayD<A> = found.into_array().unwrap();
                assert_eq!(owned, array.view().into_dyn());
                assert_eq!(owned.as_ptr(), at, "taking the array does not copy");
            }
        }
    }
    for_every_element!(check);
}

#[test]
fn another_element_type_is_an_error_that_names_both() {
    let tensor = DynTensor::from(array![1i32, 2]);
    let said = "expected a tensor of f32, found one of i32";
    assert!(tensor.view::<f32>().unwrap_err().to_string().contains(said));
    assert!(tensor.clone().into_array::<f32>().unwrap_err().to_string().contains(said));
    assert_eq!(tensor.clone().cast::<f32>().unwrap(), array![1.0, 2.0].into_dyn());
    let error = DynTensor::from(array![1i32, -1]).cast::<u8>().unwrap_err().to_string();
    assert!(error.contains("-1") && error.contains("u8"), "{error}");
}

#[test]
fn casts_keep_the_order() {
    let array = array![[1u8, 2, 3], [4, 5, 6]].reversed_axes();
    let cast: ArrayD<f64> = DynTensor::from(array.clone()).cast().unwrap();
    assert_eq!(cast, array.mapv(f64::from).into_dyn());
    assert_eq!(cast.strides(), array.strides());
}

#[test]
fn made_from_arrays_of_any_layout() {
    fn check<A: Sample>() {
        let array = Array2::from_shape_fn((4, 6), |(i, j)| A::sample(6 * i + j));
        let views = [
            array.view(),
            array.t(),
            array.slice(s![1.., ..]),
            array.slice(s![.., 2..5]),
            array.slice(s![..;-1, ..;2]),
            array.slice(s![.., 3..3]),
            array.t().slice_move(s![.., 1..3]),
        ];
        for view in views {
            assert_eq!(DynTensor::from(view).view::<A>().unwrap(), view.into_dyn());
            let owned = view.to_owned();
            assert_eq!(DynTensor::from(owned).view::<A>().unwrap(), view.into_dyn());
        }
        // Owned arrays that start behind the start of their memory, or have gaps.
        for slice in [s![1.., ..], s![..2, ..], s![..;2, ..], s![1..2, 2..5], s![.., ..;-1]] {
            let expected = array.slice(slice).into_dyn();
            let tensor = DynTensor::from(array.clone().slice_move(slice));
            assert_eq!(tensor.view::<A>().unwrap(), expected);
            assert_eq!(tensor.le_bytes().len(), expected.len() * size_of::<A>());
        }
    }
    for_every_element!(check);
}

#[test]
fn a_contiguous_owned_array_is_not_copied() {
    let array = ArrayD::<f32>::zeros(IxDyn(&[3, 4]));
    let at = array.as_ptr();
    let tensor = DynTensor::from(array);
    assert_eq!(tensor.view::<f32>().unwrap().as_ptr(), at);
}
