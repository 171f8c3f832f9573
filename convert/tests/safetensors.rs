//! safetensors files: read, written, converted, and held against the reference implementation.

#[path = "safetensors/archives.rs"]
mod archives;
#[path = "safetensors/faults.rs"]
mod faults;
#[path = "safetensors/fixtures.rs"]
mod fixtures;
#[path = "safetensors/headers.rs"]
mod headers;
#[path = "safetensors/oracle.rs"]
mod oracle;
#[path = "safetensors/sharded.rs"]
mod sharded;
#[path = "safetensors/support.rs"]
mod support;
#[path = "safetensors/writing.rs"]
mod writing;
