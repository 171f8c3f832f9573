//! Sequences of one number type as bare typed arrays (RFC 8746, section 2).

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeSeq as _, Serializer};

use super::capture::refuse;
use super::compound::Sequence;
use super::encoder::Encoder;
use crate::dtype::DType;
use crate::error::Result;
use crate::io::sink::{Memory, Overflow, Sink};
use crate::mem;

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

/// A typed array being gathered. Its elements go to a buffer lent by the sink, behind room for
/// the head.
pub struct Packing {
    kind: Kind,
    buf: Vec<u8>,
    /// Where the buffer's own contents ended.
    before: usize,
    /// Where the elements start.
    start: usize,
    count: usize,
    len: usize,
}

impl Packing {
    pub fn begin<O: Overflow>(encoder: &mut Encoder<O>, kind: Kind, len: usize) -> Result<Self> {
        encoder.room(1)?;
        let lent = encoder.sink.lend();
        let before = lent.len();
        // A length that overflows belongs to a sequence that never gets there.
        let bytes = len.saturating_mul(kind.size());
        let mut sink = Sink::new(lent, Memory::growing());
        sink.typed_array_head(&kind.dtype(), bytes)?;
        let (buf, ..) = sink.into_parts();
        let start = buf.len();
        Ok(Self { kind, buf, before, start, count: 0, len })
    }

    pub fn is_full(&self) -> bool {
        self.count == self.len
    }

    pub fn finish<O: Overflow>(self, encoder: &mut Encoder<O>) -> Result<()> {
        // Where that fails the value stays open.
        encoder.enter(1)?;
        encoder.sink.give_back(self.buf)?;
        encoder.leave(1)
    }

    /// Gives the buffer back as it was.
    pub fn abandon<O: Overflow>(mut self, encoder: &mut Encoder<O>) -> Result<()> {
        self.buf.truncate(self.before);
        encoder.sink.give_back(self.buf)
    }

    /// Gives up: what was gathered is written element by element, and the rest can follow.
    #[cold]
    pub fn unpack<O: Overflow>(mut self, encoder: &mut Encoder<O>) -> Result<Sequence<'_, O>> {
        let packed = self.buf.split_off(self.start);
        self.buf.truncate(self.before);
        encoder.sink.give_back(self.buf)?;
        let mut seq = Sequence::plain(encoder, Some(self.len))?;
        self.kind.write_plain(&packed, &mut seq)?;
        Ok(seq)
    }

    #[inline(always)]
    fn run<I, const N: usize>(
        &mut self,
        items: &mut I,
        get: impl Fn(Primitive) -> Option<[u8; N]>,
    ) -> Option<I::Item>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        // An announced length reserves no more than this at once.
        const WINDOW: usize = 64 << 10;
        while self.count < self.len {
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
                return rest;
            }
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

            fn write_plain<O: Overflow>(self, packed: &[u8], seq: &mut Sequence<'_, O>) -> Result<()> {
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
            /// Appends a number, unless it is of another type or beyond the announced length.
            #[inline(always)]
            pub fn push(&mut self, number: Primitive) -> bool {
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
            pub fn fill<I>(&mut self, items: &mut I) -> Option<I::Item>
            where
                I: Iterator,
                I::Item: Serialize,
            {
                match self.kind {
                    $(Kind::$kind => self.run(items, |number| match number {
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
