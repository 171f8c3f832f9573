//! The two walks over a value: the first writes its metadata and counts its buffers, the second
//! emits the buffers' bytes and holds the metadata against the first's.
//!
//! Both run the same encoder, so that there is one instance for each type of value.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use serde::Serialize;

use super::format::align_up;
use super::options::SaveOptions;
use crate::error::{Error, Result};
use crate::io::apart::Apart;
use crate::io::checksum::{self, Hasher, Identity};
use crate::io::sink::{Overflow, Sink, reserve};
use crate::meta::TensorMeta;
use crate::options::EncodeOptions;
use crate::ser::Encoder;

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
}

/// How often the first walk starts again because of sequences that change their type late; then
/// none go to buffers.
const MAX_RESTARTS: usize = 8;

impl Plan {
    /// The first walk.
    pub fn new<T: Serialize + ?Sized>(value: &T, options: &SaveOptions) -> Result<Self> {
        let mut mixed = HashSet::new();
        for restarts in 0.. {
            let no_sequences = restarts > MAX_RESTARTS;
            let mut first = First {
                choice: Choice::new(options, &mixed, no_sequences),
                lengths: Vec::new(),
                open: None,
                mixed: Vec::new(),
                restart: false,
                known: options.dedup.then(Known::new),
            };
            let (metadata, result) = walk(value, None, &mut first);
            let First { lengths, mixed: new, restart, known, open, .. } = first;
            mixed.extend(new);
            if restart {
                continue;
            }
            result?;
            if open.is_some() {
                return Err(unfinished());
            }
            let targets = known.map(|known| known.targets);
            return Ok(Self { metadata, lengths, targets, mixed, no_sequences });
        }
        Err(unfinished())
    }

    /// The second walk: emits the body; gives the checksum of each buffer, if they are asked for.
    pub fn emit<T: Serialize + ?Sized>(
        &self,
        value: &T,
        options: &SaveOptions,
        out: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<Vec<u64>> {
        let mut second = Second {
            choice: Choice::new(options, &self.mixed, self.no_sequences),
            plan: self,
            alignment: options.alignment,
            out,
            hashes: Vec::new(),
            // Under dedup, payloads must turn out equal again.
            hashing: options.checksums || self.targets.is_some(),
            position: 0,
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
        Ok(if options.checksums { hashes } else { Vec::new() })
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
}

impl<'a> Choice<'a> {
    fn new(options: &'a SaveOptions, mixed: &'a HashSet<usize>, no_sequences: bool) -> Self {
        Self { options, mixed, sequences: 0, no_sequences }
    }

    fn tensor(&self, meta: &TensorMeta, len: usize) -> bool {
        match &self.options.chooser {
            _ if len == 0 => false,
            Some(choose) => choose(meta, len),
            None => self.block(len),
        }
    }

    fn block(&self, len: usize) -> bool {
        len > 0 && len >= self.options.inline_below
    }

    fn sequence(&mut self, len: usize) -> Option<usize> {
        if !self.block(len) || self.no_sequences {
            return None;
        }
        let number = self.sequences;
        self.sequences += 1;
        (!self.mixed.contains(&number)).then_some(number)
    }
}

macro_rules! choose {
    () => {
        fn takes_tensor(&mut self, meta: &TensorMeta, len: usize) -> bool {
            self.choice.tensor(meta, len)
        }

        fn takes_block(&self, len: usize) -> bool {
            self.choice.block(len)
        }

        fn takes_sequence(&mut self, len: usize) -> Option<usize> {
            self.choice.sequence(len)
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
    alignment: u64,
    out: &'a mut dyn FnMut(&[u8]) -> Result<()>,
    hashes: Vec<u64>,
    hashing: bool,
    /// Bytes of the body so far.
    position: u64,
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

impl Second<'_> {
    /// Zeros up to where the next buffer starts.
    fn pad(&mut self) -> Result<()> {
        const ZEROS: [u8; 4096] = [0; 4096];
        let start = align_up(self.position, self.alignment).ok_or_else(unfinished)?;
        while self.position < start {
            let step = (start - self.position).min(ZEROS.len() as u64);
            let zeros = ZEROS.get(..usize::try_from(step).unwrap_or(0)).unwrap_or_default();
            (self.out)(zeros)?;
            self.position += step;
        }
        Ok(())
    }
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
            self.pad()?;
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
        let step = if self.hashing { checksum::WRITE_STEP } else { block.len().max(1) };
        for step in block.chunks(step) {
            if self.hashing {
                open.hasher.update(step);
            }
            if !open.again {
                (self.out)(step)?;
                self.position += step.len() as u64;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<u64> {
        let open = self.open.take().ok_or_else(unfinished)?;
        if open.left != 0 {
            return Err(changed("a sequence is shorter than it was"));
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
