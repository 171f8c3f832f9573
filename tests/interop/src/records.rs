//! Sequences of records, each written as rows and as columns, for another implementation of columns to read.

// The numbers are only samples.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_precision_loss,
    clippy::manual_is_multiple_of,
    clippy::option_option
)]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

use ndarray::Array2;
use serde::Serialize;
use serde_bytes::ByteBuf;
use tenarc::archive::SaveOptions;
use tenarc::ser::EncodeOptions;
use tenarc::{OArchive, Tensor, Value};

use crate::Tally;

#[derive(Clone, Serialize)]
struct Record {
    id: u64,
    label: String,
    small: i16,
    single: f32,
    double: f64,
    ok: bool,
    nothing: (),
    letter: char,
    bytes: ByteBuf,
    maybe: Option<i32>,
    perhaps: Option<Option<bool>>,
    list: Vec<String>,
    numbers: Vec<u16>,
    floats: [f32; 3],
    tuple: (u8, String),
    map: BTreeMap<String, u8>,
    by_number: BTreeMap<i8, bool>,
    kind: Kind,
    tensor: Tensor<Array2<f32>>,
    wide: i128,
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u8>,
    inner: Inner,
    children: Vec<Inner>,
}

#[derive(Clone, Copy, Serialize)]
struct Inner {
    x: f64,
    flag: bool,
    pair: (i32, i32),
}

#[derive(Clone, Serialize)]
enum Kind {
    Unit,
    One(u32),
    Two(i8, String),
    Fields { a: bool, b: Option<u8> },
}

fn record(n: u32) -> Record {
    let text = |len: u32| "äb\u{1f600}c".chars().cycle().take(len as usize).collect::<String>();
    let inner = Inner { x: f64::from(n) / 3.0, flag: n % 3 == 1, pair: (n as i32, -1) };
    Record {
        id: u64::from(n) << (n % 40),
        label: text(n % 7),
        small: (n as i16) * 99 - 1000,
        single: n as f32 * 0.1,
        double: 1.0 / f64::from(n + 1),
        ok: n % 2 == 0,
        nothing: (),
        letter: if n % 2 == 0 { 'x' } else { '\u{fc}' },
        bytes: ByteBuf::from(vec![n as u8; n as usize % 3]),
        maybe: (n % 3 == 0).then_some(-(n as i32)),
        perhaps: (n % 4 > 0).then_some((n % 4 > 1).then_some(n % 4 == 2)),
        list: (0..n % 4).map(text).collect(),
        numbers: (0..n % 5).map(|i| (i * 300) as u16).collect(),
        floats: [n as f32, 0.5, -1.0],
        tuple: (n as u8, text(2)),
        map: (0..n % 3).map(|i| (text(i), i as u8)).collect(),
        by_number: (0..n % 3).map(|i| (-(i as i8), i == 1)).collect(),
        kind: match n % 4 {
            0 => Kind::Unit,
            1 => Kind::One(n),
            2 => Kind::Two(-3, text(1)),
            _ => Kind::Fields { a: n % 8 == 3, b: (n % 3 == 0).then_some(7) },
        },
        tensor: Tensor(Array2::from_elem((2, 3), n as f32)),
        wide: i128::MIN + i128::from(n),
        skipped: (n % 5 == 0).then_some(5),
        inner,
        children: vec![inner; n as usize % 3],
    }
}

pub fn write(dir: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(dir)?;
    let records: Vec<Record> = (0..100).map(record).collect();
    put(dir, "records", &records)?;
    put(dir, "first", &records[..16])?;
    // Sequences inside a value are columns from 128 elements on.
    let many: Vec<Record> = (0..300).map(record).collect();
    put(dir, "nested", &BTreeMap::from([("a", &many[..130]), ("b", &many[130..])]))?;
    put(dir, "points", &records.iter().map(|each| each.inner).collect::<Vec<_>>())?;
    put(dir, "triangles", &(0..50).map(|n| [[n as f32; 3]; 3]).collect::<Vec<_>>())?;
    put(dir, "kinds", &records.iter().map(|each| each.kind.clone()).collect::<Vec<_>>())?;
    let floats = |n: u32| Floats { a: n as f32, b: (0.5, -1.0) };
    put(dir, "floats", &(0..70_000).map(floats).collect::<Vec<_>>())?;
    let mixed = |n: u32| if n % 7 == 3 { Value::from("text") } else { Value::from(n) };
    put(dir, "mixed", &(0..40).map(|n| (n, mixed(n))).collect::<Vec<_>>())?;
    Ok(())
}

#[derive(Serialize)]
struct Floats {
    a: f32,
    b: (f32, f32),
}

fn put<T: Serialize + ?Sized>(dir: &Path, name: &str, value: &T) -> Result<(), Box<dyn Error>> {
    fs::write(dir.join(format!("{name}.rows")), tenarc::to_vec(value)?)?;
    let options = EncodeOptions::default().with_columns(true);
    fs::write(dir.join(format!("{name}.columns")), tenarc::ser::to_vec_with(value, options)?)?;
    let options = SaveOptions::default().with_columns(true).with_inline_below(64);
    let mut archive = OArchive::with_options(Vec::new(), options)?;
    archive.save(value)?;
    fs::write(dir.join(format!("{name}.tenarc")), archive.finish()?)?;
    Ok(())
}

/// Compares the columns that the other implementation wrote, `NAME.again`, with the rows.
pub fn check(dir: &Path) -> Result<Tally, Box<dyn Error>> {
    let mut tally = Tally::default();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.extension().is_none_or(|found| found != "again") {
            continue;
        }
        let name = path.display().to_string();
        let bytes = fs::read(&path)?;
        let rows: Value = tenarc::from_slice(&fs::read(path.with_extension("plain"))?)?;
        let result = match tenarc::from_slice::<Value>(&bytes) {
            Err(error) => Err(error.to_string()),
            Ok(_) if !bytes.windows(4).any(|four| four == b"TCOL") => Err("no columns".to_owned()),
            Ok(found) if found.to_string() != rows.to_string() => Err("other rows".to_owned()),
            Ok(_) => Ok(()),
        };
        tally.note(&name, result);
    }
    Ok(tally)
}
