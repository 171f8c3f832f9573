//! Plans what the columns of record batches become in an archive.

use std::collections::HashSet;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StringArray};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field, Fields};
use tenarc::types::{Parameter, TimeUnit, TypeName};
use tenarc::{DType, Error, Result};

use crate::category::{Seen, around};
use crate::extension::{FIXED_SHAPE_TENSOR, FixedShape, METADATA, NAME, UUID};
use crate::named::{DATE64, FIXED};
use crate::names::static_name;
use crate::report::Report;
use crate::schema::{ENUM, KIND, MISSING, NULL, TUPLE, join};

/// What a field becomes in an archive.
#[derive(Clone, Debug)]
pub struct Plan {
    pub name: &'static str,
    /// The index of the field among the columns of its table or struct.
    pub number: usize,
    pub is: Is,
    /// Whether a value is null in any of the batches. If so, all values are written as options.
    pub has_nulls: bool,
    /// Whether nulls are fields that are missing.
    pub is_missing: bool,
}

#[derive(Clone, Debug)]
pub enum Is {
    /// Nulls, bools, numbers, texts or bytes.
    Plain,
    /// Values of a type that has a name.
    Typed(TypeName),
    /// Lists of any length.
    List(Box<Plan>),
    /// Lists of one length.
    Fixed(Box<Plan>),
    Tensor(DType, Vec<usize>, Box<Plan>),
    Struct(Vec<Plan>),
    Tuple(Vec<Plan>),
    /// An enum: the names of all variants that were observed, and the plans of those with content.
    Enum(Vec<String>, Vec<Plan>),
    Map(Box<(Plan, Plan)>),
    /// A dictionary of texts: the type of its indices, the order of the texts, and their plan.
    Category(DataType, Seen, Box<Plan>),
    /// Another dictionary, with the plan of its values.
    Dictionary(Box<Plan>),
}

