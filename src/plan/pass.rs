//! What the two passes over a value have in common. Both must decide in the same way what goes to buffers.

use std::collections::HashSet;

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::sink::{Overflow, reserve};
use crate::meta::{Order, TensorMeta};
use crate::options::{ColumnChoice, EncodeOptions};
use crate::path::tracker::PathTracker;
use crate::segment::options::SaveOptions;
use crate::shape::Shape;
use crate::tensor::TensorInfo;
use crate::wire::buffer_sink::{BufferSink, Target};
use crate::wire::writer::{ToWrite, WriterTo};

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

#[cold]
pub fn unfinished() -> Error {
    Error::data("a tensor was not written to its end")
}

/// Runs the encoder. Returns the metadata, unless it was compared with `expected`, and whether something in it has an
/// indefinite length.
pub fn walk(
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
        result = Err(Error::changed("its metadata is shorter"));
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
            return Err(Error::changed(
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
pub struct Choice<'a> {
    pub options: &'a SaveOptions,
    pub mixed: &'a HashSet<usize>,
    /// The number of sequences so far that could go to a buffer.
    pub sequences: usize,
    pub no_sequences: bool,
    pub answers: &'a mut Answers,
}

/// The answers of the user's function. It is called once for each payload, in the first pass; the
/// second pass repeats the answers.
pub struct Answers {
    pub given: Vec<bool>,
    /// The index of the next answer.
    pub next: usize,
    /// Finds the path of the next payload. `None` in the second pass, which does not need it.
    pub trail: Option<PathTracker>,
}

impl<'a> Choice<'a> {
    pub fn new(
        options: &'a SaveOptions,
        mixed: &'a HashSet<usize>,
        no_sequences: bool,
        answers: &'a mut Answers,
    ) -> Self {
        Self { options, mixed, sequences: 0, no_sequences, answers }
    }

    pub fn takes(&mut self, written: &[u8], len: usize, meta: impl FnOnce() -> TensorMeta) -> bool {
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

    pub fn block(&mut self, written: &[u8], dtype: &DType, len: usize) -> bool {
        self.takes(written, len, || {
            // Elements in blocks have whole bytes.
            let count = len / (dtype.bits().unwrap_or(8) / 8).max(1);
            TensorMeta { dtype: dtype.clone(), shape: Shape::from([count]), order: Order::C }
        })
    }

    pub fn sequence(&mut self, written: &[u8], dtype: &DType, len: usize) -> Option<usize> {
        if !self.block(written, dtype, len) || self.no_sequences {
            return None;
        }
        let number = self.sequences;
        self.sequences += 1;
        (!self.mixed.contains(&number)).then_some(number)
    }
}

/// Finds the sequences that are not written as columns.
pub struct PlainSequences<'a> {
    pub paths: &'a HashSet<String>,
    pub trail: PathTracker,
}

impl<'a> PlainSequences<'a> {
    pub fn new(paths: &'a HashSet<String>) -> Self {
        Self { paths, trail: PathTracker::default() }
    }

    /// Whether the sequence that follows this metadata is one of them.
    pub fn has_next(&mut self, metadata: &[u8]) -> bool {
        !self.paths.is_empty() && self.paths.contains(&self.trail.path(metadata).text())
    }
}

/// The methods of a [`BufferSink`] that choose.
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

pub(super) use choose;
