//! serde's access types for the parts of a [`Row`]: one for sequences, one for maps, one for enums.

use std::ops::Range;

use serde::de::{self, Deserialize, DeserializeSeed, Unexpected, Visitor};

use super::name::RowName;
use super::row::{NOWHERE, Row, located};
use super::shown::{ShownText, shown};
use crate::budget::{self, Budget, MapRoom, Room};
use crate::de::access::key_text;
use crate::error::{Error, Result};
use crate::serde_model::invalid;
use crate::wire::columns::{Column, ColumnKind, Field, Maps, Structs};

/// Rows that come from several columns, one after the other.
pub trait MoreRows<'de> {
    /// The next column that has rows, and the rows of it that are wanted.
    fn next_rows(&mut self) -> Result<Option<(Column<'de>, Range<usize>)>>;

    /// The number of rows that are certain to follow in further columns.
    fn left(&self) -> usize;

    /// Adds the number of a row to an error. It is a row of the column that was returned last.
    fn in_row(&self, row: usize, error: Error) -> Error;
}

/// The elements of a sequence.
pub struct RowElements<'c, 'de> {
    source: ElementSource<'c, 'de>,
    allowance: &'c Budget,
    /// The offset of the column in the input.
    at: u64,
    room: Room,
    /// The number of elements that were taken.
    index: usize,
}

enum ElementSource<'c, 'de> {
    List(&'c mut Column<'de>, Range<usize>),
    Tuple(std::slice::IterMut<'c, Column<'de>>, usize),
    /// The fields of a struct, which all have this row.
    Struct(&'c mut Structs<'de>, usize),
    Several(Box<Several<'c, 'de>>),
}

/// Rows of a column that nobody else has, and columns that follow.
struct Several<'c, 'de> {
    column: Column<'de>,
    rows: Range<usize>,
    more: Option<&'c mut dyn MoreRows<'de>>,
}

impl<'c, 'de> RowElements<'c, 'de> {
    #[inline]
    fn new(source: ElementSource<'c, 'de>, at: u64, allowance: &'c Budget, room: Room) -> Self {
        Self { source, allowance, at, room, index: 0 }
    }

    /// The rows of a column, which are the elements of a list at offset `at`.
    #[inline]
    pub fn of_list(
        column: &'c mut Column<'de>,
        rows: Range<usize>,
        at: u64,
        allowance: &'c Budget,
        room: Room,
    ) -> Self {
        Self::new(ElementSource::List(column, rows), at, allowance, room)
    }

    /// The rows of a column that nobody else has.
    pub fn own(column: Column<'de>, rows: Range<usize>, allowance: &'c Budget, room: Room) -> Self {
        let at = column.at;
        let source = ElementSource::Several(Box::new(Several { column, rows, more: None }));
        Self::new(source, at, allowance, room)
    }

