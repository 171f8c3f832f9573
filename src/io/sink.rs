//! [`Sink`], the output of the encoder: a buffer, and an [`Overflow`] that handles a full buffer.
//!
//! All small pieces are appended to one `Vec<u8>`. Only if a piece does not fit into its capacity, the
//! [`Overflow`] decides what to do: let the vector grow, only count the bytes, or write the contents to
//! an [`io::Write`]. So the fast path is the same for all destinations: one comparison and a copy.

use std::io;

use crate::error::{Error, Result};
use crate::mem::{self, Short};

/// Handles bytes that do not fit into the buffer's capacity. `buf` is the buffer, and `base` is the
/// number of bytes that have left it.
pub trait Overflow {
    fn overflow(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: &[u8]) -> Result<()>;

    /// Makes room in the buffer for `bytes` more bytes, at most [`MAX_ROOM`]. Returns `false` if that is not
    /// possible, because bytes are only counted.
    fn make_room(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: usize) -> Result<bool>;

    /// Makes room in the buffer for `bytes` more bytes, if it grows to hold everything.
    fn reserve(&mut self, _buf: &mut Vec<u8>, _bytes: usize) -> Result<()> {
        Ok(())
    }

    /// Returns a buffer that the caller can append to directly. If the sink's buffer contains
    /// everything that was written, it is that buffer. Otherwise it is an empty one.
    fn lend(&mut self, buf: &mut Vec<u8>) -> Vec<u8>;

    /// Whether the buffer contains everything that was written, so that [`Overflow::lend`] returns it.
    fn holds_all(&self) -> bool {
        false
    }

    /// Takes back a buffer that was lent, with what the caller has appended.
    fn give_back(&mut self, buf: &mut Vec<u8>, base: &mut u64, lent: Vec<u8>) -> Result<()>;

    /// Called before the head of an array or map of indefinite length is written.
    fn unknown_length(&mut self) {}

    /// Writes the contents of the buffer to the destination.
    fn flush(&mut self, buf: &mut Vec<u8>, base: &mut u64) -> Result<()>;
}

/// The most bytes for which [`Overflow::make_room`] makes room.
pub const MAX_ROOM: usize = 8 << 10;

/// The overflow may be a trait object. Then what is written is compiled once, and not for each destination.
pub struct Sink<O: Overflow + ?Sized, C = ()> {
    buf: Vec<u8>,
    /// Bytes that have left `buf`.
    base: u64,
    /// What else the writer keeps. It is here because behind a trait object, fields are slower to find.
    pub context: C,
    over: O,
}

impl<O: Overflow> Sink<O> {
    pub fn new(buf: Vec<u8>, over: O) -> Self {
        Self::with_context(buf, over, ())
    }
}

impl<O: Overflow, C> Sink<O, C> {
    pub fn with_context(buf: Vec<u8>, over: O, context: C) -> Self {
        Self { buf, base: 0, context, over }
    }

    pub fn into_parts(self) -> (Vec<u8>, u64, O) {
        (self.buf, self.base, self.over)
    }
}

impl<O: Overflow + ?Sized, C> Sink<O, C> {
    /// The buffer, the number of bytes that have left it, and the overflow.
    #[inline]
    fn parts(&mut self) -> (&mut Vec<u8>, &mut u64, &mut O) {
        (&mut self.buf, &mut self.base, &mut self.over)
    }

    /// The number of bytes written so far, including those that were in the buffer at the start.
    #[inline]
    pub fn position(&self) -> u64 {
        self.base + self.buf.len() as u64
    }

    #[inline]
    pub fn put<const N: usize>(&mut self, bytes: [u8; N]) -> Result<()> {
        if mem::append(&mut self.buf, bytes, &[]) { Ok(()) } else { self.last_put(bytes) }
    }

    /// Takes the bytes by value: a reference to them would force the caller to keep them in memory.
    #[cold]
    #[inline(never)]
    fn last_put<const N: usize>(&mut self, bytes: [u8; N]) -> Result<()> {
        let (buf, base, over) = self.parts();
        over.overflow(buf, base, &bytes)
    }

    #[inline]
    pub fn put_slice(&mut self, bytes: &[u8]) -> Result<()> {
        if mem::append(&mut self.buf, [], bytes) { Ok(()) } else { self.overflow(bytes) }
    }

    /// Writes the first `len` bytes of a word.
    #[inline]
    pub fn put_first<const N: usize>(&mut self, word: [u8; N], len: usize) -> Result<()> {
        if mem::append_first(&mut self.buf, word, len) {
            return Ok(());
        }
        self.last_first(word, len)
    }

