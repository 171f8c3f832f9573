//! The methods of serde's `Deserializer` for a row of a column.

use std::borrow::Cow;

use serde::de::{self, Unexpected, Visitor};

use super::access::{
    Content, Entries, Fields, InOrder, Key, ListItems, OneEntry, TupleItems, Variant, variant_of,
};
use super::with_item;
use crate::de::access::UnitVariant;
use crate::de::bulk;
use crate::de::items::visit_bytes;
use crate::dtype::DType;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::handoff::name;
use crate::serde_model::{Narrowing, invalid, one_more, visit_numbers, wrong_number};
use crate::value;
use crate::wire::columns::{Allowance, Column, Cuts, Field, Kind, NumberType, Structs, TextData};
use crate::wire::number::Numeric;

/// A row of a column.
pub struct Row<'c, 'de> {
    pub(super) column: &'c mut Column<'de>,
    pub(super) row: usize,
    pub(super) allowance: &'c Allowance,
    /// How many options were entered that are not in the data: see [`one_more`].
    somes: usize,
}

/// Reads the row with the deserializer for items if it is an item.
macro_rules! or_item {
    ($row:expr, $de:ident => $read:expr) => {
        if let Kind::Items(items) = &mut $row.column.kind {
            return with_item(items, $row.row, $row.allowance, |$de| $read);
        }
    };
}

impl<'c, 'de> Row<'c, 'de> {
    #[inline(always)]
    pub fn new(column: &'c mut Column<'de>, row: usize, allowance: &'c Allowance) -> Self {
        Self { column, row, allowance, somes: 0 }
    }

    /// The row that an optional value holds. If it holds none, the row of the column of options.
    #[inline(always)]
    pub(super) fn inner(self) -> Self {
        if matches!(self.column.kind, Kind::Optional(_)) { self.inner_of_some() } else { self }
    }

    fn inner_of_some(self) -> Self {
        let Self { mut column, mut row, allowance, somes } = self;
        while let Some(inner) = column.some(row) {
            (column, row) = (column.inside(), inner);
        }
        Self { column, row, allowance, somes }
    }

    /// An error for a row of a kind that the visitor does not expect.
    #[cold]
    pub(super) fn wrong(&self, expected: &dyn de::Expected) -> Error {
        let error = match &self.column.kind {
            Kind::Numbers(numbers) => wrong_number(numbers.number(self.row), expected),
            Kind::Bools(bits) => invalid(Unexpected::Bool(bits.get(self.row)), expected),
            _ => invalid(Unexpected::Other(self.column.name()), expected),
        };
        error.at(self.column.at)
    }

    #[cold]
    fn wrong_number<T>(&self, number: Numeric, expected: &dyn de::Expected) -> Result<T> {
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

    /// Reads a row that is an array.
    fn seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        let result = match &mut column.kind {
            Kind::Lists(lists) => {
                let (cuts, column) = &mut **lists;
                let range = cuts.range(row);
                if let Kind::Numbers(numbers) = &column.kind
                    && bulk::is_vec_of::<V>(&numbers.kind.dtype())
                    && let Some(bytes) = numbers.run(range.start, range.len())
                {
                    allowance.charge(bytes.as_slice().len() as u64)?;
                    let made = Elements::copied_from_le(&numbers.kind.dtype(), bytes.as_slice())?;
                    let made = made.into_vec_as();
                    return made.ok_or_else(|| Error::data("expected a vector of numbers").at(at));
                }
                let mut elements = ListItems::new(column, range, allowance);
                let value = visitor.visit_seq(&mut elements);
                value.and_then(|value| Self::close(value, elements.left(), "an array"))
            }
            Kind::Tuples(columns) => {
                let mut items = TupleItems::new(columns, row, allowance);
                let value = visitor.visit_seq(&mut items);
                value.and_then(|value| Self::close(value, items.left(), "an array"))
            }
            _ => return Err(Self { column, row, allowance, somes: 0 }.wrong(&visitor)),
        };
        result.map_err(|error| error.at(at))
    }

