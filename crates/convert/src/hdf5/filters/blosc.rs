//! Blosc, with which `PyTables` can compress chunks: blocks of shuffled bytes or bits.

use hdf5_reader::error::Result;

use super::blocks::{
    cut_off, damaged, deflate, lz4, plain_or, take, unshuffle, unshuffle_bits, zeros, zstd_into,
};

/// The option of the filter that says which compressor it has, and the compressor Snappy, which is not read.
const COMPRESSOR: usize = 6;
const SNAPPY: u32 = 3;

/// Bits of the flags in the head of a chunk.
const SHUFFLED: u8 = 1;
const PLAIN: u8 = 2;
const BITS_SHUFFLED: u8 = 4;
const NOT_SPLIT: u8 = 16;

/// The length of the head.
const HEAD: usize = 16;

/// A block is split only into so many parts, of at least so many bytes.
const MOST_PARTS: usize = 16;
const LEAST_PART: usize = 128;

/// The distance from which on matches of `BloscLZ` have their distance in further bytes.
const FAR: usize = 8191;

/// Returns the filter's compressor and level, for people.
pub fn shown(options: &[u32]) -> String {
    const COMPRESSORS: [&str; 6] = ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"];
    let number = options.get(COMPRESSOR).copied().unwrap_or(0) as usize;
    let level = options.get(4).map_or_else(String::new, |level| format!(" {level}"));
    let shuffle = match options.get(5) {
        Some(0) => "",
        Some(2) => " bitshuffle",
        _ => " shuffle",
    };
    format!("blosc {}{level}{shuffle}", COMPRESSORS.get(number).unwrap_or(&"unknown"))
}

/// Returns what the filter is, if it is not read.
pub fn unread(options: &[u32]) -> Option<String> {
    (options.get(COMPRESSOR) == Some(&SNAPPY)).then(|| "Blosc with Snappy".to_owned())
}

/// Decompresses a chunk to at most `most` bytes.
pub fn decompress(input: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut head = input;
    let [_, _, flags, element] = take(&mut head)?;
    let len = u32::from_le_bytes(take(&mut head)?) as usize;
    let block_len = u32::from_le_bytes(take(&mut head)?) as usize;
    let _: [u8; 4] = take(&mut head)?;
    let element = usize::from(element);
    let mut out = zeros(len, most)?;
    if flags & PLAIN != 0 {
        out.copy_from_slice(head.get(..len).ok_or_else(cut_off)?);
        return Ok(out);
    }
    let decompress = match flags >> 5 {
        0 => blosclz,
        1 => lz4,
        3 => deflate,
        4 => zstd_into,
        other => return Err(damaged(format!("has the compressor {other} of Blosc"))),
    };
    if element == 0 || block_len == 0 && len > 0 {
        return Err(damaged("has elements or blocks of no bytes"));
    }
    let mut mixed = zeros(block_len.min(len), most)?;
    for (nth, out) in out.chunks_mut(block_len.max(1)).enumerate() {
        // The offsets of the blocks are behind the head.
        let mut start = input.get(HEAD + 4 * nth..).unwrap_or_default();
        let start = u32::from_le_bytes(take(&mut start)?) as usize;
        let mut input = input.get(start..).ok_or_else(cut_off)?;
        let mixed = mixed.get_mut(..out.len()).unwrap_or_default();
        let is_split = flags & NOT_SPLIT == 0
            && element <= MOST_PARTS
            && block_len / element >= LEAST_PART
            && out.len() == block_len;
        let part_len = if is_split { block_len / element } else { out.len() };
        let (parts, rest) = mixed.split_at_mut(out.len() / part_len * part_len);
        for part in parts.chunks_exact_mut(part_len) {
            let packed = u32::from_le_bytes(take(&mut input)?) as usize;
            let (packed, after) = input.split_at_checked(packed).ok_or_else(cut_off)?;
            input = after;
            plain_or(packed, part, decompress)?;
        }
        if !rest.is_empty() {
            return Err(damaged("has blocks that are split in the middle of an element"));
        }
        if flags & SHUFFLED != 0 && element > 1 {
            unshuffle(mixed, element, out);
        } else if flags & BITS_SHUFFLED != 0 && (out.len() / element).is_multiple_of(8) {
            unshuffle_bits(mixed, element, out);
        } else {
            out.copy_from_slice(mixed);
        }
    }
    Ok(out)
}

