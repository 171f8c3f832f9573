//! The whole data model, with payloads small and large.

use std::collections::{BTreeMap, HashMap};

use bytemuck::{Pod, Zeroable};
use half::{bf16, f16};
use ndarray::{ArcArray, Array0, Array1, Array2, ArrayD, CowArray, IxDyn, ShapeBuilder as _, s};
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::tensor::Order;
use tenarc::value::RawValue;
use tenarc::{DType, DynTensor, Tensor, Value};

use super::support::{
    from_bytes, quick, ramp, read_everywhere, round_trip, to_bytes, variants, weights,
};
use tenarc_test_support::DTYPES;

mod every_sample {
    #![allow(dead_code)] // The list of names is for other tests.

    use std::fmt::Debug;

    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use crate::samples;

    fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(_: &str, value: &T, _: bool) {
        super::round_trip(value);
    }

    samples::test_every_sample!(check);
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum External {
    Unit,
    Newtype(Tensor<Vec<f32>>),
    Tuple(u8, Tensor<Vec<f32>>, Vec<f32>),
    Struct { weight: Tensor<Vec<f32>>, plain: Vec<i64> },
    Bytes(ByteBuf),
    Nested(Box<External>),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind")]
enum Internal {
    Unit,
    Struct { weight: Tensor<Vec<f32>>, plain: Vec<f32>, bytes: ByteBuf },
    Newtype(Fields),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Fields {
    a: Option<Tensor<Vec<f32>>>,
    b: i64,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind", content = "content")]
enum Adjacent {
    Unit,
    Newtype(Tensor<Vec<f32>>),
    Tuple(Vec<f64>, Tensor<Vec<u8>>),
    Struct { a: ByteBuf },
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(untagged)]
enum Untagged {
    Number(u64),
    // Before the tensors, which take plain numbers too.
    Numbers(Vec<f64>),
    Tensor(Tensor<Vec<f32>>),
    Text(String),
    Struct { a: Tensor<Vec<i32>> },
    Bytes(ByteBuf),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Flat {
    name: String,
    #[serde(flatten)]
    fields: Fields,
    #[serde(flatten)]
    rest: BTreeMap<String, Tensor<Vec<f32>>>,
}

#[test]
fn enums_of_every_form_with_small_and_large_tensors() {
    for len in [0, 3, 700, 3000] {
        let numbers: Vec<f32> = weights(len, 1).0;
        let wide: Vec<i64> = (0..len as i64).map(|at| at << 33).collect();
        let bytes = ByteBuf::from(vec![0xff; len]);
        round_trip(&vec![
            External::Unit,
            External::Newtype(weights(len, 2)),
            External::Tuple(1, weights(len, 3), numbers.clone()),
            External::Struct { weight: weights(len, 4), plain: wide },
            External::Bytes(bytes.clone()),
            External::Nested(Box::new(External::Newtype(weights(len, 5)))),
        ]);
        round_trip(&vec![
            Internal::Unit,
            Internal::Struct { weight: weights(len, 6), plain: numbers, bytes: bytes.clone() },
            Internal::Newtype(Fields { a: Some(weights(len, 7)), b: -1 }),
        ]);
        round_trip(&vec![
            Adjacent::Unit,
            Adjacent::Newtype(weights(len, 8)),
            Adjacent::Tuple(vec![0.5; len], Tensor(vec![1; len])),
            Adjacent::Struct { a: bytes.clone() },
        ]);
        let doubles: Vec<f64> = (0..len).map(|at| at as f64).collect();
        round_trip(&vec![
            Untagged::Number(1),
            Untagged::Tensor(weights(len, 9)),
            Untagged::Numbers(doubles),
            Untagged::Text("x".repeat(len)),
            Untagged::Struct { a: Tensor(vec![-1; len]) },
        ]);
        // No bytes are a text, too.
        if len > 0 {
            round_trip(&vec![Untagged::Bytes(bytes)]);
        }
    }
}

#[test]
fn flattened_structs_and_maps() {
    for len in [1, 600, 5000] {
        round_trip(&Flat {
            name: "flat".into(),
            fields: Fields { a: Some(weights(len, 1)), b: i64::MIN },
            rest: (0..4).map(|n| (format!("t{n}"), weights(len + n, n))).collect(),
        });
    }
}

#[test]
fn options_of_options() {
    type Nested<T> = Option<Option<T>>;
    for len in [0, 5, 5000] {
        round_trip::<[Nested<Tensor<Vec<f32>>>; 3]>(&[
            None,
            Some(None),
            Some(Some(weights(len, 1))),
        ]);
        round_trip::<[Nested<Vec<f32>>; 3]>(&[None, Some(None), Some(Some(weights(len, 1).0))]);
        round_trip::<[Nested<ByteBuf>; 3]>(&[
            None,
            Some(None),
            Some(Some(ByteBuf::from(vec![1; len]))),
        ]);
    }
    round_trip::<(Nested<()>, Nested<()>, Nested<()>)>(&(None, Some(None), Some(Some(()))));
}

#[test]
fn maps_with_any_keys() {
    let map = |n| weights(900 + n, n);
    round_trip::<BTreeMap<(u8, bool), Tensor<Vec<f32>>>>(
        &[((1, true), map(1)), ((2, false), map(2))].into(),
    );
    round_trip::<BTreeMap<i64, Vec<f32>>>(&[(-1, map(1).0), (i64::MAX, map(2).0)].into());
    round_trip::<BTreeMap<Option<bool>, Tensor<Vec<f32>>>>(
        &[(None, map(1)), (Some(true), map(2))].into(),
    );
    round_trip::<BTreeMap<char, u8>>(&[('a', 1), ('ß', 2)].into());
    round_trip::<BTreeMap<String, Tensor<Vec<f32>>>>(
        &[("a.b".into(), map(1)), ("a/b~".into(), map(2)), (String::new(), map(3))].into(),
    );
    // Keys so long that they go to buffers themselves.
    round_trip::<BTreeMap<ByteBuf, u8>>(
        &[(ByteBuf::from(vec![1; 5000]), 1), (ByteBuf::from(vec![2; 3]), 2)].into(),
    );
    round_trip::<BTreeMap<Vec<u8>, u8>>(&[(vec![1; 5000], 1), (vec![2; 3], 2)].into());
    let unordered: HashMap<String, Tensor<Vec<f32>>> =
        (0..50).map(|n| (format!("k{n}"), map(n))).collect();
    round_trip(&unordered);
}

#[test]
fn wide_integers_and_floats() {
    round_trip(&(i128::MIN, u128::MAX, i128::MAX, u64::MAX, i64::MIN));
    round_trip(&(f32::MIN_POSITIVE, -0.0f64, f64::INFINITY, f32::MAX));
    let bits = [f32::NAN.to_bits(), 0xffc0_1234, 0x7f80_0001, 1];
    let odd: Vec<f32> = (0..2000).map(|at| f32::from_bits(bits[at % 4])).collect();
    for (name, options) in variants() {
        let bytes = to_bytes(&(Tensor(&odd), &odd), options);
        let (tensor, plain): (Tensor<Vec<f32>>, Vec<f32>) = from_bytes(&bytes);
        for found in [tensor.0, plain] {
            assert!(found.iter().zip(&odd).all(|(a, b)| a.to_bits() == b.to_bits()), "{name}");
        }
    }
}

#[test]
fn tensors_of_every_dtype_order_and_shape() {
    let names = DTYPES.into_iter().chain(["posit16"]);
    let shapes: &[&[usize]] = &[&[], &[0], &[4], &[0, 3], &[4, 0, 5], &[8, 4, 3], &[30, 40]];
    let mut tensors: Vec<(String, Tensor<DynTensor>)> = Vec::new();
    for name in names {
        let dtype = DType::from_name(name);
        for shape in shapes {
            let count: usize = shape.iter().product();
            let len = match dtype.bits() {
                Some(bits) if (count * bits).is_multiple_of(8) => count * bits / 8,
                Some(_) => continue,
                // Nothing is known of the size, so that any goes.
                None => count * 3,
            };
            for order in [Order::C, Order::F] {
                let most = if dtype == DType::Bool { 2 } else { 251 };
                // No NaN, which equals nothing.
                let bytes = (0..len).map(|at| (at % most) as u8 & 0x3f).collect();
                let tensor = DynTensor::new(dtype.clone(), shape, order, bytes).unwrap();
                tensors.push((format!("{name} {shape:?} {order:?}"), Tensor(tensor)));
            }
        }
    }
    assert!(tensors.len() > 300);
    round_trip(&tensors);
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Typed {
    bools: Tensor<Vec<bool>>,
    halves: Tensor<Array2<f16>>,
    brains: Tensor<Array1<bf16>>,
    complex: Tensor<Array2<Complex<f32>>>,
    doubles: Tensor<Vec<Complex<f64>>>,
    scalar: Tensor<Array0<f64>>,
    shared: Tensor<ArcArray<f32, IxDyn>>,
    fortran: Tensor<Array2<f32>>,
    stepped: Tensor<ArrayD<f32>>,
    reversed: Tensor<Array1<u16>>,
    boxed: Tensor<Box<[i16]>>,
    #[serde(with = "tenarc::tensor")]
    fixed: [f32; 600],
    #[serde(with = "tenarc::tensor")]
    bare: Vec<u32>,
    #[serde(with = "tenarc::tensor::cast")]
    cast: Array1<f64>,
    empty: Tensor<Array2<f32>>,
}

#[test]
fn arrays_of_every_kind() {
    let complex = |at: usize| Complex::new(at as f32, -1.0);
    round_trip(&Typed {
        bools: Tensor((0..5000).map(|at| at % 3 == 0).collect()),
        halves: Tensor(Array2::from_shape_fn((40, 50), |(a, b)| f16::from_f32((a + b) as f32))),
        brains: Tensor(Array1::from_shape_fn(2000, |at| bf16::from_f32(at as f32))),
        complex: Tensor(Array2::from_shape_fn((30, 30).f(), |(a, b)| complex(a * b))),
        doubles: Tensor(vec![Complex::new(0.5, -0.5); 3]),
        scalar: Tensor(ndarray::arr0(0.5)),
        shared: Tensor(ramp(&[30, 40]).into_shared()),
        fortran: Tensor(Array2::from_shape_fn((70, 30).f(), |(a, b)| (a * 100 + b) as f32)),
        stepped: Tensor(ramp(&[60, 60]).slice_move(s![..;2, ..;-3]).into_dyn()),
        reversed: Tensor((0..3000).collect::<Array1<u16>>().slice_move(s![..;-1])),
        boxed: Tensor((0..1500).collect()),
        fixed: std::array::from_fn(|at| at as f32),
        bare: (0..1000).collect(),
        cast: (0..1000).map(f64::from).collect(),
        empty: Tensor(Array2::zeros((0, 7))),
    });
}

#[test]
fn views_are_written_as_what_they_show() {
    let array = ramp(&[20, 30, 8]);
    let views = [
        array.view(),
        array.slice(s![.., ..;-1, ..]).into_dyn(),
        array.slice(s![3..;4, 5..25, ..;2]).into_dyn(),
        array.view().reversed_axes(),
        array.view().permuted_axes(IxDyn(&[1, 2, 0])),
        array.slice(s![.., 3, ..]).into_dyn(),
        array.slice(s![0..0, .., ..]).into_dyn(),
    ];
    for view in views {
        for (name, options) in variants() {
            let bytes = to_bytes(&Tensor(&view), options.clone());
            let found: Tensor<ArrayD<f32>> = from_bytes(&bytes);
            assert_eq!(found.0, view, "{name}");
            let bytes = to_bytes(&Tensor(CowArray::from(view.clone())), options);
            let found: Tensor<ArrayD<f32>> = from_bytes(&bytes);
            assert_eq!(found.0, view, "{name}");
        }
    }
}

#[test]
fn stored_dtypes_are_converted_where_that_is_asked_for() {
    #[derive(Serialize)]
    struct Stored {
        cast: Tensor<Vec<f32>>,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    struct Wanted {
        #[serde(with = "tenarc::tensor::cast")]
        cast: Vec<f64>,
    }
    for (name, options) in variants() {
        let bytes = to_bytes(&Stored { cast: weights(1000, 1) }, options);
        let cast = weights(1000, 1).0.into_iter().map(f64::from).collect();
        let wanted = Wanted { cast };
        for (way, read) in read_everywhere::<Wanted>(&bytes) {
            assert_eq!(read.unwrap(), wanted, "{name}, {way}");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Vertex {
    place: [f32; 3],
    weight: f32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Mesh {
    #[serde(with = "tenarc::tensor::Rows::<f32>")]
    many: Vec<Vertex>,
    #[serde(with = "tenarc::tensor::Rows::<f32>")]
    few: Vec<Vertex>,
}

#[test]
fn rows_of_plain_structs() {
    let vertex = |at: usize| Vertex { place: [at as f32, 0.5, -0.5], weight: 1.0 };
    round_trip(&Mesh { many: (0..1000).map(vertex).collect(), few: vec![vertex(1)] });
}

#[test]
fn byte_strings_below_and_above_the_threshold() {
    for len in [0, 1, 2047, 2048, 2049, 10_000] {
        let bytes: Vec<u8> = (0..len).map(|at| at as u8).collect();
        round_trip(&(ByteBuf::from(bytes.clone()), Some(ByteBuf::from(bytes.clone())), bytes));
    }
}

#[test]
fn values_of_every_kind_large() {
    let tensor = DynTensor::new(DType::F8E4M3, &[50, 60], Order::F, vec![1; 3000]).unwrap();
    let numbers: Vec<f32> = weights(3000, 1).0;
    let value = Value::Map(vec![
        (Value::Text("tensor".into()), Value::Tensor(Box::new(tensor))),
        (Value::Text("bytes".into()), Value::Bytes(vec![3; 9000])),
        (Value::Integer(1), Value::Numbers(Box::new(numbers.into()))),
        (Value::Text("tagged".into()), Value::Tag(1, Box::new(Value::Bytes(vec![3; 9000])))),
    ]);
    for (name, options) in variants() {
        let bytes = to_bytes(&value, options);
        for (way, read) in read_everywhere::<Value>(&bytes) {
            assert_eq!(read.unwrap(), value, "{name}, {way}");
        }
    }
}

#[test]
fn raw_values_pass_through_with_tensors_inside() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Envelope {
        id: u8,
        content: Box<RawValue>,
        after: Tensor<Vec<f32>>,
    }
    // What is already encoded stays as it is, whatever its size.
    for len in [3, 5000] {
        let inner = tenarc::to_vec(&(weights(len, 1), "text")).unwrap();
        let content = RawValue::from_bytes(&inner).unwrap().to_owned();
        let envelope = Envelope { id: 1, content, after: weights(2000, 2) };
        for (name, options) in variants() {
            let bytes = to_bytes(&envelope, options);
            for (way, read) in read_everywhere::<Envelope>(&bytes) {
                let read = read.unwrap();
                assert_eq!(read, envelope, "{name}, {way}");
                let (tensor, text): (Tensor<Vec<f32>>, &str) = read.content.get().unwrap();
                assert_eq!((tensor, text), (weights(len, 1), "text"));
            }
        }
    }
}

#[test]
fn a_raw_value_never_holds_a_reference_that_leads_nowhere() {
    #[derive(Serialize)]
    struct Written {
        content: (Tensor<Vec<f32>>, u8),
        after: u8,
    }
    #[derive(Deserialize, Debug)]
    struct Kept {
        content: Box<RawValue>,
        after: u8,
    }
    let bytes = to_bytes(&Written { content: (weights(5000, 1), 7), after: 9 }, quick());
    for (way, read) in read_everywhere::<Kept>(&bytes) {
        // Either the tensor comes with the item, or there is an error that says why not.
        match read {
            Ok(Kept { content, after }) => {
                let found: (Tensor<Vec<f32>>, u8) = content.get().unwrap();
                assert_eq!((found, after), ((weights(5000, 1), 7), 9), "{way}");
            }
            Err(error) => {
                assert_eq!(error.category(), tenarc::error::Category::Data, "{way}: {error}");
            }
        }
    }
}
