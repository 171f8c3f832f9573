//! Decoding from every kind of source, and encoding by every entry point, checking that all agree.

#![allow(dead_code)] // Each test file uses a part.

use std::fmt::Debug;
use std::io::{self, Read};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::ser::EncodeOptions;
use tenarc::{Error, Value};

/// Every dtype that has a name.
pub const DTYPES: [&str; 24] = [
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
];

/// A reader that gives one byte at a time.
pub struct OneByte<'a>(pub &'a [u8]);

impl Read for OneByte<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(1);
        self.0.read(&mut out[..len])
    }
}

/// A reader that gives a few bytes at a time, as many as chance will have it, and is interrupted
/// now and then.
pub struct Ragged<'a> {
    rest: &'a [u8],
    state: u64,
}

impl<'a> Ragged<'a> {
    pub fn new(rest: &'a [u8], seed: u64) -> Self {
        Self { rest, state: seed.wrapping_mul(2).wrapping_add(1) }
    }

    /// Xorshift: the same numbers in every run.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

impl Read for Ragged<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let chance = self.random();
        if chance.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = usize::try_from(chance % 23).unwrap() + 1;
        let len = out.len().min(most);
        self.rest.read(&mut out[..len])
    }
}

/// What each kind of source makes of the bytes.
pub fn everywhere<T: DeserializeOwned>(bytes: &[u8]) -> Vec<(&'static str, tenarc::Result<T>)> {
    let mut results = vec![
        ("slice", tenarc::from_slice(bytes)),
        ("whole reader", tenarc::from_reader(bytes)),
        ("one-byte reader", tenarc::from_reader(OneByte(bytes))),
    ];
    for seed in [1, 99] {
        results.push(("ragged reader", tenarc::from_reader(Ragged::new(bytes, seed))));
    }
    results
}

/// Decodes from every kind of source; all must give the same.
#[track_caller]
pub fn decode<T: DeserializeOwned + PartialEq + Debug>(bytes: &[u8]) -> T {
    let mut values = everywhere::<T>(bytes).into_iter().map(|(source, result)| match result {
        Ok(value) => (source, value),
        Err(error) => panic!("{source}: {error}\n{}", hex(bytes)),
    });
    let (_, first) = values.next().unwrap();
    for (source, other) in values {
        assert_eq!(other, first, "{source}");
    }
    first
}

/// Fails to decode from every kind of source; all must give the same category, path, offset and
/// message. The error is that of the slice.
#[track_caller]
pub fn refuse<T: DeserializeOwned + Debug>(bytes: &[u8]) -> Error {
    let mut errors = everywhere::<T>(bytes).into_iter().map(|(source, result)| match result {
        Ok(value) => panic!("{source}: read as {value:?}\n{}", hex(bytes)),
        Err(error) => (source, error),
    });
    let (_, first) = errors.next().unwrap();
    for (source, other) in errors {
        assert_eq!(other.category(), first.category(), "{source}: {other}, slice: {first}");
        assert_eq!(other.path(), first.path(), "{source}: {other}, slice: {first}");
        assert_eq!(other.offset(), first.offset(), "{source}: {other}, slice: {first}");
        assert_eq!(other.to_string(), first.to_string(), "{source}");
    }
    first
}

/// Encodes by every entry point; all must give the same.
#[track_caller]
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Vec<u8> {
    let bytes = tenarc::to_vec(value).unwrap();

    let mut written = Vec::new();
    tenarc::to_writer(&mut written, value).unwrap();
    assert_eq!(hex(&written), hex(&bytes), "to_writer");

    let mut appended = b"before".to_vec();
    tenarc::append_to(&mut appended, value).unwrap();
    assert_eq!(hex(&appended[6..]), hex(&bytes), "append_to");

    let mut serializer = tenarc::Serializer::new(Vec::new());
    value.serialize(&mut serializer).unwrap();
    assert_eq!(hex(serializer.get_ref()), hex(&bytes), "Serializer");
    bytes
}

/// Encodes and decodes in every way, through [`Value`] too. Returns the encoding.
#[track_caller]
pub fn round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Vec<u8> {
    let bytes = open_round_trip(value);
    // Lengths are not kept by `Value`, so that this holds only where they are definite.
    assert_eq!(hex(&tenarc::to_vec(&tenarc::to_value(value).unwrap()).unwrap()), hex(&bytes));
    bytes
}

/// As [`round_trip`], for values that are written with indefinite lengths.
#[track_caller]
pub fn open_round_trip<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> Vec<u8> {
    let bytes = encode(value);
    assert_eq!(decode::<T>(&bytes), *value, "{}", hex(&bytes));

    let packed = EncodeOptions::default().with_typed_arrays(true);
    let packed = tenarc::ser::to_vec_with(value, packed).unwrap();
    assert_eq!(decode::<T>(&packed), *value, "with typed arrays: {}", hex(&packed));

    let made = tenarc::to_value(value).unwrap();
    let read: Value = tenarc::from_slice(&bytes).unwrap();
    // By their bytes, as a NaN equals nothing.
    assert_eq!(hex(&encode(&read)), hex(&encode(&made)), "value read and value made");
    assert_eq!(T::deserialize(&made).unwrap(), *value, "borrowed value");
    assert_eq!(tenarc::from_value::<T>(made).unwrap(), *value, "owned value");
    assert_eq!(tenarc::from_value::<T>(read).unwrap(), *value, "value read");
    bytes
}

pub fn hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(digit.into(), 16).unwrap();
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of hexadecimal digits; spaces do not count.
pub fn unhex(digits: &str) -> Vec<u8> {
    let digits: Vec<u8> = digits.bytes().filter(|byte| *byte != b' ').collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    assert!(rest.is_empty(), "odd number of digits");
    let pair = |pair: &[u8; 2]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.iter().map(pair).collect()
}
