//! serde's `Deserializer` for a row of a column. What is not an item of its own is read as one, too: an element of a typed
//! array, a tensor for a visitor that wants a map.
//!
//! The type of a user is compiled for two deserializers, [`ValueDecoder`] and this one. So what does not call the user's visitor
//! is in functions without its type.

use serde::de::{self, Unexpected, Visitor};

use super::access::{EntryKey, RowElements, RowEntries, RowVariant};
use super::item::RowItem;
use super::name::RowName;
use super::row::{Row, located};
use super::shown::{ShownText, shown};
use super::tensors::Presented;
use super::vectors::{vec_of_rows, vec_of_tensor};
use crate::budget::{Budget, MapRoom, Room};
use crate::de::bulk::{self, Fill};
use crate::de::items::encoded;
use crate::de::visit::visit_bytes;
use crate::de::whole::WholeTensor;
use crate::error::{Error, Result};
use crate::handoff::name;
use crate::io::source::SourceBytes;
use crate::mem::AnyVec;
use crate::serde_model::{
    Collect, invalid, keeps_any_key, one_more, visit_collected, wrong_number,
};
use crate::value;
use crate::wire::columns::{
    Column, ColumnKind, ColumnNumbers, EncodedRows, Enum, NumberType, Offsets, TextData,
};
use crate::wire::number::Numeric;

/// Reads the row with the decoder if it is an item.
macro_rules! or_item {
    ($row:ident, $de:ident => $read:expr) => {
        if let Some((items, number, allowance)) = $row.items() {
            let mut item = RowItem::of(items, number, allowance);
            let $de = &mut item.decoder;
            let value = $read;
            let at = item.end(items, number, allowance, value.is_ok());
            return value.map_err(|error| error.at(at));
        }
    };
}

/// Something with elements or entries.
pub enum RowCompound<'c, 'de> {
    Elements(RowElements<'c, 'de>),
    Entries(RowEntries<'c, 'de>),
}

/// What a visitor of any type is given.
enum RowContent<'c, 'de> {
    Number(Numeric),
    Bool(bool),
    Unit,
    Text(ShownText<'de, 'c>),
    Bytes(SourceBytes<'de, 'c>),
    Compound(RowCompound<'c, 'de>),
}

impl<'c, 'de> Row<'c, 'de> {
    /// The items that this row is one of.
    #[inline]
    fn items(&mut self) -> Option<(&mut EncodedRows<'de>, usize, &'c Budget)> {
        match &mut self.column.kind {
            ColumnKind::Items(items) => Some((items, self.row, self.allowance)),
            _ => None,
        }
    }

    /// An error for a value of a kind that the visitor does not expect.
    #[cold]
    fn wrong(&self, expected: &dyn de::Expected) -> Error {
        wrong_row(&self.column.kind, self.row, self.column.at, expected)
    }

    #[cold]
    fn wrong_number(&self, number: Numeric, expected: &dyn de::Expected) -> Error {
        located(wrong_number(number, expected), self.column.at)
    }

    #[inline(never)]
    fn number(&self, expected: &dyn de::Expected) -> Result<Numeric> {
        match &self.column.kind {
            ColumnKind::Numbers(numbers) => Ok(numbers.number(self.row)),
            _ => Err(self.wrong(expected)),
        }
    }

    #[inline(never)]
    fn bool(
        column: &mut Column<'de>,
        row: usize,
        allowance: &Budget,
        expected: &dyn de::Expected,
    ) -> Result<bool> {
        let mut row = Row::new(column, row, allowance).inner();
        or_item!(row, de => de.boolean(expected));
        match &row.column.kind {
            ColumnKind::Bools(bits) => Ok(bits.get(row.row)),
            _ => Err(row.wrong(expected)),
        }
    }

    /// A number as `convert` returns it, which is told whether only exact conversions are allowed. It returns `None` if the
    /// number does not fit.
    fn number_as<A>(
        column: &mut Column<'de>,
        row: usize,
        allowance: &Budget,
        expected: &dyn de::Expected,
        convert: impl Fn(Numeric, bool) -> Option<A>,
    ) -> Result<A> {
        let mut row = Row::new(column, row, allowance).inner();
        or_item!(row, de => de.number_as(expected, |number| convert(number, false)));
        let number = row.number(expected)?;
        let exact = matches!(&row.column.kind, ColumnKind::Numbers(numbers) if numbers.exact);
        convert(number, exact).ok_or_else(|| row.wrong_number(number, expected))
    }

