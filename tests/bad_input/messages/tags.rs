//! Group D: tags on items they do not belong to, and tags that are not ours.

use std::collections::BTreeMap;

use ndarray::Array1;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::error::Category::Data;
use tenarc::value::RawValue;
use tenarc::{DynTensor, Tensor, Value};

use super::support::{
    Record, accepts, head, is_well_formed, named, outcomes, refused_by, refuses, tensor, unhex,
};

/// Well-formed, but neither a tensor nor any value, as its tags say what is not so.
#[track_caller]
fn is_no_tensor(digits: &str) {
    let bytes = unhex(digits);
    is_well_formed(&bytes);
    refuses::<Tensor<DynTensor>>(&bytes, Data);
    refuses::<Tensor<Array1<f32>>>(&bytes, Data);
    refuses::<Value>(&bytes, Data);
    refuses::<Vec<f32>>(&bytes, Data);
    refuses::<BTreeMap<String, Value>>(&bytes, Data);
}

// 23
#[test]
fn arrays_that_are_not_shape_and_elements_are_refused() {
    for tag in ["d828", "d90410"] {
        for content in [
            "01",
            "f6",
            "6161",
            "4101",
            "a0",
            "80",
            "81810a",
            "8101",
            "8180",
            "83810180f6",
            "82018101",
            "82f68101",
            "82810101",
            "8281016161",
            "828101f6",
            "828101a0",
            "82a0d84041ff",
            "82810102",
            "8281014101",
            "828101c24101",
            "828101d81841ff",
            "828101d82882810180",
            "9fff",
            "9f8101ff",
            "9f8101d84041aa00ff",
            "828101da54454e5380",
            "8281018161aa",
            "82810181f6",
            "82d8408101d84041aa",
            "828101d9a7f9d84041aa",
            "828101d9a7f901",
            "828101d9a7f98101",
        ] {
            is_no_tensor_or_malformed(&format!("{tag}{content}"));
        }
    }
}

#[track_caller]
fn is_no_tensor_or_malformed(digits: &str) {
    let bytes = unhex(digits);
    if tenarc::from_slice::<IgnoredAny>(&bytes).is_ok() {
        is_no_tensor(digits);
    } else {
        for (place, outcome) in outcomes(&bytes, crate::messages::support::TYPED) {
            assert!(outcome.is_err(), "{place}");
        }
    }
}

// 24
#[test]
fn typed_arrays_of_anything_but_bytes_are_refused() {
    for tag in (64..=75).chain(77..=87).chain([43001]) {
        for content in ["01", "f6", "6161", "80", "8101", "a0", "c24101", "d81841aa", "d84041aa"] {
            let bytes = [head(6, tag), unhex(content)].concat();
            is_no_tensor(&crate::messages::support::hex(&bytes));
        }
    }
}

// 25
#[test]
fn unknown_tags_are_passed_over_or_kept() {
    for tag in [0, 1, 6, 21, 24, 32, 99, 258, 260, 55799, 1 << 32, u64::MAX] {
        let tag = head(6, tag);
        let twice = [tag.clone(), tag.clone()].concat();
        assert_eq!(accepts::<u8>(&[&twice[..], &[7]].concat()), 7);
        assert_eq!(accepts::<String>(&[&tag[..], b"\x61a"].concat()), "a");
        assert_eq!(accepts::<Option<u8>>(&[&tag[..], &[7]].concat()), Some(7));
        assert_eq!(accepts::<Vec<u8>>(&[&tag[..], &[0x81, 7]].concat()), [7]);
        let map = [&tag[..], &[0xa1], &tag, b"\x61a", &tag, &[7]].concat();
        assert_eq!(accepts::<BTreeMap<String, u8>>(&map)["a"], 7);
        let record = [&tag[..], &[0xa1], &tag, b"\x62id", &tag, &[7]].concat();
        assert_eq!(accepts::<Record>(&record).id, 7);
        let around = [tag.clone(), tensor(40, &[2], 64, &[3, 4])].concat();
        assert_eq!(accepts::<Tensor<Vec<u8>>>(&around).0, [3, 4]);
        let elements = [unhex("d828 82 8101"), tag.clone(), unhex("d84041aa")].concat();
        assert_eq!(accepts::<Tensor<Vec<u8>>>(&elements).0, [0xaa]);
        let Value::Tag(_, inner) = accepts::<Value>(&around) else { panic!("tag not kept") };
        assert_eq!(inner.as_tensor().unwrap().shape(), [2]);
        assert_eq!(tenarc::to_vec(&accepts::<Value>(&around)).unwrap(), around);
    }
}

