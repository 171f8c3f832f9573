//! Filters over tables find the rows that a plain filter of the loaded rows finds.

use std::cmp::Ordering;

use ndarray::{Array1, Array2};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::archive::{Compression, Filter, SaveOptions, Table, col};
use tenarc::error::Category;
use tenarc::io::ReadAt;
use tenarc::{Archive, OArchive, Tensor, Value};
use tenarc_test_support::builder::{Seg, archive, map};

use crate::build::{columns, kind};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Row {
    small: u8,
    signed: i16,
    large: u64,
    long: i64,
    wide: i128,
    single: f32,
    double: f64,
    is_new: bool,
    text: String,
    /// One of few, so that the column is a dict.
    word: String,
    bytes: ByteBuf,
    score: Option<f32>,
    label: Option<String>,
    twice: Option<Option<i8>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<u32>,
    color: Color,
    kind: Kind,
    inner: Inner,
    parent: Option<Inner>,
    place: [f32; 2],
    tags: Vec<String>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Inner {
    size: u16,
    word: Option<String>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Color {
    Red,
    Green,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Kind {
    Quit,
    Click { x: i32, inner: Option<Inner> },
    Key(String),
    Pair(u8, u8),
}

/// The columns of numbers, of texts, and of everything.
const NUMBERS: [&str; 14] = [
    "small",
    "signed",
    "large",
    "long",
    "wide",
    "single",
    "double",
    "score",
    "twice",
    "note",
    "inner.size",
    "parent.size",
    "kind.Click.x",
    "kind.Click.inner.size",
];
const TEXTS: [&str; 9] = [
    "text",
    "word",
    "label",
    "inner.word",
    "parent.word",
    "color",
    "kind",
    "kind.Key",
    "kind.Click.inner.word",
];
const OTHERS: [&str; 8] =
    ["is_new", "bytes", "inner", "parent", "place", "tags", "kind.Click", "kind.Pair"];

fn words() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "ab", "abc", "b", "é", "Red", "Click", "Key", "xaby"])
        .prop_map(str::to_owned)
}

fn doubles() -> impl Strategy<Value = f64> {
    prop_oneof![
        (-3..4).prop_map(f64::from),
        (-6..7).prop_map(|half| f64::from(half) / 2.0),
        any::<f64>(),
        prop::sample::select(vec![
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            -0.0,
            9.2e18,
            1.8e19
        ]),
    ]
}

fn wides() -> impl Strategy<Value = i128> {
    prop_oneof![
        (-3i128..4),
        any::<i64>().prop_map(i128::from),
        any::<u64>().prop_map(i128::from),
        any::<i128>(),
        prop::sample::select(vec![i128::MIN, i128::MAX, 1 << 53, (1 << 53) + 1, u64::MAX.into()]),
    ]
}

fn inners() -> impl Strategy<Value = Inner> {
    (0u16..4, prop::option::of(words())).prop_map(|(size, word)| Inner { size, word })
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Quit),
        (-3..4, prop::option::of(inners())).prop_map(|(x, inner)| Kind::Click { x, inner }),
        words().prop_map(Kind::Key),
        any::<(u8, u8)>().prop_map(|(one, other)| Kind::Pair(one, other)),
    ]
}

#[allow(clippy::cast_possible_truncation)]
fn rows() -> impl Strategy<Value = Row> {
    let numbers = (0u8..4, -3i16..4, wides(), wides(), wides(), doubles(), doubles());
    let texts = (any::<bool>(), words(), any::<u32>(), words(), words());
    let options = (
        prop::option::of(doubles()),
        prop::option::of(words()),
        prop::option::of(prop::option::of(-3i8..4)),
        prop::option::of(0u32..4),
    );
    let others = (any::<bool>(), kinds(), inners(), prop::option::of(inners()), any::<[i8; 2]>());
    (numbers, texts, options, others).prop_map(|(numbers, texts, options, others)| Row {
        small: numbers.0,
        signed: numbers.1,
        large: numbers.2.unsigned_abs() as u64,
        long: numbers.3 as i64,
        wide: numbers.4,
        single: numbers.5 as f32,
        double: numbers.6,
        is_new: texts.0,
        text: format!("{}{}", texts.1, texts.2 % 100),
        word: texts.3,
        bytes: ByteBuf::from(texts.4),
        score: options.0.map(|score| score as f32),
        label: options.1,
        twice: options.2,
        note: options.3,
        color: if others.0 { Color::Red } else { Color::Green },
        tags: vec!["t".to_owned(); usize::from(others.2.size)],
        kind: others.1,
        inner: others.2,
        parent: others.3,
        place: others.4.map(f32::from),
    })
}

