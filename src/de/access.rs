//! serde's access types for arrays, maps and enums. They add the path of the element to errors.

use std::cell::Cell;
use std::marker::PhantomData;

use serde::Deserializer as _;
use serde::de::{self, Deserialize, DeserializeSeed, Visitor};

use super::ValueDecoder;
use crate::budget::{ElementSize, MapRoom, Room};
use crate::error::{Error, Result};
use crate::io::input::Mark;
use crate::wire::head::{self, Parsed};
use crate::wire::reader::Left;

/// The elements of an array.
pub struct Seq<'a, 'de, 'b> {
    de: &'a mut ValueDecoder<'de, 'b>,
    left: &'a mut Left,
    index: usize,
    room: Room,
    /// The number of elements that the visitor was told of.
    told: Cell<usize>,
}

impl<'a, 'de, 'b> Seq<'a, 'de, 'b> {
    /// `room` is that of the elements.
    #[inline]
    pub fn new(de: &'a mut ValueDecoder<'de, 'b>, left: &'a mut Left, room: Room) -> Self {
        Self { de, left, index: 0, room, told: Cell::new(0) }
    }
}

impl Seq<'_, '_, '_> {
    /// Starts the next element, whose type has this size. Returns its offset.
    #[inline]
    fn begin(&mut self, element: &'static ElementSize) -> Result<Option<u64>> {
        if !self.de.wire.more(self.left)? {
            return Ok(None);
        }
        if !self.room.take(element) {
            self.make_room(element)?;
        }
        self.de.wire.place(element);
        Ok(Some(self.de.wire.offset()))
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, element: &'static ElementSize) -> Result<()> {
        self.de.wire.grow(self.room.grow(element, self.told.get()))
    }

    #[cold]
    #[inline(never)]
    fn in_element(&self, error: Error, at: u64) -> Error {
        error.at(at).in_index(self.index as u64)
    }
}

/// The number of items left in the input, with one that was just taken. 1 if it is unknown.
fn left_with_this(left: Left) -> usize {
    let left = usize::try_from(left.known().unwrap_or_default()).unwrap_or(usize::MAX);
    left.saturating_add(1)
}

impl<'de> de::SeqAccess<'de> for Seq<'_, 'de, '_> {
    type Error = Error;

    // Always: 3 % of decoding updates as rows.
    #[inline(always)]
    fn next_element<T: Deserialize<'de>>(&mut self) -> Result<Option<T>> {
        self.next_element_seed(PhantomData)
    }

    // Always: 3 % of decoding updates as rows.
    #[inline(always)]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(at) = self.begin(const { &ElementSize::of::<T::Value>() })? else {
            return Ok(None);
        };
        match seed.deserialize(&mut *self.de) {
            Ok(value) => {
                self.index += 1;
                Ok(Some(value))
            }
            Err(error) => Err(self.in_element(error, at)),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        let hint = self.de.wire.size_hint(*self.left);
        self.told.set(hint.unwrap_or_default());
        hint
    }
}

/// The entries of a map. They are not counted if they are the fields of a struct.
pub struct MapEntries<'a, 'de, 'b, const COUNTED: bool> {
    de: &'a mut ValueDecoder<'de, 'b>,
    left: &'a mut Left,
    key: Mark,
    room: MapRoom,
}

impl<'a, 'de, 'b, const COUNTED: bool> MapEntries<'a, 'de, 'b, COUNTED> {
    #[inline]
    pub fn new(de: &'a mut ValueDecoder<'de, 'b>, left: &'a mut Left) -> Self {
        let key = de.wire.src.no_mark();
        Self { de, left, key, room: MapRoom::NONE }
    }

    /// Starts the value of an entry, whose type has this size.
    #[inline]
    fn begin_value(&mut self, element: &'static ElementSize) -> Result<()> {
        if !self.left.take_one() {
            return Err(no_value(self.de.wire.offset()));
        }
        if COUNTED && self.room.is_used_up() {
            self.make_room(element.size)?;
        }
        self.de.wire.place(element);
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, size: usize) -> Result<()> {
        let bytes = self.room.grow(size, left_with_this(*self.left));
        self.de.wire.charge(bytes)
    }

