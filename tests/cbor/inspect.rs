//! Walks over items without a type: what they report, and what they do on bad input.

use std::collections::BTreeMap;

use ndarray::{Array2, ShapeBuilder as _};
use serde::Serialize;
use tenarc::de::Limits;
use tenarc::error::Category;
use tenarc::inspect::{Event, Form, Items, Key, Paths, SOME, find};
use tenarc::tensor::Order;
use tenarc::{Archive, DType, OArchive, Tensor, Value};

fn events(bytes: &[u8]) -> Vec<Event<'_>> {
    Items::new(bytes).map(|item| item.unwrap().event).collect()
}

fn failure(items: &mut Items<'_>) -> tenarc::Error {
    let error = items.by_ref().find_map(Result::err).unwrap();
    assert!(items.next().is_none());
    error
}

#[test]
fn tells_every_kind_of_item() {
    let simple =
        [0x01, 0x20, 0xf4, 0xf6, 0xf7, 0xf0, 0xf9, 0, 0, 0x41, 7, 0x61, b'a', 0xc2, 0x41, 1];
    let kinds = [
        Event::Integer,
        Event::Integer,
        Event::Bool,
        Event::Null,
        Event::Undefined,
        Event::Simple,
        Event::Float,
        Event::Bytes,
        Event::Text,
        Event::Integer,
    ];
    assert_eq!(events(&simple), kinds);
    // Tags end with the item that they are around, however many there are.
    let tagged = b"\x82\xc1\xc1\x80\xc1\xa0";
    let [tag, end] = [Event::Tag(1), Event::End];
    let expected = [Event::Array, tag.clone(), tag.clone(), Event::Array, end.clone()];
    assert_eq!(events(tagged), [&expected[..], &[tag, Event::Map, end.clone(), end]].concat());
}

#[test]
fn tells_keys_and_where_each_item_stands() {
    let bytes = b"\xbf\x61a\x01\x05\x82\x02\x03\x25\xf6\x81\x00\xf4\x7f\x61b\x61c\xff\x80\xff";
    let found: Vec<_> = Items::new(bytes).map(Result::unwrap).collect();
    let keys = found.iter().filter_map(|item| match &item.event {
        Event::Key(key) => Some((key.clone(), item.range.clone())),
        _ => None,
    });
    let text = |text: &'static str| Key::Text(text.into());
    let expected = [
        (text("a"), 1..3),
        (Key::Integer(5), 4..5),
        (Key::Integer(-6), 8..9),
        (Key::Other("[0]".into()), 10..12),
        (text("bc"), 13..19),
    ];
    assert_eq!(keys.collect::<Vec<_>>(), expected);
    let ends = found.iter().filter(|item| item.event == Event::End);
    assert_eq!(ends.map(|end| end.range.clone()).collect::<Vec<_>>(), [5..8, 19..20, 0..21]);
    assert_eq!(Key::Integer(-6).into_step(), "-6");
    assert_eq!(Key::Other("[0]".into()).into_step(), "[0]");
}

#[test]
fn leaves_what_is_passed_over() {
    let bytes = b"\x83\x82\x01\xc1\x82\x02\x03\xc1\x04\x05";
    let mut items = Items::new(bytes);
    assert_eq!(items.leave().unwrap_err().category(), Category::Data);
    assert_eq!(items.nth(1).unwrap().unwrap().event, Event::Array);
    assert_eq!(items.leave().unwrap().range, 1..7);
    assert_eq!(items.next().unwrap().unwrap().event, Event::Tag(1));
    // A tag is no array: what is left is that around it.
    assert_eq!(items.leave().unwrap().range, 0..10);
    assert!(items.next().is_none());
}