    /// Reads a row that is a map.
    fn map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        let result = match &mut column.kind {
            Kind::Structs(structs) => Self::fields(structs, row, allowance, visitor),
            Kind::Maps(maps) => {
                let mut entries = Entries::new(maps, row, allowance);
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

    fn text<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        let result = match &mut column.kind {
            Kind::Texts(cuts, texts) => visit_text(cuts, texts, row, visitor),
            Kind::Enums(enums) => match variant_of(enums, row, allowance) {
                (Cow::Borrowed(name), None) => visitor.visit_borrowed_str(name),
                (Cow::Owned(name), None) => visitor.visit_str(name),
                (_, Some(_)) => Err(invalid(Unexpected::Other("map"), &visitor)),
            },
            _ => return Err(Self { column, row, allowance, somes: 0 }.wrong(&visitor)),
        };
        result.map_err(|error| error.at(at))
    }

    /// Reads a row that is a byte string.
    fn bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let Kind::Bytes(cuts, bytes) = &mut self.column.kind else {
            return Err(self.wrong(&visitor));
        };
        let range = cuts.range(self.row);
        visit_bytes(bytes.part(range), visitor)
    }
}

#[cold]
fn more(left: usize, what: &str) -> Error {
    Error::data(format!("expected the end of {what}, found {left} more elements"))
}

#[cold]
fn not_one_entry(found: usize) -> Error {
    let found = format!("map of {found} entries");
    invalid(Unexpected::Other(&found), &"an enum: a map of one entry")
}

#[inline]
fn visit_text<'de, V: Visitor<'de>>(
    cuts: &mut Cuts<'de>,
    texts: &TextData<'de>,
    row: usize,
    visitor: V,
) -> Result<V::Value> {
    let range = cuts.range(row);
    // Cuts were checked to be between characters.
    match texts {
        TextData::Borrowed(text) => visitor.visit_borrowed_str(text.get(range).unwrap_or_default()),
        TextData::Owned(text) => visitor.visit_str(text.get(range).unwrap_or_default()),
    }
}

/// The most common rows are read here. All others are left to the method that is named last.
macro_rules! integers {
    ($($method:ident $visit:ident $type:ty, $kind:ident, $other:ident;)*) => {$(
        #[inline(always)]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            if let Kind::Numbers(numbers) = &self.column.kind
                && numbers.kind == NumberType::$kind
            {
                return visitor.$visit(<$type>::from_le_bytes(numbers.word(self.row)));
            }
            self.$other(visitor)
        }
    )*};
}

macro_rules! other_integers {
    ($($method:ident $visit:ident $type:ty, $kind:ident, $other:ident;)*) => {$(
        #[inline(never)]
        fn $other<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
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

impl<'de> Row<'_, 'de> {
    with_integers!(other_integers);

    #[inline(never)]
    fn other_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de::Deserializer::deserialize_bool(de, visitor));
        match &row.column.kind {
            Kind::Bools(bits) => visitor.visit_bool(bits.get(row.row)),
            _ => Err(row.wrong(&visitor)),
        }
    }

    #[inline(never)]
    fn other_single<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
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
    fn other_double<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
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
    fn other_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de::Deserializer::deserialize_str(de, visitor));
        row.text(visitor)
    }

    #[inline(never)]
    fn other_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de::Deserializer::deserialize_struct(de, name, fields, visitor));
        match &row.column.kind {
            // Some other encoders write structs as arrays.
            Kind::Lists(_) | Kind::Tuples(_) => row.seq(visitor),
            _ => row.map(visitor),
        }
    }

    /// Reads the fields of a struct.
    #[inline(always)]
    fn fields<V: Visitor<'de>>(
        structs: &mut Structs<'de>,
        row: usize,
        allowance: &Allowance,
        visitor: V,
    ) -> Result<V::Value> {
        let mut fields = Fields::new(&mut structs.fields, row, allowance);
        let value = visitor.visit_map(&mut fields)?;
        Self::close(value, fields.left(), "a map")
    }

    #[inline(never)]
    fn other_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de::Deserializer::deserialize_seq(de, visitor));
        match &mut row.column.kind {
            Kind::Tensors(_) => row.tensor_seq(visitor),
            Kind::Bytes(cuts, bytes) => {
                let bytes = bytes.part(cuts.range(row.row));
                visit_numbers(&DType::U8, Narrowing::Nearest, bytes.as_slice(), visitor)
                    .map_err(|error| error.at(row.column.at))
            }
            _ => row.seq(visitor),
        }
    }
}

