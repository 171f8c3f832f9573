//! The columns of a sequence in an archive as tensors and arrays of texts.

use std::fmt;
use std::rc::Rc;

use tenarc::archive::{Segment, Table};
use tenarc::inspect::{COLUMNS, Event, dotted, escape_step};
use tenarc::io::ReadAt;
use tenarc::tensor::{Deferred, Order, TensorMeta};
use tenarc::types::TypeName;
use tenarc::{DynTensor, Error, Result, Tensor};

use crate::{Losses, Put, Stored};

/// A column of a sequence as an array.
#[derive(Debug)]
pub struct FlatColumn<'a> {
    /// Its path, as the names of tensors have it.
    pub name: String,
    /// The type that is named for its rows.
    pub of: Option<TypeName>,
    /// Its rows.
    pub rows: FlatRows<'a>,
}

/// The rows of a column.
pub enum FlatRows<'a> {
    /// They are read when they are written.
    Tensor(Deferred<'a>),
    /// The function reads them.
    Texts(Box<dyn Fn() -> Result<Vec<String>> + 'a>),
}

impl fmt::Debug for FlatRows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor(tensor) => f.debug_tuple("Tensor").field(tensor).finish(),
            Self::Texts(_) => f.write_str("Texts"),
        }
    }
}

/// The values of an archive that are parts of one table, as one value: they have one name, and their rows are stored as
/// columns. A table has a part for each row group of a Parquet file, and for each time that rows were saved.
#[derive(Debug)]
pub struct JoinedTable<'a, S: ?Sized> {
    first: Segment<'a, S>,
    table: Rc<Table<'a, S>>,
}

impl<'a, S: ReadAt + ?Sized> JoinedTable<'a, S> {
    /// Joins these values. `None` if they are less than two, or no parts of a table.
    ///
    /// # Errors
    /// If a value cannot be read, or is damaged.
    pub fn of(values: Vec<Segment<'a, S>>) -> Result<Option<Self>> {
        let name = values.first().and_then(Segment::name).filter(|name| !name.is_empty());
        if values.len() < 2 || name.is_none() {
            return Ok(None);
        }
        let mut first = None;
        for value in &values {
            if value.name() != name {
                return Ok(None);
            }
            let mut items = value.inspect()?;
            let mut next = || items.next().map(|item| item.map(|item| item.event)).transpose();
            match next()? {
                Some(Event::Tag(COLUMNS)) => drop(first.get_or_insert_with(|| value.clone())),
                // No rows.
                Some(Event::Array) if next()? == Some(Event::End) => {}
                _ => return Ok(None),
            }
        }
        let Some(first) = first else { return Ok(None) };
        Ok(Some(Self { first, table: Rc::new(Table::of_segments(values)?) }))
    }

    /// The table.
    pub fn table(&self) -> &Table<'a, S> {
        &self.table
    }
}

/// The metadata are those of the first part that has rows, whose columns are those of the table.
impl<S: ReadAt + ?Sized> Stored for JoinedTable<'_, S> {
    fn metadata(&self) -> Result<&[u8]> {
        self.first.metadata()
    }

    fn buffers(&self) -> &[(u64, u64)] {
        self.first.buffers()
    }

    fn blocks(&self, buffer: usize, put: &mut Put<'_>) -> Result<()> {
        self.first.read_buffer(buffer, put)
    }

    fn columns<'a>(
        &'a self,
        _pointer: &str,
        name: &str,
        losses: &mut Losses,
    ) -> Result<Vec<FlatColumn<'a>>> {
        flat_columns(&self.table, name, losses)
    }
}

/// Returns the columns of a sequence that are tensors or texts, and adds the other columns to `losses`. `sequence` is the path
/// of the sequence as the names of its tensors have it.
pub fn flat_columns<'a, S: ReadAt + ?Sized>(
    table: &Rc<Table<'a, S>>,
    sequence: &str,
    losses: &mut Losses,
) -> Result<Vec<FlatColumn<'a>>> {
    let sequence = Rc::<str>::from(sequence);
    let columns = table.columns()?;
    if columns.is_empty() {
        losses.add(&sequence, "its rows have no fields that are tensors: it is left out");
    }
    let rows = usize::try_from(table.len()).unwrap_or(usize::MAX);
    let mut found = Vec::new();
    for column in columns {
        let path = column.path();
        // The fields of a struct follow it as columns of their own.
        if column.kind() == "structs" {
            continue;
        }
        let below = dotted(path);
        let name =
            if sequence.is_empty() { below.into_owned() } else { format!("{sequence}.{below}") };
        let of = column.type_name().cloned();
        let (table, path) = (table.clone(), path.to_owned());
        let around = sequence.clone();
        let in_sequence = move |error: Error| match &*around {
            "" => error,
            sequence => error.in_field(sequence),
        };
        if column.kind() == "texts" && !column.is_optional() {
            let read = move || table.column(&path).map_err(&in_sequence);
            found.push(FlatColumn { name, of, rows: FlatRows::Texts(Box::new(read)) });
            continue;
        }
        let tensor = column.dtype().zip(column.row_shape()).filter(|_| column.is_tensor());
        let Some((dtype, dims)) = tensor else {
            losses.add(&name, no_tensor(column.kind()));
            continue;
        };
        let shape = [&[rows][..], dims].concat();
        if TensorMeta::new(dtype.clone(), &*shape, Order::C).byte_len().is_none() {
            let what = format!(
                "the byte length of a column of {dtype}{shape:?} is unknown: it is left out"
            );
            losses.add_tensor(&name, what);
            continue;
        }
        // The whole column is in memory while it is written.
        let read = move |put: &mut dyn FnMut(&[u8]) -> Result<()>| {
            let tensor: Result<Tensor<DynTensor>> = table.column(&path);
            put(&tensor.map_err(&in_sequence)?.le_bytes())
        };
        let tensor = Deferred::from_blocks(dtype.clone(), &shape, Order::C, read);
        found.push(FlatColumn { name, of, rows: FlatRows::Tensor(tensor) });
    }
    Ok(found)
}

/// What a loss says of a column that is left out.
pub fn no_tensor(kind: &str) -> String {
    format!("a column of {kind} is not a tensor: it is left out")
}

/// Returns a step of a JSON Pointer: a slash and the escaped text.
pub fn escaped(step: &str) -> String {
    format!("/{}", escape_step(step))
}
