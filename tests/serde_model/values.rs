//! `Value`.

use super::*;

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

fn sample() -> Value {
    Value::Map(vec![
        (text("layers"), Value::Array(vec![Value::Map(vec![(text("w"), Value::F32(0.5))])])),
        (Value::Integer(7), text("by number")),
        (text("8"), text("by text")),
        (Value::Integer(8), text("hidden behind the text")),
        (text("a/b~c"), Value::Bool(true)),
        (text(""), Value::Null),
        (text("twice"), Value::Integer(1)),
        (text("twice"), Value::Integer(2)),
        (Value::Integer(-1), Value::Bytes(vec![1])),
        (text("tagged"), Value::Tag(100, Box::new(Value::Array(vec![Value::Simple(5)])))),
    ])
}

#[test]
fn pointers_find_what_they_name() {
    let value = sample();
    for (pointer, found) in [
        ("", Some(&value)),
        ("/layers/0/w", Some(&Value::F32(0.5))),
        ("/7", Some(&text("by number"))),
        ("/8", Some(&text("by text"))),
        ("/-1", Some(&Value::Bytes(vec![1]))),
        ("/a~1b~0c", Some(&Value::Bool(true))),
        ("/", Some(&Value::Null)),
        ("/twice", Some(&Value::Integer(1))),
        ("/tagged/0", Some(&Value::Simple(5))),
        ("/layers/1", None),
        ("/layers/00", None),
        ("/layers/+0", None),
        ("/layers/-1", None),
        ("/layers/-", None),
        ("/layers/w", None),
        ("/layers/0/w/0", None),
        ("/layers/", None),
        ("layers", None),
        ("/absent", None),
    ] {
        assert_eq!(value.pointer(pointer), found, "{pointer}");
    }
}

#[test]
fn accessors_give_only_what_is_there() {
    let value = sample();
    assert_eq!(value.get("twice").and_then(Value::as_integer), Some(1));
    assert_eq!(value.get("7"), None);
    assert_eq!(value.as_map().map(<[_]>::len), Some(10));
    assert_eq!(value.as_array(), None);
    assert_eq!(Value::Null.get("a"), None);
    assert_eq!(text("a").as_str(), Some("a"));
    assert_eq!(text("a").as_bytes(), None);
    assert_eq!(Value::Bytes(vec![1]).as_bytes(), Some(&[1][..]));
    assert_eq!(Value::F64(1.0).as_integer(), None);
    assert_eq!(Value::Array(vec![Value::Null]).as_array(), Some(&[Value::Null][..]));
    assert_eq!(Value::default(), Value::Null);
    assert!(Value::Null.as_tensor().is_none());
}

#[test]
fn values_of_every_kind_survive() {
    round_trip(&sample());
    for value in [
        Value::Null,
        Value::Bool(false),
        Value::Integer(i128::MIN),
        Value::Integer(i128::MAX),
        Value::Tag(2, Box::new(Value::Bytes(vec![0xff; 16]))),
        Value::Tag(3, Box::new(Value::Bytes(vec![0xff; 40]))),
        Value::F32(f32::MIN_POSITIVE),
        Value::F64(0.1),
        Value::Bytes(vec![0; 70_000]),
        text(&"é".repeat(40_000)),
        Value::Tag(u64::MAX, Box::new(Value::Tag(0, Box::new(Value::Null)))),
        Value::Map(vec![(Value::Map(vec![]), Value::Array(vec![]))]),
    ] {
        round_trip(&value);
        round_trip(&vec![value]);
    }
    for number in (0..=19).chain([23]).chain(32..=255) {
        round_trip(&Value::Simple(number));
    }
}

#[test]
fn simple_values_that_do_not_exist_are_refused() {
    // RFC 8949, section 3.3: 24 to 31 are reserved, two bytes of them are not well-formed.
    for number in 24..=31 {
        let error = tenarc::to_vec(&vec![Value::Simple(number)]).unwrap_err();
        assert_eq!((error.category(), error.path()), (Category::Data, "0".into()));
    }
}

#[test]
fn a_bignum_that_is_an_integer_here_is_one() {
    assert_eq!(decode::<Value>(&unhex("c2 41 05")), Value::Integer(5));
    assert_eq!(decode::<Value>(&unhex("c3 5f 41 01 41 00 ff")), Value::Integer(-257));
    let huge = Value::Tag(2, Box::new(Value::Bytes(vec![0xff; 16])));
    assert_eq!(decode::<Value>(&encode(&u128::MAX)), huge);
    assert_eq!(u128::deserialize(&huge).unwrap(), u128::MAX);
    assert_eq!(tenarc::to_value(&u128::MAX).unwrap(), huge);
}

#[test]
fn values_agree_with_json_of_the_same() {
    let json: serde_json::Value = serde_json::json!({
        "a": [1, -2, 0.5, null, true, "text", {"nested": {}}],
        "b": {"c": [], "d": u64::MAX},
    });
    let value = tenarc::to_value(&json).unwrap();
    assert_eq!(encode(&value), encode(&json));
    assert_eq!(tenarc::from_value::<serde_json::Value>(value.clone()).unwrap(), json);
    assert_eq!(decode::<serde_json::Value>(&encode(&value)), json);
    assert_eq!(serde_json::to_value(&value).unwrap(), json);
    assert_eq!(serde_json::from_value::<Value>(json).unwrap(), value);
}

#[test]
fn display_is_diagnostic_notation() {
    let value = Value::Array(vec![Value::Integer(1), text("a"), Value::Null, Value::F64(0.5)]);
    assert_eq!(value.to_string(), r#"[1, "a", null, 0.5_3]"#);
}

#[test]
fn strings_move_out_of_an_owned_value() {
    let long = "x".repeat(1000);
    let at = long.as_ptr();
    let moved: Vec<String> = tenarc::from_value(Value::Array(vec![Value::Text(long)])).unwrap();
    assert_eq!(moved[0].as_ptr(), at);
}
