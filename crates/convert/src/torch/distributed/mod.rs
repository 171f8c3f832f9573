//! Reads distributed checkpoints: the directories that `torch.distributed.checkpoint` writes.
//!
//! The file `.metadata` is a pickle. It names the tensors and the objects of the checkpoint. Every process that took
//! part in saving wrote a file of its own, with the parts of tensors that it had. Each part, and each object, is what
//! `torch.save` writes.

mod files;
mod metadata;
mod nesting;
mod python;

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tenarc::de::Limits;
use tenarc::io::{ReadAt, open_file};
use tenarc::tensor::{Deferred, FromTensor, Order, TensorInfo, TensorMeta};
use tenarc::{DynTensor, Error, Result};

use self::files::{Files, Slice};
use self::metadata::{Item, Kind, Metadata};
use self::nesting::Nesting;
use super::container::{Container, Roots};
use super::content::Content;
use super::layout::{self, Place};
use super::pickle::{self, At, Machine, Object, Rebuilt, Storage, Value, object};
use super::plain;
use super::stores::{Stores, check_limits, check_sum};
use crate::as_value::AsValue;
use crate::chunks::{self, Chunk, Cover, Span};
use crate::elements::collected;
use crate::support::parent;
use crate::{Losses, Names, TensorFile, source};

/// The name of the file with the metadata.
const METADATA: &str = ".metadata";

/// The length of the longest metadata that are read, in bytes.
const MAX_METADATA: u64 = 256 << 20;

/// A distributed checkpoint: see [`open_distributed`].
///
/// Opening it reads the metadata and the objects that are not tensors. The elements of a tensor are read when the tensor
/// is requested. All methods take `&self`, so several threads can read at the same time.
pub struct Distributed {
    files: Files,
    content: Content,
    tensors: Vec<TensorInfo>,
    homes: Vec<Home>,
    by_name: HashMap<String, usize>,
    /// The objects that hold tensors.
    objects: Vec<Held>,
    /// The parts of the files that hold objects.
    spans: Vec<Span>,
    limits: Limits,
}

impl fmt::Debug for Distributed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Distributed")
            .field("tensors", &self.tensors.len())
            .field("losses", &self.content.losses.count())
            .finish_non_exhaustive()
    }
}

/// The place of a tensor's elements.
enum Home {
    /// The chunks of the tensor, sorted by their starts.
    Chunks(Vec<Chunk>),
    /// The index of the object that holds the tensor, and the place in it.
    Object(usize, Place),
}

/// An object that holds tensors, such as a tuple of tensors.
struct Held {
    /// The number of its first object in the pickles of the checkpoint.
    first: usize,
    span: Span,
    container: Container,
}

/// A chunk that was opened.
struct OpenChunk {
    slice: Slice,
    container: Container,
    objects: Vec<Object>,
    info: TensorInfo,
    place: Place,
    /// Whether the chunk fills its storage.
    is_whole: bool,
}

/// Opens a distributed checkpoint by its directory, or by the file `.metadata` in it. The files that the metadata name
/// must be in the same directory. They may be symbolic links.
///
/// # Errors
/// - If a file cannot be read, or the metadata name a file that is not in the directory or below.
/// - If the metadata and the files contradict each other: for example, if chunks overlap, or do not cover their tensor.
/// - If parts are compressed or encrypted by an extension of torch.
pub fn open_distributed(path: impl AsRef<Path>) -> Result<Distributed> {
    let path = path.as_ref();
    let path = if path.is_dir() { path.join(METADATA) } else { path.to_owned() };
    let (file, _) = open_file(&path)?;
    Distributed::open(&file, &path).map_err(|error| error.in_file(&path))
}

/// Returns the path of the metadata, if `path` is the directory of a distributed checkpoint, or its file `.metadata`.
/// Other programs write files of this name too, but not pickles.
pub fn distributed_metadata(path: &Path) -> Option<PathBuf> {
    let found = if path.is_dir() { path.join(METADATA) } else { path.to_owned() };
    let is_named = found.file_name().is_some_and(|name| name == METADATA);
    let (file, _) = is_named.then(|| open_file(&found))?.ok()?;
    let mut start = [0; 2];
    source::read_exact(&file, &mut start, 0).ok()?;
    matches!(start, [0x80, 2..=5]).then_some(found)
}

