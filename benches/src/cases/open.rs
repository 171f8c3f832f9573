//! (h) opens a file, and gets a view or the description of one tensor by its path.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ndarray::ArrayView2;
use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::{Map, Tensor};

use crate::data::Random;
use crate::files::{Dir, Sync};
use crate::harness::{Case, Column, Effort, Report, Row};
use crate::recorder::Recorder;
use crate::stores::{ArrowIpc, Burnpack, Named, Safetensors, Store, Viewer, Wanted, ZTensor};
use crate::table::print_report;
use crate::targets::Targets;

/// The value that tenarc saves: nested structs. The other formats use the same paths as flat names.
#[derive(Serialize)]
struct Stack<'a> {
    layers: Vec<Layer<'a>>,
}

#[derive(Serialize)]
struct Layer<'a> {
    weight: Tensor<ArrayView2<'a, f32>>,
    gate: Tensor<ArrayView2<'a, f32>>,
}

/// A kind of file: the number of tensors, their shape, and the column for it.
struct Kind {
    head: &'static str,
    column: Column,
    count: usize,
    shape: (usize, usize),
    /// Whether all peers are measured, or only those with a target.
    all: bool,
}

const KINDS: [Kind; 3] = [
    Kind {
        head: "120 in 200 MB",
        column: Column::Encode,
        count: 120,
        shape: (640, 684),
        all: true,
    },
    // Each peer would write a file of 2 GB, so only those with a target are measured.
    Kind {
        head: "120 in 2 GB",
        column: Column::ToVec,
        count: 120,
        shape: (2048, 2136),
        all: false,
    },
    Kind {
        head: "10,000 in 200 MB",
        column: Column::Decode,
        count: 10_000,
        shape: (25, 210),
        all: true,
    },
];

/// The files of one kind, and the tensor that is looked up in them.
struct Files<'a> {
    kind: &'static Kind,
    dir: &'a Dir,
    named: Vec<Named<'a>>,
    /// The number of the tensor to look up; neither among the first nor among the last.
    at: usize,
}

impl<'a> Files<'a> {
    /// All tensors are windows of one block, each starting a cache line after the one before.
    fn new(kind: &'static Kind, dir: &'a Dir, block: &'a [f32]) -> Self {
        let (rows, columns) = kind.shape;
        let named = (0..kind.count)
            .map(|n| {
                let window = &block[n * 16..][..rows * columns];
                let part = if n % 2 == 0 { "weight" } else { "gate" };
                let tensor = ArrayView2::from_shape(kind.shape, window).unwrap();
                Named::new(format!("layers.{}.{part}", n / 2), tensor)
            })
            .collect();
        Self { kind, dir, named, at: kind.count * 2 / 3 }
    }

    fn path(&self, peer: &str) -> PathBuf {
        self.dir.file(&format!("{} of {}.{peer}", self.kind.count, self.kind.shape.0))
    }

    fn wanted<'w>(&'w self, path: &'w Path) -> Wanted<'w> {
        Wanted { path, tensor: &self.named[self.at] }
    }

    fn save_tenarc(&self) -> PathBuf {
        let path = self.path("tenarc");
        let options = SaveOptions::default().with_sync(SyncLevel::Off);
        let layers = self.named.chunks(2);
        let layer = |pair: &[Named<'a>]| Layer {
            weight: pair[0].view().into(),
            gate: pair[1].view().into(),
        };
        tenarc::archive::save_with(&path, &Stack { layers: layers.map(layer).collect() }, options)
            .unwrap();
        path
    }

    fn save<S: Store>(&self) -> PathBuf {
        let path = self.path(S::NAME);
        S::save(&S::prepare(&self.named), &path, Sync::Off);
        path
    }
}

fn view_tenarc(wanted: &Wanted<'_>) -> Duration {
    let start = Instant::now();
    // SAFETY: only this program writes the file, and not while it is mapped.
    let map = unsafe { Map::open(wanted.path).unwrap() };
    let view: Tensor<ArrayView2<f32>> = map.view_at(&wanted.tensor.name).unwrap();
    let took = start.elapsed();
    wanted.check(*black_box(view));
    took
}