/// A condition, as this test understands it.
#[derive(Debug, Clone)]
enum Condition {
    Leaf(String, Test),
    Not(Box<Condition>),
    And(Box<Condition>, Box<Condition>),
    Or(Box<Condition>, Box<Condition>),
}

#[derive(Debug, Clone)]
enum Test {
    Null,
    Present,
    Compare(&'static str, Value),
    In(Vec<Value>),
    Starts(String),
    Contains(String),
}

fn comparisons(values: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Test> {
    let names = prop::sample::select(vec!["eq", "ne", "lt", "lt_eq", "gt", "gt_eq"]);
    prop_oneof![
        4 => (names, values.clone()).prop_map(|(name, value)| Test::Compare(name, value)),
        1 => prop::collection::vec(values, 0..4).prop_map(Test::In),
    ]
}

fn conditions() -> impl Strategy<Value = Condition> {
    let numbers = prop_oneof![
        wides().prop_map(Value::from),
        doubles().prop_map(Value::from),
        (-3i8..4).prop_map(|number| Value::F32(f32::from(number) / 2.0)),
    ]
    .boxed();
    let texts = prop_oneof![
        3 => comparisons(words().prop_map(Value::from).boxed()),
        1 => words().prop_map(Test::Starts),
        1 => words().prop_map(Test::Contains),
    ];
    let bytes = words().prop_map(|word| Value::Bytes(word.into())).boxed();
    let all: Vec<_> = NUMBERS.into_iter().chain(TEXTS).chain(OTHERS).collect();
    let of = |paths: &[&'static str]| prop::sample::select(paths.to_vec());
    let leaf = prop_oneof![
        4 => (of(&NUMBERS), comparisons(numbers)),
        3 => (of(&TEXTS), texts),
        1 => (Just("is_new"), comparisons(any::<bool>().prop_map(Value::from).boxed())),
        1 => (Just("bytes"), comparisons(bytes)),
        1 => (of(&all), prop_oneof![Just(Test::Null), Just(Test::Present)]),
    ];
    let leaf = leaf.prop_map(|(path, test)| Condition::Leaf(path.to_owned(), test));
    leaf.prop_recursive(3, 8, 2, |inner| {
        let two = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            inner.clone().prop_map(|one| Condition::Not(Box::new(one))),
            two().prop_map(|(one, other)| Condition::And(one, other)),
            two().prop_map(|(one, other)| Condition::Or(one, other)),
        ]
    })
}

impl Condition {
    fn filter(&self) -> Filter {
        match self {
            Self::Leaf(path, test) => {
                let col = col(path);
                match test.clone() {
                    Test::Null => col.is_null(),
                    Test::Present => col.is_not_null(),
                    Test::Compare("eq", value) => col.eq(value),
                    Test::Compare("ne", value) => col.ne(value),
                    Test::Compare("lt", value) => col.lt(value),
                    Test::Compare("lt_eq", value) => col.lt_eq(value),
                    Test::Compare("gt", value) => col.gt(value),
                    Test::Compare(_, value) => col.gt_eq(value),
                    Test::In(values) => col.is_in(values),
                    Test::Starts(start) => col.starts_with(start),
                    Test::Contains(part) => col.contains(part),
                }
            }
            Self::Not(one) => !one.filter(),
            Self::And(one, other) => one.filter().and(other.filter()),
            Self::Or(one, other) => one.filter().or(other.filter()),
        }
    }

    fn paths(&self) -> Vec<&str> {
        match self {
            Self::Leaf(path, _) => vec![path],
            Self::Not(one) => one.paths(),
            Self::And(one, other) | Self::Or(one, other) => [one.paths(), other.paths()].concat(),
        }
    }

    /// What SQL says of a row: `None` if it is not known, because a value is null.
    fn of_row(&self, row: &Value) -> Option<bool> {
        match self {
            Self::Leaf(path, test) => test.of_value(&field(row, path)),
            Self::Not(one) => one.of_row(row).map(|is_met| !is_met),
            Self::And(one, other) => match (one.of_row(row), other.of_row(row)) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (one, other) => Some(one? && other?),
            },
            Self::Or(one, other) => match (one.of_row(row), other.of_row(row)) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (one, other) => Some(one? || other?),
            },
        }
    }
}

