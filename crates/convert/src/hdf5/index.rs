//! Where the chunks of a dataset are.
//!
//! HDF5 has six kinds of indices of chunks. The crate reads the two kinds of B-trees, which say of each chunk where it is in
//! the dataset. The others number the chunks, over all that the dataset may ever have. They are read here, as chapters
//! VII.A to VII.D of the HDF5 file format specification, version 4, describe them.

use hdf5_reader::Dataset;
use hdf5_reader::btree_v1::{BTreeV1Key, collect_btree_v1_leaves_storage};
use hdf5_reader::checksum::jenkins_lookup3;
use hdf5_reader::chunk_index::{ChunkEntry, collect_v2_chunk_entries_storage};
use hdf5_reader::error::{Error, Result};
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::layout::ChunkIndexing;
use hdf5_reader::{Hdf5File, Storage};

/// How a dimension without a limit is given.
const UNLIMITED: u64 = u64::MAX;

/// The dimensions of a dataset and of its chunks.
pub struct Grid<'a> {
    pub shape: &'a [u64],
    /// The largest dimensions that the dataset may have.
    pub most: &'a [u64],
    /// Of as many dimensions as the shape has. None is 0.
    pub chunk: &'a [u32],
    /// The number of bytes of a chunk without filters.
    pub chunk_len: u64,
    pub is_filtered: bool,
}

impl<'a> Grid<'a> {
    /// Checks that shapes fit each other.
    pub fn new(
        dataset: &'a Dataset,
        chunk: &'a [u32],
        element: usize,
        is_filtered: bool,
    ) -> Result<Self> {
        let shape = dataset.shape();
        let most = dataset.max_dims().unwrap_or(shape);
        let fits = |what: &[_]| what.len() == shape.len();
        if shape.is_empty() || chunk.len() != shape.len() || !fits(most) || chunk.contains(&0) {
            let what = format!("chunks of {chunk:?} elements do not fit a dataset of {shape:?}");
            return Err(Error::InvalidData(what));
        }
        if shape.iter().zip(most).any(|(dim, most)| dim > most) {
            let what = format!("a dataset of {shape:?} elements may have at most {most:?}");
            return Err(Error::InvalidData(what));
        }
        let chunk_len =
            chunk.iter().try_fold(element as u64, |len, &dim| len.checked_mul(dim.into()));
        let chunk_len = chunk_len.filter(|&len| len > 0).ok_or_else(|| {
            Error::InvalidData(format!("chunks of {chunk:?} elements have too many bytes, or none"))
        })?;
        Ok(Self { shape, most, chunk, chunk_len, is_filtered })
    }

    /// Whether a chunk is partly outside of the dataset.
    pub fn is_at_edge(&self, entry: &ChunkEntry) -> bool {
        let dims = entry.offsets.iter().zip(self.shape).zip(self.chunk);
        dims.into_iter().any(|((at, dim), &side)| dim.saturating_sub(*at) < side.into())
    }

    /// The number of chunks in each dimension.
    fn counts(&self, dims: &[u64]) -> Vec<u64> {
        dims.iter().zip(self.chunk).map(|(dim, &chunk)| dim.div_ceil(chunk.into())).collect()
    }

    /// Returns the position of the first element of a chunk. `None` if the chunk is not in the dataset, which was larger
    /// when the chunk was written. `axes` are the dimensions over which chunks are numbered, the slowest first.
    fn position(&self, mut number: u64, axes: &[usize]) -> Option<Vec<u64>> {
        let mut position = vec![0; axes.len()];
        for (nth, &axis) in axes.iter().enumerate().rev() {
            let side = u64::from(*self.chunk.get(axis)?);
            // The number of chunks in the slowest dimension does not matter, and may have no limit.
            let at = if nth == 0 {
                number
            } else {
                let count = self.most.get(axis)?.div_ceil(side);
                let at = number.checked_rem(count)?;
                number /= count;
                at
            };
            let at = at.checked_mul(side)?;
            if at >= *self.shape.get(axis)? {
                return None;
            }
            *position.get_mut(axis)? = at;
        }
        Some(position)
    }

