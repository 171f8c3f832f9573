//! serde's access types for rows that are arrays, maps and enums. They add the path of the element to errors.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::{self, DeserializeSeed, Visitor};

use super::row::Row;
use crate::budget::{self, Budget, MapRoom, Room};
use crate::de::access::key_text;
use crate::error::{Error, Result};
use crate::wire::columns::{Column, Cuts, Enum, Field, Kind, Lengths, Maps, TextData};

/// The elements of a row of lists.
pub struct ListItems<'c, 'de> {
    column: &'c mut Column<'de>,
    rows: Range<usize>,
    start: usize,
    allowance: &'c Budget,
    room: Room,
}

impl<'c, 'de> ListItems<'c, 'de> {
    pub fn new(
        column: &'c mut Column<'de>,
        rows: Range<usize>,
        allowance: &'c Budget,
        room: Room,
    ) -> Self {
        let start = rows.start;
        Self { column, rows, start, allowance, room }
    }

    pub fn left(&self) -> usize {
        self.rows.len()
    }
}

impl<'de> de::SeqAccess<'de> for &mut ListItems<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(row) = self.rows.next() else { return Ok(None) };
        if !self.room.holds::<T::Value>(row - self.start) {
            let (kind, left) = (const { budget::Kind::of::<T::Value>() }, self.rows.len() + 1);
            let room = self.allowance.element(&mut self.room, kind, left);
            room.map_err(|error| error.at(self.column.at))?;
        }
        self.allowance.place::<T::Value>();
        match seed.deserialize(Row::new(self.column, row, self.allowance)) {
            Ok(value) => Ok(Some(value)),
            Err(error) => {
                let index = (row - self.start) as u64;
                Err(error.at(self.column.at).in_index(index))
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.rows.len())
    }
}

/// The elements of a row of tuples.
pub struct TupleItems<'c, 'de> {
    columns: std::slice::IterMut<'c, Column<'de>>,
    row: usize,
    index: usize,
    allowance: &'c Budget,
    room: Room,
}

impl<'c, 'de> TupleItems<'c, 'de> {
    pub fn new(
        columns: &'c mut [Column<'de>],
        row: usize,
        allowance: &'c Budget,
        room: Room,
    ) -> Self {
        Self { columns: columns.iter_mut(), row, index: 0, allowance, room }
    }

    pub fn left(&self) -> usize {
        self.columns.len()
    }
}

impl<'de> de::SeqAccess<'de> for &mut TupleItems<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(column) = self.columns.next() else { return Ok(None) };
        let at = column.at;
        if !self.room.holds::<T::Value>(self.index) {
            let (kind, left) = (const { budget::Kind::of::<T::Value>() }, self.columns.len() + 1);
            let room = self.allowance.element(&mut self.room, kind, left);
            room.map_err(|error| error.at(at))?;
        }
        self.index += 1;
        self.allowance.place::<T::Value>();
        match seed.deserialize(Row::new(column, self.row, self.allowance)) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(error.at(at).in_index(self.index as u64 - 1)),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.columns.len())
    }
}

/// The fields of a row of structs, without their names: see
/// [`Structs::match_visitor`](crate::wire::columns::Structs::match_visitor).
pub struct InOrder<'c, 'de> {
    fields: std::slice::IterMut<'c, Field<'de>>,
    row: usize,
    allowance: &'c Budget,
}

impl<'c, 'de> InOrder<'c, 'de> {
    #[inline(always)]
    pub fn new(fields: &'c mut [Field<'de>], row: usize, allowance: &'c Budget) -> Self {
        Self { fields: fields.iter_mut(), row, allowance }
    }

    #[inline(always)]
    pub fn left(&self) -> usize {
        self.fields.len()
    }
}

impl<'de> de::SeqAccess<'de> for &mut InOrder<'_, 'de> {
    type Error = Error;

    #[inline(always)]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(field) = self.fields.next() else { return Ok(None) };
        self.allowance.place::<T::Value>();
        match seed.deserialize(Row::new(&mut field.column, self.row, self.allowance)) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(in_field(error, field)),
        }
    }

    #[inline(always)]
    fn size_hint(&self) -> Option<usize> {
        Some(self.fields.len())
    }
}

/// Adds the field to an error. This is a call of its own, so that little code is inlined for each field.
#[cold]
#[inline(never)]
fn in_field(error: Error, field: &Field<'_>) -> Error {
    error.at(field.column.at).in_field(&*field.name)
}

/// The fields of a row of structs.
pub struct Fields<'c, 'de> {
    fields: std::slice::IterMut<'c, Field<'de>>,
    /// The field whose name was read last.
    current: Option<&'c mut Field<'de>>,
    row: usize,
    allowance: &'c Budget,
    room: MapRoom,
}

impl<'c, 'de> Fields<'c, 'de> {
    pub fn new(
        fields: &'c mut [Field<'de>],
        row: usize,
        allowance: &'c Budget,
        room: MapRoom,
    ) -> Self {
        Self { fields: fields.iter_mut(), current: None, row, allowance, room }
    }

    pub fn left(&self) -> usize {
        let fields = self.fields.as_slice().iter();
        let present = fields.filter(|field| field.is_present(self.row)).count();
        present + usize::from(self.current.is_some())
    }
}

