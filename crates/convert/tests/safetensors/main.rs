//! safetensors files are read, written and converted as the reference implementation does it.

mod archives;
mod faults;
mod fixtures;
mod headers;
mod memory;
mod oracle;
mod sharded;
mod support;
mod writing;

#[global_allocator]
static ALLOCATOR: tenarc_test_support::alloc::Counting = tenarc_test_support::alloc::Counting;
