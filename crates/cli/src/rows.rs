//! Reads tables and sequences that are stored as columns, and finds the parts of them that a path on the command line
//! names.

use std::ops::Range;

use tenarc::archive::{Segment, Table};
use tenarc::value::WithTypes;
use tenarc::{DynTensor, Tensor, Value};
use tenarc_convert::meaning;

use crate::args::Show;
use crate::condition;
use crate::document::{Document, Section};
use crate::failure::{Failure, Of, Result};
use crate::fields::{self, at, may_have, tagged};
use crate::input::Source;
use crate::node::{Columns, Field, Kind, Node};
use crate::paths;
use crate::text::quoted;
use crate::written;

/// The number of rows that are decoded at once.
pub const BLOCK: usize = 256;

/// The part of an input that a path on the command line names.
pub enum Meant<'a> {
    /// The root of this section, which may be a part of the value.
    Value(Section<'a>),
    /// The table of all values that were saved under one name.
    Table(Table<'a, Source>),
}

impl Document {
    /// Finds what a path names. If no value is chosen, the path can start with the name under which values of an
    /// archive were saved. A name that several values have chooses the table of all their rows.
    ///
    /// # Errors
    /// If nothing is at the path, or if the path could mean several things.
    pub fn meant(&self, path: &str, chosen: Option<&str>) -> Result<Meant<'_>> {
        if chosen.is_none()
            && !path.is_empty()
            && let Some(target) = self.named(path)?
        {
            return Ok(target);
        }
        let table = match (chosen, self.archive()) {
            (None, _) => self.whole_table()?,
            (Some(name), Some(archive)) if self.numbers(chosen)?.len() > 1 => {
                Some(archive.table(name)?)
            }
            _ => None,
        };
        match (table, path) {
            (Some(table), "") => Ok(Meant::Table(table)),
            (Some(table), path) => in_table(&table, path, path).map(Meant::Value),
            (None, path) => self.only(chosen)?.into_part(path).map(Meant::Value),
        }
    }

    /// The table that is all of an archive, if its values are several parts of it.
    ///
    /// # Errors
    /// If a value cannot be read.
    pub fn whole_table(&self) -> Result<Option<Table<'_, Source>>> {
        let Some(archive) = self.archive().filter(|archive| archive.len() > 1) else {
            return Ok(None);
        };
        let first = archive.segment(0)?;
        let Some(name) = first.name().filter(|name| !name.is_empty()) else { return Ok(None) };
        for number in 1..archive.len() {
            // A damaged value is reported when it is read.
            if !archive.segment(number).is_ok_and(|other| other.name() == Some(name)) {
                return Ok(None);
            }
        }
        Ok(archive.table(name).ok())
    }

    /// Finds what a path names if it starts with the name of a value in an archive. Returns `None` if it does not.
    fn named(&self, path: &str) -> Result<Option<Meant<'_>>> {
        let Some(archive) = self.archive() else { return Ok(None) };
        let mut found: Option<(String, &str, u64, u64)> = None;
        for number in 0..archive.len() {
            let segment = archive.segment(number)?;
            let Some(name) = segment.name().filter(|name| !name.is_empty()) else { continue };
            let Some(rest) = behind(path, name) else { continue };
            let count = match &found {
                // The longest name wins.
                Some((longest, ..)) if longest.len() > name.len() => continue,
                Some((same, _, _, count)) if same == name => count + 1,
                _ => 1,
            };
            found = Some((name.to_owned(), rest, number, count));
        }
        let Some((name, rest, number, count)) = found else { return Ok(None) };
        match archive.table(&name) {
            Ok(_) if count == 1 => {
                // Only one value has this name, so those of its columns that are one buffer can be read in place.
                self.section(number)?.into_part(rest).map(|part| Some(Meant::Value(part)))
            }
            Ok(table) if rest.is_empty() => Ok(Some(Meant::Table(table))),
            Ok(table) => in_table(&table, rest, path).map(|part| Some(Meant::Value(part))),
            // The values are not sequences. The path means the last value with this name.
            Err(_) if self.len() > 1 => {
                self.section(number)?.into_part(rest).map(|part| Some(Meant::Value(part)))
            }
            Err(_) => Ok(None),
        }
    }
}

