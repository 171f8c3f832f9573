//! Group E: paths to tensors under keys that look like paths.

use std::collections::BTreeMap;

use ndarray::{Array1, ArrayD, IxDyn};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::error::Category::NotFound;
use tenarc::io::ReadAt;
use tenarc::{Archive, DynTensor, IArchive, OArchive, Tensor, Value};

use super::support::At;
use tenarc_test_support::builder::{
    array, head, map, own, simple, tag, tensor_ref, text, unsigned,
};

fn saved<T: Serialize>(value: &T, inline_below: usize) -> Vec<u8> {
    let options = SaveOptions::default().with_alignment(8).with_inline_below(inline_below);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(value).unwrap();
    out.finish().unwrap()
}

fn leaf(number: u32) -> Tensor<DynTensor> {
    Tensor(DynTensor::from(Array1::from(vec![number; 3])))
}

/// The tensors that are listed are so many, and each is found by its path, and no other.
#[track_caller]
fn each_is_found<S: ReadAt>(archive: &Archive<S>, count: usize) {
    let tensors = archive.tensors().unwrap();
    assert_eq!(tensors.len(), count);
    let whole: Vec<u32> = tensors
        .iter()
        .map(|tensor| match archive.only().unwrap().dyn_tensor(tensor.path()) {
            Ok(found) => {
                assert_eq!((found.dtype(), found.shape()), (tensor.dtype(), tensor.shape()));
                let array = archive.tensor::<ndarray::ArrayD<u32>>(tensor.path()).unwrap();
                assert_eq!(array, found.view::<u32>().unwrap());
                let part = archive
                    .slice::<ndarray::ArrayD<u32>>(tensor.path(), ndarray::s![1..2])
                    .unwrap();
                assert_eq!(part[0], array[[1]]);
                array[[0]]
            }
            Err(error) => panic!("{:?}: {error}", tensor.path()),
        })
        .collect();
    // They are listed in their order, and numbered so.
    assert!(whole.is_sorted_by(|a, b| a < b), "{whole:?}");
}

#[derive(Debug, Clone)]
enum Tree {
    Leaf,
    Map(Vec<(String, Tree)>),
    List(Vec<Tree>),
    Number,
    Optional(Option<Box<Tree>>),
    Variant(Box<Tree>),
}

#[derive(Serialize)]
enum Variants<'a> {
    #[serde(rename = "a.b")]
    One(&'a Numbered),
}

/// A tree whose leaves are numbered.
enum Numbered {
    Leaf(u32),
    Map(Vec<(String, Numbered)>),
    List(Vec<Numbered>),
    Number,
    Optional(Option<Box<Numbered>>),
    Variant(Box<Numbered>),
}

impl Serialize for Numbered {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Leaf(number) => leaf(*number).serialize(serializer),
            Self::Map(entries) => {
                serializer.collect_map(entries.iter().map(|(key, value)| (key, value)))
            }
            Self::List(items) => serializer.collect_seq(items),
            // Numbers of a byte would be packed.
            Self::Number => serializer.serialize_u16(0),
            Self::Optional(inner) => serializer.serialize_some(inner),
            Self::Variant(inner) => Variants::One(inner).serialize(serializer),
        }
    }
}

