//! Pages that are compressed with Zstandard. The library decompresses them with a library in C. Without the feature
//! `parquet-zstd`, they are decompressed here.

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::Page;
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ColumnChunkMetaData;

use crate::zstd;

/// Pages of so many bytes are decompressed whatever the column states.
const FREE: u64 = 64 << 20;

/// A column whose pages are compressed with Zstandard.
pub struct Zstd {
    /// Its description for the library, which then passes pages on as they are stored.
    pub stored: ColumnChunkMetaData,
    /// The number of bytes of all pages after decompression.
    pub len: u64,
}

/// Returns how to read a column that the library cannot decompress.
pub fn of(chunk: &ColumnChunkMetaData) -> Option<Zstd> {
    if cfg!(feature = "parquet-zstd") || !matches!(chunk.compression(), Compression::ZSTD(_)) {
        return None;
    }
    let stored = chunk.clone().into_builder().set_compression(Compression::UNCOMPRESSED);
    let len = u64::try_from(chunk.uncompressed_size()).unwrap_or(0).max(FREE);
    Some(Zstd { stored: stored.build().ok()?, len })
}

/// Decompresses a page. `left` is the number of bytes that this and further pages may have.
pub fn decompress(page: &mut Page, left: &mut u64) -> Result<()> {
    let (buf, levels) = match page {
        Page::DataPage { buf, .. } | Page::DictionaryPage { buf, .. } => (buf, 0),
        Page::DataPageV2 { is_compressed: false, .. } => return Ok(()),
        // The levels before the values are never compressed.
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            (buf, u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len))
        }
    };
    let levels = usize::try_from(levels).unwrap_or(usize::MAX);
    let failed = |what: &str| ParquetError::General(format!("a page {what}"));
    let (levels, packed) = buf.split_at_checked(levels).ok_or_else(|| failed("is cut off"))?;
    let mut bytes = levels.to_vec();
    let most = usize::try_from(*left).unwrap_or(usize::MAX);
    zstd::frames(packed, most, &mut bytes).map_err(failed)?;
    *left -= bytes.len() as u64;
    *buf = Bytes::from(bytes);
    Ok(())
}
