//! Zstandard, decompressed in Rust.

use std::io::Read as _;

use ruzstd::decoding::StreamingDecoder;

/// The window that every decoder should support, by RFC 8878, section 3.1.1.1.2.
const MIN_WINDOW: u64 = 8 << 20;

/// The largest window that a decoder allocates for so many compressed bytes, because a frame only states it.
pub fn max_window(packed: u64) -> u64 {
    MIN_WINDOW.max(packed.saturating_mul(16))
}

/// Appends the contents of frames to `out`, which then has at most `most` bytes. Checks the checksums of the frames.
///
/// # Errors
/// What is wrong with the frames.
pub fn frames(mut packed: &[u8], most: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
    const DAMAGED: &str = "cannot be decompressed with zstd";
    let window = max_window(packed.len() as u64);
    while !packed.is_empty() {
        let frame = StreamingDecoder::new_with_max_window_size(&mut packed, window);
        let mut frame = frame.map_err(|_| DAMAGED)?;
        let left = (most as u64).saturating_sub(out.len() as u64).saturating_add(1);
        (&mut frame).take(left).read_to_end(out).map_err(|_| DAMAGED)?;
        if out.len() > most {
            return Err("has more bytes than it states, or than are allowed");
        }
        let frame = frame.into_frame_decoder();
        let stated = frame.get_checksum_from_data();
        if stated.is_some() && stated != frame.get_calculated_checksum() {
            return Err("has a wrong checksum");
        }
    }
    Ok(())
}
