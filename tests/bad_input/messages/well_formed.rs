//! Group A: input that is not well-formed CBOR (RFC 8949, Appendix F).

use serde_bytes::ByteBuf;
use tenarc::error::Category::{Eof, Syntax};
use tenarc::{Deserializer, Value};

use super::support::{accepts, refused, refused_hex, refuses, unhex, wide};

// 1
#[test]
fn reserved_additional_information_is_malformed_where_it_stands() {
    for major in 0..8u8 {
        for info in 28..31 {
            let bad = major << 5 | info;
            refused(&[bad], &[Syntax]);
            refused(&[&[bad], &[0; 16][..]].concat(), &[Syntax]);
            for before in ["81", "9f", "8101c6", "a1", "a100", "bf6161"] {
                let mut bytes = unhex(before);
                let at = if before == "8101c6" { 1 } else { bytes.len() };
                bytes.truncate(at);
                bytes.push(bad);
                refused(&bytes, &[Syntax]);
                let error = refuses::<Value>(&bytes, Syntax);
                assert_eq!(error.offset(), Some(at as u64), "{error}");
            }
        }
    }
}

// 2
#[test]
fn integers_and_tags_of_indefinite_length_are_malformed() {
    for digits in ["1f", "3f", "df", "1f01ff", "3f00ff", "df00", "df01ff", "811f", "a1001f"] {
        refused_hex(digits, &[Syntax]);
    }
}

// 3
#[test]
fn stray_and_early_breaks_are_malformed() {
    for digits in [
        "ff",
        "81ff",
        "8201ff",
        "8281ff00",
        "a1ff",
        "a101ff",
        "a2010203ff",
        "bf01ff",
        "bf010203ff",
        "c1ff",
        "d818ff",
        "9fc1ff",
        "d9d9f7ff",
        "818200ff",
        "9fff00ff",
    ] {
        refused_hex(digits, &[Syntax]);
    }
}

// 3
#[test]
fn missing_breaks_are_the_end_of_input() {
    for digits in ["9f", "9f01", "bf", "bf0102", "5f", "5f4100", "7f", "7f6161", "9f9fff", "819f"] {
        refused_hex(digits, &[Eof]);
    }
}

// 3
#[test]
fn what_follows_a_break_is_in_step() {
    let bytes = unhex("85 9f0102ff bf616101ff 5f41aa41bbff 7f61787f".trim_end_matches("7f"));
    let bytes = [bytes, unhex("6179ff 07")].concat();
    type Five = (Vec<u8>, std::collections::BTreeMap<String, u8>, ByteBuf, String, u8);
    let read: Five = accepts(&bytes);
    assert_eq!(read.0, [1, 2]);
    assert_eq!(read.1["a"], 1);
    assert_eq!(read.2.as_slice(), [0xaa, 0xbb]);
    assert_eq!((read.3.as_str(), read.4), ("xy", 7));
}

// 4
#[test]
fn small_simple_values_in_two_bytes_are_malformed() {
    for code in 0..32 {
        refused(&[0xf8, code], &[Syntax]);
        refused(&[0x81, 0xf8, code], &[Syntax]);
    }
    assert_eq!(accepts::<Value>(&[0xf8, 32]), Value::Simple(32));
}

// 5
#[test]
fn chunks_of_another_kind_are_malformed() {
    for digits in [
        "5f6161ff",
        "5f5f4100ffff",
        "5ff6ff",
        "5f00ff",
        "5fc14100ff",
        "5f80ff",
        "5f4100f6ff",
        "7f4161ff",
        "7f7f6161ffff",
        "7ff6ff",
        "7f00ff",
        "7fc16161ff",
        "7f6161a0ff",
        "815f6161ff",
    ] {
        refused_hex(digits, &[Syntax]);
        // In the place of a tensor's payload, too.
        if digits.starts_with("5f") {
            refused_hex(&format!("d840{digits}"), &[Syntax]);
            refused_hex(&format!("d828828101d840{digits}"), &[Syntax]);
        }
    }
}

// 6
#[test]
fn empty_input_is_an_end_of_input_and_not_null() {
    refused(&[], &[Eof]);
    refuses::<Option<u8>>(&[], Eof);
    refuses::<()>(&[], Eof);
    assert_eq!(accepts::<Option<u8>>(&[0xf6]), None);
    accepts::<()>(&[0xf6]);
}

// 7
#[test]
fn what_is_cut_short_gives_no_partial_value() {
    for digits in [
        "18",
        "19",
        "1901",
        "1a010203",
        "1b01020304050607",
        "38",
        "58",
        "5803",
        "5803aabb",
        "41",
        "61",
        "78",
        "6261",
        "81",
        "8201",
        "98",
        "9801",
        "a1",
        "a100",
        "b801",
        "b80100",
        "c1",
        "d8",
        "d81c",
        "f8",
        "f9",
        "f900",
        "fa000000",
        "fb00000000000000",
        "8181",
        "a18100",
        "c482",
        "c48221",
        "d828",
        "d82882",
        "d8288281",
        "d828828102",
        "d828828102d845",
        "d828828102d8454400",
        "d84044010203",
        "5f42aa",
        "7f6261",
        "9f8200",
        "bf6161",
    ] {
        refused_hex(digits, &[Eof]);
    }
}

// 8
#[test]
fn what_stands_behind_the_value_is_refused() {
    for value in ["01", "f6", "80", "a0", "6161", "d840420102", "5f4101ff", "9fff"] {
        for behind in ["00", "f6", "01", "00000000", "ff", "18", "6161", "40"] {
            let bytes = unhex(&format!("{value}{behind}"));
            refused_but_for_diagnosis(&bytes);
        }
    }
}

/// Diagnostic notation takes sequences.
fn refused_but_for_diagnosis(bytes: &[u8]) {
    use super::support::{ANY, TYPED, outcomes, refused_by};

    for (place, outcome) in outcomes(bytes, ANY) {
        let error = outcome.expect_err(&place);
        assert_eq!(error.category(), Syntax, "{place}: {error}");
    }
    refused_by(bytes, TYPED);
}

// 8
#[test]
fn a_sequence_of_values_is_a_stream() {
    let bytes = unhex("01 f6 80 6161");
    let values: Result<Vec<Value>, _> = Deserializer::from_slice(&bytes).into_iter().collect();
    assert_eq!(values.unwrap().len(), 4);
    let mut cut = Deserializer::from_reader(&bytes[..4]).into_iter::<Value>();
    assert_eq!(cut.by_ref().flatten().count(), 3);
    let claim = wide(4, 9);
    let mut stream = Deserializer::from_slice(&claim).into_iter::<Value>();
    assert!(stream.next().unwrap().is_err());
    assert!(stream.next().is_none(), "ends behind an error");
}
