//! States that many writers save together, and that any number of readers take apart differently.

mod collect;
mod commit;
mod manifest;
mod region;
mod write;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::{self, StreamExt as _};
use serde::de::DeserializeOwned;
use tenarc::DType;
use tenarc::io::{ReadAhead, Requests};
use tenarc::tensor::{AxisSlice, DynTensor, FromTensor, Order, Slices};
use tokio::runtime::Handle;

pub use self::collect::Collected;
pub use self::manifest::Receipt;
pub use self::write::Shard;

use self::manifest::{Block, Manifest, StoredValue};
use self::region::{Region, copy};
use crate::Store;
use crate::archive::RemoteArchive;
use crate::error::{Error, Kind, Result};
use crate::file::ObjectFile;

/// Where shards and manifests are.
const SHARDS: &str = "shards";
const MANIFESTS: &str = "manifests";
/// How often the newest manifest is looked for while collections delete it.
const TRIES: usize = 10;
/// Shards that are read at the same time.
const TOGETHER: usize = 8;
/// How each of them is read. The rows of tiles of a part lie near each other: what is between them is not read. All shards
/// together take 192 MiB.
const REQUESTS: Requests =
    Requests::server().with_gap(8 << 10).with_longest(4 << 20).with_memory(24 << 20);

/// A step that many ranks write: [`Store::step`].
#[derive(Clone, Debug)]
pub struct Step {
    store: Store,
    step: u64,
}

impl Store {
    /// A step of a run that many ranks write together.
    ///
    /// Each rank writes its [shard](Step::shard), and sends the receipt to one of them, which [commits](Step::commit). Only then
    /// do readers see the step, all of it at once: [`latest`](Self::latest).
    ///
    /// ```
    /// use ndarray::{Array2, s};
    /// use tenarc_store::Store;
    ///
    /// # #[tokio::main]
    /// # async fn main() -> tenarc_store::Result<()> {
    /// let store = Store::in_memory();
    /// let step = store.step(120);
    /// let mut receipts = Vec::new();
    /// for rank in 0..8 {
    ///     // On a rank of its own each.
    ///     let mut shard = step.shard(rank)?;
    ///     let rows = Array2::from_elem((16, 64), rank as f32);
    ///     shard.block("w", &rows, &[128, 64], &[rank * 16, 0])?;
    ///     shard.value(&format!("optimizer.{rank}"), &rank)?;
    ///     receipts.push(shard.finish().await?);
    /// }
    /// step.commit(receipts, 8).await?;
    ///
    /// // Six readers instead of eight, for example.
    /// let latest = store.latest().await?.expect("a step was committed");
    /// let part: Array2<f32> = latest.block("w", s![21..43, ..]).await?;
    /// assert_eq!((part[[0, 0]], part[[21, 0]]), (1.0, 2.0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn step(&self, step: u64) -> Step {
        Step { store: self.clone(), step }
    }

    /// The state that was committed last. `None` if nothing was committed.
    ///
    /// # Errors
    /// If the store fails, or the manifest is damaged or of a later version.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub async fn latest(&self) -> Result<Option<Set>> {
        let mut tried = 0;
        loop {
            let Some(newest) = self.newest().await? else { return Ok(None) };
            let committed = match newest.commit {
                // There was only a collection so far.
                0 => return Ok(None),
                number if number == newest.number => Ok(newest),
                number => self.manifest(number).await,
            };
            match committed {
                Err(error) if error.kind() == Kind::NotFound && tried < TRIES => tried += 1,
                committed => return Ok(Some(Set::new(self.clone(), committed?))),
            }
        }
    }

    /// The newest manifest.
    async fn newest(&self) -> Result<Option<Manifest>> {
        let mut tried = 0;
        loop {
            let Some(number) = self.newest_number().await? else { return Ok(None) };
            match self.manifest(number).await {
                // A collection has deleted it since, so there is a newer one.
                Err(error) if error.kind() == Kind::NotFound && tried < TRIES => tried += 1,
                manifest => return manifest.map(Some),
            }
        }
    }

    async fn newest_number(&self) -> Result<Option<u64>> {
        if !self.objects.lists_in_order() {
            return Ok(self.manifests().await?.last().copied());
        }
        // It is the first one, so more than one page of the list is never asked for.
        let mut listed = self.objects.list(&self.key(MANIFESTS));
        while let Some(listed) = listed.next().await {
            if let Some(number) = Self::manifest_number(self.name(&listed?.key)) {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// The numbers of all manifests, in ascending order.
    async fn manifests(&self) -> Result<Vec<u64>> {
        let names = self.list(MANIFESTS).await?;
        Ok(names.iter().rev().filter_map(|name| Self::manifest_number(name)).collect())
    }

    fn manifest_number(name: &str) -> Option<u64> {
        let digits = name.strip_prefix(MANIFESTS)?.strip_prefix('/')?.strip_suffix(".tenarc")?;
        (digits.len() == 20).then(|| digits.parse().ok().map(|number: u64| u64::MAX - number))?
    }

    /// The name of a manifest. The newest one is the first in a list.
    fn manifest_name(number: u64) -> String {
        format!("{MANIFESTS}/{:020}.tenarc", u64::MAX - number)
    }

    async fn manifest(&self, number: u64) -> Result<Manifest> {
        let name = Self::manifest_name(number);
        let manifest: Manifest = self.load(&name).await?;
        let checked = manifest.check();
        checked.map_err(|error| error.of_object(&self.key(&name)))?;
        if manifest.number != number {
            let what = format!("expected manifest {number}, found manifest {}", manifest.number);
            return Err(Error::new(Kind::Archive, what).of_object(&self.key(&name)));
        }
        Ok(manifest)
    }
}

/// A state that was committed: [`Store::latest`].
///
/// It stays readable while others commit, and until it is [collected](Store::collect).
#[derive(Clone)]
pub struct Set {
    store: Store,
    manifest: Arc<Manifest>,
    /// Shards that were opened.
    opened: Arc<Mutex<BTreeMap<u64, RemoteArchive>>>,
}

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Set")
            .field("step", &self.manifest.step)
            .field("number", &self.manifest.number)
            .finish_non_exhaustive()
    }
}

