//! Takes the place of `chunk.rs` in a build without the feature `compression`. The functions return errors that name
//! the feature.

use super::{Codec, CodecError, Layout, Problem};

/// See the feature `compression`: without it, nothing can be decompressed.
#[derive(Debug, Default)]
pub struct Decoder(());

impl Decoder {
    /// A decoder that refuses every chunk that is compressed.
    pub fn new() -> Decoder {
        Decoder::default()
    }

    /// Copies chunks that are stored as they are.
    ///
    /// # Errors
    ///
    /// If the chunk is compressed. The error names the feature.
    pub fn decode(
        &mut self,
        codec: Codec,
        _layout: Layout,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        if stored.len() != out.len() {
            return Err(CodecError { at: 0, problem: Problem::Unreadable(codec.name()) });
        }
        out.copy_from_slice(stored);
        Ok(())
    }
}

/// See the feature `compression`: without it, nothing can be compressed.
#[derive(Debug)]
pub struct Encoder(());

impl Encoder {
    /// Always an error.
    ///
    /// # Errors
    ///
    /// The error names the feature.
    pub fn new(codec: Codec, _layout: Layout, _level: i32) -> Result<Encoder, CodecError> {
        Err(CodecError { at: 0, problem: Problem::Unwritable(codec.name()) })
    }

    /// Compresses nothing.
    pub fn encode(&mut self, _chunk: &[u8], _out: &mut Vec<u8>) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_feature() {
        let layout = Layout::new(2, true).unwrap();
        let mut out = [0; 4];
        Decoder::new().decode(Codec::Zstd, layout, b"same", &mut out).unwrap();
        assert_eq!(&out, b"same");
        let expected = "this build cannot read zstd: turn on the feature `compression`";
        let error = Decoder::new().decode(Codec::Zstd, layout, b"x", &mut out).unwrap_err();
        assert_eq!(error.to_string(), expected);
        let expected = "this build cannot write lz4: turn on the feature `compression`";
        let error = Encoder::new(Codec::Lz4, layout, 0).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
