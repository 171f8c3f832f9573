//! Tables in Arrow files and streams: what is a table, and what other writers make.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;
use tenarc::{Archive, DType, OArchive, Result, Tensor, Value};
use tenarc_convert::arrow::{self, ArrowFile, Container, Rows, TableFile};
use tenarc_convert::{Format, Losses, Options};
use tenarc_test_support::alloc::peak_of;

use super::round_trips::archive;

const MIB: usize = 1 << 20;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/arrow")
}

fn quick() -> Options {
    Options::default().with_sync(SyncLevel::Off)
}

pub fn written(archive: &Archive<Vec<u8>>, options: &Options) -> (Vec<u8>, Losses) {
    let segments = archive.segments().collect::<Result<_>>().unwrap();
    let mut bytes = Vec::new();
    let losses = arrow::segments_to_writer(segments, &mut bytes, options).unwrap();
    (bytes, losses)
}

/// What a table is as an archive.
pub fn read(bytes: Vec<u8>) -> Archive<Vec<u8>> {
    let file = TableFile::new(bytes).unwrap();
    let batches: Vec<Rows> = file.batches().collect::<Result<_>>().unwrap();
    archive(&batches)
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
enum Level {
    Low,
    High,
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Inner {
    level: Level,
    at: (i32, Option<f64>),
}

#[derive(Serialize, Deserialize, PartialEq, Debug, Clone)]
struct Event {
    id: u64,
    user: Option<String>,
    level: Option<Level>,
    inner: Option<Inner>,
    inners: Vec<Option<Inner>>,
    embedding: Tensor<[f32; 4]>,
}

fn event(n: u64) -> Event {
    // The first rows know one variant only.
    let level = || if n.is_multiple_of(50) && n > 0 { Level::High } else { Level::Low };
    let inner = || Inner { level: level(), at: (-1, (!n.is_multiple_of(2)).then_some(0.5)) };
    Event {
        id: n,
        user: (!n.is_multiple_of(3)).then(|| format!("user {n}")),
        level: (!n.is_multiple_of(4)).then(level),
        inner: (!n.is_multiple_of(5)).then(inner),
        inners: vec![None, (!n.is_multiple_of(7)).then(inner)],
        embedding: Tensor([0.5, -1.0, f32::from(u16::try_from(n).unwrap()), 0.0]),
    }
}

/// Dictionaries are the same in all batches, also where all values are null: a file allows no others.
#[test]
fn an_archive_goes_there_and_back() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut out = OArchive::create(at("a.tenarc"), SaveOptions::default()).unwrap();
    let mut all = Vec::new();
    for days in [0..1, 1..40, 40..300, 300..301] {
        let events: Vec<_> = days.map(event).collect();
        out.save_as("events", &events).unwrap();
        all.extend(events);
    }
    out.finish().unwrap();
    for name in ["events.arrow", "events.arrows", "events.feather"] {
        let losses = Format::Arrow.from_archive(at("a.tenarc"), at(name), &quick()).unwrap();
        assert!(losses.is_empty(), "{losses}");
        assert_eq!(fs::read(at(name)).unwrap().starts_with(b"ARROW1"), !name.ends_with("arrows"));
        assert!(arrow::open(at(name)).unwrap().is_table());
        let losses = Format::Arrow.to_archive(at(name), at("b.tenarc"), &quick()).unwrap();
        assert!(losses.is_empty() && losses.notes().is_empty(), "{losses}");
        let back = tenarc::open(at("b.tenarc")).unwrap();
        assert_eq!(back.len(), 4);
        assert_eq!(back.table("events").unwrap().rows::<Event>(..).unwrap(), all);
    }
}

/// A sequence of structs is a table if it is stored as columns, or if tensors would not keep it.
#[test]
fn what_is_written_as_a_table() {
    #[derive(Serialize)]
    struct Layer {
        weight: Tensor<Vec<f32>>,
    }
    let is_table = |archive: &Archive<Vec<u8>>| {
        arrow::are_table(&archive.segments().collect::<Result<Vec<_>>>().unwrap()).unwrap()
    };
    let layer = |len| Layer { weight: Tensor(vec![0.5; len]) };
    assert!(is_table(&archive(&[(0..50).map(event).collect::<Vec<_>>()])));
    assert!(is_table(&archive(&[vec![event(1)]])));
    assert!(is_table(&archive(&[vec![event(1)], vec![event(2)]])));
    assert!(is_table(&archive(&[vec![layer(100_000), layer(100_000)]])));
    assert!(!is_table(&archive(&[vec![layer(3), layer(4)]])));
    assert!(!is_table(&archive(&[layer(3)])));
    assert!(!is_table(&archive(&[vec!["text"; 20]])));
    assert!(!is_table(&archive::<u8>(&[])));
}

/// The same files as tensors and as a table.
#[test]
fn a_name_for_the_table_makes_one() {
    let dir = tempfile::tempdir().unwrap();
    let to = dir.path().join("a.tenarc");
    let from = fixtures().join("dtypes.arrow");
    Format::Arrow.to_archive(&from, &to, &quick()).unwrap();
    assert!(tenarc::load::<Value>(&to).unwrap().as_map().is_some());
    Format::Arrow.to_archive(&from, &to, &quick().with_table("rows")).unwrap();
    let archive = tenarc::open(&to).unwrap();
    assert_eq!(archive.table("rows").unwrap().len(), 11);
    let back = dir.path().join("back.arrow");
    Format::Arrow.from_archive(&to, &back, &quick()).unwrap();
    assert_eq!(TableFile::open(&back).unwrap().table(), Some("rows"));
    let (a, b) = (arrow::open(&from).unwrap(), arrow::open(&back).unwrap());
    // Half floats in records are single ones.
    for info in a.tensors().iter().filter(|info| *info.dtype() != DType::F16) {
        assert_eq!(a.dyn_tensor(info.path()).unwrap(), b.dyn_tensor(info.path()).unwrap());
    }
}

fn rows_of(bytes: Vec<u8>) -> Json {
    let archive = read(bytes);
    let rows: Vec<Value> = archive.table("t").unwrap().rows(..).unwrap();
    serde_json::to_value(rows).unwrap()
}

#[test]
fn tables_of_pyarrow_hold_what_their_manifest_says() {
    let manifest = fs::read(fixtures().join("TABLES.json")).unwrap();
    let manifest: Json = serde_json::from_slice(&manifest).unwrap();
    let files = manifest.as_object().unwrap();
    assert!(files.len() > 6);
    for (name, expected) in files {
        let bytes = fs::read(fixtures().join(name)).unwrap();
        assert!(ArrowFile::new(&bytes[..]).unwrap().is_table(), "{name}");
        let file = TableFile::new(bytes.clone()).unwrap();
        let losses: Vec<_> = file.losses().listed().iter().map(ToString::to_string).collect();
        assert_eq!(json!(losses), expected["losses"], "{name}");
        let batches = file.batches().map(|rows| rows.unwrap().len()).collect::<Vec<_>>();
        assert_eq!(json!(batches), expected["batches"], "{name}");
        assert_eq!(rows_of(bytes), expected["rows"], "{name}");
    }
}

/// Reads and saves all rows, by whatever is in the file. Whether that works.
fn is_converted(bytes: &[u8]) -> bool {
    let convert = || -> Result<()> {
        let file = TableFile::new(bytes)?;
        let mut out = OArchive::new(std::io::sink())?;
        for rows in file.batches() {
            out.save(&rows?)?;
        }
        Ok(())
    };
    let (result, peak) = peak_of(convert);
    assert!(peak < 64 * MIB, "{peak} bytes");
    result.is_ok()
}

fn small() -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let days: Vec<Vec<_>> = vec![(0..2).map(event).collect(), (48..51).map(event).collect()];
    for container in [Container::File, Container::Stream] {
        all.push(written(&archive(&days), &quick().with_container(container)).0);
    }
    let manifest = fs::read(fixtures().join("TABLES.json")).unwrap();
    let manifest: Json = serde_json::from_slice(&manifest).unwrap();
    // The others are alike.
    let alike = ["table.arrows", "table_v4.arrows", "table_lz4.arrow"];
    for name in manifest.as_object().unwrap().keys().filter(|name| !alike.contains(&&***name)) {
        all.push(fs::read(fixtures().join(name)).unwrap());
    }
    all
}

