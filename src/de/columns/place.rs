//! Reads parts of columns: a value in a row, some of the rows, or one column (`SPEC.md`, annex A).

use std::ops::Range;
use std::rc::Rc;

use serde::de::{self, DeserializeSeed, Visitor};
use serde::forward_to_deserialize_any;

use super::access::{MoreRows, RowElements, all_taken};
use super::in_row::read_in_row;
use super::row::Row;
use super::{Groups, WantedRows};
use crate::budget::Budget;
use crate::de::items::encoded;
use crate::de::visit::show;
use crate::de::{ValueDecoder, bulk};
use crate::dtype::DType;
use crate::elements::Elements;
use crate::error::{Error, Result};
use crate::handoff::{Held, name};
use crate::meta::{Order, TensorMeta};
use crate::shape::Shape;
use crate::steps::Steps;
use crate::tensor::ToTensor as _;
use crate::value::{self, Value};
use crate::wire::columns::{
    Bitmap, Column, ColumnData, ColumnKind, ColumnTensor, EncodedRows, Optional, Structs, Tensors,
    Validity, WantedFields, tensor_of_groups,
};
use crate::wire::head;
use crate::wire::reader::{Left, Reader};

impl<'de> ValueDecoder<'de, '_> {
    /// Reads a value in a row of columns, which are the next item. The names lead to a field of the row, and the
    /// steps to a value in this field.
    ///
    /// # Errors
    /// The outer error is one of the columns. It has a path from the rows on. The inner error is one of the value, and
    /// has a path from the value on.
    pub(crate) fn in_row<T: DeserializeSeed<'de>>(
        &mut self,
        row: u64,
        names: &[String],
        steps: Steps<'_>,
        seed: T,
    ) -> Result<Result<T::Value>> {
        let fields = WantedFields::At(names, steps);
        let wanted = WantedRows { rows: row..row.saturating_add(1), before: 0, fields };
        self.with_groups(wanted, |groups| {
            let Some((column, rows)) = groups.next_group()? else {
                let rows = groups.passed;
                let what = format!("expected a row below {rows}, found row {row}");
                return Ok(Err(Error::not_found(what)));
            };
            let allowance = groups.allowance;
            let column = field_of(column, rows, names, allowance);
            Ok(column.and_then(|mut column| read_in_row(&mut column, 0, steps, allowance, seed)))
        })
    }

    /// Reads the number at position `row` of the packed sequence that is the next item. The errors are as in
    /// [`in_row`](Self::in_row).
    pub(crate) fn in_packed<T: DeserializeSeed<'de>>(
        &mut self,
        row: u64,
        seed: T,
    ) -> Result<Result<T::Value>> {
        let mut column = self.wire.packed_number(row)?;
        let allowance = self.wire.allowance();
        let at = column.at;
        let value = seed.deserialize(Row::new(&mut column, 0, &allowance));
        Ok(value.map_err(|error| error.at(at)))
    }

    /// Reads some of the rows of these many groups, which come next, as a sequence. If the rows are structs, only the
    /// wanted fields are read.
    pub(crate) fn rows_of_groups<T: DeserializeSeed<'de>>(
        &mut self,
        count: usize,
        wanted: WantedRows<'_>,
        seed: T,
    ) -> Result<T::Value> {
        // The tag, and the array around the groups.
        self.wire.within(2, |wire| {
            Self::in_groups(wire, Left::groups(count), wanted, |groups| {
                let value = seed.deserialize(GroupedRows(groups))?;
                groups.close().map(|()| value)
            })
        })
    }

    /// Reads one column of the columns that are the next item. The first name is a field of the rows, the second name a
    /// field of that field, and so on. Adds those of these rows that are in each group to `found`.
    pub(crate) fn column(
        &mut self,
        names: &[String],
        rows: Range<u64>,
        found: &mut ColumnOfGroups<'de>,
    ) -> Result<()> {
        let fields = WantedFields::At(names, Steps::of(""));
        let before = found.first.saturating_add(found.rows as u64);
        self.with_groups(WantedRows { rows, before, fields }, |groups| {
            while let Some((column, rows)) = groups.next_group()? {
                // The column is kept.
                groups.taken = 0;
                let column = field_of(column, rows, names, groups.allowance)?;
                found.push(rows, column);
            }
            found.allowance.take_over(groups.allowance);
            Ok(())
        })
    }

    /// Reads one column of a group, which comes next: all rows, or those that are picked, which ascend. The names are as
    /// in [`column`](Self::column).
    pub(crate) fn column_of_group(
        &mut self,
        names: &[String],
        picked: Option<&[usize]>,
        found: &mut ColumnOfGroups<'de>,
    ) -> Result<()> {
        let fields = WantedFields::At(names, Steps::of(""));
        // The tag, and the array around the groups.
        self.wire.within(2, |wire| {
            let Some(rows) = wire.group_rows(&mut Left::groups(1))? else { return Ok(()) };
            let part = match picked {
                Some([first, .., last]) => *first..(last + 1).min(rows),
                Some([row]) => *row..(row + 1).min(rows),
                _ => 0..rows,
            };
            let column = wire.column_part(rows, part.clone(), &fields)?;
            let allowance = wire.allowance();
            let column = field_of(column, part.len(), names, &allowance)?;
            match picked {
                None => found.push(rows, column),
                Some(picked) => {
                    let mut rows = Vec::new();
                    allowance.reserve(&mut rows, picked.len())?;
                    rows.extend(picked.iter().map(|row| row.saturating_sub(part.start)));
                    found.push(rows.len(), column.pick(&rows, &allowance)?);
                    allowance.refund_vec(&rows);
                }
            }
            wire.resume(&allowance);
            found.allowance.take_over(&allowance);
            Ok(())
        })
    }

    /// Calls `read` with the groups of the columns that are the next item.
    fn with_groups<T>(
        &mut self,
        wanted: WantedRows<'_>,
        read: impl FnOnce(&mut Groups<'_, 'de, '_>) -> Result<T>,
    ) -> Result<T> {
        self.wire.columns()?;
        self.wire.within(2, |wire| {
            let left = wire.groups()?;
            Self::in_groups(wire, left, wanted, read)
        })
    }

    /// Calls `read` with groups that come next.
    fn in_groups<T>(
        wire: &mut Reader<'de, '_>,
        mut left: Left,
        wanted: WantedRows<'_>,
        read: impl FnOnce(&mut Groups<'_, 'de, '_>) -> Result<T>,
    ) -> Result<T> {
        let allowance = wire.allowance();
        let result = read(&mut Groups::new(wire, &mut left, &allowance, wanted));
        wire.resume(&allowance);
        result
    }
}

/// Returns the nested field that these names lead to. The result has as many rows as `column`. A row is null if it has
/// no such field, is of another variant, if a value on the way to the field is null, or if the field itself is null
/// (`SPEC.md`, annex A).
fn field_of<'de>(
    mut column: Column<'de>,
    rows: usize,
    names: &[String],
    allowance: &Budget,
) -> Result<Column<'de>> {
    let Some((name, rest)) = names.split_first() else { return Ok(column) };
    let at = column.at;
    match column.kind {
        ColumnKind::Structs(Structs { fields, .. }) => {
            let Some(field) = fields.into_iter().find(|field| field.name == *name) else {
                return Ok(Column::new(at, ColumnKind::Unit));
            };
            let Some(marks) = field.present else {
                return field_of(field.column, rows, rest, allowance);
            };
            let present = marks.count(rows);
            let column = field_of(field.column, present, rest, allowance)?;
            spread(at, marks, rows, column, allowance)
        }
        ColumnKind::Optional(inner) => {
            let Optional { marks, column } = *inner;
            let present = marks.count(rows);
            let column = field_of(column, present, names, allowance)?;
            spread(at, marks, rows, column, allowance)
        }
        ColumnKind::Enums(mut enums) => {
            let code = enums.names.iter().position(|variant| variant == name);
            let content = code.and_then(|code| enums.columns.get_mut(code)?.take());
            let (Some(code), Some(column)) = (code, content) else {
                return Ok(Column::new(at, ColumnKind::Unit));
            };
            allowance.charge(rows.div_ceil(8) as u64)?;
            let marks = Validity::new(Bitmap::of((0..rows).map(|row| enums.code(row) == code)));
            let column = field_of(column, marks.count(rows), rest, allowance)?;
            spread(at, marks, rows, column, allowance)
        }
        _ => {
            let items = as_items(&mut column, rows, allowance, |value| {
                let mut field = value.get(name.as_str());
                for name in rest {
                    field = field.and_then(|field| field.get(name.as_str()));
                }
                field
            })?;
            Ok(Column::new(at, ColumnKind::Items(items)))
        }
    }
}

