//! (f) saves the 200 MB model to a file.

use std::path::Path;
use std::time::Instant;

use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;

use crate::cases::model::{self, CastLayer, Model, NativeLayer, TensorLayer};
use crate::files::{self, Dir, Sync};
use crate::harness::{Case, Column, Effort, Row};
use crate::recorder::Recorder;
use crate::stores::{ArrowIpc, Burnpack, Named, Npz, Safetensors, Store, ZTensor};
use crate::table::print_report;
use crate::targets::Targets;

pub const ROWS: usize = 1024;
pub const COLUMNS: usize = 1280;

/// The columns that this case uses.
const UNSYNCED: Column = Column::Encode;
const SYNCED: Column = Column::ToVec;

/// Every matrix and vector of a model with a unique name, for files of named tensors.
pub fn named(model: &Model<TensorLayer>) -> Vec<Named<'_>> {
    let layers = model.layers.iter();
    layers
        .flat_map(|layer| {
            let bias = layer.bias.view().insert_axis(ndarray::Axis(0));
            [("weight", layer.weight.view()), ("bias", bias)]
                .map(|(part, tensor)| Named::new(format!("{}.{part}", layer.name), tensor))
        })
        .collect()
}

pub fn save_tenarc(model: &Model<TensorLayer>, path: &Path, sync: Sync, checksums: bool) {
    let level = match sync {
        Sync::Off => SyncLevel::Off,
        Sync::Full => SyncLevel::Full,
    };
    let options = SaveOptions::default().with_sync(level).with_checksums(checksums);
    tenarc::archive::save_with(path, model, options).unwrap();
}

pub fn save_rkyv(model: &Model<NativeLayer>, path: &Path, sync: Sync) {
    files::replace_buffered(path, sync, |file| {
        let writer = rkyv::ser::writer::IoWriter::new(file);
        rkyv::api::high::to_bytes_in::<_, rkyv::rancor::Error>(model, writer).unwrap();
    });
}

pub fn save_bincode(model: &Model<CastLayer>, path: &Path, sync: Sync) {
    files::replace_buffered(path, sync, |file| bincode1::serialize_into(file, model).unwrap());
}

fn stored<'a, S: Store + 'a>(
    named: &'a [Named<'a>],
    path: &'a Path,
    columns: &[Column],
) -> Row<'a> {
    let prepared = S::prepare(named);
    let prepared = std::rc::Rc::new(prepared);
    columns.iter().fold(Row::bare(S::NAME, ""), |row, &column| {
        let (prepared, sync) = (prepared.clone(), sync_of(column));
        row.on(column, move || {
            files::clear(path, sync);
            S::save(&prepared, path, sync)
        })
    })
}

fn sync_of(column: Column) -> Sync {
    if column == SYNCED { Sync::Full } else { Sync::Off }
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let model = &model::model(ROWS, COLUMNS);
    let casts = &model.map(TensorLayer::as_bytes);
    let native = &model.map(TensorLayer::as_vectors);
    let named = &named(model);
    let dir = Dir::new();
    let path = &dir.file("model");
    save_tenarc(model, path, Sync::Off, true);
    let whole = &std::fs::read(path).unwrap();

    let row = |name, form, columns: &[Column], save: &'static dyn Fn(&Bundle, &Path, Sync)| {
        let bundle = Bundle { whole, model, casts, native };
        columns.iter().fold(Row::bare(name, form), |row, &column| {
            let sync = sync_of(column);
            row.on(column, move || {
                files::clear(path, sync);
                let start = Instant::now();
                save(&bundle, path, sync);
                start.elapsed()
            })
        })
    };
    let (both, unsynced) = (&[UNSYNCED, SYNCED], &[UNSYNCED]);
    let rows = vec![
        row("floor", "", both, &|it, path, sync| {
            files::replace(path, sync, |file| std::io::Write::write_all(file, it.whole).unwrap());
        }),
        row("tenarc", "checksums", both, &|it, path, sync| save_tenarc(it.model, path, sync, true)),
        row("tenarc", "no checksums", both, &|it, path, sync| {
            save_tenarc(it.model, path, sync, false);
        }),
        stored::<Safetensors>(named, path, unsynced),
        stored::<Burnpack>(named, path, both),
        stored::<ZTensor>(named, path, &[SYNCED]),
        row("rkyv", "native", unsynced, &|it, path, sync| save_rkyv(it.native, path, sync)),
        row("bincode 1", "bytes", unsynced, &|it, path, sync| save_bincode(it.casts, path, sync)),
        stored::<ArrowIpc>(named, path, unsynced),
        stored::<Npz>(named, path, unsynced),
    ];
    let report = Case {
        title: format!(
            "(f) save of {:.0} MB: {} layers of {ROWS} x {COLUMNS} f32",
            whole.len() as f64 / 1e6,
            model::LAYERS
        ),
        heads: ["save", "with sync", "", ""],
        floor: "write_all of the same bytes as one block to a temporary file, and rename; with \
                sync, the file and the directory are synced",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("save", &report);
    let over = |column| report.paired(("tenarc", "checksums"), ("floor", ""), column);
    let text = "save without sync, with checksums, over write_all and rename";
    targets.ratio_at_most("f save", text, over(UNSYNCED), 1.15);
    let text = "save with sync, with checksums, over write_all, syncs and rename";
    targets.ratio_at_most("f save", text, over(SYNCED), 1.1);
}

/// The model in the representations that the peers need.
#[derive(Clone, Copy)]
struct Bundle<'a> {
    whole: &'a [u8],
    model: &'a Model<TensorLayer>,
    casts: &'a Model<CastLayer>,
    native: &'a Model<NativeLayer>,
}
