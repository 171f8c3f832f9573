//! The descriptions of compressed buffers in headers (SPEC 5.11).

use std::collections::BTreeMap;

use super::items::{ItemEncoder, head_len};
use crate::error::Result;
use crate::io::chunks::ChunkLen;
pub use crate::io::compressed::{Coding, Packed};
use crate::wire::head;

/// The maximum length of a codec's name in bytes.
pub const MAX_CODEC: u64 = 64;
/// The largest number of parameters that a codec may have.
pub const MAX_PARAMETERS: u64 = 16;

/// The bounds of the length of a digest of a buffer elsewhere.
const MIN_DIGEST: u64 = 8;
const MAX_DIGEST: u64 = 64;

/// The compressed buffers of a segment, and those elsewhere, by number. Other buffers are stored as they are.
pub type PackedBuffers = BTreeMap<usize, Packed>;

/// Appends the element of the header's `lengths` for a compressed buffer of `len` bytes.
pub fn write(packed: &Packed, len: u64, items: &mut ItemEncoder) -> Result<()> {
    let coding = &packed.coding;
    if let Some(digest) = coding.digest() {
        items.head(head::ARRAY, 3)?.head(head::UNSIGNED, len)?.name(Some(coding.name()))?;
        items.head(head::BYTES, digest.len() as u64)?.raw(digest)?;
        return Ok(());
    }
    items.head(head::ARRAY, 4)?.name(Some(coding.name()))?;
    items.head(head::ARRAY, coding.parameters().len() as u64)?;
    for &parameter in coding.parameters() {
        items.head(head::UNSIGNED, parameter)?;
    }
    items.head(head::UNSIGNED, len)?.head(head::ARRAY, packed.chunks())?;
    for stored in packed.lengths() {
        items.head(head::UNSIGNED, stored)?;
    }
    Ok(())
}

/// Why the description of a compressed buffer is refused. The range is that of the bytes at fault.
pub struct RefusedPacking {
    pub at: usize,
    pub what: String,
}

/// Reads the description of a compressed buffer from the start of `bytes`: the buffer's length, how it is stored, and
/// the length of the description.
pub fn parse(bytes: &[u8], chunk: ChunkLen) -> Result<(u64, Packed, usize), RefusedPacking> {
    let mut wire = Cursor { bytes, at: 0 };
    let fields = wire.head(head::ARRAY, "a compressed buffer as an array of 4 items")?;
    match fields {
        3 => return elsewhere(wire),
        4 => {}
        _ => {
            let what = format!(
                "expected 4 items for a compressed buffer or 3 for one elsewhere, found {fields}"
            );
            return Err(refuse(0, what));
        }
    }
    let name = wire.text()?;
    let count = wire.head(head::ARRAY, "an array of a codec's parameters")?;
    if count > MAX_PARAMETERS {
        let what =
            format!("expected at most {MAX_PARAMETERS} parameters of a codec, found {count}");
        return Err(refuse(wire.at, what));
    }
    let start = wire.at;
    let parameters = (0..count)
        .map(|_| wire.head(head::UNSIGNED, "a codec's parameter as an unsigned integer"))
        .collect::<Result<_, _>>()?;
    let coding = Coding::read(name, parameters);
    if let Some(Err(())) = coding.known() {
        let what = format!(
            "expected the parameters [width, rotated] of the codec {}, with a width of 1, 2, 4, 8 or 16 and 0 or 1, found {:?}",
            coding.shown(),
            coding.parameters()
        );
        return Err(refuse(start, what));
    }
    let at = wire.at;
    let len =
        wire.head(head::UNSIGNED, "the length of a compressed buffer as an unsigned integer")?;
    if len == 0 || i64::try_from(len).is_err() {
        let what = format!("expected a compressed buffer of 1 to 2^63 - 1 bytes, found {len}");
        return Err(refuse(at, what));
    }
    let at = wire.at;
    let count = wire.head(head::ARRAY, "an array of the lengths of stored chunks")?;
    let expected = chunk.count(len);
    // Each length takes at least one byte. So memory is only allocated for lengths that exist.
    if count != expected || count > (bytes.len() - wire.at) as u64 {
        let what = format!("expected the lengths of {expected} stored chunks, found {count}");
        return Err(refuse(at, what));
    }
    let mut lengths = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
    let mut left = len;
    while left > 0 {
        let full = left.min(chunk.get());
        let at = wire.at;
        let stored =
            wire.head(head::UNSIGNED, "the length of a stored chunk as an unsigned integer")?;
        if !(1..=full).contains(&stored) {
            let what = format!("expected a stored chunk of 1 to {full} bytes, found {stored}");
            return Err(refuse(at, what));
        }
        left -= full;
        lengths.push(stored);
    }
    // The lengths add up to at most `len`, so their sum cannot overflow.
    Ok((len, Packed::new(coding, lengths.into_iter()), wire.at))
}

