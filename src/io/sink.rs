//! Output: a buffer that fills up, and what happens when it is full.
//!
//! All small pieces are appended to one `Vec<u8>`; only when its capacity does not suffice does
//! the [`Overflow`] decide: grow the vector, count instead of writing, or hand the contents to an
//! [`io::Write`]. So the fast path is the same for all, one comparison and a copy.

use std::io;

use crate::error::{Error, Result};
use crate::mem;

/// What to do with bytes that do not fit the buffer's capacity.
pub trait Overflow {
    fn overflow(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: &[u8]) -> Result<()>;

    /// A buffer to append to without looking for overflows: the sink's own, where that holds all
    /// that was written.
    fn lend(&mut self, buf: &mut Vec<u8>) -> Vec<u8>;

    /// Takes a lent buffer back, whose contents from `start` on are new.
    fn give_back(&mut self, buf: &mut Vec<u8>, base: &mut u64, lent: Vec<u8>) -> Result<()>;

    /// Hands everything on.
    fn flush(&mut self, buf: &mut Vec<u8>, base: &mut u64) -> Result<()>;
}

pub struct Sink<O> {
    buf: Vec<u8>,
    /// Bytes that have left `buf`.
    base: u64,
    over: O,
}

impl<O: Overflow> Sink<O> {
    pub fn new(buf: Vec<u8>, over: O) -> Self {
        Self { buf, base: 0, over }
    }

    /// Bytes written so far, those that stood in the buffer at first included.
    #[inline]
    pub fn position(&self) -> u64 {
        self.base + self.buf.len() as u64
    }

    #[inline(always)]
    pub fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Result<()> {
        if mem::append(&mut self.buf, bytes, &[]) { Ok(()) } else { self.overflow(&bytes) }
    }

    #[inline(always)]
    pub fn put_slice(&mut self, bytes: &[u8]) -> Result<()> {
        if mem::append(&mut self.buf, [], bytes) { Ok(()) } else { self.overflow(bytes) }
    }

    /// As [`Sink::put_slice`], for what is rather long than short.
    #[inline]
    pub fn put_block(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buf.capacity() - self.buf.len() < bytes.len() {
            return self.overflow(bytes);
        }
        self.buf.extend_from_slice(bytes);
        Ok(())
    }

    /// A head and what follows it.
    #[inline(always)]
    pub fn put_headed<const N: usize>(&mut self, head: [u8; N], bytes: &[u8]) -> Result<()> {
        if mem::append(&mut self.buf, head, bytes) {
            return Ok(());
        }
        self.overflow(&head)?;
        self.put_slice(bytes)
    }

    #[cold]
    #[inline(never)]
    fn overflow(&mut self, bytes: &[u8]) -> Result<()> {
        self.over.overflow(&mut self.buf, &mut self.base, bytes)
    }

    /// A buffer whose contents so far must be kept; see [`Sink::give_back`].
    pub fn lend(&mut self) -> Vec<u8> {
        self.over.lend(&mut self.buf)
    }

    pub fn give_back(&mut self, lent: Vec<u8>) -> Result<()> {
        self.over.give_back(&mut self.buf, &mut self.base, lent)
    }

    pub fn flush(&mut self) -> Result<()> {
        self.over.flush(&mut self.buf, &mut self.base)
    }

    /// What was written and not handed on, and the overflow.
    #[inline(always)]
    pub fn pending(&mut self) -> (&[u8], &mut O) {
        (&self.buf, &mut self.over)
    }

    pub fn into_parts(self) -> (Vec<u8>, u64, O) {
        (self.buf, self.base, self.over)
    }

    /// Forgets what was not handed on, and counts on from `base`.
    pub fn restart_at(&mut self, base: u64) {
        self.buf.clear();
        self.base = base;
    }

    pub fn overflow_ref(&self) -> &O {
        &self.over
    }

    #[inline(always)]
    pub fn overflow_mut(&mut self) -> &mut O {
        &mut self.over
    }
}

/// Into memory. Small growth is left to `Vec`; the first large block that does not fit turns
/// writing into counting, so that the caller can allocate once, to the byte, and write again.
pub struct Memory {
    measure: bool,
    /// The buffer as it was when counting began.
    stash: Option<Vec<u8>>,
}

/// From this block size on a second walk over the value is cheaper than growing by doubling,
/// which on a fresh 200 MB costs a third more than writing it.
const MEASURE_FROM: usize = 1 << 20;

impl Memory {
    pub fn growing() -> Self {
        Self { measure: false, stash: None }
    }

    pub fn measuring() -> Self {
        Self { measure: true, stash: None }
    }

    /// The buffer from before counting, if the bytes were only counted.
    pub fn take_stash(&mut self) -> Option<Vec<u8>> {
        self.stash.take()
    }
}

