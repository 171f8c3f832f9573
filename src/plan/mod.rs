//! The two passes over a value that is saved.
//!
//! The first pass writes the metadata into memory and counts the buffers. The second pass writes the
//! buffers' bytes, and compares its metadata with that of the first pass: a value must serialize in
//! the same way both times.
//!
//! Both passes use the same encoder type. `Serialize` is therefore compiled once for each type of value.

mod compress;
pub mod pass;
mod sizing;
mod writing;

use std::collections::{BTreeMap, HashSet};

use self::compress::{Compressed, Compressor, Method};
use self::pass::{Answers, Choice, Output, PlainSequences, unfinished, walk};
use self::sizing::{Keeping, Known, SizingPass};
use self::writing::WritingPass;
use crate::codec::Codec;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::chunks::Hashes;
use crate::options::{ColumnChoice, Limits};
use crate::path::list;
use crate::path::tracker::PathTracker;
use crate::segment::ext::Ext;
use crate::segment::format::Check;
use crate::segment::header::HeaderContent;
use crate::segment::options::{Compression, SaveOptions};
use crate::wire::strict::strict;
use crate::wire::tensor::ItemPayload;
use crate::wire::writer::ToWrite;

/// The result of the first pass: the metadata, and the lengths of the buffers.
pub struct Plan {
    pub metadata: Vec<u8>,
    /// The metadata as the passes write it, if this is something else: a pass learns some lengths too late.
    written: Option<Vec<u8>>,
    /// The length of each buffer in bytes.
    pub lengths: Vec<u64>,
    /// The compressed buffers. Those without chunks were compressed before, and are copied as they are stored.
    compressed: Compressed,
    /// The codecs of the buffers that are to be compressed again.
    again: BTreeMap<usize, Codec>,
    /// With deduplication: the buffer of each payload, in the order of the pass.
    targets: Option<Vec<u64>>,
    /// The sequences, by number, that turned out to contain different types.
    mixed: HashSet<usize>,
    /// Whether all sequences stay inline, because too many turned out to be mixed.
    no_sequences: bool,
    /// The answers of the user's function, in the order in which it was called.
    answers: Vec<bool>,
    columns: ColumnChoice,
    /// The paths of the sequences that are not written as columns, because their tensors would not be listed.
    rows: HashSet<String>,
    /// The extensions of the header.
    ext: Ext,
}

/// The number of times that the first pass may start again because a sequence changed its type after part of it went
/// to a buffer. After that all sequences stay inline.
const MAX_RESTARTS: usize = 8;
/// The number of times that the first pass may start again because columns hide tensors. After that no sequence is
/// written as columns. Each time, sequences inside those that were columns can become columns.
const MAX_LAYOUTS: usize = 8;

impl Plan {
    /// Runs the first pass. Payloads that are compressed already are decompressed.
    pub fn new(value: &dyn ToWrite, options: &SaveOptions) -> Result<Self> {
        Self::of(value, options, false)
    }

    /// Runs the first pass. Payloads that are compressed already stay compressed, unless the options say otherwise.
    pub fn keeping(value: &dyn ToWrite, options: &SaveOptions) -> Result<Self> {
        Self::of(value, options, options.keeps_compressed())
    }

    fn of(value: &dyn ToWrite, options: &SaveOptions, keeps: bool) -> Result<Self> {
        let mut mixed = HashSet::new();
        let mut answers = Vec::new();
        let mut rows = HashSet::new();
        let mut columns = options.columns();
        let (mut restarts, mut layouts) = (0, 0);
        loop {
            let no_sequences = restarts > MAX_RESTARTS;
            let mut asking =
                Answers { given: answers, next: 0, trail: Some(PathTracker::default()) };
            let mut first = SizingPass {
                choice: Choice::new(options, &mixed, no_sequences, &mut asking),
                rows: PlainSequences::new(&rows),
                tensors_in_columns: false,
                statistics: options.statistics(),
                lengths: Vec::new(),
                keeping: keeps.then(|| Keeping::new(options.chunk_len())),
                current: None,
                mixed: Vec::new(),
                restart: false,
                known: options.dedup.then(Known::new),
            };
            let (written, has_unknown_lengths, result) = walk(value, None, columns, &mut first);
            let SizingPass { lengths, mixed: new, restart, known, current, .. } = first;
            let SizingPass { tensors_in_columns, keeping, statistics, .. } = first;
            mixed.extend(new);
            answers = asking.given;
            if restart {
                restarts += 1;
                continue;
            }
            result?;
            let (metadata, written) = if has_unknown_lengths {
                (strict(&written)?, Some(written))
            } else {
                (written, None)
            };
            if columns == ColumnChoice::Listed && tensors_in_columns {
                let known = rows.len();
                rows.extend(hidden(&metadata, &lengths)?);
                if rows.len() > known {
                    layouts += 1;
                    if layouts > MAX_LAYOUTS {
                        columns = ColumnChoice::None;
                    }
                    mixed.clear();
                    continue;
                }
            }
            if current.is_some() {
                return Err(unfinished());
            }
            let ext = match statistics {
                Some(statistics) => options.ext.with_statistics(statistics)?,
                None => options.ext.clone(),
            };
            let targets = known.map(|known| known.targets);
            let Keeping { taken: buffers, again, .. } = keeping.unwrap_or_default();
            return Ok(Self {
                metadata,
                written,
                lengths,
                compressed: Compressed { buffers, ..Compressed::default() },
                again,
                targets,
                mixed,
                no_sequences,
                answers,
                columns,
                rows,
                ext,
            });
        }
    }

