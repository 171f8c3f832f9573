//! Compression of buffers. A buffer is divided into chunks, and each chunk is compressed by itself.
//!
//! # The layout of a compressed chunk
//!
//! A codec has two parameters beside its name. They are the same for all chunks of a buffer:
//!
//! - `width` is 1, 2, 4, 8 or 16: the number of bytes of one component of an element.
//! - `rotated` is true or false.
//!
//! A chunk of `length` bytes holds `n = length / width` whole words, rounded down, and `length % width` bytes that
//! follow them. If `rotated` is true and `width` is not 1, each word, read as a little-endian unsigned integer of
//! `8 * width` bits, is first rotated left by one bit: its highest bit becomes its lowest. The words are then divided
//! into `width` *planes* of `n` bytes. Plane `p` holds byte `p` of each word, in the order of the words; plane 0 holds
//! the lowest bytes.
//!
//! The stored chunk is either
//!
//! - the `length` bytes of the chunk as they are. The stored length is then `length`; or
//! - fewer bytes than `length`:
//!
//! | bytes | what |
//! |---|---|
//! | `5 * width` | the plane table. For each plane, from plane 0 on: one byte *method*, then the stored length of the plane as a little-endian `u32` |
//! | the sum of these lengths | the stored planes, from plane 0 on, without gaps |
//! | `length % width` | the bytes behind the last whole word, as they are |
//!
//! | method | the stored plane |
//! |---|---|
//! | 0 | the `n` bytes of the plane |
//! | 1 | one byte, which all `n` bytes of the plane are equal to |
//! | 2 | the plane, compressed by the codec, to fewer than `n` bytes |
//!
//! With method 2, the stored plane is
//!
//! - for the codec `zstd`: one zstd frame (RFC 8878) without a dictionary and without a checksum, whose window is at
//!   most 8 MiB. Its content is the plane. If the frame has the field `Frame_Content_Size`, it must be `n`.
//! - for the codec `lz4`: one block in the LZ4 block format, without a length in front of it.
//!
//! A reader must refuse other methods, lengths that do not add up to the stored length exactly, and frames or blocks
//! that do not give `n` bytes exactly.
//!
//! A writer should use method 1 where it can, and method 0 for planes that method 2 does not shrink by 1/32. Planes of
//! random bits, such as those of mantissas, then cost no time.

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

    /// The codec of a name.
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
    /// Planes of words of `width` bytes. With `rotated`, the sign bit of a float is moved behind its mantissa. `None` if
    /// the width is not 1, 2, 4, 8 or 16.
    pub fn new(width: usize, rotated: bool) -> Option<Layout> {
        let width = u8::try_from(width).ok()?;
        matches!(width, 1 | 2 | 4 | 8 | 16).then_some(Layout { width, rotated })
    }

    /// The bytes of a word.
    pub fn width(self) -> usize {
        self.width.into()
    }

    /// Whether words are rotated.
    pub fn rotated(self) -> bool {
        self.rotated
    }
}
