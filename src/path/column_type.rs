//! Reads the form of a column from the metadata, without its content (`SPEC.md`, section 7 and annex A).

use std::borrow::Cow;
use std::ops::Range;

use super::schema::Schema;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::io::input::Input;
use crate::type_name::TypeName;
use crate::wire::columns::{check_items, check_names, holding};
use crate::wire::head;
use crate::wire::reader::{ItemStart, Left, Reader};
use crate::wire::tag;
use crate::wire::tensor::{ItemPayload, Kind};
use crate::wire::walk::{Event, Walk};

/// What is known about a column of a group.
pub struct ColumnType {
    pub kind: &'static str,
    /// The type that is named for the rows.
    pub of: Option<TypeName>,
    /// The dtype and the shape of each row, if the column is a tensor.
    pub tensor: Option<(DType, Vec<usize>)>,
    /// What the rows that are there have, if the column is one of optional values or fields.
    pub optional: Option<Present>,
    /// The number and the length of the buffer, if the column is one whole buffer.
    pub buffer: Option<(u64, usize)>,
    /// The number of columns stored as tensors that it consists of.
    pub tensors: usize,
    /// The number of columns stored as tensors that it contains at any depth, plus the number of tensors in rows that
    /// are stored as items.
    pub all_tensors: usize,
    /// The range of its item, in offsets of the archive, if the column has an item of its own.
    pub item: Option<Range<u64>>,
}

/// What the rows of a column have, apart from those that are null.
pub enum Present {
    /// It is not known, because all rows are null.
    Unknown,
    /// Numbers of this dtype, with this shape in each row.
    Tensor((DType, Vec<usize>)),
    Other,
}

impl Present {
    /// What the rows of two groups have together.
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (Self::Tensor(tensor), Self::Tensor(other)) => {
                both(tensor, &other).map_or(Self::Other, Self::Tensor)
            }
            _ => Self::Other,
        }
    }
}

impl ColumnType {
    fn other(kind: &'static str) -> Self {
        Self {
            kind,
            of: None,
            tensor: None,
            optional: None,
            buffer: None,
            tensors: 0,
            all_tensors: 0,
            item: None,
        }
    }

    /// What the rows have that are not null.
    pub fn present(self) -> Present {
        match (self.kind, self.optional, self.tensor) {
            (_, Some(present), _) => present,
            (_, None, Some(tensor)) => Present::Tensor(tensor),
            // Where no row is there, a column of kind unit stands for any.
            ("unit", None, None) => Present::Unknown,
            (_, None, None) => Present::Other,
        }
    }

    /// The form of the column of lists around this one.
    fn in_lists(self) -> Self {
        let kind = "sequences";
        Self { kind, of: None, tensor: None, optional: None, buffer: None, ..self }
    }

    /// The form of the column of arrays of this length around this one.
    fn in_arrays(self, len: u64) -> Self {
        let tensor = self.tensor.zip(usize::try_from(len).ok()).map(|((dtype, mut dims), len)| {
            dims.insert(0, len);
            (dtype, dims)
        });
        let buffer = self.buffer.filter(|_| tensor.is_some());
        Self { kind: "sequences", of: None, tensor, optional: None, buffer, ..self }
    }

    /// The form of the column around this one, some of whose rows have no row in this one.
    fn into_optional(mut self) -> Self {
        let (all_tensors, of) = (self.all_tensors, self.of.take());
        let optional = Some(self.present());
        Self { of, optional, all_tensors, ..Self::other("optional values") }
    }
}

/// Where the fields of a column are added, if a path can name them.
pub struct SchemaFields<'o, 'm> {
    outline: &'o mut Schema<'m>,
    /// The column that they are fields of. `None` if they are fields of the rows.
    parent: Option<usize>,
    /// Whether they are in a column of optional values, so that they are not tensors.
    are_optional: bool,
}

impl<'o, 'm> SchemaFields<'o, 'm> {
    /// The fields of the rows.
    pub fn of_rows(outline: &'o mut Schema<'m>) -> Self {
        Self { outline, parent: None, are_optional: false }
    }

    /// Reads a field, or the content of a variant, and adds it and the fields in it. Returns the number of tensors in it.
    fn add(&mut self, name: Cow<'m, str>, wire: &mut Reader<'m, '_>) -> Result<usize> {
        let number = self.outline.field(self.parent, name);
        let are_optional = self.are_optional;
        let start = wire.offset();
        let inside = SchemaFields { outline: self.outline, parent: Some(number), are_optional };
        let form = column(wire, Some(inside))?;
        let form = ColumnType { item: Some(start..wire.offset()), ..form };
        let tensors = form.all_tensors;
        let form = if are_optional {
            let item = form.item.clone();
            ColumnType { kind: form.kind, tensors: form.tensors, item, ..form.into_optional() }
        } else {
            form
        };
        self.outline.merge(number, form);
        Ok(tensors)
    }
}