impl Plan {
    /// Plans fields. Fields that cannot be kept are left out and added to the report.
    pub fn of_fields<'a>(
        fields: impl IntoIterator<Item = &'a Field>,
        path: &str,
        report: &mut Report,
    ) -> Result<Vec<Self>> {
        let mut names = HashSet::new();
        let mut plans = Vec::new();
        for (number, field) in fields.into_iter().enumerate() {
            let name = field.name();
            if !names.insert(name) {
                report.add(&join(path, name), "a further field of this name is left out");
                continue;
            }
            plans.extend(Self::of(field, number, &join(path, name), report)?);
        }
        Ok(plans)
    }

    /// Plans a field. `None` if it cannot be kept.
    fn of(field: &Field, number: usize, path: &str, report: &mut Report) -> Result<Option<Self>> {
        let is_missing = field.metadata().get(NULL).is_some_and(|null| null == MISSING);
        let extension = field.metadata().get(NAME).map(String::as_str);
        let is_uuid =
            extension == Some(UUID) && *field.data_type() == DataType::FixedSizeBinary(16);
        if is_uuid {
            let is = Is::Typed(TypeName::uuid());
            return Ok(Some(Self {
                name: static_name(field.name())?,
                number,
                is,
                has_nulls: false,
                is_missing,
            }));
        }
        if let Some(extension) = extension.filter(|name| *name != FIXED_SHAPE_TENSOR) {
            let (path, extension) = (path.escape_debug(), extension.escape_debug());
            report.note(format!("`{path}`: the extension type {extension} is left out"));
        }
        let mut inside =
            |field: &Field| Ok::<_, Error>(Self::of(field, 0, path, report)?.map(Box::new));
        let found = match field.data_type() {
            DataType::List(item) | DataType::LargeList(item) => inside(item)?.map(Is::List),
            DataType::FixedSizeList(item, size) if *size > 0 => match inside(item)? {
                Some(items) => Some(match shape(field, *size, report)? {
                    Some((dtype, shape)) => Is::Tensor(dtype, shape, items),
                    None => Is::Fixed(items),
                }),
                None => None,
            },
            DataType::Dictionary(index, values) => {
                let values = Field::new("values", values.as_ref().clone(), true);
                let is_text = matches!(
                    values.data_type(),
                    DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View
                );
                let is_ordered = field.dict_is_ordered() == Some(true);
                let order = if is_ordered { Seen::Ordered(Vec::new()) } else { Seen::Unordered };
                inside(&values)?.map(|values| {
                    if is_text {
                        Is::Category(index.as_ref().clone(), order, values)
                    } else {
                        Is::Dictionary(values)
                    }
                })
            }
            DataType::Struct(fields) => {
                let before = report.lost().len();
                let plans = Self::of_fields(fields.iter().map(AsRef::as_ref), path, report)?;
                let kind = field.metadata().get(KIND).map(String::as_str);
                if kind == Some(ENUM) && is_enum(fields) {
                    let contents = fields.iter().map(AsRef::as_ref);
                    let mut plans = Self::of_fields(contents, path, report)?;
                    plans.retain(|plan| plan.number > 0);
                    let name = static_name(field.name())?;
                    let is = Is::Enum(Vec::new(), plans);
                    return Ok(Some(Self { name, number, is, has_nulls: false, is_missing }));
                }
                let is_tuple = kind == Some(TUPLE);
                if plans.is_empty() && report.lost().len() == before {
                    report.add(path, "a struct without fields is left out");
                }
                match plans.is_empty() {
                    true => None,
                    false if is_tuple && plans.len() == fields.len() => Some(Is::Tuple(plans)),
                    false => Some(Is::Struct(plans)),
                }
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(fields) if fields.len() == 2 => {
                    let mut fields = fields.iter();
                    let mut next = |number, report: &mut Report| match fields.next() {
                        Some(field) => Self::of(field, number, path, report),
                        None => Ok(None),
                    };
                    let found = (next(0, report)?, next(1, report)?);
                    match found {
                        (Some(keys), Some(values)) => Some(Is::Map(Box::new((keys, values)))),
                        _ => None,
                    }
                }
                _ => return Err(Error::data("expected keys and values in a map").in_field(path)),
            },
            other => plain(other, path, report),
        };
        let name = static_name(field.name())?;
        Ok(found.map(|is| Self { name, number, is, has_nulls: false, is_missing }))
    }

    /// Adds what is lost of the values that were observed.
    pub fn lost(&self, path: &str, report: &mut Report) {
        let path = &join(path, self.name);
        match &self.is {
            Is::Category(index, order, _) => {
                let is_lost = match order {
                    Seen::Unordered => false,
                    Seen::Ordered(names) => around(index, names).is_err(),
                    Seen::Differs => true,
                };
                if is_lost {
                    let what = "the order of a category must have at most 15 names of at most 64 bytes, and \
                                be the same in all batches: it is left out";
                    report.add(path, what);
                }
            }
            Is::Plain | Is::Typed(_) | Is::Dictionary(_) => {}
            Is::List(items) | Is::Fixed(items) | Is::Tensor(_, _, items) => {
                items.lost(path, report);
            }
            Is::Struct(plans) | Is::Tuple(plans) | Is::Enum(_, plans) => {
                for plan in plans {
                    plan.lost(path, report);
                }
            }
            Is::Map(plans) => {
                plans.0.lost(path, report);
                plans.1.lost(path, report);
            }
        }
    }

    /// Records whether the array has nulls in rows that `valid` does not exclude.
    pub fn observe(&mut self, array: &ArrayRef, valid: Option<&NullBuffer>) {
        // In a dictionary, keys as well as values can be null.
        let own = match &self.is {
            Is::Category(..) | Is::Dictionary(_) => array.logical_nulls(),
            _ => array.nulls().cloned(),
        };
        let here = NullBuffer::union(own.as_ref(), valid);
        let count = |nulls: Option<&NullBuffer>| nulls.map_or(0, NullBuffer::null_count);
        self.has_nulls |= own.is_some() && count(here.as_ref()) > count(valid);
        match &mut self.is {
            Is::Plain | Is::Typed(_) | Is::Dictionary(_) => {}
            Is::Category(_, order, _) => {
                if let Some(names) = array.as_any_dictionary_opt() {
                    let names = names.values();
                    if let Some(names) = names.as_string_opt::<i32>() {
                        order.add(names.iter());
                    } else if let Some(names) = names.as_string_opt::<i64>() {
                        order.add(names.iter());
                    } else if let Some(names) = names.as_string_view_opt() {
                        order.add(names.iter());
                    }
                }
            }
            Is::List(items) => match array.as_list_opt::<i32>() {
                Some(list) => items.observe(list.values(), None),
                None => {
                    if let Some(list) = array.as_list_opt::<i64>() {
                        items.observe(list.values(), None);
                    }
                }
            },
            Is::Fixed(items) | Is::Tensor(_, _, items) => {
                if let Some(list) = array.as_fixed_size_list_opt() {
                    let size = usize::try_from(list.value_length()).unwrap_or(0);
                    let inside = here.map(|nulls| nulls.expand(size));
                    items.observe(list.values(), inside.as_ref());
                }
            }
            Is::Struct(plans) | Is::Tuple(plans) => {
                if let Some(array) = array.as_struct_opt() {
                    for plan in plans {
                        if let Some(column) = array.columns().get(plan.number) {
                            plan.observe(column, here.as_ref());
                        }
                    }
                }
            }
            Is::Enum(names, plans) => {
                let Some(array) = array.as_struct_opt() else { return };
                let variants = array.columns().first().and_then(Variants::of);
                let Some(variants) = variants else { return };
                let known: HashSet<_> = names.iter().cloned().collect();
                names.extend(
                    variants.names().filter(|name| !known.contains(*name)).map(str::to_owned),
                );
                for plan in plans {
                    if let Some(column) = array.columns().get(plan.number) {
                        let rows = 0..column.len();
                        let is_this = rows.map(|row| variants.name(row) == Some(plan.name));
                        let is_this = is_this.collect::<NullBuffer>();
                        plan.observe(
                            column,
                            NullBuffer::union(Some(&is_this), here.as_ref()).as_ref(),
                        );
                    }
                }
            }
            Is::Map(plans) => {
                if let Some(map) = array.as_map_opt() {
                    plans.0.observe(map.keys(), None);
                    plans.1.observe(map.values(), None);
                }
            }
        }
    }
}

