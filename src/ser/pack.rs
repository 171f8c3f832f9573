//! Packs sequences of numbers of one type into typed arrays without a shape (RFC 8746, section 2).

use serde::Serialize;

use super::columns::Bytes;
use super::compound::Compound;
use super::kind::{Kind, Primitive};
use super::look::number;
use crate::error::{Error, Result};
use crate::io::sink::{Memory, Sink};
use crate::mem;
use crate::serde_model::for_each_number;
use crate::wire::buffer_sink::BufferSink;
use crate::wire::head;
use crate::wire::writer::Writer;

/// A typed array whose elements are being collected.
pub struct Packing {
    kind: Kind,
    /// The elements that were collected and not passed on yet.
    buf: Vec<u8>,
    place: Place,
    count: usize,
    len: usize,
}

/// Where the elements of a typed array go.
enum Place {
    /// To a buffer that the sink has lent, after the head of the typed array.
    Here {
        /// The length of the buffer when it was lent.
        before: usize,
        /// The index in the buffer at which the elements start.
        start: usize,
    },
    /// To a buffer of an archive, in pieces of [`WINDOW`] bytes.
    Apart {
        /// The number of this sequence among those that could be packed.
        sequence: usize,
        /// Whether elements were passed on. Then they can no longer be written in another form.
        started: bool,
        /// Whether the receiver needs the bytes, as [`BufferSink::begin`] has returned.
        wanted: bool,
    },
}

/// The most bytes that are reserved at once for an announced length.
const WINDOW: usize = 64 << 10;

impl Packing {
    pub fn begin(encoder: &mut Writer<'_>, kind: Kind, len: usize) -> Result<Self> {
        // No real sequence has a length that overflows.
        let bytes = len.saturating_mul(kind.size());
        let mut number = None;
        let asks = |apart: &mut dyn BufferSink, written: &[u8]| {
            number = apart.takes_sequence(written, &kind.dtype(), bytes);
            number.is_some()
        };
        let taken = encoder.apart_if(asks).is_some();
        if let Some(sequence) = number.filter(|_| taken) {
            let place = Place::Apart { sequence, started: false, wanted: true };
            let buf = Vec::with_capacity(WINDOW.min(bytes));
            return Ok(Self { kind, buf, place, count: 0, len });
        }
        encoder.room(1)?;
        let lent = encoder.lend();
        let before = lent.len();
        let mut sink = Sink::new(lent, Memory::growing());
        sink.typed_array_head(&kind.dtype(), bytes)?;
        let (buf, ..) = sink.into_parts();
        let start = buf.len();
        Ok(Self { kind, buf, place: Place::Here { before, start }, count: 0, len })
    }

    pub fn is_full(&self) -> bool {
        self.count == self.len
    }

    pub fn finish(mut self, encoder: &mut Writer<'_>) -> Result<()> {
        if let Place::Apart { .. } = self.place {
            self.hand_on(encoder)?;
            let number = match encoder.apart() {
                Some(apart) => apart.end()?,
                None => 0,
            };
            encoder.room(2)?;
            return encoder.numbers_reference(&self.kind.dtype(), number);
        }
        // If a call below fails, the level stays entered, which marks the value as incomplete.
        encoder.enter(1)?;
        encoder.give_back(self.buf)?;
        encoder.leave(1)
    }

    /// Returns the lent buffer without the elements.
    pub fn abandon(mut self, encoder: &mut Writer<'_>) -> Result<()> {
        match self.place {
            Place::Here { before, .. } => {
                self.buf.truncate(before);
                encoder.give_back(self.buf)
            }
            // Elements that were passed on cannot be taken back. The receiver notices that the
            // buffer is incomplete.
            Place::Apart { .. } => Ok(()),
        }
    }

    /// Stops packing: writes the collected elements as a plain array, to which the rest can be added.
    #[cold]
    pub fn unpack<'a, 'o>(mut self, encoder: &'a mut Writer<'o>) -> Result<Compound<'a, 'o>> {
        let packed = match self.place {
            Place::Here { before, start } => {
                let packed = self.buf.split_off(start);
                self.buf.truncate(before);
                encoder.give_back(self.buf)?;
                packed
            }
            Place::Apart { sequence, started, .. } => {
                if let Some(apart) = encoder.apart() {
                    apart.mixed(sequence);
                }
                if started {
                    let (count, dtype) = (self.count, self.kind.dtype());
                    return Err(Error::data(format!(
                        "expected another {dtype}, as the {count} elements before, found another value"
                    )));
                }
                self.buf
            }
        };
        let mut seq = Compound::begin(encoder, head::ARRAY, Some(self.len))?;
        self.kind.write_plain(&packed, &mut seq)?;
        Ok(seq)
    }

