//! What is committed: which objects hold which blocks of which tensors.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use tenarc::DType;

use super::SHARDS;
use super::region::Region;
use crate::error::{Error, Kind, Result};
use crate::stored::StoredObject;

/// The version of manifests and receipts.
const VERSION: u32 = 1;

/// A state of a set.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Manifest {
    pub version: u32,
    /// Which commit wrote it. The same receipts have the same.
    pub write: String,
    /// The numbers of manifests ascend.
    pub number: u64,
    /// The number of the manifest with the tensors: this one, or an earlier one if this one says only what is deleted. 0 if
    /// there is none.
    pub commit: u64,
    /// What wrote the manifest before.
    pub parent: Option<String>,
    pub step: u64,
    pub objects: Vec<StoredObject>,
    pub blocks: Vec<Block>,
    pub values: Vec<StoredValue>,
    /// Names of the objects that the last collection deletes. Later manifests repeat them until the next collection.
    pub deleted: Vec<String>,
}

/// A block of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub path: String,
    pub dtype: String,
    /// The shape of the whole tensor.
    pub whole: Vec<u64>,
    pub offset: Vec<u64>,
    pub shape: Vec<u64>,
    /// The shape of the tiles that it is stored as.
    pub tile: Vec<u64>,
    /// The number of the object, and of the segment in it.
    pub object: u64,
    pub segment: u64,
    /// The SHA-256 of its elements, if later steps may refer to it.
    #[serde(default)]
    pub digest: Option<String>,
}

/// A value that is no block of a tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredValue {
    pub path: String,
    pub object: u64,
    pub segment: u64,
}

/// What one rank has written: [`Shard::finish`](crate::Shard::finish) returns it, and
/// [`Step::commit`](crate::Step::commit) takes those of all ranks.
///
/// It can be sent as bytes, or in any serde format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub(super) version: u32,
    pub(super) step: u64,
    pub(super) rank: u64,
    pub(super) object: StoredObject,
    pub(super) blocks: Vec<Block>,
    pub(super) values: Vec<StoredValue>,
    /// Objects of earlier steps with blocks that are the same in this one. They have the numbers from 1 on.
    #[serde(default)]
    pub(super) earlier: Vec<StoredObject>,
}

impl Receipt {
    pub(super) fn new(step: u64, rank: u64, object: StoredObject) -> Self {
        let (blocks, values, earlier) = Default::default();
        Self { version: VERSION, step, rank, object, blocks, values, earlier }
    }

    /// The receipt as bytes, to be sent to the rank that commits.
    ///
    /// # Errors
    /// There are none at present.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(tenarc::to_vec(self)?)
    }

    /// The receipt of these bytes.
    ///
    /// # Errors
    /// If they are no receipt, or one of a later version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let receipt: Self = tenarc::from_slice(bytes)?;
        check_version(receipt.version, "receipt")?;
        Ok(receipt)
    }

    /// The rank that has written it.
    pub fn rank(&self) -> u64 {
        self.rank
    }

    /// The number of bytes that the rank has stored, without those of [earlier](crate::Step::shard_after) steps.
    pub fn stored_bytes(&self) -> u64 {
        self.object.size
    }
}

fn check_version(found: u32, what: &str) -> Result<()> {
    if found == VERSION {
        return Ok(());
    }
    Err(Error::new(
        Kind::Unsupported,
        format!("expected a {what} of version {VERSION}, found version {found}"),
    ))
}

impl Block {
    /// Its box of elements. It was checked when the manifest was read or made.
    pub fn region(&self) -> Option<Region> {
        Region::new(&self.offset, &self.shape, &self.whole)
    }

    /// The size of an element in bytes. `None` if elements are not whole bytes.
    pub fn width(&self) -> Option<usize> {
        let bits = DType::from_name(&self.dtype).bits()?;
        bits.is_multiple_of(8).then_some(bits / 8)
    }
}

impl Manifest {
    /// What is before the first manifest.
    pub fn none() -> Self {
        Self {
            version: VERSION,
            write: String::new(),
            number: 0,
            commit: 0,
            parent: None,
            step: 0,
            objects: Vec::new(),
            blocks: Vec::new(),
            values: Vec::new(),
            deleted: Vec::new(),
        }
    }

    /// The state of a step that these ranks have written.
    ///
    /// # Errors
    /// If a receipt is missing, double or of another step, or blocks do not make whole tensors.
    pub fn of_receipts(step: u64, mut receipts: Vec<Receipt>, ranks: u64) -> Result<Self> {
        let refused = |what: String| Err(Error::new(Kind::Incomplete, what));
        receipts.sort_by_key(|receipt| receipt.rank);
        let found: BTreeSet<u64> = receipts.iter().map(|receipt| receipt.rank).collect();
        let missing: Vec<u64> =
            (0..ranks).filter(|rank| !found.contains(rank)).take(SHOWN).collect();
        if !missing.is_empty() {
            return refused(format!(
                "expected the receipts of {ranks} ranks, there are none of {missing:?}"
            ));
        }
        if receipts.len() as u64 != ranks {
            let all: Vec<u64> = receipts.iter().map(|receipt| receipt.rank).take(SHOWN).collect();
            return refused(format!(
                "expected one receipt of each of {ranks} ranks, found those of {all:?}"
            ));
        }
        if let Some(other) = receipts.iter().find(|receipt| receipt.step != step) {
            return refused(format!(
                "expected receipts of step {step}, found one of step {} by rank {}",
                other.step, other.rank
            ));
        }
        let write = digest_of(&tenarc::to_vec(&receipts)?)?;
        let mut manifest = Self { write, step, ..Self::none() };
        for receipt in receipts {
            let objects = std::iter::once(receipt.object).chain(receipt.earlier);
            let numbers: Vec<u64> = objects.map(|object| manifest.number_of(object)).collect();
            // One that is not listed is found below.
            let number = |object: u64| {
                let number = usize::try_from(object).ok().and_then(|object| numbers.get(object));
                number.copied().unwrap_or(u64::MAX)
            };
            let blocks = receipt.blocks.into_iter();
            manifest
                .blocks
                .extend(blocks.map(|block| Block { object: number(block.object), ..block }));
            let values = receipt.values.into_iter();
            manifest
                .values
                .extend(values.map(|value| StoredValue { object: number(value.object), ..value }));
        }
        manifest.check()?;
        manifest.check_whole()?;
        Ok(manifest)
    }

