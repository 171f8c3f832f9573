//! Recognises JSON objects with the keys `dtype`, `shape` and `data` as tensors.

use tenarc::de::Limits;
use tenarc::tensor::{Order, Shape, TensorMeta};
use tenarc::{DType, Error, Result, Value};

use crate::elements::{Number, from_numbers, int_to_float, is_typed};

/// Returns whether a reader could take a map with these keys for a tensor.
pub fn is_special<T>(entries: &[(Value, T)]) -> bool {
    let has = |name| entries.iter().any(|(key, _)| key.as_str() == Some(name));
    matches!(entries.len(), 3 | 4) && has("dtype") && has("shape") && has("data")
}

/// Returns whether the map of a tensor has this key.
pub fn is_part(key: &str) -> bool {
    matches!(key, "dtype" | "shape" | "data" | "order")
}

/// Returns the tensor that a map describes, or else the map. The map of a tensor has a known dtype, a shape and data
/// that are arrays, optionally an order, and no other entries.
pub fn recognised(entries: Vec<(Value, Value)>, limits: Limits) -> Result<Value> {
    let value = |name| entries.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, v)| v);
    let order = value("order");
    if entries.len() != 3 + usize::from(order.is_some()) {
        return Ok(Value::Map(entries));
    }
    let (Some(Value::Text(dtype)), Some(Value::Array(shape)), Some(Value::Array(data))) =
        (value("dtype"), value("shape"), value("data"))
    else {
        return Ok(Value::Map(entries));
    };
    let dtype = DType::from_name(dtype);
    if dtype.bits().is_none() {
        return Ok(Value::Map(entries));
    }
    if shape.len() > limits.max_rank() {
        let (found, most) = (shape.len(), limits.max_rank());
        return Err(Error::limit(format!(
            "the tensor has {found} dimensions, expected at most {most}"
        )));
    }
    let dims = shape.iter().map(|dim| usize::try_from(dim.as_i128()?).ok());
    let dims = dims.collect::<Option<Vec<usize>>>();
    let dims =
        dims.ok_or_else(|| Error::data("expected whole numbers as the shape of a tensor"))?;
    let order = match order {
        None => Order::C,
        Some(order) => match order.as_str() {
            Some(name) if name == Order::C.name() => Order::C,
            Some(name) if name == Order::F.name() => Order::F,
            _ => return Err(Error::data("expected C or F as the order of a tensor")),
        },
    };
    let shape = Shape::from(dims);
    let expected = shape.element_count().and_then(|count| dtype.byte_len(count));
    let size = if is_typed(&dtype) { dtype.byte_len(data.len()) } else { Some(data.len()) };
    if expected.is_none() || expected != size {
        let found = data.len();
        let what = format!("{found} elements do not make a {dtype} tensor of shape {shape:?}");
        return Err(Error::data(what));
    }
    let numbers = data.iter().enumerate().map(|(index, item)| {
        number(item).ok_or_else(|| Error::data("expected a number").in_index(index as u64))
    });
    let numbers = numbers.collect::<Result<Vec<_>>>()?;
    if let Some(index) = numbers.iter().position(|number| overflows(&dtype, *number)) {
        let what = format!("the number is too large for {dtype}");
        return Err(Error::data(what).in_index(index as u64));
    }
    let meta = TensorMeta { dtype, shape, order };
    Ok(Value::Tensor(Box::new(from_numbers(&meta, &numbers)?)))
}

/// Returns whether a finite number would become infinite in this dtype.
fn overflows(dtype: &DType, number: Number) -> bool {
    let beyond = |value: f64| {
        let size = value.abs();
        #[allow(clippy::cast_possible_truncation)]
        let is_infinite = match dtype {
            DType::F32 | DType::C64 => (size as f32).is_infinite(),
            DType::F16 => dtype.encode_f16(size) == Some(0x7c00),
            DType::BF16 => dtype.encode_f16(size) == Some(0x7f80),
            _ => false,
        };
        size.is_finite() && is_infinite
    };
    match number {
        Number::Float(value) => beyond(value),
        Number::Complex(re, im) => beyond(re) || beyond(im),
        _ => false,
    }
}

fn number(value: &Value) -> Option<Number> {
    match value {
        Value::Array(parts) => match parts.as_slice() {
            [re, im] => Some(Number::Complex(float(re)?, float(im)?)),
            _ => None,
        },
        Value::Bool(value) => Some(Number::Bool(*value)),
        Value::Integer(value) => Some(match u64::try_from(*value) {
            Ok(value) => Number::Unsigned(value),
            Err(_) => Number::Signed(i64::try_from(*value).ok()?),
        }),
        other => float(other).map(Number::Float),
    }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::F64(value) => Some(*value),
        // Other writers omit the fraction of a float without one: `1` instead of `1.0`.
        Value::Integer(value) => int_to_float(*value),
        Value::Text(name) => match name.as_str() {
            "NaN" => Some(f64::NAN),
            "inf" => Some(f64::INFINITY),
            "-inf" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}
