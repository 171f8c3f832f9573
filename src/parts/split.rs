//! Parts of a borrowed value, sent without copying its tensors.

use std::fmt;
use std::io;

use serde::Serialize;

use super::info::{BufferInfo, PartsInfo, assemble};
use crate::error::{Error, Result};
use crate::io::chunks::Hashes;
use crate::io::sink::{Sink, Stage};
use crate::options::DecodeOptions;
use crate::plan::Plan;
use crate::plan::pass::Output;
use crate::segment::options::SaveOptions;

/// A borrowed value, split into metadata and buffers to be sent. Unlike [`Parts`](crate::parts::Parts), it does
/// not copy the tensors.
///
/// The metadata is made at once. With checksums this reads every tensor;
/// [`SaveOptions::with_checksums`] turns them off if the transport has its own. Sending serializes the value
/// again and passes on each buffer:
///
/// - A tensor whose memory is already in the format that is sent is passed on in one piece, without a copy.
///   On little-endian hosts this is every contiguous array, in row- or column-major order.
/// - Other tensors, such as a strided view or a [`Deferred`](crate::tensor::Deferred) tensor, and plain vectors of
///   numbers, are passed on in blocks, which are copies.
///
/// ```
/// use ndarray::Array2;
/// use tenarc::Tensor;
/// use tenarc::parts::Split;
///
/// let model = vec![Tensor(Array2::<f32>::eye(64)), Tensor(Array2::zeros((64, 64)))];
/// let split = Split::new(&model)?;
/// let mut sent = vec![split.metadata().to_vec()];
/// split.each_buffer(|info, bytes| {
///     assert_eq!(info.shape(), [64, 64]);
///     sent.push(bytes.to_vec()); // socket.send(bytes)?
///     Ok(())
/// })?;
///
/// let (metadata, buffers) = sent.split_first().unwrap();
/// let back: Vec<Tensor<Array2<f32>>> = tenarc::from_parts(metadata, buffers)?;
/// assert_eq!(back, model);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Split<'a, T: ?Sized> {
    value: &'a T,
    options: SaveOptions,
    plan: Plan,
    info: PartsInfo,
}

impl<T: ?Sized> fmt::Debug for Split<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Split").field("info", &self.info).finish_non_exhaustive()
    }
}

/// The next bytes of a buffer to be sent.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Piece<'a> {
    /// The buffer.
    pub buffer: &'a BufferInfo,
    /// The position of the bytes in the buffer.
    pub offset: u64,
    /// The bytes. This is the whole buffer if the tensor's memory is already in the format that is sent.
    pub bytes: &'a [u8],
}

impl fmt::Debug for Piece<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piece")
            .field("buffer", self.buffer)
            .field("offset", &self.offset)
            .field("len", &self.bytes.len())
            .finish_non_exhaustive()
    }
}

impl<'a, T: Serialize + ?Sized> Split<'a, T> {
    /// Splits a value.
    ///
    /// # Errors
    /// If the value's `Serialize` fails, or the value changes between the two passes over it.
    pub fn new(value: &'a T) -> Result<Self> {
        Self::with_options(value, SaveOptions::default())
    }

    /// Like [`new`](Self::new), with options.
    ///
    /// # Errors
    /// The same errors as [`new`](Self::new), and if the alignment is not a power of two from 8 to 65,536.
    pub fn with_options(value: &'a T, options: SaveOptions) -> Result<Self> {
        options.check()?;
        let plan = Plan::new(&value, &options)?;
        let hashes = if options.checksums && !plan.lengths.is_empty() {
            plan.emit(&value, &options, true, &mut Nowhere)?
        } else {
            Hashes::default()
        };
        let info = info(&plan, &options, &hashes)?;
        Ok(Self { value, options, plan, info })
    }

    /// The metadata, which must be sent first.
    pub fn metadata(&self) -> &[u8] {
        &self.info.metadata
    }

    /// The description of the buffers in the metadata.
    pub fn info(&self) -> &PartsInfo {
        &self.info
    }

