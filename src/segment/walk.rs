//! The two walks over a value: the first writes its metadata and counts its buffers, the second
//! emits the buffers' bytes and holds the metadata against the first's.
//!
//! Both run the same encoder, so that there is one instance for each type of value.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use crate::shape::Shape;
use serde::Serialize;

use super::header::Content;
use super::options::SaveOptions;
use super::path::TensorInfo;
use super::trail::Trail;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::checksum::{self, Hasher, Identity};
use crate::io::sink::{Overflow, Sink, reserve};
use crate::meta::{Order, TensorMeta};
use crate::options::EncodeOptions;
use crate::ser::Encoder;
use crate::wire::apart::{Apart, Target};

/// A value split: its metadata, and what its buffers are.
pub struct Plan {
    pub metadata: Vec<u8>,
    /// Bytes of each buffer.
    pub lengths: Vec<u64>,
    /// Under dedup, the buffer of each payload in the order of the walk.
    targets: Option<Vec<u64>>,
    /// Sequences that turned out mixed.
    mixed: HashSet<usize>,
    /// Whether no sequence goes to a buffer, as too many did.
    no_sequences: bool,
    /// What the caller's function chose, question by question.
    answers: Vec<bool>,
}

/// Takes the buffers of a value in their order.
pub trait Output {
    /// A buffer of so many bytes starts.
    fn begin(&mut self, number: u64, len: u64) -> Result<()>;

    /// The next bytes of it, which are all of it where they lie in memory as they are written.
    fn put(&mut self, block: &[u8]) -> Result<()>;

    /// A buffer that has been written is whole.
    fn end(&mut self) -> Result<()> {
        Ok(())
    }
}

/// How often the first walk starts again because of sequences that change their type late; then
/// none go to buffers.
const MAX_RESTARTS: usize = 8;

impl Plan {
    /// The first walk.
    pub fn new<T: Serialize + ?Sized>(value: &T, options: &SaveOptions) -> Result<Self> {
        let mut mixed = HashSet::new();
        let mut answers = Vec::new();
        for restarts in 0.. {
            let no_sequences = restarts > MAX_RESTARTS;
            let mut asking = Answers { given: answers, next: 0, trail: Some(Trail::default()) };
            let mut first = First {
                choice: Choice::new(options, &mixed, no_sequences, &mut asking),
                lengths: Vec::new(),
                open: None,
                mixed: Vec::new(),
                restart: false,
                known: options.dedup.then(Known::new),
            };
            let (metadata, result) = walk(value, None, &mut first);
            let First { lengths, mixed: new, restart, known, open, .. } = first;
            mixed.extend(new);
            answers = asking.given;
            if restart {
                continue;
            }
            result?;
            if open.is_some() {
                return Err(unfinished());
            }
            let targets = known.map(|known| known.targets);
            return Ok(Self { metadata, lengths, targets, mixed, no_sequences, answers });
        }
        Err(unfinished())
    }

    /// What the header of its segment says.
    pub fn content<'a>(&'a self, name: Option<&'a str>, options: &SaveOptions) -> Content<'a> {
        Content {
            name,
            alignment: options.alignment,
            checked: options.checksums,
            lengths: &self.lengths,
            metadata: &self.metadata,
        }
    }

    /// The second walk: gives out the buffers, and the checksum of each if they are asked for.
    pub fn emit<T: Serialize + ?Sized>(
        &self,
        value: &T,
        options: &SaveOptions,
        checksums: bool,
        out: &mut dyn Output,
    ) -> Result<Vec<u64>> {
        let given = self.answers.clone();
        let mut answers = Answers { given, next: 0, trail: None };
        let mut second = Second {
            choice: Choice::new(options, &self.mixed, self.no_sequences, &mut answers),
            plan: self,
            out,
            hashes: Vec::new(),
            // Under dedup, payloads must turn out equal again.
            hashing: checksums || self.targets.is_some(),
            stepped: checksums,
            written: 0,
            asked: 0,
            open: None,
        };
        let (_, result) = walk(value, Some(&self.metadata), &mut second);
        let Second { open, written, asked, hashes, .. } = second;
        result?;
        let targets = self.targets.as_ref().map_or(written, Vec::len);
        if open.is_some() || written != self.lengths.len() || asked != targets {
            return Err(changed("fewer tensors than in the first walk"));
        }
        Ok(if checksums { hashes } else { Vec::new() })
    }
}

