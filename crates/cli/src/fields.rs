//! Fields of rows as values, and their types.

use std::cell::Cell;

use serde::ser::{Error as _, Serialize, SerializeSeq as _, Serializer};
use tenarc::Value;
use tenarc::archive::{Column, Table};
use tenarc::inspect::TYPE;
use tenarc::types::TypeName;
use tenarc::value::WithTypes;

use crate::input::Source;

/// The paths of the columns whose values have a named type, and the types.
pub fn types(columns: &[Column]) -> Vec<(String, TypeName)> {
    let named = |column: &Column| Some((column.path().to_owned(), column.type_name()?.clone()));
    columns.iter().filter_map(named).collect()
}

/// All rows of a table, with the tags of their types.
pub fn rows(table: &Table<'_, Source>) -> impl Iterator<Item = tenarc::Result<Value>> {
    table.iter().map(|row| row.map(|WithTypes(row)| row))
}

/// Serializes all rows of a table, with the tags of their types. `failed` makes an error of serde if one cannot be read.
pub fn serialize_rows<S: Serializer>(
    table: &Table<'_, Source>,
    serializer: S,
    failed: impl Fn(tenarc::Error) -> S::Error,
) -> Result<S::Ok, S::Error> {
    let len = usize::try_from(table.len()).map_err(S::Error::custom)?;
    let mut seq = serializer.serialize_seq(Some(len))?;
    for row in rows(table) {
        seq.serialize_element(&row.map_err(&failed)?)?;
    }
    seq.end()
}

/// All rows of a table as a value.
pub struct AllRows<'t, 'a> {
    table: &'t Table<'a, Source>,
    /// Why a row could not be read. An error that passes through serde keeps only its text.
    fault: Cell<Option<tenarc::Error>>,
}

impl<'t, 'a> AllRows<'t, 'a> {
    pub fn of(table: &'t Table<'a, Source>) -> Self {
        Self { table, fault: Cell::new(None) }
    }

    /// The error behind one that occurred while the rows were written.
    pub fn error(&self, written: tenarc::Error) -> tenarc::Error {
        self.fault.take().unwrap_or(written)
    }
}

impl Serialize for AllRows<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_rows(self.table, serializer, |error| {
            let shown = S::Error::custom(&error);
            self.fault.set(Some(error));
            shown
        })
    }
}

/// Whether a path leads to a value of a row, or to a null on the way.
pub fn may_have(row: &Value, path: &str) -> bool {
    let mut ends = path.match_indices(['.', '/']).map(|(at, _)| at).filter(|at| *at > 0);
    at(row, path).is_some() || ends.any(|end| at(row, &path[..end]) == Some(&Value::Null))
}

/// The value that a dotted path or a JSON Pointer leads to.
pub fn at<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    if path.starts_with('/') { value.pointer(path) } else { at_path(value, path) }
}

/// The value that a dotted path leads to. Names can have dots.
fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let ends = path.match_indices('.').map(|(at, _)| at);
    value.get(path).or_else(|| {
        ends.into_iter().find_map(|at| {
            let (name, rest) = (path.get(..at)?, path.get(at + 1..)?);
            at_path(value.get(name)?, rest)
        })
    })
}

/// An item with the tag of its type.
pub fn tagged(name: &str, parameters: Vec<Value>, item: Value) -> Value {
    let parts = vec![name.into(), Value::Array(parameters), item];
    Value::Tag(TYPE, Box::new(Value::Array(parts)))
}
