//! Sequences that are stored as columns, and tables: every command on archives with them.
#![allow(missing_docs, clippy::cast_precision_loss)]

mod support;

use serde::Serialize;
use support::{Dir, run};
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::{OArchive, Tensor};

#[derive(Serialize, Clone)]
struct Event {
    id: u32,
    score: f32,
    text: String,
    emb: Tensor<Vec<f32>>,
    meta: Meta,
    note: Option<f64>,
}

#[derive(Serialize, Clone)]
struct Meta {
    size: u64,
    hot: bool,
}

fn event(id: u32) -> Event {
    Event {
        id,
        score: id as f32 / 2.0,
        text: format!("t{id}"),
        emb: Tensor(vec![id as f32; 4]),
        meta: Meta { size: u64::from(id) * 10, hot: id.is_multiple_of(2) },
        note: (!id.is_multiple_of(3)).then_some(0.25),
    }
}

#[derive(Serialize, Clone)]
struct Run {
    name: String,
    log: Vec<Event>,
    weight: Tensor<Vec<f32>>,
}

fn save<T: Serialize>(path: &std::path::Path, columns: bool, values: &[(&str, T)]) {
    let options = SaveOptions::default().with_sync(SyncLevel::Off).with_columns(columns);
    let mut out = OArchive::create(path, options).unwrap();
    for (name, value) in values {
        out.save_as(name, value).unwrap();
    }
    out.finish().unwrap();
}

#[test]
fn scratch() {
    let dir = std::path::Path::new("/tmp/colt");
    std::fs::create_dir_all(dir).unwrap();
    let events: Vec<_> = (0..3000).map(event).collect();
    save(&dir.join("cols.tenarc"), true, &[("events", &events)]);
    save(&dir.join("rows.tenarc"), false, &[("events", &events)]);
    save(&dir.join("two.tenarc"), true, &[("events", &events[..20]), ("events", &events[20..40])]);
    let run = Run { name: "r".into(), log: events[..40].to_vec(), weight: Tensor(vec![1.0; 8]) };
    save(&dir.join("run.tenarc"), true, &[("run", &run)]);
    save(&dir.join("runrows.tenarc"), false, &[("run", &run)]);
    let bytes =
        tenarc::ser::to_vec_with(&run, tenarc::ser::EncodeOptions::default().with_columns(true))
            .unwrap();
    std::fs::write(dir.join("run.cbor"), bytes).unwrap();
}
