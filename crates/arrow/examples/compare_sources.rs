//! Reads 1,000,000 rows of 8 columns of numbers as record batches of Arrow: from a file, from memory that is copied, and from a
//! mapped file. Prints the times.
//!
//! ```console
//! $ cargo run --release -p tenarc-arrow --example compare_sources
//! ```
//!
//! The sources take turns, and the median of the rounds counts. The file is in the page cache. Opening it is a part of the time. In
//! the second time, the program also adds up all bytes of the arrays: a mapped file is only read when it is used.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use arrow_array::{Array, RecordBatch};
use serde::Serialize;
use tenarc::de::DecodeOptions;
use tenarc::io::ReadAt;
use tenarc::{Archive, Map, OArchive, Result};
use tenarc_arrow::ArrowTable;

const ROWS: u32 = 1_000_000;
const ROUNDS: usize = 31;

const SOURCES: [&str; 3] = ["file", "mapped file, copied", "mapped file"];

#[derive(Serialize)]
struct Row {
    id: u64,
    user: u32,
    status: i16,
    level: u8,
    bytes: i64,
    delta: i32,
    duration: f64,
    score: f32,
}

fn row(n: u32) -> Row {
    let mixed = n.wrapping_mul(0x9E37_79B1);
    Row {
        id: n.into(),
        user: mixed >> 12,
        status: (mixed % 400) as i16,
        level: (mixed >> 24) as u8,
        bytes: i64::from(mixed) << 8,
        delta: mixed.cast_signed(),
        duration: f64::from(mixed) / 3.0,
        score: f32::from((mixed % 1000) as u16),
    }
}

/// Reads the table. Returns the time until its batches are there, and until they were used.
fn read<S: ReadAt>(start: Instant, archive: &Archive<S>) -> Result<[Duration; 2]> {
    let table = ArrowTable::open(archive, "log")?;
    let mut reader = table.reader();
    let mut batches = Vec::new();
    while let Some(batch) = reader.next_batch()? {
        batches.push(batch);
    }
    let read = start.elapsed();
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), ROWS as usize);
    let arrays = batches.iter().flat_map(RecordBatch::columns).map(Array::to_data);
    let bytes =
        arrays.map(|data| data.buffers()[0].iter().map(|byte| u64::from(*byte)).sum::<u64>());
    black_box(bytes.sum::<u64>());
    Ok([read, start.elapsed()])
}

fn read_from(source: usize, path: &Path, options: DecodeOptions) -> Result<[Duration; 2]> {
    let start = Instant::now();
    if source == 0 {
        return read(start, &tenarc::open(path)?.with_options(options));
    }
    // SAFETY: nobody changes the file.
    #[allow(unsafe_code)]
    let map = unsafe { Map::open(path)? }.with_options(options);
    if source == 1 {
        // Nothing can keep borrowed bytes alive, so they are copied.
        return read(start, &Archive::new(map.source().as_ref())?.with_options(options));
    }
    read(start, &map)
}

fn main() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("log.tenarc");
    let rows: Vec<_> = (0..ROWS).map(row).collect();
    let mut out = OArchive::append(&path)?;
    out.save_as("log", &rows)?;
    out.finish()?;
    println!("{} bytes\n", std::fs::metadata(&path)?.len());

    let mut times = [const { [const { [const { Vec::new() }; 2] }; 2] }; SOURCES.len()];
    // The first round is not counted.
    for round in 0..=ROUNDS {
        for at in 0..2 * SOURCES.len() {
            // Each round begins with another one.
            let turn = (at + round) % (2 * SOURCES.len());
            let (source, verified) = (turn / 2, turn % 2);
            let options = DecodeOptions::default().with_checksums(verified == 1);
            for (times, took) in
                times[source][verified].iter_mut().zip(read_from(source, &path, options)?)
            {
                times.extend((round > 0).then_some(took));
            }
        }
    }
    println!("| source | checksums | read | read and used |\n|---|---|---:|---:|");
    for (name, times) in SOURCES.iter().zip(times) {
        for (checksums, times) in ["no", "yes"].iter().zip(times) {
            let [read, used] = times.map(|mut times| {
                times.sort();
                times[times.len() / 2].as_secs_f64() * 1e3
            });
            println!("| {name} | {checksums} | {read:.2} ms | {used:.2} ms |");
        }
    }
    Ok(())
}
