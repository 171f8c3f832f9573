//! Values of any type, read from columns, are the values read from rows: from every kind of source, and in every
//! style in which columns can be written.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::tensor::Order;
use tenarc::value::RawValue;
use tenarc::{DType, DynTensor, Tensor, Value};
use tenarc_test_support::builder::{map, simple};
use tenarc_test_support::{decode, hex};

use crate::build::{Style, Writer};
use crate::compact::merges;

fn styles() -> Vec<Style> {
    let plain = Style::default();
    vec![
        plain,
        Style { wide: true, ..plain },
        Style { tuples: true, ..plain },
        Style { rich: true, ..plain },
        Style { group: 3, ..plain },
        Style { group: 1, indefinite: true, tuples: true, ..plain },
        Style { tuples: true, ..plain },
    ]
}

/// Reads the rows in every style, from every source, and from an archive with and without buffers.
#[track_caller]
fn check<T: Serialize + DeserializeOwned + PartialEq + Debug>(rows: &[T]) {
    let Value::Array(items) = tenarc::to_value(&rows).unwrap() else { panic!("no array") };
    merges(&items, &styles());
    for style in styles() {
        let document = Writer::new(style).document(&items);
        let shown = tenarc::diag::to_string(&document).unwrap();
        let read: Vec<T> = decode(&document);
        assert_eq!(read, rows, "{style:?}: {shown}");

        let value: Value = tenarc::from_slice(&document).unwrap();
        assert_eq!(value, Value::Array(items.clone()), "{style:?}: {shown}");
        let value: Value = tenarc::from_reader(&document[..]).unwrap();
        assert_eq!(value, Value::Array(items.clone()), "{style:?}: {shown}");
        let values: Vec<Value> = decode(&document);
        assert_eq!(values, items, "{style:?}: {shown}");
        let raw: Vec<Box<RawValue>> = tenarc::from_slice(&document).unwrap();
        let raw: Vec<T> = raw.iter().map(|item| item.get().unwrap()).collect();
        assert_eq!(raw, rows, "{style:?}: {shown}");
        let whole: &RawValue = tenarc::from_slice(&document).unwrap();
        assert_eq!(whole.as_bytes(), document);
        tenarc::from_slice::<IgnoredAny>(&document).unwrap();
        let none: Vec<IgnoredAny> = tenarc::from_slice(&document).unwrap();
        assert_eq!(none.len(), rows.len());

        for buffers in [false, true] {
            // Metadata has definite lengths.
            let mut writer = Writer::new(Style { buffers, indefinite: false, ..style });
            let metadata = map(&[("rows", writer.document(&items))]);
            let buffers: Vec<&[u8]> = writer.buffers.iter().map(|buffer| &buffer[..]).collect();
            let archive = simple(metadata, &buffers);
            let mut stream = tenarc::IArchive::new(&archive[..]).unwrap();
            let mut read: BTreeMap<String, Vec<T>> = stream.load().unwrap();
            assert_eq!(read.remove("rows").unwrap(), rows, "{style:?}: {}", hex(&archive));
            let archive = tenarc::Archive::new(&archive[..]).unwrap();
            let mut read: BTreeMap<String, Vec<T>> = archive.load().unwrap();
            assert_eq!(read.remove("rows").unwrap(), rows, "{style:?}");
            let mut read: BTreeMap<String, Value> = archive.view().unwrap();
            assert_eq!(read.remove("rows").unwrap(), Value::Array(items.clone()), "{style:?}");
        }
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Point {
    x: f32,
    y: f32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone, PartialOrd, Eq, Ord)]
enum Kind {
    Unit,
    New(u8),
    Pair(i16, String),
    Fields { on: bool, name: Option<String> },
    Nothing(()),
}

fn kinds() -> Vec<Kind> {
    let mut all = Vec::new();
    for at in 0..5 {
        all.push(Kind::New(at));
        all.push(Kind::Unit);
        all.push(Kind::Pair(-300 + i16::from(at), "pair".repeat(at.into())));
        all.push(Kind::Nothing(()));
        let name = (at.is_multiple_of(2)).then(|| format!("name {at}"));
        all.push(Kind::Fields { on: at.is_multiple_of(3), name });
    }
    all
}

#[test]
fn numbers_of_every_type() {
    check(&[1u8, 2, 255, 0]);
    check(&[1i8, -2, 127, -128]);
    check(&[1u16, 300]);
    check(&[1u64, u64::MAX]);
    check(&[-1i64, i64::MIN, i64::MAX]);
    check(&[0.5f32, -0.0, f32::INFINITY]);
    check(&[0.1f64, -1e300]);
    check(&[1i128 << 100, -5]);
    check(&[u128::MAX, 0]);
    check(&[-1i128, 5]);
    check::<u8>(&[]);
}

#[test]
fn bools_texts_and_bytes() {
    check(&[true, false, true, true, false, true, false, false, true]);
    check(&["", "a", "grüße", "日本", "", "z"].map(String::from));
    check(&['a', 'ß', '日']);
    check(&[&b"\x00\xff"[..], b"", b"abc"].map(ByteBuf::from));
    check(&[(), (), ()]);
}

#[test]
fn structs_and_tuples() {
    let points: Vec<Point> =
        (0..20u8).map(|at| Point { x: at.into(), y: f32::from(at) / 3.0 }).collect();
    check(&points);
    check(&points.iter().map(|point| (point.clone(), 7u8, "x".to_owned())).collect::<Vec<_>>());
    check(&points.chunks(3).map(<[Point]>::to_vec).collect::<Vec<_>>());
    check(&points.iter().map(|point| [point.x, point.y, 0.0]).collect::<Vec<_>>());
    check(&[(1u8, -1i32, true, 'x', 2.5f64); 17]);
    check(&[([1u8, 2], [3u8; 0])]);
}

#[test]
fn options() {
    check(&[Some(1u32), None, Some(70_000)]);
    check(&[Some(Some(1u8)), Some(None), None, Some(Some(2))]);
    check(&[Some(Some(Some(()))), Some(Some(None)), Some(None), None]);
    check(&[Some(()), None, Some(())]);
    check(&[Some(Kind::Unit), None, Some(Kind::New(3))]);
    check(&[None::<u8>, None]);
    check(&[Some(vec![Some(1u8), None]), None, Some(vec![])]);
    check(&[(Some(1u8), Some(None)), (None, Some(Some(2u8))), (None, None)]);
}

#[test]
fn enums() {
    check(&kinds());
    check(&kinds().into_iter().map(|kind| (kind, 1u8)).collect::<Vec<_>>());
    check(&kinds().chunks(4).map(<[Kind]>::to_vec).collect::<Vec<_>>());
    let by_kind: Vec<BTreeMap<Kind, u8>> =
        vec![[(Kind::Unit, 1)].into(), [(Kind::New(1), 2), (Kind::Unit, 3)].into(), [].into()];
    check(&by_kind);
    check(&[Ok::<u8, String>(1), Err("no".into()), Ok(2)]);
}

#[test]
fn maps() {
    let maps: Vec<BTreeMap<u16, Vec<i32>>> = (0..6u16)
        .map(|at| (0..at).map(|key| (key * 100, vec![-1; key.into()])).collect())
        .collect();
    check(&maps);
    let texts: Vec<HashMap<String, f64>> = (0..6u8)
        .map(|at| (0..at).map(|key| (format!("{at}.{key}"), f64::from(key))).collect())
        .collect();
    check(&texts);
    let few: Vec<BTreeMap<String, u8>> =
        vec![[("a".into(), 1)].into(), [("a".into(), 1), ("b".into(), 2)].into(), [].into()];
    check(&few);
    #[derive(Serialize, Deserialize, PartialEq, Debug, PartialOrd, Ord, Eq)]
    struct Key(String);
    let keys: Vec<BTreeMap<Key, Option<u8>>> =
        vec![[(Key("a".into()), Some(1))].into(), [(Key("a".into()), None)].into()];
    check(&keys);
}

#[test]
fn items_of_different_kinds() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(untagged)]
    enum Any {
        Number(i64),
        Float(f64),
        Text(String),
        List(Vec<Any>),
        Map { at: u8 },
        None(()),
    }
    check(&[
        Any::Number(-1),
        Any::Text("x".into()),
        Any::List(vec![Any::Number(1), Any::Map { at: 1 }, Any::None(())]),
        Any::Map { at: 3 },
        Any::Float(0.5),
    ]);
    check(&[Some(Any::Number(1)), None, Some(Any::Text("x".into()))]);
}

