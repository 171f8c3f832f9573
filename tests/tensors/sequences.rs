//! Typed arrays and tensors of one dimension, read as plain sequences.

use std::collections::{BTreeSet, BinaryHeap, HashSet, LinkedList, VecDeque};

use half::{bf16, f16};
use ndarray::{Array1, array};
use num_complex::Complex;
use serde::Deserialize;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

use super::support::{assert_fails, assert_reads, decode, encode, unhex};

/// The bare typed array, and the tensor, of some singles.
fn singles(values: &[f32]) -> [Vec<u8>; 2] {
    let options = tenarc::ser::EncodeOptions::default().with_typed_arrays(true);
    let bare = tenarc::ser::to_vec_with(values, options).unwrap();
    assert_eq!(bare[..2], [0xd8, 85], "a bare typed array");
    [bare, encode(&Array1::from_vec(values.to_vec()))]
}

#[test]
fn into_any_sequence() {
    for bytes in singles(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]) {
        let expected: Vec<f32> = (1..=8u8).map(f32::from).collect();
        assert_reads(&bytes, &expected);
        assert_reads(&bytes, &expected.clone().into_boxed_slice());
        assert_reads(&bytes, &VecDeque::from(expected.clone()));
        assert_reads(&bytes, &expected.iter().copied().collect::<LinkedList<f32>>());
        assert_reads(&bytes, &(1..=8).collect::<HashSet<u8>>());
        assert_reads(&bytes, &(1..=8).collect::<BTreeSet<i64>>());
        for heap in decode::<BinaryHeap<u32>>(&bytes) {
            assert_eq!(heap.unwrap().into_sorted_vec(), [1, 2, 3, 4, 5, 6, 7, 8]);
        }
        assert_reads(&bytes, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
        assert_reads(&bytes, &(1.0f32, 2.0f64, 3u8, 4i8, 5u64, 6i64, 7u16, 8i32));
        assert_reads(&bytes, &(1..=8).map(Some).collect::<Vec<Option<u8>>>());
    }
}

#[test]
fn into_any_number_type_that_holds_the_elements() {
    for bytes in singles(&[0.0, 1.0, 2.0, 255.0, 4.0, 5.0, 6.0, 7.0]) {
        assert_reads(&bytes, &vec![0.0f64, 1.0, 2.0, 255.0, 4.0, 5.0, 6.0, 7.0]);
        assert_reads(&bytes, &vec![0u8, 1, 2, 255, 4, 5, 6, 7]);
        assert_reads(&bytes, &vec![0u64, 1, 2, 255, 4, 5, 6, 7]);
        assert_reads(&bytes, &vec![0i16, 1, 2, 255, 4, 5, 6, 7]);
        assert_fails::<Vec<i8>>(&bytes, &["255", "i8"]);
        assert_fails::<Vec<bool>>(&bytes, &["a boolean"]);
        assert_fails::<Vec<String>>(&bytes, &["a string"]);
    }
    for bytes in singles(&[0.5; 8]) {
        assert_fails::<Vec<u8>>(&bytes, &["0.5"]);
        assert_reads(&bytes, &vec![0.5f64; 8]);
    }
    assert_reads(&unhex("d856 48 000000000000e03f"), &vec![0.5f32]);
    // A packed sequence means what its numbers mean one by one; a tensor keeps its elements.
    assert_reads(&unhex("d856 48 9a9999999999b93f"), &vec![0.1f32]);
    assert_fails::<Vec<f32>>(&unhex("d828 82 8101 d856 48 9a9999999999b93f"), &["0.1"]);
    assert_fails::<Vec<f32>>(&unhex("d856 48 9c7500883ce4377e"), &["double-precision"]);
}