/// Encodes the values that `of` finds in the rows of a column.
fn as_items<'de>(
    column: &mut Column<'de>,
    rows: usize,
    allowance: &Budget,
    of: impl Fn(&Value) -> Option<&Value>,
) -> Result<EncodedRows<'de>> {
    let mut items = Vec::new();
    for row in 0..rows {
        let value = value::read_row(column, row, allowance)?;
        let item = crate::to_vec(of(&value).unwrap_or(&Value::Null))?;
        allowance.extend(&mut items, &item)?;
    }
    Ok(EncodedRows::new(ColumnData::Owned(Rc::new(items)), column.at, allowance.limits.max_depth))
}

/// Returns a column of `rows` rows: those that are marked are the rows of `column`, and the others are null.
///
/// If rows of `column` can be null too, the result does not tell them from the others. So there is one level of
/// options, not two.
fn spread<'de>(
    at: u64,
    marks: Validity<'de>,
    rows: usize,
    column: Column<'de>,
    allowance: &Budget,
) -> Result<Column<'de>> {
    if let ColumnKind::Dict(dict) = &column.kind
        && matches!(
            dict.column.kind,
            ColumnKind::Unit | ColumnKind::Optional(_) | ColumnKind::Items(_)
        )
    {
        let (mut column, present) = (column, marks.count(rows));
        let items = as_items(&mut column, present, allowance, |value| Some(value))?;
        return spread(
            at,
            marks,
            rows,
            Column::new(column.at, ColumnKind::Items(items)),
            allowance,
        );
    }
    let kind = match column.kind {
        ColumnKind::Unit => ColumnKind::Unit,
        ColumnKind::Optional(mut inner) => {
            allowance.charge(rows.div_ceil(8) as u64)?;
            inner.marks = marks.and(&inner.marks, rows);
            ColumnKind::Optional(inner)
        }
        ColumnKind::Items(mut items) => {
            let present = marks.count(rows);
            if (0..present).any(|row| items.reads_as_none(row)) {
                ColumnKind::Items(spread_items(at, marks, rows, items, allowance)?)
            } else {
                let column = Column::new(column.at, ColumnKind::Items(items));
                ColumnKind::Optional(Box::new(Optional { marks, column }))
            }
        }
        kind => {
            let column = Column::new(column.at, kind);
            ColumnKind::Optional(Box::new(Optional { marks, column }))
        }
    };
    Ok(Column::new(at, kind))
}

