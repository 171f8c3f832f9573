//! Reads a stream batch by batch.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::container;
use super::contents;
use super::message::{self, MAGIC, PREFIX, Place, Prefix};
use super::read::ArrowFile;
use super::schema::Schema;
use crate::Losses;
use crate::support::{alloc_budget, over_memory, read_all};

/// The most bytes that are allocated before the first of them has been received.
const STEP: usize = 64 << 10;

/// The record batches of a stream, read from any reader. A file can be read like a stream. One batch at a time is in
/// memory.
///
/// ```
/// use tenarc_convert::TensorFile as _;
/// use tenarc_convert::arrow::{self, Batches, Options};
/// use tenarc::{IArchive, OArchive, Tensor};
///
/// let options = Options::default().with_rows_per_batch(2);
/// let mut bytes = Vec::new();
/// arrow::to_writer_with(&mut bytes, &[("x", vec![1.0f32, 2.0, 3.0])], &options)?;
///
/// let mut out = OArchive::new(Vec::new())?;
/// for batch in Batches::new(&bytes[..])? {
///     out.save(&batch?.flat()?)?;
/// }
/// # #[derive(serde::Deserialize)] struct Batch { x: Tensor<Vec<f32>> }
/// let bytes = out.finish()?;
/// let mut archive = IArchive::new(&bytes[..])?;
/// let batch: Batch = archive.load()?;
/// assert_eq!(*batch.x, [1.0, 2.0]);
/// let batch: Batch = archive.load()?;
/// assert_eq!(*batch.x, [3.0]);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// Nothing is read after the end-of-stream marker.
pub struct Batches<R> {
    /// `None` after the end of the stream, or after an error.
    reader: Option<Counted<R>>,
    schema: Arc<Schema>,
    limits: Limits,
}

impl<R> fmt::Debug for Batches<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("ended", &self.reader.is_none()).finish_non_exhaustive()
    }
}

/// The body of a batch, which is in memory. Its offsets are those of the stream.
pub struct Body {
    start: u64,
    bytes: Vec<u8>,
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("len", &self.bytes.len()).finish_non_exhaustive()
    }
}

impl ReadAt for Body {
    fn read_at(&self, out: &mut [u8], offset: u64) -> io::Result<usize> {
        match offset.checked_sub(self.start) {
            Some(offset) => self.bytes.read_at(out, offset),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the offset is before the body of the record batch",
            )),
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.start.saturating_add(self.bytes.len() as u64))
    }
}

impl<R: Read> Batches<R> {
    /// Reads the schema at the start of the stream.
    ///
    /// # Errors
    /// If the reader fails, or ends before the schema does. Also the errors of [`ArrowFile::new`].
    pub fn new(reader: R) -> Result<Self> {
        Self::with_limits(reader, Limits::default())
    }

    /// Like [`new`](Self::new), with limits. They limit the bytes of each message, which are 16 GiB by default. They
    /// also apply to the tensors of each batch, as if set by [`ArrowFile::with_limits`].
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn with_limits(reader: R, limits: Limits) -> Result<Self> {
        let mut reader = Counted { reader, at: 0 };
        let mut prefix = reader.prefix()?;
        if let Some(first) = prefix {
            // The head of a file has the size of a prefix. A message follows it.
            let [head @ .., _, _] = first;
            container::check_head(head)?;
            if head == MAGIC {
                prefix = reader.prefix()?;
            }
        }
        let mut losses = Losses::default();
        let schema = reader.message(prefix, limits, |message, place, _| {
            container::schema(message, place, &mut losses, Schema::read)
        })?;
        let mut schema =
            schema.ok_or_else(|| Error::eof("the schema at the start of a stream").at(0))?;
        schema.losses.extend(losses);
        Ok(Self { reader: Some(reader), schema: Arc::new(schema), limits })
    }

