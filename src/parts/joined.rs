//! Metadata together with its buffers.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeOwned};

use super::buffer::Buffer;
use super::info::{BufferInfo, DecodedMetadata, PartsInfo, assemble};
use crate::error::{Advice, Error, Result};
use crate::io::checksum::WRITE_STEP;
use crate::io::chunks::Hashes;
use crate::io::sink::{MAX_SLICE, write_slices};
use crate::mem::Arena;
use crate::mem::shared_bytes::SharedBytes;
use crate::options::DecodeOptions;
use crate::path::list;
use crate::path::locate::{Location, in_columns, locate};
use crate::plan::pass::Output;
use crate::segment::buffers::{MemoryBuffers, SeenBuffers, no_such};
use crate::segment::format::{self, MAX_RECORD_HEAD};
use crate::segment::header::{Header, HeaderContent};
use crate::segment::packed::PackedBuffers;
use crate::tensor::TensorInfo;

/// A value split into metadata and buffers. Each large tensor has its own buffer, which can be sent, shared and
/// received without being copied into a message first.
///
/// This is what pickle protocol 5 and Apache Fory call out-of-band buffers. The metadata describes each buffer
/// before it arrives: dtype, shape, path, length, alignment and checksum (see [`PartsInfo`]). The buffers are
/// checked against the metadata when `Parts` are made, so that they are complete and belong together.
///
/// Parts are made by [`to_parts`](crate::to_parts), which copies the tensors into buffers, or from
/// received metadata and buffers. [`Split`](crate::parts::Split) sends a value as parts without copying it. `B` is
/// any type that holds bytes: [`Buffer`], `Vec<u8>`, `&[u8]`, `bytes::Bytes`, `Arc<[u8]>`, or a
/// transport's message.
///
/// ```
/// use ndarray::{Array2, ArrayView2};
/// use serde::{Deserialize, Serialize};
/// use tenarc::Tensor;
/// use tenarc::parts::Parts;
///
/// #[derive(Serialize)]
/// struct Frame {
///     camera: String,
///     pixels: Tensor<Array2<f32>>,
/// }
///
/// let frame = Frame { camera: "left".into(), pixels: Array2::eye(64).into() };
/// let parts = tenarc::to_parts(&frame)?;
/// // Send `parts.metadata()`, then each of `parts.buffers()`, over anything that keeps them apart.
/// let (metadata, buffers) = parts.into_inner();
///
/// #[derive(Deserialize)]
/// struct FrameView<'a> {
///     camera: &'a str,
///     #[serde(borrow)]
///     pixels: Tensor<ArrayView2<'a, f32>>,
/// }
///
/// let received = Parts::new(metadata, buffers)?;
/// let frame: FrameView = received.view()?;
/// assert_eq!((frame.camera, frame.pixels[[7, 7]]), ("left", 1.0));
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Parts<B = Buffer> {
    info: PartsInfo,
    buffers: Vec<B>,
    arena: Arena,
}

impl<B> fmt::Debug for Parts<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parts")
            .field("metadata", &self.info.metadata.len())
            .field("buffers", &self.info.buffers())
            .finish_non_exhaustive()
    }
}

impl PartsInfo {
    /// Adds the buffers, in the order of [`buffers`](Self::buffers), and verifies them.
    ///
    /// # Errors
    /// If a buffer is missing, superfluous, too short, too long, changed, or in the place of another one. The error
    /// names the buffer.
    pub fn with_buffers<B: AsRef<[u8]>>(self, buffers: impl Into<Vec<B>>) -> Result<Parts<B>> {
        let buffers = buffers.into();
        let contents = buffers.iter().map(AsRef::as_ref);
        self.parsed.check(&self.metadata, contents, self.options)?;
        Ok(Parts::trusted(self, buffers))
    }
}

impl<B: AsRef<[u8]>> Parts<B> {
    /// Puts received metadata and buffers together. The checksums of all buffers are verified.
    ///
    /// # Errors
    /// - The bytes are not the metadata of parts, are truncated, or are damaged.
    /// - A buffer is missing, superfluous, too short, too long, changed, or in the place of another one. The
    ///   error names the buffer.
    pub fn new(metadata: impl Into<Vec<u8>>, buffers: impl Into<Vec<B>>) -> Result<Self> {
        Self::with_options(metadata, buffers, DecodeOptions::default())
    }

    /// Like [`new`](Self::new), with options. If they turn checksums off, the buffers are not read here, and it is
    /// not noticed if two buffers of equal length are swapped.
    ///
    /// # Errors
    /// The same errors as [`new`](Self::new).
    pub fn with_options(
        metadata: impl Into<Vec<u8>>,
        buffers: impl Into<Vec<B>>,
        options: DecodeOptions,
    ) -> Result<Self> {
        PartsInfo::with_options(metadata, options)?.with_buffers(buffers)
    }

