//! serde's `Deserializer` for the name of a field or of a variant.

use serde::de::{self, Visitor};

use super::access::RowVariant;
use super::row::{NOWHERE, Row};
use super::shown::ShownText;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::handoff::name;
use crate::serde_model::keeps_any_key;
use crate::wire::columns::{Column, ColumnKind, Offsets, RowLengths, TextData};

/// A name. It is in the data once, and copied for each row.
#[derive(Clone, Copy)]
pub struct RowName<'c, 'de> {
    text: ShownText<'de, 'c>,
    allowance: &'c Budget,
}

impl<'c, 'de> RowName<'c, 'de> {
    #[inline]
    pub fn new(text: ShownText<'de, 'c>, allowance: &'c Budget) -> Self {
        Self { text, allowance }
    }

    pub fn as_str(&self) -> &str {
        self.text.as_str()
    }

    /// A column with the name as its only row.
    fn column(self) -> Column<'de> {
        let cuts = Offsets::new(RowLengths::Same(self.text.as_str().len()));
        let text = match self.text {
            ShownText::Borrowed(text) => TextData::Borrowed(text),
            ShownText::Copied(text) => TextData::Owned(text.to_owned()),
        };
        Column::new(NOWHERE, ColumnKind::Texts(cuts, text))
    }
}

/// Methods for what a name is not. They say what was found.
macro_rules! as_row {
    ($($method:ident($($argument:ident: $type:ty),*);)*) => {$(
        #[cold]
        fn $method<V: Visitor<'de>>(self, $($argument: $type,)* visitor: V) -> Result<V::Value> {
            let allowance = self.allowance;
            Row::new(&mut self.column(), 0, allowance).$method($($argument,)* visitor)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for RowName<'_, 'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.allowance.charge(self.as_str().len() as u64)?;
        self.text.visit(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        self.deserialize_any(visitor)
    }

    #[inline]
    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if keeps_any_key::<V>() {
            return self.deserialize_any(visitor);
        }
        self.text.visit(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        if name::is_ours(name) {
            let allowance = self.allowance;
            return Row::new(&mut self.column(), 0, allowance)
                .deserialize_newtype_struct(name, visitor);
        }
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value> {
        RowVariant::unit(self).visit(visitor)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_unit()
    }

    as_row! {
        deserialize_bool();
        deserialize_u8();
        deserialize_u16();
        deserialize_u32();
        deserialize_u64();
        deserialize_u128();
        deserialize_i8();
        deserialize_i16();
        deserialize_i32();
        deserialize_i64();
        deserialize_i128();
        deserialize_f32();
        deserialize_f64();
        deserialize_bytes();
        deserialize_byte_buf();
        deserialize_unit();
        deserialize_unit_struct(name: &'static str);
        deserialize_seq();
        deserialize_tuple(len: usize);
        deserialize_tuple_struct(name: &'static str, len: usize);
        deserialize_map();
        deserialize_struct(name: &'static str, fields: &'static [&'static str]);
    }

    #[inline]
    fn is_human_readable(&self) -> bool {
        false
    }
}
