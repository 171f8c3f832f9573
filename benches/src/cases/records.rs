//! (b) encodes and decodes 10,000 records of id, label and 256 floats.

use ndarray::{Array1, ArrayView1, CowArray, Ix1};
use tenarc::Tensor;

use crate::bytes;
use crate::data::Random;
use crate::harness::{Case, Column, Effort, MESSAGES, Placed, Row, timed};
use crate::native::{bincode_row, bitcode_row, rkyv_rows, types, wincode_row};
use crate::peers::{self, Codec, Lender, borrowed};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

const COUNT: usize = 10_000;
const FLOATS: usize = 256;

types! {
    /// With plain derives.
    pub struct Record {
        id: u64,
        label: String,
        embedding: Vec<f32>,
    }
}

/// The embedding as a tensor.
#[derive(Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct TensorRecord {
    id: u64,
    label: String,
    embedding: Tensor<Array1<f32>>,
}

#[derive(serde::Deserialize)]
struct ViewRecord<'a> {
    id: u64,
    label: &'a str,
    #[serde(borrow)]
    embedding: Tensor<ArrayView1<'a, f32>>,
}

#[derive(serde::Deserialize)]
struct CowRecord<'a> {
    id: u64,
    label: &'a str,
    #[serde(borrow)]
    embedding: Tensor<CowArray<'a, f32, Ix1>>,
}

/// The embedding as a byte string, for formats that write those as blocks.
#[derive(PartialEq, serde::Serialize, serde::Deserialize)]
struct CastRecord {
    id: u64,
    label: String,
    #[serde(with = "bytes::vec")]
    embedding: Vec<f32>,
}

#[derive(serde::Deserialize)]
struct CastView<'a> {
    id: u64,
    label: &'a str,
    #[serde(borrow)]
    embedding: &'a serde_bytes::Bytes,
}

/// Whether views of records equal the records that were encoded.
macro_rules! same {
    ($views:expr, $records:expr, |$seen:ident, $meant:ident| $equal:expr) => {
        $views.len() == $records.len()
            && $views.iter().zip($records).all(|(view, record)| {
                let ($seen, $meant) = (&view.embedding, &record.embedding);
                view.id == record.id && view.label == record.label && $equal
            })
    };
}

/// Makes a record.
///
/// A message has no padding. Here, all records have the same encoded length, which is a multiple of four
/// (ids take five bytes, and labels have two letters more than a multiple of four). So if one embedding is
/// aligned, all are.
fn record(n: usize, random: &mut Random) -> Record {
    Record {
        id: 1_000_000 + n as u64 * 7,
        label: format!("record-{n:07}"),
        embedding: random.floats(FLOATS),
    }
}

pub fn plain_records() -> Vec<Record> {
    let mut random = Random::new(2);
    (0..COUNT).map(|n| record(n, &mut random)).collect()
}

pub fn tensor_records(records: &[Record]) -> Vec<TensorRecord> {
    let tensor = |record: &Record| TensorRecord {
        id: record.id,
        label: record.label.clone(),
        embedding: Array1::from_vec(record.embedding.clone()).into(),
    };
    records.iter().map(tensor).collect()
}

impl Record {
    /// The number of bytes of the record's content, independent of the format.
    pub fn payload(&self) -> u64 {
        (size_of_val(&self.id) + self.label.len() + size_of_val(&*self.embedding)) as u64
    }
}

fn plain<'a, C: Codec>(records: &'a Vec<Record>) -> Row<'a> {
    peers::row::<C, _>("plain", records)
}

fn expert<'a, C: Lender>(records: &'a Vec<CastRecord>) -> Row<'a> {
    let row = peers::row::<C, _>("bytes", records);
    borrowed!(row, |bytes| C::lend::<Vec<CastView>>(bytes), |views| same!(
        views,
        records,
        |a, b| ***a == *bytemuck::cast_slice::<f32, u8>(b)
    ))
}

