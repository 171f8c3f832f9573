//! Compression of buffers. A buffer is divided into chunks, and each chunk is compressed by itself. A chunk consists of
//! words, such as the floats of a tensor. The bytes with the same place in their words form a plane, and each plane is
//! compressed by itself. `SPEC.md`, section 5.11, defines what is stored.

#[cfg(feature = "compression")]
mod chunk;
mod error;
#[cfg(feature = "compression")]
mod planes;
#[cfg(feature = "compression")]
mod zstd;

#[cfg(not(feature = "compression"))]
#[path = "absent.rs"]
mod chunk;

pub use chunk::{Decoder, Encoder};
pub use error::{CodecError, Problem};

/// How planes are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Codec {
    /// zstd frames: for weights and nearly everything else.
    Zstd,
    /// LZ4 blocks: for data that repeats itself, if speed matters most. Weights hardly shrink.
    Lz4,
}

impl Codec {
    /// All codecs.
    pub const ALL: [Codec; 2] = [Codec::Zstd, Codec::Lz4];

    /// The name in files.
    pub fn name(self) -> &'static str {
        match self {
            Codec::Zstd => "zstd",
            Codec::Lz4 => "lz4",
        }
    }

    /// The codec with this name.
    pub fn from_name(name: &str) -> Option<Codec> {
        Codec::ALL.into_iter().find(|codec| codec.name() == name)
    }
}

/// How the bytes of a chunk are divided into planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Layout {
    width: u8,
    rotated: bool,
}

impl Layout {
    /// Planes of words of `width` bytes. With `rotated`, the sign bit of a float is moved behind its mantissa. `None`
    /// if the width is not 1, 2, 4, 8 or 16.
    pub fn new(width: usize, rotated: bool) -> Option<Layout> {
        let width = u8::try_from(width).ok()?;
        matches!(width, 1 | 2 | 4 | 8 | 16).then_some(Layout { width, rotated })
    }

    /// The number of bytes in a word.
    pub fn width(self) -> usize {
        self.width.into()
    }

    /// Whether words are rotated.
    pub fn rotated(self) -> bool {
        self.rotated
    }
}
