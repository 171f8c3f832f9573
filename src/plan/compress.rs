//! Compresses the buffers of a value before they are written, because the header holds their stored lengths.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::pass::Output;
use crate::codec::{self, Codec, Encoder};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::checksum;
use crate::io::chunks::ChunkLen;
use crate::io::parallel::in_parallel;
use crate::io::sink::reserve;
use crate::mem;
use crate::options::Limits;
use crate::segment::buffers::chunk_memory;
use crate::segment::options::Compression;
use crate::segment::packed::{Coding, Packed, PackedBuffers};

/// The number of chunks for each thread that are compressed before more bytes are accepted.
const CHUNKS_A_THREAD: usize = 4;
/// The length of a block of stored chunks.
const BLOCK: usize = 4 << 20;
/// About the number of bytes that a chunk takes in the header.
const ENTRY: u64 = 5;

/// Compressed buffers, to be written.
#[derive(Default)]
pub struct Compressed {
    /// The descriptions of these buffers in the header.
    pub buffers: PackedBuffers,
    /// The stored chunks of each of these buffers.
    pub chunks: BTreeMap<usize, Chunks>,
}

/// The stored chunks of a buffer.
#[derive(Default)]
pub struct Chunks {
    /// Their bytes, divided regardless of chunks. An allocation for each chunk, or a vector that grows, would cost more
    /// in page faults than the copy into a block does.
    pub blocks: Vec<Vec<u8>>,
    lengths: Vec<u64>,
    /// The hash of each chunk.
    pub hashes: Vec<u64>,
}

impl Chunks {
    /// Adds a chunk. The chunks that follow it have at most `left` bytes.
    fn push(&mut self, mut stored: &[u8], hash: u64, left: u64) -> Result<()> {
        self.lengths.push(stored.len() as u64);
        self.hashes.push(hash);
        while !stored.is_empty() {
            if let Some(block) = self.blocks.last_mut() {
                let room = block.capacity() - block.len();
                let (now, rest) = stored.split_at(stored.len().min(room));
                block.extend_from_slice(now);
                stored = rest;
                if stored.is_empty() {
                    break;
                }
            }
            let most = usize::try_from(left).unwrap_or(usize::MAX).saturating_add(stored.len());
            let mut block = Vec::new();
            reserve(&mut block, most.min(BLOCK))?;
            mem::prefer_large_pages(block.spare_capacity_mut());
            self.blocks.push(block);
        }
        Ok(())
    }

    /// Frees memory that was reserved, but not used.
    fn shrink(&mut self) {
        if let Some(block) = self.blocks.last_mut() {
            block.shrink_to_fit();
        }
    }
}

/// How a buffer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    codec: Codec,
    layout: codec::Layout,
    level: i32,
}

impl Method {
    /// Returns the method for a buffer of elements of this dtype. `None` if it is not compressed.
    pub fn new(compression: Compression, dtype: &DType) -> Option<Self> {
        let (codec, level) = compression.codec()?;
        let layout = codec::Layout::new(dtype.word(), is_rotated(dtype))?;
        Some(Self { codec, layout, level })
    }

    fn encoder(self) -> Result<Encoder> {
        Encoder::new(self.codec, self.layout, self.level)
            .map_err(|error| Error::unsupported(error.to_string()))
    }
}

/// Whether the sign is moved away from the exponent. The exponents of these types then fill a byte of their own.
fn is_rotated(dtype: &DType) -> bool {
    matches!(dtype, DType::BF16 | DType::F32 | DType::C64)
}

/// Compresses the buffers that it receives.
pub struct Compressor<'a> {
    /// The compression method of each buffer.
    methods: &'a [Option<Method>],
    /// The buffers that are compressed already.
    taken: &'a PackedBuffers,
    /// For each buffer, the part of [`Limits::memory`] that must stay free for the buffers after it that are
    /// compressed already.
    needs: Vec<u64>,
    chunk_len: ChunkLen,
    threads: usize,
    done: Compressed,
    /// The total length of the buffers that were compressed so far, and of their stored chunks.
    full: u64,
    stored: u64,
    current: Option<BufferCompression>,
    /// The method of the last buffer, and the encoders for it that no thread uses.
    method: Option<Method>,
    encoders: Mutex<Vec<Encoder>>,
    /// The last chunks that were compressed. Their memory is used again.
    slots: Vec<CompressedChunk>,
}

/// A chunk that was compressed.
#[derive(Default)]
struct CompressedChunk {
    stored: Vec<u8>,
    hash: u64,
    /// Whether `stored` is shorter than the chunk. If not, it is empty, and `hash` is that of the chunk.
    shorter: bool,
}

/// The buffer that is being compressed.
struct BufferCompression {
    number: usize,
    len: u64,
    method: Method,
    /// Bytes that are collected until there is work for all threads.
    pending: Vec<u8>,
    chunks: Chunks,
    /// The number of bytes that were compressed, and the total length of their stored chunks.
    full: u64,
    stored: u64,
}

impl BufferCompression {
    /// The number of bytes that are still to come.
    fn left(&self) -> u64 {
        self.len.saturating_sub(self.full).saturating_sub(self.pending.len() as u64)
    }
}