/// Reads the description of a buffer whose bytes are not in the archive (SPEC 5.12), after the head of its array.
fn elsewhere(mut wire: Cursor<'_>) -> Result<(u64, Packed, usize), RefusedPacking> {
    let at = wire.at;
    let len =
        wire.head(head::UNSIGNED, "the length of a buffer elsewhere as an unsigned integer")?;
    if len == 0 || i64::try_from(len).is_err() {
        let what = format!("expected a buffer elsewhere of 1 to 2^63 - 1 bytes, found {len}");
        return Err(refuse(at, what));
    }
    let name = wire.text()?;
    let at = wire.at;
    let digest_len = wire.head(head::BYTES, "the digest of a buffer elsewhere as a byte string")?;
    if !(MIN_DIGEST..=MAX_DIGEST).contains(&digest_len) {
        let what = format!(
            "expected a digest of {MIN_DIGEST} to {MAX_DIGEST} bytes, found {digest_len} bytes"
        );
        return Err(refuse(at, what));
    }
    let end = wire.at + usize::try_from(digest_len).unwrap_or(usize::MAX);
    let Some(digest) = wire.bytes.get(wire.at..end) else {
        return Err(refuse(at, "the digest of a buffer elsewhere is cut off"));
    };
    Ok((len, Packed::new(Coding::elsewhere(name, digest.into()), std::iter::empty()), end))
}

fn refuse(at: usize, what: impl Into<String>) -> RefusedPacking {
    RefusedPacking { at, what: what.into() }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// Reads a head of this major type and returns its argument.
    fn head(&mut self, major: u8, expected: &str) -> Result<u64, RefusedPacking> {
        let found = self.bytes.get(self.at..).and_then(head::definite);
        match found {
            Some((_, arg, len)) if len as u64 != head_len(arg) => {
                Err(refuse(self.at, format!("expected {expected} with the shortest head")))
            }
            Some((found, arg, len)) if found == major => {
                self.at += len;
                Ok(arg)
            }
            _ => Err(refuse(self.at, format!("expected {expected}"))),
        }
    }

    /// Reads the name of a codec.
    fn text(&mut self) -> Result<Box<str>, RefusedPacking> {
        let at = self.at;
        let expected = || format!("expected the name of a codec, a text of 1 to {MAX_CODEC} bytes");
        let len = self.head(head::TEXT, "the name of a codec as a text")?;
        let len = usize::try_from(len).ok().filter(|&len| len > 0 && len as u64 <= MAX_CODEC);
        let text = len.and_then(|len| self.bytes.get(self.at..)?.get(..len));
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        let text = text.ok_or_else(|| refuse(at, expected()))?;
        self.at += text.len();
        Ok(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{self, Codec};
    use crate::error::Category;

    fn written(len: u64, packed: &Packed) -> Vec<u8> {
        let mut items = ItemEncoder::new();
        write(packed, len, &mut items).unwrap();
        items.into_bytes()
    }

    fn zstd(lengths: &[u64]) -> Packed {
        let layout = codec::Layout::new(2, true).unwrap();
        Packed::new(Coding::new(Codec::Zstd, layout), lengths.iter().copied())
    }

    #[test]
    fn a_description_is_read_as_it_was_written() {
        let chunk = ChunkLen::new(1 << 16).unwrap();
        let other = Coding::read("later".into(), [7, u64::MAX].into());
        for (len, packed) in [
            (1, zstd(&[1])),
            (70_000, zstd(&[100, 4464])),
            (3 << 16, zstd(&[1 << 16, 1, 30])),
            (9, Packed::new(other.clone(), [3].into_iter())),
        ] {
            let mut bytes = written(len, &packed);
            let end = bytes.len();
            bytes.push(0xff);
            let (found_len, found, found_end) = parse(&bytes, chunk).map_err(|e| e.what).unwrap();
            assert_eq!((found_len, &found, found_end), (len, &packed, end));
        }
        assert!(zstd(&[1]).coding.decodes().is_ok());
        let error = other.decodes().unwrap_err();
        assert_eq!(error.category(), Category::Version);
        assert!(error.to_string().contains("the codec `later`"), "{error}");
    }

    #[test]
    fn every_cut_of_a_description_is_refused() {
        let bytes = written(70_000, &zstd(&[100, 4464]));
        let chunk = ChunkLen::new(1 << 16).unwrap();
        for end in 0..bytes.len() {
            assert!(parse(&bytes[..end], chunk).is_err(), "{end}");
        }
    }

    #[test]
    fn stored_chunks_follow_each_other() {
        let packed = zstd(&[5, 7, 1]);
        let ranges: Vec<_> = (0..4).map(|index| packed.stored(index)).collect();
        assert_eq!(ranges, [0..5, 5..12, 12..13, 0..0]);
        assert_eq!(packed.stored(u64::MAX), 0..0);
        assert_eq!(packed.stored_len(), 13);
    }
}
