//! The caller's function that chooses what goes out of band: what it is asked, and how often.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ndarray::{Array2, ShapeBuilder as _};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::archive::SaveOptions;
use tenarc::parts::{Parts, Split};
use tenarc::tensor::{Order, TensorInfo};
use tenarc::value::RawValue;
use tenarc::{Archive, OArchive, Tensor, Value};

use super::support::{archived, received, split, weights};

/// What a question tells: path, dtype, shape, order, bytes.
type Question = (String, String, Vec<usize>, Order, u64);

fn question(info: &TensorInfo) -> Question {
    let (path, dtype) = (info.path().to_owned(), info.dtype().name().to_owned());
    (path, dtype, info.shape().to_vec(), info.order(), info.byte_len())
}

type Weights = Tensor<Vec<f32>>;

type Log = Arc<Mutex<Vec<Question>>>;

/// Options whose function notes what it is asked.
fn noting(choose: impl Fn(usize) -> bool + Send + Sync + 'static) -> (Log, SaveOptions) {
    let log = Log::default();
    let noted = log.clone();
    let options = SaveOptions::default().with_out_of_band(move |info| {
        assert_eq!(info.buffer(), None);
        let mut noted = noted.lock().unwrap();
        noted.push(question(info));
        choose(noted.len() - 1)
    });
    (log, options)
}

fn paths(questions: &[Question]) -> Vec<&str> {
    questions.iter().map(|(path, ..)| &path[..]).collect()
}

/// Asks about a value and answers yes: the questions, which are those that the parts tell of too.
#[track_caller]
fn all<T: Serialize>(value: &T) -> Vec<Question> {
    let (log, options) = noting(|_| true);
    let parts = tenarc::parts::to_parts_with(value, options).unwrap();
    let asked = std::mem::take(&mut *log.lock().unwrap());
    let told: Vec<Question> = parts.info().buffers().iter().map(|info| question(info)).collect();
    assert_eq!(asked, told);
    let again = Parts::new(parts.metadata(), parts.buffers().iter().collect::<Vec<_>>()).unwrap();
    let told: Vec<Question> = again.info().buffers().iter().map(|info| question(info)).collect();
    assert_eq!(asked, told);

    // Those with an answer of no are asked about all the same, and in archives.
    for choice in [false, true] {
        let (log, options) = noting(move |at| choice && at % 2 == 0);
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        out.save(value).unwrap();
        assert_eq!(*log.lock().unwrap(), asked);
        let bytes = out.finish().unwrap();
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        let segment = archive.segment(0).unwrap();
        let taken = if choice { asked.len().div_ceil(2) } else { 0 };
        assert_eq!(segment.buffers().len(), taken);
    }
    asked
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Kind {
    Newtype(Tensor<Vec<f32>>),
    Tuple(u8, Vec<f32>),
    Struct { a: Tensor<Vec<f32>>, b: ByteBuf },
    Unit,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "kind")]
