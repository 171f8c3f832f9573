//! Writing payloads to separate buffers.
//!
//! In an archive, the bytes of large tensors are not written between the metadata but to buffers of
//! their own, and the metadata refers to these buffers by number. A [`Target`] can have an [`BufferSink`]
//! that decides which payloads go to a buffer, and that receives their bytes.

use crate::dtype::DType;
use crate::error::Result;
use crate::io::compressed::Precompressed;
use crate::io::sink::{Memory, Overflow, Stage};
use crate::meta::TensorMeta;
use crate::wire::statistics::StatisticsBuilder;

/// The destination of an encoded value.
pub trait Target: Overflow {
    /// The receiver of payloads that go to separate buffers. `None` if everything goes into the same
    /// stream of bytes, as in a message.
    fn apart(&mut self) -> Option<&mut dyn BufferSink> {
        None
    }
}

impl Target for Memory {}

impl<W: std::io::Write> Target for Stage<W> {}

/// The form in which a payload that is compressed already is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    Nothing,
    /// Its bytes, decompressed.
    Content,
    /// Its bytes as they are stored.
    Stored,
}

/// Receives payloads for separate buffers while a value is written. See [`Target::apart`].
///
/// The `takes_` methods get `written`, the metadata written so far. From it, the implementation can
/// find out where in the value the payload is.
pub trait BufferSink {
    /// Whether a tensor of `len` bytes goes to a buffer.
    fn takes_tensor(&mut self, written: &[u8], meta: &TensorMeta, len: usize) -> bool;

    /// Whether `len` bytes of numbers, or of a byte string, that are available as one block go to a
    /// buffer.
    fn takes_block(&mut self, written: &[u8], dtype: &DType, len: usize) -> bool;

    /// Whether a sequence goes to a buffer whose first element is a number of type `dtype`. `len` is
    /// its length in bytes if all elements have that type. If so, returns the number of this
    /// sequence, for [`BufferSink::mixed`].
    fn takes_sequence(&mut self, written: &[u8], dtype: &DType, len: usize) -> Option<usize>;

    /// Whether a sequence of records that starts here is written as columns, if the options leave this open.
    /// `position` is the number of bytes of metadata so far. `written` may be only the last of them.
    fn takes_columns(&mut self, written: &[u8], position: u64) -> bool;

    /// Reports that columns contain something that may hold tensors.
    fn columns_with_tensors(&mut self);

    /// What collects the statistics of the columns that are the whole value, if these are wanted.
    fn statistics(&mut self) -> Option<&mut StatisticsBuilder> {
        None
    }

    /// Reports that the elements of this sequence have different types, so that it must be written
    /// as a plain array.
    fn mixed(&mut self, sequence: usize);

    /// Starts a buffer of `len` bytes. Returns whether its content is needed. If it is not, the
    /// caller calls [`BufferSink::end`] without calling [`BufferSink::put`].
    fn begin(&mut self, len: usize) -> Result<bool>;

    /// Starts a buffer of `len` bytes whose content is compressed already. Returns what the caller passes to
    /// [`BufferSink::put`] before it calls [`BufferSink::end`].
    fn begin_compressed(&mut self, len: usize, content: &Precompressed) -> Result<Wanted>;

    /// Appends bytes to the current buffer.
    fn put(&mut self, block: &[u8]) -> Result<()>;

    /// Ends the current buffer and returns its number.
    fn end(&mut self) -> Result<u64>;
}
