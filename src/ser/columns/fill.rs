//! Adds values to columns: serde's `Serializer` for [`Node`].

use serde::Serialize;
use serde::ser::{self, Serializer};

use super::fixed::Fixed;
use super::node::{
    Enum, Field, Form, Items, List, Map, Node, Numbers, Optional, Strings, Struct, Tensors, Tuple,
    Variant,
};
use crate::error::{Error, Result};
use crate::handoff::{self, Slot, name};
use crate::io::sink::{Memory, Sink};
use crate::mem;
use crate::meta::{Order, TensorMeta};
use crate::options::EncodeOptions;
use crate::ser::compound::unpaired;
use crate::ser::delegate::{elements, fields};
use crate::ser::pack::{GrabBool, Primitive, is_bool, is_number, number};
use crate::serde_model::{blocks, for_each_number};
use crate::value;
use crate::wire::writer::Writer;

/// Columns in more columns than this become columns of items, so that a recursive type does not make
/// columns without end.
const MAX_LEVELS: u32 = 20;

/// An enum whose variants have higher indices than this does not become a column.
const MAX_VARIANTS: usize = 4096;

impl Node {
    /// Adds a row. After an error, the row may be there in part.
    #[inline(always)]
    pub fn put<T: Serialize + ?Sized>(&mut self, value: &T, at: At) -> Result<()> {
        // The compiler knows which of these types it is. They are added without a call.
        match (self, plain(value)) {
            (Self::Numbers(numbers), Some(Leaf::Number(number)))
                if numbers.kind == number.kind() =>
            {
                number.append(&mut numbers.bytes);
                Ok(())
            }
            (Self::Bools(bits), Some(Leaf::Bool(value))) => {
                bits.push(value.into());
                Ok(())
            }
            (node, _) => node.put_any(value, at),
        }
    }

    #[inline(never)]
    fn put_any<T: Serialize + ?Sized>(&mut self, value: &T, at: At) -> Result<()> {
        match self {
            Self::Items(items) => items.put(value, at.options),
            Self::Present(optional) => {
                optional.node.put(value, at)?;
                optional.bits.push(1);
                Ok(())
            }
            Self::Fixed(fixed) => {
                if fixed.push(value) {
                    Ok(())
                } else {
                    Err(self.misfit())
                }
            }
            Self::Empty => self.begin(value, at),
            node => value.serialize(Fill { node, at }),
        }
    }

    /// Adds the first row, which decides what the column is.
    #[cold]
    #[inline(never)]
    fn begin<T: Serialize + ?Sized>(&mut self, value: &T, at: At) -> Result<()> {
        if at.level >= MAX_LEVELS {
            let mut items = Items::default();
            let result = items.put(value, at.options);
            *self = Self::Items(items);
            return result;
        }
        if let Some(mut fixed) = Fixed::like(value)
            && fixed.push(value)
        {
            *self = Self::Fixed(Box::new(fixed));
            return Ok(());
        }
        *self = Self::Loose;
        value.serialize(Fill { node: self, at })
    }

    /// Notes that the column got a value that does not fit into it. The caller's caller has the value,
    /// and adds it again when the column has been settled.
    #[cold]
    #[inline(never)]
    fn misfit(&mut self) -> Error {
        let node = std::mem::take(self);
        *self = Self::Misfit(Box::new(node));
        does_not_fit()
    }

    #[inline(never)]
    fn strings(&mut self, is_text: bool, bytes: &[u8]) -> Result<()> {
        if self.is_new() {
            *self = Self::Strings(Strings { is_text, lengths: Vec::new(), bytes: Vec::new() });
        }
        match (self, u32::try_from(bytes.len())) {
            (Self::Strings(strings), Ok(len)) if strings.is_text == is_text => {
                // Short strings are copied without a call.
                if !mem::append(&mut strings.bytes, [], bytes) {
                    strings.bytes.extend_from_slice(bytes);
                }
                strings.lengths.push(len);
                Ok(())
            }
            (node, _) => Err(node.misfit()),
        }
    }

