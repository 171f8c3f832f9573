//! serde's [`Serializer`](serde::Serializer) over CBOR.

mod capture;
mod compound;
mod pack;

use std::io;

use serde::Serialize;
use serde::ser::{self, SerializeSeq as _, Serializer as _};

pub(crate) use self::capture::Capture;
pub use self::compound::{Compound, Sequence};
use self::pack::{Grab, Kind, Packing};
use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::io::sink::{Memory, Overflow, Sink, Stage};
use crate::options::EncodeOptions;
use crate::raw;
use crate::tensor::TensorMeta;
use crate::value;
use crate::wire::{head, tag};

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

/// The serializer behind all entry points.
pub struct Encoder<O> {
    pub(crate) sink: Sink<O>,
    options: EncodeOptions,
    /// Levels that may still be opened.
    depth: usize,
    /// Where the last `Some` was announced, and how many in a row: see [`Encoder::null`].
    some_at: u64,
    some_count: usize,
}

impl<O: Overflow> Encoder<O> {
    pub fn new(sink: Sink<O>, options: EncodeOptions) -> Self {
        Self { sink, options, depth: options.max_depth, some_at: u64::MAX, some_count: 0 }
    }

    fn at_top(&self) -> bool {
        self.depth == self.options.max_depth
    }

    #[inline(always)]
    fn enter(&mut self, levels: usize) -> Result<()> {
        match self.depth.checked_sub(levels) {
            Some(depth) => {
                self.depth = depth;
                Ok(())
            }
            None => Err(self.too_deep()),
        }
    }

    /// Checks that so many levels may be opened.
    #[inline]
    fn room(&self, levels: usize) -> Result<()> {
        if self.depth < levels { Err(self.too_deep()) } else { Ok(()) }
    }

    fn wide(&mut self, negative: bool, arg: u128) -> Result<()> {
        if u64::try_from(arg).is_err() {
            // The tag of a bignum.
            self.room(1)?;
        }
        self.sink.wide(negative, arg)
    }

    #[cold]
    fn too_deep(&self) -> Error {
        let max = self.options.max_depth;
        Error::limit(format!("the value is nested deeper than {max} levels"))
    }

    /// Ends a compound; at the top, everything goes to the writer.
    #[inline(always)]
    fn leave(&mut self, levels: usize) -> Result<()> {
        let depth = self.depth + levels;
        if depth == self.options.max_depth {
            // Where this fails the value stays open: see `Serializer::begin`.
            self.sink.flush()?;
        }
        self.depth = depth;
        Ok(())
    }

    /// Null, or another item that an option is read from as `None`: the `Some`s around it must be
    /// written, as nothing else tells them.
    #[inline]
    fn mark_some(&mut self) -> Result<()> {
        if self.some_at == self.sink.position() {
            self.room(self.some_count)?;
            for _ in 0..self.some_count {
                self.sink.head(head::TAG, tag::SOME)?;
            }
        }
        Ok(())
    }

    #[inline]
    fn null(&mut self) -> Result<()> {
        self.mark_some()?;
        self.sink.put([head::NULL])
    }

    /// A newtype of this crate.
    fn ours<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<()> {
        match (name, handoff::take()) {
            (name::TENSOR, Slot::Outgoing(meta, len)) => self.tensor(&meta, len, value),
            // Buffered by serde: the newtype's content is the struct that other formats see.
            (name::TENSOR, _) => value::tensor_of(value)?.serialize(self),
            (name::NUMBERS, Slot::Outgoing(meta, len)) => {
                self.room(1 + usize::from(meta.dtype.is_complex()))?;
                self.sink.typed_array_head(&meta.dtype, len)?;
                self.blocks(len, value)
            }
            (name::SIMPLE, Slot::Number(number)) => {
                match number {
                    22 | 23 => self.mark_some()?,
                    24..32 => {
                        return Err(Error::data(format!("there is no simple value {number}")));
                    }
                    _ => {}
                }
                self.sink.head(head::SIMPLE, number)
            }
            (name::RAW, Slot::Raw) => value.serialize(Capture(|item: &[u8]| {
                if raw::reads_as_none(item) {
                    self.mark_some()?;
                }
                if raw::is_deeper(item, self.depth) {
                    return Err(self.too_deep());
                }
                self.sink.put_slice(item)
            })),
            _ => value.serialize(self),
        }
    }

    /// Apart from [`Encoder::ours`], as what is nested should take little stack.
    fn tagged<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let Slot::Number(number) = handoff::take() else { return value.serialize(self) };
        if number == tag::SOME {
            self.mark_some()?;
        }
        self.enter(1)?;
        self.sink.head(head::TAG, number)?;
        value.serialize(&mut *self)?;
        self.depth += 1;
        Ok(())
    }

    fn tensor<T: Serialize + ?Sized>(
        &mut self,
        meta: &TensorMeta,
        len: usize,
        payload: &T,
    ) -> Result<()> {
        // Tag, array, shape or typed-array tag, complex tag before that.
        self.room(3 + usize::from(meta.dtype.is_complex()))?;
        self.sink.tensor_head(&meta.dtype, &meta.shape, meta.order, len)?;
        self.blocks(len, payload)
    }

    /// Exactly `len` bytes of payload.
    fn blocks<T: Serialize + ?Sized>(&mut self, len: usize, payload: &T) -> Result<()> {
        let mut left = len;
        let put = Capture(|block: &[u8]| {
            left = left.checked_sub(block.len()).ok_or_else(|| {
                Error::data(format!("a tensor of {len} bytes gives more bytes than that"))
            })?;
            self.sink.put_block(block)
        });
        handoff::offer(Slot::Blocks, || payload.serialize(put))?;
        if left != 0 {
            return Err(Error::data(format!("a tensor of {len} bytes gives {left} bytes fewer")));
        }
        Ok(())
    }

    /// A sequence that may become a typed array.
    fn packable<I>(&mut self, mut iter: I, len: usize) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        let Some(first) = iter.next() else {
            return self.serialize_seq(Some(len))?.end();
        };
        let number = match first.serialize(Grab) {
            Ok(number) if number.kind().worth_packing(len) => number,
            _ => return self.plain_seq(Some(len), std::iter::once(first).chain(iter)),
        };
        let mut packing = Packing::begin(self, number.kind(), len)?;
        packing.push(number);
        let rest = packing.fill(&mut iter).or_else(|| iter.next());
        if rest.is_none() && packing.is_full() {
            return packing.finish(self);
        }
        let mut seq = packing.unpack(self)?;
        rest.into_iter().chain(iter).try_for_each(|item| seq.serialize_element(&item))?;
        seq.end()
    }

    fn plain_seq<I>(&mut self, len: Option<usize>, iter: I) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        let mut seq = Compound::begin(self, head::ARRAY, len)?;
        for item in iter {
            ser::SerializeTuple::serialize_element(&mut seq, &item)?;
        }
        ser::SerializeTuple::end(seq)
    }
}

