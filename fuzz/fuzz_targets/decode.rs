//! Decodes arbitrary bytes to several types. A slice and a reader with short reads must give the same
//! value, which must stay the same when it is written and read again.
#![no_main]

use std::collections::BTreeMap;
use std::io::{self, Read};

use libfuzzer_sys::fuzz_target;
use ndarray::{Array2, ArrayD};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::value::RawValue;
use tenarc::{Deserializer, DynTensor, Tensor, Value};

#[derive(Serialize, Deserialize)]
struct Model {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    weight: Option<Tensor<Array2<f32>>>,
    #[serde(default, with = "tenarc::tensor")]
    mask: Vec<bool>,
    #[serde(default)]
    any: Option<Tensor<DynTensor>>,
    #[serde(default)]
    plain: Vec<f64>,
    #[serde(default)]
    step: Option<Step>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[derive(Serialize, Deserialize)]
enum Step {
    Unit,
    New(u128),
    Tuple(i64, Option<Option<bool>>),
    Struct { at: char, next: Option<Box<Step>> },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(f64),
    Text(String),
    Tensor(Tensor<ArrayD<i32>>),
    Many(Vec<Either>),
}

/// A row of a sequence that may be stored as columns.
#[derive(Serialize, Deserialize)]
struct Row {
    #[serde(default)]
    id: u32,
    #[serde(default)]
    any: Option<f32>,
    #[serde(default)]
    weight: Option<Tensor<Vec<f32>>>,
    #[serde(default)]
    plain: Vec<f64>,
    #[serde(default)]
    text: String,
    #[serde(default)]
    step: Option<Step>,
}

/// Rows of numbers of one type, which may be stored side by side. They are read as blocks.
#[derive(Serialize, Deserialize)]
struct Point {
    x: f32,
    y: f32,
    z: f32,
}

/// The same rows. A type that owns memory is not read as blocks.
#[derive(Serialize, Deserialize)]
struct General {
    x: f32,
    y: f32,
    z: f32,
    #[serde(skip)]
    _owned: String,
}

/// Rows that are read as blocks must be those that are read in the general way.
fn points(bytes: &[u8]) -> bool {
    let blocks = agree::<Vec<Point>>(bytes);
    let general = agree::<Vec<General>>(bytes);
    assert!(blocks == general, "points: {blocks:?}, in the general way: {general:?}");
    let tuples = agree::<Vec<(f32, f32, f32)>>(bytes);
    let nested = agree::<Vec<(f32, [f32; 2])>>(bytes);
    blocks.is_some() || tuples.is_some() || nested.is_some()
}

/// A reader that returns a few bytes at a time; their number depends on the input.
struct Short<'a> {
    rest: &'a [u8],
    seed: usize,
}

impl Read for Short<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        if self.seed % 11 == 3 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let len = out.len().min(self.seed % 7 + 1);
        self.rest.read(&mut out[..len])
    }
}

fn agree<T: Serialize + DeserializeOwned>(bytes: &[u8]) -> Option<Vec<u8>> {
    let name = std::any::type_name::<T>();
    let slice = tenarc::from_slice::<T>(bytes);
    let reader = tenarc::from_reader::<_, T>(Short { rest: bytes, seed: bytes.len() });
    match (slice, reader) {
        (Ok(slice), Ok(reader)) => {
            let written = tenarc::to_vec(&slice).expect(name);
            assert_eq!(written, tenarc::to_vec(&reader).expect(name), "{name}");
            // The encodings are compared rather than the values, as a NaN equals nothing.
            let again: T = tenarc::from_slice(&written).expect(name);
            assert_eq!(tenarc::to_vec(&again).expect(name), written, "{name}");
            Some(written)
        }
        (Err(slice), Err(reader)) => {
            let same = slice.category() == reader.category() && slice.offset() == reader.offset();
            // The errors may differ: a reader limits its memory, and does not know the length of its input.
            let too_long =
                |error: &tenarc::Error| matches!(error.category(), Category::Eof | Category::Limit);
            assert!(same || too_long(&slice) && too_long(&reader), "{name}: {slice:?}, {reader:?}");
            None
        }
        (slice, reader) => {
            panic!("{name}: slice {:?}, reader {:?}", slice.err(), reader.err())
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let any = tenarc::from_slice::<IgnoredAny>(bytes).is_ok();
    assert_eq!(any, tenarc::from_reader::<_, IgnoredAny>(Short { rest: bytes, seed: 1 }).is_ok());
    let raw = agree::<Box<RawValue>>(bytes);
    assert_eq!(raw.as_deref(), any.then_some(bytes));
    assert_eq!(tenarc::from_slice::<&RawValue>(bytes).is_ok(), any);
    assert!(!any || tenarc::diag::to_string(bytes).is_ok());

    let value = agree::<Value>(bytes);
    let typed = [
        agree::<Model>(bytes).is_some(),
        agree::<Step>(bytes).is_some(),
        agree::<Either>(bytes).is_some(),
        agree::<Tensor<DynTensor>>(bytes).is_some(),
        agree::<Vec<f32>>(bytes).is_some(),
        agree::<Vec<Row>>(bytes).is_some(),
        agree::<Vec<(u32, Option<f32>, String)>>(bytes).is_some(),
        points(bytes),
        agree::<BTreeMap<String, Value>>(bytes).is_some(),
        agree::<serde_bytes::ByteBuf>(bytes).is_some(),
    ];
    assert!(
        any || value.is_none() && !typed.contains(&true),
        "a value was read from malformed input"
    );

    if let Ok(value) = tenarc::from_slice::<Value>(bytes) {
        // Reading types from a `Value` must not panic.
        let _ = tenarc::from_value::<Model>(value.clone());
        let _ = tenarc::from_value::<Either>(value.clone());
        let _ = tenarc::from_value::<Vec<Row>>(value.clone());
        let _ = Tensor::<DynTensor>::deserialize(&value);
        let _ = value.to_string();
        let made = tenarc::to_value(&value).expect("a value of a value");
        assert_eq!(tenarc::to_vec(&made).ok(), tenarc::to_vec(&value).ok());
    }

    let short = Short { rest: bytes, seed: 5 };
    let slice = Deserializer::from_slice(bytes).into_iter::<Value>();
    let reader = Deserializer::from_reader(short).into_iter::<Value>();
    let count = slice.zip(reader).take_while(|(slice, reader)| {
        assert_eq!(slice.is_ok(), reader.is_ok());
        slice.is_ok()
    });
    count.for_each(drop);
});