/// Whether fields are those of an enum: first the names of the variants.
fn is_enum(fields: &Fields) -> bool {
    let is_names = |of: &DataType| match of {
        DataType::Dictionary(_, values) => **values == DataType::Utf8,
        _ => false,
    };
    fields.first().is_some_and(|names| is_names(names.data_type()))
}

/// The variants of the rows of an enum.
pub struct Variants<'a> {
    keys: Vec<usize>,
    names: &'a StringArray,
}

impl<'a> Variants<'a> {
    /// The variants whose names are in this dictionary.
    pub fn of(names: &'a ArrayRef) -> Option<Self> {
        let dictionary = names.as_any_dictionary_opt()?;
        let names = dictionary.values().as_string_opt::<i32>()?;
        // Without values, `normalized_keys` would panic.
        let keys = if names.is_empty() { Vec::new() } else { dictionary.normalized_keys() };
        Some(Self { keys, names })
    }

    pub fn names(&self) -> impl Iterator<Item = &'a str> + 'a {
        self.names.iter().flatten()
    }

    pub fn name(&self, row: usize) -> Option<&'a str> {
        let key = *self.keys.get(row)?;
        (key < self.names.len() && self.names.is_valid(key)).then(|| self.names.value(key))
    }
}

/// Returns the dtype and shape of a fixed shape tensor. `None` if the field is another list.
fn shape(field: &Field, size: i32, report: &mut Report) -> Result<Option<(DType, Vec<usize>)>> {
    let DataType::FixedSizeList(item, _) = field.data_type() else { return Ok(None) };
    let is_tensor = field.metadata().get(NAME).is_some_and(|name| name == FIXED_SHAPE_TENSOR);
    let (Some(text), true) = (field.metadata().get(METADATA), is_tensor) else { return Ok(None) };
    let of_field = |error: Error| error.in_field(field.name().as_str());
    let found = FixedShape::read(text).map_err(of_field)?;
    let count = found.shape.iter().try_fold(1usize, |count, dim| count.checked_mul(*dim));
    if count != usize::try_from(size).ok() {
        let what = format!(
            "a tensor of shape {:?} does not have the {size} elements of its list",
            found.shape
        );
        return Err(of_field(Error::data(what)));
    }
    let Some(dtype) = dtype(item.data_type()) else { return Ok(None) };
    if found.has_names {
        report.add(field.name(), "the names of its dimensions are left out");
    }
    let is_identity = |order: &Vec<usize>| order.iter().copied().eq(0..order.len());
    if found.permutation.as_ref().is_some_and(|order| !is_identity(order)) {
        report.add(field.name(), "its permutation is left out: dimensions keep their stored order");
    }
    Ok(Some((dtype, found.shape)))
}

