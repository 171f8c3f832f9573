//! Reads the pages of a row group, and checks lengths that the library trusts.

use std::sync::Arc;

use parquet::arrow::arrow_reader::RowGroups;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, SerializedPageReader};
use parquet::schema::types::ColumnDescPtr;

use super::zstd;

/// One row group of a file.
pub struct Group<R> {
    pub source: Arc<R>,
    pub metadata: Arc<ParquetMetaData>,
    pub number: usize,
}

impl<R: ChunkReader + 'static> RowGroups for Group<R> {
    fn num_rows(&self) -> usize {
        usize::try_from(self.metadata.row_group(self.number).num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, column: usize) -> Result<Box<dyn PageIterator>> {
        let group = self.metadata.row_group(self.number);
        let chunk = group.column(column);
        let source = Arc::clone(&self.source);
        let zstd = zstd::of(chunk);
        let chunk = zstd.as_ref().map_or(chunk, |zstd| &zstd.stored);
        let pages = SerializedPageReader::new(source, chunk, self.num_rows(), None)?;
        let left = zstd.as_ref().map(|zstd| zstd.len);
        let checked = Checked { pages, column: chunk.column_descr_ptr(), left };
        Ok(Box::new(Once(Some(Box::new(checked)))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata.row_group(self.number)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}

/// The pages of a column in one row group, as an iterator of one item.
struct Once(Option<Box<dyn PageReader>>);

impl Iterator for Once {
    type Item = Result<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(Ok)
    }
}

impl PageIterator for Once {}

struct Checked<R: ChunkReader> {
    pages: SerializedPageReader<R>,
    column: ColumnDescPtr,
    /// The number of bytes that further pages may have, if they are to be decompressed here.
    left: Option<u64>,
}

impl<R: ChunkReader> Iterator for Checked<R> {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl<R: ChunkReader> PageReader for Checked<R> {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let mut page = self.pages.get_next_page()?;
        if let (Some(page), Some(left)) = (&mut page, &mut self.left) {
            zstd::decompress(page, left)?;
        }
        if let Some(page) = &page {
            check(page, &self.column).ok_or_else(|| {
                let column = self.column.path().string();
                let what = format!("a page of column `{column}` claims more than it holds");
                ParquetError::General(what)
            })?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.pages.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.pages.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.pages.at_record_boundary()
    }
}

/// Checks the lengths of texts that are stored as differences. The library allocates memory for as many lengths as a
/// page states. Returns `None` if the page does not hold so many.
fn check(page: &Page, column: &ColumnDescPtr) -> Option<()> {
    let encoding = match page {
        Page::DataPage { encoding, .. } | Page::DataPageV2 { encoding, .. } => *encoding,
        Page::DictionaryPage { .. } => return Some(()),
    };
    let times = match encoding {
        // The lengths of prefixes are followed by those of suffixes.
        Encoding::DELTA_BYTE_ARRAY => 2,
        Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
        _ => return Some(()),
    };
    let mut bytes = values(page, column)?;
    let most = u64::from(page.num_values());
    (0..times).try_for_each(|_| differences(&mut bytes, most))
}

/// Returns the bytes after the repetition and definition levels of a data page.
fn values<'a>(page: &'a Page, column: &ColumnDescPtr) -> Option<&'a [u8]> {
    match page {
        Page::DataPage { buf, num_values, rep_level_encoding, def_level_encoding, .. } => {
            let mut bytes = &buf[..];
            for (most, encoding) in [
                (column.max_rep_level(), rep_level_encoding),
                (column.max_def_level(), def_level_encoding),
            ] {
                let bits = u64::from(i16::BITS - most.leading_zeros());
                let len = match encoding {
                    _ if bits == 0 => continue,
                    Encoding::RLE => {
                        let (len, rest) = bytes.split_first_chunk()?;
                        bytes = rest;
                        u64::from(u32::from_le_bytes(*len))
                    }
                    _ => (u64::from(*num_values) * bits).div_ceil(8),
                };
                bytes = bytes.get(usize::try_from(len).ok()?..)?;
            }
            Some(bytes)
        }
        Page::DataPageV2 { buf, def_levels_byte_len, rep_levels_byte_len, .. } => {
            let levels = u64::from(*def_levels_byte_len) + u64::from(*rep_levels_byte_len);
            buf.get(usize::try_from(levels).ok()?..)
        }
        Page::DictionaryPage { .. } => None,
    }
}

/// The most numbers that a block may have. Writers make blocks of 128 to 2,048.
const MAX_BLOCK: u64 = 1 << 15;

/// Skips integers in the encoding `DELTA_BINARY_PACKED`. Returns `None` if their header states more than `most`
/// integers, or more than there are.
fn differences(bytes: &mut &[u8], most: u64) -> Option<()> {
    let block = varint(bytes)?;
    let parts = varint(bytes)?;
    let count = varint(bytes)?;
    varint(bytes)?;
    if count > most || block > MAX_BLOCK || parts == 0 || block % parts != 0 {
        return None;
    }
    let (of_part, parts) = (block / parts, usize::try_from(parts).ok()?);
    let mut left = count.saturating_sub(1);
    while left > 0 && of_part > 0 {
        varint(bytes)?;
        let (widths, rest) = bytes.split_at_checked(parts)?;
        *bytes = rest;
        for width in widths {
            if left == 0 {
                break;
            }
            let len = (of_part * u64::from(*width)).div_ceil(8);
            *bytes = bytes.get(usize::try_from(len).ok()?..)?;
            left = left.saturating_sub(of_part);
        }
    }
    (left == 0).then_some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_there_that_are_claimed() {
        // An example of the specification: the numbers 1 to 5, in a block of 128 numbers that has 4 parts.
        let five = [&[0x80, 1, 4, 5, 2][..], &[2, 0, 0, 0, 0]].concat();
        let mut rest = &five[..];
        differences(&mut rest, 5).unwrap();
        assert!(rest.is_empty());
        assert!(differences(&mut &five[..], 4).is_none());
        for len in 0..five.len() {
            assert!(differences(&mut &five[..len], 5).is_none(), "{len}");
        }
        let mut more = five;
        more[3] = 0x7f;
        differences(&mut &more[..], 128).unwrap();
        more[3] = 0x80;
        more.insert(4, 2);
        assert!(differences(&mut &more[..], 1000).is_none());
    }
}