#[derive(Serialize)]
#[allow(clippy::option_option)]
struct Sample {
    dotted: BTreeMap<&'static str, Tensor<Vec<f32>>>,
    numbers: Vec<f64>,
    matrix: Tensor<Array2<i16>>,
    option: Option<Option<u8>>,
    #[serde(with = "serde_bytes")]
    bytes: Vec<u8>,
    last: (u8, &'static str),
}

fn sample() -> Archive<Vec<u8>> {
    let large = |seed: u8| Tensor(vec![f32::from(seed); 600]);
    let sample = Sample {
        dotted: [("a.b", large(1)), ("a", large(2))].into(),
        numbers: vec![0.5; 300],
        matrix: Array2::zeros((2, 3).f()).into(),
        option: Some(None),
        bytes: vec![7; 5000],
        last: (1, "text"),
    };
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&0).unwrap().save(&sample).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

#[test]
fn tells_the_tensors_of_a_segment() {
    let archive = sample();
    let segment = archive.segment(1).unwrap();
    let mut payloads = Vec::new();
    for item in segment.inspect().unwrap() {
        let item = item.unwrap();
        if let Event::Payload(payload) = item.event {
            payloads.push((payload, item.range));
        }
    }
    let (bytes, tensors): (Vec<_>, Vec<_>) =
        payloads.into_iter().partition(|(payload, _)| payload.form == Form::Bytes);
    let expected = segment.tensors().unwrap();
    assert_eq!(tensors.len(), expected.len());
    for ((found, range), expected) in tensors.iter().zip(&expected) {
        assert_eq!(&found.meta, expected.meta());
        assert_eq!((found.byte_len, found.buffer), (expected.byte_len(), expected.buffer()));
        let numbers = expected.path() == "numbers";
        assert_eq!(found.form, if numbers { Form::Numbers } else { Form::Tensor });
        let value: Value = segment.decode(range.clone()).unwrap();
        assert_eq!(value, segment.get(expected.path()).unwrap());
    }
    let matrix = tensors.iter().find(|(found, _)| found.meta.dtype == DType::I16).unwrap();
    assert_eq!((matrix.0.meta.order, matrix.0.buffer), (Order::F, None));
    let [(bytes, range)] = &bytes[..] else { panic!("{bytes:?}") };
    assert_eq!(bytes.byte_len, 5000);
    let Value::Bytes(read) = segment.decode(range.clone()).unwrap() else { panic!() };
    assert_eq!(read, [7; 5000]);
}

#[test]
fn inspects_a_value_by_its_path() {
    let archive = sample();
    let segment = archive.segment(1).unwrap();
    let items = |path| segment.inspect_at(path).unwrap().map(|item| item.unwrap());
    let last: Vec<_> = items("last").collect();
    let events: Vec<_> = last.iter().map(|item| &item.event).collect();
    assert_eq!(events, [&Event::Array, &Event::Integer, &Event::Text, &Event::End]);
    assert_eq!(segment.decode::<String>(last[2].range.clone()).unwrap(), "text");
    let option: Vec<_> = items("option").map(|item| item.event).collect();
    assert_eq!(option, [Event::Tag(SOME), Event::Null]);
    assert!(segment.inspect_at("nowhere").is_err());
}

#[test]
fn paths_lead_to_one_value_each() {
    // {"a": {"b": 1, "c": [tag 1 around {"d": 2}]}, "a.b": 3, "": 4, "/": 5}
    let value = b"\xa4\x61a\xa2\x61b\x01\x61c\x81\xc1\xa1\x61d\x02\x63a.b\x03\x60\x04\x61/\x05";
    let paths = Paths::of(value, Limits::default()).unwrap();
    let cases: [(&[&str], &str, usize); 8] = [
        (&[], "", 0),
        (&["a"], "a", 3),
        (&["a", "b"], "/a/b", 6),
        (&["a.b"], "/a.b", 19),
        (&["a", "c", "0"], "a.c.0", 10),
        (&["a", "c", "0", "d"], "a.c.0.d", 14),
        (&[""], "/", 21),
        (&["/"], "/~1", 24),
    ];
    for (steps, expected, start) in cases {
        let path = paths.path(steps);
        // The empty path is that of the root, so an empty key in it needs a JSON Pointer.
        assert_eq!((&*path.text, path.is_unique), (expected, true), "{steps:?}");
        assert_eq!(find(value, expected, Limits::default()).unwrap().start, start, "{steps:?}");
    }
    for path in ["a.b", "nowhere"] {
        assert!(find(value, path, Limits::default()).is_err(), "{path}");
    }
    // A key that is twice in its map: {"a": [0], "a": [0]}
    let paths = Paths::of(b"\xa2\x61a\x81\x00\x61a\x81\x00", Limits::default()).unwrap();
    for steps in [&["a"][..], &["a", "0"]] {
        assert!(!paths.path(steps).is_unique, "{steps:?}");
    }
    assert!(Paths::of(b"\xa1\x61a", Limits::default()).is_err());
    let nested = b"\x81\x81\x81\x00";
    assert!(Paths::of(nested, Limits::default().with_max_depth(1)).is_err());
}

#[test]
fn stays_within_limits() {
    let deep = vec![0x81; 1 << 20];
    let error = failure(&mut Items::new(&deep));
    assert_eq!((error.category(), error.offset()), (Category::Limit, Some(129)));
    let tags = vec![0xc1; 1 << 20];
    assert_eq!(failure(&mut Items::new(&tags)).category(), Category::Limit);
    let cube = tenarc::to_vec(&Tensor(ndarray::Array3::<f32>::zeros((1, 1, 1)))).unwrap();
    let limits = Limits::default().with_max_rank(2);
    assert_eq!(Items::new(&cube).count(), 1);
    assert_eq!(failure(&mut Items::new(&cube).with_limits(limits)).category(), Category::Limit);
    // As deep as values are read, to the level.
    for (levels, fits) in [(3, true), (2, false)] {
        let limits = Limits::default().with_max_depth(levels);
        let bytes = b"\x81\xc1\xa1\x00\x00";
        assert_eq!(Items::new(bytes).with_limits(limits).all(|item| item.is_ok()), fits);
    }
}

#[test]
fn takes_whatever_bytes_without_a_panic() {
    let archive = sample();
    let segment = archive.segment(1).unwrap();
    let (metadata, buffers) = (segment.metadata().unwrap(), segment.buffers());
    assert!(Items::new(metadata).with_buffers(buffers).all(|item| item.is_ok()));
    for at in 0..metadata.len() {
        let mut cut = Items::new(&metadata[..at]).with_buffers(buffers);
        assert!(at == 0 || cut.any(|item| item.is_err()), "cut at {at}");
        for byte in [0, 1, 0x1b, 0x3b, 0x5f, 0x80, 0x9f, 0xbf, 0xc6, 0xd8, 0xda, 0xf8, 0xff] {
            let mut bytes = metadata.to_vec();
            bytes[at] = byte;
            let is_read = Items::new(&bytes).with_buffers(buffers).all(|item| item.is_ok());
            let paths = Paths::of(&bytes, Limits::default());
            assert!(paths.is_ok() || !is_read, "{byte:#x} at {at}: {paths:?}");
        }
    }
    for bytes in [&b"\xff"[..], b"\x81\xff", b"\xa1\x00\xff", b"\x61\xff", b"\x1c", b"\xc1"] {
        let error = failure(&mut Items::new(bytes));
        assert!(matches!(error.category(), Category::Syntax | Category::Eof), "{error}");
    }
}
