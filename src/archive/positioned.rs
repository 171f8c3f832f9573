//! Buffers of a segment that can be read at any position.

use super::loaded::Loaded;
use super::source;
use crate::error::Result;
use crate::io::at::ReadAt;
use crate::io::buffers::{Buffers, Contents, ReadBuffer};
use crate::io::checksum::Hasher;
use crate::options::DecodeOptions;
use crate::segment::buffers::{Seen, no_such, wrong_checksum};

/// Buffers that are read when they are asked for.
pub struct Positioned<'a, S: ?Sized> {
    source: &'a S,
    loaded: &'a Loaded,
    options: DecodeOptions,
    seen: Seen,
    open: Option<Open>,
}

struct Open {
    number: u64,
    start: u64,
    position: u64,
    hasher: Option<Hasher>,
}

impl<'a, S: ReadAt + ?Sized> Positioned<'a, S> {
    pub fn new(source: &'a S, loaded: &'a Loaded, options: DecodeOptions) -> Self {
        Self { source, loaded, options, seen: Seen::default(), open: None }
    }
}

impl<'de, S: ReadAt + ?Sized> Buffers<'de> for Positioned<'_, S> {
    fn places(&self) -> &[(u64, u64)] {
        &self.loaded.header.layout.buffers
    }

    fn cost(&mut self, number: u64, len: u64) -> u64 {
        self.seen.cost(&self.loaded.header, number, len)
    }

    fn contents(&mut self) -> Contents<'_, 'de> {
        Contents::Read(self)
    }
}

impl<S: ReadAt + ?Sized> ReadBuffer for Positioned<'_, S> {
    fn proven(&self) -> usize {
        usize::MAX
    }

    fn start(&mut self, number: u64, _: u64) -> Result<()> {
        let (start, _) = self.loaded.buffer(number)?;
        self.loaded.check_verifiable(self.options)?;
        let checksums = self.options.checksums && self.loaded.header.checked;
        let hasher = checksums.then(Hasher::new);
        self.open = Some(Open { number, start, position: start, hasher });
        Ok(())
    }

    fn read(&mut self, out: &mut [u8]) -> Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        source::read_exact(self.source, out, open.position)?;
        open.position += out.len() as u64;
        if let Some(hasher) = &mut open.hasher {
            hasher.update(out);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        let Some(Open { number, start, hasher: Some(hasher), .. }) = self.open.take() else {
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
