//! Metadata could say one thing in several ways: with indefinite lengths, with big-endian and clamped numbers, and with
//! tags and plain arrays in place of the typed array of a tensor. Readers of archives refuse that (`SPEC.md`, section
//! 5.3), and nothing that can be saved has it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::inspect::Items;
use tenarc::parts::PartsInfo;
use tenarc::value::RawValue;
use tenarc::{Archive, DType, DynTensor, Error, IArchive, OArchive, Tensor, Value};
use tenarc_test_support::builder::{Seg, array, map, own, simple, tag, text, unsigned};
use tenarc_test_support::unhex;

/// Items that messages may have, and what the error says if they are in metadata.
fn refused() -> Vec<(Vec<u8>, &'static str)> {
    let lengths = "definite lengths only";
    let tags = "is for big-endian or clamped numbers";
    let elements = "expected the elements of a tensor as a typed array, found";
    let mut items: Vec<(String, &str)> = [
        // [_ 1], {_ "a": 1}, (_ "a"), (_ h'01'), and empty ones.
        ("9f 01 ff", lengths),
        ("bf 6161 01 ff", lengths),
        ("7f 6161 ff", lengths),
        ("5f 4101 ff", lengths),
        ("9f ff", lengths),
        ("7f ff", lengths),
        // A packed sequence, a tensor and its shape, and a tensor with a tag of this format.
        ("d845 5f 42 0100 ff", lengths),
        ("d828 9f 8102 d845 44 01000200 ff", lengths),
        ("d828 82 9f 02 ff d845 44 01000200", lengths),
        ("d828 82 8102 d845 5f 44 01000200 ff", lengths),
        ("da 54454e53 9f 6275 38 8102 6143 42 0102 ff", lengths),
        // Columns.
        ("da 54434f4c 9f 01 d840 41 07 ff", lengths),
        // Clamped and big-endian numbers: alone, with a longer head, and in tensors.
        ("d844 42 0102", tags),
        ("d90044 42 0102", tags),
        ("da00000041 42 0001", tags),
        ("d828 82 8102 d844 42 0102", tags),
        ("d828 82 8102 d841 44 00010002", tags),
        ("d90410 82 8201 02 d849 44 00010002", tags),
        ("d9a7f9 d851 48 0000000000000000", tags),
        ("d828 82 8101 d9a7f9 d851 48 0000000000000000", tags),
        // The reserved tag is no exception.
        ("d84c 01", tags),
        ("c1 d84c c1 01", tags),
        // Plain arrays and other tags in place of the typed array.
        ("d828 82 8102 82 01 02", elements),
        ("d90410 82 8102 82 01 02", elements),
        ("d828 82 8102 c1 d845 44 01000200", elements),
        ("d828 82 8102 d9d9f7 d845 44 01000200", elements),
    ]
    .map(|(item, expected)| (item.to_owned(), expected))
    .into();
    for number in [65, 66, 67, 68, 73, 74, 75, 80, 81, 82, 83] {
        items.push((format!("d8{number:02x} 50 {}", "00".repeat(16)), tags));
    }
    items.into_iter().map(|(item, expected)| (unhex(&item), expected)).collect()
}

/// Items that look like those, but are in order.
fn accepted() -> Vec<Vec<u8>> {
    [
        // Heads may have any width.
        "98 01 05",
        "d90028 9a00000002 9801 1802 d90045 5804 01000200",
        "d828 82 8102 d9a7f9 d855 50 00000000000000000000000000000000",
        "d9a7f9 d855 48 0000000000000000",
        // The content of tag 24 is bytes.
        "d818 44 9f01ff d8",
        "d8 18 44 d8444101",
        // Tags with a meaning elsewhere.
        "c1 82 01 d845 42 0100",
        "d8 54 42 003c",
        "c2 49 010000000000000000",
    ]
    .map(unhex)
    .into()
}

