//! How compressed buffers are stored (SPEC 5.11).

use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use crate::codec::{self, Codec};
use crate::error::{Category, Error, Result};
use crate::io::checksum::Hasher;
use crate::io::chunks::ChunkLen;

/// A codec and its parameters. A reader need not know them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coding {
    /// Of the codec, or of the hash function if there is a digest.
    name: Box<str>,
    parameters: Box<[u64]>,
    /// The digest of the buffer's bytes, if these are not in the archive (SPEC 5.12).
    digest: Option<Box<[u8]>>,
}

impl Coding {
    /// Makes the coding of a codec that this version knows.
    pub fn new(codec: Codec, layout: codec::Layout) -> Self {
        let parameters = [layout.width() as u64, u64::from(layout.rotated())];
        Self::read(codec.name().into(), parameters.into())
    }

    /// Makes the coding that a header describes. This version may not know it.
    pub fn read(name: Box<str>, parameters: Box<[u64]>) -> Self {
        Self { name, parameters, digest: None }
    }

    /// Makes the coding of a buffer whose bytes are not in the archive, but have this digest.
    pub fn elsewhere(hash: Box<str>, digest: Box<[u8]>) -> Self {
        Self { name: hash, parameters: Box::default(), digest: Some(digest) }
    }

    /// The digest of the buffer's bytes, if these are not in the archive.
    pub fn digest(&self) -> Option<&[u8]> {
        self.digest.as_deref()
    }

    /// The parameters of the codec.
    pub fn parameters(&self) -> &[u64] {
        &self.parameters
    }

    /// Returns the codec and the layout that decompress the chunks. `None` if this version does not know the codec. An
    /// error if the codec does not have these parameters.
    pub fn known(&self) -> Option<Result<(Codec, codec::Layout), ()>> {
        if self.digest.is_some() {
            return None;
        }
        let codec = Codec::from_name(&self.name)?;
        let layout = match *self.parameters {
            [width, rotated @ (0 | 1)] => usize::try_from(width)
                .ok()
                .and_then(|width| codec::Layout::new(width, rotated == 1)),
            _ => None,
        };
        Some(layout.map(|layout| (codec, layout)).ok_or(()))
    }

    /// Returns the codec and the layout that decompress the chunks.
    ///
    /// # Errors
    /// If this version does not know the codec.
    pub fn decodes(&self) -> Result<(Codec, codec::Layout)> {
        match self.known() {
            Some(Ok(known)) => Ok(known),
            _ => {
                self.is_here()?;
                let name = self.shown();
                let what = format!("this version of tenarc does not know the codec `{name}`");
                Err(Error::new(Category::Version, what))
            }
        }
    }

    /// # Errors
    /// If the bytes of the buffer are not in the archive.
    pub fn is_here(&self) -> Result<()> {
        if self.digest.is_none() {
            return Ok(());
        }
        let digest = self.shown();
        let what =
            format!("the bytes of the tensor are not in the archive; their digest is {digest}");
        Err(Error::unsupported(what))
    }

    /// The name of the codec.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name for messages: without control characters. For a buffer elsewhere, with its digest.
    pub fn shown(&self) -> String {
        let name = self.name.escape_debug();
        let mut shown = name.to_string();
        for (number, byte) in self.digest().unwrap_or_default().iter().enumerate() {
            // Writing to a `String` cannot fail.
            let _ = write!(shown, "{}{byte:02x}", if number == 0 { " " } else { "" });
        }
        shown
    }
}

/// How a compressed buffer is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    pub coding: Coding,
    /// The end of each stored chunk. The first one starts at 0.
    ends: Arc<[u64]>,
}

impl Packed {
    /// Describes stored chunks of these lengths.
    pub fn new(coding: Coding, lengths: impl Iterator<Item = u64>) -> Self {
        let mut end = 0;
        let ends = lengths.map(|len| {
            end += len;
            end
        });
        Self { ends: ends.collect(), coding }
    }

    /// The stored length of each chunk.
    pub fn lengths(&self) -> impl Iterator<Item = u64> {
        let starts = std::iter::once(&0).chain(&*self.ends);
        self.ends.iter().zip(starts).map(|(end, start)| end - start)
    }

    /// The number of chunks.
    pub fn chunks(&self) -> u64 {
        self.ends.len() as u64
    }

    /// The number of stored bytes.
    pub fn stored_len(&self) -> u64 {
        self.ends.last().copied().unwrap_or_default()
    }

    /// The range of a chunk in the stored bytes. Empty if there is no such chunk.
    pub fn stored(&self, index: u64) -> Range<u64> {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let Some(&end) = self.ends.get(index) else { return 0..0 };
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before));
        start.copied().unwrap_or_default()..end
    }
}

/// A payload that is compressed already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Precompressed {
    pub how: Packed,
    /// The length of its chunks before they were compressed.
    pub chunk_len: ChunkLen,
}

/// Computes the hashes of stored chunks, whose bytes arrive in pieces.
pub struct StoredHasher {
    how: Packed,
    /// The number of the current chunk, and how many of its bytes were taken.
    index: u64,
    taken: u64,
    hasher: Hasher,
}

impl StoredHasher {
    pub fn new(how: Packed) -> Self {
        Self { how, index: 0, taken: 0, hasher: Hasher::new() }
    }

    /// Takes the next stored bytes. Calls `each` with the hash of each chunk that they complete.
    pub fn update(&mut self, mut bytes: &[u8], mut each: impl FnMut(u64)) {
        while !bytes.is_empty() {
            let Range { start, end } = self.how.stored(self.index);
            let left = usize::try_from(end - start - self.taken).unwrap_or(usize::MAX);
            let (now, rest) = bytes.split_at(left.min(bytes.len()));
            if now.is_empty() {
                // More bytes than are stored.
                break;
            }
            self.hasher.update(now);
            self.taken += now.len() as u64;
            bytes = rest;
            if now.len() == left {
                let hasher = std::mem::replace(&mut self.hasher, Hasher::new());
                each(hasher.finish());
                self.index += 1;
                self.taken = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::checksum;

    #[test]
    fn the_hashes_of_stored_chunks_do_not_depend_on_the_pieces() {
        let layout = codec::Layout::new(1, false).unwrap();
        let lengths = [3u64, 1, 9, 4];
        let packed = Packed::new(Coding::new(Codec::Zstd, layout), lengths.into_iter());
        assert_eq!(packed.lengths().collect::<Vec<_>>(), lengths);
        let bytes: Vec<u8> = (0..17).collect();
        let expected = [0..3, 3..4, 4..13, 13..17].map(|range| checksum::of(&bytes[range], 0));
        for pieces in [1, 2, 3, 5, 17] {
            let mut hasher = StoredHasher::new(packed.clone());
            let mut found = Vec::new();
            bytes.chunks(pieces).for_each(|piece| hasher.update(piece, |hash| found.push(hash)));
            hasher.update(b"more", |hash| found.push(hash));
            assert_eq!(found, expected, "{pieces}");
        }
    }
}
