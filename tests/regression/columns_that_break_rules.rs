//! `verify` found nothing wrong with references in `["rows", ...]`, which then could not be read. Names that occur twice
//! in a column were accepted.

use serde::Serialize;
use tenarc::{Archive, IArchive, Value};
use tenarc_test_support::builder::{
    array, bytes, bytes_ref, map, own, simple, tag, tensor_ref, text, unsigned,
};

fn columns(rows: u64, column: Vec<u8>) -> Vec<u8> {
    own(*b"TCOL", &array(&[unsigned(rows), column]))
}

fn u8s(values: &[u8]) -> Vec<u8> {
    tag(64, &bytes(values))
}

/// Nothing reads the value, and `verify` says so.
#[track_caller]
fn is_refused(metadata: &[u8], buffers: &[&[u8]], expected: &str) {
    let archived = simple(map(&[("log", metadata.to_vec())]), buffers);
    let archive = Archive::new(&archived[..]).unwrap();
    let mut errors = vec![
        archive.verify().unwrap_err(),
        archive.load::<Value>().unwrap_err(),
        archive.view::<std::collections::BTreeMap<String, Vec<Value>>>().unwrap_err(),
        IArchive::new(&archived[..]).unwrap().load::<Value>().unwrap_err(),
    ];
    if buffers.is_empty() {
        errors.push(tenarc::from_slice::<Value>(metadata).unwrap_err());
        errors.push(tenarc::from_slice::<Vec<Value>>(metadata).unwrap_err());
    }
    for error in errors {
        assert!(error.to_string().contains(expected), "{error}");
        assert!(error.offset().is_some(), "{error}");
    }
}

#[test]
fn references_in_rows() {
    let rows = |item| array(&[text("rows"), array(&[unsigned(1), item])]);
    let not = "must not refer to buffers";
    for item in [bytes_ref(0), tensor_ref("u8", &[4], 0), map(&[("deep", array(&[bytes_ref(0)]))])]
    {
        is_refused(&columns(2, rows(item.clone())), &[&[1; 4]], not);
        let field = map(&[("a", rows(item))]);
        is_refused(&columns(2, field.clone()), &[&[1; 4]], not);
        let list = array(&[text("array"), unsigned(2), field]);
        is_refused(&columns(1, list), &[&[1; 4]], not);
    }
    // A byte string with the same bytes is no reference.
    let text = simple(columns(2, rows(bytes(&bytes_ref(0)))), &[]);
    Archive::new(&text[..]).unwrap().verify().unwrap();
}

#[test]
fn names_that_occur_twice() {
    let twice = |count: usize| {
        let names: Vec<String> =
            (0..count).map(|at| format!("name {}", at % (count - 1))).collect();
        names
    };
    for count in [2, 3, 16, 17, 40] {
        let names = twice(count);
        let expected = "the name `name 0` occurs twice in a column";
        let fields: Vec<_> = names.iter().map(|name| (&**name, u8s(&[1, 2]))).collect();
        is_refused(&columns(2, map(&fields)), &[], expected);
        let tuple = array(&[text("tuple"), array(&[map(&fields)])]);
        is_refused(&columns(2, tuple), &[], expected);
        let names = array(&names.iter().map(|name| text(name)).collect::<Vec<_>>());
        is_refused(&columns(2, array(&[text("enum"), u8s(&[0, 1]), names])), &[], expected);
    }
}

/// Such values are written as rows.
#[test]
fn variants_of_one_name_are_no_column() {
    #[derive(Serialize, Clone)]
    enum Odd {
        #[serde(rename = "same")]
        First,
        #[serde(rename = "same")]
        Second(u8),
    }
    let values: Vec<Odd> = [Odd::First, Odd::Second(7)].into_iter().cycle().take(40).collect();
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(&values).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    archive.verify().unwrap();
    assert_eq!(archive.load::<Vec<Value>>().unwrap().len(), 40);
}
