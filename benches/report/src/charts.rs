//! Defines the charts: which peers and measurements they show.

use crate::results::Results;

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
    forms: [&'static str; 2],
}

fn tenarc(forms: [&'static str; 2]) -> Row {
    Row { label: "tenarc", kind: Kind::Tenarc, peer: "tenarc", forms }
}

fn peer(peer: &'static str, forms: [&'static str; 2]) -> Row {
    Row { label: peer, kind: Kind::Peer, peer, forms }
}

fn floor(label: &'static str) -> Row {
    Row { label, kind: Kind::Floor, peer: "floor", forms: ["", ""] }
}

/// Sorts the peers between tenarc and the floor by the last panel, fastest first.
fn chart(
    results: &Results,
    title: &'static str,
    note: &str,
    panels: [Panel; 2],
    rows: &[Row],
) -> Result<String, String> {
    let mut bars = Vec::new();
    for row in rows {
        let values = panels.iter().zip(row.forms).map(|(panel, form)| {
            let found = results.case(panel.case)?.row(row.peer, form)?;
            Ok(found.figure(panel.column).map(|figure| figure.median))
        });
        let values = values.collect::<Result<Vec<_>, String>>()?;
        bars.push(Bars { label: row.label.to_string(), kind: row.kind, values });
    }
    bars.sort_by_key(|bars| match bars.kind {
        Kind::Tenarc => (0, None),
        Kind::Peer => (1, bars.values[1]),
        Kind::Floor => (2, None),
    });
    let machine = format!("{}; {}.", results.machine.describe(), results.date);
    let heads = panels.iter().map(|panel| panel.head).collect();
    let notes = vec![format!("{note} Shorter bars are better."), machine];
    Ok(Chart { title, panels: heads, rows: bars, notes }.draw())
}

/// Every chart: its path from the root of the repository, and the SVG.
pub fn all(results: &Results) -> Result<Vec<(String, String)>, String> {
    let path = |name: &str| format!("docs/benchmarks/{name}.svg");
    let files = chart(
        results,
        "Save and load a model of 210 MB",
        "Not synced, from the page cache. tenarc's bars include checksums: writing and verifying them.",
        [
            Panel { head: "save", case: "save", column: "save" },
            Panel { head: "load", case: "load", column: "load" },
        ],
        &[
            tenarc(["checksums", "checksums"]),
            peer("safetensors", ["", ""]),
            peer("Arrow IPC", ["", ""]),
            peer("rkyv", ["native", "mapped"]),
            peer("burnpack", ["", ""]),
            peer("bincode 1", ["bytes", "bytes"]),
            peer("npz", ["", ""]),
            floor("plain write, plain read"),
        ],
    )?;
    let [of_120, of_10_000] = ["120 in 200 MB", "10,000 in 200 MB"];
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
    Ok(vec![(path("files"), files), (path("open"), open), (path("derives"), derives)])
}