impl<'de> de::Deserializer<'de> for Row<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(inner) = self.column.some(self.row) {
            let (column, allowance) = (self.column.inside(), self.allowance);
            let is_marked = column.needs_some(inner);
            let row = Row::new(column, inner, allowance);
            return if is_marked { visitor.visit_some(row) } else { row.deserialize_any(visitor) };
        }
        or_item!(self, de => de.deserialize_any(visitor));
        match &mut self.column.kind {
            Kind::Numbers(numbers) => match numbers.number(self.row) {
                Numeric::Single(value) => visitor.visit_f32(value),
                Numeric::Double(value) => visitor.visit_f64(value),
                Numeric::Int { negative: false, .. } => {
                    let value = numbers.integer(self.row).map(i64::cast_unsigned);
                    visitor.visit_u64(
                        value.unwrap_or_else(|| u64::from_le_bytes(numbers.word(self.row))),
                    )
                }
                Numeric::Int { negative: true, .. } => {
                    visitor.visit_i64(numbers.integer(self.row).unwrap_or_default())
                }
            },
            Kind::Bools(bits) => visitor.visit_bool(bits.get(self.row)),
            Kind::Unit | Kind::Optional(_) => visitor.visit_unit(),
            Kind::Texts(..) => self.text(visitor),
            Kind::Bytes(..) => self.bytes(visitor),
            Kind::Lists(_) | Kind::Tuples(_) => self.seq(visitor),
            Kind::Structs(_) | Kind::Maps(_) => self.map(visitor),
            Kind::Enums(enums) if enums.is_unit(self.row) => self.text(visitor),
            Kind::Enums(_) => self.map(visitor),
            Kind::Tensors(_) => self.shown_tensor(visitor),
            Kind::Items(_) => Err(self.wrong(&visitor)),
        }
    }

    #[inline(always)]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match &self.column.kind {
            Kind::Bools(bits) => visitor.visit_bool(bits.get(self.row)),
            _ => self.other_bool(visitor),
        }
    }

    with_integers!(integers);

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de.deserialize_i128(visitor));
        let Kind::Numbers(numbers) = &row.column.kind else { return Err(row.wrong(&visitor)) };
        let number = numbers.number(row.row);
        match number.as_int() {
            Some(value) => visitor.visit_i128(value),
            None => row.wrong_number(number, &visitor),
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de.deserialize_u128(visitor));
        let Kind::Numbers(numbers) = &row.column.kind else { return Err(row.wrong(&visitor)) };
        let number = numbers.number(row.row);
        match number.as_unsigned() {
            Some(value) => visitor.visit_u128(value),
            None => row.wrong_number(number, &visitor),
        }
    }

    #[inline(always)]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Kind::Numbers(numbers) = &self.column.kind
            && numbers.kind == NumberType::F32
        {
            return visitor.visit_f32(f32::from_le_bytes(numbers.word(self.row)));
        }
        self.other_single(visitor)
    }

    #[inline(always)]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Kind::Numbers(numbers) = &self.column.kind
            && numbers.kind == NumberType::F64
        {
            return visitor.visit_f64(f64::from_le_bytes(numbers.word(self.row)));
        }
        self.other_double(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline(always)]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match &mut self.column.kind {
            Kind::Texts(cuts, texts) => visit_text(cuts, texts, self.row, visitor),
            _ => self.other_str(visitor),
        }
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de.deserialize_bytes(visitor));
        match &row.column.kind {
            Kind::Lists(_) | Kind::Tuples(_) => row.seq(visitor),
            _ => row.bytes(visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        or_item!(self, de => de.deserialize_option(visitor));
        match &self.column.kind {
            Kind::Unit => visitor.visit_none(),
            Kind::Optional(_) => match self.column.some(self.row) {
                Some(inner) => {
                    visitor.visit_some(Row::new(self.column.inside(), inner, self.allowance))
                }
                None => visitor.visit_none(),
            },
            _ => {
                let somes = one_more(self.somes).map_err(|error| error.at(self.column.at))?;
                visitor.visit_some(Self { somes, ..self })
            }
        }
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
            name::TENSOR => self.tensor(visitor),
            name::VALUE => {
                let value = value::read_row(self.column, self.row, self.allowance)?;
                value::offer(value, || visitor.visit_unit())
            }
            name::RAW => {
                or_item!(self, de => de.deserialize_newtype_struct(name, visitor));
                // A row is not encoded anywhere, so it is encoded now.
                let value = value::read_row(self.column, self.row, self.allowance)?;
                let bytes = crate::to_vec(&value)?;
                self.allowance.charge(bytes.len() as u64)?;
                visitor.visit_byte_buf(bytes)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Kind::Lists(_) | Kind::Tuples(_) = &self.column.kind {
            return self.seq(visitor);
        }
        self.other_seq(visitor)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_seq(visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de.deserialize_map(visitor));
        match &row.column.kind {
            Kind::Tensors(_) => row.shown_tensor(visitor),
            _ => row.map(visitor),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if let Kind::Structs(structs) = &mut self.column.kind {
            let value = if structs.match_visitor::<V>(fields) {
                let mut fields = InOrder::new(&mut structs.fields, self.row, self.allowance);
                let value = visitor.visit_seq(&mut fields);
                value.and_then(|value| Self::close(value, fields.left(), "a map"))
            } else {
                Self::fields(structs, self.row, self.allowance, visitor)
            };
            return value.map_err(|error| error.at(self.column.at));
        }
        self.other_struct(name, fields, visitor)
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de.deserialize_enum(name, variants, visitor));
        let Row { column, row, allowance, .. } = row;
        let at = column.at;
        let result = match &mut column.kind {
            Kind::Enums(enums) => match variant_of(enums, row, allowance) {
                (Cow::Borrowed(name), None) => visitor.visit_enum(UnitVariant::borrowed(name)),
                (Cow::Owned(name), None) => visitor.visit_enum(UnitVariant::copied(name)),
                (name, Some(content)) => Variant::visit(Key::Name(name), content, visitor),
            },
            Kind::Texts(cuts, texts) => {
                let range = cuts.range(row);
                match texts {
                    TextData::Borrowed(text) => {
                        let name = text.get(range).unwrap_or_default();
                        visitor.visit_enum(UnitVariant::borrowed(name))
                    }
                    TextData::Owned(text) => {
                        let name = text.get(range).unwrap_or_default();
                        visitor.visit_enum(UnitVariant::copied(name))
                    }
                }
            }
            Kind::Structs(Structs { fields, .. }) => {
                let is_present = |field: &&mut Field<'_>| field.is_present(row);
                let present = fields.iter_mut().filter(is_present).count();
                match fields.iter_mut().find(is_present) {
                    Some(field) if present == 1 => {
                        let row = field.inner(row);
                        let content = Content { column: &mut field.column, row, allowance };
                        Variant::visit(Key::Name(&field.name), content, visitor)
                    }
                    _ => Err(not_one_entry(present)),
                }
            }
            Kind::Maps(maps) => {
                let range = maps.cuts.range(row);
                if range.len() == 1 {
                    let row = range.start;
                    let content = Content { column: &mut maps.values, row, allowance };
                    Variant::visit(Key::Row(&mut maps.keys, row), content, visitor)
                } else {
                    Err(not_one_entry(range.len()))
                }
            }
            _ => return Err(Row { column, row, allowance, somes: 0 }.wrong(&visitor)),
        };
        result.map_err(|error| error.at(at))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de.deserialize_identifier(visitor));
        match &row.column.kind {
            Kind::Bytes(..) => row.bytes(visitor),
            _ => row.text(visitor),
        }
    }

    /// Nothing is read: a column that no later row asks for costs nothing.
    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}
