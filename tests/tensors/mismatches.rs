//! Tensors of another type or shape than asked for, and broken ones.

use std::fmt::Debug;

use ndarray::{Array1, Array2, Array3, ArrayD, array};
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::tensor::Element;
use tenarc::{DynTensor, Tensor};

use super::support::{Sample, assert_fails, decode, encode, for_every_element, unhex};

#[test]
fn another_dtype_is_an_error_that_names_both() {
    fn stored<A: Sample>() {
        fn asked<A: Sample, B: Element + Debug>() {
            if A::DTYPE == B::DTYPE {
                return;
            }
            let expected = format!("expected a tensor of {}", B::DTYPE);
            let found = format!("found one of {}", A::DTYPE);
            let bytes = encode(&array![A::sample(1), A::sample(1)]);
            let error = tenarc::from_slice::<Tensor<Vec<B>>>(&bytes).unwrap_err().to_string();
            for text in [expected.as_str(), &found, "[2]"] {
                assert!(error.contains(text), "`{error}` does not say `{text}`");
            }
        }
        asked::<A, bool>();
        asked::<A, u8>();
        asked::<A, u16>();
        asked::<A, u32>();
        asked::<A, u64>();
        asked::<A, i8>();
        asked::<A, i16>();
        asked::<A, i32>();
        asked::<A, i64>();
        asked::<A, half::f16>();
        asked::<A, half::bf16>();
        asked::<A, f32>();
        asked::<A, f64>();
        asked::<A, num_complex::Complex<f32>>();
        asked::<A, num_complex::Complex<f64>>();
    }
    for_every_element!(stored);
}

#[test]
fn another_dtype_is_refused_by_every_container() {
    let bytes = encode(&array![1i32, 2]);
    let said = &["expected a tensor of f32, found one of i32"];
    assert_fails::<Tensor<Array1<f32>>>(&bytes, said);
    assert_fails::<Tensor<ArrayD<f32>>>(&bytes, said);
    assert_fails::<Tensor<Box<[f32]>>>(&bytes, said);
    assert_fails::<Tensor<[f32; 2]>>(&bytes, said);
}

#[test]
fn another_dtype_of_a_large_tensor_from_a_reader() {
    let bytes = encode(&Array1::<f64>::zeros(100_000));
    let error = tenarc::from_reader::<_, Tensor<Array1<f32>>>(&*bytes).unwrap_err().to_string();
    assert!(error.contains("expected a tensor of f32, found one of f64"), "{error}");
}

#[derive(Serialize, Deserialize, Debug)]
#[serde(bound(
    serialize = "T: tenarc::tensor::ToTensor",
    deserialize = "T: tenarc::tensor::FromTensor<'de>"
))]
struct Model<T> {
    layers: Vec<Layer<T>>,
}

#[derive(Serialize, Deserialize, Debug)]
#[serde(bound(
    serialize = "T: tenarc::tensor::ToTensor",
    deserialize = "T: tenarc::tensor::FromTensor<'de>"
))]
struct Layer<T> {
    weight: Tensor<T>,
}

#[test]
fn errors_tell_the_path_and_the_offset() {
    let layer = |value: f64| Layer { weight: Tensor(vec![value]) };
    let bytes = tenarc::to_vec(&Model { layers: vec![layer(0.0), layer(1.0)] }).unwrap();
    for found in decode::<Model<Vec<f32>>>(&bytes) {
        let error = found.unwrap_err();
        assert_eq!(error.category(), Category::Mismatch);
        assert_eq!(error.path(), "layers.0.weight");
        // {"layers": [{"weight": the tensor
        assert_eq!(error.offset(), Some(1 + 7 + 1 + 1 + 7));
    }
}