/// The places of an item in a value.
fn places(item: &[u8]) -> Vec<Vec<u8>> {
    let items = array(&[text("rows"), array(&[unsigned(0), item.to_vec()])]);
    let columns = own(*b"TCOL", &array(&[unsigned(2), items]));
    let keyed = [vec![0xa1], item.to_vec(), vec![1]].concat();
    vec![
        item.to_vec(),
        map(&[("a", item.to_vec()), ("b", unsigned(1))]),
        map(&[("b", unsigned(1)), ("a", array(&[unsigned(0), item.to_vec()]))]),
        tag(4711, item),
        tag(4711, &map(&[("a", tag(1, item)), ("b", unsigned(1))])),
        keyed,
        map(&[("a", columns.clone()), ("b", unsigned(1))]),
        columns,
    ]
}

/// What every reader of the metadata says, with its name.
fn errors(metadata: &[u8]) -> Vec<(&'static str, Option<Error>)> {
    #[derive(Deserialize)]
    struct Other {
        #[allow(dead_code)]
        b: Option<u8>,
    }

    let bytes = simple(metadata.to_vec(), &[]);
    let archive = Archive::new(&bytes[..]).unwrap();
    let segment = archive.only().unwrap();
    let parts = Seg::new(metadata.to_vec(), &[]).parts();
    let mut found = vec![
        ("load", archive.load::<Value>().err()),
        ("ignore", archive.load::<IgnoredAny>().err()),
        ("raw", archive.load::<Box<RawValue>>().err()),
        ("stream", IArchive::new(&bytes[..]).unwrap().load::<Value>().err()),
        ("verify", archive.verify().err()),
        ("verify_decoded", segment.verify_decoded().err()),
        ("tensors", archive.tensors().err()),
        ("inspect", segment.inspect().unwrap().find_map(Result::err)),
        ("parts", tenarc::from_parts::<Value, &[u8]>(&parts[..], &[]).err()),
        ("parts tensors", PartsInfo::new(&parts[..]).and_then(|info| info.tensors()).err()),
    ];
    if metadata.starts_with(&[0xa2]) {
        found.push(("typed", archive.load::<Other>().err()));
        found.push(("get", archive.get::<Value>("a").err()));
        found.push(("segment get", segment.get::<Value>("a").err()));
        found.push(("get ignored", archive.get::<IgnoredAny>("a").err()));
    }
    found
}

#[test]
fn other_ways_are_refused_in_every_place_by_every_reader() {
    for (item, expected) in refused() {
        tenarc::from_slice::<Value>(&item).unwrap();
        for metadata in places(&item) {
            let message = tenarc::from_slice::<Value>(&metadata);
            message.unwrap_or_else(|error| panic!("{metadata:x?}: {error}"));
            assert!(Items::new(&metadata).all(|item| item.is_ok()));
            for (reader, error) in errors(&metadata) {
                let Some(error) = error else { panic!("{reader} accepts {metadata:x?}") };
                let found = error.to_string();
                assert!(found.contains(expected), "{reader} of {metadata:x?}: {found}");
            }
        }
    }
}

#[test]
fn what_is_in_order_is_accepted() {
    for item in accepted() {
        for metadata in places(&item) {
            for (reader, error) in errors(&metadata) {
                if let Some(error) = error {
                    panic!("{reader} of {metadata:x?}: {error}");
                }
            }
        }
    }
}

#[test]
fn paths_that_pass_such_an_item_are_refused_at_it() {
    let bytes = simple(map(&[("a", unhex("9f 820102 ff")), ("b", unsigned(1))]), &[]);
    let archive = Archive::new(&bytes[..]).unwrap();
    for path in ["a.0.1", "a", "b", "a.7"] {
        let error = archive.get::<u8>(path).unwrap_err();
        assert!(error.to_string().contains("definite lengths only"), "{path}: {error}");
    }
    let inside = map(&[("a", unhex("d84c a1 6163 01")), ("b", unsigned(1))]);
    let bytes = simple(inside, &[]);
    let archive = Archive::new(&bytes[..]).unwrap();
    let error = archive.get::<u8>("a.c").unwrap_err();
    assert!(error.to_string().contains("tag 76 is for"), "{error}");
}

