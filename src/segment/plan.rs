//! The two passes over a value that is saved.
//!
//! The first pass writes the metadata into memory and counts the buffers. The second pass writes the
//! buffers' bytes, and compares its metadata with that of the first pass: a value must serialize in
//! the same way both times.
//!
//! Both passes use the same encoder type. `Serialize` is therefore compiled once for each type of value.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use super::buffers::chunk_memory;
use super::compress::{Chunks, Compressed, Compressor, Method};
use super::format::Check;
use super::header::HeaderContent;
use super::options::{Compression, SaveOptions};
use super::packed::{Packed, PackedBuffers};
use super::path;
use super::path_tracker::PathTracker;
use crate::codec::Codec;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::checksum::{self, Identity};
use crate::io::chunks::{ChunkHasher, ChunkLen, Hashes};
use crate::io::compressed::{Precompressed, StoredHasher};
use crate::io::sink::{Overflow, reserve};
use crate::meta::{Order, TensorMeta};
use crate::options::{ColumnChoice, EncodeOptions, Limits};
use crate::shape::Shape;
use crate::tensor::TensorInfo;
use crate::wire::buffer_sink::{BufferSink, Target, Wanted};
use crate::wire::strict::strict;
use crate::wire::tensor::ItemPayload;
use crate::wire::writer::{ToWrite, WriterTo};

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
}

/// Receives the buffers of a value in their order.
pub trait Output {
    /// Called at the start of buffer `number`, which has `len` bytes.
    fn begin(&mut self, number: u64, len: u64) -> Result<()>;

    /// Whether the content of the buffer that has begun is needed.
    fn wants(&self) -> bool {
        true
    }

    /// Called with the next bytes of the buffer.
    fn put(&mut self, block: &[u8]) -> Result<()>;

    /// Called at the end of the buffer.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
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
                lengths: Vec::new(),
                keeping: keeps.then(|| Keeping::new(options.chunk_len())),
                current: None,
                mixed: Vec::new(),
                restart: false,
                known: options.dedup.then(Known::new),
            };
            let (written, has_unknown_lengths, result) = walk(value, None, columns, &mut first);
            let SizingPass { lengths, mixed: new, restart, known, current, .. } = first;
            let SizingPass { tensors_in_columns, keeping, .. } = first;
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
            path::references_at(&self.metadata, 0, &places, limits, &mut |_, item| {
                if let ItemPayload::Buffer { number, .. } = item.payload
                    && let Ok(number) = usize::try_from(number)
                    && let Some(first @ None) = methods.get_mut(number)
                {
                    *first = method(number, &item.meta.dtype, &|| options.compression());
                }
            })?;
            return Ok(methods);
        };
        let tensors = path::in_buffers_at(&self.metadata, 0, &places, limits)?;
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
            ext: &options.ext,
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
            return Err(changed("fewer tensors than in the first pass"));
        }
        Ok(if checksums { hashes } else { Hashes::default() })
    }
}

#[cold]
fn changed(how: &str) -> Error {
    Error::data(format!("the value changed between the two passes: {how}"))
}

#[cold]
fn unfinished() -> Error {
    Error::data("a tensor was not written to its end")
}

/// Runs the encoder. Returns the metadata, unless it was compared with `expected`, and whether something in it has an
/// indefinite length.
fn walk(
    value: &dyn ToWrite,
    expected: Option<&[u8]>,
    columns: ColumnChoice,
    apart: &mut dyn BufferSink,
) -> (Vec<u8>, bool, Result<()>) {
    const COMPARED: usize = 4 << 10;

    let receiver =
        MetadataReceiver { expected, scratch: Vec::new(), has_unknown_lengths: false, apart };
    let buf = Vec::with_capacity(if expected.is_some() { COMPARED } else { 512 });
    let options = EncodeOptions::default().with_typed_arrays(true);
    let options = options.with_choice_of_columns(columns).with_tables(true);
    let options = options.for_metadata();
    let mut encoder = WriterTo::to(buf, receiver, options);
    let mut result = value.write(encoder.writer());
    if result.is_ok() {
        result = encoder.writer().end();
    }
    let len = encoder.position();
    if let (Ok(()), Some(expected)) = (&result, expected)
        && len != expected.len() as u64
    {
        result = Err(changed("its metadata is shorter"));
    }
    let (metadata, _, MetadataReceiver { has_unknown_lengths, .. }) = encoder.into_parts();
    (metadata, has_unknown_lengths, result)
}

