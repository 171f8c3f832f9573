//! Compressed buffers, as headers describe them (SPEC 5.13).

use std::collections::BTreeMap;
use std::ops::Range;

use super::format::Items;
use crate::codec::{self, Codec};
use crate::error::{Category, Error, Result};
use crate::io::chunks::ChunkLen;
use crate::wire::head;

/// The maximum length of a codec's name in bytes.
pub const MAX_CODEC: u64 = 64;
/// The most parameters that a codec may have.
pub const MAX_PARAMETERS: u64 = 16;

/// The compressed buffers of a segment by number. Other buffers are stored as they are.
pub type PackedBuffers = BTreeMap<usize, Packed>;

/// A codec and its parameters. A reader need not know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coding {
    name: Box<str>,
    parameters: Box<[u64]>,
}

impl Coding {
    /// What a writer that knows the codec uses.
    pub fn new(codec: Codec, layout: codec::Layout) -> Self {
        let parameters = [layout.width() as u64, u64::from(layout.rotated())];
        Self { name: codec.name().into(), parameters: parameters.into() }
    }

    /// What decompresses the chunks. `None` if this version does not know the codec.
    fn known(&self) -> Option<Result<(Codec, codec::Layout), ()>> {
        let codec = Codec::from_name(&self.name)?;
        let layout = match *self.parameters {
            [width, rotated @ (0 | 1)] => usize::try_from(width)
                .ok()
                .and_then(|width| codec::Layout::new(width, rotated == 1)),
            _ => None,
        };
        Some(layout.map(|layout| (codec, layout)).ok_or(()))
    }

    /// What decompresses the chunks.
    ///
    /// # Errors
    /// If this version does not know the codec.
    pub fn decodes(&self) -> Result<(Codec, codec::Layout)> {
        match self.known() {
            Some(Ok(known)) => Ok(known),
            _ => {
                let what =
                    format!("this version of tenarc does not know the codec `{}`", self.shown());
                Err(Error::new(Category::Version, what))
            }
        }
    }

    /// The name of the codec.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name for messages: without control characters.
    pub fn shown(&self) -> std::str::EscapeDebug<'_> {
        self.name.escape_debug()
    }
}

/// How a compressed buffer is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    pub coding: Coding,
    /// The end of each stored chunk. The first one starts at 0.
    ends: Vec<u64>,
}

impl Packed {
    /// For stored chunks of these lengths.
    pub fn new(coding: Coding, lengths: impl Iterator<Item = u64>) -> Self {
        let mut end = 0;
        let ends = lengths.map(|len| {
            end += len;
            end
        });
        Self { ends: ends.collect(), coding }
    }

    /// The number of chunks.
    pub fn chunks(&self) -> u64 {
        self.ends.len() as u64
    }

    /// The number of stored bytes.
    pub fn stored_len(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }

    /// Where a chunk is in the stored bytes. Empty if there is no such chunk.
    pub fn stored(&self, index: u64) -> Range<u64> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(&end) = self.ends.get(index) else { return 0..0 };
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before));
        start.copied().unwrap_or_default()..end
    }

    /// Appends the element of the header's `lengths` for a buffer of `len` bytes.
    pub fn write(&self, len: u64, items: &mut Items) -> Result<()> {
        let Self { coding: Coding { name, parameters }, ends } = self;
        items.head(head::ARRAY, 4)?.name(Some(name))?;
        items.head(head::ARRAY, parameters.len() as u64)?;
        for &parameter in parameters {
            items.head(head::UNSIGNED, parameter)?;
        }
        items.head(head::UNSIGNED, len)?.head(head::ARRAY, ends.len() as u64)?;
        let mut start = 0;
        for &end in ends {
            items.head(head::UNSIGNED, end - start)?;
            start = end;
        }
        Ok(())
    }
}

/// Why the description of a compressed buffer is refused. The range is that of the bytes at fault.
pub struct Refused {
    pub at: usize,
    pub what: String,
}

/// Reads the description of a compressed buffer from the start of `bytes`: the buffer's length, how it is stored, and
/// the length of the description.
pub fn parse(bytes: &[u8], chunk: ChunkLen) -> Result<(u64, Packed, usize), Refused> {
    let mut wire = Cursor { bytes, at: 0 };
    let fields = wire.head(head::ARRAY, "a compressed buffer as an array of 4 items")?;
    if fields != 4 {
        return Err(refuse(0, format!("expected 4 items for a compressed buffer, found {fields}")));
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
    let coding = Coding { name, parameters };
    if let Some(Err(())) = coding.known() {
        let what = format!(
            "expected the parameters [width, rotated] of the codec {}, with a width of 1, 2, 4, 8 or 16 and 0 or 1, found {:?}",
            coding.shown(),
            coding.parameters
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
    // Each length takes a byte at least, so that memory is only allocated for what is there.
    if count != expected || count > (bytes.len() - wire.at) as u64 {
        let what = format!("expected the lengths of {expected} stored chunks, found {count}");
        return Err(refuse(at, what));
    }
    let mut ends = Vec::with_capacity(usize::try_from(count).unwrap_or_default());
    let (mut end, mut left) = (0, len);
    while left > 0 {
        let full = left.min(chunk.get());
        let at = wire.at;
        let stored =
            wire.head(head::UNSIGNED, "the length of a stored chunk as an unsigned integer")?;
        if !(1..=full).contains(&stored) {
            let what = format!("expected a stored chunk of 1 to {full} bytes, found {stored}");
            return Err(refuse(at, what));
        }
        // At most the length of the buffer in total.
        end += stored;
        left -= full;
        ends.push(end);
    }
    Ok((len, Packed { coding, ends }, wire.at))
}

fn refuse(at: usize, what: impl Into<String>) -> Refused {
    Refused { at, what: what.into() }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// Reads a head of this major type and returns its argument.
    fn head(&mut self, major: u8, expected: &str) -> Result<u64, Refused> {
        let found = self.bytes.get(self.at..).and_then(head::definite);
        match found {
            Some((found, arg, len)) if found == major => {
                self.at += len;
                Ok(arg)
            }
            _ => Err(refuse(self.at, format!("expected {expected}"))),
        }
    }

    /// Reads the name of a codec.
    fn text(&mut self) -> Result<Box<str>, Refused> {
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

    fn written(len: u64, packed: &Packed) -> Vec<u8> {
        let mut items = Items::new();
        packed.write(len, &mut items).unwrap();
        items.into_bytes()
    }

    fn zstd(lengths: &[u64]) -> Packed {
        let layout = codec::Layout::new(2, true).unwrap();
        Packed::new(Coding::new(Codec::Zstd, layout), lengths.iter().copied())
    }

    #[test]
    fn a_description_is_read_as_it_was_written() {
        let chunk = ChunkLen::new(1 << 16).unwrap();
        let other = Coding { name: "later".into(), parameters: [7, u64::MAX].into() };
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
