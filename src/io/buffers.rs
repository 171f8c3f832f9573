//! Access to buffers: numbered blocks of bytes that are stored separately from the metadata that refers
//! to them. They are in the body of an archive's segment, or in memory with [`crate::parts`].

use crate::budget::Budget;
use crate::error::Result;
use crate::mem::shared_bytes::SharedBytes;

/// The buffers that a value refers to while it is read. They are numbered from zero.
pub trait Buffers<'de> {
    /// The start and length of each buffer, in bytes.
    fn places(&self) -> &[(u64, u64)];

    /// The length of a buffer in bytes. `None` if no buffer has this number.
    fn len_of(&self, number: u64) -> Option<u64> {
        let (_, len) = self.places().get(usize::try_from(number).ok()?)?;
        Some(*len)
    }

    /// The number of buffers.
    fn count(&self) -> u64 {
        self.places().len() as u64
    }

    /// The number of bytes of the budget that are used up if `len` bytes of this buffer are read. It is the memory that
    /// this takes. `at` is the offset just after the reference to the buffer.
    fn cost(&mut self, number: u64, len: u64, at: u64) -> u64;

    /// The number of bytes of memory that the segment allows: see [`Limits::memory`](crate::options::Limits::memory). It can
    /// grow while they are read.
    fn allowed(&self) -> u64;

    /// What is left of the budget of the call that reads the value. `None` if nothing was read.
    fn budget(&self) -> Option<&Budget> {
        None
    }

    /// How to get the contents of the buffers.
    fn contents(&mut self) -> Contents<'_, 'de>;

    /// Returns the bytes of a small tensor inside the metadata, which end at offset `end`. If there is memory for an
    /// aligned copy, the copy is returned, aligned to 16 bytes.
    fn aligned(&self, _end: u64, bytes: &'de [u8]) -> &'de [u8] {
        bytes
    }
}

/// How to get the contents of buffers.
pub enum Contents<'b, 'de> {
    /// The buffers are in memory and live as long as the input.
    Lent(&'b mut dyn Lend<'de>),
    /// The buffers are read on demand.
    Read(&'b mut dyn ReadBuffer),
    /// Only the lengths are known.
    Unknown,
}

/// Buffers in memory.
pub trait Lend<'de> {
    /// The content of a buffer.
    fn lend(&mut self, number: u64) -> Result<&'de [u8]>;

    /// The content of a buffer with shared ownership, if the implementation supports it.
    fn share(&self, _number: u64) -> Option<SharedBytes> {
        None
    }
}

/// Reads buffers one at a time, each from start to end.
pub trait ReadBuffer {
    /// The number of bytes of memory that may be allocated at once, because at least that much input is known to
    /// exist.
    fn proven(&self) -> usize;

    /// Starts to read a buffer. `at` is the offset just after the reference to it, for errors.
    fn start(&mut self, number: u64, at: u64) -> Result<()>;

    /// Fills `out` with the next bytes of the buffer.
    fn read(&mut self, out: &mut [u8]) -> Result<()>;

    /// Passes over the next `len` bytes of the buffer. They still count for its checksum.
    fn skip(&mut self, len: u64) -> Result<()> {
        read_past(self, len, &mut [0; 4096])
    }

    /// Ends the buffer after all of it was read or passed over.
    fn finish(&mut self) -> Result<()>;
}

/// Reads the next `len` bytes of the buffer into `scratch`, piece by piece. `scratch` must not be empty.
pub fn read_past(
    buffer: &mut (impl ReadBuffer + ?Sized),
    len: u64,
    scratch: &mut [u8],
) -> Result<()> {
    let mut left = len;
    while left > 0 {
        let step = usize::try_from(left).unwrap_or(usize::MAX).min(scratch.len());
        buffer.read(scratch.get_mut(..step).unwrap_or_default())?;
        left -= step as u64;
    }
    Ok(())
}

/// Buffers of which only the lengths are known: the start and length of each.
pub struct BufferLengths<'a>(pub &'a [(u64, u64)]);

impl<'de> Buffers<'de> for BufferLengths<'_> {
    fn places(&self) -> &[(u64, u64)] {
        self.0
    }

    fn cost(&mut self, _: u64, _: u64, _: u64) -> u64 {
        0
    }

    fn allowed(&self) -> u64 {
        0
    }

    fn contents(&mut self) -> Contents<'_, 'de> {
        Contents::Unknown
    }
}
