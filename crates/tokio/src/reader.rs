//! Parts from an `AsyncRead`.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use serde::de::DeserializeOwned;
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::parts::{Buffer, BufferInfo, Parts, PartsInfo};
use tenarc::{Error, Result};
use tokio::io::{AsyncRead, ReadBuf};

/// The most bytes that one value may have, unless the options set another limit.
const MAX_LEN: u64 = 1 << 30;

/// Reads values that [`PartsWriter`](crate::PartsWriter), [`Parts::write_to`] or
/// [`Split::write_to`](tenarc::parts::Split::write_to) wrote to the other end of a connection.
///
/// Each tensor in a buffer is received directly into memory of its own, which is aligned as the sender asks. A
/// [`SharedTensor`](tenarc::tensor::SharedTensor) then uses this memory without a copy.
///
/// ```
/// use ndarray::Array2;
/// use serde::{Deserialize, Serialize};
/// use tenarc::Tensor;
/// use tenarc::tensor::SharedTensor;
/// use tenarc_tokio::{PartsReader, PartsWriter};
///
/// #[derive(Serialize)]
/// struct Frame {
///     camera: String,
///     depth: Tensor<Array2<f32>>,
/// }
///
/// #[derive(Deserialize)]
/// struct Received {
///     camera: String,
///     depth: Tensor<SharedTensor>,
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (near, far) = tokio::io::duplex(1 << 20);
/// let mut writer = PartsWriter::new(near);
/// writer.send_value(&Frame { camera: "left".into(), depth: Array2::eye(64).into() }).await?;
/// drop(writer);
///
/// let mut reader = PartsReader::new(far);
/// let frame: Received = reader.recv().await?.expect("one was sent");
/// assert!(frame.depth.is_shared());
/// assert_eq!(frame.depth.as_slice::<f32>()?[65], 1.0);
/// assert!(reader.recv::<Received>().await?.is_none()); // the end
/// # Ok::<(), tenarc::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// It is also a [`Stream`] of parts, for functions that take streams.
///
/// It reads exactly the bytes of each value. So other data may follow on the connection. Small values need several
/// small reads; tokio's `BufReader` makes one of them, and still passes large reads on.
///
/// # Cancellation
///
/// [`next`](Self::next) and [`recv`](Self::recv) are cancel safe: the bytes that have arrived stay in the reader, and
/// the next call continues from there.
///
/// # Limits
///
/// A value may have at most 1 GiB, with its metadata. [`with_options`](Self::with_options) can set another limit.
/// Memory is obtained as bytes arrive: at most 8 times as much as has arrived of a buffer, and 2 MiB.
pub struct PartsReader<R> {
    reader: R,
    options: DecodeOptions,
    /// The metadata, as far as it has arrived. The bytes after `filled` are zeros to be overwritten.
    metadata: Vec<u8>,
    filled: usize,
    /// The number of bytes of metadata that are needed, as far as it is known.
    wanted: usize,
    /// The number of calls of [`next_step`] for this metadata: see [`MAX_PROBES`].
    probes: u32,
    /// The part of the value after the metadata, as far as it has arrived.
    body: Option<Body>,
    is_lost: bool,
}

struct Body {
    info: PartsInfo,
    buffers: Vec<Buffer>,
    /// The buffer that is being received, as far as there is memory for it, and the number of its bytes that have arrived.
    current: Option<(Buffer, usize)>,
}

impl<R> fmt::Debug for PartsReader<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartsReader")
            .field("info", &self.body.as_ref().map(|body| &body.info))
            .finish_non_exhaustive()
    }
}

impl<R: AsyncRead + Unpin> PartsReader<R> {
    /// Reads from `reader`.
    pub fn new(reader: R) -> Self {
        Self::with_options(reader, DecodeOptions::default())
    }

    /// Reads with options. The memory limit applies to the metadata and all buffers of a value together. If
    /// [`Limits::with_max_alloc`](tenarc::de::Limits::with_max_alloc) has set none, it is 1 GiB.
    pub fn with_options(reader: R, options: DecodeOptions) -> Self {
        let limits = options.limits();
        let max = limits.max_alloc().unwrap_or(MAX_LEN);
        Self {
            reader,
            options: options.with_limits(limits.with_max_alloc(max)),
            metadata: Vec::new(),
            filled: 0,
            wanted: 0,
            probes: 0,
            body: None,
            is_lost: false,
        }
    }

    /// The reader.
    pub fn get_ref(&self) -> &R {
        &self.reader
    }

    /// The reader. Whoever reads from it must know which bytes follow.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// The reader. If a value has arrived in part, this part is lost.
    pub fn into_inner(self) -> R {
        self.reader
    }

