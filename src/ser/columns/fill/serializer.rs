//! serde's `Serializer` for a value that is added to a column.

use serde::Serialize;
use serde::ser::Serializer;

use super::compounds::{ListSerializer, MapSerializer, StructSerializer, TupleSerializer};
use super::row::{RowSerializer, does_not_fit, is_same};
use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::ser::columns::builder::{ColumnBuilder, EnumBuilder, VariantBuilder, VariantForm};
use crate::ser::columns::bytes::Bytes;
use crate::ser::kind::{Primitive, is_number};
use crate::ser::look::is_bool;
use crate::serde_model::for_each_number;

/// An enum whose variants have higher indices than this does not become a column.
const MAX_VARIANTS: usize = 4096;

macro_rules! numbers {
    ($($kind:ident $type:ty, $method:ident;)*) => {$(
        #[inline]
        fn $method(self, value: $type) -> Result<()> {
            self.node.number(Primitive::$kind(value))
        }
    )*};
}

/// Returns the column in `node`. A new node first becomes a column of kind `$kind`.
macro_rules! column {
    ($node:expr, $kind:ident) => {{
        let node = $node;
        if node.is_new() {
            *node = ColumnBuilder::$kind(Box::default());
        }
        match node {
            ColumnBuilder::$kind(column) => column,
            node => return Err(node.misfit()),
        }
    }};
}

