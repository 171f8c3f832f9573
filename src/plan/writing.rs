//! The second pass over a value that is saved: it writes the bytes of the buffers.

use super::Plan;
use super::compress::{Chunks, Compressed};
use super::pass::{Choice, Output, PlainSequences, choose, unfinished};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::checksum;
use crate::io::chunks::{ChunkHasher, ChunkLen, Hashes};
use crate::io::compressed::{Precompressed, StoredHasher};
use crate::meta::TensorMeta;
use crate::segment::packed::Packed;
use crate::wire::buffer_sink::{BufferSink, Wanted};

pub struct WritingPass<'a> {
    pub choice: Choice<'a>,
    pub rows: PlainSequences<'a>,
    pub plan: &'a Plan,
    pub out: &'a mut dyn Output,
    pub hashes: Hashes,
    /// The hashes of the current payload, if its buffer was already written for an equal one.
    pub repeated: Vec<u64>,
    pub chunk_len: ChunkLen,
    pub hashing: bool,
    /// Whether blocks are hashed and written in small steps, so that the bytes are still in the cache.
    pub stepped: bool,
    /// Whether buffers that are compressed already are written, too.
    pub copies: bool,
    /// The number of buffers written, and of payloads seen.
    pub written: usize,
    pub asked: usize,
    pub current: Option<BufferInProgress>,
}

pub struct BufferInProgress {
    pub number: u64,
    pub left: u64,
    /// Whether this buffer was already written for an equal payload.
    pub again: bool,
    /// Whether the buffer was compressed before. Its content is not needed any more.
    pub compressed: bool,
    pub hasher: StoredOrNot,
}

/// Hashes the chunks of a buffer.
pub enum StoredOrNot {
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
        current.left = left.ok_or_else(|| Error::changed("a sequence is longer than before"))?;
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
            return Err(Error::changed("a sequence is shorter than before"));
        }
        if !current.again {
            self.out.end()?;
        }
        if self.hashing && !current.again {
            self.hashes.end_buffer();
        } else if self.hashing && !current.compressed {
            let index = usize::try_from(current.number).unwrap_or(usize::MAX);
            if self.hashes.of(index) != Some(&self.repeated) {
                return Err(Error::changed("tensors that were equal are different now"));
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
        let number = number.ok_or_else(|| Error::changed("more tensors than in the first pass"))?;
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let planned = self.plan.lengths.get(index).copied();
        if planned != Some(len as u64) {
            return Err(Error::changed(&format!(
                "a tensor has {len} bytes, and had another length before"
            )));
        }
        let again = number != next;
        let Compressed { buffers, chunks } = &self.plan.compressed;
        let chunks = chunks.get(&index);
        let taken = buffers.get(&index).filter(|_| chunks.is_none());
        if taken.is_some() && taken != stored {
            return Err(Error::changed("a tensor is compressed in another way"));
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
