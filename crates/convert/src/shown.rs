//! Shows bytes of the input in messages.

/// The most bytes that are shown.
const SHOWN: usize = 40;

/// Returns bytes of the input for a message: the first of them, with control characters escaped.
pub fn shown(bytes: &[u8]) -> String {
    let (start, more) = match bytes.get(..SHOWN) {
        Some(start) if bytes.len() > SHOWN => (start, "…"),
        _ => (bytes, ""),
    };
    format!("`{}{more}`", String::from_utf8_lossy(start).escape_debug())
}
