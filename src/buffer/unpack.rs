//! Decompresses buffers, chunk by chunk.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use super::chunked::{self, MIN_PARALLEL};
use super::loaded::Loaded;
use super::source;
use crate::codec::{self, Codec, CodecError, Decoder, Problem};
use crate::error::{Category, Error, Result};
use crate::io::at::ReadAt;
use crate::io::checksum;
use crate::io::chunks::ChunkLen;
use crate::io::parallel::{Spare, in_parallel, one_a_core};
use crate::io::source::reserve;
use crate::options::DecodeOptions;
use crate::segment::buffers::{StoredHashes, check_unpacked, chunk_memory, chunk_of, stored_range};
use crate::segment::format::{BufferPlace, PackedPlace};
use crate::segment::header::Header;

/// The description of a compressed buffer. [`Segment::compressed`](crate::archive::Segment::compressed) returns it.
#[derive(Clone, Copy, Debug)]
pub struct CompressedBuffer<'a>(pub(crate) PackedPlace<'a>);

impl<'a> CompressedBuffer<'a> {
    /// The name of the codec, even if this version does not know it.
    pub fn codec(&self) -> &'a str {
        self.0.how.coding.name()
    }

    /// The number of bytes that are stored.
    pub fn stored_len(&self) -> u64 {
        self.0.how.stored_len()
    }
}

/// Decompresses the chunks of one buffer.
#[derive(Clone, Copy)]
pub struct PackedChunks<'a> {
    number: u64,
    place: PackedPlace<'a>,
    chunk_len: ChunkLen,
    codec: Codec,
    layout: codec::Layout,
}

impl<'a> PackedChunks<'a> {
    /// # Errors
    /// - This version does not know the codec.
    /// - A chunk is longer than [`Limits::memory`](crate::options::Limits::memory) allows for this input.
    pub fn new(
        header: &Header,
        number: u64,
        place: PackedPlace<'a>,
        options: DecodeOptions,
        input: (u64, u64),
    ) -> Result<Self> {
        let (codec, layout) = place.how.coding.decodes().map_err(|error| error.at(place.start))?;
        let chunk_len = header.chunk_len;
        let longest = place.len.min(chunk_len.get());
        check_unpacked(longest, options.limits, input).map_err(|error| error.at(place.start))?;
        Ok(Self { number, place, chunk_len, codec, layout })
    }

    /// The number of chunks.
    pub fn count(&self) -> u64 {
        self.place.how.chunks()
    }

    /// The range of a chunk in the buffer.
    pub fn content(&self, index: u64) -> Range<u64> {
        chunk_of(BufferPlace::Packed(self.place), self.chunk_len, index)
    }

    /// The length of a chunk after it was decompressed.
    pub fn content_len(&self, index: u64) -> usize {
        let Range { start, end } = self.content(index);
        usize::try_from(end - start).unwrap_or(usize::MAX)
    }

    /// The range of a stored chunk in the archive.
    pub fn stored(&self, index: u64) -> Range<u64> {
        stored_range(BufferPlace::Packed(self.place), self.chunk_len, index)
    }

    /// Decompresses a chunk. `out` has its length.
    pub fn decode(
        &self,
        decoder: &mut Decoder,
        index: u64,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<()> {
        let result = decoder.decode(self.codec, self.layout, stored, out);
        result.map_err(|error| self.undecodable(index, &error))
    }

    #[cold]
    fn undecodable(&self, index: u64, error: &CodecError) -> Error {
        let category = match error.problem {
            Problem::Unreadable(_) => Category::Unsupported,
            _ => Category::Damaged,
        };
        let (Range { start, end }, number) = (self.content(index), self.number);
        let codec = self.codec.name();
        let what = format!(
            "chunk {index} of buffer {number}, which is its bytes {start}..{end}, compressed with {codec}, cannot be \
             decompressed: {error}"
        );
        Error::new(category, what).at(self.stored(index).start.saturating_add(error.at as u64))
    }
}

/// Decompresses one chunk after the other.
#[derive(Default)]
struct Worker {
    decoder: Decoder,
    /// Memory for the stored bytes, if the archive is not in memory.
    stored: Vec<u8>,
}

/// The chunks of compressed buffers that were decompressed last.
#[derive(Default)]
pub struct KeptChunks(Mutex<ChunkCache>);

#[derive(Default)]
struct ChunkCache {
    chunks: HashMap<ChunkKey, Arc<Vec<u8>>>,
    /// The keys of all chunks, in the order in which they came.
    order: VecDeque<ChunkKey>,
    /// The memory that they take.
    bytes: usize,
}

/// The offset of the segment, the number of the buffer in it, and the number of the chunk in that.
type ChunkKey = (u64, u64, u64);

impl KeptChunks {
    /// The most memory for all chunks together. A group of rows that tenarc wrote takes 16 MiB at most.
    const MAX: usize = 32 << 20;
    /// About the memory that a chunk takes beside its bytes.
    const EACH: usize = 128;

