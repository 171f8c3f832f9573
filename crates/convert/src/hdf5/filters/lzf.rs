//! LZF, with which h5py can compress chunks.

use hdf5_reader::error::{Error, Result};

/// Decompresses a chunk to at most `most` bytes.
///
/// Each piece starts with a control byte. Below 32, it is one less than the number of bytes that follow as they are.
/// Otherwise, its upper three bits give the length of earlier bytes that are repeated, and its lower five bits the upper
/// part of their distance. A length of 7 continues in the next byte.
pub fn decompress(mut input: &[u8], most: usize) -> Result<Vec<u8>> {
    let mut out: Vec<u8> = Vec::new();
    while let Some(control) = byte(&mut input) {
        let control = usize::from(control);
        let len = if control < 32 {
            let (plain, rest) = input.split_at_checked(control + 1).ok_or_else(cut_off)?;
            input = rest;
            out.extend_from_slice(plain);
            plain.len()
        } else {
            let mut len = control >> 5;
            if len == 7 {
                len += usize::from(byte(&mut input).ok_or_else(cut_off)?);
            }
            len += 2;
            let low = usize::from(byte(&mut input).ok_or_else(cut_off)?);
            let distance = ((control & 31) << 8 | low) + 1;
            let from = out.len().checked_sub(distance).ok_or_else(|| {
                let what = "a chunk compressed with LZF repeats bytes before its start";
                Error::DecompressionError(what.to_owned())
            })?;
            // The bytes that are repeated may overlap those that are added.
            for at in from..from + len {
                out.extend(out.get(at).copied());
            }
            len
        };
        if len > most || out.len() > most {
            let what = format!("a chunk compressed with LZF has more than {most} bytes");
            return Err(Error::DecompressionError(what));
        }
    }
    Ok(out)
}

fn byte(input: &mut &[u8]) -> Option<u8> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    Some(*first)
}

#[cold]
fn cut_off() -> Error {
    Error::DecompressionError("a chunk compressed with LZF is cut off".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_put_together() {
        assert_eq!(decompress(&[], 0).unwrap(), b"");
        assert_eq!(decompress(&[2, b'a', b'b', b'c'], 3).unwrap(), b"abc");
        // Three bytes from one byte before: they overlap what is added.
        assert_eq!(decompress(&[0, b'x', 1 << 5, 0], 9).unwrap(), b"xxxx");
        // A length in a byte of its own: 7 + 4 + 2.
        assert_eq!(decompress(&[1, b'a', b'b', 7 << 5, 4, 1], 15).unwrap(), b"abababababababa");
    }

    #[test]
    fn damage_is_an_error() {
        for (bytes, most, what) in [
            (&[2, b'a'][..], 9, "is cut off"),
            (&[0, b'x', 1 << 5], 9, "is cut off"),
            (&[0, b'x', 7 << 5], 9, "is cut off"),
            (&[0, b'x', 1 << 5, 1], 9, "before its start"),
            (&[1 << 5, 0], 9, "before its start"),
            (&[2, b'a', b'b', b'c'], 2, "more than 2 bytes"),
            (&[0, b'x', 7 << 5, 255, 0], 9, "more than 9 bytes"),
        ] {
            let error = decompress(bytes, most).unwrap_err().to_string();
            assert!(error.contains(what), "{bytes:?}: {error}");
        }
    }
}
