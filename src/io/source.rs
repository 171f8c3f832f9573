//! Where a deserializer reads from: a slice that values can borrow from, or a reader with a buffer.

use std::{fmt, io};

use crate::error::{Category, Error, Result};
use crate::io::input::Input;
use crate::mem::Buffered;
use crate::options::Limits;

/// Bytes taken from a source.
pub enum SourceBytes<'de, 's> {
    /// Borrowed from the input. They live as long as the input.
    Borrowed(&'de [u8]),
    /// In the buffer of the source. They live until the source is used again.
    Copied(&'s [u8]),
    /// Owned, because they come from several reads or chunks.
    Owned(Vec<u8>),
}

impl SourceBytes<'_, '_> {
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Copied(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }

    /// Whether the bytes are those of the input.
    pub fn is_borrowed(&self) -> bool {
        matches!(self, Self::Borrowed(_))
    }
}

/// The input of a [`Deserializer`](crate::Deserializer): [`SliceRead`] or [`IoRead`].
///
/// This trait is sealed: other crates cannot implement it.
pub trait Read<'de>: Source<'de> {}

/// The methods of [`Read`]. Other crates cannot name this trait, so the methods are private to this crate.
pub trait Source<'de> {
    /// The input from the current position on.
    fn input(&mut self) -> Input<'de, '_>;

    /// Moves to this offset after an [`Input`] was read up to it.
    fn move_to(&mut self, offset: u64);

    /// The position in the input, in bytes from its start.
    fn offset(&self) -> u64;
}

/// A slice of bytes. Strings, byte strings and views are borrowed from it.
pub struct SliceRead<'de> {
    whole: &'de [u8],
    offset: usize,
}

impl fmt::Debug for SliceRead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SliceRead")
            .field("len", &self.whole.len())
            .field("left", &(self.whole.len() - self.offset))
            .finish_non_exhaustive()
    }
}

impl<'de> SliceRead<'de> {
    pub(crate) fn new(slice: &'de [u8]) -> Self {
        Self { whole: slice, offset: 0 }
    }
}

impl<'de> Read<'de> for SliceRead<'de> {}

impl<'de> Source<'de> for SliceRead<'de> {
    fn input(&mut self) -> Input<'de, '_> {
        let mut input = Input::slice(self.whole);
        input.advance(self.offset);
        input
    }

    fn move_to(&mut self, offset: u64) {
        self.offset = usize::try_from(offset).unwrap_or(usize::MAX).min(self.whole.len());
    }

    fn offset(&self) -> u64 {
        self.offset as u64
    }
}

/// The number of bytes of memory that are allowed for so many bytes of input in memory. What is copied from there in one
/// piece is not taken from the budget, because a visitor may borrow it. So it is left out here.
pub(crate) fn allowed_in_memory(bytes: u64) -> u64 {
    Limits::allowed(bytes, 0).saturating_sub(bytes)
}

#[cold]
pub(crate) fn too_short(expected: u64, found: u64, what: &str) -> Error {
    Error::eof(&format!("{expected} bytes of {what}, found {found}"))
}

/// Corrects the error of one step of a longer read: if the input ended, the message gives the total
/// number of bytes that were expected and found.
#[cold]
pub(crate) fn of_whole(error: Error, expected: usize, found: u64, what: &str) -> Error {
    match error.category() {
        Category::Eof => too_short(expected as u64, found, what),
        _ => error,
    }
}

/// Reads from an [`io::Read`], with a buffer of 64 KiB.
///
/// It takes as much as the reader returns from one call, but never waits for more bytes than the value
/// needs. Bytes that were read beyond one value are used for the next one.
/// [`Deserializer::into_inner`] returns them.
///
/// [`Deserializer::into_inner`]: crate::Deserializer::into_inner
pub struct IoRead<R: ?Sized> {
    buf: Box<[u8]>,
    start: usize,
    end: usize,
    /// The position of `buf[start]` in the input.
    offset: u64,
    recording: Option<Vec<u8>>,
    reader: R,
}

impl<R: ?Sized> fmt::Debug for IoRead<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoRead").field("offset", &self.offset).finish_non_exhaustive()
    }
}

const BUFFER: usize = 64 << 10;
/// The number of bytes of a map key that are stored for the path in errors. The buffer may be overwritten while
/// the value of the key is read.
pub(crate) const KEY: usize = 32;
/// The number of bytes that are allocated at once if the length in the document may be false.
pub(crate) const STEP: usize = 256 << 10;

impl<R: io::Read> IoRead<R> {
    pub(crate) fn new(reader: R) -> Self {
        let buf = vec![0; BUFFER].into_boxed_slice();
        Self { buf, start: 0, end: 0, offset: 0, recording: None, reader }
    }

    pub(crate) fn into_inner(self) -> (R, Vec<u8>) {
        let rest = self.window().to_vec();
        (self.reader, rest)
    }
}