    /// Receives the next value as parts, and verifies it. `None` at the end of the stream.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// - The stream fails, or ends inside a value.
    /// - The metadata is damaged, or exceeds the limits. Then it is not known where the next value starts, and all
    ///   further calls fail.
    /// - A buffer is damaged. The next call reads the next value.
    // `Iterator::next` is not async, so that the two cannot be taken for each other.
    #[allow(clippy::should_implement_trait)]
    pub async fn next(&mut self) -> Result<Option<Parts<Buffer>>> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Receives the next value. Each `SharedTensor` in it uses the memory that the tensor was received into; arrays are
    /// copied from there. `None` at the end of the stream.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// The same errors as [`next`](Self::next), and if the value does not fit the type. The next call then reads the
    /// next value.
    pub async fn recv<T: DeserializeOwned>(&mut self) -> Result<Option<T>> {
        match self.next().await? {
            Some(parts) => parts.into_shared().load_shared().map(Some),
            None => Ok(None),
        }
    }

    /// The function behind [`next`](Self::next).
    ///
    /// # Errors
    /// The same errors as [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Parts<Buffer>>>> {
        if self.is_lost {
            let what = "an earlier error left the stream at an unknown place";
            return Poll::Ready(Err(Error::damaged(what)));
        }
        let received = ready!(self.poll_parts(cx));
        if received.is_err() && self.body.is_none() {
            self.is_lost = true;
        }
        let Ok(true) = received else { return Poll::Ready(received.map(|_| None)) };
        let Some(Body { info, buffers, .. }) = self.body.take() else {
            return Poll::Ready(Ok(None));
        };
        // This verifies the buffers. The reader is ready for the next value already.
        Poll::Ready(info.with_buffers(buffers).map(Some))
    }

    /// Receives everything up to the last buffer. `false` at the end of the stream.
    fn poll_parts(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool>> {
        let mut body = match self.body.take() {
            Some(body) => body,
            None => match ready!(self.poll_metadata(cx))? {
                Some(info) => Body { info, buffers: Vec::new(), current: None },
                None => return Poll::Ready(Ok(false)),
            },
        };
        let received = body.poll_fill(&mut self.reader, cx);
        // An error of the stream loses the place in it: `body` is not put back.
        if !matches!(received, Poll::Ready(Err(_))) {
            self.body = Some(body);
        }
        received.map_ok(|()| true)
    }

    /// Receives the metadata. `None` at the end of the stream.
    fn poll_metadata(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<PartsInfo>>> {
        loop {
            while self.filled < self.wanted {
                if self.filled == self.metadata.len() {
                    // Reserves no more than has arrived already, because the length is only a claim.
                    let step = (self.wanted - self.filled).min(self.filled.max(STEP));
                    self.metadata.resize(self.filled + step, 0);
                }
                let rest = self.metadata.get_mut(self.filled..).unwrap_or_default();
                let found = ready!(poll_read(&mut self.reader, cx, rest))?;
                if found == 0 && self.filled == 0 {
                    return Poll::Ready(Ok(None));
                }
                if found == 0 {
                    let found = self.filled;
                    let what =
                        format!("the stream ends after {found} bytes of the metadata of parts");
                    return Poll::Ready(Err(Error::new(Category::Torn, what)));
                }
                self.filled += found;
            }
            match next_step(&self.metadata, self.options)? {
                Step::Complete(info) => {
                    self.metadata = Vec::new();
                    (self.filled, self.wanted, self.probes) = (0, 0, 0);
                    return Poll::Ready(Ok(Some(*info)));
                }
                Step::Needs(len) => self.wanted = len,
            }
            self.probes += 1;
            if self.probes > MAX_PROBES {
                let what =
                    "the metadata of parts have more checksums than any value within the limits";
                return Poll::Ready(Err(Error::limit(what)));
            }
        }
    }
}

/// The parts of all values. A value with a damaged buffer is an error, and the next value follows. After an error that
/// leaves the stream at an unknown place, there are no further items.
impl<R: AsyncRead + Unpin> Stream for PartsReader<R> {
    type Item = Result<Parts<Buffer>>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let reader = self.get_mut();
        if reader.is_lost {
            // The error was returned. To return it again and again would never end.
            return Poll::Ready(None);
        }
        reader.poll_next(cx).map(Result::transpose)
    }
}

/// The number of bytes of memory that are obtained for metadata before any of it has arrived.
const STEP: usize = 4 << 10;

/// The number of bytes of a buffer that are received into fresh memory at a time. They stay in the cache of the processor
/// between zeroing and receiving.
const PIECE: usize = 256 << 10;

/// The largest number of calls of [`next_step`] for one value. Each call reads the metadata from its start, so there
/// must not be many. Two find out where the header ends. Each further one gets 256 KiB of checksums, which are those of
/// at least 2 GiB of tensors.
const MAX_PROBES: u32 = 64;

enum Step {
    Complete(Box<PartsInfo>),
    /// At least this many bytes of metadata are needed.
    Needs(usize),
}