    /// Calls `each` with the buffers in order, in pieces. A buffer is one piece if its tensor's memory is
    /// already in the format that is sent, otherwise several.
    ///
    /// # Errors
    /// If `each` or the value's `Serialize` fails, or the value has changed since the metadata was made.
    pub fn pieces(&self, each: impl FnMut(Piece<'_>) -> io::Result<()>) -> Result<()> {
        let mut pieces = BufferPieces { info: &self.info, number: 0, offset: 0, each };
        self.emit(&mut pieces)
    }

    /// Calls `each` with every whole buffer, in order. A tensor that is not contiguous in memory is first
    /// copied together, one buffer at a time.
    ///
    /// # Errors
    /// If `each` or the value's `Serialize` fails, or the value has changed since the metadata was made.
    pub fn each_buffer(
        &self,
        each: impl FnMut(&BufferInfo, &[u8]) -> io::Result<()>,
    ) -> Result<()> {
        let mut whole =
            WholeBuffers { info: &self.info, number: 0, gathered: Vec::new(), given: false, each };
        self.emit(&mut whole)
    }

    /// Writes the metadata and then the buffers, without padding, like
    /// [`Parts::write_to`](crate::parts::Parts::write_to).
    /// [`Parts::read_from`](crate::parts::Parts::read_from) reads it.
    ///
    /// # Errors
    /// If the writer or the value's `Serialize` fails, or the value has changed since the metadata was made.
    pub fn write_to<W: io::Write>(&self, mut writer: W) -> Result<()> {
        let writer: &mut dyn io::Write = &mut writer;
        let mut sink = Stage::sink(writer);
        sink.put_block(self.metadata())?;
        self.emit(&mut Through(&mut sink))?;
        sink.flush()
    }

    fn emit(&self, out: &mut dyn Output) -> Result<()> {
        if self.plan.lengths.is_empty() {
            return Ok(());
        }
        self.plan.emit(&self.value, &self.options, false, out).map(drop)
    }
}

/// The description of the parts of a value, with their metadata.
pub fn info(plan: &Plan, options: &SaveOptions, hashes: &Hashes) -> Result<PartsInfo> {
    let content = plan.content(None, options);
    PartsInfo::with_options(assemble(&content, hashes)?, DecodeOptions::default())
}

/// Discards the bytes: only the checksums are wanted.
struct Nowhere;

impl Output for Nowhere {
    fn begin(&mut self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn put(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

struct Through<'a, W: io::Write>(&'a mut Sink<Stage<W>>);

impl<W: io::Write> Output for Through<'_, W> {
    fn begin(&mut self, _: u64, _: u64) -> Result<()> {
        Ok(())
    }

    fn put(&mut self, block: &[u8]) -> Result<()> {
        self.0.put_block(block)
    }
}

struct BufferPieces<'a, F> {
    info: &'a PartsInfo,
    number: u64,
    offset: u64,
    each: F,
}

fn buffer(info: &PartsInfo, number: u64) -> Result<&BufferInfo> {
    let found = usize::try_from(number).ok().and_then(|number| info.buffers().get(number));
    found.ok_or_else(|| crate::segment::buffers::no_such(number))
}

impl<F: FnMut(Piece<'_>) -> io::Result<()>> Output for BufferPieces<'_, F> {
    fn begin(&mut self, number: u64, _: u64) -> Result<()> {
        (self.number, self.offset) = (number, 0);
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let buffer = buffer(self.info, self.number)?;
        (self.each)(Piece { buffer, offset: self.offset, bytes }).map_err(Error::io)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

struct WholeBuffers<'a, F> {
    info: &'a PartsInfo,
    number: u64,
    /// The bytes so far of a buffer that comes in several blocks.
    gathered: Vec<u8>,
    given: bool,
    each: F,
}

impl<F: FnMut(&BufferInfo, &[u8]) -> io::Result<()>> Output for WholeBuffers<'_, F> {
    fn begin(&mut self, number: u64, _: u64) -> Result<()> {
        self.number = number;
        self.given = false;
        self.gathered.clear();
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let buffer = buffer(self.info, self.number)?;
        if bytes.len() as u64 == buffer.byte_len() {
            self.given = true;
            return (self.each)(buffer, bytes).map_err(Error::io);
        }
        if self.gathered.is_empty() {
            // The whole length at once, so that the vector does not grow and move.
            let len = usize::try_from(buffer.byte_len()).unwrap_or(usize::MAX);
            crate::io::sink::reserve(&mut self.gathered, len)?;
        }
        crate::io::sink::reserve(&mut self.gathered, bytes.len())?;
        self.gathered.extend_from_slice(bytes);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        if self.given {
            return Ok(());
        }
        (self.each)(buffer(self.info, self.number)?, &self.gathered).map_err(Error::io)
    }
}
