//! Bitshuffle, which groups the bits of elements and compresses them in blocks.

use hdf5_reader::error::Result;

use super::blocks::{blocks, cut_off, damaged, lz4, take, unshuffle_bits, zeros, zstd_into};

/// The options of the filter: its version, the size of an element, the number of elements in a block, or 0, and how blocks
/// are compressed.
struct Options {
    element: usize,
    block: usize,
    compression: u32,
}

const PLAIN: u32 = 0;
const LZ4: u32 = 2;
const ZSTD: u32 = 3;

impl Options {
    fn of(values: &[u32]) -> Option<Self> {
        let value = |at: usize| values.get(at).copied().unwrap_or(0);
        let element = value(2) as usize;
        let is_possible = element > 0 && element.checked_mul(8).is_some();
        is_possible.then(|| Self { element, block: value(3) as usize, compression: value(4) })
    }

    /// The number of elements of a block: if it is not stated, those of 8 KiB, but at least 128.
    fn block_of(&self) -> usize {
        let most = (8192 / self.element / 8 * 8).max(128);
        if self.block > 0 { self.block } else { most }
    }
}

/// Returns the filter's compressor, for people.
pub fn shown(options: &[u32]) -> String {
    let compressor = match Options::of(options).map(|options| options.compression) {
        Some(PLAIN) => "",
        Some(LZ4) => " lz4",
        Some(ZSTD) => " zstd",
        _ => " unknown",
    };
    format!("bitshuffle{compressor}")
}

/// Returns what the filter is, if it is not read.
pub fn unread(options: &[u32]) -> Option<String> {
    let found = Options::of(options);
    let is_read = found.is_some_and(|options| matches!(options.compression, PLAIN | LZ4 | ZSTD));
    (!is_read).then(|| format!("bitshuffle with the options {options:?}"))
}

/// Decompresses a chunk to at most `most` bytes.
pub fn decompress(options: &[u32], mut input: &[u8], most: usize) -> Result<Vec<u8>> {
    let options = Options::of(options).ok_or_else(|| damaged("has elements of no bytes"))?;
    let element = options.element;
    let no_block = || damaged("has blocks of which the length is no multiple of eight elements");
    let (shuffled, block) = if options.compression == PLAIN {
        (input.to_vec(), options.block_of().checked_mul(element).ok_or_else(no_block)?)
    } else {
        // Big-endian: the length of the chunk and of a block, then blocks with their lengths.
        let len = usize::try_from(u64::from_be_bytes(take(&mut input)?)).unwrap_or(usize::MAX);
        let block = u32::from_be_bytes(take(&mut input)?) as usize;
        // What does not fill eight elements is stored behind the blocks as it is.
        let rest = len % (8 * element);
        let decompress = if options.compression == ZSTD { zstd_into } else { lz4 };
        let (packed, plain) =
            input.len().checked_sub(rest).map(|at| input.split_at(at)).ok_or_else(cut_off)?;
        let mut shuffled = blocks(packed, len - rest, block, most, decompress)?;
        shuffled.extend_from_slice(plain);
        (shuffled, block)
    };
    if block == 0 || !block.is_multiple_of(8 * element) {
        return Err(no_block());
    }
    let mut out = zeros(shuffled.len(), most.saturating_add(8 * element))?;
    for (shuffled, out) in shuffled.chunks(block).zip(out.chunks_mut(block)) {
        let whole = shuffled.len() - shuffled.len() % (8 * element);
        let (mixed, plain) = shuffled.split_at(whole);
        let (elements, last) = out.split_at_mut(whole);
        unshuffle_bits(mixed, element, elements);
        last.copy_from_slice(plain);
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_an_error() {
        let lz4 = [0, 0, 1, 0, LZ4];
        let stated = |len: u64, block: u32| [&len.to_be_bytes()[..], &block.to_be_bytes()].concat();
        for (options, input, what) in [
            (&[0, 0, 0, 0, LZ4][..], stated(8, 8), "elements of no bytes"),
            (&[], stated(8, 8), "elements of no bytes"),
            (&lz4, stated(8, 8), "is cut off"),
            (&lz4, stated(3, 8), "is cut off"),
            (&lz4, stated(200, 8), "more than the 100"),
            (&lz4, [stated(8, 4), [0, 0, 0, 4, 1, 2, 3, 4].repeat(2)].concat(), "no multiple"),
            (&lz4, stated(0, 0), "no multiple"),
            (&[0, 0, 1, 4, PLAIN], vec![0; 8], "no multiple"),
            (&[0, 0, u32::MAX, u32::MAX, PLAIN], vec![0; 8], "no multiple"),
        ] {
            match decompress(options, &input, 100) {
                Err(error) => assert!(error.to_string().contains(what), "{options:?}: {error}"),
                // A block that is larger than all there is, on machines of 64 bits.
                Ok(found) => assert_eq!((found.len(), options.get(2)), (8, Some(&u32::MAX))),
            }
        }
        assert_eq!(unread(&lz4), None);
        assert!(unread(&[0, 0, 1, 0, 9]).is_some() && unread(&[]).is_some());
    }
}
