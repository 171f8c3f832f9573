//! (c) encodes and decodes a mesh of 125,000 triangles.
//!
//! The types and the number of triangles are those of the `mesh` set of rust_serialization_benchmark.

use bytemuck::{Pod, Zeroable};
use ndarray::ArrayView2;
use tenarc::Tensor;

use crate::bytes;
use crate::data::Random;
use crate::harness::{Case, Column, Effort, MESSAGES, Placed, Row, timed};
use crate::native::{bincode_row, bitcode_row, rkyv_rows, types, wincode_row};
use crate::peers::{self, Codec, Lender, borrowed};
use crate::recorder::Recorder;
use crate::table::print_report;
use crate::targets::Targets;

types! {
    #[derive(Copy, Pod, Zeroable)]
    #[repr(C)]
    struct Vertex {
        x: f32,
        y: f32,
        z: f32,
    }

    #[derive(Copy, Pod, Zeroable)]
    #[repr(C)]
    struct Triangle {
        v0: Vertex,
        v1: Vertex,
        v2: Vertex,
        normal: Vertex,
    }

    /// With plain derives.
    struct Mesh {
        triangles: Vec<Triangle>,
    }
}

/// The triangles as one tensor with a row for each, by tenarc's `Rows`.
#[derive(PartialEq, serde::Serialize, serde::Deserialize)]
struct Bulk {
    #[serde(with = "tenarc::tensor::Rows::<f32>")]
    triangles: Vec<Triangle>,
}

/// The same, borrowed from the message.
#[derive(serde::Deserialize)]
struct BulkView<'a> {
    #[serde(borrow)]
    triangles: Tensor<ArrayView2<'a, f32>>,
}

/// The triangles as one byte string, for formats that write those as blocks.
#[derive(PartialEq, serde::Serialize, serde::Deserialize)]
struct Cast {
    #[serde(with = "bytes::vec")]
    triangles: Vec<Triangle>,
}

#[derive(serde::Deserialize)]
struct CastView<'a> {
    #[serde(borrow)]
    triangles: &'a serde_bytes::Bytes,
}

fn vertex(random: &mut Random) -> Vertex {
    Vertex { x: random.float(), y: random.float(), z: random.float() }
}

fn triangle(random: &mut Random) -> Triangle {
    Triangle { v0: vertex(random), v1: vertex(random), v2: vertex(random), normal: vertex(random) }
}

fn plain<'a, C: Codec>(mesh: &'a Mesh) -> Row<'a> {
    peers::row::<C, _>("plain", mesh)
}

fn expert<'a, C: Lender>(mesh: &'a Cast) -> Row<'a> {
    let row = peers::row::<C, _>("bytes", mesh);
    borrowed!(row, |bytes| C::lend::<CastView>(bytes), |view| **view.triangles
        == *bytemuck::cast_slice::<Triangle, u8>(&mesh.triangles))
}

fn bulk(mesh: &Bulk) -> Row<'_> {
    let mut row = peers::row::<peers::Tenarc, _>("Rows", mesh);
    let placed = Placed::where_accepted(row.message.bytes(), |bytes| {
        tenarc::from_slice::<BulkView>(bytes).is_ok()
    });
    let Some(placed) = placed else {
        println!("(c) views of the mesh are not measured: no address aligns it");
        return row;
    };
    row.message = placed;
    borrowed!(row, |bytes| tenarc::from_slice::<BulkView>(bytes).unwrap(), |view| view
        .triangles
        .as_slice()
        == Some(bytemuck::cast_slice(&mesh.triangles)))
}

pub fn run(effort: Effort, recorder: &mut Recorder, targets: &mut Targets) {
    let mut random = Random::new(3);
    let triangles: Vec<Triangle> = (0..125_000).map(|_| triangle(&mut random)).collect();
    let payload: &[u8] = bytemuck::cast_slice(&triangles);
    let mesh = &Mesh { triangles: triangles.clone() };
    let bulk_mesh = &Bulk { triangles: triangles.clone() };
    let cast_mesh = &Cast { triangles: triangles.clone() };

    // The floor copies the message of `Rows`, so that its floats have the same addresses: memcpy is slower
    // to an address that is not a multiple of 64.
    let whole = peers::Tenarc::to_vec(bulk_mesh);
    assert!(whole.ends_with(payload), "the message ends with the floats as one block");
    let head = &whole[..whole.len() - payload.len()];
    let floor = Row::new("floor", "", Placed::new(&whole, 0))
        .encode(move |buffer| {
            buffer.extend_from_slice(head);
            buffer.extend_from_slice(payload);
        })
        .fresh(move || {
            let mut out = Vec::with_capacity(head.len() + payload.len());
            out.extend_from_slice(head);
            out.extend_from_slice(payload);
            out
        })
        .decode(move |bytes| timed(|| bytes[head.len()..].to_vec()));

    let mut rows = vec![
        floor,
        plain::<peers::Tenarc>(mesh),
        peers::row::<peers::TenarcColumns, _>("columns", mesh),
        bulk(bulk_mesh),
        plain::<peers::Cbor4ii>(mesh),
        plain::<peers::Minicbor>(mesh),
        plain::<peers::RmpNamed>(mesh),
        plain::<peers::RmpCompact>(mesh),
        plain::<peers::Ciborium>(mesh),
        plain::<peers::Json>(mesh),
        plain::<peers::Bincode1>(mesh),
        plain::<peers::Bincode2>(mesh),
        plain::<peers::Postcard>(mesh),
        peers::zap("plain", mesh),
        plain::<peers::BitcodeSerde>(mesh),
        expert::<peers::Cbor4ii>(cast_mesh),
        expert::<peers::Minicbor>(cast_mesh),
        expert::<peers::RmpNamed>(cast_mesh),
        peers::row::<peers::Ciborium, _>("bytes", cast_mesh),
        expert::<peers::Bincode1>(cast_mesh),
        expert::<peers::Bincode2>(cast_mesh),
        expert::<peers::Postcard>(cast_mesh),
        peers::row::<peers::BitcodeSerde, _>("bytes", cast_mesh),
        bincode_row!(mesh, Mesh),
        wincode_row!(mesh, Mesh),
        bitcode_row!(mesh, Mesh),
    ];
    rows.extend(rkyv_rows!(mesh, Mesh));

    let report = Case {
        title: format!("(c) mesh: {} triangles", triangles.len()),
        heads: MESSAGES,
        floor: "memcpy of the 6,000,000 bytes of floats as one block, at the same addresses as in \
                tenarc's message",
        rows,
    }
    .run(effort);
    print_report(&report);
    recorder.keep("mesh", &report);
    let case = "c mesh";
    targets.rows(case, &report);
    targets.columns(case, &report, (Column::Encode, "rkyv", "native"), 1.1);
    targets.columns(case, &report, (Column::Decode, "rkyv", "native"), 3.0);
    let size = |bytes: Option<usize>| bytes.map(|bytes| bytes as f64);
    let sizes = (size(report.bytes("tenarc", "columns")), size(Some(payload.len())));
    targets.at_most(case, "columns, size / the floats", sizes, 1.01);
    for (column, text) in [
        (Column::Encode, "Rows, encode / memcpy into reused memory"),
        (Column::ToVec, "Rows, to_vec / memcpy into new memory"),
        (Column::Decode, "Rows, decode / memcpy into new memory"),
    ] {
        let times = (report.median("tenarc", "Rows", column), report.floor_median(column));
        targets.at_most(case, text, times, 1.1);
    }
}
