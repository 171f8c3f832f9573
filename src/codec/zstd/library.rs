//! zstd's library, in C: for planes that repeat themselves.

use std::fmt;

use super::{MAX_WINDOW, Problem};

/// Compresses with a level.
pub struct Encoder {
    level: i32,
    /// Made when it is first needed: most planes of weights need none.
    library: Option<::zstd::bulk::Compressor<'static>>,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoder").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Encoder {
    /// Makes an encoder for a level. The library replaces a level that it does not know by the nearest one.
    pub fn new(level: i32) -> Encoder {
        Encoder { level, library: None }
    }

    /// Appends a frame. If the library fails, which only lack of memory can cause, nothing is appended. The
    /// caller then stores the plane in another way.
    pub fn encode(&mut self, plane: &[u8], out: &mut Vec<u8>) {
        let known = self.library.take();
        let library = known.or_else(|| ::zstd::bulk::Compressor::new(self.level).ok());
        let Some(library) = library else { return };
        let library = self.library.insert(library);
        // 0 means the window of the level. zstd makes it smaller for short planes.
        let window = if plane.len() as u64 > MAX_WINDOW { MAX_WINDOW.ilog2() } else { 0 };
        if let Ok(frame) = library.window_log(window).and_then(|()| library.compress(plane)) {
            out.extend(frame);
        }
    }
}

/// Decompresses frames that have passed [`super::has_literals_only`].
///
/// The library does not check that matches start within the window, nor that blocks with matches give no more than the
/// window. [`super::Decoder`] refuses such frames.
#[derive(Default)]
pub struct Decoder(Option<::zstd::bulk::Decompressor<'static>>);

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoder")
    }
}

impl Decoder {
    /// Decodes a frame, which fills `out` exactly.
    pub fn decode(&mut self, frame: &[u8], out: &mut [u8]) -> Result<(), Problem> {
        let library = match self.0.take() {
            Some(library) => library,
            None => ::zstd::bulk::Decompressor::new()
                .map_err(|_| (0, "zstd's library ran out of memory"))?,
        };
        match self.0.insert(library).decompress_to_buffer(frame, out) {
            Ok(len) if len == out.len() => Ok(()),
            Ok(_) => Err((0, "the frame gives fewer bytes than its plane has")),
            Err(_) => Err((0, "the frame is damaged, or gives more bytes than its plane has")),
        }
    }
}
