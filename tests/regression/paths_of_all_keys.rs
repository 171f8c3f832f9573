//! Tensors under keys that are neither text nor integer had no path: they were not listed, and could
//! not be looked up.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_bytes::ByteBuf;
use tenarc::archive::SaveOptions;
use tenarc::{Archive, DynTensor, OArchive, Tensor, Value};

fn saved<T: Serialize>(value: &T) -> Archive<Vec<u8>> {
    let options = SaveOptions::default().with_inline_below(1 << 20);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(value).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

fn tensor(seed: u8) -> Value {
    tenarc::to_value(&Tensor(vec![seed, 2, 3])).unwrap()
}

fn text(text: &str) -> Value {
    Value::Text(text.into())
}

/// Each tensor that is listed, the `n`th of elements `[n, 2, 3]`, is found by its path.
fn listed(archive: &Archive<Vec<u8>>) -> Vec<String> {
    let tensors = archive.tensors().unwrap();
    for (number, info) in (0..).zip(&tensors) {
        let found: DynTensor = archive.only().unwrap().dyn_tensor(info.path()).unwrap();
        assert_eq!(*found.le_bytes(), [number, 2, 3], "{}", info.path());
        assert_eq!(archive.only().unwrap().info(info.path()).unwrap(), *info);
    }
    tensors.iter().map(|info| info.path().to_owned()).collect()
}

#[test]
fn keys_of_every_kind_have_paths_in_diagnostic_notation() {
    let cases = [
        (Value::Bytes(vec![0, 0xab, 0xff]), "h'00abff'"),
        (Value::Bytes(vec![]), "h''"),
        (Value::Bool(true), "true"),
        (Value::Null, "null"),
        (Value::Simple(23), "undefined"),
        (Value::Simple(40), "simple(40)"),
        (Value::F64(1.5), "1.5"),
        (Value::F32(0.1), "0.10000000149011612"),
        (Value::F64(1e16), "1e16"),
        (Value::F64(f64::NAN), "NaN"),
        (Value::F64(f64::NEG_INFINITY), "-Infinity"),
        (Value::Integer(i128::MIN), "-170141183460469231731687303715884105728"),
        (Value::Array(vec![Value::Integer(1), text("a.b/\"c\"\n")]), "[1, \"a.b/\\\"c\\\"\\n\"]"),
        (Value::Array(vec![]), "[]"),
        (Value::Map(vec![(Value::Null, Value::Bool(false))]), "{null: false}"),
        (Value::Tag(32, Box::new(text("x"))), "32(\"x\")"),
        (text("plain"), "plain"),
        (Value::Integer(-7), "-7"),
    ];
    let entries = (0..).zip(&cases).map(|(seed, (key, _))| (key.clone(), tensor(seed)));
    let map = Value::Map(entries.collect());
    let components: Vec<&str> = cases.iter().map(|(_, component)| *component).collect();
    assert_eq!(listed(&saved(&map)), components);
    assert_eq!(saved(&map).only().unwrap().keys("").unwrap(), components);
    // Further in, and by JSON Pointers.
    let archive = saved(&BTreeMap::from([("x", map)]));
    let expected: Vec<String> =
        components.iter().map(|component| format!("x.{component}")).collect();
    assert_eq!(listed(&archive), expected);
    for component in components {
        let escaped = component.replace('~', "~0").replace('/', "~1");
        let (pointer, dotted) = (format!("/x/{escaped}"), format!("x.{component}"));
        let (a, b) = (
            archive.only().unwrap().dyn_tensor(&pointer).unwrap(),
            archive.only().unwrap().dyn_tensor(&dotted).unwrap(),
        );
        assert_eq!(a, b);
    }
}

#[test]
fn a_map_of_uuids_and_one_of_pairs() {
    let ids: BTreeMap<ByteBuf, Tensor<Vec<u8>>> =
        (0..3u8).map(|at| (ByteBuf::from([at; 16]), Tensor(vec![at, 2, 3]))).collect();
    assert_eq!(listed(&saved(&ids))[1], "h'01010101010101010101010101010101'");
    let pairs: BTreeMap<(u32, &str), Tensor<Vec<u8>>> =
        [((1, "a"), Tensor(vec![0, 2, 3])), ((2, "b"), Tensor(vec![1, 2, 3]))].into();
    assert_eq!(listed(&saved(&pairs)), ["[1, \"a\"]", "[2, \"b\"]"]);
    let numbers: BTreeMap<(u32, u32), Tensor<Vec<u8>>> = [((1, 2), Tensor(vec![0, 2, 3]))].into();
    assert_eq!(listed(&saved(&numbers)), ["[1, 2]"]);
}

#[test]
fn long_keys_are_written_in_full() {
    let key = |last: u8| {
        let mut key = vec![0xab; 100_000];
        key.push(last);
        Value::Bytes(key)
    };
    let map = Value::Map((0..3).map(|at| (key(at), tensor(at))).collect());
    let paths = listed(&saved(&map));
    assert!(paths.iter().all(|path| path.len() == 3 + 2 * 100_001));
}

#[test]
fn a_key_in_a_buffer_is_written_as_the_reference_to_it() {
    let map = Value::Map(vec![(Value::Bytes(vec![7; 5000]), tensor(0))]);
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&map).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    assert_eq!(listed(&archive), ["1413633350([0])"]);
}

#[test]
fn a_notation_with_dots_may_lead_to_two_values() {
    let inside = Value::Map(vec![(text("5"), tensor(1))]);
    let map = Value::Map(vec![
        (Value::F64(1.5), tensor(0)),
        (Value::Integer(1), inside),
        (text("layer.5"), tensor(2)),
    ]);
    let archive = saved(&map);
    assert_eq!(listed(&archive), ["/1.5", "/1/5", "layer.5"]);
    assert!(
        archive.only().unwrap().info("1.5").unwrap_err().to_string().contains("several values")
    );
}

#[test]
fn the_function_that_chooses_buffers_sees_the_same_paths() {
    let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = seen.clone();
    let options = SaveOptions::default().with_out_of_band(move |info| {
        log.lock().unwrap().push(info.path().to_owned());
        info.byte_len() > 1
    });
    let map = Value::Map(vec![
        (Value::Array(vec![Value::Integer(1), text("a")]), tensor(0)),
        (Value::Bytes(vec![7]), Value::Map(vec![(Value::Null, tensor(1))])),
        (Value::Tag(32, Box::new(text("x"))), tensor(2)),
    ]);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(&map).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    // It is asked about the byte string of a key as well, which is in no path.
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, ["[1, \"a\"]", "?", "h'07'.null", "32(\"x\")"]);
    assert_eq!(listed(&archive), [&*seen[0], &seen[2], &seen[3]]);
}
