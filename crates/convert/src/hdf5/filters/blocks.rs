//! What the filters share.

use std::io::Read as _;

use hdf5_reader::error::{Error, Result};

/// Decompresses what the filter LZ4 wrote: the length, the length of a block, and blocks with their lengths, all
/// big-endian.
pub fn lz4_blocks(mut input: &[u8], most: usize) -> Result<Vec<u8>> {
    let len = usize::try_from(u64::from_be_bytes(take(&mut input)?)).unwrap_or(usize::MAX);
    let each = u32::from_be_bytes(take(&mut input)?) as usize;
    blocks(input, len, each, most, lz4)
}

/// Decompresses blocks of `each` bytes, of which the last may have fewer. In front of each is its compressed length.
pub fn blocks(
    mut input: &[u8],
    len: usize,
    each: usize,
    most: usize,
    decompress: fn(&[u8], &mut [u8]) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut out = zeros(len, most)?;
    if each == 0 && len > 0 {
        return Err(damaged("has blocks of no bytes"));
    }
    for block in out.chunks_mut(each.max(1)) {
        let packed = u32::from_be_bytes(take(&mut input)?) as usize;
        let (packed, rest) = input.split_at_checked(packed).ok_or_else(cut_off)?;
        input = rest;
        plain_or(packed, block, decompress)?;
    }
    Ok(out)
}

/// Copies a block that is as long as what it stands for, because it is not compressed then.
pub fn plain_or(
    packed: &[u8],
    out: &mut [u8],
    decompress: fn(&[u8], &mut [u8]) -> Result<()>,
) -> Result<()> {
    if packed.len() == out.len() {
        out.copy_from_slice(packed);
        return Ok(());
    }
    decompress(packed, out)
}

/// Decompresses a block of LZ4, which must fill `out`.
pub fn lz4(packed: &[u8], out: &mut [u8]) -> Result<()> {
    match lz4_flex::block::decompress_into(packed, out) {
        Ok(len) if len == out.len() => Ok(()),
        _ => Err(damaged("cannot be decompressed with LZ4")),
    }
}

/// Decompresses zlib's bytes, which must fill `out`.
pub fn deflate(packed: &[u8], out: &mut [u8]) -> Result<()> {
    let mut reader = flate2::read::ZlibDecoder::new(packed);
    let whole = reader.read_exact(out).and_then(|()| reader.read(&mut [0]));
    match whole {
        Ok(0) => Ok(()),
        _ => Err(damaged("cannot be decompressed with zlib")),
    }
}

/// Decompresses a frame of zstd to at most `most` bytes.
pub fn zstd(packed: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    crate::zstd::frames(packed, most, &mut out).map_err(damaged)?;
    Ok(out)
}

/// Decompresses a frame of zstd, which must fill `out`.
pub fn zstd_into(packed: &[u8], out: &mut [u8]) -> Result<()> {
    let found = zstd(packed, out.len())?;
    if found.len() != out.len() {
        return Err(damaged("has fewer bytes than it states"));
    }
    out.copy_from_slice(&found);
    Ok(())
}

/// Puts the bytes of elements together, whose first bytes come first, then the second ones.
pub fn unshuffle(shuffled: &[u8], element: usize, out: &mut [u8]) {
    let count = shuffled.len() / element;
    let (mixed, rest) = shuffled.split_at(count * element);
    let (elements, last) = out.split_at_mut(count * element);
    for (nth, bytes) in mixed.chunks_exact(count.max(1)).enumerate() {
        let places = elements.iter_mut().skip(nth).step_by(element);
        places.zip(bytes).for_each(|(place, byte)| *place = *byte);
    }
    last.copy_from_slice(rest);
}

/// Puts the bits of elements together, whose first bits come first, then the second ones. There must be a multiple of
/// eight elements. Bytes that fill no element stay at the end.
pub fn unshuffle_bits(shuffled: &[u8], element: usize, out: &mut [u8]) {
    let count = shuffled.len() / element;
    let (mixed, rest) = shuffled.split_at(count * element);
    let (elements, last) = out.split_at_mut(count * element);
    elements.fill(0);
    // Each row has a bit of every element: the bits of their first bytes, the lowest first, then those of the second.
    for (nth, row) in mixed.chunks_exact((count / 8).max(1)).enumerate() {
        let (byte, bit) = (nth / 8, nth % 8);
        let mut places = elements.iter_mut().skip(byte).step_by(element);
        for bits in row {
            for (number, place) in places.by_ref().take(8).enumerate() {
                *place |= (bits >> number & 1) << bit;
            }
        }
    }
    last.copy_from_slice(rest);
}

/// Returns `len` zeros, if that is at most `most`.
pub fn zeros(len: usize, most: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    if len > most || out.try_reserve_exact(len).is_err() {
        return Err(damaged(format!("has {len} bytes, more than the {most} that are allowed")));
    }
    out.resize(len, 0);
    Ok(out)
}

/// Removes the next bytes.
pub fn take<const N: usize>(input: &mut &[u8]) -> Result<[u8; N]> {
    let (first, rest) = input.split_first_chunk().ok_or_else(cut_off)?;
    *input = rest;
    Ok(*first)
}

#[cold]
pub fn cut_off() -> Error {
    damaged("is cut off")
}

#[cold]
pub fn damaged(what: impl AsRef<str>) -> Error {
    Error::DecompressionError(format!("a compressed chunk {}", what.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_bits_are_put_together() {
        let mut out = [9; 7];
        unshuffle(&[1, 2, 3, 11, 12, 13, 7], 2, &mut out);
        assert_eq!(out, [1, 11, 2, 12, 3, 13, 7]);
        // Eight elements of two bytes: the lowest bit of each is set, and of the last one the highest.
        let mut shuffled = [0; 17];
        (shuffled[0], shuffled[15], shuffled[16]) = (0xff, 0x80, 5);
        let mut out = [9; 17];
        unshuffle_bits(&shuffled, 2, &mut out);
        assert_eq!(out, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0x80, 5]);
    }

    #[test]
    fn blocks_must_fit_what_is_stated() {
        let stated = |len: u64, each: u32, packed: u32, bytes: &[u8]| {
            let input = [&len.to_be_bytes()[..], &each.to_be_bytes(), &packed.to_be_bytes(), bytes];
            lz4_blocks(&input.concat(), 100).map_err(|error| error.to_string())
        };
        assert_eq!(stated(3, 9, 3, b"abc").unwrap(), b"abc");
        // A token for two bytes as they are.
        assert_eq!(stated(2, 9, 3, b"\x20ab").unwrap(), b"ab");
        for (len, each, packed, bytes, what) in [
            (101, 9, 3, &b"abc"[..], "has 101 bytes, more than the 100"),
            (u64::MAX, 9, 3, b"abc", "more than the 100"),
            (3, 0, 3, b"abc", "blocks of no bytes"),
            (3, 2, 2, b"ab", "is cut off"),
            (3, 9, 4, b"abc", "is cut off"),
            (3, 9, 3, b"\x20a", "is cut off"),
            (9, 9, 3, b"\x20ab", "cannot be decompressed with LZ4"),
        ] {
            let error = stated(len, each, packed, bytes).unwrap_err();
            assert!(error.contains(what), "{len} {each}: {error}");
        }
    }
}
