//! The methods of serde's `Deserializer`: one for each type that a value can ask for.

use serde::de::{self, Unexpected, Visitor};

use super::columns::ShownText;
use super::items::visit_unit_variant;
use super::receive::received;
use super::visit::visit_bytes;
use super::{ValueDecoder, bulk, runs};
use crate::budget::Room;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::handoff::name;
use crate::serde_model::{Collect, invalid, visit_collected, wrong_number};
use crate::tensor::takes_elements;
use crate::value;
use crate::wire::head;
use crate::wire::number::Numeric;
use crate::wire::reader::{ItemStart, Left, Reader};
use crate::wire::tag;
use crate::wire::tensor::Kind;

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty, $exact:ident;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let at = self.wire.offset();
            let number = match self.wire.unsigned()? {
                Some(arg) => match <$type>::try_from(arg) {
                    Ok(value) => return visitor.$visit(value),
                    Err(_) => Numeric::Int { negative: false, arg: arg.into() },
                },
                None => self.number(&visitor)?,
            };
            match number.$exact().and_then(|value| value.try_into().ok()) {
                Some(value) => visitor.$visit(value),
                None => Err(wrong_number(number, &visitor).at(at)),
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for &mut ValueDecoder<'de, '_> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.any(visitor)
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(&initial @ (head::FALSE | head::TRUE)) = self.wire.src.window().first() {
            self.wire.src.advance(1);
            return visitor.visit_bool(initial == head::TRUE);
        }
        let value = self.boolean(&visitor)?;
        visitor.visit_bool(value)
    }

    integers! {
        deserialize_u8 visit_u8 u8, as_int;
        deserialize_u16 visit_u16 u16, as_int;
        deserialize_u32 visit_u32 u32, as_int;
        deserialize_i8 visit_i8 i8, as_int;
        deserialize_i16 visit_i16 i16, as_int;
        deserialize_i32 visit_i32 i32, as_int;
        deserialize_i64 visit_i64 i64, as_int;
        deserialize_u64 visit_u64 u64, as_int;
        deserialize_i128 visit_i128 i128, as_int;
        deserialize_u128 visit_u128 u128, as_unsigned;
    }

    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(bytes) = self.wire.src.after(head::SINGLE) {
            return visitor.visit_f32(f32::from_be_bytes(bytes));
        }
        let value = self.single(&visitor)?;
        visitor.visit_f32(value)
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(bytes) = self.wire.src.after(head::DOUBLE) {
            return visitor.visit_f64(f64::from_be_bytes(bytes));
        }
        let value = self.double(&visitor)?;
        visitor.visit_f64(value)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    // Always: 2 % of decoding small tensors with names.
    #[inline(always)]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.wire.short_text() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => self.other_str(visitor),
        }
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        match self.wire.item()? {
            ItemStart::Head(head) if head.major() == head::BYTES => self.bytes(head, visitor),
            ItemStart::Head(head) if head.major() == head::ARRAY && takes_elements::<V>() => {
                self.seq(Left::of(head), Room::NONE, visitor)
            }
            ItemStart::Head(head) if head.major() == head::ARRAY => {
                visit_collected(self.seq(Left::of(head), Room::NONE, Collect)?, visitor)
            }
            ItemStart::Tag(tag::BUFFER) => {
                let item = self.wire.tensor(tag::BUFFER)?;
                match item.kind {
                    Kind::Tensor => {
                        let found = format!("a tensor of {}", item.meta.dtype);
                        Err(invalid(Unexpected::Other(&found), &visitor).at(at))
                    }
                    _ if item.meta.dtype == DType::U8 => self.buffer_bytes(item, visitor),
                    _ => visit_collected(
                        received(Collect, |to| self.give_numbers(item, at, None, to))?,
                        visitor,
                    ),
                }
            }
            ItemStart::Tag(tag::COLUMNS) => visit_collected(self.columns(Collect)?, visitor),
            ItemStart::Within(levels) => self.below(levels, |de| de.deserialize_bytes(visitor)),
            // A typed array of u8 has the same bytes as a byte string (RFC 8746, section 2.1).
            ItemStart::Tag(64 | 68) => {
                let head = self.wire.head()?;
                if head.major() == head::BYTES {
                    self.bytes(head, visitor)
                } else {
                    Err(ValueDecoder::wrong(at, head, &visitor))
                }
            }
            ItemStart::Tag(tag) if DType::from_typed_array_tag(tag).is_some() => {
                visit_collected(self.typed_seq(tag, Collect)?, visitor)
            }
            item => Err(ValueDecoder::wrong_item(at, item, &visitor)),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    // Always: 1 % of decoding orders as columns.
    #[inline(always)]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let initial = self.wire.initial()?;
        match initial {
            head::NULL | head::UNDEFINED => {
                self.wire.src.advance(1);
                return visitor.visit_none();
            }
            _ if initial >> 5 == head::TAG && self.some_tag()? => {
                self.wire.enter()?;
                let value = visitor.visit_some(&mut *self);
                self.wire.leave();
                return value;
            }
            _ => {}
        }
        self.enter_some()?;
        visitor.visit_some(self)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.unit(&visitor)?;
        visitor.visit_unit()
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_unit(visitor)
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        if !name::is_ours(name) {
            return visitor.visit_newtype_struct(self);
        }
        match name {
            name::JSON => self.deserialize_map(visitor),
            name::TENSOR => self.tensor(visitor),
            name::VALUE => {
                let value = self.wire.within(0, value::read)?;
                value::offer(value, || visitor.visit_unit())
            }
            name::RAW => visit_bytes(self.raw()?, visitor),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.sequence(Room::NONE, visitor)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.wire.charge_box::<V::Value>()?;
        self.sequence(Room::INSIDE, visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.wire.charge_box::<V::Value>()?;
        self.sequence(Room::INSIDE, visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.wire.few(head::MAP) {
            Some(left) => self.entries::<true, V>(left, visitor),
            None => self.unusual_map(visitor),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.wire.charge_box::<V::Value>()?;
        match self.wire.few(head::MAP) {
            Some(left) => self.entries::<false, V>(left, visitor),
            None => self.unusual_struct(visitor),
        }
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.wire.charge_box::<V::Value>()?;
        if self.wire.peek()? == Some(head::MAP << 5 | 1) {
            let at = self.wire.offset();
            self.wire.src.advance(1);
            return self.variant(at, visitor);
        }
        match self.wire.short_text() {
            Some(name) => visit_unit_variant(ShownText::Borrowed(name), visitor),
            None => self.unusual_enum(visitor),
        }
    }

    // Always: 17 % of decoding a mesh as rows.
    #[inline(always)]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.wire.short_text() {
            Some(text) => visitor.visit_borrowed_str(text),
            None => self.identifier(visitor),
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.wire.within(0, Reader::skip)?;
        visitor.visit_unit()
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}

impl<'de> ValueDecoder<'de, '_> {
    /// Reads a sequence or a tuple. `room` is that of its elements.
    #[inline]
    pub(super) fn sequence<V: Visitor<'de>>(&mut self, room: Room, visitor: V) -> Result<V::Value> {
        if bulk::fills::<V>().is_none()
            && let Some(left) = self.wire.few(head::ARRAY)
        {
            return self.seq(left, room, visitor);
        }
        self.unusual_sequence(room, visitor)
    }

    #[inline(never)]
    fn unusual_sequence<V: Visitor<'de>>(&mut self, room: Room, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        match self.wire.item()? {
            ItemStart::Head(head) if head.major() == head::ARRAY => {
                match runs::plain_numbers::<V>(&mut self.wire, head) {
                    Some(numbers) => Ok(numbers),
                    None => self.seq(Left::of(head), room, visitor),
                }
            }
            ItemStart::Head(head) if head.major() == head::BYTES => {
                received(visitor, |to| self.give_byte_numbers(head, at, to))
            }
            item => self.other_seq(at, item, visitor),
        }
    }

    #[inline(never)]
    fn unusual_struct<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        match self.wire.item()? {
            ItemStart::Head(head) if head.major() == head::MAP => {
                self.entries::<false, V>(Left::of(head), visitor)
            }
            // Some other encoders write structs as arrays.
            ItemStart::Head(head) if head.major() == head::ARRAY => {
                self.seq(Left::of(head), Room::INSIDE, visitor)
            }
            item => self.other_struct(at, item, visitor),
        }
    }

    #[inline(never)]
    fn unusual_map<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let at = self.wire.offset();
        match self.wire.item()? {
            ItemStart::Head(head) if head.major() == head::MAP => {
                self.entries::<true, V>(Left::of(head), visitor)
            }
            item => self.other_map(at, item, visitor),
        }
    }
}