#[test]
fn another_rank_is_an_error_that_tells_the_shape() {
    let bytes = encode(&Array3::<f32>::zeros((2, 3, 4)));
    assert_fails::<Tensor<Array2<f32>>>(&bytes, &["of 2 dimensions", "[2, 3, 4]"]);
    assert_fails::<Tensor<Array1<f32>>>(&bytes, &["of 1 dimensions", "[2, 3, 4]"]);
    assert_fails::<Tensor<Vec<f32>>>(&bytes, &["of 1 dimension", "[2, 3, 4]"]);
    assert_fails::<Tensor<Box<[f32]>>>(&bytes, &["of 1 dimension", "[2, 3, 4]"]);
    assert_fails::<Tensor<[f32; 24]>>(&bytes, &["of 1 dimension", "[2, 3, 4]"]);
    let bytes = encode(&Array1::<f32>::zeros(3));
    assert_fails::<Tensor<ndarray::Array0<f32>>>(&bytes, &["of 0 dimensions", "[3]"]);
    assert_fails::<Tensor<Array2<f32>>>(&bytes, &["of 2 dimensions", "[3]"]);
    let bytes = encode(&Array2::<f32>::zeros((0, 3)));
    assert_fails::<Tensor<Array1<f32>>>(&bytes, &["of 1 dimensions", "[0, 3]"]);
}

#[test]
fn what_is_no_tensor_is_refused() {
    for bytes in ["01", "63616263", "f6", "f5", "43010203", "fb3ff0000000000000", "a0"] {
        for found in decode::<Tensor<ArrayD<f32>>>(&unhex(bytes)) {
            assert_eq!(found.unwrap_err().category(), Category::Mismatch, "{bytes}");
        }
    }
    // A tag that this version does not know is passed over, also before a tensor.
    let tagged = unhex("d9d9f7 d828 82 8101 d840 41 07");
    for found in decode::<Tensor<Vec<u8>>>(&tagged) {
        assert_eq!(found.unwrap().0, [7]);
    }
}

#[test]
fn payloads_that_do_not_fit_the_shape_are_refused() {
    // One byte more and one less than [2, 2] of u16 takes, one element more and less.
    for payload in ["47 00000000000000", "49 000000000000000000", "46 000000000000", "40"] {
        let bytes = unhex(&format!("d828 82 820202 d845 {payload}"));
        assert_fails::<Tensor<DynTensor>>(&bytes, &["u16", "[2, 2]", "8 bytes"]);
        let bytes = unhex(&format!("da54454e53 84 63753136 820202 6143 {payload}"));
        assert_fails::<Tensor<DynTensor>>(&bytes, &["u16", "[2, 2]", "8 bytes"]);
    }
    // A scalar is one element.
    assert_fails::<Tensor<DynTensor>>(&unhex("d828 82 80 d840 40"), &["[]", "1 bytes"]);
    assert_fails::<Tensor<DynTensor>>(&unhex("d828 82 80 d840 42 0000"), &["[]", "1 bytes"]);
}

#[test]
fn bare_typed_arrays_of_broken_elements_are_refused() {
    assert_fails::<Tensor<Vec<u32>>>(&unhex("d846 45 0000000000"), &["5 bytes", "u32"]);
    assert_fails::<Tensor<DynTensor>>(&unhex("d9a7f9 d855 44 00000000"), &["4 bytes", "c64"]);
    assert_fails::<Tensor<DynTensor>>(&unhex("d846 82 0102"), &["expected the bytes of a tensor"]);
}

#[test]
fn products_of_dimensions_that_overflow_are_refused() {
    let max = "1b7fffffffffffffff";
    for shape in [
        format!("82 {max} 02"),
        format!("82 02 {max}"),
        // 2^32 * 2^32 is 0 in 64 bits.
        "82 1b0000000100000000 1b0000000100000000".into(),
        // A zero does not excuse the rest.
        format!("83 00 {max} 02"),
        format!("83 {max} 02 00"),
        // Elements fit, bytes do not.
        format!("81 {max}"),
    ] {
        let bytes = unhex(&format!("d828 82 {shape} d845 40"));
        for found in decode::<Tensor<DynTensor>>(&bytes) {
            assert_eq!(found.unwrap_err().category(), Category::Data, "{shape}");
        }
    }
}

