//! Statistics of groups of rows change what filters read, and nothing that they find.

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::archive::{Filter, SaveOptions, col};
use tenarc::error::Category;
use tenarc::{Archive, OArchive, Value};
use tenarc_test_support::builder::{Seg, archive, array, bytes, map, tag, text};

use crate::build::{kind, one, u8s};

#[derive(Serialize, Debug, Clone)]
struct Row {
    long: i64,
    large: u64,
    single: f32,
    double: f64,
    is_new: bool,
    text: String,
    /// One of few, so that the column is a dict.
    word: String,
    bytes: ByteBuf,
    score: Option<f32>,
    twice: Option<Option<i8>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    color: Color,
    kind: Kind,
    inner: Inner,
    parent: Option<Inner>,
    place: [u8; 2],
    /// Each of these changes its type once, which ends a group.
    breaks: Breaks,
}

#[derive(Serialize, Debug, Clone)]
struct Inner {
    size: u16,
    name: Option<String>,
}

#[derive(Serialize, Debug, Clone)]
enum Color {
    Red,
    Green,
    Blue,
}

#[derive(Serialize, Debug, Clone)]
enum Kind {
    Quit,
    Click { x: i32 },
    Key(String),
}

#[derive(Serialize, Debug, Clone)]
struct Breaks {
    one: Value,
    two: Value,
    three: Value,
    four: Value,
}

const PATHS: [&str; 22] = [
    "long",
    "large",
    "single",
    "double",
    "is_new",
    "text",
    "word",
    "bytes",
    "score",
    "twice",
    "note",
    "color",
    "kind",
    "kind.Click.x",
    "kind.Key",
    "inner.size",
    "inner.name",
    "parent",
    "parent.size",
    "parent.name",
    "place",
    "breaks.one",
];

const INTEGERS: [i64; 9] = [i64::MIN, -1 << 53, -1, 0, 1, 2, 7, (1 << 53) + 1, i64::MAX];
const FLOATS: [f64; 12] = [
    f64::NEG_INFINITY,
    -1e300,
    -1.5,
    -0.0,
    0.0,
    1.0,
    1.5,
    7.0,
    0.1,
    9_007_199_254_740_992.0,
    f64::INFINITY,
    f64::NAN,
];

/// Texts whose first 15 bytes end between characters or inside one, and cannot always be followed by a greater text.
fn strings() -> Vec<String> {
    let start = "a".repeat(14);
    let mut all: Vec<String> =
        ["", "\0", "a", "b", "Red", "Green", "Blue", "Click", "Key", "Quit", "é"]
            .map(str::to_owned)
            .into();
    for end in [
        "",
        "a",
        "b",
        "aa",
        "é",
        "éa",
        "\u{7f}",
        "\u{7f}x",
        "\u{d7ff}",
        "\u{10ffff}",
        "\u{10ffff}\u{10ffff}",
    ] {
        all.push(format!("{start}{end}"));
    }
    all.push("\u{10ffff}".repeat(4));
    all.push("\u{10ffff}".repeat(5));
    all.push(format!("{}\u{7ff}\u{7f}z", "a".repeat(13)));
    all
}

