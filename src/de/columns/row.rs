//! Reads a row of a column as an array, a map, a text and so on. The methods named `other` also read rows that are
//! options or items, and convert numbers.

use std::borrow::Cow;
use std::ops::Range;

use serde::de::{self, Unexpected, Visitor};

use super::access::{Entries, Fields, ListItems, OneEntry, TupleItems, variant_of};
use super::vectors::vec_of_rows;
use super::with_item;
use crate::budget::{Budget, MapRoom, Room};
use crate::de::items::visit_bytes;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::serde_model::{
    Collect, Narrowing, invalid, visit_collected, visit_numbers, wrong_number,
};
use crate::wire::columns::{Column, Cuts, Kind, NumberType, Structs, TextData};
use crate::wire::number::Numeric;

/// A row of a column.
pub struct Row<'c, 'de> {
    pub(super) column: &'c mut Column<'de>,
    pub(super) row: usize,
    pub(super) allowance: &'c Budget,
    /// The number of options that were entered but are not in the data: see
    /// [`one_more`](crate::serde_model::one_more).
    pub(super) somes: usize,
}

/// Reads the row with the deserializer for items if it is an item.
macro_rules! or_item {
    ($row:expr, $de:ident => $read:expr) => {
        if let Kind::Items(items) = &mut $row.column.kind {
            return with_item(items, $row.row, $row.allowance, |$de| $read);
        }
    };
}
pub(super) use or_item;

impl<'c, 'de> Row<'c, 'de> {
    #[inline(always)]
    pub fn new(column: &'c mut Column<'de>, row: usize, allowance: &'c Budget) -> Self {
        Self { column, row, allowance, somes: 0 }
    }

    /// If the column holds optional values or is a dict, returns the row of the inner column. If there is none because the value is
    /// `None`, returns this row.
    #[inline(always)]
    pub(super) fn inner(mut self) -> Self {
        (self.column, self.row) = self.column.innermost(self.row);
        self
    }

    /// If the column is a dict, the row of the column in it.
    #[inline]
    pub(super) fn distinct(mut self) -> Self {
        (self.column, self.row) = self.column.distinct(self.row);
        self
    }

    /// An error for a row of a kind that the visitor does not expect.
    #[cold]
    pub(super) fn wrong(&self, expected: &dyn de::Expected) -> Error {
        let error = match &self.column.kind {
            Kind::Numbers(numbers) => wrong_number(numbers.number(self.row), expected),
            Kind::Bools(bits) => invalid(Unexpected::Bool(bits.get(self.row)), expected),
            _ => invalid(Unexpected::Other(self.column.kind.name()), expected),
        };
        error.at(self.column.at)
    }

    #[cold]
    pub(super) fn wrong_number<T>(
        &self,
        number: Numeric,
        expected: &dyn de::Expected,
    ) -> Result<T> {
        Err(wrong_number(number, expected).at(self.column.at))
    }

    /// Checks that a visitor has taken all elements or entries.
    #[inline]
    pub(super) fn close<T>(value: T, left: usize, what: &str) -> Result<T> {
        if left == 0 { Ok(value) } else { Err(more(left, what)) }
    }

    /// Reads a unit: null, or an empty array, which some other encoders write.
    pub(super) fn unit(self, expected: &dyn de::Expected) -> Result<()> {
        let row = self.inner();
        or_item!(row, de => de.unit(expected));
        let is_unit = match &mut row.column.kind {
            Kind::Unit | Kind::Optional(_) => true,
            Kind::Lists(lists) => lists.0.range(row.row).is_empty(),
            Kind::Tuples(columns) => columns.is_empty(),
            _ => false,
        };
        if is_unit { Ok(()) } else { Err(row.wrong(expected)) }
    }