/// Receives the metadata. The first pass keeps it; the second pass compares it with `expected`.
struct MetadataReceiver<'a> {
    expected: Option<&'a [u8]>,
    scratch: Vec<u8>,
    has_unknown_lengths: bool,
    apart: &'a mut dyn BufferSink,
}

impl MetadataReceiver<'_> {
    fn compare(&self, base: &mut u64, bytes: &[u8]) -> Result<()> {
        let expected = self.expected.unwrap_or_default();
        let start = usize::try_from(*base).unwrap_or(usize::MAX);
        let there = expected.get(start..).and_then(|rest| rest.get(..bytes.len()));
        if there != Some(bytes) {
            return Err(changed(
                "its metadata differs, as when a HashMap is rebuilt for each pass",
            ));
        }
        *base += bytes.len() as u64;
        Ok(())
    }
}

impl Overflow for MetadataReceiver<'_> {
    fn overflow(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: &[u8]) -> Result<()> {
        if self.expected.is_some() {
            self.flush(buf, base)?;
            return self.compare(base, bytes);
        }
        reserve(buf, bytes.len())?;
        buf.extend_from_slice(bytes);
        Ok(())
    }

    fn make_room(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: usize) -> Result<bool> {
        if self.expected.is_some() {
            self.flush(buf, base)?;
            return Ok(buf.capacity() >= bytes);
        }
        reserve(buf, bytes)?;
        Ok(true)
    }

    fn lend(&mut self, buf: &mut Vec<u8>) -> Vec<u8> {
        std::mem::take(if self.expected.is_some() { &mut self.scratch } else { buf })
    }

    fn give_back(&mut self, buf: &mut Vec<u8>, base: &mut u64, mut lent: Vec<u8>) -> Result<()> {
        if self.expected.is_none() {
            *buf = lent;
            return Ok(());
        }
        self.flush(buf, base)?;
        self.compare(base, &lent)?;
        lent.clear();
        self.scratch = lent;
        Ok(())
    }

    fn unknown_length(&mut self) {
        self.has_unknown_lengths = true;
    }

    fn flush(&mut self, buf: &mut Vec<u8>, base: &mut u64) -> Result<()> {
        if self.expected.is_some() {
            self.compare(base, buf)?;
            buf.clear();
        }
        Ok(())
    }
}

impl Target for MetadataReceiver<'_> {
    fn apart(&mut self) -> Option<&mut dyn BufferSink> {
        Some(&mut *self.apart)
    }
}

/// Decides which payloads go to buffers. Both passes must decide in the same way.
struct Choice<'a> {
    options: &'a SaveOptions,
    mixed: &'a HashSet<usize>,
    /// The number of sequences so far that could go to a buffer.
    sequences: usize,
    no_sequences: bool,
    answers: &'a mut Answers,
}

/// The answers of the user's function. It is called once for each payload, in the first pass; the
/// second pass repeats the answers.
struct Answers {
    given: Vec<bool>,
    /// The index of the next answer.
    next: usize,
    /// Finds the path of the next payload. `None` in the second pass, which does not need it.
    trail: Option<PathTracker>,
}

impl<'a> Choice<'a> {
    fn new(
        options: &'a SaveOptions,
        mixed: &'a HashSet<usize>,
        no_sequences: bool,
        answers: &'a mut Answers,
    ) -> Self {
        Self { options, mixed, sequences: 0, no_sequences, answers }
    }

    fn takes(&mut self, written: &[u8], len: usize, meta: impl FnOnce() -> TensorMeta) -> bool {
        let Some(choose) = &self.options.chooser else {
            return len > 0 && len >= self.options.inline_below;
        };
        if len == 0 {
            return false;
        }
        let Answers { given, next, trail } = &mut *self.answers;
        let question = *next;
        *next += 1;
        match (given.get(question), trail) {
            (Some(&answer), _) => answer,
            (None, Some(trail)) => {
                let path = trail.path(written).text();
                let answer = choose(&TensorInfo::new(path, meta(), len as u64));
                given.push(answer);
                answer
            }
            // There are more payloads than in the first pass: the comparison of the metadata fails.
            (None, None) => false,
        }
    }

    fn block(&mut self, written: &[u8], dtype: &DType, len: usize) -> bool {
        self.takes(written, len, || {
            // Elements in blocks have whole bytes.
            let count = len / (dtype.bits().unwrap_or(8) / 8).max(1);
            TensorMeta { dtype: dtype.clone(), shape: Shape::from([count]), order: Order::C }
        })
    }

