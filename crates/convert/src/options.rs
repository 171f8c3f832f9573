//! Options for reading and writing files and archives.

use tenarc::archive::SaveOptions;
use tenarc::de::Limits;
use tenarc::io::SyncLevel;

use crate::Names;
use crate::exported::Metadata;

/// Options of a conversion. A format ignores options that do not apply to it.
///
/// ```
/// # #[cfg(feature = "msgpack")]
/// # fn main() -> tenarc::Result<()> {
/// use tenarc_convert::{Options, msgpack};
/// use tenarc::Value;
///
/// let wide = Value::Integer(1 << 100);
/// assert!(msgpack::write(Vec::new(), &wide).is_err());
/// let mut bytes = Vec::new();
/// let lost = msgpack::write_with(&mut bytes, &wide, &Options::default().with_losses(true))?;
/// assert_eq!(lost.count(), 1);
/// # Ok(())
/// # }
/// # #[cfg(not(feature = "msgpack"))]
/// # fn main() {}
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) names: Names,
    pub(crate) accept_losses: bool,
    pub(crate) save: SaveOptions,
    pub(crate) limits: Limits,
    pub(crate) metadata: Option<Metadata>,
    pub(crate) external: bool,
    #[cfg(feature = "json")]
    pub(crate) lines: bool,
    #[cfg(feature = "npy")]
    pub(crate) void: Vec<tenarc::DType>,
    #[cfg(feature = "npy")]
    pub(crate) compression: crate::npy::options::Compression,
    #[cfg(feature = "arrow")]
    pub(crate) layout: crate::arrow::options::Layout,
    #[cfg(feature = "arrow")]
    pub(crate) container: Option<crate::arrow::options::Container>,
    #[cfg(feature = "arrow")]
    pub(crate) rows_per_batch: Option<usize>,
    #[cfg(any(feature = "arrow", feature = "parquet"))]
    pub(crate) table: Option<String>,
    #[cfg(feature = "parquet")]
    pub(crate) page_compression: crate::parquet::options::Compression,
    #[cfg(feature = "parquet")]
    pub(crate) rows_per_group: Option<usize>,
}

impl Options {
    /// Sets whether names of tensors are split at their dots. By default, they are split if the file says that it was
    /// written from a nested value.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Sets whether a conversion goes on if something cannot be kept. By default, it stops. If it goes on, it returns
    /// what was lost as [`Losses`](crate::Losses).
    ///
    /// What can be lost depends on the format:
    ///
    /// - Column-major tensors are written in row-major order. All of such a tensor is in memory meanwhile, for some
    ///   formats twice.
    /// - If the format does not have the dtype of a tensor, the elements get another dtype, or the tensor is left out.
    /// - Values that are not tensors are left out.
    /// - Decimals of a Parquet file become `f64`.
    #[must_use]
    pub fn with_losses(mut self, accepted: bool) -> Self {
        self.accept_losses = accepted;
        self
    }

    /// Sets how an archive is written. The archive always has checksums, even if these options turn them off. The level
    /// that [`SaveOptions::with_sync`] sets applies to files of other formats, too.
    #[must_use]
    pub fn with_save(mut self, options: SaveOptions) -> Self {
        self.save = options;
        self
    }

    /// Sets what is synced to the disk when a file is saved, so that it survives a crash of the machine.
    #[must_use]
    pub fn with_sync(mut self, level: SyncLevel) -> Self {
        self.save = self.save.with_sync(level);
        self
    }

    /// Sets limits for reading: the memory of each value or tensor, the number of dimensions, and the depth of nesting.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the keys and texts that are written to the metadata of a safetensors or Arrow file, in this order. They
    /// replace those that a value has under `__metadata__`.
    #[must_use]
    pub fn with_metadata<K: Into<String>, V: Into<String>>(
        mut self,
        metadata: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let texts = metadata.into_iter().map(|(key, text)| (key.into(), text.into()));
        self.metadata = Some(texts.collect());
        self
    }

    /// Sets whether tensors of an ONNX model are also read from other files, which must be in the directory of the
    /// model or below. The model then decides which of these files are read. Off by default.
    #[must_use]
    pub fn with_external(mut self, on: bool) -> Self {
        self.external = on;
        self
    }

