//! Finds out what a well-formed encoded item contains, without decoding it.

use super::head::{self, Parsed};
use super::reader::Reader;
use super::tag;
use crate::io::input::Input;
use crate::options::Limits;

/// Whether an option that is read from this item depends on `Some` tags: the item is null or undefined,
/// or starts with a `Some` tag.
pub fn reads_as_none(item: &[u8]) -> bool {
    match head::parse(item) {
        Parsed::Head(head, _) => {
            matches!(head.initial, head::NULL | head::UNDEFINED)
                || head.major() == head::TAG && head.arg == tag::SOME
        }
        _ => false,
    }
}

/// Whether a well-formed item contains a reference to a buffer. Such a reference is only valid in the
/// archive that the item comes from.
pub fn holds_reference(item: &[u8]) -> bool {
    // Except for the content of strings, an item consists of one head after the other.
    let mut rest = item;
    while let Parsed::Head(head, len) = head::parse(rest) {
        let content = match head.major() {
            head::BYTES | head::TEXT => head.length().unwrap_or(0),
            head::TAG if head.arg == tag::BUFFER => return true,
            _ => 0,
        };
        let step = usize::try_from(content).ok().and_then(|content| content.checked_add(len));
        rest = step.and_then(|step| rest.get(step..)).unwrap_or_default();
    }
    false
}

/// Whether an item is nested deeper than `levels`. Each level takes at least one byte, so short items
/// are not walked.
pub fn is_deeper(item: &[u8], levels: usize) -> bool {
    let limits = Limits::default().with_max_depth(levels);
    item.len() > levels && Reader::new(Input::slice(item), limits).skip().is_err()
}
