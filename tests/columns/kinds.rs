//! One column of each kind, written by hand.

use serde::Deserialize;
use serde::de::IgnoredAny;
use tenarc::Value;
use tenarc_test_support::builder::{array, bytes, map, own, simple, tag, text, unsigned};
use tenarc_test_support::{decode, hex, unhex};

use crate::build::{columns, f32s, f64s, kind, null, one, texts, u8s, u16s, u64s};

/// The rows as values, which tell every difference.
#[track_caller]
fn rows(document: &[u8], notation: &str) {
    let value: Value = tenarc::from_slice(document).unwrap();
    assert_eq!(value.to_string(), notation);
    let values: Vec<Value> = decode(document);
    assert_eq!(Value::Array(values), value);
}

#[test]
fn the_example_of_the_specification() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Row {
        id: u64,
        tag: String,
    }
    let example = unhex("da54434f4c8202a2626964d84042070963746167836474657874d84042020163616263");
    let fields = [("id", u8s(&[7, 9])), ("tag", texts(u8s(&[2, 1]), "abc"))];
    assert_eq!(hex(&one(2, map(&fields))), hex(&example));
    let expected = [Row { id: 7, tag: "ab".into() }, Row { id: 9, tag: "c".into() }];
    assert_eq!(decode::<Vec<Row>>(&example), expected);
    rows(&example, r#"[{"id": 7, "tag": "ab"}, {"id": 9, "tag": "c"}]"#);
}

#[test]
fn numbers() {
    rows(&one(2, u8s(&[1, 255])), "[1, 255]");
    rows(&one(2, tag(72, &bytes(&[1, 255]))), "[1, -1]");
    rows(&one(1, tag(84, &bytes(&[0, 0x3c]))), "[1.0_2]");
    rows(&one(2, f32s(&[0.5, -0.0])), "[0.5_2, -0.0_2]");
    rows(&one(1, f64s(&[0.1])), "[0.1_3]");
    rows(&one(1, u64s(&[u64::MAX])), "[18446744073709551615]");
    assert_eq!(decode::<Vec<u64>>(&one(2, u8s(&[1, 255]))), [1, 255]);
    assert_eq!(decode::<Vec<i8>>(&one(1, u16s(&[100]))), [100]);
    assert_eq!(decode::<Vec<f32>>(&one(2, u16s(&[100, 3]))), [100.0, 3.0]);
    assert_eq!(decode::<Vec<u128>>(&one(1, u64s(&[u64::MAX]))), [u64::MAX.into()]);
    assert_eq!(decode::<(u8, i64)>(&one(2, u8s(&[1, 2]))), (1, 2));
}

#[test]
fn nulls_and_booleans() {
    rows(&one(3, kind("unit", &[])), "[null, null, null]");
    rows(
        &one(9, kind("bool", &[bytes(&[0b0000_0101, 1])])),
        "[true, false, true, false, false, false, false, false, true]",
    );
    rows(&one(0, kind("bool", &[bytes(&[])])), "[]");
    assert_eq!(decode::<Vec<()>>(&one(3, kind("unit", &[]))), [(); 3]);
    assert_eq!(decode::<Vec<Option<u8>>>(&one(2, kind("unit", &[]))), [None; 2]);
}

