//! Parts to an `AsyncWrite`.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use serde::Serialize;
use tenarc::archive::SaveOptions;
use tenarc::parts::{Parts, Piece, Split};
use tenarc::{Error, Result};
use tokio::io::AsyncWrite;

/// Writes values as parts, for a [`PartsReader`](crate::PartsReader) or [`Parts::read_from`] at the other end of a
/// connection: the metadata, and then the tensors, without joining them in memory. `SPEC.md`, section 6, defines the
/// bytes.
///
/// ```
/// use tenarc::Tensor;
/// use tenarc_tokio::{PartsReader, PartsWriter};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (near, far) = tokio::io::duplex(1 << 20);
/// let mut writer = PartsWriter::new(near);
/// writer.send_value(&Tensor(vec![0.5f32; 1000])).await?;         // directly from the value's memory
/// writer.send(tenarc::to_parts(&Tensor(vec![1u8; 5000]))?).await?; // parts from elsewhere
///
/// let mut reader = PartsReader::new(far);
/// assert_eq!(reader.recv::<Tensor<Vec<f32>>>().await?.unwrap().len(), 1000);
/// assert_eq!(reader.next().await?.unwrap().buffers()[0].len(), 5000);
/// # Ok::<(), tenarc::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Both functions return after everything was written and the writer was flushed, so a slow receiver slows the sender
/// down. If the writer supports vectored writes, one call writes the metadata and up to 64 buffers.
///
/// # Cancellation
///
/// A value is sent as a whole or not at all, even if a future is dropped at any place. The rest of the value then stays
/// in the `PartsWriter`, and the next call of [`send`](Self::send), [`send_value`](Self::send_value) or
/// [`flush`](Self::flush) writes it first. If the writer itself is dropped, the receiver gets an error of category
/// [`Torn`](tenarc::error::Category::Torn).
pub struct PartsWriter<W> {
    writer: W,
    /// Bytes that must be written before anything else.
    queue: VecDeque<Bytes>,
    /// Whether the rest of a value could not be kept, or the writer has failed.
    is_lost: bool,
}

impl<W> fmt::Debug for PartsWriter<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartsWriter").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

impl<W> PartsWriter<W> {
    /// The number of bytes that a dropped future has left behind, and that the next call will write.
    pub fn pending(&self) -> usize {
        self.queue.iter().map(Bytes::len).sum()
    }

    /// The writer.
    pub fn get_ref(&self) -> &W {
        &self.writer
    }

    /// The writer. Before writing to it, call [`flush`](Self::flush).
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    /// The writer. Bytes that are [pending](Self::pending) are lost.
    pub fn into_inner(self) -> W {
        self.writer
    }
}

impl<W: AsyncWrite + Unpin> PartsWriter<W> {
    /// Writes to `writer`.
    pub fn new(writer: W) -> Self {
        Self { writer, queue: VecDeque::new(), is_lost: false }
    }

    /// Sends parts. Their buffers are not copied, whatever they are: [`Buffer`](tenarc::parts::Buffer), [`Bytes`],
    /// [`SharedBytes`](tenarc::io::SharedBytes).
    ///
    /// Cancel safe: if the future is dropped, the parts will be sent by the next call, or were not taken at all because
    /// an earlier value is still pending.
    ///
    /// # Errors
    /// If the writer fails, or a buffer no longer has its original length.
    pub async fn send<B>(&mut self, parts: Parts<B>) -> Result<()>
    where
        B: AsRef<[u8]> + Send + 'static,
    {
        // Not more than one value is kept in memory.
        poll_fn(|cx| self.poll_drain(cx)).await?;
        let lengths: Vec<u64> = parts.info().buffers().iter().map(|info| info.byte_len()).collect();
        let (metadata, buffers) = parts.into_inner();
        // From here on, `as_ref` is not called again: it may return something else on every call.
        let buffers: Vec<Bytes> = buffers.into_iter().map(Bytes::from_owner).collect();
        for (number, (buffer, len)) in buffers.iter().zip(lengths).enumerate() {
            if buffer.len() as u64 != len {
                let found = buffer.len();
                let what = format!("expected {len} bytes of buffer {number}, found {found}");
                return Err(Error::data(what));
            }
        }
        self.queue.push_back(metadata.into());
        self.queue.extend(buffers);
        self.flush().await
    }