#[test]
fn dimensions_that_are_none_are_refused() {
    for dim in ["20", "f6", "6131", "f93c00", "c24102", "1bffffffffffffffff"] {
        let bytes = unhex(&format!("d828 82 81 {dim} d840 41 00"));
        assert_fails::<Tensor<DynTensor>>(&bytes, &["expected a dimension"]);
    }
    let rank_65 = format!("d828 82 9841 {} d840 41 00", "01".repeat(65));
    assert_fails::<Tensor<DynTensor>>(&unhex(&rank_65), &["more than 64 dimensions"]);
    let rank_64 = format!("d828 82 9840 {} d840 41 07", "01".repeat(64));
    for found in decode::<Tensor<DynTensor>>(&unhex(&rank_64)) {
        assert_eq!(found.unwrap().shape(), [1; 64]);
    }
}

#[test]
fn tensors_of_another_form_are_refused() {
    for (bytes, text) in [
        ("d828 81 8101", "shape and elements"),
        ("d828 83 8101 d840 41 00 00", "shape and elements"),
        ("d828 d840 41 00", "shape and elements"),
        ("d828 82 01 d840 41 00", "array of dimensions"),
        ("d828 82 8101 41 00", "elements of a tensor"),
        ("d828 82 8101 d84c 41 00", "elements of a tensor"),
        ("d828 82 8101 d828 82 8101 d840 41 00", "found tag 40"),
        ("d828 82 8101 d9a7f9 d840 41 00", "parts of complex numbers"),
        ("da54454e53 83 627538 8101 6143", "dtype, shape, order and bytes"),
        ("da54454e53 84 01 8101 6143 4100", "name of a dtype"),
        ("da54454e53 84 627538 8101 6158 4100", "memory order"),
        ("da54454e53 84 626634 8103 6143 420000", "whole number of bytes"),
        ("da54425546 84 627538 8101 6143 00", "reference to a buffer"),
    ] {
        let bytes = unhex(bytes);
        for found in decode::<Tensor<DynTensor>>(&bytes) {
            let error = found.expect_err(text);
            assert_eq!(error.category(), Category::Data);
            assert!(error.to_string().contains(text), "`{error}` does not say `{text}`");
        }
    }
}

#[test]
fn bytes_that_are_no_bools_are_refused_by_every_container() {
    let bytes = unhex("da54454e53 84 64626f6f6c 8103 6143 43 0001ff");
    let said = "a bool is stored as the byte 255; it must be 0 or 1";
    assert_fails::<Tensor<Array1<bool>>>(&bytes, &[said]);
    assert_fails::<Tensor<[bool; 3]>>(&bytes, &[said]);
    assert_fails::<Tensor<DynTensor>>(&bytes, &[said]);
    assert_fails::<Vec<bool>>(&bytes, &[said]);
    assert_fails::<tenarc::Value>(&bytes, &[said]);
    let chunked = unhex("da54454e53 84 64626f6f6c 8103 6143 5f 41 00 42 01ff ff");
    assert_fails::<Tensor<Array1<bool>>>(&chunked, &[said]);
}

#[test]
fn cut_short_tensors_end_the_input() {
    for bytes in [
        encode(&array![[1.5f32, 2.5], [3.5, 4.5]]),
        encode(&array![true, false]),
        unhex("9f d828 9f 9f 02 ff d855 5f 43 010203 45 0405060708 ff ff ff"),
    ] {
        for len in 0..bytes.len() {
            for found in decode::<tenarc::Value>(&bytes[..len]) {
                assert_eq!(found.unwrap_err().category(), Category::Eof, "{len}");
            }
            for found in decode::<Tensor<DynTensor>>(&bytes[..len]) {
                let category = found.unwrap_err().category();
                assert!(
                    matches!(category, Category::Eof | Category::Data | Category::Mismatch),
                    "{len}: {category:?}"
                );
            }
        }
    }
}

#[test]
fn a_payload_that_is_only_claimed_ends_the_input() {
    // 2^40 bytes, as the shape says too.
    let bytes = unhex("d828 82 811b0000010000000000 d840 5b0000010000000000 00");
    for found in decode::<Tensor<Vec<u8>>>(&bytes) {
        let category = found.unwrap_err().category();
        assert!(matches!(category, Category::Eof | Category::Limit), "{category:?}");
    }
}
