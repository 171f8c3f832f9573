//! Archives on disk as a whole: saves that fail or are killed, appends, torn tails, several writers.
//! The numbers are those of a catalogue of threats.
//!
//! Tests that look at system calls need `strace` and Linux; without, they say so and pass, or fail in
//! CI. Full sweeps are `#[ignore]`d, and `.ci/run` runs them; by default a sample of each runs.

#![cfg(unix)]
#![allow(unsafe_code)]
#![allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)]
#![allow(clippy::items_after_statements)]

#[path = "archive_files/append.rs"]
mod append;
#[path = "archive_files/child.rs"]
mod child;
#[path = "archive_files/disk.rs"]
mod disk;
#[path = "archive_files/killed.rs"]
mod killed;
#[path = "common/needed.rs"]
mod needed;
#[path = "archive_files/processes.rs"]
mod processes;
#[path = "archive_files/saving.rs"]
mod saving;
#[path = "archive_files/support.rs"]
mod support;
#[path = "archive_files/torn.rs"]
mod torn;
#[path = "archive_files/trace.rs"]
mod trace;
