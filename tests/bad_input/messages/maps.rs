//! Group E: text and maps.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_bytes::ByteBuf;
use tenarc::error::Category::{Data, Syntax};
use tenarc::value::RawValue;
use tenarc::{DynTensor, Tensor, Value};

use super::support::{
    Kind, MIB, Record, accepts, head, is_well_formed, quickly, refused, refuses, tensor, unhex,
};

const NOT_UTF8: [&str; 12] = [
    "80", "bf", "c080", "c0af", "e08080", "eda080", "edbfbf", "f4908080", "f8888080", "ff", "e282",
    "f09f98",
];

fn text(content: &[u8]) -> Vec<u8> {
    [head(3, content.len() as u64), content.to_vec()].concat()
}

// 31
#[test]
fn text_that_is_not_utf8_is_malformed_wherever_it_stands() {
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Borrowing<'a> {
        a: &'a str,
    }
    for digits in NOT_UTF8 {
        let bad = text(&unhex(digits));
        for around in ["", "81", "a100", "c6", "a16161", "8201", "9f", "a2626964016178"] {
            refused(&[unhex(around), bad.clone()].concat(), &[Syntax]);
        }
        // As a key, and in a chunk; behind valid text, too.
        refused(&[unhex("a1"), bad.clone(), vec![0]].concat(), &[Syntax]);
        refused(&[unhex("a2626964 01"), bad.clone(), vec![0]].concat(), &[Syntax]);
        refused(&[unhex("7f"), bad.clone(), vec![0xff]].concat(), &[Syntax]);
        refused(&[unhex("7f6161"), bad.clone(), vec![0xff]].concat(), &[Syntax]);
        refused(&text(&[b"valid ", &unhex(digits)[..], b"!"].concat()), &[Syntax]);
        refused(&text(&[&vec![b'a'; 70_000], &unhex(digits)[..]].concat()), &[Syntax]);
        // The names of variants and dtypes, and a field that is skipped.
        refuses::<Kind>(&bad, Syntax);
        refuses::<Kind>(&[unhex("a1"), bad.clone(), vec![0]].concat(), Syntax);
        let dtype = [unhex("da54454e53 84"), bad.clone(), unhex("8101 6143 4101")].concat();
        refuses::<Tensor<DynTensor>>(&dtype, Syntax);
        refuses::<Record>(&[unhex("a2 626964 01 6178"), bad.clone()].concat(), Syntax);
        let borrowed = [unhex("a1 6161"), bad.clone()].concat();
        assert_eq!(tenarc::from_slice::<Borrowing>(&borrowed).unwrap_err().category(), Syntax);
        assert_eq!(tenarc::from_slice::<&str>(&bad).unwrap_err().category(), Syntax);
        // As bytes they are fine.
        accepts::<ByteBuf>(&[head(2, 2), vec![0xff, 0xfe]].concat());
    }
}

// 32
#[test]
fn code_points_do_not_go_across_chunks() {
    for digits in ["7f61e26282acff", "7f62e28261acff", "7f64f09f98 61 6180ff", "7f61c3 60 61a4ff"] {
        refused(&unhex(&digits.replace("64f09f98 61", "63f09f98")), &[Syntax]);
    }
    assert_eq!(accepts::<String>(&unhex("7f63e282ac60 61 61ff")), "€a");
}

// 33
#[test]
fn fields_that_stand_twice_are_refused() {
    // "id" in the shortest form, in longer ones, and in chunks.
    let keys =
        ["626964", "78026964", "7900026964", "7b00000000000000026964", "7f61696164ff", "426964"];
    for first in keys {
        for second in keys {
            let bytes = unhex(&format!("a2 {first} 01 {second} 01"));
            let error = refuses::<Record>(&bytes, Data);
            assert!(error.to_string().contains("duplicate field `id`"), "{error}");
            let bytes = unhex(&format!("bf 6178 00 {first} 01 6179 00 {second} 02 ff"));
            refuses::<Record>(&bytes, Data);
        }
    }
    let many: Vec<u8> =
        (0..1000u64).flat_map(|n| [text(n.to_string().as_bytes()), vec![0]]).flatten().collect();
    let bytes = [head(5, 1002), unhex("62696401"), many, unhex("62696401")].concat();
    refuses::<Record>(&bytes, Data);
    let value: Value = accepts(&bytes);
    assert!(tenarc::from_value::<Record>(value).is_err());
    // The fields of a tensor that is written as a map.
    let fields =
        ["656474797065 627538", "657368617065 8101", "656f72646572 6143", "6464617461 4107"];
    accepts::<Tensor<Vec<u8>>>(&unhex(&format!("a4{}", fields.concat())));
    for field in fields {
        let twice = unhex(&format!("a5{}{field}", fields.concat()));
        refuses::<Tensor<Vec<u8>>>(&twice, Data);
        refuses::<Tensor<DynTensor>>(&twice, Data);
    }
}

// 33
#[test]
fn maps_take_the_last_of_equal_keys_and_values_keep_all() {
    let bytes = unhex("a3 6161 01 6162 02 7f6161ff 03");
    assert_eq!(accepts::<HashMap<String, u8>>(&bytes)["a"], 3);
    assert_eq!(accepts::<BTreeMap<String, u8>>(&bytes).len(), 2);
    let value: Value = accepts(&bytes);
    assert_eq!(value.as_map().unwrap().len(), 3);
    assert_eq!(value.get("a"), Some(&Value::Integer(3)));
    assert_eq!(tenarc::from_value::<HashMap<String, u8>>(value).unwrap()["a"], 3);
}

