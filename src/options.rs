//! The options for writing and reading values.

use std::num::NonZeroUsize;

/// Which sequences of structs, tuples and enums are written as columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ColumnChoice {
    None,
    All,
    /// The writer decides. It writes a sequence as columns only if [`Archive::tensors`](crate::Archive::tensors) still
    /// lists all its tensors, each alone or as part of a column.
    Listed,
}

impl ColumnChoice {
    pub(crate) fn all_if(on: bool) -> Self {
        if on { Self::All } else { Self::None }
    }
}

/// Options for writing values.
///
/// By default, sequences are written as plain arrays, which any CBOR library can read: see
/// [`with_typed_arrays`](Self::with_typed_arrays).
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
    pub(crate) columns: ColumnChoice,
    /// Whether the whole value is written as columns even if it has few elements, because it may be part of a table.
    pub(crate) tables: bool,
    /// The number of further levels at a value that is written as columns from few rows on: the whole value, or a field
    /// that asks for columns.
    main_depth: u32,
    max_depth: u32,
    /// Whether the value is the metadata of a segment, which says each thing in one way (`SPEC.md`, section 5.3).
    pub(crate) metadata: bool,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        let columns = ColumnChoice::None;
        let begun = Self {
            typed_arrays: false,
            columns,
            tables: false,
            main_depth: 0,
            max_depth: 0,
            metadata: false,
        };
        begun.with_max_depth(Limits::DEFAULT_DEPTH)
    }
}

impl EncodeOptions {
    /// Whether to write sequences of numbers of one primitive type as typed arrays (RFC 8746, section 2)
    /// instead of element by element. This applies to sequences of floats of at least 32 bytes, of `u8` of any length,
    /// and of other integers of at least 1 KiB, but never to tuples.
    ///
    /// Off by default, because a reader that does not know RFC 8746 ignores the tag and sees a string
    /// of raw bytes instead of numbers. tenarc can read both forms into any sequence.
    #[must_use]
    pub fn with_typed_arrays(mut self, on: bool) -> Self {
        self.typed_arrays = on;
        self
    }

    /// Whether to write sequences of structs, tuples and enums as columns: all values of the first field,
    /// then all values of the second, and so on. Records take less space and less time to read in this way. It applies
    /// to sequences of 16 elements or more, if they are the whole value, and to sequences inside a value from 128
    /// elements on. Sequences inside rows that are columns become columns too.
    ///
    /// Off by default, because only tenarc can read columns as the sequence that they are. Columns of
    /// numbers are typed arrays (RFC 8746), which other CBOR libraries can read. `SPEC.md`, section 3.1,
    /// describes the form. To write only some fields as columns, see [`columns`](crate::columns).
    ///
    /// ```
    /// let points: Vec<(u32, f64)> = (0..1000).map(|i| (i, 0.5)).collect();
    /// let options = tenarc::ser::EncodeOptions::default().with_columns(true);
    /// let columns = tenarc::ser::to_vec_with(&points, options)?;
    /// let rows = tenarc::to_vec(&points)?;
    /// assert!(columns.len() < rows.len() * 4 / 5);
    /// assert_eq!(tenarc::from_slice::<Vec<(u32, f64)>>(&columns)?, points);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    #[must_use]
    pub fn with_columns(mut self, on: bool) -> Self {
        self.columns = ColumnChoice::all_if(on);
        self
    }

    /// Sets which sequences are written as columns. [`with_columns`](Self::with_columns) sets this to all or none.
    #[must_use]
    pub(crate) fn with_choice_of_columns(mut self, columns: ColumnChoice) -> Self {
        self.columns = columns;
        self
    }

    /// Whether the whole value, if it is a sequence, is written as columns from one element on. Has an effect only if
    /// columns are on.
    #[must_use]
    pub(crate) fn with_tables(mut self, on: bool) -> Self {
        self.tables = on;
        self
    }

    /// For a value that is the metadata of a segment.
    #[must_use]
    pub(crate) fn for_metadata(mut self) -> Self {
        self.metadata = true;
        self
    }

    /// For a value that is part of a whole value.
    #[must_use]
    pub(crate) fn of_part(self) -> Self {
        // No sequence starts where nothing more may be nested.
        Self { tables: false, main_depth: 0, ..self }
    }

    /// For a value with so many further levels, in which sequences of records are columns.
    pub(crate) fn with_columns_at(self, depth: usize) -> Self {
        Self { columns: ColumnChoice::All, main_depth: u32_of(depth), ..self }
    }

    pub(crate) fn main_depth(&self) -> usize {
        self.main_depth as usize
    }

    pub(crate) fn max_depth(&self) -> usize {
        self.max_depth as usize
    }