    fn get(&self, key: ChunkKey) -> Option<Arc<Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).chunks.get(&key).cloned()
    }

    /// Keeps a chunk, in the place of those that came first. All chunks together may take `limit` bytes.
    fn put(&self, key: ChunkKey, bytes: Arc<Vec<u8>>, limit: u64) {
        let max = usize::try_from(limit).unwrap_or(usize::MAX).min(Self::MAX);
        let size = |bytes: &Vec<u8>| bytes.capacity().saturating_add(Self::EACH);
        let more = size(&bytes);
        if more > max {
            return;
        }
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let ChunkCache { chunks, order, bytes: total } = &mut *kept;
        while *total + more > max
            && let Some(first) = order.pop_front()
        {
            *total -= chunks.remove(&first).map_or(0, |bytes| size(&bytes));
        }
        // Two threads may have decompressed the same chunk.
        if chunks.insert(key, bytes).is_none() {
            order.push_back(key);
            *total += more;
        }
    }
}

/// A compressed buffer in an archive that can be read at any position.
pub struct Unpack<'a, S: ?Sized> {
    source: &'a S,
    pub chunks: PackedChunks<'a>,
    /// `None` if nothing is verified.
    hashes: Option<StoredHashes<'a>>,
    options: DecodeOptions,
    /// The bytes of the segment that are present: see [`Loaded::input`].
    input: (u64, u64),
    workers: Spare<Worker>,
    /// The number and the bytes of the last chunk that was read for a part of it.
    held: Option<(u64, Arc<Vec<u8>>)>,
    /// Where chunks are kept for other calls.
    kept: Option<&'a KeptChunks>,
    /// The offset of the segment.
    segment: u64,
}

impl<'a, S: ReadAt + ?Sized> Unpack<'a, S> {
    pub fn new(
        source: &'a S,
        loaded: &'a Loaded,
        number: u64,
        place: PackedPlace<'a>,
        options: DecodeOptions,
    ) -> Result<Self> {
        let input = loaded.input();
        let chunks = PackedChunks::new(&loaded.header, number, place, options, input)?;
        let hashes = loaded.stored(source, number, options)?;
        let workers = Spare::default();
        let segment = loaded.header.offset;
        Ok(Self {
            source,
            chunks,
            hashes,
            options,
            input,
            workers,
            held: None,
            kept: None,
            segment,
        })
    }

    /// Uses the chunks that other calls have kept, and keeps all that are read.
    pub fn keeping(self, kept: Option<&'a KeptChunks>) -> Self {
        Self { kept, ..self }
    }

    /// Checks that a part of `len` bytes may be read into memory.
    pub fn check_part(&self, len: u64) -> Result<()> {
        let len = len.saturating_add(chunk_memory(self.chunks.place.len, self.chunks.chunk_len));
        check_unpacked(len, self.options.limits, self.input)
    }

    /// Fills `out` with the bytes of the buffer from `at` on.
    pub fn read(&mut self, at: u64, mut out: &mut [u8]) -> Result<()> {
        let wanted = at..at.saturating_add(out.len() as u64);
        for piece in self.chunks.chunk_len.divide(wanted, self.chunks.place.len) {
            let (now, rest) = out.split_at_mut(piece.len);
            out = rest;
            if piece.is_whole && self.kept.is_none() {
                self.whole(piece.index, now)?;
            } else {
                now.copy_from_slice(&self.hold(piece.index)?[piece.from..][..piece.len]);
            }
        }
        Ok(())
    }

