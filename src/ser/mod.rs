//! serde's [`Serializer`](serde::Serializer) over CBOR.

mod capture;
mod compound;
mod encoder;
mod pack;

use std::io;

use serde::Serialize;
use serde::ser;

pub use crate::options::EncodeOptions;
pub use crate::soft::SoftFail;

pub(crate) use self::capture::Capture;
use self::compound::{Compound, Sequence};
pub(crate) use self::encoder::{Encoder, blocks};
use crate::error::{Error, Result};
use crate::io::sink::{Memory, Sink, Stage};

/// Encodes a value into a new vector.
///
/// Where the value holds large tensors it is walked twice, so that the vector is allocated once,
/// to the byte.
///
/// # Errors
/// Where the value's own `Serialize` fails, it is nested deeper than
/// [`EncodeOptions::with_max_depth`], a sequence or map has another length than it announced, or
/// the two walks give different lengths.
pub fn to_vec<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>> {
    to_vec_with(value, EncodeOptions::default())
}

/// As [`to_vec`], with options.
///
/// # Errors
/// As [`to_vec`].
pub fn to_vec_with<T: Serialize + ?Sized>(value: &T, options: EncodeOptions) -> Result<Vec<u8>> {
    let mut buffer = Vec::with_capacity(128);
    append_to_with(&mut buffer, value, options)?;
    Ok(buffer)
}

/// Encodes a value behind what `buffer` holds already.
///
/// On an error the buffer is as it was; should the value's own code panic, it is left empty. Clear and pass the same buffer again to encode without
/// allocating.
///
/// # Errors
/// As [`to_vec`].
pub fn append_to<T: Serialize + ?Sized>(buffer: &mut Vec<u8>, value: &T) -> Result<()> {
    append_to_with(buffer, value, EncodeOptions::default())
}

/// As [`append_to`], with options.
///
/// # Errors
/// As [`to_vec`].
pub fn append_to_with<T: Serialize + ?Sized>(
    buffer: &mut Vec<u8>,
    value: &T,
    options: EncodeOptions,
) -> Result<()> {
    let start = buffer.len();
    let taken = std::mem::take(buffer);
    let mut first = Encoder::new(Sink::new(taken, Memory::measuring()), options);
    let mut result = value.serialize(&mut first);
    let (mut out, end, mut memory) = first.sink.into_parts();
    if let Some(stash) = memory.take_stash() {
        out = stash;
        out.truncate(start);
        if result.is_ok() {
            (out, result) = write_measured(out, end, value, options);
        }
    }
    if result.is_err() {
        out.truncate(start);
    }
    *buffer = out;
    result
}

/// Writes a value again whose end was counted to be at `end`.
fn write_measured<T: Serialize + ?Sized>(
    mut out: Vec<u8>,
    end: u64,
    value: &T,
    options: EncodeOptions,
) -> (Vec<u8>, Result<()>) {
    let len = usize::try_from(end).unwrap_or(usize::MAX) - out.len();
    if out.try_reserve_exact(len).is_err() {
        return (out, Err(Error::limit(format!("out of memory: {len} bytes to write"))));
    }
    let mut second = Encoder::new(Sink::new(out, Memory::growing()), options);
    let result = value.serialize(&mut second);
    let (out, ..) = second.sink.into_parts();
    let result = result.and_then(|()| {
        let found = out.len() as u64;
        if found == end {
            return Ok(());
        }
        Err(Error::data(format!(
            "the value takes {end} bytes when walked first and {found} when walked again"
        )))
    });
    (out, result)
}

/// Encodes a value into a writer.
///
/// Small pieces are gathered, payloads of tensors are handed over as they lie; the writer needs no
/// buffer of its own, and is not flushed. A sequence that is written as a typed array
/// ([`EncodeOptions::with_typed_arrays`]) is held in memory until its end, one at a time.
///
/// # Errors
/// As [`to_vec`], and where the writer fails.
pub fn to_writer<W: io::Write, T: Serialize + ?Sized>(writer: W, value: &T) -> Result<()> {
    to_writer_with(writer, value, EncodeOptions::default())
}

/// As [`to_writer`], with options.
///
/// # Errors
/// As [`to_writer`].
pub fn to_writer_with<W: io::Write, T: Serialize + ?Sized>(
    mut writer: W,
    value: &T,
    options: EncodeOptions,
) -> Result<()> {
    // One instance of the encoder serves all writers.
    let writer: &mut dyn io::Write = &mut writer;
    let mut encoder = Encoder::new(Stage::sink(writer), options);
    value.serialize(&mut encoder)?;
    encoder.sink.flush()
}

