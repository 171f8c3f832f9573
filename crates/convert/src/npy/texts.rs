//! Arrays of texts as numpy stores them: with 4 bytes for each character, and one length for all texts.

use tenarc::tensor::Order;
use tenarc::{Error, Result};

use super::header;
use super::payload::STEP;

/// An array of texts may take `GROWTH` times the bytes of the texts, and `SLACK` bytes more.
const GROWTH: usize = 16;
const SLACK: usize = 1 << 20;

/// Returns the number of characters that an array stores for each text.
fn width(texts: &[String]) -> usize {
    texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1)
}

/// Checks that numpy reads the texts back unchanged, and that an array of them is not too large.
///
/// # Errors
/// If a text ends with a zero, or the array would be too large.
pub fn check(texts: &[String]) -> Result<()> {
    if texts.iter().any(|text| text.ends_with('\0')) {
        return Err(Error::data("a text ends with a zero character, which numpy would drop"));
    }
    let len = texts.iter().map(String::len).fold(0, usize::saturating_add);
    let most = len.saturating_mul(GROWTH).saturating_add(SLACK);
    let found = width(texts).saturating_mul(4).saturating_mul(texts.len());
    if found > most {
        let what = format!(
            "texts of {len} bytes would take {found} bytes in a numpy array, where all texts have the same length"
        );
        return Err(Error::data(what));
    }
    Ok(())
}

/// Passes an npy file of texts to `put`.
///
/// # Errors
/// If the array has more dimensions than numpy has.
pub fn emit(
    shape: &[usize],
    texts: &[String],
    put: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<()> {
    let width = width(texts);
    put(&header::encode_as(&format!("<U{width}"), shape, Order::C)?)?;
    let mut block = Vec::new();
    for text in texts {
        let end = block.len() + 4 * width;
        block.extend(text.chars().flat_map(|char| u32::from(char).to_le_bytes()));
        block.resize(end, 0);
        if block.len() >= STEP {
            put(&block)?;
            block.clear();
        }
    }
    put(&block)
}