    /// Sends a borrowed value. Tensors that are contiguous in memory are written directly from there. Others, such as
    /// strided arrays and plain vectors of numbers, are first copied, together with everything after them.
    ///
    /// The checksums are computed first, which reads every tensor. To leave them out, use
    /// [`send_value_with`](Self::send_value_with).
    ///
    /// Cancel safe: if the future is dropped, the rest of the value is copied, and will be sent by the next call.
    ///
    /// # Errors
    /// If the writer or the value's `Serialize` fails. After an error in the middle of a value, all further calls fail.
    pub async fn send_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.send_value_with(value, SaveOptions::default()).await
    }

    /// Like [`send_value`](Self::send_value), with options: which tensors go to buffers, how the receiver aligns these,
    /// and whether they have checksums.
    ///
    /// # Errors
    /// The same errors as [`send_value`](Self::send_value), and if the options are invalid.
    pub async fn send_value_with<T: Serialize + ?Sized>(
        &mut self,
        value: &T,
        options: SaveOptions,
    ) -> Result<()> {
        poll_fn(|cx| self.poll_drain(cx)).await?;
        let split = Split::with_options(value, options)?;
        self.queue.push_back(Bytes::copy_from_slice(split.metadata()));
        let total = split.info().byte_len();
        let mut sending = Sending { writer: self, split, taken: 0, total };
        poll_fn(|cx| sending.poll(cx)).await?;
        drop(sending);
        self.flush().await
    }

    /// Writes the bytes that are [pending](Self::pending), and flushes the writer.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// If the writer fails.
    pub async fn flush(&mut self) -> Result<()> {
        poll_fn(|cx| self.poll_drain(cx)).await?;
        poll_fn(|cx| Pin::new(&mut self.writer).poll_flush(cx))
            .await
            .map_err(|error| self.lost(error))
    }

    /// Writes everything in the queue.
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if self.is_lost {
            let what = "an earlier value could not be sent as a whole";
            return Poll::Ready(Err(Error::io(io::Error::new(io::ErrorKind::BrokenPipe, what))));
        }
        while self.queue.front().is_some() {
            ready!(self.poll_write(&[], cx)).map_err(|error| self.lost(error))?;
        }
        Poll::Ready(Ok(()))
    }

    fn lost(&mut self, error: io::Error) -> Error {
        self.is_lost = true;
        Error::io(error)
    }

    /// Writes some of the queue and then of `block`. Returns how many bytes of `block` were written.
    fn poll_write(&mut self, block: &[u8], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        const MOST: usize = 64;

        while self.queue.front().is_some_and(Bytes::is_empty) {
            self.queue.pop_front();
        }
        if self.queue.is_empty() && block.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let writer = Pin::new(&mut self.writer);
        let mut written = if writer.is_write_vectored() {
            let mut slices = [IoSlice::new(&[]); MOST];
            let blocks = self.queue.iter().map(|bytes| &bytes[..]).chain([block]);
            let blocks = blocks.filter(|block| !block.is_empty());
            let count = slices
                .iter_mut()
                .zip(blocks)
                .map(|(slice, block)| *slice = IoSlice::new(block))
                .count();
            let slices = slices.get(..count).unwrap_or_default();
            ready!(writer.poll_write_vectored(cx, slices))?
        } else {
            let first = self.queue.front().map_or(block, |bytes| &bytes[..]);
            ready!(writer.poll_write(cx, first))?
        };
        if written == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        while let Some(first) = self.queue.front_mut() {
            let len = first.len().min(written);
            first.advance(len);
            written -= len;
            if !first.is_empty() {
                break;
            }
            self.queue.pop_front();
        }
        Poll::Ready(Ok(written.min(block.len())))
    }
}

