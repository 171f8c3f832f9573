//! The limits on what an input can make the command do.

use std::num::NonZeroUsize;
use std::sync::OnceLock;

use tenarc::de::{DecodeOptions, Limits};

static MAX_MEMORY: OnceLock<u64> = OnceLock::new();

/// Sets how many bytes of memory a value may take, from `--max-memory`.
pub fn set_max_memory(bytes: u64) {
    // The limit is set once, from the command line.
    let _ = MAX_MEMORY.set(bytes);
}

/// Returns the library's limits. `--max-memory` replaces the limit of memory.
pub fn limits() -> Limits {
    match MAX_MEMORY.get() {
        Some(bytes) => Limits::default().with_max_alloc(*bytes),
        None => Limits::default(),
    }
}

/// Returns the options for decoding archives. As many threads as there are cores read and verify large tensors.
pub fn decoding() -> DecodeOptions {
    let cores = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    DecodeOptions::default().with_limits(limits()).with_threads(cores)
}