fn describe_tenarc(wanted: &Wanted<'_>) -> Duration {
    let start = Instant::now();
    let archive = tenarc::open(wanted.path).unwrap();
    let found = archive.only().unwrap().info(&wanted.tensor.name).unwrap();
    let took = start.elapsed();
    assert_eq!(black_box(found).shape(), wanted.tensor.shape());
    took
}

/// What is measured in a table.
#[derive(Clone, Copy)]
enum Ask {
    View,
    Describe,
}

type Work = fn(&Wanted<'_>) -> Duration;

/// The row of a peer, for the kinds of files that it has written.
fn row<'a>(
    peer: &'static str,
    form: &'static str,
    files: &'a [Files<'a>],
    paths: &'a [Option<PathBuf>],
    work: Work,
) -> Row<'a> {
    files.iter().zip(paths).fold(Row::bare(peer, form), |row, (files, path)| {
        let Some(path) = path else { return row };
        let wanted = files.wanted(path);
        row.on(files.kind.column, move || work(&wanted))
    })
}

fn paths<S: Store>(files: &[Files<'_>], all: bool) -> Vec<Option<PathBuf>> {
    files.iter().map(|files| (all || files.kind.all).then(|| files.save::<S>())).collect()
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let dir = &Dir::new();
    let largest = KINDS.iter().map(|kind| kind.count * 16 + kind.shape.0 * kind.shape.1);
    let block = &Random::new(8).floats(largest.max().unwrap_or_default());
    let files = &KINDS.iter().map(|kind| Files::new(kind, dir, block)).collect::<Vec<_>>();
    let tenarc = &files.iter().map(|files| Some(files.save_tenarc())).collect::<Vec<_>>();
    let safetensors = &paths::<Safetensors>(files, true);
    let burnpack = &paths::<Burnpack>(files, false);
    let ztensor = &paths::<ZTensor>(files, false);
    let arrow = &paths::<ArrowIpc>(files, false);

    let report = |ask| {
        let pick = |view: Work, describe: Work| match ask {
            Ask::View => view,
            Ask::Describe => describe,
        };
        let [about, floor] = match ask {
            Ask::View => ["get a view of one tensor", "safetensors: map, parse, view"],
            Ask::Describe => {
                ["get the description of one tensor", "safetensors: map, parse, look up"]
            }
        };
        let rows = vec![
            row(
                Safetensors::NAME,
                "",
                files,
                safetensors,
                pick(Safetensors::view, Safetensors::describe),
            ),
            row("tenarc", "", files, tenarc, pick(view_tenarc, describe_tenarc)),
            row(
                Burnpack::NAME,
                "unread",
                files,
                burnpack,
                pick(Burnpack::view, Burnpack::describe),
            ),
            row(ZTensor::NAME, "", files, ztensor, pick(ZTensor::view, ZTensor::describe)),
            row(ArrowIpc::NAME, "", files, arrow, pick(ArrowIpc::view, ArrowIpc::describe)),
        ];
        let [a, b, c] = KINDS.map(|kind| kind.head);
        let title = format!("(h) open, and {about}");
        let report = Case { title, heads: [a, b, c, ""], floor, rows }.run(effort);
        print_report(&report);
        report
    };
    let views = report(Ask::View);
    recorder.keep("open-view", &views);
    add_targets("open and one view, over safetensors", &views, targets);
    let described = report(Ask::Describe);
    recorder.keep("open-describe", &described);
    add_targets("open and description of one tensor, over safetensors", &described, targets);
    let times = |column| views.median("tenarc", "", column);
    targets.at_most(
        "h open",
        "open and one view, 2 GB over 200 MB (does not depend on the file's size)",
        (times(Column::ToVec), times(Column::Encode)),
        1.25,
    );
}

fn add_targets(text: &str, report: &Report, targets: &mut Targets) {
    for kind in &KINDS {
        let times = (
            report.median("tenarc", "", kind.column),
            report.median(Safetensors::NAME, "", kind.column),
        );
        targets.at_most("h open", format!("{text}, {}", kind.head), times, 0.1);
    }
}
