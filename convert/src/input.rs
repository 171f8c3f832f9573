//! Bytes one after the other, from a reader or from a file at positions.

use std::io;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use super::part::Part;
use crate::support::{alloc_budget, read_some};

/// Bytes read at once, and memory that is asked for at once on a mere claim.
pub const STEP: usize = 64 << 10;

/// Where bytes come from.
pub trait Source {
    /// Reads up to `out.len()` bytes; how many it were. Zero only at the end.
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize>;

    /// Passes over bytes, if they can be read again later.
    fn pass(&mut self, len: u64) -> bool;
}

/// A reader.
pub struct Stream<R>(pub R);

impl<R: io::Read> Source for Stream<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }

    fn pass(&mut self, _: u64) -> bool {
        false
    }
}

/// A file, or another thing that is read at positions. What comes behind it later is not read.
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

/// Bytes that were read, or where they are.
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

/// Shorter stretches are held in any case.
const MIN_PASSED: u64 = 4096;

/// Buffered bytes, counted, within limits.
pub struct Input<S> {
    source: S,
    buffer: Box<[u8]>,
    next: usize,
    filled: usize,
    /// The position in the source behind the buffer.
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

    /// Starts a value, which has the limits for itself.
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

    /// The next byte, which stays; none at the end.
    pub fn peek(&mut self) -> Result<Option<u8>> {
        if self.next == self.filled && !self.fill_buffer()? {
            return Ok(None);
        }
        Ok(self.buffer.get(self.next).copied())
    }

    /// The next bytes, which stay: so many, or fewer where the input ends. At most as many as the buffer holds.
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

    /// Passes over the byte that was peeked at.
    pub fn bump(&mut self) {
        self.next = (self.next + 1).min(self.filled);
    }

    pub fn byte(&mut self, what: &str) -> Result<u8> {
        let byte = self.peek()?.ok_or_else(|| Error::eof(what).at(self.at()))?;
        self.bump();
        Ok(byte)
    }

    /// Fills `out`; `what` is expected.
    pub fn fill(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        let held = self.buffer.get(self.next..self.filled).unwrap_or_default();
        let mut done = held.len().min(out.len());
        for (to, from) in out.iter_mut().zip(held) {
            *to = *from;
        }
        self.next += done;
        while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match read(&mut self.source, rest, self.read)? {
                0 => {
                    let missing = rest.len();
                    return Err(
                        Error::eof(&format!("{missing} more bytes of {what}")).at(self.read)
                    );
                }
                found => {
                    done += found;
                    self.read += found as u64;
                }
            }
        }
        Ok(())
    }

    /// So many bytes; memory follows those received.
    pub fn bytes(&mut self, len: u64, what: &str) -> Result<Vec<u8>> {
        self.charge(len)?;
        let mut bytes = Vec::new();
        let mut left = len;
        while left > 0 {
            let done = bytes.len();
            // Doubling, but never beyond what there will be.
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(done.max(STEP));
            bytes.try_reserve_exact(step).map_err(|_| {
                Error::limit(format!("out of memory: {step} more bytes to read")).at(self.at())
            })?;
            bytes.resize(done + step, 0);
            self.fill(bytes.get_mut(done..).unwrap_or_default(), what)?;
            left -= step as u64;
        }
        Ok(bytes)
    }

    /// So many bytes, left where they are if they can be had later.
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

    /// Passes over bytes, of what is read at positions.
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

    /// Counts memory that is allocated for what was read.
    pub fn charge(&mut self, bytes: u64) -> Result<()> {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                let left = self.left;
                let what = format!("{bytes} more bytes of memory, {left} are allowed");
                Err(Error::limit(what).at(self.at()))
            }
        }
    }

    pub fn enter(&mut self) -> Result<()> {
        match self.depth.checked_sub(1) {
            Some(depth) => {
                self.depth = depth;
                Ok(())
            }
            None => Err(Error::limit("nested more deeply than is allowed").at(self.at())),
        }
    }

    pub fn leave(&mut self) {
        self.depth += 1;
    }
}

fn read(source: &mut impl Source, out: &mut [u8], at: u64) -> Result<usize> {
    read_some(out, |out| source.read(out)).map_err(|error| Error::io(error).at(at))
}