/// A sequence or map whose length is not known at the start.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Leaf(u32),
    Seq(Vec<Tree>),
    Map(Vec<Tree>),
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(number) => serializer.serialize_u32(*number),
            Self::Seq(trees) => {
                let mut seq = serializer.serialize_seq(None)?;
                trees.iter().try_for_each(|tree| seq.serialize_element(tree))?;
                seq.end()
            }
            Self::Map(trees) => {
                let mut map = serializer.serialize_map(None)?;
                for (key, tree) in trees.iter().enumerate() {
                    map.serialize_entry(&key, tree)?;
                }
                map.end()
            }
        }
    }
}

impl Tree {
    fn value(&self) -> Value {
        match self {
            Self::Leaf(number) => Value::Integer((*number).into()),
            Self::Seq(trees) => Value::Array(trees.iter().map(Self::value).collect()),
            Self::Map(trees) => {
                let entries =
                    (0..).zip(trees).map(|(key, tree)| (Value::Integer(key), tree.value()));
                Value::Map(entries.collect())
            }
        }
    }
}

fn archived<T: Serialize + ?Sized>(value: &T, options: &SaveOptions) -> Archive<Vec<u8>> {
    let mut out = OArchive::with_options(Vec::new(), options.clone()).unwrap();
    out.save(value).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

/// Saves a value in several ways. Every reader accepts it. Returns what it is.
#[track_caller]
fn saved<T: Serialize + ?Sized>(value: &T) -> Value {
    let message: Value = tenarc::from_slice(&tenarc::to_vec(value).unwrap()).unwrap();
    let all = [
        SaveOptions::default(),
        SaveOptions::default().with_columns(true).with_dedup(true),
        SaveOptions::default().with_columns(false).with_inline_below(0),
        SaveOptions::default().with_out_of_band(|info| info.path().len() % 2 == 0),
    ];
    for options in all {
        let archive = archived(value, &options);
        archive.verify().unwrap();
        archive.verify_decoded().unwrap();
        let segment = archive.only().unwrap();
        for item in segment.inspect().unwrap() {
            item.unwrap();
        }
        let notation = tenarc::diag::to_string(segment.metadata().unwrap()).unwrap();
        let is_indefinite = ["[_ ", "{_ ", "(_ "].iter().any(|start| notation.contains(start));
        assert!(!is_indefinite, "{notation}");
        let found: Value = archive.load().unwrap();
        assert_eq!(plain(found), plain(message.clone()), "{notation}");
        let parts = tenarc::parts::to_parts_with(value, options).unwrap();
        let found: Value = tenarc::from_parts(parts.metadata(), parts.buffers()).unwrap();
        assert_eq!(plain(found), plain(message.clone()));
    }
    message
}

/// The value without the difference between arrays and packed sequences.
fn plain(value: Value) -> Value {
    match value {
        Value::Numbers(numbers) => {
            match tenarc::from_value::<Vec<f64>>(Value::Numbers(numbers.clone())) {
                Ok(all) => Value::Array(all.into_iter().map(Value::F64).collect()),
                Err(_) => Value::Numbers(numbers),
            }
        }
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (key, plain(value))).collect())
        }
        Value::Integer(integer) => Value::F64(tenarc::from_value(Value::Integer(integer)).unwrap()),
        Value::Tag(tag, content) => Value::Tag(tag, Box::new(plain(*content))),
        Value::F32(float) => Value::F64(float.into()),
        other => other,
    }
}

#[test]
fn lengths_that_are_not_known_at_the_start_are_definite() {
    #[derive(Serialize)]
    enum Kind {
        New(Tree),
        Tuple(Tree, Tensor<Vec<f32>>),
        Struct { tree: Tree, after: Vec<f64> },
    }
    let leaves = |count: u32| (0..count).map(Tree::Leaf).collect::<Vec<_>>();
    for count in [0, 1, 23, 24, 255, 256, 65535, 65536] {
        for tree in [Tree::Seq(leaves(count)), Tree::Map(leaves(count))] {
            assert_eq!(saved(&tree), tree.value());
        }
    }
    let mut nested = Tree::Seq(leaves(30));
    for depth in 0..60 {
        let mut around = leaves(depth % 29);
        around.push(nested);
        around.push(Tree::Map(leaves(3)));
        around.push(Tree::Seq(Vec::new()));
        nested = if depth % 3 == 0 { Tree::Map(around) } else { Tree::Seq(around) };
    }
    assert_eq!(saved(&nested), nested.value());
    // Beside tensors, in maps and enums, and as keys.
    let tree = Tree::Map(leaves(40));
    saved(&(
        Kind::New(tree.clone()),
        Kind::Tuple(tree.clone(), Tensor(vec![0.5; 4000])),
        Kind::Struct { tree: tree.clone(), after: vec![1.5; 3000] },
        BTreeMap::from([(1, Some(Some(tree)))]),
    ));
}

