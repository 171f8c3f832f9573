//! The methods of serde's `Deserializer` for a row of a column. The most common rows are read here, so that the
//! compiler can inline them. The methods in [`row`](super::row) read the others.

use std::borrow::Cow;

use serde::de::{self, Unexpected, Visitor};

use super::access::{Content, InOrder, Key, Variant, variant_of};
use super::row::{Row, or_item, with_integers};
use super::with_item;
use crate::budget::{MapRoom, Room};
use crate::de::access::UnitVariant;
use crate::error::{Error, Result};
use crate::handoff::name;
use crate::serde_model::{invalid, keeps_any_key, one_more};
use crate::value;
use crate::wire::columns::{Field, Kind, NumberType, Structs, TextData};
use crate::wire::number::Numeric;

/// The most common rows are read here. All others are left to the method that is named last.
macro_rules! integers {
    ($($method:ident $visit:ident $type:ty, $kind:ident, $other:ident;)*) => {$(
        #[inline(always)]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
            if let Kind::Numbers(numbers) = &self.column.kind {
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
            self.$other(visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Row<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Kind::Dict(_) = self.column.kind {
            return self.distinct().deserialize_any(visitor);
        }
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
            Kind::Lists(_) | Kind::Tuples(_) => self.seq(Room::NONE, visitor),
            Kind::Structs(_) | Kind::Maps(_) => self.map(MapRoom::NONE, visitor),
            Kind::Enums(enums) if enums.is_unit(self.row) => self.text(visitor),
            Kind::Enums(_) => self.map(MapRoom::NONE, visitor),
            Kind::Tensors(_) => self.shown_tensor(visitor),
            Kind::Items(_) | Kind::Dict(_) => Err(self.wrong(&visitor)),
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
        match self.column.borrowed_text(self.row) {
            Some(text) => visitor.visit_borrowed_str(text),
            None => self.other_str(visitor),
        }
    }

    #[inline(always)]
    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de.deserialize_bytes(visitor));
        match &row.column.kind {
            Kind::Lists(_) | Kind::Tuples(_) => row.sequence_of_bytes(visitor),
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
            Kind::Dict(_) => self.distinct().deserialize_option(visitor),
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

    #[inline(always)]
    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.sequence(Room::NONE, visitor)
    }

    #[inline]
    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value> {
        self.allowance.charge_box::<V::Value>()?;
        self.sequence(Room::INSIDE, visitor)
    }

    #[inline]
    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value> {
        self.allowance.charge_box::<V::Value>()?;
        self.sequence(Room::INSIDE, visitor)
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let row = self.inner();
        or_item!(row, de => de.deserialize_map(visitor));
        match &row.column.kind {
            Kind::Tensors(_) => row.shown_tensor(visitor),
            _ => row.map(MapRoom::NONE, visitor),
        }
    }

    #[inline]
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        if let Kind::Structs(structs) = &mut self.column.kind
            && structs.match_visitor::<V>(fields)
        {
            self.allowance.charge_box::<V::Value>()?;
            let mut fields = InOrder::new(&mut structs.fields, self.row, self.allowance);
            // The value is made where it is returned, because a copy of it would wait until it is written.
            let mut value = visitor.visit_seq(&mut fields);
            if value.is_err() || fields.left() > 0 {
                value = value.and_then(|value| Self::close(value, fields.left(), "a map"));
                value = value.map_err(|error| error.at(self.column.at));
            }
            return value;
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
        row.allowance.charge_box::<V::Value>()?;
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
        if keeps_any_key::<V>() {
            return self.deserialize_any(visitor);
        }
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

impl<'de> Row<'_, 'de> {
    #[inline(always)]
    fn sequence<V: Visitor<'de>>(self, room: Room, visitor: V) -> Result<V::Value> {
        let Kind::Lists(lists) = &mut self.column.kind else {
            return self.other_seq(room, visitor);
        };
        let (cuts, elements) = &mut **lists;
        let (rows, at) = (cuts.range(self.row), self.column.at);
        Self::list(elements, rows, self.allowance, room, at, visitor)
    }
}

#[cold]
fn not_one_entry(found: usize) -> Error {
    let found = format!("map of {found} entries");
    invalid(Unexpected::Other(&found), &"an enum: a map of one entry")
}
