//! The bytes of written files, and what cannot be written.

use ndarray::{Array, Array1, Array2, Array3, IxDyn, ShapeBuilder as _, array};
use proptest::prelude::*;
use tenarc::tensor::{Deferred, Order, ToTensor};
use tenarc::{DType, DynTensor};
use tenarc_convert::TensorFile as _;
use tenarc_convert::safetensors::{self, Options, SafeTensors};

use crate::support::{quick, tensor, written};

fn fails<T: ToTensor>(tensors: &[(&str, T)]) -> String {
    let mut out = Vec::new();
    let error = safetensors::to_writer(&mut out, tensors).unwrap_err();
    assert!(out.is_empty(), "{} bytes were written", out.len());
    error.to_string()
}

#[test]
fn a_file_is_laid_out_by_dtype_and_then_by_name() {
    let (a, b, c) = (array![1.0f32], array![2u8, 3], array![4.0f32]);
    let tensors: [(&str, &dyn ToTensor); 3] = [("b", &b), ("z", &a), ("a", &c)];
    let mut bytes = Vec::new();
    let options = Options::default().with_metadata([("k", "v"), ("a", "é\n\u{1}")]);
    safetensors::to_writer_with(&mut bytes, &tensors, &options).unwrap();
    let header = concat!(
        r#"{"__metadata__":{"k":"v","a":"é\n\u0001"},"#,
        r#""a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"#,
        r#""z":{"dtype":"F32","shape":[1],"data_offsets":[4,8]},"#,
        r#""b":{"dtype":"U8","shape":[2],"data_offsets":[8,10]}}"#,
    );
    let padded = header.len().next_multiple_of(8);
    let mut expected = (padded as u64).to_le_bytes().to_vec();
    expected.extend_from_slice(format!("{header:padded$}").as_bytes().get(..padded).unwrap());
    // Padding counts bytes, `format!` counts characters.
    expected.truncate(8 + header.len());
    expected.resize(8 + padded, b' ');
    expected.extend_from_slice(&4.0f32.to_le_bytes());
    expected.extend_from_slice(&1.0f32.to_le_bytes());
    expected.extend_from_slice(&[2, 3]);
    assert_eq!(bytes, expected);
}

#[test]
fn names_must_be_unique_and_not_that_of_the_metadata() {
    assert!(fails(&[("a", vec![1u8]), ("b", vec![1]), ("a", vec![2])]).contains("at `a`"));
    assert!(fails(&[("__metadata__", vec![1u8])]).contains("`__metadata__`"));
    let mut out = Vec::new();
    let options = Options::default().with_metadata([("k", "1"), ("k", "2")]);
    let error = safetensors::to_writer_with(&mut out, &[("a", vec![1u8])], &options).unwrap_err();
    assert!(error.to_string().contains("`__metadata__.k`") && out.is_empty(), "{error}");
}

#[test]
fn a_header_beyond_100_mb_is_not_written() {
    let text = "x".repeat(60_000_000);
    let options = Options::default().with_metadata([("a", &text[..]), ("b", &text[..])]);
    let mut out = Vec::new();
    let error = safetensors::to_writer_with(&mut out, &[("a", vec![1u8])], &options).unwrap_err();
    assert_eq!((error.category(), out.len()), (tenarc::error::Category::Limit, 0));
}

#[test]
fn dtypes_that_safetensors_has_not_are_refused_or_left_out() {
    let posit = DynTensor::new(DType::from_name("posit16"), &[2], Order::C, vec![0; 4]).unwrap();
    let quad = DynTensor::new(DType::F128, &[1], Order::C, vec![0; 16]).unwrap();
    let double = DynTensor::from(array![num_complex::Complex::new(1.0f64, 2.0)]);
    for (name, other) in [("posit16", posit), ("f128", quad), ("c128", double)] {
        let tensors = [("kept", tensor(&DType::U8, &[3], 1)), ("other", other)];
        let error = fails(&tensors);
        assert!(error.contains(&format!("`other`: safetensors has no dtype {name}")), "{error}");
        assert!(error.contains("unless losses are accepted"), "{error}");
        let mut out = Vec::new();
        let options = quick().with_losses(true);
        let losses = safetensors::to_writer_with(&mut out, &tensors, &options).unwrap();
        assert_eq!((losses.count(), losses.listed()[0].path()), (1, "other"));
        let file = SafeTensors::new(out).unwrap();
        assert_eq!(file.tensors().len(), 1);
        assert_eq!(file.dyn_tensor("kept").unwrap(), tensors[0].1);
    }
}