pub fn reserve(buf: &mut Vec<u8>, additional: usize) -> Result<()> {
    buf.try_reserve(additional)
        .map_err(|_| Error::limit(format!("out of memory: {additional} more bytes to write")))
}

impl Overflow for Memory {
    fn overflow(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: &[u8]) -> Result<()> {
        if self.stash.is_some() {
            *base += bytes.len() as u64;
            return Ok(());
        }
        if self.measure && bytes.len() >= MEASURE_FROM {
            // A vector without capacity sends every further byte here.
            let stash = std::mem::take(buf);
            *base = (stash.len() + bytes.len()) as u64;
            self.stash = Some(stash);
            return Ok(());
        }
        reserve(buf, bytes.len())?;
        buf.extend_from_slice(bytes);
        Ok(())
    }

    fn lend(&mut self, buf: &mut Vec<u8>) -> Vec<u8> {
        std::mem::take(buf)
    }

    fn give_back(&mut self, buf: &mut Vec<u8>, base: &mut u64, lent: Vec<u8>) -> Result<()> {
        if self.stash.is_some() {
            *base += lent.len() as u64;
        } else {
            *buf = lent;
        }
        Ok(())
    }

    fn flush(&mut self, _: &mut Vec<u8>, _: &mut u64) -> Result<()> {
        Ok(())
    }
}

/// Into an [`io::Write`], through a staging buffer; blocks larger than that go past it.
pub struct Stage<W> {
    writer: W,
    scratch: Vec<u8>,
}

const STAGE: usize = 16 << 10;

impl<W: io::Write> Stage<W> {
    pub fn sink(writer: W) -> Sink<Self> {
        Self::sink_at(writer, 0)
    }

    /// A sink whose positions count on from `base`.
    pub fn sink_at(writer: W, base: u64) -> Sink<Self> {
        let over = Self { writer, scratch: Vec::new() };
        Sink { buf: Vec::with_capacity(STAGE), base, over }
    }

    pub fn get_ref(&self) -> &W {
        &self.writer
    }

    pub fn get_mut(&mut self) -> &mut W {
        &mut self.writer
    }

    pub fn into_inner(self) -> W {
        self.writer
    }
}

/// Bytes of the longest slice handed to a writer: on Windows, [`io::IoSlice`] panics beyond 4 GiB.
pub const MAX_SLICE: usize = 1 << 30;

/// Writes all slices, in as few calls as the writer takes; `base` counts the bytes.
///
/// [`io::Write::write_all`] would do for one, but panics where a writer claims more than it was given.
pub fn write_slices<W: io::Write + ?Sized>(
    writer: &mut W,
    mut slices: &mut [io::IoSlice<'_>],
    base: &mut u64,
) -> Result<()> {
    let mut left = slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
    // Those in front that are empty.
    io::IoSlice::advance_slices(&mut slices, 0);
    while left > 0 {
        let written = match slices {
            [slice] => writer.write(slice),
            _ => writer.write_vectored(slices),
        };
        let error = match written.and_then(|n| checked(n, left)) {
            Ok(0) => io::ErrorKind::WriteZero.into(),
            Ok(n) => {
                io::IoSlice::advance_slices(&mut slices, n);
                *base += n as u64;
                left -= n as u64;
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => error,
        };
        return Err(Error::io(error).at(*base));
    }
    Ok(())
}

/// The number of bytes that a writer says it has written, of so many that it was given.
pub fn checked(written: usize, given: u64) -> io::Result<usize> {
    if written as u64 <= given {
        return Ok(written);
    }
    let what = format!("writer claims to have written {written} bytes of {given}");
    Err(io::Error::new(io::ErrorKind::InvalidData, what))
}

impl<W: io::Write> Overflow for Stage<W> {
    fn overflow(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: &[u8]) -> Result<()> {
        if bytes.len() > buf.capacity() {
            for bytes in bytes.chunks(MAX_SLICE) {
                let slices = &mut [io::IoSlice::new(buf), io::IoSlice::new(bytes)];
                write_slices(&mut self.writer, slices, base)?;
                buf.clear();
            }
            return Ok(());
        }
        self.flush(buf, base)?;
        buf.extend_from_slice(bytes);
        Ok(())
    }

    fn lend(&mut self, _: &mut Vec<u8>) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    fn give_back(&mut self, buf: &mut Vec<u8>, base: &mut u64, mut lent: Vec<u8>) -> Result<()> {
        if lent.len() <= buf.capacity() - buf.len() {
            buf.extend_from_slice(&lent);
        } else {
            self.overflow(buf, base, &lent)?;
        }
        lent.clear();
        self.scratch = lent;
        Ok(())
    }

    fn flush(&mut self, buf: &mut Vec<u8>, base: &mut u64) -> Result<()> {
        write_slices(&mut self.writer, &mut [io::IoSlice::new(buf)], base)?;
        buf.clear();
        Ok(())
    }
}
