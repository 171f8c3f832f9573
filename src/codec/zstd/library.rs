//! zstd's library, in C: for planes that repeat themselves.

use std::fmt;

use super::frame::{MAX_WINDOW, Problem};

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

/// Decompresses frames whose heads and literals were checked: see [`super::Decoder::decode_with`].
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

#[cfg(test)]
mod tests {
    use super::Decoder;
    use crate::codec::zstd;

    /// Pseudo-random numbers: xorshift.
    fn random(state: &mut u64) -> usize {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        (*state >> 11) as usize
    }

    fn samples() -> Vec<Vec<u8>> {
        let mut state = 1;
        let mut samples = Vec::new();
        for len in [200, 3000, 20_000] {
            let words: Vec<u8> = (0..len / 8).flat_map(|at: u64| (at * 37).to_le_bytes()).collect();
            let len = words.len();
            let text = (0..len)
                .flat_map(|_| format!("{}, user {}\n", random(&mut state) % 99, 7).into_bytes());
            samples.push(text.take(len).collect());
            samples.push(words);
            samples.push((0..len).map(|_| [0, 0, 0, 1, 2][random(&mut state) % 5]).collect());
            samples.push(b"abcdefghijklmnopqrs".iter().copied().cycle().take(len).collect());
        }
        samples
    }

    /// Both decoders accept the same frames, and decode them to the same bytes.
    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn damaged_frames_are_the_same_to_both() {
        let mut state = 88_172_645_463_325_252;
        let mut frames = Vec::new();
        for sample in samples() {
            for level in [-3, 1, 9, 19] {
                for window in [0, 10] {
                    let mut library = ::zstd::bulk::Compressor::new(level).unwrap();
                    library.window_log(window).unwrap();
                    library.include_contentsize(window == 0).unwrap();
                    frames.push((library.compress(&sample).unwrap(), sample.len()));
                }
            }
            let mut frame = Vec::new();
            if zstd::Encoder::new(0).unwrap().encode(&sample, &mut frame) {
                frames.push((frame, sample.len()));
            }
        }
        let (mut ours, mut checked) = (zstd::Decoder::new(), zstd::Decoder::new());
        let mut library = Decoder::default();
        let mut accepted = 0;
        for _ in 0..20_000 {
            let (frame, len) = &frames[random(&mut state) % frames.len()];
            let mut frame = frame.clone();
            for _ in 0..=random(&mut state) % 2 {
                let end = if random(&mut state).is_multiple_of(2) { 40 } else { frame.len() };
                let at = random(&mut state) % end.min(frame.len()).max(1);
                match random(&mut state) % 4 {
                    0 => frame[at] ^= 1 << (random(&mut state) % 8),
                    1 => frame[at] = random(&mut state) as u8,
                    2 if frame.len() > 1 => drop(frame.remove(at)),
                    _ => frame.insert(at, random(&mut state) as u8),
                }
            }
            let (mut one, mut other) = (vec![0; *len], vec![0; *len]);
            let own = ours.decode(&frame, &mut one);
            let with = checked.decode_with(&mut library, &frame, &mut other);
            assert_eq!(own.is_ok(), with.is_ok(), "{own:?}, {with:?}: {frame:02x?}");
            if own.is_ok() {
                accepted += 1;
                assert_eq!(one, other, "{frame:02x?}");
            }
        }
        assert!(accepted > 1000, "{accepted}");
    }
}
