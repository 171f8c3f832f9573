//! Values from sequences that were written as columns.

use super::read::read;
use super::{Value, with_types};
use crate::budget::Budget;
use crate::elements::Elements;
use crate::error::Result;
use crate::meta::{Order, TensorMeta};
use crate::tensor::DynTensor;
use crate::wire::columns::{Column, ColumnKind, Structs};
use crate::wire::number::Numeric;
use crate::wire::reader::Reader;

/// Reads columns as the array that they stand for. Their tag was read.
#[inline(never)]
pub(super) fn read_columns(wire: &mut Reader<'_, '_>) -> Result<Value> {
    wire.within(2, |wire| {
        let mut left = wire.groups()?;
        let mut items = Vec::new();
        loop {
            let before = wire.taken();
            let group =
                wire.group(&mut left).map_err(|error| error.in_index(items.len() as u64))?;
            let Some(mut group) = group else { return Ok(Value::Array(items)) };
            let (taken, allowance) = (wire.taken() - before, wire.allowance());
            allowance.reserve(&mut items, group.rows)?;
            for row in 0..group.rows {
                let item = read_row(&mut group.column, row, &allowance);
                let item = item.map_err(|error| error.in_index(items.len() as u64))?;
                items.push(item);
            }
            allowance.refund(taken);
            wire.resume(&allowance);
        }
    })
}

/// Reads a row of a column.
pub(crate) fn read_row(column: &mut Column<'_>, row: usize, allowance: &Budget) -> Result<Value> {
    let at = column.at;
    let value = row_of(column, row, allowance).map_err(|error| error.at(at));
    match &column.of {
        Some(of) if with_types::are_kept() => with_types::tagged(&of.name, value?, allowance),
        _ => value,
    }
}

/// An array of these values.
fn array(
    values: impl ExactSizeIterator<Item = Result<Value>>,
    allowance: &Budget,
) -> Result<Value> {
    let mut items = Vec::new();
    allowance.reserve(&mut items, values.len())?;
    for value in values {
        items.push(value.map_err(|error| error.in_index(items.len() as u64))?);
    }
    Ok(Value::Array(items))
}

fn row_of(column: &mut Column<'_>, row: usize, allowance: &Budget) -> Result<Value> {
    if let ColumnKind::Dict(_) = column.kind {
        let (column, row) = column.distinct(row);
        return read_row(column, row, allowance);
    }
    if let Some(inner) = column.some(row) {
        let value = read_row(column.inside(), inner, allowance)?;
        if matches!(value, Value::Null | Value::Tag(..)) {
            // "Some" may be a tag around it.
            allowance.charge(size_of::<Value>() as u64)?;
        }
        return Ok(value.some());
    }
    let text = |text: &str| -> Result<String> {
        allowance.charge(text.len() as u64)?;
        Ok(text.to_owned())
    };
    Ok(match &mut column.kind {
        ColumnKind::Numbers(numbers) => match numbers.number(row) {
            Numeric::Single(value) => Value::F32(value),
            Numeric::Double(value) => Value::F64(value),
            integer @ Numeric::Int { .. } => Value::Integer(integer.as_int().unwrap_or_default()),
        },
        ColumnKind::Bools(bits) => Value::Bool(bits.get(row)),
        ColumnKind::Unit | ColumnKind::Optional(_) | ColumnKind::Dict(_) => Value::Null,
        ColumnKind::Texts(cuts, texts) => {
            let range = cuts.range(row);
            Value::Text(text(texts.as_str().get(range).unwrap_or_default())?)
        }
        ColumnKind::Bytes(cuts, data) => {
            let range = cuts.range(row);
            allowance.charge(range.len() as u64)?;
            Value::Bytes(data.part(range).as_slice().to_vec())
        }
        ColumnKind::Tensors(tensors) => {
            let payload = tensors.row(row);
            let own = size_of::<DynTensor>() + tensors.shape.allocated();
            allowance.charge((own + payload.as_slice().len()) as u64)?;
            let elements = Elements::copied_from_le(&tensors.dtype, payload.as_slice())?;
            let (dtype, shape) = (tensors.dtype.clone(), tensors.shape.clone());
            let meta = TensorMeta { dtype, shape, order: Order::C };
            Value::Tensor(Box::new(DynTensor::from_parts(meta, elements)?))
        }
        ColumnKind::Lists(lists) => {
            let (cuts, column) = &mut **lists;
            array(cuts.range(row).map(|row| read_row(column, row, allowance)), allowance)?
        }
        ColumnKind::Tuples(columns) => {
            let values = columns.iter_mut().map(|column| read_row(column, row, allowance));
            array(values, allowance)?
        }
        ColumnKind::Structs(Structs { fields, .. }) => {
            let mut entries = Vec::new();
            let present = fields.iter().filter(|field| field.is_present(row)).count();
            allowance.reserve(&mut entries, present)?;
            for field in fields.iter_mut().filter(|field| field.is_present(row)) {
                let row = field.inner(row);
                let value = read_row(&mut field.column, row, allowance);
                let value = value.map_err(|error| error.in_field(&*field.name))?;
                entries.push((Value::Text(text(&field.name)?), value));
            }
            Value::Map(entries)
        }
        ColumnKind::Maps(maps) => {
            let rows = maps.cuts.range(row);
            let mut entries = Vec::new();
            allowance.reserve(&mut entries, rows.len())?;
            for row in rows {
                let key = read_row(&mut maps.keys, row, allowance)?;
                let value = read_row(&mut maps.values, row, allowance);
                let value = value.map_err(|error| error.in_field(key.to_step()))?;
                entries.push((key, value));
            }
            Value::Map(entries)
        }
        ColumnKind::Enums(enums) => {
            let (code, row) = enums.entry(row);
            let name = text(enums.names.get(code).map(|name| &**name).unwrap_or_default())?;
            match enums.columns.get_mut(code) {
                Some(Some(column)) => {
                    allowance.charge(size_of::<(Value, Value)>() as u64)?;
                    let value = read_row(column, row, allowance);
                    let value = value.map_err(|error| error.in_field(&*name))?;
                    Value::Map(vec![(Value::Text(name), value)])
                }
                _ => Value::Text(name),
            }
        }
        ColumnKind::Items(items) => {
            let levels = items.levels;
            let (input, base) = items.input(row);
            let mut wire = Reader::inside(input, levels, allowance);
            let value = read(&mut wire)?;
            allowance.take_over(&wire.allowance());
            let taken = usize::try_from(wire.offset() - base).unwrap_or(usize::MAX);
            items.took(row, taken);
            value
        }
    })
}
