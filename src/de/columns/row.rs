//! serde's `Deserializer` for all that is not an item of its own: a row of a column, an element of a typed array, a name.
//!
//! The type of a user is compiled for two deserializers, [`Decoder`] and this one. So what does not call the user's visitor
//! is in functions without its type.

use std::borrow::Cow;
use std::rc::Rc;

use serde::de::{self, Unexpected, Visitor};

use super::access::{Elements, Entries, Variant};
use super::tensors::Presented;
use super::vectors::{vec_of_rows, vec_of_tensor};
use super::{NOWHERE, located, with_item};
use crate::budget::{Budget, MapRoom, Room};
use crate::de::Decoder;
use crate::de::bulk::{self, Fill};
use crate::de::items::{encoded, visit_bytes, visit_text};
use crate::error::{Error, Result};
use crate::handoff::name;
use crate::io::source::Bytes;
use crate::mem::AnyVec;
use crate::serde_model::{
    Collect, invalid, keeps_any_key, one_more, visit_collected, wrong_number,
};
use crate::value;
use crate::wire::columns::{
    Column, Cuts, Data, Enum, Items, Kind, Lengths, NumberType, Numbers, TextData,
};
use crate::wire::number::Numeric;
use crate::wire::strings::Text;

/// A value that is not an item of its own.
pub struct Row<'c, 'de> {
    spot: Spot<'c, 'de>,
    allowance: &'c Budget,
    /// The number of options that were entered but are not in the data: see [`one_more`].
    somes: usize,
}

/// Where the value is.
pub enum Spot<'c, 'de> {
    /// In a row of a column.
    Row(&'c mut Column<'de>, usize),
    /// The name of a field or variant, or another text. Texts that are in the data once are copied for each row.
    Text(Text<'de, 'c>),
    Number(u64),
    /// A sequence of numbers.
    Dims(&'c [usize]),
    Bytes(Bytes<'de, 'c>),
}

/// Something with elements or entries.
pub enum Compound<'c, 'de> {
    Elements(Elements<'c, 'de>),
    Entries(Entries<'c, 'de>),
}

/// What a visitor of any type is given.
enum Found<'c, 'de> {
    Number(Numeric),
    Bool(bool),
    Unit,
    Text(Text<'de, 'c>),
    Bytes(Bytes<'de, 'c>),
    Compound(Compound<'c, 'de>),
}

impl<'c, 'de> Row<'c, 'de> {
    #[inline(always)]
    pub fn new(column: &'c mut Column<'de>, row: usize, allowance: &'c Budget) -> Self {
        Self::at(Spot::Row(column, row), allowance)
    }

    #[inline(always)]
    pub fn at(spot: Spot<'c, 'de>, allowance: &'c Budget) -> Self {
        Self { spot, allowance, somes: 0 }
    }

    /// The offset of the column in the input.
    pub(super) fn offset(&self) -> u64 {
        match &self.spot {
            Spot::Row(column, _) => column.at,
            _ => NOWHERE,
        }
    }

    /// If the column holds optional values or is a dict, returns the row of the inner column. If there is none because the value is
    /// `None`, returns this row.
    #[inline]
    fn inner(mut self) -> Self {
        if let Spot::Row(column, row) = self.spot {
            let (column, row) = column.innermost(row);
            self.spot = Spot::Row(column, row);
        }
        self
    }

    /// If the column is a dict, the row of the column in it.
    #[inline]
    fn distinct(mut self) -> Self {
        if let Spot::Row(column, row) = self.spot {
            let (column, row) = column.distinct(row);
            self.spot = Spot::Row(column, row);
        }
        self
    }

    /// The items that this row is one of.
    #[inline]
    fn items(&mut self) -> Option<(&mut Items<'de>, usize, &'c Budget)> {
        match &mut self.spot {
            Spot::Row(Column { kind: Kind::Items(items), .. }, row) => {
                Some((items, *row, self.allowance))
            }
            _ => None,
        }
    }

    /// An error for a value of a kind that the visitor does not expect.
    #[cold]
    fn wrong(&self, expected: &dyn de::Expected) -> Error {
        let (column, row) = match &self.spot {
            Spot::Row(column, row) => (column, *row),
            Spot::Text(_) => return invalid(Unexpected::Other("text string"), expected),
            Spot::Number(number) => return wrong_number(integer(*number), expected),
            Spot::Dims(_) => return invalid(Unexpected::Other("array"), expected),
            Spot::Bytes(_) => return invalid(Unexpected::Other("byte string"), expected),
        };
        wrong_row(&column.kind, row, column.at, expected)
    }

