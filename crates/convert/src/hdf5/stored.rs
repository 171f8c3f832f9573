//! The elements of datasets, as the file stores them.

use std::borrow::Cow;

use hdf5_reader::chunk_index::ChunkEntry;
use hdf5_reader::error::{Error, Result};
use hdf5_reader::filters::{FILTER_SHUFFLE, apply_pipeline_with_limit};
use hdf5_reader::io::Cursor;
use hdf5_reader::messages::HdfMessage;
use hdf5_reader::messages::filter_pipeline::FilterDescription;
use hdf5_reader::messages::layout::DataLayout;
use hdf5_reader::object_header::ObjectHeader;
use hdf5_reader::{Dataset, FilterRegistry, Hdf5File};

use super::header;
use super::index::{self, Grid};

/// The type of the message about the layout of a dataset.
const LAYOUT: u16 = 8;

/// A file with what is needed to read elements.
pub struct Source {
    pub file: Hdf5File,
    pub filters: FilterRegistry,
    /// The most bytes that a dataset, or a chunk of it, may take.
    pub most: usize,
}

impl Source {
    /// Reads all elements of a dataset, in the byte order of the file. `header` is the one of the dataset.
    pub fn elements(&self, dataset: &Dataset, header: &ObjectHeader) -> Result<Vec<u8>> {
        let element = dataset.raw_element_size()?;
        let count = usize::try_from(dataset.num_elements()?).ok();
        let len = count.and_then(|count| count.checked_mul(element));
        let len = len.filter(|&len| len <= self.most).ok_or_else(|| {
            let shape = dataset.shape();
            let what = format!("{shape:?} elements of {element} bytes are more");
            Error::ResourceLimit(format!("{what} than the {} bytes that are allowed", self.most))
        })?;
        let messages = &*header.messages;
        let layout = layout(&self.file, dataset, header, len)?;
        let found = match &*layout {
            DataLayout::Compact { data } => data.clone(),
            &DataLayout::Contiguous { address, size } => {
                let offset_size = self.file.superblock().offset_size;
                if size == 0 || Cursor::is_undefined_offset(address, offset_size) {
                    return filled(messages, element, len);
                }
                // There may be more, as HDF5 allows.
                if size < len as u64 {
                    let what = format!("expected {len} bytes of elements, found {size}");
                    return Err(Error::InvalidData(what));
                }
                self.file.storage().read_range(address, len)?.as_ref().to_vec()
            }
            DataLayout::Chunked { address, dims, element_size, chunk_indexing } => {
                let (dims, last) = sides(dataset, dims, *element_size);
                if last != 0 && last as usize != element {
                    let what = format!("chunks have elements of {last} bytes, not of {element}");
                    return Err(Error::InvalidData(what));
                }
                let mut filters = Filters { filters: filters(messages)?, edges_are_plain: false };
                let is_filtered = !filters.filters.is_empty();
                if is_filtered && chunk_indexing.is_some() {
                    filters.edges_are_plain = self.edges_are_plain(dataset)?;
                }
                let grid = Grid::new(dataset, dims, element, is_filtered)?;
                let chunks = index::chunks(&self.file, &grid, chunk_indexing.as_ref(), *address)?;
                let mut out = filled(messages, element, len)?;
                self.put_together(&chunks, &grid, filters, element, &mut out)?;
                return Ok(out);
            }
        };
        if found.len() != len {
            let what = format!("expected {len} bytes of elements, found {}", found.len());
            return Err(Error::InvalidData(what));
        }
        Ok(found)
    }

    /// Whether no chunk of a dataset has the filter of this number. HDF5 leaves out a filter that is optional where it fails.
    pub fn lacks(&self, dataset: &Dataset, header: &ObjectHeader, filter: usize) -> Result<bool> {
        let layout = layout(&self.file, dataset, header, 0)?;
        let DataLayout::Chunked { address, dims, element_size, chunk_indexing } = &*layout else {
            return Ok(false);
        };
        let element = dataset.raw_element_size()?;
        if dataset.num_elements()?.saturating_mul(element as u64) > self.most as u64 {
            return Ok(false);
        }
        let (dims, _) = sides(dataset, dims, *element_size);
        let grid = Grid::new(dataset, dims, element, true)?;
        let chunks = index::chunks(&self.file, &grid, chunk_indexing.as_ref(), *address)?;
        Ok(chunks.iter().all(|chunk| chunk.filter_mask >> filter & 1 == 1))
    }

