//! Options for writing archives and parts.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use super::ext::Ext;
use super::format;
use crate::codec::{self, Codec, Encoder};
use crate::error::{Error, Result};
use crate::io::atomic::SyncLevel;
use crate::io::chunks::ChunkLen;
use crate::io::parallel;
use crate::options::ColumnChoice;
use crate::tensor::TensorInfo;
use crate::wire::statistics::StatisticsBuilder;

/// The user's function for [`SaveOptions::with_out_of_band`].
type Chooser = Arc<dyn Fn(&TensorInfo) -> bool + Send + Sync>;
/// The user's function for [`SaveOptions::with_compression_by`].
type Compress = dyn Fn(&TensorInfo) -> Option<Compression> + Send + Sync;

/// How tensors are compressed: see [`SaveOptions::with_compression`].
///
/// ```
/// use tenarc::archive::{Compression, SaveOptions};
///
/// let save = |compression| {
///     let options = SaveOptions::default().with_compression(compression);
///     let mut out = tenarc::OArchive::with_options(Vec::new(), options)?;
///     out.save(&vec![0.5f32; 10_000])?;
///     out.finish()
/// };
/// assert!(save(Compression::zstd())?.len() < save(Compression::none())?.len());
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression(Option<(Codec, i32)>);

impl Compression {
    /// Tensors are stored as they are. The default.
    pub fn none() -> Self {
        Self(None)
    }

    /// The codec `zstd`, for weights and nearly everything else. The encoder is the one of this crate, which writes the
    /// same bytes in every build.
    pub fn zstd() -> Self {
        Self::with(Codec::Zstd)
    }

    /// The codec `zstd` with a level of zstd's library, from fast ones below 0 to 22. They are for data that repeats
    /// itself: of weights, they save hardly more than [`zstd`](Self::zstd), which is level 0. Other levels need the
    /// feature `zstd`.
    pub fn zstd_level(level: i32) -> Self {
        Self(Some((Codec::Zstd, level)))
    }

    /// The codec `lz4`, for data that repeats itself, if speed matters most. Weights hardly shrink.
    pub fn lz4() -> Self {
        Self::with(Codec::Lz4)
    }

    /// This codec with its default level.
    pub(crate) fn with(codec: Codec) -> Self {
        Self(Some((codec, 0)))
    }

    /// The codec and its level.
    pub(crate) fn codec(self) -> Option<(Codec, i32)> {
        self.0
    }

    /// Whether this build can write it.
    fn check(self) -> Result<()> {
        let (Some((codec, level)), Some(layout)) = (self.0, codec::Layout::new(1, false)) else {
            return Ok(());
        };
        let encoder = Encoder::new(codec, layout, level);
        encoder.map(drop).map_err(|error| Error::unsupported(error.to_string()))
    }
}

/// Options for writing archives and parts.
///
/// ```
/// let options = tenarc::archive::SaveOptions::default().with_alignment(4096).with_dedup(true);
/// let mut out = tenarc::OArchive::with_options(Vec::new(), options)?;
/// out.save(&vec![0.5f32; 1000])?;
/// # out.finish()?;
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone)]
pub struct SaveOptions {
    pub(crate) alignment: u64,
    pub(crate) inline_below: usize,
    pub(crate) chooser: Option<Chooser>,
    pub(crate) checksums: bool,
    /// The length of chunks, or the number that was given if it is not a valid length.
    chunk_len: std::result::Result<ChunkLen, u64>,
    pub(crate) dedup: bool,
    pub(crate) columns: Option<bool>,
    /// `None` if the caller has not chosen. Then a value that is copied keeps those that it has.
    statistics: Option<bool>,
    pub(crate) sync: SyncLevel,
    /// `None` if the caller has not chosen. Then tensors that are compressed already stay compressed.
    compression: Option<Compression>,
    compressing: Option<Arc<Compress>>,
    threads: Option<NonZeroUsize>,
    notes: BTreeMap<String, String>,
    /// The extensions of the header: the notes, if these are not too long.
    pub(crate) ext: Ext,
}

impl Default for SaveOptions {
    fn default() -> Self {
        Self {
            alignment: format::DEFAULT_ALIGNMENT,
            inline_below: 2048,
            chooser: None,
            checksums: true,
            chunk_len: Ok(ChunkLen::default()),
            dedup: false,
            columns: None,
            statistics: None,
            sync: SyncLevel::Full,
            compression: None,
            compressing: None,
            threads: None,
            notes: BTreeMap::new(),
            ext: Ext::default(),
        }
    }
}

