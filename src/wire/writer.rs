//! [`Writer`]: writes items to a sink, and keeps track of nesting.

use std::any::TypeId;

use serde::Serialize;

use super::buffer_sink::{BufferSink, Target};
use super::{head, tag};
use crate::error::{Error, Result};
use crate::io::sink::Sink;
use crate::options::EncodeOptions;

/// Writes items to any destination. serde's `Serializer` for it is in [`crate::ser`]. There is one type for all destinations,
/// so that the type of a user is compiled once.
pub type Writer<'o> = Sink<dyn Target + 'o, Context>;

/// A value whose type is not known here. What only passes it on is then compiled once, and not for each type.
pub trait ToWrite {
    fn write(&self, writer: &mut Writer<'_>) -> Result<()>;
}

impl<T: Serialize + ?Sized> ToWrite for &T {
    fn write(&self, writer: &mut Writer<'_>) -> Result<()> {
        self.serialize(writer)
    }
}

/// A writer to this destination.
pub type WriterTo<O> = Sink<O, Context>;

/// The options of a writer, and where in the value it is.
pub struct Context {
    pub options: EncodeOptions,
    /// The number of further levels of nesting that may be entered.
    pub depth: usize,
    /// The position of the last `Some`, and the number of `Some`s at that position: see
    /// [`Writer::mark_some`].
    some_at: u64,
    some_count: usize,
}

impl Context {
    pub fn new(options: EncodeOptions) -> Self {
        Self { options, depth: options.max_depth(), some_at: u64::MAX, some_count: 0 }
    }

    /// Whether no array or map was begun that is not complete.
    pub fn at_top(&self) -> bool {
        self.depth == self.options.max_depth()
    }
}

impl<O: Target> WriterTo<O> {
    pub fn to(buf: Vec<u8>, over: O, options: EncodeOptions) -> Self {
        Self::with_context(buf, over, Context::new(options))
    }

    /// The type that values are serialized with.
    #[inline]
    pub fn writer<'a>(&'a mut self) -> &'a mut Writer<'a>
    where
        O: 'a,
    {
        self
    }
}

impl Writer<'_> {
    /// The receiver of payloads that go to separate buffers, if there is one.
    #[inline]
    pub fn apart(&mut self) -> Option<&mut dyn BufferSink> {
        // Only metadata has buffers.
        if self.context.options.metadata { self.overflow_mut().apart() } else { None }
    }

    /// The receiver of payloads, if there is one and `takes` returns true. `takes` gets the receiver
    /// and the bytes written so far.
    #[inline]
    pub fn apart_if(
        &mut self,
        takes: impl FnOnce(&mut dyn BufferSink, &[u8]) -> bool,
    ) -> Option<&mut dyn BufferSink> {
        if !self.context.options.metadata {
            return None;
        }
        let (written, target) = self.pending();
        let apart = target.apart()?;
        if takes(apart, written) { Some(apart) } else { None }
    }

    /// Checks that the value is complete, and flushes everything to the writer.
    pub fn end(&mut self) -> Result<()> {
        if !self.context.at_top() {
            return Err(Error::data("the value left an array or map unfinished"));
        }
        self.flush()
    }

    #[inline]
    pub fn enter(&mut self, levels: usize) -> Result<()> {
        match self.context.depth.checked_sub(levels) {
            Some(depth) => {
                self.context.depth = depth;
                Ok(())
            }
            None => Err(self.too_deep()),
        }
    }

    /// Checks that this many more levels may be entered.
    #[inline]
    pub fn room(&self, levels: usize) -> Result<()> {
        if self.context.depth < levels { Err(self.too_deep()) } else { Ok(()) }
    }

    /// Writes an integer of up to 128 bits: see [`Sink::wide_integer`].
    pub fn wide(&mut self, negative: bool, arg: u128) -> Result<()> {
        if u64::try_from(arg).is_err() {
            // A bignum has a tag, which is one level.
            self.room(1)?;
        }
        self.wide_integer(negative, arg)
    }

    #[cold]
    pub fn too_deep(&self) -> Error {
        let max = self.context.options.max_depth();
        Error::limit(format!("the value is nested deeper than {max} levels"))
    }

    /// Leaves the levels of an array or map. If it was the outermost one, flushes everything to the
    /// writer.
    #[inline]
    pub fn leave(&mut self, levels: usize) -> Result<()> {
        let depth = self.context.depth + levels;
        if depth == self.context.options.max_depth() {
            // If this fails, the depth stays, so that `Serializer::begin` rejects further values.
            self.flush()?;
        }
        self.context.depth = depth;
        Ok(())
    }

    /// Remembers that the next item is in a `Some`.
    #[inline]
    pub fn some(&mut self) -> Result<()> {
        let at = self.position();
        if self.context.some_at == at {
            self.context.some_count += 1;
            // Each `Some` uses stack, although nothing is written yet.
            if self.context.some_count > self.context.options.max_depth() {
                return Err(self.too_deep());
            }
        } else {
            self.context.some_at = at;
            self.context.some_count = 1;
        }
        Ok(())
    }

    /// Comes before null and other items that an option reads as `None`. Writes a tag for each `Some`
    /// around the item, because otherwise `Some(None)` would be read as `None`.
    #[inline]
    pub fn mark_some(&mut self) -> Result<()> {
        if self.context.some_at == self.position() { self.write_somes() } else { Ok(()) }
    }

    #[cold]
    #[inline(never)]
    fn write_somes(&mut self) -> Result<()> {
        self.room(self.context.some_count)?;
        for _ in 0..self.context.some_count {
            self.head(head::TAG, tag::SOME)?;
        }
        Ok(())
    }
}

/// Whether `S` is this crate's encoder.
#[inline]
pub fn is_writer<S>() -> bool {
    typeid::of::<S>() == TypeId::of::<&'static mut Writer<'static>>()
}
