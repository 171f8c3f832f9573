//! Buffers of a segment that can be read at any position, or lies in memory.

use super::header::Header;
use super::segment::Loaded;
use super::source;
use crate::error::{Error, Result};
use crate::io::apart::Buffers;
use crate::io::at::ReadAt;
use crate::io::checksum::{Hasher, LEN};
use crate::mem::Arena;
use crate::options::DecodeOptions;

#[cold]
pub fn wrong_checksum(number: u64, computed: u64, stored: u64, at: u64) -> Error {
    Error::damaged(format!(
        "checksum of buffer {number} is {computed:0width$x}, the archive says {stored:0width$x}",
        width = 2 * LEN
    ))
    .at(at)
}

#[cold]
fn no_such(number: u64) -> Error {
    Error::data(format!("there is no buffer {number}"))
}

/// Which buffers were copied before: one copy of each is backed by the archive's own bytes.
#[derive(Default)]
pub struct Seen(Vec<bool>);

impl Seen {
    fn cost(&mut self, header: &Header, number: u64, len: u64) -> u64 {
        if self.0.is_empty() {
            self.0.resize(header.count(), false);
        }
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let seen = self.0.get_mut(index).map(|seen| std::mem::replace(seen, true));
        if seen == Some(false) { 0 } else { len }
    }
}

/// Buffers that are read when they are asked for.
pub struct Positioned<'a, S: ?Sized> {
    source: &'a S,
    loaded: &'a Loaded,
    checksums: bool,
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
        let checksums = options.checksums && loaded.header.checked;
        Self { source, loaded, checksums, seen: Seen::default(), open: None }
    }
}

impl<'de, S: ReadAt + ?Sized> Buffers<'de> for Positioned<'_, S> {
    fn len_of(&self, number: u64) -> Option<u64> {
        self.loaded.header.buffer(number).map(|(_, len)| len)
    }

    fn count(&self) -> u64 {
        self.loaded.header.count() as u64
    }

    fn cost(&mut self, number: u64, len: u64) -> u64 {
        self.seen.cost(&self.loaded.header, number, len)
    }

    fn lend(&mut self, number: u64) -> Result<&'de [u8]> {
        Err(no_such(number))
    }

    fn is_backed(&self) -> bool {
        true
    }

    fn start(&mut self, number: u64, _: u64) -> Result<()> {
        let (start, _) = self.loaded.header.buffer(number).ok_or_else(|| no_such(number))?;
        let hasher = self.checksums.then(Hasher::new);
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

/// Buffers in memory, for views.
pub struct Lending<'a, 'h> {
    pub contents: &'a [u8],
    pub header: &'h Header,
    pub arena: Option<&'a Arena>,
    pub seen: Seen,
}

impl<'a> Buffers<'a> for Lending<'a, '_> {
    fn len_of(&self, number: u64) -> Option<u64> {
        self.header.buffer(number).map(|(_, len)| len)
    }

    fn count(&self) -> u64 {
        self.header.count() as u64
    }

    fn cost(&mut self, number: u64, len: u64) -> u64 {
        self.seen.cost(self.header, number, len)
    }

    fn lends(&self) -> bool {
        true
    }

    fn lend(&mut self, number: u64) -> Result<&'a [u8]> {
        let (start, len) = self.header.buffer(number).ok_or_else(|| no_such(number))?;
        source::slice(self.contents, start, source::in_memory(len, start)?)
    }

    fn is_backed(&self) -> bool {
        true
    }

    fn start(&mut self, number: u64, _: u64) -> Result<()> {
        Err(no_such(number))
    }

    fn read(&mut self, _: &mut [u8]) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }

    fn settle(&self, bytes: &'a [u8]) -> &'a [u8] {
        match self.arena {
            Some(arena) => arena.settle(bytes),
            None => bytes,
        }
    }
}
