//! Reads many bytes of a buffer at once: chunk by chunk, each verified, on several threads.

use std::ops::Range;

use super::source;
use crate::error::Result;
use crate::io::at::{PIECE, ReadAt};
use crate::io::checksum::{self, Hasher};
use crate::io::chunks::ChunkLen;
use crate::io::parallel::{Spare, in_parallel, one_a_core};
use crate::options::DecodeOptions;
use crate::segment::buffers::{StoredHashes, stored_range};
use crate::segment::format::BufferPlace;
use crate::segment::packed::Packed;

/// The number of bytes that are verified before progress is shown.
const GROUP: u64 = 16 << 20;
/// Fewer bytes are read by one thread: starting another costs as much as reading some hundred KiB.
pub const MIN_PARALLEL: usize = 4 << 20;
/// From this length on, several threads read bytes by default.
const PARALLEL: u64 = 64 << 20;
/// The most threads that do so by default. More hardly read faster from one memory or drive.
const MAX_THREADS: usize = 4;

/// Returns the number of threads that read `len` stored bytes.
pub fn threads(len: u64, options: DecodeOptions) -> usize {
    match options.threads {
        _ if len < MIN_PARALLEL as u64 => 1,
        Some(threads) => threads.get(),
        None if len < PARALLEL => 1,
        None => one_a_core(None).min(MAX_THREADS),
    }
}

/// Reads bytes of a buffer that start at this offset of the archive. If they are verified, they must be whole chunks of
/// the buffer, the first of which has this number.
pub fn read<S: ReadAt + ?Sized>(
    source: &S,
    offset: u64,
    stored: Option<(StoredHashes<'_>, u64)>,
    out: &mut [u8],
    options: DecodeOptions,
) -> Result<()> {
    // Each piece has whole chunks.
    let chunk = stored.map_or(PIECE, |(stored, _)| in_memory(stored.chunk_len().get()));
    let piece = PIECE.next_multiple_of(chunk);
    let read_piece = |(number, out): (usize, &mut [u8])| {
        let at = offset + (number * piece) as u64;
        let Some((stored, first)) = stored else {
            return source::read_exact(source, out, at);
        };
        let index = first + (number * (piece / chunk)) as u64;
        if chunk > PIECE {
            return stored.check(index, read_and_hash(source, at, out)?);
        }
        source::read_exact(source, out, at)?;
        let mut chunks = (index..).zip(out.chunks(chunk));
        chunks.try_for_each(|(index, chunk)| stored.check(index, checksum::of(chunk, 0)))
    };
    if out.len() <= piece {
        return read_piece((0, out));
    }
    let threads = threads(out.len() as u64, options);
    in_parallel(out.chunks_mut(piece).enumerate(), threads, read_piece)
}

/// Reads all bytes of a buffer as they are stored, and verifies them if the buffer has checksums. Calls `progress` with
/// the offsets up to which it was read.
pub fn verify<S: ReadAt + ?Sized>(
    source: &S,
    place: BufferPlace<'_>,
    stored: Option<StoredHashes<'_>>,
    options: DecodeOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let len = place.stored_len();
    let chunk_len = stored.map_or_else(ChunkLen::default, |stored| stored.chunk_len());
    let range = |index: u64| stored_range(place, chunk_len, index);
    let memory = Spare::default();
    let read_chunk = |index: u64| {
        memory.lend(|memory| match stored {
            Some(stored) => stored.check(index, hash(source, range(index), memory)?),
            None => source::in_pieces(source, range(index), memory, |_| Ok(())),
        })
    };
    let chunks = place.packed().map_or_else(|| chunk_len.count(len), Packed::chunks);
    let threads = threads(len, options);
    // As many at once as the threads need to be busy, so that progress is shown from time to time.
    let group = chunk_len.count(GROUP).max(threads as u64);
    let mut first = 0;
    while first < chunks {
        let end = chunks.min(first + group);
        let busy = usize::try_from(end - first).map_or(threads, |chunks| chunks.min(threads));
        in_parallel(first..end, busy, read_chunk)?;
        progress(range(end - 1).end);
        first = end;
    }
    Ok(())
}

/// Reads these bytes of an archive and returns their hash. Copies are made in `memory`.
pub fn hash<S: ReadAt + ?Sized>(
    source: &S,
    range: Range<u64>,
    memory: &mut Vec<u8>,
) -> Result<u64> {
    let mut hasher = Hasher::new();
    source::in_pieces(source, range, memory, |piece| {
        hasher.update(piece);
        Ok(())
    })?;
    Ok(hasher.finish())
}

/// Reads bytes into `out` and returns their hash.
fn read_and_hash<S: ReadAt + ?Sized>(source: &S, offset: u64, out: &mut [u8]) -> Result<u64> {
    // Piece by piece, so that the bytes are still in the cache when they are hashed.
    let (mut hasher, mut at) = (Hasher::new(), offset);
    for piece in out.chunks_mut(PIECE) {
        source::read_exact(source, piece, at)?;
        hasher.update(piece);
        at += piece.len() as u64;
    }
    Ok(hasher.finish())
}

fn in_memory(len: u64) -> usize {
    usize::try_from(len).unwrap_or(usize::MAX / 2)
}
