//! The buffers of a segment that is in memory.

use std::ops::Range;

use super::format::BufferPlace;
use super::header::Header;
use crate::budget::Budget;
use crate::error::{Advice, Error, Result};
use crate::io::buffers::{Buffers, Contents, Lend};
use crate::io::checksum::LEN;
use crate::io::chunks::{ChunkHasher, ChunkLen, Hashes};
use crate::io::source::allowed_in_memory;
use crate::mem::Arena;
use crate::mem::shared_bytes::SharedBytes;
use crate::options::Limits;

/// The stored hashes of a buffer's chunks.
#[derive(Clone, Copy)]
pub struct StoredHashes<'a> {
    number: u64,
    place: BufferPlace<'a>,
    chunk_len: ChunkLen,
    hashes: &'a [u64],
}

impl<'a> StoredHashes<'a> {
    /// Takes the hashes of one buffer from `hashes`, which has those of all buffers of the header.
    pub fn new(header: &'a Header, number: u64, hashes: &'a Hashes) -> Result<Self> {
        let place = header.buffer(number).ok_or_else(|| no_such(number))?;
        let hashes = usize::try_from(number).ok().and_then(|number| hashes.of(number));
        let hashes = hashes.unwrap_or_default();
        Ok(Self { number, place, chunk_len: header.chunk_len, hashes })
    }

    /// The length of the chunks. The last one of the buffer may be shorter.
    pub fn chunk_len(&self) -> ChunkLen {
        self.chunk_len
    }

    /// The range of a chunk in the buffer.
    pub fn chunk(&self, index: u64) -> Range<u64> {
        chunk_of(self.place, self.chunk_len, index)
    }

    /// Compares the hash of a chunk, as it is stored, with the stored one.
    pub fn check(&self, index: u64, computed: u64) -> Result<()> {
        let stored = usize::try_from(index).ok().and_then(|at| self.hashes.get(at).copied());
        if stored == Some(computed) {
            return Ok(());
        }
        Err(self.wrong(index, computed, stored.unwrap_or_default()))
    }

    #[cold]
    fn wrong(&self, index: u64, computed: u64, stored: u64) -> Error {
        let Self { number, place, .. } = *self;
        let Range { start: from, end: to } = self.chunk(index);
        let what = match (self.chunk_len.count(place.len()), place.packed()) {
            (0 | 1, None) => format!("buffer {number}"),
            (_, None) => {
                format!("chunk {index} of buffer {number}, which is its bytes {from}..{to},")
            }
            (_, Some(packed)) => format!(
                "chunk {index} of buffer {number}, which is its bytes {from}..{to}, compressed with {},",
                packed.coding.shown()
            ),
        };
        let from = place.packed().map_or(from, |packed| packed.stored(index).start);
        Error::damaged(format!(
            "checksum of {what} is {computed:0width$x}, the archive says {stored:0width$x}",
            width = 2 * LEN
        ))
        .at(place.start().saturating_add(from))
    }
}

/// The range of a stored chunk of a buffer in the archive.
pub fn stored_range(place: BufferPlace<'_>, chunk_len: ChunkLen, index: u64) -> Range<u64> {
    let Range { start, end } = match place.packed() {
        Some(packed) => packed.stored(index),
        None => chunk_of(place, chunk_len, index),
    };
    place.start() + start..place.start() + end
}

/// The range of a chunk in a buffer after decompression.
pub fn chunk_of(place: BufferPlace<'_>, chunk_len: ChunkLen, index: u64) -> Range<u64> {
    let from = index.saturating_mul(chunk_len.get()).min(place.len());
    from..place.len().min(from.saturating_add(chunk_len.get()))
}

/// Compares the bytes of a buffer that is not compressed, which arrive in pieces, with the hashes of its chunks.
pub struct Checker<'a> {
    stored: StoredHashes<'a>,
    hasher: ChunkHasher,
}

impl<'a> Checker<'a> {
    pub fn new(stored: StoredHashes<'a>) -> Self {
        Self { stored, hasher: ChunkHasher::new(stored.chunk_len, stored.place.len()) }
    }

    /// Takes the next bytes of the buffer.
    ///
    /// # Errors
    /// If they complete a chunk that does not have the stored hash.
    pub fn update(&mut self, bytes: &[u8]) -> Result<()> {
        let stored = self.stored;
        self.hasher.try_update(bytes, |index, computed| stored.check(index, computed))
    }

