//! Sequential input with a buffer and limits, from a reader or from a file that is read at offsets.

use std::io;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::part::Part;
use crate::support::{alloc_budget, over_memory, read_some};

/// The number of bytes that are read at once. Also how much memory is allocated first for a length that the input only
/// claims.
pub const STEP: usize = 64 << 10;

/// A source of bytes.
pub trait Source {
    /// Reads up to `out.len()` bytes. Returns their number, which is zero only at the end.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize>;

    /// Skips bytes. Returns `false` and skips nothing if the source cannot read them later, or has fewer bytes.
    fn pass(&mut self, len: u64) -> bool;
}

/// A reader, which cannot go back.
pub struct Stream<R>(pub R);

impl<R: io::Read> Source for Stream<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }

    fn pass(&mut self, _: u64) -> bool {
        false
    }
}

/// A file, or another source that is read at offsets. Bytes that are appended to it later are not read.
pub struct Positions<'a, S: ?Sized>(Part<'a, S>);

impl<'a, S: ReadAt + ?Sized> Positions<'a, S> {
    pub fn new(source: &'a S) -> Result<Self> {
        Ok(Self(Part::new(source, 0..source.size().map_err(Error::io)?)))
    }
}

impl<S: ReadAt + ?Sized> Source for Positions<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        io::Read::read(&mut self.0, out)
    }

    fn pass(&mut self, len: u64) -> bool {
        self.0.pass(len)
    }
}

/// A range of the input: bytes that were read, or their offset and length.
#[derive(Clone, Debug)]
pub enum Stretch {
    Held(Vec<u8>),
    At { start: u64, len: u64 },
}

impl Stretch {
    pub fn len(&self) -> u64 {
        match self {
            Self::Held(bytes) => bytes.len() as u64,
            Self::At { len, .. } => *len,
        }
    }
}

/// The length of the shortest stretch that can stay in the source. Shorter ones are read at once.
const MIN_PASSED: u64 = 4096;

/// A source with a buffer. It counts the bytes that are read, and enforces limits of memory and nesting.
pub struct Input<S> {
    source: S,
    buffer: Box<[u8]>,
    next: usize,
    filled: usize,
    /// The offset in the source of the byte that follows the buffer.
    read: u64,
    /// Bytes that may still be allocated.
    left: u64,
    depth: usize,
}

impl<S: Source> Input<S> {
    pub fn new(source: S, limits: Limits) -> Self {
        let buffer = vec![0; 8 << 10].into_boxed_slice();
        Self {
            source,
            buffer,
            next: 0,
            filled: 0,
            read: 0,
            left: alloc_budget(limits, false),
            depth: limits.max_depth(),
        }
    }

    /// Prepares for the next value, for which the memory limit starts anew.
    pub fn renew(&mut self, limits: Limits) {
        self.left = alloc_budget(limits, false);
    }

    pub fn at(&self) -> u64 {
        self.read - (self.filled - self.next) as u64
    }

    fn fill_buffer(&mut self) -> Result<bool> {
        self.next = 0;
        self.filled = 0;
        self.filled = read(&mut self.source, &mut self.buffer, self.read)?;
        self.read += self.filled as u64;
        Ok(self.filled > 0)
    }

