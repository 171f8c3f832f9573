//! Whether what was given as an archive may be a message.

use super::source;
use crate::io::at::ReadAt;
use crate::wire::head::{self, Parsed};

/// More bytes than any message is assumed to have whose end is not known.
pub const LONGEST: u64 = 1 << 40;

/// Heads of items that are looked at.
const MAX_HEADS: usize = 1000;

/// Whether the first `known` bytes of what may be `len` bytes long can be those of one well-formed item. Contents
/// of strings are not read.
pub fn may_be_message<S: ReadAt + ?Sized>(source: &S, known: u64, len: u64) -> bool {
    is_well_formed(source, known, len).unwrap_or(false)
}

fn is_well_formed<S: ReadAt + ?Sized>(source: &S, known: u64, len: u64) -> Option<bool> {
    let mut at = 0u64;
    // Items still to come in each array, map and tag that is open; `None` up to a break.
    let mut open = vec![Some(1u64)];
    for _ in 0..MAX_HEADS {
        while open.last() == Some(&Some(0)) {
            open.pop();
        }
        // In a string that goes on behind what is known.
        if at > known {
            return Some(known < len);
        }
        let Some(left) = open.last_mut() else { return Some(at == known) };
        let window = source::bytes(source, at, (known - at).min(9)).ok()?;
        let (head, head_len) = match head::parse(&window) {
            Parsed::Head(head, len) => (head, len as u64),
            Parsed::Short(_) => return Some(known < len),
            Parsed::Malformed(_) => return None,
        };
        at += head_len;
        match left {
            None if head.initial == head::BREAK => {
                open.pop();
                continue;
            }
            None => {}
            Some(_) if head.initial == head::BREAK => return None,
            Some(left) => *left -= 1,
        }
        // Each element and each byte of a string takes a byte.
        let room = len.checked_sub(at)?;
        let length = head.length();
        let fits = length.is_none_or(|length| length <= room);
        match head.major() {
            head::BYTES | head::TEXT if fits => match length {
                Some(length) => at += length,
                None => open.push(None),
            },
            head::ARRAY if fits => open.push(length),
            head::MAP if fits => open.push(length.map(|entries| entries.saturating_mul(2))),
            head::TAG => open.push(Some(1)),
            head::BYTES | head::TEXT | head::ARRAY | head::MAP => return None,
            _ => {}
        }
    }
    Some(true)
}