impl Distributed {
    /// Sets limits for the tensors inside of objects; see [`TorchFile::with_limits`](super::TorchFile::with_limits).
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Opens a checkpoint. `path` is the path of the file with the metadata.
    pub(super) fn open(file: &File, path: &Path) -> Result<Self> {
        let len = file.size().map_err(Error::io)?;
        if len > MAX_METADATA {
            let what = format!("metadata of {len} bytes, at most {MAX_METADATA} are read");
            return Err(Error::limit(what));
        }
        let metadata = metadata::read(&source::bytes(file, 0, len)?)?;
        let Metadata { items, files, losses } = metadata;
        let files = Files::new(parent(path), &files)?;
        let mut opening = Opening {
            files: &files,
            machine: Machine::default(),
            cover: Cover::new(),
            chunks: Vec::new(),
            objects: Vec::new(),
            spans: Vec::new(),
        };
        let mut nesting = Nesting::new();
        for Item { name, steps, kind } in items {
            let added = opening.add(kind).and_then(|value| nesting.put(&steps, value));
            added.map_err(|error| error.in_field(name))?;
        }
        let Opening { mut machine, mut chunks, objects, spans, .. } = opening;
        let root = nesting.finish(&mut machine.heap)?;
        let mut pickle = machine.finish(root);
        plain::simplify(&mut pickle)?;
        let content = Content::new(pickle, losses)?;
        let (mut tensors, mut homes, mut by_name) = (Vec::new(), Vec::new(), HashMap::new());
        for (name, number, tensor) in content.tensors() {
            let (info, home) = if let At::Chunks(of) = tensor.storage.at {
                let chunks = chunks.get_mut(of).and_then(Option::take);
                let (meta, chunks) = chunks.ok_or_else(no_object)?;
                let len = meta.byte_len().unwrap_or(0) as u64;
                (TensorInfo::new(name.to_owned(), meta, len), Home::Chunks(chunks))
            } else {
                // Objects are numbered in the order in which they were read.
                let at = objects.partition_point(|held| held.first <= number).saturating_sub(1);
                let held = objects.get(at).ok_or_else(no_object)?;
                let found = layout::place(name, tensor, &held.container, &content.objects);
                let (info, place) = found.map_err(|error| error.in_field(name))?;
                (info, Home::Object(at, place))
            };
            by_name.insert(name.to_owned(), tensors.len());
            tensors.push(info);
            homes.push(home);
        }
        let limits = Limits::default();
        Ok(Self { files, content, tensors, homes, by_name, objects, spans, limits })
    }

    /// Returns descriptions of all tensors, in the order of the checkpoint. The path of each is its name.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// Returns what cannot be read, and notes about parts that are left out by design.
    pub fn losses(&self) -> &Losses {
        &self.content.losses
    }

    /// Describes a tensor: its dtype, shape, order and length.
    ///
    /// # Errors
    /// If there is no tensor of this name.
    pub fn info(&self, name: &str) -> Result<&TensorInfo> {
        let number = self.number(name)?;
        self.at(number).map(|(info, _)| info)
    }