fn from<T: Clone + std::fmt::Debug + 'static>(
    all: &[T],
    theme: usize,
) -> impl Strategy<Value = T> + use<T> {
    // Values that are near each other, or all of them.
    let start = theme % all.len();
    let near = all[start..(start + 2).min(all.len())].to_vec();
    prop_oneof![8 => prop::sample::select(near), 1 => prop::sample::select(all.to_vec())]
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rows(theme: usize) -> impl Strategy<Value = Row> {
    let text = move || from(&strings(), theme);
    let integer = move || from(&INTEGERS, theme);
    let float = move || from(&FLOATS, theme);
    let inner = move || {
        (integer(), prop::option::of(text()))
            .prop_map(|(size, name)| Inner { size: size as u16, name })
    };
    let color = from(&[Color::Red, Color::Green, Color::Blue], theme);
    let kinds = prop_oneof![
        Just(Kind::Quit),
        integer().prop_map(|x| Kind::Click { x: x as i32 }),
        text().prop_map(Kind::Key),
    ];
    let bytes = prop_oneof![
        4 => text().prop_map(String::into_bytes),
        1 => prop::sample::select(vec![vec![255; 20], vec![1, 255], [vec![1; 3], vec![255; 15]].concat()]),
    ];
    let numbers = (integer(), integer(), float(), float(), any::<bool>());
    let others = (
        text(),
        text(),
        bytes,
        prop::option::of(float()),
        prop::option::of(prop::option::of(-2i8..3)),
    );
    let more = (prop::option::of(text()), color, kinds, inner(), prop::option::of(inner()));
    (numbers, others, more).prop_map(move |(numbers, others, more)| Row {
        long: numbers.0,
        large: numbers.1 as u64,
        single: numbers.2 as f32,
        double: numbers.3,
        is_new: numbers.4 && !theme.is_multiple_of(3),
        text: others.0,
        word: others.1,
        bytes: ByteBuf::from(others.2),
        score: others.3.map(|score| score as f32).filter(|_| !theme.is_multiple_of(4)),
        twice: others.4,
        note: more.0.filter(|_| theme % 5 > 1),
        color: more.1,
        kind: more.2,
        inner: more.3,
        parent: more.4.filter(|_| !theme.is_multiple_of(3)),
        place: [1, 2],
        breaks: breaks(0),
    })
}

fn breaks(group: usize) -> Breaks {
    let value = |change: usize| if group > change { Value::from("text") } else { Value::from(1) };
    Breaks { one: value(0), two: value(1), three: value(2), four: value(3) }
}

/// Rows in groups, at least 1,024 of them.
fn segments() -> impl Strategy<Value = Vec<Row>> {
    let group = (0usize..40).prop_flat_map(|theme| prop::collection::vec(rows(theme), 1..4));
    prop::collection::vec(group, 1..6).prop_map(|groups| {
        let count = 1024 / groups.len() + 1;
        let mut all = Vec::new();
        for (number, group) in groups.into_iter().enumerate() {
            let rows = group.into_iter().cycle().take(count);
            all.extend(rows.map(|row| Row { breaks: breaks(number), ..row }));
        }
        all
    })
}

fn values() -> impl Strategy<Value = Value> {
    let texts = strings();
    prop_oneof![
        4 => prop::sample::select(INTEGERS.to_vec()).prop_map(Value::from),
        1 => Just(Value::from(u64::MAX)),
        4 => prop::sample::select(FLOATS.to_vec()).prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        6 => prop::sample::select(texts.clone()).prop_map(Value::from),
        2 => prop::sample::select(texts).prop_map(|text| Value::Bytes(text.into_bytes())),
    ]
}

fn conditions() -> impl Strategy<Value = Filter> {
    let leaf = (prop::sample::select(PATHS.to_vec()), 0..11, values(), values()).prop_map(
        |(path, what, one, other)| {
            let column = col(path);
            let text = || one.as_str().unwrap_or("a").to_owned();
            match what {
                0 => column.eq(one),
                1 => column.ne(one),
                2 => column.lt(one),
                3 => column.lt_eq(one),
                4 => column.gt(one),
                5 => column.gt_eq(one),
                6 => column.is_in([one, other]),
                7 => column.is_null(),
                8 => column.is_not_null(),
                9 => column.starts_with(text()),
                _ => column.contains(text()),
            }
        },
    );
    leaf.prop_recursive(3, 6, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|filter| !filter),
            (inner.clone(), inner.clone()).prop_map(|(one, other)| one.and(other)),
            (inner.clone(), inner).prop_map(|(one, other)| one.or(other)),
        ]
    })
}

fn saved<T: Serialize>(segments: &[Vec<T>], options: &SaveOptions) -> Vec<u8> {
    let mut out = OArchive::with_options(Vec::new(), options.clone()).unwrap();
    for rows in segments {
        out.save_as("rows", rows).unwrap();
    }
    out.finish().unwrap()
}