    #[inline]
    pub fn of_tuple(
        columns: &'c mut [Column<'de>],
        row: usize,
        at: u64,
        allowance: &'c Budget,
        room: Room,
    ) -> Self {
        Self::new(ElementSource::Tuple(columns.iter_mut(), row), at, allowance, room)
    }

    /// The fields of a struct, in order. All are in all rows.
    #[inline]
    pub fn of_struct(
        structs: &'c mut Structs<'de>,
        row: usize,
        at: u64,
        allowance: &'c Budget,
    ) -> Self {
        Self::new(ElementSource::Struct(structs, row), at, allowance, Room::INSIDE)
    }

    /// The first column is read at once, because the visitor may ask for the number of rows.
    pub fn of_several(rows: &'c mut dyn MoreRows<'de>, allowance: &'c Budget) -> Result<Self> {
        let first = rows.next_rows()?;
        let (column, range) =
            first.unwrap_or_else(|| (Column::new(NOWHERE, ColumnKind::Unit), 0..0));
        let several = Several { column, rows: range, more: Some(rows) };
        let source = ElementSource::Several(Box::new(several));
        Ok(Self::new(source, NOWHERE, allowance, Room::NONE))
    }

    /// Passes the elements to a visitor, which must take all of them.
    #[inline]
    pub fn visit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        // The value is made where it is returned, because a copy of it would wait until it is written.
        let mut value = visitor.visit_seq(&mut self);
        if value.is_err() || !self.is_at_end() {
            value = Err(self.fault(value.err()));
        }
        value
    }

    #[inline]
    pub(in crate::de) fn is_at_end(&self) -> bool {
        match &self.source {
            ElementSource::List(_, rows) => rows.is_empty(),
            ElementSource::Several(several) => several.rows.is_empty(),
            ElementSource::Struct(structs, _) => self.index == structs.fields.len(),
            ElementSource::Tuple(columns, _) => columns.len() == 0,
        }
    }

    /// The error of a visitor, or because it has left elements.
    ///
    /// Asks for another reading by names, unless the visitor took the fields of a struct in order. A visitor that takes no
    /// sequence fails before it asks for an element. That of a type with aliases asks for too few.
    #[cold]
    #[inline(never)]
    pub(in crate::de) fn fault(&self, error: Option<Error>) -> Error {
        if let ElementSource::Struct(structs, _) = &self.source
            && (error.is_none() || self.index == 0)
        {
            structs.refuse_order();
            self.allowance.refuse_order();
        }
        located(error.unwrap_or_else(|| self.not_all_taken()), self.at)
    }

    /// Checks that all elements were taken. Who has several columns checks by itself that there are no more columns.
    #[inline(never)]
    pub fn close(&self) -> Result<()> {
        if self.left() == 0 { Ok(()) } else { Err(self.not_all_taken()) }
    }

    #[cold]
    fn not_all_taken(&self) -> Error {
        let what = match &self.source {
            ElementSource::Several(several) if several.more.is_none() => "a typed array",
            _ => "an array",
        };
        not_all_taken(self.left(), what)
    }

    #[inline]
    fn left(&self) -> usize {
        match &self.source {
            ElementSource::List(_, rows) => rows.len(),
            ElementSource::Tuple(columns, _) => columns.len(),
            ElementSource::Struct(structs, _) => structs.fields.len() - self.index,
            ElementSource::Several(several) => several.left(),
        }
    }

    /// Starts the next element, whose type has this size.
    // Always: 30 % of decoding a mesh as columns.
    #[inline(always)]
    fn next(&mut self, element: &'static budget::ElementSize) -> Result<Option<Row<'_, 'de>>> {
        if !self.room.take(element) {
            self.make_room(element)?;
        }
        let (column, row) = match &mut self.source {
            ElementSource::List(column, rows) => match rows.next() {
                Some(row) => (&mut **column, row),
                None => return Ok(None),
            },
            ElementSource::Struct(structs, row) => match structs.fields.get_mut(self.index) {
                Some(field) => (&mut field.column, *row),
                None => return Ok(None),
            },
            ElementSource::Several(several) => {
                let row = match several.rows.next() {
                    Some(row) => row,
                    None if several.next_column()? => several.rows.next().unwrap_or_default(),
                    None => return Ok(None),
                };
                (&mut several.column, row)
            }
            ElementSource::Tuple(columns, row) => match columns.next() {
                Some(column) => (column, *row),
                None => return Ok(None),
            },
        };
        self.index += 1;
        self.allowance.place(element);
        Ok(Some(Row::new(column, row, self.allowance)))
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, element: &budget::ElementSize) -> Result<()> {
        if let ElementSource::Several(several) = &mut self.source
            && several.rows.is_empty()
        {
            several.next_column()?;
        }
        let left = self.left();
        if left == 0 {
            return Ok(());
        }
        let room = self.allowance.element(&mut self.room, element, left);
        room.map_err(|error| located(error, self.at))
    }

    /// Adds the place of the last element to an error in it.
    #[cold]
    #[inline(never)]
    fn in_last(&self, error: Error) -> Error {
        let at = match &self.source {
            ElementSource::Several(several) => {
                let Several { column, rows, more } = &**several;
                if let Some(more) = more {
                    return more.in_row(rows.start.saturating_sub(1), located(error, column.at));
                }
                column.at
            }
            ElementSource::Struct(structs, _) => {
                return match structs.fields.get(self.index.saturating_sub(1)) {
                    Some(field) => located(error, field.column.at).in_field(&*field.name),
                    None => error,
                };
            }
            ElementSource::List(column, _) => column.at,
            ElementSource::Tuple(..) => self.at,
        };
        located(error, at).in_index(self.index.saturating_sub(1) as u64)
    }
}

impl Several<'_, '_> {
    /// Goes on to the next column. Returns false if there is none.
    #[cold]
    #[inline(never)]
    fn next_column(&mut self) -> Result<bool> {
        let Some(more) = &mut self.more else { return Ok(false) };
        // The budget has the memory of this column again as soon as the next one is read. So it goes first.
        self.column = Column::new(NOWHERE, ColumnKind::Unit);
        let Some(next) = more.next_rows()? else { return Ok(false) };
        (self.column, self.rows) = next;
        Ok(true)
    }