    /// Parts whose buffers were verified already.
    pub(crate) fn trusted(info: PartsInfo, buffers: Vec<B>) -> Self {
        Self { info, buffers, arena: Arena::default() }
    }

    /// The metadata to be sent. [`Parts::new`] and [`PartsInfo::new`] read it.
    pub fn metadata(&self) -> &[u8] {
        &self.info.metadata
    }

    /// The buffers, in order.
    pub fn buffers(&self) -> &[B] {
        &self.buffers
    }

    /// The description of the buffers in the metadata.
    pub fn info(&self) -> &PartsInfo {
        &self.info
    }

    /// Lists all tensors of the value, including those inside the metadata.
    ///
    /// # Errors
    /// The same errors as [`PartsInfo::tensors`].
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        self.info.tensors()
    }

    /// The length of each buffer.
    pub(crate) fn lengths(&self) -> Vec<u64> {
        self.info.buffers().iter().map(|buffer| buffer.byte_len()).collect()
    }

    /// The header of a segment with the content of these parts.
    pub(crate) fn content<'a>(
        &'a self,
        name: Option<&'a str>,
        lengths: &'a [u64],
    ) -> HeaderContent<'a> {
        let PartsInfo { metadata, parsed, .. } = &self.info;
        // Parts have no compressed buffers.
        parsed.header.content(name, lengths, &parsed.header.layout.packed, parsed.item(metadata))
    }

    /// Writes the buffers to `out` and returns their checksums. Buffers are verified on the way: shared memory may
    /// have changed.
    pub(crate) fn emit(&self, out: &mut dyn Output) -> Result<Hashes> {
        let PartsInfo { metadata, parsed, options, .. } = &self.info;
        for (number, buffer) in self.buffers.iter().enumerate() {
            let bytes = buffer.as_ref();
            let wrong = || parsed.wrong(metadata, number, bytes, options.limits);
            if bytes.len() as u64 != parsed.len_of(number) {
                return Err(wrong());
            }
            out.begin(number as u64, bytes.len() as u64)?;
            let mut comparison = parsed.comparison(number);
            for step in bytes.chunks(WRITE_STEP) {
                if parsed.header.is_checked() {
                    comparison.update(step);
                }
                out.put(step)?;
            }
            out.end()?;
            if parsed.header.is_checked() && !comparison.is_equal() {
                return Err(wrong());
            }
        }
        Ok(parsed.hashes.clone())
    }

    /// Makes parts from a segment of an archive. The buffers must have been verified.
    pub(crate) fn of_segment(
        header: &Header,
        metadata: &[u8],
        hashes: &Hashes,
        buffers: Vec<B>,
        options: DecodeOptions,
    ) -> Result<Self> {
        let lengths = header.lengths();
        let packed = PackedBuffers::new();
        let content = header.content(header.name.as_deref(), &lengths, &packed, metadata);
        let info = PartsInfo::with_options(assemble(&content, hashes)?, options);
        // An error should have offsets and a category that fit the archive.
        let info = info.map_err(|error| {
            let told = list::list(metadata, header, options.limits).err();
            told.unwrap_or_else(|| error.moved_by(header.offset))
        })?;
        Ok(Self::trusted(info, buffers))
    }

    /// Returns the metadata and the buffers.
    pub fn into_inner(self) -> (Vec<u8>, Vec<B>) {
        (self.info.metadata, self.buffers)
    }

    /// Decodes the value, and copies the tensors.
    ///
    /// # Errors
    /// If the value does not fit the type.
    pub fn load<T: DeserializeOwned>(&self) -> Result<T> {
        self.view()
    }

    /// Decodes the value at `path`, which is written as for [`Archive::get`](crate::Archive::get).
    ///
    /// # Errors
    /// If there is no value at `path`, or it does not fit the type.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.view_at(path)
    }

    /// Decodes the value. Arrays, strings and byte strings borrow from the buffers and the metadata. Only small
    /// tensors inside the metadata are copied, once, if they are not aligned.
    ///
    /// # Errors
    /// If the value does not fit the type, or a buffer is not aligned for its element type. A [`Buffer`]
    /// always is, and so is most memory from an allocator.
    pub fn view<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        self.view_at("")
    }

    /// Decodes the value at `path` like [`view`](Self::view).
    ///
    /// # Errors
    /// The same errors as [`view`](Self::view), and if there is no value at `path`.
    pub fn view_at<'a, T: Deserialize<'a>>(&'a self, path: &str) -> Result<T> {
        self.decode(path, Loan::copied(self.info.options, Some(&self.arena)))
    }

    fn decode<'a, T: Deserialize<'a>>(&'a self, path: &str, loan: Loan<'a, '_>) -> Result<T> {
        let PartsInfo { metadata, parsed, options, .. } = &self.info;
        decode(metadata, parsed, &self.buffers, path, loan, *options)
    }

    /// Decodes the value. Each [`SharedTensor`](crate::tensor::SharedTensor) in it keeps a clone of its buffer.
    ///
    /// No bytes are copied if cloning a buffer only counts a reference, as for `bytes::Bytes`, `Arc<[u8]>` and
    /// [`SharedBytes`].
    ///
    /// # Errors
    /// If the value does not fit the type.
    pub fn load_shared<T: DeserializeOwned>(&self) -> Result<T>
    where
        B: Clone + Send + Sync + 'static,
    {
        let share = |number| {
            let buffer = usize::try_from(number).ok().and_then(|at| self.buffers.get(at))?;
            Some(SharedBytes::from_owner(buffer.clone()))
        };
        let (share, arena) = (Some(&share as _), Some(&self.arena));
        self.decode(
            "",
            Loan { share, arena, seen: SeenBuffers::uncopied(self.info.options.limits) },
        )
    }

    /// Makes the buffers shareable without copying them. Use this to call [`load_shared`](Self::load_shared) with
    /// buffers that cannot be cloned, such as [`Buffer`].
    pub fn into_shared(self) -> Parts<SharedBytes>
    where
        B: Send + Sync + 'static,
    {
        Parts::trusted(self.info, self.buffers.into_iter().map(SharedBytes::from_owner).collect())
    }

    /// Writes the metadata and then the buffers, without padding. [`read_from`](Self::read_from) reads them. If
    /// the writer supports vectored writes ([`io::Write::write_vectored`]), one call writes many buffers.
    ///
    /// # Errors
    /// If the writer fails, or a buffer no longer has its original length.
    pub fn write_to<W: io::Write>(&self, mut writer: W) -> Result<()> {
        let writer: &mut dyn io::Write = &mut writer;
        let PartsInfo { metadata, parsed, options, .. } = &self.info;
        let mut slices = vec![io::IoSlice::new(metadata)];
        for (number, buffer) in self.buffers.iter().enumerate() {
            let bytes = buffer.as_ref();
            // The receiver relies on the lengths in the metadata.
            if bytes.len() as u64 != parsed.len_of(number) {
                return Err(parsed.wrong(metadata, number, bytes, options.limits));
            }
            slices.extend(bytes.chunks(MAX_SLICE).map(io::IoSlice::new));
        }
        write_slices(writer, &mut slices, &mut 0)
    }
}

