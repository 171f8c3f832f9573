//! Arrow IPC: files and streams of pyarrow, of Arrow's own crates, and of ours.
// Sample values are small numbers made from an index.
#![allow(clippy::cast_precision_loss)]

mod archives;
mod faults;
mod fixtures;
mod memory;
mod oracle;
mod random;
mod support;
mod writing;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;
