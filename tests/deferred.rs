//! Tensors that are fetched when they are written: how often, in how much memory, and what goes wrong.

mod common;
#[path = "deferred/faults.rs"]
mod faults;
#[path = "deferred/fetches.rs"]
mod fetches;
#[path = "deferred/kinds.rs"]
mod kinds;
#[path = "deferred/memory.rs"]
mod memory;
#[path = "deferred/nested.rs"]
mod nested;
#[path = "common/peak.rs"]
mod peak;

use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;

/// The default, but for syncing, which tests of contents need not wait for.
fn quick() -> SaveOptions {
    SaveOptions::default().with_sync(SyncLevel::Off)
}
