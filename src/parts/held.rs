//! Parts: metadata together with their buffers.

use std::fmt;
use std::io;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeOwned};

use super::buffer::Buffer;
use super::info::{BufferInfo, Parsed, PartsInfo, assemble};
use crate::error::{Error, Result};
use crate::io::checksum::{Hasher, WRITE_STEP};
use crate::io::shared::SharedBytes;
use crate::io::sink::{MAX_SLICE, write_slices};
use crate::mem::Arena;
use crate::options::DecodeOptions;
use crate::segment::buffers::{Lending, Seen, no_such};
use crate::segment::find;
use crate::segment::format::{self, MAX_RECORD_HEAD};
use crate::segment::header::{Content, Header};
use crate::segment::path::{self, TensorInfo};
use crate::segment::walk::Output;

/// A value split: metadata here, the bytes of its tensors there, in buffers that can be sent, shared
/// and received by themselves, without being copied into a message first.
///
/// This is what pickle protocol 5 and Apache Fory call out-of-band buffers. The metadata tells dtype,
/// shape, path, length, alignment and checksum of each buffer before it arrives (see [`PartsInfo`]),
/// and the buffers are held against it here, so that `Parts` are always whole and the right ones.
///
/// Made by [`to_parts`](crate::to_parts), which copies the tensors into buffers (a
/// [`Split`](crate::parts::Split) hands them out without), or of what was received. `B` is whatever holds
/// bytes: [`Buffer`], `Vec<u8>`, `&[u8]`, `bytes::Bytes`, `Arc<[u8]>`, a message of a transport.
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
    /// The parts whose buffers these are, in the order of [`buffers`](Self::buffers).
    ///
    /// # Errors
    /// As [`Parts::new`].
    pub fn with_buffers<B: AsRef<[u8]>>(self, buffers: impl Into<Vec<B>>) -> Result<Parts<B>> {
        let buffers = buffers.into();
        let contents = buffers.iter().map(AsRef::as_ref);
        self.parsed.check(&self.metadata, contents, self.options)?;
        Ok(Parts::trusted(self, buffers))
    }
}

impl<B: AsRef<[u8]>> Parts<B> {
    /// Puts together what was received. The checksums of all buffers are verified.
    ///
    /// # Errors
    /// Where the metadata is none, cut off or damaged, and where a buffer is missing, one too many, too
    /// short, too long, changed, in the place of another, or of other parts: it says which.
    pub fn new(metadata: impl Into<Vec<u8>>, buffers: impl Into<Vec<B>>) -> Result<Self> {
        Self::with_options(metadata, buffers, DecodeOptions::default())
    }

