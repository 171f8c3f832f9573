//! serde's access types for the parts of a [`Row`]: one for sequences, one for maps, one for enums.

use std::ops::Range;

use serde::de::{self, DeserializeSeed, Unexpected, Visitor};

use super::row::{Row, Spot, shown};
use super::{NOWHERE, located};
use crate::budget::{self, Budget, MapRoom, Room};
use crate::de::access::key_text;
use crate::error::{Error, Result};
use crate::io::source::Bytes;
use crate::meta::TensorMeta;
use crate::serde_model::invalid;
use crate::wire::columns::{Column, Field, Kind, Maps};
use crate::wire::strings::Text;

/// Rows that come from several columns, one after the other.
pub trait MoreRows<'de> {
    /// Moves to the next column if there are no more rows in this one. Returns the number of rows that are left in it, which is
    /// zero after the last column.
    fn ready(&mut self) -> Result<usize>;

    /// The number of rows that are certain to follow.
    fn left(&self) -> usize;

    /// Takes the next row. It is there, because [`ready`](Self::ready) was called.
    fn next(&mut self) -> Option<(&mut Column<'de>, usize)>;

    /// Adds the number of the row that was taken last to an error in it.
    fn in_last_row(&self, error: Error) -> Error;
}

/// The elements of a sequence.
pub struct Elements<'c, 'de> {
    source: Source<'c, 'de>,
    allowance: &'c Budget,
    /// The offset of the column in the input.
    at: u64,
    room: Room,
    /// The number of elements that take room.
    counted: usize,
    /// The number of elements that were taken.
    index: usize,
}

enum Source<'c, 'de> {
    List(&'c mut Column<'de>, Range<usize>),
    /// Numbers that are not in a column.
    Own(Box<Column<'de>>, Range<usize>),
    Tuple(std::slice::IterMut<'c, Column<'de>>, usize),
    Dims(std::slice::Iter<'c, usize>),
    Several(&'c mut dyn MoreRows<'de>),
}

impl<'c, 'de> Elements<'c, 'de> {
    fn new(source: Source<'c, 'de>, at: u64, allowance: &'c Budget, room: Room) -> Self {
        Self { source, allowance, at, room, counted: 0, index: 0 }
    }

    /// The rows of a column, which are the elements of a list at offset `at`.
    pub fn of_list(
        column: &'c mut Column<'de>,
        rows: Range<usize>,
        at: u64,
        allowance: &'c Budget,
        room: Room,
    ) -> Self {
        Self::new(Source::List(column, rows), at, allowance, room)
    }

    pub fn own(column: Column<'de>, rows: Range<usize>, allowance: &'c Budget, room: Room) -> Self {
        let at = column.at;
        Self::new(Source::Own(Box::new(column), rows), at, allowance, room)
    }

    pub fn of_tuple(
        columns: &'c mut [Column<'de>],
        row: usize,
        at: u64,
        allowance: &'c Budget,
        room: Room,
    ) -> Self {
        Self::new(Source::Tuple(columns.iter_mut(), row), at, allowance, room)
    }

    pub fn of_dims(dims: &'c [usize], allowance: &'c Budget, room: Room) -> Self {
        Self::new(Source::Dims(dims.iter()), NOWHERE, allowance, room)
    }

    pub fn of_several(rows: &'c mut dyn MoreRows<'de>, allowance: &'c Budget) -> Self {
        Self::new(Source::Several(rows), NOWHERE, allowance, Room::NONE)
    }

    /// Passes the elements to a visitor, which must take all of them.
    pub fn visit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        let value = visitor.visit_seq(&mut self).and_then(|value| self.close().map(|()| value));
        value.map_err(|error| located(error, self.at))
    }

    /// Checks that all elements were taken. Who has several columns checks it by itself.
    pub fn close(&self) -> Result<()> {
        let what = match &self.source {
            Source::Several(_) => return Ok(()),
            Source::Own(..) => "a typed array",
            _ => "an array",
        };
        all_taken(self.left(), what)
    }

    fn left(&self) -> usize {
        match &self.source {
            Source::List(_, rows) | Source::Own(_, rows) => rows.len(),
            Source::Tuple(columns, _) => columns.len(),
            Source::Dims(dims) => dims.len(),
            Source::Several(rows) => rows.left(),
        }
    }

    /// Like [`left`](Self::left), before the next element is taken.
    #[inline]
    fn ready(&mut self) -> Result<usize> {
        match &mut self.source {
            Source::Several(rows) => rows.ready(),
            _ => Ok(self.left()),
        }
    }