/// What a filter finds, or the path and the message of its error.
fn found(archive: &Archive<&[u8]>, filter: &Filter) -> Result<Vec<u64>, (String, String)> {
    let table = archive.table("rows").unwrap();
    let found = table.filter(filter.clone()).row_numbers();
    found.map_err(|error| (error.path(), error.message()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 12 }))]

    #[test]
    fn filters_find_the_same_rows_as_without_statistics(
        segments in prop::collection::vec(segments(), 1..3),
        // Long notes leave little room for statistics, which then cover several groups, or not all columns.
        note in prop::sample::select(vec![0usize, 62_000, 64_500, 65_200]),
        conditions in prop::collection::vec(conditions(), 40),
    ) {
        let options = SaveOptions::default().with_note("n", "x".repeat(note));
        let without = saved(&segments, &options.clone().with_statistics(false));
        let with = saved(&segments, &options.with_statistics(true));
        prop_assert!(with.len() > without.len());
        let [with, without] = [&with[..], &without].map(|bytes| Archive::new(bytes).unwrap());
        with.verify_decoded().unwrap();
        for condition in &conditions {
            let rows = found(&with, condition);
            prop_assert_eq!(&rows, &found(&without, condition), "{:?}", condition);
            let table = with.table("rows").unwrap();
            // A column that does not exist is an error of both.
            let candidates = table.filter(condition.clone()).candidates();
            prop_assert!(candidates.is_ok() || rows.is_err(), "{:?}", condition);
            let candidates = candidates.unwrap_or_default();
            prop_assert!(candidates.windows(2).all(|two| two[0].end < two[1].start));
            let is_candidate = |row: &u64| candidates.iter().any(|rows| rows.contains(row));
            prop_assert!(rows.iter().flatten().all(is_candidate), "{:?}", condition);
        }
    }
}

/// What is under key 2 of the extensions of the first segment, and its metadata.
fn extension(bytes: &[u8]) -> (Option<Value>, Vec<u8>) {
    let archive = Archive::new(bytes).unwrap();
    let metadata = archive.segment(0).unwrap().metadata().unwrap().to_vec();
    let mut record = tenarc::Deserializer::from_slice(&bytes[12..]);
    let content = ByteBuf::deserialize(&mut record).unwrap();
    let before = content.len() - metadata.len();
    let header = [&content[..before], &[0xf6]].concat();
    let Value::Tag(_, header) = tenarc::from_slice(&header).unwrap() else { panic!() };
    let Value::Map(ext) = header[6].clone() else { panic!() };
    let statistics = ext.iter().find(|(key, _)| *key == Value::from(2));
    (statistics.map(|(_, value)| value.clone()), metadata)
}

/// An archive with this value, whose buffers are in the metadata, and these statistics.
fn with_statistics(metadata: &[u8], statistics: &Value) -> Vec<u8> {
    let ext = tenarc::to_vec(&Value::Map(vec![(Value::from(2), statistics.clone())])).unwrap();
    archive(&Seg { ext, ..Seg::new(metadata.to_vec(), &[]) })
}

#[derive(Serialize, Debug, Clone)]
struct Small {
    id: u16,
    price: f64,
    text: String,
    is_new: bool,
    score: Option<i8>,
    color: Color,
}

fn small(id: u16) -> Small {
    Small {
        id: 7 + id,
        price: if id % 9 == 1 { f64::NAN } else { f64::from(id) / 2.0 - 3.0 },
        text: format!("text {}", id % 300),
        is_new: id < 1000,
        score: id.is_multiple_of(3).then_some((id % 50) as i8 - 10),
        color: if id.is_multiple_of(2) { Color::Red } else { Color::Green },
    }
}

fn inline(rows: &[Small]) -> (Value, Vec<u8>) {
    let mut out = OArchive::with_options(
        Vec::new(),
        SaveOptions::default().with_statistics(true).with_inline_below(usize::MAX),
    )
    .unwrap();
    out.save(rows).unwrap();
    let (statistics, metadata) = extension(&out.finish().unwrap());
    (statistics.unwrap(), metadata)
}

#[test]
fn what_is_written_is_what_the_specification_says() {
    let (statistics, _) = inline(&rows_of(1200));
    let expected = "[1, [\
        [[\"color\"], [[0, 0, \"Green\", \"Red\"]]], \
        [[\"id\"], [[0, 0, 7, 1206]]], \
        [[\"is_new\"], [[0, 0, false, true]]], \
        [[\"price\"], [[0, 134, -3.0_2, 596.5_2]]], \
        [[\"score\"], [[800, 0, -10, 39]]], \
        [[\"text\"], [[0, 0, \"text 0\", \"text 99\"]]]]]";
    assert_eq!(statistics.to_string(), expected);
    // Fewer rows, a part of a value, and rows that are not wanted to have any, have none.
    let has = |value: &dyn Fn(&mut OArchive<Vec<u8>>), on: bool| {
        let options = SaveOptions::default().with_statistics(on);
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        value(&mut out);
        extension(&out.finish().unwrap()).0.is_some()
    };
    let save = |out: &mut OArchive<Vec<u8>>, rows: usize| assert!(out.save(&rows_of(rows)).is_ok());
    assert!(has(&|out| save(out, 1024), true));
    assert!(!has(&|out| save(out, 1023), true));
    assert!(!has(&|out| save(out, 1024), false));
    assert_eq!(
        saved(&[rows_of(1200)], &SaveOptions::default()),
        saved(&[rows_of(1200)], &SaveOptions::default().with_statistics(false))
    );
    assert!(!has(&|out| assert!(out.save(&("rows", rows_of(1024))).is_ok()), true));
}