    /// Copies chunks to their places.
    fn put_together(
        &self,
        chunks: &[ChunkEntry],
        grid: &Grid<'_>,
        filters: Filters<'_>,
        element: usize,
        out: &mut [u8],
    ) -> Result<()> {
        for entry in chunks {
            let of_chunk = |error: Error| error.with_context(format!("chunk {:?}", entry.offsets));
            let chunk = self.chunk(entry, grid, filters, element).map_err(of_chunk)?;
            // From the fastest dimension to the slowest.
            let (mut from, mut to) = (element, element);
            let mut axes = Vec::new();
            for ((&dim, &side), &at) in grid.shape.iter().zip(grid.chunk).zip(&entry.offsets).rev()
            {
                axes.push(Axis { at, len: dim.saturating_sub(at).min(side.into()), from, to });
                from = from.saturating_mul(side as usize);
                to = to.saturating_mul(usize::try_from(dim).unwrap_or(usize::MAX));
            }
            let copied = copy(&chunk, out, &axes);
            copied.ok_or_else(|| of_chunk(Error::InvalidData("it does not fit".to_owned())))?;
        }
        Ok(())
    }

    /// Whether chunks that are partly outside of the dataset have no filters. The crate does not know of them.
    fn edges_are_plain(&self, dataset: &Dataset) -> Result<bool> {
        let layout = header::message(&self.file, dataset.address(), LAYOUT)?;
        // The version, the class and the flags.
        match layout.as_deref() {
            Some([4 | 5, 2, flags, ..]) => Ok(flags & 1 != 0),
            _ => Err(Error::InvalidData("the layout of a dataset was not found".to_owned())),
        }
    }

    /// Reads a chunk and undoes its filters.
    fn chunk(
        &self,
        entry: &ChunkEntry,
        grid: &Grid<'_>,
        filters: Filters<'_>,
        element: usize,
    ) -> Result<Vec<u8>> {
        let len = usize::try_from(grid.chunk_len).ok().filter(|&len| len <= self.most);
        let len = len.ok_or_else(|| {
            let what = format!("{} bytes are more than the {}", grid.chunk_len, self.most);
            Error::ResourceLimit(format!("{what} bytes that are allowed"))
        })?;
        let stored = match (grid.is_filtered, entry.size) {
            (false, 0) => len,
            (_, size) => usize::try_from(size).unwrap_or(usize::MAX),
        };
        let bytes = self.file.storage().read_range(entry.address, stored)?;
        let is_filtered = grid.is_filtered && !(filters.edges_are_plain && grid.is_at_edge(entry));
        let found = if is_filtered {
            let (bytes, filters, mask) = (bytes.as_ref(), filters.filters, entry.filter_mask);
            let registry = Some(&self.filters);
            // What is shuffled has the length that the filter states, which is another one for lists of a machine of 32 bits.
            let shuffle = filters.iter().find(|filter| filter.id == FILTER_SHUFFLE);
            let stated = shuffle.and_then(|filter| filter.client_data.first().copied());
            let element = stated.filter(|&len| len > 0).map_or(element, |len| len as usize);
            apply_pipeline_with_limit(bytes, filters, mask, element, registry, Some(len + 1))?
        } else {
            bytes.as_ref().to_vec()
        };
        if found.len() != len {
            let what = format!("expected {len} bytes, found {}", found.len());
            return Err(Error::InvalidData(what));
        }
        Ok(found)
    }
}

/// Returns the sides of the chunks, and the size of an element, which may stand behind them.
fn sides<'a>(dataset: &Dataset, dims: &'a [u32], element_size: u32) -> (&'a [u32], u32) {
    match dims {
        [dims @ .., last] if dims.len() == dataset.ndim() => (dims, *last),
        dims => (dims, element_size),
    }
}

/// Returns how a dataset is stored. `len` is the number of bytes of its elements.
///
/// # Errors
/// If the dataset has no layout, or one that is damaged.
pub fn layout<'a>(
    file: &Hdf5File,
    dataset: &Dataset,
    header: &'a ObjectHeader,
    len: usize,
) -> Result<Cow<'a, DataLayout>> {
    // The first versions of the message are only in headers of version 1. The crate expects two bytes less in them.
    if header.version == 1 {
        let message = header::message(file, dataset.address(), LAYOUT)?.unwrap_or_default();
        let offset_size = file.superblock().offset_size;
        if let Some(layout) = old_layout(&message, offset_size, len)? {
            return Ok(Cow::Owned(layout));
        }
    }
    let layout = header.messages.iter().rev().find_map(|message| match message {
        HdfMessage::DataLayout(message) => Some(Cow::Borrowed(&message.layout)),
        _ => None,
    });
    layout.ok_or_else(|| Error::InvalidData("a dataset has no layout".to_owned()))
}