/// Decompresses a block of `BloscLZ`, which must fill `out`.
///
/// A control byte below 32 is one less than the number of bytes that follow as they are. Otherwise, its upper three bits
/// are the length of a match, less 2, which continues in further bytes if it is 7. Its lower five bits and the next byte
/// are the distance, less 1, which is in two more bytes if all these bits are set.
fn blosclz(mut input: &[u8], out: &mut [u8]) -> Result<()> {
    let mut done = 0usize;
    // The upper bits of the first byte are a version.
    let [mut control] = take(&mut input)?;
    control &= 31;
    loop {
        let bits = usize::from(control);
        if bits < 32 {
            let (plain, rest) = input.split_at_checked(bits + 1).ok_or_else(cut_off)?;
            let place = out.get_mut(done..).and_then(|rest| rest.get_mut(..plain.len()));
            place.ok_or_else(too_long)?.copy_from_slice(plain);
            input = rest;
            done += plain.len();
        } else {
            let mut len = (bits >> 5) + 2;
            if bits >> 5 == 7 {
                loop {
                    let [more] = take(&mut input)?;
                    len = len.saturating_add(more.into());
                    if more < 255 {
                        break;
                    }
                }
            }
            let [low] = take(&mut input)?;
            let mut distance = ((bits & 31) << 8) + usize::from(low);
            if distance == FAR {
                distance += usize::from(u16::from_be_bytes(take(&mut input)?));
            }
            let from = done.checked_sub(distance + 1);
            let from = from.ok_or_else(|| damaged("repeats bytes before its start"))?;
            if out.len() - done < len {
                return Err(too_long());
            }
            // The bytes that are repeated may overlap those that are added.
            for at in from..from + len {
                let byte = out.get(at).copied().unwrap_or_default();
                if let Some(place) = out.get_mut(at + distance + 1) {
                    *place = byte;
                }
            }
            done += len;
        }
        match input.split_first() {
            Some((next, rest)) => (control, input) = (*next, rest),
            None if done == out.len() => return Ok(()),
            None => return Err(damaged("has fewer bytes than it states")),
        }
    }
}

#[cold]
fn too_long() -> hdf5_reader::error::Error {
    damaged("has more bytes than it states")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unpacked(input: &[u8], len: usize) -> std::result::Result<Vec<u8>, String> {
        let mut out = vec![0; len];
        blosclz(input, &mut out).map(|()| out).map_err(|error| error.to_string())
    }

    #[test]
    fn pieces_of_blosclz_are_put_together() {
        assert_eq!(unpacked(&[0x22, b'a', b'b', b'c'], 3).unwrap(), b"abc");
        assert_eq!(unpacked(&[0, b'x', 1 << 5, 0], 4).unwrap(), b"xxxx");
        // A length in bytes of its own: 9 + 255 + 1.
        assert_eq!(unpacked(&[0, b'x', 7 << 5, 255, 1, 0], 266).unwrap(), [b'x'; 266]);
        // A distance in bytes of its own: 8192 + 2.
        let mut long = vec![1, b'a', b'b', 7 << 5];
        long.extend([255; 32]);
        long.extend([23, 1, 0xff, 0xff, 0, 2]);
        long[36..38].copy_from_slice(&[23, 1]);
        long[38..].copy_from_slice(&[(1 << 5) | 31, 255, 0, 2]);
        let found = unpacked(&long, 2 + 9 + 32 * 255 + 23 + 3).unwrap();
        assert_eq!(found.len(), 8197);
        assert_eq!(found[8194..], found[..3]);
    }

    #[test]
    fn damage_is_an_error() {
        for (bytes, len, what) in [
            (&[][..], 1, "is cut off"),
            (&[2, b'a'], 9, "is cut off"),
            (&[0, b'x', 1 << 5], 9, "is cut off"),
            (&[0, b'x', 7 << 5, 255], 9, "is cut off"),
            (&[0, b'x', 1 << 5, 1], 9, "before its start"),
            (&[2, b'a', b'b', b'c'], 2, "more bytes"),
            (&[0, b'x', 7 << 5, 255, 0, 0], 9, "more bytes"),
            (&[2, b'a', b'b', b'c'], 4, "fewer bytes"),
        ] {
            let error = unpacked(bytes, len).unwrap_err();
            assert!(error.contains(what), "{bytes:?}: {error}");
        }
        let chunk = |flags: u8, element: u8, len: u32, block: u32, rest: &[u8]| {
            let numbers = [len.to_le_bytes(), block.to_le_bytes(), [0; 4]].concat();
            decompress(&[&[2, 1, flags, element][..], &numbers, rest].concat(), 100)
                .map_err(|error| error.to_string())
        };
        assert_eq!(chunk(PLAIN, 1, 3, 3, b"abc").unwrap(), b"abc");
        assert_eq!(chunk(0, 1, 3, 3, b"\x14\0\0\0\x03\0\0\0abc").unwrap(), b"abc");
        for (flags, element, len, block, what) in [
            (PLAIN, 1, 3, 3, "is cut off"),
            (0, 1, 3, 3, "is cut off"),
            (0, 0, 3, 3, "of no bytes"),
            (0, 1, 3, 0, "of no bytes"),
            (0, 1, 101, 3, "more than the 100"),
            (2 << 5, 1, 3, 3, "the compressor 2"),
        ] {
            let error = chunk(flags, element, len, block, b"").unwrap_err();
            assert!(error.contains(what), "{flags} {element}: {error}");
        }
        assert!(unread(&[2, 2, 4, 0, 9, 1, SNAPPY]).is_some());
        assert_eq!(unread(&[2, 2, 4, 0]), None);
    }
}
