//! Readers that return less than they are asked for, as sockets do.

use std::io::{self, Read};

/// A reader that gives one byte at a time.
pub struct OneByte<'a>(pub &'a [u8]);

impl Read for OneByte<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = out.len().min(1);
        self.0.read(&mut out[..len])
    }
}

/// A reader that gives a few bytes at a time, as many as chance will have it, and is interrupted
/// now and then.
pub struct Ragged<'a> {
    rest: &'a [u8],
    state: u64,
}

impl<'a> Ragged<'a> {
    pub fn new(rest: &'a [u8], seed: u64) -> Self {
        Self { rest, state: seed.wrapping_mul(2).wrapping_add(1) }
    }

    /// Xorshift: the same numbers in every run.
    fn random(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }
}

impl Read for Ragged<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let chance = self.random();
        if chance.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = usize::try_from(chance % 23).unwrap() + 1;
        let len = out.len().min(most);
        self.rest.read(&mut out[..len])
    }
}

/// Readers that give `bytes` as they are, one at a time, and a few at a time.
///
/// All are of one type. Deserializing a type is compiled anew for each type of reader.
pub fn readers(bytes: &[u8]) -> [(&'static str, Box<dyn Read + '_>); 3] {
    [
        ("a whole reader", Box::new(bytes)),
        ("one byte at a time", Box::new(OneByte(bytes))),
        ("ragged", Box::new(Ragged::new(bytes, 7))),
    ]
}