    /// Reads whole chunks, the first of which has this number.
    fn whole(&self, first: u64, out: &mut [u8]) -> Result<()> {
        let chunk = self.chunks.content_len(0);
        let threads = match out.len() {
            len if len < MIN_PARALLEL => 1,
            len => one_a_core(self.options.threads).min(len.div_ceil(chunk.max(1))),
        };
        in_parallel((first..).zip(out.chunks_mut(chunk)), threads, |(index, out)| {
            self.chunk(index, out)
        })
    }

    /// Reads, verifies and decompresses a chunk.
    fn chunk(&self, index: u64, out: &mut [u8]) -> Result<()> {
        let Range { start, end } = self.chunks.stored(index);
        if end - start == out.len() as u64 {
            return chunked::read(
                self.source,
                start,
                self.hashes.map(|hashes| (hashes, index)),
                out,
                self.options.with_threads(std::num::NonZeroUsize::MIN),
            );
        }
        self.workers.lend(|Worker { decoder, stored }| {
            let stored = source::bytes_in(self.source, start, end - start, stored)?;
            if let Some(hashes) = self.hashes {
                hashes.check(index, checksum::of(stored, 0))?;
            }
            self.chunks.decode(decoder, index, stored, out)
        })
    }

    /// The bytes of a chunk.
    fn hold(&mut self, index: u64) -> Result<&[u8]> {
        if self.held.as_ref().is_none_or(|(held, _)| *held != index) {
            let key = (self.segment, self.chunks.number, index);
            let bytes = match self.kept.and_then(|kept| kept.get(key)) {
                Some(bytes) => bytes,
                None => {
                    // No chunk is held if this fails.
                    let held = self.held.take().and_then(|(_, bytes)| Arc::into_inner(bytes));
                    let mut bytes = held.unwrap_or_default();
                    let len = self.chunks.content_len(index);
                    let more = len.saturating_sub(bytes.len());
                    reserve(&mut bytes, more)?;
                    bytes.resize(len, 0);
                    self.chunk(index, &mut bytes)?;
                    let bytes = Arc::new(bytes);
                    if let Some(kept) = self.kept {
                        let limit = self.options.limits.max_alloc().unwrap_or(u64::MAX);
                        kept.put(key, bytes.clone(), limit);
                    }
                    bytes
                }
            };
            self.held = Some((index, bytes));
        }
        Ok(self.held.as_ref().map_or(&[], |(_, bytes)| bytes))
    }

    /// Calls `each` with the bytes of each chunk, in order.
    pub fn each(&mut self, each: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        (0..self.chunks.count()).try_for_each(|index| each(self.hold(index)?))
    }
}

/// Decompresses a buffer that comes from a stream, from front to end.
pub struct Unpacking<'a> {
    chunks: PackedChunks<'a>,
    decoder: Box<Decoder>,
    /// The number of the next chunk.
    next: u64,
    /// The last chunk, if only a part of it was asked for, and the length of this part.
    held: Vec<u8>,
    done: usize,
}

impl<'a> Unpacking<'a> {
    pub fn new(chunks: PackedChunks<'a>) -> Self {
        Self { chunks, decoder: Box::default(), next: 0, held: Vec::new(), done: 0 }
    }

    /// Fills `out` with the next bytes of the buffer. `fetch` is called with the number of a chunk and its range in the
    /// archive, and returns the stored bytes.
    pub fn read<'s>(
        &mut self,
        mut out: &mut [u8],
        mut fetch: impl FnMut(u64, Range<u64>) -> Result<Cow<'s, [u8]>>,
    ) -> Result<()> {
        while !out.is_empty() {
            let held = self.held.get(self.done..).unwrap_or_default();
            if !held.is_empty() {
                let (now, rest) = out.split_at_mut(out.len().min(held.len()));
                now.copy_from_slice(&held[..now.len()]);
                self.done += now.len();
                out = rest;
                continue;
            }
            let index = self.next;
            if index >= self.chunks.count() {
                return Err(Error::data("read past the end of a buffer"));
            }
            self.next += 1;
            let stored = fetch(index, self.chunks.stored(index))?;
            let len = self.chunks.content_len(index);
            if out.len() >= len {
                let (now, rest) = out.split_at_mut(len);
                self.chunks.decode(&mut self.decoder, index, &stored, now)?;
                out = rest;
            } else {
                self.done = 0;
                self.held.clear();
                reserve(&mut self.held, len)?;
                self.held.resize(len, 0);
                self.chunks.decode(&mut self.decoder, index, &stored, &mut self.held)?;
            }
        }
        Ok(())
    }
}
