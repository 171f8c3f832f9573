//! `prefetch` reads part of a mapped file into the page cache.

use std::collections::BTreeMap;

use serde::Serialize;
use tenarc::{Archive, Map, OArchive, Tensor};

use super::support::{Dir, quick, to_bytes, weights};

#[derive(Serialize)]
struct Row {
    id: u32,
    score: f32,
    text: String,
}

#[derive(Serialize)]
struct Saved {
    model: BTreeMap<&'static str, Tensor<Vec<f32>>>,
    rows: Vec<Row>,
    plain: Vec<f64>,
    name: &'static str,
}

fn saved() -> Saved {
    let model = BTreeMap::from([
        ("first", Tensor(vec![0.5; 100_000])),
        ("second", Tensor(vec![1.5; 5])),
        ("empty", Tensor(Vec::new())),
    ]);
    let rows = (0..5000u16).map(|id| Row { id: id.into(), score: id.into(), text: id.to_string() });
    Saved { model, rows: rows.collect(), plain: vec![0.5; 3000], name: "a name" }
}

/// Every value has a path: also those without buffers, of which there is nothing to read.
const PATHS: [&str; 9] = [
    "",
    "model",
    "model.first",
    "model.second",
    "model.empty",
    "rows",
    "rows.score",
    "plain",
    "name",
];

#[test]
fn every_value_can_be_prefetched() {
    let dir = Dir::new();
    let path = dir.file("saved.tenarc");
    let mut ways = vec![quick(), quick().with_inline_below(0), quick().with_columns(false)];
    if cfg!(feature = "compression") {
        ways.push(quick().with_compression(tenarc::archive::Compression::lz4()));
    }
    for options in ways {
        let bytes = to_bytes(&saved(), options);
        std::fs::write(&path, &bytes).unwrap();
        // SAFETY: only this test knows the file, and does not change it while it is mapped.
        let map = unsafe { Map::open(&path) }.unwrap();
        let slice = Archive::new(&bytes[..]).unwrap();
        for path in PATHS
            .into_iter()
            .filter(|path| *path != "rows.score" || map.only().unwrap().info(path).is_ok())
        {
            map.prefetch(path).unwrap();
            map.only().unwrap().prefetch(path).unwrap();
        }
        map.prefetch("rows.7").unwrap();
        map.prefetch("rows.7.score").unwrap();
        for path in ["model.third", "rows.scores", "rows.5000", "x"] {
            let error = map.prefetch(path).unwrap_err();
            assert_eq!(error.category(), tenarc::error::Category::NotFound, "{path}: {error}");
            let error = slice.only().unwrap().verify_at(path).unwrap_err();
            assert_eq!(error.category(), tenarc::error::Category::NotFound, "{path}: {error}");
        }
    }
}

#[test]
fn a_segment_of_several_is_prefetched() {
    let dir = Dir::new();
    let path = dir.file("several.tenarc");
    let mut out = OArchive::with_options(Vec::new(), quick()).unwrap();
    out.save_as("a", &weights(5000, 1)).unwrap().save_as("b", &weights(6000, 2)).unwrap();
    std::fs::write(&path, out.finish().unwrap()).unwrap();
    // SAFETY: only this test knows the file, and does not change it while it is mapped.
    let map = unsafe { Map::open(&path) }.unwrap();
    map.named("b").unwrap().prefetch("").unwrap();
    // Which of them is meant is not known.
    map.prefetch("").unwrap_err();
}
