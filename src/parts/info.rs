//! Reads from the metadata of parts what the buffers will be.

use std::fmt;
use std::ops::Range;

use super::buffer::Buffer;
use crate::error::{Advice, Error, Result};
use crate::io::chunks::{ChunkHasher, Hashes, of_chunks};
use crate::options::{DecodeOptions, Limits};
use crate::path::list;
use crate::segment::format::{self, BufferPlace, RecordKind};
use crate::segment::header::{Header, HeaderContent};
use crate::tensor::TensorInfo;

/// The decoded metadata of parts.
pub struct DecodedMetadata {
    pub header: Header,
    /// The checksums of the buffers. Empty if the metadata has none.
    pub hashes: Hashes,
}

impl DecodedMetadata {
    pub fn new(metadata: &[u8], limits: Limits) -> Result<Self> {
        let short = |len: u64| {
            let found = metadata.len();
            Error::eof(&format!("metadata of {len} bytes, found {found}"))
        };
        let Some(lengths) = format::record_len(metadata) else {
            return Err(if metadata.len() < format::MAX_RECORD_HEAD {
                short(format::MAX_RECORD_HEAD as u64)
            } else {
                Error::damaged("expected the metadata of parts, found other bytes").at(0)
            });
        };
        let limit = limits.longest();
        if lengths.total > limit {
            let found = lengths.total;
            let what = format!("the metadata has {found} bytes, the limit is {limit}");
            return Err(Error::limit(what).with_advice(Advice::MaxAlloc));
        }
        let len = usize::try_from(lengths.total).unwrap_or(usize::MAX);
        let (record, rest) = metadata.split_at_checked(len).ok_or_else(|| short(lengths.total))?;
        let header = Self::header(record)?;
        // Memory is allocated for each buffer below, so a false number of buffers must be found here.
        let most = header.metadata.len() / list::MIN_REFERENCE;
        if header.count() > most {
            let (found, len) = (header.count(), header.metadata.len());
            let what =
                format!("{found} buffers are impossible: {len} bytes cannot refer to so many");
            return Err(Error::damaged(what).at(0));
        }
        let hashes = if header.count() == 0 {
            Hashes::default()
        } else {
            let trailer = header.layout.trailer_len();
            let behind = usize::try_from(trailer).ok().and_then(|trailer| rest.get(..trailer));
            let behind = behind.ok_or_else(|| short(lengths.total + trailer))?;
            header.open_trailer(behind, lengths.total)?
        };
        let parsed = Self { header, hashes };
        let expected = parsed.metadata_len();
        if metadata.len() as u64 != expected {
            let found = metadata.len();
            let what = format!("expected metadata of {expected} bytes, found {found}");
            return Err(Error::damaged(what).at(expected));
        }
        Ok(parsed)
    }

    /// Parses the header at the start of the metadata.
    pub fn header(record: &[u8]) -> Result<Header> {
        let opened = format::open_record(record, 0)?;
        if opened.kind != RecordKind::Segment {
            return Err(Error::data("expected the metadata of parts, found another record").at(0));
        }
        let header = Header::parse(opened, record.len() as u64, 0)?;
        header.ext.check("the metadata of parts", 0)?;
        if let Some((number, how)) = header.layout.packed.first_key_value() {
            how.coding.is_here()?;
            let codec = how.coding.shown();
            let what = format!(
                "buffer {number} is compressed with {codec}, but the buffers of parts must not be compressed"
            );
            return Err(Error::data(what).at(0));
        }
        Ok(header)
    }

    fn metadata_len(&self) -> u64 {
        self.header.layout.header_end + self.header.layout.trailer_len()
    }

