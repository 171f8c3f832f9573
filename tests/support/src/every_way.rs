//! Decoding from every kind of source and encoding by every entry point, which must all agree.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::ser::EncodeOptions;
use tenarc::{Error, Value};

use crate::{hex, readers};

/// What each kind of source makes of the bytes.
pub fn everywhere<T: DeserializeOwned>(bytes: &[u8]) -> Vec<(&'static str, tenarc::Result<T>)> {
    let mut results = vec![("slice", tenarc::from_slice(bytes))];
    for (name, reader) in readers(bytes) {
        results.push((name, tenarc::from_reader(reader)));
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