    #[cold]
    fn wrong_number(&self, number: Numeric, expected: &dyn de::Expected) -> Error {
        self.located(wrong_number(number, expected))
    }

    fn located(&self, error: Error) -> Error {
        located(error, self.offset())
    }

    #[inline(never)]
    fn number(&self, expected: &dyn de::Expected) -> Result<Numeric> {
        match &self.spot {
            Spot::Row(Column { kind: Kind::Numbers(numbers), .. }, row) => Ok(numbers.number(*row)),
            Spot::Number(number) => Ok(integer(*number)),
            _ => Err(self.wrong(expected)),
        }
    }

    #[inline(never)]
    fn bool(&self, expected: &dyn de::Expected) -> Result<bool> {
        match &self.spot {
            Spot::Row(Column { kind: Kind::Bools(bits), .. }, row) => Ok(bits.get(*row)),
            _ => Err(self.wrong(expected)),
        }
    }

    #[inline(never)]
    fn single(&self, expected: &dyn de::Expected) -> Result<f32> {
        let number = self.number(expected)?;
        let exact = match &self.spot {
            Spot::Row(Column { kind: Kind::Numbers(numbers), .. }, _) => numbers.exact,
            _ => false,
        };
        let single = if exact { number.as_single() } else { number.to_single() };
        single.ok_or_else(|| self.wrong_number(number, expected))
    }

    #[inline(never)]
    fn double(&self, expected: &dyn de::Expected) -> Result<f64> {
        let number = self.number(expected)?;
        number.as_double().ok_or_else(|| self.wrong_number(number, expected))
    }

    /// Reads a unit: null, or an empty array, which some other encoders write.
    pub(super) fn unit(self, expected: &dyn de::Expected) -> Result<()> {
        let mut row = self.inner();
        if let Some((items, number, allowance)) = row.items() {
            return with_item(items, number, allowance, |de| de.unit(expected));
        }
        let is_unit = match &mut row.spot {
            Spot::Row(column, row) => match &mut column.kind {
                Kind::Unit | Kind::Optional(_) => true,
                Kind::Lists(lists) => lists.0.range(*row).is_empty(),
                Kind::Tuples(columns) => columns.is_empty(),
                _ => false,
            },
            Spot::Dims(dims) => dims.is_empty(),
            _ => false,
        };
        if is_unit { Ok(()) } else { Err(row.wrong(expected)) }
    }

    /// A text. `is_name` if it is only compared, so that nothing is allocated for it.
    #[inline(never)]
    fn text(self, is_name: bool, expected: &dyn de::Expected) -> Result<Text<'de, 'c>> {
        let at = self.offset();
        let allowance = self.allowance;
        let charge = |len: usize| if is_name { Ok(()) } else { allowance.charge(len as u64) };
        let text = match self.spot {
            Spot::Text(text) => {
                charge(text.as_str().len())?;
                return Ok(text);
            }
            Spot::Row(column, row) => match &mut column.kind {
                Kind::Texts(cuts, texts) => {
                    let text = text_of(cuts, texts, row);
                    // What is borrowed is in the input once.
                    let copied = if let Text::Copied(text) = &text { text.len() } else { 0 };
                    charge(copied).map(|()| text)
                }
                Kind::Enums(enums) => {
                    if enums.is_unit(row) {
                        let text = name_of(enums, row);
                        charge(text.as_str().len()).map(|()| text)
                    } else {
                        Err(invalid(Unexpected::Other("map"), expected))
                    }
                }
                kind => return Err(wrong_row(kind, row, at, expected)),
            },
            _ => return Err(self.wrong(expected)),
        };
        text.map_err(|error| located(error, at))
    }

