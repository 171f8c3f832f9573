//! Reading a stream batch by batch.

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
use crate::support::{alloc_budget, read_all};

/// Memory that is asked for at once on a mere claim.
const STEP: usize = 64 << 10;

/// The record batches of a stream, or of a file that is read like one, from any reader: each by itself, and one
/// in memory at a time.
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
/// Behind the mark that ends a stream nothing is read.
pub struct Batches<R> {
    /// None once it has ended, or failed.
    reader: Option<Counted<R>>,
    schema: Arc<Schema>,
    limits: Limits,
}

impl<R> fmt::Debug for Batches<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").field("ended", &self.reader.is_none()).finish_non_exhaustive()
    }
}

/// The body of a batch, at its position in the stream.
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
            None => Err(io::Error::new(io::ErrorKind::InvalidInput, "in front of a batch")),
        }
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.start.saturating_add(self.bytes.len() as u64))
    }
}

impl<R: Read> Batches<R> {
    /// Reads the schema that a stream begins with.
    ///
    /// # Errors
    /// Where the reader fails or ends, and as [`ArrowFile::new`].
    pub fn new(reader: R) -> Result<Self> {
        Self::with_limits(reader, Limits::default())
    }

    /// As [`new`](Self::new), with limits: each batch may take as many bytes as they allow to be allocated, by
    /// default 16 GiB; then [`ArrowFile::with_limits`] applies to it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_limits(reader: R, limits: Limits) -> Result<Self> {
        let mut reader = Counted { reader, at: 0 };
        let mut prefix = reader.prefix()?;
        if let Some(first) = prefix {
            // A file begins with as many bytes as stand in front of a message.
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
        let mut schema = schema.ok_or_else(|| Error::eof("the schema of a stream").at(0))?;
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
            // Nothing is known of what follows.
            self.reader = None;
        }
        next
    }
}

/// A reader that knows where it is.
struct Counted<R> {
    reader: R,
    at: u64,
}

impl<R: Read> Counted<R> {
    /// What stands in front of a message; none where there is nothing more.
    fn prefix(&mut self) -> Result<Option<Prefix>> {
        let mut prefix = Prefix::default();
        let start = self.at;
        match read_all(&mut self.reader, &mut prefix).map_err(|error| error.at(start))? {
            0 => Ok(None),
            found => {
                self.at += found as u64;
                if found < prefix.len() {
                    let what = format!("{PREFIX} bytes in front of a message");
                    return Err(Error::eof(&what).at(self.at));
                }
                Ok(Some(prefix))
            }
        }
    }

    /// The message behind a prefix; none at the end.
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

    /// So many bytes, if they are allowed; memory follows those received.
    fn bytes(&mut self, len: u64, most: u64, what: &str) -> Result<Vec<u8>> {
        if len > most {
            let what = format!("{what} of {len} bytes, {most} are allowed");
            return Err(Error::limit(what).at(self.at));
        }
        let mut bytes = Vec::new();
        let mut left = usize::try_from(len).unwrap_or(usize::MAX);
        while left > 0 {
            let done = bytes.len();
            // Doubling, but never beyond what there will be.
            let step = left.min(done.max(STEP));
            bytes.try_reserve_exact(step).map_err(|_| {
                Error::limit(format!("out of memory: {step} more bytes to read")).at(self.at)
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
