//! Adds the elements of lists and tuples, the entries of maps, and the fields of structs.

use serde::Serialize;
use serde::ser;

use super::Put;
use super::row::{At, does_not_fit, is_same};
use crate::error::{Error, Result};
use crate::ser::columns::builder::{
    ColumnBuilder, FieldBuilder, ListBuilder, MapBuilder, OptionalBuilder, StructBuilder,
    TupleBuilder,
};
use crate::ser::columns::bytes::Bytes;
use crate::ser::delegate::{elements, fields, unpaired};
use crate::ser::look::{Leaf, leaf};
use crate::value;

pub struct ListSerializer<'a, 'o> {
    list: &'a mut ListBuilder,
    count: usize,
    at: At<'o>,
}

impl<'a, 'o> ListSerializer<'a, 'o> {
    #[inline]
    pub fn new(list: &'a mut ListBuilder, at: At<'o>) -> Self {
        Self { list, count: 0, at }
    }

    #[inline]
    pub fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        match self.list.node.put(value, self.at) {
            Ok(()) => {
                self.count += 1;
                Ok(())
            }
            Err(error) => Err(error.in_index(self.count as u64)),
        }
    }

    /// Adds numbers of a primitive type.
    #[inline]
    pub fn numbers<I>(&mut self, mut iter: I) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        let Some(first) = iter.next() else { return Ok(()) };
        self.element(&first)?;
        if let ColumnBuilder::Numbers(numbers) = &mut self.list.node {
            self.count += numbers.kind.extend(&mut numbers.bytes, &mut iter);
        }
        // If the column has become one of items, the rest is added here.
        for item in iter {
            self.element(&item)?;
        }
        Ok(())
    }

    /// Adds bools.
    #[inline]
    pub fn bools<I>(&mut self, mut iter: I) -> Result<()>
    where
        I: Iterator,
        I::Item: Serialize,
    {
        if let ColumnBuilder::Bools(bits) = &mut self.list.node {
            while let Some(Leaf::Bool(bit)) = iter.next().and_then(|item| leaf(&item)) {
                bits.push([bit.into()]);
                self.count += 1;
            }
        }
        // If the column is not one of bools yet, all values are added here.
        for item in iter {
            self.element(&item)?;
        }
        Ok(())
    }

    #[inline]
    pub fn finish(self) -> Result<()> {
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
    impl[] for ListSerializer<'_, '_>: (), Error;
    SerializeSeq serialize_element
}

pub struct MapSerializer<'a, 'o> {
    map: &'a mut MapBuilder,
    /// The number of keys and the number of values that were added.
    keys: usize,
    values: usize,
    at: At<'o>,
}

impl<'a, 'o> MapSerializer<'a, 'o> {
    #[inline]
    pub fn new(map: &'a mut MapBuilder, at: At<'o>) -> Self {
        Self { map, keys: 0, values: 0, at }
    }
}

impl ser::SerializeMap for MapSerializer<'_, '_> {
    type Ok = ();
    type Error = Error;

    #[inline]
    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        if self.keys != self.values {
            return Err(unpaired());
        }
        self.keys += 1;
        self.map.keys.put(key, self.at)
    }

    #[inline]
    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        if self.keys != self.values + 1 {
            return Err(unpaired());
        }
        self.values += 1;
        self.map.values.put(value, self.at)
    }

    #[inline]
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

    #[inline]
    fn end(self) -> Result<()> {
        if self.keys != self.values {
            return Err(unpaired());
        }
        let Ok(count) = u32::try_from(self.keys) else { return Err(too_long()) };
        self.map.lengths.push(count);
        Ok(())
    }
}

pub struct TupleSerializer<'a, 'o> {
    tuple: &'a mut TupleBuilder,
    index: usize,
    at: At<'o>,
}

impl<'a, 'o> TupleSerializer<'a, 'o> {
    #[inline]
    pub fn new(tuple: &'a mut TupleBuilder, at: At<'o>) -> Self {
        Self { tuple, index: 0, at }
    }