    /// Starts the next element, which is of this kind. Returns whether there is one.
    #[inline]
    fn begin(&mut self, kind: budget::Kind) -> Result<bool> {
        let left = self.ready()?;
        if left == 0 {
            return Ok(false);
        }
        if !self.room.holds(kind, self.counted) {
            self.make_room(kind, left)?;
        }
        self.counted += usize::from(kind.size > 0);
        self.allowance.place(kind);
        Ok(true)
    }

    /// Takes the next element.
    #[inline]
    fn take(&mut self) -> Option<Row<'_, 'de>> {
        self.index += 1;
        let spot = match &mut self.source {
            Source::List(column, rows) => Spot::Row(column, rows.next()?),
            Source::Own(column, rows) => Spot::Row(column, rows.next()?),
            Source::Tuple(columns, row) => Spot::Row(columns.next()?, *row),
            Source::Dims(dims) => Spot::Number(*dims.next()? as u64),
            Source::Several(rows) => {
                let (column, row) = rows.next()?;
                Spot::Row(column, row)
            }
        };
        Some(Row::at(spot, self.allowance))
    }

    /// Adds the place of the last element to an error in it.
    #[cold]
    #[inline(never)]
    fn in_last(&self, error: Error) -> Error {
        let at = match &self.source {
            Source::Several(rows) => return rows.in_last_row(error),
            Source::List(column, _) => column.at,
            _ => self.at,
        };
        located(error, at).in_index(self.index.saturating_sub(1) as u64)
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, kind: budget::Kind, left: usize) -> Result<()> {
        let room = self.allowance.element(&mut self.room, kind, left);
        room.map_err(|error| located(error, self.at))
    }
}

impl<'de> de::SeqAccess<'de> for &mut Elements<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        if !self.begin(const { budget::Kind::of::<T::Value>() })? {
            return Ok(None);
        }
        let Some(row) = self.take() else { return Ok(None) };
        match seed.deserialize(row) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(self.in_last(error)),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left())
    }
}

/// The entries of a map, or the fields of a struct.
pub struct Entries<'c, 'de> {
    source: EntrySource<'c, 'de>,
    allowance: &'c Budget,
    at: u64,
    room: MapRoom,
}

enum EntrySource<'c, 'de> {
    Fields {
        left: std::slice::IterMut<'c, Field<'de>>,
        /// The field whose name was read last.
        current: Option<&'c mut Field<'de>>,
        row: usize,
    },
    Map {
        maps: &'c mut Maps<'de>,
        rows: Range<usize>,
        current: Option<usize>,
    },
    /// A variant with content.
    One {
        name: Text<'de, 'c>,
        content: Option<Row<'c, 'de>>,
        is_key_read: bool,
    },
    Tensor(Box<Tensor<'c, 'de>>),
}

/// A tensor as other formats write it.
struct Tensor<'c, 'de> {
    meta: TensorMeta,
    payload: Option<Bytes<'de, 'c>>,
    /// The number of keys and of values that were read.
    keys: usize,
    values: usize,
}

const KEYS: [&str; 4] = ["dtype", "shape", "order", "data"];

/// The memory for each dimension of a shape, while a `Vec` of them grows.
const DIM: usize = 3 * 32;