// 26
#[test]
fn tags_that_are_known_ones_only_when_cut_are_unknown() {
    for known in [2u64, 3, 25, 29, 40, 64, 85, 86, 1040, 43001, 0x5445_4e53, 0x5453_4f4d] {
        for high in [1 << 8, 1 << 16, 1 << 32, 1 << 63] {
            let tag = head(6, known ^ high);
            let bytes = [tag.clone(), unhex("82 8102 d84042aabb")].concat();
            assert!(matches!(accepts::<Value>(&bytes), Value::Tag(..)), "{known} {high}");
            refuses::<Tensor<Vec<u8>>>(&bytes, Data);
            let bytes = [tag, unhex("44aabbccdd")].concat();
            let kept = Value::Tag(known ^ high, Box::new(Value::Bytes(unhex("aabbccdd"))));
            assert_eq!(accepts::<Value>(&bytes), kept);
            refuses::<u128>(&bytes, Data);
            assert_eq!(accepts::<ByteBuf>(&bytes), unhex("aabbccdd"));
            refuses::<Tensor<Array1<f32>>>(&bytes, Data);
        }
    }
}

// 27
#[test]
fn reserved_and_largest_tags_mean_nothing() {
    for tag in [76, u64::MAX, u64::MAX - 1] {
        let bytes = [head(6, tag), unhex("44aabbccdd")].concat();
        is_well_formed(&bytes);
        let kept = Value::Tag(tag, Box::new(Value::Bytes(unhex("aabbccdd"))));
        assert_eq!(accepts::<Value>(&bytes), kept);
        refuses::<Tensor<Array1<f32>>>(&bytes, Data);
        assert_eq!(accepts::<Vec<u8>>(&bytes), unhex("aabbccdd"));
        refused_by(&tensor(40, &[1], tag, &[0; 4]), crate::messages::support::TYPED);
    }
}

// 28
#[test]
fn references_are_never_followed() {
    // [28("shared"), 29(0)], a cycle 28([29(0)]), strings 256([..., 25(0)]).
    for digits in ["82 d81c 66736861726564 d81d00", "d81c 81 d81d00", "d90100 82 63616161 d81900"] {
        let bytes = unhex(digits);
        is_well_formed(&bytes);
        let kept: Value = accepts(&bytes);
        assert_eq!(tenarc::to_vec(&kept).unwrap(), bytes);
        refuses::<Vec<String>>(&bytes, Data);
        assert!(tenarc::from_value::<Vec<String>>(kept).is_err());
    }
    for digits in ["d81d00", "d81900", "d81d6161", "c6d81d8101", "d81da10102"] {
        let bytes = unhex(digits);
        refuses::<u8>(&bytes, Data);
        refuses::<String>(&bytes, Data);
        refuses::<Vec<u8>>(&bytes, Data);
        refuses::<BTreeMap<u8, u8>>(&bytes, Data);
        refuses::<Tensor<DynTensor>>(&bytes, Data);
    }
    // What is shared, but not referred to, is only a value.
    assert_eq!(accepts::<String>(&unhex("d81c6161")), "a");
    // A billion laughs stay as small as they are written.
    let mut laughs = unhex("8b d81c 636c6f6c");
    for level in 0..10 {
        laughs.extend(
            [unhex("d81c 8a"), [unhex("d81d"), head(0, level)].concat().repeat(10)].concat(),
        );
    }
    accepts::<Value>(&laughs);
    is_well_formed(&laughs);
}

// 29
#[test]
fn embedded_items_stay_bytes() {
    let bytes = unhex("d818 45 8401020304");
    let kept = Value::Tag(24, Box::new(Value::Bytes(unhex("8401020304"))));
    assert_eq!(accepts::<Value>(&bytes), kept);
    assert_eq!(accepts::<ByteBuf>(&bytes), unhex("8401020304"));
    assert_eq!(accepts::<Vec<u8>>(&bytes), unhex("8401020304"));
    refuses::<(u8, u8, u8, u8)>(&bytes, Data);
    // Bytes that are no item at all.
    accepts::<Value>(&unhex("d818 42 ff1c"));
}

