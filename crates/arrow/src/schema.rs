//! Chooses the types of Arrow for the columns of a table.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef};
use tenarc::{DType, Error, Result};

use crate::category::{Category, Order};
use crate::columns::{Column, Lengths};
use crate::extension::{FIXED_SHAPE_TENSOR, FixedShape, METADATA, NAME, UUID};
use crate::named::{Named, Storage};
use crate::report::Report;

/// The key of a field's metadata that says what its structs are in an archive: [`TUPLE`] or [`ENUM`].
pub const KIND: &str = "tenarc.kind";
/// The text under [`KIND`] of structs that are tuples in an archive.
pub const TUPLE: &str = "tuple";
/// The text under [`KIND`] of structs that are enums in an archive.
pub const ENUM: &str = "enum";

/// The key of a field's metadata that says what its nulls are in an archive: [`MISSING`].
pub const NULL: &str = "tenarc.null";
/// The text under [`NULL`] of fields whose nulls are fields that are missing.
pub const MISSING: &str = "missing";

/// The name of the field with the names of variants. Underscores are added if a variant has this name.
const VARIANT: &str = "variant";

/// The type of the rows of a column in all groups.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// All values are null.
    Null,
    Bool,
    Number(DType),
    /// Integers that are not stored as columns, and that an `f64` holds exactly. They are `i64`, unless other rows have
    /// floats.
    Whole,
    Tensor(DType, Vec<usize>),
    Text,
    Bytes,
    /// Variants without content, by their names.
    Enum(Vec<String>),
    /// Variants, of which at least one has content.
    Variants(Vec<(String, Option<Inner>)>),
    /// Texts of which few are different.
    Category(Category),
    /// A type that has a name, and the type of the stored rows.
    Named(Named, Box<Type>),
    List(Box<Inner>),
    /// Lists of one length whose elements are numbers, bools or such lists, and tuples whose elements are of one type.
    Fixed(usize, Box<Inner>),
    Tuple(Vec<Inner>),
    Map(Box<(Inner, Inner)>),
    Struct(Vec<(String, Inner)>),
    /// No type of Arrow can hold the rows, for this reason.
    Lost(String),
}

/// What reads the texts of a column of so many rows. `None` if they cannot be read.
pub type Names<'a> = dyn Fn(&Column, usize) -> Option<Vec<String>> + 'a;

/// A type, and whether values can be null.
#[derive(Clone, Debug, PartialEq)]
pub struct Inner {
    pub of: Type,
    /// Also of fields that can be missing.
    pub nullable: bool,
    pub missing: Missing,
}

/// Whether values can be fields that are missing. They become null.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    Never,
    /// All nulls are fields that are missing. The metadata of the field say so.
    Only,
    /// Other values are null.
    BesideNulls,
}

impl Inner {
    fn plain(of: Type) -> Self {
        Self { of, nullable: false, missing: Missing::Never }
    }

