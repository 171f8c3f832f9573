//! What small appends cost: 3,000 appends of 20 rows each, in bytes, and in time without syncing. Then they are compacted, and
//! compared with one save of all rows.
//!
//! Run it with `cargo run --release --example appends`.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tenarc::OArchive;
use tenarc::archive::{Compaction, SaveOptions};
use tenarc::io::SyncLevel;

#[derive(Serialize, Deserialize)]
struct Event {
    id: u64,
    score: f32,
}

const APPENDS: u64 = 3000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join(format!("tenarc-appends-{}.tenarc", std::process::id()));
    let options = || SaveOptions::default().with_sync(SyncLevel::Off);
    OArchive::create(&path, options())?.finish()?;
    let start = Instant::now();
    for day in 0..APPENDS {
        let events: Vec<_> = (0..20).map(|id| Event { id: day * 20 + id, score: 0.5 }).collect();
        let mut out = OArchive::append_with(&path, options())?;
        out.save_as("events", &events)?;
        out.finish()?;
    }
    let each = start.elapsed() / u32::try_from(APPENDS)?;
    let len = std::fs::metadata(&path)?.len();
    let archive = tenarc::open(&path)?;
    assert_eq!(archive.table("events")?.len(), 20 * APPENDS);
    archive.verify()?;
    println!("{APPENDS} appends of 20 rows: {} bytes and {each:?} each", len / APPENDS);
    let rows: Vec<Event> = archive.table("events")?.rows(..)?;
    let start = Instant::now();
    let compacted = Compaction::new().replace(&path, options())?;
    let took = start.elapsed();
    let mut once = OArchive::new(Vec::new())?;
    once.save_as("events", &rows)?;
    let once = once.finish()?.len();
    let (before, after) = (compacted.bytes_before(), compacted.bytes());
    println!(
        "compacted from {before} to {after} bytes in {took:?}; one save of all rows: {once} bytes"
    );
    assert!(after * 20 <= once as u64 * 21);
    std::fs::remove_file(&path)?;
    Ok(())
}
