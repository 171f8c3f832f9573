//! The input of the decoder.
//!
//! It provides a window: the next bytes that are available without I/O. Heads are parsed from the
//! window. Payloads are borrowed, copied from the window, or read directly into their destination.

use std::{fmt, io};

use crate::error::Result;
use crate::io::buffers::Buffers;
use crate::io::source::{Bytes, IoRead, KEY, allowed_in_memory, too_short};
use crate::options::Limits;

/// The input of the decoder: bytes in memory, or a reader with a buffer.
///
/// There is one type for all of them, so that the type of a user is compiled for one decoder.
pub struct Input<'de, 'b> {
    rest: Rest<'de, 'b>,
    /// The offset of the end of the bytes in memory.
    end: u64,
    /// Where a recording has started: the number of bytes that were left.
    recorded_from: usize,
    kind: InputKind<'de, 'b>,
}

/// The bytes that were not read yet, and all bytes that are in memory.
enum Rest<'de, 'b> {
    /// Values can borrow from them.
    Lent {
        rest: &'de [u8],
        whole: &'de [u8],
    },
    /// They were copied from the input, so values cannot borrow from them.
    Copied {
        rest: &'b [u8],
        whole: &'b [u8],
    },
    Stream(&'b mut IoRead<dyn io::Read + 'b>),
}

enum InputKind<'de, 'b> {
    Message,
    /// The metadata of a segment. References to buffers are resolved through these.
    Metadata(&'b mut dyn Buffers<'de>),
    /// Items of a document, which has allowed memory for them.
    Items,
}

/// Bytes that were read, for use in error messages: their offset, and the first of them if the input does not keep them.
pub enum Mark {
    Here(u64),
    Kept(u64, [u8; KEY]),
}

impl fmt::Debug for Input<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("offset", &self.offset()).finish_non_exhaustive()
    }
}

impl<'de, 'b> Input<'de, 'b> {
    fn of(rest: Rest<'de, 'b>, end: u64, kind: InputKind<'de, 'b>) -> Self {
        Self { rest, end, recorded_from: 0, kind }
    }

    fn of_lent(bytes: &'de [u8], base: u64, kind: InputKind<'de, 'b>) -> Self {
        let rest = Rest::Lent { rest: bytes, whole: bytes };
        Self::of(rest, base.saturating_add(bytes.len() as u64), kind)
    }

    /// A message in memory, or another item without buffers.
    pub fn slice(bytes: &'de [u8]) -> Self {
        Self::of_lent(bytes, 0, InputKind::Message)
    }

    /// The metadata of a segment, which is at offset `base` of the archive.
    pub fn segment(metadata: &'de [u8], base: u64, buffers: &'b mut dyn Buffers<'de>) -> Self {
        Self::of_lent(metadata, base, InputKind::Metadata(buffers))
    }

    /// Items that were taken from a document, where they are at offset `base`.
    pub fn items(items: &'b Bytes<'de, '_>, base: u64) -> Self {
        match items {
            Bytes::Borrowed(bytes) => Self::of_lent(bytes, base, InputKind::Items),
            other => {
                let bytes = other.as_slice();
                let rest = Rest::Copied { rest: bytes, whole: bytes };
                Self::of(rest, base.saturating_add(bytes.len() as u64), InputKind::Items)
            }
        }
    }

    /// A message from a reader.
    pub fn stream(read: &'b mut IoRead<dyn io::Read + 'b>) -> Self {
        Self::of(Rest::Stream(read), 0, InputKind::Message)
    }

    /// The next bytes that are available without I/O.
    #[inline(always)]
    pub fn window(&self) -> &[u8] {
        match &self.rest {
            Rest::Lent { rest, .. } => rest,
            _ => self.other_window(),
        }
    }

    // Values are mostly read from bytes that can be borrowed. So everything else is not inlined.

    #[cold]
    #[inline(never)]
    fn other_window(&self) -> &[u8] {
        match &self.rest {
            Rest::Lent { rest, .. } => rest,
            Rest::Copied { rest, .. } => rest,
            Rest::Stream(read) => read.window(),
        }
    }

