//! Prints what a file of another format says of itself.

use std::io::Write;

use tenarc::Value;

use crate::failure::Result;
use crate::output::{FAINT, HEADING, Out};
use crate::table::{Align, Table};
use crate::text::{bytes, counted, escaped};

/// The most rows of a list that are printed. JSON has all of them.
const MOST: usize = 100;

/// Prints a line or a table for each topic: see [`TensorFile::about`](tenarc_convert::TensorFile::about).
///
/// # Errors
/// If writing fails.
pub fn print(about: &Value, out: &mut Out) -> Result<()> {
    let Value::Map(topics) = about else { return Ok(()) };
    for (topic, about) in topics {
        let topic = cell("", topic);
        match about {
            Value::Array(rows) if rows.is_empty() => {}
            Value::Array(rows) => list(&topic, rows, out)?,
            Value::Map(entries) => {
                let entries = entries
                    .iter()
                    .map(|(name, value)| format!("{} {}", cell("", name), cell("", value)));
                line(&topic, &entries.collect::<Vec<_>>().join(", "), out)?;
            }
            value => line(&topic, &cell(&topic, value), out)?,
        }
    }
    Ok(())
}

fn line(topic: &str, text: &str, out: &mut Out) -> Result<()> {
    if !text.is_empty() {
        writeln!(out, "{}: {text}", out.styled(HEADING, topic))?;
    }
    Ok(())
}

/// Prints maps as a table with a column for each of their keys.
fn list(topic: &str, rows: &[Value], out: &mut Out) -> Result<()> {
    let Some(Value::Map(first)) = rows.first() else { return Ok(()) };
    let mut columns = Vec::new();
    for (at, (name, _)) in first.iter().enumerate() {
        let values = || rows.iter().filter_map(|row| field(row, at));
        // A column in which nothing is said would only take room.
        if values().any(|value| !cell("", value).is_empty()) {
            let is_number = values().all(|value| matches!(value, Value::Integer(_)));
            columns.push((at, cell("", name), if is_number { Align::Right } else { Align::Left }));
        }
    }
    writeln!(out, "{}: {}", out.styled(HEADING, topic), rows.len())?;
    let headings: Vec<_> = columns.iter().map(|(_, name, align)| (&**name, *align)).collect();
    let mut table = Table::new(&headings);
    if let (Some(width), Some((long, _))) = (out.width(), headings.first()) {
        table = table.within(width, long, &[]);
    }
    for row in rows.iter().take(MOST) {
        let cells = columns.iter().map(|(at, name, _)| {
            field(row, *at).map_or_else(String::new, |value| cell(name, value))
        });
        table.row(cells.collect());
    }
    table.print(out)?;
    if let Some(more) = rows.len().checked_sub(MOST).filter(|more| *more > 0) {
        let more = format!("{} not shown: --json prints all", counted(more as u64, "row"));
        writeln!(out, "{}", out.styled(FAINT, &more))?;
    }
    Ok(())
}

fn field(row: &Value, at: usize) -> Option<&Value> {
    match row {
        Value::Map(entries) => entries.get(at).map(|(_, value)| value),
        _ => None,
    }
}

/// Returns a value as the cell of a column.
fn cell(column: &str, value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Text(text) => escaped(text).into_owned(),
        Value::Integer(len) if matches!(column, "bytes" | "uncompressed") => {
            bytes(u64::try_from(*len).unwrap_or(0))
        }
        Value::Integer(number) => number.to_string(),
        Value::Array(items) => {
            let items = items.iter().map(|item| match item {
                // A dimension of any length.
                Value::Null => "?".to_owned(),
                item => cell("", item),
            });
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
        other => escaped(&format!("{other:?}")).into_owned(),
    }
}
