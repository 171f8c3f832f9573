//! Errors about a path or name that does not exist suggest similar ones.

use std::collections::BTreeMap;

use ndarray::s;
use tenarc::{Archive, OArchive, Tensor, Value};

use super::support::{quick, to_bytes};

fn archive_of(value: &Value) -> Archive<Vec<u8>> {
    Archive::new(to_bytes(value, quick())).unwrap()
}

fn tensor() -> Value {
    tenarc::to_value(&Tensor(vec![1u8])).unwrap()
}

/// `{"layers": [{"weight": _, "bias": _}, ...], "layer": _, "a.b": {"c/d": _}, 17: _, "": _}`.
fn model() -> Archive<Vec<u8>> {
    let layer = || Value::from_iter([("weight", tensor()), ("bias", tensor())]);
    archive_of(&Value::from_iter([
        (Value::from("layers"), Value::from(vec![layer(), layer()])),
        ("layer".into(), tensor()),
        ("encoder.head".into(), Value::from_iter([("up/down", tensor()), ("/rooted", tensor())])),
        ("/rooted".into(), tensor()),
        (1717.into(), tensor()),
        ("".into(), tensor()),
    ]))
}

#[test]
fn the_nearest_path_is_suggested() {
    let archive = model();
    for (path, meant) in [
        ("layers.0.wieght", Some("layers.0.weight")),
        ("layers.1.bia", Some("layers.1.bias")),
        ("layrs.1.bias", Some("layers.1.bias")),
        ("layrs.1.biass", Some("layers")),
        ("Layers.0.weight", Some("layers.0.weight")),
        ("layers.0.x", None),
        ("layers.2.weight", None),
        ("layers.first", None),
        ("layers.0.weight.0", None),
        ("/layers/0/wieght", Some("/layers/0/weight")),
        ("/layrs/0/weight", Some("/layers/0/weight")),
        ("encoder.heads.up/down", Some("encoder.head.up/down")),
        ("encoder.head.up/dwn", Some("encoder.head.up/down")),
        ("/encoder.head/up~1dwn", Some("/encoder.head/up~1down")),
        ("encoder.head.rooted", Some("encoder.head./rooted")),
        ("rooted", None),
        ("171", Some("1717")),
        ("17", None),
        ("1718", Some("1717")),
        ("layers.0.baised", None),
        ("w", None),
        (".", None),
        ("layers.", None),
    ] {
        let question = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
        let expected = format!("there is no value at `{path}`{question}");
        assert_eq!(archive.only().unwrap().info(path).unwrap_err().to_string(), expected);
        if let Some(meant) = meant {
            archive.get::<Value>(meant).unwrap();
        }
        assert_eq!(archive.tensor::<Vec<u8>>(path).unwrap_err().to_string(), expected);
        assert_eq!(archive.slice::<Vec<u8>>(path, s![..]).unwrap_err().to_string(), expected);
        assert_eq!(archive.get::<Value>(path).unwrap_err().to_string(), expected);
        assert_eq!(archive.view_at::<&[u8]>(path).unwrap_err().to_string(), expected);
        assert_eq!(archive.only().unwrap().keys(path).unwrap_err().to_string(), expected);
    }
}

#[test]
fn keys_of_flat_maps_are_suggested_whole() {
    let keys = ["model.layers.0.mlp.up_proj.weight", "model.layers.10.mlp.up_proj.weight"];
    let archive = archive_of(&keys.into_iter().map(|key| (key, tensor())).collect());
    let error =
        archive.only().unwrap().info("model.layers.0.mlp.up_porj.weight").unwrap_err().to_string();
    assert!(error.ends_with(&format!("; did you mean `{}`?", keys[0])), "{error}");
}

#[test]
fn control_characters_of_suggestions_are_escaped() {
    let archive = archive_of(&Value::from_iter([("wei\u{1b}ght", tensor())]));
    let error = archive.only().unwrap().info("weight").unwrap_err().to_string();
    assert!(error.ends_with("; did you mean `wei\\u{1b}ght`?"), "{error}");
}

#[test]
fn a_bounded_number_of_keys_is_compared() {
    let key = |n: usize| format!("{n:04}{}", "x".repeat(200));
    let keys: BTreeMap<String, u8> = (0..5000).map(|n| (key(n), 0)).collect();
    let archive = archive_of(&tenarc::to_value(&keys).unwrap());
    let suggests =
        |n| archive.only().unwrap().info(&format!("{}y", key(n))).unwrap_err().to_string();
    assert!(suggests(10).contains("did you mean"), "{}", suggests(10));
    let long = BTreeMap::from([("x".repeat(10_000), 0)]);
    let archive = archive_of(&tenarc::to_value(&long).unwrap());
    let error = archive.only().unwrap().info(&"x".repeat(9_999)).unwrap_err().to_string();
    assert!(!error.contains("did you mean"));
}

#[test]
fn the_nearest_name_is_suggested() {
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    // Enough that names stand in blocks of the directory.
    out.save_as("optimizer", &0).unwrap();
    for n in 0..200 {
        out.save(&n).unwrap();
    }
    out.save_as("model", &1).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    for (name, question) in [
        ("modle", "; did you mean `model`?"),
        ("Optimizer", "; did you mean `optimizer`?"),
        ("scheduler", ""),
        ("", ""),
    ] {
        let error = archive.named(name).unwrap_err().to_string();
        assert_eq!(error, format!("the archive has no segment named `{name}`{question}"));
    }
}
