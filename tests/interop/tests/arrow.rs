//! Arrow IPC: files and streams of pyarrow, of Arrow's own crates, and of ours.
// Sample values are small numbers made from an index.
#![allow(clippy::cast_precision_loss)]

#[path = "arrow/archives.rs"]
mod archives;
#[path = "arrow/faults.rs"]
mod faults;
#[path = "arrow/fixtures.rs"]
mod fixtures;
#[path = "arrow/memory.rs"]
mod memory;
#[path = "arrow/oracle.rs"]
mod oracle;
#[path = "../../common/peak.rs"]
mod peak;
#[path = "arrow/random.rs"]
mod random;
#[path = "arrow/support.rs"]
mod support;
#[path = "arrow/writing.rs"]
mod writing;
