//! One saved value in an archive that can be read at any position.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::de::{Deserialize, DeserializeOwned};

use super::loaded::Loaded;
use super::positioned::Positioned;
use super::slice::Part;
use super::source;
use crate::error::{Error, Result};
use crate::inspect::Items;
use crate::io::at::ReadAt;
use crate::io::checksum::{self, Hasher, STEP};
use crate::mem::Arena;
use crate::mem::shared_bytes::SharedBytes;
use crate::options::DecodeOptions;
use crate::parts::{Buffer, Parts};
use crate::segment::buffers::{Lending, Seen, wrong_checksum};
use crate::segment::decode;
use crate::segment::find;
use crate::segment::header::Header;
use crate::segment::path;
use crate::tensor::{DynTensor, FromTensor, RawTensor, SharedTensor, Slices, Tensor, TensorInfo};
use crate::wire::tensor::Payload;

/// One saved value of an [`Archive`](crate::Archive): to be loaded as a whole, or in parts named by
/// path.
///
/// A path is made of field names, map keys and element numbers joined by dots, as in
/// `layers.3.weight`; the name of an enum variant counts as one. Keys that are not text are given in
/// diagnostic notation (RFC 8949, section 8): `7`, `true`, `h'00ff'`, `[1, 2]`. Keys that hold dots, as
/// those of safetensors files do, are found by the same string; where several values could be meant,
/// that is an error, and a JSON Pointer (RFC 6901) names each: `/layers/3/weight`.
pub struct Segment<'a, S: ?Sized> {
    pub(super) source: &'a S,
    /// Where the small tensors of views go that are not aligned.
    pub(super) arena: Option<&'a Arena>,
    pub(super) loaded: Arc<Loaded>,
    pub(super) options: DecodeOptions,
}

impl<S: ?Sized> fmt::Debug for Segment<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment")
            .field("name", &self.loaded.header.name)
            .field("offset", &self.loaded.header.offset)
            .finish_non_exhaustive()
    }
}

impl<S: ?Sized> Clone for Segment<'_, S> {
    fn clone(&self) -> Self {
        let Self { source, arena, options, .. } = *self;
        Self { source, arena, loaded: self.loaded.clone(), options }
    }
}

impl<'a, S: ReadAt + ?Sized> Segment<'a, S> {
    /// The name it was saved under.
    pub fn name(&self) -> Option<&str> {
        self.header().name.as_deref()
    }

    /// Where it starts in the archive.
    pub fn offset(&self) -> u64 {
        self.header().offset
    }

    /// How many bytes are missing at its end, where [`open_torn`](crate::archive::open_torn) found it cut. Its
    /// metadata is whole and verified. Its tensors cannot be verified, as checksums stand at the end: those
    /// whose bytes are all there are read with
    /// [`DecodeOptions::with_checksums`]`(false)`; others give an error of
    /// [`Category::Torn`](crate::error::Category::Torn).
    pub fn missing_bytes(&self) -> u64 {
        self.loaded.missing_bytes()
    }

    /// How many bytes it takes, paddings and checksums included; those that are missing count.
    pub fn byte_len(&self) -> u64 {
        self.header().layout.end - self.header().offset
    }

    /// The alignment of its buffers.
    pub fn alignment(&self) -> u64 {
        self.header().alignment
    }

    /// Start and length of each buffer in the archive.
    pub fn buffers(&self) -> &[(u64, u64)] {
        &self.header().layout.buffers
    }

    pub(super) fn header(&self) -> &Header {
        &self.loaded.header
    }

    /// The metadata: an item of CBOR in which each large tensor is a reference to a buffer.
    ///
    /// # Errors
    /// None today.
    pub fn metadata(&self) -> Result<&[u8]> {
        self.loaded.metadata(self.source)
    }

    /// The whole value, with checksums verified.
    ///
    /// # Errors
    /// Where the archive is damaged or the value does not fit the type.
    pub fn load<T: DeserializeOwned>(&self) -> Result<T> {
        self.decode(0..self.metadata()?.len())
    }

