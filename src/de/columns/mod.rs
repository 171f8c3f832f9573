//! Reads sequences that were written as columns (`SPEC.md`, section 3.1). A row gives the same values as the item
//! that it stands for.

mod access;
mod deserializer;
mod row;
mod tensors;

use serde::de::{self, DeserializeSeed, Visitor};

use self::row::Row;
use super::Deserializer;
use crate::error::{Error, Result};
use crate::io::item_read::ItemRead;
use crate::io::source::Read;
use crate::wire::columns::{Allowance, Column, Items};
use crate::wire::reader::{Item, Left, Reader};
use crate::wire::tag;

impl<'de, R: Read<'de>> Deserializer<R> {
    /// Reads columns as a sequence of rows. Their tag was read.
    #[cold]
    #[inline(never)]
    pub(super) fn columns<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        // The tag, and the array around the groups.
        self.wire.enter()?;
        self.wire.enter()?;
        let result = self.groups(visitor);
        self.wire.leave();
        self.wire.leave();
        result
    }

    /// Reads a struct from an item that is neither a map nor an array: columns stand for an array.
    #[cold]
    #[inline(never)]
    pub(super) fn struct_of_columns<V: Visitor<'de>>(
        &mut self,
        at: u64,
        item: Item,
        visitor: V,
    ) -> Result<V::Value> {
        match item {
            Item::Tag(tag::COLUMNS) => self.columns(visitor),
            item => Err(Self::wrong_item(at, item, &visitor)),
        }
    }

    fn groups<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value> {
        let mut left = self.wire.groups()?;
        let allowance = self.wire.allowance();
        let mut groups = Groups {
            wire: &mut self.wire,
            left: &mut left,
            at: 0,
            allowance: &allowance,
            current: None,
        };
        // The first group is read before the visitor asks for the number of rows.
        groups.next_group()?;
        let value = visitor.visit_seq(&mut groups);
        // Read by the visitor up to here, also if it fails: it may continue after an error.
        let value = value.and_then(|value| groups.close().map(|()| value));
        groups.wire.resume(&allowance);
        value
    }
}

/// The rows of all groups.
struct Groups<'a, 'de, R> {
    wire: &'a mut Reader<R>,
    left: &'a mut Left,
    /// How many rows were given.
    at: u64,
    allowance: &'a Allowance,
    current: Option<Current<'de>>,
}

/// The group that is being read.
struct Current<'de> {
    column: Column<'de>,
    row: usize,
    rows: usize,
}

impl<'de, R: Read<'de>> Groups<'_, 'de, R> {
    /// Reads groups until there is one with rows. Returns false after the last one.
    #[cold]
    fn next_group(&mut self) -> Result<bool> {
        self.current = None;
        self.wire.resume(self.allowance);
        loop {
            let group = self.wire.group(self.left).map_err(|error| error.in_index(self.at))?;
            self.allowance.take_over(&self.wire.allowance());
            match group {
                Some(group) if group.rows > 0 => {
                    let (column, rows) = (group.column, group.rows);
                    self.current = Some(Current { column, row: 0, rows });
                    return Ok(true);
                }
                Some(_) => {}
                None => return Ok(false),
            }
        }
    }

    /// Checks that all rows were taken, and reads to the end of the array around the groups.
    fn close(&mut self) -> Result<()> {
        loop {
            if let Some(Current { row, rows, .. }) = self.current
                && row < rows
            {
                let more = rows - row;
                let what = format!("expected the end of an array, found {more} more elements");
                return Err(Error::data(what).at(self.wire.offset()));
            }
            // After the last group there is nothing left, not even a break.
            if self.left.known() == Some(0) || !self.next_group()? {
                return Ok(());
            }
        }
    }
}

impl<'de, R: Read<'de>> de::SeqAccess<'de> for &mut Groups<'_, 'de, R> {
    type Error = Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>> {
        loop {
            if let Some(Current { column, row, rows }) = &mut self.current
                && row < rows
            {
                let at = column.at;
                let result = seed.deserialize(Row::new(column, *row, self.allowance));
                *row += 1;
                self.at += 1;
                return match result {
                    Ok(value) => Ok(Some(value)),
                    Err(error) => Err(error.at(at).in_index(self.at - 1)),
                };
            }
            if !self.next_group()? {
                return Ok(None);
            }
        }
    }

    /// The rows that are known to be there: those of the current group.
    #[inline]
    fn size_hint(&self) -> Option<usize> {
        self.current.as_ref().map(|current| current.rows - current.row)
    }
}

/// Reads the item of a row with the deserializer for items.
fn with_item<'de, T>(
    items: &mut Items<'de>,
    row: usize,
    allowance: &Allowance,
    read: impl FnOnce(&mut Deserializer<ItemRead<'de, '_>>) -> Result<T>,
) -> Result<T> {
    let levels = items.levels;
    let (item, base) = items.at(row);
    let wire = Reader::inside(ItemRead::new(&item, base), levels, allowance);
    let mut de = Deserializer { wire, some_at: u64::MAX, some_count: 0 };
    let result = read(&mut de);
    allowance.take_over(&de.wire.allowance());
    let taken = usize::try_from(de.wire.offset() - base).unwrap_or(usize::MAX);
    if result.is_ok() {
        items.took(row, taken);
    }
    result.map_err(|error| error.at(base))
}
