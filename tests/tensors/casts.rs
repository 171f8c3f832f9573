//! Conversions to another dtype: exact, or an error.

use half::{bf16, f16};
use ndarray::{Array1, Array2, ArrayView1, CowArray, array};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use tenarc::tensor::{Element, FromTensor, Order, ToTensor};
use tenarc::{DType, DynTensor, Tensor};

use super::support::{Placed, Sample, assert_fails, assert_reads, encode, for_every_element};

#[derive(Serialize, Deserialize, Debug, PartialEq)]
#[serde(bound(serialize = "T: ToTensor", deserialize = "T: FromTensor<'de>"))]
#[serde(transparent)]
struct Cast<T>(#[serde(with = "tenarc::tensor::cast")] T);

/// Asserts that an array of `A` is read as one of `B`.
#[track_caller]
#[allow(clippy::needless_pass_by_value)] // Easier to read where it is called.
fn casts<A: Element, B: Element>(from: Vec<A>, to: Vec<B>) {
    let bytes = encode(&Array1::from_vec(from));
    assert_reads(&bytes, &Cast(to.clone()));
    assert_eq!(tenarc::from_slice::<Cast<Array1<B>>>(&bytes).unwrap().0.to_vec(), to);
}

/// Asserts that an element of `A` is no `B`.
#[track_caller]
fn fails<A: Element, B: Element>(from: A, texts: &[&str]) {
    assert_fails::<Cast<Vec<B>>>(&encode(&array![from]), texts);
}

fn halves(values: &[f32]) -> Vec<f16> {
    values.iter().map(|&value| f16::from_f32(value)).collect()
}

fn brains(values: &[f32]) -> Vec<bf16> {
    values.iter().map(|&value| bf16::from_f32(value)).collect()
}

#[test]
fn the_same_dtype_passes() {
    fn check<A: Sample>() {
        let values: Vec<A> = (0..5).map(A::sample).collect();
        casts(values.clone(), values);
    }
    for_every_element!(check);
}

#[test]
fn floats_become_wider_floats() {
    casts(halves(&[0.5, -0.0, 65504.0]), vec![0.5f32, -0.0, 65504.0]);
    casts(halves(&[0.5]), vec![0.5f64]);
    casts(brains(&[1.5, -3e38]), vec![1.5f32, bf16::from_f32(-3e38).to_f32()]);
    casts(vec![0.1f32, f32::INFINITY], vec![f64::from(0.1f32), f64::INFINITY]);
}

#[test]
fn floats_become_narrower_floats_only_to_the_last_bit() {
    casts(vec![0.5f64, -0.0, 1e30f32.into()], vec![0.5f32, -0.0, 1e30]);
    casts(vec![0.25f32, f32::NEG_INFINITY], halves(&[0.25, f32::NEG_INFINITY]));
    casts(vec![0.25f64], brains(&[0.25]));
    fails::<f64, f32>(0.1, &["0.1", "exactly as f32"]);
    fails::<f64, f32>(1e300, &["exactly as f32"]);
    fails::<f64, f32>(1e-300, &["exactly as f32"]);
    fails::<f32, f16>(65536.0, &["65536", "exactly as f16"]);
    fails::<f32, bf16>(1.001, &["exactly as bf16"]);
}

#[test]
fn not_a_number_stays_that_among_floats_and_is_no_integer() {
    for bytes in [encode(&array![f64::NAN]), encode(&array![f16::NAN])] {
        assert!(tenarc::from_slice::<Cast<Vec<f32>>>(&bytes).unwrap().0[0].is_nan());
    }
    fails::<f32, i32>(f32::NAN, &["NaN", "exactly as i32"]);
    fails::<f32, u64>(f32::INFINITY, &["inf", "exactly as u64"]);
}

#[test]
fn integers_become_integers_that_hold_them() {
    casts(vec![0u8, 255], vec![0i64, 255]);
    casts(vec![-128i64, 127], vec![-128i8, 127]);
    casts(vec![i64::MAX], vec![i64::MAX.unsigned_abs()]);
    fails::<i32, u32>(-1, &["-1", "exactly as u32"]);
    fails::<u64, i64>(u64::MAX, &["18446744073709551615", "exactly as i64"]);
    fails::<u16, u8>(256, &["256", "exactly as u8"]);
}

#[test]
fn integers_and_floats_become_each_other_exactly() {
    casts(vec![1u8, 255], vec![1.0f32, 255.0]);
    casts(vec![1i64 << 53], vec![9_007_199_254_740_992.0f64]);
    casts(vec![i64::MIN], vec![-9_223_372_036_854_775_808.0f64]);
    casts(vec![3.0f64, -4.0], vec![3i8, -4]);
    fails::<i64, f64>((1 << 53) + 1, &["9007199254740993", "exactly as f64"]);
    fails::<i64, f64>(i64::MAX, &["exactly as f64"]);
    fails::<u32, f32>((1 << 24) + 1, &["16777217", "exactly as f32"]);
    fails::<f32, u8>(0.5, &["0.5", "exactly as u8"]);
    fails::<f32, u8>(256.0, &["256", "exactly as u8"]);
    fails::<f64, i64>(9_223_372_036_854_775_808.0, &["exactly as i64"]);
    fails::<f32, u8>(-0.0, &["-0", "exactly as u8"]);
}

#[test]
fn bools_are_no_numbers() {
    fails::<bool, u8>(true, &["true", "exactly as u8"]);
    fails::<u8, bool>(1, &["1", "exactly as bool"]);
    fails::<bool, f32>(false, &["false", "exactly as f32"]);
}

#[test]
fn reals_become_complex_but_not_the_reverse() {
    casts(vec![1.5f32], vec![Complex::new(1.5f32, 0.0)]);
    casts(vec![7u8], vec![Complex::new(7.0f64, 0.0)]);
    casts(vec![Complex::new(0.1f32, 1.0)], vec![Complex::new(f64::from(0.1f32), 1.0)]);
    fails::<Complex<f64>, Complex<f32>>(Complex::new(0.5, 0.1), &["0.5+0.1i", "exactly as c64"]);
    fails::<Complex<f32>, f32>(Complex::new(1.0, 0.0), &["1+0i", "exactly as f32"]);
}

#[test]
fn dtypes_without_a_rust_type_do_not_convert() {
    let tensor = DynTensor::new(DType::F8E5M2, &[2], Order::C, vec![0, 1]).unwrap();
    let bytes = tenarc::to_vec(&Tensor(tensor.clone())).unwrap();
    assert_fails::<Cast<Vec<f32>>>(&bytes, &["f8_e5m2", "do not convert to f32"]);
    let error = tensor.cast::<f64>().unwrap_err().to_string();
    assert!(error.contains("f8_e5m2") && error.contains("f64"), "{error}");
}

#[test]
fn order_and_shape_are_kept() {
    let matrix = array![[1.0f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
    for matrix in [matrix.clone(), matrix.reversed_axes()] {
        let bytes = encode(&matrix);
        let cast: Cast<Array2<i16>> = tenarc::from_slice(&bytes).unwrap();
        #[allow(clippy::cast_possible_truncation)]
        let expected = matrix.mapv(|value| value as i16);
        assert_eq!(cast.0, expected);
        assert_eq!(cast.0.strides(), matrix.strides());
    }
}

#[test]
fn views_are_not_cast_but_copy_on_write_arrays_are() {
    let bytes = encode(&array![1.0f32, 2.0]);
    let placed = Placed::new(&bytes, 8, 0);
    let view = tenarc::from_slice::<Cast<ArrayView1<'_, f64>>>(placed.bytes());
    let error = view.unwrap_err().to_string();
    assert!(error.contains("expected a tensor of f64, found one of f32"), "{error}");
    let cow = tenarc::from_slice::<Cast<CowArray<'_, f64, ndarray::Ix1>>>(placed.bytes()).unwrap();
    assert_eq!(cow.0, array![1.0f64, 2.0]);
    let cow = tenarc::from_slice::<Cast<CowArray<'_, f32, ndarray::Ix1>>>(placed.bytes()).unwrap();
    assert!(cow.0.is_view());
}

#[test]
fn writing_is_as_without() {
    let values = vec![1.0f32, 2.0];
    let cast = tenarc::to_vec(&Cast(values.clone())).unwrap();
    assert_eq!(cast, tenarc::to_vec(&Tensor(values)).unwrap());
}

#[test]
fn large_tensors_from_a_reader_are_cast() {
    let bytes = encode(&Array1::from_iter((0..100_000u32).map(|value| value % 1000)));
    let cast: Cast<Vec<f32>> = tenarc::from_reader(&*bytes).unwrap();
    let expected: Vec<f32> = (0..100_000u32).map(|value| (value % 1000) as f32).collect();
    assert_eq!(cast.0, expected);
}