    /// The number of rows that are left.
    fn left(&self) -> usize {
        let more = self.more.as_ref().map_or(0, |more| more.left());
        self.rows.len().saturating_add(more)
    }
}

impl<'de> de::SeqAccess<'de> for &mut RowElements<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_element<T: Deserialize<'de>>(&mut self) -> Result<Option<T>> {
        let Some(row) = self.next(const { &budget::ElementSize::of::<T>() })? else {
            return Ok(None);
        };
        match row.read() {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(self.in_last(error)),
        }
    }

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        let Some(row) = self.next(const { &budget::ElementSize::of::<T::Value>() })? else {
            return Ok(None);
        };
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
pub struct RowEntries<'c, 'de> {
    /// The fields of a struct. They are empty if the entries are [`others`](Self::others).
    fields: &'c mut [Field<'de>],
    others: Others<'c, 'de>,
    row: usize,
    /// The number of the first field or entry whose key was not read.
    next: usize,
    /// Whether the value of the key that was read last was not asked for.
    has_key: bool,
    room: MapRoom,
    allowance: &'c Budget,
    at: u64,
}

/// Entries that are not the fields of a column of structs.
enum Others<'c, 'de> {
    Nothing,
    /// The rows of a column of maps.
    Map(&'c mut Maps<'de>, Range<usize>),
    /// A variant with content.
    One(RowName<'c, 'de>, Option<Row<'c, 'de>>),
    /// Columns of one row.
    Own(Vec<Field<'de>>),
}

/// The key of an entry, or the name of a variant.
pub enum EntryKey<'c, 'de> {
    Name(RowName<'c, 'de>),
    Row(Row<'c, 'de>),
}

impl<'c, 'de> RowEntries<'c, 'de> {
    #[inline]
    pub fn of_fields(
        fields: &'c mut [Field<'de>],
        row: usize,
        at: u64,
        allowance: &'c Budget,
        room: MapRoom,
    ) -> Self {
        Self { fields, others: Others::Nothing, row, next: 0, has_key: false, room, allowance, at }
    }

    fn of_others(others: Others<'c, 'de>, at: u64, allowance: &'c Budget, room: MapRoom) -> Self {
        Self { others, ..Self::of_fields(&mut [], 0, at, allowance, room) }
    }

    pub fn of_map(
        maps: &'c mut Maps<'de>,
        row: usize,
        at: u64,
        allowance: &'c Budget,
        room: MapRoom,
    ) -> Self {
        let rows = maps.cuts.range(row);
        Self::of_others(Others::Map(maps, rows), at, allowance, room)
    }

    pub fn one(
        name: ShownText<'de, 'c>,
        content: Row<'c, 'de>,
        at: u64,
        allowance: &'c Budget,
    ) -> Self {
        let one = Others::One(RowName::new(name, allowance), Some(content));
        Self::of_others(one, at, allowance, MapRoom::NONE)
    }

    /// Columns of one row.
    pub fn own(fields: Vec<Field<'de>>, at: u64, allowance: &'c Budget) -> Self {
        Self::of_others(Others::Own(fields), at, allowance, MapRoom::NONE)
    }