    /// The deepest nesting of arrays, maps and tags that is written. 128 by default.
    #[must_use]
    pub fn with_max_depth(mut self, levels: usize) -> Self {
        self.max_depth = u32_of(levels);
        self.main_depth = self.max_depth;
        self
    }
}

/// No stack holds more levels.
fn u32_of(levels: usize) -> u32 {
    u32::try_from(levels).unwrap_or(u32::MAX)
}

/// Options for reading values.
///
/// ```
/// use tenarc::{DecodeOptions, OArchive, Tensor};
///
/// let mut out = OArchive::new(Vec::new())?;
/// out.save(&Tensor(vec![0u8; 5000]))?;
/// let mut bytes = out.finish()?;
/// let middle = bytes.len() / 2;
/// bytes[middle] = 1; // an element of the tensor
///
/// let archive = tenarc::Archive::new(bytes)?;
/// assert!(archive.load::<Tensor<Vec<u8>>>().is_err());
/// let archive = archive.with_options(DecodeOptions::default().with_checksums(false));
/// assert_eq!(archive.load::<Tensor<Vec<u8>>>()?.len(), 5000);
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DecodeOptions {
    pub(crate) limits: Limits,
    pub(crate) checksums: bool,
    /// The number of threads that read a large tensor, if it was set.
    pub(crate) threads: Option<NonZeroUsize>,
}

impl Default for DecodeOptions {
    fn default() -> Self {
        Self { limits: Limits::default(), checksums: true, threads: None }
    }
}

impl DecodeOptions {
    /// Sets the limits on what a document may make the reader do.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether to verify the checksums of tensors when an archive is loaded into owned arrays, or when a slice of a
    /// tensor is read. On by default.
    ///
    /// Checksums of headers are always verified. Tensors that are viewed are only verified by
    /// [`Segment::verify_at`](crate::archive::Segment::verify_at) and
    /// [`Archive::verify`](crate::Archive::verify). For [`Parts`](crate::parts::Parts), the checksums
    /// of tensors are verified when the parts are put together.
    #[must_use]
    pub fn with_checksums(mut self, on: bool) -> Self {
        self.checksums = on;
        self
    }

    /// The limits set by [`with_limits`](Self::with_limits).
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether checksums are verified, as set by [`with_checksums`](Self::with_checksums).
    pub fn checksums(&self) -> bool {
        self.checksums
    }

    /// Sets how many threads read one tensor of an archive. By default, these are as many as the machine has cores, but
    /// at most eight for a compressed tensor, at most four for an uncompressed one of 64 MiB or more, and one for shorter
    /// ones.
    ///
    /// With more than one, tensors of 4 MiB or more are read and verified in pieces by several threads, which end
    /// before the function returns. This pays for large tensors on machines whose memory is faster than one core.
    /// A file that is not in the page cache may be read more slowly by four threads than by one, because the drive gets
    /// requests out of order. [`ReadAhead::open`](crate::io::ReadAhead::open) is as fast with one
    /// thread as with four.
    /// The calling thread alone reads smaller tensors, archives from an [`io::Read`](std::io::Read), and uncompressed
    /// tensors that are in memory and are not verified. Values and errors are the same with any number.
    ///
    /// [`Archive::verify`](crate::Archive::verify) and [`Recovery`](crate::archive::Recovery) use as many threads
    /// as for uncompressed tensors, also for compressed ones: they do not decompress them.
    #[must_use]
    pub fn with_threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }
}

