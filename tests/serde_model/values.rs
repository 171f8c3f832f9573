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
        ("/twice", Some(&Value::Integer(2))),
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
    assert_eq!(value.get("twice").and_then(Value::as_i128), Some(2));
    assert_eq!(value.get("7"), None);
    assert_eq!(value.as_map().map(<[_]>::len), Some(10));
    assert_eq!(value.as_array(), None);
    assert_eq!(Value::Null.get("a"), None);
    assert_eq!(text("a").as_str(), Some("a"));
    assert_eq!(text("a").as_bytes(), None);
    assert_eq!(Value::Bytes(vec![1]).as_bytes(), Some(&[1][..]));
    assert_eq!(Value::F64(1.0).as_i128(), None);
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
    assert_eq!(text("a\"\n").to_string(), r#""a\"\n""#);
    for value in [sample(), Value::F32(f32::NAN), Value::F64(-f64::INFINITY), Value::F32(1e30)] {
        assert_eq!(value.to_string(), tenarc::diag::to_string(&encode(&value)).unwrap());
    }
    let negative = Value::Tag(3, Box::new(Value::Bytes(vec![0xff; 16])));
    assert_eq!(negative.to_string(), "-340282366920938463463374607431768211456");
    let tagged = Value::Tag(2, Box::new(Value::Bytes(vec![0xff; 17])));
    assert_eq!(tagged.to_string(), format!("2(h'{}')", "ff".repeat(17)));
}

