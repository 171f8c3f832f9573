//! Adds values to columns.
//!
//! A value of a primitive type is added at once. For other values, [`RowSerializer`] is serde's `Serializer`, and
//! `compounds` has what it returns for lists, maps, tuples and structs.

mod compounds;
mod row;
mod serializer;

use serde::Serialize;

use self::row::RowSerializer;
use super::builder::{
    ColumnBuilder, ItemsBuilder, NumbersBuilder, SMALL_TENSOR, StringsBuilder, TensorsBuilder,
    TypedBuilder,
};
use super::bytes::Bytes;
use crate::error::Result;
use crate::io::sink::Memory;
use crate::meta::{Order, TensorMeta};
use crate::options::EncodeOptions;
use crate::ser::kind::Primitive;
use crate::ser::look::{Leaf, is_text, leaf};
use crate::serde_model::blocks;
use crate::type_name::TypeName;
use crate::wire::type_item::null_of_type;
use crate::wire::writer::{ToWrite, WriterTo};

pub use self::row::At;

/// A column that is nested in more columns than this becomes a column of items. Without this limit, a recursive type
/// would make columns without end.
const MAX_LEVELS: u32 = 20;

/// A value that can be a row of columns, too.
pub trait Put: ToWrite {
    fn fill(&self, fill: RowSerializer<'_, '_>) -> Result<()>;
}

impl<T: Serialize + ?Sized> Put for &T {
    fn fill(&self, fill: RowSerializer<'_, '_>) -> Result<()> {
        self.serialize(fill)
    }
}

impl ColumnBuilder {
    /// Adds a row. After an error, a part of the row may have been added.
    #[inline]
    pub fn put<T: Serialize + ?Sized>(&mut self, value: &T, at: At) -> Result<()> {
        // The compiler knows which of these types the value has. These values are added without a call.
        match (&mut *self, leaf(value)) {
            (Self::Numbers(numbers), Some(Leaf::Number(number)))
                if numbers.kind == number.kind() =>
            {
                number.append(&mut numbers.bytes);
                Ok(())
            }
            (Self::Bools(bits), Some(Leaf::Bool(value))) => {
                bits.push([value.into()]);
                Ok(())
            }
            (Self::Strings(_), None) if is_text::<T>() => {
                value.serialize(RowSerializer { node: self, at })
            }
            // Most values that contain others. The call in `put_any` would cost as much as this one.
            (
                Self::Struct(_)
                | Self::List(_)
                | Self::Tuple(_)
                | Self::Optional(_)
                | Self::Enum(_),
                None,
            ) if !is_text::<T>() => value.serialize(RowSerializer { node: self, at }),
            _ => self.put_any(&value, at),
        }
    }

    #[inline(never)]
    pub fn put_any(&mut self, value: &dyn Put, at: At) -> Result<()> {
        match self {
            Self::Items(items) => items.put(value, at.options),
            Self::Present(optional) => {
                optional.node.put_any(value, at)?;
                optional.bits.push([1]);
                Ok(())
            }
            // The first row decides what the column is.
            Self::Empty if at.level >= MAX_LEVELS => {
                let mut items = ItemsBuilder::default();
                let result = items.put(value, at.options);
                *self = Self::Items(items);
                result
            }
            node => value.fill(RowSerializer { node, at }),
        }
    }

    // Always: 6 % of encoding a log as columns.
    #[inline(always)]
    fn strings(&mut self, is_text: bool, bytes: &[u8]) -> Result<()> {
        match (self, u32::try_from(bytes.len())) {
            (Self::Strings(strings), Ok(len)) if strings.is_text == is_text => {
                strings.push(bytes, len);
                Ok(())
            }
            (node, _) => node.other_strings(is_text, bytes),
        }
    }

    /// Adds a text or byte string that is the first one, or does not fit.
    #[cold]
    #[inline(never)]
    fn other_strings(&mut self, is_text: bool, bytes: &[u8]) -> Result<()> {
        if self.is_new() {
            *self = Self::Strings(StringsBuilder { is_text, ..StringsBuilder::default() });
        }
        match (self, u32::try_from(bytes.len())) {
            (Self::Strings(strings), Ok(len)) if strings.is_text == is_text => {
                strings.push(bytes, len);
                Ok(())
            }
            (node, _) => Err(node.misfit()),
        }
    }

    fn number(&mut self, number: Primitive) -> Result<()> {
        if self.is_new() {
            *self = Self::Numbers(NumbersBuilder { kind: number.kind(), bytes: Bytes::default() });
        }
        match self {
            Self::Numbers(numbers) if numbers.kind == number.kind() => {
                number.append(&mut numbers.bytes);
                Ok(())
            }
            node => Err(node.misfit()),
        }
    }

    /// Adds a value of a type with a name.
    #[inline(never)]
    fn typed(&mut self, of: &TypeName, value: &dyn Put, at: At) -> Result<()> {
        if self.is_new() {
            *self = Self::Typed(Box::new(TypedBuilder {
                of: of.clone(),
                order: None,
                node: Self::Empty,
            }));
        }
        match self {
            Self::Typed(typed) if typed.of == *of => {
                typed.node.put_any(value, at.below())?;
                match &typed.node {
                    Self::Unit(_) | Self::Optional(_) => Err(null_of_type()),
                    _ => Ok(()),
                }
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
        // Elements of 4 or 6 bits, or of an unknown size, cannot be cut into rows.
        let is_whole = meta.dtype.bits().is_some_and(|bits| bits % 8 == 0);
        if !is_whole || meta.order != Order::C {
            return Err(self.misfit());
        }
        if self.is_new() {
            let tensors =
                TensorsBuilder { meta: meta.clone(), len, rows: 0, bytes: Bytes::default() };
            *self = Self::Tensors(Box::new(tensors));
        }
        match self {
            Self::Tensors(tensors)
                if tensors.meta == *meta && tensors.len == len && len <= SMALL_TENSOR =>
            {
                let bytes = &mut tensors.bytes;
                blocks(len, payload, &mut |block| {
                    bytes.push_slice(block);
                    Ok(())
                })?;
                tensors.rows += 1;
                Ok(())
            }
            node => Err(node.misfit()),
        }
    }
}

impl StringsBuilder {
    #[inline]
    pub(super) fn push(&mut self, bytes: &[u8], len: u32) {
        self.bytes.push_slice(bytes);
        self.lengths.push(len);
    }
}

impl ItemsBuilder {
    fn put(&mut self, value: &dyn Put, options: &EncodeOptions) -> Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        let mut to = WriterTo::to(bytes, Memory::growing(), options.of_part());
        let result = value.write(to.writer()).and_then(|()| to.writer().end());
        self.bytes = to.take_buffer();
        result?;
        self.have_unknown_lengths |= to.overflow_ref().has_unknown_lengths;
        self.ends.push(self.bytes.len());
        Ok(())
    }
}
