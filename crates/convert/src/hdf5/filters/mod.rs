//! The filters of chunks that the crate does not have: those that h5py has built in, and the most common plugins.
//!
//! The numbers and the layouts are those of the list of registered filters of the HDF Group.

mod bitshuffle;
mod blocks;
mod blosc;
mod lzf;

use hdf5_reader::FilterRegistry;
use hdf5_reader::messages::filter_pipeline::FilterDescription;

const LZF: u16 = 32000;
const BLOSC: u16 = 32001;
const LZ4: u16 = 32004;
const BITSHUFFLE: u16 = 32008;
const ZSTD: u16 = 32015;

/// Returns all filters. Each gives at most `most` bytes for a chunk.
pub fn all(most: usize) -> FilterRegistry {
    let mut filters = FilterRegistry::new();
    // The lengths that filters store are those of the chunk, to which a filter before them may have added bytes.
    filters.register(LZF, Box::new(move |_, input, _| lzf::decompress(input, most)));
    filters.register(BLOSC, Box::new(move |_, input, _| blosc::decompress(input, most)));
    filters.register(LZ4, Box::new(move |_, input, _| blocks::lz4_blocks(input, most)));
    let bitshuffle = move |filter: &FilterDescription, input: &[u8], _| {
        bitshuffle::decompress(&filter.client_data, input, most)
    };
    filters.register(BITSHUFFLE, Box::new(bitshuffle));
    filters.register(ZSTD, Box::new(move |_, input, _| blocks::zstd(input, most)));
    filters
}

/// Returns the name of a filter and its parameters, for people: `gzip 4`.
pub fn shown(filter: &FilterDescription) -> String {
    let value = |at: usize| filter.client_data.get(at).copied();
    let with = |name: &str, at| match value(at) {
        Some(value) => format!("{name} {value}"),
        None => name.to_owned(),
    };
    match filter.id {
        1 => with("gzip", 0),
        2 => "shuffle".to_owned(),
        3 => "fletcher32".to_owned(),
        4 => with("szip", 1),
        5 => "nbit".to_owned(),
        6 => with("scaleoffset", 1),
        LZF => "lzf".to_owned(),
        BLOSC => blosc::shown(&filter.client_data),
        LZ4 => with("lz4", 0),
        BITSHUFFLE => bitshuffle::shown(&filter.client_data),
        ZSTD => with("zstd", 0),
        number => {
            let name = filter.name.as_deref().map(|name| name.trim_end_matches('\0'));
            let name = name.filter(|name| !name.is_empty()).unwrap_or("filter");
            format!("{name} ({number}) {:?}", filter.client_data)
        }
    }
}

/// Returns what a filter is, if it is not read.
pub fn unread(filter: &FilterDescription) -> Option<String> {
    match filter.id {
        // deflate, shuffle, Fletcher's checksum, SZIP, n-bit, scale and offset.
        1..=6 | LZF | LZ4 | ZSTD => None,
        BLOSC => blosc::unread(&filter.client_data),
        BITSHUFFLE => bitshuffle::unread(&filter.client_data),
        number => {
            let name = filter.name.as_deref().unwrap_or("without a name").trim_end_matches('\0');
            Some(format!("{number} ({name})"))
        }
    }
}