#[test]
fn a_copy_of_a_whole_value_keeps_its_statistics() {
    let options = SaveOptions::default().with_statistics(true);
    let mut out = OArchive::with_options(Vec::new(), options.clone()).unwrap();
    out.save(&rows_of(1200)).unwrap();
    let bytes = out.finish().unwrap();
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.only().unwrap();
    let whole = segment.stored(0..segment.metadata().unwrap().len()).unwrap();
    let copied = |options: SaveOptions, inside: bool| {
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        if inside { out.save(&("rows", &whole)) } else { out.save(&whole) }.unwrap();
        extension(&out.finish().unwrap()).0
    };
    assert_eq!(copied(SaveOptions::default(), false), extension(&bytes).0);
    assert_eq!(copied(options.clone(), false), extension(&bytes).0);
    assert_eq!(copied(options.with_statistics(false), false), None);
    assert_eq!(copied(SaveOptions::default(), true), None);
}

fn rows_of(count: usize) -> Vec<Small> {
    (0..).take(count).map(small).collect()
}

/// The number or text next to this one: a larger or a smaller one.
fn beside(value: &Value, is_larger: bool) -> Option<Value> {
    Some(match value {
        Value::Integer(value) => {
            Value::Integer(if is_larger { value + 1 } else { value.checked_sub(1)? })
        }
        Value::F32(value) => {
            Value::F32(if is_larger { value.next_up() } else { value.next_down() })
        }
        Value::F64(value) => {
            Value::F64(if is_larger { value.next_up() } else { value.next_down() })
        }
        Value::Bool(value) if *value != is_larger => Value::Bool(is_larger),
        Value::Text(text) if is_larger => Value::from(format!("{text}\0")),
        Value::Text(text) => {
            let (last, rest) = text.as_bytes().split_last()?;
            Value::from(format!("{}{}", str::from_utf8(rest).unwrap(), char::from(last - 1)))
        }
        _ => return None,
    })
}

#[test]
fn wrong_statistics_are_found() {
    let (right, metadata) = inline(&rows_of(1200));
    let check = |statistics: &Value| {
        let bytes = with_statistics(&metadata, statistics);
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        archive.verify_decoded()
    };
    check(&right).unwrap();
    let mut number = 0;
    for column in 0..6 {
        let path = right[1][column][0][0].as_str().unwrap().to_owned();
        for place in 0..4 {
            for is_larger in [false, true] {
                let mut wrong = right.clone();
                let found = &mut wrong[1][column][1][0][place];
                let Some(changed) = beside(found, is_larger) else { continue };
                if place < 2 && changed.as_i64().is_none_or(|count| count < 0) {
                    continue;
                }
                *found = changed;
                // A bound may be further away than it must be.
                let is_right = (place == 2 && !is_larger) || (place == 3 && is_larger);
                match check(&wrong) {
                    Ok(()) => assert!(is_right, "{wrong}"),
                    Err(error) => {
                        assert!(!is_right, "{error}");
                        assert_eq!(error.category(), Category::Damaged, "{error}");
                        assert!(error.path().ends_with(&path), "{error}");
                        assert!(
                            error.to_string().contains("the statistics are wrong: "),
                            "{error}"
                        );
                        number += 1;
                    }
                }
            }
        }
    }
    assert!(number > 20, "{number}");
}

