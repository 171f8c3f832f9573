//! Fields of rows as values, and their types.

use serde::ser::{Error as _, Serialize, SerializeSeq as _, Serializer};
use tenarc::Value;
use tenarc::archive::Table;
use tenarc::inspect::TYPE;
use tenarc::types::TypeName;
use tenarc::value::WithTypes;

use crate::failure::Result;
use crate::input::Source;

/// The columns of a table whose values have a named type, and the types.
///
/// # Errors
/// If the table is damaged.
pub fn types(table: &Table<'_, Source>) -> Result<Vec<(String, TypeName)>> {
    let columns = table.columns()?.into_iter();
    let named =
        columns.filter_map(|column| Some((column.path().to_owned(), column.type_name()?.clone())));
    Ok(named.collect())
}

/// All rows of a table, with the tags of their types.
pub fn rows(table: &Table<'_, Source>) -> impl Iterator<Item = tenarc::Result<Value>> {
    table.iter().map(|row| row.map(|WithTypes(row)| row))
}

/// The rows of a table as a value, with the tags of their types.
pub struct AllRows<'t, 'a>(pub &'t Table<'a, Source>);

impl Serialize for AllRows<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(table) = self;
        let len = usize::try_from(table.len()).map_err(S::Error::custom)?;
        let mut seq = serializer.serialize_seq(Some(len))?;
        for row in rows(table) {
            seq.serialize_element(&row.map_err(S::Error::custom)?)?;
        }
        seq.end()
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
