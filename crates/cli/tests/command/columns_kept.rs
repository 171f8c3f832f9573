//! Commands that write archives keep columns and their buffers, and `convert` makes tensors of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Dir, run};
use ndarray::{Array1, Array2, ArrayView2};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::{Archive, OArchive, Tensor, Value};
use tenarc_convert::{arrow, npy, safetensors};

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Row {
    id: u32,
    embedding: Vec<f32>,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Run {
    rows: Vec<Row>,
    other: i64,
}

/// A value with 10 MB of floats in a column.
fn large() -> Run {
    let row = |id: u32| Row { id, embedding: (0..256).map(|n| (id * 256 + n) as f32).collect() };
    Run { rows: (0..10_000).map(row).collect(), other: 0 }
}

/// A field for each kind of column that can have buffers.
#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Event {
    id: u64,
    hot: bool,
    text: String,
    note: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    seldom: Option<String>,
    tags: Vec<Tag>,
    sizes: BTreeMap<String, u16>,
    state: State,
    point: (f32, f32),
    vector: Tensor<Array1<f32>>,
    bytes: Blob,
}

/// A byte string.
#[derive(PartialEq, Debug, Clone)]
struct Blob(Vec<u8>);

impl Serialize for Blob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Blob {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::Bytes(bytes) => Ok(Self(bytes)),
            _ => Err(D::Error::custom("expected bytes")),
        }
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Tag {
    text: String,
    seen: bool,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum State {
    New,
    Known(String),
    Gone { after: u32 },
}

fn event(id: u64) -> Event {
    let at = usize::try_from(id).unwrap();
    let small = u32::try_from(id).unwrap();
    Event {
        id,
        hot: id.is_multiple_of(2),
        text: "ü".repeat(at % 9),
        note: (!id.is_multiple_of(3)).then_some(0.5),
        seldom: id.is_multiple_of(5).then(|| format!("seldom {id}")),
        tags: (0..at % 3).map(|n| Tag { text: format!("tag {n}"), seen: n == 1 }).collect(),
        sizes: (0..at % 2).map(|n| (format!("size {n}"), 7)).collect(),
        state: match id % 3 {
            0 => State::New,
            1 => State::Known(format!("known {id}")),
            _ => State::Gone { after: small },
        },
        point: (small as f32, 0.5),
        vector: Array1::from_elem(4, small as f32).into(),
        bytes: Blob(vec![7; at % 4]),
    }
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Log {
    log: Vec<Event>,
    other: i64,
    weight: Tensor<Array1<f32>>,
}

fn log(rows: u64) -> Log {
    Log { log: (0..rows).map(event).collect(), other: 0, weight: Array1::ones(2000).into() }
}

fn options() -> SaveOptions {
    SaveOptions::default().with_sync(SyncLevel::Off)
}

fn save(dir: &Dir, name: &str, value: &impl Serialize, options: SaveOptions) {
    let mut out = OArchive::create(dir.file(name), options).unwrap();
    out.save_as("value", value).unwrap();
    out.finish().unwrap();
}

fn archive(dir: &Dir, name: &str) -> Archive<Vec<u8>> {
    Archive::new(std::fs::read(dir.file(name)).unwrap()).unwrap()
}

/// The only value of both files is stored in the same bytes.
#[track_caller]
fn assert_same(dir: &Dir, a: &str, b: &str) {
    let [a, b] = [a, b].map(|name| archive(dir, name));
    b.verify().unwrap();
    let [a, b] = [a.only().unwrap(), b.only().unwrap()];
    let [left, right] = [&a, &b].map(|segment| segment.metadata().unwrap());
    let differ = left.iter().zip(right).position(|(left, right)| left != right);
    assert_eq!((differ, left.len()), (None, right.len()));
    assert_eq!((a.name(), a.buffers().len()), (b.name(), b.buffers().len()));
    for number in 0..a.buffers().len() {
        let [a, b] = [&a, &b].map(|segment| {
            let mut bytes = Vec::new();
            let mut add = |block: &[u8]| {
                bytes.extend_from_slice(block);
                Ok(())
            };
            segment.read_buffer(number, &mut add).unwrap();
            bytes
        });
        assert!(a == b, "buffer {number}");
    }
}

#[test]
fn a_large_column_stays_one_buffer_that_can_be_viewed() {
    let dir = Dir::new();
    let value = large();
    save(&dir, "a.tenarc", &value, options());
    save(&dir, "expected.tenarc", &Run { other: 1, ..value.clone() }, options());
    let edit = |args: &[&str]| {
        let ran = run(&dir, &[&["edit", "a.tenarc", "-o", "b.tenarc"], args].concat());
        assert_eq!(ran.good(), "");
    };
    edit(&["--set", "other=1"]);
    assert_same(&dir, "expected.tenarc", "b.tenarc");
    edit(&["--align", "64"]);
    assert_same(&dir, "a.tenarc", "b.tenarc");
    assert_eq!(run(&dir, &["merge", "a.tenarc", "-o", "b.tenarc"]).good(), "");
    assert_same(&dir, "a.tenarc", "b.tenarc");
    assert_eq!(run(&dir, &["convert", "a.tenarc", "b.tenarc"]).good(), "");
    assert_same(&dir, "a.tenarc", "b.tenarc");
    let names = run(&dir, &["split", "a.tenarc", "--max-size", "1M", "-d", "."]);
    assert_same(&dir, "a.tenarc", names.good().trim_end());

    edit(&["--set", "other=1", "--rename", "rows=log"]);
    let edited = archive(&dir, "b.tenarc");
    let segment = edited.only().unwrap();
    assert!(segment.metadata().unwrap().len() < 500, "the floats are not in the metadata");
    // The lists have one length, so that the column is one block.
    assert_eq!(segment.info("log.embedding").unwrap().shape(), [10_000, 256]);
    assert!(segment.info("log.embedding").unwrap().buffer().is_some());
    let view: Tensor<ArrayView2<'_, f32>> = segment.view_at("log.embedding").unwrap();
    assert_eq!((view.dim(), view[[9999, 255]]), ((10_000, 256), 2_559_999.0));
    assert_eq!(segment.get::<Vec<Row>>("log").unwrap(), value.rows);
}

#[test]
fn columns_of_all_kinds_stay_as_they_are() {
    let dir = Dir::new();
    // With few rows, hardly anything is in buffers. With many, there are two groups.
    for rows in [300, 2000, 70_000] {
        let value = log(rows);
        save(&dir, "a.tenarc", &value, options());
        save(&dir, "expected.tenarc", &Log { other: 1, ..value.clone() }, options());
        run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--set", "other=1"]).good();
        assert_same(&dir, "expected.tenarc", "b.tenarc");
        let edited: Log = archive(&dir, "b.tenarc").load().unwrap();
        assert!(edited == Log { other: 1, ..value.clone() }, "{rows} rows");
        let [a, b] = ["expected.tenarc", "b.tenarc"]
            .map(|file| run(&dir, &["ls", "--json", file]).good().to_owned());
        assert_eq!(a, b);
        if rows > 2000 {
            continue;
        }
        // It stores equal buffers once.
        run(&dir, &["merge", "a.tenarc", "-o", "b.tenarc"]).good();
        save(&dir, "expected.tenarc", &value, options().with_dedup(true));
        assert_same(&dir, "expected.tenarc", "b.tenarc");
    }
}

#[test]
fn small_buffers_go_to_the_metadata() {
    let dir = Dir::new();
    // Also texts, bits and lengths of a few bytes have buffers.
    save(&dir, "a.tenarc", &log(40), options().with_columns(true).with_inline_below(1));
    let expected = Log { other: 1, ..log(40) };
    save(&dir, "expected.tenarc", &expected, options().with_columns(true));
    run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--set", "other=1"]).good();
    assert_same(&dir, "expected.tenarc", "b.tenarc");
    assert!(archive(&dir, "b.tenarc").load::<Log>().unwrap() == expected);
}

#[test]
fn equal_columns_stay_one_buffer() {
    #[derive(Serialize)]
    struct Twice {
        a: u64,
        b: u64,
    }
    #[derive(Serialize)]
    struct Whole {
        rows: Vec<Twice>,
        other: i64,
    }
    let dir = Dir::new();
    let whole = |other| Whole { rows: (0..5000).map(|n| Twice { a: n, b: n }).collect(), other };
    save(&dir, "a.tenarc", &whole(0), options().with_dedup(true));
    save(&dir, "expected.tenarc", &whole(1), options().with_dedup(true));
    run(&dir, &["edit", "a.tenarc", "-o", "b.tenarc", "--set", "other=1"]).good();
    assert_eq!(archive(&dir, "b.tenarc").only().unwrap().buffers().len(), 1);
    assert_same(&dir, "expected.tenarc", "b.tenarc");
}

#[test]
fn a_table_counts_with_its_size_in_shards() {
    #[derive(Serialize)]
    struct Tables {
        first: Tensor<Array1<f32>>,
        log: Vec<Event>,
        second: Tensor<Array1<f32>>,
        small: Vec<(u8, String)>,
        third: Tensor<Array1<f32>>,
    }
    let dir = Dir::new();
    let tensor = |len| Array1::from_elem(len, len as f32).into();
    let value = Tables {
        first: tensor(25_000),
        log: log(2000).log,
        second: tensor(20_000),
        small: (0..200).map(|n| (n, format!("row {n}"))).collect(),
        third: tensor(5_001),
    };
    save(&dir, "a.tenarc", &value, options());
    // 100,000 bytes; a table of more than 100,000; 80,000 with a table of less than 10,000; 20,004.
    let split = run(&dir, &["split", "a.tenarc", "--max-size", "100k", "-d", "."]);
    let shards: Vec<&str> = split.good().lines().collect();
    let held: Vec<Vec<&str>> = shards
        .iter()
        .map(|name| {
            let (shard, mut held) = (archive(&dir, name), Vec::new());
            for path in ["first", "log", "second", "small", "third"] {
                let value: Value = shard.get(path).unwrap();
                if value != Value::Simple(23) {
                    held.push(path);
                }
            }
            held
        })
        .collect();
    assert_eq!(held, [vec!["first"], vec!["log"], vec!["second", "small"], vec!["third"]]);
    let expected = archive(&dir, "a.tenarc").get::<Vec<Event>>("log").unwrap();
    let shard = archive(&dir, shards[1]);
    assert!(shard.get::<Vec<Event>>("log").unwrap() == expected);
    assert!(shard.only().unwrap().info("log.id").unwrap().buffer().is_some());
    run(&dir, &[&["merge", "-o", "b.tenarc"], &shards[..]].concat()).good();
    assert_same(&dir, "a.tenarc", "b.tenarc");

    // A table that is the whole value is one shard, whatever its size.
    save(&dir, "t.tenarc", &value.log, options());
    let split = run(&dir, &["split", "t.tenarc", "--max-size", "1k", "-d", "."]);
    assert_same(&dir, "t.tenarc", split.good().trim_end());
}

#[test]
fn converts_columns_to_the_tensors_of_the_library() {
    let dir = Dir::new();
    save(&dir, "a.tenarc", &log(2000), options());
    let source = archive(&dir, "a.tenarc");
    let segment = source.only().unwrap();
    let converted = |to: &str| {
        let out = format!("out.{to}");
        let ran = run(&dir, &["convert", "--lossy", "--to", to, "a.tenarc", &out]);
        assert_eq!(ran.status, 0, "{ran:?}");
        (std::fs::read(dir.file(&out)).unwrap(), ran.err)
    };

    let (bytes, losses) = converted("safetensors");
    let export = safetensors::Export::new(&segment).unwrap();
    let mut expected = Vec::new();
    export.to_writer(&mut expected, &safetensors::Options::default().with_losses(true)).unwrap();
    assert!(bytes == expected);
    assert!(losses.contains("`log.note`: a column of optional values is not a"), "{losses}");
    let file = safetensors::SafeTensors::new(bytes).unwrap();
    let names: Vec<&str> = file.tensors().iter().map(tenarc::tensor::TensorInfo::path).collect();
    assert_eq!(names.len(), 5, "{names:?}");
    let vectors: Array2<f32> = file.tensor("log.vector").unwrap();
    assert_eq!((vectors.dim(), vectors[[1999, 3]]), ((2000, 4), 1999.0));

    let (bytes, losses) = converted("npz");
    assert!(!losses.contains("log.text"), "{losses}");
    let mut out = npy::NpzWriter::new(std::io::Cursor::new(Vec::new())).unwrap();
    let flat = npy::Options::default().with_losses(true);
    npy::export(&segment, &mut out, &flat).unwrap();
    assert!(bytes == out.finish().unwrap().into_inner());
    let npz = npy::Npz::new(bytes).unwrap();
    // safetensors orders the tensors by their alignment.
    let sorted: BTreeSet<&str> = names.into_iter().chain(["log.text"]).collect();
    assert_eq!(npz.names().collect::<BTreeSet<_>>(), sorted);

    let (bytes, _) = converted("arrow");
    let export = arrow::Export::new(&segment).unwrap();
    let mut expected = Vec::new();
    let lossy = arrow::Options::default().with_losses(true).with_container(arrow::Container::File);
    export.to_writer(&mut expected, &lossy).unwrap();
    assert!(bytes == expected);
}