    /// The dimensions over which chunks are numbered: as they are, but one without a limit is the slowest.
    fn axes(&self, with_unlimited: bool) -> Result<Vec<usize>> {
        let mut axes: Vec<_> = (0..self.shape.len()).collect();
        let unlimited: Vec<_> =
            axes.iter().copied().filter(|&axis| self.most.get(axis) == Some(&UNLIMITED)).collect();
        match *unlimited {
            [slowest] if with_unlimited => {
                axes.remove(slowest);
                axes.insert(0, slowest);
                Ok(axes)
            }
            [] if !with_unlimited => Ok(axes),
            _ => {
                let what = format!("{} dimensions have no limit", unlimited.len());
                Err(Error::InvalidData(format!("an index does not fit a dataset of which {what}")))
            }
        }
    }
}

/// Returns the chunks of a dataset that were written. `at` is the address of the index.
pub fn chunks(
    file: &Hdf5File,
    grid: &Grid<'_>,
    index: Option<&ChunkIndexing>,
    at: u64,
) -> Result<Vec<ChunkEntry>> {
    let superblock = file.superblock();
    let (offset_size, length_size) = (superblock.offset_size, superblock.length_size);
    if Cursor::is_undefined_offset(at, offset_size) || grid.shape.contains(&0) {
        return Ok(Vec::new());
    }
    let storage = file.storage();
    let mut blocks =
        Blocks { storage, left: storage.len(), offset_size, length_size, found: Vec::new() };
    let rank = u32::try_from(grid.shape.len()).unwrap_or(u32::MAX);
    let mut found = match index {
        None => {
            let leaves = collect_btree_v1_leaves_storage(
                storage,
                at,
                offset_size,
                length_size,
                Some(rank),
                grid.chunk,
                None,
            )?;
            leaves.into_iter().filter_map(|(key, address)| of_key(key, address)).collect()
        }
        Some(ChunkIndexing::BTreeV2) => collect_v2_chunk_entries_storage(
            storage,
            at,
            offset_size,
            length_size,
            rank,
            grid.chunk,
            None,
        )?,
        Some(ChunkIndexing::SingleChunk { filtered_size, filters }) => {
            let offsets = vec![0; grid.shape.len()];
            vec![ChunkEntry { address: at, size: *filtered_size, filter_mask: *filters, offsets }]
        }
        Some(ChunkIndexing::Implicit) => implicit(storage, grid, at)?,
        Some(ChunkIndexing::FixedArray { .. }) => {
            blocks.fixed_array(grid, at)?;
            blocks.entries(grid, &grid.axes(false)?)
        }
        Some(ChunkIndexing::ExtensibleArray { .. }) => {
            blocks.extensible_array(grid, at)?;
            blocks.entries(grid, &grid.axes(true)?)
        }
    };
    check(&mut found, grid)?;
    Ok(found)
}

/// The position of a chunk in the older B-tree has one more dimension, for the bytes of an element.
fn of_key(key: BTreeV1Key, address: u64) -> Option<ChunkEntry> {
    let BTreeV1Key::RawData { chunk_size, filter_mask, mut offsets } = key else { return None };
    offsets.pop();
    Some(ChunkEntry { address, size: chunk_size.into(), filter_mask, offsets })
}