    /// The value itself, as one CBOR item.
    pub fn item<'a>(&self, metadata: &'a [u8]) -> &'a [u8] {
        metadata.get(self.header.metadata.clone()).unwrap_or_default()
    }

    /// Checks that the metadata refers to every buffer.
    pub fn check_references(&self, metadata: &[u8], limits: Limits) -> Result<()> {
        if self.header.count() == 0 {
            return Ok(());
        }
        let number = list::unreferred(self.item(metadata), &self.header, limits)?;
        number.map_or(Ok(()), |number| Err(unreferred(number)))
    }

    /// # Errors
    /// If the buffers are to be verified, but this version does not know how they are hashed.
    pub fn check_verifies(&self, options: DecodeOptions) -> Result<()> {
        if options.checksums && self.header.count() > 0 {
            self.header.check.known()
        } else {
            Ok(())
        }
    }

    /// Checks that these are the buffers that the metadata describes.
    pub fn check<'b>(
        &self,
        metadata: &[u8],
        buffers: impl ExactSizeIterator<Item = &'b [u8]>,
        options: DecodeOptions,
    ) -> Result<()> {
        self.check_verifies(options)?;
        let (expected, found) = (self.header.count(), buffers.len());
        if found < expected {
            let first = self.named(metadata, found, options.limits);
            let what = format!("expected {expected} buffers, found {found}: {first} is missing");
            return Err(Error::data(what));
        }
        if found > expected {
            let what = format!(
                "expected {expected} buffers, found {found}: do the others belong to other metadata?"
            );
            return Err(Error::data(what));
        }
        for (number, bytes) in buffers.enumerate() {
            let mut comparison = self.comparison(number);
            let verifies = options.checksums && self.header.is_checked();
            let right_length = bytes.len() as u64 == self.len_of(number);
            if verifies && right_length {
                comparison.update(bytes);
            }
            if !right_length || verifies && !comparison.is_equal() {
                return Err(self.wrong(metadata, number, bytes, options.limits));
            }
        }
        Ok(())
    }

    /// Returns the comparison of the bytes of a buffer, which arrive in pieces, with its checksums.
    pub fn comparison(&self, number: usize) -> Comparison<'_> {
        let hasher = ChunkHasher::new(self.header.chunk_len, self.len_of(number));
        let stored = self.hashes.of(number).unwrap_or_default().iter();
        Comparison { hasher, stored, differs: false }
    }

    /// The checksums of a buffer with this content.
    fn hashes_of(&self, bytes: &[u8]) -> Vec<u64> {
        let mut hashes = Vec::new();
        let mut chunks = ChunkHasher::new(self.header.chunk_len, bytes.len() as u64);
        chunks.update(bytes, |_, hash| hashes.push(hash));
        hashes
    }

    pub fn len_of(&self, number: usize) -> u64 {
        self.header.buffer(number as u64).map_or(0, BufferPlace::len)
    }

    /// Finds out why `bytes` are not the expected content of a buffer.
    #[cold]
    pub fn wrong(&self, metadata: &[u8], number: usize, bytes: &[u8], limits: Limits) -> Error {
        let named = self.named(metadata, number, limits);
        let computed = self.hashes_of(bytes);
        let other = (0..self.header.count()).find(|&other| {
            other != number
                && self.len_of(other) == bytes.len() as u64
                && self.hashes.of(other) == Some(&computed)
        });
        if let Some(other) = other {
            let other = self.named(metadata, other, limits);
            return Error::damaged(format!("{named} has the content of {other}"));
        }
        let (expected, found) = (self.len_of(number), bytes.len());
        if expected != found as u64 {
            return Error::data(format!("expected {expected} bytes of {named}, found {found}"));
        }
        let computed = of_chunks(&computed);
        let stored = self.hashes.of_buffer(number).unwrap_or_default();
        Error::damaged(format!(
            "wrong checksum of {named}: computed {computed:016x}, stored in the metadata {stored:016x}; the \
             buffer was changed, or belongs to other metadata"
        ))
    }

    /// How error messages name a buffer.
    #[cold]
    fn named(&self, metadata: &[u8], number: usize, limits: Limits) -> String {
        let item = self.item(metadata);
        let content = list::content_of(item, &self.header, limits, number as u64);
        if let Ok(Some(list::BufferContent { path, rows: Some(Range { start, end }) })) = content {
            return format!("buffer {number} (`{}`, rows {start}..{end})", path.escape_debug());
        }
        let tensors = list::in_buffers(item, &self.header, limits);
        match tensors.ok().and_then(|tensors| tensors.into_iter().nth(number)?) {
            Some(tensor) => {
                let (path, dtype, shape) = (tensor.path(), tensor.dtype(), tensor.shape());
                format!("buffer {number} (`{}`, {dtype} {shape:?})", path.escape_debug())
            }
            None => format!("buffer {number}"),
        }
    }
}