#[cold]
fn changed(how: &str) -> Error {
    Error::data(format!("the value is another when walked again: {how}"))
}

#[cold]
fn unfinished() -> Error {
    Error::data("the value left a tensor unfinished")
}

/// Runs the encoder; gives the metadata, if it is not compared.
fn walk<T: Serialize + ?Sized>(
    value: &T,
    expected: Option<&[u8]>,
    apart: &mut dyn Apart,
) -> (Vec<u8>, Result<()>) {
    const COMPARED: usize = 4 << 10;

    let walk = Walk { expected, scratch: Vec::new(), apart };
    let buf = Vec::with_capacity(if expected.is_some() { COMPARED } else { 512 });
    let options = EncodeOptions::default().with_typed_arrays(true);
    let mut encoder = Encoder::new(Sink::new(buf, walk), options);
    let mut result = value.serialize(&mut encoder);
    if result.is_ok() {
        result = encoder.end();
    }
    let len = encoder.sink.position();
    if let (Ok(()), Some(expected)) = (&result, expected)
        && len != expected.len() as u64
    {
        result = Err(changed("its metadata is shorter"));
    }
    (encoder.sink.into_parts().0, result)
}

/// The metadata: kept in the first walk, compared in the second.
struct Walk<'a> {
    expected: Option<&'a [u8]>,
    scratch: Vec<u8>,
    apart: &'a mut dyn Apart,
}

impl Walk<'_> {
    fn compare(&self, base: &mut u64, bytes: &[u8]) -> Result<()> {
        let expected = self.expected.unwrap_or_default();
        let start = usize::try_from(*base).unwrap_or(usize::MAX);
        let there = expected.get(start..).and_then(|rest| rest.get(..bytes.len()));
        if there != Some(bytes) {
            return Err(changed("its metadata differs, as that of a rebuilt HashMap does"));
        }
        *base += bytes.len() as u64;
        Ok(())
    }
}

impl Overflow for Walk<'_> {
    fn overflow(&mut self, buf: &mut Vec<u8>, base: &mut u64, bytes: &[u8]) -> Result<()> {
        if self.expected.is_some() {
            self.flush(buf, base)?;
            return self.compare(base, bytes);
        }
        reserve(buf, bytes.len())?;
        buf.extend_from_slice(bytes);
        Ok(())
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

    fn flush(&mut self, buf: &mut Vec<u8>, base: &mut u64) -> Result<()> {
        if self.expected.is_some() {
            self.compare(base, buf)?;
            buf.clear();
        }
        Ok(())
    }
}

impl Target for Walk<'_> {
    fn apart(&mut self) -> Option<&mut dyn Apart> {
        Some(&mut *self.apart)
    }
}

/// What goes to buffers; the same in both walks.
struct Choice<'a> {
    options: &'a SaveOptions,
    mixed: &'a HashSet<usize>,
    /// How many sequences were asked about.
    sequences: usize,
    no_sequences: bool,
    answers: &'a mut Answers,
}

