//! Tensors as other programs may write them: big-endian, in chunks, classical CBOR arrays, longer heads.

use half::f16;
use ndarray::{Array1, Array2, ArrayD, array};
use num_complex::Complex;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

use super::support::{
    Sample, assert_fails, assert_reads, decode, encode, for_every_element, hex, unhex,
};

/// Every message in which a payload of shape `[2]` can stand: bare, under 40, 1040, in chunks.
fn forms(tag: &str, payload: &str) -> Vec<Vec<u8>> {
    let payload = unhex(payload);
    let len = payload.len();
    let chunks: Vec<String> = payload
        .chunks(3)
        .map(|chunk| format!("{:02x}{}", 0x40 + chunk.len(), hex(chunk)))
        .collect();
    let (hex, chunks) = (hex(&payload), chunks.concat());
    [
        format!("{tag} 58{len:02x} {hex}"),
        format!("{tag} 5f {chunks} ff"),
        format!("d828 82 8102 {tag} 58{len:02x} {hex}"),
        format!("d90410 82 8102 {tag} 58{len:02x} {hex}"),
        format!("d828 9f 9f 02 ff {tag} 5f {chunks} ff ff"),
        format!("d828 82 8102 {tag} 5f 40 {chunks} 5800 ff"),
        // Heads wider than they must be, and tags that mean nothing here.
        format!("da00000028 9b0000000000000002 9801 1900 02 {tag} 5b00000000000000{len:02x} {hex}"),
        format!("d9d9f7 d828 82 8102 {tag} 5900{len:02x} {hex}"),
    ]
    .iter()
    .map(|message| unhex(message))
    .collect()
}

#[test]
fn big_endian_typed_arrays() {
    fn check<A: Sample + serde::de::DeserializeOwned>(tag: &str, payload: &str, expected: [A; 2]) {
        for message in forms(tag, payload) {
            check_tensor(&message, expected);
            for found in decode::<Vec<A>>(&message) {
                assert_eq!(found.unwrap(), expected);
            }
        }
    }
    fn check_tensor<A: Sample>(message: &[u8], expected: [A; 2]) {
        assert_reads(message, &Tensor(expected));
        assert_reads(message, &Tensor(expected.to_vec()));
        assert_reads(message, &Tensor(Array1::from(expected.to_vec())));
        assert_reads(message, &Tensor(DynTensor::from(Array1::from(expected.to_vec()))));
    }
    check("d841", "0102 fffe", [0x0102u16, 0xfffe]);
    check("d842", "01020304 fffffffe", [0x0102_0304u32, 0xffff_fffe]);
    check("d843", "0102030405060708 fffffffffffffffe", [0x0102_0304_0506_0708u64, u64::MAX - 1]);
    check("d849", "0102 fffe", [0x0102i16, -2]);
    check("d84a", "01020304 fffffffe", [0x0102_0304i32, -2]);
    check("d84b", "0102030405060708 fffffffffffffffe", [0x0102_0304_0506_0708i64, -2]);
    check("d851", "3fc00000 c0000000", [1.5f32, -2.0]);
    check("d852", "3ff8000000000000 c000000000000000", [1.5f64, -2.0]);
    for message in forms("d850", "3e00 c000") {
        check_tensor(&message, [f16::from_f32(1.5), f16::from_f32(-2.0)]);
        assert_reads(&message, &vec![1.5f32, -2.0]);
    }
    for message in forms("d9a7f9 d851", "3fc00000 c0000000 00000000 3f800000") {
        check_tensor(&message, [Complex::new(1.5f32, -2.0), Complex::new(0.0, 1.0)]);
    }
    for message in
        forms("d9a7f9 d852", "3ff8000000000000 c000000000000000 00 00000000000000 3ff0000000000000")
    {
        check_tensor(&message, [Complex::new(1.5f64, -2.0), Complex::new(0.0, 1.0)]);
    }
}

#[test]
fn big_endian_quadruple_floats_are_turned_round() {
    let one = (0x3fff_u128 << 112).to_be_bytes();
    for message in forms("d853", &hex(&[one, one].concat())) {
        for found in decode::<Tensor<DynTensor>>(&message) {
            let found = found.unwrap();
            assert_eq!(found.dtype(), &DType::F128);
            let little: Vec<u8> = one.iter().rev().copied().collect();
            assert_eq!(*found.le_bytes(), [&little[..], &little].concat());
        }
    }
}

