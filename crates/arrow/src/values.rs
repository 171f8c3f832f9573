//! Converts rows that are not stored as columns to arrays of Arrow.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, ArrowPrimitiveType, BinaryArray, BooleanArray, FixedSizeListArray, ListArray,
    PrimitiveArray, StringArray, StructArray, new_null_array, types,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Fields};
use half::f16;
use tenarc::{DType, DynTensor, Error, Result, Value};

use crate::schema::{Inner, Missing, Type};

/// Returns the type of a value. A map whose keys are texts is a struct. An array whose elements have no common type is
/// a tuple.
pub fn type_of(value: &Value) -> Inner {
    let plain = |of| Inner { of, nullable: false, missing: Missing::Never };
    let lost = |why: &str| plain(Type::Lost(why.to_owned()));
    plain(match value {
        Value::Null => return Inner { nullable: true, ..plain(Type::Null) },
        Value::Bool(_) => Type::Bool,
        Value::Integer(number) if number.unsigned_abs() <= 1 << 53 => Type::Whole,
        Value::Integer(number) if i64::try_from(*number).is_ok() => Type::Number(DType::I64),
        Value::Integer(number) if u64::try_from(*number).is_ok() => Type::Number(DType::U64),
        Value::Integer(_) => return lost("integers of more than 64 bits"),
        Value::F32(_) => Type::Number(DType::F32),
        Value::F64(_) => Type::Number(DType::F64),
        Value::Text(_) => Type::Text,
        Value::Bytes(_) => Type::Bytes,
        Value::Tensor(tensor) => Inner::tensor(tensor.dtype(), tensor.shape()),
        Value::Array(items) => {
            let types = items.iter().map(type_of);
            let nulls = || Inner { nullable: true, ..plain(Type::Null) };
            match Type::list(None, types.clone().reduce(Inner::merged).unwrap_or_else(nulls)) {
                // Elements without a common type make a tuple.
                Type::Lost(_) => Type::tuple(types.collect()),
                found => found,
            }
        }
        Value::Map(entries) => {
            let field = |(key, value): &(Value, Value)| match key {
                Value::Text(name) => Some((name.clone(), type_of(value))),
                _ => None,
            };
            match entries.iter().map(field).collect::<Option<Vec<_>>>() {
                Some(fields) => Type::Struct(fields),
                None => return lost("maps with keys that are not texts"),
            }
        }
        _ => return lost("values that have no type in Arrow"),
    })
}

/// Replaces packed numbers in a value by arrays.
pub fn plain(value: Value) -> Value {
    match value {
        // A sequence cannot hold complex numbers as plain ones.
        Value::Numbers(numbers) => {
            let values = tenarc::from_value(Value::Numbers(numbers.clone()));
            values.map_or(Value::Numbers(numbers), Value::Array)
        }
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        Value::Map(entries) => {
            Value::Map(entries.into_iter().map(|(key, value)| (key, plain(value))).collect())
        }
        other => other,
    }
}

/// Returns an array for each field of rows that are structs.
pub fn fields(rows: &[Value], fields: &[(String, Inner)]) -> Result<Vec<ArrayRef>> {
    let rows: Vec<_> = rows.iter().map(Some).collect();
    of_fields(&rows, fields)
}

/// Returns the array of the one column of rows that are no structs.
pub fn rows(rows: &[Value], fields: &[(String, Inner)]) -> Result<Vec<ArrayRef>> {
    let rows: Vec<_> = rows.iter().map(Some).collect();
    fields.iter().map(|(_, inner)| array(&rows, inner)).collect()
}

fn of_fields(rows: &[Option<&Value>], fields: &[(String, Inner)]) -> Result<Vec<ArrayRef>> {
    let column = |(name, inner): &(String, Inner)| {
        let values: Vec<_> = rows.iter().map(|row| row.and_then(|row| row.get(&**name))).collect();
        array(&values, inner).map_err(|error| error.in_field(name.as_str()))
    };
    fields.iter().map(column).collect()
}