    /// See [`ChunkHasher::of_current`].
    pub fn of_current(&self, len: u64) -> u64 {
        self.hasher.of_current(len)
    }

    /// See [`ChunkHasher::whole_chunks`].
    pub fn whole_chunks(&self, len: u64) -> u64 {
        self.hasher.whole_chunks(len)
    }

    /// The stored hashes, and the number of the next chunk. The current one must not have been begun.
    pub fn next_chunk(&self) -> (StoredHashes<'a>, u64) {
        (self.stored, self.hasher.index())
    }

    /// See [`ChunkHasher::pass_chunks`].
    pub fn pass_chunks(&mut self, len: u64) -> u64 {
        self.hasher.pass_chunks(len)
    }
}

/// Checks that decompressed bytes are within the budget of an input of `plain` bytes and compressed buffers of `packed` bytes.
pub fn check_unpacked(len: u64, limits: Limits, (plain, packed): (u64, u64)) -> Result<()> {
    let limit = limits.memory(plain, packed);
    if len <= limit {
        return Ok(());
    }
    let what = format!(
        "compressed tensors would take {len} bytes when they are decompressed, the limit is {limit}"
    );
    Err(Error::limit(what).with_advice(Advice::MaxAlloc))
}

/// The memory for one chunk of a compressed buffer that is not read as a whole. Chunks of the usual length do not count.
pub fn chunk_memory(len: u64, chunk_len: ChunkLen) -> u64 {
    if chunk_len.get() > ChunkLen::default().get() { len.min(chunk_len.get()) } else { 0 }
}

#[cold]
pub fn no_such(number: u64) -> Error {
    Error::not_found(format!("there is no buffer {number}"))
}

/// Which buffers were viewed before, and what is left of the budget.
pub struct SeenBuffers {
    /// The first view of a buffer borrows it. Further ones count as copies, because a value that is asked for as a view may be
    /// one. `None` if nothing is copied.
    before: Option<Vec<bool>>,
    budget: Budget,
}

impl SeenBuffers {
    /// For a value that borrows what it reads.
    pub fn new(limits: Limits) -> Self {
        Self { before: Some(Vec::new()), budget: Budget::new(limits) }
    }

    /// For shared tensors, which take no memory for what they read again.
    pub fn uncopied(limits: Limits) -> Self {
        Self { before: None, budget: Budget::new(limits) }
    }

    /// Returns the number of bytes that reading `len` bytes of a buffer costs of the budget.
    fn cost(&mut self, header: &Header, number: u64, len: u64) -> u64 {
        let Some(before) = &mut self.before else { return 0 };
        if before.is_empty() {
            before.resize(header.count(), false);
        }
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        match before.get_mut(number).map(|seen| std::mem::replace(seen, true)) {
            Some(false) => 0,
            _ => len,
        }
    }
}

/// Buffers in memory. Views and shared tensors can refer to them without a copy.
pub struct MemoryBuffers<'a, 'h> {
    pub header: &'h Header,
    /// Returns the content of a buffer. Its length must be the one in the header.
    pub content: &'h dyn Fn(u64) -> Result<&'a [u8]>,
    /// Returns a handle that keeps the buffer alive. `None` if the memory cannot be shared.
    pub share: Option<&'h dyn Fn(u64) -> Option<SharedBytes>>,
    pub arena: Option<&'a Arena>,
    pub seen: &'h mut SeenBuffers,
}

impl<'a> Buffers<'a> for MemoryBuffers<'a, '_> {
    fn places(&self) -> &[(u64, u64)] {
        &self.header.layout.buffers
    }

    fn cost(&mut self, number: u64, len: u64, _: u64) -> u64 {
        self.seen.cost(self.header, number, len)
    }

    fn allowed(&self) -> u64 {
        allowed_in_memory(self.header.byte_len())
    }

    fn budget(&self) -> Option<&Budget> {
        Some(&self.seen.budget)
    }

    fn contents(&mut self) -> Contents<'_, 'a> {
        Contents::Lent(self)
    }

    fn aligned(&self, end: u64, bytes: &'a [u8]) -> &'a [u8] {
        match self.arena {
            Some(arena) => arena.aligned_copy(end, bytes),
            None => bytes,
        }
    }
}

impl<'a> Lend<'a> for MemoryBuffers<'a, '_> {
    fn lend(&mut self, number: u64) -> Result<&'a [u8]> {
        (self.content)(number)
    }

    fn share(&self, number: u64) -> Option<SharedBytes> {
        self.share.and_then(|share| share(number))
    }
}
