//! The source of a Parquet file, in the form that the library requires.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use tenarc::Error;
use tenarc::io::ReadAt;

use crate::source::read_exact;

/// A file, or bytes in memory. The library requests ranges that the file states. A range that exceeds the file is an
/// error.
pub struct Source<S> {
    source: Arc<S>,
    len: u64,
}

impl<S> Clone for Source<S> {
    fn clone(&self) -> Self {
        Self { source: Arc::clone(&self.source), len: self.len }
    }
}

impl<S: ReadAt> Source<S> {
    pub fn new(source: S) -> io::Result<Self> {
        let len = source.size()?;
        Ok(Self { source: Arc::new(source), len })
    }
}

impl<S: Send + Sync> Length for Source<S> {
    fn len(&self) -> u64 {
        self.len
    }
}

impl<S: ReadAt + Send + Sync> ChunkReader for Source<S> {
    type T = io::BufReader<From<S>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        // The library reads the headers of pages from this reader. They are short, so the buffer is small.
        Ok(io::BufReader::with_capacity(1 << 10, From { source: self.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        let end = start.checked_add(length as u64).filter(|end| *end <= self.len);
        if end.is_none() {
            let what = format!("{length} bytes at {start} of a file of {} bytes", self.len);
            return Err(ParquetError::EOF(what));
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length).map_err(|_| {
            let error = Error::limit(format!("out of memory: {length} more bytes to read"));
            ParquetError::External(Box::new(error))
        })?;
        bytes.resize(length, 0);
        read_exact(&*self.source, &mut bytes, start)
            .map_err(|error| ParquetError::External(Box::new(error)))?;
        Ok(bytes.into())
    }
}

/// A reader of the bytes from an offset on.
pub struct From<S> {
    source: Source<S>,
    at: u64,
}

impl<S: ReadAt> Read for From<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.source.len.saturating_sub(self.at)).unwrap_or(usize::MAX);
        let len = out.len().min(left);
        let out = out.get_mut(..len).unwrap_or_default();
        let read = crate::support::read_some(out, |out| self.source.source.read_at(out, self.at))?;
        self.at += read as u64;
        Ok(read)
    }
}
