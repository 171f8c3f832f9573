//! One saved value in an archive that can be read at any position.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::ops::{Deref, Range};
use std::sync::Arc;

use serde::de::{Deserialize, DeserializeOwned};

use super::digest::Digest;
use super::table::Table;
use super::verify;
use crate::buffer::file::FileBuffers;
use crate::buffer::loaded::Loaded;
use crate::buffer::ranges::Ranges;
use crate::buffer::slice::PayloadPart;
use crate::buffer::source;
use crate::buffer::unpack::{CompressedBuffer, Unpack};
use crate::error::{Error, Result};
use crate::inspect::Items;
use crate::io::at::{ReadAt, announce};
use crate::io::buffers::Buffers;
use crate::io::checksum::STEP;
use crate::io::parallel::in_parallel;
use crate::mem::Arena;
use crate::mem::shared_bytes::SharedBytes;
use crate::options::DecodeOptions;
use crate::parts::{Buffer, Parts};
use crate::path::find;
use crate::path::list;
use crate::path::locate::{Location, in_columns};
use crate::path::schema::ColumnTarget;
use crate::segment::buffers::{MemoryBuffers, SeenBuffers};
use crate::segment::decode;
use crate::segment::format::{BufferPlace, Check};
use crate::segment::header::Header;
use crate::tensor::{DynTensor, FromTensor, RawTensor, SharedTensor, Slices, Tensor, TensorInfo};
use crate::wire::tensor::ItemPayload;

