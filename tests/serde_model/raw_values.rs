//! `RawValue`.

use super::*;

#[derive(Serialize, Deserialize, Debug)]
struct Envelope<'a> {
    id: u8,
    #[serde(borrow)]
    content: &'a RawValue,
    after: u8,
}

#[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
struct OwnedEnvelope {
    id: u8,
    content: Box<RawValue>,
    after: u8,
}

/// Items whose encoding only a raw value keeps.
const ITEMS: &[&str] = &[
    "05",
    "18 05",
    "1b 0000000000000005",
    "f9 3c00",
    "f6",
    "f7",
    "f0",
    "da54534f4d f6",
    "5f 41 00 40 ff",
    "7f 60 ff",
    "9f 01 9f ff ff",
    "bf 01 02 01 03 ff",
    "c2 42 0001",
    "d9d9f7 c0 60",
    "d855 43 000000",
];

#[test]
fn items_are_kept_byte_for_byte_borrowed_and_owned() {
    for item in ITEMS {
        let mut bytes = unhex("a3 626964 01 67636f6e74656e74");
        bytes.extend(unhex(item));
        bytes.extend(unhex("656166746572 02"));

        let borrowed: Envelope = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(hex(borrowed.content.as_bytes()), item.replace(' ', ""));
        assert!(bytes.as_ptr_range().contains(&borrowed.content.as_bytes().as_ptr()));
        assert_eq!((borrowed.id, borrowed.after), (1, 2));
        assert_eq!(encode(&borrowed), bytes);

        let owned: OwnedEnvelope = decode(&bytes);
        assert_eq!(hex(owned.content.as_bytes()), item.replace(' ', ""));
        assert_eq!(encode(&owned), bytes);
    }
}

#[test]
fn large_items_are_kept_from_readers_too() {
    let inner = encode(&("x".repeat(100_000), ByteBuf::from(vec![1; 70_000]), vec![0.5; 9000]));
    let raw = RawValue::from_bytes(&inner).unwrap().to_owned();
    let bytes = encode(&(1, &raw, "end"));
    let (_, back, end): (u8, Box<RawValue>, String) = decode(&bytes);
    assert_eq!((back, end.as_str()), (raw, "end"));
}

#[test]
fn options_of_raw_values() {
    let raw = |item: &str| RawValue::from_bytes(&unhex(item)).unwrap().to_owned();
    for item in ITEMS {
        for value in [Some(raw(item)), None] {
            let bytes = encode(&(&value, 1));
            let (back, _): (Option<Box<RawValue>>, u8) = decode(&bytes);
            assert_eq!(back, value, "{item}");
            let twice = Some(value);
            let back: Option<Option<Box<RawValue>>> = decode(&encode(&twice));
            assert_eq!(back, twice, "{item}");
        }
    }
    assert_eq!(hex(&encode(&Some(raw("f6")))), "da54534f4df6");
    assert_eq!(hex(&encode(&Some(raw("05")))), "05");
}

#[test]
fn only_whole_well_formed_items_are_taken() {
    for (item, category) in [
        ("", Category::Eof),
        ("18", Category::Eof),
        ("82 01", Category::Eof),
        ("9f 01", Category::Eof),
        ("ff", Category::Syntax),
        ("1c", Category::Syntax),
        ("61 ff", Category::Syntax),
        ("01 02", Category::Syntax),
    ] {
        let error = RawValue::from_bytes(&unhex(item)).unwrap_err();
        assert_eq!(error.category(), category, "{item}: {error}");
    }
    assert_eq!(refuse::<(u8, Box<RawValue>)>(&unhex("82 01 82 00")).category(), Category::Eof);
    // The path of a fault inside.
    let error = refuse::<BTreeMap<String, Box<RawValue>>>(&unhex("a1 6161 82 00 1c"));
    assert_eq!((error.path(), error.category()), ("a".into(), Category::Syntax));
}

#[test]
fn raw_values_decode_later_and_pass_through_values() {
    let raw: Box<RawValue> = decode(&encode(&(1, "a")));
    assert_eq!(raw.get::<(u8, &str)>().unwrap(), (1, "a"));
    assert_eq!(raw.get::<u8>().unwrap_err().category(), Category::Mismatch);
    assert_eq!(format!("{raw:?}"), r#"RawValue([1, "a"])"#);

    let value = tenarc::to_value(&raw).unwrap();
    assert_eq!(value, Value::Array(vec![Value::Integer(1), Value::Text("a".into())]));
    assert_eq!(tenarc::from_value::<Box<RawValue>>(value).unwrap(), raw);
    let some = tenarc::to_value(&Some(RawValue::from_bytes(&[0xf6]).unwrap())).unwrap();
    assert_eq!(hex(&encode(&some)), "da54534f4df6");
}

#[test]
fn values_are_encoded_into_raw_values() {
    let tensor = tenarc::to_value(&tenarc::Tensor(vec![1u8, 2])).unwrap();
    let value = Value::Array(vec![tensor, Value::Tag(0, Box::new("x".into()))]);
    let content = RawValue::from_bytes(&encode(&value)).unwrap().to_owned();
    assert_eq!(Box::<RawValue>::deserialize(&value).unwrap(), content);
    let fields = [("id", 1.into()), ("content", value), ("after", 2.into())];
    let envelope: OwnedEnvelope = tenarc::from_value(Value::from_iter(fields)).unwrap();
    assert_eq!(envelope, OwnedEnvelope { id: 1, content, after: 2 });

    let error = <&RawValue>::deserialize(&Value::Null).unwrap_err().to_string();
    assert!(
        error.contains("a value that is not encoded, expected an encoded item in a slice"),
        "{error}"
    );
}

#[test]
fn a_value_that_cannot_be_encoded_is_no_raw_value() {
    let deep = (0..129).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    for (value, category) in [(deep, Category::Limit), (Value::Simple(24), Category::Data)] {
        let expected = tenarc::to_vec(&value).unwrap_err();
        let error = tenarc::from_value::<Box<RawValue>>(value).unwrap_err();
        assert_eq!((error.category(), error.to_string()), (category, expected.to_string()));
    }
}

#[test]
fn a_raw_value_cannot_be_borrowed_from_a_reader() {
    #[derive(Debug)]
    struct Taken;
    impl<'de> Deserialize<'de> for Taken {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            <&'de RawValue>::deserialize(deserializer).map(|_| Self)
        }
    }
    let error = tenarc::from_reader::<_, Taken>(&[0x01][..]).unwrap_err();
    assert_eq!(error.category(), Category::Mismatch);
    assert!(error.to_string().contains("an encoded item in a slice"), "{error}");
}
