//! How files and archives are written.

use parquet::basic;
use tenarc::archive::SaveOptions;
use tenarc::io::SyncLevel;

/// How the pages of a Parquet file are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    None,
    /// Snappy, which every reader knows.
    #[default]
    Snappy,
    /// gzip, which takes less room and more time.
    Gzip,
    /// LZ4 as raw blocks, which is fast.
    Lz4,
    /// Zstandard, with a level from 1 to 22: the least room.
    #[cfg(feature = "parquet-zstd")]
    #[cfg_attr(docsrs, doc(cfg(feature = "parquet-zstd")))]
    Zstd(i32),
}

impl Compression {
    #[cfg_attr(not(feature = "parquet-zstd"), allow(clippy::unnecessary_wraps))]
    pub(super) fn codec(self) -> tenarc::Result<basic::Compression> {
        Ok(match self {
            Self::None => basic::Compression::UNCOMPRESSED,
            Self::Snappy => basic::Compression::SNAPPY,
            Self::Gzip => basic::Compression::GZIP(basic::GzipLevel::default()),
            Self::Lz4 => basic::Compression::LZ4_RAW,
            #[cfg(feature = "parquet-zstd")]
            Self::Zstd(level) => {
                basic::Compression::ZSTD(basic::ZstdLevel::try_new(level).map_err(super::failed)?)
            }
        })
    }
}

/// How a Parquet file is written.
///
/// ```
/// use tenarc_convert::parquet::{Compression, Options};
///
/// let options = Options::default().with_table("events").with_compression(Compression::Gzip);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(super) table: Option<String>,
    pub(super) compression: Compression,
    pub(super) rows_per_group: Option<usize>,
    pub(super) accept_losses: bool,
    pub(super) sync: SyncLevel,
}

impl Options {
    /// The name of the table in the archive. It is needed only if the archive has values of several names.
    #[must_use]
    pub fn with_table(mut self, name: impl Into<String>) -> Self {
        self.table = Some(name.into());
        self
    }

    /// How pages are compressed: with [Snappy](Compression::Snappy) by default.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// How many rows go into a row group, one at least. By default, each value of the table becomes a row group. A value of
    /// more than 1,048,576 rows becomes several.
    #[must_use]
    pub fn with_rows_per_group(mut self, rows: usize) -> Self {
        self.rows_per_group = Some(rows.max(1));
        self
    }

    /// Goes on where something cannot be kept, rather than stop. What it was is returned as
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
}

/// How a Parquet file is converted to an archive.
///
/// ```
/// use tenarc_convert::parquet::ArchiveOptions;
///
/// let options = ArchiveOptions::default().with_table("events").with_losses(true);
/// # let _ = options;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ArchiveOptions {
    pub(super) table: Option<String>,
    pub(super) accept_losses: bool,
    pub(super) save: SaveOptions,
}

impl ArchiveOptions {
    /// The name of the table in the archive. By default, it is the name that the table had in the archive that the
    /// file was made of. Other files get their file name without its extension.
    #[must_use]
    pub fn with_table(mut self, name: impl Into<String>) -> Self {
        self.table = Some(name.into());
        self
    }

    /// Goes on where something cannot be kept, rather than stop: decimals become `f64`, and columns of types that
    /// an archive has no counterpart for are left out. What it was is returned as [`Losses`](crate::Losses).
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