#[test]
fn elements_of_every_dtype_with_numbers() {
    assert_reads(&unhex("d840 43 0102ff"), &vec![1u64, 2, 255]);
    assert_reads(&unhex("d848 42 01ff"), &vec![1i64, -1]);
    assert_reads(&unhex("d845 44 0100 ffff"), &vec![1.0f32, 65535.0]);
    assert_reads(&unhex("d84d 44 0100 ffff"), &vec![1i8, -1]);
    assert_reads(&unhex("d84e 48 01000000 ffffffff"), &vec![1i128, -1]);
    assert_reads(&unhex("d847 48 ffffffffffffffff"), &vec![u128::from(u64::MAX)]);
    assert_reads(&encode(&array![f16::from_f32(0.5)]), &vec![0.5f64]);
    assert_reads(&encode(&array![bf16::from_f32(0.5)]), &vec![0.5f64]);
    assert_reads(&encode(&array![true, false]), &vec![true, false]);
    assert_fails::<Vec<u8>>(&encode(&array![true, false]), &["bool"]);
}

#[test]
fn bytes_are_a_typed_array_of_bytes() {
    for bytes in ["d840 43 0102ff", "d844 43 0102ff", "43 0102ff", "83 01 02 18ff"] {
        let bytes = unhex(bytes);
        assert_reads(&bytes, &vec![1u8, 2, 255]);
        assert_reads(&bytes, &serde_bytes::ByteBuf::from(vec![1, 2, 255]));
        assert_reads(&bytes, &(1u8, 2u8, 255u8));
        assert_reads(&bytes, &vec![1.0f32, 2.0, 255.0]);
    }
    let bytes = unhex("d840 43 0102ff");
    let borrowed: &[u8] = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(borrowed.as_ptr(), bytes[3..].as_ptr());
}

#[test]
fn elements_without_numbers_are_refused() {
    assert_fails::<Vec<f32>>(&encode(&array![Complex::new(1.0f32, 0.0)]), &["c64", "Tensor"]);
    let tensor = DynTensor::new(DType::F8E4M3, &[1], Order::C, vec![1]).unwrap();
    let bytes = tenarc::to_vec(&Tensor(tensor)).unwrap();
    assert_fails::<Vec<f32>>(&bytes, &["f8_e4m3", "Tensor"]);
    let tensor = DynTensor::new(DType::from_name("odd"), &[1], Order::C, vec![1, 2, 3]).unwrap();
    let bytes = tenarc::to_vec(&Tensor(tensor)).unwrap();
    assert_fails::<Vec<f32>>(&bytes, &["odd"]);
}

#[test]
fn only_one_dimension_is_a_sequence() {
    assert_fails::<Vec<u8>>(&encode(&array![[1u8, 2]]), &["2 dimensions"]);
    assert_fails::<Vec<u8>>(&encode(&ndarray::arr0(1u8)), &["0 dimensions"]);
    assert_reads(&encode(&Array1::<f32>::zeros(0)), &Vec::<f32>::new());
    assert_reads(&unhex("d828 82 8102 82 0102"), &vec![1u8, 2]);
}

#[test]
fn tuples_and_arrays_of_another_length_are_refused() {
    for bytes in singles(&[1.0; 8]) {
        for found in decode::<[f32; 7]>(&bytes) {
            assert!(found.unwrap_err().to_string().contains("1 more"));
        }
        for found in decode::<[f32; 9]>(&bytes) {
            assert!(found.unwrap_err().to_string().contains("length 8"));
        }
    }
    assert_fails::<(u8, u8)>(&unhex("d840 43 010203"), &["1 more"]);
    assert_fails::<(u8, u8)>(&unhex("43 010203"), &["1 more"]);
}

#[test]
fn typed_arrays_of_broken_elements_are_refused() {
    assert_fails::<Vec<f32>>(&unhex("d855 45 0000000000"), &["5 bytes"]);
    assert_fails::<Vec<f32>>(&unhex("d828 82 8102 d855 44 00000000"), &["8 bytes, found 4"]);
}

#[derive(Deserialize, Debug, PartialEq)]
struct Named {
    a: Vec<f64>,
    b: (u8, u8),
}

#[test]
fn inside_structs_with_what_follows_intact() {
    let bytes = unhex("a2 6161 d855 44 0000003f 6162 d840 42 0102");
    assert_reads(&bytes, &Named { a: vec![0.5], b: (1, 2) });
    let bytes = unhex("a2 6161 d828 9f 8101 d855 44 0000003f ff 6162 d828 82 9f02ff d840 42 0102");
    assert_reads(&bytes, &Named { a: vec![0.5], b: (1, 2) });
}