/// Reads a column. Adds its fields to `fields`. Without `fields`, only its form is of interest.
pub fn column<'m>(
    wire: &mut Reader<'m, '_>,
    mut fields: Option<SchemaFields<'_, 'm>>,
) -> Result<ColumnType> {
    let at = wire.offset();
    match wire.item()? {
        ItemStart::Head(head) if head.major() == head::MAP => wire.within(1, |wire| {
            let mut left = Left::of(head);
            let mut all_tensors = 0;
            let mut names = Vec::new();
            while wire.more(&mut left)? {
                let name = name(wire)?;
                names.push(name.clone());
                all_tensors += match &mut fields {
                    Some(fields) => fields.add(name, wire)?,
                    None => column(wire, None)?.all_tensors,
                };
            }
            check_names(names.iter().map(|name| &**name)).map_err(|error| error.at(at))?;
            Ok(ColumnType { all_tensors, ..ColumnType::other("structs") })
        }),
        ItemStart::Head(head) if head.major() == head::ARRAY => {
            let mut left = Left::of(head);
            if !wire.more(&mut left)? {
                return Err(Error::data("expected a column, found an empty array").at(at));
            }
            let kind = name(wire)?;
            wire.within(1, |wire| {
                let form = named(&kind, wire, fields, &mut left)?;
                while wire.more(&mut left)? {
                    wire.skip()?;
                }
                Ok(form)
            })
        }
        ItemStart::Tag(tag) if tag::is_array(tag) => {
            let item = wire.tensor(tag)?;
            wire.skip_payload(&item)?;
            let (kind, dims) = match item.kind {
                Kind::Numbers => ("numbers", Vec::new()),
                Kind::Tensor => ("tensors", item.meta.shape.iter().skip(1).copied().collect()),
                Kind::Bytes => return Ok(ColumnType::other("rows")),
            };
            let buffer = match item.payload {
                ItemPayload::Buffer { number, len } => Some((number, len)),
                _ => None,
            };
            let tensors = usize::from(item.kind == Kind::Tensor);
            let tensor = Some((item.meta.dtype, dims));
            Ok(ColumnType {
                tensor,
                buffer,
                tensors,
                all_tensors: tensors,
                ..ColumnType::other(kind)
            })
        }
        ItemStart::Within(levels) => wire.within(levels, |wire| column(wire, fields)),
        _ => Err(Error::data("expected a column").at(at)),
    }
}

/// Reads the part of a column after the name of its kind.
fn named<'m>(
    kind: &str,
    wire: &mut Reader<'m, '_>,
    fields: Option<SchemaFields<'_, 'm>>,
    left: &mut Left,
) -> Result<ColumnType> {
    let mut more = |wire: &mut Reader<'m, '_>| -> Result<()> {
        let at = wire.offset();
        if wire.more(left)? {
            return Ok(());
        }
        Err(Error::data(format!("a column of kind {kind:?} is too short")).at(at))
    };
    Ok(match kind {
        "dict" => {
            for _ in ["codes", "the number of rows"] {
                more(wire)?;
                wire.skip()?;
            }
            more(wire)?;
            let form = column(wire, None)?;
            ColumnType {
                tensor: None,
                optional: form.optional.map(|_| Present::Other),
                buffer: None,
                ..form
            }
        }
        "type" => {
            for _ in ["name", "parameters"] {
                more(wire)?;
            }
            let of = Some(wire.named_type()?);
            more(wire)?;
            ColumnType { of, ..column(wire, fields)? }
        }
        "bool" => {
            ColumnType { tensor: Some((DType::Bool, Vec::new())), ..ColumnType::other("booleans") }
        }
        "text" => ColumnType::other("texts"),
        "bytes" => ColumnType::other("bytes"),
        "unit" => ColumnType::other("unit"),
        "map" => {
            more(wire)?;
            wire.skip()?;
            let mut all_tensors = 0;
            for _ in ["keys", "values"] {
                more(wire)?;
                all_tensors += column(wire, None)?.all_tensors;
            }
            ColumnType { all_tensors, ..ColumnType::other("maps") }
        }
        "enum" => {
            more(wire)?;
            wire.skip()?;
            more(wire)?;
            let names = variants(wire)?;
            // Rows of other variants have no value there.
            let fields = fields.map(|fields| SchemaFields { are_optional: true, ..fields });
            let all_tensors =
                if wire.more(left)? { columns_of_variants(wire, names, fields)? } else { 0 };
            ColumnType { all_tensors, ..ColumnType::other("enums") }
        }
        "option" | "present" => {
            more(wire)?;
            wire.skip()?;
            more(wire)?;
            let fields = fields.map(|fields| SchemaFields { are_optional: true, ..fields });
            column(wire, fields)?.into_optional()
        }
        "list" => {
            more(wire)?;
            wire.skip()?;
            more(wire)?;
            column(wire, None)?.in_lists()
        }
        "array" => {
            more(wire)?;
            let at = wire.offset();
            let len = wire
                .unsigned()?
                .ok_or_else(|| Error::data("expected the length of the arrays").at(at))?;
            more(wire)?;
            column(wire, None)?.in_arrays(len)
        }
        "tuple" => {
            more(wire)?;
            tuple(wire)?
        }
        "rows" => {
            more(wire)?;
            let base = wire.offset();
            let items = wire.capture()?;
            check_items(items.as_slice(), base)?;
            let (levels, allowance) = (wire.levels_left(), wire.allowance());
            let mut inside = Reader::inside(Input::items_of(items, base), levels, &allowance);
            let all_tensors = tensors_in(&mut inside)?;
            ColumnType { all_tensors, ..ColumnType::other("rows") }
        }
        _ => ColumnType::other("rows"),
    })
}

