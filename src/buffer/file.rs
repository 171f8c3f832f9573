//! The buffers of a segment whose source can be read at any position.

use super::chunked;
use super::loaded::Loaded;
use super::source;
use super::unpack::{KeptChunks, Unpack};
use crate::budget::Budget;
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::io::buffers::{Buffers, Contents, Lend, ReadBuffer, read_past};
use crate::io::checksum::STEP;
use crate::options::{DecodeOptions, Limits};
use crate::segment::buffers::{Checker, chunk_memory};
use crate::segment::format::BufferPlace;

/// Reads each buffer when the decoder needs it.
pub struct FileBuffers<'a, S: ?Sized> {
    source: &'a S,
    loaded: &'a Loaded,
    options: DecodeOptions,
    /// The number of bytes of memory that the segment allows.
    allowed: u64,
    budget: Budget,
    /// The memory for a chunk of the last compressed buffer, if its chunks are long.
    chunk: u64,
    /// The buffer that is being read.
    current: Option<Open<'a, S>>,
    /// The chunks that other calls have decompressed.
    chunks: Option<&'a KeptChunks>,
}

/// The buffer that is being read.
// There is one at a time, and a box would cost an allocation for each tensor.
#[allow(clippy::large_enum_variant)]
enum Open<'a, S: ?Sized> {
    Plain(OpenPlain<'a>),
    /// A compressed one, and the position in it.
    Packed(Unpack<'a, S>, u64),
}

/// A buffer that is stored as it is.
struct OpenPlain<'a> {
    /// The offset of the next byte.
    position: u64,
    checker: Option<Checker<'a>>,
}

impl OpenPlain<'_> {
    /// Reads the next bytes, which are not whole chunks.
    fn read_part<S: ReadAt + ?Sized>(&mut self, source: &S, out: &mut [u8]) -> Result<()> {
        for step in out.chunks_mut(STEP) {
            source::read_exact(source, step, self.position)?;
            if let Some(checker) = &mut self.checker {
                checker.update(step)?;
            }
            self.position += step.len() as u64;
        }
        Ok(())
    }
}

impl<'a, S: ReadAt + ?Sized> FileBuffers<'a, S> {
    pub fn new(source: &'a S, loaded: &'a Loaded, options: DecodeOptions) -> Self {
        Self::after(source, loaded, options, Budget::new(options.limits))
    }

    /// Reads a segment in a call that has read other values, and has left `budget`. [`Budget::start`] was called if the
    /// segment is another one.
    pub fn after(
        source: &'a S,
        loaded: &'a Loaded,
        options: DecodeOptions,
        budget: Budget,
    ) -> Self {
        let (plain, packed) = loaded.input();
        let allowed = Limits::allowed(plain, packed);
        Self { source, loaded, options, allowed, budget, chunk: 0, current: None, chunks: None }
    }

    /// Like [`after`](Self::after), but uses and keeps chunks of compressed buffers. Other buffers are not verified.
    pub fn keeping(
        source: &'a S,
        loaded: &'a Loaded,
        options: DecodeOptions,
        budget: Budget,
        chunks: &'a KeptChunks,
    ) -> Self {
        Self { chunks: Some(chunks), ..Self::after(source, loaded, options, budget) }
    }

    /// The options for buffers that are not compressed.
    fn plain(&self) -> DecodeOptions {
        let options = self.options;
        options.with_checksums(options.checksums && self.chunks.is_none())
    }
}

impl<S: ?Sized> FileBuffers<'_, S> {
    /// What is left of the budget.
    pub fn left(&self) -> &Budget {
        &self.budget
    }
}

impl<'de, 'a: 'de, S: ReadAt + ?Sized> Buffers<'de> for FileBuffers<'a, S> {
    fn places(&self) -> &[(u64, u64)] {
        &self.loaded.header.layout.buffers
    }

    fn cost(&mut self, number: u64, len: u64, _: u64) -> u64 {
        let header = &self.loaded.header;
        let chunk = match self.loaded.stored_buffer(number) {
            Ok(BufferPlace::Packed(place)) => chunk_memory(place.len, header.chunk_len),
            Ok(BufferPlace::Plain { .. }) => 0,
            // Nothing is allocated for what is not there. Reading it is an error.
            Err(_) => return 0,
        };
        // The chunk of the buffer before it was freed.
        len.saturating_add(chunk).saturating_sub(std::mem::replace(&mut self.chunk, chunk))
    }

    fn allowed(&self) -> u64 {
        self.allowed
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.budget)
    }

    fn contents(&mut self) -> Contents<'_, 'de> {
        // A checksum is computed while its buffer is copied. Without checksums, a buffer in memory need not be copied.
        let packed = !self.loaded.header.layout.packed.is_empty();
        if packed || self.loaded.verifies(self.plain()) || self.source.contents().is_none() {
            return Contents::Read(self);
        }
        Contents::Lent(self)
    }
}