/// Like [`spread`], for items of which some are null: items of nulls are added.
fn spread_items<'de>(
    at: u64,
    mut marks: Validity<'de>,
    rows: usize,
    mut items: EncodedRows<'de>,
    allowance: &Budget,
) -> Result<EncodedRows<'de>> {
    let mut all = Vec::new();
    for row in 0..rows {
        let item = marks.inner(row).map_or(&[head::NULL][..], |row| items.item(row));
        allowance.extend(&mut all, item)?;
    }
    Ok(EncodedRows::new(ColumnData::Owned(Rc::new(all)), at, items.levels))
}

/// The same column of all groups: a sequence of all their rows, or a tensor.
pub struct ColumnOfGroups<'de> {
    groups: Vec<(usize, Column<'de>)>,
    /// The number of rows in all groups.
    rows: usize,
    /// The number of the first row, for errors.
    first: u64,
    /// The dtype of the column as a tensor, if it is known. That of some of the groups can be narrower.
    dtype: Option<DType>,
    allowance: Budget,
}

impl<'de> ColumnOfGroups<'de> {
    /// Starts without groups.
    pub fn new(budget: Budget) -> Self {
        Self::starting_at(0, budget)
    }

    /// Like [`new`](Self::new), for rows from row `first` of a table on.
    pub fn starting_at(first: u64, allowance: Budget) -> Self {
        Self { groups: Vec::new(), rows: 0, first, dtype: None, allowance }
    }

    /// States the dtype of the column as a tensor.
    pub fn with_dtype(self, dtype: Option<DType>) -> Self {
        Self { dtype, ..self }
    }

    /// The column of each group, and the number of its rows.
    pub fn into_groups(self) -> Vec<(usize, Column<'de>)> {
        self.groups
    }

    fn push(&mut self, rows: usize, column: Column<'de>) {
        self.rows += rows;
        self.groups.push((rows, column));
    }

    /// Adds rows that are not stored as columns. `budget` is what is left after the rows were read.
    pub fn add_rows(&mut self, rows: &[&Value], budget: &Budget) -> Result<()> {
        self.allowance.take_over(budget);
        let kind = match self.tensors_of(rows)? {
            Some(tensors) => ColumnKind::Tensors(Box::new(tensors)),
            None => {
                let mut items = Vec::new();
                for row in rows {
                    let item = crate::to_vec(row)?;
                    self.allowance.extend(&mut items, &item)?;
                }
                let levels = self.allowance.limits.max_depth;
                ColumnKind::Items(EncodedRows::new(ColumnData::Owned(Rc::new(items)), 0, levels))
            }
        };
        self.push(rows.len(), Column::new(0, kind));
        budget.take_over(&self.allowance);
        Ok(())
    }

