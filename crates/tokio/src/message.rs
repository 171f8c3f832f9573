//! Messages in frames that begin with their length.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use bytes::{Buf, BufMut, BytesMut};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tenarc::de::DecodeOptions;
use tenarc::error::Category;
use tenarc::ser::EncodeOptions;
use tenarc::{Error, Result};
use tokio_util::codec::{Decoder, Encoder};

/// How frames are told apart: each begins with the number of bytes that follow.
///
/// By default the length is an unsigned integer of 32 bits in big-endian order, and a frame has at most 8 MiB after it.
/// This is what [`LengthDelimitedCodec`](tokio_util::codec::LengthDelimitedCodec) does by default, so a peer without
/// this crate can use that codec and any CBOR library.
///
/// ```text
/// ┌────────────────┬───────────────────┐
/// │ length n       │ n bytes: one CBOR │
/// │ 4 or 8 bytes   │ item (RFC 8949)   │
/// └────────────────┴───────────────────┘
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    is_wide: bool,
    is_little_endian: bool,
    max_len: usize,
}

impl Default for Framing {
    fn default() -> Self {
        Self { is_wide: false, is_little_endian: false, max_len: 8 << 20 }
    }
}

impl Framing {
    /// Writes and reads the length as an unsigned integer of 64 bits. Needed for frames of 4 GiB and more.
    #[must_use]
    pub fn with_u64_length(self) -> Self {
        Self { is_wide: true, ..self }
    }

    /// Writes and reads the length in little-endian order.
    #[must_use]
    pub fn with_little_endian(self) -> Self {
        Self { is_little_endian: true, ..self }
    }

    /// Sets the most bytes that a frame may have after its length. Longer ones are neither written nor read.
    #[must_use]
    pub fn with_max_len(self, bytes: usize) -> Self {
        Self { max_len: bytes, ..self }
    }

    /// The number of bytes that the length takes.
    fn head_len(self) -> usize {
        if self.is_wide { 8 } else { 4 }
    }

    /// The most bytes that a frame may have.
    fn limit(self) -> usize {
        let most = if self.is_wide { u64::MAX } else { u32::MAX.into() };
        self.max_len.min(usize::try_from(most).unwrap_or(usize::MAX))
    }

    fn put_len(self, out: &mut [u8], len: usize) {
        // `limit` makes sure that the length fits.
        let len = len as u64;
        let bytes = if self.is_little_endian { len.to_le_bytes() } else { len.to_be_bytes() };
        let bytes = match (self.is_wide, self.is_little_endian) {
            (true, _) => &bytes[..],
            (false, true) => &bytes[..4],
            (false, false) => &bytes[4..],
        };
        out.copy_from_slice(bytes);
    }

    /// The length in the first bytes of a frame. `None` if some of these bytes are missing.
    fn len_of(self, mut start: &[u8]) -> Option<u64> {
        if start.len() < self.head_len() {
            return None;
        }
        Some(match (self.is_wide, self.is_little_endian) {
            (true, true) => start.get_u64_le(),
            (true, false) => start.get_u64(),
            (false, true) => start.get_u32_le().into(),
            (false, false) => start.get_u32().into(),
        })
    }
}

/// A codec for [`Framed`](tokio_util::codec::Framed) and its relatives. It sends values of any type that implements
/// `Serialize`, also borrowed ones, and receives values of type `T`. Each is a message of tenarc in a frame: see
/// [`Framing`].
///
/// ```
/// use futures::{SinkExt, StreamExt};
/// use serde::{Deserialize, Serialize};
/// use tenarc::Tensor;
/// use tenarc_tokio::MessageCodec;
/// use tokio_util::codec::Framed;
///
/// #[derive(Serialize, Deserialize, Debug, PartialEq)]
/// struct Reading {
///     sensor: String,
///     samples: Tensor<Vec<f32>>,
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let (client, server) = tokio::io::duplex(1024);
/// let mut client = Framed::new(client, MessageCodec::<u32>::new());
/// let mut server = Framed::new(server, MessageCodec::<Reading>::new());
///
/// let reading = Reading { sensor: "a".into(), samples: vec![0.5; 100].into() };
/// client.send(&reading).await?;
/// assert_eq!(server.next().await.transpose()?, Some(reading));
/// server.send(7u32).await?;
/// assert_eq!(client.next().await.transpose()?, Some(7));
/// # Ok::<(), tenarc::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Values of all types can be sent, also by one `Framed`. So `flush` and `close` of futures' `SinkExt`, which get no value,
/// need a type, or the compiler finds them ambiguous (E0283). Any type that can be sent will do:
///
/// ```
/// use futures::SinkExt;
/// use tenarc_tokio::MessageCodec;
/// use tokio_util::codec::FramedWrite;
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// # let (near, _far) = tokio::io::duplex(1024);
/// let mut requests = FramedWrite::new(near, MessageCodec::<()>::new());
/// requests.feed("a").await?;
/// requests.feed("b").await?;
/// SinkExt::<&str>::flush(&mut requests).await?;
/// SinkExt::<&str>::close(&mut requests).await?;
/// # Ok::<(), tenarc::Error>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// **Memory.** A received frame is collected in the buffer of `Framed`, which grows as bytes arrive, and then decoded:
/// tensors are copied once. A value that is sent is encoded into the buffer of `Framed`. For large tensors, use
/// [`PartsWriter`](crate::PartsWriter) and [`PartsReader`](crate::PartsReader), which avoid both.
///
/// **Errors.** If a value cannot be encoded, or is too long, nothing of it is sent, and further values can be sent.
/// After an error while receiving, `Framed` ends the stream: this is how `tokio_util` treats errors of all decoders. If
/// a peer may send values of other types, receive a [`tenarc::Value`], and convert it to a `T` with
/// [`tenarc::from_value`].
///
/// **Cancellation.** `StreamExt::next` of a `Framed` is cancel safe. If `SinkExt::send` is dropped, the value is sent
/// as a whole by the next call, or not at all.
pub struct MessageCodec<T> {
    framing: Framing,
    encode: EncodeOptions,
    decode: DecodeOptions,
    /// The length of the frame whose head was read.
    wanted: Option<usize>,
    received: PhantomData<fn() -> T>,
}