impl Parts<Buffer> {
    /// Reads parts that [`write_to`](Self::write_to) or [`Split::write_to`](crate::parts::Split::write_to) wrote, and
    /// not a byte more. Each buffer is read directly into its memory and verified. Memory is allocated only as bytes
    /// arrive.
    ///
    /// A buffer is aligned as its sender asks. A very small one, shorter than a 64th of that alignment, is
    /// aligned to 64 bytes at most.
    ///
    /// # Errors
    /// - [`Category::Eof`](crate::error::Category::Eof) if the reader is at its end.
    /// - [`Category::Torn`](crate::error::Category::Torn) if the input ends inside the parts.
    /// - The reader fails, the parts are damaged, or they exceed the memory limit.
    pub fn read_from<R: io::Read>(reader: R) -> Result<Self> {
        Self::read_from_with(reader, DecodeOptions::default())
    }

    /// Like [`read_from`](Self::read_from), with options. The memory limit applies to the metadata and all buffers
    /// together.
    ///
    /// # Errors
    /// The same errors as [`read_from`](Self::read_from).
    pub fn read_from_with<R: io::Read>(mut reader: R, options: DecodeOptions) -> Result<Self> {
        let reader: &mut dyn io::Read = &mut reader;
        let mut budget = options.limits.longest();
        let metadata = read_metadata(reader, budget)?;
        budget = budget.saturating_sub(metadata.len() as u64);
        let info = PartsInfo::with_options(metadata, options)?;
        if info.byte_len() > budget {
            let len = info.byte_len();
            let what = format!("the buffers have {len} bytes, the limit is {budget}");
            return Err(Error::limit(what).with_advice(Advice::MaxAlloc));
        }
        info.parsed.check_verifies(options)?;
        let mut buffers = Vec::with_capacity(info.buffers().len());
        let mut received = info.metadata.len();
        for (number, buffer) in info.buffers().iter().enumerate() {
            let len = usize::try_from(buffer.byte_len()).unwrap_or(usize::MAX);
            let verifies = options.checksums && info.parsed.header.is_checked();
            let mut comparison = info.parsed.comparison(number);
            let at = received as u64;
            let each = |bytes: &[u8]| {
                if verifies {
                    comparison.update(bytes);
                }
            };
            let memory = Buffer::read(reader, len, received, worth_it(buffer), each)
                .map_err(|error| error.at(at).in_field(buffer.path()))?;
            if memory.len() < len {
                let found = memory.len();
                let what = format!("only {found} of the {len} bytes of buffer {number} are there");
                return Err(Error::torn(what).at(at).in_field(buffer.path()));
            }
            if verifies && !comparison.is_equal() {
                let error = info.parsed.wrong(&info.metadata, number, &memory, options.limits);
                return Err(error.at(at));
            }
            received = received.saturating_add(len);
            buffers.push(memory);
        }
        Ok(Self::trusted(info, buffers))
    }
}

