//! Input: a slice that can be borrowed from, or a reader with a buffer.
//!
//! Both show the decoder a window of bytes that need no I/O; heads are parsed from the window,
//! and payloads are borrowed, copied out of the window, or read straight to their destination.

use std::io;

use crate::error::{Category, Error, Result};
use crate::io::buffers::Buffers;

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Bytes taken from a source.
pub enum Bytes<'de, 's> {
    /// They live as long as the input.
    Borrowed(&'de [u8]),
    /// They live until the source is used again.
    Copied(&'s [u8]),
    /// They were assembled from several reads or chunks.
    Owned(Vec<u8>),
}

impl Bytes<'_, '_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Copied(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

/// Where a [`Deserializer`](crate::Deserializer) reads from: [`SliceRead`] or [`IoRead`].
///
/// This trait is sealed: its methods are no part of the interface.
pub trait Read<'de>: sealed::Sealed {
    /// The bytes at hand without I/O.
    #[doc(hidden)]
    fn window(&self) -> &[u8];

    /// Tries to have `need` bytes in the window, no more than a head takes; fewer are there at the
    /// end of the input.
    #[doc(hidden)]
    fn fill(&mut self, need: usize) -> Result<()>;

    /// Leaves behind `n` bytes of the window.
    #[doc(hidden)]
    fn advance(&mut self, n: usize);

    /// Takes `len` bytes that stand behind `skip` bytes of the window, if they are there.
    #[doc(hidden)]
    fn short<'s>(&'s mut self, skip: usize, len: usize) -> Option<Bytes<'de, 's>>;

    /// Takes the `N` bytes that stand behind the byte `initial` in the window, if they are there.
    #[doc(hidden)]
    #[inline(always)]
    fn after<const N: usize>(&mut self, initial: u8) -> Option<[u8; N]> {
        let (&first, rest) = self.window().split_first()?;
        let bytes = *rest.first_chunk()?;
        if first != initial {
            return None;
        }
        self.advance(N + 1);
        Some(bytes)
    }

    /// Position in the input.
    #[doc(hidden)]
    fn offset(&self) -> u64;

    /// All bytes to come, where they are known: then a length up to it is no mere claim.
    #[doc(hidden)]
    fn remaining(&self) -> Option<usize>;

    /// Whether the input's own length bounds what a document can ask for.
    #[doc(hidden)]
    fn bounds_itself(&self) -> bool {
        self.remaining().is_some()
    }

    /// Exactly `len` bytes.
    #[doc(hidden)]
    fn take<'s>(&'s mut self, len: usize, what: &str) -> Result<Bytes<'de, 's>>;

    /// Fills `out`.
    #[doc(hidden)]
    fn read_exact(&mut self, out: &mut [u8], what: &str) -> Result<()>;

    /// A way to find again, in an error, the bytes that were left behind from offset `from` on.
    #[doc(hidden)]
    type Mark;

    #[doc(hidden)]
    fn mark(&self, from: u64) -> Self::Mark;

    /// The offset and the bytes marked, or the first of them.
    #[doc(hidden)]
    fn marked<'a>(&'a self, mark: &'a Self::Mark) -> (u64, &'a [u8]);

    /// Starts to keep what is left behind.
    #[doc(hidden)]
    fn record(&mut self);

    /// What was left behind since [`Read::record`].
    #[doc(hidden)]
    fn recorded(&mut self) -> Bytes<'de, 'static>;

    /// The payloads that stand apart from what is read here, if it may refer to any.
    #[doc(hidden)]
    #[inline(always)]
    fn buffers(&mut self) -> Option<&mut dyn Buffers<'de>> {
        None
    }

    /// The bytes of a tensor, moved to aligned memory where that can be had and is needed.
    #[doc(hidden)]
    #[inline(always)]
    fn aligned(&mut self, bytes: &'de [u8], _align: usize) -> &'de [u8] {
        bytes
    }
}

/// Reading from a slice of bytes; strings, byte strings and views are borrowed from it.
#[derive(Debug)]
pub struct SliceRead<'de> {
    rest: &'de [u8],
    whole: &'de [u8],
    mark: usize,
}

impl<'de> SliceRead<'de> {
    pub(crate) fn new(slice: &'de [u8]) -> Self {
        Self { rest: slice, whole: slice, mark: 0 }
    }

    pub(crate) fn rest(&self) -> &'de [u8] {
        self.rest
    }
}

impl sealed::Sealed for SliceRead<'_> {}