#[test]
fn big_endian_tensors_larger_than_what_readers_buffer() {
    let mut message = unhex("d828 82 811a000186a0 d851 5a00061a80");
    let values: Vec<f32> = (0..100_000u32).map(|index| index as f32).collect();
    message.extend(values.iter().flat_map(|value| value.to_be_bytes()));
    assert_eq!(tenarc::from_slice::<Tensor<Vec<f32>>>(&message).unwrap().0, values);
    assert_eq!(tenarc::from_reader::<_, Tensor<Vec<f32>>>(&*message).unwrap().0, values);
    assert_eq!(tenarc::from_reader::<_, Vec<f32>>(&*message).unwrap(), values);
}

#[test]
fn big_endian_matrices_keep_their_order() {
    let row_major = unhex("d828 82 820203 d841 4c 0001 0002 0003 0004 0005 0006");
    assert_reads(&row_major, &Tensor(array![[1u16, 2, 3], [4, 5, 6]]));
    let column_major = unhex("d90410 82 820203 d841 4c 0001 0002 0003 0004 0005 0006");
    assert_reads(&column_major, &Tensor(array![[1u16, 3, 5], [2, 4, 6]]));
}

#[test]
fn clamped_bytes_are_bytes_and_the_reserved_tag_is_none() {
    assert_reads(&unhex("d844 43 0102ff"), &Tensor(vec![1u8, 2, 255]));
    assert_reads(&unhex("d828 82 8103 d844 43 0102ff"), &Tensor(vec![1u8, 2, 255]));
    assert_reads(&unhex("d844 43 0102ff"), &vec![1u8, 2, 255]);
    for found in decode::<Tensor<DynTensor>>(&unhex("d84c 43 0102ff")) {
        assert!(found.is_err());
    }
}

#[test]
fn payloads_split_anywhere() {
    fn check<A: Sample>() {
        let array = Array2::from_shape_fn((2, 3), |(i, j)| A::sample(3 * i + j));
        for array in [array.clone(), array.reversed_axes()] {
            let whole = encode(&array);
            let payload = array.len() * size_of::<A>();
            let payload_at = whole.len() - payload;
            let head = if payload < 24 { 1 } else { 2 };
            for step in 1..=payload {
                let mut split = whole[..payload_at - head].to_vec();
                split.push(0x5f);
                for chunk in whole[payload_at..].chunks(step) {
                    split.extend([0x58, chunk.len() as u8]);
                    split.extend_from_slice(chunk);
                }
                split.push(0xff);
                assert_reads(&split, &Tensor(array.clone()));
                assert_reads(&split, &Tensor(DynTensor::from(array.clone())));
                let value: Value = tenarc::from_slice(&split).unwrap();
                assert_eq!(
                    value.as_tensor().unwrap().view::<A>().unwrap(),
                    array.view().into_dyn()
                );
            }
        }
    }
    for_every_element!(check);
}

#[test]
fn chunks_that_do_not_add_up_are_refused() {
    for chunks in ["41 00 42 0000", "41 00 44 00000000", "", "5f 44 00000000 ff", "64 61626364"] {
        let bytes = unhex(&format!("d828 82 8101 d855 5f {chunks} ff"));
        for found in decode::<Tensor<DynTensor>>(&bytes) {
            assert!(found.is_err(), "{chunks}");
        }
    }
}