#[test]
fn many_unknown_lengths_take_linear_time() {
    // 100 levels, each of which has 60,000 bytes behind its head.
    let mut nested = Tree::Seq((0..60_000).map(Tree::Leaf).collect());
    for _ in 0..100 {
        nested = Tree::Seq(vec![nested; 1]);
    }
    saved(&nested);
    let wide = Tree::Seq((0..50_000).map(|n| Tree::Map(vec![Tree::Leaf(n)])).collect());
    let archive = archived(&wide, &SaveOptions::default());
    assert_eq!(archive.load::<Value>().unwrap(), wide.value());
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Inner {
    x: u8,
    names: Vec<String>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Flat {
    id: u32,
    #[serde(flatten)]
    inner: Inner,
    #[serde(flatten)]
    rest: BTreeMap<String, u8>,
}

/// A sequence whose length is not known.
struct Filtered<'a, T>(&'a [T]);

impl<T: Serialize> Serialize for Filtered<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter(|_| true))
    }
}

#[track_caller]
fn comes_back<T, U>(value: &T, as_read: &U)
where
    T: Serialize,
    U: DeserializeOwned + PartialEq + Debug,
{
    saved(value);
    for on in [false, true] {
        let archive = archived(value, &SaveOptions::default().with_columns(on));
        assert_eq!(archive.load::<U>().unwrap(), *as_read);
    }
}

#[test]
fn flattened_structs_and_columns_have_definite_lengths() {
    let flat = |id: u32| Flat {
        id,
        inner: Inner { x: id as u8, names: vec![format!("name {id}"); id as usize % 3] },
        rest: (0..id % 30).map(|key| (format!("key {key}"), key as u8)).collect(),
    };
    let all: Vec<Flat> = (0..300).map(flat).collect();
    comes_back(&flat(29), &flat(29));
    comes_back(&all, &all);
    comes_back(&Filtered(&all), &all);
    // In rows that are columns, as fields, and as items because the rows differ.
    let rows: Vec<(u32, Flat)> = (0..300).map(|id| (id, flat(id))).collect();
    comes_back(&rows, &rows);
    comes_back(&Filtered(&rows), &rows);
    let inner: Vec<Inner> = all.iter().map(|flat| flat.inner.clone()).collect();
    comes_back(&Filtered(&inner), &inner);
    let mixed: Vec<(u32, Tree)> = (0..400)
        .map(|id| (id, if id % 3 == 0 { Tree::Leaf(id) } else { Tree::Seq(vec![Tree::Leaf(id)]) }))
        .collect();
    saved(&mixed);
    saved(&Filtered(&mixed));
    // Several groups.
    let many: Vec<(u8, u32)> = (0..70_000).map(|id| (id as u8, id)).collect();
    comes_back(&Filtered(&many), &many);
    comes_back(
        &BTreeMap::from([("a", &many[..])]),
        &BTreeMap::from([("a".to_owned(), many.clone())]),
    );
    let large: Vec<(u32, Vec<f64>)> = (0..400).map(|id| (id, vec![f64::from(id); 6000])).collect();
    let archive = archived(&(1, Filtered(&large)), &SaveOptions::default().with_columns(true));
    archive.verify().unwrap();
    assert_eq!(archive.load::<(u8, Vec<(u32, Vec<f64>)>)>().unwrap().1, large);
}

