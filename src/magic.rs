//! The first bytes of an archive, by which it differs from a message.

use crate::error::Error;

/// RFC 9277, section 2.2: tag 55800, tag "TARC", `'BOR'`.
pub const MAGIC: [u8; 12] = *b"\xd9\xd9\xf8\xda\x54\x41\x52\x43\x43BOR";

/// The error for an archive that is read as a message.
#[cold]
pub fn archive_as_message() -> Error {
    let what = "expected a message, found an archive: read it with tenarc::load, tenarc::open or \
                tenarc::IArchive";
    Error::mismatch(what).at(0)
}
