//! How files are written.

use parquet::basic;

use crate::Options;

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

/// For Parquet files.
///
/// ```
/// use tenarc_convert::Options;
/// use tenarc_convert::parquet::Compression;
///
/// let options = Options::default().with_table("events").with_page_compression(Compression::Gzip);
/// # let _ = options;
/// ```
impl Options {
    /// How the pages of a Parquet file are compressed: with [Snappy](Compression::Snappy) by default.
    #[must_use]
    pub fn with_page_compression(mut self, compression: Compression) -> Self {
        self.page_compression = compression;
        self
    }

    /// How many rows go into a row group, one at least. By default, each value of the table becomes a row group. A value of
    /// more than 1,048,576 rows becomes several.
    #[must_use]
    pub fn with_rows_per_group(mut self, rows: usize) -> Self {
        self.rows_per_group = Some(rows.max(1));
        self
    }
}
