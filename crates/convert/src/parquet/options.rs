//! Options for writing Parquet files.

use parquet::basic;

use crate::Options;

/// The codec that compresses the pages of a Parquet file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Pages are not compressed.
    None,
    /// Snappy, which all readers support.
    #[default]
    Snappy,
    /// gzip, which makes smaller files than Snappy and takes more time.
    Gzip,
    /// LZ4 in raw blocks, which is fast.
    Lz4,
    /// Zstandard, which makes the smallest files, with a level from 1 to 22.
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
            Self::Zstd(level) => basic::Compression::ZSTD(
                basic::ZstdLevel::try_new(level).map_err(super::not_written)?,
            ),
        })
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
impl Options {
    /// Sets how the pages of a Parquet file are compressed. The default is [Snappy](Compression::Snappy).
    #[must_use]
    pub fn with_page_compression(mut self, compression: Compression) -> Self {
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
