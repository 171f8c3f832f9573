//! What a caller can choose when writing and reading.

/// How values are written.
///
/// The default writes what any CBOR library reads: see [`with_typed_arrays`](Self::with_typed_arrays).
///
/// ```
/// let options = tenarc::ser::EncodeOptions::default().with_typed_arrays(true);
/// let bytes = tenarc::ser::to_vec_with(&vec![0.5f32; 1000], options)?;
/// assert_eq!(bytes.len(), 4005); // tag 85, byte string head, 4,000 bytes
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EncodeOptions {
    pub(crate) typed_arrays: bool,
    pub(crate) max_depth: usize,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self { typed_arrays: false, max_depth: Limits::DEFAULT_DEPTH }
    }
}

impl EncodeOptions {
    /// Whether sequences whose elements are all one primitive number type are written as bare
    /// typed arrays (RFC 8746, section 2) instead of element by element: floats from 32 bytes on,
    /// integers from 1 KiB on, tuples never.
    ///
    /// Off by default: a reader that does not know RFC 8746 ignores the tag and takes the raw
    /// bytes for numbers. tenarc reads both forms into any sequence.
    #[must_use]
    pub fn with_typed_arrays(mut self, on: bool) -> Self {
        self.typed_arrays = on;
        self
    }

    /// The deepest nesting that is written: see [`Limits::with_max_depth`].
    #[must_use]
    pub fn with_max_depth(mut self, levels: usize) -> Self {
        self.max_depth = levels;
        self
    }
}

/// How values are read.
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    pub(crate) limits: Limits,
    pub(crate) checksums: bool,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { limits: Limits::default(), checksums: true }
    }
}

impl DecodeOptions {
    /// What a document may ask of the reader.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether the checksums of tensors are verified when an archive is loaded into owned arrays; on
    /// by default. Those of headers are in any case, and those of views only by
    /// [`Archive::verify`](crate::Archive::verify). Those of [`Parts`](crate::parts::Parts) are when these are
    /// put together.
    #[must_use]
    pub fn with_checksums(mut self, on: bool) -> Self {
        self.checksums = on;
        self
    }
}

/// What a document may ask of the reader, before it is refused with [`Category::Limit`].
///
/// Lengths in the input never allocate ahead of the bytes that back them, whatever the limits:
/// from a slice, memory stays within a constant factor of the slice's length; from a reader,
/// within a constant factor of the bytes received. The factor is three times the size of the largest
/// element type of the value asked for: each element takes at least one byte of input, and a `Vec` that
/// grows holds its elements and room for twice as many. It is 96 for [`Value`](crate::Value), and for a
/// `Vec` of [`DynTensor`](crate::DynTensor)s, of which the shortest is one byte of input too, some 400.
/// Other collections take what they take for an element.
///
/// [`Category::Limit`]: crate::error::Category::Limit
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub(crate) max_depth: usize,
    pub(crate) max_rank: usize,
    /// `None`: unlimited for slices, which bound it themselves, [`Self::READER_ALLOC`] for readers.
    max_alloc: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_depth: Self::DEFAULT_DEPTH, max_rank: Self::DEFAULT_RANK, max_alloc: None }
    }
}

impl Limits {
    /// The deepest nesting that is read by default.
    pub const DEFAULT_DEPTH: usize = 128;
    /// The highest number of dimensions that is read by default.
    pub const DEFAULT_RANK: usize = 64;
    const READER_ALLOC: u64 = 16 << 30;

    /// For documents from strangers: 64 levels, rank 16, 64 MiB.
    #[must_use]
    pub fn strict() -> Self {
        Self { max_depth: 64, max_rank: 16, max_alloc: Some(64 << 20) }
    }

    /// The deepest nesting of arrays, maps and tags that is read; 128 by default. Each level
    /// takes stack: raise it only where the stack allows.
    #[must_use]
    pub fn with_max_depth(mut self, levels: usize) -> Self {
        self.max_depth = levels;
        self
    }

    /// The highest number of dimensions of a tensor; 64 by default, as in numpy.
    #[must_use]
    pub fn with_max_rank(mut self, dimensions: usize) -> Self {
        self.max_rank = dimensions;
        self
    }

    /// How many bytes one document may make the decoder allocate for tensors, strings, byte
    /// strings and the nodes of a [`Value`](crate::Value), added up. Not counted are the elements of collections, each of the size
    /// of its type: see [above](Self). By default 16 GiB when
    /// reading from an [`io::Read`](std::io::Read) or an archive, and unlimited when reading from a slice,
    /// whose own length bounds it: there, what is copied or borrowed from one place of the slice as
    /// it stands is not counted either.
    ///
    /// Of an archive that is read at positions, the first copy of each tensor is not counted, as the
    /// file is there; further copies of one that several fields refer to are, and so is each header.
    #[must_use]
    pub fn with_max_alloc(mut self, bytes: u64) -> Self {
        self.max_alloc = Some(bytes);
        self
    }

    /// What [`with_max_depth`](Self::with_max_depth) set.
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// What [`with_max_rank`](Self::with_max_rank) set.
    pub fn max_rank(&self) -> usize {
        self.max_rank
    }

    /// What [`with_max_alloc`](Self::with_max_alloc) set; `None` for its default, which depends on the input.
    pub fn max_alloc(&self) -> Option<u64> {
        self.max_alloc
    }

    pub(crate) fn alloc_budget(&self, input_is_in_memory: bool) -> u64 {
        let default = if input_is_in_memory { u64::MAX } else { Self::READER_ALLOC };
        self.max_alloc.unwrap_or(default)
    }
}