    /// Returns the type of a column. `names` returns the texts of a column, or `None` if they cannot be read.
    pub fn of(column: &Column, names: &Names<'_>) -> Self {
        let inner = |column: &Column| Self::of(column, names);
        let lost = |why: &str| Self::plain(Type::Lost(why.to_owned()));
        Self::plain(match column {
            Column::Unit => return Self { nullable: true, ..Self::plain(Type::Null) },
            Column::Bools(_) => Type::Bool,
            Column::Numbers(dtype, _) if data_type(dtype).is_some() => Type::Number(dtype.clone()),
            Column::Numbers(dtype, _) => Type::Lost(format!("Arrow has no dtype {dtype}")),
            Column::Tensors(meta, _) => {
                Self::tensor(&meta.dtype, meta.shape.get(1..).unwrap_or_default())
            }
            Column::Texts(..) => Type::Text,
            Column::Bytes(..) => Type::Bytes,
            Column::Optional { column, is_missing, .. } => {
                let mut inner = inner(column);
                // A field that is missing becomes null, also beside nulls: serde reads both as `None`.
                if inner.nullable && !is_missing && !matches!(inner.of, Type::Null) {
                    return lost("options in options, which have two kinds of null");
                }
                if *is_missing {
                    return inner.or_missing();
                }
                inner.nullable = true;
                return inner;
            }
            Column::List(lengths, column) => {
                let inner = Box::new(inner(column));
                match (lengths, &inner.of) {
                    (_, Type::Lost(why)) => Type::Lost(why.clone()),
                    (&Lengths::All(len), Type::Number(_) | Type::Bool | Type::Fixed(..))
                        if len > 0 && !inner.nullable =>
                    {
                        Type::Fixed(len, inner)
                    }
                    _ => Type::List(inner),
                }
            }
            Column::Tuple(columns) if columns.is_empty() => return lost("it has no fields"),
            Column::Tuple(columns) => Type::tuple(columns.iter().map(inner).collect()),
            Column::Map(_, columns) => {
                let (keys, values) = (inner(&columns.0), inner(&columns.1));
                match (&keys.of, &values.of) {
                    (Type::Lost(why), _) | (_, Type::Lost(why)) => Type::Lost(why.clone()),
                    (Type::Null, _) if matches!(values.of, Type::Null) => {
                        Type::Map(Box::new((keys, values)))
                    }
                    _ if keys.nullable => Type::Lost("keys of a map can be null".to_owned()),
                    _ => Type::Map(Box::new((keys, values))),
                }
            }
            Column::Struct(fields) => {
                let fields = fields.iter().map(|(name, column)| (name.clone(), inner(column)));
                Type::Struct(fields.collect())
            }
            Column::Enum { variants, .. } => {
                let variants = variants
                    .iter()
                    .map(|(name, column)| (name.clone(), column.as_ref().map(inner)));
                Type::variants(variants.collect())
            }
            Column::Typed { name, parameters, column } => {
                if let Some(category) = Category::of(name, parameters, column, names) {
                    return Self::plain(Type::Category(category));
                }
                let mut inner = inner(column);
                let storage = match &**column {
                    Column::Numbers(dtype, _) => Storage::Number(dtype),
                    Column::Bytes(Lengths::All(len), _) => Storage::Bytes(Some(*len)),
                    _ => return inner,
                };
                if let Some(named) = Named::of(name, parameters, &storage) {
                    inner.of = Type::Named(named, Box::new(inner.of));
                }
                return inner;
            }
            Column::Rows => return lost("its rows have different forms"),
            Column::Dict { column, .. } => return inner(column),
        })
    }

    /// Returns the type of tensors of this dtype and shape.
    pub fn tensor(dtype: &DType, shape: &[usize]) -> Type {
        if data_type(dtype).is_none() {
            Type::Lost(format!("Arrow has no dtype {dtype}"))
        } else if shape.contains(&0) {
            Type::Lost("the tensors have no elements".to_owned())
        } else {
            Type::Tensor(dtype.clone(), shape.to_vec())
        }
    }

    fn lost(&self) -> Option<&str> {
        match &self.of {
            Type::Lost(why) => Some(why),
            _ => None,
        }
    }

    /// Returns the type that can hold the rows of both types.
    pub fn merged(self, other: Self) -> Self {
        let nullable = self.nullable || other.nullable;
        let has_nulls = |inner: &Self| inner.nullable && inner.missing != Missing::Only;
        let missing = match (self.missing, other.missing) {
            (Missing::Never, Missing::Never) => Missing::Never,
            _ if has_nulls(&self) || has_nulls(&other) => Missing::BesideNulls,
            _ => Missing::Only,
        };
        Self { of: self.of.merged(other.of), nullable, missing }
    }

    /// The type for fields that are missing in other rows.
    fn or_missing(self) -> Self {
        let missing = match self.missing {
            Missing::Never if self.nullable => Missing::BesideNulls,
            Missing::Never => Missing::Only,
            missing => missing,
        };
        Self { nullable: true, missing, ..self }
    }

    /// Changes what Parquet does not have: leaves out the orders of categories, and chooses other units of time.
    pub fn change_for_parquet(&mut self) {
        match &mut self.of {
            Type::Category(category) if category.order == Order::Ordered => {
                category.order = Order::LeftOut;
            }
            Type::Named(named, _) => named.change_for_parquet(),
            Type::List(inner) | Type::Fixed(_, inner) => inner.change_for_parquet(),
            Type::Map(columns) => {
                columns.0.change_for_parquet();
                columns.1.change_for_parquet();
            }
            Type::Tuple(columns) => columns.iter_mut().for_each(Self::change_for_parquet),
            Type::Struct(fields) => {
                for (_, inner) in fields {
                    inner.change_for_parquet();
                }
            }
            Type::Variants(variants) => {
                for content in variants.iter_mut().filter_map(|(_, content)| content.as_mut()) {
                    content.change_for_parquet();
                }
            }
            _ => {}
        }
    }