    /// Reads a tensor as an array type.
    ///
    /// # Errors
    /// The errors of [`dyn_tensor`](Self::dyn_tensor). Also if the tensor has another dtype or number of dimensions
    /// than the type.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, name: &str) -> Result<T> {
        self.dyn_tensor(name)?.into_tensor().map_err(|error| error.in_field(name))
    }

    /// Reads a tensor of any dtype. Checksums of its chunks are compared.
    ///
    /// # Errors
    /// If there is no tensor of this name, if it cannot be read or is damaged, or if a byte of a bool tensor is neither
    /// 0 nor 1.
    pub fn dyn_tensor(&self, name: &str) -> Result<DynTensor> {
        let (info, home) = self.at(self.number(name)?)?;
        // The files are at least as long as the chunks. A tensor in an object may repeat elements.
        let sure = match home {
            Home::Chunks(_) => info.byte_len(),
            Home::Object(_, place) => {
                check_limits(self.limits, info, place)?;
                info.byte_len().min(place.span)
            }
        };
        let sure = usize::try_from(sure).unwrap_or(0);
        collected(info.meta(), sure, |put| self.blocks(info, home, put))
            .map_err(|error| error.in_field(name))
    }

    fn number(&self, name: &str) -> Result<usize> {
        let found = self.by_name.get(name).copied();
        found.ok_or_else(|| {
            Error::not_found("the checkpoint has no tensor of this name").in_field(name)
        })
    }

    fn at(&self, number: usize) -> Result<(&TensorInfo, &Home)> {
        let found = self.tensors.get(number).zip(self.homes.get(number));
        found.ok_or_else(|| Error::not_found(format!("there is no tensor {number}")))
    }

    fn deferred_at(&self, number: usize) -> Result<Deferred<'_>> {
        let (info, home) = self.at(number)?;
        if let Home::Object(_, place) = home {
            check_limits(self.limits, info, place)?;
        }
        Ok(Deferred::from_blocks(info.dtype().clone(), info.shape(), info.order(), move |put| {
            self.blocks(info, home, put)
        }))
    }

    /// Passes the elements of a tensor to `put` as little-endian bytes, block by block.
    fn blocks(
        &self,
        info: &TensorInfo,
        home: &Home,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let chunks = match home {
            Home::Chunks(chunks) => chunks,
            Home::Object(at, place) => {
                let held = self.objects.get(*at).ok_or_else(no_object)?;
                let slice = self.files.open(held.span)?;
                let stores = self.stores(&slice, held);
                return self.located(held.span, put, |put| stores.blocks(info, place, put));
            }
        };
        chunks::gather(info.meta(), chunks, |chunk, put| self.chunk(info, chunk, put), put)
    }

    /// Passes the elements of a chunk to `put` in row-major order, block by block. Compares their checksum.
    fn chunk(
        &self,
        info: &TensorInfo,
        chunk: &Chunk,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let open = self.open_chunk(info, chunk)?;
        let stores = open.stores();
        self.located(chunk.span, put, |put| {
            if !open.is_whole {
                stores.verify_parts(&[&open.place])?;
            }
            stores.blocks(&open.info, &open.place, put)
        })
    }

    /// Calls `read`, and adds the file of a part to its errors, but not to those of `put`.
    fn located(
        &self,
        span: Span,
        put: &mut dyn FnMut(&[u8]) -> Result<()>,
        read: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>,
    ) -> Result<()> {
        let mut of_put = false;
        let result = read(&mut |block| put(block).inspect_err(|_| of_put = true));
        result.map_err(|error| if of_put { error } else { self.files.locate(span, error) })
    }

    /// Opens a chunk, and checks that it is a tensor of the expected dtype and shape.
    fn open_chunk(&self, tensor: &TensorInfo, chunk: &Chunk) -> Result<OpenChunk> {
        let slice = self.files.open(chunk.span)?;
        let open = |slice: Slice| {
            let mut machine = Machine::default();
            let (container, root) = contents(&slice, &mut machine)?;
            let objects = machine.finish(root).objects;
            let Some(Object::Tensor(found)) = object(&objects, root) else {
                return Err(Error::data("expected a tensor, found another object"));
            };
            let (info, mut place) = layout::place(tensor.path(), found, &container, &objects)?;
            if info.dtype() != tensor.dtype() || info.shape() != chunk.sizes {
                return Err(Error::damaged(format!(
                    "expected a chunk of {} {:?}, as the metadata say, found {} {:?}",
                    tensor.dtype(),
                    chunk.sizes,
                    info.dtype(),
                    info.shape()
                )));
            }
            let is_whole = place.whole;
            if info.order() == Order::F {
                place.in_rows(found);
            }
            Ok(OpenChunk { slice, container, objects, info, place, is_whole })
        };
        open(slice).map_err(|error| self.files.locate(chunk.span, error))
    }

    fn stores<'a>(&'a self, slice: &'a Slice, held: &'a Held) -> Stores<'a, Slice> {
        Stores { source: slice, container: &held.container, objects: &self.content.objects }
    }

    /// Returns the parts of the files that hold chunks or objects.
    fn parts(&self) -> impl Iterator<Item = Span> {
        let chunks = self.homes.iter().filter_map(|home| match home {
            Home::Chunks(chunks) => Some(chunks),
            Home::Object(..) => None,
        });
        chunks.flatten().map(|chunk| chunk.span).chain(self.spans.iter().copied())
    }
}