    /// Returns the next byte without consuming it. `None` at the end.
    pub fn peek(&mut self) -> Result<Option<u8>> {
        if self.next == self.filled && !self.fill_buffer()? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.next).copied())
    }

    /// Returns the next `len` bytes without consuming them. There are fewer if the input ends, or if the buffer is
    /// smaller.
    pub fn look(&mut self, len: usize) -> Result<&[u8]> {
        if self.filled - self.next < len {
            self.buffer.copy_within(self.next..self.filled, 0);
            self.filled -= self.next;
            self.next = 0;
        }
        while self.filled - self.next < len.min(self.buffer.len()) {
            let rest = self.buffer.get_mut(self.filled..).unwrap_or_default();
            match read(&mut self.source, rest, self.read)? {
                0 => break,
                found => {
                    self.filled += found;
                    self.read += found as u64;
                }
            }
        }
        let held = self.buffer.get(self.next..self.filled).unwrap_or_default();
        Ok(held.get(..len).unwrap_or(held))
    }

    /// Consumes the byte that [`peek`](Self::peek) returned.
    pub fn bump(&mut self) {
        self.next = (self.next + 1).min(self.filled);
    }

    pub fn byte(&mut self, what: &str) -> Result<u8> {
        let byte = self.peek()?.ok_or_else(|| Error::eof(what).at(self.at()))?;
        self.bump();
        Ok(byte)
    }

    /// Fills `out`. `what` says in an error what was expected.
    pub fn fill(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        let mut done = self.take_held(out);
        while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
            // Few bytes are read with those that follow them.
            let found = if rest.len() < self.buffer.len() {
                self.fill_buffer()?;
                self.take_held(rest)
            } else {
                let found = read(&mut self.source, rest, self.read)?;
                self.read += found as u64;
                found
            };
            if found == 0 {
                let missing = out.len() - done;
                return Err(Error::eof(&format!("{missing} more bytes of {what}")).at(self.read));
            }
            done += found;
        }
        Ok(())
    }

    /// Consumes as many bytes of the buffer as `out` can hold. Returns their number.
    fn take_held(&mut self, out: &mut [u8]) -> usize {
        let held = self.buffer.get(self.next..self.filled).unwrap_or_default();
        let count = held.len().min(out.len());
        for (to, from) in out.iter_mut().zip(held) {
            *to = *from;
        }
        self.next += count;
        count
    }

    /// Reads `len` bytes. Memory grows with the bytes received, because `len` may be wrong.
    pub fn bytes(&mut self, len: u64, what: &str) -> Result<Vec<u8>> {
        self.charge(len)?;
        let mut bytes = Vec::new();
        let mut left = len;
        while left > 0 {
            let done = bytes.len();
            // The memory doubles, but never exceeds `len`.
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(done.max(STEP));
            bytes.try_reserve_exact(step).map_err(|_| {
                Error::limit(format!("out of memory: cannot allocate {step} bytes to read into"))
                    .at(self.at())
            })?;
            bytes.resize(done + step, 0);
            self.fill(bytes.get_mut(done..).unwrap_or_default(), what)?;
            left -= step as u64;
        }
        Ok(bytes)
    }

    /// Returns the next `len` bytes. If the source can read them later, only their offset is returned.
    pub fn stretch(&mut self, len: u64, what: &str) -> Result<Stretch> {
        let start = self.at();
        let held = (self.filled - self.next) as u64;
        if len >= MIN_PASSED && len >= held && self.source.pass(len - held) {
            self.next = self.filled;
            self.read += len - held;
            return Ok(Stretch::At { start, len });
        }
        self.bytes(len, what).map(Stretch::Held)
    }

    /// Skips bytes of a source that is read at offsets.
    pub fn pass(&mut self, len: u64, what: &str) -> Result<()> {
        let held = (self.filled - self.next) as u64;
        if len <= held {
            self.next += usize::try_from(len).unwrap_or(usize::MAX);
            return Ok(());
        }
        if !self.source.pass(len - held) {
            return Err(Error::eof(&format!("{len} more bytes of {what}")).at(self.at()));
        }
        self.next = self.filled;
        self.read += len - held;
        Ok(())
    }

    /// Counts memory that is allocated for the input. Fails if the limit is exceeded.
    pub fn charge(&mut self, bytes: u64) -> Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                let left = self.left;
                let what =
                    format!("cannot allocate {bytes} more bytes, {left} are left of the limit");
                Err(over_memory(what).at(self.at()))
            }
        }
    }

    pub fn enter(&mut self) -> Result<()> {
        match self.depth.checked_sub(1) {
            Some(depth) => {
                self.depth = depth;
                Ok(())
            }
            None => Err(Error::limit("nesting is deeper than the limit").at(self.at())),
        }
    }

    pub fn leave(&mut self) {
        self.depth += 1;
    }
}

fn read(source: &mut impl Source, out: &mut [u8], at: u64) -> Result<usize> {
    read_some(out, |out| source.read(out)).map_err(|error| Error::io(error).at(at))
}