impl<'a> Compressor<'a> {
    /// `taken` are the buffers that are compressed already. `lengths` are the lengths of all buffers.
    pub fn new(
        methods: &'a [Option<Method>],
        lengths: &[u64],
        taken: &'a PackedBuffers,
        chunk_len: ChunkLen,
        threads: usize,
    ) -> Self {
        let mut need = 0u64;
        let needs = lengths.iter().enumerate().rev().map(|(number, len)| {
            let after = need;
            if let Some(how) = taken.get(&number) {
                let allowed = how.stored_len().saturating_mul(Limits::PACKED_FACTOR);
                need = need.saturating_add(*len).saturating_sub(allowed);
            }
            after
        });
        let mut needs: Vec<u64> = needs.collect();
        needs.reverse();
        Self {
            methods,
            taken,
            needs,
            chunk_len,
            threads,
            done: Compressed::default(),
            full: 0,
            stored: 0,
            current: None,
            method: None,
            encoders: Mutex::default(),
            slots: Vec::new(),
        }
    }

    /// Returns the buffers that became shorter.
    pub fn finish(self) -> Compressed {
        self.done
    }

    /// Compresses whole chunks. The last one may be the shorter last one of the buffer.
    fn chunks(&mut self, bytes: &[u8]) -> Result<()> {
        let chunk_len = usize::try_from(self.chunk_len.get()).unwrap_or(usize::MAX);
        let group = chunk_len.saturating_mul(self.threads.saturating_mul(CHUNKS_A_THREAD));
        for group in bytes.chunks(group) {
            self.group(group, chunk_len)?;
        }
        Ok(())
    }

    fn group(&mut self, bytes: &[u8], chunk_len: usize) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        let count = bytes.len().div_ceil(chunk_len);
        let threads = self.threads.min(count);
        if self.slots.len() < count {
            self.slots.resize_with(count, CompressedChunk::default);
        }
        let (method, encoders) = (current.method, &self.encoders);
        let need = self.needs.get(current.number).copied().unwrap_or(0);
        in_parallel(bytes.chunks(chunk_len).zip(&mut self.slots), threads, |(chunk, to)| {
            let free = || encoders.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = free().pop();
            let mut encoder = waiting.map_or_else(|| method.encoder(), Ok)?;
            to.stored.clear();
            to.shorter = encoder.encode(chunk, &mut to.stored);
            to.hash = checksum::of(if to.shorter { &to.stored } else { chunk }, 0);
            free().push(encoder);
            Ok(())
        })?;
        for (bytes, slot) in bytes.chunks(chunk_len).zip(&self.slots) {
            current.full += bytes.len() as u64;
            let so_far = self.stored + current.stored;
            // Data that readers refuse by default is not written. A reader of a stream counts the bytes before a
            // buffer.
            let most = Limits::default().memory(0, so_far + slot.stored.len() as u64);
            let most = most.saturating_sub(chunk_memory(current.len, self.chunk_len));
            let full = self.full.saturating_add(current.full).saturating_add(need);
            let (stored, hash) = match slot.shorter {
                true if full <= most => (&*slot.stored, slot.hash),
                true => (bytes, checksum::of(bytes, 0)),
                false => (bytes, slot.hash),
            };
            current.stored += stored.len() as u64;
            current.chunks.push(stored, hash, current.len - current.full)?;
        }
        Ok(())
    }
}

impl Output for Compressor<'_> {
    fn begin(&mut self, number: u64, len: u64) -> Result<()> {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let method = self.methods.get(number).copied().flatten().filter(|_| len > 0);
        if method.is_some() && method != self.method {
            self.encoders = Mutex::default();
            self.method = method;
        }
        self.current = method.map(|method| BufferCompression {
            number,
            len,
            method,
            pending: Vec::new(),
            chunks: Chunks::default(),
            full: 0,
            stored: 0,
        });
        if let Some(how) = self.taken.get(&number) {
            self.full = self.full.saturating_add(len);
            self.stored = self.stored.saturating_add(how.stored_len());
        }
        Ok(())
    }

    fn wants(&self) -> bool {
        self.current.is_some()
    }

    fn put(&mut self, mut block: &[u8]) -> Result<()> {
        let chunk_len = usize::try_from(self.chunk_len.get()).unwrap_or(usize::MAX);
        // Short blocks are collected until there is work for all threads.
        let most = chunk_len.saturating_mul(self.threads);
        while let Some(current) = &mut self.current
            && !block.is_empty()
        {
            let is_end = current.left() == block.len() as u64;
            if current.pending.is_empty() && (is_end || block.len() >= most) {
                let whole =
                    if is_end { block.len() } else { block.len() - block.len() % chunk_len };
                let (whole, rest) = block.split_at(whole);
                self.chunks(whole)?;
                block = rest;
                continue;
            }
            let (now, rest) = block.split_at(block.len().min(most - current.pending.len()));
            block = rest;
            current.pending.extend_from_slice(now);
            if current.pending.len() == most || current.left() == 0 {
                let mut pending = std::mem::take(&mut current.pending);
                self.chunks(&pending)?;
                pending.clear();
                if let Some(current) = &mut self.current {
                    current.pending = pending;
                }
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let Some(BufferCompression { number, len, method, mut chunks, full, stored, .. }) =
            self.current.take()
        else {
            return Ok(());
        };
        // A buffer that hardly shrinks is stored uncompressed. Then it can be mapped, and is read without
        // decompressing.
        if stored + ENTRY * chunks.lengths.len() as u64 > len - len / 32 {
            return Ok(());
        }
        self.full += full;
        self.stored += stored;
        let lengths = std::mem::take(&mut chunks.lengths);
        let packed = Packed::new(Coding::new(method.codec, method.layout), lengths.into_iter());
        chunks.shrink();
        self.done.buffers.insert(number, packed);
        self.done.chunks.insert(number, chunks);
        Ok(())
    }
}
