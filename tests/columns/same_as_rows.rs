//! What is written as columns is read as what is written as rows: the same values of the same types, by every
//! way to read.

// The numbers are only samples.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::manual_is_multiple_of
)]

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};
use serde_bytes::ByteBuf;
use tenarc::archive::SaveOptions;
use tenarc::ser::EncodeOptions;
use tenarc::{Archive, DynTensor, IArchive, OArchive, Tensor, Value};
use tenarc_test_support::readers;

fn columns(typed_arrays: bool) -> EncodeOptions {
    EncodeOptions::default().with_columns(true).with_typed_arrays(typed_arrays)
}

/// Writes a value in every form and reads it in every way. Returns whether there were columns in it.
#[track_caller]
fn same<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) -> bool {
    let rows = tenarc::to_vec(value).unwrap();
    let as_value: Value = tenarc::from_slice(&rows).unwrap();
    let mut found = false;
    for typed_arrays in [false, true] {
        let bytes = tenarc::ser::to_vec_with(value, columns(typed_arrays)).unwrap();
        found |= bytes.windows(4).any(|four| four == b"TCOL");
        let read = tenarc::from_slice::<T>(&bytes);
        let read = read.unwrap_or_else(|error| {
            panic!("{error}: {}", tenarc::diag::to_string(&bytes).unwrap_or_default())
        });
        assert_eq!(read, *value, "from a slice");
        if bytes.len() < 100_000 {
            for (way, reader) in readers(&bytes) {
                assert_eq!(tenarc::from_reader::<_, T>(reader).unwrap(), *value, "{way}");
            }
        }
        let from_columns: Value = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(unpacked(&from_columns).to_string(), as_value.to_string(), "as a value");
        let kept: Box<tenarc::value::RawValue> = tenarc::from_slice(&bytes).unwrap();
        assert_eq!(tenarc::to_vec(&kept).unwrap(), bytes, "as it is");
        tenarc::from_slice::<serde::de::IgnoredAny>(&bytes).unwrap();
    }
    archived(value);
    found
}

/// The value with arrays in place of packed sequences.
fn unpacked(value: &Value) -> Value {
    match value {
        Value::Array(_) | Value::Numbers(_) => {
            Value::Array(value.as_array().unwrap().iter().map(unpacked).collect())
        }
        Value::Map(entries) => {
            Value::Map(entries.iter().map(|(k, v)| (unpacked(k), unpacked(v))).collect())
        }
        Value::Tag(tag, inner) => Value::Tag(*tag, Box::new(unpacked(inner))),
        other => other.clone(),
    }
}

fn archived<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
    for inline_below in [0, 2048] {
        let options = SaveOptions::default().with_columns(true).with_inline_below(inline_below);
        let mut out = OArchive::with_options(Vec::new(), options).unwrap();
        out.save(value).unwrap();
        let bytes = out.finish().unwrap();
        assert_eq!(IArchive::new(&bytes[..]).unwrap().load::<T>().unwrap(), *value, "streamed");
        let archive = Archive::new(&bytes[..]).unwrap();
        archive.verify().unwrap();
        assert_eq!(archive.load::<T>().unwrap(), *value, "at positions");
        if bytes.len() < 1 << 20 {
            in_parts(&archive);
        }
    }
}