    /// Sets how arrays are stored in an npz file.
    #[cfg(feature = "npy")]
    #[must_use]
    pub fn with_compression(mut self, compression: crate::npy::options::Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Sets the name of the table in the archive, for Parquet and Arrow.
    ///
    /// - A conversion from an archive needs it only if the values of the archive have several names.
    /// - A conversion to an archive gives this name to the table. By default, the table gets the name that it had in
    ///   the archive from which the file was written. If the file does not say it, the table gets the file name without
    ///   its extension.
    ///
    /// If this is set, an Arrow file is always converted as a table, even if all of its columns are tensors.
    #[cfg(any(feature = "arrow", feature = "parquet"))]
    #[must_use]
    pub fn with_table(mut self, name: impl Into<String>) -> Self {
        self.table = Some(name.into());
        self
    }

    /// Sets the dtype of raw elements in npy and npz files: elements of numpy's type void, for example `V2`. It applies
    /// to raw elements that have the same size as those of the dtype.
    ///
    /// numpy saves the bfloat16 and FP8 arrays of `ml_dtypes` and JAX as raw elements, so a file does not say which
    /// dtype they had. If this is called several times, the first dtype of the right size is used. By default, such
    /// arrays are not read.
    #[cfg(feature = "npy")]
    #[must_use]
    pub fn with_void(mut self, dtype: tenarc::DType) -> Self {
        self.void.push(dtype);
        self
    }

    /// Sets whether JSON gets a line for each row of a table: of an array whose elements are all maps. A file whose name ends
    /// in `.jsonl` or `.ndjson` gets lines in any case.
    #[cfg(feature = "json")]
    #[must_use]
    pub fn with_lines(mut self, on: bool) -> Self {
        self.lines = on;
        self
    }

    pub(crate) fn sync(&self) -> SyncLevel {
        self.save.sync()
    }
}

/// Options for files and streams of Arrow.
///
/// ```
/// use ndarray::{Array1, Array2};
/// use tenarc::tensor::ToTensor;
/// use tenarc_convert::Options;
/// use tenarc_convert::arrow::{self, ArrowFile, Container};
///
/// let (x, y) = (Array2::<f32>::zeros((1000, 28)), Array1::<u8>::zeros(1000));
/// let options = Options::default().with_container(Container::File).with_rows_per_batch(256);
/// let mut bytes = Vec::new();
/// let columns: [(&str, &dyn ToTensor); 2] = [("x", &x), ("y", &y)];
/// arrow::to_writer_with(&mut bytes, &columns, &options)?;
/// let file = ArrowFile::new(bytes)?;
/// assert_eq!((file.rows(), file.info("x")?.shape()), (1000, &[1000, 28][..]));
/// # Ok::<(), tenarc::Error>(())
/// ```
#[cfg(feature = "arrow")]
impl Options {
    /// Sets the way in which tensors become columns. The default is [`Layout::Auto`](crate::arrow::Layout::Auto).
    #[must_use]
    pub fn with_layout(mut self, layout: crate::arrow::options::Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Sets whether a file or a stream is written. By default, the name decides: a stream is saved if it ends in
    /// `.arrows`, a file otherwise. A writer gets a stream by default.
    #[must_use]
    pub fn with_container(mut self, container: crate::arrow::options::Container) -> Self {
        self.container = Some(container);
        self
    }

    /// Sets the number of rows in a record batch, which is at least one. By default, tensors are written as one batch.
    /// A tensor that is not in memory in the form in which it is written is read again for each batch.
    #[must_use]
    pub fn with_rows_per_batch(mut self, rows: usize) -> Self {
        self.rows_per_batch = Some(rows.max(1));
        self
    }
}

/// Options for Parquet files.
///
/// ```
/// use tenarc_convert::Options;
/// use tenarc_convert::parquet::Compression;
///
/// let options = Options::default().with_table("events").with_page_compression(Compression::Gzip);
/// # let _ = options;
/// ```
#[cfg(feature = "parquet")]
impl Options {
    /// Sets how the pages of a Parquet file are compressed. The default is [Snappy](crate::parquet::Compression::Snappy).
    #[must_use]
    pub fn with_page_compression(
        mut self,
        compression: crate::parquet::options::Compression,
    ) -> Self {
        self.page_compression = compression;
        self
    }

    /// Sets the number of rows in a row group, which is at least one. By default, each value of the table becomes a row
    /// group, or several if it has more than 1,048,576 rows.
    #[must_use]
    pub fn with_rows_per_group(mut self, rows: usize) -> Self {
        self.rows_per_group = Some(rows.max(1));
        self
    }
}
