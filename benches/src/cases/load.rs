//! (g) loads the 200 MB model from a file in the page cache.

use std::fs::File;
use std::io::BufReader;
use std::ops::Range;
use std::path::Path;

use rkyv::rancor::Error;
use tenarc::IArchive;
use tenarc::de::DecodeOptions;
use twox_hash::XxHash3_64;

use crate::cases::model::{self, CastLayer, Model, NativeLayer, TensorLayer};
use crate::cases::save::{self, COLUMNS, ROWS, named};
use crate::files::{self, Dir, Sync};
use crate::harness::{Case, Column, Effort, Report, Row, timed};
use crate::recorder::Recorder;
use crate::stores::{ArrowIpc, Burnpack, Named, Npz, Safetensors, Store, ZTensor};
use crate::table::print_report;
use crate::targets::Targets;

/// The column that this case uses.
const LOAD: Column = Column::Decode;

fn options(checksums: bool) -> DecodeOptions {
    DecodeOptions::default().with_checksums(checksums)
}

fn load_tenarc(path: &Path, checksums: bool) -> Model<TensorLayer> {
    tenarc::archive::load_with(path, options(checksums)).unwrap()
}

/// Loads through a reader that does not know its length.
fn stream_tenarc(path: &Path, checksums: bool) -> Model<TensorLayer> {
    let file = File::open(path).unwrap();
    IArchive::with_options(file, options(checksums)).unwrap().load().unwrap()
}

fn load_rkyv(path: &Path) -> Model<NativeLayer> {
    rkyv::from_bytes::<_, Error>(&files::map(path)).unwrap()
}

fn load_bincode(path: &Path) -> Model<CastLayer> {
    bincode1::deserialize_from(BufReader::new(File::open(path).unwrap())).unwrap()
}

/// The ranges of the archive's buffers, and of the bytes between them.
fn parts(path: &Path) -> Vec<Range<u64>> {
    let archive = tenarc::open(path).unwrap();
    let mut parts = Vec::new();
    let mut at = 0;
    for &(start, len) in archive.segment(0).unwrap().buffers() {
        parts.extend([at..start, start..start + len]);
        at = start + len;
    }
    parts.push(at..archive.byte_len());
    parts
}

fn row<'a, T: PartialEq>(
    (peer, form): (&'static str, &'static str),
    expected: &T,
    load: impl Fn() -> T + 'a,
) -> Row<'a> {
    assert!(load() == *expected, "{peer} ({form}) loads another value than was saved");
    Row::bare(peer, form).on(LOAD, move || timed(&load))
}

fn stored<'a, S: Store + 'a>(named: &[Named<'_>], path: &'a Path) -> Row<'a> {
    S::save(&S::prepare(named), path, Sync::Off);
    let loaded = S::load(path);
    for tensor in named {
        assert!(tensor.values == S::values(&loaded, tensor), "{}", S::NAME);
    }
    Row::bare(S::NAME, "").on(LOAD, move || timed(|| S::load(path)))
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let model = &model::model(ROWS, COLUMNS);
    let casts = &model.map(TensorLayer::as_bytes);
    let native = &model.map(TensorLayer::as_vectors);
    let named = &named(model);
    let dir = Dir::new();
    let files = ["tenarc", "safetensors", "rkyv", "bpk", "bincode", "arrow", "npz", "zt"];
    let [archive, safetensors, rkyv, burnpack, bincode, arrow, npz, ztensor] =
        &files.map(|name| dir.file(&format!("model.{name}")));
    save::save_tenarc(model, archive, Sync::Off, true);
    save::save_rkyv(native, rkyv, Sync::Off);
    save::save_bincode(casts, bincode, Sync::Off);
    let parts = &parts(archive);

    let plain = stored::<Safetensors>(named, safetensors);
    let rows = vec![
        Row::bare("floor", "").on(LOAD, move || timed(|| files::read_parts(archive, parts))),
        row(("tenarc", "checksums"), model, move || load_tenarc(archive, true)),
        row(("tenarc", "no checksums"), model, move || load_tenarc(archive, false)),
        row(("tenarc", "reader"), model, move || stream_tenarc(archive, true)),
        row(("tenarc", "reader, unchecked"), model, move || stream_tenarc(archive, false)),
        plain,
        // Does the same work as tenarc with checksums.
        Row::bare("safetensors", "and XXH3").on(LOAD, move || {
            timed(|| (hashes_of_tensors(safetensors), Safetensors::load(safetensors)))
        }),
        row(("rkyv", "mapped"), native, move || load_rkyv(rkyv)),
        Row::bare("rkyv", "mapped, and XXH3")
            .on(LOAD, move || timed(|| (XxHash3_64::oneshot(&files::map(rkyv)), load_rkyv(rkyv)))),
        stored::<Burnpack>(named, burnpack),
        stored::<ZTensor>(named, ztensor),
        row(("bincode 1", "bytes"), casts, move || load_bincode(bincode)),
        stored::<ArrowIpc>(named, arrow),
        stored::<Npz>(named, npz),
    ];
    let report = Case {
        title: format!(
            "(g) load of {:.0} MB: {} layers of {ROWS} x {COLUMNS} f32",
            std::fs::metadata(archive).unwrap().len() as f64 / 1e6,
            model::LAYERS
        ),
        heads: ["", "", "load", ""],
        floor: "reads the archive, each tensor into a new allocation",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("load", &report);
    add_targets(&report, targets);
}

fn hashes_of_tensors(path: &Path) -> Vec<u64> {
    let map = files::map(path);
    let tensors = safetensors::SafeTensors::deserialize(&map).unwrap();
    tensors.iter().map(|(_, view)| XxHash3_64::oneshot(view.data())).collect()
}

fn add_targets(report: &Report, targets: &mut Targets) {
    let floor = ("floor", "");
    for (form, other, bound, text) in [
        ("checksums", floor, 1.25, "load over read into new memory, checksums on"),
        ("no checksums", floor, 1.15, "load over read into new memory, checksums off"),
        ("reader", floor, 1.4, "load by a reader over read into new memory, checksums on"),
        ("no checksums", ("safetensors", ""), 1.0, "load, checksums off, over safetensors"),
        (
            "checksums",
            ("safetensors", "and XXH3"),
            1.0,
            "load, checksums on, over safetensors and XXH3",
        ),
        ("no checksums", ("rkyv", "mapped"), 1.0, "load, checksums off, over rkyv, mapped"),
        (
            "checksums",
            ("rkyv", "mapped, and XXH3"),
            1.0,
            "load, checksums on, over rkyv, mapped, and XXH3",
        ),
    ] {
        let measured = report.paired(("tenarc", form), other, LOAD);
        targets.ratio_at_most("g load", text, measured, bound);
    }
}