// 34
#[test]
fn keys_of_every_kind_are_read_or_refused() {
    let array: Vec<u8> = unhex("a1 8201026161");
    for (digits, key) in [
        ("a101f6", Value::Integer(1)),
        ("a120f6", Value::Integer(-1)),
        ("a1f6f6", Value::Null),
        ("a1f5f6", Value::Bool(true)),
        ("a141aaf6", Value::Bytes(vec![0xaa])),
        ("a180f6", Value::Array(vec![])),
        ("a1a0f6", Value::Map(vec![])),
        ("a1c101f6", Value::Tag(1, Box::new(Value::Integer(1)))),
        ("a1f7f6", Value::Simple(23)),
    ] {
        let bytes = unhex(digits);
        is_well_formed(&bytes);
        assert_eq!(accepts::<Value>(&bytes), Value::Map(vec![(key, Value::Null)]));
        refuses::<HashMap<String, Option<u8>>>(&bytes, Data);
    }
    for nan in ["a1f97e0000", "a1fa7fc0000000", "a1fb7ff800000000000100", "a2f97e0000f97e0001"] {
        let bytes = unhex(nan);
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        assert!(matches!(value.as_map().unwrap()[0].0, Value::F32(_) | Value::F64(_)));
        refuses::<HashMap<u64, u8>>(&bytes, Data);
    }
    let keyed = [vec![0xa1], tensor(40, &[1], 64, &[7]), vec![0]].concat();
    assert!(matches!(accepts::<Value>(&keyed).as_map().unwrap()[0].0, Value::Tensor(_)));
    refuses::<HashMap<String, u8>>(&keyed, Data);
    refuses::<Record>(&keyed, Data);
    assert_eq!(accepts::<BTreeMap<Vec<u8>, String>>(&array)[&vec![1, 2]], "a");
    assert_eq!(accepts::<BTreeMap<(u8, u8), String>>(&array)[&(1, 2)], "a");
    assert!(accepts::<HashMap<u8, bool>>(&unhex("a107f5"))[&7]);
    // A number is no position of a field, and a unit variant no map's key by its number.
    refuses::<Record>(&unhex("a10001"), Data);
    refuses::<Kind>(&unhex("00"), Data);
    refuses::<Kind>(&unhex("a10001"), Data);
    refuses::<Kind>(&unhex("a2 634e6577 01 634e6577 02"), Data);
    refuses::<Kind>(&unhex("bf 634e6577 01 634e6577 02 ff"), Data);
    refuses::<Kind>(&unhex("a0"), Data);
}

// 35
#[test]
fn a_million_keys_take_linear_time() {
    let mut bytes = head(5, 1_000_000);
    let mut key = String::new();
    for n in 0..1_000_000 {
        key.clear();
        write!(key, "a.common.prefix.{n:07}").unwrap();
        bytes.extend(head(3, key.len() as u64));
        bytes.extend(key.as_bytes());
        bytes.push(0);
    }
    let read = quickly(|| tenarc::from_slice::<HashMap<String, u8>>(&bytes)).unwrap();
    assert_eq!(read.len(), 1_000_000);
    drop(read);
    quickly(|| tenarc::from_reader::<_, Value>(&bytes[..])).unwrap();
    quickly(|| tenarc::from_slice::<IgnoredAny>(&bytes)).unwrap();
    let error = quickly(|| tenarc::from_slice::<Record>(&bytes)).unwrap_err();
    assert!(error.to_string().contains("missing field `id`"), "{error}");
}

// 36
#[test]
fn keys_that_look_like_paths_stay_apart() {
    let keys =
        ["", "a", "a.b", ".", "/", "a/b", "~", "~1", "\0", "\u{1b}[31m", "0", "é", "e\u{301}"];
    let mut bytes = head(5, keys.len() as u64);
    for (n, key) in keys.iter().enumerate() {
        bytes.extend(text(key.as_bytes()));
        bytes.push(n as u8);
    }
    let read: HashMap<String, u8> = accepts(&bytes);
    let value: Value = accepts(&bytes);
    for (n, key) in keys.iter().enumerate() {
        assert_eq!(read[*key], n as u8);
        assert_eq!(value.get(key), Some(&Value::Integer(n as i128)));
        let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        assert_eq!(value.pointer(&pointer), Some(&Value::Integer(n as i128)), "{pointer}");
    }
    assert_eq!(
        accepts::<HashMap<String, HashMap<String, u8>>>(&unhex("a16161a1616207"))["a"]["b"],
        7
    );
}

// 36
#[test]
fn keys_in_messages_are_escaped_and_cut() {
    let bytes = [vec![0xa1], text(b"\x1b[31m\x00\x07"), text(b"no number")].concat();
    for error in [
        refuses::<HashMap<String, u8>>(&bytes, Data),
        tenarc::from_value::<HashMap<String, u8>>(accepts(&bytes)).unwrap_err(),
    ] {
        let shown = error.to_string();
        assert!(!shown.contains(char::is_control), "{shown:?}");
        assert!(shown.contains("[31m"), "{shown}");
    }
    let long = [vec![0xa1], text(&vec![b'k'; MIB]), text(b"no number")].concat();
    assert!(refuses::<HashMap<String, u8>>(&long, Data).to_string().len() < 1000);
    let malformed = [vec![0xa1], text(&vec![b'k'; MIB]), vec![0x1c]].concat();
    assert!(refuses::<Value>(&malformed, Syntax).to_string().len() < 1000);
    refuses::<Box<RawValue>>(&malformed, Syntax);
}
