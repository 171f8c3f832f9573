//! Tensors in JSON: `{dtype, shape, data}`.

use std::fmt::Debug;

use half::{bf16, f16};
use ndarray::{Array2, ArrayD, IxDyn, ShapeBuilder, array, s};
use num_complex::Complex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor};

/// Asserts what a value is in JSON, and that it comes back from text, reader and JSON value.
#[track_caller]
fn is<T>(value: &T, text: &str)
where
    T: Serialize + DeserializeOwned + PartialEq + Debug,
{
    assert_eq!(serde_json::to_string(value).unwrap(), text);
    assert_eq!(&serde_json::from_str::<T>(text).unwrap(), value);
    assert_eq!(&serde_json::from_reader::<_, T>(text.as_bytes()).unwrap(), value);
    let held = serde_json::to_value(value).unwrap();
    assert_eq!(&serde_json::from_value::<T>(held).unwrap(), value);
}

/// Asserts what JSON is read as.
#[track_caller]
fn reads<T: DeserializeOwned + PartialEq + Debug>(text: &str, value: &T) {
    assert_eq!(&serde_json::from_str::<T>(text).unwrap(), value);
    assert_eq!(&serde_json::from_reader::<_, T>(text.as_bytes()).unwrap(), value);
}

#[track_caller]
fn fails<T: DeserializeOwned + Debug>(text: &str, said: &str) {
    let error = serde_json::from_str::<T>(text).unwrap_err().to_string();
    assert!(error.contains(said), "`{error}` does not say `{said}`");
}

