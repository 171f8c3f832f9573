//! Tables over several values: the rows of all values that were saved under one name.

use tenarc::DType;
use tenarc::types::TypeName;

use crate::document::{Compressed, Document, Section};
use crate::elements;
use crate::failure::Result;
use crate::node::{Field, Form, Kind, Node, Payload};
use crate::text::{counted, quoted};

/// What `ls` and `stats` show in one piece.
pub enum Unit<'a> {
    Value(Section<'a>),
    Table(Shared<'a>),
}

/// A table of all values that have one name. All of them are sequences, and at least one is stored as columns.
pub struct Shared<'a> {
    pub name: String,
    /// The values, in the order in which they were saved.
    pub parts: Vec<Part<'a>>,
    pub rows: usize,
    /// The columns that have a name, in the order in which they first occur.
    pub columns: Vec<Column>,
}

/// One of the values of a table.
pub struct Part<'a> {
    pub section: Section<'a>,
    pub rows: usize,
    pub is_columns: bool,
}

/// A column of a table over several values.
pub struct Column {
    pub path: String,
    /// The kind of the rows. It is "rows" if values have different kinds.
    pub kind: &'static str,
    /// The type that is named for the rows of all values.
    pub of: Option<TypeName>,
    /// The column as a tensor, if it is one in all values, with the same dtype and the same shape of a row. Its bytes are
    /// those of all values together.
    pub tensor: Option<Payload>,
    /// The codec, if a value has the column compressed, and the number of bytes that are stored in all values.
    pub compressed: Option<(String, u64)>,
    /// The dtype as which the numbers in the columns of all values can be measured, and the dimensions of a row. `None` if
    /// there are no such numbers.
    pub numbers: Option<(DType, Vec<usize>)>,
}

impl Document {
    /// Calls `each` with the chosen values, or with all of them. Values that are one table are passed together, at the
    /// place of the first one. A value that is chosen by its number is passed alone.
    ///
    /// # Errors
    /// If there is no value of the chosen name or number, if a value is damaged, or if `each` fails.
    pub fn each_unit<'d>(
        &'d self,
        chosen: Option<&str>,
        each: &mut dyn FnMut(Unit<'d>) -> Result<()>,
    ) -> Result<()> {
        let numbers = self.numbers(chosen)?;
        let are_several = numbers.len() > 1;
        let mut done = std::collections::HashSet::new();
        for number in numbers {
            if done.contains(&number) {
                continue;
            }
            let section = self.section(number)?;
            if are_several && let Some(shared) = self.shared(&section)? {
                done.extend(shared.parts.iter().map(|part| part.section.number));
                each(Unit::Table(shared))?;
            } else {
                each(Unit::Value(section))?;
            }
        }
        Ok(())
    }

    /// Returns the table that starts with this value. `None` if no other value has its name, if another one comes first,
    /// or if the values are not a table that has columns.
    fn shared<'d>(&'d self, first: &Section<'d>) -> Result<Option<Shared<'d>>> {
        let Some(name) = first.name() else { return Ok(None) };
        let Some(numbers) = self.with_same_name(name) else { return Ok(None) };
        if numbers.first() != Some(&first.number) {
            return Ok(None);
        }
        let mut parts = Vec::new();
        for &number in numbers {
            let mut section = self.section(number)?;
            let (rows, is_columns) = match &section.root.untagged().kind {
                Kind::Columns(columns) => (section.table(columns)?.len(), true),
                Kind::Array(items) => (items.len() as u64, false),
                _ => return Ok(None),
            };
            if !is_columns {
                // The rows have many nodes. They are not needed, and those of all values are not held in memory at once.
                section.root.kind = Kind::Leaf;
            }
            let rows = usize::try_from(rows).unwrap_or(usize::MAX);
            parts.push(Part { section, rows, is_columns });
        }
        if !parts.iter().any(|part| part.is_columns) {
            return Ok(None);
        }
        let rows = parts.iter().fold(0usize, |sum, part| sum.saturating_add(part.rows));
        let columns = columns(&parts, rows)?;
        Ok(Some(Shared { name: name.to_owned(), parts, rows, columns }))
    }

    /// Returns the quoted name of a value. If other values have the same name, its number follows. A value without a name
    /// has only a number.
    pub fn label(&self, section: &Section<'_>) -> String {
        match section.name().and_then(|name| self.with_same_name(name)) {
            Some(_) => format!("{} #{}", section.label(), section.number),
            None => section.label(),
        }
    }
}

impl Shared<'_> {
    /// Returns the quoted name, and how many values have it.
    pub fn label(&self) -> String {
        format!("{} ({})", quoted(&self.name), counted(self.parts.len() as u64, "value"))
    }
}

impl Part<'_> {
    /// Returns the column at a path of the table.
    pub fn field(&self, path: &str) -> Result<Option<&Field>> {
        Ok(self.fields()?.iter().find(|field| field.path == path))
    }

    fn fields(&self) -> Result<&[Field]> {
        match &self.section.root.untagged().kind {
            Kind::Columns(columns) => self.section.fields(columns),
            _ => Ok(&[]),
        }
    }
}

impl Column {
    /// Returns how the column is compressed, in the form that lists need.
    pub fn compressed(&self) -> Option<Compressed<'_>> {
        let (codec, stored) = self.compressed.as_ref()?;
        Some(Compressed { codec, stored: *stored })
    }
}

