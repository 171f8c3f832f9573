//! Lists the columns of a sequence that is stored as columns, without reading their content (`SPEC.md`, section 7
//! and annex A).

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, DefaultHasher, Hasher as _, RandomState};
use std::iter::Peekable;
use std::ops::Range;
use std::vec;

use super::column_type::{self, ColumnType, Present, SchemaFields};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::buffers::BufferLengths;
use crate::io::input::Input;
use crate::meta::{Order, TensorMeta};
use crate::options::Limits;
use crate::segment::header::Header;
use crate::shape::Shape;
use crate::steps::{Steps, escape_step, leads_to_several};
use crate::tensor::TensorInfo;
use crate::type_name::TypeName;
use crate::wire::columns::WantedFields;
use crate::wire::reader::Reader;

/// The columns of a sequence, or of several that are read as one.
#[derive(Default)]
pub struct Schema<'m> {
    /// The number of rows.
    rows: u64,
    /// The number of rows of the current group.
    group: u64,
    /// The number of groups that have rows.
    filled: usize,
    /// The groups that have rows.
    groups: Vec<Span>,
    /// Whether some rows are not stored as columns.
    has_items: bool,
    /// The number of columns that are stored as tensors, plus the number of tensors in rows that are stored as items.
    tensors: usize,
    /// The columns with a name. The columns in a column follow it.
    pub columns: Vec<Outlined<'m>>,
    numbers: HashMap<(Option<usize>, Cow<'m, str>), usize>,
    /// For each column, whether its dotted path is ambiguous. Empty if no path is.
    ambiguous: OnceCell<Vec<bool>>,
}

/// Which rows of a column have a type that is named, apart from those that are null.
#[derive(PartialEq)]
enum NamedFor {
    /// There was no row yet that is not null.
    NoRow,
    All(TypeName),
    NotAll,
}

/// A column with a name: a field of the rows, or a field of such a column. The contents of a variant are like a field.
pub struct Outlined<'m> {
    /// The number of the column that this is a field of. `None` if it is a field of the rows.
    pub parent: Option<usize>,
    pub name: Cow<'m, str>,
    /// The name that `SPEC.md` gives to this kind of column. "rows" if the kinds differ between groups.
    pub kind: &'static str,
    of: NamedFor,
    /// Whether it is a column of optional values or fields in one of the groups.
    is_optional: bool,
    /// What the rows have that are not null, in all groups that have the column.
    present: Present,
    /// The buffer and its length, if the column is in one group, and its payload is one whole buffer.
    buffer: Option<(u64, usize)>,
    /// Where it is in each group that has it.
    spans: Vec<Span>,
    /// The number of groups that have the column.
    groups: usize,
    /// The number of columns stored as tensors that it consists of, in all groups together.
    tensors: usize,
}

impl Outlined<'_> {
    /// The type that is named for the rows, if it is the same in all groups.
    pub fn type_name(&self) -> Option<&TypeName> {
        match &self.of {
            NamedFor::All(of) => Some(of),
            NamedFor::NoRow | NamedFor::NotAll => None,
        }
    }
}

/// The place of a column in one group, or of the whole group.
#[derive(Clone, Debug)]
struct Span {
    /// The range of its item, in offsets of the archive.
    item: Range<u64>,
    /// The rows of the group.
    rows: Range<u64>,
}

/// A whole column.
#[derive(Clone, Debug)]
pub struct WholeColumn {
    /// The names of the fields that lead to it.
    pub names: Vec<String>,
    /// `None` if it is not a tensor.
    pub meta: Option<TensorMeta>,
    /// The number of the buffer that holds the tensor, if the tensor is one whole buffer.
    pub buffer: Option<u64>,
}

impl WholeColumn {
    /// The description of the column as a tensor.
    pub fn info(&self, path: String) -> Option<TensorInfo> {
        let meta = self.meta.clone()?;
        let len = meta.byte_len()? as u64;
        Some(TensorInfo::of_column(path, meta, len, self.buffer))
    }
}