/// What follows the name of a value in a path that starts with it.
fn behind<'p>(path: &'p str, name: &str) -> Option<&'p str> {
    let rest = path.strip_prefix(name)?;
    rest.strip_prefix('.').or(rest.is_empty().then_some(""))
}

/// Finds what a path names in a table: a column, a row, or a part of a row.
fn in_table<'a>(table: &Table<'_, Source>, path: &str, whole: &str) -> Result<Section<'a>> {
    let mut steps: Vec<&str> = path.split('.').collect();
    let is_row = |step: &&str| !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(at) = steps.iter().position(is_row) {
        let row = steps.remove(at).parse().map_err(|_| Failure::new("there is no such row"));
        let WithTypes(row) = table.row(row.of(quoted(whole))?).of(quoted(whole))?;
        return Section::of_value(&row)?.into_part(&steps.join("."));
    }
    let columns = table.columns()?;
    let column = columns.iter().find(|column| column.path() == path);
    let value = match column.filter(|column| column.is_tensor()) {
        Some(_) => {
            let Tensor(tensor) = table.column::<Tensor<DynTensor>>(path)?;
            let tensor = Value::Tensor(Box::new(tensor));
            match column.and_then(|column| column.type_name()) {
                Some(of) => tagged(of.name(), meaning::values(of.parameters()), tensor),
                None => tensor,
            }
        }
        None => {
            let values: Vec<_> =
                table.column::<Vec<WithTypes>>(path)?.into_iter().map(|value| value.0).collect();
            // Rows that are not stored as columns are null where a field is missing.
            if column.is_none() && values.iter().all(Value::is_null) {
                return Err(Failure::new("there is no such column").of(&quoted(path)));
            }
            Value::Array(values)
        }
    };
    Section::of_value(&value)
}

impl Section<'_> {
    /// Returns the section with the part at a path as its root: a value, or else a [group](paths::group) of values.
    ///
    /// # Errors
    /// If there is no such part, or the path could mean several.
    pub fn into_part(mut self, path: &str) -> Result<Self> {
        if path.is_empty() {
            return Ok(self);
        }
        let mut failure = match self.find(path) {
            Ok(node) => {
                self.root = node.clone();
                return Ok(self);
            }
            Err(failure) => failure,
        };
        if let Some(segment) = self.segment() {
            let column = if self.root.holds_columns() { self.column(path)? } else { None };
            if let Some(Field { tensor: Some(node), of, .. }) = column {
                if let Some(of) = of {
                    let tensor = written::value(&self, &node)?;
                    let parameters = meaning::values(of.parameters());
                    return self.decoded(&tagged(of.name(), parameters, tensor));
                }
                self.root = node;
                return Ok(self);
            }
            // A value in columns, or a number of a packed sequence, has no node.
            match segment.get(path) {
                Ok(WithTypes(value)) => return self.decoded(&value),
                Err(error) => failure = error.into(),
            }
            if let Some(value) = self.field_of_rows(path)? {
                return self.decoded(&value);
            }
        }
        self.root = paths::group(&self.root, path)?.ok_or(failure)?;
        Ok(self)
    }

    /// Returns a field of all rows that are stored as an array, or else `None`.
    fn field_of_rows(&self, path: &str) -> Result<Option<Value>> {
        let ends = path.match_indices('.').map(|(at, dot)| (at, at + dot.len()));
        for (end, start) in [(0, 0)].into_iter().chain(ends) {
            let (rows, field) = (&path[..end], &path[start..]);
            let found = if rows.is_empty() { Some(&self.root) } else { self.find(rows).ok() };
            let is_array = |node: &&Node| matches!(node.untagged().kind, Kind::Array(_));
            let Some(segment) = self.segment().filter(|_| found.as_ref().is_some_and(is_array))
            else {
                continue;
            };
            if let WithTypes(Value::Array(rows)) = segment.get(rows)? {
                let fields: Vec<_> = rows.iter().map(|row| at(row, field)).collect();
                if fields.iter().any(Option::is_some) {
                    let fields = fields.into_iter().map(|field| field.cloned().unwrap_or_default());
                    return Ok(Some(Value::Array(fields.collect())));
                }
            }
        }
        Ok(None)
    }

    /// Returns the column at a path.
    fn column(&self, path: &str) -> Result<Option<Field>> {
        let mut all = Vec::new();
        columns_in(&self.root, &mut all);
        // A path that is not a JSON Pointer starts with the path of its sequence.
        all.retain(|columns| path.starts_with('/') || path.starts_with(&columns.path));
        for columns in all {
            let named = self.fields(columns)?.iter().find(|field| {
                let pointer = || format!("/{}", field.path.replace('.', "/"));
                field.path == path || path.starts_with('/') && pointer() == path
            });
            if named.is_some() {
                return Ok(named.cloned());
            }
        }
        Ok(None)
    }
}

