//! Digests, which name the content of a segment or archive (SPEC 5.10).

use std::fmt;

use super::directory::Fact;
use super::file::Archive;
use super::segment::Segment;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::checksum::Identity;
use crate::segment::format::{self, Check, ItemEncoder};
use crate::segment::header::HeaderContent;
use crate::wire::head;

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

    fn of(pieces: &[&[u8]]) -> Self {
        let mut hasher = Identity::new(0);
        for piece in pieces {
            hasher.update(piece);
        }
        Self(hasher.finish().to_be_bytes())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl<S: ReadAt + ?Sized> Segment<'_, S> {
    /// The digest of the value. It does not depend on the name of the segment or its place in the archive.
    ///
    /// The checksums are read, but not the tensors: damage in a tensor is found by [`verify`](Archive::verify).
    ///
    /// # Errors
    /// If the value has tensors in buffers and was saved without checksums, or the segment is torn or damaged.
    pub fn digest(&self) -> Result<Digest> {
        self.loaded.digest(self.source)?.ok_or_else(|| no_digest(self.offset()))
    }
}

impl<S: ReadAt> Archive<S> {
    /// The digest of all values and their names, in order.
    ///
    /// It does not depend on how often the archive was appended to. Most digests of values are read from the directory. For the
    /// latest ones, at most 63, their headers and checksums are read, but not their tensors.
    ///
    /// # Errors
    /// If a value has tensors in buffers and was saved without checksums, or the archive is torn or damaged.
    pub fn digest(&self) -> Result<Digest> {
        if let Some(error) = self.torn() {
            return Err(error.again());
        }
        let mut items = ItemEncoder::new();
        items.head(head::ARRAY, self.len())?;
        for entry in self.entries() {
            let entry = entry?;
            let digest = match entry.digest {
                Fact::Known(Some(digest)) => digest,
                // If the directory has none, the segment has one only if its writer could not compute it.
                Fact::Known(None) | Fact::Unknown => self.at(&entry)?.digest()?,
            };
            items.head(head::ARRAY, 2)?.name(entry.name())?;
            items.head(head::BYTES, 16)?.raw(&digest.0)?;
        }
        Ok(Digest::of(&[&items.into_bytes()]))
    }
}

#[cold]
fn no_digest(offset: u64) -> Error {
    Error::data("a segment without checksums has no digest").at(offset)
}