    /// Passes the entries to a visitor, which must take all of them.
    #[inline]
    pub fn visit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        // The value is made where it is returned, because a copy of it would wait until it is written.
        let mut value = visitor.visit_map(&mut self);
        if value.is_ok()
            && !self.has_taken_fields()
            && let Err(error) = self.close()
        {
            value = Err(error);
        }
        if value.is_err() {
            value = value.map_err(|error| self.here(error));
        }
        value
    }

    /// Adds the place of the entries to an error.
    #[cold]
    pub(in crate::de) fn here(&self, error: Error) -> Error {
        located(error, self.at)
    }

    /// Whether this is a struct of which all fields were taken.
    #[inline]
    fn has_taken_fields(&self) -> bool {
        self.next == self.fields.len() && !self.has_key && matches!(self.others, Others::Nothing)
    }

    #[cold]
    #[inline(never)]
    pub(in crate::de) fn close(&self) -> Result<()> {
        let keys = match &self.others {
            Others::Nothing => self.fields.len() - self.next,
            _ => self.left(),
        };
        // An entry whose value was not asked for is left, too.
        all_taken(keys + usize::from(self.has_key), "a map")
    }

    /// The number of keys that were not read.
    #[inline(never)]
    fn left(&self) -> usize {
        match &self.others {
            Others::Nothing => {
                let fields = self.fields.get(self.next..).unwrap_or_default();
                fields.iter().filter(|field| field.is_present(self.row)).count()
            }
            Others::Map(_, rows) => rows.len() - self.next,
            Others::One(..) => 1 - self.next,
            Others::Own(fields) => fields.len() - self.next,
        }
    }

    #[inline]
    fn key(&mut self) -> Option<EntryKey<'_, 'de>> {
        if let Others::Nothing = self.others {
            loop {
                let field = self.fields.get(self.next)?;
                self.next += 1;
                if field.is_present(self.row) {
                    self.has_key = true;
                    return Some(EntryKey::Name(RowName::new(shown(&field.name), self.allowance)));
                }
            }
        }
        self.other_key()
    }

    #[inline(never)]
    fn other_key(&mut self) -> Option<EntryKey<'_, 'de>> {
        if self.left() == 0 {
            return None;
        }
        let next = self.next;
        (self.next, self.has_key) = (next + 1, true);
        Some(match &mut self.others {
            Others::Map(maps, rows) => {
                EntryKey::Row(Row::new(&mut maps.keys, rows.start + next, self.allowance))
            }
            Others::One(name, _) => EntryKey::Name(*name),
            Others::Own(fields) => {
                EntryKey::Name(RowName::new(shown(&fields.get(next)?.name), self.allowance))
            }
            Others::Nothing => return None,
        })
    }

    /// The offset of the values of the key that was read last.
    #[cold]
    fn at_value(&self) -> u64 {
        match &self.others {
            Others::Nothing => {
                let field = self.fields.get(self.next.saturating_sub(1));
                field.map_or(self.at, |field| field.column.at)
            }
            Others::Map(maps, _) => maps.values.at,
            _ => self.at,
        }
    }

    /// The offset of the key that was read last.
    #[cold]
    fn at_key(&self) -> u64 {
        match &self.others {
            Others::Map(maps, _) => maps.keys.at,
            _ => self.at_value(),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, element: &'static budget::ElementSize) -> Result<()> {
        let bytes = self.room.grow(element.size, self.left() + 1);
        self.allowance.charge(bytes).map_err(|error| located(error, self.at_value()))
    }

    /// The value of the key that was read last, whose type has this size.
    #[inline]
    fn value(&mut self, element: &'static budget::ElementSize) -> Result<Row<'_, 'de>> {
        if self.room.is_used_up() {
            self.make_room(element)?;
        }
        self.allowance.place(element);
        if !std::mem::take(&mut self.has_key) {
            return Err(no_key());
        }
        if let Some(field) = self.fields.get_mut(self.next - 1) {
            let row = field.inner(self.row);
            return Ok(Row::new(&mut field.column, row, self.allowance));
        }
        self.others.value(self.next - 1, self.allowance)
    }

    /// Adds the place of the value that was read last to an error in it.
    #[cold]
    #[inline(never)]
    fn in_last(&mut self, error: Error) -> Error {
        let (at, last) = (self.at_value(), self.next.saturating_sub(1));
        let error = located(error, at);
        match &mut self.others {
            Others::Nothing => match self.fields.get(last) {
                Some(field) => error.in_field(&*field.name),
                None => error,
            },
            Others::Map(maps, rows) => error.in_field(step(&mut maps.keys, rows.start + last)),
            Others::One(name, _) => error.in_field(name.as_str()),
            Others::Own(_) => error,
        }
    }
}

impl<'de> Others<'_, 'de> {
    #[inline(never)]
    fn value<'r>(&'r mut self, number: usize, allowance: &'r Budget) -> Result<Row<'r, 'de>> {
        match self {
            Self::Map(maps, rows) => Ok(Row::new(&mut maps.values, rows.start + number, allowance)),
            Self::One(_, content) => content.take().ok_or_else(no_key),
            Self::Own(fields) => match fields.get_mut(number) {
                Some(field) => Ok(Row::last(&mut field.column, allowance)),
                None => Err(no_key()),
            },
            Self::Nothing => Err(no_key()),
        }
    }
}

impl<'de> de::MapAccess<'de> for &mut RowEntries<'_, 'de> {
    type Error = Error;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>> {
        self.room.key::<K::Value>();
        let key = match self.key() {
            Some(EntryKey::Name(name)) => seed.deserialize(name),
            Some(EntryKey::Row(row)) => seed.deserialize(row),
            None => return Ok(None),
        };
        match key {
            Ok(key) => Ok(Some(key)),
            Err(error) => Err(located(error, self.at_key())),
        }
    }