/// A tensor of a [`Set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetTensor {
    path: String,
    dtype: DType,
    shape: Vec<u64>,
    blocks: usize,
}

impl SetTensor {
    /// Its path.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The type of its elements.
    pub fn dtype(&self) -> &DType {
        &self.dtype
    }

    /// The shape of the whole tensor.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The number of blocks in which it was written.
    pub fn blocks(&self) -> usize {
        self.blocks
    }
}

impl Set {
    fn new(store: Store, manifest: Manifest) -> Self {
        Self { store, manifest: Arc::new(manifest), opened: Arc::default() }
    }

    /// The step.
    pub fn step(&self) -> u64 {
        self.manifest.step
    }

    /// The number of the manifest. Later commits have higher numbers.
    pub fn number(&self) -> u64 {
        self.manifest.number
    }

    /// Which manifest was the newest before, if there was one: its identity, which is a digest of the receipts.
    pub fn parent(&self) -> Option<&str> {
        self.manifest.parent.as_deref()
    }

    /// All tensors, in the order of their paths.
    pub fn tensors(&self) -> Vec<SetTensor> {
        let tensors = self.manifest.tensors().into_iter();
        let tensor = |(path, blocks): (&str, Vec<&Block>)| {
            let first = blocks.first()?;
            let (dtype, shape) = (DType::from_name(&first.dtype), first.whole.clone());
            Some(SetTensor { path: path.to_owned(), dtype, shape, blocks: blocks.len() })
        };
        tensors.filter_map(tensor).collect()
    }

    /// The paths of all values that are no tensors in blocks.
    pub fn values(&self) -> Vec<&str> {
        self.manifest.values.iter().map(|value| &*value.path).collect()
    }

