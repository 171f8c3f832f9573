//! The buffers of a segment that is in memory.

use super::header::Header;
use crate::error::{Error, Result};
use crate::io::buffers::{Buffers, Contents, Lend};
use crate::io::checksum::LEN;
use crate::mem::Arena;
use crate::mem::shared_bytes::SharedBytes;

#[cold]
pub fn wrong_checksum(number: u64, computed: u64, stored: u64, at: u64) -> Error {
    Error::damaged(format!(
        "checksum of buffer {number} is {computed:0width$x}, the archive says {stored:0width$x}",
        width = 2 * LEN
    ))
    .at(at)
}

#[cold]
pub fn no_such(number: u64) -> Error {
    Error::data(format!("there is no buffer {number}"))
}

/// Which buffers were read before. The first read of a buffer costs nothing of the memory budget, because
/// the archive has as many bytes; every further read of the same buffer costs its length.
#[derive(Default)]
pub struct Seen(Vec<bool>);

impl Seen {
    pub fn cost(&mut self, header: &Header, number: u64, len: u64) -> u64 {
        if self.0.is_empty() {
            self.0.resize(header.count(), false);
        }
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        let seen = self.0.get_mut(index).map(|seen| std::mem::replace(seen, true));
        if seen == Some(false) { 0 } else { len }
    }
}

/// Buffers in memory. Views and shared tensors can refer to them without a copy.
pub struct Lending<'a, 'h> {
    pub header: &'h Header,
    /// Returns the content of a buffer. Its length must be the one in the header.
    pub content: &'h dyn Fn(u64) -> Result<&'a [u8]>,
    /// Returns a handle that keeps the buffer alive. `None` if the memory cannot be shared.
    pub share: Option<&'h dyn Fn(u64) -> Option<SharedBytes>>,
    pub arena: Option<&'a Arena>,
    pub seen: Seen,
}

impl<'a> Buffers<'a> for Lending<'a, '_> {
    fn places(&self) -> &[(u64, u64)] {
        &self.header.layout.buffers
    }

    fn cost(&mut self, number: u64, len: u64) -> u64 {
        self.seen.cost(self.header, number, len)
    }

    fn contents(&mut self) -> Contents<'_, 'a> {
        Contents::Lent(self)
    }

    fn aligned(&self, end: u64, bytes: &'a [u8]) -> &'a [u8] {
        match self.arena {
            Some(arena) => arena.aligned_copy(end, bytes),
            None => bytes,
        }
    }
}

impl<'a> Lend<'a> for Lending<'a, '_> {
    fn lend(&mut self, number: u64) -> Result<&'a [u8]> {
        (self.content)(number)
    }

    fn share(&self, number: u64) -> Option<SharedBytes> {
        self.share.and_then(|share| share(number))
    }
}