    /// A byte string, or a sequence of numbers for a visitor that wants bytes.
    #[inline(never)]
    fn bytes(self, expected: &dyn de::Expected) -> Result<Bytes<'de, 'c>> {
        let (at, allowance) = (self.offset(), self.allowance);
        let bytes = match self.spot {
            Spot::Row(Column { kind: Kind::Tuples(_), .. }, _) => return self.collected(expected),
            Spot::Row(Column { kind: Kind::Lists(lists), .. }, _) if !lists.1.is_u8() => {
                return self.collected(expected);
            }
            Spot::Bytes(bytes) => bytes,
            Spot::Row(column, row) => match &mut column.kind {
                Kind::Bytes(cuts, data) => data.part(cuts.range(row)),
                Kind::Lists(lists) => match &mut **lists {
                    (cuts, Column { kind: Kind::Numbers(numbers), .. }) => {
                        numbers.run(cuts.range(row))
                    }
                    _ => Bytes::Borrowed(&[]),
                },
                kind => return Err(wrong_row(kind, row, at, expected)),
            },
            _ => return Err(self.wrong(expected)),
        };
        if !bytes.is_borrowed() {
            allowance.charge(bytes.as_slice().len() as u64)?;
        }
        Ok(bytes)
    }

    /// The elements of a sequence, which are bytes.
    fn collected(self, expected: &dyn de::Expected) -> Result<Bytes<'de, 'c>> {
        let at = self.offset();
        let mut elements = self.elements(Room::NONE, expected)?;
        let bytes = Collect.visit_seq(&mut elements);
        let bytes = bytes.and_then(|bytes| elements.close().map(|()| bytes));
        bytes.map(Bytes::Owned).map_err(|error| located(error, at))
    }

    /// The elements of a sequence. `room` is that of the elements.
    #[inline(never)]
    pub(super) fn elements(
        self,
        room: Room,
        expected: &dyn de::Expected,
    ) -> Result<Elements<'c, 'de>> {
        let Self { spot, allowance, .. } = self;
        let (column, row) = match spot {
            Spot::Row(column, row) => (column, row),
            Spot::Dims(dims) => return Ok(Elements::of_dims(dims, allowance, room)),
            Spot::Bytes(bytes) => {
                let rows = 0..bytes.as_slice().len();
                let numbers = Numbers::new(NumberType::U8, Data::from(bytes));
                let column = Column::new(NOWHERE, Kind::Numbers(numbers));
                return Ok(Elements::own(column, rows, allowance, room));
            }
            spot => return Err(Self::at(spot, allowance).wrong(expected)),
        };
        let at = column.at;
        match &mut column.kind {
            Kind::Lists(lists) => {
                let (cuts, column) = &mut **lists;
                Ok(Elements::of_list(column, cuts.range(row), at, allowance, room))
            }
            Kind::Tuples(columns) => Ok(Elements::of_tuple(columns, row, at, allowance, room)),
            Kind::Bytes(cuts, bytes) => {
                let range = cuts.range(row);
                let rows = 0..range.len();
                let numbers = Numbers::new(NumberType::U8, bytes.clone().cut(range));
                let column = Column::new(at, Kind::Numbers(numbers));
                Ok(Elements::own(column, rows, allowance, room))
            }
            Kind::Tensors(tensors) => {
                let column = super::tensors::sequence(tensors, row, at, expected);
                let (column, rows) = column.map_err(|error| located(error, at))?;
                Ok(Elements::own(column, rows, allowance, room))
            }
            kind => Err(wrong_row(kind, row, at, expected)),
        }
    }

    /// The entries of a map, or the fields of a struct, which are not counted.
    #[inline(never)]
    fn entries(self, room: MapRoom, expected: &dyn de::Expected) -> Result<Entries<'c, 'de>> {
        let Self { spot, allowance, .. } = self;
        let (column, row) = match spot {
            Spot::Row(column, row) => (column, row),
            spot => return Err(Self::at(spot, allowance).wrong(expected)),
        };
        let at = column.at;
        match &mut column.kind {
            Kind::Structs(structs) => {
                Ok(Entries::of_fields(&mut structs.fields, row, at, allowance, room))
            }
            Kind::Maps(maps) => Ok(Entries::of_map(maps, row, at, allowance, room)),
            Kind::Enums(enums) => match Self::variant_of(enums, row, allowance) {
                (name, Some(content)) => Ok(Entries::one(name, content, at, allowance)),
                (_, None) => Err(invalid(Unexpected::Other("text string"), expected).at(at)),
            },
            Kind::Tensors(tensors) => Ok(Presented::row(tensors, row).entries(at, allowance)),
            kind => Err(wrong_row(kind, row, at, expected)),
        }
    }

