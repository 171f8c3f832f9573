//! Defines the charts: which peers and measurements they show.

use crate::results::{Results, Unit};
use crate::svg::{Bars, Chart, Kind};

/// A panel: its heading, and the case and column that it shows.
struct Panel {
    head: &'static str,
    case: &'static str,
    column: &'static str,
}

/// A row: its label, its owner, and the peer's form in each panel.
struct Row {
    label: &'static str,
    kind: Kind,
    peer: &'static str,
    /// `None` if the panel does not have this peer.
    forms: [Option<&'static str>; 2],
}

fn tenarc(forms: [&'static str; 2]) -> Row {
    Row { label: "tenarc", kind: Kind::Tenarc, peer: "tenarc", forms: forms.map(Some) }
}

fn peer(peer: &'static str, forms: [&'static str; 2]) -> Row {
    Row { label: peer, kind: Kind::Peer, peer, forms: forms.map(Some) }
}

/// A peer that only the last panel has.
fn peer_of_last(peer: &'static str, form: &'static str) -> Row {
    Row { label: peer, kind: Kind::Peer, peer, forms: [None, Some(form)] }
}

fn floor(label: &'static str) -> Row {
    Row { label, kind: Kind::Floor, peer: "floor", forms: [Some(""); 2] }
}

/// Sorts the peers between tenarc and the floor by the last panel, fastest first.
fn chart(
    results: &Results,
    title: &'static str,
    note: &str,
    panels: [Panel; 2],
    rows: &[Row],
) -> Result<Chart, String> {
    let mut bars = Vec::new();
    for row in rows {
        let values = panels.iter().zip(row.forms).map(|(panel, form)| {
            let Some(form) = form else { return Ok(None) };
            value(results, (panel.case, panel.column), (row.peer, form))
        });
        let values = values.collect::<Result<Vec<_>, String>>()?;
        bars.push(Bars { label: row.label.to_string(), kind: row.kind, values });
    }
    bars.sort_by_key(|bars| match bars.kind {
        Kind::Tenarc => (0, None),
        Kind::Peer => (1, bars.values[1]),
        Kind::Floor => (2, None),
    });
    let heads = panels.iter().map(|panel| (panel.head, Unit::Nanoseconds)).collect();
    Ok(drawn(results, title, note, heads, bars))
}

fn drawn(
    results: &Results,
    title: &'static str,
    note: &str,
    panels: Vec<(&'static str, Unit)>,
    rows: Vec<Bars>,
) -> Chart {
    let machine = format!("{}; {}.", results.machine.describe(), results.date);
    let notes = vec![format!("{note} Shorter bars are better."), machine];
    Chart { title, panels, rows, has_log_times: false, notes }
}

/// The chart with logarithmic axes for its times.
fn with_log_times(mut chart: Chart) -> String {
    chart.has_log_times = true;
    chart.notes.insert(1, "Times have logarithmic axes.".to_string());
    chart.draw()
}

/// The time of a row in one column of a case, or the bytes of its message or file. `None` if it was not measured.
fn value(
    results: &Results,
    (case, column): (&str, &str),
    (peer, form): (&str, &str),
) -> Result<Option<u64>, String> {
    Ok(results.case(case)?.row(peer, form)?.value(column))
}

/// The four public sets: self-describing formats first.
fn sets(
    results: &Results,
    title: &'static str,
    column: &str,
    unit: Unit,
) -> Result<String, String> {
    const SETS: [(&str, &str); 4] =
        [("log", "log"), ("mesh", "mesh"), ("minecraft_savedata", "savedata"), ("mk48", "updates")];
    const ROWS: [(&str, &str, &str); 12] = [
        ("tenarc, rows", "tenarc", "plain"),
        ("tenarc, columns", "tenarc", "columns"),
        ("cbor4ii", "cbor4ii", "plain"),
        ("rmp-serde, named", "rmp-serde named", "plain"),
        ("serde_json", "serde_json", "plain"),
        ("postcard *", "postcard", "plain"),
        ("bincode 1 *", "bincode 1", "plain"),
        ("serde-zap *", "serde-zap", "plain"),
        ("bitcode, serde *", "bitcode", "plain"),
        ("bitcode, derive *", "bitcode", "native"),
        ("wincode *", "wincode", "native"),
        ("rkyv *", "rkyv", "native"),
    ];
    let rows = ROWS.iter().map(|&(label, peer, form)| {
        let values = SETS.iter().map(|(_, case)| value(results, (case, column), (peer, form)));
        let kind = if peer == "tenarc" { Kind::Tenarc } else { Kind::Peer };
        Ok(Bars { label: label.to_string(), kind, values: values.collect::<Result<_, String>>()? })
    });
    let rows = rows.collect::<Result<_, String>>()?;
    let panels = SETS.iter().map(|&(name, _)| (name, unit)).collect();
    let note = "Derived structs. * not self-describing: only the same Rust types can read it.";
    Ok(drawn(results, title, note, panels, rows).draw())
}

/// A row of a chart of files: its label, case, peer and form.
type FileRow<'a> = (&'a str, &'a str, &'a str, &'a str);

/// The sizes of files, and two times that were measured with them.
fn of_files(
    results: &Results,
    title: &'static str,
    note: &str,
    panels: [(&'static str, Unit); 3],
    rows: &[FileRow<'_>],
) -> Result<String, String> {
    let rows = rows.iter().map(|&(label, case, peer, form)| {
        let values = panels.iter().map(|(column, _)| value(results, (case, column), (peer, form)));
        let kind = if peer == "tenarc" { Kind::Tenarc } else { Kind::Peer };
        Ok(Bars { label: label.to_string(), kind, values: values.collect::<Result<_, String>>()? })
    });
    let rows = rows.collect::<Result<_, String>>()?;
    Ok(with_log_times(drawn(results, title, note, panels.to_vec(), rows)))
}

/// Case m, in Rust and in Python.
fn table(results: &Results) -> Result<String, String> {
    let rows = [
        ("tenarc, columns", "table-all", "tenarc", "columns"),
        ("tenarc, rows", "table-all", "tenarc", "rows"),
        ("rkyv", "table-all", "rkyv", ""),
        ("JSON lines", "table-all", "JSON lines", ""),
        ("tenarc, Python", "table-python", "tenarc", "columns"),
        ("Parquet, Python", "table-python", "Parquet", "pyarrow"),
        ("sqlite, Python", "table-python", "sqlite", "sqlite3"),
    ];
    let panels =
        [("write", Unit::Nanoseconds), ("read", Unit::Nanoseconds), ("bytes", Unit::Bytes)];
    let note = "Rust makes structs of all records. In Python, tenarc and Parquet keep columns, and sqlite makes tuples.";
    of_files(results, "100,000 records in a file", note, panels, &rows)
}

/// Case p: one kind of data.
fn compressed(
    results: &Results,
    title: &'static str,
    (rust, python): (&str, &str),
) -> Result<String, String> {
    let rows = [
        ("tenarc, zstd", rust, "tenarc", "zstd"),
        ("ZipNN", python, "ZipNN", "Huffman codes"),
        ("blosc2, shuffle", python, "blosc2", "shuffle, zstd"),
        ("blosc2, bitshuffle", python, "blosc2", "bitshuffle, zstd"),
        ("zarrs, shard", python, "zarrs", "shard, zstd -3"),
        ("safetensors, zstd -3", rust, "safetensors", "zstd -3"),
        ("zTensor, zt.zstd", rust, "zTensor", "zt.zstd"),
        ("npz, deflated", python, "npz", "deflated"),
    ];
    let panels = [("bytes", Unit::Bytes), ("save", Unit::Nanoseconds), ("load", Unit::Nanoseconds)];
    let note = "One thread. Not synced, from the page cache. ZipNN, blosc2, zarrs and npz are called from Python.";
    of_files(results, title, note, panels, &rows)
}

/// Every chart: its path from the root of the repository, and the SVG.
pub fn all(results: &Results) -> Result<Vec<(String, String)>, String> {
    let path = |name: &str| format!("docs/benchmarks/{name}.svg");
    let [of_120, of_10_000] = ["120 in 200 MB", "10,000 in 200 MB"];
    let files = chart(
        results,
        "Files of 210 MB: open one of 10,000 tensors, or load everything",
        "Files are in the page cache. tenarc's load verifies checksums. –: not measured.",
        [
            Panel {
                head: "open, and view one of 10,000 tensors",
                case: "open-view",
                column: of_10_000,
            },
            Panel { head: "load all of 40 tensors", case: "load", column: "load" },
        ],
        &[
            tenarc(["", "checksums"]),
            peer("safetensors", ["", ""]),
            peer("Arrow IPC", ["", ""]),
            peer("zTensor", ["", ""]),
            peer("burnpack", ["unread", ""]),
            peer_of_last("rkyv", "mapped"),
            peer_of_last("bincode 1", "bytes"),
            peer_of_last("npz", ""),
        ],
    )?;
    let open = chart(
        results,
        "Open a file of 210 MB and view one of its tensors",
        "The file is mapped; nothing but its headers is read.",
        [
            Panel { head: "one tensor of 120", case: "open-view", column: of_120 },
            Panel { head: "one tensor of 10,000", case: "open-view", column: of_10_000 },
        ],
        &[
            tenarc(["", ""]),
            peer("Arrow IPC", ["", ""]),
            peer("safetensors", ["", ""]),
            peer("burnpack", ["unread", "unread"]),
        ],
    )?;
    let derives = chart(
        results,
        "A model of 11 MB in derived structs, to bytes and back",
        "tenarc's arrays are in Tensors; the others have what serde's derives or their own give.",
        [
            Panel { head: "encode", case: "model-10mb", column: "encode" },
            Panel { head: "decode", case: "model-10mb", column: "decode" },
        ],
        &[
            tenarc(["Tensor", "Tensor"]),
            peer("rkyv", ["native", "native"]),
            peer("bincode 2", ["plain", "plain"]),
            peer("postcard", ["plain", "plain"]),
            peer("cbor4ii", ["plain", "plain"]),
            peer("rmp-serde named", ["plain", "plain"]),
            peer("ciborium", ["plain", "plain"]),
            peer("serde_json", ["plain", "plain"]),
            floor("memcpy"),
        ],
    )?;
    let bf16 = "The weights of MiniLM in bf16, compressed";
    let f32 = "The weights of MiniLM in f32, compressed";
    let minilm_bf16 = ("compress-bf16-minilm", "compress-bf16-minilm-python");
    let minilm_f32 = ("compress-f32-minilm", "compress-f32-minilm-python");
    let to_vec = "The four public sets: encode into new memory";
    let decode = "The four public sets: decode to owned values";
    let size = "The four public sets: size of the message";
    Ok(vec![
        (path("files"), files.draw()),
        (path("open"), open.draw()),
        (path("derives"), with_log_times(derives)),
        (path("sets-encode"), sets(results, to_vec, "to_vec", Unit::Nanoseconds)?),
        (path("sets-decode"), sets(results, decode, "decode", Unit::Nanoseconds)?),
        (path("sets-size"), sets(results, size, "bytes", Unit::Bytes)?),
        (path("table"), table(results)?),
        (path("compress-bf16"), compressed(results, bf16, minilm_bf16)?),
        (path("compress-f32"), compressed(results, f32, minilm_f32)?),
    ])
}
