//! Authenticated encryption around a stream: XChaCha20-Poly1305 in chunks, under the STREAM
//! construction, whose nonces hold the number of the chunk and whether it is the last.
//!
//! A chunk that was changed, moved, repeated, removed or added is an error, and so is an end before
//! the last chunk. A stream is a random nonce of 19 bytes and chunks: length (4 bytes, big-endian,
//! the highest bit set in the last chunk) and ciphertext, which ends with a tag of 16 bytes.

use std::io::{self, Error, ErrorKind, Read, Write};

use aead_stream::{NewStream, StreamBE32, StreamPrimitive};
use chacha20poly1305::aead::Generate;
use chacha20poly1305::{Key, XChaCha20Poly1305};

type Stream = StreamBE32<XChaCha20Poly1305>;
type Nonce = aead_stream::Nonce<XChaCha20Poly1305, Stream>;

/// The most that is encrypted at once.
pub const CHUNK: usize = 64 * 1024;
pub const TAG: usize = 16;
const LAST: u32 = 1 << 31;

/// Encrypts what is written to it, until [`finish`](Self::finish).
pub struct Sealer<W> {
    writer: W,
    stream: Stream,
    number: u32,
    chunk: Vec<u8>,
    failed: bool,
}

impl<W: Write> Sealer<W> {
    /// Starts a stream.
    ///
    /// # Errors
    /// Where the writer fails.
    pub fn new(mut writer: W, key: &Key) -> io::Result<Self> {
        let nonce = Nonce::generate();
        writer.write_all(&nonce)?;
        let stream = Stream::new(key, &nonce);
        Ok(Self { writer, stream, number: 0, chunk: Vec::new(), failed: false })
    }

    /// Writes the last chunk, without which the stream counts as cut off.
    ///
    /// # Errors
    /// Where the writer fails, or did before.
    pub fn finish(mut self) -> io::Result<W> {
        self.seal(true)?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn seal(&mut self, last: bool) -> io::Result<()> {
        // Nobody knows how much of a chunk has gone out when writing it failed.
        if std::mem::replace(&mut self.failed, true) {
            return Err(Error::other("an earlier chunk was not written"));
        }
        let sealed = self.stream.encrypt_in_place(self.number, last, b"", &mut self.chunk);
        sealed.map_err(|_| Error::other("the chunk cannot be encrypted"))?;
        let len = u32::try_from(self.chunk.len()).map_err(Error::other)?;
        self.writer.write_all(&(len | if last { LAST } else { 0 }).to_be_bytes())?;
        self.writer.write_all(&self.chunk)?;
        self.chunk.clear();
        // Two chunks of one number would share a nonce.
        let next = self.number.checked_add(1);
        self.number = next.ok_or_else(|| Error::other("a stream of more than 2^32 chunks"))?;
        self.failed = false;
        Ok(())
    }
}

impl<W: Write> Write for Sealer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.chunk.len() >= CHUNK {
            self.seal(false)?;
        }
        let len = bytes.len().min(CHUNK - self.chunk.len());
        self.chunk.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    /// Sends what there is as a chunk, so that the other side can go on.
    fn flush(&mut self) -> io::Result<()> {
        if !self.chunk.is_empty() {
            self.seal(false)?;
        }
        self.writer.flush()
    }
}

/// Decrypts what a [`Sealer`] wrote. Only who reads to its end knows that nothing is missing.
pub struct Opener<R> {
    reader: R,
    stream: Stream,
    number: u32,
    chunk: Vec<u8>,
    taken: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Open,
    Ended,
    Failed,
}

impl<R: Read> Opener<R> {
    /// Reads the beginning of a stream.
    ///
    /// # Errors
    /// Where the reader fails or ends.
    pub fn new(mut reader: R, key: &Key) -> io::Result<Self> {
        let mut nonce = Nonce::default();
        reader.read_exact(&mut nonce)?;
        let stream = Stream::new(key, &nonce);
        Ok(Self { reader, stream, number: 0, chunk: Vec::new(), taken: 0, state: State::Open })
    }

    /// Reads, and verifies, the next chunk, of which nothing is given out before.
    fn open(&mut self) -> io::Result<State> {
        let mut head = [0; 4];
        self.reader.read_exact(&mut head)?;
        let head = u32::from_be_bytes(head);
        let (last, len) = (head & LAST != 0, (head & !LAST) as usize);
        if !(TAG..=CHUNK + TAG).contains(&len) {
            return Err(invalid(format!("{len} bytes, which no chunk has")));
        }
        self.taken = 0;
        self.chunk.resize(len, 0);
        self.reader.read_exact(&mut self.chunk)?;
        let opened = self.stream.decrypt_in_place(self.number, last, b"", &mut self.chunk);
        opened.map_err(|_| invalid("not as it was sealed, or not in its place".into()))?;
        if !last {
            let next = self.number.checked_add(1);
            self.number = next.ok_or_else(|| invalid("more than 2^32 chunks".into()))?;
            return Ok(State::Open);
        }
        if io::copy(&mut self.reader.by_ref().take(1), &mut io::sink())? > 0 {
            return Err(invalid("something behind the last chunk".into()));
        }
        Ok(State::Ended)
    }
}

fn invalid(what: String) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

impl<R: Read> Read for Opener<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.chunk.len() && self.state != State::Ended && !out.is_empty() {
            // What follows a fault is not read: a chunk sent twice would pass for one.
            if std::mem::replace(&mut self.state, State::Failed) == State::Failed {
                return Err(invalid("read on behind a fault".into()));
            }
            self.chunk.clear();
            self.taken = 0;
            self.state = self.open().map_err(|error| {
                self.chunk.clear();
                Error::new(error.kind(), format!("sealed chunk {}: {error}", self.number))
            })?;
        }
        let len = out.len().min(self.chunk.len() - self.taken);
        out[..len].copy_from_slice(&self.chunk[self.taken..self.taken + len]);
        self.taken += len;
        Ok(len)
    }
}
