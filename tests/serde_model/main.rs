//! Every kind of value in the data model of serde is read back as it was written, from every kind of
//! source and through [`Value`].

// What is tested is the data model, and floats bit for bit.
#![allow(clippy::option_option, clippy::zero_sized_map_values, clippy::float_cmp)]

mod any;
mod attributes;
mod compounds;
mod numbers;
mod options;
mod raw_values;
mod strings;
mod values;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteArray, ByteBuf, Bytes};
use tenarc::Value;
use tenarc::error::Category;
use tenarc::value::RawValue;
use tenarc_test_support::{
    decode, encode, everywhere, hex, open_round_trip, refuse, round_trip, unhex,
};

#[track_caller]
fn round_trip_as<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T, expected: &str) {
    assert_eq!(hex(&round_trip(value)), expected.replace(' ', ""), "{value:?}");
}
