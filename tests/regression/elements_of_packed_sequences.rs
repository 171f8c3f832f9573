//! A path led to the elements of an array, but not to those of the same sequence when it was long enough to be packed.

use std::collections::BTreeMap;

use tenarc::{Archive, IArchive, Value};

fn archived<T: serde::Serialize>(value: &T) -> Archive<Vec<u8>> {
    let mut out = tenarc::OArchive::new(Vec::new()).unwrap();
    out.save(value).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

const LENGTHS: [usize; 6] = [2, 3, 4, 200, 256, 70_000];

#[test]
fn paths_lead_to_elements() {
    for len in LENGTHS {
        let doubles: Vec<f64> = (0..len).map(|at| at as f64 / 2.0).collect();
        let counts: Vec<u32> = (0..len as u32).collect();
        let value = BTreeMap::from([("doubles", &doubles)]);
        let archive = archived(&(&value, &counts));
        for at in [0, 1, len - 1] {
            let path = format!("0.doubles.{at}");
            assert_eq!(archive.get::<f64>(&path).unwrap(), doubles[at], "{len}");
            assert_eq!(archive.get::<f64>(&format!("/0/doubles/{at}")).unwrap(), doubles[at]);
            assert_eq!(archive.get::<Value>(&path).unwrap(), Value::F64(doubles[at]));
            assert_eq!(archive.view_at::<f32>(&path).unwrap(), doubles[at] as f32);
            assert_eq!(archive.get::<u64>(&format!("1.{at}")).unwrap(), at as u64);
            archive.only().unwrap().verify_at(&path).unwrap();
        }
        for path in [format!("1.{len}"), "1.0.0".to_owned(), "1.x".to_owned(), "1.00".to_owned()] {
            let error = archive.get::<Value>(&path).unwrap_err();
            assert!(error.to_string().contains("there is no value at"), "{error}");
        }
        let keys = archive.only().unwrap().keys("1").unwrap();
        assert_eq!((keys.len(), &*keys[len - 1]), (len, &*(len - 1).to_string()));
        let (metadata, buffers) = tenarc::to_parts(&counts).unwrap().into_inner();
        let parts = tenarc::parts::Parts::new(metadata, buffers).unwrap();
        assert_eq!(parts.get::<u32>("1").unwrap(), 1);
    }
}

#[test]
fn values_have_elements() {
    for len in LENGTHS {
        let value = BTreeMap::from([("doubles", (0..len).map(|at| at as f64).collect::<Vec<_>>())]);
        let mut read: Value = archived(&value).load().unwrap();
        assert_eq!(read["doubles"][1], Value::F64(1.0), "{len}");
        assert_eq!(read.pointer("/doubles/1"), Some(&Value::F64(1.0)));
        assert_eq!(read["doubles"].as_array().map(<[Value]>::len), Some(len));
        assert!(read["doubles"].is_array() && read["doubles"][len].is_null());
        read["doubles"][1] = Value::from("changed");
        assert_eq!(read["doubles"][1].as_str(), Some("changed"));
        assert_eq!(read["doubles"][0], Value::F64(0.0));
    }
}

/// A packed sequence in a row, also in one that is stored as an item.
#[test]
fn packed_sequences_in_columns() {
    for len in LENGTHS {
        let numbers: Vec<f64> = (0..len.min(5000)).map(|at| at as f64).collect();
        let mixed = |row: usize| match row % 2 {
            0 => Value::from(tenarc::value::Numbers::from(numbers.clone())),
            _ => Value::from("text"),
        };
        let rows: Vec<_> = (0..20).map(|row| (row, numbers.clone(), mixed(row))).collect();
        let archive = archived(&rows);
        assert_eq!(archive.get::<f64>("4.1.1").unwrap(), 1.0);
        assert_eq!(archive.get::<f64>("4.2.1").unwrap(), 1.0);
        let whole: Vec<(usize, Vec<f64>, Value)> =
            IArchive::new(&archive.source()[..]).unwrap().load().unwrap();
        assert_eq!(whole[4].2[1], Value::F64(1.0));
    }
}

/// A key with dots beside the sequence.
#[test]
fn ambiguous_paths() {
    let packed = vec![0.5f64; 300];
    let value = BTreeMap::from([("a", Value::from(tenarc::value::Numbers::from(packed)))]);
    let with = |key| {
        let mut value = value.clone();
        value.insert(key, Value::Bool(true));
        archived(&value)
    };
    assert!(with("a.5").get::<Value>("a.5").unwrap_err().to_string().contains("several values"));
    assert_eq!(with("a.5").get::<f64>("/a/5").unwrap(), 0.5);
    assert!(with("a.300").get::<bool>("a.300").unwrap());
}