#[test]
fn classical_arrays_of_integers_take_any_dtype_that_holds_them() {
    let bytes = unhex("d828 82 820202 84 01020304");
    assert_reads(&bytes, &Tensor(array![[1u8, 2], [3, 4]]));
    assert_reads(&bytes, &Tensor(array![[1i64, 2], [3, 4]]));
    assert_reads(&bytes, &Tensor(array![[1.0f32, 2.0], [3.0, 4.0]]));
    assert_reads(&bytes, &Tensor(array![[1.0f64, 2.0], [3.0, 4.0]].into_dyn()));
    assert_reads(&bytes, &Tensor(DynTensor::from(array![[1i64, 2], [3, 4]])));
    let column_major = unhex("d90410 82 820203 86 010203040506");
    assert_reads(&column_major, &Tensor(array![[1u8, 3, 5], [2, 4, 6]]));
    let negative = unhex("d828 82 8102 82 20 3903e7");
    assert_reads(&negative, &Tensor(array![-1i16, -1000]));
    assert_fails::<Tensor<Vec<u8>>>(&negative, &["-1", "exactly as u8"]);
    let huge = unhex("d828 82 8102 82 00 1bffffffffffffffff");
    assert_reads(&huge, &Tensor(vec![0, u64::MAX]));
    assert_reads(&huge, &Tensor(DynTensor::from(array![0, u64::MAX])));
    assert_fails::<Tensor<Vec<f64>>>(&huge, &["exactly as f64"]);
}

#[test]
fn classical_arrays_of_floats_bools_and_both_number_kinds() {
    let floats = unhex("d828 82 8103 83 f93e00 fa3f000000 fb3fd0000000000000");
    assert_reads(&floats, &Tensor(vec![1.5f32, 0.5, 0.25]));
    assert_reads(&floats, &Tensor(vec![1.5f64, 0.5, 0.25]));
    assert_reads(&floats, &Tensor(DynTensor::from(array![1.5f64, 0.5, 0.25])));
    let mixed = unhex("d828 82 8102 82 01 f93e00");
    assert_reads(&mixed, &Tensor(vec![1.0f32, 1.5]));
    assert_fails::<Tensor<Vec<u8>>>(&mixed, &["1.5", "exactly as u8"]);
    let bools = unhex("d828 82 8102 82 f5f4");
    assert_reads(&bools, &Tensor(vec![true, false]));
    assert_fails::<Tensor<Vec<u8>>>(&bools, &["exactly as u8"]);
    assert_fails::<Tensor<DynTensor>>(&unhex("d828 82 8102 82 f501"), &["no dtype can represent"]);
    let indefinite = unhex("d828 9f 9f 01 02 ff 9f 05 1800 ff ff");
    assert_reads(&indefinite, &Tensor(array![[5u8, 0]]));
}

#[test]
fn classical_arrays_without_elements() {
    let bytes = unhex("d828 82 820003 80");
    assert_reads(&bytes, &Tensor(Array2::<f32>::zeros((0, 3))));
    assert_reads(&bytes, &Tensor(Array2::<bool>::default((0, 3))));
}

#[test]
fn classical_arrays_that_do_not_fit_are_refused() {
    for elements in ["83 010203", "85 0102030405", "80"] {
        let bytes = unhex(&format!("d828 82 820202 {elements}"));
        assert_fails::<Tensor<DynTensor>>(&bytes, &["expected 4 elements of a tensor"]);
    }
    for element in ["6131", "f6", "80", "c24101", "d840 41 01", "c249010000000000000000"] {
        let bytes = unhex(&format!("d828 82 8101 81 {element}"));
        assert_fails::<Tensor<DynTensor>>(&bytes, &["expected a number"]);
    }
}

#[test]
fn plain_arrays_are_tensors_of_one_dimension() {
    let bytes = tenarc::to_vec(&vec![1.5f32, 2.5]).unwrap();
    assert_reads(&bytes, &Tensor(array![1.5f32, 2.5]));
    assert_reads(&bytes, &Tensor([1.5f64, 2.5]));
    // Singles stay singles, as in a packed sequence.
    assert_reads(&bytes, &Tensor(DynTensor::from(array![1.5f32, 2.5])));
    let bytes = tenarc::to_vec(&(1, 2, 255)).unwrap();
    assert_reads(&bytes, &Tensor(vec![1u8, 2, 255]));
    assert_reads(&bytes, &Tensor(ArrayD::from_shape_vec(vec![3], vec![1i16, 2, 255]).unwrap()));
    assert_fails::<Tensor<Vec<i8>>>(&bytes, &["255", "exactly as i8"]);
    assert_fails::<Tensor<Array2<u8>>>(&bytes, &["of 2 dimensions", "[3]"]);
    assert_reads(&tenarc::to_vec(&[true, false]).unwrap(), &Tensor([true, false]));
    for empty in ["80", "9fff"] {
        assert_reads(&unhex(empty), &Tensor(Vec::<f64>::new()));
        assert_reads(&unhex(empty), &Tensor(Vec::<bool>::new()));
    }
    assert_fails::<Tensor<Vec<u8>>>(&tenarc::to_vec(&["a"]).unwrap(), &["expected a number"]);
    assert_fails::<Tensor<Vec<u8>>>(&tenarc::to_vec(&[[1u8]]).unwrap(), &["expected a number"]);
}