impl<'c, 'de> Entries<'c, 'de> {
    pub fn of_fields(
        fields: &'c mut [Field<'de>],
        row: usize,
        at: u64,
        allowance: &'c Budget,
        room: MapRoom,
    ) -> Self {
        let source = EntrySource::Fields { left: fields.iter_mut(), current: None, row };
        Self { source, allowance, at, room }
    }

    pub fn of_map(
        maps: &'c mut Maps<'de>,
        row: usize,
        at: u64,
        allowance: &'c Budget,
        room: MapRoom,
    ) -> Self {
        let rows = maps.cuts.range(row);
        Self { source: EntrySource::Map { maps, rows, current: None }, allowance, at, room }
    }

    pub fn one(name: Text<'de, 'c>, content: Row<'c, 'de>, at: u64, allowance: &'c Budget) -> Self {
        let source = EntrySource::One { name, content: Some(content), is_key_read: false };
        Self { source, allowance, at, room: MapRoom::NONE }
    }

    pub fn of_tensor(
        meta: TensorMeta,
        payload: Bytes<'de, 'c>,
        at: u64,
        allowance: &'c Budget,
    ) -> Self {
        let tensor = Tensor { meta, payload: Some(payload), keys: 0, values: 0 };
        let source = EntrySource::Tensor(Box::new(tensor));
        Self { source, allowance, at, room: MapRoom::NONE }
    }

    /// Passes the entries to a visitor, which must take all of them.
    pub fn visit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        let value = visitor.visit_map(&mut self).and_then(|value| self.close().map(|()| value));
        value.map_err(|error| located(error, self.at))
    }

    fn close(&self) -> Result<()> {
        // An entry whose value was not asked for is left, too.
        let left = match &self.source {
            EntrySource::Fields { left, current, .. } => left.len() + current.iter().count(),
            EntrySource::Map { rows, current, .. } => rows.len() + current.iter().count(),
            EntrySource::One { content, .. } => content.iter().count(),
            EntrySource::Tensor(tensor) => KEYS.len() - tensor.values.min(KEYS.len()),
        };
        all_taken(left, "a map")
    }

    /// The number of keys that were not read.
    fn left(&self) -> usize {
        match &self.source {
            EntrySource::Fields { left, row, .. } => {
                left.as_slice().iter().filter(|field| field.is_present(*row)).count()
            }
            EntrySource::Map { rows, .. } => rows.len(),
            EntrySource::One { is_key_read, .. } => usize::from(!is_key_read),
            EntrySource::Tensor(tensor) => KEYS.len().saturating_sub(tensor.keys),
        }
    }

    #[inline(never)]
    fn key(&mut self) -> Option<Row<'_, 'de>> {
        let spot = match &mut self.source {
            EntrySource::Fields { left, current, row } => {
                let field = left.by_ref().find(|field| field.is_present(*row))?;
                let field = current.insert(field);
                Spot::Text(shown(&field.name))
            }
            EntrySource::Map { maps, rows, current } => {
                let row = rows.next()?;
                *current = Some(row);
                Spot::Row(&mut maps.keys, row)
            }
            EntrySource::One { name, is_key_read, .. } => {
                if std::mem::replace(is_key_read, true) {
                    return None;
                }
                Spot::Text(name.again())
            }
            EntrySource::Tensor(tensor) => {
                let key = KEYS.get(tensor.keys)?;
                tensor.keys += 1;
                Spot::Text(Text::Borrowed(key))
            }
        };
        Some(Row::at(spot, self.allowance))
    }

    /// The offset of the key that was read last.
    #[cold]
    fn at_key(&self) -> u64 {
        match &self.source {
            EntrySource::Fields { current: Some(field), .. } => field.column.at,
            EntrySource::Map { maps, .. } => maps.keys.at,
            _ => self.at,
        }
    }

    /// The value of the key that was read last, which is of this kind.
    #[inline(never)]
    fn value(&mut self, kind: budget::Kind) -> Result<Row<'_, 'de>> {
        let allowance = self.allowance;
        if self.room.is_used_up() {
            let bytes = self.room.grow(kind.size, self.left() + 1);
            let at = match &self.source {
                EntrySource::Fields { current: Some(field), .. } => field.column.at,
                EntrySource::Map { maps, .. } => maps.values.at,
                _ => self.at,
            };
            allowance.charge(bytes).map_err(|error| located(error, at))?;
        }
        allowance.place(kind);
        let spot = match &mut self.source {
            EntrySource::Fields { current, row, .. } => {
                let Some(field) = current else { return Err(no_key()) };
                let row = field.inner(*row);
                Spot::Row(&mut field.column, row)
            }
            EntrySource::Map { maps, current, .. } => {
                let Some(row) = *current else { return Err(no_key()) };
                Spot::Row(&mut maps.values, row)
            }
            EntrySource::One { content, is_key_read, .. } => {
                return match content.take() {
                    Some(content) if *is_key_read => Ok(content),
                    _ => Err(no_key()),
                };
            }
            EntrySource::Tensor(tensor) => return tensor.value(allowance),
        };
        Ok(Row::at(spot, allowance))
    }

    /// Adds the place of the value that was read last to an error in it.
    #[cold]
    #[inline(never)]
    fn in_last(&mut self, error: Error) -> Error {
        match &mut self.source {
            EntrySource::Fields { current: Some(field), .. } => {
                located(error, field.column.at).in_field(&*field.name)
            }
            EntrySource::Map { maps, current, .. } => {
                let step = current.map(|row| step(&mut maps.keys, row)).unwrap_or_default();
                located(error, maps.values.at).in_field(step)
            }
            EntrySource::One { name, .. } => located(error, self.at).in_field(name.as_str()),
            _ => located(error, self.at),
        }
    }

    /// The key was used.
    fn end_entry(&mut self) {
        match &mut self.source {
            EntrySource::Fields { current, .. } => *current = None,
            EntrySource::Map { current, .. } => *current = None,
            _ => {}
        }
    }
}