/// Checks whether the metadata is complete. If not, the number of bytes needed is what [`Parts::read_from_with`] asks
/// its reader for. It never asks for a byte more than the metadata has.
fn next_step(metadata: &[u8], options: DecodeOptions) -> Result<Step> {
    let mut prefix = Prefix { metadata, asked: 0 };
    let result = Parts::read_from_with(&mut prefix, options);
    let asked = prefix.asked;
    // The error of `PartsInfo` is that of the attempt above, or it says that metadata is missing.
    if let Ok(info) = PartsInfo::with_options(metadata, options)
        && (result.is_ok() || asked > metadata.len())
    {
        return Ok(Step::Complete(Box::new(info)));
    }
    match result {
        // It asks for long headers step by step.
        Err(_) if asked > metadata.len() => Ok(Step::Needs(asked.max(header_len(metadata)))),
        Err(error) => Err(error),
        Ok(_) => Err(Error::damaged("the metadata of parts changed while they were read")),
    }
}

/// The length of the header with its hash, from its first bytes (`SPEC.md`, section 5.2): tag 24, and the head of a
/// byte string (RFC 8949, section 3). 0 if it is not known.
fn header_len(start: &[u8]) -> usize {
    const HASH: u64 = 9;

    let (head, content) = match start {
        [0xd8, 0x18, initial @ 0x40..=0x57, ..] => (1, u64::from(initial - 0x40)),
        [0xd8, 0x18, 0x58, a, ..] => (2, u64::from(*a)),
        [0xd8, 0x18, 0x59, a, b, ..] => (3, u64::from(u16::from_be_bytes([*a, *b]))),
        [0xd8, 0x18, 0x5a, a, b, c, d, ..] => (5, u64::from(u32::from_be_bytes([*a, *b, *c, *d]))),
        [0xd8, 0x18, 0x5b, rest @ ..] => match rest.first_chunk::<8>() {
            Some(bytes) => (9, u64::from_be_bytes(*bytes)),
            None => return 0,
        },
        _ => return 0,
    };
    let total = content.checked_add(2 + head + HASH).and_then(|len| usize::try_from(len).ok());
    total.unwrap_or(0)
}

/// Metadata that may be incomplete.
struct Prefix<'a> {
    metadata: &'a [u8],
    /// How many bytes were asked for, counted from the start.
    asked: usize,
}

impl io::Read for Prefix<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let at = self.asked;
        let rest = self.metadata.get(at..).unwrap_or_default();
        if rest.is_empty() {
            self.asked = at.saturating_add(out.len());
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let len = rest.len().min(out.len());
        for (out, byte) in out.iter_mut().zip(rest) {
            *out = *byte;
        }
        self.asked = at + len;
        Ok(len)
    }
}

impl Body {
    fn poll_fill<R: AsyncRead + Unpin>(
        &mut self,
        reader: &mut R,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        while let Some(info) = self.info.buffers().get(self.buffers.len()) {
            let (buffer, filled) = match &mut self.current {
                Some(current) => current,
                current => current.insert((allocate(info)?, 0)),
            };
            let len = usize::try_from(info.byte_len()).unwrap_or(usize::MAX);
            while *filled < len {
                if *filled == buffer.len() {
                    buffer.grow(*filled + PIECE.min(len - *filled), len)?;
                }
                let rest = buffer.get_mut(*filled..).unwrap_or_default();
                let found = ready!(poll_read(reader, cx, rest))?;
                if found == 0 {
                    let number = self.buffers.len();
                    let what = format!(
                        "the stream ends after {filled} of the {len} bytes of buffer {number}"
                    );
                    let error = Error::new(Category::Torn, what).in_field(info.path());
                    return Poll::Ready(Err(error));
                }
                *filled += found;
            }
            self.buffers.extend(mem::take(&mut self.current).map(|(buffer, _)| buffer));
        }
        Poll::Ready(Ok(()))
    }
}

/// Memory for the start of a buffer, because its length is only a claim. Very small buffers get less alignment than asked for: many of them would otherwise take many
/// times the memory that is received. [`Parts::read_from`] does the same.
fn allocate(info: &BufferInfo) -> Result<Buffer> {
    const LINE: usize = 64;

    let len = usize::try_from(info.byte_len()).unwrap_or(usize::MAX);
    let asked = info.alignment();
    let alignment = if len < asked / LINE { asked.min(LINE) } else { asked };
    Buffer::zeroed(len.min(PIECE), alignment)
}

fn poll_read<R: AsyncRead + Unpin>(
    reader: &mut R,
    cx: &mut Context<'_>,
    out: &mut [u8],
) -> Poll<Result<usize>> {
    let mut out = ReadBuf::new(out);
    loop {
        match ready!(Pin::new(&mut *reader).poll_read(cx, &mut out)) {
            Ok(()) => return Poll::Ready(Ok(out.filled().len())),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Poll::Ready(Err(Error::io(error))),
        }
    }
}