    /// Removes columns that cannot be kept, and adds them to the report. Returns whether anything is left.
    pub fn keep(&mut self, path: &str, report: &mut Report) -> bool {
        if self.missing == Missing::BesideNulls {
            let path = path.escape_debug();
            report.note(format!("`{path}`: fields that are missing become null, as others are"));
        }
        match &mut self.of {
            Type::Lost(why) => {
                report.add(path, format!("{why}: the column is left out"));
                false
            }
            Type::Category(category) if category.order == Order::Differs => {
                let path = path.escape_debug();
                let why = "because parts of the table have another one";
                report.note(format!("`{path}`: the names are in no order, {why}"));
                true
            }
            Type::Category(Category { order: Order::LeftOut, .. }) => {
                report
                    .add(path, "its names are in an order, which is left out: Arrow files keep it");
                true
            }
            Type::Named(Named::InParquet(stored), _) => {
                let from = stored.data_type();
                let to = Named::InParquet(stored.clone()).data_type();
                let path = path.escape_debug();
                report.note(format!("`{path}`: Parquet has no {from}: it becomes {to}"));
                true
            }
            Type::List(inner) | Type::Fixed(_, inner) => inner.keep(path, report),
            Type::Map(columns) => columns.0.keep(path, report) && columns.1.keep(path, report),
            Type::Tuple(columns) => {
                let are_kept = columns
                    .iter_mut()
                    .enumerate()
                    .all(|(number, column)| column.keep(&join(path, &number.to_string()), report));
                // Only here, where the types of all groups are known.
                if let [first, rest @ ..] = &**columns
                    && rest.iter().all(|column| column.of == first.of)
                {
                    let nullable = columns.iter().any(|column| column.nullable);
                    let item = Self { nullable, ..first.clone() };
                    self.of = Type::Fixed(columns.len(), Box::new(item));
                }
                are_kept
            }
            Type::Variants(variants) => {
                for (name, content) in variants {
                    if content.as_mut().is_some_and(|inner| !inner.keep(&join(path, name), report))
                    {
                        *content = None;
                    }
                }
                true
            }
            Type::Struct(fields) => {
                fields.retain_mut(|(name, column)| column.keep(&join(path, name), report));
                if fields.is_empty() {
                    report.add(path, "a struct without fields is left out");
                }
                !fields.is_empty()
            }
            _ => true,
        }
    }

    pub fn field(&self, name: &str) -> Result<FieldRef> {
        let field = Field::new(name, self.data_type()?, self.nullable);
        let metadata = match &self.of {
            Type::Tensor(_, shape) => {
                let shape = FixedShape { shape: shape.clone(), ..FixedShape::default() };
                vec![(NAME, FIXED_SHAPE_TENSOR.to_owned()), (METADATA, shape.write())]
            }
            Type::Tuple(_) => vec![(KIND, TUPLE.to_owned())],
            Type::Variants(_) => vec![(KIND, ENUM.to_owned())],
            Type::Named(Named::Uuid, _) => vec![(NAME, UUID.to_owned())],
            _ => Vec::new(),
        };
        let is_ordered =
            matches!(&self.of, Type::Category(category) if category.order == Order::Ordered);
        let field = field.with_dict_is_ordered(is_ordered);
        let missing = (self.missing == Missing::Only).then(|| (NULL, MISSING.to_owned()));
        let metadata = metadata.into_iter().chain(missing);
        let metadata = metadata.map(|(key, text)| (key.to_owned(), text));
        Ok(Arc::new(field.with_metadata(metadata.collect::<HashMap<_, _>>())))
    }