fn number((i, j): (usize, usize)) -> f32 {
    f32::from(u16::try_from(i * 10 + j).unwrap())
}

#[test]
fn column_major_order_is_a_note() {
    let rows = Array2::from_shape_fn((3, 4), number);
    let columns = Array2::from_shape_fn((3, 4).f(), number);
    let mut out = Vec::new();
    let losses = safetensors::to_writer_with(&mut out, &[("w", columns)], &quick()).unwrap();
    assert!(losses.is_empty() && losses.notes()[0].contains("row-major order"), "{losses:?}");
    assert_eq!(SafeTensors::new(out).unwrap().tensor::<ndarray::Array<f32, _>>("w").unwrap(), rows);
    // One dimension has no order.
    let mut out = Vec::new();
    safetensors::to_writer(&mut out, &[("v", Array1::<f32>::zeros(3))]).unwrap();
    // Nor have views that are neither.
    let strided = rows.slice(ndarray::s![.., ..;2]);
    let mut out = Vec::new();
    safetensors::to_writer(&mut out, &[("v", strided)]).unwrap();
    assert_eq!(
        SafeTensors::new(out).unwrap().tensor::<ndarray::Array<f32, _>>("v").unwrap(),
        strided
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn every_column_major_tensor_is_reordered_right(
        shape in prop::collection::vec(0usize..6, 2..5),
        whole in any::<bool>(),
    ) {
        let mut count = 0u16;
        let columns = Array::from_shape_fn(IxDyn(&shape).f(), |_| { count += 1; count });
        let held = DynTensor::from(columns.clone());
        prop_assume!(held.order() == Order::F);
        let bytes = held.le_bytes().into_owned();
        let blocks = Deferred::from_blocks(DType::U16, &shape, Order::F, |put| {
            bytes.chunks(7).try_for_each(&mut *put)
        });
        let tensor: &dyn ToTensor = if whole { &held } else { &blocks };
        let mut out = Vec::new();
        safetensors::to_writer_with(&mut out, &[("w", tensor)], &quick().with_losses(true)).unwrap();
        let back = SafeTensors::new(out).unwrap().tensor::<ndarray::ArrayD<u16>>("w").unwrap();
        prop_assert_eq!(back, columns);
    }
}

#[test]
fn elements_smaller_than_a_byte_keep_their_order_or_are_refused() {
    let columns = DynTensor::new(DType::F4, &[2, 4], Order::F, vec![1, 2, 3, 4]).unwrap();
    let mut out = Vec::new();
    let tensors = [("w", columns)];
    let error = safetensors::to_writer_with(&mut out, &tensors, &quick().with_losses(true));
    assert!(error.unwrap_err().to_string().contains("cannot be converted to row-major"));
    let rows = DynTensor::new(DType::F4, &[2, 4], Order::C, vec![1, 2, 3, 4]).unwrap();
    let bytes = written(&[("w", rows.clone())], &quick());
    assert_eq!(SafeTensors::new(bytes).unwrap().dyn_tensor("w").unwrap(), rows);
}

#[test]
fn tensors_are_read_as_what_they_are() {
    let array =
        Array3::from_shape_fn((2, 3, 4), |(i, j, k)| i16::try_from(i * 100 + j * 10 + k).unwrap());
    let mut out = Vec::new();
    safetensors::to_writer(&mut out, &[("a", &array)]).unwrap();
    let file = SafeTensors::new(out).unwrap();
    assert_eq!(file.tensor::<ndarray::Array3<i16>>("a").unwrap(), array);
    let wrong = file.tensor::<ndarray::Array3<i32>>("a").unwrap_err();
    assert!(
        wrong
            .to_string()
            .contains("expected a tensor of i32, found one of i16 and shape [2, 3, 4] at `a`"),
        "{wrong}"
    );
    assert_eq!(file.tensor::<ndarray::Array2<i16>>("a").unwrap_err().path(), "a");
    let none = file.dyn_tensor("b").unwrap_err();
    assert!(none.to_string().contains("no tensor named `b`"), "{none}");
    assert!(file.info("b").is_err() && file.deferred("b").is_err());
}
