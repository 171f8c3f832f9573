//! How files and archives are written.

use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;

use crate::exported::Metadata;
use crate::nested::Names;

/// How tensors are laid out in columns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// In rows, if all tensors have the same first dimension; else in one row.
    #[default]
    Auto,
    /// Each tensor is a column of its rows: along its first dimension.
    Rows,
    /// Each tensor is whole in the cell of a single row, whatever its dimensions. `tenarc.layout` in the
    /// metadata says so, so that the same tensors are read back.
    OneRow,
}

/// The containers of Arrow's IPC format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// A file, which ends with a list of its batches: `.arrow`, also known as version 2 of `.feather`.
    File,
    /// A stream: `.arrows`.
    Stream,
}

/// How Arrow's files and streams are written.
///
/// ```
/// use ndarray::{Array1, Array2};
/// use tenarc::tensor::ToTensor;
/// use tenarc_convert::arrow::{self, ArrowFile, Format, Options};
///
/// let (x, y) = (Array2::<f32>::zeros((1000, 28)), Array1::<u8>::zeros(1000));
/// let options = Options::default().with_format(Format::File).with_rows_per_batch(256);
/// let mut bytes = Vec::new();
/// let columns: [(&str, &dyn ToTensor); 2] = [("x", &x), ("y", &y)];
/// arrow::to_writer_with(&mut bytes, &columns, &options)?;
/// let file = ArrowFile::new(bytes)?;
/// assert_eq!((file.rows(), file.info("x")?.shape()), (1000, &[1000, 28][..]));
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(super) metadata: Option<Metadata>,
    pub(super) accept_losses: bool,
    pub(super) sync: SyncLevel,
    pub(super) layout: Layout,
    pub(super) format: Option<Format>,
    pub(super) rows_per_batch: Option<usize>,
}

impl Options {
    /// Texts that belong to the schema, in the order given.
    #[must_use]
    pub fn with_metadata<K: Into<String>, V: Into<String>>(
        mut self,
        metadata: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let texts = metadata.into_iter().map(|(key, text)| (key.into(), text.into()));
        self.metadata = Some(texts.collect());
        self
    }

    /// Goes on where something cannot be kept, rather than stop: in rows, column-major tensors are written in
    /// row-major order, for which each is in memory twice; elements of bf16 and FP8 become those of f32; tensors of
    /// other dtypes that Arrow has not are left out, and so is all that is no tensor. What it was is returned as
    /// [`Losses`](crate::Losses).
    #[must_use]
    pub fn with_losses(mut self, accepted: bool) -> Self {
        self.accept_losses = accepted;
        self
    }

    /// How far a save of a file goes to survive a crash of the machine.
    #[must_use]
    pub fn with_sync(mut self, level: SyncLevel) -> Self {
        self.sync = level;
        self
    }

    /// How tensors are laid out in columns.
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = layout;
        self
    }

    /// Whether a file or a stream is written. By default, a save to a name that ends in `.arrows` writes a stream
    /// and any other a file; to a writer, a stream is written.
    #[must_use]
    pub fn with_format(mut self, format: Format) -> Self {
        self.format = Some(format);
        self
    }

    /// How many rows go into a record batch, one at least; by default, all go into one. Tensors that do not
    /// lie in memory as they are written are fetched once for each batch.
    #[must_use]
    pub fn with_rows_per_batch(mut self, rows: usize) -> Self {
        self.rows_per_batch = Some(rows.max(1));
        self
    }
}

/// How a file is converted to an archive.
///
/// ```
/// use tenarc_convert::arrow::{ArchiveOptions, Names};
///
/// let options = ArchiveOptions::default().with_names(Names::Nested).with_losses(true);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ArchiveOptions {
    pub(super) names: Names,
    pub(super) accept_losses: bool,
    pub(super) save: SaveOptions,
}

impl ArchiveOptions {
    /// How names are taken into the archive.
    #[must_use]
    pub fn with_names(mut self, names: Names) -> Self {
        self.names = names;
        self
    }

    /// Whether what is no tensor, no text and no byte string may be left out; off by default. What it was is
    /// returned as [`Losses`](crate::Losses).
    #[must_use]
    pub fn with_losses(mut self, accepted: bool) -> Self {
        self.accept_losses = accepted;
        self
    }

    /// How the archive is written. It has checksums, whatever these options say.
    #[must_use]
    pub fn with_save(mut self, options: SaveOptions) -> Self {
        self.save = options;
        self
    }
}
