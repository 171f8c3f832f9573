//! Deferred tensors of every dtype, order and block size read back as the tensors they stand for.

use serde::Serialize;
use tenarc::parts::Split;
use tenarc::tensor::{Deferred, Order};
use tenarc::{DType, DynTensor, Error, IArchive, OArchive, Tensor, Value, from_parts};

use super::quick;
use tenarc_test_support::DTYPES;

/// Bytes that are elements of any dtype.
fn sample(dtype: &DType, bits: usize, shape: &[usize]) -> Vec<u8> {
    let count: usize = shape.iter().product();
    let most = if *dtype == DType::Bool { 2 } else { 251 };
    (0..count * bits / 8).map(|at| u8::try_from(at * 7 % most).unwrap()).collect()
}

/// The same tensor, in memory and deferred.
fn pair(
    dtype: DType,
    shape: &[usize],
    order: Order,
    step: usize,
) -> (DynTensor, Deferred<'static>) {
    let bytes = sample(&dtype, dtype.bits().unwrap(), shape);
    let tensor = DynTensor::new(dtype.clone(), shape, order, bytes.clone()).unwrap();
    let deferred = Deferred::from_blocks(dtype, shape, order, move |put| {
        bytes.chunks(step).try_for_each(&mut *put)
    });
    (tensor, deferred)
}

/// Bit for bit, as a NaN equals nothing.
#[track_caller]
fn assert_same(found: &DynTensor, expected: &DynTensor, what: &str) {
    let meta =
        |tensor: &DynTensor| (tensor.dtype().clone(), tensor.shape().to_vec(), tensor.order());
    assert_eq!(meta(found), meta(expected), "{what}");
    assert!(found.le_bytes() == expected.le_bytes(), "{what}");
}

#[track_caller]
fn reads_as(deferred: Deferred<'_>, tensor: &DynTensor, what: &str) {
    let deferred = Tensor(deferred);
    // To the byte as the tensor itself is written.
    let bytes = tenarc::to_vec(&deferred).unwrap();
    assert!(bytes == tenarc::to_vec(&Tensor(tensor)).unwrap(), "{what}");
    let back: Tensor<DynTensor> = tenarc::from_slice(&bytes).unwrap();
    assert_same(&back, tensor, what);
    let mut written = Vec::new();
    tenarc::to_writer(&mut written, &deferred).unwrap();
    assert!(written == bytes, "{what}");
    let Value::Tensor(value) = tenarc::to_value(&deferred).unwrap() else { panic!("{what}") };
    assert_same(&value, tensor, what);

    for options in [quick(), quick().with_inline_below(0), quick().with_dedup(true)] {
        let archived = |value: &dyn Fn(&mut OArchive<Vec<u8>>)| {
            let mut out = OArchive::with_options(Vec::new(), options.clone()).unwrap();
            value(&mut out);
            out.finish().unwrap()
        };
        let stream = archived(&|out| _ = out.save(&deferred).unwrap());
        assert!(stream == archived(&|out| _ = out.save(&Tensor(tensor)).unwrap()), "{what}");
        let back: Tensor<DynTensor> = IArchive::new(&stream[..]).unwrap().load().unwrap();
        assert_same(&back, tensor, what);

        let split = Split::with_options(&deferred, options).unwrap();
        let mut buffers = Vec::new();
        split
            .each_buffer(|_, bytes| {
                buffers.push(bytes.to_vec());
                Ok(())
            })
            .unwrap();
        let back: Tensor<DynTensor> = from_parts(split.metadata(), &buffers).unwrap();
        assert_same(&back, tensor, what);
    }
}

#[test]
fn every_dtype_and_order_in_blocks_of_odd_sizes() {
    for name in DTYPES {
        let dtype = DType::from_name(name);
        // 24 elements of 4 or 6 bits are whole bytes.
        for shape in [&[2, 3, 4][..], &[24], &[0, 3], &[4, 0, 2], &[0]] {
            for (order, steps) in [(Order::C, [1, 7]), (Order::F, [3, 1000])] {
                for step in steps {
                    let (tensor, deferred) = pair(dtype.clone(), shape, order, step);
                    let what = format!("{name} {shape:?} {order:?}, blocks of {step}");
                    reads_as(deferred, &tensor, &what);
                }
            }
        }
        if dtype.bits().unwrap() >= 8 {
            let (tensor, deferred) = pair(dtype, &[], Order::F, 5);
            reads_as(deferred, &tensor, name);
        }
    }
    // More than the stages hold.
    for step in [1021, 100_003] {
        let (tensor, deferred) = pair(DType::F16, &[300, 700], Order::F, step);
        reads_as(deferred, &tensor, "large");
    }
}