/// Reads single rows, some rows, and single columns, and compares them with the whole.
fn in_parts(archive: &Archive<&[u8]>) {
    let Value::Array(all) = archive.load::<Value>().unwrap() else { return };
    let table = archive.only().unwrap().table("").unwrap();
    assert_eq!(table.len(), all.len() as u64);
    let shown = |rows: &[Value]| Value::Array(rows.to_vec()).to_string();
    let len = all.len();
    for range in [0..len, 0..len / 2, len / 3..len, len / 3..len / 2, len / 7..len - len / 7] {
        let rows = table.rows::<Value>(range.start as u64..range.end as u64).unwrap();
        assert_eq!(shown(&rows), shown(&all[range]), "some rows");
    }
    for row in [0, 1, 7, 8, 9, len / 2, len.saturating_sub(1)].into_iter().filter(|row| *row < len)
    {
        let found: Value = table.row(row as u64).unwrap();
        assert_eq!(found.to_string(), all[row].to_string(), "a row");
        let found: Value = archive.get(&row.to_string()).unwrap();
        assert_eq!(found.to_string(), all[row].to_string(), "a row by its path");
    }
    for column in table.columns().unwrap() {
        let found: Value = table.column(column.path()).unwrap();
        if column.path().contains(['.', '/']) {
            continue;
        }
        let name = column.path();
        let field = |row: &Value| row.get(name).cloned().unwrap_or(Value::Null);
        let expected: Vec<Value> = all.iter().map(field).collect();
        assert_eq!(found.to_string(), shown(&expected), "the column {name}");
        if column.is_tensor() {
            let tensor: Tensor<DynTensor> = table.column(name).unwrap();
            assert_eq!(tensor.shape()[0], len, "the column {name} as a tensor");
        }
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Numbers {
    a: u8,
    b: i64,
    c: f32,
    d: (f64, bool, i16),
    e: [u32; 3],
    f: Inner,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Inner {
    g: u64,
    h: [[i8; 2]; 2],
}

pub fn numbers() -> impl Strategy<Value = Numbers> {
    let parts = (any::<u8>(), any::<i64>(), -1e6f32..1e6, any::<(i32, bool, i16)>());
    (parts, any::<[u32; 3]>(), any::<u64>(), any::<[[i8; 2]; 2]>()).prop_map(
        |((a, b, c, (d, e, f)), numbers, g, h)| Numbers {
            a,
            b,
            c,
            d: (d.into(), e, f),
            e: numbers,
            f: Inner { g, h },
        },
    )
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub enum Kind {
    Nothing,
    #[serde(rename = "another name", alias = "Wrapped")]
    One(Option<u16>),
    Two(u8, String),
    Fields {
        x: f32,
        y: Vec<u8>,
    },
    Deep(Box<Kind>),
    Empty {},
    Unit(()),
}

pub fn kind() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        Just(Kind::Nothing),
        any::<Option<u16>>().prop_map(Kind::One),
        (any::<u8>(), ".{0,3}").prop_map(|(number, text)| Kind::Two(number, text)),
        (-1f32..1.0, vec(any::<u8>(), 0..4)).prop_map(|(x, y)| Kind::Fields { x, y }),
        Just(Kind::Empty {}),
        Just(Kind::Unit(())),
    ];
    leaf.prop_recursive(3, 4, 1, |inner| inner.prop_map(|kind| Kind::Deep(Box::new(kind))))
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Everything {
    id: u64,
    text: String,
    letter: char,
    bytes: ByteBuf,
    unit: (),
    maybe: Option<i8>,
    perhaps: Option<Option<String>>,
    unit_or_none: Option<()>,
    list: Vec<String>,
    flags: Vec<bool>,
    floats: Vec<f64>,
    nested: Vec<Vec<u16>>,
    kind: Kind,
    kinds: Vec<Kind>,
    map: BTreeMap<String, u32>,
    by_number: BTreeMap<(i8, bool), Option<u8>>,
    wide: i128,
    huge: u128,
    tensor: Tensor<DynTensor>,
    numbers: Numbers,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    skipped: Option<u8>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    tags: Vec<String>,
    #[serde(rename = "renamed to this")]
    renamed: Newtype,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct Newtype(u16);

/// Tensors of one shape in most rows.
fn tensor() -> impl Strategy<Value = Tensor<DynTensor>> {
    let shape = prop_oneof![30 => Just(vec![2, 3]), 1 => Just(vec![]), 1 => Just(vec![0, 2])];
    (shape, any::<[u8; 6]>()).prop_map(|(shape, bytes)| {
        let len = shape.iter().product::<usize>();
        let bytes = bytes[..len].to_vec();
        Tensor(DynTensor::new(tenarc::DType::U8, &shape, tenarc::tensor::Order::C, bytes).unwrap())
    })
}

pub fn everything() -> impl Strategy<Value = Everything> {
    let texts = (any::<u64>(), ".{0,5}", any::<char>(), vec(any::<u8>(), 0..5));
    let optional = any::<(Option<i8>, Option<Option<bool>>, Option<()>, Option<u8>)>();
    let lists = (
        vec("[a-z]{0,3}", 0..3),
        vec(any::<bool>(), 0..9),
        vec(-1f64..1.0, 0..5),
        vec(vec(any::<u16>(), 0..3), 0..3),
    );
    let kinds = (kind(), vec(kind(), 0..3));
    let maps = (
        btree_map(".{0,2}", any::<u32>(), 0..3),
        btree_map(any::<(i8, bool)>(), any::<Option<u8>>(), 0..3),
    );
    let others =
        (any::<i128>(), any::<u128>(), tensor(), numbers(), vec("[a-z]", 0..2), any::<u16>());
    (texts, optional, lists, kinds, maps, others).prop_map(
        |((id, text, letter, bytes), optional, lists, kinds, maps, others)| Everything {
            id,
            text: text.clone(),
            letter,
            bytes: ByteBuf::from(bytes),
            unit: (),
            maybe: optional.0,
            perhaps: optional.1.map(|inner| inner.map(|_| text)),
            unit_or_none: optional.2,
            list: lists.0,
            flags: lists.1,
            floats: lists.2,
            nested: lists.3,
            kind: kinds.0,
            kinds: kinds.1,
            map: maps.0,
            by_number: maps.1,
            wide: others.0,
            huge: others.1,
            tensor: others.2,
            numbers: others.3,
            skipped: optional.3,
            tags: others.4,
            renamed: Newtype(others.5),
        },
    )
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Flat {
    id: u8,
    #[serde(flatten)]
    inner: FlatInner,
    #[serde(flatten)]
    rest: BTreeMap<String, u16>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
pub struct FlatInner {
    name: String,
    score: f64,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
#[serde(untagged)]
pub enum Untagged {
    Text(String),
    Number(u32),
    Float(f64),
    Pair(i8, bool),
    Fields { a: u8, b: Vec<u8> },
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
#[serde(tag = "is")]
pub enum Internal {
    Empty,
    Fields { a: u8, b: Option<String> },
    Newtype(FlatInner),
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
#[serde(tag = "t", content = "c")]
pub enum Adjacent {
    Empty,
    One(u64),
    Pair(i8, String),
    Fields { a: bool },
}

fn flat() -> impl Strategy<Value = Flat> {
    (any::<u8>(), ".{0,3}", -1f64..1.0, btree_map("x[a-c]", any::<u16>(), 0..3))
        .prop_map(|(id, name, score, rest)| Flat { id, inner: FlatInner { name, score }, rest })
}

pub fn untagged() -> impl Strategy<Value = Untagged> {
    prop_oneof![
        ".{0,3}".prop_map(Untagged::Text),
        any::<u32>().prop_map(Untagged::Number),
        Just(Untagged::Float(0.5)),
        any::<(i8, bool)>().prop_map(|(number, bit)| Untagged::Pair(number, bit)),
        (any::<u8>(), vec(any::<u8>(), 0..3)).prop_map(|(a, b)| Untagged::Fields { a, b }),
    ]
}

pub fn internal() -> impl Strategy<Value = Internal> {
    prop_oneof![
        Just(Internal::Empty),
        (any::<u8>(), any::<Option<bool>>())
            .prop_map(|(a, b)| Internal::Fields { a, b: b.map(|bit| bit.to_string()) }),
        (".{0,3}", -1f64..1.0)
            .prop_map(|(name, score)| Internal::Newtype(FlatInner { name, score })),
    ]
}

pub fn adjacent() -> impl Strategy<Value = Adjacent> {
    prop_oneof![
        Just(Adjacent::Empty),
        any::<u64>().prop_map(Adjacent::One),
        (any::<i8>(), ".{0,2}").prop_map(|(number, text)| Adjacent::Pair(number, text)),
        any::<bool>().prop_map(|a| Adjacent::Fields { a }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(debug_assertions) { 16 } else { 256 }))]

    #[test]
    fn structs_of_everything(rows in vec(everything(), 16..24)) {
        prop_assert!(same(&rows));
    }

    #[test]
    fn rows_of_numbers(rows in vec(numbers(), 16..60)) {
        prop_assert!(same(&rows));
    }

    #[test]
    fn enums(rows in vec(kind(), 16..40)) {
        prop_assert!(same(&rows));
    }

    #[test]
    fn enums_in_other_representations(
        untagged in vec(untagged(), 16..24),
        internal in vec(internal(), 16..24),
        adjacent in vec(adjacent(), 16..24),
    ) {
        let rows = untagged.into_iter().zip(internal).zip(adjacent).collect::<Vec<_>>();
        prop_assert!(same(&rows));
    }

    #[test]
    fn flattened_structs(rows in vec(flat(), 16..24)) {
        // Serde writes each as a map, so they are no columns of their own.
        prop_assert!(!same(&rows));
        let rows: Vec<(Flat, u8)> = rows.into_iter().map(|row| (row, 3)).collect();
        prop_assert!(same(&rows));
    }
}

#[test]
fn rows_without_bytes() {
    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
    struct Unit;
    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
    struct Nothing {}
    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
    struct Holds {
        unit: Unit,
        nothing: Nothing,
        array: [u8; 0],
        tuple: ((), ((),)),
        list: Vec<()>,
    }
    assert!(same(&vec![Nothing {}; 100]));
    let holds = |len| Holds {
        unit: Unit,
        nothing: Nothing {},
        array: [],
        tuple: ((), ((),)),
        list: vec![(); len],
    };
    assert!(same(&(0..20).map(holds).collect::<Vec<_>>()));
}

#[test]
fn a_recursive_type() {
    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
    struct Node {
        value: u8,
        next: Option<Box<Node>>,
        children: Vec<Node>,
    }
    fn node(levels: u8) -> Node {
        let next = levels.checked_sub(1).map(|levels| Box::new(node(levels)));
        let leaf = Node { value: 7, next: None, children: vec![] };
        Node { value: levels, next, children: vec![leaf; usize::from(levels % 3)] }
    }
    assert!(same(&(0..60).map(|levels| node(levels % 30)).collect::<Vec<_>>()));
}

#[test]
fn other_structs_read_the_columns() {
    #[derive(Serialize)]
    struct Old {
        id: u32,
        gone: Vec<Vec<String>>,
        name: &'static str,
        float: f32,
    }
    #[derive(Deserialize, PartialEq, Debug)]
    struct New<'a> {
        #[serde(default = "nine")]
        added: u8,
        #[serde(borrow)]
        name: Cow<'a, str>,
        id: i64,
        float: f64,
        #[serde(default)]
        maybe: Option<u8>,
    }
    fn nine() -> u8 {
        9
    }
    let rows: Vec<Old> = (0..50)
        .map(|id| Old {
            id,
            gone: vec![vec!["x".into(); id as usize % 3]; 2],
            name: "ab",
            float: 0.25,
        })
        .collect();
    let bytes = tenarc::ser::to_vec_with(&rows, columns(false)).unwrap();
    let read: Vec<New> = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(read.len(), 50);
    for (id, row) in read.into_iter().enumerate() {
        let name = Cow::Borrowed("ab");
        assert_eq!(row, New { added: 9, name, id: id as i64, float: 0.25, maybe: None });
    }
    #[derive(Deserialize, Debug)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code)]
    struct Strict {
        id: u32,
    }
    let error = tenarc::from_slice::<Vec<Strict>>(&bytes).unwrap_err().to_string();
    assert!(error.contains("unknown field `gone`"), "{error}");
    let by_name: Vec<HashMap<String, Value>> = tenarc::from_slice(&bytes).unwrap();
    assert_eq!(by_name[3]["id"], Value::from(3));
    let tuples: Vec<(u32, Value, String, f32)> = {
        #[derive(Serialize)]
        struct Tuple(u32, Vec<u8>, &'static str, f32);
        let rows: Vec<Tuple> = (0..16).map(|id| Tuple(id, vec![], "ab", 0.5)).collect();
        tenarc::from_slice(&tenarc::ser::to_vec_with(&rows, columns(false)).unwrap()).unwrap()
    };
    assert_eq!(tuples[15].0, 15);
}

/// A sequence whose length is announced as this.
struct Announced<'a, T>(Option<usize>, &'a [T]);

impl<T: Serialize> Serialize for Announced<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut seq = serializer.serialize_seq(self.0)?;
        self.1.iter().try_for_each(|row| seq.serialize_element(row))?;
        seq.end()
    }
}

#[test]
fn sequences_of_unknown_and_wrong_length() {
    let rows: Vec<(u8, String)> = (0..40).map(|i| (i, "t".repeat(i.into()))).collect();
    let floats: Vec<[f32; 2]> = (0..40u8).map(|i| [i.into(), 0.5]).collect();
    for len in [0, 1, 15, 16, 40] {
        let bytes =
            tenarc::ser::to_vec_with(&Announced(None, &rows[..len]), columns(false)).unwrap();
        assert_eq!(tenarc::from_slice::<Vec<(u8, String)>>(&bytes).unwrap(), rows[..len]);
        let bytes =
            tenarc::ser::to_vec_with(&Announced(None, &floats[..len]), columns(true)).unwrap();
        assert_eq!(tenarc::from_slice::<Vec<[f32; 2]>>(&bytes).unwrap(), floats[..len]);
    }
    for announced in [16, 39, 41, usize::MAX] {
        let write = |options| {
            let error = tenarc::ser::to_vec_with(&Announced(Some(announced), &rows), options);
            error.unwrap_err().to_string()
        };
        assert_eq!(write(columns(false)), write(EncodeOptions::default()));
        let floats = Announced(Some(announced), &floats);
        tenarc::ser::to_vec_with(&floats, columns(false)).unwrap_err();
    }
}

#[test]
fn an_iterator_that_lies_about_its_length() {
    struct Lying(usize);
    impl Serialize for Lying {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            struct Iter(u8, usize);
            impl Iterator for Iter {
                type Item = [f32; 3];
                fn next(&mut self) -> Option<[f32; 3]> {
                    self.0 += 1;
                    (self.0 <= 30).then(|| [self.0.into(); 3])
                }
                fn size_hint(&self) -> (usize, Option<usize>) {
                    (self.1, Some(self.1))
                }
            }
            serializer.collect_seq(Iter(0, self.0))
        }
    }
    for announced in [16, 29, 31, 1 << 40] {
        tenarc::ser::to_vec_with(&Lying(announced), columns(false)).unwrap_err();
    }
    let bytes = tenarc::ser::to_vec_with(&Lying(30), columns(false)).unwrap();
    assert_eq!(tenarc::from_slice::<Vec<[f32; 3]>>(&bytes).unwrap().len(), 30);
}

#[test]
fn a_row_that_fails_or_panics_half_way() {
    struct Half(u8, &'static str);
    impl Serialize for Half {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            use serde::ser::{Error, SerializeStruct};
            let mut row = serializer.serialize_struct("Half", 2)?;
            row.serialize_field("a", &self.0)?;
            if self.0 == 30 {
                assert!(self.1 != "panics", "as asked");
                if self.1 == "fails" {
                    return Err(S::Error::custom("as asked"));
                }
                return row.end();
            }
            row.serialize_field("b", self.1)?;
            row.end()
        }
    }
    let rows = |what: &'static str| (0..40).map(|at| Half(at, what)).collect::<Vec<_>>();
    let mut buffer = b"before".to_vec();
    let error = tenarc::ser::append_to_with(&mut buffer, &rows("fails"), columns(false));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("as asked") && error.contains("30"), "{error}");
    assert_eq!(buffer, b"before");
    let good: Vec<(u8, String)> = (0..40).map(|id| (id, format!("row {id}"))).collect();
    let (message, archive) =
        (tenarc::ser::to_vec_with(&good, columns(false)).unwrap(), save(&good));
    let rows = rows("panics");
    let message_of = || drop(tenarc::ser::to_vec_with(&rows, columns(false)));
    let archive_of = || drop(save(&rows));
    let parts_of = || drop(tenarc::to_parts(&rows));
    for panicking in [&message_of as &dyn Fn(), &archive_of, &parts_of] {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panicking));
        assert!(result.is_err());
        // What was kept on this thread does not get into what is written next.
        assert_eq!(tenarc::ser::to_vec_with(&good, columns(false)).unwrap(), message);
        assert_eq!(save(&good), archive);
    }
}

fn save<T: Serialize>(value: &T) -> Vec<u8> {
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(value).unwrap();
    out.finish().unwrap()
}

#[test]
fn many_rows_are_several_groups() {
    #[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
    struct Row {
        id: u32,
        even: Option<u16>,
    }
    let row = |id: u32| Row { id, even: (id % 2 == 0).then_some(id as u16) };
    let rows: Vec<Row> = (0..65_537).map(row).collect();
    assert!(same(&rows));
    let floats: Vec<[f32; 3]> = (0..131_073u32).map(|i| [i as f32; 3]).collect();
    for len in [65_536, 65_537, 131_072, 131_073] {
        let bytes = tenarc::ser::to_vec_with(&floats[..len], columns(false)).unwrap();
        assert_eq!(tenarc::from_slice::<Vec<[f32; 3]>>(&bytes).unwrap(), floats[..len]);
    }
    // By their size.
    let long: Vec<(u8, String)> = (0..40).map(|i| (i, "x".repeat(1 << 20))).collect();
    let short: Vec<(u8, String)> = (0..20).map(|i| (i, String::new())).collect();
    assert!(same(&[short, long].concat()));
}

/// Items in columns count from the level at which they are.
#[test]
fn what_is_written_can_be_read_with_the_same_limit() {
    #[derive(Serialize, Deserialize, PartialEq, Debug)]
    struct Deep(Vec<Deep>);
    fn deep(levels: usize) -> Deep {
        Deep(if levels == 0 { vec![] } else { vec![deep(levels - 1)] })
    }
    let (mut readable, mut refused) = (0, 0);
    for levels in 60..130 {
        let rows: Vec<(u8, Deep)> = (0..16).map(|id| (id, deep(levels))).collect();
        match tenarc::ser::to_vec_with(&rows, columns(false)) {
            Ok(bytes) => {
                assert_eq!(
                    tenarc::from_slice::<Vec<(u8, Deep)>>(&bytes).unwrap(),
                    rows,
                    "{levels}"
                );
                readable += 1;
            }
            Err(error) => {
                assert_eq!(error.category(), tenarc::error::Category::Limit, "{error}");
                refused += 1;
            }
        }
    }
    assert!(readable > 20 && refused > 5, "{readable} {refused}");
}
