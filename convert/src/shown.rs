//! Bytes from the input in messages.

/// Bytes shown of what is not understood.
const SHOWN: usize = 40;

/// Bytes from the input as they can be put into a message.
pub fn shown(bytes: &[u8]) -> String {
    let (start, more) = match bytes.get(..SHOWN) {
        Some(start) if bytes.len() > SHOWN => (start, "…"),
        _ => (bytes, ""),
    };
    format!("`{}{more}`", String::from_utf8_lossy(start).escape_debug())
}