#[test]
fn no_change_of_a_byte_does_harm() {
    let mut refused = 0;
    for bytes in small() {
        assert!(is_converted(&bytes));
        for at in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[at] ^= [1, 0x80, 0xff][at / 7 % 3];
            refused += usize::from(!is_converted(&changed));
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn the_greatest_numbers_do_no_harm() {
    let mut refused = 0;
    for bytes in small() {
        for number in [i64::MAX, -1, 1 << 31, 1 << 40] {
            for at in (0..bytes.len() - 8).step_by(44) {
                let mut changed = bytes.clone();
                changed[at..at + 8].copy_from_slice(&number.to_le_bytes());
                refused += usize::from(!is_converted(&changed));
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}

#[test]
fn a_table_that_was_cut_is_refused_or_shorter() {
    for bytes in small() {
        let is_file = bytes.starts_with(b"ARROW1");
        for len in (0..bytes.len()).step_by(23) {
            assert!(!is_converted(&bytes[..len]) || !is_file, "{len} of {}", bytes.len());
        }
    }
}

/// One batch at a time is in memory.
#[test]
fn a_table_takes_the_memory_of_a_batch() {
    #[derive(Serialize, Deserialize)]
    struct Row {
        id: u64,
        noise: [u64; 7],
    }
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let mut out = OArchive::create(at("a"), SaveOptions::default()).unwrap();
    let mut noise = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..16 {
        let rows = (0..16_384u64).map(|id| {
            noise = noise.rotate_left(11).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ id;
            Row { id, noise: [noise; 7].map(|n| n ^ id << 7) }
        });
        out.save_as("rows", &rows.collect::<Vec<_>>()).unwrap();
    }
    out.finish().unwrap();
    for name in ["b.arrow", "b.arrows"] {
        let (result, peak) = peak_of(|| Format::Arrow.from_archive(at("a"), at(name), &quick()));
        result.unwrap();
        assert!(fs::metadata(at(name)).unwrap().len() > 14 * MIB as u64);
        assert!(peak < 10 * MIB, "{peak} bytes to a file");
        let (result, peak) = peak_of(|| Format::Arrow.to_archive(at(name), at("c"), &quick()));
        result.unwrap();
        assert!(peak < 10 * MIB, "{peak} bytes to an archive");
        let archive = tenarc::open(at("c")).unwrap();
        assert_eq!((archive.len(), archive.table("rows").unwrap().len()), (16, 16 * 16_384));
    }
}