// 30
#[test]
fn forged_tags_of_this_crate_are_checked() {
    for content in [
        "00",
        "f6",
        "80",
        "a0",
        "4101",
        "8101",
        "84000000 00",
        "8463663332 00 6143 40",
        "8463663332 8101 6143 43000000",
        "8463663332 8101 6141 4400000000",
        "84 4101 8101 6143 4101",
        "8463663332 8101 00 4400000000",
        "8363663332 8101 6143",
        "8563663332 8101 6143 4400000000 00",
        "8463663332 8101 6143 d8554400000000",
        "8463663332 8120 6143 40",
        "84f6f6f6f6",
    ] {
        let bytes = [head(6, 0x5445_4e53), unhex(content)].concat();
        is_no_tensor(&crate::messages::support::hex(&bytes));
    }
    // A reference to a buffer has no place in a message.
    let reference = [head(6, 0x5442_5546), unhex("8463663332 8101 6143 00")].concat();
    is_no_tensor(&crate::messages::support::hex(&reference));
    // The tag of `Some` around what needs none, and in odd places.
    let some = head(6, 0x5453_4f4d);
    assert_eq!(accepts::<Option<u8>>(&[&some[..], &[7]].concat()), Some(7));
    assert!(accepts::<bool>(&[&some[..], &[0xf5]].concat()));
    let around = [some.clone(), tensor(40, &[1], 64, &[1])].concat();
    assert_eq!(accepts::<Tensor<DynTensor>>(&around).shape(), [1]);
    let map = [&[0xa1], &some[..], b"\x61a", &some, &[7]].concat();
    assert_eq!(accepts::<BTreeMap<String, Option<u8>>>(&map)["a"], Some(7));
    let text = [head(6, 0x5445_4e53), b"\x64TENS".to_vec()].concat();
    refused_by(&text, crate::messages::support::TYPED);
}

// 30
#[test]
fn values_that_hold_forged_tags_are_written_as_they_are() {
    // A reference to a buffer is what no message and no user may write.
    let reference = Value::Tag(0x5442_5546, Box::new(Value::Array(vec![Value::Integer(0)])));
    let error = tenarc::to_vec(&reference).unwrap_err();
    assert!(error.to_string().contains("TBUF"), "{error}");
    for tag in [0x5445_4e53, 40, 64, 85, 43001, 0x5453_4f4d] {
        for content in [Value::Null, Value::Text("$tenarc::Tensor".into()), Value::Array(vec![])] {
            let forged = Value::Array(vec![Value::Tag(tag, Box::new(content)), Value::Integer(1)]);
            let bytes = tenarc::to_vec(&forged).unwrap();
            is_well_formed(&bytes);
            // Refused, or what it was: never something else.
            if let Ok(read) = tenarc::from_slice::<Value>(&bytes) {
                assert_eq!(read, forged);
            }
        }
    }
}

macro_rules! renamed {
    ($($type:ident $name:literal;)*) => {
        $(
            #[derive(Serialize, Deserialize, Debug, PartialEq)]
            #[serde(rename = $name)]
            struct $type<T>(T);
        )*

        // 30
        #[test]
        fn user_types_with_the_names_of_this_crate_do_not_confuse_it() {
            $(
                try_renamed(&$type(7u8));
                try_renamed(&$type(-1.5f32));
                try_renamed(&$type("text".to_owned()));
                try_renamed(&$type(ByteBuf::from(vec![1, 2, 3])));
                try_renamed(&$type(vec![1u16, 2]));
                try_renamed(&$type(None::<u8>));
                try_renamed(&$type(Some(())));
                try_renamed(&$type(BTreeMap::from([("dtype".to_owned(), "u8".to_owned())])));
                try_renamed(&$type(Tensor(vec![1u8, 2])));
                try_renamed(&vec![$type($type(1u8)), $type($type(2u8))]);
            )*
        }
    };
}

renamed! {
    AsTensor "$tenarc::Tensor";
    AsNumbers "$tenarc::value::Numbers";
    AsTagged "$tenarc::Tagged";
    AsSimple "$tenarc::Simple";
    AsRaw "$tenarc::value::RawValue";
    AsValue "$tenarc::Value";
    Unknown "$tenarc::Nothing";
}