    #[cold]
    #[inline(never)]
    fn last_first<const N: usize>(&mut self, word: [u8; N], len: usize) -> Result<()> {
        self.put_slice(word.get(..len).unwrap_or_default())
    }

    /// Like [`Sink::put_slice`], for slices that are usually long.
    #[inline]
    pub fn put_block(&mut self, bytes: &[u8]) -> Result<()> {
        if mem::append_block(&mut self.buf, bytes) { Ok(()) } else { self.overflow(bytes) }
    }

    /// Writes a head and the bytes that follow it.
    #[inline]
    pub fn put_headed<const N: usize>(&mut self, head: [u8; N], bytes: &[u8]) -> Result<()> {
        if mem::append(&mut self.buf, head, bytes) {
            return Ok(());
        }
        self.overflow(&head)?;
        self.put_slice(bytes)
    }

    /// Like [`mem::append_short`]: `false` if that might not fit into the buffer.
    #[inline]
    #[must_use]
    pub fn fit_short<const N: usize>(
        &mut self,
        head: [u8; N],
        middle: &[u8],
        short: Short,
    ) -> bool {
        mem::append_short(&mut self.buf, head, middle, short)
    }

    /// Like [`mem::append_run`], for at most [`MAX_ROOM`] bytes. `None` if bytes are only counted; then
    /// `next` was not called.
    #[inline]
    pub fn put_run<const N: usize>(
        &mut self,
        initial: u8,
        max: usize,
        next: impl FnMut() -> Option<[u8; N]>,
    ) -> Result<Option<usize>> {
        if !self.has_room(max * (1 + N))? {
            return Ok(None);
        }
        Ok(Some(mem::append_run(&mut self.buf, initial, max, next)))
    }

    /// Like [`mem::append_shorts`], for at most [`MAX_ROOM`] bytes. `None` if bytes are only counted; then `next` was not
    /// called.
    #[inline]
    pub fn put_shorts(
        &mut self,
        max: usize,
        next: impl FnMut() -> Option<Short>,
    ) -> Result<Option<usize>> {
        if !self.has_room(max * mem::MAX_SHORT)? {
            return Ok(None);
        }
        Ok(Some(mem::append_shorts(&mut self.buf, max, next)))
    }

    /// Makes room for this many bytes in memory, if that is where they go. So a large block of bytes is not
    /// counted first and then written in a second pass.
    pub fn reserve(&mut self, bytes: usize) -> Result<()> {
        let (buf, _, over) = self.parts();
        over.reserve(buf, bytes)
    }

    #[inline]
    fn has_room(&mut self, bytes: usize) -> Result<bool> {
        if self.buf.capacity() - self.buf.len() >= bytes { Ok(true) } else { self.make_room(bytes) }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, bytes: usize) -> Result<bool> {
        let (buf, base, over) = self.parts();
        over.make_room(buf, base, bytes)
    }

    #[cold]
    #[inline(never)]
    fn overflow(&mut self, bytes: &[u8]) -> Result<()> {
        let (buf, base, over) = self.parts();
        over.overflow(buf, base, bytes)
    }

    /// Lends a buffer to append to. The caller must keep its contents and return it to
    /// [`Sink::give_back`].
    pub fn lend(&mut self) -> Vec<u8> {
        self.over.lend(&mut self.buf)
    }

    /// Whether [`Sink::lend`] returns everything that was written.
    pub fn holds_all(&self) -> bool {
        self.over.holds_all()
    }

    pub fn give_back(&mut self, lent: Vec<u8>) -> Result<()> {
        let (buf, base, over) = self.parts();
        over.give_back(buf, base, lent)
    }

    pub fn flush(&mut self) -> Result<()> {
        let (buf, base, over) = self.parts();
        over.flush(buf, base)
    }

    /// The bytes that are still in the buffer, and the overflow.
    #[inline]
    pub fn pending(&mut self) -> (&[u8], &mut O) {
        (&self.buf, &mut self.over)
    }

    /// Discards the bytes in the buffer, and sets the position to `base`.
    pub fn restart_at(&mut self, base: u64) {
        self.buf.clear();
        self.base = base;
    }

    pub fn overflow_ref(&self) -> &O {
        &self.over
    }

    #[inline]
    pub fn overflow_mut(&mut self) -> &mut O {
        &mut self.over
    }
}

/// Writes into memory. For small pieces the vector grows as usual. If measuring is on, the first large
/// block that does not fit turns writing into counting. The caller can then allocate the exact size
/// once and write the value again.
pub struct Memory {
    measure: bool,
    /// Whether an array or map of indefinite length was written.
    pub has_unknown_lengths: bool,
    /// The buffer as it was when counting began.
    stash: Option<Vec<u8>>,
}

