//! What the options for writing Parquet files choose from.

use parquet::basic;

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
                basic::ZstdLevel::try_new(level).map_err(super::error::not_written)?,
            ),
        })
    }
}