    /// An integer between these bounds.
    #[inline(never)]
    fn integer(
        column: &mut Column<'de>,
        row: usize,
        allowance: &Budget,
        (least, most): &'static (i128, i128),
        expected: &dyn de::Expected,
    ) -> Result<i128> {
        Row::number_as(column, row, allowance, expected, |number, _| {
            number.as_int().filter(|value| (least..=most).contains(&value))
        })
    }

    #[inline(never)]
    fn unsigned(
        column: &mut Column<'de>,
        row: usize,
        allowance: &Budget,
        expected: &dyn de::Expected,
    ) -> Result<u128> {
        Row::number_as(column, row, allowance, expected, |number, _| number.as_unsigned())
    }

    #[inline(never)]
    fn single(
        column: &mut Column<'de>,
        row: usize,
        allowance: &Budget,
        expected: &dyn de::Expected,
    ) -> Result<f32> {
        Row::number_as(column, row, allowance, expected, |number, exact| {
            if exact { number.as_single() } else { number.to_single() }
        })
    }

    #[inline(never)]
    fn double(
        column: &mut Column<'de>,
        row: usize,
        allowance: &Budget,
        expected: &dyn de::Expected,
    ) -> Result<f64> {
        Row::number_as(column, row, allowance, expected, |number, _| number.as_double())
    }

    /// Reads a unit: null, or an empty array, which some other encoders write.
    pub(super) fn unit(self, expected: &dyn de::Expected) -> Result<()> {
        let mut row = self.inner();
        if let Some((items, number, allowance)) = row.items() {
            let mut item = RowItem::of(items, number, allowance);
            let value = item.decoder.unit(expected);
            let at = item.end(items, number, allowance, value.is_ok());
            return value.map_err(|error| error.at(at));
        }
        let is_unit = match &mut row.column.kind {
            ColumnKind::Unit | ColumnKind::Optional(_) => true,
            ColumnKind::Lists(lists) => lists.0.range(row.row).is_empty(),
            ColumnKind::Tuples(columns) => columns.is_empty(),
            _ => false,
        };
        if is_unit { Ok(()) } else { Err(row.wrong(expected)) }
    }

