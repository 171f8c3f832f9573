//! Writing a state by many ranks.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};
use tenarc::tensor::{DynTensor, Order, ToTensor};
use tenarc::{OArchive, Tensor};
use tokio::runtime::Handle;

use super::manifest::{Block, Manifest, Receipt, StoredValue};
use super::region::{Region, copy, tile_shape};
use super::{SHARDS, Set, Step};
use crate::archive::on_thread;
use crate::error::{Error, Kind, Result};
use crate::objects::Put;
use crate::stored::{StoredObject, digits, sha256};
use crate::upload::ObjectWriter;

/// The length of chunks. A reader of some rows reads whole chunks, so they are short.
const CHUNK: u64 = 64 << 10;

/// What one rank writes: [`Step::shard`] makes it.
///
/// It is an object of its own, under a random name. Nobody sees it before [`Step::commit`]. If it is dropped before
/// [`finish`](Self::finish), nothing is left.
///
/// Its methods wait for the store: use it on a thread that may wait, or in a runtime with several threads.
pub struct Shard {
    out: OArchive<Counting>,
    name: String,
    step: u64,
    rank: u64,
    ranks: Vec<u64>,
    blocks: Vec<Block>,
    values: Vec<StoredValue>,
    segments: u64,
    /// Whether blocks get digests, and the state whose equal blocks are not written again.
    digests: bool,
    before: Option<Arc<Manifest>>,
    earlier: Vec<StoredObject>,
    runtime: Handle,
}

impl fmt::Debug for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard")
            .field("name", &self.name)
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}

/// A writer of an object that counts, and keeps the last bytes.
struct Counting {
    writer: ObjectWriter,
    size: u64,
    end: Vec<u8>,
}

impl io::Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.writer.write(bytes)?;
        self.size += written as u64;
        let kept = StoredObject::END;
        self.end.extend_from_slice(&bytes[written.saturating_sub(kept)..written]);
        // Not each time, or short writes would take long.
        if self.end.len() > 16 * kept {
            self.end.drain(..self.end.len() - kept);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Step {
    /// Starts to write what this rank has of the step.
    ///
    /// # Errors
    /// If the store fails.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub fn shard(&self, rank: u64) -> Result<Shard> {
        let runtime = Handle::current();
        let name = format!("{SHARDS}/{}.tenarc", random_name());
        let writer = self.store.object_writer(&name, Put::Replace, &runtime);
        let options = self.store.options.clone().with_chunk_len(CHUNK);
        let out = OArchive::with_options(Counting { writer, size: 0, end: Vec::new() }, options)?;
        let (ranks, blocks, values, earlier) = Default::default();
        Ok(Shard {
            out,
            name,
            step: self.step,
            rank,
            ranks,
            blocks,
            values,
            segments: 0,
            digests: false,
            before: None,
            earlier,
            runtime,
        })
    }

    /// Like [`shard`](Self::shard), but blocks that have not changed since an earlier state, such as frozen weights, are not written
    /// again: the new state refers to the earlier objects. [Collections](crate::Store::collect) keep these.
    ///
    /// `before` is usually the [latest](crate::Store::latest) state, and `None` for the first one. A block has not changed if it has
    /// the same path, place and type, and its elements have the same SHA-256. So elements are read twice, once to compute it.
    /// Blocks of states that were written by [`shard`](Self::shard) have none, and are written again.
    ///
    /// ```
    /// # #[tokio::main]
    /// # async fn main() -> tenarc_store::Result<()> {
    /// let store = tenarc_store::Store::in_memory();
    /// for step in 1..=3u64 {
    ///     let latest = store.latest().await?;
    ///     let mut shard = store.step(step).shard_after(0, latest.as_ref())?;
    ///     shard.block("frozen", &vec![0.5f32; 100_000], &[100_000], &[0])?;
    ///     shard.block("head", &vec![step as f32; 10], &[10], &[0])?;
    ///     let receipt = shard.finish().await?;
    ///     // The first step stores all, the others only the head.
    ///     assert_eq!(receipt.stored_bytes() > 400_000, step == 1);
    ///     store.step(step).commit([receipt], 1).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the store fails. [`commit`](Self::commit) fails if an earlier object was deleted meanwhile.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub fn shard_after(&self, rank: u64, before: Option<&Set>) -> Result<Shard> {
        let before = before.map(|set| set.manifest.clone());
        Ok(Shard { digests: true, before, ..self.shard(rank)? })
    }
}

