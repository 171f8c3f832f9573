//! Finds the damaged chunks of segments, and says what was in them.

use std::collections::HashSet;
use std::ops::Range;

use super::salvage::{DamagedChunks, Salvage};
use crate::buffer::chunked;
use crate::buffer::loaded::Loaded;
use crate::buffer::source;
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::io::chunks::Hashes;
use crate::io::parallel::{Spare, in_parallel};
use crate::meta::Order;
use crate::options::DecodeOptions;
use crate::segment::buffer_use::held;
use crate::segment::buffers::{chunk_of, no_such, stored_range};
use crate::segment::format;
use crate::segment::header::Header;
use crate::tensor::TensorInfo;

/// A damaged value, as [`recover_filled`](crate::archive::recover_filled) wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mended {
    /// The number of the value in the new file.
    pub number: u64,
    /// The name of the value, if it has one.
    pub name: Option<String>,
    /// The tensors, and the byte strings in buffers, of which damaged chunks became zeros.
    pub filled: Vec<Filled>,
    /// The paths of sequences that are stored as columns and in which lengths, flags, codes or texts of rows are damaged. Zeros
    /// in their place would be other rows. So the new value has *undefined* in place of the whole sequence.
    pub missing: Vec<String>,
}

/// A tensor of which some bytes were damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Filled {
    /// The tensor. There are several if equal tensors are stored once.
    pub tensors: Vec<TensorInfo>,
    /// What is zero in the new file.
    pub chunks: Vec<FilledChunk>,
}

/// A damaged chunk of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilledChunk {
    /// The number of the chunk in its buffer.
    pub number: u64,
    /// Which bytes of the buffer it has, after it was decompressed.
    pub bytes: Range<u64>,
    /// Which indices along the first dimension of the first of the tensors it touches. `None` if the tensor has no dimension, or
    /// if its order is F.
    pub rows: Option<Range<u64>>,
}

/// A value that is not in the new file, because its header is damaged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lost {
    /// The number of the value in the old file.
    pub number: u64,
    /// Its name in the directory.
    pub name: Option<String>,
    /// What is wrong with the header.
    pub error: String,
}

/// Finds the damaged chunks of a segment, and sets the hashes of the chunks to those of what is there.
///
/// If the list of hashes is damaged too, a chunk is good if its hash is in the right place of the list.
pub fn damaged_chunks<S: ReadAt + ?Sized>(
    source: &S,
    loaded: &Loaded,
    options: DecodeOptions,
) -> Result<DamagedChunks> {
    let header = &loaded.header;
    let mut damaged = DamagedChunks::new();
    header.check.known().map_err(|error| error.at(header.offset))?;
    if !header.is_checked() || header.count() == 0 {
        loaded.set_hashes(Hashes::default());
        return Ok(damaged);
    }
    let trailer = loaded.trailer(source)?;
    let found = computed(source, header, options)?;
    let item = format::hashes_item(&header.check, &found.bytes())?;
    let expected = format::trailer(item, header.hash);
    let stored = format::unverified_trailer(&trailer, &header.layout);
    // If the hash over the list of the computed hashes is right, at most the list is damaged.
    if let Some((stored, hash)) = stored
        && !expected.ends_with(hash)
    {
        let lengths = header.lengths();
        let stored = Hashes::new(stored, lengths.iter().copied(), header.chunk_len);
        for (number, index) in (0..header.count()).zip(0..) {
            let pairs = found.of(number).into_iter().zip(stored.of(number));
            let pairs = pairs.flat_map(|(found, stored)| found.iter().zip(stored));
            let differing = (0..).zip(pairs).filter(|(_, (found, stored))| found != stored);
            let differing: Vec<u64> = differing.map(|(index, _)| index).collect();
            if !differing.is_empty() {
                damaged.insert(index, differing);
            }
        }
    }
    loaded.set_hashes(found);
    Ok(damaged)
}

/// Computes the hashes of the chunks as they are stored. Several threads share the chunks of all buffers.
fn computed<S: ReadAt + ?Sized>(
    source: &S,
    header: &Header,
    options: DecodeOptions,
) -> Result<Hashes> {
    let (layout, chunk_len) = (&header.layout, header.chunk_len);
    let chunks = layout.places().flat_map(|place| {
        let indices = 0..chunk_len.count(place.len());
        indices.map(move |index| stored_range(place, chunk_len, index))
    });
    // The stored hashes were read into memory, which are as many.
    let mut hashes = vec![0; source::in_memory(layout.chunks, layout.body_end)?];
    let threads = chunked::threads(layout.body_end - layout.body_start, options);
    let memory = Spare::default();
    in_parallel(hashes.iter_mut().zip(chunks), threads, |(hash, chunk)| {
        *hash = memory.lend(|memory| chunked::hash(source, chunk, memory))?;
        Ok(())
    })?;
    Ok(Hashes::new(hashes, header.lengths().into_iter(), chunk_len))
}

/// What is written in place of a damaged segment, which becomes the segment with this number, and the report.
pub fn mend<S: ReadAt + ?Sized>(
    source: &S,
    loaded: Loaded,
    damaged: DamagedChunks,
    number: u64,
    options: DecodeOptions,
) -> Result<(Salvage<'_, S>, Mended)> {
    let header = &loaded.header;
    let metadata = loaded.metadata(source)?;
    let held = held(metadata, header, options.limits, |number| damaged.contains_key(&number))?;
    let is_lost = |number| held.get(&number).is_some_and(|held| !held.takes_any_content());
    let mut filled = Vec::new();
    for (&number, chunks) in damaged.iter().filter(|&(&number, _)| !is_lost(number)) {
        let place = header.buffer(number).ok_or_else(|| no_such(number))?;
        let payloads = held.get(&number).map_or(&[][..], |held| &held.payloads);
        let chunk = |&number: &u64| {
            let bytes = chunk_of(place, header.chunk_len, number);
            let rows = payloads.first().and_then(|first| rows_of(first, place.len(), &bytes));
            FilledChunk { number, bytes, rows }
        };
        let chunks = chunks.iter().map(chunk).collect();
        let tensors = payloads.iter().map(|(info, _)| info.clone()).collect();
        filled.push(Filled { tensors, chunks });
    }
    let salvage = Salvage::of_damaged(source, loaded, damaged, options, is_lost);
    let report = salvage.report()?;
    // Each buffer of a sequence that is left out is listed.
    let mut seen = HashSet::new();
    let paths = report.missing.iter().map(|info| info.path().to_owned());
    let missing = paths.filter(|path| seen.insert(path.clone())).collect();
    Ok((salvage, Mended { number, name: report.name, filled, missing }))
}

/// The rows of a tensor with these bytes of the buffer, which has `len` bytes.
fn rows_of(
    (info, part): &(TensorInfo, Option<Range<u64>>),
    len: u64,
    bytes: &Range<u64>,
) -> Option<Range<u64>> {
    let rows = match part {
        Some(rows) => rows.clone(),
        None => {
            let is_in_rows = info.order() == Order::C && info.dtype().bits().is_some();
            0..*info.shape().first().filter(|_| is_in_rows)? as u64
        }
    };
    let count = u128::from(rows.end - rows.start);
    let row = |row: u128| rows.start + u64::try_from(row).unwrap_or(u64::MAX);
    let first = (u128::from(bytes.start) * count).checked_div(len.into())?;
    let end = (u128::from(bytes.end) * count).div_ceil(len.into());
    Some(row(first)..row(end))
}