/// Keeps the chunks that are in the dataset, and checks that each has a place of its own.
fn check(found: &mut Vec<ChunkEntry>, grid: &Grid<'_>) -> Result<()> {
    let fits = |entry: &ChunkEntry| {
        entry.offsets.len() == grid.shape.len()
            && entry.offsets.iter().zip(grid.chunk).all(|(at, &side)| at % u64::from(side) == 0)
    };
    if let Some(entry) = found.iter().find(|entry| !fits(entry)) {
        let (at, chunk) = (&entry.offsets, grid.chunk);
        return Err(Error::InvalidData(format!("a chunk of {chunk:?} elements is at {at:?}")));
    }
    found.retain(|entry| entry.offsets.iter().zip(grid.shape).all(|(at, dim)| at < dim));
    found.sort_unstable_by(|a, b| a.offsets.cmp(&b.offsets));
    match found.windows(2).find(|pair| matches!(pair, [a, b] if a.offsets == b.offsets)) {
        Some([entry, ..]) => {
            Err(Error::InvalidData(format!("two chunks are at {:?}", entry.offsets)))
        }
        _ => Ok(()),
    }
}

/// All chunks that the dataset may ever have lie one after the other.
fn implicit(storage: &dyn Storage, grid: &Grid<'_>, at: u64) -> Result<Vec<ChunkEntry>> {
    let axes = grid.axes(false)?;
    let count = grid.counts(grid.most).into_iter().try_fold(1, u64::checked_mul);
    let len = count.and_then(|count| count.checked_mul(grid.chunk_len));
    let end = len.and_then(|len| at.checked_add(len)).filter(|end| *end <= storage.len());
    let (Some(count), Some(_)) = (count, end) else {
        let what = format!("the chunks of a dataset of at most {:?} elements", grid.most);
        return Err(Error::InvalidData(format!("{what} are not all in the file")));
    };
    let mut found = Vec::new();
    for number in 0..count {
        if let Some(offsets) = grid.position(number, &axes) {
            let address = at + number * grid.chunk_len;
            found.push(ChunkEntry { address, size: 0, filter_mask: 0, offsets });
        }
    }
    Ok(found)
}

/// Reads the blocks of an array of chunks.
struct Blocks<'a> {
    storage: &'a dyn Storage,
    /// The number of bytes that may be read. No two blocks of a file share bytes, unless it is made to cost time.
    left: u64,
    offset_size: u8,
    length_size: u8,
    /// The chunks found, by their numbers, with their addresses, lengths and masks of filters.
    found: Vec<(u64, u64, u64, u32)>,
}