/// 32 hexadecimal digits that no other process has.
fn random_name() -> String {
    use std::hash::{BuildHasher as _, RandomState};
    // The keys of each state are random, and differ from those of all others in this process.
    let half = || RandomState::new().hash_one((std::process::id(), std::time::SystemTime::now()));
    format!("{:016x}{:016x}", half(), half())
}

impl Shard {
    /// Writes a block of a tensor: its elements from `offset` on, of a whole tensor of shape `whole`. All blocks of the ranks together
    /// must make the whole tensor, without overlap. It is stored in tiles, so that readers who need other blocks
    /// read little else.
    ///
    /// # Errors
    /// - The block is not in the tensor, or its elements are not whole bytes.
    /// - The store fails.
    pub fn block<T: ToTensor + ?Sized>(
        &mut self,
        path: &str,
        block: &T,
        whole: &[u64],
        offset: &[u64],
    ) -> Result<()> {
        let meta = block.meta();
        let invalid = |what: String| {
            Error::new(Kind::Incomplete, format!("`{}`: {what}", path.escape_debug()))
        };
        let shape: Vec<u64> = meta.shape.iter().map(|&len| len as u64).collect();
        let region = Region::new(offset, &shape, whole).ok_or_else(|| {
            invalid(format!("the block {shape:?} at {offset:?} is not in a tensor of {whole:?}"))
        })?;
        let width = meta.dtype.bits().filter(|bits| bits.is_multiple_of(8)).map(|bits| bits / 8);
        let width = width.ok_or_else(|| {
            invalid(format!(
                "a tensor of {} cannot be stored in blocks: its elements are not whole bytes",
                meta.dtype
            ))
        })?;
        let tile = tile_shape(&shape, whole, width as u64);
        let dtype = meta.dtype.clone();
        let mut described = Block {
            path: path.to_owned(),
            dtype: dtype.name().to_owned(),
            whole: whole.to_vec(),
            offset: offset.to_vec(),
            shape: shape.clone(),
            tile: tile.clone(),
            object: 0,
            segment: self.segments,
            digest: None,
        };
        if self.digests {
            described.digest = Some(self.waiting(|_| Ok(digest_of(block, meta.order)?))?);
            if let Some(earlier) = self.unchanged(&described) {
                self.blocks.push(earlier);
                return Ok(());
            }
        }
        self.waiting(|shard| {
            if tile == shape && meta.order == Order::C {
                shard.out.save(&BTreeMap::from([("0", Tensor(Borrowed(block)))]))?;
                return Ok(());
            }
            let copied;
            let stored = block.as_le_bytes().filter(|_| meta.order == Order::C);
            let bytes = if let Some(bytes) = stored {
                bytes.into()
            } else {
                let mut bytes = Vec::new();
                block.write_blocks(&mut |piece| {
                    bytes.extend_from_slice(piece);
                    Ok(())
                })?;
                let block = DynTensor::new(dtype.clone(), &meta.shape, meta.order, bytes)?;
                copied = block.into_row_major()?;
                copied.le_bytes()
            };
            let rows = &region;
            let tile_of = |tile| Tile { tile, from: &bytes, rows, dtype: &dtype, width };
            // Not a sequence, which would be stored as columns.
            let tiles = region.tiles(&tile, &region).into_iter();
            let tiles = tiles.map(|(number, tile)| (number.to_string(), tile_of(tile)));
            shard.out.save(&Tiles(tiles.collect()))?;
            Ok(())
        })?;
        self.blocks.push(described);
        self.segments += 1;
        Ok(())
    }

    /// The block of the state before that is the same as this one.
    fn unchanged(&mut self, block: &Block) -> Option<Block> {
        let before = self.before.as_ref()?;
        let same = |found: &&Block| {
            let Block { object, segment, .. } = **found;
            **found == Block { object, segment, ..block.clone() }
        };
        let found = before.blocks.iter().find(same)?;
        let object = before.objects.get(usize::try_from(found.object).ok()?)?;
        let known = self.earlier.iter().position(|earlier| earlier == object);
        let number = known.unwrap_or_else(|| {
            self.earlier.push(object.clone());
            self.earlier.len() - 1
        });
        Some(Block { object: 1 + number as u64, ..found.clone() })
    }

