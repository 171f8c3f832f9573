//! Compresses the buffers of a value before they are written, because the header holds their stored lengths.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::options::Compression;
use super::packed::{Coding, Packed, PackedBuffers};
use super::walk::Output;
use crate::codec::{self, Codec, Encoder};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::checksum;
use crate::io::chunks::ChunkLen;
use crate::io::parallel::in_parallel;
use crate::options::Limits;

/// How many chunks for each thread are compressed before the next bytes are taken.
const CHUNKS_A_THREAD: usize = 4;
/// About as many bytes of the header describe a chunk.
const ENTRY: u64 = 5;

/// Compressed buffers, to be written.
#[derive(Default)]
pub struct Compressed {
    /// What the header says of them.
    pub buffers: PackedBuffers,
    /// Their stored chunks.
    pub chunks: BTreeMap<usize, Vec<Chunk>>,
}

/// A chunk as it is stored.
pub struct Chunk {
    pub stored: Vec<u8>,
    /// The hash of the stored bytes.
    pub hash: u64,
}

/// How a buffer is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    codec: Codec,
    layout: codec::Layout,
    level: i32,
}

impl Method {
    /// For a buffer of elements of this dtype. `None` if it is not compressed.
    pub fn new(compression: Compression, dtype: &DType) -> Option<Self> {
        let (codec, level) = compression.codec()?;
        let layout = codec::Layout::new(dtype.word(), is_rotated(dtype))?;
        Some(Self { codec, layout, level })
    }

    fn encoder(self) -> Result<Encoder> {
        Encoder::new(self.codec, self.layout, self.level)
            .map_err(|error| Error::data(error.to_string()))
    }
}

/// Whether the sign is moved away from the exponent. The exponents of these types then fill a byte of their own.
fn is_rotated(dtype: &DType) -> bool {
    matches!(dtype, DType::BF16 | DType::F32 | DType::C64)
}

/// Compresses the buffers that it receives.
pub struct Compressor<'a> {
    /// For each buffer, how it is compressed.
    methods: &'a [Option<Method>],
    chunk_len: ChunkLen,
    threads: usize,
    done: Compressed,
    /// The bytes of the buffers that were compressed so far, and of their stored chunks.
    full: u64,
    stored: u64,
    current: Option<Current>,
}

/// The buffer that is being compressed.
struct Current {
    number: usize,
    len: u64,
    method: Method,
    /// The bytes that are still to come.
    left: u64,
    /// The start of a chunk.
    pending: Vec<u8>,
    chunks: Vec<Chunk>,
    /// The bytes that were compressed, and of their stored chunks.
    full: u64,
    stored: u64,
    /// Those that no thread uses.
    encoders: Mutex<Vec<Encoder>>,
}

impl<'a> Compressor<'a> {
    pub fn new(methods: &'a [Option<Method>], chunk_len: ChunkLen, threads: usize) -> Self {
        let done = Compressed::default();
        Self { methods, chunk_len, threads, done, full: 0, stored: 0, current: None }
    }

    /// The buffers that became shorter.
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
        let mut stored: Vec<Option<Chunk>> = Vec::new();
        stored.resize_with(bytes.len().div_ceil(chunk_len), || None);
        let threads = self.threads.min(stored.len());
        let Current { method, encoders, .. } = &*current;
        in_parallel(bytes.chunks(chunk_len).zip(&mut stored), threads, |(chunk, to)| {
            let free = || encoders.lock().unwrap_or_else(PoisonError::into_inner);
            let waiting = free().pop();
            let mut encoder = waiting.map_or_else(|| method.encoder(), Ok)?;
            // Most of it is given back. Growing it would copy it several times.
            let mut out = Vec::with_capacity(chunk.len());
            if encoder.encode(chunk, &mut out) {
                out.shrink_to_fit();
                *to = Some(Chunk { hash: checksum::of(&out, 0), stored: out });
            }
            free().push(encoder);
            Ok(())
        })?;
        for (bytes, chunk) in bytes.chunks(chunk_len).zip(stored) {
            let full = self.full + current.full + bytes.len() as u64;
            let so_far = self.stored + current.stored;
            // What readers refuse by default is not written.
            let allowed = |chunk: &Chunk| {
                full <= Limits::default().unpacked(so_far + chunk.stored.len() as u64)
            };
            let chunk = chunk
                .filter(allowed)
                .unwrap_or_else(|| Chunk { stored: bytes.to_vec(), hash: checksum::of(bytes, 0) });
            current.full += bytes.len() as u64;
            current.stored += chunk.stored.len() as u64;
            current.chunks.push(chunk);
        }
        Ok(())
    }
}

impl Output for Compressor<'_> {
    fn begin(&mut self, number: u64, len: u64) -> Result<()> {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let method = self.methods.get(number).copied().flatten().filter(|_| len > 0);
        self.current = method.map(|method| Current {
            number,
            len,
            method,
            left: len,
            pending: Vec::new(),
            chunks: Vec::new(),
            full: 0,
            stored: 0,
            encoders: Mutex::default(),
        });
        Ok(())
    }

    fn put(&mut self, mut block: &[u8]) -> Result<()> {
        let chunk_len = usize::try_from(self.chunk_len.get()).unwrap_or(usize::MAX);
        let Some(current) = &mut self.current else { return Ok(()) };
        current.left = current.left.saturating_sub(block.len() as u64);
        let is_last = current.left == 0;
        if !current.pending.is_empty() {
            let (now, rest) = block.split_at(block.len().min(chunk_len - current.pending.len()));
            current.pending.extend_from_slice(now);
            block = rest;
            if current.pending.len() < chunk_len && !is_last {
                return Ok(());
            }
            let mut pending = std::mem::take(&mut current.pending);
            self.chunks(&pending)?;
            pending.clear();
            if let Some(current) = &mut self.current {
                current.pending = pending;
            }
        }
        let whole = if is_last { block.len() } else { block.len() - block.len() % chunk_len };
        let (whole, rest) = block.split_at(whole);
        self.chunks(whole)?;
        if let Some(current) = &mut self.current {
            current.pending.extend_from_slice(rest);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let Some(Current { number, len, method, chunks, full, stored, .. }) = self.current.take()
        else {
            return Ok(());
        };
        // What hardly shrinks is better stored as it is: it is mapped, and read without decompressing.
        if stored + ENTRY * chunks.len() as u64 > len - len / 32 {
            return Ok(());
        }
        self.full += full;
        self.stored += stored;
        let lengths = chunks.iter().map(|chunk| chunk.stored.len() as u64);
        let packed = Packed::new(Coding::new(method.codec, method.layout), lengths);
        self.done.buffers.insert(number, packed);
        self.done.chunks.insert(number, chunks);
        Ok(())
    }
}
