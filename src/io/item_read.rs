//! Items that were taken from a document before, as an input of the decoder.

use crate::error::Result;
use crate::io::source::{Bytes, Read, SliceRead, Source};

/// Reads items from memory. If they were copied from the document, values cannot borrow from them.
pub struct ItemRead<'de, 'a> {
    items: SliceRead<'a>,
    /// The items, if they are borrowed from the document.
    input: Option<&'de [u8]>,
    /// Offset of the items in the document.
    base: u64,
}

impl<'de, 'a> ItemRead<'de, 'a> {
    pub fn new(items: &'a Bytes<'de, '_>, base: u64) -> Self {
        let input = match items {
            Bytes::Borrowed(bytes) => Some(*bytes),
            Bytes::Copied(_) | Bytes::Owned(_) => None,
        };
        Self { items: SliceRead::new(items.as_slice()), input, base }
    }

    fn start(&self) -> usize {
        usize::try_from(self.items.offset()).unwrap_or(usize::MAX)
    }
}

/// The bytes `taken`, which are at `start` in `input`.
#[inline]
fn lent<'de, 's>(input: Option<&'de [u8]>, start: usize, taken: &'s [u8]) -> Bytes<'de, 's> {
    match input.and_then(|input| input.get(start..start + taken.len())) {
        Some(bytes) => Bytes::Borrowed(bytes),
        None => Bytes::Copied(taken),
    }
}

impl<'de> Read<'de> for ItemRead<'de, '_> {}

impl<'de> Source<'de> for ItemRead<'de, '_> {
    #[inline(always)]
    fn window(&self) -> &[u8] {
        self.items.window()
    }

    #[inline(always)]
    fn fill(&mut self, _: usize) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn advance(&mut self, n: usize) {
        self.items.advance(n);
    }

    fn short<'s>(&'s mut self, skip: usize, len: usize) -> Option<Bytes<'de, 's>> {
        let (input, start) = (self.input, self.start() + skip);
        match self.items.short(skip, len)? {
            Bytes::Borrowed(taken) => Some(lent(input, start, taken)),
            Bytes::Copied(taken) => Some(Bytes::Copied(taken)),
            Bytes::Owned(taken) => Some(Bytes::Owned(taken)),
        }
    }

    #[inline(always)]
    fn offset(&self) -> u64 {
        self.base + self.items.offset()
    }

    #[inline(always)]
    fn remaining(&self) -> Option<usize> {
        self.items.remaining()
    }

    /// The document that the items are from has allowed memory for them.
    fn allowed(&self) -> u64 {
        0
    }

    fn take<'s>(&'s mut self, len: usize, what: &str) -> Result<Bytes<'de, 's>> {
        let (input, base, start) = (self.input, self.base, self.start());
        match self.items.take(len, what).map_err(|error| error.moved_by(base))? {
            Bytes::Borrowed(taken) => Ok(lent(input, start, taken)),
            Bytes::Copied(taken) => Ok(Bytes::Copied(taken)),
            Bytes::Owned(taken) => Ok(Bytes::Owned(taken)),
        }
    }

    fn read_exact(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        self.items.read_exact(out, what).map_err(|error| error.moved_by(self.base))
    }

    type Mark = u64;

    #[inline(always)]
    fn mark(&self, from: u64) -> u64 {
        self.items.mark(from - self.base)
    }

    fn marked<'m>(&'m self, mark: &'m u64) -> (u64, &'m [u8]) {
        let (from, bytes) = self.items.marked(mark);
        (from + self.base, bytes)
    }

    fn record(&mut self) {
        self.items.record();
    }

    fn recorded(&mut self) -> Bytes<'de, 'static> {
        let recorded = self.items.recorded();
        let start = self.start() - recorded.as_slice().len();
        match lent(self.input, start, recorded.as_slice()) {
            Bytes::Borrowed(bytes) => Bytes::Borrowed(bytes),
            other => Bytes::Owned(other.as_slice().to_vec()),
        }
    }
}