/// What the caller's function chose: it is asked once about each payload, in the first walk.
struct Answers {
    given: Vec<bool>,
    /// The number of the next question.
    next: usize,
    /// Tells where in the value the walk is; none in the second walk.
    trail: Option<Trail>,
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
            // The value is another now, as the metadata will tell.
            (None, None) => false,
        }
    }

    fn block(&mut self, written: &[u8], dtype: &DType, len: usize) -> bool {
        self.takes(written, len, || {
            // Elements of blocks are of whole bytes.
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

struct First<'a> {
    choice: Choice<'a>,
    lengths: Vec<u64>,
    /// The payload that was begun: its length, and its content so far.
    open: Option<(u64, Option<Identity>)>,
    mixed: Vec<usize>,
    restart: bool,
    known: Option<Known>,
}

/// Contents that have been seen, under dedup.
struct Known {
    seed: u64,
    buffers: HashMap<(u64, u128), u64>,
    targets: Vec<u64>,
}

impl Known {
    fn new() -> Self {
        let seed = RandomState::new().hash_one(0u64);
        Self { seed, buffers: HashMap::new(), targets: Vec::new() }
    }
}

impl Apart for First<'_> {
    choose!();

    fn mixed(&mut self, sequence: usize) {
        self.mixed.push(sequence);
        // Written as it stands, where nothing of it was handed over.
        self.restart |= self.open.is_some();
    }

    fn begin(&mut self, len: usize) -> Result<bool> {
        let identity = self.known.as_ref().map(|known| Identity::new(known.seed));
        let wanted = identity.is_some();
        if self.open.replace((len as u64, identity)).is_some() {
            return Err(unfinished());
        }
        Ok(wanted)
    }

    fn put(&mut self, block: &[u8]) -> Result<()> {
        if let Some((_, Some(identity))) = &mut self.open {
            identity.update(block);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<u64> {
        let (len, identity) = self.open.take().ok_or_else(unfinished)?;
        let next = self.lengths.len() as u64;
        let number = match (&mut self.known, identity) {
            (Some(known), Some(identity)) => {
                let number = *known.buffers.entry((len, identity.finish())).or_insert(next);
                known.targets.push(number);
                number
            }
            _ => next,
        };
        if number == next {
            self.lengths.push(len);
        }
        Ok(number)
    }
}

struct Second<'a> {
    choice: Choice<'a>,
    plan: &'a Plan,
    out: &'a mut dyn Output,
    hashes: Vec<u64>,
    hashing: bool,
    /// Whether what is hashed is given out in steps, while it is in a cache.
    stepped: bool,
    /// Buffers written, and payloads seen.
    written: usize,
    asked: usize,
    open: Option<Open>,
}

struct Open {
    number: u64,
    left: u64,
    /// Whether this buffer was written before, for an equal payload.
    again: bool,
    hasher: Hasher,
}

impl Apart for Second<'_> {
    choose!();

    fn mixed(&mut self, _: usize) {}

    fn begin(&mut self, len: usize) -> Result<bool> {
        if self.open.is_some() {
            return Err(unfinished());
        }
        let next = self.written as u64;
        let number = match &self.plan.targets {
            Some(targets) => targets.get(self.asked).copied(),
            None => Some(next),
        };
        self.asked += 1;
        let number = number.ok_or_else(|| changed("more tensors than in the first walk"))?;
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let planned = self.plan.lengths.get(index).copied();
        if planned != Some(len as u64) {
            return Err(changed(&format!("a tensor of {len} bytes where it had another length")));
        }
        let again = number != next;
        if !again {
            self.out.begin(number, len as u64)?;
            self.written += 1;
        }
        self.open = Some(Open { number, left: len as u64, again, hasher: Hasher::new() });
        Ok(true)
    }

    fn put(&mut self, block: &[u8]) -> Result<()> {
        let open = self.open.as_mut().ok_or_else(unfinished)?;
        let left = open.left.checked_sub(block.len() as u64);
        open.left = left.ok_or_else(|| changed("a sequence is longer than it was"))?;
        // What was hashed is still in a cache when it is written.
        let step = if self.stepped { checksum::WRITE_STEP } else { block.len().max(1) };
        for step in block.chunks(step) {
            if self.hashing {
                open.hasher.update(step);
            }
            if !open.again {
                self.out.put(step)?;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<u64> {
        let open = self.open.take().ok_or_else(unfinished)?;
        if open.left != 0 {
            return Err(changed("a sequence is shorter than it was"));
        }
        if !open.again {
            self.out.end()?;
        }
        if self.hashing {
            let hash = open.hasher.finish();
            let index = usize::try_from(open.number).unwrap_or(usize::MAX);
            match self.hashes.get(index) {
                None => self.hashes.push(hash),
                Some(&first) if first == hash => {}
                Some(_) => return Err(changed("tensors that were equal differ")),
            }
        }
        Ok(open.number)
    }
}
