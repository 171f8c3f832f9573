//! Objects that are written from front to end.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::error::{Error, Kind, Result};
use crate::objects::{Objects, Put, Upload};

/// The length of the first parts.
const PART: usize = 16 << 20;
/// The memory for parts that are being written.
const MEMORY: usize = 8 * PART;
/// The most requests at once.
const AT_ONCE: usize = 32;
/// Parts become longer after so many of them: stores take 10,000 at most.
const SAME: usize = 1000;

/// The length of parts.
#[derive(Clone, Copy, Debug, Default)]
pub enum PartLen {
    /// They become longer, so that 10,000 of them are enough for 6 TB.
    #[default]
    Growing,
    Fixed(usize),
}

impl PartLen {
    /// The length of the part with this number.
    fn of(self, number: usize) -> usize {
        match self {
            Self::Growing => PART * (1 + number / SAME).pow(2),
            Self::Fixed(len) => len,
        }
    }
}

/// Writes an object in parts, without seeking. [`Store::writer`](crate::Store::writer) makes one, and an
/// [`OArchive`](tenarc::OArchive) writes to it.
///
/// The object appears when [`finish`](Self::finish) returns. If it is dropped before, nothing is left.
///
/// An object of up to 16 MiB is written by one request. Parts have 16 MiB, and become longer after each 1,000 of them. At most
/// 128 MiB are in memory, or two parts where they are longer. Its methods wait for the store, so use it on a thread that
/// may wait.
pub struct ObjectWriter {
    objects: Arc<dyn Objects>,
    key: String,
    put: Put,
    runtime: Handle,
    part: Vec<u8>,
    lengths: PartLen,
    /// The number of parts that were started.
    parts: usize,
    /// `None` before the first part, and after the object is complete.
    upload: Option<Box<dyn Upload>>,
    running: JoinSet<Result<()>>,
}

impl fmt::Debug for ObjectWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectWriter")
            .field("key", &self.key)
            .field("parts", &self.parts)
            .finish_non_exhaustive()
    }
}

impl ObjectWriter {
    pub(crate) fn new(
        objects: Arc<dyn Objects>,
        key: String,
        put: Put,
        lengths: PartLen,
        runtime: Handle,
    ) -> Self {
        Self {
            objects,
            key,
            put,
            runtime,
            part: Vec::new(),
            lengths,
            parts: 0,
            upload: None,
            running: JoinSet::new(),
        }
    }

    /// The length of the part that is being filled.
    fn part_len(&self) -> usize {
        self.lengths.of(self.parts)
    }

    /// The most parts that are being written at once. One more is being filled.
    fn at_once(&self) -> usize {
        (MEMORY / self.part_len()).saturating_sub(1).clamp(1, AT_ONCE)
    }

    /// Starts to write the part that is full.
    fn send(&mut self) -> Result<()> {
        if self.upload.is_none() {
            self.upload = Some(self.runtime.block_on(self.objects.upload(&self.key))?);
        }
        while self.running.len() >= self.at_once() {
            self.wait()?;
        }
        let content = Bytes::from(std::mem::take(&mut self.part));
        if let Some(upload) = &mut self.upload {
            self.running.spawn_on(upload.part(content), &self.runtime);
        }
        self.parts += 1;
        Ok(())
    }

    /// Waits for a part.
    fn wait(&mut self) -> Result<()> {
        match self.runtime.block_on(self.running.join_next()) {
            None => Ok(()),
            Some(Ok(result)) => result,
            Some(Err(error)) => {
                Err(Error::new(Kind::Store, "writing a part was stopped").with_source(error))
            }
        }
    }

    /// Writes the rest, and makes the object. Returns its version, if the store has versions.
    ///
    /// # Errors
    /// If the store fails, or the object exists and must not be replaced. Then nothing is left of what was written.
    pub fn finish(mut self) -> Result<Option<String>> {
        if self.upload.is_none() {
            let content = Bytes::from(std::mem::take(&mut self.part));
            return self.runtime.block_on(self.objects.put(&self.key, content, self.put));
        }
        if !self.part.is_empty() {
            self.send()?;
        }
        while !self.running.is_empty() {
            self.wait()?;
        }
        if self.put == Put::Create {
            // The crate `object_store` cannot finish an upload on condition.
            match self.runtime.block_on(self.objects.stat(&self.key)) {
                Err(error) if error.kind() == Kind::NotFound => {}
                Err(error) => return Err(error),
                Ok(_) => {
                    let error = Error::new(Kind::Exists, "the object exists already");
                    return Err(error.of_object(&self.key));
                }
            }
        }
        let Some(upload) = &mut self.upload else { return Ok(None) };
        let version = self.runtime.block_on(upload.finish())?;
        self.upload = None;
        Ok(version)
    }
}

impl Write for ObjectWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.part.len() == self.part_len() {
            self.send()?;
        }
        if self.part.capacity() == 0 && self.parts > 0 {
            self.part.reserve_exact(self.part_len());
        }
        let len = bytes.len().min(self.part_len() - self.part.len());
        self.part.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Without [`finish`](ObjectWriter::finish), nothing is left.
impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if let Some(mut upload) = self.upload.take() {
            let mut running = std::mem::take(&mut self.running);
            self.runtime.spawn(async move {
                // What is written after the parts were dropped would stay.
                running.shutdown().await;
                // The store drops what is left by its own rules.
                let _ = upload.abort().await;
            });
        }
    }
}