    /// A whole tensor.
    ///
    /// # Errors
    /// Those of [`block`](Self::block).
    pub async fn tensor<T: for<'de> FromTensor<'de>>(&self, path: &str) -> Result<T> {
        let axes = self.blocks_of(path)?.first().map_or(0, |block| block.whole.len());
        self.block(path, std::iter::repeat_n(AxisSlice::FULL, axes).collect::<Slices>()).await
    }

    /// Part of a tensor, whatever the blocks in which it was written: `block("w", s![85..170, ..])`. Only tiles with elements of the
    /// part are read, by many requests side by side, and verified.
    ///
    /// # Errors
    /// - There is no such tensor, or the slice does not fit it, or has a step other than 1.
    /// - The type cannot hold the dtype or the shape.
    /// - A shard is missing, was replaced, or is damaged.
    pub async fn block<T: for<'de> FromTensor<'de>>(
        &self,
        path: &str,
        slices: impl Into<Slices>,
    ) -> Result<T> {
        let blocks = self.blocks_of(path)?;
        let in_path = |error: Error| error.of_object(path);
        let Some(first) = blocks.first() else {
            return Err(in_path(Error::new(Kind::NotFound, "there is no such tensor")));
        };
        let (wanted, shape) = wanted(&first.whole, &slices.into()).map_err(in_path)?;
        let too_long = || in_path(Error::new(Kind::Unsupported, "the part does not fit in memory"));
        let width = first.width().ok_or_else(too_long)?;
        let count =
            wanted.count().and_then(|count| usize::try_from(count).ok()).ok_or_else(too_long)?;
        let len = count.checked_mul(width).ok_or_else(too_long)?;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).map_err(|_| too_long())?;
        bytes.resize(len, 0);

        let needed = blocks.iter().filter_map(|block| {
            let region = block.region()?;
            let common = region.meet(&wanted)?;
            Some(self.read(block, region, common))
        });
        let mut pieces = stream::iter(needed).buffer_unordered(TOGETHER);
        let mut found = 0;
        while let Some(read) = pieces.next().await {
            for (region, tensor) in read? {
                copy(&region, (&tensor.le_bytes(), &region), (&mut bytes, &wanted), width)
                    .ok_or_else(too_long)?;
                found += region.count().unwrap_or_default();
            }
        }
        if found != count as u64 {
            let what = format!("the blocks have {found} of {count} elements");
            return Err(in_path(Error::new(Kind::Incomplete, what)));
        }
        let tensor = DynTensor::new(DType::from_name(&first.dtype), &shape, Order::C, bytes)?;
        tensor.into_tensor().map_err(|error| in_path(error.into()))
    }

    /// Reads what a block has of a box: the tiles that meet it.
    async fn read(
        &self,
        block: &Block,
        region: Region,
        common: Region,
    ) -> Result<Vec<(Region, DynTensor)>> {
        let archive = self.open(block.object).await?;
        let (segment, tile, dtype) =
            (block.segment, block.tile.clone(), DType::from_name(&block.dtype));
        archive
            .with(move |archive| {
                let segment = archive.segment(segment)?;
                let tiles = region.tiles(&tile, &common).into_iter();
                let needed: Vec<_> = tiles
                    .filter_map(|(number, tile)| Some((number, tile.meet(&common)?, tile)))
                    .collect();
                let paths = needed
                    .iter()
                    .map(|(number, part, tile)| (number.to_string(), part.within(tile).slices()));
                let read = segment.dyn_slices(&paths.collect::<Vec<_>>())?;
                let mut found = Vec::new();
                for ((_, part, _), tensor) in needed.into_iter().zip(read) {
                    let shape: Vec<u64> = tensor.shape().iter().map(|&len| len as u64).collect();
                    if shape != part.shape() || *tensor.dtype() != dtype {
                        let what = format!(
                            "expected a tile of {dtype} {:?}, found one of {} {shape:?}",
                            part.shape(),
                            tensor.dtype()
                        );
                        return Err(tenarc::Error::damaged(what));
                    }
                    found.push((part, tensor.into_row_major()?));
                }
                Ok(found)
            })
            .await
    }

    /// A value that one rank has written.
    ///
    /// # Errors
    /// If there is no such value, it does not fit the type, or its shard is missing, was replaced, or is damaged.
    pub async fn value<T: DeserializeOwned + Send + 'static>(&self, path: &str) -> Result<T> {
        let value = self.value_at(path)?;
        let (archive, segment) = (self.open(value.object).await?, value.segment);
        archive.with(move |archive| archive.segment(segment)?.load()).await
    }

    fn value_at(&self, path: &str) -> Result<&StoredValue> {
        self.manifest.values.iter().find(|value| value.path == path).ok_or_else(|| {
            Error::new(Kind::NotFound, format!("`{}`: there is no such value", path.escape_debug()))
        })
    }

    fn blocks_of(&self, path: &str) -> Result<Vec<&Block>> {
        let blocks: Vec<_> =
            self.manifest.blocks.iter().filter(|block| block.path == path).collect();
        if blocks.is_empty() {
            return Err(Error::new(
                Kind::NotFound,
                format!("`{}`: there is no such tensor", path.escape_debug()),
            ));
        }
        Ok(blocks)
    }

    /// The object with a value, to be read by ranges, and the number of the value in it. No request is made. So programs
    /// read a value in other ways than whole, such as a query engine. Use it on a thread that may wait.
    ///
    /// # Errors
    /// If there is no such value.
    ///
    /// # Panics
    /// If it is not called in a runtime of tokio.
    pub fn value_source(&self, path: &str) -> Result<(ReadAhead<ObjectFile>, u64)> {
        let value = self.value_at(path)?;
        let file = self.file(value.object, &Handle::current())?;
        Ok((ReadAhead::with(file, self.store.requests), value.segment))
    }

    async fn open(&self, object: u64) -> Result<RemoteArchive> {
        let opened = || self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(archive) = opened().get(&object) {
            return Ok(archive.clone());
        }
        let runtime = Handle::current();
        let file = self.file(object, &runtime)?;
        let archive = RemoteArchive::open(file, REQUESTS, runtime).await?;
        opened().insert(object, archive.clone());
        Ok(archive)
    }

    fn file(&self, object: u64, runtime: &Handle) -> Result<ObjectFile> {
        let place =
            usize::try_from(object).ok().and_then(|object| self.manifest.objects.get(object));
        let written = place.ok_or_else(|| {
            Error::new(Kind::Archive, format!("the manifest lists no object {object}"))
        })?;
        Ok(self.store.file(&written.name, runtime, Some(written.clone())))
    }
}

