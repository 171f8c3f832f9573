//! Files that earlier versions wrote stay readable, and tenarc writes the same bytes as before.
//!
//! `README.md` beside this file describes the golden files.

mod columns;
#[cfg(feature = "compression")]
mod compressed;
mod files;
#[path = "../samples/mod.rs"]
mod samples;
mod snapshots;
