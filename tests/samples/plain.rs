//! Samples that are mostly plain serde.

use std::collections::BTreeMap;

use ndarray::{Array1, array};
use serde::{Deserialize, Serialize};
use tenarc::tensor::Order;
use tenarc::value::Numbers;
use tenarc::{DType, DynTensor, Tensor, Value};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Records {
    source: String,
    records: Vec<Record>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Record {
    id: u64,
    label: Option<String>,
    score: f64,
    tags: Vec<String>,
    embedding: Tensor<Array1<f32>>,
    #[serde(with = "serde_bytes")]
    thumbnail: Vec<u8>,
    valid: bool,
}

/// Mixed records: text, numbers, bytes and a tensor in each.
pub fn records() -> Records {
    let record = |id: u64, label: Option<&str>, score, tags: &[&str]| Record {
        id,
        label: label.map(str::to_owned),
        score,
        tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        embedding: array![0.5, -1.5, 3.25].into(),
        thumbnail: vec![0xff, 0xd8, 0x00],
        valid: id.is_multiple_of(2),
    };
    Records {
        source: "größe.csv".into(),
        records: vec![
            record(0, Some("zero"), 0.1, &["a", "b"]),
            record(1_000_000, None, -0.0, &[]),
        ],
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Scalars {
    bools: (bool, bool),
    unsigned: (u8, u16, u32, u64),
    small: (u8, u8, u8, u16),
    signed: (i8, i16, i32, i64),
    wide: (i128, u128, i128, i128),
    singles: (f32, f32, f32, f32),
    doubles: (f64, f64, f64, f64),
    character: char,
    text: String,
    empty: String,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    numbers: Vec<u8>,
    unit: (),
    newtype: Newtype,
    tuple: Pair,
    nothing: Nothing,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Newtype(u32);

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Pair(i8, String);

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Nothing;

/// Every scalar at its limits, integers of 128 bits among them.
pub fn scalars() -> Scalars {
    Scalars {
        bools: (false, true),
        unsigned: (u8::MAX, u16::MAX, u32::MAX, u64::MAX),
        small: (0, 23, 24, 256),
        signed: (i8::MIN, i16::MIN, i32::MIN, i64::MIN),
        wide: (i128::MIN, u128::MAX, -1, i128::from(u64::MAX) + 1),
        singles: (0.1, -0.0, f32::INFINITY, f32::from_bits(1)),
        doubles: (0.1, 1.0, f64::NEG_INFINITY, f64::MAX),
        character: 'ß',
        text: "tab\t\"quoted\"".into(),
        empty: String::new(),
        bytes: vec![1, 2, 3],
        numbers: vec![1, 2, 3],
        unit: (),
        newtype: Newtype(7),
        tuple: Pair(-1, "b".into()),
        nothing: Nothing,
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Enums {
    external: Vec<External>,
    internal: Vec<Internal>,
    adjacent: Vec<Adjacent>,
    untagged: Vec<Untagged>,
    results: (Result<u8, String>, Result<u8, String>),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum External {
    Unit,
    Newtype(u8),
    Tuple(u8, String),
    Struct { a: u8, b: Option<u8> },
    Nested(Box<External>),
    Tensor(Tensor<Vec<u8>>),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind")]
enum Internal {
    Unit,
    Struct { weight: Tensor<Vec<u16>> },
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind", content = "content", rename_all = "snake_case")]
enum Adjacent {
    Unit,
    Newtype(Tensor<Vec<u16>>),
    Tuple(u8, u8),
    Struct { a: u8 },
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(untagged)]
enum Untagged {
    Number(u64),
    Text(String),
    Tensor(Tensor<Vec<f32>>),
    Struct { a: u8 },
}

/// Every form of enum.
pub fn enums() -> Enums {
    Enums {
        external: vec![
            External::Unit,
            External::Newtype(1),
            External::Tuple(2, "two".into()),
            External::Struct { a: 3, b: None },
            External::Nested(Box::new(External::Newtype(4))),
            External::Tensor(vec![5, 6].into()),
        ],
        internal: vec![Internal::Unit, Internal::Struct { weight: vec![1].into() }],
        adjacent: vec![
            Adjacent::Unit,
            Adjacent::Newtype(vec![1].into()),
            Adjacent::Tuple(1, 2),
            Adjacent::Struct { a: 3 },
        ],
        untagged: vec![
            Untagged::Number(1),
            Untagged::Text("x".into()),
            Untagged::Tensor(vec![0.5].into()),
            Untagged::Struct { a: 3 },
        ],
        results: (Ok(1), Err("bad".into())),
    }
}

#[allow(clippy::option_option)]
#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Options {
    none: Option<u8>,
    some: Option<u8>,
    some_none: Option<Option<u8>>,
    some_some: Option<Option<u8>>,
    deep_none: Option<Option<Option<u8>>>,
    some_unit: Option<()>,
    some_some_unit: Option<Option<()>>,
    some_nothing: Option<Nothing>,
    list: Vec<Option<()>>,
    tensor: Option<Tensor<Vec<u8>>>,
    no_tensor: Option<Tensor<Vec<u8>>>,
}

/// Options of options and of unit, which must come back as they are.
pub fn options() -> Options {
    Options {
        none: None,
        some: Some(1),
        some_none: Some(None),
        some_some: Some(Some(2)),
        deep_none: Some(Some(None)),
        some_unit: Some(()),
        some_some_unit: Some(Some(())),
        some_nothing: Some(Nothing),
        list: vec![None, Some(()), None],
        tensor: Some(vec![1].into()),
        no_tensor: None,
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Flattened {
    name: String,
    #[serde(flatten)]
    shared: Shared,
    #[serde(flatten)]
    rest: BTreeMap<String, Tensor<Vec<i32>>>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Shared {
    version: u32,
    #[serde(rename = "type")]
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    absent: Option<u8>,
}

/// Flattened structs and maps, which have no length beforehand.
pub fn flattened() -> Flattened {
    Flattened {
        name: "flat".into(),
        shared: Shared { version: 2, kind: "dense".into(), absent: None },
        rest: [("a".into(), vec![1, -1].into()), ("b".into(), vec![].into())].into(),
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
pub struct Maps {
    by_text: BTreeMap<String, u8>,
    by_number: BTreeMap<i16, String>,
    by_bool: BTreeMap<bool, u8>,
    by_char: BTreeMap<char, u8>,
    by_tuple: BTreeMap<(u8, u8), Vec<u8>>,
    by_unit_variant: BTreeMap<Axis, f64>,
    nested: BTreeMap<String, BTreeMap<u8, Option<u8>>>,
    empty: BTreeMap<u8, u8>,
}

#[derive(Serialize, Deserialize, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Axis {
    X,
    Y,
}

/// Maps with keys of many types.
pub fn maps() -> Maps {
    Maps {
        by_text: [("a".into(), 1), (String::new(), 2)].into(),
        by_number: [(-300, "low".into()), (7, "seven".into())].into(),
        by_bool: [(false, 0), (true, 1)].into(),
        by_char: [('x', 1)].into(),
        by_tuple: [((0, 1), vec![1, 2]), ((1, 0), vec![])].into(),
        by_unit_variant: [(Axis::X, 0.5), (Axis::Y, 1.5)].into(),
        nested: [("outer".into(), [(1, Some(2)), (3, None)].into())].into(),
        empty: BTreeMap::new(),
    }
}

/// Items of every kind as one value.
pub fn value() -> Value {
    let tensor = DynTensor::new(DType::F8E4M3, &[2, 2], Order::F, vec![1, 2, 3, 4]).unwrap();
    let text = |text: &str| Value::Text(text.into());
    Value::Map(vec![
        (text("null"), Value::Null),
        (text("bool"), Value::Bool(true)),
        (text("integers"), Value::Array([1, -1, 1 << 64, i128::MIN].map(Value::Integer).into())),
        (text("floats"), Value::Array(vec![Value::F32(0.5), Value::F64(0.1)])),
        (text("bytes"), Value::Bytes(vec![1, 2])),
        (Value::Integer(-5), text("a key that is a number")),
        (Value::Array(vec![Value::Null]), text("a key that is an array")),
        (text("some of null"), Value::Tag(1_414_745_933, Box::new(Value::Null))),
        (text("time"), Value::Tag(1, Box::new(Value::Integer(1_700_000_000)))),
        (text("undefined"), Value::Simple(23)),
        (text("simple"), Value::Simple(255)),
        (text("numbers"), Value::Numbers(Box::new(Numbers::from(vec![1.5f32, 2.5])))),
        (
            text("complex"),
            Value::Numbers(Box::new(vec![num_complex::Complex::new(1.0, -1.0f64)].into())),
        ),
        (text("tensor"), Value::Tensor(Box::new(tensor))),
        (text("array"), Value::Tensor(Box::new(DynTensor::from(array![[1u8, 2]])))),
        (text("empty"), Value::Map(vec![])),
    ])
}