/// The box of a slice, and the shape of the result.
fn wanted(whole: &[u64], slices: &Slices) -> Result<(Region, Vec<usize>)> {
    let invalid = |what: String| Error::new(Kind::Unsupported, what);
    let (mut ranges, mut shape, mut axes) = (Vec::new(), Vec::new(), whole.iter());
    let too_few =
        || invalid(format!("expected a slice of {} axes for the shape {whole:?}", whole.len()));
    for slice in slices.as_slice() {
        if *slice == AxisSlice::NewAxis {
            shape.push(1);
            continue;
        }
        let &len = axes.next().ok_or_else(too_few)?;
        let at = |index: isize| {
            let counted = if index < 0 {
                len.checked_sub(index.unsigned_abs() as u64)
            } else {
                Some(index.unsigned_abs() as u64)
            };
            counted
                .filter(|&at| at <= len)
                .ok_or_else(|| invalid(format!("{index} is not in an axis of length {len}")))
        };
        let range = match *slice {
            AxisSlice::Index(index) => {
                let at = at(index)?;
                if at >= len {
                    return Err(invalid(format!("{index} is not in an axis of length {len}")));
                }
                at..at + 1
            }
            AxisSlice::Range { start, end, step: 1 } => {
                let start = at(start)?;
                let end = end.map_or(Ok(len), at)?;
                shape.push(usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX));
                start..end.max(start)
            }
            _ => return Err(invalid("a part of a set is a box: steps must be 1".into())),
        };
        ranges.push(range);
    }
    if axes.next().is_some() {
        return Err(too_few());
    }
    Ok((Region(ranges), shape))
}