    /// The rows, if they are tensors of one dtype and shape.
    fn tensors_of(&self, rows: &[&Value]) -> Result<Option<Tensors<'de>>> {
        let Some((Value::Tensor(first), _)) = rows.split_first() else { return Ok(None) };
        let meta = first.meta();
        // For a dtype of unknown width, the shape does not say how long a row is.
        let len = first.le_bytes().len();
        let mut data = Vec::new();
        for row in rows {
            match row {
                Value::Tensor(tensor)
                    if meta.order == Order::C
                        && tensor.meta() == meta
                        && tensor.le_bytes().len() == len =>
                {
                    self.allowance.extend(&mut data, &tensor.le_bytes())?;
                }
                _ => return Ok(None),
            }
        }
        let TensorMeta { dtype, shape, .. } = meta;
        let data = ColumnData::Owned(Rc::new(data));
        Ok(Some(Tensors::new(dtype, shape, len, data, None)))
    }

    fn tensor<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let ColumnTensor { dtype, mut dims, bytes, shared } =
            tensor_of_groups(&self.groups, self.dtype.as_ref(), &self.allowance)?;
        dims.insert(0, self.rows);
        let meta = TensorMeta { dtype, shape: Shape::from(&*dims), order: Order::C };
        show(meta, true, shared.map_or(Held::Nothing, Held::Shared), bytes, visitor)
    }

    /// Reads the numbers into a vector, if the visitor is that of a vector of numbers of the same type.
    fn vec<V: Visitor<'de>>(&self) -> Option<Result<V::Value>> {
        let numbers = |column: &Column<'_>| match &column.kind {
            ColumnKind::Numbers(numbers) => bulk::is_vec_of::<V>(&numbers.kind.dtype()),
            _ => false,
        };
        if !self.groups.iter().all(|(_, column)| numbers(column)) {
            return None;
        }
        let all = tensor_of_groups(&self.groups, None, &self.allowance).ok()?;
        let bytes = all.bytes.as_slice();
        let charged = self.allowance.charge(bytes.len() as u64);
        let made = charged.and_then(|()| Elements::copied_from_le(&all.dtype, bytes));
        made.map(Elements::into_vec_as).transpose()
    }

    fn value(mut self) -> Result<Value> {
        let mut values = Vec::new();
        let first = self.first;
        for (rows, column) in &mut self.groups {
            self.allowance.reserve(&mut values, *rows)?;
            for row in 0..*rows {
                let value = value::read_row(column, row, &self.allowance);
                let number = first.saturating_add(values.len() as u64);
                values.push(value.map_err(|error| error.in_index(number))?);
            }
        }
        Ok(Value::Array(values))
    }
}

impl<'de> de::Deserializer<'de> for ColumnOfGroups<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        if let Some(vec) = self.vec::<V>() {
            return vec;
        }
        let Self { groups, rows: left, first: next, allowance, .. } = self;
        let mut rows = RowsOfGroups { groups: groups.into_iter(), first: next, next, left };
        let value = RowElements::of_several(&mut rows, &allowance)?.visit(visitor)?;
        all_taken(rows.left, "an array").map(|()| value)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value> {
        match name {
            name::JSON => self.deserialize_map(visitor),
            name::TENSOR => self.tensor(visitor),
            name::VALUE => {
                let value = self.value()?;
                value::offer(value, || visitor.visit_unit())
            }
            name::RAW => {
                let budget = self.allowance.clone();
                let bytes = encoded(&self.value()?)?;
                budget.charge(bytes.len() as u64)?;
                visitor.visit_byte_buf(bytes)
            }
            _ => visitor.visit_newtype_struct(self),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}

/// The rows of the groups, one after the other.
struct RowsOfGroups<'de> {
    groups: std::vec::IntoIter<(usize, Column<'de>)>,
    /// The number of the first row of the last group, and of the next one.
    first: u64,
    next: u64,
    /// The number of rows in the next groups.
    left: usize,
}

impl<'de> MoreRows<'de> for RowsOfGroups<'de> {
    fn next_rows(&mut self) -> Result<Option<(Column<'de>, Range<usize>)>> {
        let Some((rows, column)) = self.groups.find(|(rows, _)| *rows > 0) else { return Ok(None) };
        self.left -= rows;
        self.first = self.next;
        self.next = self.first.saturating_add(rows as u64);
        Ok(Some((column, 0..rows)))
    }

    fn left(&self) -> usize {
        self.left
    }

    fn in_row(&self, row: usize, error: Error) -> Error {
        error.in_index(self.first.saturating_add(row as u64))
    }
}

/// The rows of all groups, as a sequence.
struct GroupedRows<'g, 'a, 'de, 'b>(&'g mut Groups<'a, 'de, 'b>);

impl<'de> de::Deserializer<'de> for GroupedRows<'_, '_, 'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        let allowance = self.0.allowance;
        RowElements::of_several(self.0, allowance)?.visit(visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct enum identifier ignored_any option newtype_struct
    }

    fn is_human_readable(&self) -> bool {
        false
    }
}