impl fmt::Debug for SaveOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaveOptions")
            .field("alignment", &self.alignment)
            .field("inline_below", &self.inline_below)
            .field("checksums", &self.checksums)
            .field("chunk_len", &self.chunk_len.map(ChunkLen::get))
            .field("dedup", &self.dedup)
            .field("columns", &self.columns)
            .field("statistics", &self.statistics)
            .field("sync", &self.sync)
            .field("compression", &self.compression)
            .finish_non_exhaustive()
    }
}

impl SaveOptions {
    /// The same options for a copy in memory, which is saved with these later: nothing is hashed or compressed.
    pub(crate) fn for_copy(&self) -> Self {
        let (compression, compressing) = (None, None);
        Self { checksums: false, dedup: false, compression, compressing, ..self.clone() }
    }

    /// Sets the alignment of every buffer in bytes: a power of two from 8 to 65,536. The default, 256, is
    /// enough for GPU libraries and SIMD code. With 4,096 every buffer starts on a page, so that it can
    /// be mapped by itself or read with direct I/O.
    ///
    /// Any other number is an error in the function that takes the options.
    #[must_use]
    pub fn with_alignment(mut self, bytes: u64) -> Self {
        self.alignment = bytes;
        self
    }

    /// Sets the number of bytes from which a payload gets its own buffer; 2,048 by default. Smaller payloads
    /// are stored inline in the metadata, without alignment. Tensors without elements are always inline.
    #[must_use]
    pub fn with_inline_below(mut self, bytes: usize) -> Self {
        self.inline_below = bytes;
        self
    }

    /// Sets a function that decides for each tensor whether it goes to a buffer (`true`) or stays
    /// inline (`false`). It replaces [`with_inline_below`](Self::with_inline_below).
    ///
    /// The function gets the path, dtype, shape, order and byte length of the tensor. It is called once for
    /// each tensor of at least one byte, in the order of the value's fields. It is also called for byte
    /// strings (`serde_bytes`) and for sequences that could be one block of numbers, as tensors of one
    /// dimension. A sequence that turns out to contain anything else stays inline whatever the answer was.
    ///
    /// The path is the one that the archive lists later, with one exception: if a map key contains dots,
    /// its path can look like the path through another key, and two tensors then get the same path here.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    ///
    /// use tenarc::Tensor;
    /// use tenarc::archive::SaveOptions;
    ///
    /// // Every second array, and all of the optimizer's.
    /// let asked = AtomicUsize::new(0);
    /// let options = SaveOptions::default().with_out_of_band(move |tensor| {
    ///     tensor.path().starts_with("optimizer.") || asked.fetch_add(1, Ordering::Relaxed) % 2 == 1
    /// });
    /// let arrays = vec![Tensor(vec![0.5f32; 4]); 5];
    /// let parts = tenarc::parts::to_parts_with(&arrays, options)?;
    /// assert_eq!(parts.buffers().len(), 2);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    #[must_use]
    pub fn with_out_of_band(
        mut self,
        choose: impl Fn(&TensorInfo) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.chooser = Some(Arc::new(choose));
        self
    }

    /// Adds a note to the header of each saved value: who wrote it, a title, the name of a schema. A note with the same
    /// key is replaced. [`Segment::notes`](crate::archive::Segment::notes) returns them. They are not part of the value, and do
    /// not change its [digest](crate::archive::Segment::digest).
    ///
    /// All notes together may have at most 64 KiB. More is an error in the function that takes the options.
    ///
    /// ```
    /// use tenarc::archive::SaveOptions;
    /// use tenarc::{Archive, OArchive};
    ///
    /// let options = SaveOptions::default().with_note("title", "layer sizes");
    /// let mut out = OArchive::with_options(Vec::new(), options)?;
    /// out.save(&[784, 128, 10])?;
    /// let archive = Archive::new(out.finish()?)?;
    /// assert_eq!(archive.only()?.notes()["title"], "layer sizes");
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    #[must_use]
    pub fn with_note(mut self, key: impl Into<String>, note: impl Into<String>) -> Self {
        self.notes.insert(key.into(), note.into());
        self.ext = Ext::of_notes(&self.notes).unwrap_or_default();
        self
    }

    /// Whether buffers get checksums, one for each chunk; on by default. Headers always have one.
    #[must_use]
    pub fn with_checksums(mut self, on: bool) -> Self {
        self.checksums = on;
        self
    }