impl Blocks<'_> {
    /// Reads a part of a block, and checks the checksum behind it.
    fn read(&mut self, at: u64, len: Option<usize>) -> Result<Vec<u8>> {
        let what = || Error::InvalidData("the index of chunks is larger than the file".to_owned());
        let len = len.and_then(|len| len.checked_add(4)).ok_or_else(what)?;
        self.left = self.left.checked_sub(len as u64).ok_or_else(what)?;
        let mut bytes = self.storage.read_range(at, len)?.as_ref().to_vec();
        let checksum = bytes.split_off(len - 4);
        let expected = Cursor::new(&checksum).read_u32_le()?;
        let actual = jenkins_lookup3(&bytes);
        if expected != actual {
            return Err(Error::ChecksumMismatch { expected, actual });
        }
        Ok(bytes)
    }

    /// Reads a block whose content has the length `len`, and returns a cursor behind its signature, its version and whether
    /// chunks have filters.
    fn block<'b>(
        &mut self,
        bytes: &'b mut Vec<u8>,
        at: u64,
        len: Option<usize>,
        signature: [u8; 4],
        grid: &Grid<'_>,
    ) -> Result<Cursor<'b>> {
        *bytes = self.read(at, len.and_then(|len| len.checked_add(6)))?;
        let mut cursor = Cursor::new(bytes);
        let name = String::from_utf8_lossy(&signature);
        if cursor.read_bytes(4)? != signature {
            return Err(Error::InvalidData(format!("expected the block `{name}` at {at:#x}")));
        }
        let version = cursor.read_u8()?;
        if version != 0 {
            return Err(Error::Other(format!("unsupported version {version} of `{name}`")));
        }
        if cursor.read_u8()? != u8::from(grid.is_filtered) {
            let what =
                format!("`{name}` disagrees with the dataset about whether chunks have filters");
            return Err(Error::InvalidData(what));
        }
        Ok(cursor)
    }

    /// Reads the entries of chunks from the number `first` on.
    fn elements(
        &mut self,
        cursor: &mut Cursor<'_>,
        first: u64,
        count: usize,
        element: u8,
        is_filtered: bool,
    ) -> Result<()> {
        for number in (first..).take(count) {
            let address = cursor.read_offset(self.offset_size)?;
            let (len, mask) = if is_filtered {
                let len = element.saturating_sub(self.offset_size).saturating_sub(4);
                (cursor.read_uvar(len.into())?, cursor.read_u32_le()?)
            } else {
                (0, 0)
            };
            if !self.is_undefined(address) {
                self.found.push((number, address, len, mask));
            }
        }
        Ok(())
    }

    fn is_undefined(&self, address: u64) -> bool {
        Cursor::is_undefined_offset(address, self.offset_size)
    }

    /// Checks the number of bytes of the entry of a chunk.
    fn check_element(&self, element: u8, is_filtered: bool) -> Result<()> {
        let more = element.checked_sub(self.offset_size);
        if matches!((is_filtered, more), (false, Some(0)) | (true, Some(5..=12))) {
            return Ok(());
        }
        Err(Error::InvalidData(format!("an entry of a chunk cannot have {element} bytes")))
    }

    /// Returns the entries of the chunks that are in the dataset.
    fn entries(&self, grid: &Grid<'_>, axes: &[usize]) -> Vec<ChunkEntry> {
        let entry = |&(number, address, size, filter_mask)| {
            let offsets = grid.position(number, axes)?;
            Some(ChunkEntry { address, size, filter_mask, offsets })
        };
        self.found.iter().filter_map(entry).collect()
    }

    /// An array for datasets whose dimensions all have a limit: a header and one block. If it is large, the block has pages,
    /// and a bit for each page that was written.
    fn fixed_array(&mut self, grid: &Grid<'_>, at: u64) -> Result<()> {
        let (offset, length) = (usize::from(self.offset_size), usize::from(self.length_size));
        let mut bytes = Vec::new();
        let mut header = self.block(&mut bytes, at, Some(2 + length + offset), *b"FAHD", grid)?;
        let element = header.read_u8()?;
        self.check_element(element, grid.is_filtered)?;
        let page_bits = header.read_u8()?;
        let count = usize::try_from(header.read_length(self.length_size)?).unwrap_or(usize::MAX);
        let block = header.read_offset(self.offset_size)?;
        let expected = grid.counts(grid.most).into_iter().try_fold(1, u64::checked_mul);
        if expected != Some(count as u64) {
            let (most, chunk) = (grid.most, grid.chunk);
            let what = format!("a dataset of at most {most:?} elements in chunks of {chunk:?}");
            return Err(Error::InvalidData(format!("{what} has an array for {count} chunks")));
        }
        if self.is_undefined(block) {
            return Ok(());
        }
        let len = |count: usize| count.checked_mul(element.into());
        let page = 1usize.checked_shl(page_bits.into()).unwrap_or(usize::MAX);
        if count <= page {
            let len = len(count).and_then(|len| len.checked_add(offset));
            let mut cursor = self.block(&mut bytes, block, len, *b"FADB", grid)?;
            cursor.skip(offset)?;
            return self.elements(&mut cursor, 0, count, element, grid.is_filtered);
        }
        let bitmap = count.div_ceil(page).div_ceil(8);
        let mut cursor =
            self.block(&mut bytes, block, bitmap.checked_add(offset), *b"FADB", grid)?;
        cursor.skip(offset)?;
        let written = cursor.read_bytes(bitmap)?;
        let pages = block.saturating_add((6 + offset + bitmap + 4) as u64);
        self.pages(written, 0, pages, (0, count, page), element, grid.is_filtered)
    }

    /// Reads the pages of a block that were written. `written` has a bit for each from `bit` on. The block has the entries of
    /// `count` chunks from the number `first` on, each page those of `page`.
    fn pages(
        &mut self,
        written: &[u8],
        bit: usize,
        mut at: u64,
        (first, count, page): (u64, usize, usize),
        element: u8,
        is_filtered: bool,
    ) -> Result<()> {
        for (nth, start) in (0..count).step_by(page).enumerate() {
            let count = page.min(count - start);
            let len = count.checked_mul(element.into());
            if is_set(written, bit.saturating_add(nth)) {
                let bytes = self.read(at, len)?;
                let first = first.saturating_add(start as u64);
                self.elements(&mut Cursor::new(&bytes), first, count, element, is_filtered)?;
            }
            at = at.saturating_add(len.unwrap_or(usize::MAX) as u64).saturating_add(4);
        }
        Ok(())
    }

    /// An array for datasets of which one dimension has no limit. Its first entries are in a block that points to further
    /// blocks: to some directly, and to others through secondary blocks.
    fn extensible_array(&mut self, grid: &Grid<'_>, at: u64) -> Result<()> {
        let (offset, length) = (usize::from(self.offset_size), usize::from(self.length_size));
        let mut bytes = Vec::new();
        let mut header =
            self.block(&mut bytes, at, Some(6 + 6 * length + offset), *b"EAHD", grid)?;
        let [element, bits, inside, smallest, pointers, page_bits] =
            *header.read_bytes(6)?.first_chunk().unwrap_or(&[0; 6]);
        self.check_element(element, grid.is_filtered)?;
        // Statistics of the blocks and entries.
        header.skip(6 * length)?;
        let block = header.read_offset(self.offset_size)?;
        if self.is_undefined(block) {
            return Ok(());
        }
        let invalid = || Error::InvalidData("an extensible array has impossible parameters".into());
        if !smallest.is_power_of_two() || !pointers.is_power_of_two() || bits > 64 {
            return Err(invalid());
        }
        // Level `n` has 2^(n/2) blocks, each with 2^((n+1)/2) times the entries of the smallest block.
        let levels = (u32::from(bits) + 1).checked_sub(smallest.ilog2()).ok_or_else(invalid)?;
        let direct = (2 * pointers.ilog2()).min(levels);
        let blocks = 2 * (usize::from(pointers) - 1);
        let inside = usize::from(inside);
        let addresses = blocks + (levels - direct) as usize;
        let len = offset + inside * usize::from(element) + addresses * offset;
        let mut cursor = self.block(&mut bytes, block, Some(len), *b"EAIB", grid)?;
        cursor.skip(offset)?;
        self.elements(&mut cursor, 0, inside, element, grid.is_filtered)?;

        let shape = Shape {
            element,
            // The number of the first entry of a block takes as many bytes as the largest number there may be.
            prefix: offset + usize::from(bits).div_ceil(8),
            page: 1usize.checked_shl(page_bits.into()).unwrap_or(usize::MAX),
        };
        let mut first = inside as u64;
        let mut secondary = Vec::new();
        for level in 0..levels {
            let count = 1usize.checked_shl(level / 2).ok_or_else(invalid)?;
            let entries = 1usize.checked_shl(level.div_ceil(2));
            let entries = entries.and_then(|entries| entries.checked_mul(smallest.into()));
            let Some(entries) = entries else { return Err(invalid()) };
            if level < direct {
                for _ in 0..count {
                    let at = cursor.read_offset(self.offset_size)?;
                    self.data_block(grid, at, &shape, (first, entries), None)?;
                    first = first.saturating_add(entries as u64);
                }
                continue;
            }
            let at = cursor.read_offset(self.offset_size)?;
            if !self.is_undefined(at) {
                // A byte has the bits of pages of one block, but bits are numbered through.
                let pages = if entries > shape.page { entries.div_ceil(shape.page) } else { 0 };
                let bitmap = count.checked_mul(pages.div_ceil(8));
                let len = count.checked_mul(offset).zip(bitmap);
                let len = len.and_then(|(len, bitmap)| len.checked_add(bitmap));
                let len = len.and_then(|len| len.checked_add(shape.prefix));
                let mut cursor = self.block(&mut secondary, at, len, *b"EASB", grid)?;
                cursor.skip(shape.prefix)?;
                let written = cursor.read_bytes(bitmap.unwrap_or(0))?;
                for nth in 0..count {
                    let at = cursor.read_offset(self.offset_size)?;
                    let first = first.saturating_add((nth as u64).saturating_mul(entries as u64));
                    let written = Some((written, nth.saturating_mul(pages)));
                    self.data_block(grid, at, &shape, (first, entries), written)?;
                }
            }
            first = first.saturating_add((count as u64).saturating_mul(entries as u64));
        }
        Ok(())
    }

    /// Reads a block with the entries of `count` chunks from the number `first` on. `written` are the bits of pages of the
    /// secondary block, and the first bit of this block.
    fn data_block(
        &mut self,
        grid: &Grid<'_>,
        at: u64,
        shape: &Shape,
        (first, count): (u64, usize),
        written: Option<(&[u8], usize)>,
    ) -> Result<()> {
        let Shape { element, prefix, page } = *shape;
        if self.is_undefined(at) {
            return Ok(());
        }
        let mut bytes = Vec::new();
        if count <= page {
            let len = count.checked_mul(element.into()).and_then(|len| len.checked_add(prefix));
            let mut cursor = self.block(&mut bytes, at, len, *b"EADB", grid)?;
            cursor.skip(prefix)?;
            return self.elements(&mut cursor, first, count, element, grid.is_filtered);
        }
        self.block(&mut bytes, at, Some(prefix), *b"EADB", grid)?;
        let Some((written, bit)) = written else {
            let what = "pages of chunks are in a block that has no bits for them".to_owned();
            return Err(Error::InvalidData(what));
        };
        let pages = at.saturating_add((6 + prefix + 4) as u64);
        self.pages(written, bit, pages, (first, count, page), element, grid.is_filtered)
    }
}