/// Converts values to an array of the type that was found for them.
fn array(values: &[Option<&Value>], inner: &Inner) -> Result<ArrayRef> {
    let values: Vec<_> =
        values.iter().map(|value| value.filter(|value| !value.is_null())).collect();
    let valid = || values.iter().map(Option::is_some).collect::<NullBuffer>();
    let valid = || Some(valid()).filter(|valid| valid.null_count() > 0);
    let of = inner.data_type()?;
    Ok(match &inner.of {
        Type::Bool => {
            let bools = values.iter().map(|value| value.and_then(Value::as_bool));
            Arc::new(bools.collect::<BooleanArray>())
        }
        Type::Number(dtype) => numbers(&values, dtype)?,
        Type::Whole => numbers(&values, &DType::I64)?,
        Type::Text => {
            let texts = values.iter().map(|value| value.and_then(Value::as_str));
            Arc::new(texts.collect::<StringArray>())
        }
        Type::Bytes => {
            let bytes = values.iter().map(|value| value.and_then(Value::as_bytes));
            Arc::new(bytes.collect::<BinaryArray>())
        }
        Type::Tensor(dtype, shape) => {
            let DataType::FixedSizeList(item, size) = &of else { return Err(changed()) };
            let len = usize::try_from(*size).unwrap_or_default();
            let mut bytes = Vec::new();
            for value in &values {
                match value.and_then(Value::as_tensor) {
                    Some(tensor) => {
                        bytes.extend_from_slice(&tensor.clone().into_row_major()?.le_bytes());
                    }
                    None => bytes.resize(bytes.len() + len * dtype.word(), 0),
                }
            }
            let dims = [&[values.len()][..], shape].concat();
            let all = DynTensor::new(dtype.clone(), &dims, tenarc::tensor::Order::C, bytes)?;
            let items = crate::arrays::elements(all)?;
            let (item, rows) = (item.clone(), values.len());
            let list = FixedSizeListArray::try_new_with_length(item, *size, items, valid(), rows);
            Arc::new(list.map_err(limit)?)
        }
        Type::List(item) => {
            let lists = values.iter().map(|value| value.and_then(Value::as_array));
            let items: Vec<_> = lists.clone().flatten().flatten().map(Some).collect();
            let lengths = lists.map(|list| list.map_or(0, <[Value]>::len));
            let offsets = offsets(lengths)?;
            let items = array(&items, item)?;
            let list = ListArray::try_new(item.field("item")?, offsets, items, valid());
            Arc::new(list.map_err(limit)?)
        }
        Type::Fixed(len, item) => {
            let DataType::FixedSizeList(field, size) = &of else { return Err(changed()) };
            let items: Vec<_> = values
                .iter()
                .map(|value| value.and_then(Value::as_array))
                .flat_map(|list| (0..*len).map(move |at| list?.get(at)))
                .collect();
            let (items, rows) = (array(&items, item)?, values.len());
            let list =
                FixedSizeListArray::try_new_with_length(field.clone(), *size, items, valid(), rows);
            Arc::new(list.map_err(limit)?)
        }
        Type::Struct(fields) => {
            let DataType::Struct(found) = of else { return Err(changed()) };
            structs(found, of_fields(&values, fields)?, valid(), values.len())?
        }
        Type::Tuple(columns) => {
            let DataType::Struct(found) = of else { return Err(changed()) };
            let column = |(at, inner): (usize, &Inner)| {
                let rows = values.iter().map(|value| value.and_then(Value::as_array));
                let values: Vec<_> = rows.map(|row| row.and_then(|row| row.get(at))).collect();
                array(&values, inner)
            };
            let arrays = columns.iter().enumerate().map(column).collect::<Result<_>>()?;
            structs(found, arrays, valid(), values.len())?
        }
        // Only nulls have one of these types here.
        Type::Null
        | Type::Enum(_)
        | Type::Variants(_)
        | Type::Category(_)
        | Type::Named(..)
        | Type::Map(_)
        | Type::Lost(_) => new_null_array(&of, values.len()),
    })
}

fn structs(
    fields: Fields,
    arrays: Vec<ArrayRef>,
    valid: Option<NullBuffer>,
    rows: usize,
) -> Result<ArrayRef> {
    let array = StructArray::try_new_with_length(fields, arrays, valid, rows);
    Ok(Arc::new(array.map_err(limit)?))
}

fn offsets(lengths: impl Iterator<Item = usize>) -> Result<OffsetBuffer<i32>> {
    let mut end = 0usize;
    let mut offsets = vec![0];
    for len in lengths {
        end = end.saturating_add(len);
        let offset = i32::try_from(end);
        offsets
            .push(offset.map_err(|_| Error::limit("the lists of a batch have too many elements"))?);
    }
    Ok(OffsetBuffer::new(offsets.into()))
}

fn numbers(values: &[Option<&Value>], dtype: &DType) -> Result<ArrayRef> {
    fn integers<P: ArrowPrimitiveType>(values: &[Option<&Value>]) -> Result<ArrayRef>
    where
        P::Native: TryFrom<i128>,
    {
        let number = |value: &&Value| {
            let number = value.as_i128().and_then(|number| P::Native::try_from(number).ok());
            number.ok_or_else(changed)
        };
        let numbers = values.iter().map(|value| value.as_ref().map(number).transpose());
        Ok(Arc::new(numbers.collect::<Result<PrimitiveArray<P>>>()?))
    }
    let floats = || {
        values.iter().map(|value| match value {
            Some(Value::F32(value)) => Some(f64::from(*value)),
            Some(Value::F64(value)) => Some(*value),
            // Among floats there are only integers that are equal to a float: see `Type::Whole`.
            #[allow(clippy::cast_precision_loss)]
            Some(Value::Integer(value)) => Some(*value as f64),
            _ => None,
        })
    };
    // If the column is `f32`, all values were `f32`, so the conversion is exact.
    #[allow(clippy::cast_possible_truncation)]
    let single = |value: f64| value as f32;
    Ok(match dtype {
        DType::U8 => integers::<types::UInt8Type>(values)?,
        DType::U16 => integers::<types::UInt16Type>(values)?,
        DType::U32 => integers::<types::UInt32Type>(values)?,
        DType::U64 => integers::<types::UInt64Type>(values)?,
        DType::I8 => integers::<types::Int8Type>(values)?,
        DType::I16 => integers::<types::Int16Type>(values)?,
        DType::I32 => integers::<types::Int32Type>(values)?,
        DType::I64 => integers::<types::Int64Type>(values)?,
        DType::F16 => {
            let floats = floats().map(|value| value.map(f16::from_f64));
            Arc::new(floats.collect::<PrimitiveArray<types::Float16Type>>())
        }
        DType::F32 => {
            let floats = floats().map(|value| value.map(single));
            Arc::new(floats.collect::<PrimitiveArray<types::Float32Type>>())
        }
        DType::F64 => Arc::new(floats().collect::<PrimitiveArray<types::Float64Type>>()),
        _ => return Err(changed()),
    })
}

fn changed() -> Error {
    Error::data("the value changed between the two passes over its rows")
}

#[allow(clippy::needless_pass_by_value)]
fn limit(error: ArrowError) -> Error {
    Error::limit(error.to_string())
}
