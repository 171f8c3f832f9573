//! Attributes, which become metadata.

use hdf5_reader::messages::attribute::AttributeMessage;
use hdf5_reader::messages::dataspace::DataspaceType;
use hdf5_reader::reference::read_object_references;
use hdf5_reader::{Datatype, RawAttribute, ReferenceType, VarLenKind};
use tenarc::tensor::Order;
use tenarc::{DType, DynTensor, Error, Result, Value};

use super::budget::Budget;
use super::datatype::{Field, Kind, Resolve, Text};
use super::error::failed;
use crate::elements::packed;

/// Returns the value of an attribute, or what it is if no value can hold it.
pub fn value(
    (message, datatype): (AttributeMessage, Vec<u8>),
    resolve: &Resolve<'_>,
    budget: &mut Budget,
) -> Result<Result<Value, String>> {
    let kind = Kind::of(&message.datatype, &datatype);
    let width = datatype.get(4..).and_then(|size| size.first_chunk().copied());
    let shape = match message.dataspace.dataspace_type {
        DataspaceType::Null => return Ok(Ok(Value::Null)),
        DataspaceType::Scalar => Some(Vec::new()),
        DataspaceType::Simple => {
            message.dataspace.dims.iter().map(|&dim| usize::try_from(dim).ok()).collect()
        }
    };
    let shape: Vec<usize> = shape.ok_or_else(|| too_large().in_field(&*message.name))?;
    budget.take(message.raw_data.len())?;
    let width = u32::from_le_bytes(width.unwrap_or_default()) as usize;
    of_kind(kind, message.raw_data, &shape, width, resolve, budget)
        .map_err(|error| error.in_field(&*message.name))
}

/// Returns the value of elements that take `width` bytes each, or what they are if no value can hold them.
fn of_kind(
    kind: Kind,
    mut bytes: Vec<u8>,
    shape: &[usize],
    width: usize,
    resolve: &Resolve<'_>,
    budget: &mut Budget,
) -> Result<Result<Value, String>> {
    match kind {
        Kind::Numbers(numbers) => {
            let array = numbers.array(shape)?;
            array.numbers.to_le(&mut bytes);
            let tensor = DynTensor::new(array.numbers.dtype, &array.shape, Order::C, bytes)?;
            Ok(Ok(if array.shape.is_empty() { scalar(tensor)? } else { Value::from(tensor) }))
        }
        Kind::Text(text, inner) => {
            let shape = &*[shape, &inner].concat();
            let count = shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim));
            let count = count.ok_or_else(too_large)?;
            let mut values = Vec::new();
            for element in elements(&bytes, count, text)? {
                let text = text.read(element, resolve, budget)?;
                budget.take(size_of::<Value>())?;
                values.push(match String::from_utf8(text) {
                    Ok(text) => Value::Text(text),
                    Err(error) => Value::Bytes(error.into_bytes()),
                });
            }
            Ok(nested(values, shape).ok_or_else(|| crate::texts::NO_SHAPE.to_owned()))
        }
        Kind::List(numbers) => {
            let count = shape.iter().try_fold(1usize, |count, &dim| count.checked_mul(dim));
            let count = count.ok_or_else(too_large)?;
            let mut values = Vec::new();
            for element in elements(&bytes, count, Text::Variable)? {
                let list = numbers.list(element, resolve, budget)?;
                budget.take(size_of::<Value>())?;
                let list = packed(&numbers.dtype, &list)?;
                values.push(list.map_or(Value::Null, |list| Value::Numbers(Box::new(list))));
            }
            Ok(nested(values, shape).ok_or_else(|| crate::texts::NO_SHAPE.to_owned()))
        }
        Kind::Reference(_) => Ok(Err("references to other objects".to_owned())),
        Kind::Struct(fields) => {
            let mut values = Vec::new();
            for Field { name, place, kind } in fields {
                let bytes = place.of_each(&bytes, width);
                budget.take(size_of::<(Value, Value)>() + name.len() + bytes.len())?;
                match of_kind(kind, bytes, shape, place.len, resolve, budget)? {
                    Ok(value) => values.push((Value::from(name), value)),
                    Err(what) => {
                        return Ok(Err(format!("the field `{}`: {what}", name.escape_debug())));
                    }
                }
            }
            Ok(Ok(Value::Map(values)))
        }
        Kind::Other(what) => Ok(Err(what)),
    }
}

#[cold]
fn too_large() -> Error {
    Error::limit("a dimension does not fit in memory")
}

/// Returns an attribute that is a short text.
pub fn text(attribute: &RawAttribute, resolve: &Resolve<'_>) -> Option<String> {
    let value = value(attribute.clone().into_parts(), resolve, &mut Budget(1 << 10)).ok()?.ok()?;
    value.as_str().map(str::to_owned)
}