    /// Compresses the buffers for which the options ask. This is a pass of its own, after the first one.
    pub fn compress(&mut self, value: &dyn ToWrite, options: &SaveOptions) -> Result<()> {
        if self.lengths.is_empty() || !options.compresses() && self.again.is_empty() {
            return Ok(());
        }
        let methods = self.methods(options)?;
        if methods.iter().all(Option::is_none) {
            return Ok(());
        }
        let (taken, chunk_len) = (&self.compressed.buffers, options.chunk_len());
        let mut compressor =
            Compressor::new(&methods, &self.lengths, taken, chunk_len, options.threads());
        self.run(value, options, false, false, &mut compressor)?;
        let Compressed { buffers, chunks } = compressor.finish();
        self.compressed.buffers.extend(buffers);
        self.compressed.chunks = chunks;
        Ok(())
    }

    /// For each buffer, how it is compressed.
    fn methods(&self, options: &SaveOptions) -> Result<Vec<Option<Method>>> {
        let (places, limits) = (buffers(&self.lengths), own_limits());
        let method = |number: usize, dtype: &DType, compression: &dyn Fn() -> Compression| {
            let again = self.again.get(&number).copied();
            Method::new(again.map_or_else(compression, Compression::with), dtype)
        };
        let Some(choose) = options.chosen_compression() else {
            // Without a function, no paths are needed. They could take much more memory than the metadata.
            let mut methods = vec![None; places.len()];
            list::references_at(&self.metadata, 0, &places, limits, &mut |_, item| {
                if let ItemPayload::Buffer { number, .. } = item.payload
                    && let Ok(number) = usize::try_from(number)
                    && let Some(first @ None) = methods.get_mut(number)
                {
                    *first = method(number, &item.meta.dtype, &|| options.compression());
                }
            })?;
            return Ok(methods);
        };
        let tensors = list::in_buffers_at(&self.metadata, 0, &places, limits)?;
        let methods = tensors.iter().enumerate().map(|(number, tensor)| {
            let tensor = tensor.as_ref()?;
            method(number, tensor.dtype(), &|| choose(tensor).unwrap_or_default())
        });
        Ok(methods.collect())
    }

    /// The metadata as the passes write it.
    fn written(&self) -> &[u8] {
        self.written.as_deref().unwrap_or(&self.metadata)
    }

    /// The content of the segment's header.
    pub fn content<'a>(
        &'a self,
        name: Option<&'a str>,
        options: &'a SaveOptions,
    ) -> HeaderContent<'a> {
        HeaderContent {
            name,
            alignment: options.alignment,
            check: Check::on(options.checksums),
            chunk_len: options.chunk_len(),
            lengths: &self.lengths,
            packed: &self.compressed.buffers,
            ext: &self.ext,
            metadata: &self.metadata,
        }
    }

    /// Runs the second pass, which writes the buffers to `out`. Returns their checksums if `checksums` is set.
    pub fn emit(
        &self,
        value: &dyn ToWrite,
        options: &SaveOptions,
        checksums: bool,
        out: &mut dyn Output,
    ) -> Result<Hashes> {
        self.run(value, options, checksums, true, out)
    }

    /// `copies` says whether the buffers that are compressed already are written, too.
    fn run(
        &self,
        value: &dyn ToWrite,
        options: &SaveOptions,
        checksums: bool,
        copies: bool,
        out: &mut dyn Output,
    ) -> Result<Hashes> {
        let given = self.answers.clone();
        let mut answers = Answers { given, next: 0, trail: None };
        let mut second = WritingPass {
            choice: Choice::new(options, &self.mixed, self.no_sequences, &mut answers),
            rows: PlainSequences::new(&self.rows),
            plan: self,
            out,
            hashes: Hashes::default(),
            repeated: Vec::new(),
            chunk_len: options.chunk_len(),
            // With deduplication, payloads that were equal in the first pass must be equal again.
            hashing: checksums || self.targets.is_some(),
            stepped: checksums,
            copies,
            written: 0,
            asked: 0,
            current: None,
        };
        let (.., result) = walk(value, Some(self.written()), self.columns, &mut second);
        let WritingPass { current, written, asked, hashes, .. } = second;
        result?;
        let targets = self.targets.as_ref().map_or(written, Vec::len);
        if current.is_some() || written != self.lengths.len() || asked != targets {
            return Err(Error::changed("fewer tensors than in the first pass"));
        }
        Ok(if checksums { hashes } else { Hashes::default() })
    }
}

/// The paths of the sequences that are columns in this metadata and whose tensors are not all listed.
fn hidden(metadata: &[u8], lengths: &[u64]) -> Result<Vec<String>> {
    list::hidden_in_columns(metadata, &buffers(lengths), own_limits())
}

/// Buffers of these lengths, whose places are not known yet.
fn buffers(lengths: &[u64]) -> Vec<(u64, u64)> {
    lengths.iter().map(|&len| (0, len)).collect()
}

/// The limits for metadata that comes from the encoder, which has checked the depth. Nothing is read into memory.
fn own_limits() -> Limits {
    Limits::default().with_max_depth(usize::MAX).with_max_rank(usize::MAX)
}