    /// The fields of a struct, or its elements, because some other encoders write structs as arrays.
    #[inline(never)]
    fn fields(self, expected: &dyn de::Expected) -> Result<Compound<'c, 'de>> {
        match &self.spot {
            Spot::Row(Column { kind: Kind::Lists(_) | Kind::Tuples(_), .. }, _) => {
                self.elements(Room::INSIDE, expected).map(Compound::Elements)
            }
            Spot::Row(Column { kind: Kind::Tensors(_), .. }, _) => Err(self.wrong(expected)),
            _ => self.entries(MapRoom::INSIDE, expected).map(Compound::Entries),
        }
    }

    /// The name of the variant in a row of enums, and its content unless it is a unit variant.
    fn variant_of(
        enums: &'c mut Enum<'de>,
        row: usize,
        allowance: &'c Budget,
    ) -> (Text<'de, 'c>, Option<Self>) {
        let (code, row) = enums.entry(row);
        let content = match enums.columns.get_mut(code) {
            Some(Some(column)) => Some(Self::new(column, row, allowance)),
            _ => None,
        };
        (enums.names.get(code).map_or(Text::Borrowed(""), shown), content)
    }

    /// An enum. `taken` is set when its content is read.
    #[inline(never)]
    fn variant(self, taken: &'c mut bool, expected: &dyn de::Expected) -> Result<Variant<'c, 'de>> {
        let Self { spot, allowance, .. } = self;
        let (column, row) = match spot {
            Spot::Row(column, row) => (column, row),
            Spot::Text(name) => return Ok(Variant::new(Spot::Text(name), None, taken, allowance)),
            spot => return Err(Self::at(spot, allowance).wrong(expected)),
        };
        let at = column.at;
        let (key, content) = match &mut column.kind {
            Kind::Enums(enums) => {
                let (name, content) = Self::variant_of(enums, row, allowance);
                (Spot::Text(name), content)
            }
            Kind::Texts(cuts, texts) => (Spot::Text(text_of(cuts, texts, row)), None),
            Kind::Structs(structs) => {
                let present = structs.fields.iter().filter(|field| field.is_present(row)).count();
                let field = structs.fields.iter_mut().find(|field| field.is_present(row));
                let Some(field) = field.filter(|_| present == 1) else {
                    return Err(not_one_entry(present).at(at));
                };
                let row = field.inner(row);
                let content = Self::new(&mut field.column, row, allowance);
                (Spot::Text(shown(&field.name)), Some(content))
            }
            Kind::Maps(maps) => {
                let range = maps.cuts.range(row);
                if range.len() != 1 {
                    return Err(not_one_entry(range.len()).at(at));
                }
                let content = Self::new(&mut maps.values, range.start, allowance);
                (Spot::Row(&mut maps.keys, range.start), Some(content))
            }
            kind => return Err(wrong_row(kind, row, at, expected)),
        };
        Ok(Variant::new(key, content, taken, allowance))
    }

    /// Goes into options up to a value, or to an option that has to be visited as one, because its value begins with another
    /// one. Returns whether there is such an option.
    fn up_to_option(&mut self) -> bool {
        loop {
            let (column, row) = match std::mem::replace(&mut self.spot, Spot::Number(0)) {
                Spot::Row(column, row) => (column, row),
                spot => {
                    self.spot = spot;
                    return false;
                }
            };
            let (column, row) = column.distinct(row);
            let Some(inner) = column.some(row) else {
                self.spot = Spot::Row(column, row);
                return false;
            };
            let column = column.inside();
            let is_marked = column.needs_some(inner);
            self.spot = Spot::Row(column, inner);
            if is_marked {
                return true;
            }
        }
    }

    /// The value for a visitor of any type.
    #[inline(never)]
    fn find(self, expected: &dyn de::Expected) -> Result<Found<'c, 'de>> {
        match &self.spot {
            Spot::Number(number) => return Ok(Found::Number(integer(*number))),
            Spot::Text(_) => return self.text(false, expected).map(Found::Text),
            Spot::Bytes(_) => return self.bytes(expected).map(Found::Bytes),
            Spot::Dims(_) => {}
            Spot::Row(column, row) => match &column.kind {
                Kind::Numbers(numbers) => return Ok(Found::Number(numbers.number(*row))),
                Kind::Bools(bits) => return Ok(Found::Bool(bits.get(*row))),
                Kind::Unit | Kind::Optional(_) => return Ok(Found::Unit),
                Kind::Texts(..) => return self.text(false, expected).map(Found::Text),
                Kind::Enums(enums) if enums.is_unit(*row) => {
                    return self.text(false, expected).map(Found::Text);
                }
                Kind::Bytes(..) => return self.bytes(expected).map(Found::Bytes),
                Kind::Structs(_) | Kind::Maps(_) | Kind::Enums(_) | Kind::Tensors(_) => {
                    let entries = self.entries(MapRoom::NONE, expected)?;
                    return Ok(Found::Compound(Compound::Entries(entries)));
                }
                Kind::Lists(_) | Kind::Tuples(_) => {}
                Kind::Items(_) | Kind::Dict(_) => return Err(self.wrong(expected)),
            },
        }
        let elements = self.elements(Room::NONE, expected)?;
        Ok(Found::Compound(Compound::Elements(elements)))
    }