    /// If the elements go to a buffer of an archive, passes on those that were collected.
    fn hand_on(&mut self, encoder: &mut Writer<'_>) -> Result<()> {
        let Place::Apart { started, wanted, .. } = &mut self.place else { return Ok(()) };
        let Some(apart) = encoder.apart() else { return Ok(()) };
        if !*started {
            *wanted = apart.begin(self.len.saturating_mul(self.kind.size()))?;
            *started = true;
        }
        if *wanted {
            apart.put(&self.buf)?;
        }
        self.buf.clear();
        Ok(())
    }

    /// Appends a number and returns true. Returns false if the number has another type, if the
    /// announced length was reached, or if the buffer is full.
    #[inline]
    pub fn push_here(&mut self, number: Primitive) -> bool {
        if number.kind() != self.kind || self.count == self.len {
            return false;
        }
        let done = self.append_here(number);
        self.count += usize::from(done);
        done
    }

    /// Like [`Packing::push_here`], but makes room if the buffer is full.
    pub fn push(&mut self, encoder: &mut Writer<'_>, number: Primitive) -> Result<bool> {
        let size = self.kind.size();
        if self.buf.capacity() - self.buf.len() < size {
            self.hand_on(encoder)?;
            self.buf.reserve(size);
        }
        Ok(self.push_here(number))
    }

    /// Appends numbers as long as they have the type of this array, up to the announced length. Returns the first item of
    /// another type.
    #[inline]
    pub fn fill<I>(&mut self, encoder: &mut Writer<'_>, items: &mut I) -> Result<Option<I::Item>>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        match self.kind.size() {
            1 => self.run::<I, 1>(encoder, items),
            2 => self.run::<I, 2>(encoder, items),
            4 => self.run::<I, 4>(encoder, items),
            _ => self.run::<I, 8>(encoder, items),
        }
    }

    fn run<I, const N: usize>(
        &mut self,
        encoder: &mut Writer<'_>,
        items: &mut I,
    ) -> Result<Option<I::Item>>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        let kind = self.kind;
        while self.count < self.len {
            if let Place::Apart { started: true, wanted: false, .. } = self.place {
                return Ok(self.count_on(items));
            }
            let step = (self.len - self.count).min(WINDOW / N);
            let mut rest = None;
            let filled = mem::append_words(&mut self.buf, step, || {
                let item = items.next()?;
                let bytes = number(&item).and_then(|number| number.bytes::<N>(kind));
                if bytes.is_none() {
                    rest = Some(item);
                }
                bytes
            });
            self.count += filled;
            if filled < step {
                return Ok(rest);
            }
            self.hand_on(encoder)?;
        }
        Ok(None)
    }

    /// Like [`Packing::run`], but only counts the elements and checks their type.
    fn count_on<I>(&mut self, items: &mut I) -> Option<I::Item>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        while self.count < self.len {
            let item = items.next()?;
            if number(&item).is_none_or(|number| number.kind() != self.kind) {
                return Some(item);
            }
            self.count += 1;
        }
        None
    }
}

macro_rules! numbers {
    ($($kind:ident $type:ty, $method:ident;)*) => {
        impl Kind {
            fn write_plain(self, packed: &[u8], seq: &mut Compound<'_, '_>) -> Result<()> {
                match self {
                    $(Self::$kind => packed.as_chunks().0.iter().try_for_each(|bytes| {
                        seq.element(&<$type>::from_le_bytes(*bytes))
                    }),)*
                }
            }
        }

        impl Packing {
            #[inline]
            fn append_here(&mut self, number: Primitive) -> bool {
                match number {
                    $(Primitive::$kind(value) => mem::append(&mut self.buf, value.to_le_bytes(), &[]),)*
                }
            }
        }
    };
}

for_each_number!(numbers);

impl Kind {
    /// Appends numbers to a column of numbers of this type. Returns how many. Stops at the first item that is something else,
    /// which is lost: all items must be of a primitive type.
    #[inline]
    pub fn extend<I>(self, column: &mut Bytes, items: &mut I) -> usize
    where
        I: Iterator,
        I::Item: Serialize,
    {
        match self.size() {
            1 => extend::<I, 1>(column, items, self),
            2 => extend::<I, 2>(column, items, self),
            4 => extend::<I, 4>(column, items, self),
            _ => extend::<I, 8>(column, items, self),
        }
    }
}

#[inline]
fn extend<I, const N: usize>(column: &mut Bytes, items: &mut I, kind: Kind) -> usize
where
    I: Iterator,
    I::Item: Serialize,
{
    let mut count = 0;
    loop {
        // The memory that is reserved follows the iterator's claim only up to a limit.
        let wanted = items.size_hint().0.clamp(1, WINDOW / N);
        let (room, step) = column.room::<N>(wanted);
        let done = mem::append_words(room, step, || number(&items.next()?)?.bytes::<N>(kind));
        count += done;
        if done < step {
            return count;
        }
    }
}