impl<'de> de::MapAccess<'de> for &mut Fields<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        for field in self.fields.by_ref() {
            if field.is_present(self.row) {
                let at = field.column.at;
                self.room.key::<K::Value>();
                let field = self.current.insert(field);
                let key = seed.deserialize(Name { name: &field.name, allowance: self.allowance });
                return key.map(Some).map_err(|error| error.at(at));
            }
        }
        Ok(None)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let Some(field) = self.current.take() else { return Err(no_key()) };
        if self.room.is_used_up() {
            let bytes = self.room.grow(size_of::<V::Value>(), self.fields.len() + 1);
            self.allowance.charge(bytes).map_err(|error| error.at(field.column.at))?;
        }
        let row = field.inner(self.row);
        self.allowance.place::<V::Value>();
        match seed.deserialize(Row::new(&mut field.column, row, self.allowance)) {
            Ok(value) => Ok(value),
            Err(error) => Err(in_field(error, field)),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.fields.len())
    }
}

#[cold]
fn no_key() -> Error {
    Error::data("the visitor asked for a map value without its key")
}

/// The entries of a row of maps.
pub struct Entries<'c, 'de> {
    maps: &'c mut Maps<'de>,
    rows: Range<usize>,
    room: MapRoom,
    current: Option<usize>,
    allowance: &'c Budget,
}

impl<'c, 'de> Entries<'c, 'de> {
    pub fn new(maps: &'c mut Maps<'de>, row: usize, allowance: &'c Budget, room: MapRoom) -> Self {
        let rows = maps.cuts.range(row);
        Self { maps, rows, room, current: None, allowance }
    }

    pub fn left(&self) -> usize {
        self.rows.len() + usize::from(self.current.is_some())
    }
}

impl<'de> de::MapAccess<'de> for &mut Entries<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        let Some(row) = self.rows.next() else { return Ok(None) };
        self.current = Some(row);
        self.room.key::<K::Value>();
        let keys = &mut self.maps.keys;
        let at = keys.at;
        let key = seed.deserialize(Row::new(keys, row, self.allowance));
        key.map(Some).map_err(|error| error.at(at))
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let Some(row) = self.current.take() else { return Err(no_key()) };
        if self.room.is_used_up() {
            let bytes = self.room.grow(size_of::<V::Value>(), self.rows.len() + 1);
            self.allowance.charge(bytes).map_err(|error| error.at(self.maps.values.at))?;
        }
        self.allowance.place::<V::Value>();
        match seed.deserialize(Row::new(&mut self.maps.values, row, self.allowance)) {
            Ok(value) => Ok(value),
            Err(error) => {
                let step = step(&mut self.maps.keys, row);
                Err(error.at(self.maps.values.at).in_field(step))
            }
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.rows.len())
    }
}

/// Returns a row that is a map key as a part of a path: a text or an integer as it is, and the type of any other key.
#[cold]
fn step(column: &mut Column<'_>, row: usize) -> String {
    let (column, row) = column.innermost(row);
    let digits = match &mut column.kind {
        Kind::Numbers(numbers) => numbers.number(row).integer_digits(),
        Kind::Texts(cuts, texts) => {
            let range = cuts.range(row);
            texts.as_str().get(range).map(str::to_owned)
        }
        Kind::Enums(enums) if enums.is_unit(row) => {
            enums.names.get(enums.code(row)).map(|name| name.clone().into_owned())
        }
        Kind::Items(items) => Some(key_text(items.at(row).0.as_slice())),
        _ => None,
    };
    digits.unwrap_or_else(|| format!("<{}>", column.kind.name()))
}

/// The content of a variant.
pub struct Content<'c, 'de> {
    pub column: &'c mut Column<'de>,
    pub row: usize,
    pub allowance: &'c Budget,
}

/// The name of the variant in a row of enums, and its content unless it is a unit variant.
#[inline]
pub fn variant_of<'c, 'de>(
    enums: &'c mut Enum<'de>,
    row: usize,
    allowance: &'c Budget,
) -> (&'c Cow<'de, str>, Option<Content<'c, 'de>>) {
    const NONE: &Cow<'static, str> = &Cow::Borrowed("");
    let (code, row) = enums.entry(row);
    let content = match enums.columns.get_mut(code) {
        Some(Some(column)) => Some(Content { column, row, allowance }),
        _ => None,
    };
    (enums.names.get(code).unwrap_or(NONE), content)
}

/// A variant with content as a map of one entry.
pub struct OneEntry<'c, 'de> {
    name: &'c Cow<'de, str>,
    content: Content<'c, 'de>,
    is_key_read: bool,
    is_value_read: bool,
    room: MapRoom,
}

impl<'c, 'de> OneEntry<'c, 'de> {
    pub fn new(name: &'c Cow<'de, str>, content: Content<'c, 'de>) -> Self {
        let room = MapRoom::NONE;
        Self { name, content, is_key_read: false, is_value_read: false, room }
    }

