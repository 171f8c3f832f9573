//! Arrays of one length in a map, as the columns of a table.

use std::collections::HashMap;
use std::ops::Range;

use serde::ser::{Error as _, Serialize, SerializeStruct as _, Serializer};
use tenarc::inspect::{Event, Items};
use tenarc::tensor::{DynView, Order};
use tenarc::types::{Parameter, TypeName, Typed};
use tenarc::value::Numbers;
use tenarc::{DType, DynTensor, Error, Result, Tensor, Value};
use tenarc_arrow::static_name;

use crate::exported::METADATA;
use crate::numpy::times::Times;
use crate::saved::{Saved, unpacked};
use crate::typed::Type;
use crate::{Losses, Stored};

/// The names in a map of categories, as anndata writes them: a code for each row, and the texts that codes are the numbers of.
const CATEGORIES: [&str; 2] = ["categories", "codes"];
/// The names in a map of values that can be null, as anndata writes them. The mask is true where a row is null.
const MASKED: [&str; 2] = ["mask", "values"];

/// The arrays of a map as the columns of a table: those of a structured dataset of HDF5, of a group of h5ad or NWB, of an
/// npz file. It is serialized like a `Vec` of structs, so an archive stores it as a table.
///
/// Each array whose first dimension is the number of rows is a column. That number is the one that most arrays have. What
/// is no such array is a [loss](Self::losses). A map of arrays is a column of structs. Two kinds of maps are columns of
/// their own, as anndata writes them: `categories` and `codes`, and `values` with a `mask` of those that are null.
///
/// All arrays are in memory at once.
///
/// ```
/// use ndarray::array;
/// use tenarc::{Archive, OArchive, Tensor};
/// use tenarc_convert::ArrayTable;
///
/// #[derive(serde::Serialize)]
/// struct Measured<'a> { at: Tensor<ndarray::Array1<u32>>, place: [&'a str; 3] }
/// #[derive(serde::Deserialize, PartialEq, Debug)]
/// struct Row { at: u32, place: String }
///
/// let mut out = OArchive::new(Vec::new())?;
/// out.save(&Measured { at: array![3, 5, 8].into(), place: ["a", "b", "c"] })?;
/// let arrays = Archive::new(out.finish()?)?;
///
/// let table = ArrayTable::of(&arrays.segment(0)?)?;
/// assert!(table.losses().is_empty());
/// let mut out = OArchive::new(Vec::new())?;
/// out.save_as("measured", &table)?;
/// let archive = Archive::new(out.finish()?)?;
/// assert_eq!(archive.table("measured")?.row::<Row>(1)?, Row { at: 5, place: "b".into() });
/// # Ok::<(), tenarc::Error>(())
/// ```
#[derive(Debug)]
pub struct ArrayTable {
    rows: usize,
    fields: Vec<Field>,
    losses: Losses,
}

