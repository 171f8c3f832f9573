//! The bytes of tensors, written out: the same on hosts of either byte order and any word size.

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use ndarray::{Array2, ArrayView1, CowArray, Ix1, ShapeBuilder, array, s};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use tenarc::ser::EncodeOptions;
use tenarc::tensor::Element;
use tenarc::{DynTensor, Tensor};

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16).unwrap()).unwrap();
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Writes and reads two elements of each type.
fn check<A: Element>(values: [A; 2], expected: &str) {
    let expected = unhex(expected);
    let tensor = Tensor(Vec::from(values));
    assert_eq!(tenarc::to_vec(&tensor).unwrap(), expected);
    let from_slice: Tensor<Vec<A>> = tenarc::from_slice(&expected).unwrap();
    let from_reader: Tensor<[A; 2]> = tenarc::from_reader(&expected[..]).unwrap();
    let dynamic: Tensor<DynTensor> = tenarc::from_slice(&expected).unwrap();
    let cow: Tensor<CowArray<'_, A, Ix1>> = tenarc::from_slice(&expected).unwrap();
    assert_eq!((&from_slice.0[..], from_reader.0), (&values[..], values));
    assert_eq!(dynamic.view::<A>().unwrap().as_slice(), Some(&values[..]));
    assert_eq!(cow.as_slice(), Some(&values[..]));
    assert_eq!(tenarc::to_vec(&dynamic).unwrap(), expected);
}

#[test]
fn every_element_type_is_little_endian() {
    check([true, false], "da54454e53 84 64 626f6f6c 81 02 61 43 42 0100");
    check([1u8, 0xff], "d828 82 81 02 d840 42 01ff");
    check([1u16, 0xff01], "d828 82 81 02 d845 44 0100 01ff");
    check([1u32, 0x0102_0304], "d828 82 81 02 d846 48 01000000 04030201");
    check([1u64, 2], "d828 82 81 02 d847 50 0100000000000000 0200000000000000");
    check([1i8, -1], "d828 82 81 02 d848 42 01ff");
    check([1i16, -2], "d828 82 81 02 d84d 44 0100 feff");
    check([1i32, -2], "d828 82 81 02 d84e 48 01000000 feffffff");
    check([1i64, -2], "d828 82 81 02 d84f 50 0100000000000000 feffffffffffffff");
    check([f16::ONE, f16::NEG_ONE], "d828 82 81 02 d854 44 003c 00bc");
    check([bf16::ONE, bf16::NEG_ONE], "da54454e53 84 64 62663136 81 02 61 43 44 803f 80bf");
    check([1f32, -1.0], "d828 82 81 02 d855 48 0000803f 000080bf");
    check([1f64, -1.0], "d828 82 81 02 d856 50 000000000000f03f 000000000000f0bf");
    check(
        [Complex::new(1f32, -1.0), Complex::new(0.0, 1.0)],
        "d828 82 81 02 d9a7f9 d855 50 0000803f 000080bf 00000000 0000803f",
    );
    check(
        [Complex::new(1f64, -1.0), Complex::new(0.0, 1.0)],
        "d828 82 81 02 d9a7f9 d856 5820 000000000000f03f 000000000000f0bf \
         0000000000000000 000000000000f03f",
    );
}

#[test]
fn memory_order_and_strides() {
    let rows = array![[1u16, 2, 3], [4, 5, 6]];
    let c_order = unhex("d828 82 82 02 03 d845 4c 0100 0200 0300 0400 0500 0600");
    assert_eq!(tenarc::to_vec(&Tensor(rows.view())).unwrap(), c_order);

    let columns = Array2::from_shape_vec((2, 3).f(), vec![1u16, 4, 2, 5, 3, 6]).unwrap();
    let f_order = unhex("d90410 82 82 02 03 d845 4c 0100 0400 0200 0500 0300 0600");
    assert_eq!(tenarc::to_vec(&Tensor(columns)).unwrap(), f_order);
    let back: Tensor<Array2<u16>> = tenarc::from_slice(&f_order).unwrap();
    assert_eq!(back.0, rows);
    assert!(!back.is_standard_layout());

    let every_other = rows.slice(s![.., ..;2]);
    let strided = unhex("d828 82 82 02 02 d845 48 0100 0300 0400 0600");
    assert_eq!(tenarc::to_vec(&Tensor(every_other)).unwrap(), strided);
}

#[test]
fn big_endian_arrays_are_read() {
    let big = unhex("d828 82 81 02 d851 48 3f800000 bf800000");
    let tensor: Tensor<Vec<f32>> = tenarc::from_slice(&big).unwrap();
    assert_eq!(tensor.0, [1.0, -1.0]);
    let tensor: Tensor<Vec<f32>> = tenarc::from_reader(&big[..]).unwrap();
    assert_eq!(tensor.0, [1.0, -1.0]);
    // There are no elements of this byte order to borrow, wherever they lie.
    assert!(tenarc::from_slice::<Tensor<ArrayView1<'_, f32>>>(&big).is_err());
}

#[test]
fn packed_sequences() {
    let values: Vec<f32> = (0..8u8).map(f32::from).collect();
    let options = EncodeOptions::default().with_typed_arrays(true);
    let bytes = tenarc::ser::to_vec_with(&values, options).unwrap();
    assert_eq!(bytes[..8], unhex("d855 5820 00000000"));
    assert_eq!(bytes[32..], unhex("0000e040"));
    assert_eq!(tenarc::from_slice::<Vec<f32>>(&bytes).unwrap(), values);
    let wider: Vec<f64> = tenarc::from_reader(&bytes[..]).unwrap();
    assert_eq!(wider, (0..8u8).map(f64::from).collect::<Vec<_>>());
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Point {
    x: f32,
    y: f32,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Points(#[serde(with = "tenarc::tensor::Rows::<f32>")] Vec<Point>);

#[test]
fn rows_of_plain_structs() {
    let points = Points(vec![Point { x: 1.0, y: -1.0 }; 2]);
    let expected = unhex("d828 82 82 02 02 d855 50 0000803f 000080bf 0000803f 000080bf");
    assert_eq!(tenarc::to_vec(&points).unwrap(), expected);
    assert_eq!(tenarc::from_slice::<Points>(&expected).unwrap(), points);
    assert_eq!(tenarc::from_reader::<_, Points>(&expected[..]).unwrap(), points);
}
