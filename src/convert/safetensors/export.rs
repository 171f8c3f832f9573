//! From an archive to a file: what of a value are tensors, and what is not.

use std::collections::HashSet;
use std::fmt;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use ndarray::Dimension as _;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::fields::METADATA;
use super::header::Metadata;
use super::options::Options;
use crate::archive::Segment;
use crate::convert::Losses;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::source::SliceRead;
use crate::segment::path::{is_leaf, key, tensor_at};
use crate::tensor::{Deferred, DynTensor, Tensor};
use crate::wire::head;
use crate::wire::reader::{Left, Wire};
use crate::wire::tag;
use crate::wire::tensor::Kind;

/// A value of an archive as tensors to be saved under names: its paths, joined by dots.
///
/// Tensors are read as they are written, with checksums verified, one at a time. Sequences of numbers
/// that are stored as one block are tensors of one dimension. Texts in a map under `__metadata__` are
/// the metadata.
///
/// ```
/// use tenarc::convert::safetensors::{self, Export};
///
/// # let dir = std::env::temp_dir().join(format!("tenarc-doc-export-{}", std::process::id()));
/// # std::fs::create_dir_all(&dir)?;
/// # let path = dir.join("model.safetensors");
/// let mut archive = Vec::new();
/// tenarc::save_multi(&mut archive, &[("fc.weight", vec![0.5f32; 9])])?;
///
/// let archive = tenarc::Archive::new(archive)?;
/// let segment = archive.segment(0)?;
/// let export = Export::new(&segment)?;
/// assert!(export.losses().is_empty());
/// export.save(&path, &safetensors::Options::default())?;
/// assert_eq!(safetensors::open(&path)?.dyn_tensor("fc.weight")?, archive.dyn_tensor("fc.weight")?);
/// # std::fs::remove_dir_all(&dir)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Export<'a> {
    tensors: Vec<(String, Deferred<'a>)>,
    metadata: Option<Metadata>,
    losses: Losses,
}

impl fmt::Debug for Export<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Export")
            .field("tensors", &self.tensors.len())
            .field("losses", &self.losses)
            .finish_non_exhaustive()
    }
}

impl<'a> Export<'a> {
    /// Looks through the metadata of a value, without reading its tensors.
    ///
    /// # Errors
    /// Where the archive is damaged, the value is itself a tensor or anything else than a struct, a map
    /// or an array, and where two tensors have one name.
    pub fn new<S: ReadAt + ?Sized>(segment: &'a Segment<'_, S>) -> Result<Self> {
        let bytes = segment.metadata()?;
        let limits = segment.options.limits;
        let wire = Wire::new(SliceRead::new(bytes), limits);
        let mut walk = Walk {
            bytes,
            left: most(bytes),
            wire,
            steps: Vec::new(),
            found: Found::default(),
            losses: Losses::default(),
        };
        walk.item()?;
        let Walk { found, mut losses, .. } = walk;
        let metadata = found.metadata.map(|range| segment.decode::<Texts>(range));
        let metadata = metadata.transpose()?.map(|Texts(pairs)| pairs);
        let mut names = HashSet::with_capacity(found.tensors.len());
        let mut tensors = Vec::with_capacity(found.tensors.len());
        for (name, range) in found.tensors {
            let (base, item) = segment.item(range.clone())?;
            let (item, _) = tensor_at(item, base, segment.header(), limits)
                .map_err(|error| error.in_field(name.as_str()))?;
            if item.kind == Kind::Bytes {
                losses.add(&name, "a byte string is no tensor: it is left out");
                continue;
            }
            if !names.insert(name.clone()) {
                let what = "there are two tensors of this name, by paths that read alike";
                return Err(Error::data(what).in_field(name));
            }
            let (meta, len) = (&item.meta, item.payload.len());
            let read = move |put: &mut dyn FnMut(&[u8]) -> Result<()>| {
                let tensor: Tensor<DynTensor> = segment.decode(range.clone())?;
                put(&tensor.le_bytes())
            };
            let shape = meta.shape.slice();
            let deferred = Deferred::from_blocks(meta.dtype.clone(), shape, meta.order, read);
            tensors.push((name, deferred.with_byte_len(len)));
        }
        Ok(Self { tensors, metadata, losses })
    }

