//! A trait for sources that are read in sequence.

use tenarc::Result;

/// A source of bytes that is read in sequence.
pub trait Bytes {
    /// Reads up to `out.len()` bytes. Returns their number, which is zero only at the end.
    fn read(&mut self, out: &mut [u8]) -> Result<usize>;
}
