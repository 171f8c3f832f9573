//! Authenticated encryption of a stream: XChaCha20-Poly1305 in chunks, with the STREAM construction. The
//! nonce of a chunk contains its number and whether it is the last.
//!
//! A chunk that was changed, moved, repeated, removed or added is an error, and so is an end before the
//! last chunk. A stream is a random nonce of 19 bytes, followed by chunks. A chunk is its length (4
//! bytes, big-endian, with the highest bit set in the last chunk), then the ciphertext, which ends with a
//! tag of 16 bytes.

use std::io::{self, Error, ErrorKind, Read, Write};

use aead_stream::{NewStream, StreamBE32, StreamPrimitive};
use chacha20poly1305::aead::Generate;
use chacha20poly1305::{Key, XChaCha20Poly1305};

type Stream = StreamBE32<XChaCha20Poly1305>;
type Nonce = aead_stream::Nonce<XChaCha20Poly1305, Stream>;

/// The maximum length of the plain text of a chunk, in bytes.
pub const CHUNK: usize = 64 * 1024;
pub const TAG: usize = 16;
const LAST: u32 = 1 << 31;

/// A writer that encrypts. Call [`finish`](Self::finish) at the end.
pub struct Sealer<W> {
    writer: W,
    stream: Stream,
    number: u32,
    chunk: Vec<u8>,
    failed: bool,
}

impl<W: Write> Sealer<W> {
    /// Starts a stream: writes a random nonce.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn new(mut writer: W, key: &Key) -> io::Result<Self> {
        let nonce = Nonce::generate();
        writer.write_all(&nonce)?;
        let stream = Stream::new(key, &nonce);
        Ok(Self { writer, stream, number: 0, chunk: Vec::new(), failed: false })
    }

    /// Writes the last chunk. A stream without it is truncated, and reading it fails.
    ///
    /// # Errors
    /// If the writer fails, or has failed before.
    pub fn finish(mut self) -> io::Result<W> {
        self.seal(true)?;
        self.writer.flush()?;
        Ok(self.writer)
    }

    fn seal(&mut self, last: bool) -> io::Result<()> {
        // After a failed write it is unknown how much of the chunk was written, so no chunk may follow.
        if std::mem::replace(&mut self.failed, true) {
            return Err(Error::other("writing an earlier chunk failed"));
        }
        let sealed = self.stream.encrypt_in_place(self.number, last, b"", &mut self.chunk);
        sealed.map_err(|_| Error::other("cannot encrypt the chunk"))?;
        let len = u32::try_from(self.chunk.len()).map_err(Error::other)?;
        self.writer.write_all(&(len | if last { LAST } else { 0 }).to_be_bytes())?;
        self.writer.write_all(&self.chunk)?;
        self.chunk.clear();
        // The number must not wrap around: two chunks with one nonce would break the encryption.
        let next = self.number.checked_add(1);
        self.number = next.ok_or_else(|| Error::other("the stream has more than 2^32 chunks"))?;
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

    /// Writes the buffered bytes as a chunk, so that the reader gets them now.
    fn flush(&mut self) -> io::Result<()> {
        if !self.chunk.is_empty() {
            self.seal(false)?;
        }
        self.writer.flush()
    }
}

/// A reader that decrypts what a [`Sealer`] wrote. Read it to the end: only that shows that the stream is
/// complete.
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
    /// Starts reading a stream: reads its nonce.
    ///
    /// # Errors
    /// If the reader fails or ends.
    pub fn new(mut reader: R, key: &Key) -> io::Result<Self> {
        let mut nonce = Nonce::default();
        reader.read_exact(&mut nonce)?;
        let stream = Stream::new(key, &nonce);
        Ok(Self { reader, stream, number: 0, chunk: Vec::new(), taken: 0, state: State::Open })
    }

    /// Reads and verifies the next chunk. Its plain text is available only after that.
    fn open(&mut self) -> io::Result<State> {
        let mut head = [0; 4];
        self.reader.read_exact(&mut head)?;
        let head = u32::from_be_bytes(head);
        let (last, len) = (head & LAST != 0, (head & !LAST) as usize);
        if !(TAG..=CHUNK + TAG).contains(&len) {
            return Err(invalid(format!("{len} is not a valid length of a chunk")));
        }
        self.taken = 0;
        self.chunk.resize(len, 0);
        self.reader.read_exact(&mut self.chunk)?;
        let opened = self.stream.decrypt_in_place(self.number, last, b"", &mut self.chunk);
        opened
            .map_err(|_| invalid("the chunk was changed or moved, or the key is wrong".into()))?;
        if !last {
            let next = self.number.checked_add(1);
            self.number =
                next.ok_or_else(|| invalid("the stream has more than 2^32 chunks".into()))?;
            return Ok(State::Open);
        }
        if io::copy(&mut self.reader.by_ref().take(1), &mut io::sink())? > 0 {
            return Err(invalid("unexpected bytes after the last chunk".into()));
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
            // After an error nothing more is read: if a repeated chunk was refused, the next one would be
            // accepted, and the error would go unnoticed.
            if std::mem::replace(&mut self.state, State::Failed) == State::Failed {
                return Err(invalid("an earlier read failed".into()));
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
