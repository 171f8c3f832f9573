//! Damaged messages: cut anywhere, or with any bit flipped. Reading one never panics and never gives
//! a value made from a part of the message. If it still gives a value, that value survives another
//! round trip.

#![allow(clippy::cast_precision_loss, clippy::option_option)]

use std::collections::BTreeMap;
use std::fmt::Debug;

use half::{bf16, f16};
use ndarray::{Array1, Array2, ArrayD, ShapeBuilder};
use num_complex::Complex;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::error::Category;
use tenarc::ser::EncodeOptions;
use tenarc::tensor::Order;
use tenarc::value::RawValue;
use tenarc::{DType, DynTensor, Tensor, Value};
use tenarc_test_support::effort::some_of;
use tenarc_test_support::{OneByte, hex, readers};

#[derive(Serialize, Deserialize, Debug)]
struct Layer {
    name: String,
    weight: Tensor<Array2<f32>>,
    #[serde(with = "tenarc::tensor")]
    bias: Array1<f16>,
    mask: Option<Tensor<Vec<bool>>>,
    phase: Tensor<ArrayD<Complex<f32>>>,
    scale: Tensor<Array1<bf16>>,
    other: Tensor<DynTensor>,
}

#[derive(Serialize, Deserialize, Debug)]
enum Event {
    Start,
    Step(u64),
    Pair(i32, Option<Box<Event>>),
    Done { loss: f64, tags: BTreeMap<String, Vec<u8>> },
}

#[derive(Serialize, Deserialize, Debug)]
#[serde(tag = "kind")]
enum Tagged {
    Tensor { data: Tensor<Array1<i16>> },
    Text { text: String },
}