#[test]
fn texts_and_byte_strings() {
    rows(&one(3, texts(u8s(&[1, 0, 3]), "aßb")), r#"["a", "", "ßb"]"#);
    rows(&one(2, texts(unsigned(2), "abcd")), r#"["ab", "cd"]"#);
    rows(&one(2, kind("bytes", &[u64s(&[2, 1]), bytes(&[1, 2, 3])])), "[h'0102', h'03']");
    rows(&one(2, kind("bytes", &[unsigned(0), bytes(&[])])), "[h'', h'']");
    assert_eq!(decode::<Vec<char>>(&one(2, texts(u8s(&[1, 2]), "aß"))), ['a', 'ß']);
    // A byte string is also a sequence of numbers.
    let two = one(2, kind("bytes", &[u8s(&[2, 1]), bytes(&[1, 2, 3])]));
    assert_eq!(decode::<Vec<Vec<u16>>>(&two), [vec![1, 2], vec![3]]);
}

#[test]
fn optional_values() {
    let bits = |bits: u8, column| one(3, kind("option", &[bytes(&[bits]), column]));
    rows(&bits(0b101, u8s(&[7, 8])), "[7, null, 8]");
    rows(&bits(0b111, kind("unit", &[])), "[1414745933(null), 1414745933(null), 1414745933(null)]");
    let inner = kind("option", &[bytes(&[0b10]), u8s(&[5])]);
    rows(&bits(0b011, inner.clone()), "[1414745933(null), 5, null]");
    let nested = kind("option", &[bytes(&[0b11]), inner]);
    rows(&bits(0b110, nested.clone()), "[null, 1414745933(1414745933(null)), 5]");
    let nested = bits(0b110, nested);
    assert_eq!(
        decode::<Vec<Option<Option<Option<u8>>>>>(&nested),
        [None, Some(Some(None)), Some(Some(Some(5)))]
    );
    // An item that needs the mark.
    let items = kind("rows", &[array(&[null(), unsigned(1)])]);
    rows(&bits(0b110, items), "[null, 1414745933(null), 1]");
}

#[test]
fn fields_that_some_rows_do_not_have() {
    let a = kind("option", &[bytes(&[0b01]), u8s(&[7])]);
    let fields = [
        ("a", kind("present", &[bytes(&[0b0110]), a])),
        ("b", u8s(&[1, 2, 3, 4])),
        ("c", kind("present", &[bytes(&[0b1100]), texts(u8s(&[1, 2]), "xyz")])),
    ];
    let document = one(4, map(&fields));
    rows(
        &document,
        r#"[{"b": 1}, {"a": 7, "b": 2}, {"a": null, "b": 3, "c": "x"}, {"b": 4, "c": "yz"}]"#,
    );
    // A variant with content is a map of one entry.
    #[derive(Deserialize, PartialEq, Debug)]
    enum Letter {
        A(u8),
        B(String),
    }
    let variants = [
        ("A", kind("present", &[bytes(&[0b101]), u8s(&[1, 2])])),
        ("B", kind("present", &[bytes(&[0b010]), texts(unsigned(1), "b")])),
    ];
    let found = decode::<Vec<Letter>>(&one(3, map(&variants)));
    assert_eq!(found, [Letter::A(1), Letter::B("b".into()), Letter::A(2)]);
    #[derive(Deserialize, PartialEq, Debug)]
    struct Row {
        b: i64,
        #[serde(default = "nine")]
        a: Option<u8>,
    }
    #[allow(clippy::unnecessary_wraps)] // As serde calls it.
    fn nine() -> Option<u8> {
        Some(9)
    }
    let found = decode::<Vec<Row>>(&document);
    let found: Vec<_> = found.into_iter().map(|row| (row.b, row.a)).collect();
    assert_eq!(found, [(1, Some(9)), (2, Some(7)), (3, None), (4, Some(9))]);
}

#[test]
fn lists_tuples_and_maps() {
    rows(&one(3, kind("list", &[u8s(&[2, 0, 1]), u8s(&[1, 2, 3])])), "[[1, 2], [], [3]]");
    rows(&one(2, kind("array", &[unsigned(2), u8s(&[1, 2, 3, 4])])), "[[1, 2], [3, 4]]");
    rows(&one(2, kind("array", &[unsigned(0), kind("unit", &[])])), "[[], []]");
    let pairs = kind("array", &[unsigned(1), kind("array", &[unsigned(2), u8s(&[1, 2, 3, 4])])]);
    rows(&one(2, pairs), "[[[1, 2]], [[3, 4]]]");
    let nested = kind("list", &[u8s(&[1, 2]), u8s(&[1, 2, 3])]);
    rows(&one(2, kind("list", &[u8s(&[2, 0]), nested])), "[[[1], [2, 3]], []]");
    rows(
        &one(2, kind("tuple", &[array(&[u8s(&[1, 2]), f32s(&[0.5, 1.5])])])),
        "[[1, 0.5_2], [2, 1.5_2]]",
    );
    // No integer type holds both types.
    let wide = [u64s(&[u64::MAX, 2]), tag(72, &bytes(&[255, 1]))];
    rows(&one(2, kind("tuple", &[array(&wide)])), "[[18446744073709551615, -1], [2, 1]]");
    // Of no rows, any kind can say anything.
    rows(&one(0, kind("list", &[u8s(&[]), u8s(&[])])), "[]");
    rows(&one(0, kind("array", &[unsigned(7), u8s(&[])])), "[]");
    rows(&one(2, map(&[])), "[{}, {}]");
    let entries = [u8s(&[1, 0, 2]), texts(u8s(&[1, 1, 1]), "abc"), u8s(&[1, 2, 3])];
    rows(&one(3, kind("map", &entries)), r#"[{"a": 1}, {}, {"b": 2, "c": 3}]"#);
    // A unit is read from an empty array, too.
    assert_eq!(decode::<Vec<()>>(&one(2, kind("array", &[unsigned(0), u8s(&[])]))), [(); 2]);
}

#[test]
fn enums() {
    #[derive(Deserialize, PartialEq, Debug, Clone)]
    enum Any {
        A,
        B(u8),
        C { x: u8, y: bool },
        D(u8, String),
    }
    let names = array(&["A", "B", "C", "D", "unused"].map(text));
    let contents = array(&[
        null(),
        u8s(&[5, 6]),
        map(&[("x", u8s(&[1])), ("y", kind("bool", &[bytes(&[1])]))]),
        kind("tuple", &[array(&[u8s(&[9]), texts(unsigned(1), "z")])]),
        u8s(&[]),
    ]);
    let codes = [1, 0, 3, 1, 2];
    let document = one(5, kind("enum", &[u8s(&codes), names.clone(), contents.clone()]));
    rows(&document, r#"[{"B": 5}, "A", {"D": [9, "z"]}, {"B": 6}, {"C": {"x": 1, "y": true}}]"#);
    let expected = [Any::B(5), Any::A, Any::D(9, "z".into()), Any::B(6), Any::C { x: 1, y: true }];
    assert_eq!(decode::<Vec<Any>>(&document), expected);
    let wide = u16s(&codes.map(u16::from));
    assert_eq!(decode::<Vec<Any>>(&one(5, kind("enum", &[wide, names, contents]))), expected);

    let units = one(3, kind("enum", &[u8s(&[1, 0, 1]), array(&[text("B"), text("A")])]));
    rows(&units, r#"["A", "B", "A"]"#);
    assert_eq!(decode::<Vec<String>>(&units), ["A", "B", "A"]);
    // Enums from columns of texts, structs of one field, and maps.
    assert_eq!(decode::<Vec<Any>>(&one(2, texts(unsigned(1), "AA"))), [Any::A, Any::A]);
    assert_eq!(decode::<Vec<Any>>(&one(1, map(&[("B", u8s(&[1]))]))), [Any::B(1)]);
    let entries = [unsigned(1), texts(unsigned(1), "B"), u8s(&[4])];
    assert_eq!(decode::<Vec<Any>>(&one(1, kind("map", &entries))), [Any::B(4)]);
    // A unit variant with a content that is nothing.
    assert_eq!(decode::<Vec<Any>>(&one(1, map(&[("A", kind("unit", &[]))]))), [Any::A]);
}

#[test]
fn anything() {
    let items = [unsigned(1), text("x"), null(), unhex("9f01ff"), unhex("c101"), map(&[])];
    rows(&one(6, kind("rows", &[array(&items)])), r#"[1, "x", null, [1], 1(1), {}]"#);
    // Columns in the items, in a list.
    let inner = one(2, u8s(&[1, 2]));
    let items = kind("rows", &[array(&[inner.clone(), array(&[unsigned(3)])])]);
    rows(&one(1, kind("array", &[unsigned(2), items])), "[[[1, 2], [3]]]");
    // Columns as an ordinary value.
    let document = map(&[("a", inner)]);
    let value: Value = tenarc::from_slice(&document).unwrap();
    assert_eq!(value.to_string(), r#"{"a": [1, 2]}"#);
}

#[test]
fn groups_follow_each_other() {
    rows(&columns(&[]), "[]");
    rows(
        &columns(&[(0, u8s(&[])), (2, u8s(&[1, 2])), (0, kind("unit", &[])), (1, f32s(&[3.0]))]),
        "[1, 2, 3.0_2]",
    );
    let mut open = vec![0x9f];
    open.extend([unsigned(1), u8s(&[1]), unsigned(0), u8s(&[])].concat());
    open.push(0xff);
    rows(&own(*b"TCOL", &open), "[1]");
    // Read to the end when the visitor has all it wants.
    let pair: (u8, u8) = decode(&columns(&[(1, u8s(&[1])), (1, u8s(&[2])), (0, u8s(&[]))]));
    assert_eq!(pair, (1, 2));
    let pair = array(&[own(*b"TCOL", &open), text("next")]);
    assert_eq!(decode::<((u8,), String)>(&pair), ((1,), "next".into()));
    assert_eq!(decode::<(IgnoredAny, String)>(&pair).1, "next");
}

#[test]
fn in_buffers() {
    let reference = |number: u64| own(*b"TBUF", &array(&[unsigned(number)]));
    let typed = |dtype: &str, number: u64| own(*b"TBUF", &array(&[text(dtype), unsigned(number)]));
    let fields = [
        ("number", typed("u8", 0)),
        ("text", kind("text", &[typed("u8", 0), reference(1)])),
        ("bool", kind("bool", &[reference(2)])),
        ("option", kind("option", &[reference(2), typed("u8", 2)])),
        ("field", kind("present", &[reference(2), kind("unit", &[])])),
        ("bytes", kind("bytes", &[unsigned(1), reference(0)])),
        ("enum", kind("enum", &[typed("u8", 0), array(&[text("A"), text("B"), text("C")])])),
    ];
    let archive = simple(one(2, map(&fields)), &[&[1, 2], b"abc", &[2]]);
    let expected = concat!(
        r#"[{"number": 1, "text": "a", "bool": false, "option": null, "#,
        r#""bytes": h'01', "enum": "B"}, "#,
        r#"{"number": 2, "text": "bc", "bool": true, "option": 2, "field": null, "bytes": h'02', "enum": "C"}]"#
    );
    let mut stream = tenarc::IArchive::new(&archive[..]).unwrap();
    assert_eq!(stream.load::<Value>().unwrap().to_string(), expected);
    let archive = tenarc::Archive::new(&archive[..]).unwrap();
    assert_eq!(archive.load::<Value>().unwrap().to_string(), expected);
    #[derive(Deserialize)]
    struct Row<'a> {
        text: &'a str,
        #[serde(borrow)]
        bytes: &'a serde_bytes::Bytes,
    }
    let rows: Vec<Row<'_>> = archive.view().unwrap();
    assert_eq!((rows[1].text, &rows[1].bytes[..]), ("bc", &[2][..]));
}