#[test]
fn integers_are_numbers() {
    is(&Tensor(array![[1u8, 2], [3, 255]]), r#"{"dtype":"u8","shape":[2,2],"data":[1,2,3,255]}"#);
    is(&Tensor([-128i8, 127]), r#"{"dtype":"i8","shape":[2],"data":[-128,127]}"#);
    is(&Tensor(vec![u64::MAX]), r#"{"dtype":"u64","shape":[1],"data":[18446744073709551615]}"#);
    is(&Tensor(vec![i64::MIN]), r#"{"dtype":"i64","shape":[1],"data":[-9223372036854775808]}"#);
    is(&Tensor(vec![1u16, 65535]), r#"{"dtype":"u16","shape":[2],"data":[1,65535]}"#);
    is(&Tensor(vec![-1i16, 1]), r#"{"dtype":"i16","shape":[2],"data":[-1,1]}"#);
    is(&Tensor(vec![u32::MAX]), r#"{"dtype":"u32","shape":[1],"data":[4294967295]}"#);
    is(&Tensor(vec![i32::MIN]), r#"{"dtype":"i32","shape":[1],"data":[-2147483648]}"#);
}

#[test]
fn bools_are_true_and_false() {
    is(&Tensor(vec![true, false]), r#"{"dtype":"bool","shape":[2],"data":[true,false]}"#);
}

#[test]
fn floats_have_the_digits_that_their_width_needs() {
    is(&Tensor(vec![0.1f32, 1.0]), r#"{"dtype":"f32","shape":[2],"data":[0.1,1.0]}"#);
    is(&Tensor(vec![0.1f64, 1e9]), r#"{"dtype":"f64","shape":[2],"data":[0.1,1000000000.0]}"#);
    is(&Tensor(vec![-0.0f64]), r#"{"dtype":"f64","shape":[1],"data":[-0.0]}"#);
    let half = f16::from_f32(0.1);
    is(&Tensor(vec![half]), r#"{"dtype":"f16","shape":[1],"data":[0.099975586]}"#);
    let brain = bf16::from_f32(0.1);
    is(&Tensor(vec![brain]), r#"{"dtype":"bf16","shape":[1],"data":[0.100097656]}"#);
}

#[test]
fn every_half_comes_back() {
    let halves: Vec<f16> = (0..=u16::MAX).map(f16::from_bits).filter(|v| !v.is_nan()).collect();
    let text = serde_json::to_string(&Tensor(&halves)).unwrap();
    let back: Tensor<Vec<f16>> = serde_json::from_str(&text).unwrap();
    assert!(back.iter().zip(&halves).all(|(a, b)| a.to_bits() == b.to_bits()));
    let brains: Vec<bf16> = (0..=u16::MAX).map(bf16::from_bits).filter(|v| !v.is_nan()).collect();
    let text = serde_json::to_string(&Tensor(&brains)).unwrap();
    let back: Tensor<Vec<bf16>> = serde_json::from_str(&text).unwrap();
    assert!(back.iter().zip(&brains).all(|(a, b)| a.to_bits() == b.to_bits()));
}

#[test]
fn non_finite_floats_are_strings() {
    let (inf, minus) = (f32::INFINITY, f32::NEG_INFINITY);
    is(&Tensor(vec![inf, minus, 0.5]), r#"{"dtype":"f32","shape":[3],"data":["inf","-inf",0.5]}"#);
    is(&Tensor(vec![f64::INFINITY]), r#"{"dtype":"f64","shape":[1],"data":["inf"]}"#);
    is(&Tensor(vec![f16::INFINITY]), r#"{"dtype":"f16","shape":[1],"data":["inf"]}"#);
    let text = serde_json::to_string(&Tensor([f32::NAN])).unwrap();
    assert_eq!(text, r#"{"dtype":"f32","shape":[1],"data":["NaN"]}"#);
    assert!(serde_json::from_str::<Tensor<[f32; 1]>>(&text).unwrap()[0].is_nan());
    assert!(
        serde_json::from_str::<Tensor<[bf16; 1]>>(&text.replace("f32", "bf16")).unwrap()[0]
            .is_nan()
    );
    fails::<Tensor<Vec<f32>>>(r#"{"dtype":"f32","shape":[1],"data":["infinite"]}"#, "infinite");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","shape":[1],"data":["NaN"]}"#, "NaN");
}

#[test]
fn complex_numbers_are_pairs() {
    let complex = array![Complex::new(0.1f32, -1.0), Complex::new(f32::INFINITY, 0.0)];
    is(&Tensor(complex), r#"{"dtype":"c64","shape":[2],"data":[[0.1,-1.0],["inf",0.0]]}"#);
    let complex = vec![Complex::new(0.1f64, 0.25)];
    is(&Tensor(complex), r#"{"dtype":"c128","shape":[1],"data":[[0.1,0.25]]}"#);
    fails::<Tensor<DynTensor>>(r#"{"dtype":"c64","shape":[1],"data":[[1,2,3]]}"#, "imaginary");
    fails::<Tensor<DynTensor>>(r#"{"dtype":"c64","shape":[1],"data":[[1]]}"#, "imaginary");
    fails::<Tensor<DynTensor>>(
        r#"{"dtype":"c64","shape":[1],"data":[[[1],2]]}"#,
        "part of a complex",
    );
}

#[test]
fn elements_stand_row_major_whatever_their_order() {
    let matrix = array![[1u8, 2, 3], [4, 5, 6]];
    let text = r#"{"dtype":"u8","shape":[3,2],"data":[1,4,2,5,3,6]}"#;
    is(&Tensor(matrix.clone().reversed_axes()), text);
    let dynamic = DynTensor::from(matrix.clone().reversed_axes());
    assert_eq!(serde_json::to_string(&Tensor(dynamic)).unwrap(), text);
    let strided = matrix.slice(s![..;-1, ..;2]);
    let text = serde_json::to_string(&Tensor(strided)).unwrap();
    assert_eq!(text, r#"{"dtype":"u8","shape":[2,2],"data":[4,6,1,3]}"#);
    let cube = ArrayD::from_shape_vec(IxDyn(&[2, 2, 2]).f(), (0..8).collect::<Vec<u16>>()).unwrap();
    is(&Tensor(cube), r#"{"dtype":"u16","shape":[2,2,2],"data":[0,4,2,6,1,5,3,7]}"#);
}

#[test]
fn scalars_and_zero_sized_tensors() {
    is(&Tensor(ndarray::arr0(1.5f32)), r#"{"dtype":"f32","shape":[],"data":[1.5]}"#);
    is(&Tensor(Array2::<f32>::zeros((0, 3))), r#"{"dtype":"f32","shape":[0,3],"data":[]}"#);
    is(&Tensor(Vec::<bool>::new()), r#"{"dtype":"bool","shape":[0],"data":[]}"#);
}

#[test]
fn dtypes_without_a_rust_type_are_bytes() {
    let scales = DynTensor::new(DType::F8E4M3, &[2], Order::C, vec![1, 255]).unwrap();
    is(&Tensor(scales), r#"{"dtype":"f8_e4m3","shape":[2],"data":[1,255]}"#);
    let packed = DynTensor::new(DType::F4, &[2, 2], Order::F, vec![0x21, 0x43]).unwrap();
    is(&Tensor(packed), r#"{"dtype":"f4","shape":[2,2],"order":"F","data":[33,67]}"#);
    let unknown = DynTensor::new(DType::from_name("odd"), &[2], Order::C, vec![1, 2, 3]).unwrap();
    is(&Tensor(unknown), r#"{"dtype":"odd","shape":[2],"data":[1,2,3]}"#);
}

#[test]
fn fields_may_stand_in_any_order() {
    let matrix = Tensor(array![[1.5f32, f32::INFINITY], [0.1, 4.0]]);
    let fields = [r#""dtype":"f32""#, r#""shape":[2,2]"#, r#""data":[1.5,"inf",0.1,4]"#];
    for [a, b, c] in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let text = format!("{{{},{},{}}}", fields[a], fields[b], fields[c]);
        reads(&text, &matrix);
        reads(&text, &Tensor(DynTensor::from(matrix.0.clone())));
        let more = format!("{{\"more\":{{\"x\":[1]}},{},{},{}}}", fields[c], fields[b], fields[a]);
        reads(&more, &matrix);
    }
    let complex = r#"{"data":[[1,2]],"shape":[1],"dtype":"c128"}"#;
    reads(complex, &Tensor([Complex::new(1.0f64, 2.0)]));
    let bytes = r#"{"data":[1,255],"shape":[2],"dtype":"f8_e4m3"}"#;
    let scales = DynTensor::new(DType::F8E4M3, &[2], Order::C, vec![1, 255]).unwrap();
    reads(bytes, &Tensor(scales));
}

#[test]
fn column_major_data_is_read_where_it_says_so() {
    let text = r#"{"dtype":"u8","shape":[2,2],"order":"F","data":[1,2,3,4]}"#;
    reads(text, &Tensor(array![[1u8, 3], [2, 4]]));
    let text = r#"{"data":[1,2,3,4],"order":"F","shape":[2,2],"dtype":"u8"}"#;
    reads(text, &Tensor(array![[1u8, 3], [2, 4]]));
    fails::<Tensor<DynTensor>>(r#"{"order":"X","dtype":"u8","shape":[],"data":[1]}"#, "C or F");
}

#[test]
fn plain_arrays_are_no_tensors() {
    for text in ["[1, 2.5, 3]", "[1, 2, 3]", "[0.5, \"inf\"]", "[true, false]", "[[1, 2]]"] {
        fails::<Tensor<Vec<f64>>>(text, "expected");
        fails::<Tensor<DynTensor>>(text, "expected");
    }
    fails::<Tensor<Vec<f64>>>("[]", "a tensor of four fields");
    fails::<Tensor<Vec<f64>>>("[1]", "a tensor: the name of its dtype");
}

#[test]
fn what_does_not_fit_is_refused() {
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","shape":[2],"data":[1]}"#, "shape [2]");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","shape":[2],"data":[1,2,3]}"#, "shape [2]");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","shape":[1],"data":[256]}"#, "exactly as u8");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","shape":[1],"data":[0.5]}"#, "exactly as u8");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","shape":[1],"data":[true]}"#, "exactly as u8");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","shape":[-1],"data":[]}"#, "integer `-1`");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"i8","shape":[1],"data":[1]}"#, "found one of i8");
    fails::<Tensor<Vec<bool>>>(r#"{"dtype":"bool","shape":[1],"data":[1]}"#, "exactly as bool");
    fails::<Tensor<Array2<u8>>>(r#"{"dtype":"u8","shape":[1],"data":[1]}"#, "2 dimensions");
    fails::<Tensor<Vec<u8>>>(r#"{"shape":[1],"data":[1]}"#, "dtype");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","data":[1]}"#, "shape");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","shape":[1]}"#, "data");
    fails::<Tensor<Vec<u8>>>(r#"{"dtype":"u8","dtype":"u8","shape":[1],"data":[1]}"#, "twice");
    fails::<Tensor<Vec<u8>>>(r#""text""#, "a tensor");
    fails::<Tensor<Vec<u8>>>("null", "a tensor");
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind")]
enum Tagged {
    Dense {
        #[serde(with = "tenarc::tensor")]
        weight: Array2<f32>,
        bias: Option<Tensor<Vec<f64>>>,
    },
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Flat {
    name: String,
    #[serde(flatten)]
    inner: Tagged,
}

#[test]
fn inside_flattened_and_tagged_types() {
    let flat = Flat {
        name: "a".into(),
        inner: Tagged::Dense { weight: array![[1.5, f32::INFINITY]], bias: Some(vec![0.1].into()) },
    };
    is(
        &flat,
        concat!(
            r#"{"name":"a","kind":"Dense","#,
            r#""weight":{"dtype":"f32","shape":[1,2],"data":[1.5,"inf"]},"#,
            r#""bias":{"dtype":"f64","shape":[1],"data":[0.1]}}"#
        ),
    );
}