/// tenarc's rows for records with tensors: owned, as views, and as copy-on-write arrays.
fn tensor_rows(tensors: &Vec<TensorRecord>) -> Vec<Row<'_>> {
    let mut row = peers::row::<peers::Tenarc, _>("Tensor", tensors);
    let placed = Placed::where_accepted(row.message.bytes(), |bytes| {
        tenarc::from_slice::<Vec<ViewRecord>>(bytes).is_ok()
    });
    let Some(placed) = placed else {
        println!("(b) views of the records are not measured: no address aligns them");
        return vec![row];
    };
    // One byte later, no embedding is aligned, and every copy-on-write array must copy.
    let offset = placed.bytes().as_ptr() as usize % 64;
    let cow = Row::new("tenarc", "Tensor, Cow aligned", Placed::new(placed.bytes(), offset));
    let copied =
        Row::new("tenarc", "Tensor, Cow unaligned", Placed::new(placed.bytes(), offset + 1));
    row.message = placed;
    let viewed = borrowed!(
        row,
        |bytes| tenarc::from_slice::<Vec<ViewRecord>>(bytes).unwrap(),
        |views| same!(views, tensors, |a, b| **a == **b)
    );
    let cow =
        borrowed!(cow, |bytes| tenarc::from_slice::<Vec<CowRecord>>(bytes).unwrap(), |views| views
            .iter()
            .all(|v| v.embedding.is_view())
            && same!(views, tensors, |a, b| **a == **b));
    let copied =
        borrowed!(copied, |bytes| tenarc::from_slice::<Vec<CowRecord>>(bytes).unwrap(), |views| {
            views.iter().all(|v| v.embedding.is_owned()) && same!(views, tensors, |a, b| **a == **b)
        });
    vec![viewed, cow, copied]
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let records = &plain_records();
    let tensors = tensor_records(records);
    let tensors = &tensors;
    let casts: Vec<CastRecord> = records
        .iter()
        .map(|record| CastRecord {
            id: record.id,
            label: record.label.clone(),
            embedding: record.embedding.clone(),
        })
        .collect();

    let payload: Vec<f32> = records.iter().flat_map(|r| r.embedding.clone()).collect();
    let payload: &[u8] = bytemuck::cast_slice(&payload);
    let floor = Row::new("floor", "", Placed::new(payload, 0))
        .encode(move |buffer| buffer.extend_from_slice(payload))
        .fresh(move || payload.to_vec())
        .decode(move |_| timed(|| records.clone()));
    // For comparison: the same copy, but from each record separately. Where the records are in memory matters, so both
    // kinds of records have a row.
    let scattered = Row::bare("memcpy", "each embedding").encode(move |buffer| {
        for record in records {
            buffer.extend_from_slice(bytemuck::cast_slice(&record.embedding));
        }
    });
    let scattered_tensors = Row::bare("memcpy", "each Tensor").encode(move |buffer| {
        for record in tensors {
            buffer.extend_from_slice(bytemuck::cast_slice(record.embedding.as_slice().unwrap()));
        }
    });
    // The same copy, with as many bytes before each tensor as the names, ids and labels take in tenarc's message.
    let apart = Row::bare("memcpy", "each Tensor, 52 bytes between").encode(move |buffer| {
        for record in tensors {
            buffer.extend_from_slice(&[0; 52]);
            buffer.extend_from_slice(bytemuck::cast_slice(record.embedding.as_slice().unwrap()));
        }
    });
    let cloned = Row::bare("clone", "Tensor").decode(move |_| timed(|| tensors.clone()));

    let mut rows = vec![
        floor,
        scattered,
        scattered_tensors,
        apart,
        cloned,
        plain::<peers::Tenarc>(records),
        peers::row::<peers::TenarcTyped, _>("typed arrays", records),
        peers::row::<peers::TenarcColumns, _>("columns", records),
    ];
    rows.extend(tensor_rows(tensors));
    rows.extend([
        plain::<peers::Cbor4ii>(records),
        plain::<peers::Minicbor>(records),
        plain::<peers::RmpNamed>(records),
        plain::<peers::RmpCompact>(records),
        plain::<peers::Ciborium>(records),
        plain::<peers::Json>(records),
        plain::<peers::Bincode1>(records),
        plain::<peers::Bincode2>(records),
        plain::<peers::Postcard>(records),
        peers::zap("plain", records),
        plain::<peers::BitcodeSerde>(records),
        expert::<peers::Cbor4ii>(&casts),
        expert::<peers::Minicbor>(&casts),
        expert::<peers::RmpNamed>(&casts),
        expert::<peers::RmpCompact>(&casts),
        peers::row::<peers::Ciborium, _>("bytes", &casts),
        expert::<peers::Bincode1>(&casts),
        expert::<peers::Bincode2>(&casts),
        expert::<peers::Postcard>(&casts),
        peers::row::<peers::BitcodeSerde, _>("bytes", &casts),
        bincode_row!(records, Vec<Record>),
        wincode_row!(records, Vec<Record>),
        bitcode_row!(records, Vec<Record>),
    ]);
    rows.extend(rkyv_rows!(records, Vec<Record>));

    let report = Case {
        title: format!("(b) records: {COUNT} of id, label and {FLOATS} floats"),
        heads: MESSAGES,
        floor: "encode, to_vec: memcpy of the 10,240,000 bytes of floats as one block; \
                decode: clone of the records",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("records", &report);

    let case = "b records";
    let tenarc = |form, column| report.median("tenarc", form, column);
    let peer = |peer, column| report.median(peer, "plain", column);
    let memcpy = report.floor_median(Column::Encode);
    let clone = report.floor_median(Column::Decode);
    // The same copy as the floor's, but of ten thousand blocks.
    let each = report.median("memcpy", "each embedding", Column::Encode);
    let each_tensor = report.median("memcpy", "each Tensor", Column::Encode);
    let cloned = report.median("clone", "Tensor", Column::Decode);
    for (text, pair, bound) in [
        (
            "Vec<f32>, encode / cbor4ii",
            (tenarc("plain", Column::Encode), peer("cbor4ii", Column::Encode)),
            1.0,
        ),
        (
            "Vec<f32>, decode / bincode 1",
            (tenarc("plain", Column::Decode), peer("bincode 1", Column::Decode)),
            1.0,
        ),
        ("typed arrays, encode / memcpy", (tenarc("typed arrays", Column::Encode), memcpy), 2.0),
        (
            "typed arrays, encode / memcpy of each embedding",
            (tenarc("typed arrays", Column::Encode), each),
            2.0,
        ),
        ("typed arrays, decode / clone", (tenarc("typed arrays", Column::Decode), clone), 1.75),
        ("Tensor, encode / memcpy", (tenarc("Tensor", Column::Encode), memcpy), 1.3),
        (
            "Tensor, encode / memcpy of each Tensor",
            (tenarc("Tensor", Column::Encode), each_tensor),
            1.1,
        ),
        ("Tensor, decode / clone", (tenarc("Tensor", Column::Decode), cloned), 1.25),
        ("columns, encode / memcpy", (tenarc("columns", Column::Encode), memcpy), 1.3),
        (
            "columns, encode / memcpy of each embedding",
            (tenarc("columns", Column::Encode), each),
            1.3,
        ),
        ("columns, decode / clone", (tenarc("columns", Column::Decode), clone), 0.9),
    ] {
        targets.at_most(case, text, pair, bound);
    }
    let content: u64 = records.iter().map(Record::payload).sum();
    if let Some(bytes) = report.bytes("tenarc", "columns") {
        let share = bytes as f64 / content as f64 - 1.0;
        targets.percent_below(case, "columns, size beyond the content", share, 1.5);
    }
    let views = tenarc("Tensor", Column::Borrow);
    targets.at_most_ns(
        case,
        "Tensor, decode to views, for each record",
        views.map(|seconds| seconds / COUNT as f64),
        100.0,
    );
}