    /// As [`new`](Self::new), with options. Without checksums the buffers are not read here, and two of
    /// the same length in each other's place are not told apart.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_options(
        metadata: impl Into<Vec<u8>>,
        buffers: impl Into<Vec<B>>,
        options: DecodeOptions,
    ) -> Result<Self> {
        PartsInfo::with_options(metadata, options)?.with_buffers(buffers)
    }

    /// Parts whose buffers are known to be those.
    pub(crate) fn trusted(info: PartsInfo, buffers: Vec<B>) -> Self {
        Self { info, buffers, arena: Arena::default() }
    }

    /// The metadata as it is sent: what [`Parts::new`] and [`PartsInfo::new`] take.
    pub fn metadata(&self) -> &[u8] {
        &self.info.metadata
    }

    /// The buffers, in order.
    pub fn buffers(&self) -> &[B] {
        &self.buffers
    }

    /// What the metadata tells of the buffers.
    pub fn info(&self) -> &PartsInfo {
        &self.info
    }

    /// All tensors of the value, those that stand in the metadata included.
    ///
    /// # Errors
    /// As [`PartsInfo::tensors`].
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        self.info.tensors()
    }

    /// The length of each buffer.
    pub(crate) fn lengths(&self) -> Vec<u64> {
        self.info.buffers().iter().map(|buffer| buffer.byte_len()).collect()
    }

    /// What the header of a segment says whose parts these are.
    pub(crate) fn content<'a>(&'a self, name: Option<&'a str>, lengths: &'a [u64]) -> Content<'a> {
        let PartsInfo { metadata, parsed, .. } = &self.info;
        let Header { alignment, checked, .. } = parsed.header;
        Content { name, alignment, checked, lengths, metadata: parsed.item(metadata) }
    }

    /// Gives out the buffers, and their checksums, which are computed again on the way.
    pub(crate) fn emit(&self, out: &mut dyn Output) -> Result<Vec<u64>> {
        let PartsInfo { metadata, parsed, options, .. } = &self.info;
        for (number, buffer) in self.buffers.iter().enumerate() {
            let bytes = buffer.as_ref();
            let wrong = || parsed.wrong(metadata, number, bytes, options.limits);
            if bytes.len() as u64 != parsed.len_of(number) {
                return Err(wrong());
            }
            out.begin(number as u64, bytes.len() as u64)?;
            let mut hasher = Hasher::new();
            for step in bytes.chunks(WRITE_STEP) {
                if parsed.header.checked {
                    hasher.update(step);
                }
                out.put(step)?;
            }
            out.end()?;
            let stored = parsed.hashes.get(number);
            if stored.is_some_and(|&stored| stored != hasher.finish()) {
                return Err(wrong());
            }
        }
        Ok(parsed.hashes.clone())
    }

    /// The parts that a segment is, with buffers that were verified.
    pub(crate) fn of_segment(
        header: &Header,
        metadata: &[u8],
        hashes: &[u64],
        buffers: Vec<B>,
        options: DecodeOptions,
    ) -> Result<Self> {
        let lengths: Vec<u64> = header.layout.buffers.iter().map(|&(_, len)| len).collect();
        let name = header.name.as_deref();
        let Header { alignment, checked, .. } = *header;
        let content = Content { name, alignment, checked, lengths: &lengths, metadata };
        let info = PartsInfo::with_options(assemble(&content, hashes)?, options);
        // What is wrong with it is told as of the archive.
        let info = info.map_err(|error| {
            let told = path::list(metadata, header, options.limits).err();
            told.unwrap_or_else(|| error.moved_by(header.offset))
        })?;
        Ok(Self::trusted(info, buffers))
    }

    /// Metadata and buffers.
    pub fn into_inner(self) -> (Vec<u8>, Vec<B>) {
        (self.info.metadata, self.buffers)
    }

    /// The value, with copies of the tensors.
    ///
    /// # Errors
    /// Where the value does not fit the type.
    pub fn load<T: DeserializeOwned>(&self) -> Result<T> {
        self.view()
    }

    /// The value at `path`, as [`Archive::get`](crate::Archive::get) finds it.
    ///
    /// # Errors
    /// As [`load`](Self::load), and where there is no such value.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        self.view_at(path)
    }

    /// The value, with arrays, strings and byte strings that borrow from the buffers and the metadata:
    /// nothing is copied but small tensors inside the metadata, once, to align them.
    ///
    /// # Errors
    /// Where the value does not fit the type, or a buffer is not aligned as its elements must be:
    /// [`Buffer`] is, and what allocators give mostly.
    pub fn view<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        self.view_at("")
    }

    /// As [`view`](Self::view), of the value at `path`.
    ///
    /// # Errors
    /// As [`view`](Self::view), and where there is no such value.
    pub fn view_at<'a, T: Deserialize<'a>>(&'a self, path: &str) -> Result<T> {
        let PartsInfo { metadata, parsed, options, .. } = &self.info;
        decode(metadata, parsed, &self.buffers, path, None, Some(&self.arena), *options)
    }

    /// The value, with a [`SharedTensor`](crate::tensor::SharedTensor) for each tensor in a buffer, that keeps a
    /// clone of the buffer: nothing of them is copied where cloning counts a reference, as that of
    /// `bytes::Bytes`, `Arc<[u8]>` and [`SharedBytes`] does.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_shared<T: DeserializeOwned>(&self) -> Result<T>
    where
        B: Clone + Send + Sync + 'static,
    {
        let share = |number| {
            let buffer = usize::try_from(number).ok().and_then(|at| self.buffers.get(at))?;
            Some(SharedBytes::from_owner(buffer.clone()))
        };
        let PartsInfo { metadata, parsed, options, .. } = &self.info;
        let arena = Some(&self.arena);
        decode(metadata, parsed, &self.buffers, "", Some(&share), arena, *options)
    }

    /// The same parts with buffers that can be shared, uncopied: for [`load_shared`](Self::load_shared)
    /// of such as cannot be cloned, as [`Buffer`].
    pub fn into_shared(self) -> Parts<SharedBytes>
    where
        B: Send + Sync + 'static,
    {
        Parts::trusted(self.info, self.buffers.into_iter().map(SharedBytes::from_owner).collect())
    }

    /// Writes the metadata and then the buffers, one behind the other without padding, many in each call
    /// where the writer takes that ([`io::Write::write_vectored`]). They are read by
    /// [`read_from`](Self::read_from).
    ///
    /// # Errors
    /// Where the writer fails, and where a buffer has another length than it had.
    pub fn write_to<W: io::Write>(&self, mut writer: W) -> Result<()> {
        let writer: &mut dyn io::Write = &mut writer;
        let PartsInfo { metadata, parsed, options, .. } = &self.info;
        let mut slices = vec![io::IoSlice::new(metadata)];
        for (number, buffer) in self.buffers.iter().enumerate() {
            let bytes = buffer.as_ref();
            // The receiver goes by the lengths in the metadata.
            if bytes.len() as u64 != parsed.len_of(number) {
                return Err(parsed.wrong(metadata, number, bytes, options.limits));
            }
            slices.extend(bytes.chunks(MAX_SLICE).map(io::IoSlice::new));
        }
        write_slices(writer, &mut slices, &mut 0)
    }
}