    fn sequence(&mut self, written: &[u8], dtype: &DType, len: usize) -> Option<usize> {
        if !self.block(written, dtype, len) || self.no_sequences {
            return None;
        }
        let number = self.sequences;
        self.sequences += 1;
        (!self.mixed.contains(&number)).then_some(number)
    }
}

/// Finds the sequences that are not written as columns.
struct PlainSequences<'a> {
    paths: &'a HashSet<String>,
    trail: PathTracker,
}

impl<'a> PlainSequences<'a> {
    fn new(paths: &'a HashSet<String>) -> Self {
        Self { paths, trail: PathTracker::default() }
    }

    /// Whether the sequence that follows this metadata is one of them.
    fn has_next(&mut self, metadata: &[u8]) -> bool {
        !self.paths.is_empty() && self.paths.contains(&self.trail.path(metadata).text())
    }
}

/// The paths of the sequences that are columns in this metadata and whose tensors are not all listed.
fn hidden(metadata: &[u8], lengths: &[u64]) -> Result<Vec<String>> {
    path::hidden_in_columns(metadata, &buffers(lengths), own_limits())
}

/// Buffers of these lengths, whose places are not known yet.
fn buffers(lengths: &[u64]) -> Vec<(u64, u64)> {
    lengths.iter().map(|&len| (0, len)).collect()
}

/// The limits for metadata that comes from the encoder, which has checked the depth. Nothing is read into memory.
fn own_limits() -> Limits {
    Limits::default().with_max_depth(usize::MAX).with_max_rank(usize::MAX)
}

macro_rules! choose {
    () => {
        fn takes_tensor(&mut self, written: &[u8], meta: &TensorMeta, len: usize) -> bool {
            self.choice.takes(written, len, || meta.clone())
        }

        fn takes_block(&mut self, written: &[u8], dtype: &DType, len: usize) -> bool {
            self.choice.block(written, dtype, len)
        }

        fn takes_sequence(&mut self, written: &[u8], dtype: &DType, len: usize) -> Option<usize> {
            self.choice.sequence(written, dtype, len)
        }
    };
}

struct SizingPass<'a> {
    choice: Choice<'a>,
    rows: PlainSequences<'a>,
    tensors_in_columns: bool,
    lengths: Vec<u64>,
    /// `None` if payloads that are compressed already are decompressed.
    keeping: Option<Keeping>,
    /// The payload being written.
    current: Option<Planned>,
    mixed: Vec<usize>,
    restart: bool,
    known: Option<Known>,
}

/// A payload in the first pass.
struct Planned {
    len: u64,
    /// With deduplication, a hash of its content, or of its stored bytes.
    identity: Option<Identity>,
    /// What is done with the compression that it already has.
    kept: KeptCompression,
}

enum KeptCompression {
    /// It is not compressed, or is decompressed.
    No,
    /// It is compressed again.
    Codec(Codec),
    /// It is copied as it is stored.
    Stored(Packed),
}

/// The buffers that are compressed already and stay compressed.
#[derive(Default)]
struct Keeping {
    chunk_len: ChunkLen,
    /// The buffers that are copied as they are stored.
    taken: PackedBuffers,
    /// The total length of these buffers, and of their stored chunks.
    full: u64,
    stored: u64,
    /// The buffers that are compressed again, because their chunks have another length.
    again: BTreeMap<usize, Codec>,
}

impl Keeping {
    fn new(chunk_len: ChunkLen) -> Self {
        Self { chunk_len, ..Self::default() }
    }

    /// What is done with a buffer of `len` bytes.
    fn kept(&self, len: u64, content: &Precompressed) -> KeptCompression {
        let Precompressed { how, chunk_len } = content;
        let full = self.full.saturating_add(len);
        // Data that readers refuse by default is not written.
        let limit = Limits::default().memory(0, self.stored.saturating_add(how.stored_len()));
        let limit = limit.saturating_sub(chunk_memory(len, self.chunk_len));
        if *chunk_len == self.chunk_len && full <= limit {
            return KeptCompression::Stored(how.clone());
        }
        // If this version does not know the codec, reading the content returns an error that says so.
        how.coding.decodes().map_or(KeptCompression::No, |(codec, _)| KeptCompression::Codec(codec))
    }

    fn add(&mut self, number: usize, len: u64, kept: KeptCompression) {
        match kept {
            KeptCompression::No => {}
            KeptCompression::Codec(codec) => {
                self.again.insert(number, codec);
            }
            KeptCompression::Stored(how) => {
                self.full = self.full.saturating_add(len);
                self.stored = self.stored.saturating_add(how.stored_len());
                self.taken.insert(number, how);
            }
        }
    }
}