    fn number(&mut self, number: Primitive) -> Result<()> {
        if self.is_new() {
            *self = Self::Numbers(Numbers { kind: number.kind(), bytes: Vec::new() });
        }
        match self {
            Self::Numbers(numbers) if numbers.kind == number.kind() => {
                number.append(&mut numbers.bytes);
                Ok(())
            }
            node => Err(node.misfit()),
        }
    }

    fn tensor<T: Serialize + ?Sized>(
        &mut self,
        meta: &TensorMeta,
        len: usize,
        payload: &T,
    ) -> Result<()> {
        // Elements of 4 and 6 bits, and of a size that is not known, cannot be cut into rows.
        let is_whole = meta.dtype.bits().is_some_and(|bits| bits % 8 == 0);
        if !is_whole || meta.order != Order::C {
            return Err(self.misfit());
        }
        if self.is_new() {
            let tensors = Tensors { meta: meta.clone(), len, rows: 0, bytes: Vec::new() };
            *self = Self::Tensors(Box::new(tensors));
        }
        match self {
            Self::Tensors(tensors)
                if tensors.meta == *meta && tensors.len == len && len <= super::SMALL_TENSOR =>
            {
                let bytes = &mut tensors.bytes;
                blocks(len, payload, |block| {
                    bytes.extend_from_slice(block);
                    Ok(())
                })?;
                tensors.rows += 1;
                Ok(())
            }
            node => Err(node.misfit()),
        }
    }
}

/// A value that takes one place in a column.
enum Leaf {
    Number(Primitive),
    Bool(bool),
}

/// The value, if it is of a primitive type.
#[inline(always)]
fn plain<T: Serialize + ?Sized>(value: &T) -> Option<Leaf> {
    if is_bool::<T>() {
        return value.serialize(GrabBool).ok().map(Leaf::Bool);
    }
    number(value).map(Leaf::Number)
}

impl Items {
    fn put<T: Serialize + ?Sized>(&mut self, value: &T, options: &EncodeOptions) -> Result<()> {
        let sink = Sink::new(&mut self.bytes, Memory::growing());
        value.serialize(&mut Writer::new(sink, *options))?;
        self.ends.push(self.bytes.len());
        Ok(())
    }
}

#[cold]
fn does_not_fit() -> Error {
    Error::data("a value does not fit into its column")
}

/// The level of a column, and the options for items.
#[derive(Clone, Copy)]
pub struct At<'o> {
    pub level: u32,
    pub options: &'o EncodeOptions,
}

impl At<'_> {
    #[inline(always)]
    fn below(mut self) -> Self {
        self.level += 1;
        self
    }
}

/// Adds one value to a column that is not [`Node::Items`] or [`Node::Present`].
struct Fill<'a, 'o> {
    node: &'a mut Node,
    at: At<'o>,
}

macro_rules! numbers {
    ($($kind:ident $type:ty, $method:ident;)*) => {$(
        #[inline(always)]
        fn $method(self, value: $type) -> Result<()> {
            self.node.number(Primitive::$kind(value))
        }
    )*};
}

/// The column behind `node`, which becomes one of kind `$kind` if it is empty.
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
            *self.node = Node::Bools(Vec::new());
        }
        match self.node {
            Node::Bools(bits) => {
                bits.push(value.into());
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
        column!(self.node, Optional).bits.push(0);
        Ok(())
    }

    #[inline(always)]
    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        let optional = column!(self.node, Optional);
        optional.node.put(value, self.at.below())?;
        optional.bits.push(1);
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
        Ok(FillList { list: column!(self.node, List), count: 0, at: self.at.below() })
    }

    #[inline(always)]
    fn serialize_tuple(self, _: usize) -> Result<FillTuple<'a, 'o>> {
        Ok(FillTuple { tuple: column!(self.node, Tuple), index: 0, at: self.at.below() })
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
        Ok(FillMap { map: column!(self.node, Map), keys: 0, values: 0, at: self.at.below() })
    }

    #[inline(always)]
    fn serialize_struct(self, _: &'static str, _: usize) -> Result<FillStruct<'a, 'o>> {
        Ok(FillStruct { columns: column!(self.node, Struct), index: 0, at: self.at.below() })
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
            columns.codes.push(code);
            Ok(&mut variant.node)
        }
        None => Err(does_not_fit()),
    }
}

