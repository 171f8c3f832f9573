//! Paths into columns: rows, values in rows, and whole columns (`SPEC.md`, annex A).

// All numbers are small.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]

use std::collections::BTreeMap;

use ndarray::{Array1, Array2, Array3, ArrayView2, s};
use serde::{Deserialize, Serialize};
use tenarc::archive::SaveOptions;

use tenarc::tensor::{DType, SharedTensor, TensorInfo};
use tenarc::{Archive, DynTensor, OArchive, Tensor, Value};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Request {
    method: Method,
    size: u32,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Method {
    Get,
    Post { len: u16, tags: Vec<String> },
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Entry {
    id: u64,
    label: String,
    request: Request,
    parent: Option<Request>,
    score: Option<f32>,
    ok: bool,
    position: [f32; 3],
    box_: [[f64; 2]; 2],
    vector: Vec<f32>,
    embedding: Tensor<Array1<f32>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    #[serde(rename = "a.b")]
    dotted: i16,
    map: BTreeMap<u8, Vec<bool>>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug)]
struct Run {
    name: String,
    log: Vec<Entry>,
    weight: Tensor<Array2<f32>>,
}

fn entry(id: u64) -> Entry {
    let small = u32::try_from(id).unwrap();
    let float = small as f32;
    let tags = (0..id % 4).map(|tag| format!("t{tag}")).collect();
    let method = if id.is_multiple_of(3) { Method::Get } else { Method::Post { len: 7, tags } };
    Entry {
        id,
        label: "é".repeat(small as usize % 5),
        request: Request { method: method.clone(), size: small * 10 },
        parent: (id % 2 == 1).then_some(Request { method, size: small }),
        score: (id % 4 != 2).then_some(float),
        ok: id.is_multiple_of(5),
        position: [float, float + 0.25, float + 0.5],
        box_: [[0.0, id as f64], [1.0, 2.0]],
        vector: vec![float; 4],
        embedding: Tensor(Array1::from_elem(8, float)),
        note: (id % 7 == 3).then(|| format!("note {id}")),
        dotted: i16::try_from(id % 100).unwrap(),
        map: (0..small as u8 % 3).map(|key| (key, vec![true; key.into()])).collect(),
    }
}

fn run(rows: u64) -> Run {
    let log = (0..rows).map(entry).collect();
    Run { name: "run".into(), log, weight: Tensor(Array2::eye(40)) }
}

fn saved<T: Serialize>(value: &T) -> Vec<u8> {
    let options = SaveOptions::default().with_columns(true);
    let mut out = OArchive::with_options(Vec::new(), options).unwrap();
    out.save(value).unwrap();
    out.finish().unwrap()
}

/// Few rows, most of whose columns are inline; many, whose columns are in buffers; and several groups.
const COUNTS: [u64; 3] = [130, 3000, 70_000];

#[test]
fn rows_and_what_is_in_them() {
    for rows in COUNTS {
        let bytes = saved(&run(rows));
        let archive = Archive::new(&bytes[..]).unwrap();
        for row in [0, 1, 2, 3, 7, 10, 17, rows - 1] {
            let expected = entry(row);
            let at = |path: &str| format!("log.{row}{path}");
            assert_eq!(archive.get::<Entry>(&at("")).unwrap(), expected);
            assert_eq!(archive.get::<u64>(&at(".id")).unwrap(), row);
            assert_eq!(archive.get::<String>(&at(".label")).unwrap(), expected.label);
            assert_eq!(archive.get::<Request>(&at(".request")).unwrap(), expected.request);
            assert_eq!(archive.get::<Option<f32>>(&at(".score")).unwrap(), expected.score);
            assert_eq!(archive.get::<f32>(&at(".position.2")).unwrap(), expected.position[2]);
            assert_eq!(archive.get::<[f64; 2]>(&at(".box_.1")).unwrap(), [1.0, 2.0]);
            assert_eq!(archive.get::<f32>(&at(".vector.3")).unwrap(), expected.vector[3]);
            assert_eq!(archive.get::<i16>(&at(".a.b")).unwrap(), expected.dotted);
            assert_eq!(archive.get::<i16>(&format!("/log/{row}/a.b")).unwrap(), expected.dotted);
            assert_eq!(
                archive.tensor::<Array1<f32>>(&at(".embedding")).unwrap(),
                expected.embedding.0
            );
            assert_eq!(archive.get::<bool>(&format!("log.ok.{row}")).unwrap(), expected.ok);
            assert_eq!(
                archive.get::<u32>(&format!("log.request.size.{row}")).unwrap(),
                expected.request.size
            );
            assert_eq!(
                archive.get::<u32>(&format!("/log/request/{row}/size")).unwrap(),
                expected.request.size
            );
            if let Method::Post { tags, .. } = &expected.request.method {
                assert_eq!(archive.get::<u16>(&at(".request.method.Post.len")).unwrap(), 7);
                for (index, tag) in tags.iter().enumerate() {
                    let path = at(&format!(".request.method.Post.tags.{index}"));
                    assert_eq!(archive.get::<String>(&path).unwrap(), *tag);
                }
            }
            for (key, bools) in &expected.map {
                assert_eq!(archive.get::<Vec<bool>>(&at(&format!(".map.{key}"))).unwrap(), *bools);
            }
            match &expected.parent {
                Some(parent) => {
                    assert_eq!(archive.get::<u32>(&at(".parent.size")).unwrap(), parent.size);
                }
                None => assert!(archive.get::<u32>(&at(".parent.size")).is_err()),
            }
            assert_eq!(archive.get::<String>(&at(".note")).ok(), expected.note);
        }
    }
}

#[test]
fn columns() {
    for rows in COUNTS {
        let bytes = saved(&run(rows));
        let archive = Archive::new(&bytes[..]).unwrap();
        let all: Vec<Entry> = (0..rows).map(entry).collect();
        fn of<T>(all: &[Entry], field: impl FnMut(&Entry) -> T) -> Vec<T> {
            all.iter().map(field).collect()
        }
        assert_eq!(archive.get::<Vec<u64>>("log.id").unwrap(), of(&all, |row| row.id));
        assert_eq!(archive.get::<Vec<u16>>("log.request.size").ok().is_some(), rows < 6000);
        assert_eq!(
            archive.get::<Vec<String>>("log.label").unwrap(),
            of(&all, |row| row.label.clone())
        );
        assert_eq!(
            archive.get::<Vec<Option<f32>>>("log.score").unwrap(),
            of(&all, |row| row.score)
        );
        assert_eq!(archive.get::<Vec<i16>>("log.a.b").unwrap(), of(&all, |row| row.dotted));
        assert_eq!(
            archive.get::<Vec<Option<String>>>("log.note").unwrap(),
            of(&all, |row| row.note.clone())
        );
        assert_eq!(
            archive.get::<Vec<Option<u32>>>("/log/parent/size").unwrap(),
            of(&all, |row| row.parent.as_ref().map(|parent| parent.size))
        );
        assert_eq!(
            archive.get::<Vec<Option<Request>>>("log.parent").unwrap(),
            of(&all, |row| row.parent.clone())
        );
        assert_eq!(archive.get::<Vec<Method>>("log.request.method").unwrap().len(), all.len());
        let value: Value = archive.get("log.position").unwrap();
        assert_eq!(value[2][1], Value::F32(2.25));

        let count = all.len();
        let embeddings: Array2<f32> = archive.tensor("log.embedding").unwrap();
        assert_eq!(embeddings.shape(), [count, 8]);
        assert!(embeddings.outer_iter().zip(&all).all(|(row, entry)| row == entry.embedding.0));
        let vectors: Array2<f32> = archive.tensor("log.vector").unwrap();
        assert!(vectors.outer_iter().zip(&all).all(|(row, entry)| row.to_vec() == entry.vector));
        let positions: Array2<f32> = archive.tensor("log.position").unwrap();
        assert!(
            positions.outer_iter().zip(&all).all(|(row, entry)| row.to_vec() == entry.position)
        );
        let boxes: Array3<f64> = archive.tensor("log.box_").unwrap();
        assert_eq!(boxes[[count - 1, 0, 1]], (count - 1) as f64);
        let ok: Array1<bool> = archive.tensor("log.ok").unwrap();
        assert!(ok.iter().zip(&all).all(|(ok, entry)| *ok == entry.ok));
        let part: Array2<f32> = archive.slice("log.vector", s![5..15;2, 1..]).unwrap();
        assert_eq!(part, vectors.slice(s![5..15;2, 1..]));
        let part: Array1<f32> = archive.slice("log.embedding", s![count - 1, ..]).unwrap();
        assert_eq!(part.to_vec(), vec![(count - 1) as f32; 8]);
        assert!(archive.tensor::<DynTensor>("log.score").is_err());
    }
}

#[test]
fn columns_are_listed_as_tensors() {
    for rows in COUNTS {
        let bytes = saved(&run(rows));
        let archive = Archive::new(&bytes[..]).unwrap();
        let listed = archive.tensors().unwrap();
        let paths: Vec<_> = listed.iter().map(TensorInfo::path).collect();
        assert_eq!(
            paths,
            [
                "log.id",
                "log.request.size",
                "log.ok",
                "log.position",
                "log.box_",
                "log.vector",
                "log.embedding",
                "log.a.b",
                "weight",
            ]
        );
        for info in &listed {
            let tensor: DynTensor = archive.tensor(info.path()).unwrap();
            assert_eq!(tensor.shape(), info.shape(), "{}", info.path());
            assert_eq!(tensor.dtype(), info.dtype());
            assert_eq!(archive.only().unwrap().info(info.path()).unwrap(), *info);
        }
        let boxes = listed.iter().find(|info| info.path() == "log.box_").unwrap();
        assert_eq!(boxes.dtype(), &DType::F64);
        assert_eq!(boxes.shape(), [usize::try_from(rows).unwrap(), 2, 2]);
    }
}

#[test]
fn a_column_of_one_group_is_viewed_in_place() {
    let bytes = saved(&run(3000));
    let archive = Archive::new(&bytes[..]).unwrap();
    let range = bytes.as_ptr_range();
    for (path, width) in [("log.vector", 4), ("log.embedding", 8)] {
        let view: Tensor<ArrayView2<'_, f32>> = archive.view_at(path).unwrap();
        assert_eq!(view.shape(), [3000, width]);
        assert_eq!(view[[2999, 1]], 2999.0);
        assert!(range.contains(&view.as_ptr().cast()));
    }
    let text: &str = archive.view_at("log.9.label").unwrap();
    assert!(range.contains(&text.as_ptr()));
    let many = saved(&run(70_000));
    let archive = Archive::new(&many[..]).unwrap();
    let error = archive.view_at::<Tensor<ArrayView2<'_, f32>>>("log.vector").unwrap_err();
    assert!(error.to_string().contains("log.vector"), "{error}");
}

#[test]
fn a_column_of_a_map_is_shared() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.tenarc");
    std::fs::write(&path, saved(&run(3000))).unwrap();
    // SAFETY: nobody changes the file.
    #[allow(unsafe_code)]
    let map = unsafe { tenarc::Map::open(&path) }.unwrap();
    let shared: SharedTensor = map.share("log.vector").unwrap();
    drop(map);
    assert_eq!(shared.shape(), [3000, 4]);
    assert_eq!(shared.as_slice::<f32>().unwrap()[4 * 2999], 2999.0);
}

#[test]
fn what_is_not_there() {
    let bytes = saved(&run(200));
    let archive = Archive::new(&bytes[..]).unwrap();
    let error = |path: &str| archive.get::<Value>(path).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            "log.200",
            "log.size",
            "log.request.sise",
            "log.3.sise",
            "log.3.position.3",
            "log.id.200",
            "log.label.x"
        ]
        .map(error)
        .join("\n")
    );
}