/// Whether the values of an attribute are references, or structs that start with one.
pub fn is_reference(attribute: &AttributeMessage) -> bool {
    match &attribute.datatype {
        Datatype::Reference { .. } => true,
        Datatype::Compound { fields, .. } => {
            fields.first().is_some_and(|field| matches!(field.datatype, Datatype::Reference { .. }))
        }
        _ => false,
    }
}

/// Returns the addresses of the objects to which an attribute refers, and its dimensions. `None` if its elements are no
/// references to objects.
pub fn plain_references(message: &AttributeMessage) -> Result<Option<(Vec<u64>, Vec<usize>)>> {
    let &Datatype::Reference { ref_type: ReferenceType::Object, size: size @ 1..=8 } =
        &message.datatype
    else {
        return Ok(None);
    };
    if message.dataspace.dataspace_type == DataspaceType::Null {
        return Ok(None);
    }
    let dims = message.dataspace.dims.iter().map(|&dim| usize::try_from(dim).ok());
    let shape = dims.collect::<Option<_>>().ok_or_else(too_large)?;
    let found = read_object_references(&message.raw_data, size).map_err(failed)?;
    Ok(Some((found, shape)))
}

/// Returns the addresses of the objects to which each element of an attribute refers. `None` if its elements are no lists
/// of references to objects.
pub fn references(
    message: &AttributeMessage,
    resolve: &Resolve<'_>,
    budget: &mut Budget,
) -> Result<Option<Vec<Vec<u64>>>> {
    let Datatype::VarLen { base, kind: VarLenKind::Sequence, .. } = &message.datatype else {
        return Ok(None);
    };
    let &Datatype::Reference { ref_type: ReferenceType::Object, size: size @ 1..=8 } = &**base
    else {
        return Ok(None);
    };
    let count = message.dataspace.num_elements().map_err(|error| failed(error.into()))?;
    let count = usize::try_from(count);
    let mut lists = Vec::new();
    for element in elements(&message.raw_data, count.unwrap_or(usize::MAX), Text::Variable)? {
        let bytes = resolve(element, size.into()).map_err(failed)?;
        budget.take(size_of::<Vec<u64>>() + bytes.len() * 8)?;
        lists.push(read_object_references(&bytes, size).map_err(failed)?);
    }
    Ok(Some(lists))
}

/// Returns the elements of an attribute of texts or lists.
fn elements(bytes: &[u8], count: usize, text: Text) -> Result<Vec<&[u8]>> {
    let width = match text {
        Text::Fixed(len, _) => len,
        // The length, the address of a heap and a number in it. The address may have fewer bytes than 8.
        Text::Variable => bytes.len().checked_div(count).unwrap_or(16).max(1),
    };
    let found = bytes.chunks_exact(width);
    if found.len() != count || !found.remainder().is_empty() {
        let what = format!("expected {count} texts of {width} bytes, found {} bytes", bytes.len());
        return Err(Error::damaged(what));
    }
    Ok(bytes.chunks_exact(width).collect())
}

/// Groups values by the dimensions of an array. `None` if there are none, and several dimensions, which would be lost.
pub fn nested(mut values: Vec<Value>, shape: &[usize]) -> Option<Value> {
    let Some((_, inner)) = shape.split_first() else { return values.pop() };
    if !inner.is_empty() && shape.contains(&0) {
        return None;
    }
    for &dim in inner.iter().rev() {
        let mut rows = Vec::new();
        let mut rest = values.into_iter().peekable();
        while rest.peek().is_some() {
            rows.push(Value::Array(rest.by_ref().take(dim).collect()));
        }
        values = rows;
    }
    Some(Value::Array(values))
}

/// Converts a tensor without dimensions to a number.
fn scalar(tensor: DynTensor) -> Result<Value> {
    fn first<A: tenarc::tensor::Element + Copy + Into<Value>>(tensor: &DynTensor) -> Result<Value> {
        tensor.as_slice::<A>().map(|found| found.first().copied().map_or(Value::Null, Into::into))
    }
    match tensor.dtype() {
        DType::Bool => first::<bool>(&tensor),
        DType::U8 => first::<u8>(&tensor),
        DType::U16 => first::<u16>(&tensor),
        DType::U32 => first::<u32>(&tensor),
        DType::U64 => first::<u64>(&tensor),
        DType::I8 => first::<i8>(&tensor),
        DType::I16 => first::<i16>(&tensor),
        DType::I32 => first::<i32>(&tensor),
        DType::I64 => first::<i64>(&tensor),
        DType::F32 => first::<f32>(&tensor),
        DType::F64 => first::<f64>(&tensor),
        _ => Ok(Value::from(tensor)),
    }
}