    // Always: 4 % of encoding updates as columns.
    #[inline(always)]
    fn element<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        let index = self.index;
        if index == self.tuple.len {
            self.lengthen()?;
        }
        self.index += 1;
        let place = if self.tuple.is_array { 0 } else { index };
        match self.tuple.nodes.get_mut(place).map(|node| node.put(value, self.at)) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(error.in_index(index as u64)),
            None => self.misfit(),
        }
    }

    /// Adds a column for an element that no row before had.
    #[cold]
    #[inline(never)]
    fn lengthen(&mut self) -> Result<()> {
        if self.tuple.rows > 0 || self.tuple.is_array {
            return self.misfit();
        }
        self.tuple.nodes.push(ColumnBuilder::Empty);
        self.tuple.len += 1;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn misfit(&mut self) -> Result<()> {
        self.tuple.is_misfit = true;
        Err(does_not_fit())
    }

    #[inline]
    fn finish(mut self) -> Result<()> {
        if self.index != self.tuple.len {
            return self.misfit();
        }
        self.tuple.rows += 1;
        if self.tuple.rows == 1 && !self.tuple.is_array {
            self.tuple.join();
        }
        Ok(())
    }
}

elements! {
    impl[] for TupleSerializer<'_, '_>: (), Error;
    SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field,
    SerializeTupleVariant serialize_field
}

pub struct StructSerializer<'a, 'o> {
    columns: &'a mut StructBuilder,
    /// The position of the next field.
    index: usize,
    at: At<'o>,
}

impl<'a, 'o> StructSerializer<'a, 'o> {
    #[inline]
    pub fn new(columns: &'a mut StructBuilder, at: At<'o>) -> Self {
        Self { columns, index: 0, at }
    }

    // Always: 46 % of encoding a mesh as columns.
    #[inline(always)]
    fn field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<()> {
        let result = match self.columns.fields.get_mut(self.index) {
            Some(field) if is_same(field.key, key) => {
                self.index += 1;
                field.node.put(value, self.at)
            }
            _ => self.other_field(key, &value),
        };
        match result {
            Ok(()) => Ok(()),
            Err(error) => Err(error.in_field(key)),
        }
    }

    /// Adds a field that is not the next one.
    #[cold]
    #[inline(never)]
    fn other_field(&mut self, key: &'static str, value: &dyn Put) -> Result<()> {
        let at = self.at;
        self.find(key)?.put_any(value, at)
    }

    /// The column of a field. Fields before it that were not written are missing in this row.
    fn find(&mut self, key: &'static str) -> Result<&mut ColumnBuilder> {
        if self.columns.fields.get(self.index).is_none_or(|field| field.key != key) {
            self.skip_to(key)?;
        }
        self.index += 1;
        match self.columns.fields.get_mut(self.index - 1) {
            Some(field) => Ok(&mut field.node),
            None => Err(does_not_fit()),
        }
    }

    /// Moves to the column of this field.
    fn skip_to(&mut self, key: &'static str) -> Result<()> {
        let rows = self.columns.rows;
        let (before, behind) = self.columns.fields.split_at_mut(self.index);
        match behind.iter().position(|field| field.key == key) {
            Some(skipped) => {
                behind.iter_mut().take(skipped).for_each(|field| field.node.push_missing(rows));
                self.index += skipped;
            }
            // The field occurs twice, or in another order than in an earlier row.
            None if before.iter().any(|field| field.key == key) => {
                self.columns.is_misfit = true;
                return Err(does_not_fit());
            }
            None => {
                let mut node = ColumnBuilder::Empty;
                if rows > 0 {
                    let bits = Bytes::filled(0, rows);
                    node = ColumnBuilder::Present(Box::new(OptionalBuilder {
                        bits,
                        node: ColumnBuilder::Empty,
                    }));
                }
                self.columns.fields.insert(self.index, FieldBuilder::new(key, node));
            }
        }
        Ok(())
    }

    fn skip(&mut self, key: &'static str) -> Result<()> {
        let rows = self.columns.rows;
        self.find(key)?.push_missing(rows);
        Ok(())
    }

    #[allow(clippy::unnecessary_wraps)] // `fields!` needs a `Result`.
    #[inline]
    fn finish(self) -> Result<()> {
        if self.index < self.columns.fields.len() {
            self.columns.end_early(self.index);
        }
        self.columns.rows += 1;
        Ok(())
    }
}

impl StructBuilder {
    /// Notes that the fields from this position on are missing in a row.
    #[cold]
    #[inline(never)]
    fn end_early(&mut self, index: usize) {
        let rows = self.rows;
        self.fields.iter_mut().skip(index).for_each(|field| field.node.push_missing(rows));
    }
}

fields! {
    impl[] for StructSerializer<'_, '_>: (), Error;
    SerializeStruct with Self::skip,
    SerializeStructVariant with Self::skip
}