/// The target of a path in columns.
#[derive(Clone, Debug)]
pub enum ColumnTarget<'p> {
    Column(WholeColumn),
    /// The value that the steps lead to in a row of this column.
    InRow {
        names: Vec<String>,
        row: u64,
        rest: Steps<'p>,
    },
}

impl<'m> Schema<'m> {
    /// Reads the array around the groups, which starts at offset `base`. More bytes may follow it.
    pub fn of_groups(
        array: &'m [u8],
        base: u64,
        buffers: &[(u64, u64)],
        limits: Limits,
    ) -> Result<Self> {
        let mut outline = Self::default();
        let mut lengths = BufferLengths(buffers);
        let mut wire = Reader::new(Input::segment(array, base, &mut lengths), limits);
        outline.add_groups(&mut wire)?;
        Ok(outline)
    }

    /// Adds the columns in another item of metadata.
    pub fn add(
        &mut self,
        item: &'m [u8],
        base: u64,
        header: &Header,
        limits: Limits,
    ) -> Result<()> {
        let mut lengths = BufferLengths(&header.layout.buffers);
        let mut wire = Reader::new(Input::segment(item, base, &mut lengths), limits);
        wire.columns()?;
        wire.within(2, |wire| self.add_groups(wire))
    }

    /// Adds rows that are not stored as columns.
    pub fn add_items(&mut self, rows: u64) {
        self.rows = self.rows.saturating_add(rows);
        self.filled += 1;
        self.has_items = true;
    }

    fn add_groups(&mut self, wire: &mut Reader<'m, '_>) -> Result<()> {
        let mut left = wire.groups()?;
        while let Some(rows) = wire.group_rows(&mut left)? {
            self.group = rows as u64;
            self.rows = self.rows.saturating_add(self.group);
            if rows == 0 {
                wire.skip()?;
            } else {
                self.filled += 1;
                let start = wire.offset();
                let form = column_type::column(wire, Some(SchemaFields::of_rows(self)))?;
                self.tensors += form.all_tensors;
                let item = start..wire.offset();
                self.groups.push(Span { item, rows: self.rows_of_group() });
            }
        }
        Ok(())
    }

    /// The rows of the current group.
    fn rows_of_group(&self) -> Range<u64> {
        self.rows.saturating_sub(self.group)..self.rows
    }

    /// Dtype and shape of each row of a column, if it is a tensor.
    pub fn tensor<'o>(&self, column: &'o Outlined<'_>) -> Option<&'o (DType, Vec<usize>)> {
        self.present(column).filter(|_| !self.is_optional(column))
    }

    /// Whether rows of a column can be null, or can be missing.
    pub fn is_optional(&self, column: &Outlined<'_>) -> bool {
        column.is_optional || column.groups != self.filled
    }

    /// Dtype and shape of the rows of a column that are not null, if these are tensors of one dtype and shape.
    pub fn present<'o>(&self, column: &'o Outlined<'_>) -> Option<&'o (DType, Vec<usize>)> {
        match &column.present {
            Present::Tensor(tensor) if !self.has_items => Some(tensor),
            _ => None,
        }
    }

    /// The number of the buffer that a column is, if it is one whole buffer, with as many bytes as the tensor `meta`.
    fn buffer(&self, column: &Outlined<'_>, meta: &TensorMeta) -> Option<u64> {
        let (number, len) = column.buffer.filter(|_| self.filled == 1)?;
        (meta.byte_len() == Some(len)).then_some(number)
    }

    /// Dtype, shape and order of a column as a tensor.
    fn meta(&self, column: &Outlined<'_>) -> Option<TensorMeta> {
        let (dtype, dims) = self.tensor(column)?;
        let rows = usize::try_from(self.rows).ok()?;
        let shape: Vec<usize> = std::iter::once(rows).chain(dims.iter().copied()).collect();
        let shape = Shape::from(&*shape);
        Some(TensorMeta { dtype: dtype.clone(), shape, order: Order::C })
    }