    /// Reads a row that is an array. `room` is that of its elements.
    pub(super) fn seq<V: Visitor<'de>>(self, room: Room, visitor: V) -> Result<V::Value> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        let result = match &mut column.kind {
            Kind::Lists(lists) => {
                let (cuts, column) = &mut **lists;
                return Self::list(column, cuts.range(row), allowance, room, at, visitor);
            }
            Kind::Tuples(columns) => {
                let mut items = TupleItems::new(columns, row, allowance, room);
                let value = visitor.visit_seq(&mut items);
                value.and_then(|value| Self::close(value, items.left(), "an array"))
            }
            _ => return Err(Self { column, row, allowance, somes: 0 }.wrong(&visitor)),
        };
        result.map_err(|error| error.at(at))
    }

    /// Reads a row of a column of lists. `rows` are its rows in the column of the elements, and `at` is the offset of
    /// the column in the input.
    #[inline(always)]
    pub(super) fn list<V: Visitor<'de>>(
        column: &mut Column<'de>,
        rows: Range<usize>,
        allowance: &Budget,
        room: Room,
        at: u64,
        visitor: V,
    ) -> Result<V::Value> {
        match vec_of_rows::<V>(column, rows.clone(), allowance) {
            Some(Ok(vec)) => Ok(vec),
            Some(Err(error)) => Err(error.at(at)),
            None => Self::elements(column, rows, allowance, room, at, visitor),
        }
    }

    fn elements<V: Visitor<'de>>(
        column: &mut Column<'de>,
        rows: Range<usize>,
        allowance: &Budget,
        room: Room,
        at: u64,
        visitor: V,
    ) -> Result<V::Value> {
        let mut elements = ListItems::new(column, rows, allowance, room);
        let mut value = visitor.visit_seq(&mut elements);
        if value.is_err() || elements.left() > 0 {
            value = value.and_then(|value| Self::close(value, elements.left(), "an array"));
            value = value.map_err(|error| error.at(at));
        }
        value
    }

    /// Reads a row that is a map. `room` is that of its entries.
    pub(super) fn map<V: Visitor<'de>>(self, room: MapRoom, visitor: V) -> Result<V::Value> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        let result = match &mut column.kind {
            Kind::Structs(structs) => Self::fields(structs, row, allowance, room, visitor),
            Kind::Maps(maps) => {
                let mut entries = Entries::new(maps, row, allowance, room);
                let value = visitor.visit_map(&mut entries);
                value.and_then(|value| Self::close(value, entries.left(), "a map"))
            }
            Kind::Enums(enums) => match variant_of(enums, row, allowance) {
                (name, Some(content)) => {
                    let mut entry = OneEntry::new(name, content);
                    let value = visitor.visit_map(&mut entry);
                    value.and_then(|value| Self::close(value, entry.left(), "a map"))
                }
                (_, None) => Err(invalid(Unexpected::Other("text string"), &visitor)),
            },
            _ => return Err(Self { column, row, allowance, somes: 0 }.wrong(&visitor)),
        };
        result.map_err(|error| error.at(at))
    }

    pub(super) fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        let result = match &mut column.kind {
            Kind::Texts(cuts, texts) => visit_text(cuts, texts, row, allowance, visitor),
            Kind::Enums(enums) => match variant_of(enums, row, allowance) {
                (name, None) => {
                    // Many rows can have the same name.
                    allowance.charge(name.len() as u64).map_err(|error| error.at(at))?;
                    match name {
                        Cow::Borrowed(name) => visitor.visit_borrowed_str(name),
                        Cow::Owned(name) => visitor.visit_str(name),
                    }
                }
                (_, Some(_)) => Err(invalid(Unexpected::Other("map"), &visitor)),
            },
            _ => return Err(Self { column, row, allowance, somes: 0 }.wrong(&visitor)),
        };
        result.map_err(|error| error.at(at))
    }

    /// Reads a row that is a sequence, for a visitor that wants bytes.
    pub(super) fn sequence_of_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Kind::Lists(lists) = &mut self.column.kind {
            let (cuts, elements) = &mut **lists;
            if let Kind::Numbers(numbers) = &elements.kind
                && numbers.kind == NumberType::U8
            {
                let bytes = numbers.run(cuts.range(self.row));
                if !bytes.is_borrowed() {
                    self.allowance.charge(bytes.as_slice().len() as u64)?;
                }
                return visit_bytes(bytes, visitor);
            }
        }
        visit_collected(self.seq(Room::NONE, Collect)?, visitor)
    }

    /// Reads a row that is a byte string.
    pub(super) fn bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Kind::Bytes(cuts, bytes) = &mut self.column.kind else {
            return Err(self.wrong(&visitor));
        };
        let range = cuts.range(self.row);
        if !bytes.is_borrowed() {
            self.allowance.charge(range.len() as u64)?;
        }
        visit_bytes(bytes.part(range), visitor)
    }
}

#[cold]
fn more(left: usize, what: &str) -> Error {
    Error::data(format!("expected the end of {what}, found {left} more elements"))
}

#[inline]
fn visit_text<'de, V: Visitor<'de>>(
    cuts: &mut Cuts<'de>,
    texts: &TextData<'de>,
    row: usize,
    allowance: &Budget,
    visitor: V,
) -> Result<V::Value> {
    let range = cuts.range(row);
    // The offsets were checked to be between characters.
    match texts {
        TextData::Borrowed(text) => visitor.visit_borrowed_str(text.get(range).unwrap_or_default()),
        TextData::Owned(text) => {
            allowance.charge(range.len() as u64)?;
            visitor.visit_str(text.get(range).unwrap_or_default())
        }
    }
}

