//! Archives: saved, loaded, streamed, opened, mapped.
#![allow(unsafe_code)]

use std::collections::BTreeMap;

use ndarray::{Array1, Array2, ArrayView1, ArrayView2, s};
use serde::{Deserialize, Serialize};
use tenarc::{Archive, IArchive, Map, OArchive, Tensor};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Model {
    name: String,
    layers: Vec<Layer>,
    curve: Vec<f64>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Layer {
    weight: Tensor<Array2<f32>>,
    bias: Tensor<Array1<f32>>,
}

fn model() -> Model {
    let layer = |n: usize| Layer {
        weight: Tensor(Array2::from_shape_fn((40 + n, 64), |(a, b)| (a * b) as f32)),
        bias: Tensor(Array1::from_elem(64, n as f32)),
    };
    Model {
        name: "m".into(),
        layers: (0..3).map(layer).collect(),
        curve: (0..1000).map(f64::from).collect(),
    }
}

#[test]
fn round_trips() {
    let dir = tempdir();
    let path = dir.join("m.tenarc");
    tenarc::save(&path, &model()).unwrap();
    assert_eq!(tenarc::load::<Model>(&path).unwrap(), model());
    let file = tenarc::open(&path).unwrap();
    for t in file.tensors().unwrap() {
        println!("{} {} {:?} {:?}", t.path(), t.dtype(), t.shape(), t.buffer());
    }
    file.verify().unwrap();
    let w: Array2<f32> = file.tensor("layers.2.weight").unwrap();
    assert_eq!(w, model().layers[2].weight.0);
    let part: Array2<f32> = file.slice("layers.2.weight", s![10..20, ..]).unwrap();
    assert_eq!(part, w.slice(s![10..20, ..]));
    assert_eq!(file.get::<Vec<f64>>("curve").unwrap(), model().curve);
    assert_eq!(file.keys("").unwrap(), ["name", "layers", "curve"]);
    let map = unsafe { Map::open(&path) }.unwrap();
    let view: BTreeMap<&str, tenarc::Value> = map.view().unwrap();
    assert_eq!(view.len(), 3);
    let view: Tensor<ArrayView2<f32>> = map.view_at("layers.1.weight").unwrap();
    assert_eq!(view.0, model().layers[1].weight.0);
    let bias: Tensor<ArrayView1<f32>> = map.view_at("layers.1.bias").unwrap();
    assert_eq!(bias.0, model().layers[1].bias.0);

    let mut out = OArchive::new(Vec::new()).unwrap();
    for i in 0..200u32 {
        out.save_as(&format!("n{i}"), &(i, model())).unwrap();
    }
    let bytes = out.finish().unwrap();
    let mut input = IArchive::new(&bytes[..]).unwrap();
    for i in 0..200u32 {
        let (n, m): (u32, Model) = input.load().unwrap();
        assert_eq!((n, m), (i, model()));
    }
    assert!(input.is_at_end().unwrap());
    let archive = Archive::new(&bytes[..]).unwrap();
    archive.verify().unwrap();
    assert_eq!(archive.named("n77").unwrap().get::<u32>("0").unwrap(), 77);
    assert_eq!(archive.segment(150).unwrap().get::<u32>("0").unwrap(), 150);
    std::fs::remove_dir_all(dir).unwrap();
}

fn tempdir() -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("tenarc-archive-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}