/// The example of `SPEC.md`, section 5.13.
#[test]
fn the_example_of_the_specification() {
    let f32s = |value: f32| tag(85, &bytes(&value.to_le_bytes()));
    let names = array(&[text("A"), text("B")]);
    let rows = one(
        2,
        map(&[
            ("score", kind("option", &[bytes(&[1]), f32s(1.5)])),
            ("note", kind("present", &[bytes(&[2]), u8s(&[5])])),
            ("tags", kind("list", &[u8s(&[1, 2]), u8s(&[1, 2, 3])])),
            ("kind", kind("enum", &[u8s(&[0, 1]), names, array(&[vec![0xf6], u8s(&[7])])])),
        ]),
    );
    let spec = include_str!("../../SPEC.md");
    let example = spec.split("82 01 84                          step 1").nth(1).unwrap();
    let example = format!("82 01 84\n{}", example.split_once('\n').unwrap().1);
    let hex: Vec<_> = example
        .split("\n\n")
        .next()
        .unwrap()
        .lines()
        .map(|line| line.trim().split("  ").next().unwrap())
        .collect();
    let digits = hex.concat().replace(' ', "");
    let encoded: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect();
    let statistics: Value = tenarc::from_slice(&encoded).unwrap();
    let bytes = with_statistics(&rows, &statistics);
    let archive = Archive::new(&bytes[..]).unwrap();
    archive.verify_decoded().unwrap();
    let table = archive.only().unwrap();
    let table = table.table("").unwrap();
    assert_eq!(table.filter(col("score").gt(1)).row_numbers().unwrap(), [0]);
    assert_eq!(table.filter(col("kind.B").gt(7)).count().unwrap(), 0);
    // What the statistics say is believed, also if it is wrong.
    let mut wrong = statistics.clone();
    wrong[1][3][1][0][3] = Value::from(1.25);
    wrong[1][3][1][0][2] = Value::from(1.25);
    let bytes = with_statistics(&rows, &wrong);
    let archive = Archive::new(&bytes[..]).unwrap();
    let table = archive.only().unwrap();
    assert_eq!(table.table("").unwrap().filter(col("score").gt(1.4)).count().unwrap(), 0);
    let error = archive.verify_decoded().unwrap_err();
    assert_eq!(
        error.to_string(),
        "the statistics are wrong: no value is above the number 1.25, but there is the number 1.5 at `0.score` (byte 12)"
    );
    // Integers are compared with integers.
    wrong[1][3][1][0][2] = Value::from(1);
    wrong[1][3][1][0][3] = Value::from(2);
    let bytes = with_statistics(&rows, &wrong);
    let error = Archive::new(&bytes[..]).unwrap().verify_decoded().unwrap_err();
    assert!(
        error.to_string().contains("the values are not of the kind of the number 1"),
        "{error}"
    );
}

/// Statistics of another form are ignored, and a check finds them.
#[test]
fn statistics_of_another_form_are_ignored() {
    let (right, metadata) = inline(&rows_of(1200));
    let column = right[1][1].clone();
    let with_column = |column: Value| Value::from(vec![Value::from(1), vec![column].into()]);
    let with_statistic = |statistic: Vec<Value>| {
        let mut column = column.clone();
        column[1][0] = statistic.into();
        with_column(column)
    };
    let numbers = |all: [i64; 4]| all.map(Value::from).to_vec();
    let mut two = right.clone();
    two[0] = Value::from(0);
    let mut path = column.clone();
    path[0][0] = Value::from(1);
    let mut spans = column.clone();
    spans[1] = vec![Value::Null; 2].into();
    for wrong in [
        Value::Null,
        Value::from("text"),
        Value::from(vec![Value::from(1)]),
        two,
        with_column(path),
        with_column(spans),
        Value::from(vec![Value::from(1), vec![column.clone(), column.clone()].into()]),
        with_statistic(numbers([1201, 0, 7, 8])),
        with_statistic(numbers([0, 0, 8, 7])),
        with_statistic(vec![0.into(), 0.into(), "a".into(), 7.into()]),
        with_statistic(vec![0.into(), 0.into(), f64::NAN.into(), Value::Null]),
        with_statistic(vec![0.into(), 0.into(), "a".repeat(17).into(), Value::Null]),
        with_statistic(vec![0.into(), 0.into(), vec![Value::from(7)].into(), Value::Null]),
        with_statistic(vec![0.into(), 0.into(), 7.into()]),
    ] {
        let bytes = with_statistics(&metadata, &wrong);
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        let segment = archive.only().unwrap();
        let found = segment.table("").unwrap().filter(col("id").lt(8)).count().unwrap();
        assert_eq!(found, 1, "{wrong}");
        let error = archive.verify_decoded().unwrap_err();
        assert_eq!(error.category(), Category::Damaged, "{error}");
        assert!(
            error.to_string().contains("the statistics are wrong: expected")
                || error.to_string().contains("is there twice"),
            "{error}"
        );
    }
    // They mean nothing beside a value that is not stored as columns.
    let bytes = with_statistics(&[0x81, 0x07], &right);
    Archive::new(&bytes[..]).unwrap().verify_decoded().unwrap();
}