/// Reads an integer from a row of any type.
macro_rules! other_integers {
    ($($method:ident $visit:ident $type:ty, $kind:ident, $other:ident;)*) => {$(
        #[inline(never)]
        pub(super) fn $other<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            let row = self.inner();
            or_item!(row, de => de::Deserializer::$method(de, visitor));
            let Kind::Numbers(numbers) = &row.column.kind else {
                return Err(row.wrong(&visitor));
            };
            if let Some(Ok(value)) = numbers.integer(row.row).map(<$type>::try_from) {
                return visitor.$visit(value);
            }
            let number = numbers.number(row.row);
            match number.as_int().map(<$type>::try_from) {
                Some(Ok(value)) => visitor.$visit(value),
                _ => row.wrong_number(number, &visitor),
            }
        }
    )*};
}

/// Passes the types of integers to a macro.
macro_rules! with_integers {
    ($macro:ident) => {
        $macro! {
            deserialize_u8 visit_u8 u8, U8, other_u8;
            deserialize_u16 visit_u16 u16, U16, other_u16;
            deserialize_u32 visit_u32 u32, U32, other_u32;
            deserialize_u64 visit_u64 u64, U64, other_u64;
            deserialize_i8 visit_i8 i8, I8, other_i8;
            deserialize_i16 visit_i16 i16, I16, other_i16;
            deserialize_i32 visit_i32 i32, I32, other_i32;
            deserialize_i64 visit_i64 i64, I64, other_i64;
        }
    };
}
pub(super) use with_integers;

impl<'de> Row<'_, 'de> {
    with_integers!(other_integers);

    #[inline(never)]
    pub(super) fn other_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de::Deserializer::deserialize_bool(de, visitor));
        match &row.column.kind {
            Kind::Bools(bits) => visitor.visit_bool(bits.get(row.row)),
            _ => Err(row.wrong(&visitor)),
        }
    }

    #[inline(never)]
    pub(super) fn other_single<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de::Deserializer::deserialize_f32(de, visitor));
        let Kind::Numbers(numbers) = &row.column.kind else { return Err(row.wrong(&visitor)) };
        let number = numbers.number(row.row);
        match number.to_single() {
            Some(value) => visitor.visit_f32(value),
            None => row.wrong_number(number, &visitor),
        }
    }

    #[inline(never)]
    pub(super) fn other_double<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de::Deserializer::deserialize_f64(de, visitor));
        let Kind::Numbers(numbers) = &row.column.kind else { return Err(row.wrong(&visitor)) };
        let number = numbers.number(row.row);
        match number.as_double() {
            Some(value) => visitor.visit_f64(value),
            None => row.wrong_number(number, &visitor),
        }
    }

    #[inline(never)]
    pub(super) fn other_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de::Deserializer::deserialize_str(de, visitor));
        row.text(visitor)
    }

    #[inline(never)]
    pub(super) fn other_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de::Deserializer::deserialize_struct(de, name, fields, visitor));
        row.allowance.charge_box::<V::Value>()?;
        match &row.column.kind {
            // Some other encoders write structs as arrays.
            Kind::Lists(_) | Kind::Tuples(_) => row.seq(Room::INSIDE, visitor),
            _ => row.map(MapRoom::INSIDE, visitor),
        }
    }

    /// Reads the fields of a struct.
    #[inline]
    pub(super) fn fields<V: Visitor<'de>>(
        structs: &mut Structs<'de>,
        row: usize,
        allowance: &Budget,
        room: MapRoom,
        visitor: V,
    ) -> Result<V::Value> {
        let mut fields = Fields::new(&mut structs.fields, row, allowance, room);
        let value = visitor.visit_map(&mut fields)?;
        Self::close(value, fields.left(), "a map")
    }

    #[inline(never)]
    pub(super) fn other_seq<V: Visitor<'de>>(self, room: Room, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de.sequence(room, visitor));
        match &mut row.column.kind {
            Kind::Tensors(_) => row.tensor_seq(visitor),
            Kind::Bytes(cuts, bytes) => {
                let bytes = bytes.part(cuts.range(row.row));
                let (bytes, budget) = (bytes.as_slice(), Some(row.allowance));
                visit_numbers(&DType::U8, Narrowing::Nearest, bytes, budget, visitor)
                    .map_err(|error| error.at(row.column.at))
            }
            _ => row.seq(room, visitor),
        }
    }
}