impl Test {
    fn of_value(&self, value: &Value) -> Option<bool> {
        let equals = |other: &Value| order(value, other) == Some(Ordering::Equal);
        let text = || value.as_str().unwrap();
        Some(match self {
            Self::Null => value.is_null(),
            Self::Present => !value.is_null(),
            _ if value.is_null() => return None,
            Self::In(values) => values.iter().any(equals),
            Self::Starts(start) => text().starts_with(start),
            Self::Contains(part) => text().contains(part),
            Self::Compare("ne", other) => !equals(other),
            Self::Compare(name, other) => match (*name, order(value, other)) {
                (_, None) => false,
                ("eq", Some(order)) => order.is_eq(),
                ("lt", Some(order)) => order.is_lt(),
                ("lt_eq", Some(order)) => order.is_le(),
                ("gt", Some(order)) => order.is_gt(),
                (_, Some(order)) => order.is_ge(),
            },
        })
    }
}

/// The value at a path in a row. A variant with content is its name.
fn field(row: &Value, path: &str) -> Value {
    let found = path.split('.').try_fold(row, |value, step| value.get(step));
    let mut found = found.cloned().unwrap_or(Value::Null);
    while let Value::Tag(_, inner) = found {
        found = *inner;
    }
    match (path, found) {
        ("kind", Value::Map(entries)) => entries[0].0.clone(),
        (_, found) => found,
    }
}

fn order(one: &Value, other: &Value) -> Option<Ordering> {
    let single = |value: &Value| match value {
        Value::F32(value) => Value::F64((*value).into()),
        other => other.clone(),
    };
    match (single(one), single(other)) {
        (Value::Integer(one), Value::Integer(other)) => Some(one.cmp(&other)),
        (Value::F64(one), Value::F64(other)) => one.partial_cmp(&other),
        (Value::Integer(one), Value::F64(other)) => exact(one, other),
        (Value::F64(one), Value::Integer(other)) => exact(other, one).map(Ordering::reverse),
        (Value::Text(one), Value::Text(other)) => Some(one.cmp(&other)),
        (Value::Bytes(one), Value::Bytes(other)) => Some(one.cmp(&other)),
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(&other)),
        (one, other) => panic!("{one} and {other}"),
    }
}

/// Compares an integer with a float.
#[allow(clippy::cast_possible_truncation)]
fn exact(one: i128, other: f64) -> Option<Ordering> {
    match other {
        other if other.is_nan() => None,
        other if other >= 2f64.powi(127) => Some(Ordering::Less),
        other if other < -2f64.powi(127) => Some(Ordering::Greater),
        other => {
            let order = one.cmp(&(other.trunc() as i128));
            Some(order.then(0.0.partial_cmp(&other.fract()).unwrap()))
        }
    }
}

/// Values of these rows, each saved in another way.
fn saved(days: &[Vec<Row>], first: usize) -> Vec<u8> {
    let options = |day: usize| {
        let options = SaveOptions::default().with_columns(day % 4 != 3);
        let options = options.with_inline_below(if day.is_multiple_of(2) { 2048 } else { 0 });
        if day % 3 == 2 { options.with_compression(Compression::lz4()) } else { options }
    };
    let mut bytes = OArchive::new(Vec::new()).unwrap().finish().unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    std::fs::write(&path, &bytes).unwrap();
    for (day, rows) in days.iter().enumerate() {
        let mut out = OArchive::append_with(&path, options(first + day)).unwrap();
        out.save_as("rows", rows).unwrap();
        out.finish().unwrap();
    }
    bytes = std::fs::read(&path).unwrap();
    bytes
}

fn shown<'v>(rows: impl IntoIterator<Item = &'v Value>) -> Vec<String> {
    rows.into_iter().map(ToString::to_string).collect()
}