impl<'c, 'de> Tensor<'c, 'de> {
    fn value(&mut self, allowance: &'c Budget) -> Result<Row<'_, 'de>> {
        let number = self.values;
        self.values += 1;
        if number >= self.keys {
            return Err(no_key());
        }
        let spot = match number {
            0 => {
                // The keys, the name of the dtype, and the shape. The visitor can read numbers as values of any size. Most are
                // not larger than a `Value`.
                let dims = self.meta.shape.len().saturating_mul(DIM);
                let keys = KEYS.iter().map(|key| key.len()).sum::<usize>();
                allowance.charge(keys.saturating_add(dims) as u64)?;
                Spot::Text(Text::Copied(self.meta.dtype.name()))
            }
            1 => Spot::Dims(&self.meta.shape),
            2 => Spot::Text(Text::Borrowed(self.meta.order.name())),
            _ => match self.payload.take() {
                Some(payload) => Spot::Bytes(payload),
                None => {
                    return Err(Error::data("the visitor asked for the data of a tensor twice"));
                }
            },
        };
        Ok(Row::at(spot, allowance))
    }
}

impl<'de> de::MapAccess<'de> for &mut Entries<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.room.key::<K::Value>();
        let Some(key) = self.key() else { return Ok(None) };
        match seed.deserialize(key) {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(located(error, self.at_key())),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let value = self.value(const { budget::Kind::of::<V::Value>() })?;
        match seed.deserialize(value) {
            Ok(value) => {
                self.end_entry();
                Ok(value)
            }
            Err(error) => Err(self.in_last(error)),
        }
    }

    #[inline]
    fn size_hint(&self) -> Option<usize> {
        Some(self.left())
    }
}

#[cold]
fn no_key() -> Error {
    Error::data("the visitor asked for a map value before its key")
}

#[inline]
pub(super) fn all_taken(left: usize, what: &str) -> Result<()> {
    if left == 0 { Ok(()) } else { Err(not_all_taken(left, what)) }
}

#[cold]
fn not_all_taken(left: usize, what: &str) -> Error {
    Error::data(format!("expected the end of {what}, found {left} more elements"))
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

/// An enum.
pub struct Variant<'c, 'de> {
    key: Spot<'c, 'de>,
    /// `None` if it is a unit variant.
    content: Option<Row<'c, 'de>>,
    /// Set when the content is read.
    taken: &'c mut bool,
    allowance: &'c Budget,
}

impl<'c, 'de> Variant<'c, 'de> {
    pub fn new(
        key: Spot<'c, 'de>,
        content: Option<Row<'c, 'de>>,
        taken: &'c mut bool,
        allowance: &'c Budget,
    ) -> Self {
        *taken = content.is_none();
        Self { key, content, taken, allowance }
    }

    /// Checks that the content was taken.
    pub fn check(taken: bool) -> Result<()> {
        if taken {
            return Ok(());
        }
        Err(Error::data("the visitor of an enum did not read the content of its variant"))
    }

    /// The content, which is not there if the variant is a unit variant.
    #[inline(never)]
    fn content(&mut self, expected: &str) -> Result<Row<'c, 'de>> {
        *self.taken = true;
        match self.content.take() {
            Some(content) => Ok(content),
            None => Err(invalid(Unexpected::UnitVariant, &expected)),
        }
    }

    /// Adds the name of the variant to the path of an error in its content.
    #[cold]
    #[inline(never)]
    fn in_content(self, error: Error) -> Error {
        error.in_field(match self.key {
            Spot::Row(column, row) => step(column, row),
            Spot::Text(name) => name.as_str().to_owned(),
            _ => String::new(),
        })
    }
}

impl<'de> de::EnumAccess<'de> for Variant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'de>>(mut self, seed: V) -> Result<(V::Value, Self)> {
        let spot = match &mut self.key {
            Spot::Row(column, row) => Spot::Row(column, *row),
            Spot::Text(name) => Spot::Text(name.again()),
            _ => return Err(no_key()),
        };
        let variant = seed.deserialize(Row::at(spot, self.allowance))?;
        Ok((variant, self))
    }
}

impl<'de> de::VariantAccess<'de> for Variant<'_, 'de> {
    type Error = Error;

    fn unit_variant(mut self) -> Result<()> {
        if self.content.is_none() {
            return Ok(());
        }
        let content = self.content("unit variant")?;
        let at = content.offset();
        content.unit(&"unit variant").map_err(|error| self.in_content(located(error, at)))
    }

    #[inline]
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(mut self, seed: T) -> Result<T::Value> {
        let content = self.content("newtype variant")?;
        self.allowance.place(const { budget::Kind::of::<T::Value>() });
        let at = content.offset();
        seed.deserialize(content).map_err(|error| self.in_content(located(error, at)))
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(mut self, len: usize, visitor: V) -> Result<V::Value> {
        let content = self.content("tuple variant")?;
        let at = content.offset();
        let value = de::Deserializer::deserialize_tuple(content, len, visitor);
        value.map_err(|error| self.in_content(located(error, at)))
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        mut self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let content = self.content("struct variant")?;
        let at = content.offset();
        let value = de::Deserializer::deserialize_struct(content, "", fields, visitor);
        value.map_err(|error| self.in_content(located(error, at)))
    }
}
