//! [`Writer`]: writes items to a sink, and keeps track of nesting.

use std::any::TypeId;
use std::io;

use super::apart::Target;
use super::{head, tag};
use crate::error::{Error, Result};
use crate::io::sink::{Memory, Overflow, Sink, Stage};
use crate::options::EncodeOptions;

/// Writes items to a sink. serde's `Serializer` for it is in [`crate::ser`].
pub struct Writer<O: Overflow> {
    pub sink: Sink<O>,
    pub options: EncodeOptions,
    /// The number of further levels of nesting that may be entered.
    pub depth: usize,
    /// The position of the last `Some`, and the number of `Some`s at that position: see
    /// [`Writer::mark_some`].
    some_at: u64,
    some_count: usize,
}

impl<O: Target> Writer<O> {
    pub fn new(sink: Sink<O>, options: EncodeOptions) -> Self {
        Self { sink, options, depth: options.max_depth, some_at: u64::MAX, some_count: 0 }
    }

    /// Checks that the value is complete, and flushes everything to the writer.
    pub fn end(&mut self) -> Result<()> {
        if !self.at_top() {
            return Err(Error::data("the value left an array or map unfinished"));
        }
        self.sink.flush()
    }

    pub fn at_top(&self) -> bool {
        self.depth == self.options.max_depth
    }

    #[inline(always)]
    pub fn enter(&mut self, levels: usize) -> Result<()> {
        match self.depth.checked_sub(levels) {
            Some(depth) => {
                self.depth = depth;
                Ok(())
            }
            None => Err(self.too_deep()),
        }
    }

    /// Checks that this many more levels may be entered.
    #[inline]
    pub fn room(&self, levels: usize) -> Result<()> {
        if self.depth < levels { Err(self.too_deep()) } else { Ok(()) }
    }

    /// Writes an integer of up to 128 bits: see [`Sink::wide`].
    pub fn wide(&mut self, negative: bool, arg: u128) -> Result<()> {
        if u64::try_from(arg).is_err() {
            // A bignum has a tag, which is one level.
            self.room(1)?;
        }
        self.sink.wide(negative, arg)
    }

    #[cold]
    pub fn too_deep(&self) -> Error {
        let max = self.options.max_depth;
        Error::limit(format!("the value is nested deeper than {max} levels"))
    }

    /// Leaves the levels of an array or map. If it was the outermost one, flushes everything to the
    /// writer.
    #[inline(always)]
    pub fn leave(&mut self, levels: usize) -> Result<()> {
        let depth = self.depth + levels;
        if depth == self.options.max_depth {
            // If this fails, the depth stays, so that `Serializer::begin` rejects further values.
            self.sink.flush()?;
        }
        self.depth = depth;
        Ok(())
    }

    /// Remembers that the next item is in a `Some`.
    #[inline]
    pub fn some(&mut self) -> Result<()> {
        let at = self.sink.position();
        if self.some_at == at {
            self.some_count += 1;
            // Each `Some` uses stack, although nothing is written yet.
            if self.some_count > self.options.max_depth {
                return Err(self.too_deep());
            }
        } else {
            self.some_at = at;
            self.some_count = 1;
        }
        Ok(())
    }

    /// Comes before null and other items that an option reads as `None`. Writes a tag for each `Some`
    /// around the item, because otherwise `Some(None)` would be read as `None`.
    #[inline]
    pub fn mark_some(&mut self) -> Result<()> {
        if self.some_at == self.sink.position() { self.write_somes() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn write_somes(&mut self) -> Result<()> {
        self.room(self.some_count)?;
        for _ in 0..self.some_count {
            self.sink.head(head::TAG, tag::SOME)?;
        }
        Ok(())
    }
}

/// Whether `S` is an encoder that writes tensors in place, and not to buffers of an archive.
#[inline(always)]
pub fn writes_in_place<S>() -> bool {
    typeid::of::<S>() == TypeId::of::<&'static mut Writer<Memory<&'static mut Vec<u8>>>>()
        || typeid::of::<S>()
            == TypeId::of::<&'static mut Writer<Stage<&'static mut dyn io::Write>>>()
}