/// The length of an iterator that knows it.
fn exact_len<I: Iterator>(iter: &I) -> Option<usize> {
    match iter.size_hint() {
        (low, Some(high)) if low == high => Some(low),
        _ => None,
    }
}

macro_rules! signed {
    ($($method:ident $type:ty;)*) => {$(
        #[inline]
        fn $method(self, v: $type) -> Result<()> {
            self.sink.signed(v.into())
        }
    )*};
}

macro_rules! unsigned {
    ($($method:ident $type:ty;)*) => {$(
        #[inline]
        fn $method(self, v: $type) -> Result<()> {
            self.sink.head(head::UNSIGNED, v.into())
        }
    )*};
}

impl<'a, O: Overflow> ser::Serializer for &'a mut Encoder<O> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Sequence<'a, O>;
    type SerializeTuple = Compound<'a, O>;
    type SerializeTupleStruct = Compound<'a, O>;
    type SerializeTupleVariant = Compound<'a, O>;
    type SerializeMap = Compound<'a, O>;
    type SerializeStruct = Compound<'a, O>;
    type SerializeStructVariant = Compound<'a, O>;

    #[inline]
    fn serialize_bool(self, v: bool) -> Result<()> {
        self.sink.put([if v { head::TRUE } else { head::FALSE }])
    }

    signed! {
        serialize_i8 i8;
        serialize_i16 i16;
        serialize_i32 i32;
        serialize_i64 i64;
    }

    unsigned! {
        serialize_u8 u8;
        serialize_u16 u16;
        serialize_u32 u32;
        serialize_u64 u64;
    }

    fn serialize_i128(self, v: i128) -> Result<()> {
        let negative = v < 0;
        self.wide(negative, if negative { !v } else { v }.cast_unsigned())
    }

    fn serialize_u128(self, v: u128) -> Result<()> {
        self.wide(false, v)
    }

    #[inline]
    fn serialize_f32(self, v: f32) -> Result<()> {
        self.sink.single(v)
    }

    #[inline]
    fn serialize_f64(self, v: f64) -> Result<()> {
        self.sink.double(v)
    }

    fn serialize_char(self, v: char) -> Result<()> {
        self.sink.text(v.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, v: &str) -> Result<()> {
        self.sink.text(v)
    }

    #[inline]
    fn serialize_bytes(self, v: &[u8]) -> Result<()> {
        self.sink.bytes(v)
    }

    #[inline]
    fn serialize_none(self) -> Result<()> {
        self.null()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        let at = self.sink.position();
        if self.some_at == at {
            self.some_count += 1;
            // Each takes stack, though nothing is written yet.
            if self.some_count > self.options.max_depth {
                return Err(self.too_deep());
            }
        } else {
            self.some_at = at;
            self.some_count = 1;
        }
        value.serialize(self)
    }

    #[inline]
    fn serialize_unit(self) -> Result<()> {
        self.null()
    }

    #[inline]
    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.null()
    }

    #[inline]
    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.sink.text(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        match name {
            name if !name::is_ours(name) => value.serialize(self),
            name::TAGGED => self.tagged(value),
            name => self.ours(name, value),
        }
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        self.enter(1)?;
        self.sink.head(head::MAP, 1)?;
        self.sink.text(variant)?;
        value.serialize(&mut *self).map_err(|error| error.in_field(variant))?;
        self.depth += 1;
        Ok(())
    }

    #[inline]
    fn collect_seq<I>(self, iter: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Serialize,
    {
        let iter = iter.into_iter();
        match exact_len(&iter) {
            Some(len) if self.options.typed_arrays && Kind::may_pack(len) => {
                self.packable(iter, len)
            }
            len => self.plain_seq(len, iter),
        }
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Sequence<'a, O>> {
        Sequence::begin(self, len)
    }

    #[inline]
    fn serialize_tuple(self, len: usize) -> Result<Compound<'a, O>> {
        Compound::begin(self, head::ARRAY, Some(len))
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, O>> {
        Compound::begin(self, head::ARRAY, Some(len))
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, O>> {
        Compound::begin_variant(self, variant, head::ARRAY, len)
    }

    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Compound<'a, O>> {
        Compound::begin(self, head::MAP, len)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, O>> {
        Compound::begin(self, head::MAP, Some(len))
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, O>> {
        Compound::begin_variant(self, variant, head::MAP, len)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}