    /// The value at `path`; of the tensors, only those inside it are read.
    ///
    /// # Errors
    /// Where there is no such value, it does not fit the type, or what is read of the archive is
    /// damaged.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let range = find::find(self.metadata()?, path, self.options.limits)?;
        self.decode(range).map_err(|error| under(error, path))
    }

    /// The tensor at `path`, as any type that can be read from one: an array of ndarray's, a `Vec`, or
    /// [`DynTensor`].
    ///
    /// # Errors
    /// As [`get`](Self::get), and where the stored dtype is another.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, path: &str) -> Result<T> {
        self.get::<Tensor<T>>(path).map(Tensor::into_inner)
    }

    /// The tensor at `path`, whatever its dtype.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub fn dyn_tensor(&self, path: &str) -> Result<DynTensor> {
        self.tensor(path)
    }

    /// Many tensors, read by so many threads at once; in the order of the paths.
    ///
    /// # Errors
    /// That of the first path that fails, as [`dyn_tensor`](Self::dyn_tensor).
    pub fn dyn_tensors<P: AsRef<str> + Sync>(
        &self,
        paths: &[P],
        threads: NonZeroUsize,
    ) -> Result<Vec<DynTensor>>
    where
        S: Sync,
    {
        let next = AtomicUsize::new(0);
        let done = Mutex::new(Vec::with_capacity(paths.len()));
        std::thread::scope(|scope| {
            for _ in 0..threads.get().min(paths.len()) {
                scope.spawn(|| {
                    while let at = next.fetch_add(1, Ordering::Relaxed)
                        && let Some(path) = paths.get(at)
                    {
                        let tensor = self.dyn_tensor(path.as_ref());
                        let failed = tensor.is_err();
                        done.lock().unwrap_or_else(PoisonError::into_inner).push((at, tensor));
                        if failed {
                            // The others need not go on.
                            next.store(paths.len(), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// Part of the tensor at `path`, as any type that can be read from a tensor:
    /// `slice("weight", s![10..20, ..])`, or without ndarray `slice("weight", (10..20, ..))`. Only the
    /// bytes from the first to the last element of the leading axes asked for are read (of the trailing
    /// ones in column-major order), without checksum, which is one of the whole tensor.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor), where the slice does not fit the shape, and where elements are no
    /// whole bytes or of unknown size.
    pub fn slice<T: for<'de> FromTensor<'de>>(
        &self,
        path: &str,
        slices: impl Into<Slices>,
    ) -> Result<T> {
        let range = find::find(self.metadata()?, path, self.options.limits)?;
        self.slice_at(range, &slices.into()).map_err(|error| error.in_field(path))
    }

    fn slice_at<T: for<'de> FromTensor<'de>>(
        &self,
        range: Range<usize>,
        slices: &Slices,
    ) -> Result<T> {
        let (base, item) = self.item(range)?;
        let (found, inline) = path::tensor_at(item, base, self.header(), self.options.limits)?;
        let part = Part::new(&found.meta, slices)?;
        let (start, len) = part.bytes;
        let bytes = match found.payload {
            Payload::Buffer { number, .. } => {
                let (at, _) = self.header().buffer(number).unwrap_or_default();
                source::bytes(self.source, at + start as u64, len as u64)?
            }
            Payload::Block { big_endian: false, .. } => {
                let bytes = inline.get(start..).and_then(|rest| rest.get(..len));
                Cow::Borrowed(bytes.unwrap_or_default())
            }
            _ => return Err(Error::data("a tensor in a form that cannot be read in part")),
        };
        let (meta, bytes) = part.cut(bytes);
        T::from_tensor(RawTensor::of_bytes(meta, &bytes))
    }

    /// All tensors, in the order of the value's fields, each with the path that it is found by.
    /// Tensors inside map keys have no path, and are left out.
    ///
    /// # Errors
    /// Where the metadata is no such value as can be saved, and where no path leads to a tensor as a key
    /// stands twice in a map.
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        path::list(self.metadata()?, self.header(), self.options.limits)
    }

    /// The tensor at `path`, without its elements.
    ///
    /// # Errors
    /// Where there is no tensor.
    pub fn info(&self, path: &str) -> Result<TensorInfo> {
        let range = find::find(self.metadata()?, path, self.options.limits)?;
        let (base, item) = self.item(range)?;
        let found = path::tensor_at(item, base, self.header(), self.options.limits);
        let (item, _) = found.map_err(|error| error.in_field(path))?;
        Ok(TensorInfo::of(path.to_owned(), &item))
    }

    /// The field names or map keys of the value at `path`, or the positions of its elements; `""` is
    /// the whole value. Keys that are not text are in diagnostic notation, as in paths.
    ///
    /// # Errors
    /// Where there is no such value, or one without keys.
    pub fn keys(&self, path: &str) -> Result<Vec<String>> {
        path::keys(self.metadata()?, path, self.options.limits)
    }

    /// The value as parts, without decoding it: its metadata, and its buffers read into memory, with
    /// checksums verified.
    ///
    /// # Errors
    /// Where the archive is damaged, and where the memory cannot be had.
    pub fn to_parts(&self) -> Result<Parts> {
        let header = self.header();
        let hashes = self.loaded.hashes(self.source)?;
        let checked = self.options.checksums && header.checked;
        let alignment = usize::try_from(header.alignment).unwrap_or(1);
        let mut buffers = Vec::with_capacity(header.count());
        for (number, &(start, len)) in header.layout.buffers.iter().enumerate() {
            let mut buffer = Buffer::zeroed(source::in_memory(len, start)?, alignment)?;
            let mut content = Hasher::new();
            let mut at = start;
            for step in buffer.chunks_mut(STEP) {
                source::read_exact(self.source, step, at)?;
                if checked {
                    content.update(step);
                }
                at += step.len() as u64;
            }
            check(number, hashes, checked, || content.finish(), start)?;
            buffers.push(buffer);
        }
        Parts::of_segment(header, self.metadata()?, hashes, buffers, self.options)
    }

    /// As [`to_parts`](Self::to_parts), with buffers that are the archive's own memory (a
    /// [`Map`](crate::Map), or bytes): nothing of them is copied.
    ///
    /// # Errors
    /// As [`to_parts`](Self::to_parts), and where the archive is not in memory.
    pub fn view_parts(&self) -> Result<Parts<&'a [u8]>> {
        let header = self.header();
        let contents = self.contents()?;
        let hashes = self.loaded.hashes(self.source)?;
        let checked = self.options.checksums && header.checked;
        let mut buffers = Vec::with_capacity(header.count());
        for (number, &(start, len)) in header.layout.buffers.iter().enumerate() {
            let buffer = source::slice(contents, start, source::in_memory(len, start)?)?;
            check(number, hashes, checked, || checksum::of(buffer, 0), start)?;
            buffers.push(buffer);
        }
        Parts::of_segment(header, self.metadata()?, hashes, buffers, self.options)
    }

    fn contents(&self) -> Result<&'a [u8]> {
        self.source.contents().ok_or_else(|| {
            Error::data("views need an archive in memory: map it, or load the value")
        })
    }

    /// A walk over the items of the [metadata](Self::metadata), for which no type is needed.
    ///
    /// # Errors
    /// None today.
    pub fn inspect(&self) -> Result<Items<'_>> {
        self.items(0..self.metadata()?.len())
    }

    /// As [`inspect`](Self::inspect), of the value at `path`. Ranges are those of the whole metadata.
    ///
    /// # Errors
    /// Where there is no such value.
    pub fn inspect_at(&self, path: &str) -> Result<Items<'_>> {
        self.items(find::find(self.metadata()?, path, self.options.limits)?)
    }

    fn items(&self, range: Range<usize>) -> Result<Items<'_>> {
        let base = self.header().metadata_offset();
        Ok(Items::of_segment(self.metadata()?, range, base, self.buffers(), self.options.limits))
    }

    /// The value of the item that stands at this range of the [metadata](Self::metadata), as
    /// [`inspect`](Self::inspect) tells it.
    ///
    /// # Errors
    /// As [`get`](Self::get), and where the range is not that of an item.
    pub fn decode<T: DeserializeOwned>(&self, range: Range<usize>) -> Result<T> {
        let mut buffers = Positioned::new(self.source, &self.loaded, self.options);
        let (base, item) = self.item(range)?;
        decode(PhantomData, item, base, &mut buffers, self.options)
    }

    /// Part of the metadata, and where it stands in the archive.
    fn item(&self, range: Range<usize>) -> Result<(u64, &[u8])> {
        let base = self.header().metadata_offset() + range.start as u64;
        Ok((base, self.metadata()?.get(range).unwrap_or_default()))
    }

    /// Views into memory: a value whose arrays, strings and byte strings borrow from the archive,
    /// which must lie in memory (a [`Map`](crate::Map), or bytes).
    ///
    /// # Errors
    /// Where the value does not fit the type, or is not aligned as its elements must be.
    pub fn view<T: Deserialize<'a>>(&self) -> Result<T> {
        self.lend(0..self.header().metadata.len(), None)
    }

    /// As [`view`](Self::view), of the value at `path`.
    ///
    /// # Errors
    /// As [`view`](Self::view), and where there is no such value.
    pub fn view_at<T: Deserialize<'a>>(&self, path: &str) -> Result<T> {
        let range = find::find(self.metadata()?, path, self.options.limits)?;
        self.lend(range, None).map_err(|error| under(error, path))
    }

    /// The value, with a [`SharedTensor`](crate::tensor::SharedTensor) for each tensor in a buffer, that keeps
    /// the archive's memory alive: those are not copied. The archive must lie in memory: a
    /// [`Map`](crate::Map), [`SharedBytes`], or what else implements [`ReadAt::share`]; other memory is
    /// copied.
    ///
    /// As with views, the checksums of tensors are not verified.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    ///
    /// use tenarc::tensor::SharedTensor;
    /// use tenarc::{Map, Tensor};
    ///
    /// # let dir = std::env::temp_dir().join(format!("tenarc-doc-shared-{}", std::process::id()));
    /// # std::fs::create_dir_all(&dir)?;
    /// # let path = dir.join("model.tenarc");
    /// tenarc::save(&path, &BTreeMap::from([("weight", Tensor(vec![0.5f32; 4096]))]))?;
    ///
    /// // SAFETY: nobody changes the file while it is mapped.
    /// let map = unsafe { Map::open(&path)? };
    /// let model: BTreeMap<String, Tensor<SharedTensor>> = map.only()?.load_shared()?;
    /// drop(map);
    /// // The tensor keeps the file mapped.
    /// assert_eq!(model["weight"].as_slice::<f32>()?[4095], 0.5);
    /// # drop(model);
    /// # std::fs::remove_dir_all(&dir)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Where the value does not fit the type, and where the archive does not lie in memory.
    pub fn load_shared<T: DeserializeOwned>(&self) -> Result<T> {
        self.lend(0..self.header().metadata.len(), Some(&|number| self.share_buffer(number)))
    }

    /// The tensor at `path`, without a copy: see [`load_shared`](Self::load_shared).
    ///
    /// # Errors
    /// As [`load_shared`](Self::load_shared), and where there is no tensor at `path`.
    pub fn share(&self, path: &str) -> Result<SharedTensor> {
        let range = find::find(self.metadata()?, path, self.options.limits)?;
        let tensor = self.lend(range, Some(&|number| self.share_buffer(number)));
        tensor.map(Tensor::into_inner).map_err(|error| under(error, path))
    }

    fn share_buffer(&self, number: u64) -> Option<SharedBytes> {
        let (start, len) = self.loaded.buffer(number).ok()?;
        self.source.share(source::range(start, usize::try_from(len).ok()?)?)
    }

    /// The value at `range`, read from the archive's own memory.
    fn lend<T: Deserialize<'a>>(
        &self,
        range: Range<usize>,
        share: Option<&dyn Fn(u64) -> Option<SharedBytes>>,
    ) -> Result<T> {
        let header = self.header();
        let source: &'a S = self.source;
        let contents = self.contents()?;
        let base = header.metadata_offset() + range.start as u64;
        let metadata = source::held(source, header.metadata_offset(), header.metadata.len())?;
        let metadata = metadata.get(range).unwrap_or_default();
        let content = |number| {
            let (start, len) = self.loaded.buffer(number)?;
            source::slice(contents, start, source::in_memory(len, start)?)
        };
        let (arena, seen) = (self.arena, Seen::default());
        let mut buffers = Lending { header, content: &content, share, arena, seen };
        decode(PhantomData, metadata, base, &mut buffers, self.options)
    }
}

/// That a buffer is what its checksum says.
fn check(
    number: usize,
    hashes: &[u64],
    checked: bool,
    computed: impl FnOnce() -> u64,
    at: u64,
) -> Result<()> {
    let Some(&stored) = hashes.get(number).filter(|_| checked) else { return Ok(()) };
    let computed = computed();
    if computed == stored {
        return Ok(());
    }
    Err(wrong_checksum(number as u64, computed, stored, at))
}

/// An error inside the value at `path`.
#[cold]
fn under(error: Error, path: &str) -> Error {
    if path.is_empty() { error } else { error.in_field(path) }
}