    pub fn data_type(&self) -> Result<DataType> {
        let size = |size: usize| {
            i32::try_from(size).map_err(|_| {
                Error::limit(format!("a list of {size} elements is too long for Arrow"))
            })
        };
        let number = |dtype: &DType| {
            data_type(dtype)
                .ok_or_else(|| Error::unsupported(format!("Arrow has no dtype {dtype}")))
        };
        Ok(match &self.of {
            Type::Null | Type::Lost(_) => DataType::Null,
            Type::Bool => DataType::Boolean,
            Type::Number(dtype) => number(dtype)?,
            Type::Whole => DataType::Int64,
            Type::Tensor(dtype, shape) => {
                let count = shape.iter().try_fold(1usize, |count, dim| count.checked_mul(*dim));
                // pyarrow reads tensors only if their elements can be null.
                let item = Field::new("item", number(dtype)?, true);
                DataType::FixedSizeList(Arc::new(item), size(count.unwrap_or(usize::MAX))?)
            }
            Type::Text => DataType::Utf8,
            Type::Bytes => DataType::Binary,
            Type::Enum(_) => names_type(),
            Type::Category(category) => category.data_type(),
            Type::Variants(variants) => {
                let mut name = VARIANT.to_owned();
                while variants.iter().any(|(other, _)| *other == name) {
                    name.push('_');
                }
                let names = Arc::new(Field::new(name, names_type(), false));
                let contents = variants.iter().filter_map(|(name, content)| {
                    let field = content.as_ref()?.field(name);
                    // Rows of other variants are null.
                    Some(field.map(|field| Arc::new(field.as_ref().clone().with_nullable(true))))
                });
                let fields = std::iter::once(Ok(names)).chain(contents);
                DataType::Struct(fields.collect::<Result<_>>()?)
            }
            Type::Named(named, _) => named.data_type(),
            Type::List(inner) => DataType::List(inner.field("item")?),
            Type::Fixed(len, inner) => DataType::FixedSizeList(inner.field("item")?, size(*len)?),
            Type::Tuple(columns) => {
                let fields = columns.iter().enumerate();
                let fields = fields.map(|(number, column)| column.field(&number.to_string()));
                DataType::Struct(fields.collect::<Result<_>>()?)
            }
            Type::Map(columns) => DataType::Map(entries(&columns.0, &columns.1)?, false),
            Type::Struct(fields) => {
                let fields = fields.iter().map(|(name, column)| column.field(name));
                DataType::Struct(fields.collect::<Result<_>>()?)
            }
        })
    }
}

/// The type of the names of variants. The indices are signed, because all readers know those.
fn names_type() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

/// Returns the field of the entries of a map, with the names that Arrow uses.
fn entries(keys: &Inner, values: &Inner) -> Result<FieldRef> {
    let keys = Arc::new(keys.field("key")?.as_ref().clone().with_nullable(false));
    let fields = [keys, values.field("value")?];
    Ok(Arc::new(Field::new("entries", DataType::Struct(fields.into_iter().collect()), false)))
}

impl Type {
    fn merged(self, other: Self) -> Self {
        match (self, other) {
            (Self::Lost(why), _) | (_, Self::Lost(why)) => Self::Lost(why),
            (Self::Null, of) | (of, Self::Null) => of,
            (Self::Number(a), Self::Number(b)) => match common(&a, &b) {
                Some(dtype) => Self::Number(dtype),
                None => Self::Lost(format!("rows of {a} and of {b} have no common type")),
            },
            (Self::Whole, Self::Number(DType::F16 | DType::F32 | DType::F64))
            | (Self::Number(DType::F16 | DType::F32 | DType::F64), Self::Whole) => {
                Self::Number(DType::F64)
            }
            (Self::Whole, number @ Self::Number(_)) | (number @ Self::Number(_), Self::Whole) => {
                number.merged(Self::Number(DType::I64))
            }
            (Self::Enum(_), Self::Text) | (Self::Text, Self::Enum(_)) => Self::Text,
            (Self::Enum(mut a), Self::Enum(b)) => {
                let known: HashSet<_> = a.iter().cloned().collect();
                a.extend(b.into_iter().filter(|name| !known.contains(name)));
                Self::Enum(a)
            }
            (Self::Variants(a), Self::Variants(b)) => Self::variants(merged_variants(a, b)),
            (Self::Variants(a), Self::Enum(b)) => {
                Self::variants(merged_variants(a, without_content(b)))
            }
            (Self::Enum(a), Self::Variants(b)) => {
                Self::variants(merged_variants(without_content(a), b))
            }
            (Self::Category(a), Self::Category(b)) => {
                a.merged(b).map_or(Self::Text, Self::Category)
            }
            (Self::Category(_), of) => Self::Text.merged(of),
            (of, Self::Category(_)) => of.merged(Self::Text),
            // Each group is read as its own column says, so the stored rows need no common type.
            (Self::Named(a, inside), Self::Named(b, other)) if a == b => {
                Self::Named(a, Box::new(inside.merged(*other)))
            }
            (Self::Named(_, inside), of) => inside.merged(of),
            (of, Self::Named(_, inside)) => of.merged(*inside),
            (Self::Fixed(m, a), Self::Fixed(n, b)) => {
                let inner = a.merged(*b);
                Self::list((m == n).then_some(m), inner)
            }
            (Self::List(a) | Self::Fixed(_, a), Self::List(b) | Self::Fixed(_, b)) => {
                let inner = a.merged(*b);
                Self::list(None, inner)
            }
            (Self::Tuple(a), Self::Tuple(b)) if a.len() == b.len() => {
                Self::tuple(a.into_iter().zip(b).map(|(a, b)| a.merged(b)).collect())
            }
            // Lists of one length are tuples where some of their elements are null.
            (Self::Tuple(columns), Self::Fixed(len, item))
            | (Self::Fixed(len, item), Self::Tuple(columns))
                if columns.len() == len =>
            {
                let merged = columns.into_iter().map(|column| column.merged((*item).clone()));
                Self::tuple(merged.collect())
            }
            (Self::Tuple(columns), Self::List(item) | Self::Fixed(_, item))
            | (Self::List(item) | Self::Fixed(_, item), Self::Tuple(columns)) => {
                Self::list(None, columns.into_iter().fold(*item, Inner::merged))
            }
            (Self::Map(a), Self::Map(b)) => {
                let (keys, values) = (a.0.merged(b.0), a.1.merged(b.1));
                match keys.lost().or(values.lost()) {
                    Some(why) => Self::Lost(why.to_owned()),
                    None => Self::Map(Box::new((keys, values))),
                }
            }
            (Self::Struct(a), Self::Struct(b)) => Self::Struct(fields(a, b)),
            (a, b) if a == b => a,
            (a, b) => {
                Self::Lost(format!("rows of {} and of {} have no common type", a.name(), b.name()))
            }
        }
    }

