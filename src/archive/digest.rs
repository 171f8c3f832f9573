//! Digests, which name the content of a segment or archive (SPEC 5.10).

use std::fmt;
use std::str::FromStr;

use crate::buffer::loaded::Loaded;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::checksum::Identity;
use crate::segment::format::{self, Check};
use crate::segment::header::HeaderContent;

/// The digest of a segment or an archive: 16 bytes that name its content.
///
/// It is computed from the headers and the stored checksums, so that no tensor is read. Equal values that were saved
/// with equal options have equal digests. It is displayed as 32 hexadecimal digits.
///
/// The hash is XXH3, which is not cryptographic. It tells whether two files differ, but does not protect against
/// somebody who wants two files to have the same digest.
///
/// ```
/// use tenarc::{Archive, OArchive, Tensor};
///
/// let saved = |values: Vec<f32>| -> tenarc::Result<_> {
///     let mut out = OArchive::new(Vec::new())?;
///     out.save_as("weights", &Tensor(values))?;
///     Archive::new(out.finish()?)?.digest()
/// };
/// assert_eq!(saved(vec![0.5; 1000])?, saved(vec![0.5; 1000])?);
/// let digest = saved(vec![0.5; 1000])?;
/// assert_eq!(digest.to_string().parse::<tenarc::archive::Digest>()?, digest);
/// assert_ne!(saved(vec![0.5; 1000])?, saved(vec![0.25; 1000])?);
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 16]);

impl Digest {
    /// The bytes, most significant first.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// `None` if these are not 16 bytes.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The digest of a segment with this header. `hashes` are the bytes of the hashes of its chunks. `None` if it has
    /// buffers without hashes.
    pub(super) fn of_segment(content: &HeaderContent<'_>, hashes: &[u8]) -> Result<Option<Self>> {
        let hashes = match content.check {
            _ if content.lengths.is_empty() => Vec::new(),
            Check::None => return Ok(None),
            check => format::hashes_item(check, hashes)?,
        };
        let ext = &content.ext.of_meaning()?;
        let unnamed = HeaderContent { name: None, ext, ..*content };
        Ok(Some(Self::of(&[&unnamed.before_metadata()?, content.metadata, &hashes])))
    }

    pub(super) fn of(pieces: &[&[u8]]) -> Self {
        let mut hasher = Identity::new(0);
        for piece in pieces {
            hasher.update(piece);
        }
        Self(hasher.finish().to_be_bytes())
    }
}

impl Loaded {
    /// The digest. `None` if the segment has buffers without checksums.
    pub fn digest<S: ReadAt + ?Sized>(&self, source: &S) -> Result<Option<Digest>> {
        let header = &self.header;
        let lengths = header.lengths();
        let metadata = self.stored_metadata(source)?;
        let content = header.content(None, &lengths, &header.layout.packed, metadata);
        Digest::of_segment(&content, &self.hash_bytes(source)?)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

/// Reads the 32 hexadecimal digits that `Display` writes.
impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| digits);
        number.map(|number| Self(number.to_be_bytes())).ok_or_else(|| {
            let found: String = text.chars().take(64).collect();
            let found = found.escape_debug();
            Error::data(format!("expected a digest of 32 hexadecimal digits, found `{found}`"))
        })
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_come_back_from_their_text() {
        let digest = Digest([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff]);
        assert_eq!(digest.to_string(), "000102030405060708090a0b0c0d0eff");
        assert_eq!(digest.to_string().parse::<Digest>().ok(), Some(digest));
        assert_eq!(digest.to_string().to_uppercase().parse::<Digest>().ok(), Some(digest));
        for wrong in
            ["", "ff", "+00102030405060708090a0b0c0d0eff", &"0".repeat(33), &"g".repeat(32)]
        {
            let error = wrong.parse::<Digest>().unwrap_err();
            assert!(error.to_string().contains("32 hexadecimal digits"), "{error}");
        }
    }
}