    fn read(&mut self) -> Result<Option<ArrowFile<Body>>> {
        let Some(reader) = &mut self.reader else { return Ok(None) };
        loop {
            let prefix = reader.prefix()?;
            let (schema, limits) = (&self.schema, self.limits);
            let read = reader.message(prefix, limits, |message, place, body| {
                if message.header_as_dictionary_batch().is_some() {
                    return Ok(None);
                }
                let mut batches = contents::Batches::new(Arc::clone(schema));
                container::batch(message, place, &mut batches, &body)?;
                Ok(Some(ArrowFile::of(body, batches.finish()?, limits)))
            })?;
            match read {
                None => return Ok(None),
                Some(Some(batch)) => return Ok(Some(batch)),
                Some(None) => {}
            }
        }
    }
}

impl<R: Read> Iterator for Batches<R> {
    type Item = Result<ArrowFile<Body>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.read().transpose();
        if !matches!(next, Some(Ok(_))) {
            // After an error, it is unknown where the next message starts.
            self.reader = None;
        }
        next
    }
}

/// A reader that counts the bytes it has read.
struct Counted<R> {
    reader: R,
    at: u64,
}

impl<R: Read> Counted<R> {
    /// Reads the prefix of a message. Returns `None` at the end of the input.
    fn prefix(&mut self) -> Result<Option<Prefix>> {
        let mut prefix = Prefix::default();
        let start = self.at;
        match read_all(&mut self.reader, &mut prefix).map_err(|error| error.at(start))? {
            0 => Ok(None),
            found => {
                self.at += found as u64;
                if found < prefix.len() {
                    let what = format!("the {PREFIX} bytes that start a message");
                    return Err(Error::eof(&what).at(self.at));
                }
                Ok(Some(prefix))
            }
        }
    }

    /// Reads the message after a prefix, and passes it to `read`. Returns `None` at the end of the stream.
    fn message<T>(
        &mut self,
        prefix: Option<Prefix>,
        limits: Limits,
        read: impl FnOnce(&arrow_ipc::Message<'_>, &Place, Body) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(prefix) = prefix else { return Ok(None) };
        let front = self.at.saturating_sub(PREFIX);
        let Some(len) = message::metadata_len(prefix).map_err(|error| error.at(front))? else {
            return Ok(None);
        };
        let start = self.at;
        let most = alloc_budget(limits, false);
        let metadata = self.bytes(len, most, "metadata")?;
        let (message, body) = message::message(&metadata).map_err(|error| error.at(start))?;
        let body_start = self.at;
        let bytes = self.bytes(body, most.saturating_sub(len), "a body")?;
        let place = Place { metadata: start..body_start, body: body_start..self.at };
        read(&message, &place, Body { start: body_start, bytes })
            .map(Some)
            .map_err(|error| error.at(start))
    }

    /// Reads `len` bytes. Fails if there are more than `most`. Memory grows as bytes are received.
    fn bytes(&mut self, len: u64, most: u64, what: &str) -> Result<Vec<u8>> {
        if len > most {
            let what = format!("a message has {what} of {len} bytes, the limit is {most}");
            return Err(over_memory(what).at(self.at));
        }
        let mut bytes = Vec::new();
        let mut left = usize::try_from(len).unwrap_or(usize::MAX);
        while left > 0 {
            let done = bytes.len();
            // Each step doubles the memory, but never exceeds the length.
            let step = left.min(done.max(STEP));
            bytes.try_reserve_exact(step).map_err(|_| {
                Error::limit(format!("out of memory: cannot allocate {step} bytes to read into"))
                    .at(self.at)
            })?;
            bytes.resize(done + step, 0);
            let read = read_all(&mut self.reader, bytes.get_mut(done..).unwrap_or_default());
            let read = read.map_err(|error| error.at(self.at))?;
            self.at = self.at.saturating_add(read as u64);
            if read < step {
                return Err(Error::eof(&format!("{left} bytes of {what}")).at(self.at));
            }
            left -= step;
        }
        Ok(bytes)
    }
}
