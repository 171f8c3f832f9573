//! The input of the decoder.
//!
//! It provides a window: the next bytes that are available without I/O. Heads are parsed from the
//! window. Payloads are borrowed, copied from the window, or read directly into their destination.

use std::rc::Rc;
use std::{fmt, io};

use crate::error::{Error, Result};
use crate::io::buffers::Buffers;
use crate::io::source::{IoRead, KEY, SourceBytes, allowed_in_memory, too_short};
use crate::mem::Window;
use crate::options::Limits;

/// The input of the decoder: bytes in memory, or a reader with a buffer.
///
/// There is one type for all of them, so that the type of a user is compiled for one decoder.
pub struct Input<'de, 'b> {
    window: Window<'de, 'b, IoRead<dyn io::Read + 'b>>,
    /// The offset of the end of the window.
    end: u64,
    /// Where a recording has started: the number of bytes that were left.
    recorded_from: usize,
    kind: InputKind<'de, 'b>,
}

enum InputKind<'de, 'b> {
    Message,
    /// The metadata of a segment. References to buffers are resolved through these.
    Metadata(&'b mut dyn Buffers<'de>),
    /// Items of a document, which has allowed memory for them.
    Items,
}

/// Bytes that were read, for use in error messages: their offsets, and the first of them if the input does not keep them.
pub struct Mark {
    from: u64,
    to: u64,
    kept: [u8; KEY],
}

/// A byte that no well-formed item starts with.
const LOST: u8 = 0xfc;

impl Mark {
    /// Keeps the first of the marked bytes. If none are known, errors show a `?`.
    fn keep(&mut self, bytes: &[u8]) {
        match bytes.first_chunk() {
            Some(whole) => self.kept = *whole,
            None => {
                let (kept, behind) = self.kept.split_at_mut(bytes.len());
                kept.copy_from_slice(bytes);
                behind[0] = LOST;
            }
        }
    }
}

impl fmt::Debug for Input<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("offset", &self.offset()).finish_non_exhaustive()
    }
}

impl<'de, 'b> Input<'de, 'b> {
    /// The window starts at offset `base`.
    #[inline]
    fn of(
        window: Window<'de, 'b, IoRead<dyn io::Read + 'b>>,
        base: u64,
        kind: InputKind<'de, 'b>,
    ) -> Self {
        let end = base.saturating_add(window.len() as u64);
        Self { window, end, recorded_from: 0, kind }
    }

    /// A message in memory, or another item without buffers.
    #[inline]
    pub fn slice(bytes: &'de [u8]) -> Self {
        Self::of(Window::lent(bytes), 0, InputKind::Message)
    }

    /// The metadata of a segment, which is at offset `base` of the archive.
    pub fn segment(metadata: &'de [u8], base: u64, buffers: &'b mut dyn Buffers<'de>) -> Self {
        Self::of(Window::lent(metadata), base, InputKind::Metadata(buffers))
    }

    /// Items of a document, where they are at offset `base`.
    pub fn items(items: &'de [u8], base: u64) -> Self {
        Self::of(Window::lent(items), base, InputKind::Items)
    }

    /// Like [`items`](Self::items), for items that cannot be borrowed: those from `start` on.
    pub fn kept_items(items: Rc<Vec<u8>>, start: usize, base: u64) -> Self {
        Self::of(Window::kept(items, start), base, InputKind::Items)
    }

    /// Like [`items`](Self::items), for items that were captured.
    pub fn items_of(items: SourceBytes<'de, 'static>, base: u64) -> Self {
        match items {
            SourceBytes::Borrowed(bytes) | SourceBytes::Copied(bytes) => Self::items(bytes, base),
            SourceBytes::Owned(bytes) => Self::kept_items(Rc::new(bytes), 0, base),
        }
    }

    /// A message from a reader.
    pub fn stream(read: &'b mut IoRead<dyn io::Read + 'b>) -> Self {
        let offset = read.offset();
        Self::of(Window::of(read), offset, InputKind::Message)
    }