impl<'de> Read<'de> for SliceRead<'de> {
    #[inline(always)]
    fn window(&self) -> &[u8] {
        self.rest
    }

    #[inline(always)]
    fn fill(&mut self, _: usize) -> Result<()> {
        Ok(())
    }

    #[inline(always)]
    fn advance(&mut self, n: usize) {
        self.rest = self.rest.get(n..).unwrap_or_default();
    }

    #[inline(always)]
    fn short<'s>(&'s mut self, skip: usize, len: usize) -> Option<Bytes<'de, 's>> {
        let (bytes, rest) = self.rest.get(skip..)?.split_at_checked(len)?;
        self.rest = rest;
        Some(Bytes::Borrowed(bytes))
    }

    #[inline(always)]
    fn offset(&self) -> u64 {
        (self.whole.len() - self.rest.len()) as u64
    }

    #[inline(always)]
    fn remaining(&self) -> Option<usize> {
        Some(self.rest.len())
    }

    #[inline(always)]
    fn take<'s>(&'s mut self, len: usize, what: &str) -> Result<Bytes<'de, 's>> {
        match self.rest.split_at_checked(len) {
            Some((bytes, rest)) => {
                self.rest = rest;
                Ok(Bytes::Borrowed(bytes))
            }
            None => Err(too_short(len as u64, self.rest.len() as u64, what).at(self.offset())),
        }
    }

    fn read_exact(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        let bytes = self.take(out.len(), what)?;
        out.copy_from_slice(bytes.as_slice());
        Ok(())
    }

    type Mark = u64;

    /// Counted from the end, which is where `rest` is counted from as well.
    #[inline(always)]
    fn mark(&self, from: u64) -> u64 {
        self.whole.len() as u64 - from
    }

    fn marked<'a>(&'a self, mark: &'a u64) -> (u64, &'a [u8]) {
        let from = self.whole.len() as u64 - mark;
        let bytes = usize::try_from(from).ok().and_then(|from| self.whole.get(from..));
        (from, bytes.unwrap_or_default())
    }

    fn record(&mut self) {
        self.mark = self.whole.len() - self.rest.len();
    }

    fn recorded(&mut self) -> Bytes<'de, 'static> {
        let end = self.whole.len() - self.rest.len();
        Bytes::Borrowed(self.whole.get(self.mark..end).unwrap_or_default())
    }
}

#[cold]
pub(crate) fn too_short(expected: u64, found: u64, what: &str) -> Error {
    Error::eof(&format!("{expected} bytes of {what}, found {found}"))
}

/// Where one step of several met the end of the input: what all of them miss.
#[cold]
pub(crate) fn of_whole(error: Error, expected: usize, found: u64, what: &str) -> Error {
    match error.category() {
        Category::Eof => too_short(expected as u64, found, what),
        _ => error,
    }
}

/// Reading from an [`io::Read`], through a buffer of 64 KiB.
///
/// Reads as much as the reader gives at once, but never waits for more than the value needs. What
/// is read beyond one value serves the next; [`Deserializer::into_inner`] gives it back.
///
/// [`Deserializer::into_inner`]: crate::Deserializer::into_inner
#[derive(Debug)]
pub struct IoRead<R> {
    reader: R,
    buf: Box<[u8]>,
    start: usize,
    end: usize,
    /// Input position of `buf[start]`.
    offset: u64,
    recording: Option<Vec<u8>>,
}

const BUFFER: usize = 64 << 10;
/// Bytes kept of a map key, for the path in errors: the buffer may move on while its value is read.
const KEY: usize = 32;
/// An initial byte that starts no item.
const LOST: u8 = 0xfc;
/// Memory asked for at once for bytes that are only claimed.
pub(crate) const STEP: usize = 256 << 10;

impl<R: io::Read> IoRead<R> {
    pub(crate) fn new(reader: R) -> Self {
        let buf = vec![0; BUFFER].into_boxed_slice();
        Self { reader, buf, start: 0, end: 0, offset: 0, recording: None }
    }

    pub(crate) fn into_inner(self) -> (R, Vec<u8>) {
        let rest = self.window_slice().to_vec();
        (self.reader, rest)
    }

    fn window_slice(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Has `need` bytes in the window, at most `BUFFER`, unless the input ends before.
    fn fill_up(&mut self, need: usize) -> Result<()> {
        if self.end - self.start >= need {
            return Ok(());
        }
        if self.buf.len() - self.start < need || self.start == self.end {
            // The head of a map key may lie right before: see `mark`.
            let kept = self.start.min(KEY).min(self.buf.len().saturating_sub(need));
            self.buf.copy_within(self.start - kept..self.end, 0);
            self.end -= self.start - kept;
            self.start = kept;
        }
        while self.end - self.start < need {
            let Some(room) = self.buf.get_mut(self.end..) else { break };
            match read_some(room, |room| self.reader.read(room)) {
                Ok(0) => break,
                Ok(n) => self.end += n,
                Err(error) => {
                    let at = self.offset + (self.end - self.start) as u64;
                    return Err(Error::io(error).at(at));
                }
            }
        }
        Ok(())
    }

    fn leave(&mut self, n: usize) {
        if let Some(record) = &mut self.recording {
            let end = (self.start + n).min(self.end);
            record.extend_from_slice(self.buf.get(self.start..end).unwrap_or_default());
        }
        self.start = (self.start + n).min(self.end);
        self.offset += n as u64;
    }
}

impl<R> sealed::Sealed for IoRead<R> {}

impl<'de, R: io::Read> Read<'de> for IoRead<R> {
    #[inline]
    fn window(&self) -> &[u8] {
        self.window_slice()
    }

