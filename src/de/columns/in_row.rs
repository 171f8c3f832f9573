//! Reads what a path leads to in a row of a column.

use serde::de::DeserializeSeed;

use super::row::Row;
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::steps::{Steps, leads_to_several};
use crate::value::{self, Value};
use crate::wire::columns::{Column, ColumnKind, Structs};

/// The way from a row of a column to a value in it.
struct Route<'p> {
    /// For each struct, tuple and list on the way, the number of the field or element.
    hops: Vec<usize>,
    /// The rest of the path, if the way ends in a map or in an encoded item.
    rest: Steps<'p>,
}

/// Reads the value that `steps` lead to in a row.
pub(super) fn read_in_row<'de, T: DeserializeSeed<'de>>(
    column: &mut Column<'de>,
    row: usize,
    steps: Steps<'_>,
    allowance: &Budget,
    seed: T,
) -> Result<T::Value> {
    let mut found = None;
    search(column, row, steps, &mut Vec::new(), &mut found)?;
    let nothing_there = || nothing_at(steps);
    let Route { hops, rest } = found.ok_or_else(nothing_there)?;
    let (column, row) = follow(column, row, &hops).ok_or_else(nothing_there)?;
    let at = column.at;
    if rest.is_empty() {
        return seed.deserialize(Row::new(column, row, allowance)).map_err(|error| error.at(at));
    }
    let value = value::read_row(column, row, allowance)?;
    let mut found = None;
    search_value(&value, rest, &mut found)?;
    let found = found.ok_or_else(nothing_there)?.clone();
    seed.deserialize(found).map_err(|error| error.at(at))
}

/// Finds the way that `steps` lead.
fn search<'p>(
    column: &mut Column<'_>,
    row: usize,
    steps: Steps<'p>,
    hops: &mut Vec<usize>,
    found: &mut Option<Route<'p>>,
) -> Result<()> {
    if let (false, ColumnKind::Dict(_)) = (steps.is_empty(), &column.kind) {
        let (column, row) = column.distinct(row);
        return search(column, row, steps, hops, found);
    }
    if let (false, Some(inner)) = (steps.is_empty(), column.some(row)) {
        return search(column.inside(), inner, steps, hops, found);
    }
    let ends =
        steps.is_empty() || matches!(column.kind, ColumnKind::Maps(_) | ColumnKind::Items(_));
    if ends {
        return match found.replace(Route { hops: hops.clone(), rest: steps }) {
            None => Ok(()),
            Some(_) => Err(leads_to_several()),
        };
    }
    match &mut column.kind {
        ColumnKind::Structs(Structs { fields, .. }) => {
            for (number, field) in fields.iter_mut().enumerate() {
                if field.is_present(row)
                    && let Some(rest) = steps.next().after(field.name.as_bytes())
                {
                    let row = field.inner(row);
                    hops.push(number);
                    search(&mut field.column, row, rest, hops, found)?;
                    hops.pop();
                }
            }
        }
        ColumnKind::Tuples(columns) => {
            if let Some((index, rest)) = position(steps, columns.len())
                && let Some(column) = columns.get_mut(index)
            {
                hops.push(index);
                search(column, row, rest, hops, found)?;
                hops.pop();
            }
        }
        ColumnKind::Lists(lists) => {
            let (cuts, column) = &mut **lists;
            let range = cuts.range(row);
            if let Some((index, rest)) = position(steps, range.len()) {
                hops.push(index);
                search(column, range.start + index, rest, hops, found)?;
                hops.pop();
            }
        }
        ColumnKind::Enums(enums) => {
            let (code, row) = enums.entry(row);
            let name = enums.names.get(code).map_or("", |name| &**name);
            if let Some(rest) = steps.next().after(name.as_bytes())
                && let Some(Some(column)) = enums.columns.get_mut(code)
            {
                hops.push(code);
                search(column, row, rest, hops, found)?;
                hops.pop();
            }
        }
        _ => {}
    }
    Ok(())
}

/// The next step as a position in an array, if it is one.
fn position(steps: Steps<'_>, len: usize) -> Option<(usize, Steps<'_>)> {
    let (index, rest) = steps.index();
    let index = usize::try_from(index?).ok().filter(|&index| index < len)?;
    Some((index, rest?))
}

/// Goes the way that [`search`] found.
fn follow<'c, 'de>(
    mut column: &'c mut Column<'de>,
    mut row: usize,
    hops: &[usize],
) -> Option<(&'c mut Column<'de>, usize)> {
    for &hop in hops {
        (column, row) = column.innermost(row);
        (column, row) = match &mut column.kind {
            ColumnKind::Structs(Structs { fields, .. }) => {
                let field = fields.get_mut(hop)?;
                let row = field.inner(row);
                (&mut field.column, row)
            }
            ColumnKind::Tuples(columns) => (columns.get_mut(hop)?, row),
            ColumnKind::Lists(lists) => {
                let (cuts, column) = &mut **lists;
                (column, cuts.range(row).start + hop)
            }
            ColumnKind::Enums(enums) => {
                let (code, row) = enums.entry(row);
                (enums.columns.get_mut(code)?.as_mut()?, row)
            }
            _ => return None,
        };
    }
    Some((column, row))
}

/// Finds the value that `steps` lead to in a value.
fn search_value<'v>(
    value: &'v Value,
    steps: Steps<'_>,
    found: &mut Option<&'v Value>,
) -> Result<()> {
    if steps.is_empty() {
        return match found.replace(value) {
            None => Ok(()),
            Some(_) => Err(leads_to_several()),
        };
    }
    match value {
        Value::Tag(_, inner) => search_value(inner, steps, found)?,
        Value::Map(entries) => {
            for (key, value) in entries {
                if let Some(rest) = steps.next().after(key.to_step().as_bytes()) {
                    search_value(value, rest, found)?;
                }
            }
        }
        array => {
            if let Some(items) = array.as_array()
                && let Some((index, rest)) = position(steps, items.len())
                && let Some(item) = items.get(index)
            {
                search_value(item, rest, found)?;
            }
        }
    }
    Ok(())
}

#[cold]
fn nothing_at(steps: Steps<'_>) -> Error {
    let (Steps::Dotted(path) | Steps::Pointer(path)) = steps;
    Error::not_found(format!("this row has no field `{}`", path.escape_debug()))
}
