//! Many messages on one stream, and what happens when the stream or a value fails.

#![allow(clippy::option_option)] // What is tested.

mod reading;
mod writing;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::io::{self, ErrorKind, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use ndarray::{Array1, Array2};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::ser::{
    Error as _, SerializeMap, SerializeSeq, SerializeStruct, SerializeTuple, SerializeTupleVariant,
};
use serde::{Deserialize, Serialize, Serializer};
use serde_bytes::ByteBuf;
use tenarc::de::{DecodeOptions, Limits};
use tenarc::error::Category;
use tenarc::ser::EncodeOptions;
use tenarc::value::RawValue;
use tenarc::{Tensor, Value};
use tenarc_test_support::{OneByte, Ragged, hex, refuse, unhex};

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
struct Message {
    id: u32,
    text: String,
    level: Option<Option<()>>,
    tags: BTreeMap<String, i64>,
    weights: Tensor<Array1<f32>>,
    kind: Kind,
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
enum Kind {
    Start,
    Text(String),
    Pair(u8, f64),
    Range { from: i64, to: i64 },
}

/// Messages of growing size, the last beyond the buffers of readers and writers.
fn messages() -> Vec<Message> {
    let kinds = [
        Kind::Start,
        Kind::Text("ß".repeat(40)),
        Kind::Pair(7, -0.5),
        Kind::Range { from: -1, to: i64::MAX },
    ];
    let levels = [None, Some(None), Some(Some(()))];
    (0u8..12)
        .map(|i| {
            let size = 2 << (i + i / 2);
            Message {
                id: u32::from(i) * 1000,
                text: "x".repeat(size / 8),
                level: levels[usize::from(i) % 3],
                tags: (0..i).map(|j| (j.to_string(), -i64::from(j))).collect(),
                weights: Array1::from_elem(size / 4, f32::from(i)).into(),
                kind: kinds[usize::from(i) % 4].clone(),
            }
        })
        .collect()
}

fn written<T: Serialize>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|value| tenarc::to_vec(value).unwrap()).collect()
}

/// What is read from each kind of source until the stream ends, and where each value ends.
type Read1<T> = Vec<(tenarc::Result<T>, u64)>;

fn read_all<T: DeserializeOwned>(bytes: &[u8]) -> Vec<(&'static str, Read1<T>)> {
    fn collect<'de, R: tenarc::de::Read<'de>, T: Deserialize<'de>>(
        deserializer: tenarc::Deserializer<R>,
    ) -> Read1<T> {
        let mut stream = deserializer.into_iter::<T>();
        let mut all = Vec::new();
        while let Some(item) = stream.next() {
            all.push((item, stream.byte_offset()));
        }
        // Once it has ended, it stays so.
        assert!(stream.next().is_none());
        assert!(stream.next().is_none());
        all
    }

    vec![
        ("slice", collect(tenarc::Deserializer::from_slice(bytes))),
        ("whole reader", collect(tenarc::Deserializer::from_reader(bytes))),
        ("one-byte reader", collect(tenarc::Deserializer::from_reader(OneByte(bytes)))),
        ("ragged reader", collect(tenarc::Deserializer::from_reader(Ragged::new(bytes, 7)))),
    ]
}