/// Reads the columns of a tuple.
fn tuple(wire: &mut Reader<'_, '_>) -> Result<ColumnType> {
    let mut left = Left::of(wire.head()?);
    let mut items = Vec::new();
    let mut form = ColumnType::other("tuples");
    wire.within(1, |wire| {
        while wire.more(&mut left)? {
            let item = column(wire, None)?;
            form.tensors += item.tensors;
            form.all_tensors += item.all_tensors;
            items.push(item.tensor);
        }
        Ok(())
    })?;
    Ok(ColumnType { tensor: same(items), ..form })
}

/// The dtype and shape of tuples whose columns have these dtypes and shapes.
fn same(forms: Vec<Option<(DType, Vec<usize>)>>) -> Option<(DType, Vec<usize>)> {
    let len = forms.len();
    let mut forms = forms.into_iter();
    let first = forms.next()??;
    let (dtype, mut dims) = forms.try_fold(first, |all, form| both(all, &form?))?;
    dims.insert(0, len);
    Some((dtype, dims))
}

/// The dtype and shape that rows of two have together: they have one shape, and the dtype holds the elements of both.
fn both(one: (DType, Vec<usize>), other: &(DType, Vec<usize>)) -> Option<(DType, Vec<usize>)> {
    let dtype = holding(&one.0, &other.0).filter(|_| one.1 == other.1)?;
    Some((dtype, one.1))
}

/// Reads the names of the variants of an enum.
fn variants<'m>(wire: &mut Reader<'m, '_>) -> Result<Vec<Cow<'m, str>>> {
    let at = wire.offset();
    let mut left = Left::of(wire.head()?);
    let mut names = Vec::new();
    wire.within(1, |wire| {
        while wire.more(&mut left)? {
            names.push(name(wire)?);
        }
        check_names(names.iter().map(|name| &**name)).map_err(|error| error.at(at))?;
        Ok(names)
    })
}

/// Reads the columns of the variants of an enum. Adds them to `fields`. Returns the number of tensors in them.
fn columns_of_variants<'m>(
    wire: &mut Reader<'m, '_>,
    names: Vec<Cow<'m, str>>,
    mut fields: Option<SchemaFields<'_, 'm>>,
) -> Result<usize> {
    let mut left = Left::of(wire.head()?);
    let mut names = names.into_iter();
    let mut tensors = 0;
    wire.within(1, |wire| {
        while wire.more(&mut left)? {
            let name = names.next();
            tensors += match (wire.peek_head()?, name, &mut fields) {
                (Some((head, _)), ..) if head.initial == head::NULL => {
                    wire.skip()?;
                    0
                }
                (_, Some(name), Some(fields)) => fields.add(name, wire)?,
                _ => column(wire, None)?.all_tensors,
            };
        }
        Ok(tensors)
    })
}

/// Skips an item. Returns the number of tensors in it.
fn tensors_in(wire: &mut Reader<'_, '_>) -> Result<usize> {
    let mut walk = Walk::with_known_tags();
    let mut tensors = 0;
    while let Some(event) = walk.next(wire)? {
        match event {
            Event::Tag(tag::COLUMNS) => {
                tensors += walk.take(wire).within(2, tensors_in_groups)?;
            }
            Event::Tag(tag) if tag::is_leaf(tag) => {
                tensors += usize::from(tag::is_array(tag));
                walk.take(wire).within(1, Reader::skip)?;
            }
            Event::Leaf(head) => wire.skip_rest(head)?,
            _ => {}
        }
    }
    Ok(tensors)
}

/// Skips the groups of columns. Returns the number of tensors in them.
fn tensors_in_groups(wire: &mut Reader<'_, '_>) -> Result<usize> {
    let mut left = wire.groups()?;
    let mut tensors = 0;
    while let Some(rows) = wire.group_rows(&mut left)? {
        if rows == 0 {
            wire.skip()?;
        } else {
            tensors += column(wire, None)?.all_tensors;
        }
    }
    Ok(tensors)
}

fn name<'de>(wire: &mut Reader<'de, '_>) -> Result<Cow<'de, str>> {
    let at = wire.offset();
    let head = wire.head()?;
    if head.major() != head::TEXT {
        let found = head::name(head.initial);
        return Err(Error::data(format!("expected a name in columns, found {found}")).at(at));
    }
    Ok(wire.text(head)?.into_cow())
}
