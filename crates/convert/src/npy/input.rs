//! Sequential input that knows its offset.

use std::io;

use crate::support::read_some;
pub use crate::zip::Bytes;
use tenarc::{Error, Result};

/// An [`io::Read`] that is checked: it must not claim to have read more bytes than it could.
pub struct Stream<R>(pub R);

impl<R: io::Read> Bytes for Stream<R> {
    fn read(&mut self, out: &mut [u8]) -> Result<usize> {
        read_some(out, |out| self.0.read(out)).map_err(Error::io)
    }
}

/// A source of bytes, and the number of bytes that were read from it.
pub struct Input<B> {
    bytes: B,
    at: u64,
}

impl<B: Bytes> Input<B> {
    pub fn new(bytes: B) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn position(&self) -> u64 {
        self.at
    }

    pub fn into_inner(self) -> B {
        self.bytes
    }

    /// Fills `out`. `what` says in the error which part of the file ended early.
    pub fn fill(&mut self, out: &mut [u8], what: &str) -> Result<()> {
        let mut done = 0;
        while let Some(rest) = out.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let missing = rest.len();
            match self.bytes.read(rest).map_err(|error| error.at(self.at))? {
                0 => return Err(Error::eof(&format!("{missing} more bytes of {what}")).at(self.at)),
                n => {
                    done += n;
                    self.at = self.at.saturating_add(n as u64);
                }
            }
        }
        Ok(())
    }
}
