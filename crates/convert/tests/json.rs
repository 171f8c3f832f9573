//! JSON: beside `serde_json`, with tensors, into archives and back.

use std::fs;

use half::{bf16, f16};
use ndarray::{Array2, array};
use num_complex::Complex;
use proptest::prelude::*;
use tenarc::archive::SaveOptions;
use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Tensor, Value};
use tenarc_convert::Format;
use tenarc_convert::json::{self, Options};

fn read(text: &str) -> tenarc::Result<Value> {
    json::read(text.as_bytes())
}

fn written(value: &Value) -> String {
    let mut bytes = Vec::new();
    json::write(&mut bytes, value).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn text(text: &str) -> Value {
    Value::Text(text.to_owned())
}

fn tensor(tensor: impl Into<DynTensor>) -> Value {
    Value::Tensor(Box::new(tensor.into()))
}

#[test]
fn every_kind_of_value_is_written_and_read() {
    let cases = [
        ("null", Value::Null),
        ("true", Value::Bool(true)),
        ("false", Value::Bool(false)),
        ("0", Value::Integer(0)),
        ("9007199254740993", Value::Integer((1 << 53) + 1)),
        ("-170141183460469231731687303715884105728", Value::Integer(i128::MIN)),
        (
            "340282366920938463463374607431768211455",
            Value::Tag(2, Box::new(Value::Bytes(vec![0xff; 16]))),
        ),
        ("0.1", Value::F64(0.1)),
        ("-0.0", Value::F64(-0.0)),
        ("1e300", Value::F64(1e300)),
        ("5e-324", Value::F64(5e-324)),
        (r#""a\"\\\n\r\t\u0000\u001fé/😀""#, text("a\"\\\n\r\t\0\u{1f}é/😀")),
        ("[]", Value::Array(vec![])),
        ("[[1],null]", Value::Array(vec![Value::Array(vec![Value::Integer(1)]), Value::Null])),
        ("{}", Value::Map(vec![])),
        (
            r#"{"b":1,"":2}"#,
            Value::Map(vec![(text("b"), Value::Integer(1)), (text(""), Value::Integer(2))]),
        ),
    ];
    for (json, value) in cases {
        assert_eq!(written(&value), json);
        assert_eq!(written(&read(json).unwrap()), json);
        assert_eq!(read(json).unwrap(), value, "{json}");
    }
}

#[test]
fn other_ways_to_write_the_same_are_read() {
    let spaced = " {\t\"a\" :\r\n[ 1 , 2.0e0 ] }\n";
    assert_eq!(written(&read(spaced).unwrap()), r#"{"a":[1,2.0]}"#);
    assert_eq!(read(r#""\u00e9\ud83d\ude00\/\b\f""#).unwrap(), text("é😀/\u{8}\u{c}"));
    assert_eq!(read("1E+2").unwrap(), Value::F64(100.0));
    let Value::F64(zero) = read("-0").unwrap() else { panic!() };
    assert!(zero.is_sign_negative());
}

#[test]
fn what_is_no_json_is_refused_where_it_stands() {
    let syntax = [
        ("{]", 1),
        ("[1,]", 3),
        ("[,1]", 1),
        ("[1 2]", 3),
        ("{\"a\"}", 4),
        ("{\"a\":1,}", 7),
        ("{1:2}", 1),
        ("nul}", 3),
        ("01", 0),
        ("1.", 0),
        (".5", 0),
        ("+1", 0),
        ("-", 0),
        ("1e", 0),
        ("1-2", 0),
        ("0x1", 1),
        ("NaN", 0),
        ("'a'", 0),
        ("\"\t\"", 1),
        (r#""\x""#, 2),
        (r#""\ud800""#, 2),
        (r#""\udc00""#, 2),
        (r#""\ud800\u0041""#, 2),
        (r#""\u12g4""#, 5),
        ("1 2", 1),
        ("{}}", 2),
        ("1\u{feff}", 1),
    ];
    for (text, at) in syntax {
        let error = read(text).unwrap_err();
        assert_eq!(
            (error.category(), error.offset()),
            (Category::Syntax, Some(at)),
            "{text}: {error}"
        );
    }
    let error = json::read(&b"\"\xff\""[..]).unwrap_err();
    assert!(error.to_string().contains("UTF-8"), "{error}");
    let data = [
        (r#"{"a":1,"a":2}"#, "two entries"),
        (r#"[{"a":1,"\u0061":2}]"#, "two entries"),
        ("1e309", "too large for a 64-bit float"),
        ("340282366920938463463374607431768211456", "128 bits"),
        ("-170141183460469231731687303715884105729", "128 bits"),
    ];
    for (text, why) in data {
        let error = read(text).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        let is_twice = why == "two entries";
        let expected = if is_twice { Category::Data } else { Category::Unsupported };
        assert_eq!(error.category(), expected);
    }
    assert_eq!(read("").unwrap_err().category(), Category::Eof);
    assert_eq!(read(&"1".repeat(5000)).unwrap_err().category(), Category::Limit);
}

/// Each number is just above the middle between two. If it lost its last bits first, it would become the lower one.
#[test]
fn floats_of_16_bits_are_rounded_once() {
    for (text, expected) in [
        (r#"{"dtype":"bf16","shape":[1],"data":[0.020080579444766045]}"#, 0x3ca5u16),
        (r#"{"dtype":"f16","shape":[1],"data":[1.0004882812500002]}"#, 0x3c01),
    ] {
        let found = read(text).unwrap();
        assert_eq!(found.as_tensor().unwrap().le_bytes()[..], expected.to_le_bytes(), "{text}");
    }
}

#[test]
fn tensors_are_written_as_serde_json_writes_them() {
    fn check(value: impl Into<DynTensor>, expected: &str) {
        let tensor = value.into();
        let theirs = serde_json::to_string(&Tensor(tensor.clone())).unwrap();
        let ours = written(&self::tensor(tensor.clone()));
        assert_eq!(ours, expected);
        let parsed: serde_json::Value = serde_json::from_str(&ours).unwrap();
        assert_eq!(parsed, serde_json::from_str::<serde_json::Value>(&theirs).unwrap());
        for text in [&ours, &theirs] {
            let found = read(text).unwrap();
            assert_eq!(written(&found), ours);
            assert_eq!(found.as_tensor().unwrap().dtype(), tensor.dtype());
            assert_eq!(found.as_tensor().unwrap().le_bytes(), tensor.le_bytes());
        }
    }
    check(
        array![[1.5f32, -0.0], [f32::NAN, f32::NEG_INFINITY]],
        r#"{"dtype":"f32","shape":[2,2],"data":[1.5,-0.0,"NaN","-inf"]}"#,
    );
    check(
        array![0.1f32, 1e-40, f32::MAX],
        r#"{"dtype":"f32","shape":[3],"data":[0.1,1e-40,3.4028235e38]}"#,
    );
    check(array![0.1f64, f64::INFINITY], r#"{"dtype":"f64","shape":[2],"data":[0.1,"inf"]}"#);
    check(array![u64::MAX], r#"{"dtype":"u64","shape":[1],"data":[18446744073709551615]}"#);
    check(array![i64::MIN], r#"{"dtype":"i64","shape":[1],"data":[-9223372036854775808]}"#);
    check(array![true, false], r#"{"dtype":"bool","shape":[2],"data":[true,false]}"#);
    check(array![f16::from_f32(0.1)], r#"{"dtype":"f16","shape":[1],"data":[0.099975586]}"#);
    check(array![bf16::from_f32(3.0)], r#"{"dtype":"bf16","shape":[1],"data":[3.0]}"#);
    check(
        array![Complex::new(1.0f32, f32::INFINITY)],
        r#"{"dtype":"c64","shape":[1],"data":[[1.0,"inf"]]}"#,
    );
    check(Array2::<u8>::zeros((2, 0)), r#"{"dtype":"u8","shape":[2,0],"data":[]}"#);
    check(ndarray::arr0(7i8), r#"{"dtype":"i8","shape":[],"data":[7]}"#);
    let f4 = DynTensor::new(DType::F4, &[2, 2], Order::F, vec![1, 255]).unwrap();
    check(f4, r#"{"dtype":"f4","shape":[2,2],"order":"F","data":[1,255]}"#);
}

#[test]
fn maps_that_are_no_tensors_stay_maps_and_broken_tensors_are_refused() {
    for map in [
        r#"{"dtype":"float32","shape":[1],"data":[1]}"#,
        r#"{"dtype":"f32","shape":[1],"data":[1],"more":0}"#,
        r#"{"dtype":"f32","shape":1,"data":[1]}"#,
        r#"{"dtype":"f32","shape":[1]}"#,
    ] {
        let value = read(map).unwrap();
        assert!(matches!(value, Value::Map(_)), "{map}");
    }
    // Another order of the fields.
    let value = read(r#"{"data":[1],"shape":[1],"dtype":"f32"}"#).unwrap();
    assert_eq!(value, tensor(array![1.0f32]));
    for (broken, why) in [
        (r#"{"dtype":"f32","shape":[2],"data":[1.0]}"#, "1 elements do not make"),
        (r#"{"dtype":"u8","shape":[1],"data":[256]}"#, "cannot be stored as u8"),
        (r#"{"dtype":"u8","shape":[1],"data":["1"]}"#, "expected a number"),
        (r#"{"dtype":"u8","shape":[-1],"data":[1]}"#, "whole numbers"),
        (r#"{"dtype":"f32","shape":[1],"order":"K","data":[1.0]}"#, "C or F"),
        (r#"{"dtype":"f4","shape":[2],"data":[1,2]}"#, "2 elements do not make"),
        (r#"{"dtype":"u8","shape":[9223372036854775807,9],"data":[]}"#, "0 elements do not make"),
        (r#"{"dtype":"f32","shape":[1],"data":[1e39]}"#, "too large for f32"),
        (r#"{"dtype":"f16","shape":[1],"data":[-65536.0]}"#, "too large for f16"),
        (r#"{"dtype":"c64","shape":[1],"data":[[0.0,1e39]]}"#, "too large for c64"),
        (r#"{"dtype":"c128","shape":[1],"data":[[9007199254740993,0]]}"#, "expected a number"),
    ] {
        let error = read(broken).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn what_json_has_not_is_a_loss() {
    let cases = [
        (Value::F64(f64::NAN), "NaN", "null"),
        (Value::F32(f32::INFINITY), "inf", "null"),
        (Value::Bytes(vec![1, 255]), "byte string", "[1,255]"),
        (Value::Tag(99, Box::new(text("a"))), "tag 99", "\"a\""),
        (Value::Simple(23), "simple value 23", "null"),
        (Value::Tag(2, Box::new(Value::Bytes(vec![1; 17]))), "128 bits", "null"),
        (Value::Map(vec![(Value::Integer(-5), Value::Null)]), "not text", r#"{"-5":null}"#),
        (Value::Map(vec![(Value::Bytes(vec![1]), Value::Null)]), "not text", r#"{"h'01'":null}"#),
        (
            Value::Map(vec![(text("a"), Value::Null), (text("a"), Value::Bool(true))]),
            "left out",
            r#"{"a":null}"#,
        ),
        (
            tensor(array![f64::from_bits(0x7ff8_0000_0000_0001)]),
            "payloads",
            r#"{"dtype":"f64","shape":[1],"data":["NaN"]}"#,
        ),
        (
            Value::Map(vec![
                (text("dtype"), Value::Null),
                (text("shape"), Value::Null),
                (text("data"), Value::Null),
            ]),
            "would be read as a tensor",
            r#"{"dtype":null,"shape":null,"data":null}"#,
        ),
    ];
    for (value, why, rest) in cases {
        let value = Value::Array(vec![value]);
        let mut bytes = Vec::new();
        let error = json::write(&mut bytes, &value).unwrap_err();
        assert!(error.to_string().contains(why), "{error}, expected {why}");
        assert!(bytes.is_empty());
        let options = Options::default().with_losses(true);
        let losses = json::write_with(&mut bytes, &value, &options).unwrap();
        assert_eq!(losses.count(), 1);
        assert!(losses.listed()[0].path().starts_with('0'));
        assert_eq!(String::from_utf8(bytes).unwrap(), format!("[{rest}]"));
    }
}

fn plain() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(|n| Value::Integer(n.into())),
        any::<u64>().prop_map(|n| Value::Integer(n.into())),
        any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::F64),
        any::<String>().prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 64, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..20).prop_map(|map| {
                Value::Map(map.into_iter().map(|(key, value)| (Value::Text(key), value)).collect())
            }),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn serde_json_reads_and_writes_the_same(value in plain()) {
        let ours = written(&value);
        prop_assert_eq!(&read(&ours).unwrap(), &value);
        let theirs = serde_json::to_string_pretty(&value).unwrap();
        prop_assert_eq!(&read(&theirs).unwrap(), &value);
        prop_assert!(serde_json::from_str::<serde_json::Value>(&ours).is_ok());
    }

    #[test]
    fn no_text_makes_it_panic(text in "[\\[\\]{},:\"0-9eE.\\\\un a-]{0,60}") {
        let _ = json::read_with(text.as_bytes(), Limits::strict());
        // Never more lenient than serde_json.
        if serde_json::from_str::<serde_json::Value>(&text).is_err() {
            prop_assert!(read(&text).is_err(), "{}", text);
        }
    }
}

const SAMPLE: &str = r#"{"a":[1,-2.5e3,"é\n\ud83d\ude00",null,true],"t":{"dtype":"c64","shape":[1,2],"data":[[1.0,"NaN"],[0.0,2.0]]}}"#;

#[test]
fn truncations_and_changed_bytes_are_errors_or_other_values() {
    assert!(read(SAMPLE).is_ok());
    for len in 0..SAMPLE.len() {
        let error = json::read(&SAMPLE.as_bytes()[..len]).unwrap_err();
        assert!(matches!(error.category(), Category::Eof | Category::Syntax), "{len}: {error}");
    }
    let mut refused = 0;
    for at in 0..SAMPLE.len() {
        for byte in 0..=255 {
            let mut changed = SAMPLE.as_bytes().to_vec();
            changed[at] = byte;
            match json::read_with(&changed[..], Limits::strict()) {
                Ok(value) => drop(json::write(Vec::new(), &value)),
                Err(_) => refused += 1,
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn depth_and_memory_are_limited() {
    let nested =
        |open: &str, close: &str, depth| [open.repeat(depth), close.repeat(depth)].concat();
    assert!(read(&nested("[", "]", 128)).is_ok());
    assert_eq!(read(&nested("[", "]", 129)).unwrap_err().category(), Category::Limit);
    let error = read(&"{\"a\":".repeat(100_000)).unwrap_err();
    assert_eq!(error.category(), Category::Limit);
    let limits = Limits::default().with_max_alloc(1 << 16);
    for long in [format!("[{}1]", "1,".repeat(10_000)), format!("\"{}\"", "x".repeat(100_000))] {
        let error = json::read_with(long.as_bytes(), limits).unwrap_err();
        assert_eq!(error.category(), Category::Limit);
        assert!(read(&long).is_ok());
    }
}

#[test]
fn singles_come_back_with_their_value_and_fit_their_fields() {
    type Fields = (f32, Vec<f32>);
    let fields: Fields = (0.1, (0..3000u16).map(|n| f32::from(n) / 7.0).collect());
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name);
    tenarc::save(path("before"), &fields).unwrap();
    let lost =
        Format::Json.from_archive(path("before"), path("json"), &Options::default()).unwrap();
    assert!(lost.is_empty());
    assert!(fs::read_to_string(path("json")).unwrap().starts_with("[0.1,[0.0,0.14285715,"));
    Format::Json.to_archive(path("json"), path("after"), &Options::default()).unwrap();
    assert_eq!(tenarc::load::<Fields>(path("after")).unwrap(), fields);
}

#[test]
fn limits_hold_for_files_too() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name);
    fs::write(path("in"), format!("[{}0]", "0,".repeat(1 << 16))).unwrap();
    let limits = Limits::default().with_max_alloc(1 << 20);
    let options = SaveOptions::default();
    let error = Format::Json
        .to_archive(
            path("in"),
            path("out"),
            &Options::default().with_save(options).with_limits(limits),
        )
        .unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
    assert!(!path("out").exists());
}

#[test]
fn json_lines_become_archives_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name| dir.path().join(name);
    let numbers = format!("{:?}", (0..3000).collect::<Vec<u32>>()).replace(' ', "");
    let lines =
        format!("{SAMPLE}\n{numbers}\n{{\"dtype\":\"f32\",\"shape\":[2],\"data\":[0.5,1.5]}}\n");
    let lines = lines.replace(r"\ud83d\ude00", "😀").replace("e3", "");
    fs::write(path("in"), &lines).unwrap();
    Format::Json.to_archive(path("in"), path("archive"), &Options::default()).unwrap();
    let archive = tenarc::open(path("archive")).unwrap();
    assert_eq!(archive.len(), 3);
    let pair: Tensor<ndarray::Array1<f32>> = archive.segment(2).unwrap().load().unwrap();
    assert_eq!(pair.0, array![0.5, 1.5]);
    let lost =
        Format::Json.from_archive(path("archive"), path("out"), &Options::default()).unwrap();
    assert!(lost.is_empty());
    assert_eq!(fs::read_to_string(path("out")).unwrap(), lines);

    tenarc::save(path("archive"), &(f32::NAN, 1)).unwrap();
    let error =
        Format::Json.from_archive(path("archive"), path("out"), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("NaN"), "{error}");
    assert_eq!(fs::read_to_string(path("out")).unwrap(), lines);
    let options = Options::default().with_losses(true);
    assert_eq!(
        Format::Json.from_archive(path("archive"), path("out"), &options).unwrap().count(),
        1
    );
    assert_eq!(fs::read_to_string(path("out")).unwrap(), "[null,1]\n");

    fs::write(path("in"), "{}\n{\"a\":1,\"a\":2}").unwrap();
    assert!(Format::Json.to_archive(path("in"), path("new"), &Options::default()).is_err());
    assert!(!path("new").exists());
}

/// Programs of Windows put a mark at the start of a text in UTF-8.
#[test]
fn a_byte_order_mark_at_the_start_is_skipped() {
    let read =
        |text: &[u8]| json::values(text, Limits::default()).collect::<Result<Vec<Value>, _>>();
    assert_eq!(read(b"\xef\xbb\xbf7 8").unwrap(), [Value::Integer(7), Value::Integer(8)]);
    assert_eq!(read(b"\xef\xbb\xbf").unwrap(), []);
    assert_eq!(json::read(&b"\xef\xbb\xbf[]"[..]).unwrap(), Value::Array(vec![]));
    assert!(read(b"\xef\xbb7").unwrap_err().to_string().contains("a byte order mark"));
    // Anywhere else it is no white space.
    assert!(read(b"7 \xef\xbb\xbf8").is_err() && read(b"\xef\xbb\xbf\xef\xbb\xbf8").is_err());
}

/// The rows of a table, in an archive as columns, are lines if the name or an option asks for it.
#[test]
fn rows_are_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let rows: Vec<_> = (0..40).map(|number| serde_json::json!({ "n": number })).collect();
    let options = SaveOptions::default().with_columns(true);
    tenarc::archive::save_with(path("a.tenarc"), &rows, options).unwrap();
    let lines: Vec<_> = (0..40).map(|number| format!("{{\"n\":{number}}}\n")).collect();
    let lines = lines.concat();
    for (name, lossy) in [("a.jsonl", false), ("a.ndjson", true)] {
        let options = Options::default().with_losses(lossy);
        Format::Json.from_archive(path("a.tenarc"), path(name), &options).unwrap();
        assert_eq!(fs::read_to_string(path(name)).unwrap(), lines, "{name}");
    }
    let options = Options::default().with_lines(true);
    let value = read(r#"[{"a":1},{}]"#).unwrap();
    let mut bytes = Vec::new();
    json::write_with(&mut bytes, &value, &options).unwrap();
    assert_eq!(bytes, b"{\"a\":1}\n{}");
}

/// Values that are appended as messages have the bytes of values that are read as a whole, and the same errors.
#[test]
fn messages_are_those_of_whole_values() {
    let rows = (0..300).map(|at| format!(r#"{{"a":{at},"b":[{{}}, []]}}"#)).collect::<Vec<_>>();
    let rows = format!("[{}]", rows.join(","));
    let tensor = r#"{"dtype":"f32","shape":[2],"data":[1,0.5]}"#;
    let nested = "[".repeat(1000);
    for text in [
        "1 [] {} [[]] [{}] [1,{}] [[1,2],3]",
        &rows,
        tensor,
        &format!(r#"{{"w":{tensor},"rows":{rows}}}"#),
        &format!(r#"{{"data":{rows},"more":{tensor}}}"#),
        r#"[{"a":1,"a":2}]"#,
        r#"[{"a":[1,{]}]"#,
        "[[1,2],",
        r#"{"x":{"dtype":"f32","shape":[3],"data":[1]}}"#,
        &nested,
    ] {
        let limits = Limits::default();
        let whole: tenarc::Result<Vec<Value>> = json::values(text.as_bytes(), limits).collect();
        let mut messages = Vec::new();
        let appended = json::append_messages(text.as_bytes(), limits, &mut messages);
        match (whole, appended) {
            (Ok(values), Ok(())) => {
                let expected = values.iter().map(|value| tenarc::to_vec(value).unwrap());
                assert_eq!(messages, expected.collect::<Vec<_>>().concat(), "{text}");
            }
            (Err(whole), Err(appended)) => assert_eq!(whole.to_string(), appended.to_string()),
            (whole, appended) => panic!("{text}: {whole:?} {appended:?}"),
        }
    }
}