#[test]
fn serde_attributes() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(tag = "kind")]
    enum Internal {
        A { x: u8, name: String },
        B { y: Option<Vec<f32>> },
        C,
    }
    let rows = |at: u8| match at % 3 {
        0 => Internal::A { x: at, name: "n".repeat(at.into()) },
        1 => Internal::B { y: Some(vec![f32::from(at); at.into()]) },
        _ => Internal::C,
    };
    check(&(0..12).map(rows).collect::<Vec<_>>());

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    #[serde(tag = "t", content = "c")]
    enum Adjacent {
        A(u8),
        B { y: i64 },
        C,
    }
    check(&[Adjacent::A(1), Adjacent::C, Adjacent::B { y: -1 }, Adjacent::A(3)]);

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Flat {
        id: u32,
        #[serde(flatten)]
        point: Point,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    }
    let flat = |at: u8| Flat {
        id: at.into(),
        point: Point { x: 1.0, y: at.into() },
        rest: (0..at % 3).map(|key| (format!("k{key}"), key)).collect(),
    };
    check(&(0..9).map(flat).collect::<Vec<_>>());

    #[derive(Serialize, Deserialize, PartialEq, Debug, Default)]
    struct Skips {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        a: Option<u8>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        b: Vec<u8>,
        #[serde(rename = "see", alias = "sea")]
        c: bool,
        #[serde(default, skip_serializing_if = "Option::is_none", with = "double")]
        d: Option<Option<u8>>,
        #[serde(skip)]
        e: u8,
    }
    mod double {
        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        #[allow(clippy::ref_option)]
        #[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature.
        pub fn serialize<S: Serializer>(v: &Option<Option<u8>>, s: S) -> Result<S::Ok, S::Error> {
            v.as_ref().unwrap().serialize(s)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(
            d: D,
        ) -> Result<Option<Option<u8>>, D::Error> {
            Option::deserialize(d).map(Some)
        }
    }
    let skips = |at: u8| Skips {
        a: (at.is_multiple_of(2)).then_some(at),
        b: vec![at; usize::from(at % 3)],
        c: at.is_multiple_of(5),
        d: [None, Some(None), Some(Some(at))][usize::from(at % 3)],
        e: 0,
    };
    check(&(0..20).map(skips).collect::<Vec<_>>());

    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct New(Vec<Inner>);
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Inner(u8, Unit);
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Unit;
    check(&[New(vec![]), New(vec![Inner(1, Unit), Inner(2, Unit)])]);
}