/// What is known of a column after some of the values.
struct Known {
    path: String,
    kind: &'static str,
    of: Option<TypeName>,
    /// The number of values that have the column.
    count: usize,
    /// Whether the column is a tensor in all of them.
    are_tensors: bool,
    /// The dtype, and the dimensions of a row, of the numbers in each value in which it has numbers.
    numbers: Vec<(DType, Vec<usize>)>,
    byte_len: u64,
    stored: u64,
    codec: Option<String>,
}

impl Known {
    fn new(field: &Field) -> Self {
        Self {
            path: field.path.clone(),
            kind: field.kind,
            of: field.of.clone(),
            count: 0,
            are_tensors: true,
            numbers: Vec::new(),
            byte_len: 0,
            stored: 0,
            codec: None,
        }
    }

    fn add(&mut self, section: &Section<'_>, field: &Field) {
        self.count += 1;
        if self.kind != field.kind {
            self.kind = "rows";
        }
        self.of = self.of.take().filter(|of| Some(of) == field.of.as_ref());
        let payload = field.tensor.as_ref().and_then(Node::payload);
        match (payload, &field.optional) {
            (Some(payload), _) => {
                let dims = payload.shape.get(1..).unwrap_or_default().to_vec();
                self.numbers.push((payload.dtype.clone(), dims));
                let compressed = section.compressed(payload);
                let stored = compressed.map_or(payload.byte_len, |how| how.stored);
                self.byte_len = self.byte_len.saturating_add(payload.byte_len);
                self.stored = self.stored.saturating_add(stored);
                self.codec = self.codec.take().or(compressed.map(|how| how.codec.to_owned()));
            }
            (None, optional) => {
                self.are_tensors = false;
                let dtype = optional.as_ref().map(|optional| optional.dtype.clone());
                self.numbers.extend(dtype.map(|dtype| (dtype, Vec::new())));
            }
        }
    }

    /// Returns the column of a table with `rows` rows in `parts` values that are not empty. `has_items` says whether
    /// some of these are not stored as columns.
    fn column(self, rows: usize, parts: usize, has_items: bool) -> Column {
        let first = self.numbers.first();
        let are_same = self.numbers.iter().all(|numbers| Some(numbers) == first);
        let is_tensor = self.are_tensors && are_same && self.count == parts && !has_items;
        let shape = |dims: &[usize]| [&[rows], dims].concat();
        let tensor = first.filter(|_| is_tensor).map(|(dtype, dims)| Payload {
            form: Form::Tensor,
            dtype: dtype.clone(),
            shape: shape(dims),
            order: tenarc::tensor::Order::C,
            byte_len: self.byte_len,
            buffer: None,
            column: None,
        });
        let compressed = self.codec.filter(|_| is_tensor).map(|codec| (codec, self.stored));
        let numbers = first.and_then(|(_, dims)| {
            // Rows with dimensions are only measured as one tensor.
            let is_measured = is_tensor || self.numbers.iter().all(|(_, dims)| dims.is_empty());
            let dtypes = self.numbers.iter().map(|(dtype, _)| dtype);
            Some((common(dtypes).filter(|_| is_measured)?, dims.clone()))
        });
        Column { path: self.path, kind: self.kind, of: self.of, tensor, compressed, numbers }
    }
}

/// Returns the columns of a table with `rows` rows.
fn columns(parts: &[Part<'_>], rows: usize) -> Result<Vec<Column>> {
    let mut known: Vec<Known> = Vec::new();
    let mut places = std::collections::HashMap::new();
    let filled = || parts.iter().filter(|part| part.rows > 0);
    for part in filled() {
        for field in part.fields()? {
            let place = *places.entry(field.path.clone()).or_insert_with(|| {
                known.push(Known::new(field));
                known.len() - 1
            });
            if let Some(known) = known.get_mut(place) {
                known.add(&part.section, field);
            }
        }
    }
    let has_items = filled().any(|part| !part.is_columns);
    Ok(known.into_iter().map(|known| known.column(rows, filled().count(), has_items)).collect())
}

/// Returns a dtype that holds the numbers of all these dtypes: the narrowest integer or float that does.
pub fn common<'d>(mut dtypes: impl Iterator<Item = &'d DType>) -> Option<DType> {
    let first = dtypes.next()?.clone();
    dtypes.try_fold(first, |found, dtype| match (&found, dtype) {
        (found, dtype) if found == dtype => Some(found.clone()),
        (a, b) if !is_number(a) || !is_number(b) => None,
        (a, b) if elements::is_integer(a) && elements::is_integer(b) => Some(integer(a, b)),
        _ => Some(DType::F64),
    })
}

fn integer(a: &DType, b: &DType) -> DType {
    let is_signed =
        |dtype: &DType| matches!(dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64);
    match (is_signed(a), is_signed(b)) {
        _ if *a == DType::Bool => b.clone(),
        _ if *b == DType::Bool => a.clone(),
        // An `i64` holds all other integers.
        (true, false) | (false, true) if [a, b].contains(&&DType::U64) => DType::F64,
        (true, false) | (false, true) => DType::I64,
        _ => {
            if a.bits() >= b.bits() {
                a.clone()
            } else {
                b.clone()
            }
        }
    }
}

/// Returns whether numbers of a dtype can be measured together with those of another one.
fn is_number(dtype: &DType) -> bool {
    use DType::{BF16, Bool, F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(dtype, Bool | U8 | U16 | U32 | U64 | I8 | I16 | I32 | I64 | F16 | BF16 | F32 | F64)
}
