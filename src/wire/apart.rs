//! Payloads that go apart from the metadata which refers to them, while a value is written.

use crate::dtype::DType;
use crate::error::Result;
use crate::io::sink::{Memory, Overflow, Sink, Stage};
use crate::meta::TensorMeta;

/// What a value is written to.
pub trait Target: Overflow {
    /// Where large payloads go, if not into the same bytes as all else.
    #[inline(always)]
    fn apart(&mut self) -> Option<&mut dyn Apart> {
        None
    }
}

impl Target for Memory {}

impl<W: std::io::Write> Target for Stage<W> {}

/// Takes payloads while a value is written; had from a [`Target`].
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

impl<T: Target> Sink<T> {
    /// Where large payloads go, if not here.
    #[inline(always)]
    pub fn apart(&mut self) -> Option<&mut dyn Apart> {
        self.overflow_mut().apart()
    }

    /// Where a large payload goes, if `takes` says so when it is shown what was written so far.
    #[inline(always)]
    pub fn apart_if(
        &mut self,
        takes: impl FnOnce(&mut dyn Apart, &[u8]) -> bool,
    ) -> Option<&mut dyn Apart> {
        let (written, target) = self.pending();
        let apart = target.apart()?;
        if takes(apart, written) { Some(apart) } else { None }
    }
}
