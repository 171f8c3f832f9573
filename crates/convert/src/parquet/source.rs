//! The source of a Parquet file, in the form that the library requires.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::Bytes;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, Length};
use tenarc::Error;
use tenarc::io::ReadAt;

use super::error::failed;
use super::thrift::{self, Fault, PAGE};
use crate::source::read_exact;

/// The most bytes that the header of a page may have. It holds the least and the greatest value of the page.
const MAX_HEADER: u64 = 128 << 20;

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

/// The same source for the pages of columns. Their headers are checked before the library reads them.
pub struct Pages<S>(pub Source<S>);

impl<S: Send + Sync> Length for Pages<S> {
    fn len(&self) -> u64 {
        self.0.len
    }
}

impl<S: ReadAt + Send + Sync> ChunkReader for Pages<S> {
    type T = io::BufReader<Header<S>>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        let from = From { source: self.0.clone(), at: start };
        Ok(io::BufReader::with_capacity(1 << 10, Header { from, is_checked: false }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes> {
        self.0.get_bytes(start, length)
    }
}

/// A reader of the header of a page. The library also creates readers that it does not use, for example of a page whose
/// header it has read. So the header is checked when the first byte is read.
pub struct Header<S> {
    from: From<S>,
    is_checked: bool,
}

impl<S: ReadAt + Send + Sync> Read for Header<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if !self.is_checked {
            check_page(&self.from.source, self.from.at).map_err(io::Error::other)?;
            self.is_checked = true;
        }
        self.from.read(out)
    }
}

/// Checks the header of the page at an offset.
fn check_page<S: ReadAt + Send + Sync>(source: &Source<S>, start: u64) -> tenarc::Result<()> {
    let left = source.len.saturating_sub(start).min(MAX_HEADER);
    let mut len = 1 << 10;
    loop {
        let bytes = source.get_bytes(start, usize::try_from(left.min(len)).unwrap_or(usize::MAX));
        match thrift::check(&bytes.map_err(failed)?, PAGE, start) {
            Ok(()) => return Ok(()),
            // Hardly any header is longer than the first piece.
            Err(Fault::CutOff) if len < left => len *= 8,
            Err(Fault::CutOff) => {
                let what = format!("the header of a page does not end within {left} bytes");
                return Err(Error::damaged(what).at(start));
            }
            Err(Fault::Damage(error)) => return Err(error),
        }
    }
}
