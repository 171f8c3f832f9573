//! serde's `Serializer` for [`Writer`].

use std::any::TypeId;

use serde::Serialize;
use serde::ser::{self, SerializeSeq as _, Serializer as _};

use super::columns::{self, Columns};
use super::compound::{Compound, Sequence};
use super::look::{self, is_leaf, is_never_none, is_record, leaf};
use super::pack::Packing;
use super::stored::Pieces;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::io::compressed::Precompressed;
use crate::io::input::Input;
use crate::io::sink::Memory;
use crate::io::source::reserve;
use crate::meta::TensorMeta;
use crate::options::Limits;
use crate::serde_model::{Capture, PutWhole, blocks, stored_blocks};
use crate::type_name::TypeName;
use crate::value::{self, Value};
use crate::wire::buffer_sink::{BufferSink, Wanted};
use crate::wire::encoded;
use crate::wire::items::{self, ArrayHead, Plain};
use crate::wire::reader::{Reader, only_in_messages};
use crate::wire::type_item::null_of_type;
use crate::wire::writer::{ToWrite, Writer, WriterTo};
use crate::wire::{head, strict, tag};

impl Writer<'_> {
    #[inline]
    fn null(&mut self) -> Result<()> {
        self.mark_some()?;
        self.put([head::NULL])
    }

    /// Writes one of this crate's own types: see [`handoff`].
    pub(super) fn ours<T: Serialize + ?Sized>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        let (slot, stored) = match handoff::take() {
            Slot::Compressed(outgoing) => {
                let (meta, len, stored) = *outgoing;
                (Slot::Outgoing(meta, len), Some(stored))
            }
            slot => (slot, None),
        };
        let stored = stored.as_ref();
        match (name, slot) {
            (name::TENSOR, Slot::Outgoing(meta, len)) => self.tensor(&meta, len, stored, value),
            // Something between the tensor and this serializer has buffered the value, so its content
            // is the struct that other formats see.
            (name::TENSOR, _) => value::tensor_of(value)?.serialize(self),
            (name::NUMBERS, Slot::Outgoing(meta, len)) => {
                let takes = |apart: &mut dyn BufferSink, written: &[u8]| {
                    meta.dtype.is_packed() && apart.takes_block(written, &meta.dtype, len)
                };
                if let Some(apart) = self.apart_if(takes) {
                    let number = buffer(apart, len, stored, value)?;
                    self.room(2)?;
                    return self.numbers_reference(&meta.dtype, number);
                }
                self.room(1 + usize::from(meta.dtype.is_complex()))?;
                self.typed_array_head(&meta.dtype, len)?;
                self.blocks(len, value)
            }
            (name::TYPED, Slot::Type(of)) => self.typed(&of, &value),
            (name::SIMPLE, Slot::Number(number)) => {
                match number {
                    22 | 23 => self.mark_some()?,
                    24..32 => {
                        let what =
                            format!("simple value {number} does not exist: 24 to 31 are reserved");
                        return Err(Error::data(what));
                    }
                    _ => {}
                }
                self.head(head::SIMPLE, number)
            }
            (name::RAW, Slot::Raw) => value.serialize(Capture(&mut |item: &[u8]| {
                if encoded::reads_as_none(item) {
                    self.mark_some()?;
                }
                if self.context.options.metadata {
                    return self.raw_in_metadata(item);
                }
                if encoded::is_deeper(item, self.context.depth) {
                    return Err(self.too_deep());
                }
                self.put_slice(item)
            })),
            (name::STORED, Slot::Stored { levels, statistics }) => {
                self.room(levels)?;
                self.copy_statistics(statistics);
                handoff::offer(Slot::Pieces, || value.serialize(Pieces(self)))
            }
            (name::BYTES | name::TEXT, Slot::Outgoing(meta, len)) => {
                let takes = |apart: &mut dyn BufferSink, written: &[u8]| {
                    apart.takes_block(written, &meta.dtype, len)
                };
                if let Some(apart) = self.apart_if(takes) {
                    let number = buffer(apart, len, stored, value)?;
                    self.room(2)?;
                    return self.bytes_reference(number);
                }
                if name == name::TEXT {
                    return self.text(&text(len, value)?);
                }
                self.head(head::BYTES, len as u64)?;
                self.blocks(len, value)
            }
            _ => value.serialize(self),
        }
    }

    /// If the encoded item that follows is the whole value, takes over the statistics of its columns.
    #[cold]
    fn copy_statistics(&mut self, encoded: Option<Box<[u8]>>) {
        if let Some(encoded) = encoded
            && self.position() == 0
            && let Some(statistics) = self.apart().and_then(BufferSink::statistics)
        {
            statistics.copy(encoded);
        }
    }

    #[cold]
    fn raw_in_metadata(&mut self, item: &[u8]) -> Result<()> {
        // In a message, readers reject the reference. In an archive, it would refer to a buffer of another value.
        if encoded::holds_reference(item) {
            return Err(reserved());
        }
        if strict::is_strict(item, self.context.depth) {
            return self.put_slice(item);
        }
        if encoded::is_deeper(item, self.context.depth) {
            return Err(self.too_deep());
        }
        self.put_slice(&strict::strict(item)?)
    }

    /// Writes a value in which sequences of records are columns.
    fn with_columns<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let before = self.context.options;
        self.context.options = before.with_columns_at(self.context.depth);
        let result = value.serialize(&mut *self);
        self.context.options = before;
        result
    }

    /// Writes a tag and its content. Not a part of [`Writer::ours`], so that nested tags use less
    /// stack.
    fn tagged<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let Slot::Number(number) = handoff::take() else { return value.serialize(self) };
        match number {
            tag::SOME => self.mark_some()?,
            tag::BUFFER => return Err(reserved()),
            _ if self.context.options.metadata => match number {
                tag::COLUMNS => return self.meant(number, value),
                _ if tag::is_array(number) => return self.meant(number, value),
                _ if tag::is_only_in_messages(number) => return Err(only_in_messages(number)),
                _ => {}
            },
            _ => {}
        }
        self.enter(1)?;
        self.head(head::TAG, number)?;
        value.serialize(&mut *self)?;
        self.context.depth += 1;
        Ok(())
    }

    /// Writes a value of a type with a name.
    #[inline(never)]
    fn typed(&mut self, of: &TypeName, value: &dyn ToWrite) -> Result<()> {
        // The tag and the array.
        self.enter(2)?;
        self.head(head::TAG, tag::TYPE)?;
        self.head(head::ARRAY, 3)?;
        self.type_name(of)?;
        let before = self.position();
        value.write(self)?;
        // Only an item of one byte can be null. Whether it is, only its writer knows.
        if self.position() == before + 1 {
            let mut item =
                WriterTo::to(Vec::new(), Memory::growing(), self.context.options.of_part());
            value.write(item.writer())?;
            if matches!(*item.take_buffer(), [head::NULL | head::UNDEFINED]) {
                return Err(null_of_type());
            }
        }
        self.leave(2)
    }

    /// Writes what a tag of tensors, packed sequences or columns means around this content. In metadata, there is one
    /// way to write it.
    #[cold]
    #[inline(never)]
    fn meant<T: Serialize + ?Sized>(&mut self, tag: u64, content: &T) -> Result<()> {
        let item = super::to_vec(&Value::Tag(tag, Box::new(value::to_value(content)?)))?;
        let meant = value::read(&mut Reader::new(Input::slice(&item), Limits::default()))?;
        meant.serialize(self)
    }

    fn tensor<T: Serialize + ?Sized>(
        &mut self,
        meta: &TensorMeta,
        len: usize,
        stored: Option<&Precompressed>,
        payload: &T,
    ) -> Result<()> {
        let takes =
            |apart: &mut dyn BufferSink, written: &[u8]| apart.takes_tensor(written, meta, len);
        if let Some(apart) = self.apart_if(takes) {
            let number = buffer(apart, len, stored, payload)?;
            // Three levels: tag, array and shape.
            self.room(3)?;
            return self.tensor_reference(meta, number);
        }
        // Three levels: the tag, the array, and the shape or the tag of the typed array. Complex
        // numbers have one more tag.
        self.room(3 + usize::from(meta.dtype.is_complex()))?;
        self.tensor_head(&meta.dtype, &meta.shape, meta.order, len)?;
        self.blocks(len, payload)
    }

    /// Writes a payload of exactly `len` bytes.
    fn blocks<T: Serialize + ?Sized>(&mut self, len: usize, payload: &T) -> Result<()> {
        blocks(len, payload, &mut |block| self.put_block(block))
    }

    /// Writes a sequence, as a typed array if all elements are numbers of one type.
    fn packable<I>(&mut self, mut iter: I, len: usize) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        let Some(first) = iter.next() else {
            return self.serialize_seq(Some(len))?.end();
        };
        let number = match look::number(&first) {
            Some(number) if number.kind().worth_packing(len) => number,
            _ => return self.plain_seq(Some(len), std::iter::once(first).chain(iter)),
        };
        let mut packing = Packing::begin(self, number.kind(), len)?;
        packing.push(self, number)?;
        let rest = packing.fill(self, &mut iter)?.or_else(|| iter.next());
        if rest.is_none() && packing.is_full() {
            return packing.finish(self);
        }
        let mut seq = packing.unpack(self)?;
        rest.into_iter().chain(iter).try_for_each(|item| seq.element(&item))?;
        seq.finish()
    }

    /// Writes a sequence, as columns if its elements are records.
    fn records<I>(&mut self, mut iter: I, len: Option<usize>) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        let first = iter.next();
        if let Some(first) = &first
            && is_record(first)
            && let Some(mut columns) =
                Columns::new(self.context.options, len).first(self, &first)?
        {
            columns.push_all(self, iter)?;
            return columns.finish(self);
        }
        let items = first.into_iter().chain(iter);
        match len {
            Some(len) if self.context.options.typed_arrays => self.packable(items, len),
            len => self.plain_seq(len, items),
        }
    }

    /// Writes a sequence of numbers or bools as a plain array.
    #[inline]
    fn plain_primitives<I>(&mut self, len: usize, mut iter: I) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        let mut seq = Compound::begin(self, head::ARRAY, Some(len))?;
        let id = typeid::of::<I::Item>();
        // The compiler knows the type, and drops all but one of these branches.
        if id == TypeId::of::<f32>() || id == TypeId::of::<&'static f32>() {
            seq.run(|sink, max| {
                sink.put_run(head::SINGLE, max, || match leaf(&iter.next()?)?.plain() {
                    Plain::Single(bits) => Some(bits.to_be_bytes()),
                    _ => None,
                })
            })?;
        } else if id == TypeId::of::<f64>() || id == TypeId::of::<&'static f64>() {
            seq.run(|sink, max| {
                sink.put_run(head::DOUBLE, max, || match leaf(&iter.next()?)?.plain() {
                    Plain::Double(bits) => Some(bits.to_be_bytes()),
                    _ => None,
                })
            })?;
        } else {
            seq.run(|sink, max| {
                sink.put_shorts(max, || Some(leaf(&iter.next()?)?.plain().short()))
            })?;
        }
        // If the sink only counts, or if there are more elements than were announced, the rest is written here.
        for item in iter {
            seq.element(&item)?;
        }
        seq.finish()
    }

    fn plain_seq<I>(&mut self, len: Option<usize>, iter: I) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        let mut seq = Compound::begin(self, head::ARRAY, len)?;
        for item in iter {
            seq.element(&item)?;
        }
        seq.finish()
    }
}

