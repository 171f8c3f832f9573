//! The messages of object headers as the file has them. The crate keeps only what it knows of a message.

use hdf5_reader::Hdf5File;
use hdf5_reader::error::{Error, Result};
use hdf5_reader::io::Cursor;

/// The type of the message that says where the rest of a header is.
const CONTINUATION: u16 = 0x10;

/// A message as the file has it.
pub struct Raw<'b> {
    pub kind: u16,
    /// Whether the message is elsewhere, and this one says where.
    pub is_shared: bool,
    /// The address of its bytes.
    pub at: u64,
    pub bytes: &'b [u8],
    /// The addresses of the first byte with which a checksum is computed, and of the checksum. `None` in headers of version
    /// 1, which have none.
    pub checksum: Option<(u64, u64)>,
}

/// Returns the last message of a type in the header at `address`, whose signatures and checksums the crate has checked.
pub fn message(file: &Hdf5File, address: u64, wanted: u16) -> Result<Option<Vec<u8>>> {
    let mut found = None;
    each(file, address, &mut |message| {
        if message.kind == wanted {
            found = Some(message.bytes.to_vec());
        }
        Ok(())
    })?;
    Ok(found)
}

/// Calls `found` with every message of the header at `address`.
pub fn each(
    file: &Hdf5File,
    address: u64,
    found: &mut dyn FnMut(Raw<'_>) -> Result<()>,
) -> Result<()> {
    let storage = file.storage();
    let superblock = file.superblock();
    let (offset_size, length_size) = (superblock.offset_size, superblock.length_size);
    let available = usize::try_from(storage.len().saturating_sub(address)).unwrap_or(usize::MAX);
    let start = storage.read_range(address, available.min(MOST_BEFORE))?;
    let mut cursor = Cursor::new(start.as_ref());
    let is_old = cursor.peek_bytes(4)? != b"OHDR";
    let (len, has_order) = if is_old {
        // The version, a reserved byte, the numbers of messages and of references, and the length, filled up to 16 bytes.
        cursor.skip(8)?;
        let len = cursor.read_u32_le()?;
        cursor.skip(4)?;
        (len.into(), false)
    } else {
        cursor.skip(5)?;
        let flags = cursor.read_u8()?;
        let times = if flags & 0x20 == 0 { 0 } else { 16 };
        let phases = if flags & 0x10 == 0 { 0 } else { 4 };
        cursor.skip(times + phases)?;
        (cursor.read_uvar(1 << (flags & 3))?, flags & 4 != 0)
    };
    let mut left = storage.len();
    // The addresses of the first byte of each block and of its first message, and the length of the messages.
    let mut blocks = vec![(address, address.saturating_add(cursor.position()), len)];
    let mut nth = 0;
    while let Some(&(start, at, len)) = blocks.get(nth) {
        nth += 1;
        let too_long = || Error::InvalidData("an object header is longer than the file".to_owned());
        left = left.checked_sub(len.max(1)).ok_or_else(too_long)?;
        let block = storage.read_range(at, usize::try_from(len).unwrap_or(usize::MAX))?;
        let end = at.saturating_add(len);
        let mut cursor = Cursor::new(block.as_ref());
        // What is too short for a message fills the block up.
        let head = if is_old { 8 } else { 4 + 2 * usize::from(has_order) };
        while cursor.remaining() >= head as u64 {
            let kind = if is_old { cursor.read_u16_le()? } else { cursor.read_u8()?.into() };
            let len = usize::from(cursor.read_u16_le()?);
            // Flags, and then reserved bytes, or the order of creation.
            let is_shared = cursor.read_u8()? & 2 != 0;
            cursor.skip(if is_old { 3 } else { head - 4 })?;
            let body = at.saturating_add(cursor.position());
            let bytes = cursor.read_bytes(len)?;
            let checksum = (!is_old).then_some((start, end));
            found(Raw { kind, is_shared, at: body, bytes, checksum })?;
            if kind == CONTINUATION {
                let mut cursor = Cursor::new(bytes);
                let at = cursor.read_offset(offset_size)?;
                let len = cursor.read_length(length_size)?;
                // A signature is in front, and a checksum behind.
                blocks.push(if is_old {
                    (at, at, len)
                } else {
                    (at, at.saturating_add(4), len.saturating_sub(8))
                });
            }
        }
    }
    Ok(())
}

/// The most bytes before the first message.
const MOST_BEFORE: usize = 34;