    /// Describes a column.
    pub fn whole(&self, number: usize) -> WholeColumn {
        let column = self.columns.get(number);
        let meta = column.and_then(|column| self.meta(column));
        WholeColumn {
            names: self.names(number).into_iter().map(str::to_owned).collect(),
            buffer: column.zip(meta.as_ref()).and_then(|(column, meta)| self.buffer(column, meta)),
            meta,
        }
    }

    /// The names that lead to a column, from the rows on.
    pub fn names(&self, number: usize) -> Vec<&str> {
        let mut names = Vec::new();
        let mut next = Some(number);
        while let Some(column) = next.and_then(|number| self.columns.get(number)) {
            names.push(&*column.name);
            next = column.parent;
        }
        names.reverse();
        names
    }

    /// Whether another column has the same names, joined by dots, or they do not read as a dotted path.
    pub fn is_ambiguous(&self, number: usize) -> bool {
        let ambiguous = self.ambiguous.get_or_init(|| self.find_ambiguous());
        ambiguous.get(number).copied().unwrap_or_default()
    }

    /// Compares hashes of the dotted paths, because one long name is part of the path of every column in its column.
    fn find_ambiguous(&self) -> Vec<bool> {
        // With a position in front, a dotted path leads to a row.
        let is_row = |column: &Outlined<'_>| row_of(Steps::Dotted(&column.name)).is_some();
        let special = |column: &Outlined<'_>| {
            column.name.is_empty() || column.name.contains(['.', '/']) || is_row(column)
        };
        if !self.columns.iter().any(special) {
            return Vec::new();
        }
        let start = RandomState::new().build_hasher();
        let mut hashers: Vec<DefaultHasher> = Vec::with_capacity(self.columns.len());
        let mut counts: HashMap<u64, usize> = HashMap::new();
        for column in &self.columns {
            // A column comes after the one that it is in.
            let mut hasher = match column.parent.and_then(|parent| hashers.get(parent)) {
                Some(parent) => {
                    let mut hasher = parent.clone();
                    hasher.write(b".");
                    hasher
                }
                None => start.clone(),
            };
            hasher.write(column.name.as_bytes());
            *counts.entry(hasher.finish()).or_default() += 1;
            hashers.push(hasher);
        }
        // A path that begins with a slash, or with nothing, is not a dotted path.
        let mut odd: Vec<bool> = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            odd.push(match column.parent {
                _ if is_row(column) => true,
                None => column.name.is_empty() || column.name.starts_with('/'),
                Some(parent) => odd.get(parent) == Some(&true),
            });
        }
        let is_repeated = |hasher: &DefaultHasher| counts.get(&hasher.finish()) != Some(&1);
        odd.iter().zip(&hashers).map(|(odd, hasher)| *odd || is_repeated(hasher)).collect()
    }

    /// The path of a column from the rows on: its names, joined by dots if that names no other column.
    pub fn path(&self, number: usize) -> String {
        let names = self.names(number);
        if self.is_ambiguous(number) {
            return names.iter().flat_map(|name| ["/".into(), escape_step(name)]).collect();
        }
        names.join(".")
    }

    /// Whether a column is a tensor that a path leads to.
    pub fn is_tensor(&self, number: usize) -> bool {
        let column = self.columns.get(number);
        column.is_some_and(|column| self.tensor(column).is_some())
    }

    /// Whether there are tensors outside the columns that are listed as tensors.
    pub fn hides_tensors(&self) -> bool {
        let columns = self.columns.iter().enumerate();
        let listed = columns.filter(|(number, _)| self.is_tensor(*number));
        listed.map(|(_, column)| column.tensors).sum::<usize>() < self.tensors
    }

    /// Finds out which columns items are in.
    pub fn holders(&self) -> Holders<'_> {
        let columns = self.columns.iter().enumerate();
        let columns = columns
            .flat_map(|(number, column)| column.spans.iter().map(move |span| (Some(number), span)));
        let groups = self.groups.iter().map(|span| (None, span));
        let mut spans: Vec<_> = groups.chain(columns).collect();
        // A column in a column starts behind it. Rows that are a column start where it starts, and come first.
        spans.sort_by_key(|(_, span)| span.item.start);
        Holders { spans: spans.into_iter().peekable(), open: Vec::new() }
    }

    /// The items in columns that are read if these fields are read of some rows.
    pub fn wanted(&self, fields: WantedFields<'_>, rows: Vec<Range<u64>>) -> Belongs {
        let columns = 0..self.columns.len();
        Belongs {
            columns: columns.map(|number| takes(fields, &self.names(number))).collect(),
            rows,
        }
    }

    /// What a path leads to.
    ///
    /// # Errors
    /// If it leads to nothing, or to several columns.
    pub fn target<'p>(&self, steps: Steps<'p>) -> Result<ColumnTarget<'p>> {
        let mut found = Vec::new();
        self.search(None, steps, &mut found);
        match (found.pop(), found.pop()) {
            (Some((number, rest)), None) => {
                let whole = number.map(|number| self.whole(number));
                match (row_of(rest), whole) {
                    (Some((row, rest)), whole) => {
                        let names = whole.map(|whole| whole.names).unwrap_or_default();
                        Ok(ColumnTarget::InRow { names, row, rest })
                    }
                    (None, Some(whole)) => Ok(ColumnTarget::Column(whole)),
                    (None, None) => Err(self.no_column()),
                }
            }
            (Some(_), Some(_)) => Err(leads_to_several()),
            _ => Err(self.no_column()),
        }
    }

    #[cold]
    fn no_column(&self) -> Error {
        let fields = self.columns.iter().filter(|column| column.parent.is_none());
        let names: Vec<_> = fields.map(|column| column.name.escape_debug()).collect();
        let mut what = String::new();
        for (at, name) in names.into_iter().take(SHOWN).enumerate() {
            what += if at == 0 { "expected one of the columns `" } else { "`, `" };
            what.extend(name.take(SHOWN_LEN));
        }
        what += if what.is_empty() { "there is no column" } else { "`; there is none" };
        Error::not_found(what)
    }

    /// Finds the columns that steps lead to. A row ends the search. A position in a JSON Pointer is a field, if there
    /// is one with this name, otherwise a row. In a dotted path it is a row.
    fn search<'p>(
        &self,
        parent: Option<usize>,
        steps: Steps<'p>,
        found: &mut Vec<(Option<usize>, Steps<'p>)>,
    ) {
        let next = steps.next();
        let fields = self.columns.iter().enumerate().filter(|(_, column)| column.parent == parent);
        let is_field = |column: &Outlined<'_>| next.after(column.name.as_bytes()).is_some();
        let may_be_field = matches!(steps, Steps::Pointer(_));
        if row_of(steps).is_some()
            && !(may_be_field && fields.clone().any(|(_, column)| is_field(column)))
        {
            found.push((parent, steps));
            return;
        }
        for (number, column) in fields {
            if let Some(rest) = next.after(column.name.as_bytes()) {
                if rest.is_empty() {
                    found.push((Some(number), rest));
                } else {
                    self.search(Some(number), rest, found);
                }
            }
        }
    }

    /// Adds a field of a group. Returns its number.
    pub(super) fn field(&mut self, parent: Option<usize>, name: Cow<'m, str>) -> usize {
        let next = self.columns.len();
        *self.numbers.entry((parent, name)).or_insert_with_key(|(parent, name)| {
            let (parent, name) = (*parent, name.clone());
            self.columns.push(Outlined {
                parent,
                name,
                kind: "rows",
                of: NamedFor::NoRow,
                is_optional: false,
                present: Present::Unknown,
                buffer: None,
                spans: Vec::new(),
                groups: 0,
                tensors: 0,
            });
            next
        })
    }

    /// Takes over what is known about a column of another group.
    pub(super) fn merge(&mut self, number: usize, mut form: ColumnType) {
        let rows = self.rows_of_group();
        let Some(column) = self.columns.get_mut(number) else { return };
        if let Some(item) = &form.item {
            column.spans.push(Span { item: item.clone(), rows });
        }
        if column.groups == 0 {
            (column.kind, column.buffer) = (form.kind, form.buffer);
        } else {
            if column.kind != form.kind {
                column.kind = "rows";
            }
            column.buffer = None;
        }
        column.groups += 1;
        column.tensors += form.tensors;
        // Rows of kind unit are null.
        column.is_optional |= form.optional.is_some() || form.kind == "unit";
        let known = std::mem::replace(&mut column.present, Present::Unknown);
        let (of, present) = (form.of.take(), form.present());
        if of.is_some() || !matches!(present, Present::Unknown) {
            let of = of.map_or(NamedFor::NotAll, NamedFor::All);
            if column.of == NamedFor::NoRow {
                column.of = of;
            } else if column.of != of {
                column.of = NamedFor::NotAll;
            }
        }
        column.present = known.and(present);
    }
}