fn columns_in<'n>(node: &'n Node, found: &mut Vec<&'n Columns>) {
    match &node.kind {
        Kind::Leaf | Kind::Payload(_) => {}
        Kind::Columns(columns) => found.push(columns),
        Kind::Tag(_, inner) => columns_in(inner, found),
        Kind::Array(items) => items.iter().for_each(|item| columns_in(item, found)),
        Kind::Map(entries) => entries.iter().for_each(|(_, node)| columns_in(node, found)),
    }
}

/// The rows of a sequence, which may be stored as columns or as an array.
pub enum Rows<'a> {
    Table(Table<'a, Source>),
    /// The root of the section is an array.
    Array(Section<'a>),
    /// Some rows of a table, by their numbers, and these columns of them, or all if there are none.
    Picked {
        table: Table<'a, Source>,
        numbers: Vec<u64>,
        columns: Vec<String>,
    },
}

impl<'a> Rows<'a> {
    /// Returns the rows of the sequence that a path names.
    ///
    /// # Errors
    /// If the target is not a sequence.
    pub fn of(target: Meant<'a>) -> Result<Self> {
        match target {
            Meant::Table(table) => Ok(Self::Table(table)),
            Meant::Value(section) => match &section.root.untagged().kind {
                Kind::Columns(columns) => section.table(columns).map(Self::Table),
                Kind::Array(_) => Ok(Self::Array(section)),
                Kind::Payload(_) => Err(Failure::new(
                    "a tensor is no table: `tenarc get` shows slices, such as 'w[0:3]'",
                )),
                _ => Err(Failure::new("not a sequence, so it has no rows")),
            },
        }
    }

    /// Returns the rows and columns that the options of `show` choose.
    ///
    /// # Errors
    /// If the path names no table, a column does not exist, or the condition cannot be met.
    pub fn picked(document: &'a Document, args: &Show) -> Result<Self> {
        let chosen = args.choose.segment.as_deref();
        let named = document.archive().filter(|_| chosen.is_none() && !args.path.is_empty());
        let table = match named.and_then(|archive| archive.table(&args.path).ok()) {
            Some(table) => table,
            None => match document.meant(&args.path, chosen).and_then(Self::of)? {
                Self::Table(table) => table,
                Self::Array(section) => {
                    let segment = section.segment();
                    let name = segment.and_then(Segment::name).unwrap_or_default();
                    let mut paths =
                        [Some(&*args.path), behind(&args.path, name)].into_iter().flatten();
                    let table = paths.find_map(|path| segment?.table(path).ok());
                    table.ok_or_else(|| Failure::new("the rows are no table of an archive"))?
                }
                Self::Picked { table, .. } => table,
            },
        };
        let known = table.columns()?;
        let types = fields::types(&known);
        let condition = args.condition.as_deref().map(|text| condition::parse(text, &types));
        let condition = condition.transpose()?;
        let is_known = |path: &&str| known.iter().any(|column| column.path() == *path);
        let mut missing: Vec<&str> =
            args.columns.iter().map(String::as_str).filter(|path| !is_known(path)).collect();
        if known.is_empty() {
            // The rows are not stored as columns, and need not have the same fields.
            missing.extend(condition.iter().flat_map(|(_, columns)| columns));
            let mut rows = table.iter::<Value>();
            while !missing.is_empty()
                && let Some(row) = rows.next().transpose()?
            {
                missing.retain(|path| !may_have(&row, path));
            }
        }
        if let Some(path) = missing.first().filter(|_| !table.is_empty()) {
            return Err(Failure::new("there is no such column")).of(quoted(path));
        }
        let mut numbers = match condition {
            Some((filter, _)) => table.filter(filter).row_numbers()?,
            None => (0..table.len()).take(args.head.unwrap_or(usize::MAX)).collect(),
        };
        numbers.truncate(args.head.unwrap_or(usize::MAX));
        Ok(Self::Picked { table, numbers, columns: args.columns.clone() })
    }

    pub fn len(&self) -> u64 {
        match self {
            Self::Table(table) => table.len(),
            Self::Picked { numbers, .. } => numbers.len() as u64,
            Self::Array(section) => match &section.root.untagged().kind {
                Kind::Array(items) => items.len() as u64,
                _ => 0,
            },
        }
    }

    /// Decodes some rows, and calls `each` with blocks of them. The root of the section is an array that contains the
    /// block. Values of named types have the tag of their type. Checksums are verified. All rows are read group by group, so that no chunk is hashed twice.
    ///
    /// # Errors
    /// If the rows cannot be read, or `each` fails.
    pub fn blocks(
        &self,
        rows: Range<u64>,
        each: &mut dyn FnMut(&Section<'_>, &[Node]) -> Result<()>,
    ) -> Result<()> {
        let mut give = |block: Vec<WithTypes>| {
            give(block.into_iter().map(|WithTypes(row)| row).collect(), each)
        };
        match self {
            Self::Array(section) => {
                let Kind::Array(items) = &section.root.untagged().kind else { return Ok(()) };
                let at = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).min(items.len());
                each(section, items.get(at(rows.start)..at(rows.end)).unwrap_or_default())
            }
            Self::Picked { table, numbers, columns } => {
                let at = |row: u64| usize::try_from(row).unwrap_or(usize::MAX).min(numbers.len());
                let numbers = numbers.get(at(rows.start)..at(rows.end)).unwrap_or_default();
                for numbers in numbers.chunks(BLOCK) {
                    let mut block: Vec<WithTypes> = table.take(numbers)?;
                    if !columns.is_empty() {
                        block = block.iter().map(|row| WithTypes(only(&row.0, columns))).collect();
                    }
                    give(block)?;
                }
                Ok(())
            }
            Self::Table(table) if rows == (0..table.len()) => {
                let mut values = table.iter::<WithTypes>();
                loop {
                    let block = values.by_ref().take(BLOCK).collect::<tenarc::Result<Vec<_>>>()?;
                    if block.is_empty() {
                        return Ok(());
                    }
                    give(block)?;
                }
            }
            Self::Table(table) => {
                let mut start = rows.start;
                while start < rows.end {
                    let end = rows.end.min(start.saturating_add(BLOCK as u64));
                    give(table.rows(start..end)?)?;
                    start = end;
                }
                Ok(())
            }
        }
    }
}

/// A row with only these columns.
fn only(row: &Value, columns: &[String]) -> Value {
    let value = |path: &String| at(row, path).cloned().unwrap_or_default();
    columns.iter().map(|path| (path.as_str(), value(path))).collect()
}

fn give(
    block: Vec<Value>,
    each: &mut dyn FnMut(&Section<'_>, &[Node]) -> Result<()>,
) -> Result<()> {
    let section = Section::of_value(&Value::Array(block))?;
    match &section.root.kind {
        Kind::Array(items) => each(&section, items),
        _ => Err(Failure::new("expected an array of rows")),
    }
}
