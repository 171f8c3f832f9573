//! The one decoder that every value is read with: see [`Input`].

use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed};

use crate::budget::Budget;
use crate::error::{Category, Error, Result};
use crate::io::input::Input;
use crate::magic::archive_as_message;
use crate::options::DecodeOptions;
use crate::wire::head;
use crate::wire::reader::Reader;

#[derive(Debug)]
pub struct ValueDecoder<'de, 'b> {
    pub(crate) wire: Reader<'de, 'b>,
    /// The offset at which the last option was entered, and how many were entered at that offset. See
    /// `enter_some`.
    pub(super) some_at: u64,
    pub(super) some_count: usize,
}

impl<'de, 'b> ValueDecoder<'de, 'b> {
    #[inline]
    pub fn new(input: Input<'de, 'b>, options: DecodeOptions) -> Self {
        Self::of(Reader::new(input, options.limits))
    }

    /// A decoder of which others have read the values before, and have left `budget`.
    pub(super) fn going_on(input: Input<'de, 'b>, budget: &Budget) -> Self {
        Self::of(Reader::inside(input, budget.limits.max_depth, budget))
    }

    #[inline]
    pub(super) fn of(wire: Reader<'de, 'b>) -> Self {
        Self { wire, some_at: u64::MAX, some_count: 0 }
    }

    /// The position in the input, and what is left of the budget.
    pub(super) fn into_parts(self) -> (u64, Budget) {
        (self.wire.offset(), self.wire.allowance())
    }

    /// Checks that the input has ended.
    #[inline]
    pub fn end(&mut self) -> Result<()> {
        if self.wire.src.remaining() == Some(0) { Ok(()) } else { self.check_end() }
    }

    #[inline(never)]
    fn check_end(&mut self) -> Result<()> {
        match self.wire.peek()? {
            None => Ok(()),
            Some(byte) => {
                let found = head::name(byte);
                let what = format!("expected the end of the input, found {found} after the value");
                Err(Error::syntax(what).at(self.wire.offset()))
            }
        }
    }

    /// Reads the only value of the input. Input with the tags of an archive, `starts_as_archive`, may still be a
    /// message. So the error that it is an archive is only returned if it cannot be read as a message.
    pub(super) fn message<T: Deserialize<'de>>(mut self, starts_as_archive: bool) -> Result<T> {
        let value = self.value(PhantomData).and_then(|value| self.end().map(|()| value));
        value.map_err(|error| match error.category() {
            Category::Io => error,
            _ if starts_as_archive => archive_as_message(),
            _ => error,
        })
    }

    /// Reads one value. An error that the value's own code raised gets the offset of the value.
    pub fn value<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value> {
        let at = self.wire.offset();
        seed.deserialize(&mut *self).map_err(|error| error.at(at))
    }
}