/// Reads a message of version 1 or 2 about a layout.
fn old_layout(message: &[u8], offset_size: u8, len: usize) -> Result<Option<DataLayout>> {
    let [1 | 2, dims, class, rest @ ..] = message else { return Ok(None) };
    let mut cursor = Cursor::new(rest);
    cursor.skip(5)?;
    let address = if *class == 0 { 0 } else { cursor.read_offset(offset_size)? };
    let mut dims = (0..*dims).map(|_| cursor.read_u32_le()).collect::<Result<Vec<_>>>()?;
    Ok(Some(match class {
        0 => {
            let len = cursor.read_u32_le()? as usize;
            DataLayout::Compact { data: cursor.read_bytes(len)?.to_vec() }
        }
        // The dimensions may not fit into four bytes, so they are not used.
        1 => DataLayout::Contiguous { address, size: len as u64 },
        2 => {
            let element_size = dims.pop().unwrap_or(0);
            DataLayout::Chunked { address, dims, element_size, chunk_indexing: None }
        }
        class => return Err(Error::UnsupportedLayoutClass(*class)),
    }))
}

/// The filters of chunks.
#[derive(Clone, Copy)]
struct Filters<'a> {
    /// In the order in which they were applied.
    filters: &'a [FilterDescription],
    /// Whether chunks that are partly outside of the dataset have none.
    edges_are_plain: bool,
}

/// Returns the filters of chunks, in the order in which they were applied.
pub fn filters(messages: &[HdfMessage]) -> Result<&[FilterDescription]> {
    let filters = messages.iter().rev().find_map(|message| match message {
        HdfMessage::FilterPipeline(pipeline) => Some(&*pipeline.filters),
        _ => None,
    });
    // A chunk has a bit for each filter.
    match filters.unwrap_or_default() {
        filters if filters.len() <= 32 => Ok(filters),
        filters => Err(Error::InvalidData(format!("chunks have {} filters", filters.len()))),
    }
}

/// Returns `len` bytes of elements that were never written.
fn filled(messages: &[HdfMessage], element: usize, len: usize) -> Result<Vec<u8>> {
    let value = messages.iter().rev().find_map(|message| match message {
        HdfMessage::FillValue(fill) => fill.value.as_deref(),
        _ => None,
    });
    let mut bytes = Vec::new();
    let no_memory = |_| Error::ResourceLimit(format!("no memory for {len} bytes of elements"));
    bytes.try_reserve_exact(len).map_err(no_memory)?;
    bytes.resize(len, 0);
    match value {
        None | Some([]) => {}
        Some(value) if value.len() == element => {
            if value.iter().any(|&byte| byte != 0) {
                bytes.chunks_exact_mut(element).for_each(|place| place.copy_from_slice(value));
            }
        }
        Some(value) => {
            let what = format!("a value of {} bytes fills elements of {element}", value.len());
            return Err(Error::InvalidData(what));
        }
    }
    Ok(bytes)
}

/// A dimension along which a part of a chunk is copied.
struct Axis {
    /// The first element in the dataset.
    at: u64,
    /// The number of elements that are copied.
    len: u64,
    /// The number of bytes from an element to the next one, in the chunk and in the dataset.
    from: usize,
    to: usize,
}

/// Copies the part of a chunk that is in the dataset. The last dimension is the slowest.
fn copy(chunk: &[u8], out: &mut [u8], axes: &[Axis]) -> Option<()> {
    let (slowest, faster) = axes.split_last()?;
    let at = usize::try_from(slowest.at).ok()?.checked_mul(slowest.to)?;
    let len = usize::try_from(slowest.len).ok()?;
    let out = out.get_mut(at..)?;
    if faster.is_empty() {
        let len = len.checked_mul(slowest.from)?;
        out.get_mut(..len)?.copy_from_slice(chunk.get(..len)?);
        return Some(());
    }
    for nth in 0..len {
        copy(chunk.get(nth * slowest.from..)?, out.get_mut(nth * slowest.to..)?, faster)?;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_layouts_are_read() {
        let message = |version: u8, dims: u8, class: u8, rest: &[u8]| {
            [&[version, dims, class, 0, 0, 0, 0, 0][..], rest].concat()
        };
        let read = |message: &[u8]| old_layout(message, 4, 12).unwrap();
        for version in [1, 2] {
            let compact = message(version, 1, 0, &[3, 0, 0, 0, 3, 0, 0, 0, 7, 8, 9]);
            assert_eq!(read(&compact), Some(DataLayout::Compact { data: vec![7, 8, 9] }));
            let contiguous = message(version, 2, 1, &[9, 1, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
            let expected = DataLayout::Contiguous { address: 265, size: 12 };
            assert_eq!(read(&contiguous), Some(expected));
            let chunked = message(version, 2, 2, &[9, 1, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]);
            let expected = DataLayout::Chunked {
                address: 265,
                dims: vec![3],
                element_size: 4,
                chunk_indexing: None,
            };
            assert_eq!(read(&chunked), Some(expected));
            assert!(old_layout(&chunked[..19], 4, 12).is_err());
            assert!(old_layout(&message(version, 0, 3, &[0; 4]), 4, 12).is_err());
        }
        assert_eq!(read(&message(3, 1, 0, &[])), None);
    }
}
