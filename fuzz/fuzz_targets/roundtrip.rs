//! Writes arbitrary values of serde's data model, with tensors, and checks that they are read back unchanged.
#![no_main]

use std::collections::BTreeMap;

use arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::error::Category;
use tenarc::ser::EncodeOptions;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};

#[derive(Arbitrary, Serialize, Deserialize, Debug)]
enum Item {
    Unit,
    Bool(bool),
    Small(i8),
    Signed(i64),
    Unsigned(u64),
    Wide(i128),
    WideUnsigned(u128),
    Single(f32),
    Double(f64),
    Char(char),
    Text(String),
    Bytes(Blob),
    Nothing(()),
    Option(Option<Option<Box<Item>>>),
    Options(Option<Option<Option<()>>>),
    Pair(Box<Item>, u16),
    Fields { first: Box<Item>, second: Option<f32> },
    Items(Vec<Item>),
    Names(BTreeMap<String, Item>),
    Keys(BTreeMap<(i16, bool), Option<u8>>),
    Singles(Vec<f32>),
    Doubles(Vec<f64>),
    Bytewise(Vec<u8>),
    Integers(Vec<i32>),
    Rows(Vec<Vec<f64>>),
    Mixed((f64, f64, f64, f64, f64)),
    Dynamic(Dynamic),
    Tagged(Tagged),
    Either(Vec<Either>),
}

#[derive(Arbitrary, Serialize, Deserialize, Debug)]
#[serde(tag = "kind", content = "of")]
enum Tagged {
    Empty,
    Tensor(Dynamic),
    Fields { data: Dynamic, text: String },
}

#[derive(Arbitrary, Serialize, Deserialize, Debug)]
#[serde(untagged)]
enum Either {
    Flag(bool),
    Text(String),
    Fields { data: Dynamic },
}

#[derive(Serialize, Deserialize, Debug)]
struct Blob(ByteBuf);

impl<'a> Arbitrary<'a> for Blob {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        Ok(Self(ByteBuf::from(Vec::arbitrary(u)?)))
    }
}

/// A tensor of any dtype, shape and order.
#[derive(Serialize, Deserialize, Debug)]
struct Dynamic(Tensor<DynTensor>);

const DTYPES: [&str; 26] = [
    "bool",
    "u8",
    "u16",
    "u32",
    "u64",
    "i8",
    "i16",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "f128",
    "c64",
    "c128",
    "f8_e5m2",
    "f8_e4m3",
    "f8_e8m0",
    "f8_e5m2fnuz",
    "f8_e4m3fnuz",
    "f6_e2m3",
    "f6_e3m2",
    "f4",
    "posit8",
    "",
];

impl<'a> Arbitrary<'a> for Dynamic {
    fn arbitrary(u: &mut Unstructured<'a>) -> arbitrary::Result<Self> {
        let dtype = DType::from_name(u.choose(&DTYPES)?);
        let rank = u.int_in_range(0..=5usize)?;
        let mut shape =
            (0..rank).map(|_| u.int_in_range(0..=4usize)).collect::<Result<Vec<_>, _>>()?;
        if matches!(dtype.bits(), Some(4 | 6)) {
            // Four packed elements fill whole bytes.
            shape.push(4);
        }
        let order = if u.arbitrary()? { Order::C } else { Order::F };
        let count: usize = shape.iter().product();
        let len = match dtype.bits() {
            Some(bits) => count * bits / 8,
            None => u.int_in_range(0..=9)?,
        };
        let seed: u8 = u.arbitrary()?;
        let bytes = (0..len).map(|at| (at as u8).wrapping_mul(31) ^ seed);
        let bytes = bytes.map(|byte| if dtype == DType::Bool { byte & 1 } else { byte }).collect();
        let tensor = DynTensor::new(dtype, &shape, order, bytes);
        Ok(Self(Tensor(tensor.expect("bytes fit dtype and shape"))))
    }
}

fuzz_target!(|item: Item| {
    let plain = EncodeOptions::default();
    let bytes = match tenarc::ser::to_vec_with(&item, plain) {
        Ok(bytes) => bytes,
        Err(error) => {
            assert_eq!(error.category(), Category::Limit, "{error}");
            return;
        }
    };
    let mut written = Vec::new();
    tenarc::to_writer(&mut written, &item).expect("written");
    assert_eq!(written, bytes);

    // The encodings are compared rather than the values, as a NaN equals nothing.
    let check = |back: Item, how: &str| {
        assert_eq!(tenarc::to_vec(&back).expect(how), bytes, "{how}: {item:?} became {back:?}");
    };
    check(tenarc::from_slice(&bytes).expect("from a slice"), "slice");
    check(tenarc::from_reader(&bytes[..]).expect("from a reader"), "reader");

    let typed =
        tenarc::ser::to_vec_with(&item, plain.with_typed_arrays(true)).expect("typed arrays");
    check(tenarc::from_slice(&typed).expect("typed, from a slice"), "typed, slice");
    check(tenarc::from_reader(&typed[..]).expect("typed, from a reader"), "typed, reader");

    // As columns, together with rows of another form.
    let unit = Item::Unit;
    let rows: Vec<&Item> = (0..20).map(|at| if at % 5 == 3 { &unit } else { &item }).collect();
    match tenarc::ser::to_vec_with(&rows, plain.with_columns(true)) {
        Ok(columns) => {
            let back: Vec<Item> = tenarc::from_slice(&columns).expect("columns, from a slice");
            let plainly = tenarc::to_vec(&rows).expect("rows");
            assert_eq!(tenarc::to_vec(&back).expect("columns"), plainly, "{item:?}");
            let back: Value = tenarc::from_reader(&columns[..]).expect("columns, as a value");
            let rows: Value = tenarc::from_slice(&plainly).expect("rows, as a value");
            assert_eq!(back.to_string(), rows.to_string(), "{item:?}");
        }
        Err(error) => assert_eq!(error.category(), Category::Limit, "{error}"),
    }

    let value: Value = tenarc::from_slice(&bytes).expect("as a value");
    assert_eq!(tenarc::to_vec(&value).expect("a value"), bytes, "{value:?}");
    check(Item::deserialize(&value).expect("from a borrowed value"), "borrowed value");
    check(tenarc::from_value(value).expect("from a value"), "value");
    let made = tenarc::to_value(&item).expect("to a value");
    assert_eq!(tenarc::to_vec(&made).expect("a made value"), bytes);
});
