//! Chunks as they are stored: the plane table and the planes (`SPEC.md`, section 5.11).

use super::planes::{self, Plane};
use super::{Codec, CodecError, Layout, Problem, zstd};

/// The length in bytes of the entry that the plane table has for each plane.
const ENTRY: usize = 5;
/// The largest number of planes.
const MAX_WIDTH: usize = 16;

const RAW: u8 = 0;
const CONSTANT: u8 = 1;
const COMPRESSED: u8 = 2;

/// Decompresses chunks. Use one decoder for many chunks: it keeps its memory, which is at most as large as the largest
/// chunk, and 256 KiB.
#[derive(Debug)]
pub struct Decoder {
    zstd: zstd::Decoder,
    planes: Vec<u8>,
    #[cfg(feature = "zstd")]
    library: zstd::library::Decoder,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder for all codecs.
    pub fn new() -> Decoder {
        Decoder {
            zstd: zstd::Decoder::new(),
            planes: Vec::new(),
            #[cfg(feature = "zstd")]
            library: zstd::library::Decoder::default(),
        }
    }

    /// Decompresses a chunk of `out.len()` bytes that is stored as `stored`.
    ///
    /// Any bytes can be passed. What `out` contains after an error is not defined.
    ///
    /// # Errors
    ///
    /// If `stored` is not a chunk of exactly this length.
    pub fn decode(
        &mut self,
        codec: Codec,
        layout: Layout,
        stored: &[u8],
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        if stored.len() == out.len() {
            out.copy_from_slice(stored);
            return Ok(());
        }
        let (width, length) = (layout.width(), out.len());
        let found = stored.len();
        let error = |at, problem| Err(CodecError { at, problem });
        if found > length {
            return error(0, Problem::Longer { found, length });
        }
        let Some((table, mut body)) = stored.split_at_checked(ENTRY * width) else {
            return error(0, Problem::Table { found, needed: ENTRY * width });
        };
        let count = length / width;
        let (words, tail) = out.split_at_mut(count * width);
        let mut needed = ENTRY * width + tail.len();
        let mut compressed = 0;
        let mut entries = [(RAW, &[][..]); MAX_WIDTH];
        for (plane, entry) in table.as_chunks::<ENTRY>().0.iter().enumerate() {
            let [method, a, b, c, d] = *entry;
            let stored = u32::from_le_bytes([a, b, c, d]);
            let len = stored as usize;
            let possible = match method {
                RAW => len == count,
                CONSTANT => len == 1,
                COMPRESSED => len < count,
                _ => return error(ENTRY * plane, Problem::Method { plane, found: method }),
            };
            if !possible {
                let problem = Problem::PlaneLength { plane, method, found: stored, length: count };
                return error(ENTRY * plane + 1, problem);
            }
            // There are up to sixteen lengths of 32 bits. Their sum must not wrap if `usize` has 32 bits.
            needed = needed.saturating_add(len);
            let (bytes, rest) = body.split_at_checked(len).unwrap_or((&[], &[]));
            entries[plane] = (method, bytes);
            body = rest;
            compressed += usize::from(method == COMPRESSED);
        }
        if needed != found {
            return error(0, Problem::Total { found, needed });
        }
        tail.copy_from_slice(body);
        if count == 0 {
            return Ok(());
        }
        let entries = &entries[..width];
        if let [(COMPRESSED, bytes)] = *entries {
            return self.plane(codec, stored, 0, bytes, words);
        }
        let mut memory = std::mem::take(&mut self.planes);
        if memory.len() < compressed * count {
            memory.resize(compressed * count, 0);
        }
        let mut free = &mut memory[..];
        let mut planes = [Plane::Constant(0); MAX_WIDTH];
        let mut result = Ok(());
        for (at, &(method, bytes)) in entries.iter().enumerate() {
            planes[at] = match method {
                RAW => Plane::Bytes(bytes),
                CONSTANT => Plane::Constant(*bytes.first().unwrap_or(&0)),
                _ => {
                    let (to, rest) = free.split_at_mut(count);
                    free = rest;
                    result = result.and_then(|()| self.plane(codec, stored, at, bytes, to));
                    Plane::Bytes(to)
                }
            };
        }
        if result.is_ok() {
            planes::merge(&planes[..width], layout.rotated(), words);
        }
        self.planes = memory;
        result
    }