    /// Sets the length in bytes of the chunks into which buffers are split for their checksums; 1 MiB by default.
    ///
    /// A slice of a tensor is verified by reading the chunks that it touches. With shorter chunks, small slices read
    /// less, and damage is found more precisely. Each chunk takes 8 bytes in the archive.
    ///
    /// The length must be a power of two from 64 KiB to 1 GiB. Any other number is an error in the function that
    /// takes the options.
    #[must_use]
    pub fn with_chunk_len(mut self, bytes: u64) -> Self {
        self.chunk_len = ChunkLen::new(bytes).ok_or(bytes);
        self
    }

    /// Whether buffers with equal bytes in one saved value are stored once, as for tied weights. Off
    /// by default, because it reads every payload once more. After loading, every field has its own copy.
    #[must_use]
    pub fn with_dedup(mut self, on: bool) -> Self {
        self.dedup = on;
        self
    }

    /// Whether sequences of structs, tuples and enums are written as columns, so that each field of all
    /// rows is one buffer. See [`EncodeOptions::with_columns`](crate::ser::EncodeOptions::with_columns).
    ///
    /// By default they are, with these exceptions, so that every tensor has a path and is listed:
    /// - Fewer than 256 rows with tensors, such as the layers of a model. The tensors of each row are listed by
    ///   themselves. But a sequence that is the whole value is written as columns, because it may be part of a
    ///   [`Table`](crate::archive::Table).
    /// - Rows with tensors in options, enums, sequences or maps, or with tensors of different shapes.
    /// - All sequences, if [`with_out_of_band`](Self::with_out_of_band) has set a function.
    ///
    /// `true` writes such sequences as columns, too. Then the tensors in options and the like are not listed, but the
    /// path through a row still leads to each: `log.3.image`.
    #[must_use]
    pub fn with_columns(mut self, on: bool) -> Self {
        self.columns = Some(on);
        self
    }

    /// Whether the least and the greatest value of each column are stored with each group of rows; off by default.
    /// [`Table::filter`](crate::archive::Table::filter) then does not read groups in which no row can meet the
    /// condition.
    ///
    /// Use it for logs and other tables whose rows are in an order: a filter for an hour then reads the groups of this hour.
    /// Saving takes some percent longer, most of it for texts.
    ///
    /// Only sequences that are the whole value, are stored as columns and have at least 1,024 rows get statistics. They
    /// take some dozens of bytes for each column and group, and at most 64 KiB. They are not part of the value, and do
    /// not change its [digest](crate::archive::Segment::digest). A whole value that is saved again as it is
    /// [stored](crate::archive::Segment::stored) keeps those that it has, unless this is `false`.
    ///
    /// ```
    /// use tenarc::archive::{SaveOptions, col};
    /// use tenarc::{Archive, OArchive};
    ///
    /// # #[derive(serde::Serialize)]
    /// # struct Event { time: u64, size: f32 }
    /// let events: Vec<Event> = (0..200_000).map(|time| Event { time, size: 0.5 }).collect();
    /// let mut out = OArchive::with_options(Vec::new(), SaveOptions::default().with_statistics(true))?;
    /// out.save_as("events", &events)?;
    /// let archive = Archive::new(out.finish()?)?;
    /// // Reads the last of four groups.
    /// assert_eq!(archive.table("events")?.filter(col("time").gt_eq(199_000)).count()?, 1000);
    /// # Ok::<(), tenarc::Error>(())
    /// ```
    #[must_use]
    pub fn with_statistics(mut self, on: bool) -> Self {
        self.statistics = Some(on);
        self
    }

