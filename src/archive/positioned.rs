//! The buffers of a segment whose source can be read at any position.

use super::loaded::Loaded;
use super::source;
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::io::buffers::{Buffers, Contents, Lend, ReadBuffer, read_past};
use crate::io::checksum::{Hasher, STEP};
use crate::options::DecodeOptions;
use crate::segment::buffers::{Seen, no_such, wrong_checksum};

/// Reads each buffer when the decoder needs it.
pub struct Positioned<'a, S: ?Sized> {
    source: &'a S,
    loaded: &'a Loaded,
    options: DecodeOptions,
    seen: Seen,
    /// The buffer that is being read.
    current: Option<Current>,
}

struct Current {
    number: u64,
    start: u64,
    position: u64,
    hasher: Option<Hasher>,
}

impl<'a, S: ReadAt + ?Sized> Positioned<'a, S> {
    pub fn new(source: &'a S, loaded: &'a Loaded, options: DecodeOptions) -> Self {
        Self { source, loaded, options, seen: Seen::new(options.limits), current: None }
    }
}

impl<'de, 'a: 'de, S: ReadAt + ?Sized> Buffers<'de> for Positioned<'a, S> {
    fn places(&self) -> &[(u64, u64)] {
        &self.loaded.header.layout.buffers
    }

    fn cost(&mut self, number: u64, len: u64) -> Result<u64> {
        let header = &self.loaded.header;
        let input = header.byte_len().saturating_sub(self.loaded.missing_bytes());
        self.seen.cost(header, number, len, input)
    }

    fn contents(&mut self) -> Contents<'_, 'de> {
        // A checksum is computed while its buffer is copied. Without checksums, a buffer in memory need not be copied.
        let verifies = self.options.checksums && self.loaded.header.checked;
        if verifies || self.source.contents().is_none() {
            return Contents::Read(self);
        }
        Contents::Lent(self)
    }
}

impl<'de, 'a: 'de, S: ReadAt + ?Sized> Lend<'de> for Positioned<'a, S> {
    fn lend(&mut self, number: u64) -> Result<&'de [u8]> {
        let (start, len) = self.loaded.buffer(number, self.options)?;
        source::borrowed(self.source, start, source::in_memory(len, start)?)
    }
}

impl<S: ReadAt + ?Sized> ReadBuffer for Positioned<'_, S> {
    fn proven(&self) -> usize {
        usize::MAX
    }

    fn start(&mut self, number: u64, _: u64) -> Result<()> {
        let (start, _) = self.loaded.buffer(number, self.options)?;
        let checksums = self.options.checksums && self.loaded.header.checked;
        let hasher = checksums.then(Hasher::new);
        self.current = Some(Current { number, start, position: start, hasher });
        Ok(())
    }

    fn read(&mut self, out: &mut [u8]) -> Result<()> {
        let Some(current) = &mut self.current else { return Ok(()) };
        source::read_exact(self.source, out, current.position)?;
        current.position += out.len() as u64;
        if let Some(hasher) = &mut current.hasher {
            hasher.update(out);
        }
        Ok(())
    }

    fn skip(&mut self, len: u64) -> Result<()> {
        match &mut self.current {
            Some(current) if current.hasher.is_none() => {
                // The bytes are not needed, not even for the checksum.
                current.position += len;
                Ok(())
            }
            Some(_) if len > 0 => {
                let scratch = usize::try_from(len).unwrap_or(STEP).min(STEP);
                read_past(self, len, &mut vec![0; scratch])
            }
            _ => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<()> {
        let Some(Current { number, start, hasher: Some(hasher), .. }) = self.current.take() else {
            return Ok(());
        };
        let computed = hasher.finish();
        let stored = self.loaded.hashes(self.source)?;
        match usize::try_from(number).ok().and_then(|index| stored.get(index)) {
            Some(&stored) if stored == computed => Ok(()),
            Some(&stored) => Err(wrong_checksum(number, computed, stored, start)),
            None => Err(no_such(number)),
        }
    }
}
