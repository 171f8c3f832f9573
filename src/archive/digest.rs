//! Digests, which name the content of a segment or archive (SPEC 5.12).

use std::fmt;

use super::file::Archive;
use super::segment::Segment;
use crate::error::{Error, Result};
use crate::io::at::ReadAt;
use crate::io::checksum::Identity;
use crate::segment::format::{self, Items};
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
        let header = self.header();
        let hashes = match header.count() {
            0 => Vec::new(),
            _ if !header.checked => {
                let what = "a segment without checksums has no digest";
                return Err(Error::data(what).at(header.offset));
            }
            _ => format::hashes_item(self.loaded.hashes(self.source)?.all())?,
        };
        let lengths = header.lengths();
        let metadata = self.metadata()?;
        let content = header.content(None, &lengths, &header.layout.packed, metadata);
        Ok(Digest::of(&[&content.before_metadata()?, metadata, &hashes]))
    }
}

impl<S: ReadAt> Archive<S> {
    /// The digest of all values and their names, in order.
    ///
    /// It does not depend on how often the archive was appended to. The checksums are read, but not the tensors.
    ///
    /// # Errors
    /// If a value has tensors in buffers and was saved without checksums, or the archive is torn or damaged.
    pub fn digest(&self) -> Result<Digest> {
        if let Some(error) = self.torn() {
            return Err(error.again());
        }
        let mut items = Items::new();
        items.head(head::ARRAY, self.len())?;
        for segment in self.segments() {
            let segment = segment?;
            items.head(head::ARRAY, 2)?.name(segment.name())?;
            items.head(head::BYTES, 16)?.raw(&segment.digest()?.0)?;
        }
        Ok(Digest::of(&[&items.into_bytes()]))
    }
}