/// With [`Names::Stored`], the value has the structure of the dict that was saved, if the checkpoint records it. If not,
/// it is one map, as with [`Names::Flat`]. All tensors in chunks are row-major.
impl TensorFile for Distributed {
    fn value(&self, names: Names) -> Result<AsValue<'_>> {
        let tensors = self.tensors.iter().zip(&self.homes);
        let in_objects = tensors.filter(|(_, home)| matches!(home, Home::Object(..)));
        let meant = in_objects.map(|(info, _)| info.byte_len()).fold(0, u64::saturating_add);
        let stored = self.objects.iter().map(|held| held.container.byte_len());
        check_sum(self.limits, meant, stored.fold(0, u64::saturating_add))?;
        self.content.value(names, |number| self.deferred_at(number))
    }

    fn deferred(&self, name: &str) -> Result<Deferred<'_>> {
        let number = self.number(name)?;
        self.deferred_at(number).map_err(|error| error.in_field(name))
    }

    fn place(&self, name: &str) -> Result<Option<(&dyn ReadAt, u64)>> {
        let (info, home) = self.at(self.number(name)?)?;
        let (span, position) = match home {
            Home::Chunks(chunks) => match &chunks[..] {
                [chunk] => {
                    let open = self.open_chunk(info, chunk)?;
                    (chunk.span, open.stores().position(&open.place)?)
                }
                _ => return Ok(None),
            },
            Home::Object(at, place) => {
                let held = self.objects.get(*at).ok_or_else(no_object)?;
                let slice = self.files.open(held.span)?;
                (held.span, self.stores(&slice, held).position(place)?)
            }
        };
        let file = self.files.held(span)?;
        Ok(file
            .zip(position)
            .map(|(file, at)| (file as &dyn ReadAt, span.start.saturating_add(at))))
    }

    fn verify_unread(&self) -> Result<()> {
        let mut places: Vec<Vec<&Place>> = vec![Vec::new(); self.objects.len()];
        for home in &self.homes {
            if let Home::Object(at, place) = home
                && let Some(places) = places.get_mut(*at)
            {
                places.push(place);
            }
        }
        for (held, places) in self.objects.iter().zip(places) {
            let slice = self.files.open(held.span)?;
            let verified = self.stores(&slice, held).verify_parts(&places);
            verified.map_err(|error| self.files.locate(held.span, error))?;
        }
        Ok(())
    }

    fn verify(&self) -> Result<Option<String>> {
        let mut lack = 0u64;
        for span in self.parts() {
            let slice = self.files.open(span)?;
            let mut machine = Machine::default();
            let verified = contents(&slice, &mut machine).and_then(|(container, _)| {
                Stores { source: &slice, container: &container, objects: &[] }.verify()?;
                Ok(container.checksums)
            });
            lack += u64::from(!verified.map_err(|error| self.files.locate(span, error))?);
        }
        let what = || format!("{lack} parts have no checksums: changed elements are not detected");
        Ok((lack > 0).then(what))
    }
}

impl OpenChunk {
    fn stores(&self) -> Stores<'_, Slice> {
        Stores { source: &self.slice, container: &self.container, objects: &self.objects }
    }
}

/// A checkpoint whose items are being read.
struct Opening<'a> {
    files: &'a Files,
    /// Reads the pickles of all objects.
    machine: Machine,
    cover: Cover,
    /// The tensors in chunks, in the order in which they were added.
    chunks: Vec<Option<(TensorMeta, Vec<Chunk>)>>,
    objects: Vec<Held>,
    spans: Vec<Span>,
}

impl Opening<'_> {
    /// Adds a tensor or an object, and returns its value.
    fn add(&mut self, kind: Kind) -> Result<Value> {
        match kind {
            Kind::Tensor(meta, mut chunks) => {
                self.cover.check(&meta, &mut chunks)?;
                chunks.iter().try_for_each(|chunk| self.files.check(chunk.span))?;
                let tensor = described(self.chunks.len(), &meta);
                self.chunks.push(Some((meta, chunks)));
                self.machine.heap.add(Object::Tensor(Box::new(tensor)))
            }
            Kind::Object(span) => {
                self.files.check(span)?;
                let slice = self.files.open(span)?;
                let first = self.machine.heap.objects.len();
                let read = contents(&slice, &mut self.machine);
                let (container, root) = read.map_err(|error| self.files.locate(span, error))?;
                let new = self.machine.heap.objects.get(first..).unwrap_or_default();
                if new.iter().any(|new| matches!(new, Object::Tensor(_) | Object::Storage(_))) {
                    self.objects.push(Held { first, span, container });
                }
                self.spans.push(span);
                Ok(root)
            }
            Kind::Lost(why) => self.machine.heap.add(Object::lost_tensor(why)),
        }
    }
}

/// Describes a tensor in chunks as the pickle of a file describes a tensor.
fn described(number: usize, meta: &TensorMeta) -> Rebuilt {
    let count = meta.element_count().unwrap_or(0) as u64;
    let (at, elements) = (At::Chunks(number), pickle::Kind::Typed(meta.dtype.clone()));
    let storage = Arc::new(Storage { at, elements, count, view: (0, count) });
    let shape = meta.shape.iter().map(|&dim| dim as u64).collect();
    Rebuilt { shape, ..Rebuilt::all(&storage) }
}

/// Reads the pickle of a tensor or an object, and finds its storages.
fn contents(slice: &Slice, machine: &mut Machine) -> Result<(Container, Value)> {
    let len = slice.size().map_err(Error::io)?.min(4);
    let start = source::bytes(slice, 0, len)?;
    if *start != *b"PK\x03\x04" {
        let found = crate::shown::shown(&start);
        let what = format!("expected a zip file, as torch.save writes it, found {found}");
        return Err(Error::data(what));
    }
    match Container::open(slice, machine)? {
        (container, Roots { data, constants: None }) => Ok((container, data)),
        _ => Err(Error::data("expected a tensor or an object, found a TorchScript program")),
    }
}

#[cold]
fn no_object() -> Error {
    Error::data("there is no such object")
}