/// Writes a payload to a separate buffer. `stored` says how it is compressed, if it is already. Returns the number of
/// the buffer.
#[inline(never)]
fn buffer<T: Serialize + ?Sized>(
    apart: &mut dyn BufferSink,
    len: usize,
    stored: Option<&Precompressed>,
    payload: &T,
) -> Result<u64> {
    let wanted = match stored {
        Some(stored) => apart.begin_compressed(len, stored)?,
        None if apart.begin(len)? => Wanted::Content,
        None => Wanted::Nothing,
    };
    match (wanted, stored) {
        (Wanted::Nothing, _) => {}
        (Wanted::Stored, Some(stored)) => {
            let len = usize::try_from(stored.how.stored_len()).unwrap_or(usize::MAX);
            stored_blocks(len, payload, &mut |block| apart.put(block))?;
        }
        (Wanted::Content | Wanted::Stored, _) => {
            blocks(len, payload, &mut |block| apart.put(block))?;
        }
    }
    apart.end()
}

/// Gathers a text from its blocks. A block may end inside a character, so only the whole text can be checked.
fn text<T: Serialize + ?Sized>(len: usize, payload: &T) -> Result<String> {
    let mut bytes = Vec::new();
    blocks(len, payload, &mut |block| {
        reserve(&mut bytes, block.len())?;
        bytes.extend_from_slice(block);
        Ok(())
    })?;
    String::from_utf8(bytes).map_err(|_| Error::data("a text is not UTF-8"))
}