impl Parts<Buffer> {
    /// Reads what [`write_to`](Self::write_to) or [`Split::write_to`](crate::parts::Split::write_to) wrote, and
    /// not a byte beyond it. Each buffer is read straight into its memory, which follows the bytes
    /// received, and verified on the way. It is aligned as the sender asks, to 64 bytes where it is
    /// shorter than a 64th of that.
    ///
    /// # Errors
    /// With [`Category::Eof`](crate::error::Category::Eof) where the reader is at its end, with
    /// [`Category::Torn`](crate::error::Category::Torn) where it ends inside
    /// parts, where it fails, and where what it gives is damaged.
    pub fn read_from<R: io::Read>(reader: R) -> Result<Self> {
        Self::read_from_with(reader, DecodeOptions::default())
    }

    /// As [`read_from`](Self::read_from), with options. The budget of the limits holds for the metadata
    /// and all buffers together.
    ///
    /// # Errors
    /// As [`read_from`](Self::read_from).
    pub fn read_from_with<R: io::Read>(mut reader: R, options: DecodeOptions) -> Result<Self> {
        let reader: &mut dyn io::Read = &mut reader;
        let mut budget = options.limits.alloc_budget(false);
        let metadata = read_metadata(reader, budget)?;
        budget = budget.saturating_sub(metadata.len() as u64);
        let info = PartsInfo::with_options(metadata, options)?;
        if info.byte_len() > budget {
            let len = info.byte_len();
            let what = format!("buffers of {len} bytes, {budget} are allowed");
            return Err(Error::limit(what));
        }
        let mut buffers = Vec::with_capacity(info.buffers().len());
        let mut received = info.metadata.len();
        for (number, buffer) in info.buffers().iter().enumerate() {
            let len = usize::try_from(buffer.byte_len()).unwrap_or(usize::MAX);
            let mut hasher = Hasher::new();
            let at = received as u64;
            let memory = Buffer::read(reader, len, received, worth_it(buffer), &mut hasher)
                .map_err(|error| error.at(at).in_field(buffer.path()))?;
            if memory.len() < len {
                let found = memory.len();
                let what = format!("{found} of the {len} bytes of buffer {number}");
                return Err(Error::torn(what).at(at).in_field(buffer.path()));
            }
            let wrong = buffer.checksum().is_some_and(|stored| stored != hasher.finish());
            if wrong && options.checksums {
                let error = info.parsed.wrong(&info.metadata, number, &memory, options.limits);
                return Err(error.at(at));
            }
            received = received.saturating_add(len);
            buffers.push(memory);
        }
        Ok(Self::trusted(info, buffers))
    }
}

