//! Sequences of one number type as bare typed arrays (RFC 8746, section 2).

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeSeq as _, Serializer};

use super::capture::refuse;
use super::compound::Sequence;
use super::encoder::Encoder;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::sink::{Memory, Sink};
use crate::mem;
use crate::wire::apart::{Apart, Target};

/// Shorter sequences of floats are not worth a tag and a byte string head.
const MIN_FLOAT_BYTES: usize = 32;
/// Plain integers take one byte where they are small, so they are packed later.
const MIN_INT_BYTES: usize = 1024;

/// A serializer that returns the number it is given and refuses all else. It inlines to nothing,
/// so a loop over numbers stays one.
pub struct Grab;

#[derive(Debug)]
pub struct NotANumber;

impl fmt::Display for NotANumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a number")
    }
}

impl std::error::Error for NotANumber {}

impl serde::ser::Error for NotANumber {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// A typed array being gathered.
pub struct Packing {
    kind: Kind,
    /// The elements, or those not handed on yet.
    buf: Vec<u8>,
    place: Place,
    count: usize,
    len: usize,
}

/// Where the elements of a typed array go.
enum Place {
    /// To a buffer lent by the sink, behind room for the head.
    Here {
        /// Where the buffer's own contents ended.
        before: usize,
        /// Where the elements start.
        start: usize,
    },
    /// To a buffer of an archive, window by window.
    Apart {
        /// The number of this sequence among those that could be packed.
        sequence: usize,
        /// Whether elements have been handed on: then they cannot be written in another form.
        started: bool,
        /// Whether their bytes are of any use there.
        wanted: bool,
    },
}

/// An announced length reserves no more than this at once.
const WINDOW: usize = 64 << 10;

impl Packing {
    pub fn begin<O: Target>(encoder: &mut Encoder<O>, kind: Kind, len: usize) -> Result<Self> {
        // A length that overflows belongs to a sequence that never gets there.
        let bytes = len.saturating_mul(kind.size());
        let mut number = None;
        let asks = |apart: &mut dyn Apart, written: &[u8]| {
            number = apart.takes_sequence(written, &kind.dtype(), bytes);
            number.is_some()
        };
        let taken = encoder.sink.apart_if(asks).is_some();
        if let Some(sequence) = number.filter(|_| taken) {
            let place = Place::Apart { sequence, started: false, wanted: true };
            let buf = Vec::with_capacity(WINDOW.min(bytes));
            return Ok(Self { kind, buf, place, count: 0, len });
        }
        encoder.room(1)?;
        let lent = encoder.sink.lend();
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

    pub fn finish<O: Target>(mut self, encoder: &mut Encoder<O>) -> Result<()> {
        if let Place::Apart { .. } = self.place {
            self.hand_on(encoder)?;
            let number = match encoder.sink.apart() {
                Some(apart) => apart.end()?,
                None => 0,
            };
            encoder.room(2)?;
            return encoder.sink.numbers_reference(&self.kind.dtype(), number);
        }
        // Where that fails the value stays open.
        encoder.enter(1)?;
        encoder.sink.give_back(self.buf)?;
        encoder.leave(1)
    }

    /// Gives the buffer back as it was.
    pub fn abandon<O: Target>(mut self, encoder: &mut Encoder<O>) -> Result<()> {
        match self.place {
            Place::Here { before, .. } => {
                self.buf.truncate(before);
                encoder.sink.give_back(self.buf)
            }
            // What was handed on cannot be taken back; who takes it notices.
            Place::Apart { .. } => Ok(()),
        }
    }

    /// Gives up: what was gathered is written element by element, and the rest can follow.
    #[cold]
    pub fn unpack<O: Target>(mut self, encoder: &mut Encoder<O>) -> Result<Sequence<'_, O>> {
        let packed = match self.place {
            Place::Here { before, start } => {
                let packed = self.buf.split_off(start);
                self.buf.truncate(before);
                encoder.sink.give_back(self.buf)?;
                packed
            }
            Place::Apart { sequence, started, .. } => {
                if let Some(apart) = encoder.sink.apart() {
                    apart.mixed(sequence);
                }
                if started {
                    return Err(Error::data(
                        "a sequence of numbers of one type goes on with something else",
                    ));
                }
                self.buf
            }
        };
        let mut seq = Sequence::plain(encoder, Some(self.len))?;
        self.kind.write_plain(&packed, &mut seq)?;
        Ok(seq)
    }