fn numbered(tree: &Tree, next: &mut u32) -> Numbered {
    match tree {
        Tree::Leaf => {
            *next += 1;
            Numbered::Leaf(*next)
        }
        Tree::Map(entries) => {
            let mut seen = Vec::new();
            let mut kept = Vec::new();
            for (key, value) in entries {
                if !seen.contains(&key) {
                    seen.push(key);
                    kept.push((key.clone(), numbered(value, next)));
                }
            }
            Numbered::Map(kept)
        }
        Tree::List(items) => {
            Numbered::List(items.iter().map(|item| numbered(item, next)).collect())
        }
        Tree::Number => Numbered::Number,
        Tree::Optional(inner) => {
            Numbered::Optional(inner.as_ref().map(|inner| Box::new(numbered(inner, next))))
        }
        Tree::Variant(inner) => Numbered::Variant(Box::new(numbered(inner, next))),
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let keys = prop::sample::select(vec![
        "", "a", "b", "a.b", "a.", ".a", ".", "..", "/", "/a", "a/b", "~", "~0", "~1", "0", "1",
        "0.a", "a.0", "\0", "ä", "a.b.a", "b.a",
    ]);
    let keys = keys.prop_map(str::to_owned);
    let leaf = prop_oneof![4 => Just(Tree::Leaf), 1 => Just(Tree::Number)];
    leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            6 => prop::collection::vec((keys.clone(), inner.clone()), 0..5).prop_map(Tree::Map),
            2 => prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::List),
            1 => prop::option::of(inner.clone().prop_map(Box::new)).prop_map(Tree::Optional),
            1 => inner.prop_map(|inner| Tree::Variant(Box::new(inner))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    // 36
    #[test]
    fn every_path_that_is_listed_leads_back(tree in trees(), inline in any::<bool>()) {
        let mut count = 0;
        let value = numbered(&tree, &mut count);
        let bytes = saved(&value, if inline { 1000 } else { 0 });
        each_is_found(&Archive::new(At(&bytes)).unwrap(), count as usize);
    }
}

// 36
#[test]
fn keys_that_look_like_paths() {
    type Nested = BTreeMap<String, BTreeMap<String, Tensor<DynTensor>>>;

    let long = "k".repeat(1 << 20);
    let keys = [
        "", "/", "~", "~0", "~1", "/a", "a/b", "\0", "a\0b", ".", "..", "0", "-1", &long, "ä", "a",
    ];
    for key in keys {
        let flat = BTreeMap::from([(key, leaf(1))]);
        let bytes = saved(&flat, 0);
        each_is_found(&Archive::new(&bytes).unwrap(), 1);
        let archive = Archive::new(&bytes).unwrap();
        assert_eq!(archive.only().unwrap().keys("").unwrap(), [key]);
        let pointer = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        assert_eq!(archive.only().unwrap().dyn_tensor(&pointer).unwrap(), leaf(1).0);
        let nested: Nested = BTreeMap::from([(
            key.to_owned(),
            BTreeMap::from([(key.to_owned(), leaf(1)), ("\u{10ffff}".to_owned(), leaf(2))]),
        )]);
        each_is_found(&Archive::new(&saved(&nested, 0)).unwrap(), 2);
    }
}

// 36, 58
#[test]
fn dots_in_keys_against_dots_of_paths() {
    #[derive(Serialize)]
    struct Both {
        #[serde(rename = "a.b")]
        flat: Tensor<DynTensor>,
        a: Inner,
    }
    #[derive(Serialize)]
    struct Inner {
        b: Tensor<DynTensor>,
    }
    let both = || Both { flat: leaf(1), a: Inner { b: leaf(2) } };
    let archive = saved(&both(), 0);
    let archive = Archive::new(&archive).unwrap();
    let error = archive.only().unwrap().dyn_tensor("a.b").unwrap_err();
    assert!(error.to_string().contains("JSON Pointer"), "{error}");
    assert_eq!(archive.only().unwrap().dyn_tensor("/a.b").unwrap(), leaf(1).0);
    assert_eq!(archive.only().unwrap().dyn_tensor("/a/b").unwrap(), leaf(2).0);
    each_is_found(&archive, 2);
    // The same, further in.
    each_is_found(&Archive::new(&saved(&(vec![both()],), 0)).unwrap(), 2);
    each_is_found(&Archive::new(&saved(&BTreeMap::from([("x", both())]), 0)).unwrap(), 2);
    each_is_found(&Archive::new(&saved(&Some(Some(both())), 0)).unwrap(), 2);
    // Against something that is no tensor.
    let mixed = simple(
        map(&[(
            "x",
            map(&[("a.b", unsigned(1)), ("a", map(&[("b", tensor_ref("u32", &[3], 0))]))]),
        )]),
        &[&[1, 0, 0, 0].repeat(3)],
    );
    each_is_found(&Archive::new(&mixed).unwrap(), 1);
}

// 34
#[test]
fn keys_that_are_no_texts() {
    let integers = BTreeMap::from([(-5i64, leaf(1)), (0, leaf(2)), (i64::MAX, leaf(3))]);
    let bytes = saved(&integers, 0);
    let archive = Archive::new(&bytes).unwrap();
    each_is_found(&archive, 3);
    assert_eq!(archive.only().unwrap().dyn_tensor("-5").unwrap(), leaf(1).0);
    assert_eq!(archive.only().unwrap().keys("").unwrap(), ["-5", "0", "9223372036854775807"]);
    // Others are in diagnostic notation.
    for (key, component) in [
        (vec![0xf5], "true"),
        (vec![0xf9, 0, 0], "0.0"),
        (array(&[unsigned(1)]), "[1]"),
        (vec![0x41, 0], "h'00'"),
        (vec![0xf6], "null"),
    ] {
        let pairs = [key, tensor_ref("u32", &[3], 0), text(""), tensor_ref("u32", &[3], 1)];
        let metadata = [head(5, 2), pairs.concat()].concat();
        let contents = [[1u8, 0, 0, 0].repeat(3), [2, 0, 0, 0].repeat(3)];
        let bytes = simple(metadata, &[&contents[0], &contents[1]]);
        let archive = Archive::new(&bytes).unwrap();
        assert_eq!(archive.only().unwrap().keys("").unwrap(), [component, ""]);
        assert_eq!(archive.tensor::<ndarray::ArrayD<u32>>("/").unwrap()[[0]], 2);
        each_is_found(&archive, 2);
    }
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
enum Kind {
    New(Tensor<ArrayD<u32>>),
    Tuple(u8, Tensor<ArrayD<u32>>),
    Struct { weight: Tensor<ArrayD<u32>> },
}

// 36
#[test]
fn variants_and_options_are_steps_as_they_stand() {
    let tensor = || Tensor(ArrayD::from_elem(IxDyn(&[3]), 1u32));
    for (value, path) in [
        (Kind::New(tensor()), "New"),
        (Kind::Tuple(1, tensor()), "Tuple.1"),
        (Kind::Struct { weight: tensor() }, "Struct.weight"),
    ] {
        let bytes = saved(&value, 0);
        let archive = Archive::new(&bytes).unwrap();
        assert_eq!(archive.tensors().unwrap()[0].path(), path);
        each_is_found(&archive, 1);
        assert_eq!(archive.get::<Kind>("").unwrap(), value);
    }
    let options = (Some(Some(leaf(1))), Some(Some(Some(leaf(2)))), None::<Option<u8>>);
    let bytes = saved(&options, 0);
    each_is_found(&Archive::new(&bytes).unwrap(), 2);
    // Around a tensor no tag of `Some` is needed, and other writers may put one.
    let content = [1u8, 0, 0, 0].repeat(3);
    let inner = own(*b"TSOM", &own(*b"TSOM", &tensor_ref("u32", &[3], 0)));
    let bytes = simple(map(&[("a", inner.clone())]), &[&content]);
    each_is_found(&Archive::new(&bytes).unwrap(), 1);
    each_is_found(&Archive::new(&simple(inner, &[&content])).unwrap(), 1);
    let inner =
        map(&[("b", tag(99, &tag(24, &own(*b"TSOM", &tag(7, &tensor_ref("u32", &[3], 0))))))]);
    let bytes = simple(own(*b"TSOM", &tag(55_799, &inner)), &[&content]);
    each_is_found(&Archive::new(&bytes).unwrap(), 1);
}

// 58
#[test]
fn paths_to_what_is_not_there() {
    let value = (BTreeMap::from([("a", leaf(1))]), 7u8, "text", vec![1.5f32; 100]);
    let bytes = saved(&value, 0);
    let archive = Archive::new(&bytes).unwrap();
    let long = "0.".repeat(100_000);
    for path in [
        "4", "-1", "00", "0.b", "0.a.0", "1.0", "2.0", "3.100", "/", "//", "/0/a/", "0.", ".0",
        "0..a", "/0a", "~", "\0", &long,
    ] {
        let error = archive.only().unwrap().dyn_tensor(path).unwrap_err();
        assert_eq!(error.category(), NotFound, "{path:.20}: {error}");
        assert!(archive.get::<Value>(path).is_err() && archive.only().unwrap().keys(path).is_err());
    }
    for path in ["1", "2", "0"] {
        assert!(archive.only().unwrap().dyn_tensor(path).is_err());
    }
    // Wrong rank and dtype.
    assert!(archive.tensor::<ndarray::Array2<u32>>("0.a").is_err());
    assert!(archive.tensor::<ndarray::Array1<f32>>("0.a").is_err());
    assert!(archive.slice::<ndarray::ArrayD<i32>>("0.a", ndarray::s![..]).is_err());
    assert!(archive.slice::<ndarray::ArrayD<u32>>("0.a", ndarray::s![.., ..]).is_err());
    for (start, end) in [(0, 4), (-4, 2), (4, 4), (isize::MIN, 1), (0, isize::MAX)] {
        let slice = ndarray::Slice::new(start, Some(end), 1);
        let elems = [ndarray::SliceInfoElem::from(slice)];
        let found = archive.slice::<ndarray::ArrayD<u32>>("0.a", &elems[..]);
        assert!(found.is_err(), "{start}..{end}");
    }
}

// 35: lists are linear, and streams do without.
#[test]
fn many_keys_with_dots() {
    let many: BTreeMap<String, u8> =
        (0..10_000).map(|at| (format!("{}{at}", "a.".repeat(at % 50)), 1)).collect();
    let bytes = saved(&many, 0);
    assert!(Archive::new(&bytes).unwrap().tensors().unwrap().is_empty());
    assert_eq!(IArchive::new(&bytes[..]).unwrap().load::<BTreeMap<String, u8>>().unwrap(), many);
}