/// Compares the bytes of a buffer, which arrive in pieces, with the stored hashes of its chunks.
pub struct Comparison<'a> {
    hasher: ChunkHasher,
    stored: std::slice::Iter<'a, u64>,
    differs: bool,
}

impl Comparison<'_> {
    pub fn update(&mut self, bytes: &[u8]) {
        let Self { hasher, stored, differs } = self;
        hasher.update(bytes, |_, hash| *differs |= stored.next() != Some(&hash));
    }

    /// Whether all bytes came and have the stored hashes.
    pub fn is_equal(&self) -> bool {
        !self.differs && self.hasher.left() == 0
    }
}

#[cold]
fn unreferred(number: usize) -> Error {
    Error::damaged(format!("nothing refers to buffer {number}")).at(0)
}

/// Encodes the metadata that is sent: the header record of a segment at offset 0, and directly after it the
/// trailer with the checksums of the buffers.
pub fn assemble(content: &HeaderContent<'_>, hashes: &Hashes) -> Result<Vec<u8>> {
    let (record, hash) = content.record(0)?;
    let mut metadata = record.concat();
    if !content.lengths.is_empty() {
        let item = format::hashes_item(content.check, &hashes.bytes())?;
        metadata.extend(format::trailer(item, hash));
    }
    Ok(metadata)
}

/// The description of the buffers in the metadata of [`Parts`](crate::parts::Parts). It is available before
/// the buffers are.
///
/// ```
/// use ndarray::Array2;
/// use tenarc::Tensor;
/// use tenarc::parts::{Buffer, Parts, PartsInfo};
///
/// # let sent = tenarc::to_parts(&Tensor(Array2::<f32>::eye(64)))?;
/// # let metadata = sent.metadata().to_vec();
/// # let mut socket = &sent.buffers()[0][..];
/// let info = PartsInfo::new(metadata)?;
/// let mut buffers = Vec::new();
/// for buffer in info.buffers() {
///     println!("{} {} {:?}", buffer.path(), buffer.dtype(), buffer.shape());
///     let mut memory: Buffer = buffer.allocate()?;
///     std::io::Read::read_exact(&mut socket, &mut memory)?;
///     buffers.push(memory);
/// }
/// let parts = info.with_buffers(buffers)?;
/// let back: Tensor<Array2<f32>> = parts.load()?;
/// # assert_eq!(*back, Array2::<f32>::eye(64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct PartsInfo {
    pub(super) metadata: Vec<u8>,
    pub(super) parsed: DecodedMetadata,
    pub(super) options: DecodeOptions,
    buffers: Vec<BufferInfo>,
}

impl fmt::Debug for PartsInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartsInfo")
            .field("name", &self.name())
            .field("buffers", &self.buffers)
            .finish_non_exhaustive()
    }
}

impl PartsInfo {
    /// Decodes metadata that [`Parts::metadata`](crate::parts::Parts::metadata) returned.
    ///
    /// # Errors
    /// If the bytes are not the metadata of parts, are truncated, or are damaged.
    pub fn new(metadata: impl Into<Vec<u8>>) -> Result<Self> {
        Self::with_options(metadata, DecodeOptions::default())
    }

