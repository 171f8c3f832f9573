//! The peers that are serde formats.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use std::sync::atomic::Ordering::Relaxed;

use crate::bytes::AS_BUFFERS;
use crate::harness::{Placed, Row, timed};

/// A serde format. Its methods panic on errors, as a benchmark cannot handle them.
pub trait Codec {
    const NAME: &'static str;

    /// Whether `encode` reuses the memory of the buffer.
    const REUSES: bool = true;

    /// Encodes into an empty buffer, and should use its capacity.
    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>);

    /// Encodes into a new `Vec`, as in the format's first example.
    fn to_vec<T: Serialize>(value: &T) -> Vec<u8>;

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T;
}

/// A format whose values can borrow from the message: all but ciborium. (bitcode only borrows `&str`.)
pub trait Lender: Codec {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T;
}

/// The row for an owned value. Checks that decoding returns the value that was encoded.
pub fn row<'a, C: Codec, T>(form: &'static str, value: &'a T) -> Row<'a>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let message = C::to_vec(value);
    assert!(
        C::decode::<T>(&message) == *value,
        "{} ({form}) decodes another value than was encoded",
        C::NAME
    );
    let row = Row::new(C::NAME, form, Placed::new(&message, 0))
        .fresh(move || C::to_vec(value))
        .decode(|bytes| timed(|| C::decode::<T>(bytes)));
    if !C::REUSES {
        return row;
    }
    let mut buffer = Vec::new();
    C::encode(value, &mut buffer);
    assert!(buffer == message, "{} ({form}) encodes differently into a reused buffer", C::NAME);
    row.encode(move |buffer| C::encode(value, buffer))
}

/// Adds borrowed decoding to a row, and checks that it returns the value that was encoded.
macro_rules! borrowed {
    ($row:expr, |$bytes:ident| $decode:expr, |$view:ident| $same:expr) => {{
        let row: $crate::harness::Row<'_> = $row;
        {
            let $bytes = row.message.bytes();
            let $view = $decode;
            assert!($same, "{} ({}) borrows another value than was encoded", row.peer, row.form);
        }
        row.borrow(move |$bytes: &[u8]| $crate::harness::timed(|| $decode))
    }};
}
pub(crate) use borrowed;

/// tenarc with its default options.
pub struct Tenarc;

impl Codec for Tenarc {
    const NAME: &'static str = "tenarc";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        tenarc::append_to(buffer, value).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        tenarc::to_vec(value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for Tenarc {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        tenarc::from_slice(bytes).unwrap()
    }
}

/// tenarc with an option.
macro_rules! tenarc_with {
    ($(#[$doc:meta])* $name:ident, $option:ident) => {
        $(#[$doc])*
        pub struct $name;

        impl Codec for $name {
            const NAME: &'static str = "tenarc";

            fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
                let options = tenarc::ser::EncodeOptions::default().$option(true);
                tenarc::ser::append_to_with(buffer, value, options).unwrap();
            }

            fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
                let options = tenarc::ser::EncodeOptions::default().$option(true);
                tenarc::ser::to_vec_with(value, options).unwrap()
            }

            fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
                Self::lend(bytes)
            }
        }

        impl Lender for $name {
            fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
                tenarc::from_slice(bytes).unwrap()
            }
        }
    };
}

tenarc_with! {
    /// tenarc, which writes plain sequences of numbers as typed arrays here.
    TenarcTyped, with_typed_arrays
}

tenarc_with! {
    /// tenarc, which writes sequences of records as columns.
    TenarcColumns, with_columns
}

pub struct Bincode1;

impl Codec for Bincode1 {
    const NAME: &'static str = "bincode 1";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        bincode1::serialize_into(buffer, value).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        bincode1::serialize(value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for Bincode1 {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        bincode1::deserialize(bytes).unwrap()
    }
}

/// bincode 2 through serde, in its standard configuration.
pub struct Bincode2;

impl Codec for Bincode2 {
    const NAME: &'static str = "bincode 2";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        bincode::serde::encode_into_std_write(value, buffer, bincode::config::standard()).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        bincode::serde::encode_to_vec(value, bincode::config::standard()).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for Bincode2 {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        let standard = bincode::config::standard();
        bincode::serde::borrow_decode_from_slice(bytes, standard).unwrap().0
    }
}