    /// The number of an object, which is added if it is not listed yet.
    fn number_of(&mut self, object: StoredObject) -> u64 {
        let number = self.objects.iter().position(|listed| *listed == object);
        number.unwrap_or_else(|| {
            self.objects.push(object);
            self.objects.len() - 1
        }) as u64
    }

    /// A manifest that says only what is deleted.
    pub fn deleting(after: &Self, deleted: Vec<String>) -> Result<Self> {
        let write = tenarc::to_vec(&(after.number, &deleted))?;
        Ok(Self {
            write: digest_of(&write)?,
            number: after.number + 1,
            objects: Vec::new(),
            blocks: Vec::new(),
            values: Vec::new(),
            deleted,
            ..after.clone()
        })
    }

    /// Checks what reading relies on.
    ///
    /// # Errors
    /// If it is of a later version, or damaged.
    pub fn check(&self) -> Result<()> {
        check_version(self.version, "manifest")?;
        for object in &self.objects {
            let file = object.name.strip_prefix(SHARDS).and_then(|name| name.strip_prefix('/'));
            if file.is_none_or(|file| file.contains('/')) {
                let name = object.name.escape_debug();
                let what = format!("expected an object in `{SHARDS}`, found the name `{name}`");
                return Err(Error::new(Kind::Archive, what));
            }
        }
        let objects = self.objects.len() as u64;
        for block in &self.blocks {
            let tiles_fit = block.tile.len() == block.shape.len() && !block.tile.contains(&0)
                || block.shape.contains(&0);
            if block.region().and_then(|region| region.count()).is_none()
                || !tiles_fit
                || block.object >= objects
            {
                return Err(Error::new(
                    Kind::Incomplete,
                    format!(
                        "`{}`: the block {:?} at {:?} is not in a tensor of {:?}",
                        block.path.escape_debug(),
                        block.shape,
                        block.offset,
                        block.whole
                    ),
                ));
            }
            if block.width().is_none() {
                return Err(Error::new(
                    Kind::Unsupported,
                    format!(
                        "`{}`: a tensor of {} cannot be stored in blocks: its elements are not whole bytes, or of unknown size",
                        block.path.escape_debug(),
                        block.dtype
                    ),
                ));
            }
        }
        if self.values.iter().any(|value| value.object >= objects) {
            return Err(Error::new(Kind::Incomplete, "a value is in an object that is not listed"));
        }
        Ok(())
    }

    /// The blocks of each tensor.
    pub fn tensors(&self) -> BTreeMap<&str, Vec<&Block>> {
        let mut tensors: BTreeMap<&str, Vec<&Block>> = BTreeMap::new();
        for block in &self.blocks {
            tensors.entry(&block.path).or_default().push(block);
        }
        tensors
    }

    /// # Errors
    /// If the blocks of a tensor overlap, leave gaps or disagree, or a path occurs twice.
    fn check_whole(&self) -> Result<()> {
        let refused = |path: &str, what: String| {
            Err(Error::new(Kind::Incomplete, format!("`{}`: {what}", path.escape_debug())))
        };
        for (path, blocks) in self.tensors() {
            let Some(first) = blocks.first() else { continue };
            if let Some(other) =
                blocks.iter().find(|block| block.whole != first.whole || block.dtype != first.dtype)
            {
                return refused(
                    path,
                    format!(
                        "blocks of {} {:?} and of {} {:?}",
                        first.dtype, first.whole, other.dtype, other.whole
                    ),
                );
            }
            let regions: Vec<Region> = blocks.iter().filter_map(|block| block.region()).collect();
            for (number, region) in regions.iter().enumerate() {
                if let Some(other) =
                    regions[..number].iter().find(|other| region.meet(other).is_some())
                {
                    return refused(
                        path,
                        format!("the blocks {:?} and {:?} overlap", other.0, region.0),
                    );
                }
            }
            let whole = Region::new(&vec![0; first.whole.len()], &first.whole, &first.whole);
            let expected = whole.and_then(|whole| whole.count());
            let found =
                regions.iter().try_fold(0u64, |sum, region| sum.checked_add(region.count()?));
            if found != expected {
                return refused(
                    path,
                    format!(
                        "the blocks have {} of the {} elements of {:?}",
                        found.unwrap_or_default(),
                        expected.unwrap_or_default(),
                        first.whole
                    ),
                );
            }
        }
        let mut paths: Vec<&str> = self.values.iter().map(|value| &*value.path).collect();
        paths.extend(self.tensors().into_keys());
        paths.sort_unstable();
        match paths.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                refused(pair[0], "two ranks have written it, or one has written it twice".into())
            }
            None => Ok(()),
        }
    }
}

/// The number of ranks that an error names.
const SHOWN: usize = 20;

/// The digest of some bytes: that of an archive with them.
pub fn digest_of(bytes: &[u8]) -> Result<String> {
    let mut out = tenarc::OArchive::new(Vec::new())?;
    out.save(&tenarc::Tensor(bytes))?;
    let archive = tenarc::Archive::new(out.finish()?)?;
    Ok(archive.digest()?.to_string())
}