    #[inline]
    fn fill(&mut self, need: usize) -> Result<()> {
        if self.end - self.start < need { self.fill_up(need) } else { Ok(()) }
    }

    #[inline]
    fn advance(&mut self, n: usize) {
        self.leave(n);
    }

    #[inline]
    fn short<'s>(&'s mut self, skip: usize, len: usize) -> Option<Bytes<'de, 's>> {
        let start = self.start + skip;
        if self.end - self.start < skip + len {
            return None;
        }
        self.leave(skip + len);
        self.buf.get(start..start + len).map(Bytes::Copied)
    }

    #[inline]
    fn offset(&self) -> u64 {
        self.offset
    }

    fn remaining(&self) -> Option<usize> {
        None
    }

    fn take<'s>(&'s mut self, len: usize, what: &str) -> Result<Bytes<'de, 's>> {
        if len <= self.buf.len() {
            self.fill_up(len)?;
            let found = self.end - self.start;
            if found < len {
                return Err(too_short(len as u64, found as u64, what).at(self.offset));
            }
            let start = self.start;
            if self.recording.is_none() {
                // `leave` may move the window to the front of the buffer, but not its bytes.
                self.leave(len);
                return Ok(Bytes::Copied(self.buf.get(start..start + len).unwrap_or_default()));
            }
        }
        let at = self.offset;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let done = bytes.len();
            let step = (len - done).min(STEP.max(done));
            reserve(&mut bytes, step)?;
            bytes.resize(done + step, 0);
            // Never empty: `step` is at least one.
            let result = self.read_exact(bytes.get_mut(done..).unwrap_or_default(), what);
            result.map_err(|error| of_whole(error, len, self.offset - at, what).at(at))?;
        }
        Ok(Bytes::Owned(bytes))
    }

    fn read_exact(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        let wanted = out.len();
        let buffered = self.window_slice();
        let n = buffered.len().min(wanted);
        let (head, mut rest) = out.split_at_mut(n);
        head.copy_from_slice(buffered.get(..n).unwrap_or_default());
        self.leave(n);
        while !rest.is_empty() {
            match read_some(rest, |rest| self.reader.read(rest)) {
                Ok(0) => {
                    let found = wanted - rest.len();
                    return Err(too_short(wanted as u64, found as u64, what).at(self.offset));
                }
                Ok(n) => {
                    self.offset += n as u64;
                    let (new, left) = rest.split_at_mut(n);
                    if let Some(record) = &mut self.recording {
                        record.extend_from_slice(new);
                    }
                    rest = left;
                }
                Err(error) => return Err(Error::io(error).at(self.offset)),
            }
        }
        Ok(())
    }

    type Mark = (u64, [u8; KEY]);

    #[inline]
    fn mark(&self, from: u64) -> Self::Mark {
        // Where the key is gone, a head that is none: it shows as `?`.
        let mut key = [LOST; KEY];
        let len = usize::try_from(self.offset - from).unwrap_or(usize::MAX);
        let bytes = self.start.checked_sub(len).and_then(|at| self.buf.get(at..self.start));
        if let Some(bytes) = bytes {
            let len = bytes.len().min(KEY);
            key[..len].copy_from_slice(&bytes[..len]);
        }
        (from, key)
    }

    fn marked<'a>(&'a self, mark: &'a Self::Mark) -> (u64, &'a [u8]) {
        (mark.0, &mark.1)
    }

    fn record(&mut self) {
        self.recording = Some(Vec::new());
    }

    fn recorded(&mut self) -> Bytes<'de, 'static> {
        Bytes::Owned(self.recording.take().unwrap_or_default())
    }
}

/// Leaves `len` bytes behind, window by window; how many of them the input does not have.
pub(crate) fn pass_over<'de, R: Read<'de>>(source: &mut R, len: u64) -> Result<u64> {
    let mut left = len;
    while left > 0 {
        source.fill(1)?;
        let window = source.window().len();
        if window == 0 {
            break;
        }
        let step = usize::try_from(left).unwrap_or(usize::MAX).min(window);
        source.advance(step);
        left -= step as u64;
    }
    Ok(left)
}

/// One successful call of a reader: again where it was interrupted, and no more than there is room for.
pub(crate) fn read_some(
    out: &mut [u8],
    mut read: impl FnMut(&mut [u8]) -> io::Result<usize>,
) -> io::Result<usize> {
    loop {
        match read(out) {
            Ok(n) if n <= out.len() => return Ok(n),
            Ok(n) => {
                let what = format!("reader claims to have read {n} bytes of {}", out.len());
                return Err(io::Error::new(io::ErrorKind::InvalidData, what));
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Fills `out`, or as much of it as there is.
pub(crate) fn read_all<R: io::Read + ?Sized>(reader: &mut R, out: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match read_some(rest, |rest| reader.read(rest)).map_err(Error::io)? {
            0 => break,
            n => done += n,
        }
    }
    Ok(done)
}

pub(crate) fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    values.try_reserve(additional).map_err(|_| {
        let bytes = additional.saturating_mul(size_of::<T>());
        Error::limit(format!("out of memory: {bytes} more bytes to read"))
    })
}
