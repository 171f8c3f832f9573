//! Measures filters over a table of 1,000,000 rows and 13 columns, of which 1 % are found by two columns.
//! `benches/python/filter.py` measures the Python package, and pyarrow on Parquet, with the same values.
//!
//! `cargo run --release --example filter`

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tenarc::archive::{Compression, Filter, SaveOptions, Table, col};
use tenarc::{Archive, OArchive};

const ROWS: u64 = 1_000_000;

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
        time: 1_790_000_000_000 + id.cast_signed() * 350,
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
        let start = Instant::now();
        run()?;
        least = least.min(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(least)
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

fn main() -> tenarc::Result<()> {
    let dir = tempfile::tempdir()?;
    let events: Vec<Event> = (0..ROWS).map(event).collect();
    for (name, compression) in [("plain", Compression::none()), ("zstd 0", Compression::zstd(0))] {
        let path = dir.path().join(name);
        let options = SaveOptions::default().with_compression(compression);
        let mut out = OArchive::create(&path, options)?;
        out.save_as("events", &events)?;
        out.finish()?;
        measure(name, &Archive::open(&path)?.table("events")?)?;
    }
    Ok(())
}
