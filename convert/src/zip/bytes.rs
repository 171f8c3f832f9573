//! Bytes that come one after the other.

use tenarc::Result;

/// Gives bytes one after the other.
pub trait Bytes {
    /// Reads up to `out.len()` bytes; how many it were. Zero only at the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize>;
}