    /// A text. `is_name` if it is only compared, so that nothing is allocated for it.
    #[inline(never)]
    fn text(self, is_name: bool, expected: &dyn de::Expected) -> Result<ShownText<'de, 'c>> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        let charge = |len: usize| if is_name { Ok(()) } else { allowance.charge(len as u64) };
        let text = match &mut column.kind {
            ColumnKind::Texts(cuts, texts) => {
                let text = text_of(cuts, texts, row);
                // What is borrowed is in the input once.
                let copied = if let ShownText::Copied(text) = text { text.len() } else { 0 };
                charge(copied).map(|()| text)
            }
            ColumnKind::Enums(enums) => {
                if enums.is_unit(row) {
                    let text = name_of(enums, row);
                    charge(text.as_str().len()).map(|()| text)
                } else {
                    Err(invalid(Unexpected::Other("map"), expected))
                }
            }
            kind => return Err(wrong_row(kind, row, at, expected)),
        };
        text.map_err(|error| located(error, at))
    }

    /// A byte string, or a sequence of numbers for a visitor that wants bytes.
    #[inline(never)]
    fn bytes(self, expected: &dyn de::Expected) -> Result<SourceBytes<'de, 'c>> {
        let is_sequence = match &self.column.kind {
            ColumnKind::Tuples(_) => true,
            ColumnKind::Lists(lists) => !lists.1.is_u8(),
            _ => false,
        };
        if is_sequence {
            return self.collected(expected);
        }
        let Self { column, row, allowance, is_last, .. } = self;
        let at = column.at;
        let bytes = match &mut column.kind {
            ColumnKind::Bytes(_, data) if is_last => data.take(),
            ColumnKind::Bytes(cuts, data) => data.part(cuts.range(row)),
            ColumnKind::Lists(lists) => match &mut **lists {
                (cuts, Column { kind: ColumnKind::Numbers(numbers), .. }) => {
                    numbers.run(cuts.range(row))
                }
                _ => SourceBytes::Borrowed(&[]),
            },
            kind => return Err(wrong_row(kind, row, at, expected)),
        };
        if let SourceBytes::Copied(bytes) = bytes {
            allowance.charge(bytes.len() as u64)?;
        }
        Ok(bytes)
    }

    /// The elements of a sequence, which are bytes.
    fn collected(self, expected: &dyn de::Expected) -> Result<SourceBytes<'de, 'c>> {
        let at = self.column.at;
        let mut elements = self.elements(Room::NONE, expected)?;
        let bytes = Collect.visit_seq(&mut elements);
        let bytes = bytes.and_then(|bytes| elements.close().map(|()| bytes));
        bytes.map(SourceBytes::Owned).map_err(|error| located(error, at))
    }

    /// The elements of a sequence. `room` is that of the elements.
    #[inline(never)]
    pub(super) fn elements(
        self,
        room: Room,
        expected: &dyn de::Expected,
    ) -> Result<RowElements<'c, 'de>> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        match &mut column.kind {
            ColumnKind::Lists(lists) => {
                let (cuts, column) = &mut **lists;
                Ok(RowElements::of_list(column, cuts.range(row), at, allowance, room))
            }
            ColumnKind::Tuples(columns) => {
                Ok(RowElements::of_tuple(columns, row, at, allowance, room))
            }
            ColumnKind::Bytes(cuts, bytes) => {
                let range = cuts.range(row);
                let rows = 0..range.len();
                let numbers = ColumnNumbers::new(NumberType::U8, bytes.clone().cut(range));
                let column = Column::new(at, ColumnKind::Numbers(numbers));
                Ok(RowElements::own(column, rows, allowance, room))
            }
            ColumnKind::Tensors(tensors) => {
                let column = super::tensors::sequence(tensors, row, at, expected);
                let (column, rows) = column.map_err(|error| located(error, at))?;
                Ok(RowElements::own(column, rows, allowance, room))
            }
            kind => Err(wrong_row(kind, row, at, expected)),
        }
    }

    /// The entries of a map, or the fields of a struct, which are not counted.
    #[inline(never)]
    fn entries(self, room: MapRoom, expected: &dyn de::Expected) -> Result<RowEntries<'c, 'de>> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        match &mut column.kind {
            ColumnKind::Structs(structs) => {
                Ok(RowEntries::of_fields(&mut structs.fields, row, at, allowance, room))
            }
            ColumnKind::Maps(maps) => Ok(RowEntries::of_map(maps, row, at, allowance, room)),
            ColumnKind::Enums(enums) => match Self::variant_of(enums, row, allowance, false) {
                (name, Some(content)) => Ok(RowEntries::one(name, content, at, allowance)),
                (_, None) => Err(invalid(Unexpected::Other("text string"), expected).at(at)),
            },
            ColumnKind::Tensors(tensors) => Presented::row(tensors, row).entries(at, allowance),
            kind => Err(wrong_row(kind, row, at, expected)),
        }
    }

    /// The fields of a struct, or its elements, because some other encoders write structs as arrays.
    #[inline(never)]
    fn fields(self, expected: &dyn de::Expected) -> Result<RowCompound<'c, 'de>> {
        match &self.column.kind {
            ColumnKind::Lists(_) | ColumnKind::Tuples(_) => {
                self.elements(Room::INSIDE, expected).map(RowCompound::Elements)
            }
            ColumnKind::Tensors(_) => Err(self.wrong(expected)),
            _ => self.entries(MapRoom::INSIDE, expected).map(RowCompound::Entries),
        }
    }

    /// The name of the variant in a row of enums, and its content unless it is a unit variant.
    fn variant_of(
        enums: &'c mut Enum<'de>,
        row: usize,
        allowance: &'c Budget,
        can_repeat: bool,
    ) -> (ShownText<'de, 'c>, Option<Self>) {
        let (code, row) = enums.entry(row);
        let content = match enums.columns.get_mut(code) {
            Some(Some(column)) => Some(Self { can_repeat, ..Self::new(column, row, allowance) }),
            _ => None,
        };
        (enums.names.get(code).map_or(ShownText::Borrowed(""), shown), content)
    }

    /// An enum.
    #[inline(never)]
    fn variant(self, expected: &dyn de::Expected) -> Result<RowVariant<'c, 'de>> {
        let Self { column, row, allowance, can_repeat, .. } = self;
        let at = column.at;
        let (key, content) = match &mut column.kind {
            ColumnKind::Enums(enums) => {
                let (name, content) = Self::variant_of(enums, row, allowance, can_repeat);
                (EntryKey::Name(RowName::new(name, allowance)), content)
            }
            ColumnKind::Texts(cuts, texts) => {
                (EntryKey::Name(RowName::new(text_of(cuts, texts, row), allowance)), None)
            }
            ColumnKind::Structs(structs) => {
                let present = structs.fields.iter().filter(|field| field.is_present(row)).count();
                let field = structs.fields.iter_mut().find(|field| field.is_present(row));
                let Some(field) = field.filter(|_| present == 1) else {
                    return Err(not_one_entry(present).at(at));
                };
                let row = field.inner(row);
                let content = Self::new(&mut field.column, row, allowance);
                (EntryKey::Name(RowName::new(shown(&field.name), allowance)), Some(content))
            }
            ColumnKind::Maps(maps) => {
                let range = maps.cuts.range(row);
                if range.len() != 1 {
                    return Err(not_one_entry(range.len()).at(at));
                }
                let content = Self::new(&mut maps.values, range.start, allowance);
                (EntryKey::Row(Self::new(&mut maps.keys, range.start, allowance)), Some(content))
            }
            kind => return Err(wrong_row(kind, row, at, expected)),
        };
        Ok(RowVariant::new(key, content))
    }

    /// Goes into options up to a value, or to an option that has to be visited as one, because its value begins with another
    /// one. Returns the row, and whether there is such an option.
    fn up_to_option(self) -> (Self, bool) {
        let Self { mut column, mut row, allowance, somes, is_last, can_repeat } = self;
        loop {
            (column, row) = column.distinct(row);
            let Some(inner) = column.some(row) else {
                return (Self { column, row, allowance, somes, is_last, can_repeat }, false);
            };
            (column, row) = (column.inside(), inner);
            if column.needs_some(row) {
                return (Self::new(column, row, allowance), true);
            }
        }
    }

    /// The value for a visitor of any type.
    #[inline(never)]
    fn find(self, expected: &dyn de::Expected) -> Result<RowContent<'c, 'de>> {
        match &self.column.kind {
            ColumnKind::Numbers(numbers) => Ok(RowContent::Number(numbers.number(self.row))),
            ColumnKind::Bools(bits) => Ok(RowContent::Bool(bits.get(self.row))),
            ColumnKind::Unit | ColumnKind::Optional(_) => Ok(RowContent::Unit),
            ColumnKind::Texts(..) => self.text(false, expected).map(RowContent::Text),
            ColumnKind::Enums(enums) if enums.is_unit(self.row) => {
                self.text(false, expected).map(RowContent::Text)
            }
            ColumnKind::Bytes(..) => self.bytes(expected).map(RowContent::Bytes),
            ColumnKind::Structs(_)
            | ColumnKind::Maps(_)
            | ColumnKind::Enums(_)
            | ColumnKind::Tensors(_) => {
                let entries = self.entries(MapRoom::NONE, expected)?;
                Ok(RowContent::Compound(RowCompound::Entries(entries)))
            }
            ColumnKind::Lists(_) | ColumnKind::Tuples(_) => {
                let elements = self.elements(Room::NONE, expected)?;
                Ok(RowContent::Compound(RowCompound::Elements(elements)))
            }
            ColumnKind::Items(_) | ColumnKind::Dict(_) => Err(self.wrong(expected)),
        }
    }
}