    /// Lets `act` use the reader, if there is one.
    #[cold]
    #[inline(never)]
    fn with_stream<T>(
        &mut self,
        act: impl FnOnce(&mut IoRead<dyn io::Read + 'b>) -> T,
    ) -> Option<T> {
        let mut at = self.end;
        let value = self.window.with(|read| {
            let value = act(read);
            at = read.offset();
            value
        })?;
        self.end = at + self.window.len() as u64;
        Some(value)
    }

    /// The next bytes that are available without I/O.
    #[inline]
    pub fn window(&self) -> &[u8] {
        self.window.bytes()
    }

    /// The bytes that were not read yet, if values can borrow from them.
    #[inline]
    pub fn lent(&self) -> Option<&'de [u8]> {
        self.window.lent_bytes()
    }

    /// Reads until the window has `need` bytes or the input ends. `need` is at most the length of a
    /// head.
    #[inline]
    pub fn fill(&mut self, need: usize) -> Result<()> {
        if self.window.len() < need && self.window.has_source() {
            return self.with_stream(|read| read.fill(need)).unwrap_or(Ok(()));
        }
        Ok(())
    }

    /// Moves past the first `n` bytes of the window.
    #[inline]
    pub fn advance(&mut self, n: usize) {
        #[cfg(test)]
        PASSED.with(|passed| passed.set(passed.get() + n.min(self.window.len())));
        self.window.pass(n);
    }

    /// Skips `skip` bytes and takes the `len` bytes after them, if the window contains all of them. They are there until the
    /// input is used again.
    #[inline]
    pub fn short(&mut self, skip: usize, len: usize) -> Option<&[u8]> {
        self.window.take(skip, len)
    }

    /// If the window starts with the byte `initial`, takes it and the `N` bytes after it, and returns
    /// these `N` bytes. Otherwise, or if the window is too short, takes nothing.
    #[inline]
    pub fn after<const N: usize>(&mut self, initial: u8) -> Option<[u8; N]> {
        let (&first, rest) = self.window().split_first()?;
        let bytes = *rest.first_chunk()?;
        if first != initial {
            return None;
        }
        self.advance(N + 1);
        Some(bytes)
    }

    /// The position in the input, in bytes from its start.
    #[inline]
    pub fn offset(&self) -> u64 {
        self.end - self.window.len() as u64
    }

    /// The number of bytes left in the input, if it is known. A length in the document of at most this
    /// number is backed by input.
    #[inline]
    pub fn remaining(&self) -> Option<usize> {
        if self.window.has_source() { None } else { Some(self.window.len()) }
    }

    /// Whether the input is the metadata of a segment.
    #[inline]
    pub fn is_metadata(&self) -> bool {
        matches!(self.kind, InputKind::Metadata(_))
    }

    /// The number of bytes of memory that the input allows so far: see [`Limits::memory`]. Of a stream, bytes that were
    /// received and not yet read do not count: what is refused must not depend on how they arrive.
    #[inline]
    pub fn allowed(&self) -> u64 {
        if self.window.has_source() {
            return Limits::allowed(self.offset(), 0);
        }
        let whole = self.window.whole().len() as u64;
        match &self.kind {
            InputKind::Message => allowed_in_memory(whole),
            InputKind::Metadata(buffers) => allowed_in_memory(whole).max(buffers.allowed()),
            InputKind::Items => 0,
        }
    }

    /// Skips `len` bytes. Returns how many of them are missing because the input has ended.
    pub fn pass_over(&mut self, len: u64) -> Result<u64> {
        let step = usize::try_from(len).unwrap_or(usize::MAX).min(self.window.len());
        self.advance(step);
        let left = len - step as u64;
        if left == 0 {
            return Ok(0);
        }
        self.with_stream(|read| read.pass_over(left)).unwrap_or(Ok(left))
    }