impl<'a, 'o> Serializer for RowSerializer<'a, 'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = ListSerializer<'a, 'o>;
    type SerializeTuple = TupleSerializer<'a, 'o>;
    type SerializeTupleStruct = TupleSerializer<'a, 'o>;
    type SerializeTupleVariant = TupleSerializer<'a, 'o>;
    type SerializeMap = MapSerializer<'a, 'o>;
    type SerializeStruct = StructSerializer<'a, 'o>;
    type SerializeStructVariant = StructSerializer<'a, 'o>;

    #[inline]
    fn serialize_bool(self, value: bool) -> Result<()> {
        if self.node.is_new() {
            *self.node = ColumnBuilder::Bools(Bytes::default());
        }
        match self.node {
            ColumnBuilder::Bools(bits) => {
                bits.push([value.into()]);
                Ok(())
            }
            node => Err(node.misfit()),
        }
    }

    for_each_number!(numbers);

    fn serialize_i128(self, _: i128) -> Result<()> {
        Err(self.node.misfit())
    }

    fn serialize_u128(self, _: u128) -> Result<()> {
        Err(self.node.misfit())
    }

    fn serialize_char(self, value: char) -> Result<()> {
        self.node.strings(true, value.encode_utf8(&mut [0; 4]).as_bytes())
    }

    #[inline]
    fn serialize_str(self, value: &str) -> Result<()> {
        self.node.strings(true, value.as_bytes())
    }

    #[inline]
    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        self.node.strings(false, value)
    }

    #[inline]
    fn serialize_none(self) -> Result<()> {
        column!(self.node, Optional).bits.push([0]);
        Ok(())
    }

    #[inline]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        let optional = column!(self.node, Optional);
        optional.node.put(value, self.at.below())?;
        optional.bits.push([1]);
        Ok(())
    }

    fn serialize_unit(self) -> Result<()> {
        if self.node.is_new() {
            *self.node = ColumnBuilder::Unit(0);
        }
        match self.node {
            ColumnBuilder::Unit(rows) => {
                *rows += 1;
                Ok(())
            }
            node => Err(node.misfit()),
        }
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    // Always: 1 % of encoding updates as columns.
    #[inline(always)]
    fn serialize_unit_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<()> {
        variant_of(self.node, index, variant, VariantForm::Unit).map(|_| ())
    }

    // Always: 5 % of saving small tensors.
    #[inline(always)]
    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<()> {
        if !name::is_ours(name) {
            return value.serialize(self);
        }
        match (name, handoff::take()) {
            (name::TENSOR, Slot::Outgoing(meta, len)) => self.node.tensor(&meta, len, value),
            (name::TYPED, Slot::Type(of)) => self.node.typed(&of, &value, self.at),
            (name::COLUMNS, _) => value.serialize(self),
            _ => Err(self.node.misfit()),
        }
    }

    #[inline]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let node = variant_of(self.node, index, variant, VariantForm::Newtype)?;
        node.put(value, self.at.below()).map_err(|error| error.in_field(variant))
    }

    #[inline]
    fn collect_seq<I>(self, iter: I) -> Result<()>
    where
        I: IntoIterator,
        I::Item: Serialize,
    {
        let iter = iter.into_iter();
        let mut list = self.serialize_seq(None)?;
        if is_number::<I::Item>() {
            list.numbers(iter)?;
        } else if is_bool::<I::Item>() {
            list.bools(iter)?;
        } else {
            for item in iter {
                list.element(&item)?;
            }
        }
        list.finish()
    }

    #[inline]
    fn serialize_seq(self, _: Option<usize>) -> Result<ListSerializer<'a, 'o>> {
        Ok(ListSerializer::new(column!(self.node, List), self.at.below()))
    }

    #[inline]
    fn serialize_tuple(self, _: usize) -> Result<TupleSerializer<'a, 'o>> {
        Ok(TupleSerializer::new(column!(self.node, Tuple), self.at.below()))
    }

    #[inline]
    fn serialize_tuple_struct(
        self,
        _: &'static str,
        len: usize,
    ) -> Result<TupleSerializer<'a, 'o>> {
        self.serialize_tuple(len)
    }

    #[inline]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<TupleSerializer<'a, 'o>> {
        let node = variant_of(self.node, index, variant, VariantForm::Fields)?;
        RowSerializer { node, at: self.at.below() }.serialize_tuple(len)
    }

    #[inline]
    fn serialize_map(self, _: Option<usize>) -> Result<MapSerializer<'a, 'o>> {
        Ok(MapSerializer::new(column!(self.node, Map), self.at.below()))
    }

    #[inline]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<StructSerializer<'a, 'o>> {
        Ok(StructSerializer::new(column!(self.node, Struct), self.at.below()))
    }

    // Always: 2 % of encoding updates as columns.
    #[inline(always)]
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<StructSerializer<'a, 'o>> {
        let node = variant_of(self.node, index, variant, VariantForm::Fields)?;
        RowSerializer { node, at: self.at.below() }.serialize_struct(name, len)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Adds the code of a variant to a column of enums, and returns the column for the variant's content.
// Always: 5 % of encoding updates as columns.
#[inline(always)]
fn variant_of<'a>(
    node: &'a mut ColumnBuilder,
    index: u32,
    name: &'static str,
    form: VariantForm,
) -> Result<&'a mut ColumnBuilder> {
    let columns = column!(node, Enum);
    let known = columns.by_index.get(index as usize).copied().unwrap_or(0);
    let code = match columns.variants.get(usize::from(known).wrapping_sub(1)) {
        Some(variant) if variant.form == form && is_same(variant.key, name) => Some(known - 1),
        Some(_) => None,
        None => columns.learn(index, name, form),
    };
    let Some(code) = code else {
        columns.is_misfit = true;
        return Err(does_not_fit());
    };
    match columns.variants.get_mut(usize::from(code)) {
        Some(variant) => {
            columns.codes.push(code.to_le_bytes());
            Ok(&mut variant.node)
        }
        None => Err(does_not_fit()),
    }
}

impl EnumBuilder {
    /// Adds a new variant. `None` if there are too many, or if another has its name.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, index: u32, name: &'static str, form: VariantForm) -> Option<u16> {
        let place = usize::try_from(index).ok().filter(|&place| place < MAX_VARIANTS)?;
        let code = u16::try_from(self.variants.len()).ok()?;
        if self.variants.iter().any(|variant| variant.key == name) {
            return None;
        }
        if self.by_index.len() <= place {
            self.by_index.resize(place + 1, 0);
        }
        *self.by_index.get_mut(place)? = code.checked_add(1)?;
        self.variants.push(VariantBuilder::new(name, form));
        Some(code)
    }
}