    /// Writes a whole tensor that all ranks have. Only one of them stores it: the one that has stored the fewest bytes so far. All
    /// ranks must call this with the same tensors in the same order.
    ///
    /// # Errors
    /// Those of [`block`](Self::block).
    pub fn replicated<T: ToTensor + ?Sized>(
        &mut self,
        path: &str,
        tensor: &T,
        ranks: u64,
    ) -> Result<()> {
        let meta = tensor.meta();
        self.ranks.resize(usize::try_from(ranks.max(1)).unwrap_or(1), 0);
        // All ranks count the same.
        let least = self.ranks.iter_mut().enumerate().min_by_key(|(_, bytes)| **bytes);
        let Some((rank, bytes)) = least else { return Ok(()) };
        *bytes += meta.byte_len().unwrap_or(0) as u64 + 1;
        if rank as u64 != self.rank {
            return Ok(());
        }
        let shape: Vec<u64> = meta.shape.iter().map(|&len| len as u64).collect();
        self.block(path, tensor, &shape, &vec![0; shape.len()])
    }

    /// Writes a value that only this rank has, such as the state of its optimizer. No other rank may write the same path.
    ///
    /// # Errors
    /// If the value cannot be written, or the store fails.
    pub fn value<T: Serialize + ?Sized>(&mut self, path: &str, value: &T) -> Result<()> {
        self.waiting(|shard| {
            shard.out.save(value)?;
            Ok(())
        })?;
        let (object, segment) = (0, self.segments);
        self.values.push(StoredValue { path: path.to_owned(), object, segment });
        self.segments += 1;
        Ok(())
    }

    /// Calls a function that waits for the store.
    fn waiting<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        use tokio::runtime::RuntimeFlavor::MultiThread;
        match Handle::try_current() {
            Ok(runtime) if runtime.runtime_flavor() == MultiThread => {
                tokio::task::block_in_place(|| work(self))
            }
            _ => work(self),
        }
    }

    /// Writes the rest, and returns what the rank that commits needs.
    ///
    /// # Errors
    /// If the store fails. Then nothing is left.
    pub async fn finish(self) -> Result<Receipt> {
        let Self { out, name, step, rank, blocks, values, earlier, runtime, .. } = self;
        let finish = move || {
            let Counting { writer, size, end } = out.finish()?;
            let version = writer.finish()?;
            let end = &end[end.len().saturating_sub(StoredObject::END)..];
            let object = StoredObject { name, size, version, end: sha256(end) };
            let receipt = Receipt::new(step, rank, object);
            Ok(Receipt { blocks, values, earlier, ..receipt })
        };
        on_thread(&runtime, finish).await
    }
}

/// The SHA-256 of the elements of a block, and of their order.
fn digest_of<T: ToTensor + ?Sized>(block: &T, order: Order) -> tenarc::Result<String> {
    let mut hasher = Sha256::new();
    hasher.update([u8::from(order == Order::C)]);
    block.write_blocks(&mut |piece| {
        hasher.update(piece);
        Ok(())
    })?;
    Ok(digits(hasher))
}

/// A tensor by reference.
struct Borrowed<'a, T: ?Sized>(&'a T);

impl<T: ToTensor + ?Sized> ToTensor for Borrowed<'_, T> {
    fn meta(&self) -> tenarc::tensor::TensorMeta {
        self.0.meta()
    }

    fn as_le_bytes(&self) -> Option<&[u8]> {
        self.0.as_le_bytes()
    }

    fn write_blocks(&self, put: &mut dyn FnMut(&[u8]) -> tenarc::Result<()>) -> tenarc::Result<()> {
        self.0.write_blocks(put)
    }
}

/// The tiles of a block, by their numbers.
struct Tiles<'a>(Vec<(String, Tile<'a>)>);

impl Serialize for Tiles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(number, tile)| (number, tile)))
    }
}

/// A tile of a block, which is copied when it is written.
struct Tile<'a> {
    tile: Region,
    from: &'a [u8],
    rows: &'a Region,
    dtype: &'a tenarc::DType,
    width: usize,
}

impl Serialize for Tile<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let shape: Vec<usize> = self
            .tile
            .shape()
            .into_iter()
            .map(|len| usize::try_from(len).unwrap_or(usize::MAX))
            .collect();
        let len = shape.iter().product::<usize>() * self.width;
        let mut bytes = vec![0; len];
        copy(&self.tile, (self.from, self.rows), (&mut bytes, &self.tile), self.width)
            .ok_or_else(|| S::Error::custom("a tile is not in its block"))?;
        let tile = DynTensor::new(self.dtype.clone(), &shape, Order::C, bytes)
            .map_err(S::Error::custom)?;
        Tensor(tile).serialize(serializer)
    }
}
