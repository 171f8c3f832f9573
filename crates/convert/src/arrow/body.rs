//! Reads buffers in blocks, and decompresses them.

use std::io::Read;
use std::ops::Range;

use lz4_flex::frame::FrameDecoder;
use ruzstd::decoding::StreamingDecoder;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use crate::part::Part;
use crate::source;
use crate::support::{STEP, read_all};

/// The codec that compresses the buffers of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    Lz4,
    Zstd,
}

/// The size of the uncompressed length, with which a compressed buffer begins.
const LEN_BYTES: u64 = 8;

/// In place of the uncompressed length, this means that the buffer is not compressed.
const NOT_COMPRESSED: i64 = -1;

/// The position of a buffer, and its codec.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub range: Range<u64>,
    pub codec: Option<Codec>,
}

impl Buffer {
    /// Returns whether the buffer has no codec. Then its contents are as long as its range.
    pub fn is_plain(&self) -> bool {
        self.codec.is_none()
    }

    /// Checks, without reading, that the range is long enough for `need` bytes. If there is a codec, this checks only
    /// that there is a length.
    pub fn check(&self, need: u64) -> Result<()> {
        let found = self.range.end - self.range.start;
        let least = match self.codec {
            Some(_) if need > 0 => LEN_BYTES,
            Some(_) => 0,
            None => need,
        };
        if found >= least {
            return Ok(());
        }
        let what = format!("expected a buffer of at least {least} bytes, found {found}");
        Err(Error::data(what).at(self.range.start))
    }

    /// Passes the first `need` bytes to `put`. All blocks have `step` bytes, only the last may be shorter.
    pub fn blocks<S: ReadAt + ?Sized>(
        &self,
        source: &S,
        need: u64,
        step: usize,
        put: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        if need == 0 {
            return Ok(());
        }
        self.check(need)?;
        let part = Part::new(source, self.range.clone());
        let Some(codec) = self.codec else { return whole(part, need, step, put, |error| error) };
        let stated = self.stated(source)?;
        let range = self.range.start + LEN_BYTES..self.range.end;
        let packed = range.end - range.start;
        let part = Part::new(source, range);
        let len = stated.unwrap_or(packed);
        if len < need {
            let what = format!(
                "expected a buffer of at least {need} bytes, found one that states {len} bytes"
            );
            return Err(Error::data(what).at(self.range.start));
        }
        let decoded = match codec {
            _ if stated.is_none() => whole(part, need, step, put, |error| error),
            Codec::Lz4 => decoded(FrameDecoder::new(part), need, len, step, put),
            Codec::Zstd => zstd(part, packed, need, len, step, put),
        };
        decoded.map_err(|error| error.at(self.range.start))
    }

    /// Returns the uncompressed length that the buffer states, or its length if it is not compressed.
    pub fn byte_len<S: ReadAt + ?Sized>(&self, source: &S) -> Result<u64> {
        let found = self.range.end - self.range.start;
        if self.codec.is_none() || found == 0 {
            return Ok(found);
        }
        self.stated(source).map(|stated| stated.unwrap_or(found - LEN_BYTES))
    }

    /// Returns the uncompressed length that a buffer with a codec states, or `None` if the buffer is not compressed.
    fn stated<S: ReadAt + ?Sized>(&self, source: &S) -> Result<Option<u64>> {
        self.check(1)?;
        let mut len = [0; 8];
        source::fill(source, &mut len, self.range.start, " of a buffer")?;
        match i64::from_le_bytes(len) {
            NOT_COMPRESSED => Ok(None),
            stated => u64::try_from(stated).map(Some).map_err(|_| {
                Error::data(format!("a compressed buffer states a length of {stated} bytes"))
                    .at(self.range.start)
            }),
        }
    }

    /// Returns the first `need` bytes. The caller must have checked that so much memory is allowed.
    pub fn bytes<S: ReadAt + ?Sized>(&self, source: &S, need: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.blocks(source, need, STEP, &mut |block| {
            crate::support::reserve(&mut bytes, block.len())?;
            bytes.extend_from_slice(block);
            Ok(())
        })?;
        Ok(bytes)
    }
}

/// Passes `need` bytes of a reader to `put`. All blocks have `step` bytes, only the last may be shorter. `failed`
/// converts errors of the reader.
fn whole(
    mut reader: impl Read,
    need: u64,
    step: usize,
    put: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    failed: fn(Error) -> Error,
) -> Result<()> {
    let step = usize::try_from(need).unwrap_or(step).min(step);
    let mut block = vec![0; step];
    let mut left = need;
    while left > 0 {
        let len = usize::try_from(left).unwrap_or(step).min(step);
        let part = block.get_mut(..len).unwrap_or_default();
        if read_all(&mut reader, part).map_err(failed)? < len {
            return Err(Error::eof("more bytes of a buffer"));
        }
        put(part)?;
        left -= len as u64;
    }
    Ok(())
}

/// Like [`whole`], for a decoder. Also checks that the frame has `stated` bytes. The checksum can be verified only at
/// this end. If more than [`STEP`] bytes follow those needed, they are not decoded, and the end is not checked.
fn decoded(
    mut reader: impl Read,
    need: u64,
    stated: u64,
    step: usize,
    put: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    whole(&mut reader, need, step, put, damaged)?;
    let rest = usize::try_from(stated - need).unwrap_or(usize::MAX);
    if rest > STEP {
        return Ok(());
    }
    let mut beyond = vec![0; rest + 1];
    match read_all(&mut reader, &mut beyond).map_err(damaged)? {
        found if found == rest => Ok(()),
        _ => Err(Error::data(format!(
            "a compressed buffer does not have the {stated} bytes that it states"
        ))),
    }
}

/// Converts an error of a decoder: it means that the buffer is damaged, not that reading failed.
fn damaged(error: Error) -> Error {
    match error.category() {
        tenarc::error::Category::Io => {
            Error::damaged("a buffer cannot be decompressed with LZ4 or zstd")
        }
        _ => error,
    }
}

fn zstd<S: ReadAt + ?Sized>(
    part: Part<'_, S>,
    packed: u64,
    need: u64,
    stated: u64,
    step: usize,
    put: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    let window = crate::zstd::max_window(packed);
    let mut decoder = StreamingDecoder::new_with_max_window_size(part, window)
        .map_err(|_| Error::damaged("a buffer cannot be decompressed with zstd"))?;
    decoded(&mut decoder, need, stated, step, put)?;
    let decoder = decoder.into_frame_decoder();
    let stated = decoder.get_checksum_from_data();
    if decoder.is_finished() && stated.is_some() && stated != decoder.get_calculated_checksum() {
        return Err(Error::damaged("the checksum of a compressed buffer is wrong"));
    }
    Ok(())
}