/// The alignment for a buffer that is received: very many that are tiny must not take a multiple of
/// what was received.
fn worth_it(buffer: &BufferInfo) -> usize {
    const LINE: usize = 64;

    let asked = buffer.alignment();
    let is_tiny = buffer.byte_len() < (asked / LINE) as u64;
    if is_tiny { asked.min(LINE) } else { asked }
}

/// The metadata of parts that stand next in a stream.
fn read_metadata(reader: &mut dyn io::Read, budget: u64) -> Result<Vec<u8>> {
    let mut metadata = Vec::new();
    let mut up_to = |metadata: &mut Vec<u8>, len: u64| -> Result<()> {
        if len > budget {
            let what = format!("metadata of {len} bytes, {budget} are allowed");
            return Err(Error::limit(what).at(0));
        }
        let hasher = &mut Hasher::new();
        let more = usize::try_from(len).unwrap_or(usize::MAX) - metadata.len();
        let found = Buffer::read(reader, more, metadata.len(), 1, hasher)?;
        metadata.extend_from_slice(&found);
        if found.len() == more {
            return Ok(());
        }
        let found = metadata.len();
        let what = format!("{found} bytes of the metadata of parts");
        Err(if found == 0 { Error::eof("parts").at(0) } else { Error::torn(what).at(found as u64) })
    };
    up_to(&mut metadata, MAX_RECORD_HEAD as u64)?;
    let Some(lengths) = format::record_len(&metadata) else {
        let what = "expected the metadata of parts, found something else";
        return Err(Error::damaged(what).at(0));
    };
    up_to(&mut metadata, lengths.total)?;
    let header = Parsed::header(&metadata)?;
    up_to(&mut metadata, lengths.total.saturating_add(header.layout.trailer_len()))?;
    Ok(metadata)
}

/// The value at `path`, whose metadata and buffers fit each other.
pub fn decode<'a, T: Deserialize<'a>, B: AsRef<[u8]>>(
    metadata: &'a [u8],
    parsed: &Parsed,
    buffers: &'a [B],
    path: &str,
    share: Option<&dyn Fn(u64) -> Option<SharedBytes>>,
    arena: Option<&'a Arena>,
    options: DecodeOptions,
) -> Result<T> {
    let header = &parsed.header;
    let content = |number| {
        let at = usize::try_from(number).unwrap_or(usize::MAX);
        let buffer: &'a B = buffers.get(at).ok_or_else(|| no_such(number))?;
        let bytes = buffer.as_ref();
        // What was asked for twice may be another the second time.
        if bytes.len() as u64 == parsed.len_of(at) {
            return Ok(bytes);
        }
        Err(parsed.wrong(metadata, at, bytes, options.limits))
    };
    let mut lending = Lending { header, content: &content, share, arena, seen: Seen::default() };
    let item = parsed.item(metadata);
    let range = find::find(item, path, options.limits)?;
    let base = header.metadata_offset() + range.start as u64;
    let item = item.get(range).unwrap_or_default();
    let value = crate::segment::decode(PhantomData, item, base, &mut lending, options);
    value.map_err(|error| if path.is_empty() { error } else { error.in_field(path) })
}