    /// The tensors and their names, in the order of the value's fields.
    pub fn tensors(&self) -> &[(String, Deferred<'a>)] {
        &self.tensors
    }

    /// The texts under `__metadata__`, in their order.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.metadata.as_deref()
    }

    /// What of the value is no tensor.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// Saves the tensors as a file; what was not kept, where that is accepted. Metadata of the options
    /// take the place of the value's.
    ///
    /// # Errors
    /// As [`save_with`](super::save_with), and where there are [`losses`](Self::losses) that are not
    /// accepted.
    pub fn save(&self, path: impl AsRef<Path>, options: &Options) -> Result<Losses> {
        self.saved(options, |options| super::save_with(path, &self.tensors, options))
    }

    /// As [`save`](Self::save), to any writer.
    ///
    /// # Errors
    /// As [`to_writer_with`](super::to_writer_with), and where there are [`losses`](Self::losses) that
    /// are not accepted.
    pub fn to_writer<W: Write>(&self, writer: W, options: &Options) -> Result<Losses> {
        self.saved(options, |options| super::to_writer_with(writer, &self.tensors, options))
    }

    /// As [`save`](Self::save), as several files: see [`save_sharded`](super::save_sharded).
    ///
    /// # Errors
    /// As [`save_sharded`](super::save_sharded), and where there are [`losses`](Self::losses) that are
    /// not accepted.
    pub fn save_sharded(
        &self,
        index: impl AsRef<Path>,
        max_bytes: u64,
        options: &Options,
    ) -> Result<Losses> {
        self.saved(options, |options| super::save_sharded(index, &self.tensors, max_bytes, options))
    }

    fn saved(
        &self,
        options: &Options,
        save: impl FnOnce(&Options) -> Result<Losses>,
    ) -> Result<Losses> {
        self.losses.check(options.accept_losses)?;
        let mut options = options.clone();
        options.metadata = options.metadata.or_else(|| self.metadata.clone());
        let mut losses = self.losses.clone();
        losses.extend(save(&options)?);
        Ok(losses)
    }
}

/// Where in the metadata of a segment something stands.
#[derive(Default)]
struct Found {
    /// Names, and the items that may be tensors.
    tensors: Vec<(String, Range<usize>)>,
    metadata: Option<Range<usize>>,
}

/// A walk over a value's items.
struct Walk<'m> {
    bytes: &'m [u8],
    /// Bytes that names may still take.
    left: usize,
    wire: Wire<SliceRead<'m>>,
    /// From the outermost value to this one; a key that cannot be named is none.
    steps: Vec<Option<String>>,
    found: Found,
    losses: Losses,
}

/// Characters of each step, and bytes before the last, that are told of what is lost.
const MAX_PATH: usize = 256;

/// What the names of a value's tensors may take, as paths in archives.
fn most(metadata: &[u8]) -> usize {
    metadata.len().saturating_mul(16).max(1 << 20)
}