#[test]
fn tensors() {
    let tensors = |at: u8| {
        let all = DynTensor::new(DType::U16, &[2, 2], Order::C, vec![at; 8]).unwrap();
        (Tensor(all), Tensor(vec![f64::from(at); 3]), u32::from(at))
    };
    check(&(0..10).map(tensors).collect::<Vec<_>>());
    let other =
        |at: usize| Tensor(DynTensor::new(DType::U8, &[at], Order::C, vec![1; at]).unwrap());
    check(&(0..5).map(other).collect::<Vec<_>>());
}

#[test]
fn everything_nested() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Deep {
        list: Vec<Vec<Option<Kind>>>,
        map: BTreeMap<String, (u8, Option<Point>)>,
        next: Option<Box<Deep>>,
        tuple: (Option<[bool; 3]>, ByteBuf),
    }
    fn deep(at: u8, depth: u8) -> Deep {
        Deep {
            list: (0..at % 4).map(|n| vec![Some(kinds()[usize::from(n)].clone()), None]).collect(),
            map: (0..at % 3).map(|n| (format!("{n}"), (n, None))).collect(),
            next: (depth > 0 && at.is_multiple_of(2))
                .then(|| Box::new(deep(at + depth, depth - 1))),
            tuple: (
                (at % 3 == 1).then_some([true, false, at.is_multiple_of(2)]),
                ByteBuf::from(vec![at; 3]),
            ),
        }
    }
    check(&(0..30).map(|at| deep(at, 3)).collect::<Vec<_>>());
}