/// A value that is being sent.
///
/// Its memory is only accessible while it is serialized. So it is serialized again each time that the writer was not
/// ready, and the bytes that were written already are skipped.
struct Sending<'w, 'v, W: AsyncWrite + Unpin, T: Serialize + ?Sized> {
    writer: &'w mut PartsWriter<W>,
    split: Split<'v, T>,
    /// The number of bytes of the buffers that were written, or are in the writer's queue.
    taken: u64,
    /// The total length of all buffers.
    total: u64,
}

/// Smaller pieces are copied together before they are written.
const DIRECT: usize = 16 << 10;

/// The largest number of bytes that are copied together, if the tensors are contiguous.
const STAGE: usize = 256 << 10;

/// Why a value was not sent to its end.
enum Stop {
    /// The writer is not ready.
    Pending,
    /// Enough was copied to the queue, which must be written first.
    Full,
    Failed(io::Error),
}

impl<W: AsyncWrite + Unpin, T: Serialize + ?Sized> Sending<'_, '_, W, T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<()>> {
        while self.taken < self.total {
            match self.walk(Some(cx)) {
                Ok(None) if self.taken < self.total => {
                    self.writer.is_lost = true;
                    let what = "the value became shorter while it was sent";
                    return Poll::Ready(Err(Error::data(what)));
                }
                Ok(None) => {}
                Ok(Some(Stop::Pending)) => return Poll::Pending,
                Ok(Some(Stop::Full)) => ready!(self.writer.poll_drain(cx))?,
                Ok(Some(Stop::Failed(error))) => return Poll::Ready(Err(self.writer.lost(error))),
                Err(error) => {
                    self.writer.is_lost = true;
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Serializes the value, and writes what was not written yet. Without a context, copies all of it to the queue.
    fn walk(&mut self, mut cx: Option<&mut Context<'_>>) -> Result<Option<Stop>> {
        let Self { writer, split, taken, .. } = self;
        let mut stage = Vec::new();
        let mut stop = None;
        let mut at = 0u64;
        // A piece that is not a whole buffer is a copy that serializing made. It would be made again each time, so that
        // from there on everything is copied to the queue at once.
        let mut is_costly = false;
        let result = split.pieces(|Piece { buffer, bytes, .. }| {
            let start = at;
            at = at.saturating_add(bytes.len() as u64);
            is_costly |= (bytes.len() as u64) < buffer.byte_len();
            if at <= *taken {
                return Ok(());
            }
            let skipped = usize::try_from(*taken - start).unwrap_or(usize::MAX);
            let mut rest = bytes.get(skipped..).unwrap_or_default();
            match &mut cx {
                Some(cx) if !is_costly && rest.len() >= DIRECT => {
                    if !stage.is_empty() {
                        writer.queue.push_back(mem::take(&mut stage).into());
                    }
                    while !rest.is_empty() {
                        let reason = match writer.poll_write(rest, cx) {
                            Poll::Ready(Ok(written)) => {
                                rest = rest.get(written..).unwrap_or_default();
                                *taken += written as u64;
                                continue;
                            }
                            Poll::Ready(Err(error)) => Stop::Failed(error),
                            Poll::Pending => Stop::Pending,
                        };
                        stop = Some(reason);
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                }
                cx => {
                    stage.extend_from_slice(rest);
                    *taken += rest.len() as u64;
                    if cx.is_some() && !is_costly && stage.len() >= STAGE {
                        stop = Some(Stop::Full);
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                }
            }
            Ok(())
        });
        if !stage.is_empty() {
            writer.queue.push_back(stage.into());
        }
        match (stop, result) {
            (Some(stop), _) => Ok(Some(stop)),
            (None, result) => result.map(|()| None),
        }
    }
}

/// A future that is dropped in the middle of a value leaves the rest in the queue.
impl<W: AsyncWrite + Unpin, T: Serialize + ?Sized> Drop for Sending<'_, '_, W, T> {
    fn drop(&mut self) {
        if self.taken == self.total || self.writer.is_lost {
            return;
        }
        let kept = self.walk(None);
        self.writer.is_lost = kept.is_err() || self.taken != self.total;
    }
}
