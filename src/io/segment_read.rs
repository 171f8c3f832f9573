//! The metadata of a segment as an input of the decoder.

use crate::error::Result;
use crate::io::buffers::Buffers;
use crate::io::source::{Bytes, Read, SliceRead, Source};

/// Reads the metadata of a segment. References to buffers are resolved through `buffers`.
pub struct SegmentRead<'de, 'b> {
    metadata: SliceRead<'de>,
    /// Offset of the metadata in the archive.
    base: u64,
    buffers: &'b mut dyn Buffers<'de>,
}

impl<'de, 'b> SegmentRead<'de, 'b> {
    pub fn new(metadata: &'de [u8], base: u64, buffers: &'b mut dyn Buffers<'de>) -> Self {
        Self { metadata: SliceRead::new(metadata), base, buffers }
    }
}

impl<'de> Read<'de> for SegmentRead<'de, '_> {}

impl<'de> Source<'de> for SegmentRead<'de, '_> {
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

    fn is_metadata(&self) -> bool {
        true
    }

    fn allowed(&self) -> u64 {
        self.metadata.allowed().max(self.buffers.allowed())
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

    fn aligned(&mut self, bytes: &'de [u8], align: usize) -> &'de [u8] {
        if (bytes.as_ptr() as usize).is_multiple_of(align) {
            return bytes;
        }
        // The bytes were taken right before, so they end at the current offset.
        self.buffers.aligned(self.offset(), bytes)
    }
}
