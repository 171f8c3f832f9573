//! Reads and writes chunks. A chunk is a magic number, the length of the content, the content, and padding.

use std::io::{Read, Write};

use crate::honest::Honest;
use tenarc::{Error, Result};

use crate::support::reserve;

/// The magic number at the start of every chunk.
pub const MAGIC: [u8; 8] = *b"~TenBin~";

/// The content of a chunk is padded to a multiple of this number of bytes.
pub const BLOCK: usize = 64;

/// The length of the head of a chunk: the magic number and the length of the content.
pub const HEAD: usize = 16;

/// Returns the number of zeros that follow `len` bytes of content.
pub fn padding(len: u64) -> u64 {
    len.wrapping_neg() % BLOCK as u64
}

/// Encodes the head of a chunk with `len` bytes of content.
pub fn head(len: u64) -> Result<[u8; HEAD]> {
    let len = i64::try_from(len)
        .map_err(|_| Error::limit(format!("a chunk of {len} bytes is too long")))?;
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    head[8..].copy_from_slice(&len.to_le_bytes());
    Ok(head)
}

/// Decodes the head of a chunk at position `at`. Returns the length of the content.
pub fn open_head(head: [u8; HEAD], at: u64) -> Result<u64> {
    let [magic, len] = [&head[..8], &head[8..]];
    if magic != MAGIC {
        let found = magic.escape_ascii();
        return Err(Error::syntax(format!("expected `~TenBin~`, found `{found}`")).at(at));
    }
    let len = i64::from_le_bytes(len.try_into().unwrap_or_default());
    u64::try_from(len)
        .map_err(|_| Error::data(format!("expected the length of a chunk, found {len}")).at(at + 8))
}

/// Writes one chunk: magic number, length, content and padding.
///
/// # Errors
/// If the writer fails.
pub fn write_chunk<W: Write>(writer: W, content: &[u8]) -> Result<()> {
    let mut writer = Honest::new(writer);
    let head = head(content.len() as u64)?;
    for piece in [&head[..], content, zeros(content.len() as u64)] {
        writer.write_all(piece).map_err(Error::io)?;
    }
    Ok(())
}

/// Returns the zeros that follow `len` bytes of content.
pub fn zeros(len: u64) -> &'static [u8] {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    usize::try_from(padding(len)).ok().and_then(|len| ZEROS.get(..len)).unwrap_or_default()
}

/// Reads the content of one chunk, which may have at most `limit` bytes. `None` at the end of the input. Memory is only
/// allocated as bytes arrive.
///
/// # Errors
/// If the reader fails, if the input is not a complete chunk, if the content is longer than `limit`, or if the padding
/// is not zero.
pub fn read_chunk<R: Read>(reader: R, limit: u64) -> Result<Option<Vec<u8>>> {
    let mut input = Input::new(reader);
    let Some(len) = input.head()? else { return Ok(None) };
    let content = input.content(len, limit)?;
    input.padding(len)?;
    Ok(Some(content))
}

/// Reads chunks. It never reads ahead.
#[derive(Debug)]
pub struct Input<R> {
    reader: R,
    /// The number of bytes that were read.
    pub at: u64,
}

impl<R: Read> Input<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, at: 0 }
    }

    pub fn reader(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Reads the head of the next chunk. Returns the length of its content, or `None` at the end of the input.
    pub fn head(&mut self) -> Result<Option<u64>> {
        let start = self.at;
        let mut head = [0; HEAD];
        let found = self.some(&mut head)?;
        if found == 0 {
            return Ok(None);
        }
        if found < HEAD {
            return Err(cut(HEAD as u64, found as u64, "the head of a chunk").at(start));
        }
        open_head(head, start).map(Some)
    }

    /// Reads the content of a chunk.
    pub fn content(&mut self, len: u64, limit: u64) -> Result<Vec<u8>> {
        if len > limit {
            let what = format!("the chunk has {len} bytes, expected at most {limit}");
            return Err(Error::limit(what).at(self.at));
        }
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        let mut content = Vec::new();
        while content.len() < len {
            let done = content.len();
            let step = (len - done).min(crate::support::STEP.max(done));
            reserve(&mut content, step)?;
            content.resize(done + step, 0);
            self.fill(content.get_mut(done..).unwrap_or_default(), "a chunk")?;
        }
        Ok(content)
    }

    /// Reads the padding after `len` bytes of content, and checks that it is zero.
    pub fn padding(&mut self, len: u64) -> Result<()> {
        let expected = zeros(len);
        let mut found = [0; BLOCK];
        let found = found.get_mut(..expected.len()).unwrap_or_default();
        let at = self.at;
        self.fill(found, "the padding of a chunk")?;
        if found == expected {
            return Ok(());
        }
        Err(Error::damaged("the padding of a chunk is not zero").at(at))
    }

    /// Fills `out`. `what` names its contents in errors.
    pub fn fill(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        let start = self.at;
        let found = self.some(out)?;
        if found == out.len() {
            return Ok(());
        }
        Err(cut(out.len() as u64, found as u64, what).at(start))
    }

    /// Fills `out` as far as the input goes. Returns the number of bytes read.
    fn some(&mut self, out: &mut [u8]) -> Result<usize> {
        let found = crate::support::read_all(&mut self.reader, out);
        let found = found.map_err(|error| error.at(self.at))?;
        self.at += found as u64;
        Ok(found)
    }
}

#[cold]
pub fn cut(expected: u64, found: u64, what: &str) -> Error {
    Error::eof(&format!("{expected} bytes of {what}, found {found}"))
}
