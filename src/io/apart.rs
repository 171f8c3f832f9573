//! Payloads that stand apart from the metadata which refers to them: in the body of an archive's
//! segment, or wherever parts are.

use crate::dtype::DType;
use crate::error::Result;
use crate::io::shared::SharedBytes;
use crate::io::source::{Bytes, Read, SliceRead, sealed};
use crate::meta::TensorMeta;

/// Takes payloads while a value is written; asked through
/// [`Overflow::apart`](super::sink::Overflow::apart).
///
/// Each question comes with what was written so far, which tells where in the value the payload
/// stands.
pub trait Apart {
    /// Whether a tensor of so many bytes goes to a buffer.
    fn takes_tensor(&mut self, written: &[u8], meta: &TensorMeta, len: usize) -> bool;

    /// Whether bytes or numbers that are one block go to a buffer.
    fn takes_block(&mut self, written: &[u8], dtype: &DType, len: usize) -> bool;

    /// Whether a sequence whose first element is a number, and which would take so many bytes if
    /// all are of its type, goes to a buffer; then the number of this question.
    fn takes_sequence(&mut self, written: &[u8], dtype: &DType, len: usize) -> Option<usize>;

    /// The sequence asked about has elements of several types: it must be written plainly.
    fn mixed(&mut self, sequence: usize);

    /// Starts a buffer of so many bytes. Whether its content is wanted; if not,
    /// [`Apart::end`] comes next.
    fn begin(&mut self, len: usize) -> Result<bool>;

    fn put(&mut self, block: &[u8]) -> Result<()>;

    /// Ends the buffer; its number.
    fn end(&mut self) -> Result<u64>;
}

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
    fn settle(&self, bytes: &'de [u8]) -> &'de [u8] {
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

/// Reading a metadata block, whose tensors stand in buffers.
pub struct SegmentRead<'de, 'b> {
    metadata: SliceRead<'de>,
    /// Where the metadata starts in the archive.
    base: u64,
    buffers: &'b mut dyn Buffers<'de>,
}

impl<'de, 'b> SegmentRead<'de, 'b> {
    pub fn new(metadata: &'de [u8], base: u64, buffers: &'b mut dyn Buffers<'de>) -> Self {
        Self { metadata: SliceRead::new(metadata), base, buffers }
    }
}

impl sealed::Sealed for SegmentRead<'_, '_> {}

impl<'de> Read<'de> for SegmentRead<'de, '_> {
    #[inline(always)]
    fn window(&self) -> &[u8] {
        self.metadata.window()
    }

    #[inline(always)]
    fn fill(&mut self, _: usize) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn advance(&mut self, n: usize) {
        self.metadata.advance(n);
    }

    #[inline(always)]
    fn short<'s>(&'s mut self, skip: usize, len: usize) -> Option<Bytes<'de, 's>> {
        self.metadata.short(skip, len)
    }

    #[inline(always)]
    fn offset(&self) -> u64 {
        self.base + self.metadata.offset()
    }

    #[inline(always)]
    fn remaining(&self) -> Option<usize> {
        self.metadata.remaining()
    }

    fn bounds_itself(&self) -> bool {
        // One buffer may be referred to any number of times.
        false
    }

    #[inline(always)]
    fn take<'s>(&'s mut self, len: usize, what: &str) -> Result<Bytes<'de, 's>> {
        let base = self.base;
        self.metadata.take(len, what).map_err(|error| error.moved_by(base))
    }

    fn read_exact(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        let bytes = self.take(out.len(), what)?;
        out.copy_from_slice(bytes.as_slice());
        Ok(())
    }

    type Mark = u64;

    #[inline(always)]
    fn mark(&self, from: u64) -> u64 {
        self.metadata.mark(from - self.base)
    }

    fn marked<'a>(&'a self, mark: &'a u64) -> (u64, &'a [u8]) {
        let (from, bytes) = self.metadata.marked(mark);
        (from + self.base, bytes)
    }

    fn record(&mut self) {
        self.metadata.record();
    }

    fn recorded(&mut self) -> Bytes<'de, 'static> {
        self.metadata.recorded()
    }

    fn buffers(&mut self) -> Option<&mut dyn Buffers<'de>> {
        Some(&mut *self.buffers)
    }

    fn settle(&mut self, bytes: &'de [u8], align: usize) -> &'de [u8] {
        if (bytes.as_ptr() as usize).is_multiple_of(align) {
            return bytes;
        }
        self.buffers.settle(bytes)
    }
}
