//! Types around values and columns (`SPEC.md`, section 7.2): a reader that does not know them reads what is in them.

use ndarray::{Array1, array};
use serde::{Deserialize, Serialize};
use tenarc::error::Category;
use tenarc::{Archive, DynTensor, IArchive, Tensor, Value};
use tenarc_test_support::builder::{array as items, bytes, map, own, simple, tag, text, unsigned};
use tenarc_test_support::{decode, refuse};

use crate::build::{f32s, kind, null, one, tensor, texts, u8s};

fn typed(item: &[u8]) -> Vec<u8> {
    let name = [text("timestamp"), items(&[text("s"), text("Europe/Berlin")]), item.to_vec()];
    own(*b"TTYP", &items(&name))
}

fn typed_column(column: Vec<u8>) -> Vec<u8> {
    kind("type", &[text("timestamp"), items(&[text("s"), text("")]), column])
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
enum Any {
    A,
    B(u8),
}

#[test]
fn every_value_is_read_through_its_type() {
    assert_eq!(decode::<u8>(&typed(&unsigned(7))), 7);
    assert_eq!(decode::<i64>(&typed(&typed(&unsigned(7)))), 7);
    assert_eq!(decode::<f32>(&typed(&tenarc::to_vec(&0.5f32).unwrap())), 0.5);
    assert!(decode::<bool>(&typed(&[0xf5])));
    assert_eq!(decode::<Option<u8>>(&typed(&unsigned(7))), Some(7));
    assert_eq!(decode::<String>(&typed(&text("x"))), "x");
    assert_eq!(decode::<serde_bytes::ByteBuf>(&typed(&bytes(&[1]))).into_vec(), [1]);
    assert_eq!(decode::<Vec<u8>>(&typed(&items(&[unsigned(7), typed(&unsigned(8))]))), [7, 8]);
    assert_eq!(decode::<(u8,)>(&typed(&items(&[unsigned(7)]))), (7,));
    assert_eq!(decode::<u128>(&typed(&tag(2, &bytes(&[1; 9])))), 0x01_01_01_01_01_01_01_01_01);
    assert_eq!(decode::<Any>(&typed(&text("A"))), Any::A);
    assert_eq!(decode::<Any>(&typed(&map(&[("B", typed(&unsigned(1)))]))), Any::B(1));
    let tensor = typed(&tensor(&[2], f32s(&[0.5, 1.5])));
    assert_eq!(decode::<Tensor<Array1<f32>>>(&tensor).0, array![0.5, 1.5]);
    assert_eq!(decode::<Vec<f32>>(&typed(&f32s(&[0.5]))), [0.5]);
    assert_eq!(decode::<Vec<u8>>(&typed(&one(2, u8s(&[1, 2])))), [1, 2]);
    let document = items(&[typed(&unsigned(1)), unsigned(2)]);
    let (_, next): (serde::de::IgnoredAny, u8) = decode(&document);
    assert_eq!(next, 2);
    let value: Value = decode(&map(&[("a", typed(&unsigned(1)))]));
    assert_eq!(value.to_string(), r#"{"a": 1}"#);
}

#[test]
fn types_that_break_a_rule_are_refused() {
    let of = |content: &[Vec<u8>]| own(*b"TTYP", &items(content));
    for (document, what) in [
        (
            of(&[text("a"), items(&[])]),
            "expected an array of a type's name, its parameters and an item",
        ),
        (own(*b"TTYP", &unsigned(1)), "an item, found unsigned integer"),
        (of(&[text(""), items(&[]), unsigned(1)]), "expected the name of a type"),
        (of(&[unsigned(1), items(&[]), unsigned(1)]), "expected the name of a type"),
        (of(&[text("a"), items(&vec![unsigned(1); 17]), unsigned(1)]), "expected the parameters"),
        (of(&[text("a"), items(&[null()]), unsigned(1)]), "expected a parameter of a type"),
        (of(&[text("a"), items(&[]), null()]), "a null has no type"),
        (
            own(*b"TTYP", &[vec![0x9f], text("a"), items(&[]), unsigned(1), vec![0xff]].concat()),
            "expected an array",
        ),
    ] {
        let error = refuse::<u8>(&document);
        assert!(error.to_string().contains(what), "{error}");
        let error = refuse::<Value>(&document);
        assert!(error.to_string().contains(what), "{error}");
    }
    let mut deep = unsigned(1);
    for _ in 0..63 {
        deep = typed(&deep);
    }
    assert_eq!(decode::<u8>(&deep), 1);
    let error = refuse::<u8>(&typed(&deep));
    assert_eq!(error.category(), Category::Limit, "{error}");
    let error = refuse::<Value>(&typed(&deep));
    assert_eq!(error.category(), Category::Limit, "{error}");
}

#[test]
fn every_column_is_read_through_its_type() {
    let pair = kind("tuple", &[items(&[typed_column(u8s(&[1, 2])), typed_column(u8s(&[3, 4]))])]);
    assert_eq!(decode::<Vec<(u8, i64)>>(&one(2, pair)), [(1, 3), (2, 4)]);
    let option = kind("option", &[bytes(&[0b10]), typed_column(u8s(&[9]))]);
    assert_eq!(decode::<Vec<Option<u8>>>(&one(2, option)), [None, Some(9)]);
    let twice = typed_column(typed_column(kind("option", &[bytes(&[0b10]), u8s(&[9])])));
    assert_eq!(decode::<Vec<Option<u8>>>(&one(2, twice)), [None, Some(9)]);
    let present = kind("present", &[bytes(&[0b10]), typed_column(texts(unsigned(1), "x"))]);
    let value: Value = decode(&one(2, map(&[("a", present)])));
    assert_eq!(value.to_string(), r#"[{}, {"a": "x"}]"#);
}

#[test]
fn paths_lead_through_types() {
    let numbers = typed_column(own(*b"TBUF", &items(&[text("i64"), unsigned(0)])));
    let rows = one(2, map(&[("at", numbers), ("in", typed_column(map(&[("x", u8s(&[5, 6]))])))]));
    let reference = [text("f32"), items(&[unsigned(1)]), text("C"), unsigned(1)];
    let metadata = typed(&map(&[
        ("log", typed(&rows)),
        ("one", typed(&items(&[unsigned(1), typed(&text("x"))]))),
        ("tensor", typed(&own(*b"TBUF", &items(&reference)))),
    ]));
    let at: Vec<u8> = [7i64, -8].iter().flat_map(|at| at.to_le_bytes()).collect();
    let archive = simple(metadata, &[&at[..], &0.5f32.to_le_bytes()[..]]);
    let file = Archive::new(&archive[..]).unwrap();
    file.verify().unwrap();
    assert_eq!(file.get::<String>("one.1").unwrap(), "x");
    assert_eq!(file.get::<i64>("log.1.at").unwrap(), -8);
    assert_eq!(file.get::<Vec<i64>>("log.at").unwrap(), [7, -8]);
    assert_eq!(file.get::<Tensor<Array1<i64>>>("log.at").unwrap().0, array![7, -8]);
    assert_eq!(file.get::<Vec<u8>>("log.in.x").unwrap(), [5, 6]);
    assert_eq!(file.tensor::<Array1<f32>>("tensor").unwrap(), array![0.5]);
    let listed = file.only().unwrap().tensors().unwrap();
    let paths: Vec<_> = listed.iter().map(|info| (info.path(), info.shape().to_vec())).collect();
    assert_eq!(paths, [("log.at", vec![2]), ("log.in.x", vec![2]), ("tensor", vec![1])]);
    assert_eq!(file.slice::<DynTensor>("log.at", (1..,)).unwrap().shape(), [1]);
    let value: Value = IArchive::new(&archive[..]).unwrap().load().unwrap();
    assert!(value.to_string().starts_with(r#"{"log": [{"at": 7, "in": {"x": 5}}"#), "{value}");
}
