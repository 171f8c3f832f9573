//! Reads the arguments of opcodes from the bytes of a pickle.

use tenarc::{Error, Result};

/// The length of the longest name of a module, class or function, in bytes.
const MAX_LINE: usize = 1024;

/// The bytes of a pickle, and a position in them.
pub struct Input<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub fn position(&self) -> u64 {
        self.at as u64
    }

    /// The number of bytes that were not read yet.
    pub fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        let taken = taken.ok_or_else(|| {
            let (end, left) = (self.bytes.len() as u64, self.left());
            Error::eof(&format!("{len} more bytes of the pickle, found {left}")).at(end)
        })?;
        self.at += len;
        Ok(taken)
    }

    pub fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N).map(|bytes| bytes.try_into().unwrap_or([0; N]))
    }

    pub fn u8(&mut self) -> Result<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub fn u32(&mut self) -> Result<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a little-endian length of `width` bytes, and then as many bytes as it says.
    pub fn counted(&mut self, width: usize) -> Result<&'a [u8]> {
        let mut len = [0; 8];
        for (to, &from) in len.iter_mut().zip(self.take(width)?) {
            *to = from;
        }
        // If the length does not fit in a `usize`, the pickle cannot have so many bytes.
        self.take(usize::try_from(u64::from_le_bytes(len)).unwrap_or(usize::MAX))
    }

    /// Reads a little-endian length of `width` bytes, and then a text of so many bytes.
    pub fn text(&mut self, width: usize) -> Result<&'a str> {
        let at = self.position();
        let bytes = self.counted(width)?;
        std::str::from_utf8(bytes)
            .map_err(|_| Error::syntax("found a text that is not UTF-8").at(at))
    }

    /// Reads a name up to the end of its line.
    pub fn line(&mut self) -> Result<&'a str> {
        let at = self.position();
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let len = rest.iter().take(MAX_LINE + 1).position(|&byte| byte == b'\n');
        let Some(len) = len else {
            let error = if rest.len() > MAX_LINE {
                Error::limit(format!("a name has more than {MAX_LINE} bytes"))
            } else {
                Error::eof("the end of a name")
            };
            return Err(error.at(at));
        };
        let line = self.take(len)?;
        self.at += 1;
        std::str::from_utf8(line)
            .map_err(|_| Error::syntax("found a name that is not UTF-8").at(at))
    }
}