    /// A column with this value as its only row, if it is not in a column.
    fn column(&self) -> Option<Column<'de>> {
        let kind = match &self.spot {
            Spot::Row(..) => return None,
            Spot::Text(text) => {
                let cuts = Cuts::new(Lengths::Same(text.as_str().len()));
                let text = match text {
                    Text::Borrowed(text) => TextData::Borrowed(text),
                    other => TextData::Owned(other.as_str().to_owned()),
                };
                Kind::Texts(cuts, text)
            }
            Spot::Number(number) => numbers_of(&[*number]),
            Spot::Dims(dims) => {
                let dims: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
                let cuts = Cuts::new(Lengths::Same(dims.len()));
                Kind::Lists(Box::new((cuts, Column::new(NOWHERE, numbers_of(&dims)))))
            }
            Spot::Bytes(bytes) => {
                let bytes = bytes.as_slice().to_vec();
                Kind::Bytes(Cuts::new(Lengths::Same(bytes.len())), Data::Owned(Rc::new(bytes)))
            }
        };
        Some(Column::new(NOWHERE, kind))
    }
}

fn numbers_of(numbers: &[u64]) -> Kind<'static> {
    let bytes = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    Kind::Numbers(Numbers::new(NumberType::U64, Data::Owned(Rc::new(bytes))))
}

/// A name, as a text.
pub(super) fn shown<'c, 'de>(name: &'c Cow<'de, str>) -> Text<'de, 'c> {
    match name {
        Cow::Borrowed(name) => Text::Borrowed(name),
        Cow::Owned(name) => Text::Copied(name),
    }
}

/// The name of the variant of a row.
fn name_of<'c, 'de>(enums: &'c Enum<'de>, row: usize) -> Text<'de, 'c> {
    enums.names.get(enums.code(row)).map_or(Text::Borrowed(""), shown)
}

/// The text of a row. The offsets were checked to be between characters.
fn text_of<'c, 'de>(cuts: &mut Cuts<'de>, texts: &'c TextData<'de>, row: usize) -> Text<'de, 'c> {
    let range = cuts.range(row);
    match texts {
        TextData::Borrowed(text) => Text::Borrowed(text.get(range).unwrap_or_default()),
        TextData::Owned(text) => Text::Copied(text.get(range).unwrap_or_default()),
    }
}

fn integer(number: u64) -> Numeric {
    Numeric::Int { negative: false, arg: number.into() }
}

/// The error for a row of a kind that the visitor does not expect. The column is at offset `at`.
#[cold]
fn wrong_row(kind: &Kind<'_>, row: usize, at: u64, expected: &dyn de::Expected) -> Error {
    let error = match kind {
        Kind::Numbers(numbers) => wrong_number(numbers.number(row), expected),
        Kind::Bools(bits) => invalid(Unexpected::Bool(bits.get(row)), expected),
        _ => invalid(Unexpected::Other(kind.name()), expected),
    };
    located(error, at)
}

#[cold]
fn not_one_entry(found: usize) -> Error {
    let found = format!("map of {found} entries");
    invalid(Unexpected::Other(&found), &"an enum: a map of one entry")
}

/// Reads the row with the decoder if it is an item.
macro_rules! or_item {
    ($row:ident, $de:ident => $read:expr) => {
        if let Some((items, number, allowance)) = $row.items() {
            return with_item(items, number, allowance, |$de: &mut Decoder<'de, '_>| $read);
        }
    };
}

