//! serde's `Serializer` for a value that is added to a column.

use serde::Serialize;
use serde::ser::Serializer;

use super::compounds::{FillList, FillMap, FillStruct, FillTuple};
use super::{At, does_not_fit, is_same};
use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::ser::columns::bytes::Bytes;
use crate::ser::columns::node::{Enum, Form, Node, Variant};
use crate::ser::pack::{Primitive, is_bool, is_number};
use crate::serde_model::for_each_number;

/// An enum whose variants have higher indices than this does not become a column.
const MAX_VARIANTS: usize = 4096;

/// Adds one value to a column that is not [`Node::Items`] or [`Node::Present`].
pub struct Fill<'a, 'o> {
    pub node: &'a mut Node,
    pub at: At<'o>,
}

macro_rules! numbers {
    ($($kind:ident $type:ty, $method:ident;)*) => {$(
        #[inline(always)]
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
            *node = Node::$kind(Box::default());
        }
        match node {
            Node::$kind(column) => column,
            node => return Err(node.misfit()),
        }
    }};
}

impl<'a, 'o> Serializer for Fill<'a, 'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = FillList<'a, 'o>;
    type SerializeTuple = FillTuple<'a, 'o>;
    type SerializeTupleStruct = FillTuple<'a, 'o>;
    type SerializeTupleVariant = FillTuple<'a, 'o>;
    type SerializeMap = FillMap<'a, 'o>;
    type SerializeStruct = FillStruct<'a, 'o>;
    type SerializeStructVariant = FillStruct<'a, 'o>;

    #[inline(always)]
    fn serialize_bool(self, value: bool) -> Result<()> {
        if self.node.is_new() {
            *self.node = Node::Bools(Bytes::default());
        }
        match self.node {
            Node::Bools(bits) => {
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

    #[inline(always)]
    fn serialize_str(self, value: &str) -> Result<()> {
        self.node.strings(true, value.as_bytes())
    }

    #[inline(always)]
    fn serialize_bytes(self, value: &[u8]) -> Result<()> {
        self.node.strings(false, value)
    }

    #[inline(always)]
    fn serialize_none(self) -> Result<()> {
        column!(self.node, Optional).bits.push([0]);
        Ok(())
    }

    #[inline(always)]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        let optional = column!(self.node, Optional);
        optional.node.put(value, self.at.below())?;
        optional.bits.push([1]);
        Ok(())
    }

    fn serialize_unit(self) -> Result<()> {
        if self.node.is_new() {
            *self.node = Node::Unit(0);
        }
        match self.node {
            Node::Unit(rows) => {
                *rows += 1;
                Ok(())
            }
            node => Err(node.misfit()),
        }
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    #[inline(always)]
    fn serialize_unit_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<()> {
        variant_of(self.node, index, variant, Form::Unit).map(|_| ())
    }

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
            (name::COLUMNS, _) => value.serialize(self),
            _ => Err(self.node.misfit()),
        }
    }

    #[inline(always)]
    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let node = variant_of(self.node, index, variant, Form::Newtype)?;
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

    #[inline(always)]
    fn serialize_seq(self, _: Option<usize>) -> Result<FillList<'a, 'o>> {
        Ok(FillList::new(column!(self.node, List), self.at.below()))
    }

    #[inline(always)]
    fn serialize_tuple(self, _: usize) -> Result<FillTuple<'a, 'o>> {
        Ok(FillTuple::new(column!(self.node, Tuple), self.at.below()))
    }

    #[inline(always)]
    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<FillTuple<'a, 'o>> {
        self.serialize_tuple(len)
    }

    #[inline(always)]
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<FillTuple<'a, 'o>> {
        let node = variant_of(self.node, index, variant, Form::Fields)?;
        Fill { node, at: self.at.below() }.serialize_tuple(len)
    }

    #[inline(always)]
    fn serialize_map(self, _: Option<usize>) -> Result<FillMap<'a, 'o>> {
        Ok(FillMap::new(column!(self.node, Map), self.at.below()))
    }

    #[inline(always)]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<FillStruct<'a, 'o>> {
        Ok(FillStruct::new(column!(self.node, Struct), self.at.below()))
    }

    #[inline(always)]
    fn serialize_struct_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        len: usize,
    ) -> Result<FillStruct<'a, 'o>> {
        let node = variant_of(self.node, index, variant, Form::Fields)?;
        Fill { node, at: self.at.below() }.serialize_struct(name, len)
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// Adds the code of a variant to a column of enums, and returns the column for the variant's content.
#[inline(always)]
fn variant_of<'a>(
    node: &'a mut Node,
    index: u32,
    name: &'static str,
    form: Form,
) -> Result<&'a mut Node> {
    let columns = column!(node, Enum);
    let known = columns.by_index.get(index as usize).copied().unwrap_or(0);
    let code = match columns.variants.get(usize::from(known).wrapping_sub(1)) {
        Some(variant) if variant.form == form && is_same(variant.name, name) => Some(known - 1),
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

impl Enum {
    /// Adds a new variant. `None` if there are too many, or if another has its name.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, index: u32, name: &'static str, form: Form) -> Option<u16> {
        let place = usize::try_from(index).ok().filter(|&place| place < MAX_VARIANTS)?;
        let code = u16::try_from(self.variants.len()).ok()?;
        if self.variants.iter().any(|variant| variant.name == name) {
            return None;
        }
        if self.by_index.len() <= place {
            self.by_index.resize(place + 1, 0);
        }
        *self.by_index.get_mut(place)? = code.checked_add(1)?;
        self.variants.push(Variant { name, form, node: Node::Empty });
        Some(code)
    }
}