#[cold]
fn reserved() -> Error {
    Error::data("tag TBUF (1413633350) is reserved for references to buffers")
}

/// The length of an iterator, if its size hint is exact.
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
            self.signed(v.into())
        }
    )*};
}

macro_rules! unsigned {
    ($($method:ident $type:ty;)*) => {$(
        #[inline]
        fn $method(self, v: $type) -> Result<()> {
            self.head(head::UNSIGNED, v.into())
        }
    )*};
}

impl<'a, 'o> ser::Serializer for &'a mut Writer<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Sequence<'a, 'o>;
    type SerializeTuple = Compound<'a, 'o>;
    type SerializeTupleStruct = Compound<'a, 'o>;
    type SerializeTupleVariant = Compound<'a, 'o>;
    type SerializeMap = Compound<'a, 'o>;
    type SerializeStruct = Compound<'a, 'o>;
    type SerializeStructVariant = Compound<'a, 'o>;

    #[inline]
    fn serialize_bool(self, v: bool) -> Result<()> {
        self.put([items::bool(v)])
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
        let (negative, arg) = items::wide_signed(v);
        self.wide(negative, arg)
    }

    fn serialize_u128(self, v: u128) -> Result<()> {
        self.wide(false, v)
    }

    #[inline]
    fn serialize_f32(self, v: f32) -> Result<()> {
        self.single(v)
    }

    #[inline]
    fn serialize_f64(self, v: f64) -> Result<()> {
        self.double(v)
    }

    fn serialize_char(self, v: char) -> Result<()> {
        self.text(v.encode_utf8(&mut [0; 4]))
    }

    #[inline]
    fn serialize_str(self, v: &str) -> Result<()> {
        self.text(v)
    }

    #[inline]
    fn serialize_bytes(self, v: &[u8]) -> Result<()> {
        let takes = |apart: &mut dyn BufferSink, written: &[u8]| {
            apart.takes_block(written, &DType::U8, v.len())
        };
        if let Some(apart) = self.apart_if(takes) {
            if apart.begin(v.len())? {
                apart.put(v)?;
            }
            let number = apart.end()?;
            self.room(2)?;
            return self.bytes_reference(number);
        }
        self.bytes(v)
    }

    #[inline]
    fn serialize_none(self) -> Result<()> {
        self.null()
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        if is_never_none::<T>() {
            return value.serialize(self);
        }
        self.some()?;
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
        self.text(variant)
    }

    #[inline]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        match name {
            name if !name::is_ours(name) => value.serialize(self),
            name::WHOLE_TENSOR if self.apart().is_some() => value.serialize(self),
            name::WHOLE_TENSOR => {
                self.room(ArrayHead::LEVELS)?;
                value.serialize(PutWhole(self))
            }
            name::TAGGED => self.tagged(value),
            name::COLUMNS => self.with_columns(value),
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
        self.head(head::MAP, 1)?;
        self.text(variant)?;
        value.serialize(&mut *self).map_err(|error| error.in_field(variant))?;
        self.context.depth += 1;
        Ok(())
    }

    #[inline]
    fn collect_seq<I>(self, iter: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Serialize,
    {
        let iter = iter.into_iter();
        let len = exact_len(&iter);
        // The compiler evaluates this for each type.
        let may_be_record = !is_never_none::<I::Item>();
        if may_be_record && columns::are_possible(self, len) {
            return self.records(iter, len);
        }
        match len {
            Some(len) if self.context.options.typed_arrays => self.packable(iter, len),
            Some(len) if is_leaf::<I::Item>() => self.plain_primitives(len, iter),
            len => self.plain_seq(len, iter),
        }
    }

    #[inline]
    fn serialize_seq(self, len: Option<usize>) -> Result<Sequence<'a, 'o>> {
        Sequence::begin(self, len)
    }

    #[inline]
    fn serialize_tuple(self, len: usize) -> Result<Compound<'a, 'o>> {
        Compound::begin(self, head::ARRAY, Some(len))
    }

    #[inline]
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, 'o>> {
        Compound::begin(self, head::ARRAY, Some(len))
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'o>> {
        Compound::begin_variant(self, variant, head::ARRAY, len)
    }

    #[inline]
    fn serialize_map(self, len: Option<usize>) -> Result<Compound<'a, 'o>> {
        Compound::begin(self, head::MAP, len)
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, len: usize) -> Result<Compound<'a, 'o>> {
        Compound::begin(self, head::MAP, Some(len))
    }

    #[inline]
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<Compound<'a, 'o>> {
        Compound::begin_variant(self, variant, head::MAP, len)
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}