    /// Takes exactly `len` bytes. `what` names them in the error if the input is too short.
    #[inline]
    pub fn take<'s>(&'s mut self, len: usize, what: &str) -> Result<SourceBytes<'de, 's>> {
        if let Some(bytes) = self.lent().and_then(|rest| rest.get(..len)) {
            self.advance(len);
            return Ok(SourceBytes::Borrowed(bytes));
        }
        self.other_take(len, what)
    }

    #[inline(never)]
    fn other_take<'s>(&'s mut self, len: usize, what: &str) -> Result<SourceBytes<'de, 's>> {
        if self.window.len() < len {
            let at = self.offset();
            if !self.window.has_source() {
                return Err(too_short(len as u64, self.window.len() as u64, what).at(at));
            }
            let gathered = self.with_stream(|read| read.gather(len, what));
            if let Some(bytes) = gathered.transpose()?.flatten() {
                return Ok(SourceBytes::Owned(bytes));
            }
        }
        match self.window.take(0, len) {
            Some(bytes) => Ok(SourceBytes::Copied(bytes)),
            None => Err(Error::eof(what)),
        }
    }

    /// Fills `out` from the input. `what` names the bytes in the error if the input is too short.
    pub fn read_exact(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        if self.window.len() < out.len()
            && let Some(read) = self.with_stream(|read| read.read_exact(out, what))
        {
            return read;
        }
        let bytes = self.take(out.len(), what)?;
        out.copy_from_slice(bytes.as_slice());
        Ok(())
    }

    /// A mark of no bytes.
    #[inline]
    pub fn no_mark(&self) -> Mark {
        let at = self.offset();
        Mark { from: at, to: at, kept: [0; KEY] }
    }

    /// Marks the bytes from offset `from` to the current position.
    #[inline]
    pub fn mark(&mut self, mark: &mut Mark, from: u64) {
        (mark.from, mark.to) = (from, self.offset());
        if self.window.has_source() {
            self.keep(mark);
        }
    }

    #[inline(never)]
    fn keep(&mut self, mark: &mut Mark) {
        let len = usize::try_from(mark.to - mark.from).unwrap_or(usize::MAX);
        match self.window.passed(len) {
            Some(bytes) => mark.keep(bytes),
            None => {
                self.with_stream(|read| mark.keep(read.last_bytes(len)));
            }
        }
    }

    /// The offset behind the marked bytes, and a slice that starts with them. Of a stream, only the first bytes are there, or
    /// none: those of a long item may have left its buffer.
    pub fn marked<'a>(&'a self, mark: &'a Mark) -> (u64, &'a [u8]) {
        if self.window.has_source() {
            return (mark.to, &mark.kept);
        }
        let whole = self.window.whole();
        let start = usize::try_from(self.end.saturating_sub(mark.from)).unwrap_or(usize::MAX);
        let start = whole.len().saturating_sub(start);
        (mark.to, whole.get(start..).unwrap_or_default())
    }

    /// Starts to record the bytes that are read.
    pub fn record(&mut self) {
        self.recorded_from = self.window.len();
        if self.window.has_source() {
            self.with_stream(IoRead::record);
        }
    }

    /// Ends the recording and returns the bytes read since [`record`](Self::record).
    pub fn recorded(&mut self) -> SourceBytes<'de, 'static> {
        let (from, left) = (self.recorded_from, self.window.len());
        if let Some(whole) = self.window.lent_whole() {
            return SourceBytes::Borrowed(recorded(whole, from, left));
        }
        match self.with_stream(IoRead::recorded) {
            Some(bytes) => SourceBytes::Owned(bytes),
            None => SourceBytes::Owned(recorded(self.window.whole(), from, left).to_vec()),
        }
    }

    /// The buffers that the input may refer to. `None` for a message, which has no buffers.
    #[inline]
    pub fn buffers(&mut self) -> Option<&mut dyn Buffers<'de>> {
        match &mut self.kind {
            InputKind::Metadata(buffers) => Some(&mut **buffers),
            _ => None,
        }
    }

    /// Returns the bytes of a tensor, which were taken right before: as they are, or as an aligned copy if they are not
    /// aligned to `align` and the input has an arena.
    #[inline]
    pub fn aligned(&mut self, bytes: &'de [u8], align: usize) -> &'de [u8] {
        match &self.kind {
            InputKind::Metadata(buffers) if !(bytes.as_ptr() as usize).is_multiple_of(align) => {
                buffers.aligned(self.offset(), bytes)
            }
            _ => bytes,
        }
    }
}

/// The bytes of `whole` that were left at the start of a recording, and are not left now.
fn recorded(whole: &[u8], before: usize, left: usize) -> &[u8] {
    let (start, end) = (whole.len().saturating_sub(before), whole.len() - left);
    whole.get(start..end).unwrap_or_default()
}

#[cfg(test)]
thread_local! {
    /// How many bytes of slices were read or skipped, for tests that a function does not pass over them too often.
    pub static PASSED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}