    /// Decompresses the plane with the number `plane`. `bytes` is a part of `stored`.
    fn plane(
        &mut self,
        codec: Codec,
        stored: &[u8],
        plane: usize,
        bytes: &[u8],
        out: &mut [u8],
    ) -> Result<(), CodecError> {
        let result = match codec {
            Codec::Zstd => self.zstd(bytes, out),
            Codec::Lz4 => match lz4_flex::block::decompress_into(bytes, out) {
                Ok(len) if len == out.len() => Ok(()),
                Ok(_) => Err((0, "the LZ4 block gives fewer bytes than its plane has")),
                Err(_) => Err((0, "the LZ4 block is damaged")),
            },
        };
        result.map_err(|(at, what)| {
            let start = (bytes.as_ptr() as usize).saturating_sub(stored.as_ptr() as usize);
            CodecError { at: start + at, problem: Problem::Plane { plane, what } }
        })
    }

    fn zstd(&mut self, frame: &[u8], out: &mut [u8]) -> Result<(), zstd::Problem> {
        #[cfg(feature = "zstd")]
        return self.zstd.decode_with(&mut self.library, frame, out);
        #[cfg(not(feature = "zstd"))]
        self.zstd.decode(frame, out)
    }
}

/// Compresses chunks. Use one encoder for all chunks of a buffer: it keeps its memory, which is about twice that of a
/// chunk.
#[derive(Debug)]
pub struct Encoder {
    codec: Codec,
    layout: Layout,
    zstd: zstd::Encoder,
    planes: Vec<u8>,
}

impl Encoder {
    /// An encoder for buffers of one type.
    ///
    /// `level` is 0 for the encoder in Rust, whose bytes are the same in every build. Other levels, for the codec
    /// `zstd`, are those of zstd's library, from fast ones below 0 to 22. They matter for planes that repeat
    /// themselves.
    ///
    /// # Errors
    ///
    /// If the level needs the feature `zstd`, and this build does not have it.
    pub fn new(codec: Codec, layout: Layout, level: i32) -> Result<Encoder, CodecError> {
        let level = if codec == Codec::Zstd { level } else { 0 };
        let zstd = zstd::Encoder::new(level);
        let zstd = zstd.ok_or(CodecError { at: 0, problem: Problem::Level(level) })?;
        Ok(Encoder { codec, layout, zstd, planes: Vec::new() })
    }

    /// Appends the compressed chunk to `out`, and returns true. If the chunk does not become shorter, leaves `out` as
    /// it is, and returns false. The chunk must then be stored without compression.
    pub fn encode(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> bool {
        let width = self.layout.width();
        let count = chunk.len() / width;
        let (words, tail) = chunk.split_at(count * width);
        if count == 0 || u32::try_from(count).is_err() {
            return false;
        }
        let mut memory = std::mem::take(&mut self.planes);
        let planes = if width == 1 {
            words
        } else {
            if memory.len() < words.len() {
                memory.resize(words.len(), 0);
            }
            let planes = &mut memory[..words.len()];
            planes::split(words, width, self.layout.rotated(), planes);
            planes
        };
        let start = out.len();
        out.extend([0; ENTRY * MAX_WIDTH][..ENTRY * width].iter());
        for (plane, bytes) in planes.chunks_exact(count).enumerate() {
            let from = out.len();
            let method = self.plane(bytes, out);
            // The stored plane is no longer than the plane, whose length was checked.
            let len = u32::try_from(out.len() - from).unwrap_or_default();
            let entry = &mut out[start + ENTRY * plane..][..ENTRY];
            entry[0] = method;
            entry[1..].copy_from_slice(&len.to_le_bytes());
        }
        self.planes = memory;
        out.extend(tail);
        let shorter = out.len() - start < chunk.len();
        if !shorter {
            out.truncate(start);
        }
        shorter
    }

    /// Appends a plane, and returns how it is stored.
    fn plane(&mut self, plane: &[u8], out: &mut Vec<u8>) -> u8 {
        if plane.len() > 1 && plane.iter().all(|&byte| byte == plane[0]) {
            out.push(plane[0]);
            return CONSTANT;
        }
        let shrinks = match self.codec {
            Codec::Zstd => self.zstd.encode(plane, out),
            Codec::Lz4 => lz4(plane, out),
        };
        if shrinks {
            return COMPRESSED;
        }
        out.extend(plane);
        RAW
    }
}

/// Appends an LZ4 block, if it is shorter than the plane by 1/32 at least.
fn lz4(plane: &[u8], out: &mut Vec<u8>) -> bool {
    let start = out.len();
    out.resize(start + lz4_flex::block::get_maximum_output_size(plane.len()), 0);
    let len = lz4_flex::block::compress_into(plane, &mut out[start..]).unwrap_or(usize::MAX);
    let shrinks = len <= zstd::most(plane.len());
    out.truncate(if shrinks { start + len } else { start });
    shrinks
}