impl<'de, 'a: 'de, S: ReadAt + ?Sized> Lend<'de> for FileBuffers<'a, S> {
    fn lend(&mut self, number: u64) -> Result<&'de [u8]> {
        let (start, len) = self.loaded.buffer(number, self.options)?.plain()?;
        source::borrowed(self.source, start, source::in_memory(len, start)?)
    }
}

impl<S: ReadAt + ?Sized> ReadBuffer for FileBuffers<'_, S> {
    fn proven(&self) -> usize {
        usize::MAX
    }

    fn start(&mut self, number: u64, _: u64) -> Result<()> {
        self.current = Some(match self.loaded.buffer(number, self.options)? {
            BufferPlace::Plain { start: position, .. } => {
                let checker = self.loaded.checker(self.source, number, self.plain())?;
                Open::Plain(OpenPlain { position, checker })
            }
            BufferPlace::Packed(place) => {
                let unpack = Unpack::new(self.source, self.loaded, number, place, self.options)?;
                Open::Packed(unpack.keeping(self.chunks), 0)
            }
        });
        Ok(())
    }

    fn read(&mut self, out: &mut [u8]) -> Result<()> {
        let current = match &mut self.current {
            Some(Open::Plain(current)) => current,
            Some(Open::Packed(unpack, position)) => {
                unpack.read(*position, out)?;
                *position += out.len() as u64;
                return Ok(());
            }
            None => return Ok(()),
        };
        // The rest of a chunk, then whole chunks, then the start of the last one.
        let len = out.len() as u64;
        let (first, whole) = match &mut current.checker {
            Some(checker) => {
                let first = checker.of_current(len);
                (first, checker.whole_chunks(len - first))
            }
            None => (0, len),
        };
        let (first, rest) = out.split_at_mut(usize::try_from(first).unwrap_or(usize::MAX));
        let (whole, last) = rest.split_at_mut(usize::try_from(whole).unwrap_or(usize::MAX));
        current.read_part(self.source, first)?;
        let OpenPlain { position, checker } = current;
        let stored = checker.as_ref().map(Checker::next_chunk);
        if stored.is_none() || !whole.is_empty() {
            chunked::read(self.source, *position, stored, whole, self.options)?;
        }
        if let Some(checker) = checker {
            checker.pass_chunks(whole.len() as u64);
        }
        *position += whole.len() as u64;
        current.read_part(self.source, last)
    }

    fn skip(&mut self, len: u64) -> Result<()> {
        let Some(Open::Plain(OpenPlain { checker: Some(checker), .. })) = &self.current else {
            // The bytes are not needed, not even for a checksum.
            self.jump(len);
            return Ok(());
        };
        // The rest of a chunk of which bytes were used is read. So is the start of a chunk of which bytes may be used.
        let of_current = checker.of_current(len);
        self.pass(of_current)?;
        let mut left = len - of_current;
        if let Some(Open::Plain(OpenPlain { checker: Some(checker), .. })) = &mut self.current {
            let whole = checker.pass_chunks(left);
            left -= whole;
            self.jump(whole);
        }
        self.pass(left)
    }

    fn finish(&mut self) -> Result<()> {
        self.current = None;
        Ok(())
    }
}

impl<S: ReadAt + ?Sized> FileBuffers<'_, S> {
    /// Goes on `len` bytes further, without reading.
    fn jump(&mut self, len: u64) {
        match &mut self.current {
            Some(Open::Plain(OpenPlain { position, .. }) | Open::Packed(_, position)) => {
                *position += len;
            }
            None => {}
        }
    }

    /// Reads `len` bytes, only for their checksums.
    fn pass(&mut self, len: u64) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        let scratch = usize::try_from(len).unwrap_or(STEP).min(STEP);
        read_past(self, len, &mut vec![0; scratch])
    }
}