#[test]
fn display_tells_tensors_by_dtype_and_shape() {
    let tensor =
        tenarc::to_value(&tenarc::Tensor(ndarray::Array2::<f32>::zeros((1000, 2)))).unwrap();
    let value: Value = [("w", tensor)].into_iter().collect();
    assert_eq!(value.to_string(), r#"{"w": f32[1000, 2]}"#);
}

#[test]
fn kinds_and_contents() {
    let all = [
        Value::Null,
        Value::Bool(true),
        Value::Integer(-7),
        Value::F32(0.5),
        Value::F64(0.1),
        Value::Bytes(vec![1]),
        text("a"),
        Value::Array(vec![]),
        Value::Map(vec![]),
        Value::Simple(5),
    ];
    let kinds = |is: fn(&Value) -> bool| {
        all.iter().map(|value| if is(value) { 'x' } else { '.' }).collect::<String>()
    };
    assert_eq!(kinds(Value::is_null), "x.........");
    assert_eq!(kinds(Value::is_bool), ".x........");
    assert_eq!(kinds(Value::is_integer), "..x.......");
    assert_eq!(kinds(Value::is_number), "..xxx.....");
    assert_eq!(kinds(Value::is_bytes), ".....x....");
    assert_eq!(kinds(Value::is_string), "......x...");
    assert_eq!(kinds(Value::is_array), ".......x..");
    assert_eq!(kinds(Value::is_map), "........x.");
    assert_eq!(kinds(Value::is_tensor), "..........");
    assert_eq!(kinds(|value| value.as_bool().is_some()), ".x........");
    assert_eq!(kinds(|value| value.as_i64().is_some()), "..x.......");
    assert_eq!(kinds(|value| value.as_u64().is_some()), "..........");
    assert_eq!(kinds(|value| value.as_f64().is_some()), "..xxx.....");
}

#[test]
fn numbers_are_given_where_they_fit() {
    let max = Value::from(u64::MAX);
    assert_eq!(
        (max.as_u64(), max.as_i64(), max.as_i128()),
        (Some(u64::MAX), None, Some(u64::MAX.into()))
    );
    assert_eq!(max.as_f64(), Some(18_446_744_073_709_551_616.0));
    assert_eq!(Value::from(i64::MIN).as_i64(), Some(i64::MIN));
    assert_eq!(Value::from(-3).as_f64(), Some(-3.0));
    assert_eq!(Value::F32(0.5).as_f64(), Some(0.5));
    assert_eq!(Value::F64(3.0).as_i64(), None);
    let huge = Value::from(u128::MAX);
    assert_eq!((huge.as_u128(), huge.as_i128()), (Some(u128::MAX), None));
    assert_eq!(huge.as_f64(), Some(2f64.powi(128)));
    let least = Value::Tag(3, Box::new(Value::Bytes(vec![0xff; 16])));
    assert_eq!((least.as_f64(), least.as_i128()), (Some(-(2f64.powi(128))), None));
    // A bignum that is short, as another writer may make it.
    assert_eq!(Value::Tag(2, Box::new(Value::Bytes(vec![5]))).as_i64(), Some(5));
}

#[test]
fn indexes_read_as_those_of_json() {
    let value = sample();
    assert_eq!(value["layers"][0]["w"], Value::F32(0.5));
    assert_eq!(value["tagged"][0], Value::Simple(5));
    assert_eq!(value["twice"], Value::Integer(2));
    assert_eq!(value["layers"][7]["w"], Value::Null);
    assert_eq!(value[0], Value::Null);
    assert_eq!(value[String::from("absent")], Value::Null);
    assert_eq!(value.get(0), None);
    assert_eq!(value["layers"].get("0"), None);
    assert_eq!(value["tagged"].get(0), Some(&Value::Simple(5)));
}

#[test]
fn values_change_in_place() {
    let mut value = Value::Null;
    value["a"]["b"] = vec![1, 2].into();
    value["a"]["b"][1] = "two".into();
    assert_eq!(value.to_string(), r#"{"a": {"b": [1, "two"]}}"#);
    *value.pointer_mut("/a/b/0").unwrap() = Value::Null;
    assert_eq!(value.pointer_mut("/a/b/2"), None);
    assert_eq!(value.pointer_mut("a"), None);
    assert_eq!(value["a"].get_mut("c"), None);
    *value["a"]["b"].get_mut(1).unwrap() = true.into();
    value["a"]["b"].as_array_mut().unwrap().push(Value::Bytes(vec![]));
    value.as_map_mut().unwrap().push((7.into(), ().into()));
    *value.pointer_mut("/7").unwrap() = 0.5f32.into();
    assert_eq!(value.to_string(), r#"{"a": {"b": [null, true, h'']}, 7: 0.5_2}"#);
    assert_eq!(value["a"]["b"][1].take(), Value::Bool(true));
    assert!(value["a"]["b"][1].is_null());
    let mut tagged = sample();
    tagged["tagged"][0] = 1.into();
    assert_eq!(tagged["tagged"].to_string(), "100([1])");
}

#[test]
#[should_panic(expected = "index 1 is out of bounds: the array has 1 elements")]
fn elements_are_not_added_by_their_numbers() {
    Value::from([1])[1] = 2.into();
}

#[test]
#[should_panic(expected = "cannot index an integer with the key `a`")]
fn entries_are_added_to_maps_only() {
    Value::from(1)["a"] = 2.into();
}

#[test]
fn values_are_made_from_what_they_hold() {
    assert_eq!(Value::from(3usize), Value::Integer(3));
    assert_eq!(Value::from(-3isize), Value::Integer(-3));
    assert_eq!(Value::from(i128::MIN), Value::Integer(i128::MIN));
    assert_eq!(Value::from(u128::MAX), tenarc::to_value(&u128::MAX).unwrap());
    assert_eq!(Value::from(Cow::Borrowed("a")), text("a"));
    assert_eq!(Value::from(vec![1u8]), Value::Array(vec![Value::Integer(1)]));
    assert_eq!(Value::from(&[1u8][..]), Value::Array(vec![Value::Integer(1)]));
    let map: Value = BTreeMap::from([(2u8, "b"), (1, "a")]).into_iter().collect();
    assert_eq!(map, tenarc::to_value(&BTreeMap::from([(2u8, "b"), (1, "a")])).unwrap());
    for option in [None, Some(None), Some(Some(None)), Some(Some(Some(1)))] {
        assert_eq!(Value::from(option), tenarc::to_value(&option).unwrap(), "{option:?}");
    }
}

#[test]
fn strings_move_out_of_an_owned_value() {
    let long = "x".repeat(1000);
    let at = long.as_ptr();
    let moved: Vec<String> = tenarc::from_value(Value::Array(vec![Value::Text(long)])).unwrap();
    assert_eq!(moved[0].as_ptr(), at);
}
