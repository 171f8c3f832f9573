//! What small appends cost: 3,000 appends of 20 rows each, in bytes, and in time without syncing.
//!
//! Run it with `cargo run --release --example appends`.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tenarc::OArchive;
use tenarc::archive::SaveOptions;
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
    std::fs::remove_file(&path)?;
    println!("{APPENDS} appends of 20 rows: {} bytes and {each:?} each", len / APPENDS);
    Ok(())
}