/// With deduplication, the contents seen so far.
struct Known {
    seed: u64,
    /// The key is the length of the content, whether it is compressed already, and a hash.
    buffers: HashMap<(u64, bool, u128), u64>,
    targets: Vec<u64>,
}

impl Known {
    fn new() -> Self {
        let seed = RandomState::new().hash_one(0u64);
        Self { seed, buffers: HashMap::new(), targets: Vec::new() }
    }
}

impl BufferSink for SizingPass<'_> {
    choose!();

    fn takes_columns(&mut self, written: &[u8], _: u64) -> bool {
        !self.rows.has_next(written)
    }

    fn columns_with_tensors(&mut self) {
        self.tensors_in_columns = true;
    }

    fn mixed(&mut self, sequence: usize) {
        self.mixed.push(sequence);
        // If nothing of the sequence went to a buffer yet, it is simply written inline.
        self.restart |= self.current.is_some();
    }

    fn begin(&mut self, len: usize) -> Result<bool> {
        self.start(len, KeptCompression::No)
    }

    fn begin_compressed(&mut self, len: usize, content: &Precompressed) -> Result<Wanted> {
        let kept = self.keeping.as_ref().map(|keeping| keeping.kept(len as u64, content));
        let kept = kept.unwrap_or(KeptCompression::No);
        let wanted =
            if let KeptCompression::Stored(_) = kept { Wanted::Stored } else { Wanted::Content };
        Ok(if self.start(len, kept)? { wanted } else { Wanted::Nothing })
    }

    fn put(&mut self, block: &[u8]) -> Result<()> {
        if let Some(Planned { identity: Some(identity), .. }) = &mut self.current {
            identity.update(block);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<u64> {
        let Planned { len, identity, kept } = self.current.take().ok_or_else(unfinished)?;
        let stored = matches!(kept, KeptCompression::Stored(_));
        let next = self.lengths.len() as u64;
        let number = match (&mut self.known, identity) {
            (Some(known), Some(identity)) => {
                let number = *known.buffers.entry((len, stored, identity.finish())).or_insert(next);
                known.targets.push(number);
                number
            }
            _ => next,
        };
        if number == next {
            if let Some(keeping) = &mut self.keeping {
                keeping.add(self.lengths.len(), len, kept);
            }
            self.lengths.push(len);
        }
        Ok(number)
    }
}

impl SizingPass<'_> {
    /// Starts a payload. Returns whether its content, or its stored bytes, are needed.
    fn start(&mut self, len: usize, kept: KeptCompression) -> Result<bool> {
        let mut identity = self.known.as_ref().map(|known| Identity::new(known.seed));
        if let (Some(identity), KeptCompression::Stored(how)) = (&mut identity, &kept) {
            // Equal bytes that are stored in another way are not the same content.
            how.coding.name().bytes().for_each(|byte| identity.update(&[byte]));
            identity.update(&[0]);
            let parameters = how.coding.parameters().iter().copied();
            let numbers = [how.coding.parameters().len() as u64].into_iter();
            for number in numbers.chain(parameters).chain(how.lengths()) {
                identity.update(&number.to_le_bytes());
            }
        }
        let wanted = identity.is_some();
        if self.current.replace(Planned { len: len as u64, identity, kept }).is_some() {
            return Err(unfinished());
        }
        Ok(wanted)
    }
}

struct WritingPass<'a> {
    choice: Choice<'a>,
    rows: PlainSequences<'a>,
    plan: &'a Plan,
    out: &'a mut dyn Output,
    hashes: Hashes,
    /// The hashes of the current payload, if its buffer was already written for an equal one.
    repeated: Vec<u64>,
    chunk_len: ChunkLen,
    hashing: bool,
    /// Whether blocks are hashed and written in small steps, so that the bytes are still in the cache.
    stepped: bool,
    /// Whether buffers that are compressed already are written, too.
    copies: bool,
    /// The number of buffers written, and of payloads seen.
    written: usize,
    asked: usize,
    current: Option<BufferInProgress>,
}

struct BufferInProgress {
    number: u64,
    left: u64,
    /// Whether this buffer was already written for an equal payload.
    again: bool,
    /// Whether the buffer was compressed before. Its content is not needed any more.
    compressed: bool,
    hasher: StoredOrNot,
}

/// Hashes the chunks of a buffer.
enum StoredOrNot {
    Plain(ChunkHasher),
    /// The buffer is compressed already.
    Stored(StoredHasher),
}