/// One saved value of an [`Archive`](crate::Archive). It can be loaded as a whole, or in parts that a path names.
///
/// A path consists of field names, map keys, enum variants and positions, joined by dots: `layers.3.weight`. Keys
/// that are not text are written in diagnostic notation (RFC 8949, section 8): `7`, `true`, `h'00ff'`, `[1, 2]`.
///
/// Keys may contain dots, as in many safetensors files: such a key is written in the path as it is. If a path could
/// mean several values, using it is an error. A JSON Pointer (RFC 6901) always means one: `/layers/3/weight`.
///
/// ```
/// use std::collections::BTreeMap;
/// use tenarc::{Archive, OArchive, Tensor};
///
/// let mut out = OArchive::new(Vec::new())?;
/// out.save_as("note", "first run")?.save_as("model", &BTreeMap::from([("bias", Tensor(vec![0.5f32; 600]))]))?;
/// let archive = Archive::new(out.finish()?)?;
///
/// let model = archive.segment(1)?;
/// assert_eq!((model.name(), model.tensors()?.len()), (Some("model"), 1));
/// let bias: Vec<f32> = model.tensor("bias")?;
/// assert_eq!(bias, [0.5; 600]);
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Segment<'a, S: ?Sized> {
    pub(super) source: &'a S,
    /// Memory for small tensors that views need and that are not aligned in the archive.
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
    /// The name that the value was saved under, if any.
    pub fn name(&self) -> Option<&str> {
        self.header().name.as_deref()
    }

    /// The offset of the segment in the archive.
    pub fn offset(&self) -> u64 {
        self.header().offset
    }

    /// The number of bytes that are missing at the end of the segment, because the input ends inside it. This is
    /// not 0 only for the last segment of an archive opened by [`open_torn`](crate::archive::open_torn).
    ///
    /// The metadata of such a segment is complete and verified. Its tensors cannot be verified, because the
    /// checksums come last and are missing. The complete tensors can be read, viewed and shared with
    /// [`DecodeOptions::with_checksums`]`(false)`; reading any other tensor, or part of it, is an error of
    /// [`Category::Torn`](crate::error::Category::Torn).
    pub fn missing_bytes(&self) -> u64 {
        self.loaded.missing_bytes()
    }

    /// The length of the segment in bytes, with padding, checksums and [missing bytes](Self::missing_bytes).
    pub fn byte_len(&self) -> u64 {
        self.header().byte_len()
    }

    /// The alignment of the buffers in bytes.
    pub fn alignment(&self) -> u64 {
        self.header().alignment
    }

    /// Whether the buffers have checksums. Headers always have one.
    pub fn has_checksums(&self) -> bool {
        self.header().check != Check::None
    }

    /// Whether the header holds statistics of groups of rows, by which [filters](crate::archive::Table::filter) pass over groups.
    pub fn has_statistics(&self) -> bool {
        self.header().ext.statistics().is_some()
    }

    /// The length in bytes of the chunks that buffers are divided into. Each chunk has a checksum of its own, and is
    /// compressed by itself.
    pub fn chunk_len(&self) -> u64 {
        self.header().chunk_len.get()
    }

    /// The offset in the archive and the length of each buffer. For a [compressed](Self::compressed) buffer, the length
    /// is that after decompression. Fewer bytes are stored.
    pub fn buffers(&self) -> &[(u64, u64)] {
        &self.header().layout.buffers
    }

    /// How a buffer is compressed, counted from zero. `None` if it is stored as it is, or there is no such buffer.
    pub fn compressed(&self, number: usize) -> Option<CompressedBuffer<'_>> {
        let BufferPlace::Packed(place) = self.header().layout.place(number)? else { return None };
        place.how.coding.digest().is_none().then_some(CompressedBuffer(place))
    }

    /// The name of the hash function and the digest of a buffer whose bytes are not in the archive (`SPEC.md`, section
    /// 5.12), counted from zero. `None` if they are, or there is no such buffer. tenarc lists such buffers, but cannot read
    /// them.
    pub fn elsewhere(&self, number: usize) -> Option<(&str, &[u8])> {
        let coding = &self.header().layout.place(number)?.packed()?.coding;
        Some((coding.name(), coding.digest()?))
    }

    /// The notes in the header: [`SaveOptions::with_note`](crate::archive::SaveOptions::with_note).
    pub fn notes(&self) -> BTreeMap<String, String> {
        self.header().ext.notes()
    }

    pub(super) fn header(&self) -> &Header {
        &self.loaded.header
    }

    /// The metadata: one CBOR item, in which each large tensor is a reference to a buffer.
    ///
    /// # Errors
    /// There are none at present.
    pub fn metadata(&self) -> Result<&[u8]> {
        self.loaded.metadata(self.source)
    }

    /// Loads the whole value, and verifies its checksums.
    ///
    /// # Errors
    /// If the segment cannot be read or is damaged, or the value does not fit the type.
    pub fn load<T: DeserializeOwned>(&self) -> Result<T> {
        self.decode(0..self.metadata()?.len())
    }

    /// Loads the value at `path`. Other tensors are not read.
    ///
    /// ```
    /// # let model = std::collections::BTreeMap::from([("encoder", (tenarc::Tensor(vec![0.5f32; 600]), "relu"))]);
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("model", &model)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    /// let activation: String = archive.named("model")?.get("encoder.1")?; // reads no tensor
    /// assert_eq!(activation, "relu");
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such value, it cannot be read or is damaged, or it does not fit the type.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        match self.locate(path)? {
            Location::Item(range) => self.decode(range).map_err(|error| error.under(path)),
            Location::InColumns(range, inside) => self.decode_in(range, &inside),
        }
    }

    /// Loads the tensor at `path` as an array of ndarray, a `Vec`, a [`DynTensor`], or any other type that
    /// implements [`FromTensor`].
    ///
    /// ```
    /// # let model = std::collections::BTreeMap::from([("bias", tenarc::Tensor(vec![0.5f32; 600]))]);
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("model", &model)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    ///
    /// let bias: Vec<f32> = archive.named("model")?.tensor("bias")?;
    /// assert_eq!(bias, [0.5; 600]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no tensor at `path`, it cannot be read or is damaged, or the type cannot hold its dtype or shape.
    pub fn tensor<T: for<'de> FromTensor<'de>>(&self, path: &str) -> Result<T> {
        self.get::<Tensor<T>>(path).map(Tensor::into_inner)
    }

    /// Loads the tensor at `path`, whatever its dtype.
    ///
    /// ```
    /// # let model = std::collections::BTreeMap::from([("bias", tenarc::Tensor(vec![0.5f32; 600]))]);
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("model", &model)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    ///
    /// let bias = archive.named("model")?.dyn_tensor("bias")?;
    /// assert_eq!((bias.dtype().name(), bias.shape()), ("f32", &[600][..]));
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no tensor at `path`, or it cannot be read or is damaged.
    pub fn dyn_tensor(&self, path: &str) -> Result<DynTensor> {
        self.tensor(path)
    }

    /// Loads many tensors with `threads` threads. Returns them in the order of the paths.
    ///
    /// # Errors
    /// If there is no tensor at a path, or it cannot be read or is damaged. If there are several errors, the one of the
    /// first such path.
    pub fn dyn_tensors<P: AsRef<str> + Sync>(
        &self,
        paths: &[P],
        threads: NonZeroUsize,
    ) -> Result<Vec<DynTensor>> {
        let mut tensors: Vec<Option<DynTensor>> = vec![None; paths.len()];
        let threads = threads.get().min(paths.len());
        // Threads that decompress would start as many threads each.
        let one = NonZeroUsize::MIN;
        let options = if threads > 1 { self.options.with_threads(one) } else { self.options };
        let segment = Self { options, ..self.clone() };
        announce(self.source, || {
            paths.iter().flat_map(|path| self.places_at(path.as_ref())).collect()
        });
        in_parallel(paths.iter().zip(&mut tensors), threads, |(path, tensor)| {
            *tensor = Some(segment.dyn_tensor(path.as_ref())?);
            Ok(())
        })?;
        Ok(tensors.into_iter().flatten().collect())
    }

    /// Loads part of the tensor at `path`: `slice("weight", s![10..20, ..])`, or without ndarray
    /// `slice("weight", (10..20, ..))`.
    ///
    /// For `s![10..20, 3]` of a row-major matrix, rows 10 to 19 are read as one block, and column 3 is taken from them.
    /// For a column-major matrix, all of column 3 is read.
    ///
    /// Of a column in several groups, only the groups with rows of the slice are read.
    ///
    /// The checksums of all chunks with bytes of the slice are verified. For this, the rest of these chunks is read
    /// too. This is less than two chunks for each run of bytes. [`DecodeOptions::with_checksums`]`(false)` reads only
    /// the slice.
    ///
    /// # Errors
    /// - There is no tensor at `path`, it cannot be read, or the type cannot hold its dtype or the shape of the slice.
    /// - The slice does not fit the shape.
    /// - The elements are not whole bytes, or their size is unknown.
    pub fn slice<T: for<'de> FromTensor<'de>>(
        &self,
        path: &str,
        slices: impl Into<Slices>,
    ) -> Result<T> {
        let slices = slices.into();
        match self.locate(path)? {
            Location::Item(range) => {
                self.slice_at(range, &slices).map_err(|error| error.in_field(path))
            }
            Location::InColumns(range, inside) => self.slice_in(range, &inside, &slices),
        }
    }

    /// Loads parts of several tensors, in this order: [`slice`](Self::slice) for each, but a source that
    /// [fetches ahead](crate::io::ReadAhead) fetches all of them side by side.
    ///
    /// # Errors
    /// The errors of [`slice`](Self::slice), for the first part that has one.
    pub fn dyn_slices<P: AsRef<str>>(&self, parts: &[(P, Slices)]) -> Result<Vec<DynTensor>> {
        announce(self.source, || {
            let places = |(path, part): &(P, Slices)| self.places_of_slice(path.as_ref(), part);
            parts.iter().flat_map(places).collect()
        });
        parts.iter().map(|(path, part)| self.slice(path.as_ref(), part.clone())).collect()
    }

    fn slice_at<T: for<'de> FromTensor<'de>>(
        &self,
        range: Range<usize>,
        slices: &Slices,
    ) -> Result<T> {
        let (base, item) = self.item(range)?;
        let (found, inline) = list::tensor_at(item, base, self.header(), self.options.limits)?;
        let part = PayloadPart::new(&found.meta, slices)?;
        let bytes = match found.payload {
            ItemPayload::Buffer { number, .. } => return self.part_of_buffer(part, number),
            ItemPayload::Block { big_endian: false, .. } => part.read(inline),
            _ => {
                return Err(Error::unsupported(
                    "the tensor is stored in a form that cannot be read in part; load it as a whole",
                ));
            }
        };
        let (meta, bytes) = part.cut(bytes);
        T::from_tensor(RawTensor::of_bytes(meta, &bytes))
    }

    /// Reads part of a tensor that is a whole buffer.
    pub(super) fn part_of_buffer<T: for<'de> FromTensor<'de>>(
        &self,
        part: PayloadPart,
        number: u64,
    ) -> Result<T> {
        self.announce_part(&part, number);
        let mut ranges = Ranges::new(self.source, &self.loaded, number, self.options)?;
        if let (None, Some(meta)) = (self.source.contents(), part.unchanged()) {
            // Reads directly into the memory of the elements.
            let mut at = 0;
            let tensor = DynTensor::read_with(meta.clone(), usize::MAX, |out| {
                ranges.read_runs(&part, at, out)?;
                at += out.len();
                Ok(())
            });
            return tensor?.into_tensor();
        }
        let bytes = ranges.runs(&part)?;
        let (meta, bytes) = part.cut(bytes);
        T::from_tensor(RawTensor::of_bytes(meta, &bytes))
    }

    /// The digest of the value. It does not depend on the name of the segment or its place in the archive.
    ///
    /// The checksums are read, but not the tensors: damage in a tensor is found by [`verify`](super::Archive::verify).
    ///
    /// # Errors
    /// If the value has tensors in buffers and was saved without checksums, or the segment is torn or damaged.
    pub fn digest(&self) -> Result<Digest> {
        self.loaded.digest(self.source)?.ok_or_else(|| no_digest(self.offset()))
    }

    /// Verifies the checksums of the tensors, numbers and byte strings in the value at `path`, without keeping them.
    /// The path `""` is the whole value. So a [view](Self::view_at) can be verified before it is used. For a column, only
    /// the bytes of this column are verified. For a row of columns, its group is verified, which has at most 65,536 rows.
    ///
    /// ```
    /// use tenarc::{Archive, OArchive, Tensor};
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save(&[Tensor(vec![0.5f32; 1000]), Tensor(vec![1.5; 1000])])?;
    /// let mut bytes = out.finish()?;
    /// let at = Archive::new(&bytes[..])?.only()?.buffers()[1].0;
    /// bytes[usize::try_from(at).unwrap()] ^= 1;
    ///
    /// let archive = Archive::new(&bytes[..])?;
    /// archive.only()?.verify_at("0")?;
    /// assert!(archive.only()?.verify_at("1").is_err());
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such value, it was saved without checksums, it cannot be read, or it is damaged. The error of a
    /// damaged tensor names its path, the chunk, and the bytes of the chunk.
    pub fn verify_at(&self, path: &str) -> Result<()> {
        let header = self.header();
        if header.count() > 0 && header.check == Check::None {
            let what = "the segment was saved without checksums";
            return Err(Error::unsupported(what).at(header.offset));
        }
        header.check.known().map_err(|error| error.at(header.offset))?;
        let options = self.options.with_checksums(true);
        self.numbers_at(path)?.into_iter().try_for_each(|number| {
            verify::buffer(self.source, &self.loaded, number, options, &mut |_| ())
        })
    }

    /// The numbers of the buffers that the value at `path` refers to.
    pub(super) fn numbers_at(&self, path: &str) -> Result<BTreeSet<u64>> {
        match self.locate(path)? {
            Location::Item(range) => self.numbers_of(range),
            Location::InColumns(range, inside) => {
                if let (ColumnTarget::InRow { row, .. }, false) = (&inside.target, inside.is_packed)
                {
                    let mut table = Table::default();
                    table.add(self.clone(), range.clone())?;
                    table.check_row(*row).map_err(|error| error.in_field(path))?;
                }
                self.numbers_inside(range, &inside)
            }
        }
    }

    /// The numbers of the buffers that the items in this range of the metadata refer to.
    pub(super) fn numbers_of(&self, range: Range<usize>) -> Result<BTreeSet<u64>> {
        let item = self.metadata()?.get(range).unwrap_or_default();
        let mut numbers = BTreeSet::new();
        list::references(item, self.header(), self.options.limits, &mut |_, item| {
            if let ItemPayload::Buffer { number, .. } = item.payload {
                numbers.insert(number);
            }
        })?;
        Ok(numbers)
    }

    /// Lists all tensors with their paths, in the order of the value's fields. Tensors inside map keys have no
    /// path and are left out.
    ///
    /// ```
    /// # let model = std::collections::BTreeMap::from([("bias", tenarc::Tensor(vec![0.5f32; 600]))]);
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("model", &model)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    ///
    /// for tensor in archive.named("model")?.tensors()? {
    ///     println!("{}: {} {:?}", tensor.path(), tensor.dtype(), tensor.shape());
    /// }
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// - The metadata is invalid.
    /// - A map on the way to a tensor has two equal keys, so that no path leads to the tensor.
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        list::list(self.metadata()?, self.header(), self.options.limits)
    }

    /// Dtype, shape and place of the tensor at `path`. Does not read its elements.
    ///
    /// # Errors
    /// If there is no tensor at `path`.
    pub fn info(&self, path: &str) -> Result<TensorInfo> {
        match self.locate(path)? {
            Location::Item(range) => {
                let (base, item) = self.item(range)?;
                let found = list::tensor_at(item, base, self.header(), self.options.limits);
                let info = found.map(|(item, _)| TensorInfo::of(path.to_owned(), &item));
                info.map_err(|error| error.under(path))
            }
            Location::InColumns(range, inside) => self.info_in(range, &inside),
        }
    }

    /// The rows of the sequence at `path` as a table. The path `""` is the whole value.
    ///
    /// # Errors
    /// If there is no sequence at `path`, or the archive is damaged.
    pub fn table(&self, path: &str) -> Result<Table<'a, S>> {
        let mut table = Table::default();
        let range = self.find_item(path)?;
        table.add(self.clone(), range).map_err(|error| error.under(path))?;
        Ok(table)
    }

    /// The field names or map keys of the value at `path`, or the positions of its elements. The path `""` is the
    /// whole value. Keys that are not text are in diagnostic notation, as in paths.
    ///
    /// ```
    /// # let model = std::collections::BTreeMap::from([("bias", tenarc::Tensor(vec![0.5f32; 600]))]);
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("model", &model)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    ///
    /// assert_eq!(archive.named("model")?.keys("")?, ["bias"]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no such value, or it is not a struct, map, array or sequence.
    pub fn keys(&self, path: &str) -> Result<Vec<String>> {
        list::keys(self.metadata()?, self.header(), path, self.options.limits)
    }

    /// Loads the value as parts, without decoding it. The buffers are read into memory and their checksums are
    /// verified. Compressed buffers are decompressed: parts have none.
    ///
    /// ```
    /// # let model = std::collections::BTreeMap::from([("bias", tenarc::Tensor(vec![0.5f32; 600]))]);
    /// # let mut out = tenarc::OArchive::new(Vec::new())?;
    /// # out.save_as("model", &model)?;
    /// # let archive = tenarc::Archive::new(out.finish()?)?;
    ///
    /// let parts = archive.named("model")?.to_parts()?;
    /// assert_eq!(parts.buffers()[0].len(), 2400);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the segment cannot be read or is damaged, or there is not enough memory.
    pub fn to_parts(&self) -> Result<Parts> {
        let header = self.header();
        self.announce(|| Ok((0..header.count() as u64).collect()));
        let hashes = self.loaded.hashes(self.source)?;
        let alignment = usize::try_from(header.alignment).unwrap_or(1);
        let mut buffers = Vec::with_capacity(header.count());
        let mut unpacked = 0u64;
        for (number, place) in header.layout.places().enumerate() {
            let (start, len) = match place {
                BufferPlace::Plain { start, len } => (start, len),
                BufferPlace::Packed(place) => {
                    let number = number as u64;
                    let (source, options) = (self.source, self.options);
                    let mut unpack = Unpack::new(source, &self.loaded, number, place, options)?;
                    unpacked = unpacked.saturating_add(place.len);
                    unpack.check_part(unpacked)?;
                    let len = source::in_memory(place.len, place.start)?;
                    let mut buffer = Buffer::zeroed(len, alignment)?;
                    unpack.read(0, &mut buffer)?;
                    buffers.push(buffer);
                    continue;
                }
            };
            let mut buffer = Buffer::zeroed(source::in_memory(len, start)?, alignment)?;
            let mut checker = self.loaded.checker(self.source, number as u64, self.options)?;
            let mut at = start;
            for step in buffer.chunks_mut(STEP) {
                source::read_exact(self.source, step, at)?;
                if let Some(checker) = &mut checker {
                    checker.update(step)?;
                }
                at += step.len() as u64;
            }
            buffers.push(buffer);
        }
        let hashes = header.unpacked_hashes(hashes, |number| buffers.get(number).map(Deref::deref));
        Parts::of_segment(header, self.metadata()?, &hashes, buffers, self.options)
    }

    /// Like [`to_parts`](Self::to_parts), but the buffers borrow from the archive's memory and are not copied. The
    /// archive must be in memory: a [`Map`](crate::Map), or bytes.
    ///
    /// # Errors
    /// If the archive is not in memory, a buffer is compressed, or the segment is damaged.
    pub fn view_parts(&self) -> Result<Parts<&'a [u8]>> {
        let header = self.header();
        let contents = self.contents()?;
        let hashes = self.loaded.hashes(self.source)?;
        let mut buffers = Vec::with_capacity(header.count());
        for (number, place) in header.layout.places().enumerate() {
            let plain = place.plain();
            let (start, len) =
                plain.map_err(|error| self.loaded.in_tensor(self.source, number as u64, error))?;
            let buffer = source::slice(contents, start, source::in_memory(len, start)?)?;
            if let Some(mut checker) =
                self.loaded.checker(self.source, number as u64, self.options)?
            {
                checker.update(buffer)?;
            }
            buffers.push(buffer);
        }
        Parts::of_segment(header, self.metadata()?, hashes, buffers, self.options)
    }

    fn contents(&self) -> Result<&'a [u8]> {
        self.source.contents().ok_or_else(|| {
            Error::unsupported(
                "views need an archive in memory: use tenarc::Map, or load the value",
            )
        })
    }

    /// Iterates over the items of the [metadata](Self::metadata), without a Rust type for the value.
    ///
    /// # Errors
    /// There are none at present.
    pub fn inspect(&self) -> Result<Items<'_>> {
        self.items(0..self.metadata()?.len())
    }

    /// Like [`inspect`](Self::inspect), for the value at `path`. The ranges of the items still count from the start
    /// of the whole metadata.
    ///
    /// # Errors
    /// If there is no such value.
    pub fn inspect_at(&self, path: &str) -> Result<Items<'_>> {
        self.items(self.find_item(path)?)
    }

    fn find_item(&self, path: &str) -> Result<Range<usize>> {
        find::find_item(self.metadata()?, Some(self.buffers()), path, self.options.limits)
    }

    fn items(&self, range: Range<usize>) -> Result<Items<'_>> {
        let base = self.header().metadata_offset();
        Ok(Items::of_segment(self.metadata()?, range, base, self.buffers(), self.options.limits))
    }

    /// Decodes the item at this range of the [metadata](Self::metadata). [`inspect`](Self::inspect) gives the
    /// ranges.
    ///
    /// # Errors
    /// If the range is not that of an item, or the value cannot be read, is damaged, or does not fit the type.
    pub fn decode<T: DeserializeOwned>(&self, range: Range<usize>) -> Result<T> {
        self.announce(|| self.numbers_of(range.clone()));
        let mut buffers = FileBuffers::new(self.source, &self.loaded, self.options);
        let (base, item) = self.item(range)?;
        decode(PhantomData, item, base, &mut buffers, self.options)
    }

    /// The offset in the archive of this range of the metadata, and its bytes.
    pub(super) fn item(&self, range: Range<usize>) -> Result<(u64, &[u8])> {
        let base = self.header().metadata_offset().saturating_add(range.start as u64);
        Ok((base, self.metadata()?.get(range).unwrap_or_default()))
    }

    /// Decodes the value with arrays, strings and byte strings that borrow from the archive. The archive must be in
    /// memory: a [`Map`](crate::Map), or bytes. Checksums of tensors are not verified.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use ndarray::{Array1, ArrayView1};
    /// use tenarc::{Archive, OArchive, Tensor};
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save(&BTreeMap::from([("bias", Tensor(Array1::<u8>::zeros(5000)))]))?;
    /// let archive = Archive::new(out.finish()?)?;
    /// let view: BTreeMap<&str, Tensor<ArrayView1<u8>>> = archive.only()?.view()?; // copies nothing
    /// assert_eq!(view["bias"].len(), 5000);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the archive is not in memory, a tensor is compressed or not aligned as its elements require, or the value
    /// does not fit the type.
    pub fn view<T: Deserialize<'a>>(&self) -> Result<T> {
        self.lend(0..self.header().metadata.len(), None)
    }

    /// Like [`view`](Self::view), for the value at `path`.
    ///
    /// # Errors
    /// If the archive is not in memory, there is no such value, a tensor is compressed or not aligned as its elements
    /// require, or the value does not fit the type.
    pub fn view_at<T: Deserialize<'a>>(&self, path: &str) -> Result<T> {
        self.lend_at(path, None)
    }

    /// Loads the value without copying its large tensors. Each [`SharedTensor`](crate::tensor::SharedTensor) in it
    /// uses the archive's memory and keeps that memory alive.
    ///
    /// The archive must be in memory: a [`Map`](crate::Map), [`SharedBytes`], or another source that implements
    /// [`ReadAt::share`]. If the source is in memory but cannot share it, such as `&[u8]`, tensors are copied.
    /// Checksums of tensors are not verified.
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
    /// If the archive is not in memory, a tensor is compressed, or the value does not fit the type.
    pub fn load_shared<T: DeserializeOwned>(&self) -> Result<T> {
        self.lend(0..self.header().metadata.len(), Some(&|number| self.shared(number)))
    }

    /// The tensor at `path`, without copying it; see [`load_shared`](Self::load_shared).
    ///
    /// # Errors
    /// If the archive is not in memory, or there is no tensor at `path`, or it is compressed.
    pub fn share(&self, path: &str) -> Result<SharedTensor> {
        let tensor = self.lend_at(path, Some(&|number| self.shared(number)));
        tensor.map(Tensor::into_inner)
    }

    fn lend_at<T: Deserialize<'a>>(
        &self,
        path: &str,
        share: Option<&dyn Fn(u64) -> Option<SharedBytes>>,
    ) -> Result<T> {
        let value = match self.locate(path)? {
            Location::Item(range) => self.lend(range, share),
            Location::InColumns(range, inside) => {
                let value = self.lending(range, share, |metadata, base, buffers| {
                    Ok(in_columns(metadata, base, buffers, self.options, &inside))
                });
                match value {
                    Ok(value) => return value,
                    Err(error) => Err(error),
                }
            }
        };
        value.map_err(|error| error.under(path))
    }

    /// The bytes of a buffer, counted from zero, without copying them. They are in the archive's memory and keep it alive.
    /// `None` if the buffer can only be [read](Self::read_buffer): it is compressed, or the source cannot
    /// [share](ReadAt::share) its memory.
    ///
    /// The checksums are verified first, as when a buffer is read. [`DecodeOptions::with_checksums`]`(false)` shares the bytes
    /// without reading them.
    ///
    /// ```
    /// use tenarc::io::SharedBytes;
    /// use tenarc::{Archive, OArchive, Tensor};
    ///
    /// let mut out = OArchive::new(Vec::new())?;
    /// out.save(&Tensor(vec![7u8; 5000]))?;
    /// let archive = Archive::new(SharedBytes::from_owner(out.finish()?))?;
    /// let bytes = archive.only()?.share_buffer(0)?.unwrap();
    /// drop(archive);
    /// assert_eq!(*bytes, [7; 5000]);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no buffer with this number, it is not complete, or a checksum does not match.
    pub fn share_buffer(&self, number: usize) -> Result<Option<SharedBytes>> {
        let number = number as u64;
        self.loaded.buffer(number, self.options)?;
        let Some(bytes) = self.shared(number) else { return Ok(None) };
        if let Some(mut checker) = self.loaded.checker(self.source, number, self.options)? {
            checker.update(&bytes)?;
        }
        Ok(Some(bytes))
    }

    fn shared(&self, number: u64) -> Option<SharedBytes> {
        let (start, len) = self.loaded.buffer(number, self.options).ok()?.plain().ok()?;
        let len = usize::try_from(len).ok()?;
        let bytes = self.source.share(source::range(start, len)?)?;
        (bytes.len() == len).then_some(bytes)
    }

    /// Decodes the value at `range` of the metadata, borrowing from the archive's memory.
    fn lend<T: Deserialize<'a>>(
        &self,
        range: Range<usize>,
        share: Option<&dyn Fn(u64) -> Option<SharedBytes>>,
    ) -> Result<T> {
        self.lending(range, share, |metadata, base, buffers| {
            decode(PhantomData, metadata, base, buffers, self.options)
        })
    }

    /// Calls `read` with the metadata in this range and its offset, and with the buffers. All are borrowed from the
    /// archive's memory.
    pub(super) fn lending<T>(
        &self,
        range: Range<usize>,
        share: Option<&dyn Fn(u64) -> Option<SharedBytes>>,
        read: impl FnOnce(&'a [u8], u64, &mut dyn Buffers<'a>) -> Result<T>,
    ) -> Result<T> {
        // A view of an owned type is a copy.
        let mut seen = match share {
            Some(_) => SeenBuffers::uncopied(self.options.limits),
            None => SeenBuffers::new(self.options.limits),
        };
        self.lending_after(range, share, &mut seen, read)
    }

    /// Like [`lending`](Self::lending), for one of several calls. `seen` is what they have read.
    pub(super) fn lending_after<T>(
        &self,
        range: Range<usize>,
        share: Option<&dyn Fn(u64) -> Option<SharedBytes>>,
        seen: &mut SeenBuffers,
        read: impl FnOnce(&'a [u8], u64, &mut dyn Buffers<'a>) -> Result<T>,
    ) -> Result<T> {
        let header = self.header();
        let source: &'a S = self.source;
        let contents = self.contents()?;
        let base = header.metadata_offset() + range.start as u64;
        let metadata = source::borrowed(source, header.metadata_offset(), header.metadata.len())?;
        let metadata = metadata.get(range).unwrap_or_default();
        let content = |number| {
            let (start, len) = self.loaded.buffer(number, self.options)?.plain()?;
            source::slice(contents, start, source::in_memory(len, start)?)
        };
        let arena = self.arena;
        let mut buffers = MemoryBuffers { header, content: &content, share, arena, seen };
        read(metadata, base, &mut buffers)
    }
}

#[cold]
fn no_digest(offset: u64) -> Error {
    Error::unsupported("a segment without checksums has no digest").at(offset)
}
