//! Characters, text and bytes, owned and borrowed.

use super::*;

#[test]
fn characters_of_every_length() {
    for (value, expected) in
        [('a', "6161"), ('\0', "6100"), ('ß', "62c39f"), ('水', "63e6b0b4"), ('🎈', "64f09f8e88")]
    {
        round_trip_as(&value, expected);
    }
    for value in ['\u{7f}', '\u{80}', '\u{7ff}', '\u{800}', '\u{d7ff}', '\u{e000}', char::MAX] {
        round_trip(&value);
    }
    for text in ["", "ab", "e\u{301}"] {
        assert_eq!(refuse::<char>(&encode(text)).category(), Category::Mismatch);
    }
    assert_eq!(refuse::<char>(&encode(&97)).category(), Category::Mismatch);
}

#[test]
fn texts_around_every_width_of_their_length() {
    // Also around the sizes of the buffers that readers and writers use.
    for len in [0, 1, 23, 24, 255, 256, 16_383, 16_384, 16_385, 65_535, 65_536, 70_000] {
        round_trip(&"x".repeat(len));
        round_trip(&("ä".repeat(len / 2), len));
    }
    round_trip_as(&String::from("IETF"), "64 49455446");
}

#[test]
fn byte_strings_around_every_width_of_their_length() {
    for len in [0, 1, 23, 24, 255, 256, 16_384, 65_535, 65_536, 300_000] {
        let bytes: Vec<u8> = (0..len).map(|i: usize| i.to_le_bytes()[0]).collect();
        round_trip(&ByteBuf::from(bytes));
    }
    round_trip_as(&ByteBuf::from([1, 2, 3]), "43 010203");
    round_trip_as(&ByteArray::new([9u8; 4]), "44 09090909");
    assert_eq!(hex(&encode(Bytes::new(b"ab"))), "426162");
}

#[test]
fn byte_strings_and_sequences_of_bytes_stand_in_for_each_other() {
    assert_eq!(decode::<Vec<u8>>(&unhex("43 010203")), [1, 2, 3]);
    assert_eq!(decode::<[u8; 3]>(&unhex("43 010203")), [1, 2, 3]);
    assert_eq!(decode::<Vec<u16>>(&unhex("43 0102ff")), [1, 2, 255]);
    assert_eq!(decode::<ByteBuf>(&unhex("83 010203")), ByteBuf::from([1, 2, 3]));
    assert_eq!(decode::<ByteBuf>(&unhex("9f 010203 ff")), ByteBuf::from([1, 2, 3]));
    assert_eq!(decode::<ByteBuf>(&unhex("d840 43 010203")), ByteBuf::from([1, 2, 3]));
    assert_eq!(decode::<ByteBuf>(&unhex("5f 41 01 40 42 0203 ff")), ByteBuf::from([1, 2, 3]));
}

#[test]
fn byte_strings_must_fit_the_tuple_they_are_read_into() {
    for (bytes, what) in [("43 010203", "more"), ("41 01", "fewer")] {
        let bytes = unhex(bytes);
        assert_eq!(refuse::<(u8, u8)>(&bytes).category(), Category::Mismatch, "{what}");
        let value: Value = tenarc::from_slice(&bytes).unwrap();
        assert!(<(u8, u8)>::deserialize(&value).is_err(), "{what}");
        assert!(tenarc::from_value::<(u8, u8)>(value).is_err(), "{what}");
    }
}

#[test]
fn texts_and_bytes_are_not_mixed_up() {
    assert_eq!(refuse::<String>(&encode(Bytes::new(b"ab"))).category(), Category::Mismatch);
    assert_eq!(refuse::<ByteBuf>(&encode("ab")).category(), Category::Mismatch);
    assert_eq!(refuse::<Vec<u8>>(&encode("ab")).category(), Category::Mismatch);
}

#[test]
fn text_is_utf8_or_refused() {
    for bytes in ["61 ff", "62 c328", "63 eda080", "64 f4908080", "7f 61 c3 61 9f ff"] {
        assert_eq!(refuse::<String>(&unhex(bytes)).category(), Category::Syntax, "{bytes}");
        assert_eq!(refuse::<Value>(&unhex(bytes)).category(), Category::Syntax, "{bytes}");
        assert_eq!(refuse::<IgnoredAny>(&unhex(bytes)).category(), Category::Syntax, "{bytes}");
    }
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Borrowing<'a> {
    text: &'a str,
    bytes: &'a [u8],
    #[serde(borrow)]
    cow: Cow<'a, str>,
    #[serde(borrow)]
    cow_bytes: Cow<'a, [u8]>,
    #[serde(borrow)]
    list: Vec<&'a str>,
    option: Option<&'a str>,
}

#[test]
fn borrows_from_a_slice_and_from_a_value() {
    let original = Borrowing {
        text: "text",
        bytes: b"bytes",
        cow: "cow".into(),
        cow_bytes: Cow::Borrowed(b"\x00\xff"),
        list: vec!["a", "b"],
        option: Some("c"),
    };
    // A `&[u8]` field is written as a sequence by serde: `serde_bytes` makes it bytes.
    let bytes = {
        let Borrowing { text, cow, cow_bytes, list, option, .. } = &original;
        let entries: [(&str, Value); 6] = [
            ("text", tenarc::to_value(text).unwrap()),
            ("bytes", Value::Bytes(original.bytes.to_vec())),
            ("cow", tenarc::to_value(cow).unwrap()),
            ("cow_bytes", Value::Bytes(cow_bytes.to_vec())),
            ("list", tenarc::to_value(list).unwrap()),
            ("option", tenarc::to_value(option).unwrap()),
        ];
        encode(&Value::Map(entries.map(|(k, v)| (Value::Text(k.into()), v)).into()))
    };
    let inside = |part: &[u8]| bytes.as_ptr_range().contains(&part.as_ptr());
    let back: Borrowing = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(back, original);
    assert!(inside(back.text.as_bytes()) && inside(back.bytes));
    assert!(matches!(back.cow, Cow::Borrowed(text) if inside(text.as_bytes())));
    assert!(matches!(back.cow_bytes, Cow::Borrowed(bytes) if inside(bytes)));
    assert!(back.list.iter().all(|text| inside(text.as_bytes())));

    let value: Value = tenarc::from_slice(&bytes).unwrap();
    let back = Borrowing::deserialize(&value).unwrap();
    assert_eq!(back, original);
    let text = value.get("text").and_then(Value::as_str).unwrap();
    assert_eq!(back.text.as_ptr(), text.as_ptr());
}

#[test]
fn what_lies_in_chunks_cannot_be_borrowed_but_a_cow_takes_it() {
    #[derive(Deserialize, Debug)]
    struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

    let chunks = unhex("7f 61 61 61 62 ff");
    let error = tenarc::from_slice::<&str>(&chunks).unwrap_err();
    assert_eq!(error.category(), Category::Mismatch);
    let Name(name) = tenarc::from_slice(&chunks).unwrap();
    assert!(matches!(name, Cow::Owned(ref name) if name == "ab"));
    assert_eq!(decode::<String>(&chunks), "ab");
}