/// The blocks of an extensible array.
struct Shape {
    /// The number of bytes of an entry.
    element: u8,
    /// The number of bytes between the head of a block and its content.
    prefix: usize,
    /// The number of entries of a page.
    page: usize,
}

/// Whether a bit is set. The first one is the highest bit of the first byte.
fn is_set(bits: &[u8], at: usize) -> bool {
    bits.get(at / 8).is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::path::Path;

    use super::*;
    use crate::hdf5::Hdf5;

    /// With a right checksum, as nobody but an attacker writes it.
    #[test]
    fn impossible_headers_are_errors() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hdf5/indices.h5");
        let bytes = std::fs::read(path).unwrap();
        let mut refused = 0;
        for (signature, len) in [(b"FAHD", 24), (b"EAHD", 68)] {
            let places = bytes.windows(4).enumerate().filter(|(_, found)| found == signature);
            for (start, _) in places.step_by(2) {
                for (at, with) in (start + 4..start + len).flat_map(|at| [(at, 0), (at, 0xff)]) {
                    let mut bytes = bytes.clone();
                    bytes[at] = with;
                    let checksum = jenkins_lookup3(&bytes[start..start + len]).to_le_bytes();
                    bytes[start + len..][..4].copy_from_slice(&checksum);
                    let mut file = tempfile::tempfile().unwrap();
                    file.write_all(&bytes).unwrap();
                    let file = Hdf5::new(file).unwrap();
                    for info in file.tensors() {
                        refused += u32::from(file.dyn_tensor(info.path()).is_err());
                    }
                }
            }
        }
        assert!(refused > 100, "{refused}");
    }
}