pub struct Postcard;

impl Codec for Postcard {
    const NAME: &'static str = "postcard";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        *buffer = postcard::to_extend(value, std::mem::take(buffer)).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        postcard::to_stdvec(value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for Postcard {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        postcard::from_bytes(bytes).unwrap()
    }
}

/// MessagePack with field names.
pub struct RmpNamed;

impl Codec for RmpNamed {
    const NAME: &'static str = "rmp-serde named";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        rmp_serde::encode::write_named(buffer, value).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        rmp_serde::to_vec_named(value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for RmpNamed {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        rmp_serde::from_slice(bytes).unwrap()
    }
}

/// MessagePack with structs as arrays.
pub struct RmpCompact;

impl Codec for RmpCompact {
    const NAME: &'static str = "rmp-serde compact";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        rmp_serde::encode::write(buffer, value).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        rmp_serde::to_vec(value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for RmpCompact {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        rmp_serde::from_slice(bytes).unwrap()
    }
}

pub struct Ciborium;

impl Codec for Ciborium {
    const NAME: &'static str = "ciborium";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        ciborium::into_writer(value, buffer).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        let mut out = Vec::new();
        ciborium::into_writer(value, &mut out).unwrap();
        out
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        AS_BUFFERS.store(true, Relaxed);
        let value = ciborium::from_reader(bytes).unwrap();
        AS_BUFFERS.store(false, Relaxed);
        value
    }
}

pub struct Cbor4ii;

impl Codec for Cbor4ii {
    const NAME: &'static str = "cbor4ii";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        *buffer = cbor4ii::serde::to_vec(std::mem::take(buffer), value).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        cbor4ii::serde::to_vec(Vec::new(), value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for Cbor4ii {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        cbor4ii::serde::from_slice(bytes).unwrap()
    }
}

pub struct Minicbor;

impl Codec for Minicbor {
    const NAME: &'static str = "minicbor-serde";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        let mut serializer = minicbor_serde::Serializer::new(buffer);
        value.serialize(&mut serializer).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        minicbor_serde::to_vec(value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for Minicbor {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        minicbor_serde::from_slice(bytes).unwrap()
    }
}

pub struct Json;

impl Codec for Json {
    const NAME: &'static str = "serde_json";

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        serde_json::to_writer(buffer, value).unwrap();
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        serde_json::to_vec(value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for Json {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        serde_json::from_slice(bytes).unwrap()
    }
}

/// serde-zap, which reuses memory only as a slice of known length: see [`zap`].
pub struct SerdeZap;

impl Codec for SerdeZap {
    const NAME: &'static str = "serde-zap";
    const REUSES: bool = false;

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        *buffer = Self::to_vec(value);
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        serde_zap::to_vec(value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for SerdeZap {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        serde_zap::from_bytes(bytes).unwrap()
    }
}

/// The row for serde-zap. It encodes into a slice that is long enough.
pub fn zap<'a, T>(form: &'static str, value: &'a T) -> Row<'a>
where
    T: Serialize + DeserializeOwned + PartialEq,
{
    let row = row::<SerdeZap, _>(form, value);
    let message = row.message.bytes();
    let mut space = vec![0; message.len() + 64];
    let written = serde_zap::to_slice(value, &mut space).unwrap();
    assert!(written == message, "serde-zap ({form}) encodes differently into a slice");
    row.encode(move |_| {
        std::hint::black_box(serde_zap::to_slice(value, &mut space).unwrap());
    })
}

/// bitcode through serde, which cannot reuse a buffer.
pub struct BitcodeSerde;

impl Codec for BitcodeSerde {
    const NAME: &'static str = "bitcode";
    const REUSES: bool = false;

    fn encode<T: Serialize>(value: &T, buffer: &mut Vec<u8>) {
        *buffer = Self::to_vec(value);
    }

    fn to_vec<T: Serialize>(value: &T) -> Vec<u8> {
        bitcode::serialize(value).unwrap()
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> T {
        Self::lend(bytes)
    }
}

impl Lender for BitcodeSerde {
    fn lend<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> T {
        bitcode::deserialize(bytes).unwrap()
    }
}
