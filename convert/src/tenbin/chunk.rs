//! Chunks: bytes with a magic in front, their length, and padding.

use std::io::{Read, Write};

use crate::honest::Honest;
use tenarc::{Error, Result};

use crate::support::reserve;

/// What every chunk starts with.
pub const MAGIC: [u8; 8] = *b"~TenBin~";

/// Content is padded to a multiple of this.
pub const BLOCK: usize = 64;

/// Bytes of magic and length.
pub const HEAD: usize = 16;

/// The zeros behind so many bytes of content.
pub fn padding(len: u64) -> u64 {
    len.wrapping_neg() % BLOCK as u64
}

/// Magic and length of a chunk.
pub fn head(len: u64) -> Result<[u8; HEAD]> {
    let len = i64::try_from(len).map_err(|_| Error::limit(format!("a chunk of {len} bytes")))?;
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&MAGIC);
    head[8..].copy_from_slice(&len.to_le_bytes());
    Ok(head)
}

/// The length that the head of a chunk at `at` says.
pub fn open_head(head: [u8; HEAD], at: u64) -> Result<u64> {
    let [magic, len] = [&head[..8], &head[8..]];
    if magic != MAGIC {
        let found = magic.escape_ascii();
        return Err(Error::syntax(format!("expected a chunk of tenbin, found `{found}`")).at(at));
    }
    let len = i64::from_le_bytes(len.try_into().unwrap_or_default());
    u64::try_from(len).map_err(|_| Error::data(format!("a chunk of {len} bytes")).at(at + 8))
}

/// Writes one chunk: magic, length, content, padding.
///
/// # Errors
/// Where the writer fails.
pub fn write_chunk<W: Write>(writer: W, content: &[u8]) -> Result<()> {
    let mut writer = Honest::new(writer);
    let head = head(content.len() as u64)?;
    for piece in [&head[..], content, zeros(content.len() as u64)] {
        writer.write_all(piece).map_err(Error::io)?;
    }
    Ok(())
}

/// The zeros that follow so many bytes of content.
pub fn zeros(len: u64) -> &'static [u8] {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    usize::try_from(padding(len)).ok().and_then(|len| ZEROS.get(..len)).unwrap_or_default()
}

/// Reads the content of one chunk, of at most `limit` bytes; `None` at the end of the input. Memory
/// follows the bytes received.
///
/// # Errors
/// Where the reader fails, or gives something else than a whole chunk with zeros behind it.
pub fn read_chunk<R: Read>(reader: R, limit: u64) -> Result<Option<Vec<u8>>> {
    let mut input = Input::new(reader);
    let Some(len) = input.head()? else { return Ok(None) };
    let content = input.content(len, limit)?;
    input.padding(len)?;
    Ok(Some(content))
}

/// Reads chunks, never beyond what it needs.
#[derive(Debug)]
pub struct Input<R> {
    reader: R,
    /// Bytes read so far.
    pub at: u64,
}

impl<R: Read> Input<R> {
    pub fn new(reader: R) -> Self {
        Self { reader, at: 0 }
    }

    pub fn reader(&mut self) -> &mut R {
        &mut self.reader
    }

    /// The length of the next chunk; `None` at the end of the input.
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

    pub fn content(&mut self, len: u64, limit: u64) -> Result<Vec<u8>> {
        if len > limit {
            let what = format!("a chunk of {len} bytes, {limit} are allowed");
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

    /// The zeros behind so many bytes of content.
    pub fn padding(&mut self, len: u64) -> Result<()> {
        let expected = zeros(len);
        let mut found = [0; BLOCK];
        let found = found.get_mut(..expected.len()).unwrap_or_default();
        let at = self.at;
        self.fill(found, "the padding of a chunk")?;
        if found == expected {
            return Ok(());
        }
        Err(Error::damaged("padding of a chunk is not zero").at(at))
    }

    /// Fills `out`.
    pub fn fill(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        let start = self.at;
        let found = self.some(out)?;
        if found == out.len() {
            return Ok(());
        }
        Err(cut(out.len() as u64, found as u64, what).at(start))
    }

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
