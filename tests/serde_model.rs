//! The whole data model of serde, both ways, from every kind of source and through [`Value`].

// What is tested is the data model, and floats bit for bit.
#![allow(clippy::option_option, clippy::zero_sized_map_values, clippy::float_cmp)]

#[path = "serde_model/any.rs"]
mod any;
#[path = "serde_model/attributes.rs"]
mod attributes;
mod common;
#[path = "serde_model/compounds.rs"]
mod compounds;
#[path = "serde_model/numbers.rs"]
mod numbers;
#[path = "serde_model/options.rs"]
mod options;
#[path = "serde_model/raw_values.rs"]
mod raw_values;
#[path = "serde_model/strings.rs"]
mod strings;
#[path = "serde_model/values.rs"]
mod values;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::marker::PhantomData;

use common::{decode, encode, hex, open_round_trip, refuse, round_trip, unhex};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteArray, ByteBuf, Bytes};
use tenarc::Value;
use tenarc::error::Category;
use tenarc::value::RawValue;

#[track_caller]
fn round_trip_as<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, expected: &str) {
    assert_eq!(hex(&round_trip(value)), expected.replace(' ', ""), "{value:?}");
}