impl Enum {
    /// A new variant. `None` if there are too many.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, index: u32, name: &'static str, form: Form) -> Option<u16> {
        let place = usize::try_from(index).ok().filter(|&place| place < MAX_VARIANTS)?;
        let code = u16::try_from(self.variants.len()).ok()?;
        if self.by_index.len() <= place {
            self.by_index.resize(place + 1, 0);
        }
        *self.by_index.get_mut(place)? = code.checked_add(1)?;
        self.variants.push(Variant { name, form, node: Node::Empty });
        Some(code)
    }
}

/// Whether two names are equal. Mostly they are the same constant.
#[inline(always)]
fn is_same(one: &'static str, other: &'static str) -> bool {
    std::ptr::eq(one, other) || is_equal(one, other)
}

#[cold]
#[inline(never)]
fn is_equal(one: &str, other: &str) -> bool {
    one == other
}

pub struct FillList<'a, 'o> {
    list: &'a mut List,
    count: usize,
    at: At<'o>,
}

impl FillList<'_, '_> {
    #[inline(always)]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        match self.list.node.put(value, self.at) {
            Ok(()) => {
                self.count += 1;
                Ok(())
            }
            Err(error) => Err(error.in_index(self.count as u64)),
        }
    }

    /// Adds numbers of a primitive type.
    #[inline(always)]
    fn numbers<I>(&mut self, mut iter: I) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        let Some(first) = iter.next() else { return Ok(()) };
        self.element(&first)?;
        if let Node::Numbers(numbers) = &mut self.list.node {
            self.count += numbers.kind.extend(&mut numbers.bytes, &mut iter);
        }
        // What is left if the column is of items.
        for item in iter {
            self.element(&item)?;
        }
        Ok(())
    }

    /// Adds bools.
    #[inline(always)]
    fn bools<I>(&mut self, mut iter: I) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        if let Node::Bools(bits) = &mut self.list.node {
            let before = bits.len();
            bits.extend(
                iter.by_ref().map_while(|item| item.serialize(GrabBool).ok()).map(u8::from),
            );
            self.count += bits.len() - before;
        }
        // All of them, if the column is not one of bools yet.
        for item in iter {
            self.element(&item)?;
        }
        Ok(())
    }

    #[inline(always)]
    fn finish(self) -> Result<()> {
        let Ok(count) = u32::try_from(self.count) else { return Err(too_long()) };
        self.list.lengths.push(count);
        Ok(())
    }
}

#[cold]
fn too_long() -> Error {
    Error::limit("a sequence in a column has more than 2^32 - 1 elements")
}

elements! {
    impl[] for FillList<'_, '_>: (), Error;
    SerializeSeq serialize_element
}

pub struct FillMap<'a, 'o> {
    map: &'a mut Map,
    /// How many keys and how many values were added.
    keys: usize,
    values: usize,
    at: At<'o>,
}

impl ser::SerializeMap for FillMap<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline(always)]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        if self.keys != self.values {
            return Err(unpaired());
        }
        self.keys += 1;
        self.map.keys.put(key, self.at)
    }

    #[inline(always)]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if self.keys != self.values + 1 {
            return Err(unpaired());
        }
        self.values += 1;
        self.map.values.put(value, self.at)
    }

    fn serialize_entry<K: Serialize + ?Sized, V: Serialize + ?Sized>(
        &mut self,
        key: &K,
        value: &V,
    ) -> Result<()> {
        self.serialize_key(key)?;
        match self.serialize_value(value) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.in_field(value::key_text(key))),
        }
    }

    #[inline(always)]
    fn end(self) -> Result<()> {
        if self.keys != self.values {
            return Err(unpaired());
        }
        let Ok(count) = u32::try_from(self.keys) else { return Err(too_long()) };
        self.map.lengths.push(count);
        Ok(())
    }
}