#[test]
fn bare_typed_arrays_are_tensors_of_one_dimension() {
    let bytes = unhex("d855 48 0000c03f 00002040");
    assert_reads(&bytes, &Tensor(array![1.5f32, 2.5]));
    assert_reads(&bytes, &Tensor(DynTensor::from(array![1.5f32, 2.5])));
    // As from the array that it stands for, if that is exact.
    assert_reads(&bytes, &Tensor(vec![1.5f64, 2.5]));
    assert_fails::<Tensor<Vec<u8>>>(&bytes, &[]);
    assert_fails::<Tensor<Array2<f32>>>(&bytes, &["of 2 dimensions"]);
    assert_reads(&unhex("d855 40"), &Tensor(Vec::<f32>::new()));
}

#[test]
fn the_own_tag_takes_what_others_write_under_40() {
    for (name, size) in [("627538", 1), ("63663332", 4), ("63633634", 8)] {
        let payload = "00".repeat(size);
        let bytes = unhex(&format!("da54454e53 84 {name} 8101 6143 4{size} {payload}"));
        for found in decode::<Tensor<DynTensor>>(&bytes) {
            let found = found.unwrap();
            assert_eq!((found.shape(), found.order()), (&[1][..], Order::C));
            assert_eq!(found.le_bytes().len(), size);
        }
    }
    let indefinite =
        unhex("da54454e53 9f 7f 61 75 61 38 ff 9f 02 ff 7f 61 43 ff 5f 41 01 41 02 ff ff");
    assert_reads(&indefinite, &Tensor(vec![1u8, 2]));
}

#[test]
fn zero_sized_arrays_of_others_are_read() {
    assert_reads(&unhex("d828 82 820003 d855 40"), &Tensor(Array2::<f32>::zeros((0, 3))));
    assert_reads(&unhex("d90410 82 820200 d855 40"), &Tensor(Array2::<f32>::zeros((2, 0))));
}

#[test]
fn tensors_as_other_serde_formats_write_them() {
    #[derive(serde::Serialize)]
    struct Plain {
        dtype: &'static str,
        shape: Vec<usize>,
        order: &'static str,
        #[serde(with = "serde_bytes")]
        data: Vec<u8>,
    }
    let plain = Plain { dtype: "u16", shape: vec![1, 2], order: "C", data: vec![1, 0, 2, 0] };
    let bytes = tenarc::to_vec(&plain).unwrap();
    assert_reads(&bytes, &Tensor(array![[1u16, 2]]));
    assert_fails::<Tensor<Array2<u8>>>(&bytes, &["expected a tensor of u8"]);
    let wrong = Plain { data: vec![1, 0, 2], ..plain };
    for found in decode::<Tensor<Array2<u16>>>(&tenarc::to_vec(&wrong).unwrap()) {
        assert!(found.unwrap_err().to_string().contains("3 bytes"));
    }
}

#[test]
fn numbers_too_large_for_their_dtype_are_refused_and_others_rounded() {
    let read = |dtype: &str, number: &str| {
        let text = format!(r#"{{"dtype": "{dtype}", "shape": [1], "data": [{number}]}}"#);
        serde_json::from_str::<Tensor<DynTensor>>(&text).map(Tensor::into_inner)
    };
    for (dtype, fits, large) in [
        ("f32", "3.4028235e38", "1e39"),
        ("f16", "65504.1", "65536"),
        ("bf16", "3.3e38", "-3.4e38"),
    ] {
        read(dtype, fits).unwrap();
        let error = read(dtype, large).unwrap_err().to_string();
        assert!(error.contains(dtype), "{error}");
    }
    assert_eq!(read("f32", "0.1").unwrap(), array![0.1f32].into());
    assert_eq!(read("f32", "\"inf\"").unwrap(), array![f32::INFINITY].into());
}