impl StoredOrNot {
    fn update(&mut self, bytes: &[u8], mut each: impl FnMut(u64)) {
        match self {
            Self::Plain(hasher) => hasher.update(bytes, |_, hash| each(hash)),
            Self::Stored(hasher) => hasher.update(bytes, each),
        }
    }
}

impl BufferSink for WritingPass<'_> {
    choose!();

    fn takes_columns(&mut self, _: &[u8], position: u64) -> bool {
        // The metadata so far is that of the first pass, or else comparing them fails.
        let position = usize::try_from(position).unwrap_or(usize::MAX);
        !self.rows.has_next(self.plan.written().get(..position).unwrap_or_default())
    }

    fn columns_with_tensors(&mut self) {}

    fn mixed(&mut self, _: usize) {}

    fn begin(&mut self, len: usize) -> Result<bool> {
        Ok(self.start(len, None)? != Wanted::Nothing)
    }

    fn begin_compressed(&mut self, len: usize, content: &Precompressed) -> Result<Wanted> {
        self.start(len, Some(&content.how))
    }

    fn put(&mut self, block: &[u8]) -> Result<()> {
        let current = self.current.as_mut().ok_or_else(unfinished)?;
        let left = current.left.checked_sub(block.len() as u64);
        current.left = left.ok_or_else(|| changed("a sequence is longer than before"))?;
        // Small steps: the bytes are still in the cache after hashing.
        let step = if self.stepped { checksum::WRITE_STEP } else { block.len().max(1) };
        for step in block.chunks(step) {
            if self.hashing {
                current.hasher.update(step, |hash| {
                    if current.again {
                        self.repeated.push(hash);
                    } else {
                        self.hashes.push(hash);
                    }
                });
            }
            if !current.again {
                self.out.put(step)?;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<u64> {
        let current = self.current.take().ok_or_else(unfinished)?;
        if current.left != 0 {
            return Err(changed("a sequence is shorter than before"));
        }
        if !current.again {
            self.out.end()?;
        }
        if self.hashing && !current.again {
            self.hashes.end_buffer();
        } else if self.hashing && !current.compressed {
            let index = usize::try_from(current.number).unwrap_or(usize::MAX);
            if self.hashes.of(index) != Some(&self.repeated) {
                return Err(changed("tensors that were equal are different now"));
            }
        }
        Ok(current.number)
    }
}

impl WritingPass<'_> {
    /// Starts a payload. `stored` says how it is compressed, if it is already. Returns the form in which it is needed.
    fn start(&mut self, len: usize, stored: Option<&Packed>) -> Result<Wanted> {
        if self.current.is_some() {
            return Err(unfinished());
        }
        let next = self.written as u64;
        let number = match &self.plan.targets {
            Some(targets) => targets.get(self.asked).copied(),
            None => Some(next),
        };
        self.asked += 1;
        let number = number.ok_or_else(|| changed("more tensors than in the first pass"))?;
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let planned = self.plan.lengths.get(index).copied();
        if planned != Some(len as u64) {
            return Err(changed(&format!(
                "a tensor has {len} bytes, and had another length before"
            )));
        }
        let again = number != next;
        let Compressed { buffers, chunks } = &self.plan.compressed;
        let chunks = chunks.get(&index);
        let taken = buffers.get(&index).filter(|_| chunks.is_none());
        if taken.is_some() && taken != stored {
            return Err(changed("a tensor is compressed in another way"));
        }
        if !again {
            self.out.begin(number, len as u64)?;
            self.written += 1;
            if let Some(Chunks { blocks, hashes, .. }) = chunks {
                for hash in hashes {
                    self.hashes.push(*hash);
                }
                blocks.iter().try_for_each(|block| self.out.put(block))?;
            }
        }
        let (hasher, wanted) = match taken {
            Some(how) => {
                let hasher = StoredOrNot::Stored(StoredHasher::new(how.clone()));
                (hasher, if self.copies { Wanted::Stored } else { Wanted::Nothing })
            }
            None => {
                let hasher = ChunkHasher::new(self.chunk_len, len as u64);
                let unwanted = !self.hashing && (again || !self.out.wants());
                let known = chunks.is_some() || unwanted;
                let wanted = if known { Wanted::Nothing } else { Wanted::Content };
                (StoredOrNot::Plain(hasher), wanted)
            }
        };
        self.repeated.clear();
        let compressed = wanted == Wanted::Nothing;
        let left = match wanted {
            Wanted::Nothing => 0,
            Wanted::Content => len as u64,
            Wanted::Stored => taken.map_or(0, Packed::stored_len),
        };
        self.current = Some(BufferInProgress { number, left, again, compressed, hasher });
        Ok(wanted)
    }
}
