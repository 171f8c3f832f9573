//! Tensors that are fetched when they are written: how often, and what goes wrong.
//! `tests/memory/deferred.rs` measures how much memory that takes.

mod faults;
mod fetches;
mod kinds;
mod nested;

use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;

/// The default, but for syncing, which tests of contents need not wait for.
fn quick() -> SaveOptions {
    SaveOptions::default().with_sync(SyncLevel::Off)
}