    /// The bytes that were not read yet, if values can borrow from them.
    #[inline(always)]
    pub fn lent(&self) -> Option<&'de [u8]> {
        match &self.rest {
            Rest::Lent { rest, .. } => Some(rest),
            _ => None,
        }
    }

    /// Reads until the window has `need` bytes or the input ends. `need` is at most the length of a
    /// head.
    #[inline(always)]
    pub fn fill(&mut self, need: usize) -> Result<()> {
        match &mut self.rest {
            Rest::Stream(read) => read.fill(need),
            _ => Ok(()),
        }
    }

    /// Moves past the first `n` bytes of the window.
    #[inline(always)]
    pub fn advance(&mut self, n: usize) {
        match &mut self.rest {
            Rest::Lent { rest, .. } => pass(rest, n),
            _ => self.other_advance(n),
        }
    }

    #[cold]
    #[inline(never)]
    fn other_advance(&mut self, n: usize) {
        match &mut self.rest {
            Rest::Lent { rest, .. } => pass(rest, n),
            Rest::Copied { rest, .. } => pass(rest, n),
            Rest::Stream(read) => read.leave(n),
        }
    }

    /// Skips `skip` bytes and takes the `len` bytes after them, if the window contains all of them.
    #[inline(always)]
    pub fn short<'s>(&'s mut self, skip: usize, len: usize) -> Option<Bytes<'de, 's>> {
        match &mut self.rest {
            Rest::Lent { rest, .. } => {
                let bytes = rest.get(skip..)?.get(..len)?;
                pass(rest, skip + len);
                Some(Bytes::Borrowed(bytes))
            }
            _ => self.other_short(skip, len),
        }
    }

    #[cold]
    #[inline(never)]
    fn other_short<'s>(&'s mut self, skip: usize, len: usize) -> Option<Bytes<'de, 's>> {
        match &mut self.rest {
            Rest::Lent { .. } => None,
            Rest::Copied { rest, .. } => {
                let bytes = rest.get(skip..)?.get(..len)?;
                pass(rest, skip + len);
                Some(Bytes::Copied(bytes))
            }
            Rest::Stream(read) => read.short(skip, len).map(Bytes::Copied),
        }
    }

    /// If the window starts with the byte `initial`, takes it and the `N` bytes after it, and returns
    /// these `N` bytes. Otherwise, or if the window is too short, takes nothing.
    #[inline(always)]
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
    #[inline(always)]
    pub fn offset(&self) -> u64 {
        match &self.rest {
            Rest::Lent { rest, .. } => self.end - rest.len() as u64,
            _ => self.other_offset(),
        }
    }

    #[cold]
    #[inline(never)]
    fn other_offset(&self) -> u64 {
        match &self.rest {
            Rest::Lent { rest, .. } => self.end - rest.len() as u64,
            Rest::Copied { rest, .. } => self.end - rest.len() as u64,
            Rest::Stream(read) => read.offset(),
        }
    }

    /// The number of bytes left in the input, if it is known. A length in the document of at most this
    /// number is backed by input.
    #[inline(always)]
    pub fn remaining(&self) -> Option<usize> {
        match &self.rest {
            Rest::Lent { rest, .. } => Some(rest.len()),
            Rest::Copied { rest, .. } => Some(rest.len()),
            Rest::Stream(_) => None,
        }
    }

    /// The bytes that were not read yet, if values can borrow from them.
    pub fn rest(&self) -> &'de [u8] {
        match &self.rest {
            Rest::Lent { rest, .. } => rest,
            _ => &[],
        }
    }

    /// Whether the input is the metadata of a segment.
    pub fn is_metadata(&self) -> bool {
        matches!(self.kind, InputKind::Metadata(_))
    }

    /// The number of bytes of memory that the input allows so far: see [`Limits::memory`]. Of a stream, bytes that were
    /// received and not yet read do not count: what is refused must not depend on how they arrive.
    pub fn allowed(&self) -> u64 {
        let whole = match &self.rest {
            Rest::Stream(read) => return Limits::allowed(read.offset(), 0),
            Rest::Lent { whole, .. } => whole.len(),
            Rest::Copied { whole, .. } => whole.len(),
        };
        match &self.kind {
            InputKind::Message => allowed_in_memory(whole as u64),
            InputKind::Metadata(buffers) => allowed_in_memory(whole as u64).max(buffers.allowed()),
            InputKind::Items => 0,
        }
    }

    /// Skips `len` bytes. Returns how many of them are missing because the input has ended.
    pub fn pass_over(&mut self, len: u64) -> Result<u64> {
        if let Rest::Stream(read) = &mut self.rest {
            return read.pass_over(len);
        }
        let step = usize::try_from(len).unwrap_or(usize::MAX).min(self.window().len());
        self.advance(step);
        Ok(len - step as u64)
    }

    /// Takes exactly `len` bytes. `what` names them in the error if the input is too short.
    #[inline(always)]
    pub fn take<'s>(&'s mut self, len: usize, what: &str) -> Result<Bytes<'de, 's>> {
        if let Rest::Lent { rest, .. } = &mut self.rest
            && let Some(bytes) = rest.get(..len)
        {
            pass(rest, len);
            return Ok(Bytes::Borrowed(bytes));
        }
        self.other_take(len, what)
    }

    #[cold]
    #[inline(never)]
    fn other_take<'s>(&'s mut self, len: usize, what: &str) -> Result<Bytes<'de, 's>> {
        let at = self.offset();
        let left = match &mut self.rest {
            Rest::Lent { rest, .. } => rest.len(),
            Rest::Copied { rest, .. } => match rest.get(..len) {
                Some(bytes) => {
                    pass(rest, len);
                    return Ok(Bytes::Copied(bytes));
                }
                None => rest.len(),
            },
            Rest::Stream(read) => return read.take(len, what),
        };
        Err(too_short(len as u64, left as u64, what).at(at))
    }

    /// Fills `out` from the input. `what` names the bytes in the error if the input is too short.
    pub fn read_exact(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        if let Rest::Stream(read) = &mut self.rest {
            return read.read_exact(out, what);
        }
        let bytes = self.take(out.len(), what)?;
        out.copy_from_slice(bytes.as_slice());
        Ok(())
    }

    /// Marks the bytes from offset `from` to the current position.
    #[inline(always)]
    pub fn mark(&self, from: u64) -> Mark {
        match &self.rest {
            Rest::Stream(read) => Mark::Kept(from, read.last_bytes(from)),
            _ => Mark::Here(from),
        }
    }

    /// The offset of the marked bytes, and a slice that starts with them. Of a stream, only the first bytes are there.
    pub fn marked<'a>(&'a self, mark: &'a Mark) -> (u64, &'a [u8]) {
        let from = match mark {
            Mark::Here(from) => *from,
            Mark::Kept(from, bytes) => return (*from, bytes),
        };
        let whole: &[u8] = match &self.rest {
            Rest::Lent { whole, .. } => whole,
            Rest::Copied { whole, .. } => whole,
            Rest::Stream(_) => &[],
        };
        let start = usize::try_from(self.end.saturating_sub(from)).unwrap_or(usize::MAX);
        let start = whole.len().saturating_sub(start);
        (from, whole.get(start..).unwrap_or_default())
    }

    /// Starts to record the bytes that are read.
    pub fn record(&mut self) {
        match &mut self.rest {
            Rest::Stream(read) => read.record(),
            _ => self.recorded_from = self.remaining().unwrap_or_default(),
        }
    }

    /// Ends the recording and returns the bytes read since [`record`](Self::record).
    pub fn recorded(&mut self) -> Bytes<'de, 'static> {
        match &mut self.rest {
            Rest::Lent { rest, whole } => {
                Bytes::Borrowed(recorded(whole, self.recorded_from, rest.len()))
            }
            Rest::Copied { rest, whole } => {
                Bytes::Owned(recorded(whole, self.recorded_from, rest.len()).to_vec())
            }
            Rest::Stream(read) => Bytes::Owned(read.recorded()),
        }
    }

    /// The buffers that the input may refer to. `None` for a message, which has no buffers.
    #[inline(always)]
    pub fn buffers(&mut self) -> Option<&mut dyn Buffers<'de>> {
        match &mut self.kind {
            InputKind::Metadata(buffers) => Some(&mut **buffers),
            _ => None,
        }
    }

    /// Returns the bytes of a tensor, which were taken right before: as they are, or as an aligned copy if they are not
    /// aligned to `align` and the input has an arena.
    #[inline(always)]
    pub fn aligned(&mut self, bytes: &'de [u8], align: usize) -> &'de [u8] {
        match &self.kind {
            InputKind::Metadata(buffers) if !(bytes.as_ptr() as usize).is_multiple_of(align) => {
                buffers.aligned(self.offset(), bytes)
            }
            _ => bytes,
        }
    }
}

/// Moves past the first `n` bytes.
#[inline(always)]
fn pass(rest: &mut &[u8], n: usize) {
    #[cfg(test)]
    PASSED.with(|passed| passed.set(passed.get() + n.min(rest.len())));
    *rest = rest.get(n..).unwrap_or_default();
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
