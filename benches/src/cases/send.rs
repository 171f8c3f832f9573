//! (j) sends the 200 MB model to another thread over a pair of Unix sockets.

use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Instant;

use tenarc::archive::SaveOptions;
use tenarc::de::DecodeOptions;
use tenarc::parts::{Parts, Split};
use tenarc::{IArchive, OArchive};

use crate::cases::model::{self, CastLayer, Model, TensorLayer, TensorView};
use crate::cases::save::{COLUMNS, ROWS};
use crate::harness::{Case, Column, Effort, Report, Row};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

/// The column that this case uses.
const SEND: Column = Column::Encode;

/// The bytes of each tensor.
fn payloads(model: &Model<TensorLayer>) -> Vec<&[u8]> {
    let layers = model.layers.iter();
    let slices = layers.flat_map(|layer| [layer.weight.as_slice(), layer.bias.as_slice()]);
    slices.map(|values| bytemuck::cast_slice(values.unwrap())).collect()
}

/// A row: `send` writes the model to a socket, and `receive` reads it in another thread. The time ends when
/// `receive` returns.
fn row<'a, R: Send>(
    peer: &'static str,
    form: &'static str,
    send: impl Fn(UnixStream) + 'a,
    receive: impl Fn(UnixStream) -> R + Sync + 'a,
) -> Row<'a> {
    Row::bare(peer, form).on(SEND, move || {
        let (here, there) = UnixStream::pair().unwrap();
        let receive = &receive;
        thread::scope(|scope| {
            let (started, ready) = std::sync::mpsc::channel();
            let receiver = scope.spawn(move || {
                started.send(()).unwrap();
                let value = receive(there);
                (Instant::now(), value)
            });
            ready.recv().unwrap();
            let start = Instant::now();
            send(here);
            // Dropping the received value is not timed.
            let (end, _value) = receiver.join().unwrap();
            end - start
        })
    })
}

fn send_parts(model: &Model<TensorLayer>, checksums: bool, stream: UnixStream) {
    let options = SaveOptions::default().with_checksums(checksums);
    Split::with_options(model, options).unwrap().write_to(stream).unwrap();
}

fn receive_parts(stream: UnixStream) -> Parts {
    let parts = Parts::read_from(stream).unwrap();
    let view: Model<TensorView<'_>> = parts.view().unwrap();
    assert_eq!(view.layers.len(), model::LAYERS);
    parts
}

fn send_archive(model: &Model<TensorLayer>, checksums: bool, stream: UnixStream) {
    let options = SaveOptions::default().with_checksums(checksums);
    let mut out = OArchive::with_options(stream, options).unwrap();
    out.save(model).unwrap();
    out.finish().unwrap();
}

fn receive_archive(checksums: bool, stream: UnixStream) -> Model<TensorLayer> {
    let options = DecodeOptions::default().with_checksums(checksums);
    let mut input = IArchive::with_options(stream, options).unwrap();
    let value = input.load().unwrap();
    assert!(input.is_at_end().unwrap());
    value
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let model = &model::model(ROWS, COLUMNS);
    let casts = &model.map(TensorLayer::as_bytes);
    let payloads = &payloads(model);
    let lengths: &Vec<usize> = &payloads.iter().map(|bytes| bytes.len()).collect();
    let rows = vec![
        row(
            "floor",
            "",
            |mut stream| payloads.iter().for_each(|bytes| stream.write_all(bytes).unwrap()),
            |mut stream| {
                let fresh = |&len: &usize| {
                    let mut bytes = vec![0; len];
                    stream.read_exact(&mut bytes).unwrap();
                    bytes
                };
                lengths.iter().map(fresh).collect::<Vec<_>>()
            },
        ),
        row("tenarc", "parts", |stream| send_parts(model, true, stream), receive_parts),
        row("tenarc", "parts, unchecked", |stream| send_parts(model, false, stream), receive_parts),
        row(
            "tenarc",
            "archive",
            |stream| send_archive(model, true, stream),
            |stream| receive_archive(true, stream),
        ),
        row(
            "tenarc",
            "archive, unchecked",
            |stream| send_archive(model, false, stream),
            |stream| receive_archive(false, stream),
        ),
        row(
            "tenarc",
            "message",
            |stream| tenarc::to_writer(stream, model).unwrap(),
            |stream| tenarc::from_reader::<_, Model<TensorLayer>>(stream).unwrap(),
        ),
        row(
            "bincode 1",
            "bytes",
            |stream| {
                let mut buffered = BufWriter::with_capacity(1 << 20, stream);
                bincode1::serialize_into(&mut buffered, casts).unwrap();
                buffered.flush().unwrap();
            },
            |stream| {
                let buffered = BufReader::with_capacity(1 << 20, stream);
                bincode1::deserialize_from::<_, Model<CastLayer>>(buffered).unwrap()
            },
        ),
    ];
    let report = Case {
        title: format!(
            "(j) {:.0} MB sent over a pair of Unix sockets: {} layers of {ROWS} x {COLUMNS} f32",
            lengths.iter().sum::<usize>() as f64 / 1e6,
            model::LAYERS
        ),
        heads: ["send", "", "", ""],
        floor: "write_all of each tensor, and read_exact of each into new memory",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("send", &report);
    add_targets(&report, targets);
}

fn add_targets(report: &Report, targets: &mut Targets) {
    for (form, text) in [
        ("parts", "parts over raw bytes, checksums on"),
        ("parts, unchecked", "parts over raw bytes, checksums off"),
    ] {
        let measured = report.paired(("tenarc", form), ("floor", ""), SEND);
        targets.ratio_at_most("j send", text, measured, 1.15);
    }
}
