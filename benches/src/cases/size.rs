//! (i) measures the overhead of archives: their size beyond the payload.

use std::path::Path;

use serde::Serialize;
use tenarc::OArchive;
use tenarc::archive::SaveOptions;

use crate::cases::model::{self, TensorLayer};
use crate::cases::records;
use crate::cases::save::{self, COLUMNS, ROWS};
use crate::files::{Dir, Sync};
use crate::recorder::Recorder;
use crate::stores::{ArrowIpc, Burnpack, Named, Npz, Safetensors, Store, ZTensor};
use crate::table::{Table, thousands};
use crate::targets::Targets;

/// The length of an archive of one value.
fn archived<T: Serialize>(value: &T) -> u64 {
    let mut out = OArchive::with_options(std::io::sink(), SaveOptions::default()).unwrap();
    out.save(value).unwrap().commit().unwrap();
    out.position()
}

fn stored<S: Store>(named: &[Named<'_>], path: &Path) -> u64 {
    S::save(&S::prepare(named), path, Sync::Off);
    len(path)
}

fn len(path: &Path) -> u64 {
    std::fs::metadata(path).unwrap().len()
}

fn report(
    recorder: &mut Recorder,
    name: &str,
    title: &str,
    payload: u64,
    rows: &[(&str, &str, u64)],
) {
    recorder.keep_sizes(name, title, payload, rows);
    println!("\n{title}: {} bytes of payload\n", thousands(payload));
    let mut table = Table::new(2, &["peer", "form", "bytes", "overhead", "%"]);
    for &(peer, form, bytes) in rows {
        let beyond = bytes - payload;
        table.push(vec![
            peer.to_string(),
            form.to_string(),
            thousands(bytes),
            thousands(beyond),
            format!("{:.4}", share(bytes, payload) * 100.0),
        ]);
    }
    table.print();
}

fn share(bytes: u64, payload: u64) -> f64 {
    (bytes - payload) as f64 / payload as f64
}

pub fn run(recorder: &mut Recorder, targets: &mut Targets) {
    let plain = records::plain_records();
    let tensors = records::tensor_records(&plain);
    let payload = plain.iter().map(records::Record::payload).sum();
    let (as_tensors, as_vectors) = (archived(&tensors), archived(&plain));
    report(
        recorder,
        "size-records",
        "(i) 10,000 records: floats, ids and the text of the labels",
        payload,
        &[
            ("tenarc", "Tensor", as_tensors),
            ("tenarc", "Vec<f32>", as_vectors),
            ("bincode 1", "plain", bincode1::serialized_size(&plain).unwrap()),
            ("rkyv", "native", rkyv::to_bytes::<rkyv::rancor::Error>(&plain).unwrap().len() as u64),
        ],
    );
    let text = "10,000 records of 256 floats, overhead";
    targets.percent_below("i size", text, share(as_tensors, payload), 4.0);

    let model = &model::model(ROWS, COLUMNS);
    let named = save::named(model);
    let payload = named.iter().map(|it| it.values.len() as u64 * 4).sum();
    let dir = Dir::new();
    let path = &dir.file("model");
    save::save_rkyv(&model.map(TensorLayer::as_vectors), path, Sync::Off);
    let rkyv = len(path);
    save::save_bincode(&model.map(TensorLayer::as_bytes), path, Sync::Off);
    let bincode = len(path);
    let archive = archived(model);
    report(
        recorder,
        "size-model",
        "(i) the 200 MB model: floats",
        payload,
        &[
            ("tenarc", "", archive),
            ("safetensors", "tensors only", stored::<Safetensors>(&named, path)),
            ("burnpack", "tensors only", stored::<Burnpack>(&named, path)),
            ("zTensor", "tensors only", stored::<ZTensor>(&named, path)),
            ("Arrow IPC", "tensors only", stored::<ArrowIpc>(&named, path)),
            ("npz", "tensors only", stored::<Npz>(&named, path)),
            ("rkyv", "native", rkyv),
            ("bincode 1", "bytes", bincode),
        ],
    );
    let text = "the 200 MB model, overhead";
    targets.percent_below("i size", text, share(archive, payload), 0.01);
}
