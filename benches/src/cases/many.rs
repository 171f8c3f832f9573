//! (q) saves, loads and opens a file of 51,000 small tensors.

use std::path::{Path, PathBuf};
use std::time::Instant;

use ndarray::ArrayView2;
use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::{Map, Tensor};

use crate::data::Random;
use crate::files::{self, Dir, Sync};
use crate::harness::{Case, Column, Effort, Row, timed};
use crate::recorder::Recorder;
use crate::stores::{Burnpack, Named, Safetensors, Store, Viewer, Wanted, ZTensor};
use crate::table::print_report;
use crate::targets::Targets;

const COUNT: usize = 51_000;
const SHAPE: (usize, usize) = (8, 8);

/// The columns that this case uses.
const SAVE: Column = Column::Encode;
const LOAD: Column = Column::ToVec;
const VIEW: Column = Column::Decode;

/// The value that tenarc saves.
struct Tensors<'a>(&'a [Named<'a>]);

impl Serialize for Tensors<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tensors = self.0.iter().map(|named| (&named.name, Tensor(named.view())));
        serializer.collect_map(tensors)
    }
}

fn save_tenarc(named: &[Named<'_>], path: &Path) {
    let options = SaveOptions::default().with_sync(SyncLevel::Off);
    tenarc::archive::save_with(path, &Tensors(named), options).unwrap();
}

fn load_tenarc(path: &Path) -> Vec<(String, tenarc::DynTensor)> {
    tenarc::named::load_multi(std::fs::File::open(path).unwrap()).unwrap()
}

fn tenarc<'a>(named: &'a [Named<'a>], path: &'a Path, at: usize) -> Row<'a> {
    save_tenarc(named, path);
    let loaded = load_tenarc(path);
    for ((name, tensor), expected) in loaded.iter().zip(named) {
        assert!(*name == expected.name && tensor.as_slice::<f32>().unwrap() == expected.values);
    }
    let saved: PathBuf = path.with_extension("again");
    Row::bare("tenarc", "")
        .on(SAVE, move || {
            files::clear(&saved, Sync::Off);
            timed(|| save_tenarc(named, &saved))
        })
        .on(LOAD, move || timed(|| load_tenarc(path)))
        .on(VIEW, move || {
            let wanted = Wanted { path, tensor: &named[at] };
            let start = Instant::now();
            // SAFETY: only this program writes the file, and not while it is mapped.
            let map = unsafe { Map::open(path).unwrap() };
            let view: Tensor<ArrayView2<'_, f32>> = map.view_at(&wanted.tensor.name).unwrap();
            let took = start.elapsed();
            wanted.check(*view);
            took
        })
}

fn stored<'a, S: Viewer + 'a>(
    form: &'static str,
    named: &'a [Named<'a>],
    path: &'a Path,
    at: usize,
) -> Row<'a> {
    let prepared = S::prepare(named);
    S::save(&prepared, path, Sync::Off);
    let loaded = S::load(path);
    for tensor in named {
        assert!(tensor.values == S::values(&loaded, tensor), "{}", S::NAME);
    }
    let saved = path.with_extension("again");
    Row::bare(S::NAME, form)
        .on(SAVE, move || {
            files::clear(&saved, Sync::Off);
            S::save(&prepared, &saved, Sync::Off)
        })
        .on(LOAD, move || timed(|| S::load(path)))
        .on(VIEW, move || S::view(&Wanted { path, tensor: &named[at] }))
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let (rows, columns) = SHAPE;
    let floats = Random::new(9).floats(COUNT + rows * columns);
    let named = (0..COUNT).map(|number| {
        let window = &floats[number..][..rows * columns];
        let tensor = ArrayView2::from_shape(SHAPE, window).unwrap();
        Named::new(format!("layers.{}.{}", number / 100, number % 100), tensor)
    });
    let named = &named.collect::<Vec<_>>();
    let at = COUNT * 2 / 3;
    let dir = Dir::new();
    let names = ["tenarc", "safetensors", "ztensor", "bpk"];
    let paths = &names.map(|name| dir.file(&format!("many.{name}")));
    let [archive, safetensors, ztensor, burnpack] = paths;
    let rows = vec![
        stored::<Safetensors>("", named, safetensors, at),
        tenarc(named, archive, at),
        stored::<ZTensor>("4 KiB, synced", named, ztensor, at),
        stored::<Burnpack>("views unread", named, burnpack, at),
    ];
    let mut report = Case {
        title: "(q) 51,000 tensors of 8 x 8 f32 in a file, 13,056,000 bytes".to_owned(),
        heads: ["save", "load", "open, and view", ""],
        floor: "safetensors",
        rows,
    }
    .run(effort);
    for row in &mut report.rows {
        let path = match row.peer {
            Safetensors::NAME => safetensors,
            ZTensor::NAME => ztensor,
            Burnpack::NAME => burnpack,
            _ => archive,
        };
        row.bytes = usize::try_from(std::fs::metadata(path).unwrap().len()).unwrap();
    }
    print_report(&report);
    recorder.keep("many", &report);
    for (text, column) in [
        ("51,000 tensors, save, over safetensors", SAVE),
        ("51,000 tensors, load, over safetensors", LOAD),
        ("51,000 tensors, open and view, over safetensors", VIEW),
    ] {
        targets.ratio_at_most(
            "q many",
            text,
            report.paired(("tenarc", ""), (Safetensors::NAME, ""), column),
            1.0,
        );
    }
}