impl Walk<'_> {
    fn at(&self) -> usize {
        usize::try_from(self.wire.offset()).unwrap_or(usize::MAX)
    }

    /// The name of a tensor here. One long key stands in the names of all that is under it.
    fn name(&mut self) -> Result<String> {
        let len = self.steps.iter().flatten().map(|step| step.len() + 1).sum();
        self.left = self.left.checked_sub(len).ok_or_else(|| {
            let most = most(self.bytes);
            Error::limit(format!("names of tensors take more than {most} bytes"))
        })?;
        let steps: Vec<&str> =
            self.steps.iter().map(|step| step.as_deref().unwrap_or("?")).collect();
        Ok(steps.join("."))
    }

    fn lose(&mut self, what: &str) {
        let mut path = String::new();
        if self.losses.lists_more() {
            for (at, step) in self.steps.iter().enumerate() {
                if path.len() > MAX_PATH {
                    break;
                }
                if at > 0 {
                    path.push('.');
                }
                path.extend(step.as_deref().unwrap_or("?").chars().take(MAX_PATH));
            }
        }
        self.losses.add(&path, what);
    }

    /// Passes over the next item, and keeps what of it can be kept.
    fn item(&mut self) -> Result<()> {
        let start = self.at();
        let head = self.wire.head()?;
        match head.major() {
            head::ARRAY | head::MAP => self.container(head),
            head::TAG if tag::is_array(head.arg) => {
                self.wire.within(1, Wire::skip)?;
                if self.steps.is_empty() {
                    return Err(Error::data(
                        "the value is a tensor by itself, which has no name: save it in a map",
                    ));
                }
                if self.steps.contains(&None) {
                    self.lose(
                        "a tensor under a key that is no text and no integer: it is left out",
                    );
                } else {
                    let name = self.name()?;
                    self.found.tensors.push((name, start..self.at()));
                }
                Ok(())
            }
            // What any other tag stands around is where the tag is.
            head::TAG if !is_leaf(head.arg) => {
                if head.arg != tag::SOME {
                    self.lose(&format!("tag {} around it is left out", head.arg));
                }
                self.wire.enter()?;
                self.item()?;
                self.wire.leave();
                Ok(())
            }
            _ if self.steps.is_empty() => {
                let found = head::name(head.initial);
                Err(Error::data(format!("expected a value with tensors, found {found}")))
            }
            major => {
                match major {
                    head::BYTES | head::TEXT => self.wire.string(head).map(drop)?,
                    head::TAG => self.wire.within(1, Wire::skip)?,
                    _ => {}
                }
                self.lose(&format!("{} is no tensor: it is left out", head::name(head.initial)));
                Ok(())
            }
        }
    }

    fn container(&mut self, head: head::Head) -> Result<()> {
        self.wire.enter()?;
        let mut left = Left::of(head);
        let mut count = 0u64;
        while self.wire.more(&mut left)? {
            let step = if head.major() == head::MAP {
                key(&mut self.wire)?
            } else {
                Some(count.to_string())
            };
            count += 1;
            let is_metadata = self.steps.is_empty() && step.as_deref() == Some(METADATA);
            if is_metadata && self.metadata()? {
                continue;
            }
            self.steps.push(step);
            self.item()?;
            self.steps.pop();
        }
        if count == 0 && !self.steps.is_empty() {
            self.lose("it is empty, and left out");
        }
        self.wire.leave();
        Ok(())
    }

    /// Passes over the map under `__metadata__`, if the next item is a map: kept if it is one of texts.
    /// Whether it was one.
    fn metadata(&mut self) -> Result<bool> {
        let next = self.wire.peek_head()?;
        if next.is_none_or(|(head, _)| head.major() != head::MAP) {
            return Ok(false);
        }
        let start = self.at();
        self.wire.within(0, Wire::skip)?;
        let range = start..self.at();
        let item = self.bytes.get(range.clone()).unwrap_or_default();
        if self.found.metadata.is_none() && crate::from_slice::<Texts>(item).is_ok() {
            self.found.metadata = Some(range);
        } else {
            self.losses.add(METADATA, "it is no map of texts, and left out");
        }
        Ok(true)
    }
}

/// A map of texts, in its order.
struct Texts(Metadata);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextsVisitor;

        impl<'de> Visitor<'de> for TextsVisitor {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map of texts")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Texts, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Texts(pairs))
            }
        }

        deserializer.deserialize_map(TextsVisitor)
    }
}