    #[cold]
    fn locate(&self, error: Error) -> Error {
        let (at, key) = self.de.wire.src.marked(&self.key);
        error.at(at).in_field(key_text(key))
    }
}

impl<'de, const COUNTED: bool> de::MapAccess<'de> for MapEntries<'_, 'de, '_, COUNTED> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        // The entry is counted as taken when its value is read.
        if !self.de.wire.any_left(self.left)? {
            return Ok(None);
        }
        if COUNTED {
            self.room.key::<K::Value>();
        }
        let at = self.de.wire.offset();
        match seed.deserialize(&mut *self.de) {
            Ok(key) => {
                self.de.wire.src.mark(&mut self.key, at);
                Ok(Some(key))
            }
            Err(error) => Err(error.at(at)),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        self.begin_value(const { &ElementSize::of::<V::Value>() })?;
        match seed.deserialize(&mut *self.de) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.locate(error)),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.de.wire.size_hint(*self.left)
    }
}

#[cold]
fn no_value(at: u64) -> Error {
    Error::data("the visitor asked for a map value after the end of the map").at(at)
}

/// Returns a map key as a part of a path: a text or an integer as it is, and the type of any other key.
pub fn key_text(encoded: &[u8]) -> String {
    let Parsed::Head(head, len) = head::parse(encoded) else { return "?".into() };
    match head.major() {
        head::TEXT if !head.is_indefinite() => {
            let text = encoded.get(len..).unwrap_or_default();
            let whole = usize::try_from(head.arg).unwrap_or(usize::MAX);
            let shown = text.get(..whole.min(MAX_KEY)).unwrap_or(text);
            let mut shown = String::from_utf8_lossy(shown).into_owned();
            if shown.len() < whole {
                shown.push('…');
            }
            shown
        }
        head::UNSIGNED => head.arg.to_string(),
        head::NEGATIVE => (!i128::from(head.arg)).to_string(),
        _ => format!("<{}>", head::name(head.initial)),
    }
}

/// The largest number of bytes of a key that are shown.
const MAX_KEY: usize = 256;

/// An enum value with content, which is encoded as a map of one entry: the name of the variant and its
/// content.
pub struct EnumAccess<'a, 'de, 'b> {
    de: &'a mut ValueDecoder<'de, 'b>,
    name: Mark,
    is_read: bool,
}

impl<'a, 'de, 'b> EnumAccess<'a, 'de, 'b> {
    #[inline]
    pub fn new(de: &'a mut ValueDecoder<'de, 'b>) -> Self {
        let name = de.wire.src.no_mark();
        Self { de, name, is_read: false }
    }

    /// Whether the content was read. Otherwise the input is still in front of it.
    pub fn is_read(&self) -> bool {
        self.is_read
    }

    /// Reads the content, and adds the name of the variant to the path of errors.
    #[inline]
    fn content<T>(
        &mut self,
        read: impl FnOnce(&mut ValueDecoder<'de, 'b>) -> Result<T>,
    ) -> Result<T> {
        self.is_read = true;
        match read(self.de) {
            Ok(value) => Ok(value),
            Err(error) => Err(self.locate(error)),
        }
    }

    #[cold]
    #[inline(never)]
    fn locate(&self, error: Error) -> Error {
        let (at, name) = self.de.wire.src.marked(&self.name);
        error.at(at).in_field(key_text(name))
    }
}

impl<'de> de::EnumAccess<'de> for &mut EnumAccess<'_, 'de, '_> {
    type Error = Error;
    type Variant = Self;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let at = self.de.wire.offset();
        match seed.deserialize(&mut *self.de) {
            Ok(variant) => {
                self.de.wire.src.mark(&mut self.name, at);
                Ok((variant, self))
            }
            Err(error) => Err(error.at(at)),
        }
    }
}

impl<'de> de::VariantAccess<'de> for &mut EnumAccess<'_, 'de, '_> {
    type Error = Error;

    #[inline]
    fn unit_variant(self) -> Result<()> {
        self.content(|de| de.unit(&"unit variant"))
    }

    #[inline]
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        self.de.wire.place(const { &ElementSize::of::<T::Value>() });
        self.content(|de| seed.deserialize(de))
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        self.content(|de| de.deserialize_tuple(len, visitor))
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.content(|de| de.deserialize_struct("", fields, visitor))
    }
}
