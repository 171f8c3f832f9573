//! Reads messages of protocol buffers, field by field.

use std::ops::Range;

use tenarc::de::Limits;
use tenarc::io::ReadAt;
use tenarc::{Error, Result};

use crate::input::{Input, Positions};

/// The content of a field, with the range of its bytes in the source.
#[derive(Clone, Debug)]
pub enum Field {
    /// A varint. Its bytes are already read.
    Varint(u64, Range<u64>),
    /// A number of 4 bytes.
    Fixed4(Range<u64>),
    /// A number of 8 bytes.
    Fixed8(Range<u64>),
    /// A string, a message or a packed sequence.
    Bytes(Range<u64>),
}

impl Field {
    /// The range of the content in the source.
    pub fn range(&self) -> &Range<u64> {
        match self {
            Self::Varint(_, range)
            | Self::Fixed4(range)
            | Self::Fixed8(range)
            | Self::Bytes(range) => range,
        }
    }
}

/// Reads fields from start to end.
pub struct Wire<'a, S: ?Sized> {
    input: Input<Positions<'a, S>>,
}

impl<'a, S: ReadAt + ?Sized> Wire<'a, S> {
    pub fn new(source: &'a S, limits: Limits) -> Result<Self> {
        Ok(Self { input: Input::new(Positions::new(source)?, limits) })
    }

    /// The current position in the source.
    pub fn at(&self) -> u64 {
        self.input.at()
    }

    /// Counts memory towards the limit.
    pub fn charge(&mut self, bytes: usize) -> Result<()> {
        self.input.charge(bytes as u64)
    }

    /// Goes forward to a position.
    pub fn skip_to(&mut self, at: u64) -> Result<()> {
        match at.checked_sub(self.at()) {
            Some(len) => self.input.pass(len, "a message"),
            None => Err(Error::syntax("a field is shorter than its content").at(self.at())),
        }
    }

    /// Reads the number and the wire type of the next field. Returns the number and the content, whose bytes are not
    /// read yet unless it is a varint. `None` at `end`, where the message ends.
    pub fn field(&mut self, end: u64) -> Result<Option<(u64, Field)>> {
        if self.at() >= end {
            return Ok(None);
        }
        let at = self.at();
        let key = self.varint(end)?;
        let field = match key & 7 {
            0 => {
                let start = self.at();
                let value = self.varint(end)?;
                Field::Varint(value, start..self.at())
            }
            1 => Field::Fixed8(self.range(8, end)?),
            2 => {
                let len = self.varint(end)?;
                Field::Bytes(self.range(len, end)?)
            }
            5 => Field::Fixed4(self.range(4, end)?),
            other => {
                let what = format!("expected wire type 0, 1, 2 or 5, found wire type {other}");
                return Err(Error::syntax(what).at(at));
            }
        };
        match key >> 3 {
            0 => Err(Error::syntax("expected a field number of at least 1, found 0").at(at)),
            number => Ok(Some((number, field))),
        }
    }

    fn range(&mut self, len: u64, end: u64) -> Result<Range<u64>> {
        let start = self.at();
        match start.checked_add(len).filter(|&stop| stop <= end) {
            Some(stop) => Ok(start..stop),
            None => {
                let left = end.saturating_sub(start);
                let what = format!("a field has {len} bytes, but its message has {left} left");
                Err(Error::new(tenarc::error::Category::Eof, what).at(start))
            }
        }
    }

    /// Reads a varint of a message that ends at `end`.
    pub fn varint(&mut self, end: u64) -> Result<u64> {
        let start = self.at();
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            if self.at() >= end {
                return Err(Error::eof("the rest of a number").at(self.at()));
            }
            let byte = self.input.byte("the rest of a number")?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::syntax("a number has more than 64 bits").at(start))
    }

    /// Reads a short text, for example a name.
    pub fn text(&mut self, range: &Range<u64>) -> Result<String> {
        const MOST: u64 = 64 << 10;
        let len = range.end.saturating_sub(range.start);
        if len > MOST {
            let what = format!("a name has {len} bytes, expected at most {MOST}");
            return Err(Error::limit(what).at(range.start));
        }
        String::from_utf8(self.bytes(range)?)
            .map_err(|_| Error::syntax("a text is not UTF-8").at(range.start))
    }

    /// Reads the bytes of a field of any length.
    pub fn bytes(&mut self, range: &Range<u64>) -> Result<Vec<u8>> {
        self.input.bytes(range.end.saturating_sub(range.start), "a text")
    }
}