    /// Compresses the tensors, byte strings and columns that go to buffers. By default, nothing is compressed.
    ///
    /// Each chunk is compressed by itself ([`with_chunk_len`](Self::with_chunk_len)), so that slices of compressed
    /// tensors are read as before. But compressed tensors cannot be viewed or shared, because their bytes are not in
    /// the archive. A tensor that does not become shorter by 1/32 at least is stored as it is.
    ///
    /// The compressed bytes of a value are in memory while it is saved, and its tensors are serialized once more.
    /// [`parts`](crate::parts) are not compressed.
    ///
    /// ```
    /// use tenarc::archive::{Compression, SaveOptions};
    /// use tenarc::{Archive, OArchive, Tensor};
    ///
    /// # fn main() -> tenarc::Result<()> {
    /// # if cfg!(not(feature = "compression")) { return Ok(()) }
    /// let weights = Tensor(vec![0.5f32; 10_000]);
    /// let options = SaveOptions::default().with_compression(Compression::zstd());
    /// let mut out = OArchive::with_options(Vec::new(), options)?;
    /// out.save(&weights)?;
    /// let bytes = out.finish()?;
    /// assert!(bytes.len() < 1000);
    /// assert_eq!(Archive::new(bytes)?.load::<Tensor<Vec<f32>>>()?, weights);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A build without the feature `compression` cannot write or read compressed tensors. Using such a codec or level
    /// is an error in the function that takes the options.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self.compressing = None;
        self
    }

    /// Sets a function that decides for each buffer how it is compressed. `None` stores it as it is.
    ///
    /// The function gets the first tensor that refers to the buffer, with its path, dtype, shape and byte length. If
    /// the buffer holds a column, the path is that of the sequence. The function is called once for each buffer, in
    /// their order.
    ///
    /// ```
    /// use tenarc::archive::{Compression, SaveOptions};
    ///
    /// // The moments of the optimizer, but not the weights, which are to be mapped.
    /// let options = SaveOptions::default().with_compression_by(|tensor| {
    ///     tensor.path().starts_with("optimizer.").then(Compression::zstd)
    /// });
    /// # drop(options);
    /// ```
    #[must_use]
    pub fn with_compression_by(
        mut self,
        choose: impl Fn(&TensorInfo) -> Option<Compression> + Send + Sync + 'static,
    ) -> Self {
        self.compressing = Some(Arc::new(choose));
        self
    }

    /// Sets how many threads compress a tensor. By default, as many as the machine has cores, but at most eight.
    ///
    /// The bytes written are the same with any number. The threads end before the function that saves returns. Tensors
    /// of one chunk, and tensors that are not compressed, use only the calling thread.
    #[must_use]
    pub fn with_threads(mut self, threads: NonZeroUsize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// How many threads compress.
    pub(crate) fn threads(&self) -> usize {
        parallel::one_a_core(self.threads)
    }

    /// Whether buffers may be compressed.
    pub(crate) fn compresses(&self) -> bool {
        self.compressing.is_some() || self.compression.unwrap_or_default() != Compression::none()
    }

    /// Whether tensors that are compressed already stay as they are.
    pub(crate) fn keeps_compressed(&self) -> bool {
        self.compressing.is_none() && self.compression.is_none()
    }

    /// How buffers are compressed if no function decides it.
    pub(crate) fn compression(&self) -> Compression {
        self.compression.unwrap_or_default()
    }

    /// The function that decides how a buffer is compressed.
    pub(crate) fn chosen_compression(&self) -> Option<&Compress> {
        self.compressing.as_deref()
    }

    /// Whether a saved file is synced to disk, to survive a crash of the machine. Has no effect on
    /// writers that are not files.
    #[must_use]
    pub fn with_sync(mut self, level: SyncLevel) -> Self {
        self.sync = level;
        self
    }

    /// The level set by [`with_sync`](Self::with_sync).
    pub fn sync(&self) -> SyncLevel {
        self.sync
    }

    /// Computes statistics, unless [`with_statistics`](Self::with_statistics) was called.
    pub(crate) fn with_statistics_by_default(mut self) -> Self {
        self.statistics.get_or_insert(true);
        self
    }

    /// What collects the statistics of columns. `None` if there must be none.
    pub(crate) fn statistics(&self) -> Option<StatisticsBuilder> {
        let are_computed = self.statistics == Some(true);
        (self.statistics != Some(false)).then(|| StatisticsBuilder::new(are_computed))
    }

    pub(crate) fn columns(&self) -> ColumnChoice {
        match self.columns {
            Some(on) => ColumnChoice::all_if(on),
            None if self.chooser.is_some() => ColumnChoice::None,
            None => ColumnChoice::Listed,
        }
    }

    /// The length of chunks. [`check`](Self::check) must have been called.
    pub(crate) fn chunk_len(&self) -> ChunkLen {
        self.chunk_len.unwrap_or_default()
    }

    pub(crate) fn check(&self) -> Result<()> {
        if let Err(found) = self.chunk_len {
            return Err(Error::limit(ChunkLen::expected(found)));
        }
        self.compression.unwrap_or_default().check()?;
        Ext::of_notes(&self.notes)?;
        let range = format::MIN_ALIGNMENT..=format::MAX_ALIGNMENT;
        if self.alignment.is_power_of_two() && range.contains(&self.alignment) {
            return Ok(());
        }
        Err(Error::limit(format!(
            "expected an alignment that is a power of two from {} to {}, found {}",
            format::MIN_ALIGNMENT,
            format::MAX_ALIGNMENT,
            self.alignment
        )))
    }
}