/// The column and the rows that an item is in.
pub struct Holder {
    /// The number of the column. `None` if the item is in no column with a name.
    pub column: Option<usize>,
    /// The rows of the group.
    pub rows: Range<u64>,
}

/// Finds out which columns items are in. The items must be in ascending order.
pub struct Holders<'o> {
    /// The columns and groups that start later, in ascending order.
    spans: Peekable<vec::IntoIter<(Option<usize>, &'o Span)>>,
    /// Those that have started and have not ended. Each one is in the one before.
    open: Vec<(Option<usize>, &'o Span)>,
}

impl Holders<'_> {
    /// The innermost column with the byte at this offset of the archive. `None` if the byte is in no group.
    pub fn at(&mut self, offset: u64) -> Option<Holder> {
        while let Some(next) = self.spans.next_if(|(_, span)| span.item.start <= offset) {
            self.close(next.1.item.start);
            self.open.push(next);
        }
        self.close(offset);
        let &(column, span) = self.open.last()?;
        Some(Holder { column, rows: span.rows.clone() })
    }

    fn close(&mut self, offset: u64) {
        while self.open.pop_if(|(_, span)| span.item.end <= offset).is_some() {}
    }
}

/// Which items in columns are read.
pub struct Belongs {
    /// Whether the items of each column are, if they are in no column in it.
    columns: Vec<bool>,
    /// The rows that are read.
    rows: Vec<Range<u64>>,
}

impl Belongs {
    /// Whether an item with this holder is read.
    pub fn takes(&self, holder: Option<Holder>) -> bool {
        let Some(Holder { column, rows }) = holder else { return false };
        let in_column = |column: usize| self.columns.get(column) == Some(&true);
        let in_rows = |wanted: &Range<u64>| wanted.start < rows.end && rows.start < wanted.end;
        self.rows.iter().any(in_rows) && column.is_none_or(in_column)
    }
}

/// Whether the column to which these names lead is read, or some column in it.
fn takes(fields: WantedFields<'_>, names: &[&str]) -> bool {
    let Some((name, rest)) = names.split_first() else { return true };
    let of_struct = fields.of_struct();
    let place = of_struct.place(name);
    of_struct.within(&place).is_some_and(|inside| takes(inside, rest))
}

/// The number of names that an error shows, and the number of bytes of each.
const SHOWN: usize = 12;
const SHOWN_LEN: usize = 64;

/// Returns the row that the next step names, and the rest of the path.
fn row_of(steps: Steps<'_>) -> Option<(u64, Steps<'_>)> {
    match steps.index() {
        (Some(row), Some(rest)) => Some((row, rest)),
        _ => None,
    }
}
