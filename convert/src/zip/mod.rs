//! As much of the zip format (PKWARE's APPNOTE.TXT) as npz and torch files use: stored and deflated
//! members, 64-bit sizes, data descriptors; one disk, no encryption.
//!
//! Everything that stands there twice must be the same twice: most of what a zip file says is in its
//! directory and before each member, and what such a file holds depends on which of them a reader
//! believes. General libraries believe one, and repair what they can.

mod bytes;
mod contents;
mod directory;
pub mod write;

pub use bytes::Bytes;
pub use contents::Contents;
pub use directory::Directory;

use contents::read_at;

/// Signatures of the records.
mod signature {
    pub const LOCAL: [u8; 4] = *b"PK\x03\x04";
    pub const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
    pub const CENTRAL: [u8; 4] = *b"PK\x01\x02";
    pub const END: [u8; 4] = *b"PK\x05\x06";
    pub const END64: [u8; 4] = *b"PK\x06\x06";
    pub const LOCATOR64: [u8; 4] = *b"PK\x06\x07";
}

/// Bits of the flags.
mod flag {
    pub const ENCRYPTED: u16 = 1;
    pub const DESCRIPTOR: u16 = 1 << 3;
    pub const PATCHES: u16 = 1 << 5;
    pub const STRONGLY_ENCRYPTED: u16 = 1 << 6;
    pub const UTF8: u16 = 1 << 11;
    pub const MASKED: u16 = 1 << 13;
}

const STORED: u16 = 0;
const DEFLATED: u16 = 8;

/// Stands for a number of 32 bits that is found in the 64-bit field instead.
const IN_ZIP64: u32 = u32::MAX;

/// The header of the extra field with 64-bit numbers.
const ZIP64_FIELD: u16 = 1;

/// Fixed parts of the records.
const LOCAL_LEN: usize = 30;
const CENTRAL_LEN: usize = 46;
const END_LEN: usize = 22;
const END64_LEN: usize = 56;
const LOCATOR64_LEN: usize = 20;

/// A member of a zip file, as its directory lists it: nothing of its contents was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    name: String,
    method: u16,
    flags: u16,
    crc: u32,
    /// Whether the checksum is one.
    checked: bool,
    compressed: u64,
    inflated: u64,
    /// Where its local header starts.
    offset: u64,
    /// Where the next member or the directory starts.
    limit: u64,
}

impl Member {
    /// Its name, as it stands in the file: never to be used as the path of a file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes it takes in the file.
    pub fn compressed_len(&self) -> u64 {
        self.compressed
    }

    /// Bytes of its contents, as the directory claims.
    pub fn byte_len(&self) -> u64 {
        self.inflated
    }

    /// Whether the place of the checksum is empty, as far as can be told.
    pub(super) fn may_lack_checksum(&self) -> bool {
        self.crc == 0
    }

    /// Takes it that there is no checksum.
    pub(super) fn without_checksum(&mut self) {
        self.checked = false;
    }

    /// Whether its contents are deflated rather than stored.
    pub fn is_deflated(&self) -> bool {
        self.method == DEFLATED
    }
}

/// Little-endian fields one after the other. Behind the end they are zero; callers have checked.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        self.take(N).and_then(|bytes| bytes.try_into().ok()).unwrap_or([0; N])
    }

    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}

/// The numbers in the zip64 field, which holds those only whose short form is saturated, in this
/// order; `None` where one is missing or a field is cut short.
fn widened<const N: usize>(short: [u32; N], mut extra: &[u8]) -> Option<[u64; N]> {
    let mut wide = Vec::new();
    let mut seen = false;
    while !extra.is_empty() {
        let mut fields = Fields(extra);
        // Some writers pad with a few bytes that are no field.
        if extra.len() < 4 {
            break;
        }
        let (id, len) = (fields.u16(), fields.u16());
        let content = fields.take(len.into())?;
        if id == ZIP64_FIELD {
            // Which of two would count depends on the reader.
            if std::mem::replace(&mut seen, true) {
                return None;
            }
            wide.extend(content.chunks_exact(8).map(|number| Fields(number).u64()));
        }
        extra = fields.0;
    }
    let mut wide = wide.into_iter();
    let mut full = [0; N];
    for (full, short) in full.iter_mut().zip(short) {
        *full = if short == IN_ZIP64 && seen { wide.next()? } else { short.into() };
    }
    Some(full)
}
