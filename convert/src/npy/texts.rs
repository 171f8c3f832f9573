//! Arrays of texts as numpy stores them: characters of 4 bytes, all texts of one length.

use tenarc::tensor::Order;
use tenarc::{Error, Result};

use super::header;
use super::payload::STEP;

/// What an array may take beyond the texts themselves: this many times their bytes, and this many more.
const GROWTH: usize = 16;
const SLACK: usize = 1 << 20;

/// The number of characters that each text takes.
fn width(texts: &[String]) -> usize {
    texts.iter().map(|text| text.chars().count()).max().unwrap_or(0).max(1)
}

/// That numpy would give the texts back, in a file of reasonable size.
///
/// # Errors
/// If it would not.
pub fn check(texts: &[String]) -> Result<()> {
    if texts.iter().any(|text| text.ends_with('\0')) {
        return Err(Error::data("numpy would drop the zero at the end of a text"));
    }
    let len = texts.iter().map(String::len).fold(0, usize::saturating_add);
    let most = len.saturating_mul(GROWTH).saturating_add(SLACK);
    let found = width(texts).saturating_mul(4).saturating_mul(texts.len());
    if found > most {
        let what = format!(
            "texts of {len} bytes would take {found} in an array of numpy, where all have one length"
        );
        return Err(Error::data(what));
    }
    Ok(())
}

/// Hands over an npy file of texts.
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
