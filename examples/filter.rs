//! Measures filters over a table of 1,000,000 rows and 13 columns, of which 1 % are found by two columns, or by the column
//! in whose order the rows are. Measures also what the statistics of groups of rows cost.
//! `benches/python/filter.py` measures the Python package, and pyarrow on Parquet, with the same values.
//!
//! `cargo run --release --example filter`
//!
//! With a path and a number, it only saves so many million rows there, of which a million are in memory at a time:
//! `benches/memory/measure` needs such a file.

use std::path::Path;
use std::time::Instant;

use serde::{Deserialize, Serialize};
use tenarc::archive::{Compression, Filter, SaveOptions, Table, col};
use tenarc::io::SyncLevel;
use tenarc::{Archive, OArchive};

const ROWS: u64 = 1_000_000;
/// The time of the first row, in milliseconds.
const START: i64 = 1_790_000_000_000;

#[derive(Serialize, Deserialize)]
struct Event {
    id: u64,
    time: i64,
    score: f64,
    day: String,
    kind: Kind,
    user: u32,
    session: u64,
    size: u32,
    price: f64,
    ratio: f32,
    note: String,
    referrer: Option<u32>,
    is_new: bool,
}

#[derive(Serialize, Deserialize)]
enum Kind {
    Click,
    Scroll,
    Key,
}

/// Pseudorandom bits that depend on the row and the column.
fn random(row: u64, column: u64) -> u64 {
    let mut bits =
        row.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ column.wrapping_mul(0xd1b5_4a32_d192_ed03);
    for shift in [30, 27, 31] {
        bits = (bits ^ (bits >> shift)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    bits ^ (bits >> 31)
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn event(id: u64) -> Event {
    let share = |column| (random(id, column) >> 11) as f64 / (1u64 << 53) as f64;
    Event {
        id,
        time: START + id.cast_signed() * 350,
        score: share(1) * 100.0,
        day: format!("2026-11-{:02}", 1 + random(id, 2) % 2),
        kind: match random(id, 3) % 3 {
            0 => Kind::Click,
            1 => Kind::Scroll,
            _ => Kind::Key,
        },
        user: (random(id, 4) % 50_000) as u32,
        session: random(id, 5),
        size: (random(id, 6) % 4096) as u32,
        price: (share(7) * 1e4).round() / 100.0,
        ratio: share(8) as f32,
        note: format!("note {}", random(id, 9) % 1_000_000),
        referrer: random(id, 10).is_multiple_of(4).then_some((random(id, 11) % 1000) as u32),
        is_new: random(id, 12).is_multiple_of(2),
    }
}

/// The least of several times, in milliseconds.
fn time<T>(run: impl Fn() -> tenarc::Result<T>) -> tenarc::Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..9 {
        least = least.min(time_once(&run)?);
    }
    Ok(least)
}

fn time_once<T>(run: impl Fn() -> tenarc::Result<T>) -> tenarc::Result<f64> {
    let start = Instant::now();
    run()?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

fn measure(name: &str, table: &Table<'_, impl tenarc::io::ReadAt>) -> tenarc::Result<()> {
    let wanted: Filter = col("score").gt(98.0).and(col("day").eq("2026-11-02"));
    let found = table.filter(wanted);
    let count = found.count()?;
    println!(
        "{name}: {count} rows; count {:.1} ms, one column {:.1} ms, rows {:.1} ms",
        time(|| found.count())?,
        time(|| found.column::<Vec<u64>>("id"))?,
        time(|| found.rows::<Event>())?,
    );
    let by_number = time(|| table.filter(col("score").gt(98.0)).count())?;
    let by_text = time(|| table.filter(col("note").eq("note 77")).count())?;
    println!("{name}: count by numbers {by_number:.1} ms, by texts {by_text:.1} ms");
    Ok(())
}

/// Rows that are near each other, found with statistics of groups of rows and without.
fn measure_statistics(dir: &Path, events: &[Event]) -> tenarc::Result<()> {
    let save = |file: &str, on: bool| {
        let options = SaveOptions::default().with_statistics(on).with_sync(SyncLevel::Off);
        let mut out = OArchive::create(dir.join(file), options)?;
        out.save_as("events", events)?;
        out.finish()
    };
    let (mut with, mut without) = (f64::INFINITY, f64::INFINITY);
    // Side by side, so that other programs slow both down.
    for _ in 0..9 {
        with = with.min(time_once(|| save("with", true))?);
        without = without.min(time_once(|| save("without", false))?);
    }
    let len = |file| std::fs::metadata(dir.join(file)).map_or(0, |file| file.len());
    println!("saving {with:.1} ms, without statistics {without:.1} ms");
    println!("{} bytes, without statistics {}", len("with"), len("without"));
    for file in ["with", "without"] {
        let archive = Archive::open(dir.join(file))?;
        let table = archive.table("events")?;
        let found = table.filter(col("time").gt_eq(START + 350 * 990_000));
        println!(
            "{file} statistics: {} rows at the end; count {:.2} ms, one column {:.2} ms, rows {:.1} ms",
            found.count()?,
            time(|| found.count())?,
            time(|| found.column::<Vec<u64>>("id"))?,
            time(|| found.rows::<Event>())?,
        );
    }
    Ok(())
}

fn save_millions(path: &str, millions: u64) -> tenarc::Result<()> {
    let mut out = OArchive::create(path, SaveOptions::default())?;
    for million in 0..millions {
        let events: Vec<Event> = (million * ROWS..(million + 1) * ROWS).map(event).collect();
        out.save_as("events", &events)?;
    }
    out.finish().map(drop)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    if let [path, millions] = &args[..] {
        return Ok(save_millions(path, millions.parse()?)?);
    }
    let dir = tempfile::tempdir()?;
    let events: Vec<Event> = (0..ROWS).map(event).collect();
    for (name, compression) in [("plain", Compression::none()), ("zstd 0", Compression::zstd())] {
        let path = dir.path().join(name);
        let options = SaveOptions::default().with_compression(compression);
        let mut out = OArchive::create(&path, options)?;
        out.save_as("events", &events)?;
        out.finish()?;
        measure(name, &Archive::open(&path)?.table("events")?)?;
    }
    Ok(measure_statistics(dir.path(), &events)?)
}