/// The name of a column, and its rows.
type Field = (&'static str, Column);

#[derive(Debug)]
enum Column {
    Tensor(DynTensor),
    Values(Vec<Value>),
    Typed(TypeName, Box<Column>),
    Structs(Vec<Field>),
    Chosen(Chosen),
}

/// Rows that are those of another column, or null.
#[derive(Debug)]
struct Chosen {
    /// For each row, which one it is. `None` is null.
    rows: Vec<Option<usize>>,
    has_nulls: bool,
    column: Box<Column>,
}

impl Column {
    fn chosen(rows: Vec<Option<usize>>, column: Self) -> Self {
        let has_nulls = rows.contains(&None);
        Self::Chosen(Chosen { rows, has_nulls, column: Box::new(column) })
    }

    /// The type is around each value that is not null.
    fn typed(of: Type, column: Self) -> Result<Self> {
        Ok(match column {
            Self::Chosen(chosen) => {
                let column = Box::new(Self::typed(of, *chosen.column)?);
                Self::Chosen(Chosen { column, ..chosen })
            }
            column => Self::Typed(TypeName::new(&of.name, of.parameters)?, Box::new(column)),
        })
    }
}

impl ArrayTable {
    /// Reads the arrays of a map.
    ///
    /// # Errors
    /// If the value is not a map, if it has no columns, or if it cannot be read.
    pub fn of(value: &dyn Stored) -> Result<Self> {
        let Saved::Map(entries) = Saved::of(value)? else {
            return Err(Error::mismatch("expected a map of arrays, found another value"));
        };
        let read = Read { value, bytes: value.metadata()? };
        let mut counts = HashMap::new();
        for (_, entry) in &entries {
            if let Some(len) = read.len(entry)? {
                *counts.entry(len).or_insert(0usize) += 1;
            }
        }
        let rows = counts.into_iter().max_by_key(|&(len, count)| (count, len));
        let Some((rows, _)) = rows else {
            return Err(Error::mismatch("expected a map of arrays, found no array in the map"));
        };
        let mut losses = value.lost();
        let fields = read.fields(entries, rows, "", &mut losses)?;
        if rows == 0 {
            losses.add("", super::NO_ROWS);
        }
        Ok(Self { rows, fields, losses })
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// What of the map is no column.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }
}

struct Read<'v> {
    value: &'v dyn Stored,
    bytes: &'v [u8],
}

impl Read<'_> {
    /// The first dimension of an array. `None` if it is no array.
    fn len(&self, entry: &Saved) -> Result<Option<usize>> {
        Ok(match entry {
            Saved::Leaf(range) => self.len_of_payload(range)?,
            Saved::Array(items) => Some(items.len()),
            Saved::Named(_, inner) => self.len(inner)?,
            Saved::Map(entries) => {
                let is = |names: [&str; 2]| is_map_of(entries, names);
                let rows = match entries.as_slice() {
                    entries if is(CATEGORIES) => get(entries, "codes"),
                    entries if is(MASKED) => get(entries, "mask"),
                    [(_, first), ..] => Some(first),
                    [] => None,
                };
                rows.map(|rows| self.len(rows)).transpose()?.flatten()
            }
            Saved::Known(_) | Saved::Tag(..) => None,
        })
    }

    /// The first dimension of a tensor, or of a sequence of numbers.
    fn len_of_payload(&self, range: &Range<usize>) -> Result<Option<usize>> {
        let item = self.bytes.get(range.clone()).unwrap_or_default();
        let first = Items::new(item).with_buffers(self.value.buffers()).next().transpose()?;
        Ok(match first.map(|item| item.event) {
            Some(Event::Payload(payload)) => payload.meta.shape.first().copied(),
            _ => None,
        })
    }

    fn fields(
        &self,
        entries: Vec<(Value, Saved)>,
        rows: usize,
        around: &str,
        losses: &mut Losses,
    ) -> Result<Vec<Field>> {
        let mut fields = Vec::new();
        for (key, entry) in entries {
            let name = key.as_str().unwrap_or("");
            let path = if around.is_empty() { name.to_owned() } else { format!("{around}.{name}") };
            if key.as_str().is_none() {
                losses.add(around, "a key that is no text: what is under it is left out");
                continue;
            }
            let what = match self.len(&entry)? {
                Some(len) if len != rows => format!("it has {len} rows, and the table has {rows}"),
                _ if around.is_empty() && name == METADATA => "metadata are no column".into(),
                None => "it is no array with a row for each row of the table".into(),
                Some(_) => match self.column(entry, rows, &path, losses)? {
                    Ok(column) => {
                        fields.push((static_name(name)?, column));
                        continue;
                    }
                    Err(what) => what,
                },
            };
            losses.add(&path, format!("{what}: it is left out"));
        }
        if fields.is_empty() && around.is_empty() {
            return Err(Error::mismatch("no array is a column of the table"));
        }
        Ok(fields)
    }

    /// The column that an array is, or why it is none.
    fn column(
        &self,
        entry: Saved,
        rows: usize,
        path: &str,
        losses: &mut Losses,
    ) -> Result<Result<Column, String>> {
        Ok(Ok(match entry {
            Saved::Leaf(range) => {
                let tensor = self.value.tensor(range)?.into_row_major()?;
                let each = row_len(&tensor);
                if each.is_none() {
                    return Ok(Err("the bits of a row are no whole bytes".into()));
                }
                Column::Tensor(tensor)
            }
            Saved::Named(of, inner) => match self.column(*inner, rows, path, losses)? {
                Ok(Column::Tensor(tensor)) => match times(&of, &tensor)? {
                    Some(times) => times,
                    None => Column::typed(of, Column::Tensor(tensor))?,
                },
                Ok(inner) => Column::typed(of, inner)?,
                Err(what) => return Ok(Err(what)),
            },
            Saved::Array(items) => return self.items(items),
            Saved::Map(entries) => return self.map(entries, rows, path, losses),
            Saved::Known(_) | Saved::Tag(..) => return Ok(Err("it is no array".into())),
        }))
    }

    /// The column that is a sequence of values. If their types are named, they must have one type.
    fn items(&self, items: Vec<Saved>) -> Result<Result<Column, String>> {
        let fetch = |range| self.value.decode(range);
        let (mut of, mut values) = (None, Vec::new());
        for item in items {
            let (named, value) = match item {
                Saved::Named(named, inner) => (Some(named), inner.into_value(&fetch)?),
                item => (None, item.into_value(&fetch)?),
            };
            let is_other = of.as_ref().is_some_and(|of| *of != named);
            if is_other && !value.is_null() {
                return Ok(Err("its rows have different types".into()));
            }
            if !value.is_null() {
                of = Some(named);
            }
            values.push(value);
        }
        let rows = (0..).zip(&values).map(|(row, value)| (!value.is_null()).then_some(row));
        let column = Column::chosen(rows.collect(), Column::Values(values));
        Ok(Ok(match of.flatten() {
            Some(of) => Column::typed(of, column)?,
            None => column,
        }))
    }

    /// The column that is a map: of categories, of values some of which are null, or of fields.
    fn map(
        &self,
        mut entries: Vec<(Value, Saved)>,
        rows: usize,
        path: &str,
        losses: &mut Losses,
    ) -> Result<Result<Column, String>> {
        if is_map_of(&entries, CATEGORIES) {
            let (Some(names), Some(codes)) =
                (take(&mut entries, CATEGORIES[0]), take(&mut entries, CATEGORIES[1]))
            else {
                return Ok(Err("it has no codes".into()));
            };
            let Some(count) = self.len(&names)? else {
                return Ok(Err("its categories are no array".into()));
            };
            let codes = self.integers(codes)?.unwrap_or_default();
            let code = |code: i128| match code {
                -1 => Some(None),
                code => usize::try_from(code).ok().filter(|&code| code < count).map(Some),
            };
            let codes: Option<Vec<_>> = codes.into_iter().map(code).collect();
            let Some(codes) = codes.filter(|codes| codes.len() == rows) else {
                return Ok(Err(format!("its codes are not all -1 or numbers below {count}")));
            };
            let are_texts = matches!(&names, Saved::Array(_));
            let names = match self.column(names, count, path, losses)? {
                Ok(names) if are_texts => {
                    let (name, parameters) = ("category".to_owned(), vec![Parameter::Integer(0)]);
                    Column::typed(Type { name, parameters }, names)?
                }
                Ok(names) => names,
                Err(what) => return Ok(Err(what)),
            };
            return Ok(Ok(Column::chosen(codes, names)));
        }
        if is_map_of(&entries, MASKED) {
            let mask = take(&mut entries, MASKED[0]).map(|mask| self.integers(mask));
            let values = take(&mut entries, MASKED[1]);
            let (Some(Some(mask)), Some(values)) = (mask.transpose()?, values) else {
                return Ok(Err("its mask is no array of bools".into()));
            };
            if self.len(&values)? != Some(mask.len()) {
                return Ok(Err("its mask has another length than its values".into()));
            }
            let codes = mask.iter().zip(0..).map(|(&null, row)| (null == 0).then_some(row));
            let values = self.column(values, rows, path, losses)?;
            return Ok(values.map(|values| Column::chosen(codes.collect(), values)));
        }
        let fields = self.fields(entries, rows, path, losses)?;
        Ok(if fields.is_empty() {
            Err("none of its arrays is a column".into())
        } else {
            Ok(Column::Structs(fields))
        })
    }

    /// The elements of an array of integers or bools. `None` if it has others.
    fn integers(&self, array: Saved) -> Result<Option<Vec<i128>>> {
        let fetch = |range| self.value.decode(range);
        let values = match array.into_value(&fetch)? {
            Value::Tensor(tensor) => {
                let (dtype, bytes) = (tensor.dtype().clone(), tensor.le_bytes());
                let Some(numbers) = crate::elements::packed(&dtype, &bytes)? else {
                    return Ok(None);
                };
                unpacked(&numbers).unwrap_or_default()
            }
            Value::Numbers(numbers) => unpacked(&numbers).unwrap_or_default(),
            Value::Array(values) => values,
            _ => return Ok(None),
        };
        let integer = |value| match value {
            Value::Integer(number) => Some(number),
            Value::Bool(value) => Some(i128::from(value)),
            _ => None,
        };
        Ok(values.into_iter().map(integer).collect())
    }
}