/// For blocks of this size or more, encoding the value twice is cheaper than growing by doubling. For
/// 200 MB in fresh memory, growing takes a third more time than writing.
const MEASURE_FROM: usize = 1 << 20;

impl Memory {
    pub fn growing() -> Self {
        Self { measure: false, has_unknown_lengths: false, stash: None }
    }

    pub fn measuring() -> Self {
        Self { measure: true, has_unknown_lengths: false, stash: None }
    }

    /// If bytes were only counted: the buffer as it was when counting began.
    pub fn take_stash(&mut self) -> Option<Vec<u8>> {
        self.stash.take()
    }
}

impl<C> Sink<Memory, C> {
    /// Takes the buffer out. If bytes were only counted, it is as it was when counting began.
    pub fn take_buffer(&mut self) -> Vec<u8> {
        let stash = self.over.take_stash();
        stash.unwrap_or_else(|| mem::take_vec(&mut self.buf))
    }
}

pub fn reserve(buf: &mut Vec<u8>, additional: usize) -> Result<()> {
    buf.try_reserve(additional).map_err(|_| {
        Error::limit(format!("out of memory: cannot allocate {additional} bytes to write"))
    })
}

impl Overflow for Memory {
    fn overflow(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: &[u8]) -> Result<()> {
        if self.stash.is_some() {
            *base += bytes.len() as u64;
            return Ok(());
        }
        if self.measure && bytes.len() >= MEASURE_FROM {
            // An empty vector has no capacity, so all further bytes overflow and come here.
            let stash = std::mem::take(buf);
            *base = (stash.len() + bytes.len()) as u64;
            self.stash = Some(stash);
            return Ok(());
        }
        reserve(buf, bytes.len())?;
        buf.extend_from_slice(bytes);
        Ok(())
    }

    fn make_room(&mut self, buf: &mut Vec<u8>, _: &mut u64, bytes: usize) -> Result<bool> {
        if self.stash.is_some() {
            return Ok(false);
        }
        reserve(buf, bytes)?;
        Ok(true)
    }

    fn reserve(&mut self, buf: &mut Vec<u8>, bytes: usize) -> Result<()> {
        if self.stash.is_some() { Ok(()) } else { reserve(buf, bytes) }
    }

    fn lend(&mut self, buf: &mut Vec<u8>) -> Vec<u8> {
        std::mem::take(buf)
    }

    fn holds_all(&self) -> bool {
        self.stash.is_none()
    }

    fn give_back(&mut self, buf: &mut Vec<u8>, base: &mut u64, lent: Vec<u8>) -> Result<()> {
        if self.stash.is_some() {
            *base += lent.len() as u64;
        } else {
            *buf = lent;
        }
        Ok(())
    }

    fn unknown_length(&mut self) {
        self.has_unknown_lengths = true;
    }

    fn flush(&mut self, _: &mut Vec<u8>, _: &mut u64) -> Result<()> {
        Ok(())
    }
}

/// Writes to an [`io::Write`]. Small pieces are collected in a buffer. Blocks that are larger than the
/// buffer are written directly.
pub struct Stage<W> {
    writer: W,
    scratch: Vec<u8>,
}

/// The size of the buffer in bytes.
const STAGE: usize = 16 << 10;

impl<W: io::Write> Stage<W> {
    pub fn sink(writer: W) -> Sink<Self> {
        Self::sink_with(writer, ())
    }

    pub fn sink_with<C>(writer: W, context: C) -> Sink<Self, C> {
        let over = Self { writer, scratch: Vec::new() };
        Sink::with_context(Vec::with_capacity(STAGE), over, context)
    }

    /// A sink whose position starts at `base`.
    pub fn sink_at(writer: W, base: u64) -> Sink<Self> {
        Sink { base, ..Self::sink(writer) }
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

/// The length in bytes of the longest slice that a writer gets. On Windows, [`io::IoSlice`] panics for
/// slices longer than 4 GiB.
pub const MAX_SLICE: usize = 1 << 30;

/// Writes all slices, with as few calls as the writer allows. Adds the number of bytes to `base`.
///
/// For a single slice [`io::Write::write_all`] would do, but it panics if a writer claims to have
/// written more bytes than it was given.
pub fn write_slices<W: io::Write + ?Sized>(
    writer: &mut W,
    mut slices: &mut [io::IoSlice<'_>],
    base: &mut u64,
) -> Result<()> {
    let mut left = slices.iter().map(|slice| slice.len() as u64).sum::<u64>();
    // Removes empty slices at the front.
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

/// Checks the number of bytes that a writer claims to have written of the bytes that it was given.
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

    fn make_room(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: usize) -> Result<bool> {
        self.flush(buf, base)?;
        Ok(buf.capacity() >= bytes)
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
