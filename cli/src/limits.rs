//! What an input may make the command do.

use std::sync::OnceLock;

use tenarc::de::{DecodeOptions, Limits};

static MAX_MEMORY: OnceLock<u64> = OnceLock::new();

/// Sets how many bytes of memory a value may take, as `--max-memory` says.
pub fn set_max_memory(bytes: u64) {
    // It is set once, from the command line.
    let _ = MAX_MEMORY.set(bytes);
}

/// The library's limits, with the one of `--max-memory`.
pub fn limits() -> Limits {
    match MAX_MEMORY.get() {
        Some(bytes) => Limits::default().with_max_alloc(*bytes),
        None => Limits::default(),
    }
}

/// How archives are read.
pub fn decoding() -> DecodeOptions {
    DecodeOptions::default().with_limits(limits())
}
