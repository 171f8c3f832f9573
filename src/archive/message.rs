//! Guesses whether an input that is not an archive is a message, for a hint in the error.

use crate::buffer::source;
use crate::io::at::ReadAt;
use crate::wire::head::{self, Parsed};

/// The assumed maximum length of a message, if the length of the input is unknown.
pub const LONGEST: u64 = 1 << 40;

/// The maximum number of items that are looked at.
const MAX_HEADS: usize = 1000;

/// Whether one well-formed CBOR item can start with the first `known` bytes of the source and have `len` bytes.
/// Skips the contents of strings.
pub fn may_be_message(source: &dyn ReadAt, known: u64, len: u64) -> bool {
    is_well_formed(source, known, len).unwrap_or(false)
}

fn is_well_formed(source: &dyn ReadAt, known: u64, len: u64) -> Option<bool> {
    let mut at = 0u64;
    // The number of items to come at each level of nesting; `None` if a break ends the level.
    let mut levels = vec![Some(1u64)];
    for _ in 0..MAX_HEADS {
        while levels.last() == Some(&Some(0)) {
            levels.pop();
        }
        // Inside a string that continues after the known bytes.
        if at > known {
            return Some(known < len);
        }
        let Some(left) = levels.last_mut() else { return Some(at == known) };
        let window = source::bytes(source, at, (known - at).min(9)).ok()?;
        let (head, head_len) = match head::parse(&window) {
            Parsed::Head(head, len) => (head, len as u64),
            Parsed::Short(_) => return Some(known < len),
            Parsed::Malformed(_) => return None,
        };
        at += head_len;
        match left {
            None if head.initial == head::BREAK => {
                levels.pop();
                continue;
            }
            None => {}
            Some(_) if head.initial == head::BREAK => return None,
            Some(left) => *left -= 1,
        }
        // Every element of an array or map takes at least one byte, and so does every byte of a string.
        let room = len.checked_sub(at)?;
        let length = head.length();
        let fits = length.is_none_or(|length| length <= room);
        match head.major() {
            head::BYTES | head::TEXT if fits => match length {
                Some(length) => at += length,
                None => levels.push(None),
            },
            head::ARRAY if fits => levels.push(length),
            head::MAP if fits => levels.push(length.map(|entries| entries.saturating_mul(2))),
            head::TAG => levels.push(Some(1)),
            head::BYTES | head::TEXT | head::ARRAY | head::MAP => return None,
            _ => {}
        }
    }
    Some(true)
}
