//! A flattened map whose keys are no texts was saved, and then could not be read: "expected field identifier, found
//! integer 1".

use std::collections::BTreeMap;
use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use tenarc::{Archive, Value};

#[derive(Serialize, Deserialize, PartialEq, Debug)]
#[serde(bound(deserialize = "K: Deserialize<'de> + Ord"))]
struct Flat<K: Serialize + Ord> {
    id: u8,
    #[serde(flatten)]
    rest: BTreeMap<K, f32>,
}

/// In rows, a map becomes a column of maps.
#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Row<T> {
    number: u32,
    flat: T,
}

fn archived<T: Serialize>(value: &T) -> Archive<Vec<u8>> {
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(value).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

#[track_caller]
fn comes_back<K>(keys: impl IntoIterator<Item = K>)
where
    K: Serialize + DeserializeOwned + Ord + Debug,
{
    let rest = keys.into_iter().zip([0.5, -1.0, 2.5]).collect();
    let flat = Flat { id: 7, rest };
    let bytes = tenarc::to_vec(&flat).unwrap();
    assert_eq!(tenarc::from_slice::<Flat<K>>(&bytes).unwrap(), flat);
    assert_eq!(tenarc::from_reader::<_, Flat<K>>(&bytes[..]).unwrap(), flat);
    let value = tenarc::to_value(&flat).unwrap();
    assert_eq!(Flat::<K>::deserialize(&value).unwrap(), flat);
    assert_eq!(tenarc::from_value::<Flat<K>>(value).unwrap(), flat);
    let archive = archived(&flat);
    assert_eq!(archive.load::<Flat<K>>().unwrap(), flat);
    assert_eq!(tenarc::from_value::<Flat<K>>(archive.load::<Value>().unwrap()).unwrap(), flat);
    let row = || Row { number: 1, flat: Flat { id: 7, rest: BTreeMap::new() } };
    let rows = vec![row(), Row { number: 2, flat }, row()];
    let read: Vec<Row<Flat<K>>> = archived(&rows).load().unwrap();
    assert_eq!(read, rows);
}

#[test]
fn keys_of_all_kinds_come_back() {
    comes_back([1u8, 2, 200]);
    comes_back([-300i64, 2, i64::MAX]);
    comes_back([u64::MAX, 0]);
    comes_back([false, true]);
    comes_back([None, Some(3u16)]);
    comes_back(['a', '日']);
    comes_back([ByteBuf::from(vec![0]), ByteBuf::from(vec![1, 2])]);
    comes_back(["x".to_owned(), "y".to_owned()]);
    comes_back([()]);
}

/// serde's visitors for the fields of other structs would read a number as the index of a field.
#[test]
fn numbers_are_no_fields() {
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    struct Plain {
        id: u8,
    }
    #[derive(Deserialize, Debug)]
    #[allow(dead_code)]
    enum Variants {
        A(u8),
    }
    let map = BTreeMap::from([(0u8, 5u8)]);
    for error in [
        tenarc::from_slice::<Plain>(&tenarc::to_vec(&map).unwrap()).unwrap_err(),
        tenarc::from_slice::<Variants>(&tenarc::to_vec(&map).unwrap()).map(drop).unwrap_err(),
        tenarc::from_value::<Plain>(tenarc::to_value(&map).unwrap()).unwrap_err(),
        archived(&vec![(1u8, map); 17]).load::<Vec<(u8, Plain)>>().unwrap_err(),
    ] {
        assert!(error.to_string().contains("found integer 0"), "{error}");
    }
}