    #[inline]
    fn next_value<V: Deserialize<'de>>(&mut self) -> Result<V> {
        let value = self.value(const { &budget::ElementSize::of::<V>() })?;
        match value.read() {
            Ok(value) => Ok(value),
            Err(error) => Err(self.in_last(error)),
        }
    }

    #[inline]
    fn next_entry<K: Deserialize<'de>, V: Deserialize<'de>>(&mut self) -> Result<Option<(K, V)>> {
        match self.next_key()? {
            Some(key) => Ok(Some((key, self.next_value()?))),
            None => Ok(None),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value> {
        let value = self.value(const { &budget::ElementSize::of::<V::Value>() })?;
        match seed.deserialize(value) {
            Ok(value) => Ok(value),
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
    Error::mismatch(format!("expected the end of {what}, found {left} more elements"))
}

/// Returns a row that is a map key as a part of a path: a text or an integer as it is, and the type of any other key.
#[cold]
fn step(column: &mut Column<'_>, row: usize) -> String {
    let (column, row) = column.innermost(row);
    let digits = match &mut column.kind {
        ColumnKind::Numbers(numbers) => numbers.number(row).integer_digits(),
        ColumnKind::Texts(cuts, texts) => {
            let range = cuts.range(row);
            texts.as_str().get(range).map(str::to_owned)
        }
        ColumnKind::Enums(enums) if enums.is_unit(row) => {
            enums.names.get(enums.code(row)).map(|name| name.clone().into_owned())
        }
        ColumnKind::Items(items) => Some(key_text(items.at(row).0.as_slice())),
        _ => None,
    };
    digits.unwrap_or_else(|| format!("<{}>", column.kind.name()))
}

/// An enum.
pub struct RowVariant<'c, 'de> {
    key: EntryKey<'c, 'de>,
    /// `None` if it is a unit variant, or if the content was read.
    content: Option<Row<'c, 'de>>,
}

impl<'c, 'de> RowVariant<'c, 'de> {
    pub fn new(key: EntryKey<'c, 'de>, content: Option<Row<'c, 'de>>) -> Self {
        Self { key, content }
    }

    pub fn unit(name: RowName<'c, 'de>) -> Self {
        Self::new(EntryKey::Name(name), None)
    }

    /// Passes the enum to a visitor, which must take its content.
    #[inline]
    pub fn visit<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        let value = visitor.visit_enum(&mut self)?;
        if self.content.is_some() { Err(not_read()) } else { Ok(value) }
    }

    /// The content, which is not there if the variant is a unit variant.
    #[inline]
    fn content(&mut self, expected: &str) -> Result<Row<'c, 'de>> {
        match self.content.take() {
            Some(content) => Ok(content),
            None => Err(invalid(Unexpected::UnitVariant, &expected)),
        }
    }

    /// Adds the name of the variant to the path of an error in its content, which is at this offset.
    #[cold]
    #[inline(never)]
    fn in_content(&mut self, at: u64, error: Error) -> Error {
        located(error, at).in_field(match &mut self.key {
            EntryKey::Row(key) => step(key.column, key.row),
            EntryKey::Name(name) => name.as_str().to_owned(),
        })
    }
}

#[cold]
pub(in crate::de) fn not_read() -> Error {
    Error::data("the visitor of an enum did not read the content of its variant")
}

impl<'de> de::EnumAccess<'de> for &mut RowVariant<'_, 'de> {
    type Error = Error;
    type Variant = Self;

    #[inline]
    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self)> {
        let variant = match &mut self.key {
            EntryKey::Name(name) => seed.deserialize(*name),
            EntryKey::Row(key) => seed.deserialize(Row::new(key.column, key.row, key.allowance)),
        };
        Ok((variant?, self))
    }
}

impl<'de> de::VariantAccess<'de> for &mut RowVariant<'_, 'de> {
    type Error = Error;

    #[inline]
    fn unit_variant(self) -> Result<()> {
        let Some(content) = self.content.take() else { return Ok(()) };
        let at = content.column.at;
        content.unit(&"unit variant").map_err(|error| self.in_content(at, error))
    }

    #[inline]
    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value> {
        let content = self.content("newtype variant")?;
        content.allowance.place(const { &budget::ElementSize::of::<T::Value>() });
        let at = content.column.at;
        seed.deserialize(content).map_err(|error| self.in_content(at, error))
    }

    #[inline]
    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value> {
        let content = self.content("tuple variant")?;
        let at = content.column.at;
        let value = de::Deserializer::deserialize_tuple(content, len, visitor);
        value.map_err(|error| self.in_content(at, error))
    }

    #[inline]
    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let content = self.content("struct variant")?;
        let at = content.column.at;
        let value = de::Deserializer::deserialize_struct(content, "", fields, visitor);
        value.map_err(|error| self.in_content(at, error))
    }
}
