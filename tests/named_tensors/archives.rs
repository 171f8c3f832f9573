//! Lists and other ways to save use the same format: each reads what the other wrote.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;

use ndarray::{Array1, Array2, s};
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::named::{Match, Variable, load_multi, load_multi_onto, save_multi};
use tenarc::{Archive, DynTensor, OArchive, Tensor};

use super::{names, ramp, saved};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Flat {
    weight: Tensor<Array2<f32>>,
    #[serde(with = "tenarc::tensor")]
    bias: Array1<f32>,
    #[serde(rename = "running.mean")]
    mean: Tensor<Vec<f64>>,
}

fn flat() -> Flat {
    let weight = Array2::from_shape_fn((30, 40), |(y, x)| (y * 40 + x) as f32).into();
    Flat { weight, bias: ramp(30, 1), mean: Tensor(vec![0.5; 30]) }
}

#[test]
fn lists_read_what_save_wrote() {
    let options = SaveOptions::default().with_sync(SyncLevel::Off);
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let check = |sorted: bool| {
        let mut list = load_multi(File::open(&path).unwrap()).unwrap();
        if !sorted {
            list.sort_by_key(|(name, _)| {
                ["weight", "bias", "running.mean"].iter().position(|n| n == name)
            });
        }
        assert_eq!(names(&list), ["weight", "bias", "running.mean"]);
        assert_eq!(list[0].1.view::<f32>().unwrap(), flat().weight.view().into_dyn());

        let mut mean = Array1::<f64>::zeros(30);
        let (mut weight, mut bias) = (Array2::<f32>::zeros((30, 40)), Array1::<f32>::zeros(30));
        let mut variables: [(&str, &mut dyn Variable); 3] =
            [("running.mean", &mut mean), ("weight", &mut weight), ("bias", &mut bias)];
        load_multi_onto(File::open(&path).unwrap(), &mut variables, Match::Strict).unwrap();
        let loaded = Flat { weight: weight.into(), bias, mean: Tensor(mean.to_vec()) };
        assert_eq!(loaded, flat());
    };
    tenarc::archive::save_with(&path, &flat(), options.clone()).unwrap();
    check(true);

    let tensor = |name: &str| -> DynTensor {
        match name {
            "weight" => flat().weight.0.into(),
            "bias" => flat().bias.into(),
            _ => Array1::from_vec(flat().mean.0).into(),
        }
    };
    let entries =
        ["weight", "bias", "running.mean"].map(|name| (name.to_owned(), Tensor(tensor(name))));
    let sorted: BTreeMap<_, _> = entries.clone().into();
    tenarc::archive::save_with(&path, &sorted, options.clone()).unwrap();
    check(false);
    assert_eq!(
        names(&load_multi(File::open(&path).unwrap()).unwrap()),
        ["bias", "running.mean", "weight"]
    );
    let hashed: HashMap<_, _> = entries.into();
    tenarc::archive::save_with(&path, &hashed, options).unwrap();
    check(false);
}

#[test]
fn others_read_what_lists_wrote() {
    let Flat { weight, bias, mean } = flat();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let list: [(&str, &dyn tenarc::tensor::ToTensor); 3] =
        [("weight", &weight.0), ("bias", &bias), ("running.mean", &mean.0)];
    save_multi(File::create(&path).unwrap(), &list).unwrap();
    assert_eq!(tenarc::load::<Flat>(&path).unwrap(), flat());
    let map: HashMap<String, Tensor<DynTensor>> = tenarc::load(&path).unwrap();
    assert_eq!(map.len(), 3);

    let file = tenarc::open(&path).unwrap();
    file.verify().unwrap();
    assert_eq!(file.tensor::<Array2<f32>>("weight").unwrap(), *weight);
    assert_eq!(file.tensor::<Array1<f64>>("running.mean").unwrap().to_vec(), mean.0);
    let rows: Array2<f32> = file.slice("weight", s![3..5, ..]).unwrap();
    assert_eq!(rows, weight.slice(s![3..5, ..]));
    let tensors = file.tensors().unwrap();
    let paths: Vec<_> = tensors.iter().map(tenarc::tensor::TensorInfo::path).collect();
    assert_eq!(paths, ["weight", "bias", "running.mean"]);
}

/// The name is the path, as far as a path can be a name.
#[test]
fn tensors_are_opened_by_their_names() {
    let plain = [
        "a",
        "a.b",
        "x..y",
        ".",
        "..",
        "0",
        "0.1",
        "layers.0/w",
        "\0",
        "\u{1f980}",
        " ",
        "a\nb",
        "~1",
    ];
    let long = "y".repeat(10_000);
    let tensors: Vec<_> = plain
        .into_iter()
        .chain([long.as_str()])
        .zip(0..)
        .map(|(name, at)| (name, ramp(600, at)))
        .collect();
    let archive = Archive::new(saved(&tensors)).unwrap();
    for (name, expected) in &tensors {
        let found =
            archive.tensor::<Array1<f32>>(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(&found, expected, "{name:?}");
    }
    // Where a path would mean something else, a JSON Pointer tells the name.
    let special = [("", "/"), ("/", "/~1"), ("/a/b", "/~1a~1b"), ("/~", "/~1~0")];
    let tensors: Vec<_> =
        special.iter().zip(0..).map(|(&(name, _), at)| (name, ramp(600, at))).collect();
    let archive = Archive::new(saved(&tensors)).unwrap();
    for ((name, expected), (_, pointer)) in tensors.iter().zip(special) {
        assert!(archive.tensor::<Array1<f32>>(name).ok().as_ref() != Some(expected), "{name:?}");
        assert_eq!(&archive.tensor::<Array1<f32>>(pointer).unwrap(), expected, "{name:?}");
    }
}

/// A list in a file that takes its place as a whole.
#[test]
fn a_list_is_saved_atomically() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("model.tenarc");
    let options = SaveOptions::default().with_sync(SyncLevel::Off);
    tenarc::archive::save_with(&path, "before", options.clone()).unwrap();
    let mut out = OArchive::create(&path, options).unwrap();
    out.save_multi(&[("a", ramp(900, 1))]).unwrap();
    assert_eq!(tenarc::load::<String>(&path).unwrap(), "before");
    out.finish().unwrap();
    assert_eq!(names(&load_multi(File::open(&path).unwrap()).unwrap()), ["a"]);
}