/// Limits on what a document may make the reader do. A document that exceeds one of them gives an
/// error of [`Category::Limit`].
///
/// # Memory
///
/// There is one budget of memory for each value: **64 MiB, plus 64 times the bytes of its input**. Compressed buffers of an
/// archive count 1,024 times their stored bytes instead. [`with_max_alloc`](Self::with_max_alloc) sets a budget that does
/// not depend on the input. A value that needs more is refused with an error that names this method.
///
/// The budget is charged with what is allocated: the room of a `Vec` for its elements, and that of its old block while it
/// grows; maps; the nodes of a [`Value`](crate::Value); texts and byte strings; tensors, and each copy of a tensor to which
/// several fields refer; decompressed bytes; and four bytes for each row of columns that takes no bytes. So a false length
/// in the input never causes a large allocation, and few bytes never become gigabytes.
///
/// | input | its length |
/// |---|---|
/// | a slice | the length of the slice |
/// | an [`io::Read`](std::io::Read) | the bytes of the value that were read so far |
/// | a segment of an archive | its header and its buffers; in an [`IArchive`](crate::IArchive), those that were reached |
/// | a table | the segments that one call reads, together |
///
/// Values of ordinary shapes need far less. For example, a `Vec` of structs needs up to three times the size of the
/// struct for each element. So elements of 1,000 bytes are loaded from rows of 50 bytes and more, in any number. The rows of
/// columns can be much shorter: a million rows of a single bool take 125 kB, and as structs of 200 bytes they take
/// 200 MB, which is more than the budget of 72 MiB. Such a value can be saved, but its reader must set a higher limit.
///
/// tenarc cannot see what a type allocates by itself, such as default values on the heap, or what serde makes of values that
/// it has buffered for `flatten` and untagged enums. A `BTreeSet` with few elements takes more than the room of a `Vec`.
///
/// ```
/// use tenarc::de::{DecodeOptions, Limits, from_slice_with};
/// use tenarc::error::Category;
///
/// let bytes = tenarc::to_vec(&vec!["a text"; 10_000])?;
/// let options = DecodeOptions::default().with_limits(Limits::strict().with_max_alloc(64 << 10));
/// let error = from_slice_with::<Vec<String>>(&bytes, options).unwrap_err();
/// assert_eq!(error.category(), Category::Limit);
/// assert_eq!(tenarc::from_slice::<Vec<String>>(&bytes)?.len(), 10_000);
/// # Ok::<(), tenarc::Error>(())
/// ```
///
/// [`Category::Limit`]: crate::error::Category::Limit
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub(crate) max_depth: usize,
    pub(crate) max_rank: usize,
    /// `None` for the default: see [`Self::memory`].
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
    const LONGEST: u64 = 16 << 30;

    /// Limits for documents from untrusted sources: 64 levels of nesting, 16 dimensions, 64 MiB.
    #[must_use]
    pub fn strict() -> Self {
        Self { max_depth: 64, max_rank: 16, max_alloc: Some(64 << 20) }
    }

    /// The deepest nesting of arrays, maps and tags that is read. 128 by default. Each level uses
    /// stack, so only raise it if the stack is large enough.
    #[must_use]
    pub fn with_max_depth(mut self, levels: usize) -> Self {
        self.max_depth = levels;
        self
    }

    /// The highest number of dimensions of a tensor. 64 by default, as in numpy.
    #[must_use]
    pub fn with_max_rank(mut self, dimensions: usize) -> Self {
        self.max_rank = dimensions;
        self
    }

    /// Sets the [budget of memory](Self#memory) for one value, in bytes. By default, it is 64 MiB plus 64 times the bytes of
    /// the input. With `u64::MAX` there is no limit.
    ///
    /// If the input is in memory, what is borrowed from it is not counted, nor are strings, byte strings and tensors that
    /// are copied from it in one piece. They take at most as many bytes as the input. The first view of each tensor in an
    /// archive is not counted either, but further references to the same tensor are, because a value that is asked for as
    /// a view may be a copy. Shared tensors take no memory.
    #[must_use]
    pub fn with_max_alloc(mut self, bytes: u64) -> Self {
        self.max_alloc = Some(bytes);
        self
    }

    /// The limit set by [`with_max_depth`](Self::with_max_depth).
    pub fn max_depth(&self) -> usize {
        self.max_depth
    }

    /// The limit set by [`with_max_rank`](Self::with_max_rank).
    pub fn max_rank(&self) -> usize {
        self.max_rank
    }

    /// The limit set by [`with_max_alloc`](Self::with_max_alloc). `None` for the default, which depends
    /// on the input.
    pub fn max_alloc(&self) -> Option<u64> {
        self.max_alloc
    }

    /// The number of bytes of memory that are allowed for each byte of input.
    pub(crate) const FACTOR: u64 = 64;

    /// The number of bytes of memory that are allowed for each stored byte of a compressed buffer.
    pub(crate) const PACKED_FACTOR: u64 = 1024;

    /// The budget of memory for input of `plain` bytes and compressed buffers that are stored in `packed` bytes.
    #[inline]
    pub(crate) fn memory(&self, plain: u64, packed: u64) -> u64 {
        const FREE: u64 = 64 << 20;
        let default = || FREE.saturating_add(Self::allowed(plain, packed));
        self.max_alloc.unwrap_or_else(default)
    }

    /// The part of the default budget that the input allows.
    #[inline]
    pub(crate) fn allowed(plain: u64, packed: u64) -> u64 {
        let packed = packed.saturating_mul(Self::PACKED_FACTOR);
        plain.saturating_mul(Self::FACTOR).saturating_add(packed)
    }

    /// The most bytes of a block that the input announces, such as a header, or of the parts of a value.
    pub(crate) fn longest(&self) -> u64 {
        self.max_alloc.unwrap_or(Self::LONGEST)
    }
}