/// The column of numpy's times and durations, some of which are missing. `None` if the format has no type for them.
fn times(of: &Type, tensor: &DynTensor) -> Result<Option<Column>> {
    let known = Times::of_own(of).and_then(|times| times.known());
    let Some((of, numbers)) = known.filter(|_| tensor.shape().len() == 1) else {
        return Ok(None);
    };
    let Ok(found) = tensor.as_slice::<i64>() else { return Ok(None) };
    if !found.iter().all(|number| *number == i64::MIN || numbers.contains(number)) {
        return Ok(None);
    }
    let rows = (0..).zip(found).map(|(row, number)| (*number != i64::MIN).then_some(row));
    let tensor = if of.name() == "date" {
        let days = found.iter().map(|days| i32::try_from(*days).unwrap_or_default()).collect();
        DynTensor::from_vec::<i32>(tensor.shape(), Order::C, days)?
    } else {
        tensor.clone()
    };
    let column = Column::Typed(of, Box::new(Column::Tensor(tensor)));
    Ok(Some(Column::chosen(rows.collect(), column)))
}

fn is_map_of(entries: &[(Value, Saved)], names: [&str; 2]) -> bool {
    entries.len() == 2 && names.iter().all(|name| get(entries, name).is_some())
}

fn get<'e>(entries: &'e [(Value, Saved)], name: &str) -> Option<&'e Saved> {
    entries.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, entry)| entry)
}