/// Either an error, or the same value back; and the next message is right.
fn try_renamed<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) {
    if let Ok(bytes) = tenarc::to_vec(value) {
        is_well_formed(&bytes);
        if let Ok(read) = tenarc::from_slice::<T>(&bytes) {
            assert_eq!(read, *value);
        }
        let _ = tenarc::from_reader::<_, T>(&bytes[..]);
    }
    if let Ok(made) = tenarc::to_value(value)
        && let Ok(read) = tenarc::from_value::<T>(made)
    {
        assert_eq!(read, *value);
    }
    for digits in ["01", "80", "8101", "f6", "a0", "6161", "4161", "d84041aa", "d828828101d84041aa"]
    {
        let _ = tenarc::from_slice::<T>(&unhex(digits));
    }
    let after = (Tensor(vec![1u8]), Value::Tag(9, Box::new(Value::Simple(99))), Some(Some(1)));
    let bytes = tenarc::to_vec(&after).unwrap();
    assert_eq!(bytes, unhex("83 d828828101d84041 01 c9f863 01"));
    let back: (Tensor<Vec<u8>>, Value, Option<Option<u8>>) = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(back, (after.0, after.1, after.2));
    let raw: Box<RawValue> = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(raw.as_bytes(), bytes);
}

// 30
#[test]
fn texts_that_look_like_the_names_of_this_crate_are_texts() {
    #[derive(Serialize, Deserialize, Debug, PartialEq)]
    enum Name {
        #[serde(rename = "$tenarc::Tensor")]
        Tensor(Vec<u8>),
        #[serde(rename = "$tenarc::Value")]
        Value,
    }
    for value in [Name::Tensor(vec![1]), Name::Value] {
        let bytes = tenarc::to_vec(&value).unwrap();
        assert_eq!(accepts::<Name>(&bytes), value);
        accepts::<Value>(&bytes);
    }
    let map = BTreeMap::from([("$tenarc::Tensor".to_owned(), 1u8)]);
    let bytes = tenarc::to_vec(&map).unwrap();
    assert_eq!(accepts::<BTreeMap<String, u8>>(&bytes), map);
    accepts::<Value>(&bytes);
    // The fields of a tensor in a map are a tensor only where one is asked for.
    let shown =
        unhex("a4 656474797065 627538 657368617065 8102 656f72646572 6143 6464617461 42 0102");
    assert!(matches!(accepts::<Value>(&shown), Value::Map(_)));
    assert_eq!(accepts::<Tensor<Vec<u8>>>(&shown).0, [1, 2]);
    assert!(matches!(accepts::<Value>(&named("u8", &[1], &[1])), Value::Tensor(_)));
}

// 4, 30
#[test]
fn simple_values_without_an_encoding_are_not_written() {
    for code in 0..=255 {
        let value = Value::Simple(code);
        match tenarc::to_vec(&value) {
            Ok(bytes) => {
                assert!(!(24..32).contains(&code));
                is_well_formed(&bytes);
            }
            Err(error) => {
                assert!((24..32).contains(&code), "{code}: {error}");
                assert_eq!(error.category(), Data);
            }
        }
    }
}

// 30
#[test]
fn options_of_what_looks_like_some_or_none_come_back() {
    let some = |inner| Value::Tag(0x5453_4f4d, Box::new(inner));
    for value in [some(Value::Null), some(some(Value::Null)), some(Value::Integer(1))] {
        let bytes = tenarc::to_vec(&Some(&value)).unwrap();
        assert_eq!(accepts::<Option<Value>>(&bytes), Some(value.clone()));
        let raw: Box<RawValue> = tenarc::from_slice(&tenarc::to_vec(&value).unwrap()).unwrap();
        let bytes = tenarc::to_vec(&Some(&raw)).unwrap();
        assert!(accepts::<Option<Box<RawValue>>>(&bytes) == Some(raw));
    }
    for value in [Value::Null, Value::Simple(23)] {
        let bytes = tenarc::to_vec(&Some(&value)).unwrap();
        assert_eq!(accepts::<Option<Value>>(&bytes), Some(value));
    }
}

// 30
#[test]
fn raw_references_pass_through_messages_and_stay_out_of_archives() {
    let reference = [head(6, 0x5442_5546), unhex("8463663332 8104 6143 00")].concat();
    let raw: &tenarc::value::RawValue = tenarc::from_slice(&reference).unwrap();
    assert_eq!(tenarc::to_vec(raw).unwrap(), reference);
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    let error = out.save(raw).unwrap_err();
    assert!(error.to_string().contains("TBUF"), "{error}");
}