/// Encodes values one after the other into a writer: a CBOR sequence (RFC 8742).
///
/// When a call returns, everything of that value has been handed to the writer.
///
/// ```
/// use serde::Serialize;
///
/// let mut serializer = tenarc::Serializer::new(Vec::new());
/// "first".serialize(&mut serializer)?;
/// (2, [0.5f32]).serialize(&mut serializer)?;
/// assert_eq!(serializer.into_inner(), b"\x65first\x82\x02\x81\xfa\x3f\x00\x00\x00");
/// # Ok::<(), tenarc::Error>(())
/// ```
pub struct Serializer<W> {
    encoder: Encoder<Stage<W>>,
    broken: bool,
}

impl<W> std::fmt::Debug for Serializer<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serializer").field("broken", &self.broken).finish_non_exhaustive()
    }
}

impl<W: io::Write> Serializer<W> {
    /// A serializer that writes to `writer`.
    pub fn new(writer: W) -> Self {
        Self::with_options(writer, EncodeOptions::default())
    }

    /// A serializer that writes to `writer`, with options.
    pub fn with_options(writer: W, options: EncodeOptions) -> Self {
        Self { encoder: Encoder::new(Stage::sink(writer), options), broken: false }
    }

    /// The writer.
    pub fn get_ref(&self) -> &W {
        self.encoder.sink.overflow_ref().get_ref()
    }

    /// The writer. What is written to it directly goes between values.
    pub fn get_mut(&mut self) -> &mut W {
        self.encoder.sink.overflow_mut().get_mut()
    }

    /// The writer.
    pub fn into_inner(self) -> W {
        self.encoder.sink.into_parts().2.into_inner()
    }

    /// Starts a value: after one that failed part-way the stream is of no use.
    fn begin(&mut self) -> Result<&mut Encoder<Stage<W>>> {
        if self.broken || !self.encoder.at_top() {
            return Err(Error::data(
                "an earlier value failed part-way; the stream is broken there",
            ));
        }
        Ok(&mut self.encoder)
    }

    fn whole(&mut self, write: impl FnOnce(&mut Encoder<Stage<W>>) -> Result<()>) -> Result<()> {
        self.begin()?;
        // Stays so where the value panics part-way.
        self.broken = true;
        let encoder = &mut self.encoder;
        let result = write(encoder).and_then(|()| encoder.sink.flush());
        self.broken = result.is_err();
        result
    }
}

macro_rules! whole {
    ($($method:ident($($arg:ident: $type:ty),*);)*) => {$(
        fn $method(self, $($arg: $type),*) -> Result<()> {
            self.whole(|encoder| encoder.$method($($arg),*))
        }
    )*};
}

impl<'a, W: io::Write> ser::Serializer for &'a mut Serializer<W> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Sequence<'a, Stage<W>>;
    type SerializeTuple = Compound<'a, Stage<W>>;
    type SerializeTupleStruct = Compound<'a, Stage<W>>;
    type SerializeTupleVariant = Compound<'a, Stage<W>>;
    type SerializeMap = Compound<'a, Stage<W>>;
    type SerializeStruct = Compound<'a, Stage<W>>;
    type SerializeStructVariant = Compound<'a, Stage<W>>;

    whole! {
        serialize_bool(v: bool);
        serialize_i8(v: i8);
        serialize_i16(v: i16);
        serialize_i32(v: i32);
        serialize_i64(v: i64);
        serialize_i128(v: i128);
        serialize_u8(v: u8);
        serialize_u16(v: u16);
        serialize_u32(v: u32);
        serialize_u64(v: u64);
        serialize_u128(v: u128);
        serialize_f32(v: f32);
        serialize_f64(v: f64);
        serialize_char(v: char);
        serialize_str(v: &str);
        serialize_bytes(v: &[u8]);
        serialize_none();
        serialize_unit();
        serialize_unit_struct(name: &'static str);
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str);
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        self.whole(|encoder| encoder.serialize_some(value))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        self.whole(|encoder| encoder.serialize_newtype_struct(name, value))
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        self.whole(|encoder| encoder.serialize_newtype_variant(name, index, variant, value))
    }

    fn collect_seq<I>(self, iter: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Serialize,
    {
        self.whole(|encoder| encoder.collect_seq(iter))
    }

    // The compounds hand on what they wrote when they end at the top.

    fn serialize_seq(self, len: Option<usize>) -> Result<Sequence<'a, Stage<W>>> {
        self.begin()?.serialize_seq(len)
    }

    fn serialize_tuple(self, len: usize) -> Result<Compound<'a, Stage<W>>> {
        self.begin()?.serialize_tuple(len)
    }

    fn serialize_tuple_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Compound<'a, Stage<W>>> {
        self.begin()?.serialize_tuple_struct(name, len)
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, Stage<W>>> {
        self.begin()?.serialize_tuple_variant(name, index, variant, len)
    }

    fn serialize_map(self, len: Option<usize>) -> Result<Compound<'a, Stage<W>>> {
        self.begin()?.serialize_map(len)
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Compound<'a, Stage<W>>> {
        self.begin()?.serialize_struct(name, len)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, Stage<W>>> {
        self.begin()?.serialize_struct_variant(name, index, variant, len)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
