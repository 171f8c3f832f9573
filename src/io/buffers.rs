//! Bytes that stand apart from what refers to them, in buffers with numbers: in the body of an archive's
//! segment, or wherever parts are.

use crate::error::Result;
use crate::io::shared::SharedBytes;

/// Gives payloads while a value is read. Buffers are numbered from zero.
pub trait Buffers<'de> {
    /// The length of a buffer, if there is one of this number.
    fn len_of(&self, number: u64) -> Option<u64>;

    /// How many there are.
    fn count(&self) -> u64;

    /// How many bytes of the budget an owned copy takes. Each that is read by is backed by input
    /// once; further copies are mere claims.
    fn cost(&mut self, number: u64, len: u64) -> u64;

    /// How their contents are had.
    fn contents(&mut self) -> Contents<'_, 'de>;

    /// The bytes of a small tensor inside the metadata, aligned to 16 bytes if that can be had.
    fn aligned(&self, bytes: &'de [u8]) -> &'de [u8] {
        bytes
    }
}

/// How the contents of buffers are had.
pub enum Contents<'b, 'de> {
    /// They lie in memory for as long as the input.
    Lent(&'b mut dyn Lend<'de>),
    /// They are read when they are asked for.
    Read(&'b mut dyn ReadBuffer),
    /// Only their lengths are known.
    Unknown,
}

/// Buffers in memory.
pub trait Lend<'de> {
    /// The content of a buffer.
    fn lend(&mut self, number: u64) -> Result<&'de [u8]>;

    /// The content of a buffer together with what keeps it alive, where that can be had.
    fn share(&self, _number: u64) -> Option<SharedBytes> {
        None
    }
}

/// Buffers read from front to end, one at a time.
pub trait ReadBuffer {
    /// For so many bytes memory may be asked for at once, as there is, or was, input to back them.
    fn proven(&self) -> usize;

    /// Starts to read a buffer that is referred to right before `at`.
    fn start(&mut self, number: u64, at: u64) -> Result<()>;

    /// Fills `out` with what comes next in the buffer.
    fn read(&mut self, out: &mut [u8]) -> Result<()>;

    /// All of the buffer was read.
    fn finish(&mut self) -> Result<()>;
}