    /// Hands on a window of elements that go to a buffer.
    fn hand_on<O: Target>(&mut self, encoder: &mut Encoder<O>) -> Result<()> {
        let Place::Apart { started, wanted, .. } = &mut self.place else { return Ok(()) };
        let Some(apart) = encoder.sink.apart() else { return Ok(()) };
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

    /// Appends a number, unless it is of another type or beyond the announced length.
    #[inline(always)]
    pub fn push<O: Target>(&mut self, encoder: &mut Encoder<O>, number: Primitive) -> Result<bool> {
        if !self.append(number) {
            return Ok(false);
        }
        if self.buf.len() >= WINDOW {
            self.hand_on(encoder)?;
        }
        Ok(true)
    }

    #[inline(always)]
    fn run<O, I, const N: usize>(
        &mut self,
        encoder: &mut Encoder<O>,
        items: &mut I,
        get: impl Fn(Primitive) -> Option<[u8; N]>,
    ) -> Result<Option<I::Item>>
    where
        O: Target,
        I: Iterator,
        I::Item: Serialize,
    {
        while self.count < self.len {
            if let Place::Apart { started: true, wanted: false, .. } = self.place {
                return Ok(self.count_on(items, get));
            }
            let step = (self.len - self.count).min(WINDOW / N);
            let mut rest = None;
            let filled = mem::append_words(&mut self.buf, step, || {
                let item = items.next()?;
                let bytes = item.serialize(Grab).ok().and_then(&get);
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

    /// As [`Packing::run`], where only the number and the type of the elements matter.
    #[inline(always)]
    fn count_on<I, const N: usize>(
        &mut self,
        items: &mut I,
        get: impl Fn(Primitive) -> Option<[u8; N]>,
    ) -> Option<I::Item>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        while self.count < self.len {
            let item = items.next()?;
            if item.serialize(Grab).ok().and_then(&get).is_none() {
                return Some(item);
            }
            self.count += 1;
        }
        None
    }
}

macro_rules! numbers {
    ($($kind:ident $type:ty, $method:ident;)*) => {
        /// A primitive number type.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind {
            $($kind,)*
        }

        /// A primitive number as serde was given it.
        #[derive(Clone, Copy, Debug)]
        pub enum Primitive {
            $($kind($type),)*
        }

        impl Primitive {
            #[inline(always)]
            pub fn kind(self) -> Kind {
                match self {
                    $(Self::$kind(_) => Kind::$kind,)*
                }
            }
        }

        impl Kind {
            fn dtype(self) -> DType {
                match self {
                    $(Self::$kind => DType::$kind,)*
                }
            }

            #[inline(always)]
            fn size(self) -> usize {
                match self {
                    $(Self::$kind => size_of::<$type>(),)*
                }
            }

            fn write_plain<O: Target>(self, packed: &[u8], seq: &mut Sequence<'_, O>) -> Result<()> {
                match self {
                    $(Self::$kind => packed.as_chunks().0.iter().try_for_each(|bytes| {
                        seq.serialize_element(&<$type>::from_le_bytes(*bytes))
                    }),)*
                }
            }
        }

        impl Serializer for Grab {
            type Ok = Primitive;
            type Error = NotANumber;

            $(#[inline(always)]
            fn $method(self, value: $type) -> Result<Primitive, NotANumber> {
                Ok(Primitive::$kind(value))
            })*

            refuse!(NotANumber; scalars bytes wrappers seq compounds);
        }

        impl Packing {
            #[inline(always)]
            fn append(&mut self, number: Primitive) -> bool {
                if number.kind() != self.kind || self.count == self.len {
                    return false;
                }
                self.count += 1;
                match number {
                    $(Primitive::$kind(value) => {
                        self.buf.extend_from_slice(&value.to_le_bytes());
                    })*
                }
                true
            }

            /// Appends numbers while they are of the type, as many as were announced; gives back
            /// an item of another type.
            #[inline]
            pub fn fill<O, I>(
                &mut self,
                encoder: &mut Encoder<O>,
                items: &mut I,
            ) -> Result<Option<I::Item>>
            where
                O: Target,
                I: Iterator,
                I::Item: Serialize,
            {
                match self.kind {
                    $(Kind::$kind => self.run(encoder, items, |number| match number {
                        Primitive::$kind(value) => Some(value.to_le_bytes()),
                        _ => None,
                    }),)*
                }
            }
        }
    };
}

numbers! {
    U8 u8, serialize_u8;
    U16 u16, serialize_u16;
    U32 u32, serialize_u32;
    U64 u64, serialize_u64;
    I8 i8, serialize_i8;
    I16 i16, serialize_i16;
    I32 i32, serialize_i32;
    I64 i64, serialize_i64;
    F32 f32, serialize_f32;
    F64 f64, serialize_f64;
}

impl Kind {
    /// Whether a sequence of `len` elements could be worth packing, whatever they are.
    #[inline]
    pub fn may_pack(len: usize) -> bool {
        len >= MIN_FLOAT_BYTES / size_of::<f64>()
    }

    #[inline]
    pub fn worth_packing(self, len: usize) -> bool {
        let least = match self {
            Self::F32 | Self::F64 => MIN_FLOAT_BYTES,
            _ => MIN_INT_BYTES,
        };
        len.saturating_mul(self.size()) >= least
    }
}