enum Internal {
    Struct { a: Tensor<Vec<u8>> },
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    Newtype(Tensor<Vec<u8>>),
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Inner {
    weight: Tensor<Array2<f32>>,
    column_major: Tensor<Array2<f64>>,
    name: String,
    plain: Vec<f64>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Outer {
    kinds: Vec<Kind>,
    inner: Inner,
    optional: Option<Option<Tensor<Vec<f32>>>>,
    none: Option<Tensor<Vec<f32>>>,
    some_none: Option<Option<Tensor<Vec<f32>>>>,
    internal: Internal,
    adjacent: Adjacent,
    by_number: BTreeMap<i64, Tensor<Vec<f32>>>,
    by_text: BTreeMap<String, Option<ByteBuf>>,
    tuple: (u8, Vec<f32>, Inner),
    empty: Tensor<Vec<f32>>,
    few: Vec<f32>,
    #[serde(flatten)]
    rest: BTreeMap<String, Tensor<Vec<u8>>>,
}

fn inner(rows: usize) -> Inner {
    Inner {
        weight: Tensor(Array2::from_elem((rows, 3), 0.5)),
        column_major: Tensor(Array2::from_elem((rows, 2).f(), 0.5)),
        name: "a name with 1.5, [brackets] and {braces}".into(),
        plain: vec![0.5; 10],
    }
}

fn outer() -> Outer {
    Outer {
        kinds: vec![
            Kind::Unit,
            Kind::Newtype(weights(1, 1)),
            Kind::Tuple(7, weights(20, 2).0),
            Kind::Struct { a: weights(5, 3), b: ByteBuf::from(vec![1]) },
        ],
        inner: inner(2),
        optional: Some(Some(weights(2, 1))),
        none: None,
        some_none: Some(None),
        internal: Internal::Struct { a: Tensor(vec![1, 2]) },
        adjacent: Adjacent::Newtype(Tensor(vec![1, 2, 3])),
        by_number: [(-7, weights(1, 1)), (0, weights(2, 1)), (i64::MAX, weights(3, 1))].into(),
        by_text: [("a".into(), None), ("b".into(), Some(ByteBuf::from(vec![0; 9])))].into(),
        tuple: (1, vec![0.25; 8], inner(4)),
        empty: Tensor(vec![]),
        few: vec![0.5; 7],
        rest: [("x".into(), Tensor(vec![1])), ("y".into(), Tensor(vec![2, 3]))].into(),
    }
}

#[test]
fn it_is_asked_once_about_each_in_the_order_of_the_fields() {
    let asked = all(&outer());
    let expected = [
        "kinds.1.Newtype",
        "kinds.2.Tuple.1",
        "kinds.3.Struct.a",
        "kinds.3.Struct.b",
        "inner.weight",
        "inner.column_major",
        "inner.plain",
        "optional",
        "internal.a",
        "adjacent.c",
        "by_number.-7",
        "by_number.0",
        "by_number.9223372036854775807",
        "by_text.b",
        "tuple.1",
        "tuple.2.weight",
        "tuple.2.column_major",
        "tuple.2.plain",
        "x",
        "y",
    ];
    assert_eq!(paths(&asked), expected);
    let told = |at: usize| {
        let (_, dtype, shape, order, len) = &asked[at];
        (&dtype[..], &shape[..], *order, *len)
    };
    assert_eq!(told(3), ("u8", &[1][..], Order::C, 1));
    assert_eq!(told(4), ("f32", &[2, 3][..], Order::C, 24));
    assert_eq!(told(5), ("f64", &[2, 2][..], Order::F, 32));
    assert_eq!(told(6), ("f64", &[10][..], Order::C, 80));
    assert_eq!(told(14), ("f32", &[8][..], Order::C, 32));
}

#[test]
fn paths_are_those_that_archives_list() {
    // But for the byte strings, which are no tensors.
    let asked = all(&outer());
    let (_, options) = noting(|_| true);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(&outer()).unwrap();
    let bytes = out.finish().unwrap();
    let listed = Archive::new(&bytes[..]).unwrap().tensors().unwrap();
    let listed: Vec<Question> = listed.iter().map(question).filter(|info| info.4 > 0).collect();
    let is_bytes = |path: &str| matches!(path, "kinds.3.Struct.b" | "by_text.b");
    let asked: Vec<Question> = asked.into_iter().filter(|asked| !is_bytes(&asked.0)).collect();
    assert_eq!(asked, listed);
    let (metadata, buffers) = split(&outer(), &SaveOptions::default().with_inline_below(0));
    let parts = Parts::new(metadata, buffers).unwrap();
    let listed = parts.tensors().unwrap();
    assert!(asked.iter().all(|asked| listed.iter().any(|info| question(info) == *asked)));
}

#[test]
fn values_that_are_roots_and_keys_of_all_kinds() {
    assert_eq!(paths(&all(&weights(3, 1))), [""]);
    assert_eq!(paths(&all(&vec![0.5f32; 100])), [""]);
    assert_eq!(paths(&all(&ByteBuf::from(vec![1]))), [""]);
    assert_eq!(paths(&all(&((weights(1, 1), weights(2, 1)), weights(3, 1)))), ["0.0", "0.1", "1"]);
    // Keys of all kinds, tensors in keys, which have no path, and values behind them.
    let map: BTreeMap<(u8, bool), (u8, Weights)> =
        [((1, true), (1, weights(1, 1))), ((2, false), (2, weights(2, 2)))].into();
    assert_eq!(paths(&all(&map)), ["[1, true].1", "[2, false].1"]);
    // A path has the reference to a key in place of the key, if that went to a buffer.
    for (taken, component) in [(false, "h'010101'"), (true, "1413633350([0])")] {
        let (log, options) = noting(move |at| at > 0 || taken);
        let map: BTreeMap<ByteBuf, Tensor<Vec<f32>>> =
            [(ByteBuf::from(vec![1; 3]), weights(1, 1))].into();
        let parts = tenarc::parts::to_parts_with(&map, options).unwrap();
        assert_eq!(paths(&log.lock().unwrap()), ["?", component]);
        assert_eq!(parts.info().tensors().unwrap()[0].path(), component);
        let map: BTreeMap<Vec<ByteBuf>, Tensor<Vec<f32>>> =
            [(vec![ByteBuf::from(vec![1; 3])], weights(1, 1))].into();
        let (log, options) = noting(move |at| at > 0 || taken);
        tenarc::parts::to_parts_with(&map, options).unwrap();
        assert_eq!(paths(&log.lock().unwrap()), ["?.0", &format!("[{component}]")]);
    }
    let map: BTreeMap<Option<bool>, Tensor<Vec<f32>>> =
        [(None, weights(1, 1)), (Some(true), weights(2, 1))].into();
    assert_eq!(paths(&all(&map)), ["null", "true"]);
    let map: BTreeMap<i128, Tensor<Vec<f32>>> = [
        (i128::MIN, weights(1, 1)),
        (-(1 << 64), weights(2, 1)),
        (u64::MAX.into(), weights(3, 1)),
        (1 << 64, weights(4, 1)),
    ]
    .into();
    let found = all(&map);
    let expected = [i128::MIN, -(1 << 64), u64::MAX.into(), 1 << 64].map(|key| key.to_string());
    assert_eq!(paths(&found), expected);
    let empty: (Vec<u8>, BTreeMap<u8, u8>, Tensor<Vec<f32>>) = Default::default();
    assert_eq!(all(&empty), []);
    assert_eq!(paths(&all(&(&empty, &empty, weights(1, 1)))), ["2"]);
}

#[test]
fn values_of_every_item_and_long_metadata() {
    let text = |text: &str| Value::Text(text.into());
    let bytes = |len| Value::Bytes(vec![1; len]);
    let value = Value::Map(vec![
        (text("tagged"), Value::Tag(1, Box::new(Value::Array(vec![Value::Null, bytes(2)])))),
        (text("numbers"), Value::Numbers(Box::new(vec![1.5f32, 2.5].into()))),
        (Value::F64(0.5), bytes(3)),
        (Value::Simple(255), bytes(4)),
        (text(&"long".repeat(500)), Value::Array((0..400).map(|_| bytes(5)).collect())),
        (Value::Tag(9, Box::new(Value::Integer(1))), bytes(6)),
        (text("last"), bytes(7)),
    ]);
    let asked = all(&value);
    assert_eq!(paths(&asked[..4]), ["tagged.1", "numbers", "0.5", "simple(255)"]);
    assert_eq!(asked[4 + 399].0, format!("{}.399", "long".repeat(500)));
    assert_eq!(asked.last().unwrap().0, "last");
}

#[test]
fn raw_values_are_not_looked_into() {
    #[derive(Serialize)]
    struct Envelope {
        before: Tensor<Vec<f32>>,
        raw: Vec<Box<RawValue>>,
        after: BTreeMap<String, Tensor<Vec<f32>>>,
    }
    let raw = |value: &[u8]| RawValue::from_bytes(value).unwrap().to_owned();
    let inside = tenarc::to_vec(&outer()).unwrap();
    let value = Envelope {
        before: weights(1, 1),
        raw: vec![
            raw(&inside),
            // Heads that are wider than need be, chunks, indefinite lengths, undefined.
            raw(b"\x9f\x19\x00\x01\x7f\x61a\x61b\xff\xbf\x61a\x5f\x41\x01\xff\xff\xf7\xff"),
            raw(b"\xbb\x00\x00\x00\x00\x00\x00\x00\x01\x81\x01\xd8\x18\x41\x00"),
        ],
        after: [("a".into(), weights(2, 1))].into(),
    };
    assert_eq!(paths(&all(&value)), ["before", "after.a"]);
}

/// A number, or something else: what a sequence may turn out to hold late.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
#[serde(untagged)]
enum Any {
    Single(f32),
    List(Vec<f32>),
    Text(String),
}

fn late(others: &[Any]) -> Vec<Any> {
    let numbers = (0..17_000).map(|at| Any::Single(at as f32));
    numbers.chain(others.iter().cloned()).collect()
}

#[test]
fn walks_that_start_again_ask_nothing_again() {
    let list = Any::List(vec![0.5; 600]);
    let kinds: [(&[Any], &[&str]); 3] = [
        (&[Any::Text("end".into())], &[]),
        (std::slice::from_ref(&list), &["17000"]),
        (&[Any::Text("x".into()), list.clone(), list.clone()], &["17001", "17002"]),
    ];
    for (others, inside) in kinds {
        for count in [1, 3, 12] {
            let value: Vec<_> = (0..count)
                .map(|at| (weights(at + 1, 1), late(others), weights(at + 2, 2)))
                .collect();
            let (log, options) = noting(|_| true);
            let parts = tenarc::parts::to_parts_with(&value, options.clone()).unwrap();
            let asked = std::mem::take(&mut *log.lock().unwrap());
            let expected: Vec<String> = (0..count)
                .flat_map(|at| {
                    let own = [format!("{at}.0"), format!("{at}.1")];
                    let inside = inside.iter().map(move |inside| format!("{at}.1.{inside}"));
                    own.into_iter().chain(inside).chain([format!("{at}.2")])
                })
                .collect();
            assert_eq!(paths(&asked), expected, "{count}");
            // After too many restarts no sequence goes to a buffer, not even those inside.
            let told = parts.info().buffers();
            let per_item = if count == 12 { 2 } else { 2 + inside.len() };
            assert_eq!(told.len(), count * per_item);
            assert!(told.iter().all(|info| asked.contains(&question(info))));
            let back: Vec<(Weights, Vec<Any>, Weights)> = parts.load().unwrap();
            assert!(back == value);

            let split = Split::with_options(&value, options).unwrap();
            assert!(split.metadata() == parts.metadata());
            log.lock().unwrap().clear();
            for _ in 0..2 {
                let mut at = 0;
                let each = split.each_buffer(|_, bytes| {
                    assert!(*bytes == *parts.buffers()[at]);
                    at += 1;
                    Ok(())
                });
                each.unwrap();
                assert_eq!(at, parts.buffers().len());
            }
            assert_eq!(*log.lock().unwrap(), [], "asked again");
        }
    }
}

#[test]
fn every_second_answer_is_kept_through_restarts() {
    let value: Vec<_> = (0..4)
        .map(|at| (weights(at + 1, 1), late(&[Any::List(vec![0.5; 600])]), weights(at + 2, 2)))
        .collect();
    // Questions come by fours: a tensor, a sequence that is none, a list inside, a tensor.
    let (_, options) = noting(|at| at % 2 == 1);
    let parts = tenarc::parts::to_parts_with(&value, options).unwrap();
    let told: Vec<&str> = parts.info().buffers().iter().map(|info| info.path()).collect();
    assert_eq!(told, ["0.2", "1.2", "2.2", "3.2"]);
    let (_, options) = noting(|at| at % 2 == 0);
    let parts = tenarc::parts::to_parts_with(&value, options).unwrap();
    let told: Vec<&str> = parts.info().buffers().iter().map(|info| info.path()).collect();
    let expected = (0..4).flat_map(|at| [format!("{at}.0"), format!("{at}.1.17000")]);
    assert_eq!(told, expected.collect::<Vec<_>>());
    let back: Vec<(Weights, Vec<Any>, Weights)> = parts.load().unwrap();
    assert!(back == value);
}

#[test]
fn it_takes_the_place_of_the_threshold_and_goes_with_dedup() {
    let count = Arc::new(AtomicUsize::new(0));
    let asked = count.clone();
    let options = SaveOptions::default().with_inline_below(usize::MAX).with_dedup(true);
    let options = options.with_out_of_band(move |_| {
        asked.fetch_add(1, Ordering::Relaxed);
        true
    });
    let value = vec![weights(3, 1), weights(3, 1), weights(4, 1), Tensor(vec![]), weights(3, 1)];
    let sent = split(&value, &options);
    assert_eq!(sent.1.len(), 2);
    // Once by each of the two that split it.
    assert_eq!(count.load(Ordering::Relaxed), 2 * 4);
    for (way, read) in received::<Vec<Tensor<Vec<f32>>>>(&sent) {
        assert_eq!(read.unwrap(), value, "{way}");
    }
    let parts = Parts::new(sent.0, sent.1).unwrap();
    let saved = archived(|out| {
        out.save_parts(&parts).unwrap();
    });
    Archive::new(&saved[..]).unwrap().verify().unwrap();
}

#[test]
fn keys_with_dots_are_told_as_they_are() {
    let value: BTreeMap<&str, Tensor<Vec<f32>>> =
        [("a.b", weights(1, 1)), ("/c", weights(2, 1)), ("", weights(3, 1))].into();
    let (log, options) = noting(|_| true);
    let parts = tenarc::parts::to_parts_with(&value, options).unwrap();
    assert_eq!(parts.buffers().len(), 3);
    assert_eq!(paths(&log.lock().unwrap()), ["/", "/~1c", "a.b"]);
}