/// The name of the variant of a row.
fn name_of<'c, 'de>(enums: &'c Enum<'de>, row: usize) -> ShownText<'de, 'c> {
    enums.names.get(enums.code(row)).map_or(ShownText::Borrowed(""), shown)
}

/// The text of a row. The offsets were checked to be between characters.
fn text_of<'c, 'de>(
    cuts: &mut Offsets<'de>,
    texts: &'c TextData<'de>,
    row: usize,
) -> ShownText<'de, 'c> {
    let range = cuts.range(row);
    match texts {
        TextData::Borrowed(text) => ShownText::Borrowed(text.get(range).unwrap_or_default()),
        TextData::Owned(text) => ShownText::Copied(text.get(range).unwrap_or_default()),
    }
}

/// The error for a row of a kind that the visitor does not expect. The column is at offset `at`.
#[cold]
fn wrong_row(kind: &ColumnKind<'_>, row: usize, at: u64, expected: &dyn de::Expected) -> Error {
    let error = match kind {
        ColumnKind::Numbers(numbers) => wrong_number(numbers.number(row), expected),
        ColumnKind::Bools(bits) => invalid(Unexpected::Bool(bits.get(row)), expected),
        _ => invalid(Unexpected::Other(kind.name()), expected),
    };
    located(error, at)
}