/// The alignment for a received buffer. Very small buffers get less than asked for: many of them would
/// otherwise take many times the memory that was received.
fn worth_it(buffer: &BufferInfo) -> usize {
    const LINE: usize = 64;

    let asked = buffer.alignment();
    let is_tiny = buffer.byte_len() < (asked / LINE) as u64;
    if is_tiny { asked.min(LINE) } else { asked }
}

/// Reads the metadata of parts from a stream.
fn read_metadata(reader: &mut dyn io::Read, budget: u64) -> Result<Vec<u8>> {
    let mut metadata = Vec::new();
    let mut up_to = |metadata: &mut Vec<u8>, len: u64| -> Result<()> {
        if len > budget {
            let what = format!("the metadata has {len} bytes, the limit is {budget}");
            return Err(Error::limit(what).with_advice(Advice::MaxAlloc).at(0));
        }
        let more = usize::try_from(len).unwrap_or(usize::MAX) - metadata.len();
        let found = Buffer::read(reader, more, metadata.len(), 1, |_| ())?;
        metadata.extend_from_slice(&found);
        if found.len() == more {
            return Ok(());
        }
        let found = metadata.len();
        let what = format!("the metadata of parts ends after {found} bytes");
        Err(if found == 0 { Error::eof("parts").at(0) } else { Error::torn(what).at(found as u64) })
    };
    up_to(&mut metadata, MAX_RECORD_HEAD as u64)?;
    let Some(lengths) = format::record_len(&metadata) else {
        let what = "expected the metadata of parts, found other bytes";
        return Err(Error::damaged(what).at(0));
    };
    up_to(&mut metadata, lengths.total)?;
    let header = DecodedMetadata::header(&metadata)?;
    up_to(&mut metadata, lengths.total.saturating_add(header.layout.trailer_len()))?;
    Ok(metadata)
}

/// How buffers are lent to the decoder: see [`MemoryBuffers`].
pub struct Loan<'a, 'h> {
    pub share: Option<&'h dyn Fn(u64) -> Option<SharedBytes>>,
    pub arena: Option<&'a Arena>,
    pub seen: SeenBuffers,
}

impl<'a> Loan<'a, '_> {
    /// For a value that may copy what it reads.
    pub fn copied(options: DecodeOptions, arena: Option<&'a Arena>) -> Self {
        Self { share: None, arena, seen: SeenBuffers::new(options.limits) }
    }
}

/// Decodes the value at `path`. The buffers must have been checked against the metadata.
pub fn decode<'a, T: Deserialize<'a>, B: AsRef<[u8]>>(
    metadata: &'a [u8],
    parsed: &DecodedMetadata,
    buffers: &'a [B],
    path: &str,
    loan: Loan<'a, '_>,
    options: DecodeOptions,
) -> Result<T> {
    let header = &parsed.header;
    let content = |number| {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let buffer: &'a B = buffers.get(at).ok_or_else(|| no_such(number))?;
        let bytes = buffer.as_ref();
        // `as_ref` may return something else on every call.
        if bytes.len() as u64 == parsed.len_of(at) {
            return Ok(bytes);
        }
        Err(parsed.wrong(metadata, at, bytes, options.limits))
    };
    let Loan { share, arena, mut seen } = loan;
    let mut lending = MemoryBuffers { header, content: &content, share, arena, seen: &mut seen };
    let item = parsed.item(metadata);
    let found = locate(item, header, path, options.limits)?;
    let (Location::Item(range) | Location::InColumns(range, _)) = &found;
    let base = header.metadata_offset() + range.start as u64;
    let item = item.get(range.clone()).unwrap_or_default();
    match &found {
        Location::Item(_) => crate::segment::decode(PhantomData, item, base, &mut lending, options)
            .map_err(|error| error.under(path)),
        Location::InColumns(_, inside) => in_columns(item, base, &mut lending, options, inside),
    }
}