impl<R: io::Read + ?Sized> IoRead<R> {
    pub(crate) fn window(&self) -> &[u8] {
        self.buf.get(self.start..self.end).unwrap_or_default()
    }

    /// Reads until the window has `need` bytes, at most `BUFFER`, or the input ends.
    fn fill_up(&mut self, need: usize) -> Result<()> {
        if self.end - self.start >= need {
            return Ok(());
        }
        if self.buf.len() - self.start < need || self.start == self.end {
            // The last bytes before the window are kept, since they may be a map key: see `mark`.
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

    /// Moves past `n` bytes of the window, and records them if a recording is running.
    pub(crate) fn leave(&mut self, n: usize) {
        if let Some(record) = &mut self.recording {
            let end = (self.start + n).min(self.end);
            record.extend_from_slice(self.buf.get(self.start..end).unwrap_or_default());
        }
        self.start = (self.start + n).min(self.end);
        self.offset += n as u64;
    }

    #[inline]
    pub(crate) fn fill(&mut self, need: usize) -> Result<()> {
        if self.end - self.start < need { self.fill_up(need) } else { Ok(()) }
    }

    /// Skips `len` bytes. Returns how many of them are missing because the input has ended.
    pub(crate) fn pass_over(&mut self, len: u64) -> Result<u64> {
        let mut left = len;
        while left > 0 {
            self.fill(1)?;
            let window = self.window().len();
            if window == 0 {
                break;
            }
            let step = usize::try_from(left).unwrap_or(usize::MAX).min(window);
            self.leave(step);
            left -= step as u64;
        }
        Ok(left)
    }

    #[inline]
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads until the window has `len` bytes. If the buffer is too short for them, takes and returns them.
    pub(crate) fn gather(&mut self, len: usize, what: &str) -> Result<Option<Vec<u8>>> {
        if len <= self.buf.len() {
            self.fill_up(len)?;
            let found = self.end - self.start;
            if found < len {
                return Err(too_short(len as u64, found as u64, what).at(self.offset));
            }
            return Ok(None);
        }
        let at = self.offset;
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let done = bytes.len();
            let step = (len - done).min(STEP.max(done));
            reserve_exact(&mut bytes, step)?;
            bytes.resize(done + step, 0);
            // Not empty, because `step` is at least one.
            let result = self.read_exact(bytes.get_mut(done..).unwrap_or_default(), what);
            result.map_err(|error| of_whole(error, len, self.offset - at, what).at(at))?;
        }
        Ok(Some(bytes))
    }

    pub(crate) fn read_exact(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        let wanted = out.len();
        let buffered = self.window();
        let n = buffered.len().min(wanted);
        let (head, mut rest) = out.split_at_mut(n);
        head.copy_from_slice(buffered.get(..n).unwrap_or_default());
        self.leave(n);
        if !rest.is_empty() {
            // What is left in the buffer is not what comes before the bytes that do not pass through it: see `last_bytes`.
            (self.start, self.end) = (0, 0);
        }
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

    /// The last `len` bytes before the current position. Empty if they are no longer in the buffer.
    pub(crate) fn last_bytes(&self, len: usize) -> &[u8] {
        let bytes = self.start.checked_sub(len).and_then(|at| self.buf.get(at..self.start));
        bytes.unwrap_or_default()
    }

    pub(crate) fn record(&mut self) {
        self.recording = Some(Vec::new());
    }

    pub(crate) fn recorded(&mut self) -> Vec<u8> {
        self.recording.take().unwrap_or_default()
    }
}

impl<R: io::Read + ?Sized> Buffered for IoRead<R> {
    fn buffered(&self) -> &[u8] {
        self.window()
    }

    fn leave(&mut self, n: usize) {
        self.leave(n);
    }
}

impl<R: io::Read> Read<'_> for IoRead<R> {}

impl<'de, R: io::Read> Source<'de> for IoRead<R> {
    fn input(&mut self) -> Input<'de, '_> {
        Input::stream(self)
    }

    fn move_to(&mut self, offset: u64) {
        self.leave(usize::try_from(offset.saturating_sub(self.offset)).unwrap_or(usize::MAX));
    }

    fn offset(&self) -> u64 {
        self.offset
    }
}

/// Calls a reader until it is not interrupted. Returns an error if the reader claims to have read more
/// bytes than `out` has room for.
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

/// Reads until `out` is full or the input ends. Returns the number of bytes read.
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

/// Like [`reserve`], without room for more.
pub(crate) fn reserve_exact<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    match values.try_reserve_exact(additional) {
        Ok(()) => Ok(()),
        // Asks for memory again, to fail with the same message as all other reads.
        Err(_) => reserve(values, additional),
    }
}

pub(crate) fn reserve<T>(values: &mut Vec<T>, additional: usize) -> Result<()> {
    values.try_reserve(additional).map_err(|_| {
        let bytes = additional.saturating_mul(size_of::<T>());
        Error::limit(format!("out of memory: cannot allocate {bytes} bytes to read into"))
    })
}