#[cold]
fn not_the_vector() -> Error {
    Error::mismatch("expected a vector of numbers")
}

#[cold]
fn not_one_entry(found: usize) -> Error {
    let found = format!("map of {found} entries");
    invalid(Unexpected::Other(&found), &"an enum: a map of one entry")
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty, $kind:ident;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            if let ColumnKind::Numbers(numbers) = &self.column.kind {
                if numbers.kind == NumberType::$kind {
                    return visitor.$visit(<$type>::from_le_bytes(numbers.word(self.row)));
                }
                // Most integers are written in fewer bytes than their type has.
                if size_of::<$type>() > 1
                    && let Some(Ok(value)) = numbers.small_integer(self.row).map(<$type>::try_from)
                {
                    return visitor.$visit(value);
                }
            }
            let bounds = const { &(<$type>::MIN as i128, <$type>::MAX as i128) };
            let value =
                Row::integer(self.column, self.row, self.allowance, bounds, &visitor)?;
            // It is between these bounds.
            visitor.$visit(value.try_into().unwrap_or_default())
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Row<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let (mut row, is_option) = self.up_to_option();
        if is_option {
            return visitor.visit_some(row);
        }
        or_item!(row, de => de.deserialize_any(visitor));
        let at = row.column.at;
        let value = match row.find(&visitor)? {
            RowContent::Number(Numeric::Single(value)) => visitor.visit_f32(value),
            RowContent::Number(Numeric::Double(value)) => visitor.visit_f64(value),
            RowContent::Number(number) => {
                let value = number.as_int().unwrap_or_default();
                match (u64::try_from(value), i64::try_from(value)) {
                    (Ok(value), _) => visitor.visit_u64(value),
                    (_, value) => visitor.visit_i64(value.unwrap_or_default()),
                }
            }
            RowContent::Bool(value) => visitor.visit_bool(value),
            RowContent::Unit => visitor.visit_unit(),
            RowContent::Text(text) => text.visit(visitor),
            RowContent::Bytes(bytes) => visit_bytes(bytes, visitor),
            RowContent::Compound(RowCompound::Elements(elements)) => elements.visit(visitor),
            RowContent::Compound(RowCompound::Entries(entries)) => entries.visit(visitor),
        };
        value.map_err(|error| located(error, at))
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let ColumnKind::Bools(bits) = &self.column.kind {
            return visitor.visit_bool(bits.get(self.row));
        }
        let value = Row::bool(self.column, self.row, self.allowance, &visitor)?;
        visitor.visit_bool(value)
    }

    integers! {
        deserialize_u8 visit_u8 u8, U8;
        deserialize_u16 visit_u16 u16, U16;
        deserialize_u32 visit_u32 u32, U32;
        deserialize_u64 visit_u64 u64, U64;
        deserialize_i8 visit_i8 i8, I8;
        deserialize_i16 visit_i16 i16, I16;
        deserialize_i32 visit_i32 i32, I32;
        deserialize_i64 visit_i64 i64, I64;
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let bounds = const { &(i128::MIN, i128::MAX) };
        let value = Row::integer(self.column, self.row, self.allowance, bounds, &visitor)?;
        visitor.visit_i128(value)
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let value = Row::unsigned(self.column, self.row, self.allowance, &visitor)?;
        visitor.visit_u128(value)
    }

    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let ColumnKind::Numbers(numbers) = &self.column.kind
            && numbers.kind == NumberType::F32
        {
            return visitor.visit_f32(f32::from_le_bytes(numbers.word(self.row)));
        }
        let value = Row::single(self.column, self.row, self.allowance, &visitor)?;
        visitor.visit_f32(value)
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let ColumnKind::Numbers(numbers) = &self.column.kind
            && numbers.kind == NumberType::F64
        {
            return visitor.visit_f64(f64::from_le_bytes(numbers.word(self.row)));
        }
        let value = Row::double(self.column, self.row, self.allowance, &visitor)?;
        visitor.visit_f64(value)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(text) = self.column.borrowed_text(self.row) {
            return visitor.visit_borrowed_str(text);
        }
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_str(visitor));
        let at = row.column.at;
        row.text(false, &visitor)?.visit(visitor).map_err(|error| located(error, at))
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_bytes(visitor));
        match row.bytes(&visitor)? {
            SourceBytes::Owned(bytes) => visit_collected(bytes, visitor),
            bytes => visit_bytes(bytes, visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        if let ColumnKind::Dict(_) = self.column.kind {
            (self.column, self.row) = self.column.distinct(self.row);
        }
        or_item!(self, de => de.deserialize_option(visitor));
        match &self.column.kind {
            ColumnKind::Unit => visitor.visit_none(),
            ColumnKind::Optional(_) => match self.column.some(self.row) {
                Some(inner) => {
                    let column = self.column.inside();
                    visitor.visit_some(Self {
                        column,
                        row: inner,
                        somes: 0,
                        is_last: false,
                        ..self
                    })
                }
                None => visitor.visit_none(),
            },
            _ => {
                let somes = one_more(self.somes);
                let somes = somes.map_err(|error| located(error, self.column.at))?;
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
        mut self,
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
                let value = self.value()?;
                value::offer(value, || visitor.visit_unit())
            }
            name::RAW => {
                or_item!(self, de => de.deserialize_newtype_struct(name, visitor));
                // A row is not encoded anywhere, so it is encoded now.
                let bytes = encoded(&self.value()?)?;
                self.allowance.charge(bytes.len() as u64)?;
                visitor.visit_byte_buf(bytes)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.sequence(Room::NONE, visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.allowance.charge_box::<V::Value>()?;
        self.sequence(Room::INSIDE, visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        len: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.deserialize_tuple(len, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_map(visitor));
        row.entries(MapRoom::NONE, &visitor)?.visit(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if let ColumnKind::Structs(structs) = &mut self.column.kind {
            self.allowance.charge_box::<V::Value>()?;
            let at = self.column.at;
            if self.can_repeat && structs.is_in_order(fields) {
                let fields = RowElements::of_struct(structs, self.row, at, self.allowance);
                return fields.visit(visitor);
            }
            let fields = &mut structs.fields;
            return RowEntries::of_fields(fields, self.row, at, self.allowance, MapRoom::INSIDE)
                .visit(visitor);
        }
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_struct(name, fields, visitor));
        row.allowance.charge_box::<V::Value>()?;
        match row.fields(&visitor)? {
            RowCompound::Entries(entries) => entries.visit(visitor),
            RowCompound::Elements(elements) => elements.visit(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_enum(name, variants, visitor));
        row.allowance.charge_box::<V::Value>()?;
        let at = row.column.at;
        let value = row.variant(&visitor)?.visit(visitor);
        value.map_err(|error| located(error, at))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if keeps_any_key::<V>() {
            return self.deserialize_any(visitor);
        }
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_identifier(visitor));
        match &row.column.kind {
            ColumnKind::Bytes(..) => visit_bytes(row.bytes(&visitor)?, visitor),
            _ => row.text(true, &visitor)?.visit(visitor),
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

impl<'c, 'de> Row<'c, 'de> {
    /// The value, whatever it is.
    fn value(&mut self) -> Result<value::Value> {
        value::read_row(self.column, self.row, self.allowance)
    }

    #[inline]
    fn sequence<V: Visitor<'de>>(mut self, room: Room, visitor: V) -> Result<V::Value> {
        let fill = bulk::fills::<V>();
        if let ColumnKind::Lists(_) = self.column.kind
            && let Some(vec) = fill.and_then(|fill| self.filled(fill))
        {
            return vec?.into().ok_or_else(not_the_vector);
        }
        if let ColumnKind::Lists(lists) = &mut self.column.kind {
            let (cuts, column) = &mut **lists;
            let (rows, at) = (cuts.range(self.row), self.column.at);
            return RowElements::of_list(column, rows, at, self.allowance, room).visit(visitor);
        }
        self.other_sequence(fill, room, visitor)
    }

    #[inline(never)]
    fn other_sequence<V: Visitor<'de>>(
        self,
        fill: Option<Fill>,
        room: Room,
        visitor: V,
    ) -> Result<V::Value> {
        let mut row = self.inner();
        or_item!(row, de => de.sequence(room, visitor));
        if let Some(vec) = fill.and_then(|fill| row.filled(fill)) {
            return vec?.into().ok_or_else(not_the_vector);
        }
        row.elements(room, &visitor)?.visit(visitor)
    }

    /// The `Vec` that these elements make, if the row can be copied at once.
    #[inline(never)]
    fn filled(&mut self, fill: Fill) -> Option<Result<AnyVec>> {
        let at = self.column.at;
        let made = match &mut self.column.kind {
            ColumnKind::Lists(lists) => {
                let (cuts, elements) = &mut **lists;
                vec_of_rows(elements, cuts.range(self.row), self.allowance, fill)?
            }
            ColumnKind::Tensors(tensors) => vec_of_tensor(tensors, self.row, self.allowance, fill)?,
            _ => return None,
        };
        Some(made.map_err(|error| located(error, at)))
    }

    /// Passes the row to this crate's own visitor of tensors.
    pub(super) fn tensor<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let ColumnKind::Tensors(tensors) = &self.column.kind
            && let Some((meta, bytes)) = tensors.usual_row(self.row)
        {
            let made = visitor.visit_enum(WholeTensor::new(meta, bytes));
            return made.map_err(|error| located(error, self.column.at));
        }
        let mut row = self.inner();
        or_item!(row, de => de.tensor(visitor));
        let at = row.column.at;
        if let ColumnKind::Structs(_) | ColumnKind::Maps(_) | ColumnKind::Enums(_) = row.column.kind
        {
            // The form that other serde formats write for a tensor.
            return visitor.visit_newtype_struct(row).map_err(|error| located(error, at));
        }
        let presented = row.presented(&visitor)?;
        presented.pass_on(visitor).map_err(|error| located(error, at))
    }

    /// A tensor, or a sequence that is read as one.
    #[inline(never)]
    fn presented(self, expected: &dyn de::Expected) -> Result<Presented<'c, 'de>> {
        let Self { column, row, allowance, .. } = self;
        let at = column.at;
        if let ColumnKind::Tuples(_) = &column.kind {
            return Self::plain(column, row, allowance, expected);
        }
        let rows = match &mut column.kind {
            ColumnKind::Lists(lists) => lists.0.range(row),
            _ => 0..0,
        };
        if matches!(&column.kind, ColumnKind::Lists(lists) if rows.is_empty() || !lists.1.is_float())
        {
            return Self::plain(column, row, allowance, expected);
        }
        let presented = match &mut column.kind {
            ColumnKind::Tensors(tensors) => Presented::row(tensors, row),
            ColumnKind::Lists(lists) => match &lists.1.kind {
                ColumnKind::Numbers(numbers) => Presented::floats(numbers, rows),
                kind => return Err(wrong_row(kind, row, at, expected)),
            },
            kind => return Err(wrong_row(kind, row, at, expected)),
        };
        presented.charge(allowance).map_err(|error| located(error, at))?;
        Ok(presented)
    }

    /// A sequence of numbers that is not packed.
    fn plain(
        column: &'c mut Column<'de>,
        row: usize,
        allowance: &'c Budget,
        expected: &dyn de::Expected,
    ) -> Result<Presented<'c, 'de>> {
        let at = column.at;
        let elements = Self::new(column, row, allowance).elements(Room::NONE, expected)?;
        Presented::plain(elements, allowance).map_err(|error| located(error, at))
    }
}