    /// Like [`new`](Self::new), with options. If they turn checksums off, the checksums of the buffers are not
    /// verified. That of the metadata always is.
    ///
    /// # Errors
    /// The same errors as [`new`](Self::new).
    pub fn with_options(metadata: impl Into<Vec<u8>>, options: DecodeOptions) -> Result<Self> {
        let metadata = metadata.into();
        let parsed = DecodedMetadata::new(&metadata, options.limits)?;
        let DecodedMetadata { header, hashes } = &parsed;
        let tensors = list::in_buffers(parsed.item(&metadata), header, options.limits)?;
        let mut buffers = Vec::with_capacity(tensors.len());
        for (number, tensor) in tensors.into_iter().enumerate() {
            let tensor = tensor.ok_or_else(|| unreferred(number))?;
            let checksum = hashes.of_buffer(number);
            buffers.push(BufferInfo { tensor, alignment: header.alignment, checksum });
        }
        Ok(Self { metadata, parsed, options, buffers })
    }

    /// The name of the value, if the parts come from a segment of an archive and it has a name.
    pub fn name(&self) -> Option<&str> {
        self.parsed.header.name.as_deref()
    }

    /// The metadata to be sent.
    pub fn metadata(&self) -> &[u8] {
        &self.metadata
    }

    /// The value as a CBOR item, with references in place of the tensors in buffers. The same bytes as
    /// [`Segment::metadata`](crate::archive::Segment::metadata).
    pub fn item(&self) -> &[u8] {
        self.parsed.item(&self.metadata)
    }

    /// The buffers, in the order in which they are sent.
    pub fn buffers(&self) -> &[BufferInfo] {
        &self.buffers
    }

    /// The total length of all buffers in bytes.
    pub fn byte_len(&self) -> u64 {
        self.buffers.iter().map(|buffer| buffer.byte_len()).sum()
    }

    /// Lists all tensors of the value in the order of its fields, including those inside the metadata.
    ///
    /// # Errors
    /// If the metadata is not a valid value, or a tensor has no path because a key on the way occurs twice in its
    /// map.
    pub fn tensors(&self) -> Result<Vec<TensorInfo>> {
        list::list(self.item(), &self.parsed.header, self.options.limits)
    }
}

/// The description of one buffer of [`Parts`](crate::parts::Parts).
#[derive(Clone, Debug)]
pub struct BufferInfo {
    tensor: TensorInfo,
    alignment: u64,
    checksum: Option<u64>,
}

impl std::ops::Deref for BufferInfo {
    type Target = TensorInfo;

    /// The first tensor, sequence of numbers or byte string that is stored in the buffer: its path, dtype,
    /// shape, order and length. Tied tensors can share a buffer.
    fn deref(&self) -> &TensorInfo {
        &self.tensor
    }
}

impl BufferInfo {
    /// The number of the buffer, counted from zero.
    pub fn number(&self) -> usize {
        // A `usize` always suffices: there are fewer buffers than bytes of metadata.
        self.tensor.buffer().and_then(|number| usize::try_from(number).ok()).unwrap_or_default()
    }

    /// The first tensor that is stored in the buffer.
    pub fn tensor(&self) -> &TensorInfo {
        &self.tensor
    }

    /// The alignment in bytes that the sender asked for.
    pub fn alignment(&self) -> usize {
        usize::try_from(self.alignment).unwrap_or(1)
    }

    /// The checksum of the content, if the sender computed it: its XXH3-64 hash, or if it has several chunks, the hash
    /// of their hashes (`SPEC.md`, section 5.2).
    pub fn checksum(&self) -> Option<u64> {
        self.checksum
    }

    /// Allocates memory with the length and alignment of the buffer, to receive it into.
    ///
    /// The whole length is allocated at once. If the sender is not trusted, check [`PartsInfo::byte_len`] first, or
    /// use [`Parts::read_from`](crate::parts::Parts::read_from), which allocates memory only as bytes arrive.
    ///
    /// # Errors
    /// If the memory cannot be allocated.
    pub fn allocate(&self) -> Result<Buffer> {
        let len = usize::try_from(self.byte_len());
        let len = len.map_err(|_| {
            Error::limit(format!("{} bytes do not fit into memory", self.byte_len()))
        })?;
        Buffer::zeroed(len, self.alignment())
    }
}