fn take(entries: &mut Vec<(Value, Saved)>, name: &str) -> Option<Saved> {
    let at = entries.iter().position(|(key, _)| key.as_str() == Some(name))?;
    Some(entries.swap_remove(at).1)
}

/// The number of bytes of a row of a tensor. `None` if these are no whole bytes.
fn row_len(tensor: &DynTensor) -> Option<usize> {
    let elements: usize = tensor.shape().iter().skip(1).product();
    let bits = tensor.dtype().bits()?.checked_mul(elements)?;
    bits.is_multiple_of(8).then_some(bits / 8)
}

impl Serialize for ArrayTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((0..self.rows).map(|row| Row { fields: &self.fields, row }))
    }
}

struct Row<'t> {
    fields: &'t [Field],
    row: usize,
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("Row", self.fields.len())?;
        for (name, column) in self.fields {
            row.serialize_field(name, &Cell { column, row: self.row })?;
        }
        row.end()
    }
}

struct Cell<'t> {
    column: &'t Column,
    row: usize,
}

impl Serialize for Cell<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { column, row } = *self;
        match column {
            Column::Tensor(tensor) => row_of(tensor, row, serializer),
            Column::Values(values) => match values.get(row) {
                Some(Value::Numbers(numbers)) => list(numbers, serializer),
                Some(value) => value.serialize(serializer),
                None => Err(no_row()),
            },
            Column::Typed(of, column) => {
                Typed::new(of, &Cell { column, row }).serialize(serializer)
            }
            Column::Structs(fields) => Row { fields, row }.serialize(serializer),
            Column::Chosen(Chosen { rows, has_nulls, column }) => match rows.get(row) {
                Some(&Some(row)) if *has_nulls => serializer.serialize_some(&Cell { column, row }),
                Some(&Some(row)) => Cell { column, row }.serialize(serializer),
                Some(None) => serializer.serialize_none(),
                None => Err(no_row()),
            },
        }
    }
}

/// Serializes a row of a tensor: a number if that is an element of a type that serde has, and otherwise a tensor.
fn row_of<S: Serializer>(tensor: &DynTensor, row: usize, serializer: S) -> Result<S::Ok, S::Error> {
    macro_rules! number {
        ($type:ty, $serialize:ident) => {{
            let elements = tensor.as_slice::<$type>().map_err(S::Error::custom)?;
            match elements.get(row) {
                Some(element) => serializer.$serialize(*element),
                None => Err(no_row()),
            }
        }};
    }
    match (tensor.shape(), tensor.dtype()) {
        ([_], DType::Bool) => number!(bool, serialize_bool),
        ([_], DType::U8) => number!(u8, serialize_u8),
        ([_], DType::U16) => number!(u16, serialize_u16),
        ([_], DType::U32) => number!(u32, serialize_u32),
        ([_], DType::U64) => number!(u64, serialize_u64),
        ([_], DType::I8) => number!(i8, serialize_i8),
        ([_], DType::I16) => number!(i16, serialize_i16),
        ([_], DType::I32) => number!(i32, serialize_i32),
        ([_], DType::I64) => number!(i64, serialize_i64),
        ([_], DType::F32) => number!(f32, serialize_f32),
        ([_], DType::F64) => number!(f64, serialize_f64),
        (shape, dtype) => {
            let shape = shape.get(1..).unwrap_or_default();
            let len = row_len(tensor).unwrap_or(0);
            let start = row.saturating_mul(len);
            let bytes = tensor.le_bytes();
            let bytes = bytes.get(start..start.saturating_add(len)).unwrap_or_default();
            let view = DynView::new(dtype.clone(), shape, Order::C, bytes);
            Tensor(view.map_err(S::Error::custom)?).serialize(serializer)
        }
    }
}

/// Serializes a list as a `Vec` of numbers. An archive does not store rows with typed arrays as columns.
fn list<S: Serializer>(numbers: &Numbers, serializer: S) -> Result<S::Ok, S::Error> {
    macro_rules! first_of {
        ($($type:ty),*) => {
            $(if let Some(elements) = numbers.as_slice::<$type>() {
                return serializer.collect_seq(elements);
            })*
        };
    }
    first_of!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);
    numbers.serialize(serializer)
}

fn no_row<E: serde::ser::Error>() -> E {
    E::custom("a column has fewer rows than its table")
}