#[test]
fn raw_values_are_saved_as_what_they_mean() {
    for (item, _) in refused() {
        // The reserved tag means nothing.
        let means_nothing = item.windows(2).any(|bytes| bytes == [0xd8, 76]);
        for (place, raw) in places(&item).into_iter().enumerate() {
            let meant: Value = tenarc::from_slice(&raw).unwrap();
            let raw = RawValue::from_bytes(&raw).unwrap();
            if means_nothing {
                let error = OArchive::new(Vec::new()).unwrap().save(&(1, raw)).unwrap_err();
                assert!(error.to_string().contains("tag 76 is for"), "{error}");
                continue;
            }
            let archive = archived(&BTreeMap::from([("a", raw)]), &SaveOptions::default());
            archive.verify().unwrap();
            assert_eq!(archive.load::<Value>().unwrap()["a"], meant, "{raw:?}");
            if place == 1 {
                // Also in rows.
                let rows: Vec<_> = (0..30).map(|id| (id, raw)).collect();
                assert_eq!(saved(&(raw, 5, &rows))[0], meant);
            }
        }
    }
    for item in accepted() {
        for raw in places(&item) {
            let raw = RawValue::from_bytes(&raw).unwrap();
            let archive = archived(&(1, raw), &SaveOptions::default());
            let segment = archive.only().unwrap();
            assert_eq!(segment.metadata().unwrap()[2..], *raw.as_bytes());
        }
    }
}

#[test]
fn tags_of_tensors_are_saved_as_what_they_mean() {
    let bytes = |content: &[u8]| Value::Bytes(content.to_vec());
    let tagged = |tag: u64, content: Value| Value::Tag(tag, Box::new(content));
    let tensor = |tag: u64, elements: Value| {
        let shape = Value::Array(vec![Value::Integer(2)]);
        tagged(tag, Value::Array(vec![shape, elements]))
    };
    let numbers = Value::Array(vec![Value::Integer(1), Value::Integer(2)]);
    let long = bytes(&[7; 8000]);
    let cases = [
        (tagged(68, bytes(&[1, 2])), DType::U8),
        (tagged(65, bytes(&[0, 1, 0, 2])), DType::U16),
        (tagged(69, bytes(&[1, 0, 2, 0])), DType::U16),
        (tagged(43001, tagged(81, bytes(&[0; 16]))), DType::C64),
        (tensor(40, tagged(65, bytes(&[0, 1, 0, 2]))), DType::U16),
        (tensor(1040, tagged(68, bytes(&[1, 2]))), DType::U8),
        (tensor(40, tagged(1, tagged(69, bytes(&[1, 0, 2, 0])))), DType::U16),
        (tensor(40, numbers), DType::I64),
        (tagged(64, long.clone()), DType::U8),
        (tagged(73, long), DType::I16),
    ];
    for (value, dtype) in cases {
        let meant: Value = tenarc::from_slice(&tenarc::to_vec(&value).unwrap()).unwrap();
        saved(&value);
        for value in [&value, &tagged(4711, value.clone())] {
            let archive = archived(&(value, 1), &SaveOptions::default());
            let found: Value = archive.load().unwrap();
            let found = match &found[0] {
                Value::Tag(4711, inner) => &**inner,
                other => other,
            };
            assert_eq!(*found, meant);
            let found = match found {
                Value::Numbers(numbers) => numbers.dtype(),
                Value::Tensor(tensor) => DynTensor::dtype(tensor).clone(),
                other => panic!("{other:?}"),
            };
            assert_eq!(found, dtype);
        }
    }
    // What means nothing is refused when it is saved, and not when it is loaded.
    let wrong = [
        tagged(76, Value::Null),
        tagged(68, Value::Text("a".into())),
        tagged(40, Value::Null),
        tensor(40, Value::Text("a".into())),
        tagged(85, bytes(&[0; 3])),
        tagged(u32::from_be_bytes(*b"TCOL").into(), Value::Null),
        tagged(u32::from_be_bytes(*b"TENS").into(), Value::Array(vec![])),
    ];
    for value in wrong {
        for value in [value.clone(), Value::Array(vec![Value::Null, tagged(4711, value)])] {
            let mut out = OArchive::new(Vec::new()).unwrap();
            let error = out.save(&value).unwrap_err();
            assert!(!error.to_string().is_empty(), "{value:?}");
            tenarc::parts::to_parts(&value).unwrap_err();
            // A message is nobody's but the reader's.
            tenarc::to_vec(&value).unwrap();
        }
    }
}