    /// Makes the type of tuples. If an element cannot be kept, the tuple cannot: a tuple of fewer elements is another
    /// type.
    pub fn tuple(columns: Vec<Inner>) -> Self {
        match columns.iter().find_map(Inner::lost) {
            Some(why) => Self::Lost(why.to_owned()),
            None => Self::Tuple(columns),
        }
    }

    /// Makes the type of enums.
    fn variants(variants: Vec<(String, Option<Inner>)>) -> Self {
        if variants.iter().any(|(_, content)| content.is_some()) {
            return Self::Variants(variants);
        }
        Self::Enum(variants.into_iter().map(|(name, _)| name).collect())
    }

    pub fn list(len: Option<usize>, inner: Inner) -> Self {
        match (len, inner.lost()) {
            (_, Some(why)) => Self::Lost(why.to_owned()),
            (Some(len), None) => Self::Fixed(len, Box::new(inner)),
            (None, None) => Self::List(Box::new(inner)),
        }
    }

    fn name(&self) -> String {
        match self {
            Self::Null => "nulls".to_owned(),
            Self::Bool => "booleans".to_owned(),
            Self::Number(dtype) => dtype.to_string(),
            Self::Whole => DType::I64.to_string(),
            Self::Tensor(dtype, shape) => format!("{dtype}{shape:?}"),
            Self::Text | Self::Category(_) => "texts".to_owned(),
            Self::Bytes => "byte strings".to_owned(),
            Self::Enum(_) | Self::Variants(_) => "variants".to_owned(),
            Self::Named(named, _) => named.data_type().to_string(),
            Self::List(_) | Self::Fixed(..) => "sequences".to_owned(),
            Self::Tuple(columns) => format!("tuples of {}", columns.len()),
            Self::Map(_) => "maps".to_owned(),
            Self::Struct(_) => "structs".to_owned(),
            Self::Lost(why) => why.clone(),
        }
    }
}

fn without_content(names: Vec<String>) -> Vec<(String, Option<Inner>)> {
    names.into_iter().map(|name| (name, None)).collect()
}

/// Returns the variants of both enums: those of `a`, then those only `b` has. A variant with content in one of them only can
/// be null.
fn merged_variants(
    mut a: Vec<(String, Option<Inner>)>,
    b: Vec<(String, Option<Inner>)>,
) -> Vec<(String, Option<Inner>)> {
    for (name, content) in b {
        match a.iter_mut().find(|(known, _)| *known == name) {
            None => a.push((name, content)),
            Some((_, found)) => {
                *found = match (found.take(), content) {
                    (Some(a), Some(b)) => Some(a.merged(b)),
                    (a, b) => a.or(b),
                };
            }
        }
    }
    a
}