#[derive(Serialize, Deserialize, Debug)]
struct Mixed {
    id: u128,
    at: i64,
    letter: char,
    on: bool,
    nothing: (),
    nested: Option<Option<()>>,
    raw: ByteBuf,
    events: Vec<Event>,
    names: BTreeMap<i8, String>,
    tagged: Tagged,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

fn layer() -> Layer {
    Layer {
        name: "dense".into(),
        weight: Tensor(Array2::from_shape_fn((2, 3).f(), |(i, j)| (i * 3 + j) as f32)),
        bias: Array1::from(vec![f16::ONE, f16::NEG_ONE]),
        mask: Some(Tensor(vec![true, false, true])),
        phase: Tensor(ArrayD::from_elem(ndarray::IxDyn(&[1, 2]), Complex::new(1.0, -1.0))),
        scale: Tensor(Array1::from(vec![bf16::ONE])),
        other: Tensor(DynTensor::new(DType::F8E4M3, &[2], Order::C, vec![1, 2]).unwrap()),
    }
}

fn mixed() -> Mixed {
    Mixed {
        id: u128::MAX,
        at: -70_000,
        letter: 'é',
        on: true,
        nothing: (),
        nested: Some(None),
        raw: ByteBuf::from(vec![1, 2, 3]),
        events: vec![
            Event::Start,
            Event::Step(u64::MAX),
            Event::Pair(-1, Some(Box::new(Event::Start))),
            Event::Done { loss: 0.5, tags: BTreeMap::from([("a".into(), vec![1, 2])]) },
        ],
        names: BTreeMap::from([(-3, "x".into()), (7, "€".into())]),
        tagged: Tagged::Tensor { data: Tensor(Array1::from(vec![1, -2])) },
        rest: BTreeMap::from([("more".into(), Value::Array(vec![Value::Integer(99)]))]),
    }
}

/// The messages, by the name of what they hold.
fn messages() -> Vec<(&'static str, Vec<u8>)> {
    let packed = EncodeOptions::default().with_typed_arrays(true);
    let open = b"\xbf\x61a\x9f\x01\x02\xff\x7f\x61b\x61c\xff\x5f\x41\x01\x40\x42\x02\x03\xff\xff";
    let chunks = b"\xd8\x28\x82\x81\x02\xd8\x41\x5f\x43\x01\x02\x01\x40\x41\x02\xff";
    vec![
        ("layer", tenarc::to_vec(&layer()).unwrap()),
        ("mixed", tenarc::to_vec(&mixed()).unwrap()),
        (
            "packed",
            tenarc::ser::to_vec_with(&(vec![0.5f32; 9], [1.5f64; 5].to_vec()), packed).unwrap(),
        ),
        ("text", tenarc::to_vec(&Tagged::Text { text: "text".into() }).unwrap()),
        ("open", open.to_vec()),
        ("chunks", chunks.to_vec()),
    ]
}

/// What is the same whatever source it comes from.
#[derive(PartialEq)]
enum Seen {
    Value(Vec<u8>),
    Error(Category, Option<u64>),
}

/// Reads from every source; all must agree. What is read is written, and reads as itself.
fn survives<T: Serialize + DeserializeOwned + Debug>(bytes: &[u8]) -> Result<T, Category> {
    let see = |result: &tenarc::Result<T>| match result {
        Ok(value) => Seen::Value(tenarc::to_vec(value).unwrap()),
        Err(error) => Seen::Error(error.category(), error.offset()),
    };
    let slice = tenarc::from_slice::<T>(bytes);
    for (source, reader) in readers(bytes) {
        let other = tenarc::from_reader::<_, T>(reader);
        // Lengths that cannot be are the end of a slice, and beyond the budget of a reader.
        let too_long = |result: &tenarc::Result<T>| {
            let category = result.as_ref().map_err(tenarc::Error::category);
            matches!(category, Err(Category::Eof | Category::Limit))
        };
        assert!(
            see(&slice) == see(&other) || too_long(&slice) && too_long(&other),
            "{}: slice {slice:?}, {source} {other:?}",
            hex(bytes)
        );
    }
    let value = slice.map_err(|error| error.category())?;
    let written = tenarc::to_vec(&value).unwrap();
    let again: T = tenarc::from_slice(&written).unwrap();
    // By their bytes, as a NaN equals nothing.
    assert_eq!(hex(&tenarc::to_vec(&again).unwrap()), hex(&written), "{}", hex(bytes));
    Ok(value)
}

/// Reads as everything the messages are, and as what they are not.
fn survives_as_all(bytes: &[u8]) {
    let value = survives::<Value>(bytes);
    let raw = survives::<Box<RawValue>>(bytes);
    let any = tenarc::from_slice::<IgnoredAny>(bytes);
    assert_eq!(raw.is_ok(), any.is_ok(), "{}", hex(bytes));
    assert_eq!(any.is_ok(), tenarc::from_reader::<_, IgnoredAny>(OneByte(bytes)).is_ok());
    assert!(any.is_ok() || value.is_err(), "a value from what is not well-formed: {}", hex(bytes));
    if let Ok(raw) = raw {
        assert_eq!(raw.as_bytes(), bytes);
        tenarc::diag::to_string(bytes).unwrap();
    }
    let typed = [
        survives::<Layer>(bytes).is_ok(),
        survives::<Mixed>(bytes).is_ok(),
        survives::<Tagged>(bytes).is_ok(),
        survives::<(Vec<f32>, Vec<f64>)>(bytes).is_ok(),
        survives::<BTreeMap<String, Value>>(bytes).is_ok(),
        survives::<Tensor<DynTensor>>(bytes).is_ok(),
        survives::<Tensor<Vec<u16>>>(bytes).is_ok(),
        survives::<Option<Option<Vec<u8>>>>(bytes).is_ok(),
    ];
    assert!(any.is_ok() || !typed.contains(&true), "a part of what is not well-formed");
    // What is read as any value first, is read from there without a panic, too.
    if let Ok(value) = value {
        let _ = tenarc::from_value::<Mixed>(value.clone());
        let _ = tenarc::from_value::<Layer>(value.clone());
        let _ = Tensor::<DynTensor>::deserialize(&value);
        let _ = value.to_string();
    }
}

#[test]
fn the_messages_are_what_they_should_be() {
    for (name, bytes) in messages() {
        survives_as_all(&bytes);
        let read = match name {
            "layer" => survives::<Layer>(&bytes).map(drop),
            "mixed" => survives::<Mixed>(&bytes).map(drop),
            "packed" => survives::<(Vec<f32>, Vec<f64>)>(&bytes).map(drop),
            "text" => survives::<Tagged>(&bytes).map(drop),
            "chunks" => survives::<Tensor<Vec<u16>>>(&bytes).map(drop),
            _ => survives::<Value>(&bytes).map(drop),
        };
        assert_eq!(read, Ok(()), "{name}");
    }
}

#[test]
fn every_beginning_is_an_error() {
    fn cut<T: Serialize + DeserializeOwned + Debug>(name: &str, bytes: &[u8]) {
        for len in 0..bytes.len() {
            let category = survives::<T>(&bytes[..len]).map(drop).expect_err(name);
            assert_eq!(category, Category::Eof, "{name}, {len} bytes");
        }
    }
    for (name, bytes) in messages() {
        cut::<Value>(name, &bytes);
        cut::<Box<RawValue>>(name, &bytes);
        match name {
            "layer" => cut::<Layer>(name, &bytes),
            "mixed" => cut::<Mixed>(name, &bytes),
            "packed" => cut::<(Vec<f32>, Vec<f64>)>(name, &bytes),
            "text" => cut::<Tagged>(name, &bytes),
            "chunks" => cut::<Tensor<Vec<u16>>>(name, &bytes),
            _ => {}
        }
        for len in 0..bytes.len() {
            let beginning = &bytes[..len];
            survives_as_all(beginning);
            assert!(tenarc::from_slice::<IgnoredAny>(beginning).is_err());
            assert!(tenarc::from_slice::<&RawValue>(beginning).is_err());
            assert!(tenarc::diag::to_string(beginning).is_err());
            let mut stream = tenarc::Deserializer::from_slice(beginning).into_iter::<Value>();
            assert!(stream.next().is_none_or(|value| value.is_err()), "{name}, {len} bytes");
        }
    }
}

#[test]
fn every_bit_turned_over_is_an_error_or_a_value_that_holds() {
    for (_, bytes) in messages() {
        for at in 0..bytes.len() {
            for bit in some_of(0..8, 3, at) {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                survives_as_all(&damaged);
            }
        }
    }
}

#[test]
fn every_byte_left_out_or_doubled_is_an_error_or_a_value_that_holds() {
    for (_, bytes) in messages() {
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged.remove(at);
            survives_as_all(&damaged);
            damaged.insert(at, 0xff);
            survives_as_all(&damaged);
            damaged.insert(at, bytes[at]);
            survives_as_all(&damaged);
        }
    }
}
