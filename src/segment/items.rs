//! Small items of headers and directories, in memory.

use crate::error::{Error, Result};
use crate::io::sink::{Memory, Sink};
use crate::wire::head;
use crate::wire::reader::Reader;

/// The length of the head of a byte string with `len` bytes of content.
pub fn head_len(len: u64) -> u64 {
    match len {
        0..24 => 1,
        24..=0xff => 2,
        0x100..=0xffff => 3,
        0x1_0000..=0xffff_ffff => 5,
        _ => 9,
    }
}

/// Encodes small items into memory.
pub struct ItemEncoder(Sink<Memory>);

impl ItemEncoder {
    pub fn new() -> Self {
        Self::with_capacity(0)
    }

    /// With memory for about so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self(Sink::new(Vec::with_capacity(64 + bytes), Memory::growing()))
    }

    pub fn head(&mut self, major: u8, arg: u64) -> Result<&mut Self> {
        self.0.head(major, arg)?;
        Ok(self)
    }

    /// Writes a text, or null for `None`.
    pub fn name(&mut self, name: Option<&str>) -> Result<&mut Self> {
        match name {
            Some(name) => self.0.text(name)?,
            None => self.0.put([head::NULL])?,
        }
        Ok(self)
    }

    pub fn raw(&mut self, bytes: &[u8]) -> Result<&mut Self> {
        self.0.put_slice(bytes)?;
        Ok(self)
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.0.into_parts().0
    }
}

/// Reads an unsigned integer. `what` says in an error what was expected.
pub fn unsigned(wire: &mut Reader<'_, '_>, what: &str) -> Result<u64> {
    let at = wire.offset();
    let found = wire.head()?;
    if found.major() == head::UNSIGNED {
        return Ok(found.arg);
    }
    let found = head::name(found.initial);
    Err(Error::data(format!("expected {what}, found {found}")).at(at))
}