#[test]
fn elements_that_fill_no_whole_bytes() {
    for (dtype, shape) in [(DType::F4, &[3][..]), (DType::F6E2M3, &[3, 3]), (DType::F4, &[])] {
        let deferred = Deferred::from_blocks(dtype, shape, Order::C, |put| put(&[0, 0]));
        let error = tenarc::to_vec(&Tensor(deferred)).unwrap_err();
        assert!(error.to_string().contains("does not fill whole bytes"), "{error}");
    }
}

#[test]
fn a_dtype_that_is_not_known_tells_its_length() {
    let posits = || {
        let dtype = DType::from_name("posit12");
        Deferred::from_blocks(dtype, &[3, 3], Order::F, |put| {
            put(&[1; 5]).and_then(|()| put(&[2; 9]))
        })
    };
    let bytes = [[1; 5].as_slice(), &[2; 9]].concat();
    let tensor = DynTensor::new(DType::from_name("posit12"), &[3, 3], Order::F, bytes).unwrap();
    reads_as(posits().with_byte_len(14), &tensor, "posit12");

    for (deferred, text) in [
        (posits(), "the element size of `posit12` is not known"),
        (posits().with_byte_len(13), "more bytes"),
        (posits().with_byte_len(15), "fewer"),
    ] {
        let deferred = Tensor(deferred);
        for error in [
            tenarc::to_vec(&deferred).unwrap_err().to_string(),
            serde_json::to_string(&deferred).unwrap_err().to_string(),
            ciborium::into_writer(&deferred, Vec::new()).unwrap_err().to_string(),
            tenarc::to_value(&deferred).unwrap_err().to_string(),
        ] {
            assert!(error.contains(text), "`{error}` does not say `{text}`");
        }
    }

    // Of a dtype that is known, so is the length.
    let (tensor, deferred) = pair(DType::F64, &[2, 2], Order::C, 9);
    reads_as(deferred.with_byte_len(3), &tensor, "f64");
}

#[test]
fn elements_as_a_vector() {
    let fetch = || Ok::<_, Error>((0..6u64).collect::<Vec<_>>());
    let array = ndarray::Array::from_shape_vec((3, 2), fetch().unwrap()).unwrap();
    reads_as(Deferred::new(&[3, 2], fetch), &array.into(), "u64");
    let bools = || Ok::<_, Error>(vec![true, false]);
    let array = ndarray::arr1(&[true, false]);
    reads_as(Deferred::new(&[2], bools), &array.into(), "bool");
    let none = || Ok::<_, Error>(Vec::<f32>::new());
    reads_as(Deferred::new(&[3, 0], none), &ndarray::Array2::<f32>::zeros((3, 0)).into(), "none");
}

#[test]
fn a_dyn_tensor_stands_for_a_deferred_one() {
    for name in DTYPES {
        let (tensor, _) = pair(DType::from_name(name), &[4, 6], Order::F, 1);
        reads_as(tensor.clone().into(), &tensor, name);
    }
    let unknown = DynTensor::new(DType::from_name("ternary"), &[9], Order::C, vec![1, 2]).unwrap();
    reads_as(unknown.clone().into(), &unknown, "ternary");
}

/// As the tensors that they stand for.
#[test]
fn under_other_formats() {
    #[derive(Serialize)]
    struct Named<T> {
        name: &'static str,
        tensor: T,
    }
    for name in DTYPES {
        for shape in [&[2, 3, 4][..], &[0, 3]] {
            for order in [Order::C, Order::F] {
                let (tensor, deferred) = pair(DType::from_name(name), shape, order, 5);
                let deferred = Named { name, tensor: Tensor(deferred) };
                let tensor = Named { name, tensor: Tensor(tensor) };

                let json = serde_json::to_string(&deferred).unwrap();
                assert_eq!(json, serde_json::to_string(&tensor).unwrap());
                let back: serde_json::Value = serde_json::from_str(&json).unwrap();
                assert_eq!(back["name"], name);

                let (mut found, mut expected) = (Vec::new(), Vec::new());
                ciborium::into_writer(&deferred, &mut found).unwrap();
                ciborium::into_writer(&tensor, &mut expected).unwrap();
                assert_eq!(found, expected, "{name}");
            }
        }
    }
}