macro_rules! integers {
    ($($method:ident $visit:ident $type:ty, $kind:ident;)*) => {$(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            if let Spot::Row(Column { kind: Kind::Numbers(numbers), .. }, row) = &self.spot {
                if numbers.kind == NumberType::$kind {
                    return visitor.$visit(<$type>::from_le_bytes(numbers.word(*row)));
                }
                // Most integers are written in fewer bytes than their type has.
                if let Some(Ok(value)) = numbers.small_integer(*row).map(<$type>::try_from) {
                    return visitor.$visit(value);
                }
            }
            let mut row = self.inner();
            or_item!(row, de => de.$method(visitor));
            let number = row.number(&visitor)?;
            match number.as_int().map(<$type>::try_from) {
                Some(Ok(value)) => visitor.$visit(value),
                _ => Err(row.wrong_number(number, &visitor)),
            }
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Row<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        if self.up_to_option() {
            return visitor.visit_some(self);
        }
        or_item!(self, de => de.deserialize_any(visitor));
        let offset = self.offset();
        let value = match self.find(&visitor)? {
            Found::Number(Numeric::Single(value)) => visitor.visit_f32(value),
            Found::Number(Numeric::Double(value)) => visitor.visit_f64(value),
            Found::Number(number) => {
                let value = number.as_int().unwrap_or_default();
                match (u64::try_from(value), i64::try_from(value)) {
                    (Ok(value), _) => visitor.visit_u64(value),
                    (_, value) => visitor.visit_i64(value.unwrap_or_default()),
                }
            }
            Found::Bool(value) => visitor.visit_bool(value),
            Found::Unit => visitor.visit_unit(),
            Found::Text(text) => visit_text(text, visitor),
            Found::Bytes(bytes) => visit_bytes(bytes, visitor),
            Found::Compound(Compound::Elements(elements)) => elements.visit(visitor),
            Found::Compound(Compound::Entries(entries)) => entries.visit(visitor),
        };
        value.map_err(|error| located(error, offset))
    }

    #[inline]
    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Spot::Row(Column { kind: Kind::Bools(bits), .. }, row) = &self.spot {
            return visitor.visit_bool(bits.get(*row));
        }
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_bool(visitor));
        let value = row.bool(&visitor)?;
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
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_i128(visitor));
        let number = row.number(&visitor)?;
        match number.as_int() {
            Some(value) => visitor.visit_i128(value),
            None => Err(row.wrong_number(number, &visitor)),
        }
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_u128(visitor));
        let number = row.number(&visitor)?;
        match number.as_unsigned() {
            Some(value) => visitor.visit_u128(value),
            None => Err(row.wrong_number(number, &visitor)),
        }
    }

    #[inline]
    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Spot::Row(Column { kind: Kind::Numbers(numbers), .. }, row) = &self.spot
            && numbers.kind == NumberType::F32
        {
            return visitor.visit_f32(f32::from_le_bytes(numbers.word(*row)));
        }
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_f32(visitor));
        let value = row.single(&visitor)?;
        visitor.visit_f32(value)
    }

    #[inline]
    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Spot::Row(Column { kind: Kind::Numbers(numbers), .. }, row) = &self.spot
            && numbers.kind == NumberType::F64
        {
            return visitor.visit_f64(f64::from_le_bytes(numbers.word(*row)));
        }
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_f64(visitor));
        let value = row.double(&visitor)?;
        visitor.visit_f64(value)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    #[inline]
    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value> {
        if let Spot::Row(column, row) = &mut self.spot
            && let Some(text) = column.borrowed_text(*row)
        {
            return visitor.visit_borrowed_str(text);
        }
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_str(visitor));
        let offset = row.offset();
        visit_text(row.text(false, &visitor)?, visitor).map_err(|error| located(error, offset))
    }

    #[inline]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_bytes(visitor));
        match row.bytes(&visitor)? {
            Bytes::Owned(bytes) => visit_collected(bytes, visitor),
            bytes => visit_bytes(bytes, visitor),
        }
    }

    fn deserialize_byte_buf<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_bytes(visitor)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut row = self.distinct();
        or_item!(row, de => de.deserialize_option(visitor));
        if let Spot::Row(column, number) = row.spot {
            match &column.kind {
                Kind::Unit => return visitor.visit_none(),
                Kind::Optional(_) => {
                    return match column.some(number) {
                        Some(inner) => {
                            visitor.visit_some(Self::new(column.inside(), inner, row.allowance))
                        }
                        None => visitor.visit_none(),
                    };
                }
                _ => row.spot = Spot::Row(column, number),
            }
        }
        let somes = one_more(row.somes).map_err(|error| row.located(error))?;
        visitor.visit_some(Self { somes, ..row })
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
        if let Some(mut column) = self.column() {
            return Row::new(&mut column, 0, self.allowance)
                .deserialize_newtype_struct(name, visitor);
        }
        match name {
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
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_struct(name, fields, visitor));
        row.allowance.charge_box::<V::Value>()?;
        match row.fields(&visitor)? {
            Compound::Entries(entries) => entries.visit(visitor),
            Compound::Elements(elements) => elements.visit(visitor),
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
        let offset = row.offset();
        let mut taken = false;
        let variant = row.variant(&mut taken, &visitor)?;
        let value = visitor.visit_enum(variant);
        let value = value.and_then(|value| Variant::check(taken).map(|()| value));
        value.map_err(|error| located(error, offset))
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if keeps_any_key::<V>() {
            return self.deserialize_any(visitor);
        }
        let mut row = self.inner();
        or_item!(row, de => de.deserialize_identifier(visitor));
        match &row.spot {
            Spot::Row(Column { kind: Kind::Bytes(..), .. }, _) | Spot::Bytes(_) => {
                visit_bytes(row.bytes(&visitor)?, visitor)
            }
            _ => visit_text(row.text(true, &visitor)?, visitor),
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
    /// The value, whatever it is. It is in a column.
    fn value(&mut self) -> Result<value::Value> {
        match &mut self.spot {
            Spot::Row(column, row) => value::read_row(column, *row, self.allowance),
            _ => Ok(value::Value::Null),
        }
    }

    fn sequence<V: Visitor<'de>>(self, room: Room, visitor: V) -> Result<V::Value> {
        let mut row = self.inner();
        or_item!(row, de => de.sequence(room, visitor));
        if let Some(vec) = bulk::fills::<V>().and_then(|fill| row.filled(fill)) {
            return vec?.into().ok_or_else(|| Error::data("expected a vector of numbers"));
        }
        row.elements(room, &visitor)?.visit(visitor)
    }

    /// The `Vec` that these elements make, if the row can be copied at once.
    #[inline(never)]
    fn filled(&mut self, fill: Fill) -> Option<Result<AnyVec>> {
        let Spot::Row(column, row) = &mut self.spot else { return None };
        let at = column.at;
        let made = match &mut column.kind {
            Kind::Lists(lists) => {
                let (cuts, elements) = &mut **lists;
                vec_of_rows(elements, cuts.range(*row), self.allowance, fill)?
            }
            Kind::Tensors(tensors) => vec_of_tensor(tensors, *row, self.allowance, fill)?,
            _ => return None,
        };
        Some(made.map_err(|error| located(error, at)))
    }

    /// Passes the row to this crate's own visitor of tensors. It is in a column.
    pub(super) fn tensor<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let mut row = self.inner();
        or_item!(row, de => de.tensor(visitor));
        let offset = row.offset();
        if let Spot::Row(
            Column { kind: Kind::Structs(_) | Kind::Maps(_) | Kind::Enums(_), .. },
            _,
        ) = &row.spot
        {
            // The form that other serde formats write for a tensor.
            return visitor.visit_newtype_struct(row).map_err(|error| located(error, offset));
        }
        let presented = row.presented(&visitor)?;
        presented.pass_on(visitor).map_err(|error| located(error, offset))
    }

    /// A tensor, or a sequence that is read as one.
    #[inline(never)]
    fn presented(self, expected: &dyn de::Expected) -> Result<Presented<'c, 'de>> {
        let Self { spot, allowance, .. } = self;
        let Spot::Row(column, row) = spot else {
            return Err(Self::at(spot, allowance).wrong(expected));
        };
        let at = column.at;
        if let Kind::Tuples(_) = &column.kind {
            return Self::plain(column, row, allowance, expected);
        }
        let rows = match &mut column.kind {
            Kind::Lists(lists) => lists.0.range(row),
            _ => 0..0,
        };
        if matches!(&column.kind, Kind::Lists(lists) if rows.is_empty() || !lists.1.is_float()) {
            return Self::plain(column, row, allowance, expected);
        }
        let presented = match &mut column.kind {
            Kind::Tensors(tensors) => Presented::row(tensors, row),
            Kind::Lists(lists) => match &lists.1.kind {
                Kind::Numbers(numbers) => Presented::floats(numbers, rows),
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
