//! Sequences that an archive stores as columns become the rows that they stand for, or one tensor for each column.

// The numbers are written as they are.
#![allow(clippy::float_cmp)]

use std::io::Cursor;

use ndarray::{Array1, Array2};
use serde::Serialize;
use tenarc::{Archive, OArchive, Tensor};
use tenarc_convert::npy::{self, Npz, NpzWriter, Options};
use tenarc_convert::{json, safetensors, tenbin};

#[derive(Serialize)]
struct Row {
    id: u32,
    label: String,
    #[serde(rename = "a.b")]
    dotted: f32,
    inner: Inner,
    score: Option<f64>,
    embedding: Tensor<Array1<f32>>,
}

#[derive(Serialize)]
struct Inner {
    size: u16,
}

#[derive(Serialize)]
struct Run {
    name: String,
    weight: Tensor<Array2<f32>>,
    #[serde(rename = "a/log")]
    log: Vec<Row>,
    ids: Vec<(u8, u8)>,
}

fn row(id: u16) -> Row {
    let number = f32::from(id);
    Row {
        id: id.into(),
        label: format!("row {id}"),
        dotted: number,
        inner: Inner { size: id },
        score: id.is_multiple_of(2).then_some(0.5),
        embedding: Array1::from_elem(3, number).into(),
    }
}

fn archive() -> Archive<Vec<u8>> {
    let run = Run {
        name: "run".into(),
        weight: Array2::eye(2).into(),
        log: (0..300).map(row).collect(),
        ids: vec![(1, 2); 150],
    };
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&run).unwrap();
    Archive::new(out.finish().unwrap()).unwrap()
}

#[test]
fn columns_are_tensors_in_safetensors() {
    let archive = archive();
    let segment = archive.only().unwrap();
    let export = safetensors::Export::new(&segment).unwrap();
    let losses = format!("{:?}", export.losses().listed());
    for lost in ["name", "a/log.label", "a/log.score", "ids"] {
        assert!(losses.contains(lost), "{lost} in {losses}");
    }
    assert!(!losses.contains("tag"), "{losses}");
    let mut bytes = Vec::new();
    let options = safetensors::Options::default().with_losses(true);
    export.to_writer(&mut bytes, &options).unwrap();
    let file = safetensors::SafeTensors::new(bytes).unwrap();
    let names: Vec<_> = file.tensors().iter().map(|tensor| tensor.path().to_owned()).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let embeddings: Array2<f32> = file.tensor("a/log.embedding").unwrap();
    assert_eq!((embeddings.dim(), embeddings[[299, 2]]), ((300, 3), 299.0));
    let dotted: Array1<f32> = file.tensor("a/log.a.b").unwrap();
    assert_eq!(dotted[7], 7.0);
    let sizes: Array1<u16> = file.tensor("a/log.inner.size").unwrap();
    assert_eq!(sizes[299], 299);
}

#[test]
fn columns_are_arrays_in_npz() {
    let archive = archive();
    let segment = archive.only().unwrap();
    let write = |options: &Options| -> tenarc::Result<_> {
        let mut out = NpzWriter::new(Cursor::new(Vec::new())).unwrap();
        let losses = npy::export(&segment, &mut out, options)?;
        Ok((out.finish()?.into_inner(), losses))
    };
    let (bytes, losses) = write(&Options::default().with_losses(true)).unwrap();
    assert!(losses.notes().iter().any(|note| note.contains("`a/log`: a tensor for each column")));
    let losses: Vec<_> = losses.listed().iter().map(ToString::to_string).collect();
    assert_eq!(
        losses,
        [
            "`a/log.score`: a column of optional values is not a tensor: it is left out",
            "`ids`: its rows have no fields that are tensors: it is left out",
        ]
    );
    let file = Npz::new(bytes).unwrap();
    let names: Vec<_> = file.names().collect();
    let tensors = ["weight", "a/log.id", "a/log.a.b", "a/log.inner.size", "a/log.embedding"];
    assert_eq!(names, [&tensors[..], &["a/log.label", "name"]].concat());
    let embeddings: Array2<f32> = file.tensor("a/log.embedding").unwrap();
    assert_eq!((embeddings.dim(), embeddings[[299, 2]]), ((300, 3), 299.0));
}

#[test]
fn columns_are_lost_in_tenbin() {
    let archive = archive();
    let options = tenbin::Options::default().with_losses(true);
    let mut out = Vec::new();
    let losses = tenbin::export(&archive.only().unwrap(), &mut out, &options).unwrap();
    let lost: Vec<_> = losses.listed().iter().map(tenarc_convert::Loss::path).collect();
    // The first has tensors in it.
    assert_eq!(lost, ["a/log", "name", "ids"]);
    assert_eq!(tenbin::decode_buffer(&out).unwrap().len(), 1);
}

#[test]
fn the_columns_of_a_table_are_arrays_of_their_names() {
    #[derive(Serialize)]
    struct Plain {
        id: u32,
        #[serde(rename = "x.y")]
        dotted: f32,
    }
    let rows: Vec<Plain> = (0..3).map(|id| Plain { id, dotted: 0.5 }).collect();
    let mut out = OArchive::new(Vec::new()).unwrap();
    out.save(&rows).unwrap();
    let archive = Archive::new(out.finish().unwrap()).unwrap();
    let mut out = npy::NpzWriter::new(Cursor::new(Vec::new())).unwrap();
    let losses = npy::export(&archive.only().unwrap(), &mut out, &npy::Options::default());
    assert!(losses.unwrap().is_empty());
    let npz = npy::Npz::new(out.finish().unwrap().into_inner()).unwrap();
    assert_eq!(npz.names().collect::<Vec<_>>(), ["id", "x.y"]);
    assert_eq!(npz.tensor::<Array1<u32>>("id").unwrap().to_vec(), [0, 1, 2]);
}

#[test]
fn columns_are_rows_in_json() {
    let archive = archive();
    let mut out = Vec::new();
    let options = json::Options::default().with_losses(true);
    json::export(&archive.only().unwrap(), &mut out, &options).unwrap();
    let value: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let rows = value["a/log"].as_array().unwrap();
    assert_eq!(rows.len(), 300);
    assert_eq!(rows[7]["label"], "row 7");
    assert_eq!(rows[7]["inner"]["size"], 7);
    assert!(rows[7]["score"].is_null());
    assert_eq!(value["ids"][19], serde_json::json!([1, 2]));
}