fn dtype(of: &DataType) -> Option<DType> {
    Some(match of {
        DataType::UInt8 => DType::U8,
        DataType::UInt16 => DType::U16,
        DataType::UInt32 => DType::U32,
        DataType::UInt64 => DType::U64,
        DataType::Int8 => DType::I8,
        DataType::Int16 => DType::I16,
        DataType::Int32 => DType::I32,
        DataType::Int64 => DType::I64,
        DataType::Float16 => DType::F16,
        DataType::Float32 => DType::F32,
        DataType::Float64 => DType::F64,
        DataType::Boolean => DType::Bool,
        _ => return None,
    })
}

/// The name of a type of Arrow that numbers or byte strings have.
fn type_name(of: &DataType) -> Option<TypeName> {
    let unit = |unit: &arrow_schema::TimeUnit| match unit {
        arrow_schema::TimeUnit::Second => TimeUnit::Second,
        arrow_schema::TimeUnit::Millisecond => TimeUnit::Millisecond,
        arrow_schema::TimeUnit::Microsecond => TimeUnit::Microsecond,
        arrow_schema::TimeUnit::Nanosecond => TimeUnit::Nanosecond,
    };
    match of {
        // A zone of more than 64 bytes is none.
        DataType::Timestamp(of, zone) => {
            TypeName::timestamp(unit(of), zone.as_deref().unwrap_or_default()).ok()
        }
        DataType::Date32 => Some(TypeName::date()),
        DataType::Time32(of) | DataType::Time64(of) => Some(TypeName::time(unit(of))),
        DataType::Duration(of) => Some(TypeName::duration(unit(of))),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => TypeName::decimal(*precision, *scale).ok(),
        DataType::Date64 => TypeName::new(DATE64, Vec::new()).ok(),
        DataType::FixedSizeBinary(len) if *len >= 0 => {
            TypeName::new(FIXED, vec![Parameter::Integer((*len).into())]).ok()
        }
        _ => None,
    }
}

/// Plans types that contain no other types. `None` if the type cannot be kept.
fn plain(of: &DataType, path: &str, report: &mut Report) -> Option<Is> {
    if let Some(name) = type_name(of) {
        return Some(Is::Typed(name));
    }
    match of {
        DataType::Null | DataType::Boolean => {}
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {}
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {}
        of if dtype(of).is_some() => {}
        _ => {
            report.add(path, format!("an archive has no type for {of}: the column is left out"));
            return None;
        }
    }
    Some(Is::Plain)
}