impl<T> MessageCodec<T> {
    /// A codec with the default framing and options.
    pub fn new() -> Self {
        Self::with_framing(Framing::default())
    }

    /// A codec with this framing.
    pub fn with_framing(framing: Framing) -> Self {
        let (encode, decode) = (EncodeOptions::default(), DecodeOptions::default());
        Self { framing, encode, decode, wanted: None, received: PhantomData }
    }

    /// Sets the options for values that are sent.
    #[must_use]
    pub fn with_encode_options(self, options: EncodeOptions) -> Self {
        Self { encode: options, ..self }
    }

    /// Sets the options for values that are received, such as the limits.
    #[must_use]
    pub fn with_decode_options(self, options: DecodeOptions) -> Self {
        Self { decode: options, ..self }
    }
}

impl<T> Default for MessageCodec<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for MessageCodec<T> {
    fn clone(&self) -> Self {
        Self { received: PhantomData, ..*self }
    }
}

impl<T> fmt::Debug for MessageCodec<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageCodec")
            .field("framing", &self.framing)
            .field("wanted", &self.wanted)
            .finish_non_exhaustive()
    }
}

impl<T, U: Serialize> Encoder<U> for MessageCodec<T> {
    type Error = Error;

    fn encode(&mut self, value: U, dst: &mut BytesMut) -> Result<()> {
        let (start, head) = (dst.len(), self.framing.head_len());
        dst.put_bytes(0, head);
        let limit = self.framing.limit();
        let mut out = Limited { dst, left: limit, is_full: false };
        let result = tenarc::ser::to_writer_with(&mut out, &value, self.encode);
        let is_full = out.is_full;
        if let Err(error) = result {
            dst.truncate(start);
            return Err(if is_full {
                Error::limit(format!("the message is longer than the limit of {limit} bytes"))
            } else {
                error
            });
        }
        let len = dst.len() - start - head;
        if let Some(out) = dst.get_mut(start..start + head) {
            self.framing.put_len(out, len);
        }
        Ok(())
    }
}

/// Appends to a buffer, up to a limit.
struct Limited<'a> {
    dst: &'a mut BytesMut,
    left: usize,
    is_full: bool,
}

impl io::Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(left) = self.left.checked_sub(bytes.len()) else {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        };
        self.left = left;
        self.dst.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<T: DeserializeOwned> Decoder for MessageCodec<T> {
    type Item = T;
    type Error = Error;

    fn decode(&mut self, src: &mut BytesMut) -> Result<Option<T>> {
        let Some(len) = self.wanted.map_or_else(|| self.head(src), |len| Ok(Some(len)))? else {
            return Ok(None);
        };
        let missing = len.saturating_sub(src.len());
        if missing > 0 {
            // The length is only a claim. At most as much memory is reserved as has arrived, or a little.
            src.reserve(missing.min(src.len().max(STEP)));
            return Ok(None);
        }
        self.wanted = None;
        let frame = src.split_to(len);
        tenarc::de::from_slice_with(&frame, self.decode).map(Some)
    }

    fn decode_eof(&mut self, src: &mut BytesMut) -> Result<Option<T>> {
        let value = self.decode(src)?;
        if value.is_none() && (self.wanted.is_some() || !src.is_empty()) {
            let found = src.len();
            let what = match self.wanted {
                Some(len) => format!("the stream ends after {found} of the {len} bytes of a frame"),
                None => format!("the stream ends after {found} bytes of the length of a frame"),
            };
            return Err(Error::new(Category::Torn, what));
        }
        Ok(value)
    }
}

/// The number of bytes of memory that are reserved for a frame before any of it has arrived.
const STEP: usize = 8 << 10;

impl<T> MessageCodec<T> {
    /// Reads the length of the next frame.
    fn head(&mut self, src: &mut BytesMut) -> Result<Option<usize>> {
        let Some(len) = self.framing.len_of(src) else {
            return Ok(None);
        };
        let limit = self.framing.limit();
        let Some(len) = usize::try_from(len).ok().filter(|&len| len <= limit) else {
            let what = format!("a frame of {len} bytes was announced, the limit is {limit}");
            return Err(Error::limit(what));
        };
        src.advance(self.framing.head_len());
        self.wanted = Some(len);
        Ok(Some(len))
    }
}