    pub fn left(&self) -> usize {
        usize::from(!self.is_value_read)
    }
}

impl<'de> de::MapAccess<'de> for &mut OneEntry<'_, 'de> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        if std::mem::replace(&mut self.is_key_read, true) {
            return Ok(None);
        }
        self.room.key::<K::Value>();
        let name = Name { name: self.name, allowance: self.content.allowance };
        seed.deserialize(name).map(Some).map_err(|error| error.at(self.content.column.at))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        if std::mem::replace(&mut self.is_value_read, true) || !self.is_key_read {
            return Err(no_key());
        }
        let Content { column, row, allowance } = &mut self.content;
        allowance.charge(self.room.grow(size_of::<V::Value>(), 1))?;
        allowance.place::<V::Value>();
        let value = seed.deserialize(Row::new(column, *row, allowance));
        value.map_err(|error| error.at(self.content.column.at).in_field(&**self.name))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(usize::from(!self.is_key_read))
    }
}

/// The name of a variant with content.
pub enum Key<'c, 'de> {
    Name(&'c Cow<'de, str>),
    /// A row of the column of keys.
    Row(&'c mut Column<'de>, usize),
}

/// An enum value with content.
pub struct Variant<'c, 'de> {
    key: Key<'c, 'de>,
    content: Content<'c, 'de>,
    taken: &'c mut bool,
}

impl<'de> Variant<'_, 'de> {
    pub fn visit<V: Visitor<'de>>(
        key: Key<'_, 'de>,
        content: Content<'_, 'de>,
        visitor: V,
    ) -> Result<V::Value> {
        let mut taken = false;
        let value = visitor.visit_enum(Variant { key, content, taken: &mut taken })?;
        if !taken {
            let what = "the visitor of an enum did not read the content of its variant";
            return Err(Error::data(what));
        }
        Ok(value)
    }

    /// Reads the content, and adds the name of the variant to the path of errors.
    #[inline]
    fn read<T>(self, read: impl FnOnce(Row<'_, 'de>) -> Result<T>) -> Result<T> {
        *self.taken = true;
        let Content { column, row, allowance } = self.content;
        read(Row::new(column, row, allowance)).map_err(|error| {
            let name = match self.key {
                Key::Name(name) => name.clone().into_owned(),
                Key::Row(column, row) => step(column, row),
            };
            error.at(column.at).in_field(name)
        })
    }
}

impl<'de> de::EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'de>>(mut self, seed: V) -> Result<(V::Value, Self)> {
        let allowance = self.content.allowance;
        let variant = match &mut self.key {
            Key::Name(name) => seed.deserialize(Name { name, allowance }),
            Key::Row(column, row) => seed.deserialize(Row::new(column, *row, allowance)),
        };
        Ok((variant?, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(self) -> Result<()> {
        self.read(|row| row.unit(&"unit variant"))
    }

    #[inline]
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        self.content.allowance.place::<T::Value>();
        self.read(|row| seed.deserialize(row))
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        self.read(|row| de::Deserializer::deserialize_tuple(row, len, visitor))
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        self.read(|row| de::Deserializer::deserialize_struct(row, "", fields, visitor))
    }
}

/// The name of a field or variant. It is read like any text, because a map key may have any type.
pub struct Name<'c, 'de> {
    name: &'c Cow<'de, str>,
    allowance: &'c Budget,
}

impl<'de> Name<'_, 'de> {
    /// Passes the name to a visitor that may copy it.
    #[inline]
    fn copy<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.allowance.charge(self.name.len() as u64)?;
        self.visit(visitor)
    }

    #[inline]
    fn visit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self.name {
            Cow::Borrowed(name) => visitor.visit_borrowed_str(name),
            Cow::Owned(name) => visitor.visit_str(name),
        }
    }

    /// A column of one row, the name.
    #[cold]
    fn column(&self) -> Column<'de> {
        let cuts = Cuts::new(Lengths::Same(self.name.len()));
        let text = match self.name {
            Cow::Borrowed(name) => TextData::Borrowed(name),
            Cow::Owned(name) => TextData::Owned(name.clone()),
        };
        Column::new(0, Kind::Texts(cuts, text))
    }
}

/// Methods that types of map keys seldom call.
macro_rules! like_any_text {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)* visitor: V) -> Result<V::Value> {
            let mut column = self.column();
            Row::new(&mut column, 0, self.allowance).$method($($arg,)* visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Name<'_, 'de> {
    type Error = Error;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.copy(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.visit(visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.copy(visitor)
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.copy(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    like_any_text! {
        deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64()
        deserialize_u128() deserialize_f32() deserialize_f64() deserialize_char()
        deserialize_bytes() deserialize_byte_buf() deserialize_option() deserialize_unit()
        deserialize_unit_struct(name: &'static str)
        deserialize_newtype_struct(name: &'static str)
        deserialize_seq() deserialize_tuple(len: usize)
        deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map()
        deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
