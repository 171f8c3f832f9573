//! Reads and writes the part of the zip format (PKWARE's APPNOTE.TXT) that npz, torch and Keras files use: stored and deflated
//! members, 64-bit sizes, and data descriptors. Zip files of several disks and encrypted members are errors.
//!
//! A zip file states most facts twice: in the central directory and in the local header before each member. If the two
//! differ, readers that trust one see other contents than readers that trust the other. So if names, flags, methods,
//! sizes or checksums differ, this is an error here. General zip libraries trust one of the two, and repair what they
//! can.

mod bytes;
mod contents;
mod directory;
pub mod write;

pub use bytes::Bytes;
pub use contents::Contents;
pub use directory::Directory;

/// The signatures of the records.
mod signature {
    pub const LOCAL: [u8; 4] = *b"PK\x03\x04";
    pub const DESCRIPTOR: [u8; 4] = *b"PK\x07\x08";
    pub const CENTRAL: [u8; 4] = *b"PK\x01\x02";
    pub const END: [u8; 4] = *b"PK\x05\x06";
    pub const END64: [u8; 4] = *b"PK\x06\x06";
    pub const LOCATOR64: [u8; 4] = *b"PK\x06\x07";
}

/// The bits of the flags of a member.
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

/// The value of a 32-bit field whose number is in the zip64 field instead.
const IN_ZIP64: u32 = u32::MAX;

/// The id of the zip64 field: the extra field with 64-bit numbers.
const ZIP64_FIELD: u16 = 1;

/// The length of a local header without its name and extra fields. The other constants are the lengths of the fixed
/// parts of the other records.
const LOCAL_LEN: usize = 30;
const CENTRAL_LEN: usize = 46;
const END_LEN: usize = 22;
const END64_LEN: usize = 56;
const LOCATOR64_LEN: usize = 20;

/// A member of a zip file, as the central directory lists it. Its contents are not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    name: String,
    method: u16,
    flags: u16,
    crc: u32,
    /// Whether the contents are checked against `crc`.
    checked: bool,
    compressed: u64,
    inflated: u64,
    /// The offset of its local header.
    offset: u64,
    /// The offset of the next member, or of the central directory if this is the last member.
    limit: u64,
}

impl Member {
    /// Returns the name as the zip file has it. It must not be used as the path of a file, because it can lead to any
    /// directory.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of bytes that the contents take in the zip file.
    pub fn compressed_len(&self) -> u64 {
        self.compressed
    }

    /// Returns the length of the contents that the directory states. It may be wrong.
    pub fn byte_len(&self) -> u64 {
        self.inflated
    }

    /// Returns whether the checksum field is zero. Then the member may have no checksum, or its checksum is zero.
    pub(super) fn may_lack_checksum(&self) -> bool {
        self.crc == 0
    }

    /// Makes readers ignore the checksum.
    pub(super) fn without_checksum(&mut self) {
        self.checked = false;
    }

    /// Returns whether the contents are deflated.
    pub fn is_deflated(&self) -> bool {
        self.method == DEFLATED
    }
}

/// Reads little-endian fields one after the other. Fields after the end are read as zero, so callers check the length
/// first.
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

/// Returns the full values of 32-bit numbers. If a number is [`IN_ZIP64`] and `extra` has a zip64 field, the value is
/// in this field, which holds only such numbers, in this order. `None` if a number is missing, or a field is truncated
/// or there are two zip64 fields.
fn widened<const N: usize>(short: [u32; N], mut extra: &[u8]) -> Option<[u64; N]> {
    let mut wide = Vec::new();
    let mut seen = false;
    while !extra.is_empty() {
        let mut fields = Fields(extra);
        // Some writers add up to three bytes of padding, which are too short for a field.
        if extra.len() < 4 {
            break;
        }
        let (id, len) = (fields.u16(), fields.u16());
        let content = fields.take(len.into())?;
        if id == ZIP64_FIELD {
            // Of two zip64 fields, some readers use the first and others the last.
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