fn check(table: &Table<'_, impl ReadAt>, all: &[Value], condition: &Condition) {
    let is_met = |row: &&Value| condition.of_row(row) == Some(true);
    let expected: Vec<&Value> = all.iter().filter(is_met).collect();
    let found = table.filter(condition.filter());
    if !condition.paths().iter().all(|path| table.column::<Vec<Value>>(path).is_ok()) {
        // No row of any columns has a value there.
        let error = found.count().unwrap_err().to_string();
        assert!(error.contains("there is none at"), "{error}");
        return;
    }
    let numbers: Vec<u64> = (0..).zip(all).filter(|(_, row)| is_met(row)).map(|it| it.0).collect();
    assert_eq!(found.row_numbers().unwrap(), numbers, "{condition:?}");
    let (start, end) = (table.len() / 3, table.len() - table.len() / 4);
    let inside: Vec<u64> =
        numbers.iter().copied().filter(|row| (start..end).contains(row)).collect();
    assert_eq!(found.row_numbers_in(start..end).unwrap(), inside, "{condition:?}");
    assert!(found.row_numbers_in(start..=table.len()).is_err());
    assert_eq!(found.count().unwrap(), numbers.len() as u64);
    assert_eq!(shown(&found.rows::<Value>().unwrap()), shown(expected.iter().copied()));
    for path in NUMBERS.into_iter().chain(TEXTS).chain(OTHERS) {
        let Ok(all) = table.column::<Vec<Value>>(path) else { continue };
        let values: Vec<Value> = found.column(path).unwrap();
        let picked: Vec<_> =
            numbers.iter().map(|row| &all[usize::try_from(*row).unwrap()]).collect();
        assert_eq!(shown(&values), shown(picked), "{path}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 40 }))]

    #[test]
    fn filters_find_what_a_plain_filter_finds(
        days in prop::collection::vec(prop::collection::vec(rows(), 1..40), 1..4),
        first in 0usize..12,
        conditions in prop::collection::vec(conditions(), 4),
    ) {
        let bytes = saved(&days, first);
        let archive = Archive::new(&bytes[..]).unwrap();
        let table = archive.table("rows").unwrap();
        let all: Vec<Value> = table.rows(..).unwrap();
        for condition in &conditions {
            check(&table, &all, condition);
        }
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Event {
    id: u64,
    day: String,
    score: f64,
    vector: [f32; 3],
    event: Option<Kind>,
}

fn event(id: u64) -> Event {
    let small = u16::try_from(id % 100).unwrap();
    Event {
        id,
        day: format!("2026-11-{:02}", id / 3000),
        score: f64::from(small),
        vector: [f32::from(small); 3],
        event: (!id.is_multiple_of(5)).then(|| match id % 3 {
            0 => Kind::Quit,
            1 => Kind::Click { x: i32::from(small), inner: None },
            _ => Kind::Key(format!("key {small}")),
        }),
    }
}

fn events(rows: u64) -> (Vec<u8>, Vec<Event>) {
    let all: Vec<_> = (0..rows).map(event).collect();
    let mut out = OArchive::new(Vec::new()).unwrap();
    let (some, rest) = all.split_at(all.len() / 3);
    out.save_as("events", some).unwrap();
    out.save_as("events", rest).unwrap();
    (out.finish().unwrap(), all)
}

#[test]
fn rows_of_several_groups_as_other_types() {
    let (bytes, all) = events(if cfg!(miri) { 300 } else { 150_000 });
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    let found = table.filter(col("score").gt(98.5).and(col("day").ne("2026-11-20")));
    let expected: Vec<_> =
        all.iter().filter(|row| row.score > 98.5 && row.day != "2026-11-20").cloned().collect();
    assert_eq!(found.rows::<Event>().unwrap(), expected);
    let ids: Vec<u64> = expected.iter().map(|row| row.id).collect();
    assert_eq!(found.column::<Vec<u64>>("id").unwrap(), ids);
    let ids: Tensor<Array1<u64>> = found.column("id").unwrap();
    assert_eq!(ids.len(), expected.len());
    let vectors: Tensor<Array2<f32>> = found.column("vector").unwrap();
    assert_eq!(vectors.shape(), [expected.len(), 3]);
    assert!(vectors.outer_iter().zip(&expected).all(|(one, row)| one.to_vec() == row.vector));
    let days: Vec<String> = found.column("day").unwrap();
    assert!(days.iter().eq(expected.iter().map(|row| &row.day)));
    let found = table.filter(col("id").lt(0));
    assert_eq!((found.count().unwrap(), found.rows::<Event>().unwrap()), (0, Vec::new()));
    assert!(found.column::<Vec<u64>>("id").unwrap().is_empty());
}

#[test]
fn what_is_in_variants_has_paths() {
    let (bytes, all) = events(3000);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    let columns = table.columns().unwrap();
    let named: Vec<_> = columns.iter().map(tenarc::archive::Column::path).collect();
    let expected = [
        "id",
        "day",
        "score",
        "vector",
        "event",
        "event.Click",
        "event.Click.x",
        "event.Click.inner",
        "event.Key",
    ];
    assert_eq!(named, expected);
    let inside = columns.iter().filter(|column| column.path().starts_with("event"));
    assert!(inside.clone().all(tenarc::archive::Column::is_optional));
    let xs = columns.iter().find(|column| column.path() == "event.Click.x").unwrap();
    assert_eq!((xs.dtype(), xs.is_tensor()), (Some(&tenarc::DType::I32), false));
    let x = |row: &Event| match &row.event {
        Some(Kind::Click { x, .. }) => Some(*x),
        _ => None,
    };
    let found: Vec<Option<i32>> = table.column("event.Click.x").unwrap();
    assert!(found.into_iter().eq(all.iter().map(x)));
    let keys: Vec<Option<String>> = table.column("event.Key").unwrap();
    assert_eq!(keys[2], Some("key 2".to_owned()));
    assert_eq!(keys[1], None);
    let found: Vec<Event> =
        table.filter(col("event.Click.x").gt_eq(50).and(col("event").eq("Click"))).rows().unwrap();
    let expected = all.iter().filter(|row| x(row).is_some_and(|x| x >= 50));
    assert!(found.iter().eq(expected));
    let error = table.column::<Vec<Value>>("event.Quit").unwrap_err();
    assert!(error.to_string().contains("there is none at"), "{error}");
}

#[test]
fn errors_say_what_was_found_and_expected() {
    let (bytes, _) = events(300);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.table("events").unwrap();
    let refused = |filter: Filter| table.filter(filter).count().unwrap_err();
    for (filter, path, what) in [
        (col("nothing").gt(1), "nothing", "expected one of the columns `id`"),
        (col("id.3").gt(1), "id.3", "the path leads to a row of a column"),
        (
            col("day").gt(20),
            "day",
            "expected values to compare with the number 20, found a value such as text string",
        ),
        (
            col("score").eq("high"),
            "score",
            "expected values to compare with the text \"high\", found a value such as number",
        ),
        (col("id").starts_with("7"), "id", "with the start \"7\", found a value such as number"),
        (col("vector").eq(1), "vector", "with the number 1, found a value such as array"),
        (col("event.Click").eq(1), "event.Click", "found a value such as map"),
        (col("event").eq(1), "event", "found a value such as text string"),
        (col("id").eq(Value::Null), "id", "null, for which there is is_null"),
        (col("id").is_in([Value::from(1), "x".into()]), "id", "one of the number 1, the text"),
    ] {
        let error = refused(filter.clone());
        let category = if path == "nothing" { Category::NotFound } else { Category::Mismatch };
        assert_eq!((&*error.path(), error.category()), (path, category), "{error}");
        assert!(error.to_string().contains(what), "{error}");
        // Another condition does not hide it.
        let both = refused(col("id").lt(0).and(!filter));
        assert_eq!(both.to_string(), error.to_string());
    }
}

// 119
/// What rows cost that take no bytes is not given back after each group.
#[test]
fn groups_without_bytes_are_limited() {
    let group = (1 << 16, map(&[("x", kind("unit", &[]))]));
    let count = |groups: usize| {
        let bytes = archive(&Seg::new(columns(&vec![group.clone(); groups]), &[]));
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.only().unwrap().table("").unwrap().filter(col("x").is_null()).count()
    };
    assert_eq!(count(100).unwrap(), 100 << 16);
    let error = count(300).unwrap_err();
    assert_eq!(error.category(), Category::Limit, "{error}");
}