/// Returns the fields of both structs: those of `a`, then those only `b` has. A field that is not in both can be
/// missing.
fn fields(mut a: Vec<(String, Inner)>, b: Vec<(String, Inner)>) -> Vec<(String, Inner)> {
    let mut places: HashMap<String, usize> =
        a.iter().enumerate().map(|(at, (name, _))| (name.clone(), at)).collect();
    let (before, mut seen) = (a.len(), vec![false; a.len()]);
    for (name, mut inner) in b {
        match places.get(&name).and_then(|&at| a.get_mut(at).map(|field| (at, field))) {
            Some((at, (_, field))) => {
                let found = std::mem::replace(field, Inner::plain(Type::Null));
                *field = found.merged(inner);
                if let Some(seen) = seen.get_mut(at) {
                    *seen = true;
                }
            }
            None => {
                inner = inner.or_missing();
                places.insert(name.clone(), a.len());
                a.push((name, inner));
            }
        }
    }
    let unseen = a.iter_mut().take(before).zip(seen).filter(|(_, seen)| !seen);
    unseen.for_each(|((_, inner), _)| {
        *inner = std::mem::replace(inner, Inner::plain(Type::Null)).or_missing();
    });
    a
}

/// Returns the smallest dtype that holds the numbers of both exactly.
fn common(a: &DType, b: &DType) -> Option<DType> {
    let bits = |dtype: &DType| match dtype {
        DType::U8 => Some((false, 8)),
        DType::U16 => Some((false, 16)),
        DType::U32 => Some((false, 32)),
        DType::U64 => Some((false, 64)),
        DType::I8 => Some((true, 8)),
        DType::I16 => Some((true, 16)),
        DType::I32 => Some((true, 32)),
        DType::I64 => Some((true, 64)),
        _ => None,
    };
    if a == b {
        return Some(a.clone());
    }
    if let (Some((a_signed, a_bits)), Some((b_signed, b_bits))) = (bits(a), bits(b)) {
        let needed = |signed: bool, bits: u32| bits + u32::from(!signed && a_signed != b_signed);
        return match (a_signed || b_signed, needed(a_signed, a_bits).max(needed(b_signed, b_bits)))
        {
            (false, ..=16) => Some(DType::U16),
            (false, ..=32) => Some(DType::U32),
            (false, _) => Some(DType::U64),
            (true, ..=16) => Some(DType::I16),
            (true, ..=32) => Some(DType::I32),
            (true, ..=64) => Some(DType::I64),
            (true, _) => None,
        };
    }
    let floats = [DType::F16, DType::F32, DType::F64];
    let place = |dtype| match bits(dtype) {
        // All integers of so many bits are floats of 32, or of 64 bits.
        Some((_, ..=16)) => Some(1),
        Some((_, ..=32)) => Some(2),
        Some(_) => None,
        None => floats.iter().position(|float| float == dtype),
    };
    floats.get(place(a)?.max(place(b)?)).cloned()
}

/// Returns the type of Arrow for the elements of a dtype.
pub fn data_type(dtype: &DType) -> Option<DataType> {
    Some(match dtype {
        DType::Bool => DataType::Boolean,
        DType::U8 => DataType::UInt8,
        DType::U16 => DataType::UInt16,
        DType::U32 => DataType::UInt32,
        DType::U64 => DataType::UInt64,
        DType::I8 => DataType::Int8,
        DType::I16 => DataType::Int16,
        DType::I32 => DataType::Int32,
        DType::I64 => DataType::Int64,
        DType::F16 => DataType::Float16,
        DType::F32 => DataType::Float32,
        DType::F64 => DataType::Float64,
        _ => return None,
    })
}

/// Returns the path of a field.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_type_holds_both() {
        use DType::{F16, F32, F64, I8, I16, I32, I64, U8, U16, U32, U64};
        for (a, b, expected) in [
            (U8, U8, Some(U8)),
            (U8, U16, Some(U16)),
            (U8, I8, Some(I16)),
            (U16, I8, Some(I32)),
            (U32, I64, Some(I64)),
            (U32, I32, Some(I64)),
            (U8, I64, Some(I64)),
            (I8, I32, Some(I32)),
            (U32, U64, Some(U64)),
            (U64, I8, None),
            (F16, F64, Some(F64)),
            (F32, F16, Some(F32)),
            (F32, I8, Some(F32)),
            (F16, U16, Some(F32)),
            (F32, U32, Some(F64)),
            (F64, I32, Some(F64)),
            (F64, I64, None),
            (F32, U64, None),
        ] {
            assert_eq!(common(&a, &b), expected, "{a} {b}");
            assert_eq!(common(&b, &a), expected, "{b} {a}");
        }
    }
}
