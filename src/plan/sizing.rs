//! The first pass over a value that is saved: it counts the buffers, and writes the metadata into memory.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};

use super::pass::{Choice, PlainSequences, choose, unfinished};
use crate::codec::Codec;
use crate::dtype::DType;
use crate::error::Result;
use crate::io::checksum::Identity;
use crate::io::chunks::ChunkLen;
use crate::io::compressed::Precompressed;
use crate::meta::TensorMeta;
use crate::options::Limits;
use crate::segment::buffers::chunk_memory;
use crate::segment::packed::{Packed, PackedBuffers};
use crate::wire::buffer_sink::{BufferSink, Wanted};
use crate::wire::statistics::StatisticsBuilder;

pub struct SizingPass<'a> {
    pub choice: Choice<'a>,
    pub rows: PlainSequences<'a>,
    pub tensors_in_columns: bool,
    /// `None` if there must be none.
    pub statistics: Option<StatisticsBuilder>,
    pub lengths: Vec<u64>,
    /// `None` if payloads that are compressed already are decompressed.
    pub keeping: Option<Keeping>,
    /// The payload being written.
    pub current: Option<Planned>,
    pub mixed: Vec<usize>,
    pub restart: bool,
    pub known: Option<Known>,
}

/// A payload in the first pass.
pub struct Planned {
    pub len: u64,
    /// With deduplication, a hash of its content, or of its stored bytes.
    pub identity: Option<Identity>,
    /// What is done with the compression that it already has.
    pub kept: KeptCompression,
}

pub enum KeptCompression {
    /// It is not compressed, or is decompressed.
    No,
    /// It is compressed again.
    Codec(Codec),
    /// It is copied as it is stored.
    Stored(Packed),
}

/// The buffers that are compressed already and stay compressed.
#[derive(Default)]
pub struct Keeping {
    pub chunk_len: ChunkLen,
    /// The buffers that are copied as they are stored.
    pub taken: PackedBuffers,
    /// The total length of these buffers, and of their stored chunks.
    pub full: u64,
    pub stored: u64,
    /// The buffers that are compressed again, because their chunks have another length.
    pub again: BTreeMap<usize, Codec>,
}

impl Keeping {
    pub fn new(chunk_len: ChunkLen) -> Self {
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
pub struct Known {
    pub seed: u64,
    /// The key is the length of the content, whether it is compressed already, and a hash.
    pub buffers: HashMap<(u64, bool, u128), u64>,
    pub targets: Vec<u64>,
}

impl Known {
    pub fn new() -> Self {
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

    fn statistics(&mut self) -> Option<&mut StatisticsBuilder> {
        self.statistics.as_mut()
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