pub struct FillTuple<'a, 'o> {
    tuple: &'a mut Tuple,
    index: usize,
    at: At<'o>,
}

impl FillTuple<'_, '_> {
    #[inline(always)]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let index = self.index;
        if index == self.tuple.nodes.len() {
            if self.tuple.rows > 0 {
                return self.misfit();
            }
            self.tuple.nodes.push(Node::Empty);
        }
        self.index += 1;
        match self.tuple.nodes.get_mut(index).map(|node| node.put(value, self.at)) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(error.in_index(index as u64)),
            None => self.misfit(),
        }
    }

    #[cold]
    #[inline(never)]
    fn misfit(&mut self) -> Result<()> {
        self.tuple.is_misfit = true;
        Err(does_not_fit())
    }

    #[inline(always)]
    fn finish(mut self) -> Result<()> {
        if self.index != self.tuple.nodes.len() {
            return self.misfit();
        }
        self.tuple.rows += 1;
        Ok(())
    }
}

elements! {
    impl[] for FillTuple<'_, '_>: (), Error;
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
}

pub struct FillStruct<'a, 'o> {
    columns: &'a mut Struct,
    /// The position of the next field.
    index: usize,
    at: At<'o>,
}

impl FillStruct<'_, '_> {
    #[inline(always)]
    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        let at = self.at;
        match self.find(key)?.put(value, at) {
            Ok(()) => Ok(()),
            Err(error) => Err(error.in_field(key)),
        }
    }

    /// The column of a field. Fields before it that were not written are missing in this row.
    #[inline(always)]
    fn find(&mut self, key: &'static str) -> Result<&mut Node> {
        let index = self.index;
        match self.columns.fields.get(index) {
            Some(field) if is_same(field.key, key) => {}
            _ => self.skip_to(key)?,
        }
        self.index += 1;
        match self.columns.fields.get_mut(self.index - 1) {
            Some(field) => Ok(&mut field.node),
            None => Err(does_not_fit()),
        }
    }

    /// Moves to the column of this field.
    #[cold]
    #[inline(never)]
    fn skip_to(&mut self, key: &'static str) -> Result<()> {
        let rows = self.columns.rows;
        let (before, behind) = self.columns.fields.split_at_mut(self.index);
        match behind.iter().position(|field| field.key == key) {
            Some(skipped) => {
                behind.iter_mut().take(skipped).for_each(|field| field.node.push_missing(rows));
                self.index += skipped;
            }
            // A field that comes again, or in another order than before.
            None if before.iter().any(|field| field.key == key) => {
                self.columns.is_misfit = true;
                return Err(does_not_fit());
            }
            None => {
                let mut node = Node::Empty;
                if rows > 0 {
                    let bits = vec![0; rows];
                    node = Node::Present(Box::new(Optional { bits, node: Node::Empty }));
                }
                self.columns.fields.insert(self.index, Field { key, node });
            }
        }
        Ok(())
    }

    fn skip(&mut self, key: &'static str) -> Result<()> {
        let rows = self.columns.rows;
        self.find(key)?.push_missing(rows);
        Ok(())
    }

    #[allow(clippy::unnecessary_wraps)] // As `fields!` needs it.
    #[inline(always)]
    fn finish(self) -> Result<()> {
        if self.index < self.columns.fields.len() {
            self.columns.end_early(self.index);
        }
        self.columns.rows += 1;
        Ok(())
    }
}

impl Struct {
    /// The fields from this position on are missing in a row.
    #[cold]
    #[inline(never)]
    fn end_early(&mut self, index: usize) {
        let rows = self.rows;
        self.fields.iter_mut().skip(index).for_each(|field| field.node.push_missing(rows));
    }
}

fields! {
    impl[] for FillStruct<'_, '_>: (), Error;
    SerializeStruct with Self::skip,
    SerializeStructVariant with Self::skip
}
